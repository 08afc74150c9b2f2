package runner_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/strategies"
)

func (b *bench) move(s *session.Session, m *machine.Machine, states ...machine.StateName) (*session.Session, error) {
	o := runner.Moving{Actor: *key("op"), Note: "a better file", States: map[machine.StateName]machine.StateName{}}
	for i := 0; i+1 < len(states); i += 2 {
		o.States[states[i]] = states[i+1]
	}
	return b.r.Move(b.ctx, s.ID, m, o)
}

// otherStates are those of the desk with another prompt, a choice more, and check for park.
const otherStates = `"open":{"prompt":"And now?","transitions":{"finish":"done","again":"open","wait":"open","park":"check"}},
	"check":{"transitions":{"back":"open"}},"done":{}`

// TestMove: a session goes on under another definition, in the same state, with a round that
// begins anew, and with what it has spent; who did it is in the log (cases.md 8.3).
func TestMove(t *testing.T) {
	b := newBench(t)
	b.cast.play("a", paid("again"))
	s := b.start(b.machine(def{who: []string{fn("a"), human("human"), human("bob"), half}, top: secondBefore}))
	b.stepTo(s, runner.TickAdvanced)
	b.recorded(s, "human", "finish", session.CodeSecondHuman)
	was := b.now(s)
	m := b.machine(def{who: []string{fn("a"), human("human"), human("bob"), half}, states: otherStates, top: secondBefore + `,"input":{"type":"object","properties":{"region":{"type":"string","default":"eu"}}}`})
	now, err := b.move(s, m)
	b.ok(err)
	list, _ := now.PendingRulings()
	if now.Machine().Digest() != m.Digest() || now.Status != session.Running || now.Round != was.Round || now.Attempt != was.Attempt+1 || now.State != m.State("open") || len(list) != 0 || len(now.Proposals()) != 0 ||
		now.Spent() != was.Spent() || now.Executed != 1 || string(now.Data().JSON()) != `{"region":"eu"}` || now.Visits(now.State) != was.Visits(was.State) {
		t.Errorf("moved, the session is %+v", now.View())
	}
	q, err := b.r.Question(b.ctx, now, "bob")
	if want := []string{fmt.Sprintf("Moved by key:op from definition %.12s to %.12s: a better file (rulings that ended with it: 1)", was.Machine().Digest(), m.Digest())}; err != nil || !slices.Equal(q.Notices, want) {
		t.Errorf("the notices are %q, want %q (%v)", q.Notices, want, err)
	}
	if raw := b.raw(s); raw[len(raw)-2].Kind != session.KindMoved || !strings.Contains(string(raw[len(raw)-2].Data), `"note":"a better file","actor":{"subject":"key:op","method":"key"}`) {
		t.Errorf("the log ends with %s %s", raw[len(raw)-2].Kind, raw[len(raw)-2].Data)
	}
	if texts, err := b.store.Definitions(b.ctx, "desk"); err != nil || len(texts) != 2 {
		t.Errorf("the store has %d definitions (%v)", len(texts), err)
	}
	b.forget()
	b.recorded(s, "human", "wait", session.CodeSecondHuman)
	b.executed(s, "bob", "wait")
	if e := b.explain(b.now(s), "1"); e.MachineDigest == m.Digest() {
		t.Error("the first round is explained by the new definition")
	}
	if e := b.explain(b.now(s), "2"); e.MachineDigest != m.Digest() || e.Executed != "wait" {
		t.Errorf("the second round is explained by %s", e.MachineDigest)
	}
	q, err = b.r.Question(b.ctx, b.now(s), "bob")
	if b.ok(err); len(q.Notices) != 0 {
		t.Errorf("the notices outlive their round: %q", q.Notices)
	}
	p := b.start(b.approved("", `3`))
	b.recorded(p, "alice", "pay", session.CodeApprovals)
	b.recorded(p, "carol", "pay", session.CodeApprovals)
	now, err = b.move(p, b.approved("", `2`))
	b.ok(err)
	q, err = b.r.Question(b.ctx, now, "")
	if b.ok(err); len(q.Notices) != 1 || !strings.HasSuffix(q.Notices[0], ": a better file (rulings that ended with it: alice chose pay, carol chose pay)") {
		t.Errorf("the notices are %q", q.Notices)
	}
	f := b.fork(s, 0)
	if f.Machine().Digest() != m.Digest() || f.Executed != 2 {
		t.Errorf("a fork of it is %+v", f.View())
	}
}

