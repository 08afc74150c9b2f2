package e2e_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/client"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/postgres"
)

var databaseKills = flag.Int("database-kills", 0, "how often TestDatabaseKilled kills Postgres; 0 is 20 times, or as often as fits into 40 s where the computer is busy")

// backWithin is how long it may take from when Postgres is back until a command is answered: the servers wait
// 10 s at most before they connect again, and a computer that is busy is slow.
const backWithin = 20 * time.Second

// A priced is a service that is paid for each key, and counts how often it is asked under each.
type priced struct {
	mu    sync.Mutex
	rng   *rand.Rand
	calls map[string]int         // by key
	keys  map[string]string      // the key of a question
	asked map[string]exact.Money // how many keys a session has
	twice []string               // questions that were asked under two keys
}

const pricedCost = exact.Dollar / 50

// ServeHTTP answers a question.
func (p *priced) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q struct {
		SessionID string
		History   []json.RawMessage
	}
	text, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(text, &q) != nil {
		http.Error(w, "no question", http.StatusBadRequest)
		return
	}
	what, key := fmt.Sprintf("%s in round %d of session %s", r.URL.Path, len(q.History)+1, q.SessionID), r.Header.Get("Idempotency-Key")
	p.mu.Lock()
	if before, known := p.keys[what]; known && before != key {
		p.twice = append(p.twice, what)
	}
	p.keys[what] = key
	if p.calls[key]++; p.calls[key] == 1 {
		p.asked[q.SessionID]++
	}
	takes := time.Duration(p.rng.Int64N(int64(30 * time.Millisecond)))
	p.mu.Unlock()
	time.Sleep(takes) // so that some answers come while there is no database
	json.NewEncoder(w).Encode(map[string]any{"transitionName": "on", "reasoning": "as always", "costUSD": json.Number(pricedCost.String())})
}

// roundsEach is how many rounds a session has.
const roundsEach = 3

// inRounds is a machine in each of whose rounds two services are asked, and then a human rules.
func inRounds(url string) string {
	states := ""
	for n := range roundsEach {
		states += fmt.Sprintf(`"s%d":{"transitions":{"on":"s%d"}},`, n, n+1)
	}
	who := ""
	for _, id := range []string{"one", "two"} {
		who += fmt.Sprintf(`{"role":"proposer","specialistId":"%s","strategyWebhookUrl":"%s/%s","webhookTokenName":"A_WEBHOOK_TOKEN","estimatedCostUSD":%s},`, id, url, id, pricedCost)
	}
	return fmt.Sprintf(`{"machineName":"rounds","initialState":"s0","goalState":"s%d","states":{%s"s%d":{}},"specialists":[%s
		{"role":"proposer","specialistId":"carol","isHuman":true},{"role":"arbiter","specialistId":"judge","strategyFn":"= none"}]}`, roundsEach, states, roundsEach, who)
}

// worksThrough starts sessions one after the other, and rules in each until it has ended. It counts its rulings.
func (l *load) worksThrough(who int, c *client.Client, definition string, ruled *atomic.Int64) {
	l.starts(who, func(once client.Write) bool {
		s, ok := until(l, func() (api.Settled, error) {
			return c.Start(l.Context(), api.Start{Machine: json.RawMessage(definition)}, once)
		})
		if !ok {
			return false
		}
		id := s.Session.SessionID
		l.begun(once.Key, id)
		for end := time.Now().Add(time.Minute); s.Session.Status != session.Completed; {
			q := s.Session.Question
			if q == nil || s.Session.Status != session.NeedsHuman {
				if s, ok = until(l, func() (api.Settled, error) { return c.Await(l.Context(), id, "", 20*time.Second) }); !ok {
					return false
				}
				if time.Now().After(end) {
					l.Errorf("session %s does not go on: it is %s", id, s.Session.Status)
					return false
				}
				continue
			}
			got, ok := until(l, func() (api.Ruled, error) {
				return c.Decide(l.Context(), id, api.Ruling{TransitionName: "on", RoundID: q.RoundID, QuestionDigest: q.Digest}, client.Write{Key: id + q.RoundID, Wait: 20 * time.Second})
			})
			if !ok {
				return false
			}
			ruled.Add(1)
			s = got.Settled
		}
		return true
	})
}

