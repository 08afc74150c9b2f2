package runner_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A fixed store draws its audits from a known secret.
type fixed struct {
	session.Store
	secret string
}

// Secret implements session.RosterStore.
func (f *fixed) Secret(context.Context) ([]byte, error) { return []byte(f.secret), nil }

// foreseen makes audits the same in every run of a test: they depend on a secret
// and on ids.
func foreseen(c *runner.Config) {
	c.Store = &fixed{c.Store, "known"}
	var n byte
	c.NewID = func() specialist.SessionID { n++; return specialist.SessionID{15: n} }
}

// championed returns a bench with a machine whose state has a champion, "best", as
// soon as it was trained.
func championed(t *testing.T) (*bench, *machine.Machine) {
	b := newBench(t, foreseen)
	m := b.machine(def{who: []string{fn("a"), fn("best"), fn("c"), human("human"), half}, top: `"solicit":{"champion":true}`})
	b.said(map[string]string{"a": "park", "best": "again", "c": "park"})
	b.train(m, "best", 16, 16)
	return b, m
}

// champions returns the log of a machine's specialists, in short.
func (b *bench) champions() string {
	b.Helper()
	var lines []string
	for rec, err := range b.store.RosterRecords(b.ctx, "desk", 0) {
		b.ok(err)
		events, err := session.DecodeRosterEvents(rec.Events)
		b.ok(err)
		for _, e := range events {
			lines = append(lines, strings.TrimSpace(strings.TrimPrefix(e.Kind, "champion_")+" "+e.ID+" "+e.Reason))
		}
	}
	return strings.Join(lines, ", ")
}

// TestChampionIsAskedAlone collapses: the champion alone is asked, but for audits
// that it cannot foresee, and nobody else is switched off.
func TestChampionIsAskedAlone(t *testing.T) {
	b, m := championed(t)
	s := b.start(m)
	alone, early, later := 0, 0, 0
	for i := range 200 {
		b.cast.who()
		b.stepTo(s, runner.TickAdvanced)
		switch got := fmt.Sprint(b.cast.who()); got {
		case "[best]":
			alone++
		case "[a best]", "[a best c]":
			if i < 40 {
				early++
			} else {
				later++
			}
		default:
			t.Fatalf("asked were %s", got)
		}
	}
	// A quarter of the first 40 rounds, then one in twenty: 10 and 8 are expected.
	if early < 4 || early > 18 || later < 2 || later > 18 || alone+early+later != 200 {
		t.Errorf("%d of the first 40 rounds asked everybody, %d of the other 160", early, later)
	}
	if got := b.champions(); got != "promoted best" {
		t.Errorf("the log of specialists is %s", got)
	}
	if roster, _ := b.store.Roster(b.ctx, "desk"); len(roster.Off) != 0 || fmt.Sprint(roster.Champions[""].Others) != "[a c]" {
		t.Errorf("the roster is %+v", roster)
	}
}

// TestAuditsAreRepeatable draws the same audits after a restart, and others with
// another secret.
func TestAuditsAreRepeatable(t *testing.T) {
	b, m := championed(t)
	s := b.start(m)
	draws := func(r *runner.Runner, secret string) string {
		text := ""
		for i := range int32(40) {
			text += fmt.Sprint(runner.Draw([]byte(secret), specialist.RoundKey{Session: s.ID, Round: i}) < 0.25)
		}
		return text
	}
	if draws(b.r, "known") != draws(b.runner(), "known") || draws(b.r, "known") == draws(b.r, "other") {
		t.Error("audits do not depend on the secret and the round alone")
	}
}

// TestTripLine demotes a champion for every reason there is; from the next round
// on everybody is asked again.
func TestTripLine(t *testing.T) {
	for _, c := range []struct {
		name   string
		trip   func(*bench, *session.Session)
		reason string
	}{
		{"a human decides otherwise", func(b *bench, s *session.Session) {
			b.propose(s, "best", "finish")
			b.force(s, "again")
		}, "its alignment fell below the bar"},
		{"an illegal answer", func(b *bench, s *session.Session) {
			b.cast.say("best", "nowhere")
			b.cast.say("a", "again")
			b.cast.say("c", "again")
			b.cast.who()
			b.stepTo(s, runner.TickHuman)
			if got := fmt.Sprint(b.cast.who()); got != "[best a c]" {
				b.Errorf("in the same round, asked were %s", got)
			}
			b.propose(s, "human", "again")
			b.stepTo(s, runner.TickAdvanced)
		}, "it gave no legal answer"},
		{"it is gone", func(b *bench, s *session.Session) { b.ok(b.r.Disable(b.ctx, "desk", "best")) }, "its alignment fell below the bar, or it is gone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, m := championed(t)
			s := b.start(m)
			b.stepTo(s, runner.TickAdvanced)
			for len(b.cast.who()) != 1 { // a round without an audit
				b.stepTo(s, runner.TickAdvanced)
			}
			c.trip(b, s)
			b.cast.say("best", "again")
			b.cast.who()
			next := b.start(m)
			b.cast.say("a", "again")
			b.cast.say("c", "again")
			b.step(next)
			got := fmt.Sprint(b.cast.who())
			if !strings.HasPrefix(got, "[a ") {
				t.Errorf("after the trip, asked were %s", got)
			}
			if log := b.champions(); !strings.Contains(log, "demoted best "+c.reason) {
				t.Errorf("the log of specialists is %s, want a demotion: %s", log, c.reason)
			}
		})
	}
}

