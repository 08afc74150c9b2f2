package cassette_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/internal/cassette"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/strategies"
	"github.com/dialai/dialai/webhook"
)

// A pace is a tape that takes its time before and after each call of a specialist, on top
// of the one below.
type pace struct {
	webhook.Tape
	before, after map[string]time.Duration
}

func (p *pace) Exchange(ctx context.Context, l webhook.Label, request []byte, send func() webhook.Taped) webhook.Taped {
	said := p.Tape.Exchange(ctx, l, request, func() webhook.Taped {
		select {
		case <-time.After(p.before[l.Specialist]):
			return send()
		case <-ctx.Done():
			return webhook.Taped{Err: ctx.Err()}
		}
	})
	if p.Playing() {
		time.Sleep(p.before[l.Specialist])
	}
	time.Sleep(p.after[l.Specialist])
	return said
}

// A panel makes proposers that are asked over a tape. The model of each is what it says: a
// transition, or "" for a failure.
type panel struct {
	strategies.Registry // of contexts
	tape                webhook.Tape
}

func (p panel) Proposer(_ *machine.Machine, s *machine.Specialist, _ specialist.Context) (specialist.Proposer, error) {
	if s.ModelID == "" {
		return nil, nil
	}
	return specialist.ProposerFunc(func(ctx context.Context, q specialist.Question) (a specialist.Answer, err error) {
		l := webhook.Label{Kind: "ask", Specialist: q.Self, State: q.State.Name, Round: q.Key.Round, Attempt: q.Key.Attempt, Ask: q.Ask.Nth}
		said := p.tape.Exchange(ctx, l, nil, func() webhook.Taped {
			if s.ModelID == "broken" {
				return webhook.Taped{Err: errors.New("it is broken")}
			}
			return webhook.Taped{Body: fmt.Appendf(nil, `{"transitionName":%q}`, s.ModelID)}
		})
		if said.Err != nil {
			return a, said.Err
		}
		return a, json.Unmarshal(said.Body, &a)
	}), nil
}

