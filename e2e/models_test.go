package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/llm"
	"github.com/dialai/dialai/llm/llmtest"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
)

// modelLegs is how many states a session of models passes.
const modelLegs = 8

// modelSessions is how many of them run at once.
const modelSessions = 4

// TestCrashModels kills the real program with SIGKILL at random moments while
// sessions of models run against a scripted server on loopback, which
// counts its requests. No answer that was recorded is asked for again; every request
// that the server saw is in what its session has spent, at the price of the answer
// where there is one and at the estimate where it was lost; and nothing is in it twice.
func TestCrashModels(t *testing.T) {
	c := newModelCrash(t)
	more := func() bool { return c.killed < *kills/4 || c.lost == 0 && c.killed < *kills*10 }
	for batch := 0; more(); batch++ {
		ids := c.start(batch)
		for tries := 0; c.live(ids) > 0; tries++ {
			if tries > 500 {
				t.Fatal("sessions do not come to their end")
			}
			c.round(ids, more())
			c.checkRecorded(ids)
		}
		c.checkEnd(ids)
	}
	c.verify()
	t.Logf("%d processes killed, %d requests, %d of them lost", c.killed, c.total(), c.lost)
	if c.lost == 0 {
		t.Error("no request was lost: the test shows nothing")
	}
}

// A modelCrash is one run of the test.
type modelCrash struct {
	*testing.T
	ctx    context.Context
	path   string
	server *llmtest.Server
	killed int
	lost   int           // requests whose answers no session has
	within time.Duration // the time in which a process is killed

	mu       sync.Mutex
	rng      *rand.Rand
	requests map[string]int // by model, session and state
	settled  map[string]int // the same when the answer was recorded
}

func newModelCrash(t *testing.T) *modelCrash {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	c := &modelCrash{T: t, ctx: context.Background(), path: filepath.Join(t.TempDir(), "dialai.db"), rng: rand.New(rand.NewPCG(seed, 3)), within: 150 * time.Millisecond,
		requests: map[string]int{}, settled: map[string]int{}}
	var err error
	if c.server, err = llmtest.Start(c.answer); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.server.Close() })
	return c
}

var (
	taskOf  = regexp.MustCompile(`"task": ?"(\w+)"`)
	stateOf = regexp.MustCompile(`(?m)^State: (\w+)$`)
)

// keyOf names an ask of a model by what it is asked.
func keyOf(model, task, state string) string { return model + " " + task + " " + state }

// answer is what a model says, after a while.
func (c *modelCrash) answer(_ int, call llmtest.Call) llmtest.Reply {
	c.mu.Lock()
	defer c.mu.Unlock()
	task, state := taskOf.FindStringSubmatch(call.User), stateOf.FindStringSubmatch(call.User)
	if task == nil || state == nil {
		return llmtest.Reply{Status: 400, Body: "the prompt names no task or no state"}
	}
	c.requests[keyOf(call.Model, task[1], state[1])]++
	return llmtest.Reply{Text: "as always", Tools: []llmtest.Tool{{Name: "next", Args: "{}"}}, Usage: llmtest.Usage{Input: 200, Output: 20},
		Delay: time.Duration(c.rng.Int64N(int64(15 * time.Millisecond)))}
}

// definition is a row of states with two models in each.
func (c *modelCrash) definition() []byte {
	states := `"done":{}`
	for i := range modelLegs {
		next := "done"
		if i+1 < modelLegs {
			next = fmt.Sprintf("s%d", i+1)
		}
		states += fmt.Sprintf(`,"s%d":{"transitions":{"next":%q,"leave":"done"}}`, i, next)
	}
	return []byte(`{"machineName":"models","initialState":"s0","goalState":"done","states":{` + states + `},
		"guards":{"cost":{"prices":{"maker/cheap":{"input_per_1m":1,"output_per_1m":10},"maker/dear":{"input_per_1m":50,"output_per_1m":100}}},"loop_detection":{"cycle":false,"mode":"off","max_output_repeats":false,"max_state_visits":100}},
		"specialists":[{"role":"proposer","specialistId":"a","contextFn":"sessionContext","modelId":"maker/cheap"},{"role":"proposer","specialistId":"b","contextFn":"sessionContext","modelId":"maker/dear"},
		{"role":"arbiter","specialistId":"judge","strategyFn":"= aheadBy >= 2 ? leader : none"}]}`)
}

// prices of an answer, by the model that gave it.
var modelCosts = map[string]exact.Money{"maker/cheap": exact.Dollar / 2500, "maker/dear": exact.Dollar * 12 / 1000}

func (c *modelCrash) command(args ...string) *exec.Cmd {
	cmd := exec.Command(program, append(args, "--store", c.path)...)
	cmd.Env = append(os.Environ(), "DIALAI_LLM_BASE_URL="+c.server.URL)
	return cmd
}

// inProcess looks at the store from the test's own process.
func (c *modelCrash) inProcess(f func(*runner.Runner, *store.SQLite)) {
	c.Helper()
	inProcess(c.T, c.path, runner.Config{Resolver: llm.New(llm.Config{})}, f)
}

// start starts a batch of sessions, which name themselves in their metaJson.
func (c *modelCrash) start(batch int) (ids []specialist.SessionID) {
	c.inProcess(func(r *runner.Runner, _ *store.SQLite) {
		m, err := machine.Parse("models.json", c.definition(), runner.Checks())
		if err != nil {
			c.Fatal(err)
		}
		for i := range modelSessions {
			s, err := r.Start(c.ctx, m, runner.StartOptions{Meta: fmt.Appendf(nil, `{"task":"t%dx%d"}`, batch, i)})
			if err != nil {
				c.Fatal(err)
			}
			ids = append(ids, s.ID)
		}
	})
	return ids
}

