package temporal_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/strategies"
	"github.com/dialai/dialai/temporal"
)

// secretWord is what no payload of Temporal may hold.
const secretWord = "amethyst"

// A cast answers for everybody behind an address, and notes under which keys it was asked.
type cast struct {
	strategies.Registry
	mu   sync.Mutex
	keys []string
	says func(ctx context.Context, q specialist.Question) (string, error)
}

func (c *cast) Proposer(_ *machine.Machine, s *machine.Specialist, _ specialist.Context) (specialist.Proposer, error) {
	if s.StrategyWebhookURL == "" {
		return nil, nil
	}
	return specialist.ProposerFunc(func(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
		c.mu.Lock()
		c.keys = append(c.keys, q.Self+" "+q.Ask.ID)
		c.mu.Unlock()
		said, err := c.says(ctx, q)
		return specialist.Answer{TransitionName: said, Reasoning: secretWord}, err
	}), nil
}

// askedOnce fails the test if somebody was asked twice under one key.
func (c *cast) askedOnce(t *testing.T, want int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	keys := slices.Clone(c.keys)
	slices.Sort(keys)
	if got := len(slices.Compact(keys)); got != len(c.keys) || got != want {
		t.Errorf("%d were asked, under %d keys, want %d: %q", len(c.keys), got, want, c.keys)
	}
}

func web(id, timeout string) string {
	return fmt.Sprintf(`{"role":"proposer","specialistId":%q,"strategyWebhookUrl":"https://x.example/","webhookTokenName":"A_WEBHOOK_TOKEN","timeout":%q}`, id, timeout)
}

const (
	human = `{"role":"proposer","specialistId":"carol","isHuman":true}`
	first = `{"role":"arbiter","specialistId":"first","strategyFnName":"firstProposal"}`
	half  = `{"role":"arbiter","specialistId":"arb","strategyFnName":"alignmentMargin","threshold":0.5}`
)

func machineOf(t testing.TB, open string, who ...string) *machine.Machine {
	t.Helper()
	m, err := machine.Parse("m.json", []byte(`{"machineName":"m","initialState":"open","goalState":"done","consensusThreshold":0,"states":{
		"open":{"prompt":"`+secretWord+`?","transitions":{"finish":"done","again":"open"}`+open+`},"done":{}},"specialists":[`+strings.Join(who, ",")+`]}`), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A world is a workflow in Temporal's test environment, on a store in memory.
type world struct {
	*testing.T
	env   *testsuite.TestWorkflowEnvironment
	cast  *cast
	r     *runner.Runner
	s     *session.Session
	mu    sync.Mutex
	begun map[string]int // activities, by name
	most  int            // bytes of a payload
}

func newWorld(t *testing.T, m *machine.Machine, says func(context.Context, specialist.Question) (string, error)) *world {
	t.Helper()
	w := &world{T: t, cast: &cast{says: says}, begun: map[string]int{}}
	w.open(store.NewMemory())
	s, err := w.r.Start(t.Context(), m, runner.StartOptions{Driver: session.DriverNone})
	w.ok(err)
	w.s = s
	return w
}

// open makes a Runner, and an environment whose clock it goes by.
func (w *world) open(s session.Store) {
	w.Helper()
	env := (&testsuite.WorkflowTestSuite{}).NewTestWorkflowEnvironment()
	env.SetTestTimeout(time.Minute)
	r, err := runner.New(runner.Config{Store: s, Resolver: w.cast, Now: env.Now})
	w.ok(err)
	w.Cleanup(func() { w.ok(r.Close()) })
	w.env, w.r = env, r
	temporal.Register(env, r)
	env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, args converter.EncodedValues) {
		w.mu.Lock()
		w.begun[info.ActivityType.Name]++
		w.mu.Unlock()
		var in, more json.RawMessage
		if args.Get(&in, &more) != nil {
			_ = args.Get(&in)
		}
		w.bare(append(in, more...))
	})
	env.SetOnActivityCompletedListener(func(_ *activity.Info, result converter.EncodedValue, _ error) {
		var out json.RawMessage
		if result != nil && result.HasValue() && result.Get(&out) == nil {
			w.bare(out)
		}
	})
}

