package runner_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// recordOf is the key of an alignment record of the machine.
func recordOf(id string) trust.Key { return trust.Key{SpecialistID: id} }

func proposer(id string) machine.Specialist {
	return machine.Specialist{Role: machine.Proposer, SpecialistID: id, StrategyFn: "fn"}
}

func (b *bench) register(s machine.Specialist) session.Registered {
	b.Helper()
	stored, err := b.r.Register(b.ctx, "desk", s, nil)
	b.ok(err)
	return stored
}

// TestRegisterOrder holds registration to its order: id taken, mode, unknown
// name. The texts of the mode table have a test of their own beside it.
func TestRegisterOrder(t *testing.T) {
	b := newBench(t)
	b.register(proposer("taken"))
	with := func(change func(*machine.Specialist)) machine.Specialist {
		s := machine.Specialist{Role: machine.Proposer, SpecialistID: "new"}
		change(&s)
		return s
	}
	const none = "No execution mode specified. Specialist must specify one of: strategyFn, strategyFnName, strategyWebhookUrl, contextFn + modelId, or contextWebhookUrl + modelId."
	half, two := machine.Threshold{Given: 0.5, Weight: 500_000_000}, machine.Threshold{Given: 2, Weight: 2_000_000_000}
	for _, c := range []struct {
		s          machine.Specialist
		kind       error
		code, text string
	}{
		{with(func(s *machine.Specialist) { s.SpecialistID = "taken" }), session.ErrExists, "specialist_exists", "Specialist already exists: taken"},
		{with(func(s *machine.Specialist) { s.SpecialistID, s.StrategyFnName = "taken", "nope" }), session.ErrExists, "specialist_exists", "Specialist already exists: taken"},
		{with(func(*machine.Specialist) {}), machine.ErrNoMode, "no_execution_mode", none},
		{with(func(s *machine.Specialist) { s.StrategyFn, s.StrategyFnName = "fn", "nope" }), runner.ErrIllegal, "bad_mode",
			"Provide either strategyFn (custom function) or strategyFnName (built-in strategy), not both."},
		{with(func(s *machine.Specialist) { s.StrategyFnName = "nope" }), runner.ErrUnknownStrategy, "unknown_strategy", "Unknown proposer strategy: nope"},
		{with(func(s *machine.Specialist) { s.Role, s.StrategyFnName = machine.Arbiter, "firstAvailable" }), runner.ErrUnknownStrategy, "unknown_strategy", "Unknown arbiter strategy: firstAvailable"},
		{with(func(s *machine.Specialist) { s.StrategyFn = "nope" }), runner.ErrUnknownStrategy, "missing_function", `strategyFn "nope" of specialist "new" is not in the Registry`},
		{with(func(s *machine.Specialist) { s.StrategyFn, s.Disabled = "nope", new(bool); *s.Disabled = true }), runner.ErrUnknownStrategy, "missing_function", `strategyFn "nope" of specialist "new" is not in the Registry`},
		{with(func(s *machine.Specialist) { s.StrategyFn, s.Threshold = "fn", &two }), runner.ErrIllegal, "bad-threshold", "threshold is 2, not a number from 0 to 1"},
		{with(func(s *machine.Specialist) { s.StrategyFn, s.MachineName = "fn", "other" }), runner.ErrIllegal, "wrong_machine", `specialist "new" belongs to machine "other", not "desk"`},
		{with(func(s *machine.Specialist) { s.SpecialistID, s.StrategyFn = "__mine", "fn" }), runner.ErrIllegal, "bad-name", ""},
		{with(func(s *machine.Specialist) { s.StrategyFn = "= 1 +" }), runner.ErrIllegal, "unusable", `specialist "new": at character 4 of the expression: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}`},
	} {
		_, err := b.r.Register(b.ctx, "desk", c.s, nil)
		if err == nil {
			t.Errorf("%+v was registered", c.s)
			continue
		}
		if c.text != "" {
			b.refused(err, c.kind, c.text)
		}
		if e := new(runner.Error); c.code != "" && (!errors.As(err, &e) || e.Code != c.code) {
			t.Errorf("%+v: code %q, want %q", c.s, e.Code, c.code)
		}
	}
	roster, err := b.store.Roster(b.ctx, "desk")
	b.ok(err)
	if len(roster.Specialists) != 1 {
		t.Errorf("refused registrations left %d specialists", len(roster.Specialists))
	}
	b.register(with(func(s *machine.Specialist) { s.StrategyFn, s.Threshold = "fn", &half }))
}

