package e2e_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
)

var kills = flag.Int("kills", 200, "how many processes TestCrash kills")

// sessionsAtOnce is how many sessions run while processes are killed.
const sessionsAtOnce = 8

// legs is how many transitions lead a session of the crash machine to its goal.
const legs = 12

// TestCrash kills the real program with SIGKILL at random moments while eight
// sessions run against a webhook that counts its calls. Afterwards every session
// has reached the same end; no answer that was recorded was asked for again; no
// transition was executed twice; the store verifies; and every session's spend is
// what the webhook charged for it, where an ask that is repeated under its key
// is charged once.
func TestCrash(t *testing.T) { newCrash(t).run(*kills) }

// TestCrashBudget does the same to sessions that share nothing but each have a
// budget which they run into: no crash makes it whole again, none is charged
// twice, and no proposers that are asked at once break it together.
func TestCrashBudget(t *testing.T) {
	c := newCrash(t)
	c.budget = exact.Dollar / 2
	c.run(*kills / 4)
	if c.refused == 0 {
		t.Error("nobody was refused: the test shows nothing")
	}
}

// TestCrashGuards does the same to sessions whose guards ask a classifier about
// every step, and whose arbiters cost something too: what was asked before a crash
// is paid once, wherever between reserving, settling and executing it came.
func TestCrashGuards(t *testing.T) {
	c := newCrash(t)
	c.asking, c.hook.paid = true, true
	c.run(*kills / 4)
	t.Logf("%d questions of the guards were lost; TestCrashPoints loses one for certain", c.lost)
}

// run kills that many processes.
func (c *crash) run(kills int) {
	t := c.T
	for batch := 0; c.killed < kills; batch++ {
		ids := c.start()
		for c.killed < kills && c.live(ids) > 0 {
			c.round(ids, true)
			c.checkRecorded(ids)
		}
		for tries := 0; c.live(ids) > 0; tries++ {
			if tries > 20 {
				t.Fatal("sessions do not come to their end when nobody kills them")
			}
			c.round(ids, false)
		}
		c.checkRecorded(ids)
		c.checkEnd(ids)
	}
	c.verify()
	t.Logf("%d processes killed, %d sessions run, %d calls for %d asks", c.killed, c.started, c.hook.total(), c.hook.asks())
}

// A crash is one run of the test.
type crash struct {
	*testing.T
	ctx     context.Context
	rng     *rand.Rand
	path    string
	hook    *countingHook
	server  *httptest.Server
	killed  int
	started int
	settled map[string]int // calls for an ask at the time its answer was recorded
	budget  exact.Money    // of each session; 0 is none
	refused int            // asks that the budget did not allow
	asking  bool           // guards ask, and arbiters cost
	lost    int            // questions of the guards that a killed process asked
}

func newCrash(t *testing.T) *crash {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	c := &crash{T: t, ctx: context.Background(), rng: rand.New(rand.NewPCG(seed, 1)), path: filepath.Join(t.TempDir(), "dialai.db"),
		hook: newCountingHook(seed), settled: map[string]int{}}
	c.server = httptest.NewServer(c.hook)
	t.Cleanup(c.server.Close)
	return c
}

// definition is the crash machine: a ring that is left after a number of legs.
// Nothing in it stops early. Where a budget refuses most of the panel, one answer is
// enough; else a majority must have answered, whoever is killed.
func (c *crash) definition(remoteArbiter bool) []byte {
	arbiter := `"strategyFn":"= aheadBy >= 1 ? leader : none"`
	name := "crash-local"
	if remoteArbiter {
		arbiter = fmt.Sprintf(`"strategyWebhookUrl":"%s/arbitrate","webhookTokenName":"CRASH_WEBHOOK_TOKEN","estimatedCostUSD":%s`, c.server.URL, c.hook.price("arbitrate"))
		name = "crash-remote"
	}
	guards := ""
	if c.budget > 0 {
		name += "-budget"
		guards = fmt.Sprintf(`"quorum":"any","guards":{"budget":{"hard_limit_usd":%s},"loop_detection":{"max_state_visits":100,"cycle":false,"mode":"off","max_output_repeats":false}},`, c.budget)
	}
	if c.asking {
		name += "-asking"
		guards = fmt.Sprintf(`"guards":{"classifier":{"url":"%s/classify","token_name":"CRASH_WEBHOOK_TOKEN","on_error":"closed","timeout_ms":60000,"breaker":{"failures":1000}},"loop_detection":{"max_state_visits":100,"cycle":false,"mode":"off","max_output_repeats":false}},`, c.server.URL)
	}
	who := ""
	for _, id := range []string{"cheap", "middling", "dear"} {
		who += fmt.Sprintf(`{"role":"proposer","specialistId":"%s","strategyWebhookUrl":"%s/propose/%s","webhookTokenName":"CRASH_WEBHOOK_TOKEN","estimatedCostUSD":%s},`, id, c.server.URL, id, prices[id])
	}
	return []byte(fmt.Sprintf(`{"machineName":"%s","initialState":"s0","goalState":"done",%s"states":{
		"s0":{"transitions":{"next":"s1","end":"done"}},"s1":{"transitions":{"next":"s2","end":"done"}},"s2":{"transitions":{"next":"s0","end":"done"}},"done":{}},
		"specialists":[%s{"role":"proposer","specialistId":"local","strategyFn":"= steps >= %d ? \"end\" : \"next\""},{"role":"arbiter","specialistId":"arbiter",%s}]}`, name, guards, who, legs-1, arbiter))
}