// TestFailedAudit demotes a champion that proposed something else than what was
// decided in a round that asked everybody, and not before.
func TestFailedAudit(t *testing.T) {
	b := newBench(t, foreseen)
	b.cast.judge("judge", arbiter.Func(func(_ context.Context, r *arbiter.Round) (arbiter.Decision, error) {
		return arbiter.Elect(len(r.Votes)-1, "the last will do"), nil
	}))
	m := b.machine(def{who: []string{fn("best"), fn("c"), human("human"), arbFn("judge")}, top: `"solicit":{"champion":true}`, states: `"open":{"transitions":{"again":"open","more":"open","finish":"done"}},"done":{}`})
	b.train(m, "best", 16, 16)
	b.said(map[string]string{"best": "again", "c": "more"})
	s := b.start(m)
	b.stepTo(s, runner.TickAdvanced) // promotes it, asks everybody
	b.cast.who()
	for i := range 200 {
		b.stepTo(s, runner.TickAdvanced)
		asked, demoted := fmt.Sprint(b.cast.who()), strings.Contains(b.champions(), "demoted")
		switch {
		case asked == "[best c judge]" && demoted:
			if got := b.champions(); !strings.HasSuffix(got, `demoted best audit: it proposed "again", "more" was decided`) {
				t.Errorf("the log of specialists is %s", got)
			}
			b.stepTo(s, runner.TickAdvanced)
			if got := fmt.Sprint(b.cast.who()); got != "[best c judge]" {
				t.Errorf("after the demotion, asked were %s", got)
			}
			return
		case demoted || asked != "[best judge]":
			t.Fatalf("in round %d asked were %s, demoted: %t", i, asked, demoted)
		}
	}
	t.Error("nobody was audited")
}

// TestSelfHealSparesTheDisabled asks everybody again once a champion falls, but
// not whom a person switched off.
func TestSelfHealSparesTheDisabled(t *testing.T) {
	b, m := championed(t)
	s := b.start(m)
	b.stepTo(s, runner.TickAdvanced)
	b.ok(b.r.Disable(b.ctx, "desk", "c"))
	b.propose(s, "best", "finish")
	b.force(s, "again")
	b.cast.who()
	b.step(s)
	if got := fmt.Sprint(b.cast.who()); got != "[a best]" {
		t.Errorf("asked were %s", got)
	}
	if _, _, err := b.r.Propose(b.ctx, runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "c", TransitionName: "again"}); err == nil {
		t.Error("a disabled specialist counts")
	}
}

// TestSelectChampion picks the highest alignment from the bar on, the roster
// deciding among equals, of enabled AI alone.
func TestSelectChampion(t *testing.T) {
	for _, c := range []struct {
		who  []string
		k    map[string]int // matches of as many comparisons
		bar  exact.Billionths
		want string
	}{
		{[]string{fn("a"), fn("b")}, map[string]int{}, 0, ""},
		{[]string{fn("a"), fn("b")}, map[string]int{"a": 15}, 0, ""},
		{[]string{fn("a"), fn("b")}, map[string]int{"a": 15}, 790_000_000, "a"},
		{[]string{fn("a"), fn("b")}, map[string]int{"a": 16, "b": 17}, 0, "b"},
		{[]string{fn("a"), fn("b")}, map[string]int{"a": 16, "b": 16}, 0, "a"},
		{[]string{fn("b"), fn("a")}, map[string]int{"a": 16, "b": 16}, 0, "b"},
		{[]string{fn("a"), fn("b", `"disabled":true`)}, map[string]int{"a": 16}, 0, "a"},
		{[]string{human("h"), fn("a")}, map[string]int{}, 0, ""},
	} {
		b := newBench(t)
		m := b.desk(append(c.who, human("human"), half)...)
		for id, k := range c.k {
			b.train(m, id, k, k)
		}
		if got, err := b.r.SelectChampion(b.ctx, b.start(m), c.bar); err != nil || got != c.want {
			t.Errorf("%v with %v: the champion is %q, want %q (%v)", c.who, c.k, got, c.want, err)
		}
	}
}

// TestNoChampionByDefault asks everybody unless the machine says otherwise.
func TestNoChampionByDefault(t *testing.T) {
	b := newBench(t)
	m := b.desk(fn("best"), fn("a"), human("human"), arb("alignmentMargin", threshold("1")))
	b.train(m, "best", 20, 20)
	b.said(map[string]string{"best": "again", "a": "again"})
	s := b.start(m)
	b.cast.who()
	b.step(s)
	if n := len(b.cast.who()); n == 0 || b.champions() != "" {
		t.Errorf("%d were asked, the log of specialists is %s", n, b.champions())
	}
}