// bare fails the test if a payload holds more than names and numbers.
func (w *world) bare(payload []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.most = max(w.most, len(payload))
	if strings.Contains(string(payload), secretWord) || len(payload) > 2048 {
		w.Errorf("a payload holds contents, or is too long: %s", payload)
	}
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) now() *session.Session {
	w.Helper()
	s, err := w.r.Session(w.Context(), w.s.ID)
	w.ok(err)
	return s
}

// run runs the workflow to its end.
func (w *world) run(in ...temporal.Input) (result temporal.Result, err error) {
	w.Helper()
	w.env.ExecuteWorkflow(temporal.WorkflowName, append(in, temporal.Input{SessionID: w.s.ID.String()})[0])
	if !w.env.IsWorkflowCompleted() {
		w.Fatal("the workflow has not ended")
	}
	if err := w.env.GetWorkflowError(); err != nil {
		return result, err
	}
	return result, w.env.GetWorkflowResult(&result)
}

// ends runs the workflow to that result.
func (w *world) ends(status, code string) {
	w.Helper()
	if r, err := w.run(); err != nil || r.Status != status || r.Code != code {
		w.Errorf("the workflow ends with %+v, %v", r, err)
	}
}

func says(transition string) func(context.Context, specialist.Question) (string, error) {
	return func(context.Context, specialist.Question) (string, error) { return transition, nil }
}

// TestLongAsksAreActivities: each long ask is an activity of its own, short ones are sent by advance, each once.
func TestLongAsksAreActivities(t *testing.T) {
	m := machineOf(t, `,"quorum":3`, web("a", "10m"), web("b", "20m"), web("quick", "5s"), first)
	w := newWorld(t, m, says("finish"))
	w.ends("completed", "goal")
	w.cast.askedOnce(t, 3)
	if w.begun["ask"] != 2 || w.begun["advance"] > 3 || w.now().Executed != 1 {
		t.Errorf("activities are %v, executed %d", w.begun, w.now().Executed)
	}
	t.Logf("the longest payload has %d bytes", w.most)
}

// TestLocalRoundsAreOneActivity: whatever needs no wait is one activity, however many rounds that are.
func TestLocalRoundsAreOneActivity(t *testing.T) {
	m := machineOf(t, "", `{"role":"proposer","specialistId":"f","strategyFnName":"lastAvailable"}`, first)
	w := newWorld(t, m, says("again"))
	if r, err := w.run(); err != nil || r.Status != "completed" && r.Status != "stopped" {
		t.Errorf("the workflow ends with %+v, %v", r, err)
	}
	if looks := int(24 * time.Hour / (5 * time.Minute)); w.begun["advance"] > 2+looks || w.now().Executed <= 2*int32(looks) { // it has stopped, and may be resumed for a day
		t.Errorf("%v for %d transitions", w.begun, w.now().Executed)
	}
}

// TestSettledRoundsCancelAsks: what is not needed any more is cancelled, and the workflow goes on.
func TestSettledRoundsCancelAsks(t *testing.T) {
	m := machineOf(t, "", web("quick", "10m"), web("slow", "10m"), first)
	w := newWorld(t, m, func(ctx context.Context, q specialist.Question) (string, error) {
		if q.Self == "slow" {
			<-ctx.Done()
			return "", ctx.Err()
		}
		return "finish", nil
	})
	w.ends("completed", "goal")
	if w.now().Last().SpecialistID != "quick" {
		t.Errorf("executed is what %s said", w.now().Last().SpecialistID)
	}
}

// TestAsksAreTriedAgain: a worker that fails in an ask is nothing to the session; what a specialist cannot answer is recorded.
func TestAsksAreTriedAgain(t *testing.T) {
	m := machineOf(t, "", web("a", "10m"), human, first)
	w := newWorld(t, m, func(context.Context, specialist.Question) (string, error) { return "", errors.New("down") })
	w.env.RegisterDelayedCallback(func() {
		if s := w.now(); s.Status != session.NeedsHuman {
			t.Errorf("the session is %s", s.Status)
		}
		w.rule(temporal.Ruling{RoundID: w.s.Key().ID(), SpecialistID: "carol", TransitionName: "finish"}, "")
	}, time.Minute)
	w.ends("completed", "goal")
	w.cast.askedOnce(t, 1)
}