func (c *crash) env() []string {
	return append(os.Environ(), "CRASH_WEBHOOK_TOKEN=token", "DIALAI_WEBHOOK_ALLOW=127.0.0.1")
}

// start starts a batch of sessions.
func (c *crash) start() []specialist.SessionID {
	var ids []specialist.SessionID
	c.inProcess(func(r *runner.Runner, _ *store.SQLite) {
		for i := range sessionsAtOnce {
			m, err := machine.Parse("crash.json", c.definition(i%2 == 1), runner.Checks())
			if err != nil {
				c.Fatal(err)
			}
			s, err := r.Start(c.ctx, m, runner.StartOptions{})
			if err != nil {
				c.Fatal(err)
			}
			ids = append(ids, s.ID)
			c.started++
		}
	})
	return ids
}

// inProcess looks at the store from the test's own process.
func (c *crash) inProcess(f func(*runner.Runner, *store.SQLite)) {
	c.Helper()
	inProcess(c.T, c.path, runner.Config{Resolver: loopback(c.T)}, f)
}

func (c *crash) live(ids []specialist.SessionID) (n int) {
	c.inProcess(func(r *runner.Runner, _ *store.SQLite) {
		for _, id := range ids {
			s, err := r.Session(c.ctx, id)
			if err != nil {
				c.Fatal(err)
			}
			if s.Status.Live() {
				n++
			}
		}
	})
	return n
}

// round runs a process for each session, or one that ticks them all, and kills
// them, or lets them finish.
func (c *crash) round(ids []specialist.SessionID, kill bool) {
	var commands []*exec.Cmd
	if kill && c.rng.IntN(3) == 0 {
		commands = append(commands, c.command("tick"))
	} else {
		for _, id := range ids {
			commands = append(commands, c.command("resume", id.String()))
		}
	}
	c.killed += runAll(c.T, commands, func() time.Duration {
		if !kill {
			return 0
		}
		return time.Duration(1 + c.rng.Int64N(int64(250*time.Millisecond)))
	}, "")
}

func (c *crash) command(args ...string) *exec.Cmd {
	cmd := exec.Command(program, append(args, "--store", c.path)...)
	cmd.Env = c.env()
	return cmd
}

// answers returns the ids of all asks whose answers are recorded in a session.
func (c *crash) answers(s *store.SQLite, id specialist.SessionID) (ids []string) {
	for rec, err := range s.Records(c.ctx, id, 0) {
		if err != nil {
			c.Fatal(err)
		}
		events, err := session.DecodeRaw(rec.Events)
		if err != nil {
			c.Fatal(err)
		}
		for _, e := range events {
			var v struct {
				AskID string `json:"askId"`
			}
			if e.Kind != session.KindProposed {
				continue
			}
			if err := json.Unmarshal(e.Data, &v); err != nil {
				c.Fatal(err)
			}
			if v.AskID != "" {
				ids = append(ids, v.AskID)
			}
		}
	}
	return ids
}

// count counts the events of a session that contain a text.
func (c *crash) count(s *store.SQLite, id specialist.SessionID, text string) (n int) {
	for rec, err := range s.Records(c.ctx, id, 0) {
		if err != nil {
			c.Fatal(err)
		}
		n += strings.Count(string(rec.Events), text)
	}
	return n
}

// checkRecorded checks that nobody was asked again whose answer was recorded.
func (c *crash) checkRecorded(ids []specialist.SessionID) {
	c.Helper()
	c.inProcess(func(_ *runner.Runner, s *store.SQLite) {
		for _, id := range ids {
			for _, ask := range c.answers(s, id) {
				calls := c.hook.callsFor(ask)
				if before, known := c.settled[ask]; known && before != calls {
					c.Fatalf("ask %s was called %d times when its answer was recorded and %d times now", ask, before, calls)
				}
				c.settled[ask] = calls
			}
		}
	})
}