// TestMoveRefuses what would skip approvals, what has no place in the new definition, and what
// its input does not allow; a stopped session stays stopped (cases.md 8.3).
func TestMoveRefuses(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "park")
	old := b.desk(fn("a"), human("human"), half)
	m := b.machine(def{who: []string{fn("a"), human("human"), half}, states: otherStates})
	s := b.start(old)
	b.stepTo(s, runner.TickAdvanced)
	before := b.now(s).Sequence
	for name, c := range map[string]struct {
		m    *machine.Machine
		to   []machine.StateName
		text string
	}{
		"no state":        {m, nil, `stands in "parked", which the new definition does not have`},
		"no such state":   {m, []machine.StateName{"parked", "nowhere"}, `state "nowhere", in the place of "parked", is not one of the new definition`},
		"terminal":        {m, []machine.StateName{"parked", "done"}, `sessions end in state "done"`},
		"same definition": {old, nil, "runs by this definition already"},
		"another machine": {b.machine(def{name: "other", who: []string{fn("a"), half}}), nil, `is one of machine "desk", not of "other"`},
		"state exists":    {b.machine(def{who: []string{fn("a"), half}}), []machine.StateName{"parked", "open"}, `state "parked" is there in the new definition`},
		"input":           {b.machine(def{who: []string{fn("a"), half}, top: `"input":{"type":"object","required":["n"]}`}), nil, "the input is not what machine"},
	} {
		if _, err := b.move(s, c.m, c.to...); !errors.Is(err, runner.ErrIllegal) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := b.start(b.approved("", `2`))
	if _, err := b.move(p, b.approved("", `{"count":2,"exclude":["starter"]}`)); !errors.Is(err, runner.ErrIllegal) || !strings.Contains(err.Error(), "nobody knows as whom") {
		t.Errorf("without a starter: %v", err)
	}
	if b.now(s).Sequence != before {
		t.Error("a refused move was recorded")
	}
	if now, err := b.r.Move(b.ctx, s.ID, m, runner.Moving{Actor: *key("op"), Note: "try", States: map[machine.StateName]machine.StateName{"parked": "check"}, DryRun: true}); err != nil || now.Sequence != before {
		t.Errorf("a dry run: %v, at %d", err, now.Sequence)
	}
	_, err := b.r.Stop(b.ctx, s.ID, runner.Stopping{Actor: *key("op"), Note: "enough"})
	b.ok(err)
	now, err := b.move(s, m, "parked", "check")
	b.ok(err)
	if now.Status != session.Stopped || now.State != m.State("check") {
		t.Errorf("the stopped session is %s in %s", now.Status, now.State.Name)
	}
	_, err = b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{})
	b.ok(err)
	b.force(s, "back")
	b.force(s, "finish")
	if _, err := b.move(s, old); !errors.Is(err, runner.ErrNotRunning) {
		t.Errorf("of what has completed: %v", err)
	}
}

// TestMoveKeepsMissing: who was missing when a session was started is missing under another
// definition, too, also for a process that reads it from the store.
func TestMoveKeepsMissing(t *testing.T) {
	b := newBench(t)
	other := b.runner(func(c *runner.Config) { c.Resolver = strategies.Registry{} })
	machineOf := func(states string) *machine.Machine {
		return b.machine(def{who: []string{first("a"), fn("gone"), human("human"), half}, states: states})
	}
	s, err := other.Start(b.ctx, machineOf(""), runner.StartOptions{AllowMissing: []machine.SpecialistID{"gone"}})
	b.ok(err)
	m := machineOf(otherStates)
	now, err := other.Move(b.ctx, s.ID, m, runner.Moving{Actor: *key("op"), Note: "a better file"})
	b.ok(err)
	if missing := now.Program.Missing(); now.Machine().Digest() != m.Digest() || !slices.Equal(missing, []string{"gone"}) {
		t.Errorf("moved, it is without %q", missing)
	}
	b.forget()
	if missing := b.now(s).Program.Missing(); b.now(s).Machine().Digest() != m.Digest() || !slices.Equal(missing, []string{"gone"}) {
		t.Errorf("read again, it is without %q", missing)
	}
}

