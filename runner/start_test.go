package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/strategies"
)

func TestNewNeedsAStore(t *testing.T) {
	_, err := runner.New(runner.Config{})
	var c *runner.ConfigError
	if !errors.As(err, &c) || c.Field != "Store" || err.Error() != "config Store is required" {
		t.Fatalf("New without a store = %v", err)
	}
}

var uuid4 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func TestStart(t *testing.T) {
	b := newBench(t)
	m := b.desk(first("a"), half)
	ids := map[string]bool{}
	for range 100 {
		s := b.start(m)
		if !uuid4.MatchString(s.ID.String()) || ids[s.ID.String()] {
			t.Fatalf("session id %s is no new UUID of version 4", s.ID)
		}
		ids[s.ID.String()] = true
	}
	s := b.start(m, runner.StartOptions{Meta: []byte(` {"n" : [1, 2.50]} `)})
	var v map[string]any
	if err := json.Unmarshal([]byte(view(t, s)), &v); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"machineName": "desk", "currentState": "open", "round": "1", "attempt": "0", "status": "running", "sequence": "2",
		"history": "[]", "proposals": "[]", "machineDigest": m.Digest(), "createdAt": s.CreatedAt.String(), "currentRoundId": s.Key().ID(),
	} {
		if got := fmt.Sprint(v[name]); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if got := string(s.Options().Meta); got != `{"n":[1,2.50]}` {
		t.Errorf("metaJson is %s, its numbers must stay as they were written", got)
	}
	if string(s.View().Machine) != string(m.JSON()) {
		t.Errorf("the session shows machine %s", s.View().Machine)
	}
	if s.Last() != nil || s.Machine() != m || s.UpdatedAt != s.CreatedAt {
		t.Errorf("a new session is %+v", s)
	}
	b.wantLog(s, 0, "session_created", "round_opened open 1 0")
}

// TestStartAtTheEnd starts machines whose initial state is an end.
func TestStartAtTheEnd(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct{ states, code string }{
		{`"open":{"transitions":{"x":"done"},"final":true},"done":{}`, "final"},
		{`"open":{}`, "goal"},
		{`"open":{"transitions":{"x":"other"}},"other":{}`, "goal"}, // never taken
	} {
		text := strings.Replace(def{states: c.states, who: []string{first("a"), half}}.text(), `"goalState":"done"`, `"goalState":"`+map[string]string{"final": "done", "goal": "open"}[c.code]+`"`, 1)
		s := b.start(parse(t, text))
		if s.Status != session.Completed || s.Outcome().Code != c.code || s.Executed != 0 {
			t.Errorf("%s: the session is %s (%s)", c.states, s.Status, s.Outcome().Code)
		}
		if tick := b.step(s); tick.Status != runner.TickCompleted || len(b.cast.who()) != 0 {
			t.Errorf("%s: stepping it came to %s", c.states, tick.Status)
		}
	}
}

func TestStartMeta(t *testing.T) {
	b := newBench(t)
	m := b.desk(fn("a"), half)
	for _, c := range []struct{ meta, code, text string }{
		{`{"a":1} {}`, "bad_meta", "metaJson is not one JSON value: unexpected data after the value"},
		{`{"a":1,"a":2}`, "bad_meta", `metaJson is not one JSON value: duplicate member "a"`},
		{``, "bad_meta", "metaJson is not one JSON value: EOF"},
		{"\"\xff\"", "bad_meta", "metaJson is not one JSON value: the text is not UTF-8"},
		{`"` + strings.Repeat("x", 256<<10) + `"`, "too_large", "metaJson is larger than 262144 bytes"},
	} {
		_, err := b.r.Start(b.ctx, m, runner.StartOptions{Meta: []byte(c.meta)})
		b.refused(err, runner.ErrIllegal, c.text)
		if e := new(runner.Error); !errors.As(err, &e) || e.Code != c.code {
			t.Errorf("the error has code %q, want %q", e.Code, c.code)
		}
	}
	largest := b.start(m, runner.StartOptions{Meta: []byte(`"` + strings.Repeat("x", 256<<10-2) + `"`)})
	if len(largest.Options().Meta) != 256<<10 {
		t.Error("metaJson of the largest size was cut")
	}
	if s := b.start(m, runner.StartOptions{Meta: []byte(" null ")}); s.Options().Meta != nil {
		t.Errorf("metaJson null is kept as %s, it means that there is none", s.Options().Meta)
	}
	if _, err := b.r.Start(b.ctx, nil, runner.StartOptions{}); !errors.Is(err, runner.ErrIllegal) {
		t.Errorf("without a machine: %v", err)
	}
	_, err := b.r.Start(b.ctx, m, runner.StartOptions{Mode: "parallel"})
	b.refused(err, runner.ErrIllegal, `mode is "parallel", it may be all, eager or sequential`)
	if list, _ := b.r.Sessions(b.ctx, session.ListQuery{}); len(list) != 2 {
		t.Errorf("refused starts left sessions: %v", list)
	}
}