// TestRegisterReturnsWhatIsStored registers every way to be asked; the hint of
// an unknown name helps.
func TestRegisterReturnsWhatIsStored(t *testing.T) {
	b := newBench(t)
	half := machine.Threshold{Given: 0.25, Weight: 250_000_000}
	for i, s := range []machine.Specialist{
		{Role: machine.Proposer, StrategyFn: "fn"},
		{Role: machine.Proposer, StrategyFnName: "lastAvailable", Threshold: &half},
		{Role: machine.Proposer, StrategyWebhookURL: "https://hooks.example/x", WebhookTokenName: "A_WEBHOOK"},
		{Role: machine.Proposer, StrategyFn: `= steps > 3 ? "whatever" : "comes"`}, // the states it will serve are not known yet
		{Role: machine.Proposer, IsHuman: true},
		{Role: machine.Arbiter, StrategyFn: "judge"},
		{Role: machine.Arbiter, StrategyFnName: "firstProposal", Threshold: &half},
		{Role: machine.Arbiter, StrategyWebhookURL: "https://hooks.example/y", WebhookTokenName: "A_WEBHOOK"},
	} {
		s.SpecialistID = fmt.Sprint("s", i)
		stored := b.register(s)
		if s.MachineName = "desk"; !reflect.DeepEqual(stored.Specialist, s) || stored.At == 0 {
			t.Errorf("registered %+v, stored %+v", s, stored)
		}
		roster, err := b.store.Roster(b.ctx, "desk")
		b.ok(err)
		if got := roster.Specialists[i]; !reflect.DeepEqual(got, stored) {
			t.Errorf("the roster holds %+v, want %+v", got, stored)
		}
	}
	_, err := b.r.Register(b.ctx, "desk", machine.Specialist{Role: machine.Proposer, SpecialistID: "x", StrategyFnName: "firstAvailble"}, nil)
	if e := new(runner.Error); !errors.As(err, &e) || e.Hint != `did you mean "firstAvailable"?` {
		t.Errorf("the hint is %q", e.Hint)
	}
}

// TestRegisterIsPerMachine uses one id for two machines.
func TestRegisterIsPerMachine(t *testing.T) {
	b := newBench(t)
	b.register(proposer("a"))
	_, err := b.r.Register(b.ctx, "other", machine.Specialist{Role: machine.Proposer, SpecialistID: "a", StrategyFnName: "lastAvailable"}, nil)
	b.ok(err)
	b.cast.say("a", "again")
	desk, other := b.start(b.desk(half)), b.start(b.machine(def{name: "other", who: []string{half}}))
	if tick := b.stepTo(desk, runner.TickAdvanced); tick.Transition.Name != "again" {
		t.Errorf("desk went %s", tick.Transition.Name)
	}
	if tick := b.stepTo(other, runner.TickAdvanced); tick.Transition.Name != "park" {
		t.Errorf("other went %s", tick.Transition.Name)
	}
	b.ok(b.r.Disable(b.ctx, "other", "a"))
	b.stepTo(desk, runner.TickAdvanced)
}

// TestRegisteredFollowTheDeclared registers specialists while sessions run:
// they follow the declared ones, and a declared one of the same id wins.
func TestRegisteredFollowTheDeclared(t *testing.T) {
	b := newBench(t)
	for id, says := range map[string]string{"declared": "again", "late": "again"} {
		b.cast.say(id, says)
	}
	m := b.desk(fn("declared"), arbFn("judge"))
	b.cast.judge("judge", electNone)
	running := b.start(m)
	b.register(proposer("late"))
	b.register(machine.Specialist{Role: machine.Proposer, SpecialistID: "declared", StrategyFnName: "lastAvailable"})
	b.register(machine.Specialist{Role: machine.Arbiter, SpecialistID: "arb2", StrategyFnName: "firstProposal"})
	b.stepTo(running, runner.TickHuman)
	if got := fmt.Sprint(b.cast.who()); got != "[declared late judge]" {
		t.Errorf("asked were %s, want the declared one, the registered one, and the declared arbiter", got)
	}
	if p := b.now(running).Proposals(); p[0].Transition.Name != "again" {
		t.Error("the registered specialist took the place of the declared one of the same id")
	}
	_, err := b.r.Register(b.ctx, "desk", machine.Specialist{Role: machine.Proposer, SpecialistID: "arb", StrategyFn: "fn"}, nil)
	b.ok(err) // another role: no session of this machine can go on
	_, err = b.r.Start(b.ctx, m, runner.StartOptions{})
	b.refused(err, nil, `specialist "arb" is declared as arbiter but registered as proposer`)
}