// TestMoveLeavesStopped: a session that was stopped while a ruling waited stays so, and the
// ruling is over (cases.md 8.3).
func TestMoveLeavesStopped(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	who := []string{fn("a"), human("human"), human("bob"), half}
	s := b.start(b.machine(def{who: who, top: secondBefore}))
	b.recorded(s, "human", "finish", session.CodeSecondHuman)
	_, err := b.r.Stop(b.ctx, s.ID, runner.Stopping{Actor: *key("op"), Note: "enough"})
	b.ok(err)
	now, err := b.move(s, b.machine(def{who: who, states: otherStates, top: secondBefore}))
	b.ok(err)
	for _, raw := range b.raw(s) { // the question is open again (cases.md 7.2)
		if shown, less := now.Concealed(raw, false); raw.Kind == session.KindRuled && (!less || strings.Contains(string(shown.Data), "finish")) {
			t.Errorf("of what was ruled the log shows %s", shown.Data)
		}
	}
	if list, _ := now.PendingRulings(); now.Status != session.Stopped || now.Outcome().Code != session.CodeCancelled || len(list) != 0 {
		t.Errorf("it is %s (%s) with %d rulings", now.Status, now.Outcome().Code, len(list))
	}
}

// TestMoveKeepsExcluded: who has ruled in a state may not approve where that is excluded, also
// when a move has given it another name, be it the present state or one that was left
// (cases.md 4.2, 8.3).
func TestMoveKeepsExcluded(t *testing.T) {
	b := newBench(t)
	machineOf := func(check, pay string) *machine.Machine {
		return parse(t, `{"machineName":"m","initialState":"`+check+`","goalState":"paid",
		  "specialists":[{"role":"proposer","specialistId":"alice","isHuman":true},{"role":"proposer","specialistId":"bob","isHuman":true}],
		  "states":{"`+check+`":{"transitions":{"on":"`+pay+`","stay":"`+check+`"}},"`+pay+`":{"transitions":{"pay":{"target":"paid","approvals":{"exclude":["`+check+`"]}},"wait":"`+pay+`"}},"paid":{}}}`)
	}
	s := b.start(machineOf("check", "pay"))
	b.executed(s, "bob", "stay")
	b.executed(s, "alice", "stay")
	_, err := b.move(s, machineOf("look", "pay"), "check", "look") // where it stands
	b.ok(err)
	b.executed(s, "bob", "on")
	for _, states := range [][2]machine.StateName{{"look", "review"}, {"review", "check"}} { // which it has left
		_, err = b.move(s, machineOf(string(states[1]), "pay"), states[0], states[1])
		b.ok(err)
		b.forget()
		why := "they ruled in state \"" + string(states[1]) + "\" (exclude: " + string(states[1]) + ")"
		_, err = b.word(s, "bob", "pay")
		b.refused(err, runner.ErrForbidden, `bob may not choose "pay": `+why)
	}
	for _, c := range [][3]string{{"nowhere", "look", `state "nowhere" is none of the definition by which session`}, {"check", "other", `state "other", in the place of "check", is not one of the new definition`}, {"pay", "look", `state "pay" is there`}} {
		if _, err := b.move(s, machineOf("look", "pay"), machine.StateName(c[0]), machine.StateName(c[1])); !errors.Is(err, runner.ErrIllegal) || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%v: %v", c, err)
		}
	}
	b.executed(b.fork(s, 0), "alice", "pay")
	_, err = b.word(b.fork(s, 0), "bob", "pay")
	b.refused(err, runner.ErrForbidden, `bob may not choose "pay": they ruled in state "check" (exclude: check)`)
}