type callback struct {
	t    *testing.T
	want string // of the refusal; "" for none
	told *temporal.Ruled
	done *temporal.Done
}

func (c callback) Accept() {
	if c.want != "" {
		c.t.Errorf("the update was accepted, want %q", c.want)
	}
}

func (c callback) Reject(err error) {
	if c.want == "" || !strings.Contains(err.Error(), c.want) {
		c.t.Errorf("the update is refused: %v, want %q", err, c.want)
	}
}

func (c callback) Complete(v any, err error) {
	if err != nil {
		c.t.Errorf("the update: %v", err)
	}
	if r, ok := v.(temporal.Ruled); ok && c.told != nil {
		*c.told = r
	}
	if r, ok := v.(temporal.Done); ok && c.done != nil {
		*c.done = r
	}
}

var carol = temporal.Actor{Subject: "key:carol", Method: "key"}

// seen has a ruling be of the question as it is, unless it says otherwise.
func seen(t *testing.T, r *runner.Runner, of *session.Session, what temporal.Ruling) temporal.Ruling {
	t.Helper()
	now, err := r.Session(t.Context(), of.ID)
	if err != nil {
		t.Fatal(err)
	}
	q, err := r.Question(t.Context(), now, machine.SpecialistID(what.SpecialistID))
	if err != nil {
		t.Fatal(err)
	}
	what.QuestionDigest, what.Actor = cmp.Or(what.QuestionDigest, q.Digest), carol
	return what
}

func (w *world) rule(r temporal.Ruling, refused string) *temporal.Ruled {
	w.Helper()
	told := &temporal.Ruled{}
	r = seen(w.T, w.r, w.s, r)
	w.env.UpdateWorkflow(temporal.DecideUpdate, r.SpecialistID+r.TransitionName+r.RoundID+r.QuestionDigest, callback{w.T, refused, told, nil}, r)
	return told
}

// update sends another update than a ruling.
func (w *world) update(name string, in any, refused string) *temporal.Done {
	told := &temporal.Done{}
	w.env.UpdateWorkflow(name, fmt.Sprint(name, in, refused), callback{w.T, refused, nil, told}, in)
	return told
}

// TestUpdates: a ruling through the workflow is refused where it cannot be right, and done where it can be; then
// the workflow goes on.
func TestUpdates(t *testing.T) {
	w := newWorld(t, machineOf(t, "", human, half), nil)
	round := w.s.Key().ID()
	var wrong, stale, right *temporal.Ruled
	w.env.RegisterDelayedCallback(func() {
		w.rule(temporal.Ruling{RoundID: round, SpecialistID: "carol"}, "names its round")
		w.rule(temporal.Ruling{RoundID: round, SpecialistID: strings.Repeat("c", 300), TransitionName: "finish"}, "names its round")
		w.rule(temporal.Ruling{RoundID: "another", SpecialistID: "carol", TransitionName: "finish"}, "the open round is "+round)
		w.rule(temporal.Ruling{RoundID: round, SpecialistID: runner.Operator, TransitionName: "finish"}, "only humans rule whom the machine declares")
		w.env.UpdateWorkflow(temporal.DecideUpdate, "unseen", callback{w.T, "the digest of its question", nil, nil}, temporal.Ruling{RoundID: round, SpecialistID: "carol", TransitionName: "finish", Actor: carol})
		stale = w.rule(temporal.Ruling{RoundID: round, SpecialistID: "carol", TransitionName: "finish", QuestionDigest: strings.Repeat("0", session.DigestPrefix)}, "")
		wrong = w.rule(temporal.Ruling{RoundID: round, SpecialistID: "mallory", TransitionName: "finish"}, "")
	}, time.Minute)
	w.env.RegisterDelayedCallback(func() {
		right = w.rule(temporal.Ruling{RoundID: round, SpecialistID: "carol", TransitionName: "finish"}, "")
	}, 2*time.Minute)
	w.ends("completed", "goal")
	if wrong.Executed || wrong.Code == "" || !right.Executed || stale.Executed || stale.Code != runner.CodeStaleQuestion {
		t.Errorf("the rulings came to %+v, %+v and %+v", stale, wrong, right)
	}
	if by := w.now().Last().Actor; by == nil || by.Subject != carol.Subject {
		t.Errorf("it was executed by %+v", by)
	}
}