func TestStartNamesEverythingMissing(t *testing.T) {
	b := newBench(t)
	m := b.machine(def{states: `"open":{"transitions":{"x":"done"},"specialists":[` + entry("proposer", "registered?", "") + `]},"other":{"transitions":{"x":"done"}},"done":{}`,
		who: []string{fn("here"), entry("proposer", "one", `"strategyFn":"gone"`), entry("proposer", "model", `"contextFn":"sessionContext","modelId":"some/model"`),
			entry("arbiter", "two", `"strategyFn":"away"`)}})
	_, err := b.r.Start(b.ctx, m, runner.StartOptions{})
	var e *runner.StartError
	if !errors.As(err, &e) {
		t.Fatalf("Start = %v, want a *StartError", err)
	}
	want := []string{
		`machine.json:1:124: state "open" names specialist "registered?", which is neither declared nor registered for machine "desk" (declare it in the specialists of the machine, or register it)`,
		`strategyFn "away" of specialist "two" is not in the Registry`,
		`strategyFn "gone" of specialist "one" is not in the Registry`,
		`specialist "model" is a model, and this program has no way to ask one`,
	}
	got := strings.Split(err.Error(), "\n")
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("Start lists\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if !errors.Is(err, runner.ErrUnknownStrategy) {
		t.Error("the error does not wrap ErrUnknownStrategy")
	}
	if list, _ := b.r.Sessions(b.ctx, session.ListQuery{}); len(list) != 0 {
		t.Error("a machine that cannot be started left a session")
	}
}

// TestMissingLater steps and resumes a session in a program that lacks its
// functions: an error before any step, and nothing is written.
func TestMissingLater(t *testing.T) {
	b := newBench(t)
	b.cast.play("a", failing(errors.New("down")))
	s := b.start(b.desk(fn("a"), half))
	b.stepTo(s, runner.TickHuman)
	bare := b.runner(func(c *runner.Config) { c.Resolver = b.cast })
	before := b.now(s).Sequence
	const text = `strategyFn "fn" of specialist "a" is not in the Registry`
	s2 := b.start(b.desk(fn("a"), half))
	_, err := bare.Step(b.ctx, s2.ID)
	b.refused(err, runner.ErrUnknownStrategy, text)
	_, err = bare.Resume(b.ctx, s.ID, runner.ResumeOptions{RetryFailed: true})
	b.refused(err, runner.ErrUnknownStrategy, text)
	if b.now(s).Sequence != before || b.now(s2).Sequence != s2.Sequence {
		t.Error("a program without the functions wrote to the log")
	}
}

func TestModelIsOneClearError(t *testing.T) {
	b := newBench(t)
	model := func(rest ...string) string {
		return entry("proposer", "model", `"contextFn":"sessionContext","modelId":"some/model"`, rest...)
	}
	_, err := b.r.Start(b.ctx, b.desk(model(), half), runner.StartOptions{})
	b.refused(err, nil, `specialist "model" is a model, and this program has no way to ask one`)
	b.cast.say("a", "finish")
	s := b.start(b.desk(model(`"disabled":true`), fn("a"), half)) // as the message says
	b.stepTo(s, runner.TickAdvanced)
	_, err = b.runner(func(c *runner.Config) { c.Resolver = b.cast.registry() }).Start(b.ctx, b.desk(web("w"), half), runner.StartOptions{})
	b.refused(err, nil, `specialist "w" is a webhook, and this program has no way to call one`)
}