// TestMoveForgetsNobody: where a state is gone in which somebody has ruled, and one is new that
// approvals exclude, the move says so until somebody says what is in its place (cases.md 4.2, 8.3).
func TestMoveForgetsNobody(t *testing.T) {
	b := newBench(t)
	machineOf := func(check, exclude string) *machine.Machine {
		return parse(t, `{"machineName":"m","initialState":"`+check+`","goalState":"paid",
		  "specialists":[{"role":"proposer","specialistId":"alice","isHuman":true},{"role":"proposer","specialistId":"bob","isHuman":true}],
		  "states":{"`+check+`":{"transitions":{"on":"pay"}},"pay":{"transitions":{"pay":{"target":"paid","approvals":{"exclude":[`+exclude+`]}},"wait":"pay","back":"`+check+`"}},"paid":{}}}`)
	}
	s := b.start(machineOf("check", `"check"`))
	b.executed(s, "bob", "on")
	move := func(m *machine.Machine, dry bool, states map[machine.StateName]machine.StateName) error {
		_, err := b.r.Move(b.ctx, s.ID, m, runner.Moving{Actor: *key("op"), Note: "a better file", States: states, DryRun: dry})
		return err
	}
	const gone = `bob ruled in "check", which the new definition does not have, and who ruled in its state "look" is excluded from approvals`
	for _, dry := range []bool{true, false} {
		b.refused(move(machineOf("look", `"look"`), dry, nil), runner.ErrIllegal, gone)
	}
	b.ok(move(machineOf("check", `"pay"`), false, nil))                               // all that were are there
	b.ok(move(machineOf("look", `"pay"`), false, nil))                                // none that is new is excluded
	b.refused(move(machineOf("look", `"look"`), false, nil), runner.ErrIllegal, gone) // it was lost before
	b.ok(move(machineOf("look", `"look"`), true, map[machine.StateName]machine.StateName{"check": "pay"}))
	b.ok(move(machineOf("look", `"look"`), false, map[machine.StateName]machine.StateName{"check": "look"}))
	_, err := b.word(s, "bob", "pay")
	b.refused(err, runner.ErrForbidden, `bob may not choose "pay": they ruled in state "look" (exclude: look)`)
}

// TestMoveBackToAName: a state that a move has renamed goes by the name that it had before where
// the session comes under a definition again that has that one, though nobody says so: who has
// ruled there is excluded, visits count on, and its reviews wait (cases.md 4.1, 4.2, 8.3).
func TestMoveBackToAName(t *testing.T) {
	b := newBench(t)
	machineOf := func(check string) *machine.Machine {
		return parse(t, `{"machineName":"m","initialState":"`+check+`","goalState":"paid",
		  "specialists":[{"role":"proposer","specialistId":"alice","isHuman":true},{"role":"proposer","specialistId":"bob","isHuman":true}],
		  "states":{"`+check+`":{"secondHuman":{"rate":1},"transitions":{"on":"pay","stay":"`+check+`"}},"pay":{"transitions":{"pay":{"target":"paid","approvals":{"exclude":["`+check+`"]}},"wait":"pay"}},"paid":{}}}`)
	}
	s := b.start(machineOf("check"))
	b.executed(s, "bob", "stay")
	b.executed(s, "bob", "on")
	for i, name := range []string{"look", "check", "look", "check"} {
		states := []machine.StateName{"check", "look"}
		if i > 0 {
			states = nil
		}
		now, err := b.move(s, machineOf(name), states...)
		b.ok(err)
		if n := now.Visits(now.Machine().State(name)); n != 2 {
			t.Errorf("%s was visited %d times", name, n)
		}
		b.forget()
		_, err = b.word(s, "bob", "pay")
		b.refused(err, runner.ErrForbidden, `bob may not choose "pay": they ruled in state "`+name+`" (exclude: `+name+`)`)
		if got := b.reviews(); got != "[second of round 1 for [alice] second of round 2 for [alice]]" {
			t.Errorf("there waits %s", got)
		}
	}
	b.executed(s, "alice", "pay")
}