// TestOtherUpdates: a session is reviewed, resumed and proposed to through its workflow, which goes on each time.
func TestOtherUpdates(t *testing.T) {
	var asked atomic.Int32
	w := newWorld(t, machineOf(t, "", web("a", "5s"), human, first), func(context.Context, specialist.Question) (string, error) {
		if asked.Add(1) == 1 {
			return "again", nil
		}
		return "", errors.New("down")
	})
	closed := w.s.Key().ID()
	want := func(what string, got *temporal.Done, done bool, code string) {
		t.Helper()
		if got.Done != done || got.Code != code {
			t.Errorf("%s came to %+v", what, got)
		}
	}
	review := temporal.Reviewing{RoundID: closed, SpecialistID: "carol", TransitionName: "finish", Actor: carol}
	var said []*temporal.Done
	w.env.RegisterDelayedCallback(func() {
		w.update(temporal.ReviewUpdate, temporal.Reviewing{RoundID: closed, SpecialistID: "carol", TransitionName: "finish"}, "a review names its round")
		w.update(temporal.ReviewUpdate, temporal.Reviewing{RoundID: w.now().Key().ID(), SpecialistID: "carol", TransitionName: "finish", Actor: carol}, "the round is open")
		said = append(said, w.update(temporal.ReviewUpdate, review, ""))
	}, time.Minute)
	w.env.RegisterDelayedCallback(func() {
		review.TransitionName = "again"
		said = append(said, w.update(temporal.ReviewUpdate, review, ""))
		_, err := w.r.Stop(t.Context(), w.s.ID, runner.Stopping{Actor: session.Actor{Subject: "key:test", Method: "key"}, Note: "enough"})
		w.ok(err)
		w.env.SignalWorkflow(temporal.ChangedSignal, w.now().Sequence)
	}, 2*time.Minute)
	w.env.RegisterDelayedCallback(func() {
		p := temporal.Proposal(seen(t, w.r, w.s, temporal.Ruling{RoundID: w.now().Key().ID(), SpecialistID: "carol", TransitionName: "finish"}))
		w.update(temporal.ProposeUpdate, p, "resume it first")
		w.update(temporal.ResumeUpdate, temporal.Resuming{RoundID: "another", Actor: carol}, "the open round is")
		said = append(said, w.update(temporal.ResumeUpdate, temporal.Resuming{RoundID: w.now().Key().ID(), Actor: carol}, ""))
	}, 3*time.Minute)
	w.env.RegisterDelayedCallback(func() {
		p := temporal.Proposal(seen(t, w.r, w.s, temporal.Ruling{RoundID: w.now().Key().ID(), SpecialistID: "carol", TransitionName: "finish"}))
		said = append(said, w.update(temporal.ProposeUpdate, p, ""))
	}, 4*time.Minute)
	w.ends("completed", "goal")
	want("the review", said[0], true, "")
	want("the second review", said[1], false, "reviewed")
	want("resuming", said[2], true, "")
	want("proposing", said[3], true, "")
	by := map[string]bool{}
	for rec, err := range w.r.Store().Records(t.Context(), w.s.ID, 0) {
		w.ok(err)
		events, err := session.DecodeRaw(rec.Events)
		w.ok(err)
		for _, e := range events {
			if strings.Contains(string(e.Data), carol.Subject) {
				by[e.Kind] = true
			}
		}
	}
	if !by[session.KindReviewed] || !by[session.KindResumed] || !by[session.KindProposed] {
		t.Errorf("carol is named in %v", by)
	}
}

// deaf is a store whose first commit that executes something happens, and says that it does not.
type deaf struct {
	*store.Memory
	said bool
}

func (d *deaf) Commit(ctx context.Context, c *session.Change) error {
	err := d.Memory.Commit(ctx, c)
	if err == nil && !d.said && c.After.Executed > 0 {
		d.said = true
		return errors.New("the connection is gone")
	}
	return err
}