// race runs a machine of models under firstProposal on a deck, two rounds if all goes
// well, and returns who won them and how it ended.
func race(t *testing.T, models []string, parallel int, d *cassette.Deck, before, after map[string]time.Duration) string {
	t.Helper()
	var b strings.Builder
	for i, m := range models {
		fmt.Fprintf(&b, `{"role":"proposer","specialistId":"p%d","contextFn":"sessionContext","modelId":%q},`, i, m)
	}
	text := fmt.Sprintf(`{"machineName":"race","initialState":"a","goalState":"z","solicit":{"maxParallel":%d},"states":{
		"a":{"transitions":{"x":"b","y":"b","w":"b"}},"b":{"transitions":{"x":"z","y":"z","w":"z"}},"z":{}},
		"specialists":[%s{"role":"arbiter","specialistId":"first","strategyFnName":"firstProposal"}]}`, parallel, b.String())
	m, err := machine.Parse("race.json", []byte(text), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	kept := store.NewMemory()
	defer kept.Close()
	var went []string
	r, err := runner.New(runner.Config{Store: kept, Resolver: panel{tape: &pace{d, before, after}}, Arrivals: d, Observer: func(rec session.Change) {
		for _, e := range rec.Events {
			if e, ok := e.Data.(*session.Executed); ok {
				went = append(went, e.SpecialistID+":"+e.Transition.Name)
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s, err := r.Start(t.Context(), m, runner.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	res, err := r.Run(t.Context(), s.ID, runner.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(append(went, string(res.Status)), " ")
}

// open returns a deck of a new folder, or of one to play.
func open(t *testing.T, dir string, playing bool) (d *cassette.Deck) {
	t.Helper()
	var err error
	if playing {
		d, err = cassette.Play(dir)
	} else {
		d, err = cassette.Record(dir, cassette.Run{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func milliseconds(pairs ...any) map[string]time.Duration {
	m := map[string]time.Duration{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = time.Duration(pairs[i+1].(int)) * time.Millisecond
	}
	return m
}

// TestRaceIsReplayed: who was delivered first is delivered first again, however fast the answers
// come then. p0 had its answer first, and p1 was delivered first.
func TestRaceIsReplayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "tapes")
		models := []string{"x", "y", "broken"}
		d := open(t, dir, false)
		recorded := race(t, models, 3, d, milliseconds("p1", 5), milliseconds("p0", 20, "p2", 1))
		if recorded != "p1:y p1:y completed" || d.Err() != nil {
			t.Fatalf("it went %s, %v", recorded, d.Err())
		}
		order, err := os.ReadFile(filepath.Join(dir, "order.jsonl"))
		if want := `{"specialist":"p2","state":"a","round":1}` + "\n" + `{"specialist":"p1","state":"a","round":1}` + "\n" + `{"specialist":"p0","state":"a","round":1}` + "\n"; err != nil || !strings.HasPrefix(string(order), want) {
			t.Errorf("the order is %v\n%s", err, order)
		}
		slow := milliseconds("p1", 50, "p2", 80)
		d = open(t, dir, true)
		if again := race(t, models, 3, d, slow, nil); again != recorded || d.Err() != nil {
			t.Errorf("it went %s again, %v", again, d.Err())
		}
		// A folder that does not say in which order is played as its answers come.
		if err := os.Remove(filepath.Join(dir, "order.jsonl")); err != nil {
			t.Fatal(err)
		}
		d = open(t, dir, true)
		if again := race(t, models, 3, d, slow, nil); again != "p0:x p0:x completed" || d.Err() != nil {
			t.Errorf("an old folder went %s, %v", again, d.Err())
		}
	})
}

// TestRacesAreReplayed: any run goes the same way again, whoever is faster then, few at a
// time or all at once, and nothing is missing.
func TestRacesAreReplayed(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 7))
	waits := func() map[string]time.Duration {
		m := map[string]time.Duration{}
		for i := range 5 {
			m[fmt.Sprint("p", i)] = time.Duration(r.IntN(4)) * time.Millisecond
		}
		return m
	}
	for n := range 60 {
		models := make([]string, 1+r.IntN(5))
		for i := range models {
			models[i] = []string{"x", "y", "w", "broken"}[r.IntN(4)]
		}
		parallel := 1 + r.IntN(5)
		synctest.Test(t, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "tapes")
			d := open(t, dir, false)
			recorded := race(t, models, parallel, d, waits(), waits())
			if d.Err() != nil {
				t.Error(d.Err())
			}
			for range 5 {
				start := time.Now()
				d := open(t, dir, true)
				if again := race(t, models, parallel, d, waits(), waits()); again != recorded || d.Err() != nil {
					t.Errorf("seed %d, run %d of %q, %d at once, went %s and then %s, %v", seed, n, models, parallel, recorded, again, d.Err())
				}
				if took := time.Since(start); took > time.Second {
					t.Errorf("seed %d, run %d of %q, %d at once, takes %s", seed, n, models, parallel, took)
				}
			}
		})
	}
}

// TestNeverSent: a call that was never made, because its round was over before there was a
// place for it, is given up again and costs nothing; one that is missing else is said to be.
func TestNeverSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, d := record(t)
		asked := []specialist.Caller{{SpecialistID: "a", State: "open", Round: 1}, {SpecialistID: "b", State: "open", Round: 1}, {SpecialistID: "c", State: "open", Round: 1}}
		decided, decide := context.WithCancelCause(t.Context())
		decide(specialist.ErrDecided)
		late, over := context.WithDeadline(t.Context(), time.Now())
		defer over()
		broken, interrupt := context.WithCancel(t.Context())
		interrupt()
		arrive := d.Together(asked)
		for i, ctx := range []context.Context{decided, late, broken} {
			arrive(ctx, i, func() {})
		}
		p := play(t, dir)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for id, want := range map[string]time.Duration{"a": time.Minute, "b": 0} {
			start := time.Now()
			said := p.Exchange(ctx, label("ask", id, 1), nil, nil)
			if took := time.Since(start); id == "b" && took != want || !errors.Is(said.Err, context.DeadlineExceeded) || !said.Unsent || string(said.Body) != `{"calls":0}` {
				t.Errorf("%s: %+v after %s", id, said, took)
			}
		}
		if p.Err() != nil {
			t.Error(p.Err())
		}
		said := p.Exchange(ctx, label("ask", "c", 1), nil, nil)
		if _, missing := errors.AsType[*cassette.MissingError](said.Err); !missing || p.Err() == nil {
			t.Errorf("one that was interrupted: %+v", said)
		}
	})
}

// TestOrder: an answer waits for those that were delivered before it, if they are asked at the
// same time, and for nobody once its round is over. Of an ask that was repeated the last
// time counts; a line that cannot be read is an error that says where.
func TestOrder(t *testing.T) {
	dir, d := record(t)
	asked := func(ids ...string) (list []specialist.Caller) {
		for _, id := range ids {
			list = append(list, specialist.Caller{SpecialistID: id, State: "open", Round: 1, SessionID: "any", MachineName: "desk"})
		}
		return list
	}
	first := d.Together(asked("a", "b", "c"))
	for _, i := range []int{1, 2, 0, 1} { // b once more
		first(t.Context(), i, func() {})
	}
	if d.Err() != nil {
		t.Fatal(d.Err())
	}
	for _, c := range []struct {
		asked, arrive, want string
		over                bool
	}{
		{"abc", "abc", "cab", false}, {"abc", "bac", "cab", false}, {"ab", "ba", "ab", false}, {"b", "b", "b", false},
		{"xba", "bxa", "xab", false}, {"abc", "bca", "bca", true},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, over := context.WithCancel(t.Context())
			defer over()
			if c.over {
				over()
			}
			arrive := play(t, dir).Together(asked(strings.Split(c.asked, "")...))
			delivered := make(chan string, len(c.asked))
			for _, id := range strings.Split(c.arrive, "") {
				go arrive(ctx, strings.Index(c.asked, id), func() { delivered <- id })
				synctest.Wait()
			}
			close(delivered)
			var got []string
			for id := range delivered {
				got = append(got, id)
			}
			if strings.Join(got, "") != c.want {
				t.Errorf("%+v: delivered were %v", c, got)
			}
		})
	}
	if err := os.WriteFile(filepath.Join(dir, "order.jsonl"), []byte("{}\n{\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := cassette.Play(dir); err == nil || !strings.Contains(err.Error(), "order.jsonl: line 2: ") {
		t.Error(err)
	}
}

// TestTornOrder: a last line that a failing computer cut off is as if it had not been
// begun, and the folder is recorded on behind the whole ones.
func TestTornOrder(t *testing.T) {
	dir, d := record(t)
	asked := []specialist.Caller{{SpecialistID: "a", State: "open", Round: 1}, {SpecialistID: "b", State: "open", Round: 1}}
	d.Together(asked)(t.Context(), 0, func() {})
	name := filepath.Join(dir, "order.jsonl")
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, append(whole, whole[:9]...), 0o600); err != nil {
		t.Fatal(err)
	}
	play(t, dir)
	on, err := cassette.Continue(dir, cassette.Run{MachineName: "desk", MachineDigest: "abc", Seed: "18446744073709551615", MetaJSON: []byte(`{"a":1}`)})
	if err != nil {
		t.Fatal(err)
	}
	on.Together(asked)(t.Context(), 1, func() {})
	now, err := os.ReadFile(name)
	if want := string(whole) + strings.Replace(string(whole), `"a"`, `"b"`, 1); err != nil || string(now) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, now, want)
	}
	play(t, dir)
}