// TestMoveKeepsVisits: how often a session has come into a state is counted on when a move gives
// the state another name, and so are visits of two states that become one; the name is free for
// another state then, and where the session began is counted, whatever state later ones begin in
// (cases.md 3.1, 8.3).
func TestMoveKeepsVisits(t *testing.T) {
	b := newBench(t)
	machineOf := func(initial, check, look string) *machine.Machine {
		return parse(t, `{"machineName":"m","initialState":"`+initial+`","goalState":"done","specialists":[{"role":"proposer","specialistId":"ann","isHuman":true}],
		  "states":{"`+check+`":{"transitions":{"stay":"`+check+`","on":"`+look+`","end":{"target":"done","when":"= visits < 5"}}},"`+look+`":{"transitions":{"stay":"`+look+`","on":"`+check+`","end":"done"}},"start":{"transitions":{"on":"`+check+`","end":"done"}},"done":{}}}`)
	}
	s := b.start(machineOf("check", "check", "look"))
	want := func(visits map[string]int) {
		t.Helper()
		b.forget()
		for _, s := range []*session.Session{b.now(s), b.fork(s, 0)} {
			for name, n := range visits {
				if got := s.Visits(s.Machine().State(name)); got != n {
					t.Errorf("%s was visited %d times, want %d", name, got, n)
				}
			}
		}
	}
	_, err := b.move(s, machineOf("check", "check", "view"), "look", "view") // before any step
	b.ok(err)
	b.executed(s, "ann", "stay")
	b.executed(s, "ann", "on")
	b.executed(s, "ann", "on")
	want(map[string]int{"check": 3, "view": 1, "start": 0})
	_, err = b.move(s, machineOf("start", "audit", "view"), "check", "audit")
	b.ok(err)
	want(map[string]int{"audit": 3, "view": 1, "start": 0})
	b.executed(s, "ann", "stay")
	want(map[string]int{"audit": 4, "view": 1})
	now, err := b.move(s, machineOf("start", "view", "check"), "audit", "view") // two become one
	if b.ok(err); len(now.Closed()) != 1 {
		t.Errorf("closed after 5 visits: %+v", now.Closed())
	}
	want(map[string]int{"view": 5, "check": 0})
	b.executed(s, "ann", "on")
	b.executed(s, "ann", "on")
	want(map[string]int{"view": 6, "check": 1})
}

// TestMoveKeepsReviews: a closed round of a state that a move renames is reviewed on, drawn or
// not, by those who decide in the state that has taken its place (cases.md 4.1, 8.3).
func TestMoveKeepsReviews(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "on")
	machineOf := func(open, who string) *machine.Machine {
		return parse(t, `{"machineName":"m","initialState":"`+open+`","goalState":"done","states":{"zero":{"transitions":{"on":"`+open+`"}},"`+open+`":{"deciders":["`+who+`"],"audit":{"rate":1},"transitions":{"on":"check","stop":"done"}},"check":{"transitions":{"pay":"done","back":"`+open+`"}},"done":{}},
		  "specialists":[`+fn("a")+`,`+human("ann")+`,`+human("erin")+`,`+arb("firstProposal")+`]}`)
	}
	s := b.start(machineOf("open", "ann"))
	b.stepTo(s, runner.TickAdvanced)
	plain := b.start(b.undrawn("open"))
	b.stepTo(plain, runner.TickAdvanced)
	for _, m := range []*machine.Machine{machineOf("begin", "erin"), machineOf("gate", "erin")} {
		_, err := b.move(s, m, machine.StateName(b.now(s).Reviews()[0].State.Name), machine.StateName(m.Initial().Name))
		b.ok(err)
	}
	_, err := b.move(plain, b.undrawn("gate"), "open", "gate")
	b.ok(err)
	b.forget()
	if got := b.reviews(); got != "[audit of round 1 for [erin]]" {
		t.Fatalf("there waits %s", got)
	}
	if _, err := b.review(s, 1, "ann", "on"); !hasCode(err, "not_human") {
		t.Errorf("ann, who decides there no more: %v", err)
	}
	_, err = b.review(s, 1, "erin", "stop")
	b.ok(err)
	_, err = b.review(plain, 1, "ann", "stop")
	b.ok(err)
	if o := b.lessons()[0].Outcome; o.State != "open" || o.Truth != "stop" || b.reviews() != "[]" {
		t.Errorf("the outcome is %+v, there waits %s", o, b.reviews())
	}
}

// undrawn is a machine with a state of that name first, in which the engine decides.
func (b *bench) undrawn(open string) *machine.Machine {
	b.Helper()
	return parse(b.TB, `{"machineName":"n","initialState":"`+open+`","goalState":"done","states":{"`+open+`":{"transitions":{"on":"check","stop":"done"}},"check":{"transitions":{"pay":"done"}},"done":{}},
	  "specialists":[`+fn("a")+`,`+human("ann")+`,`+arb("firstProposal")+`]}`)
}

