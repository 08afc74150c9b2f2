package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/strategies"
	"github.com/dialai/dialai/verdict"
)

// seed is that of every random choice in these tests.
const seed = 20260102

// A bench is a runner over a store in memory. When the test ends, every log is
// folded again, and the session after each record is compared with the one that
// was live then: what is stored and what was used never differ, in any test.
type bench struct {
	testing.TB
	ctx   context.Context
	store session.Store
	r     *runner.Runner
	cast  *cast

	mu    sync.Mutex
	live  map[liveKey]*session.Session // after each commit
	tick  time.Duration                // of the clock
	clock func() time.Time
}

type liveKey struct {
	id  specialist.SessionID
	seq int64
}

// newBench returns a bench whose runner has the given configuration; what is
// missing is filled in. The clock moves a millisecond each time it is read.
func newBench(t testing.TB, configure ...func(*runner.Config)) *bench {
	t.Helper()
	b := &bench{TB: t, ctx: context.Background(), store: store.NewMemory(), cast: newCast(), live: map[liveKey]*session.Session{}}
	b.clock = func() time.Time {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.tick += time.Millisecond
		return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(b.tick)
	}
	b.r = b.runner(configure...)
	t.Cleanup(b.checkLogs)
	return b
}

// inBubble makes a bench use the clock of a synctest bubble.
func inBubble(c *runner.Config) { c.Now = time.Now }

// runner returns a further runner over the same store, as another process would
// have one.
func (b *bench) runner(configure ...func(*runner.Config)) *runner.Runner {
	b.Helper()
	c := runner.Config{Store: b.store, Resolver: strategies.Resolvers{b.cast.registry(), b.cast}, Now: b.clock}
	for _, f := range configure {
		f(&c)
	}
	b.store = c.Store
	observe := c.Observer
	c.Observer = func(rec session.Change) {
		b.mu.Lock()
		b.live[liveKey{rec.After.ID, rec.After.Sequence}] = rec.After
		b.mu.Unlock()
		if observe != nil {
			observe(rec)
		}
	}
	r, err := runner.New(c)
	b.ok(err)
	b.Cleanup(func() { b.ok(r.Close()) })
	return r
}

// asking lets a runner ask whom a resolver finds, before all others.
func asking(whom strategies.Resolver) func(*runner.Config) {
	return func(c *runner.Config) { c.Resolver = strategies.Resolvers{whom, c.Resolver} }
}

func (b *bench) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// refused fails the test unless err has exactly that text and is one of kind.
func (b *bench) refused(err error, kind error, text string) {
	b.Helper()
	if err == nil || err.Error() != text {
		b.Errorf("the error is %q, want %q", fmt.Sprint(err), text)
	}
	if kind != nil && !errors.Is(err, kind) {
		b.Errorf("the error %q is not %q", err, kind)
	}
}

// A def is a machine in short.
type def struct {
	name   string   // "desk" if empty
	states string   // members of states; those of the desk if empty
	top    string   // further members of the machine, such as `"solicit":"eager"`
	who    []string // its specialists
}

// deskStates is a state with a way to the goal, to itself and aside.
const deskStates = `"open":{"prompt":"Which way?","transitions":{"finish":"done","again":"open","park":"parked"}},
	"parked":{"transitions":{"back":"open"}},"done":{}`

func (d def) text() string {
	if d.name == "" {
		d.name = "desk"
	}
	if d.states == "" {
		d.states = deskStates
	}
	if d.top != "" {
		d.top = "," + d.top
	}
	return `{"machineName":"` + d.name + `","initialState":"open","goalState":"done","states":{` + d.states +
		`},"specialists":[` + strings.Join(d.who, ",") + `]` + d.top + `}`
}