// TestRulingUnheard: a ruling whose worker was lost once it was executed is said to be executed.
func TestRulingUnheard(t *testing.T) {
	w := &world{T: t, cast: &cast{}, begun: map[string]int{}}
	lost := &deaf{Memory: store.NewMemory()}
	w.open(lost)
	s, err := w.r.Start(t.Context(), machineOf(t, "", human, half), runner.StartOptions{Driver: session.DriverNone})
	w.ok(err)
	w.s = s
	var told *temporal.Ruled
	w.env.RegisterDelayedCallback(func() {
		told = w.rule(temporal.Ruling{RoundID: s.Key().ID(), SpecialistID: "carol", TransitionName: "finish"}, "")
	}, time.Minute)
	w.ends("completed", "goal")
	if !lost.said || !told.Executed || w.begun["decide"] < 2 {
		t.Errorf("after %v the ruling came to %+v", w.begun, told)
	}
}

// TestRulingElsewhere: a ruling that Temporal knows nothing of is found by a signal, or by the next look.
func TestRulingElsewhere(t *testing.T) {
	for _, signal := range []bool{true, false} {
		t.Run(fmt.Sprintf("signal %t", signal), func(t *testing.T) {
			w := newWorld(t, machineOf(t, "", human, half), nil)
			began := w.env.Now()
			w.env.RegisterDelayedCallback(func() {
				_, err := w.r.Decide(t.Context(), runner.Ruling{SessionID: w.s.ID, RoundID: w.s.Key().ID(), SpecialistID: "carol", TransitionName: "finish"})
				w.ok(err)
				if signal {
					w.env.SignalWorkflow(temporal.ChangedSignal, w.now().Sequence)
				}
			}, time.Minute)
			w.env.RegisterDelayedCallback(func() {
				if w.env.IsWorkflowCompleted() != signal {
					t.Errorf("after two minutes it has ended: %t", !signal)
				}
			}, 2*time.Minute)
			w.ends("completed", "goal")
			if took := w.env.Now().Sub(began); !signal && took < 5*time.Minute {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// TestTimers: the workflow wakes when the state is due.
func TestTimers(t *testing.T) {
	w := newWorld(t, machineOf(t, `,"due":{"in":"36h","then":"finish"}`, human, half), nil)
	began := w.env.Now()
	w.ends("completed", "goal")
	if took := w.env.Now().Sub(began); took < 36*time.Hour-time.Second || took > 36*time.Hour+time.Minute {
		t.Errorf("it took %s", took)
	}
}

// TestAsksWake: a timer is started only where it fires before an ask has had its time, whose end wakes the workflow as well.
func TestAsksWake(t *testing.T) {
	for _, c := range []struct {
		name   string
		state  string        // what its state says beside
		takes  time.Duration // of the ask that ends first
		timers int           // once both are sent
		found  time.Duration // what is ruled elsewhere after ten minutes, or is due, at the latest
	}{
		{"an ask ends before a look", "", 2 * time.Minute, 0, 16 * time.Minute},
		{"a look comes before an ask ends", "", 8 * time.Minute, 1, 16 * time.Minute},
		{"the state is due before an ask ends", `,"due":{"in":"30s","then":"finish"}`, 2 * time.Minute, 1, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, machineOf(t, c.state+`,"quorum":2,"solicit":{"roundTimeout":"2h"}`, web("a", c.takes.String()), web("b", "60m"), human, half), nil)
			w.env.OnActivity(temporal.AskActivity, mock.Anything, mock.Anything, mock.MatchedBy(func(a temporal.Ask) bool { return a.SpecialistID == "a" })).After(c.takes).Return(temporal.Came{Waits: true}, nil)
			w.env.OnActivity(temporal.AskActivity, mock.Anything, mock.Anything, mock.Anything).After(time.Hour).Return(temporal.Came{}, nil)
			timers := 0
			w.env.SetOnTimerScheduledListener(func(string, time.Duration) { timers++ })
			began := w.env.Now()
			w.env.RegisterDelayedCallback(func() {
				if timers != c.timers {
					t.Errorf("%d timers were started, want %d", timers, c.timers)
				}
			}, 10*time.Second)
			w.env.RegisterDelayedCallback(func() {
				_, err := w.r.Decide(t.Context(), runner.Ruling{SessionID: w.s.ID, RoundID: w.s.Key().ID(), SpecialistID: "carol", TransitionName: "finish"})
				w.ok(err)
			}, 10*time.Minute)
			w.ends("completed", "goal")
			if took := w.env.Now().Sub(began); took > c.found {
				t.Errorf("it took %s, want %s", took, c.found)
			}
		})
	}
}

// TestStatus: the query says where the session stands.
func TestStatus(t *testing.T) {
	w := newWorld(t, machineOf(t, "", human, half), nil)
	var at temporal.Status
	w.env.RegisterDelayedCallback(func() {
		v, err := w.env.QueryWorkflow(temporal.StatusQuery)
		w.ok(err)
		w.ok(v.Get(&at))
		w.env.CancelWorkflow()
	}, time.Minute)
	if _, err := w.run(); err == nil {
		t.Error("a workflow that was cancelled has no error")
	}
	if at.Status != "needs_human" || at.State != "open" || at.RoundID != w.s.Key().ID() || at.Sequence != w.now().Sequence || w.now().Status != session.NeedsHuman {
		t.Errorf("the status is %+v, the session %s", at, w.now().Status)
	}
}

// TestContinueAsNew: a long history begins anew, and only the id of the session goes along.
func TestContinueAsNew(t *testing.T) {
	w := newWorld(t, machineOf(t, "", human, half), nil)
	for _, c := range []struct {
		events, bytes int
		suggested     bool
	}{{temporal.DefaultMostEvents, 0, false}, {10, 4 << 20, false}, {10, 10000, true}} {
		w.env.SetCurrentHistoryLength(c.events)
		w.env.SetCurrentHistorySize(c.bytes)
		w.env.SetContinueAsNewSuggested(c.suggested)
		w.env.RegisterDelayedCallback(w.env.CancelWorkflow, time.Hour) // it would wait for ever
		_, err := w.run()
		if again, ok := errors.AsType[*workflow.ContinueAsNewError](err); !ok || again.WorkflowType.Name != temporal.WorkflowName {
			t.Fatalf("after %+v the workflow ends with %v", c, err)
		}
		w.open(w.r.Store())
	}
	w.env.SetCurrentHistoryLength(temporal.DefaultMostEvents - 1)
	w.env.SetCurrentHistorySize(4<<20 - 1)
	w.env.RegisterDelayedCallback(func() {
		w.rule(temporal.Ruling{RoundID: w.s.Key().ID(), SpecialistID: "carol", TransitionName: "finish"}, "")
	}, time.Minute)
	w.ends("completed", "goal")
}

// TestStoppedSessionsWait: one that has stopped may be resumed for a day, also where nobody tells the workflow, and then
// the workflow ends.
func TestStoppedSessionsWait(t *testing.T) {
	for _, resumed := range []bool{true, false} {
		t.Run(fmt.Sprintf("resumed %t", resumed), func(t *testing.T) {
			w := newWorld(t, machineOf(t, "", human, half), nil)
			_, err := w.r.Stop(t.Context(), w.s.ID, runner.Stopping{Actor: session.Actor{Subject: "key:test", Method: "key"}, Note: "enough"})
			w.ok(err)
			began := w.env.Now()
			w.env.RegisterDelayedCallback(func() {
				if !resumed {
					return
				}
				_, err := w.r.Resume(t.Context(), w.s.ID, runner.ResumeOptions{})
				w.ok(err)
			}, time.Hour)
			w.env.RegisterDelayedCallback(func() {
				if resumed { // at a terminal
					_, err := w.r.Decide(t.Context(), runner.Ruling{SessionID: w.s.ID, RoundID: w.now().Key().ID(), SpecialistID: "carol", TransitionName: "finish"})
					w.ok(err)
				}
			}, 23*time.Hour+59*time.Minute)
			if resumed {
				w.ends("completed", "goal")
				return
			}
			w.ends("stopped", session.CodeCancelled)
			if took := w.env.Now().Sub(began); took < 24*time.Hour {
				t.Errorf("it has waited %s", took)
			}
		})
	}
}