func TestEnableDisable(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	b.cast.say("b", "again")
	m := b.machine(def{who: []string{fn("a"), fn("b"), human("human"), half}, top: `"quorum":"any"`})
	b.train(m, "a", 3, 4)
	book, _ := b.store.Book(b.ctx, "desk")
	score := book.Score("a", "")
	s := b.start(m)
	b.ok(b.r.Disable(b.ctx, "desk", "a"))
	b.ok(b.r.Disable(b.ctx, "desk", "a")) // twice is no error
	_, _, err := b.r.Propose(b.ctx, runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "a", TransitionName: "again"})
	b.refused(err, runner.ErrForbidden, "Specialist a is disabled")
	b.stepTo(s, runner.TickAdvanced)
	if got := fmt.Sprint(b.cast.who()); got != "[b]" {
		t.Errorf("asked were %s", got)
	}
	if book, _ = b.store.Book(b.ctx, "desk"); book.Score("a", "") != score || score == 0 {
		t.Errorf("disabled, a has alignment %s, it had %s", book.Score("a", ""), score)
	}
	b.ok(b.r.Enable(b.ctx, "desk", "a"))
	b.stepTo(s, runner.TickAdvanced)
	if got := fmt.Sprint(b.cast.who()); got != "[a]" { // a alone has weight: settled before b is asked
		t.Errorf("asked were %s", got)
	}
	for _, name := range []string{"desk", "nowhere"} {
		b.refused(b.r.Disable(b.ctx, name, "nobody"), session.ErrNotFound, "Specialist not found: nobody")
		b.refused(b.r.Enable(b.ctx, name, "nobody"), session.ErrNotFound, "Specialist not found: nobody")
	}
	b.refused(b.r.Disable(b.ctx, "nowhere", "a"), session.ErrNotFound, "Specialist not found: a")
}

// TestRosterLog reads the log of a machine's specialists.
func TestRosterLog(t *testing.T) {
	b := newBench(t)
	b.register(proposer("a"))
	b.ok(b.r.Disable(b.ctx, "desk", "a"))
	b.ok(b.r.Enable(b.ctx, "desk", "a"))
	var got []string
	fold := &session.Roster{}
	for rec, err := range b.store.RosterRecords(b.ctx, "desk", 0) {
		b.ok(err)
		events, err := session.DecodeRosterEvents(rec.Events)
		b.ok(err)
		for _, e := range events {
			got = append(got, e.Kind+" "+e.ID)
			fold = fold.With(e)
		}
	}
	if want := "specialist_registered a,specialist_disabled a,specialist_enabled a"; strings.Join(got, ",") != want {
		t.Errorf("the log is %s, want %s", got, want)
	}
	if live, _ := b.store.Roster(b.ctx, "desk"); !reflect.DeepEqual(live, fold) {
		t.Errorf("the roster is %+v, folded %+v", live, fold)
	}
	for _, bad := range []string{"", "[]", "{}", `[{"seq":1,"kind":"specialist_enabled","data":7}]`} {
		if _, err := session.DecodeRosterEvents([]byte(bad)); err == nil {
			t.Errorf("the record %s was read", bad)
		}
	}
}

// TestSwitchedBy: who switched a specialist is in the event, as is that nobody in
// particular did, and events from before actors were recorded are read as they were; half
// an actor is refused.
func TestSwitchedBy(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	b.start(b.machine(def{who: []string{fn("a"), human("human")}}))
	ann := session.Actor{Subject: "local:ann", Method: "local", Humans: []string{"carol"}}
	b.ok(b.r.Switch(b.ctx, "desk", "a", runner.Switching{Actor: ann, Reason: "broken"}))
	b.ok(b.r.Switch(b.ctx, "desk", "a", runner.Switching{On: true, Actor: ann}))
	b.ok(b.r.Disable(b.ctx, "desk", "a"))
	for _, half := range []session.Actor{{Subject: "ann"}, {Method: "local"}} {
		b.refused(b.r.Switch(b.ctx, "desk", "a", runner.Switching{Actor: half}), runner.ErrIllegal, fmt.Sprintf("an actor has a subject and a method, not %q and %q", half.Subject, half.Method))
	}
	var got []session.RosterEvent
	for rec, err := range b.store.RosterRecords(b.ctx, "desk", 0) {
		b.ok(err)
		events, err := session.DecodeRosterEvents(rec.Events)
		b.ok(err)
		got = append(got, events...)
	}
	if len(got) != 3 || !reflect.DeepEqual(got[0].Actor, &ann) || got[0].Kind != session.KindDisabled || got[0].Reason != "broken" || got[1].Reason != "" || !reflect.DeepEqual(got[1].Actor, &ann) || got[1].Kind != session.KindEnabled || got[2].Actor != nil {
		t.Errorf("%+v", got)
	}
	old := `[{"seq":1,"at":"2026-01-02T03:04:05.000Z","kind":"specialist_disabled","data":{"specialistId":"a"}}]`
	events, err := session.DecodeRosterEvents([]byte(old))
	b.ok(err)
	again, err := session.AppendRosterEvent(nil, 1, events[0])
	b.ok(err)
	if events[0].Actor != nil || string(again) != old {
		t.Errorf("an old event is read as %+v and written as %s", events[0], again)
	}
}