func (c *modelCrash) live(ids []specialist.SessionID) (n int) {
	c.each(ids, func(s *session.Session, _ []askEvent) {
		if s.Status.Live() {
			n++
		}
	})
	return n
}

// round runs a process for each session, and kills them, or lets them finish. Where none came
// as far as a request, the computer is busy, and the next ones get longer.
func (c *modelCrash) round(ids []specialist.SessionID, kill bool) {
	var commands []*exec.Cmd
	for _, id := range ids {
		commands = append(commands, c.command("resume", id.String()))
	}
	before := c.total()
	c.killed += runAll(c.T, commands, func() time.Duration {
		if !kill {
			return 0
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		return 40*time.Millisecond + time.Duration(c.rng.Int64N(int64(c.within)))
	}, "stays so") // it had ended
	if c.total() == before {
		c.within = min(2*c.within, 5*time.Second)
	}
}

// An askEvent is what the log says of one answer, or of one that was lost.
type askEvent struct {
	kind, specialist string
	round            int
	calls            int64
	cost             exact.Money
}

// each looks at sessions and what their logs say of answers.
func (c *modelCrash) each(ids []specialist.SessionID, look func(*session.Session, []askEvent)) {
	c.Helper()
	c.inProcess(func(r *runner.Runner, s *store.SQLite) {
		for _, id := range ids {
			session, err := r.Session(c.ctx, id)
			if err != nil {
				c.Fatal(err)
			}
			look(session, c.events(s, id))
		}
	})
}

func (c *modelCrash) events(s *store.SQLite, id specialist.SessionID) (list []askEvent) {
	round := 0
	held := map[string]exact.Money{}
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
				SpecialistID string
				Round        int
				CostUSD      exact.Money
				Asks         []struct {
					SpecialistID     string
					EstimatedCostUSD exact.Money
					Lost             bool
				}
			}
			if err := json.Unmarshal(e.Data, &v); err != nil {
				c.Fatal(err)
			}
			switch e.Kind {
			case session.KindRoundOpened:
				round = v.Round
			case session.KindExecuted:
				round++
			case session.KindProposed, session.KindAskFailed:
				list = append(list, askEvent{e.Kind, v.SpecialistID, round, 1, v.CostUSD})
			case session.KindAsked:
				for _, a := range v.Asks {
					if a.Lost {
						list = append(list, askEvent{"lost", a.SpecialistID, round, 1, held[a.SpecialistID]})
					}
					held[a.SpecialistID] = a.EstimatedCostUSD
				}
			}
		}
	}
	return list
}

var modelNames = map[string]string{"a": "maker/cheap", "b": "maker/dear"}

// checkRecorded checks that no model was asked again whose answer was recorded.
func (c *modelCrash) checkRecorded(ids []specialist.SessionID) {
	c.Helper()
	c.each(ids, func(s *session.Session, events []askEvent) {
		for _, e := range events {
			if e.kind != session.KindProposed {
				continue
			}
			key := keyOf(modelNames[e.specialist], c.task(s), fmt.Sprintf("s%d", e.round-1))
			c.mu.Lock()
			now := c.requests[key]
			c.mu.Unlock()
			if before, known := c.settled[key]; known && before != now || now == 0 {
				c.Fatalf("%s was asked %d times when the answer was recorded and %d times now", key, before, now)
			}
			c.settled[key] = now
		}
	})
}

func (c *modelCrash) task(s *session.Session) string {
	return taskOf.FindStringSubmatch(string(s.Options().Meta))[1]
}

// checkEnd checks where the sessions ended and what they have spent.
func (c *modelCrash) checkEnd(ids []specialist.SessionID) {
	c.Helper()
	c.each(ids, func(s *session.Session, events []askEvent) {
		var want struct{ calls, answers int64 }
		var cost, billed exact.Money
		for _, e := range events {
			want.calls, cost = want.calls+e.calls, cost.Add(e.cost)
			if e.kind == session.KindProposed {
				want.answers++
				if e.cost != modelCosts[modelNames[e.specialist]] {
					c.Errorf("session %s: an answer of %s cost $%s", s.ID, e.specialist, e.cost)
				}
			}
		}
		requests := int64(0)
		c.mu.Lock()
		for key, n := range c.requests {
			if strings.Contains(key, " "+c.task(s)+" ") {
				model, _, _ := strings.Cut(key, " ")
				requests, billed = requests+int64(n), billed.Add(modelCosts[model]*exact.Money(n))
			}
		}
		c.lost += int(requests - want.answers)
		c.mu.Unlock()
		spent := s.Spent()
		if s.Status != session.Completed || s.Executed != modelLegs || want.answers != 2*modelLegs {
			c.Errorf("session %s is %s after %d transitions and %d answers", s.ID, s.Status, s.Executed, want.answers)
		}
		if spent.Calls != want.calls || spent.Money != cost {
			c.Errorf("session %s has spent $%s in %d calls; its log says $%s in %d", s.ID, spent.Money, spent.Calls, cost, want.calls)
		}
		if spent.Calls < requests || spent.Money < billed {
			c.Errorf("session %s has spent $%s in %d calls; the server saw %d requests, for $%s", s.ID, spent.Money, spent.Calls, requests, billed)
		}
	})
}

func (c *modelCrash) total() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, calls := range c.requests {
		n += calls
	}
	return n
}

func (c *modelCrash) verify() {
	c.Helper()
	if out, err := c.command("store", "verify").CombinedOutput(); err != nil {
		c.Fatalf("store verify: %v\n%s", err, out)
	}
}