// TestDefaults runs machines that lack a proposer, an arbiter, or both.
func TestDefaults(t *testing.T) {
	for _, c := range []struct {
		who                  []string
		proposer, arbiter    bool
		result, proposedBy   string
		arbiterID, reasoning string
	}{
		{nil, true, true, "completed", "__default_proposer_", "__default_arbiter_", "Choosing first available transition: finish"},
		{[]string{last("a")}, false, true, "stopped", "a", "__default_arbiter_", "Choosing last available transition: park"},
		{[]string{arb("alignmentMargin")}, true, false, "completed", "__default_proposer_", "arb", "Choosing first available transition: finish"},
		{[]string{human("h")}, false, true, "needs_human", "", "", ""},
		{[]string{first("a", `"disabled":true`), half}, false, false, "needs_human", "", "", ""}, // it has a proposer
	} {
		b := newBench(t)
		s := b.start(b.desk(c.who...), runner.StartOptions{Defaults: true})
		if o := s.Options(); o.DefaultProposer != c.proposer || o.DefaultArbiter != c.arbiter {
			t.Errorf("%v: default proposer %t, default arbiter %t", c.who, o.DefaultProposer, o.DefaultArbiter)
		}
		result, err := b.r.Run(b.ctx, s.ID, runner.RunOptions{MaxSteps: 4})
		b.ok(err)
		if result.Status != c.result {
			t.Errorf("%v: the run is %s (%s), want %s", c.who, result.Status, result.Reason, c.result)
		}
		if c.proposedBy == "" {
			continue
		}
		id := s.ID.String()
		decisions, err := b.r.Decisions(b.ctx, "desk", "", 0)
		b.ok(err)
		d := decisions[0]
		if d.SpecialistID != strings.Replace(c.proposedBy, "_proposer_", "_proposer_"+id, 1) || d.ArbiterID != strings.Replace(c.arbiterID, "_arbiter_", "_arbiter_"+id, 1) || d.Reasoning != c.reasoning {
			t.Errorf("%v: decided by %s and %s: %s", c.who, d.SpecialistID, d.ArbiterID, d.Reasoning)
		}
	}
}

// TestDefaultsOnlyForTheirSession proves that stand-ins are for one session.
func TestDefaultsOnlyForTheirSession(t *testing.T) {
	b := newBench(t)
	m := b.desk()
	s := b.start(m, runner.StartOptions{Defaults: true})
	plain := b.start(m)
	_, err := b.r.Step(b.ctx, plain.ID)
	b.refused(err, session.ErrNotFound, "No arbiter registered for machine: desk")
	b.stepTo(s, runner.TickAdvanced)
	roster, err := b.store.Roster(b.ctx, "desk")
	b.ok(err)
	if len(roster.Specialists) != 0 {
		t.Errorf("stand-ins were registered: %v", roster.Specialists)
	}
}

// TestSecondRun runs one file twice over one store: declared specialists are
// never registered, so nothing exists already.
func TestSecondRun(t *testing.T) {
	b := newBench(t)
	for range 2 {
		m := b.desk(first("a"), half) // read again, as a second process would
		s := b.start(m, runner.StartOptions{Defaults: true})
		result, err := b.r.Run(b.ctx, s.ID, runner.RunOptions{})
		b.ok(err)
		if result.Status != "completed" {
			t.Fatalf("the run is %s: %s", result.Status, result.Reason)
		}
	}
}

// TestSessions lists sessions in creation order; unknown ones are not found.
func TestSessions(t *testing.T) {
	b := newBench(t)
	if list, err := b.r.Sessions(b.ctx, session.ListQuery{}); err != nil || len(list) != 0 {
		t.Fatalf("a fresh store lists %v, %v", list, err)
	}
	m := b.desk(first("a"), half)
	var want []string
	for range 20 {
		want = append(want, b.start(m).ID.String())
	}
	list, err := b.r.Sessions(b.ctx, session.ListQuery{})
	b.ok(err)
	for i, s := range list {
		if s.SessionID.String() != want[i] {
			t.Fatalf("session %d is %s, want %s", i, s.SessionID, want[i])
		}
	}
	for _, text := range []string{"", "nobody", "a1b2c3d4-5678-90ab-cdef-1234567890ab", "{a1b2c3d4-5678-40ab-8def-1234567890ab}"} {
		id, err := session.ParseID(text)
		if err == nil {
			_, err = b.r.Session(b.ctx, id)
		}
		b.refused(err, session.ErrNotFound, "Session not found: "+text)
	}
}