// TestDatabaseKilled kills all processes of Postgres with SIGKILL, again and again, while two servers carry sessions on and
// clients of both start sessions and rule. Nothing that was acknowledged is lost and nothing is there twice, each service is
// asked each question under one key and paid once, though a request may be made again under its key where the database went away
// meanwhile, and both servers go on by themselves when the database is back.
func TestDatabaseKilled(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 7))
	service := &priced{rng: rand.New(rand.NewPCG(seed, 8)), calls: map[string]int{}, keys: map[string]string{}, asked: map[string]exact.Money{}}
	hook := httptest.NewServer(service)
	defer hook.Close()
	server := pgtest.Start(t, true)
	d := newDesk(t)
	d.store = server.Database(t)
	d.env = append(d.env, "XDG_DATA_HOME="+d.dir, "DIALAI_WEBHOOK_ALLOW=127.0.0.1", "A_WEBHOOK_TOKEN=token")

	var work sync.WaitGroup
	var loads []*load
	var servers []*served
	var ruled atomic.Int64
	enough := make(chan struct{})
	for range 2 {
		l := &load{desk: d, at: port(t), args: []string{"--rate-read", "0", "--rate-write", "0"}, done: make(chan struct{}), enough: enough, started: map[string]string{}}
		loads, servers = append(loads, l), append(servers, l.server())
		logs := servers[len(servers)-1].logs
		defer func() {
			if t.Failed() {
				t.Logf("a server has said:\n%s", logs)
			}
		}()
	}
	for who := range 6 {
		l := loads[who%2]
		c := l.client(servers[who%2].key)
		work.Go(func() { l.worksThrough(who, c, inRounds(hook.URL), &ruled) })
	}
	killed, longest := killDatabase(t, server, loads, rng)
	close(enough)
	finish(loads, &work)
	for _, s := range servers { // the same processes as in the beginning
		s.drives("driving", backWithin)
		s.end(syscall.SIGTERM, 0)
	}
	sessions := map[string]int{}
	for _, l := range loads {
		for key, id := range l.started {
			if sessions[id]++; sessions[id] > 1 {
				t.Errorf("session %s is that of two keys, %s is one", id, key)
			}
		}
	}
	if got, want := ruled.Load(), int64(roundsEach*len(sessions)); got != want {
		t.Errorf("%d rulings were acknowledged, want %d", got, want)
	}
	service.check(t, d.store, sessions, killed)
	if out, _ := d.run(0, "store", "verify"); !strings.Contains(out, "no difference") {
		t.Errorf("it is %s", out)
	}
	t.Logf("Postgres killed %d times, %d sessions, %d rulings, %d questions to services under %d keys; %s until an answer at most", killed, len(sessions), ruled.Load(), len(service.keys), len(service.calls), longest)
}

// killDatabase kills Postgres at random moments and starts it again, and returns how often, and how long it took at most until
// a command was answered then.
func killDatabase(t *testing.T, server *pgtest.Server, loads []*load, rng *rand.Rand) (killed int, longest time.Duration) {
	t.Helper()
	kills, fits := 20, 40*time.Second
	if testing.Short() {
		kills = 5
	}
	if *databaseKills > 0 {
		kills, fits = *databaseKills, time.Hour
	}
	acknowledged := func(l *load) time.Duration {
		t.Helper()
		began := time.Now()
		select {
		case <-l.done:
		case <-time.After(backWithin):
			t.Fatalf("no command is answered any more for %s", backWithin)
		}
		return time.Since(began)
	}
	for began := time.Now(); killed < kills && (killed < 5 || time.Since(began) < fits); killed++ {
		for range rng.IntN(5) {
			acknowledged(loads[0])
			acknowledged(loads[1])
		}
		time.Sleep(time.Duration(rng.Int64N(int64(30 * time.Millisecond)))) // a command is underway, and nobody knows how far
		server.Kill()
		server.Restart(t)
		for _, l := range loads {
			longest = max(longest, acknowledged(l))
		}
	}
	return killed, longest
}

// finish waits until the clients have ended, who begin nothing more.
func finish(loads []*load, work *sync.WaitGroup) {
	ended := make(chan struct{})
	var drain sync.WaitGroup
	for _, l := range loads {
		drain.Go(func() {
			for {
				select {
				case <-l.done:
				case <-ended:
					return
				}
			}
		})
	}
	work.Wait()
	close(ended)
	drain.Wait()
}

// check holds what is stored to what was acknowledged, and to what the service was asked.
func (p *priced) check(t *testing.T, address string, acknowledged map[string]int, killed int) {
	t.Helper()
	for _, what := range p.twice {
		t.Errorf("the service %s was asked under two keys", what)
	}
	again := 0
	for _, calls := range p.calls {
		again += calls - 1
	}
	if t.Logf("%d requests were made again under their keys", again); again > killed {
		t.Errorf("%d requests were made again though Postgres was killed %d times only", again, killed)
	}
	s, err := postgres.Open(t.Context(), address, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := runner.New(runner.Config{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	answers, lost := map[string]int{}, maps.Clone(acknowledged)
	for e, err := range s.Log(t.Context(), "", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if delete(lost, e.Session.String()); acknowledged[e.Session.String()] == 0 {
			t.Errorf("session %s is of no command", e.Session)
		}
		events, err := session.DecodeRaw(e.Events)
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range events {
			var v struct{ AskID string }
			if err := json.Unmarshal(event.Data, &v); err != nil {
				t.Fatal(err)
			}
			if event.Kind == session.KindProposed {
				answers[v.AskID]++
			}
		}
	}
	for id := range lost {
		t.Errorf("session %s was acknowledged, and is lost", id)
	}
	for ask := range p.calls {
		if answers[ask] != 1 {
			t.Errorf("the answer to ask %s was recorded %d times", ask, answers[ask])
		}
	}
	for text := range acknowledged {
		id, err := session.ParseID(text)
		if err != nil {
			t.Fatal(err)
		}
		sess, err := r.Session(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		var rounds []int32
		for _, e := range sess.History() {
			rounds = append(rounds, e.Round)
		}
		if sess.Status != session.Completed || !slices.Equal(rounds, []int32{1, 2, 3}) {
			t.Errorf("session %s is %s, and was decided in the rounds %v", id, sess.Status, rounds)
		}
		if spent, charged := sess.Spent().Money, p.asked[text]*pricedCost; spent != charged {
			t.Errorf("session %s has spent $%s, and the service has charged $%s", id, spent, charged)
		}
	}
}