func parse(t testing.TB, text string) *machine.Machine {
	t.Helper()
	m, err := machine.Parse("machine.json", []byte(text), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (b *bench) machine(d def) *machine.Machine { b.Helper(); return parse(b, d.text()) }

// desk returns the machine of the desk with the given specialists.
func (b *bench) desk(who ...string) *machine.Machine { b.Helper(); return b.machine(def{who: who}) }

// Specialists in short. rest is further members, such as `"timeout":"1s"`.

func entry(role, id, mode string, rest ...string) string {
	members := append([]string{`"role":"` + role + `"`, `"specialistId":"` + id + `"`}, mode)
	return "{" + strings.Join(slices.DeleteFunc(append(members, rest...), func(s string) bool { return s == "" }), ",") + "}"
}

func fn(id string, rest ...string) string {
	return entry("proposer", id, `"strategyFn":"fn"`, rest...)
}

func web(id string, rest ...string) string {
	return entry("proposer", id, `"strategyWebhookUrl":"https://hooks.example/`+id+`","webhookTokenName":"A_WEBHOOK_TOKEN"`, rest...)
}

func first(id string, rest ...string) string {
	return entry("proposer", id, `"strategyFnName":"firstAvailable"`, rest...)
}

func last(id string, rest ...string) string {
	return entry("proposer", id, `"strategyFnName":"lastAvailable"`, rest...)
}

func human(id string, rest ...string) string {
	return entry("proposer", id, `"isHuman":true`, rest...)
}

func arb(strategy string, rest ...string) string {
	return entry("arbiter", "arb", `"strategyFnName":"`+strategy+`"`, rest...)
}

func arbFn(name string, rest ...string) string {
	return entry("arbiter", "arb", `"strategyFn":"`+name+`"`, rest...)
}

func arbWeb(id string) string {
	return entry("arbiter", id, `"strategyWebhookUrl":"https://hooks.example/`+id+`","webhookTokenName":"A_WEBHOOK_TOKEN"`)
}

func threshold(t string) string { return `"threshold":` + t }

// half is the usual arbiter.
var half = arb("alignmentMargin", threshold("0.5"))

func (b *bench) start(m *machine.Machine, o ...runner.StartOptions) *session.Session {
	b.Helper()
	s, err := b.r.Start(b.ctx, m, append(o, runner.StartOptions{})[0])
	b.ok(err)
	return s
}

func (b *bench) now(s *session.Session) *session.Session {
	b.Helper()
	now, err := b.r.Session(b.ctx, s.ID)
	b.ok(err)
	return now
}

func (b *bench) step(s *session.Session) runner.Tick {
	b.Helper()
	tick, err := b.r.Step(b.ctx, s.ID)
	b.ok(err)
	return tick
}

// stepTo steps once and fails the test unless that came to the given status.
func (b *bench) stepTo(s *session.Session, want runner.TickStatus) runner.Tick {
	b.Helper()
	tick := b.step(s)
	if tick.Status != want {
		b.Fatalf("the step came to %s (%s: %s), want %s", tick.Status, tick.Code, tick.Reasoning(), want)
	}
	return tick
}

func (b *bench) submit(in runner.Submission) *specialist.Proposal {
	b.Helper()
	p, _, err := b.r.Propose(b.ctx, in)
	b.ok(err)
	return p
}

func (b *bench) propose(s *session.Session, who, transition string) *specialist.Proposal {
	b.Helper()
	return b.submit(runner.Submission{SessionID: s.ID, RoundID: b.now(s).Key().ID(), SpecialistID: machine.SpecialistID(who), TransitionName: transition, Reasoning: who + " says " + transition})
}

// force has the human called "human" decide.
func (b *bench) force(s *session.Session, transition string) runner.Arbitration {
	b.Helper()
	a := b.rule(runner.Ruling{SessionID: s.ID, RoundID: b.now(s).Key().ID(), SpecialistID: "human", TransitionName: transition, Reasoning: "because"})
	if !a.Executed {
		b.Fatalf("the ruling %q was refused: %s", transition, a.GuardReason)
	}
	return a
}

func (b *bench) rule(in runner.Ruling) runner.Arbitration {
	b.Helper()
	a, err := b.r.Decide(b.ctx, in)
	b.ok(err)
	return a
}

// train gives a specialist k matches in n comparisons with the decisions of
// "human", in a session of its own that stays in state open.
func (b *bench) train(m *machine.Machine, who string, k, n int) {
	b.Helper()
	s := b.start(m)
	for i := range n {
		said := "again"
		if i >= k {
			said = "finish"
		}
		b.propose(s, who, said)
		b.force(s, "again")
	}
}

// tickAll is Tick with all its results.
func (b *bench) tickAll() (results []runner.TickResult, err error) {
	for r, err := range b.r.Tick(b.ctx) {
		if err != nil {
			return results, err
		}
		results = append(results, r)
	}
	return results, nil
}

// raw returns the stored events of a session.
func (b *bench) raw(s *session.Session) []session.Raw {
	b.Helper()
	var all []session.Raw
	for rec, err := range b.store.Records(b.ctx, s.ID, 0) {
		b.ok(err)
		raw, err := session.DecodeRaw(rec.Events)
		b.ok(err)
		all = append(all, raw...)
	}
	return all
}

// log returns a session's events from the first after seq, in short: the kind
// and what is most worth knowing of each.
func (b *bench) log(s *session.Session, seq int64) string {
	b.Helper()
	var lines []string
	for _, r := range b.raw(s) {
		if r.Seq > seq {
			lines = append(lines, inShort(b, r))
		}
	}
	return strings.Join(lines, "\n")
}

func inShort(t testing.TB, r session.Raw) string {
	var d map[string]any
	if err := json.Unmarshal(r.Data, &d); err != nil {
		t.Fatal(err)
	}
	line := r.Kind
	if asks, ok := d["asks"].([]any); ok {
		for _, a := range asks {
			line += fmt.Sprint(" ", a.(map[string]any)["specialistId"], "#", a.(map[string]any)["ask"])
		}
	}
	for _, name := range []string{"state", "round", "attempt", "specialistId", "arbiterId", "transitionName", "status", "code", "costUSD", "estimated"} {
		if v, ok := d[name]; ok {
			line += fmt.Sprint(" ", v)
		}
	}
	return line
}

// wantLog fails the test unless the events after seq are these.
func (b *bench) wantLog(s *session.Session, seq int64, want ...string) {
	b.Helper()
	if got := b.log(s, seq); got != strings.Join(want, "\n") {
		b.Errorf("the log is\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// count returns how many events of a kind a session's log holds.
func (b *bench) count(s *session.Session, kind string) (n int) {
	b.Helper()
	for _, r := range b.raw(s) {
		if r.Kind == kind {
			n++
		}
	}
	return n
}

// forget drops what was live, so that a test of very many records is checked by
// its last one only.
func (b *bench) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.live)
}

// checkLogs folds every log and compares.
func (b *bench) checkLogs() {
	if b.Failed() {
		return
	}
	list, err := b.store.List(b.ctx, session.ListQuery{})
	b.ok(err)
	for _, sum := range list {
		b.checkLog(sum.SessionID)
	}
	b.collect()
}

func (b *bench) checkLog(id specialist.SessionID) {
	b.Helper()
	s, err := b.store.Load(b.ctx, session.NewPrograms(), id)
	b.ok(err)
	f := folderOf(b, s.Machine())
	f.Definition = func(digest string) ([]byte, error) { return s.Definition(digest), nil } // of before it was moved
	var charged, inherited spend.Book
	f.Charged = func(_ specialist.Time, c session.Charge) { charged = charged.Plus(c.Book) }
	f.Applied = func(seq int64, _ session.Event, before, _ spend.Book) {
		if seq == 1 {
			inherited = before
		}
	}
	var alike runner.Alike
	var prev session.Hash
	for rec, err := range b.store.Records(b.ctx, id, 0) {
		b.ok(err)
		if rec.Prev != prev || rec.Hash != session.Chain(prev, id.String(), rec.Events) {
			b.Errorf("the record at %d does not chain", rec.First)
		}
		prev = rec.Hash
		before := f.Session().Key()
		events, err := f.Add(rec.Events)
		if err != nil {
			b.Errorf("folding %s: %v", rec.Events, err)
			return
		}
		if again := session.AppendEvents(nil, keyBefore(before, id), rec.First, events); string(again) != string(rec.Events) {
			b.Errorf("read and written again, a record is\n%s\nit was\n%s", again, rec.Events)
		}
		b.mu.Lock()
		live := b.live[liveKey{id, rec.First + int64(len(events)) - 1}]
		b.mu.Unlock()
		if live == nil {
			continue
		}
		if d := alike.Difference(live, f.Session()); d != "" {
			b.Errorf("after the record at %d, %s", rec.First, d)
			return
		}
	}
	compare(b, s, f.Session())
	if want := s.Spent().Minus(inherited); charged != want {
		b.Errorf("session %s is charged %+v, and has spent %+v", id, charged, want)
	}
}

func keyBefore(k specialist.RoundKey, id specialist.SessionID) specialist.RoundKey {
	k.Session = id
	return k
}

func folderOf(t testing.TB, m *machine.Machine) *session.Folder {
	t.Helper()
	programs := session.NewPrograms()
	if _, err := programs.Of(m); err != nil {
		t.Fatal(err)
	}
	return &session.Folder{Programs: programs}
}

// compare fails the test unless a session that was live and one that was folded
// are the same to everybody who can look at them.
func compare(t testing.TB, live, folded *session.Session) {
	t.Helper()
	if a, b := view(t, live), view(t, folded); a != b {
		t.Errorf("the session was\n%s\nfolded it is\n%s", a, b)
	}
	if d := new(runner.Alike).Difference(live, folded); d != "" {
		t.Error(d)
	}
	if a, b := live.Accounts(), folded.Accounts(); a != b {
		t.Errorf("the accounts were\n%s\nfolded they are\n%s", a, b)
	}
}

func view(t testing.TB, s *session.Session) string {
	v, err := json.Marshal(s.View())
	if err != nil {
		t.Fatal(err)
	}
	return string(v)
}

// reject is a custom guard that gives one verdict on transitions of that name.
func reject(transition string, status verdict.Status, code, message string) guard.Func {
	return func(_ context.Context, s verdict.Step) verdict.Verdict {
		if s.Transition != transition {
			return verdict.Verdict{}
		}
		return verdict.Reject(status, code, message)
	}
}