// TestPinnedDefinition changes a file while a session runs: it goes on with its
// own definition.
func TestPinnedDefinition(t *testing.T) {
	b := newBench(t)
	old := b.start(b.desk(first("a"), half))
	changed := b.desk(last("a"), half)
	fresh := b.start(changed)
	if tick := b.stepTo(old, runner.TickAdvanced); tick.Transition.Name != "finish" {
		t.Errorf("the old session went %s", tick.Transition.Name)
	}
	if tick := b.stepTo(fresh, runner.TickAdvanced); tick.Transition.Name != "park" {
		t.Errorf("the new session went %s", tick.Transition.Name)
	}
	if b.now(old).Machine().Digest() == b.now(fresh).Machine().Digest() {
		t.Error("both sessions have the same digest")
	}
}

// TestRegistryNames resolves functions by name; other machines and runners do
// not see them.
func TestRegistryNames(t *testing.T) {
	base := strategies.Registry{}
	custom := base.WithProposer("mine", specialist.ProposerFunc(saying("park"))).WithArbiter("mine", electFirst)
	m := parse(t, def{who: []string{entry("proposer", "a", `"strategyFn":"mine"`), arbFn("mine")}}.text())
	for _, c := range []struct {
		registry strategies.Registry
		want     string
	}{{custom, "parked"}, {base, ""}, {custom.WithArbiter("mine", arbiter.Func(electNone)), "open"}} {
		r, err := runner.New(runner.Config{Store: store.NewMemory(), Resolver: c.registry})
		if err != nil {
			t.Fatal(err)
		}
		s, err := r.Start(context.Background(), m, runner.StartOptions{})
		if (err == nil) != (c.want != "") {
			t.Fatalf("Start = %v", err)
		}
		if err != nil {
			continue
		}
		tick, err := r.Step(context.Background(), s.ID)
		if err != nil || tick.Session.State.Name != c.want {
			t.Errorf("the step led to %s (%v), want %s", tick.Session.State.Name, err, c.want)
		}
	}
	if _, err := machine.Parse("m.json", m.JSON(), runner.Checks()); err != nil {
		t.Errorf("a stored definition does not parse: %v", err)
	}
}

// Who cannot be asked here does not keep people from looking at the question,
// proposing and deciding: only from asking.
func TestHumansNeedNobodyElse(t *testing.T) {
	b := newBench(t)
	b.said(map[string]string{"f": "finish", "g": "again", "w": "again"})
	s := b.start(b.desk(fn("f"), fn("g"), web("w"), human("ann"), entry("arbiter", "arb", "")))
	b.stepTo(s, runner.TickHuman)
	other := b.runner(func(c *runner.Config) { c.Resolver = nil })
	var missing *runner.StartError
	if _, err := other.Step(b.ctx, s.ID); err != nil {
		t.Errorf("a step that changes nothing: %v", err)
	}
	items, _, err := other.Inbox(b.ctx, session.ListQuery{}, "")
	if err != nil || len(items) != 1 || !slices.Equal(items[0].Humans, []string{"ann"}) || len(items[0].Proposals) != 3 {
		t.Fatalf("Inbox = %+v, %v", items, err)
	}
	if w, err := other.Weights(b.ctx, b.now(s)); err != nil || len(w) != 3 {
		t.Errorf("Weights = %v, %v", w, err)
	}
	if _, _, err := other.Propose(b.ctx, runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "w"}); !errors.As(err, &missing) {
		t.Errorf("asking somebody who cannot be asked: %v", err)
	}
	if p, _, err := other.Propose(b.ctx, runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "ann", TransitionName: "finish"}); err != nil || p.SpecialistID != "ann" {
		t.Errorf("Propose = %+v, %v", p, err)
	}
	if _, err := other.Step(b.ctx, s.ID); !errors.As(err, &missing) {
		t.Errorf("a step without those who are asked: %v", err)
	}
	a, err := other.Decide(b.ctx, runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "ann", TransitionName: "finish"})
	if err != nil || !a.Executed {
		t.Errorf("Decide = %+v, %v", a, err)
	}
	b.checkLogs()
}