// TestMoveThereAndBack: under a definition that the session has had before, read from its file
// anew, conditions are evaluated as ever, and what was written stays also under one that
// writes nothing (cases.md 2.1, 3.1).
func TestMoveThereAndBack(t *testing.T) {
	b := newBench(t)
	const one, other = `"on":{"target":"open","set":{"n":9}},"pay":{"target":"done","when":"= data.n < 5"}`, `"on":{"target":"open","description":"or not"},"pay":"done"`
	s := b.start(b.cased("", one), withMeta(`{"n":1}`))
	b.executed(s, "ann", "on")
	for i, on := range []string{other, one, other, one} {
		now, err := b.move(s, b.cased("", on))
		if b.ok(err); len(now.Closed()) != (i % 2) {
			t.Errorf("move %d: closed are %+v", i+1, now.Closed())
		}
		q, err := b.r.Question(b.ctx, now, "ann")
		if b.ok(err); string(q.Facts.Data) != `{"n":9}` {
			t.Errorf("move %d: the data are %s", i+1, q.Facts.Data)
		}
	}
	b.forget()
	if now := b.now(s); len(now.Closed()) != 1 || string(now.Data().JSON()) != `{"n":9}` {
		t.Errorf("read again: closed are %+v, the data %s", now.Closed(), now.Data().JSON())
	}
}

// TestMoveFillsDefaults: defaults of the new input fill what the data lack, and nothing else (cases.md
// 8.3).
func TestMoveFillsDefaults(t *testing.T) {
	b := newBench(t)
	s := b.start(b.cased("", `"on":{"target":"open","set":{"n":9}},"pay":"done"`), withMeta(`{"n":1}`))
	b.executed(s, "ann", "on")
	now, err := b.move(s, b.cased(`"input":{"properties":{"n":{"default":5},"limit":{"default":7}}},`, `"on":"open","pay":"done"`))
	if b.ok(err); string(now.Data().JSON()) != `{"n":9,"limit":7}` {
		t.Errorf("the data are %s", now.Data().JSON())
	}
}

// TestMoveSkipsNoApproval: a state that takes approvals has none in its place that takes none.
func TestMoveSkipsNoApproval(t *testing.T) {
	b := newBench(t)
	who := `"groups":{"f":["ann","bob"]},"specialists":[{"role":"proposer","specialistId":"ann","isHuman":true},{"role":"proposer","specialistId":"bob","isHuman":true},` + half + `]}`
	s := b.start(parse(t, `{"machineName":"m","initialState":"check","goalState":"done","states":{"check":{"transitions":{"pay":{"target":"paying","approvals":2}}},"paying":{"transitions":{"go":"done"}},"done":{}},`+who))
	m := parse(t, `{"machineName":"m","initialState":"review","goalState":"done","states":{"review":{"transitions":{"pay":{"target":"paying","approvals":2}}},"paying":{"transitions":{"go":"done"}},"done":{}},`+who)
	if _, err := b.move(s, m, "check", "paying"); !hasCode(err, "skips_approvals") {
		t.Errorf("past the approvals: %v", err)
	}
	now, err := b.move(s, m, "check", "review")
	if b.ok(err); now.State.Name != "review" {
		t.Errorf("it stands in %s", now.State.Name)
	}
	// nor one before them another behind them, but one behind them such a one
	machineOf := func(before, behind string) *machine.Machine {
		return parse(t, `{"machineName":"n","initialState":"`+before+`","goalState":"done","states":{"`+before+`":{"transitions":{"on":"sign"}},"sign":{"transitions":{"pay":{"target":"`+behind+`","approvals":1},"back":"`+before+`"}},"`+behind+`":{"transitions":{"go":"done","again":"`+behind+`"}},"done":{}},`+who)
	}
	s = b.start(machineOf("draft", "signed"))
	if _, err := b.move(s, machineOf("begin", "signed"), "draft", "signed"); !hasCode(err, "skips_approvals") {
		t.Errorf("past the approvals: %v", err)
	}
	_, err = b.move(s, machineOf("begin", "signed"), "draft", "begin")
	b.ok(err)
	b.executed(s, "ann", "on")
	b.executed(s, "ann", "pay")
	_, err = b.move(s, machineOf("begin", "approved"), "signed", "approved")
	b.ok(err)
}