// checkEnd checks where the sessions ended, how they came there, and what they
// cost.
func (c *crash) checkEnd(ids []specialist.SessionID) {
	c.Helper()
	want := append(slices.Repeat([]string{"next"}, legs-1), "end")
	c.inProcess(func(r *runner.Runner, s *store.SQLite) {
		for _, id := range ids {
			sess, err := r.Session(c.ctx, id)
			if err != nil {
				c.Fatal(err)
			}
			var got []string
			for i, e := range sess.History() {
				got = append(got, e.Transition.Name)
				if int(e.Round) != i+1 {
					c.Errorf("session %s: transition %d belongs to round %d", id, i+1, e.Round)
				}
			}
			if sess.Status != session.Completed || !slices.Equal(got, want) {
				c.Errorf("session %s is %s after %v, want completed after %v", id, sess.Status, got, want)
			}
			charged := exact.Money(0)
			for _, ask := range c.answers(s, id) {
				charged += c.hook.charge(ask)
			}
			total := c.hook.chargedTo(id.String())
			if c.budget > 0 && total > c.budget {
				c.Errorf("session %s was charged $%s of a budget of $%s", id, total, c.budget)
			}
			c.refused += c.count(s, id, `"code":"budget_usd"`)
			c.lost += c.count(s, id, `"code":"lost"`)
			if sess.Spent().Money != total || !c.asking && charged != total {
				c.Errorf("session %s spent $%s, its answers cost $%s, the webhook charged $%s", id, sess.Spent().Money, charged, total)
			}
		}
	})
}

func (c *crash) verify() {
	c.Helper()
	out, err := c.command("store", "verify").CombinedOutput()
	if err != nil {
		c.Fatalf("store verify: %v\n%s", err, out)
	}
	c.Logf("%s", out)
}

// A countingHook is the webhook: it proposes, arbitrates, charges, and counts
// its calls by idempotency key.
type countingHook struct {
	mu    sync.Mutex
	rng   *rand.Rand
	paid  bool // arbiters cost something
	calls map[string]int
	costs map[string]exact.Money
	whose map[string]string // session of an ask
	hangs func(path string) bool
}

func newCountingHook(seed uint64) *countingHook {
	return &countingHook{rng: rand.New(rand.NewPCG(seed, 2)), calls: map[string]int{}, costs: map[string]exact.Money{}, whose: map[string]string{}}
}

var prices = map[string]exact.Money{"cheap": exact.Dollar / 1000, "middling": exact.Dollar / 100, "dear": exact.Dollar / 7,
	"arbitrate": exact.Dollar / 50, "classify": exact.Dollar / 30}

// price is what somebody charges.
func (h *countingHook) price(who string) exact.Money {
	if who == "arbitrate" && !h.paid {
		return 0
	}
	return prices[who]
}

func (h *countingHook) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var q struct {
		SessionID string            `json:"sessionId"`
		History   []json.RawMessage `json:"history"`
		Meta      struct {
			Task string `json:"task_id"`
		} `json:"meta"`
		Proposals []struct {
			ProposalID string `json:"proposalId"`
		} `json:"proposals"`
	}
	if err := json.NewDecoder(req.Body).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	who := req.URL.Path[strings.LastIndexByte(req.URL.Path, '/')+1:]
	price := h.price(who)
	delay, hang := h.count(req, q.SessionID+q.Meta.Task, price)
	if hang {
		<-req.Context().Done() // until its caller is gone
		return
	}
	select { // a service takes its time
	case <-time.After(delay):
	case <-req.Context().Done():
		return
	}
	if strings.HasPrefix(req.URL.Path, "/arbitrate") {
		json.NewEncoder(w).Encode(map[string]any{"consensusReached": true, "winningProposalId": q.Proposals[0].ProposalID, "reasoning": "the first", "costUSD": json.Number(price.String())})
		return
	}
	if who == "classify" {
		json.NewEncoder(w).Encode(map[string]any{"verdict": "ok", "costUSD": json.Number(price.String())})
		return
	}
	transition := "next"
	if len(q.History) >= legs-1 {
		transition = "end"
	}
	json.NewEncoder(w).Encode(map[string]any{"transitionName": transition, "reasoning": fmt.Sprint("as always, the ", len(q.History), "th time"), "costUSD": json.Number(price.String())})
}

// count counts a call and returns how long it is to take, and whether it is never to
// be answered.
func (h *countingHook) count(req *http.Request, session string, cost exact.Money) (delay time.Duration, hang bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := req.Header.Get("Idempotency-Key")
	h.calls[key]++
	h.costs[key] = cost // the same key, the same charge
	h.whose[key] = session
	return time.Duration(h.rng.Int64N(int64(8 * time.Millisecond))), h.hangs != nil && h.hangs(req.URL.Path)
}

func (h *countingHook) callsFor(key string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls[key]
}

func (h *countingHook) charge(key string) exact.Money {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.costs[key]
}

func (h *countingHook) chargedTo(session string) (sum exact.Money) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, cost := range h.costs {
		if h.whose[key] == session {
			sum += cost
		}
	}
	return sum
}

func (h *countingHook) total() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, calls := range h.calls {
		n += calls
	}
	return n
}

func (h *countingHook) asks() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(slices.Collect(maps.Keys(h.calls)))
}
