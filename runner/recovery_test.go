package runner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
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

// course is a machine that is left after some legs, with every kind of
// participant and one round that only a human can decide.
const course = `"open":{"transitions":{"next":"mid","finish":"done"}},"mid":{"transitions":{"next":"open","finish":"done"}},"done":{}`

func (b *bench) course(who ...string) *machine.Machine {
	b.Helper()
	for _, id := range []string{"w1", "w2", "f"} {
		b.cast.play(id, func(_ context.Context, q specialist.Question) (specialist.Answer, error) {
			switch steps := q.Past.Steps(); {
			case steps == 1 && q.Self == "w2":
				return specialist.Answer{Usage: cost(dollar)}, errors.New("out of order")
			case steps == 3 && q.Self == "f":
				return specialist.Answer{TransitionName: "nowhere"}, nil
			case steps >= 4:
				return specialist.Answer{TransitionName: "finish", Usage: cost(dollar)}, nil
			}
			return specialist.Answer{TransitionName: "next", Usage: cost(dollar), Reasoning: q.Self}, nil
		})
	}
	b.cast.judge("judge", arbiter.Func(func(_ context.Context, r *arbiter.Round) (arbiter.Decision, error) {
		if r.Past.Steps() == 2 {
			return arbiter.None("over my head"), nil
		}
		return arbiter.Elect(len(r.Votes)-1, "the last will do"), nil
	}))
	return b.machine(def{states: course, who: append([]string{web("w1"), fn("f"), web("w2"), human("human")}, who...)})
}

// drive carries a session of the course to its end. A failing store is left to
// the caller.
func (b *bench) drive(id specialist.SessionID) error {
	for range 100 {
		tick, err := b.r.Step(b.ctx, id)
		switch {
		case err != nil:
			return err
		case tick.Status == runner.TickCompleted:
			return nil
		case tick.Status == runner.TickHuman:
			_, err := b.r.Decide(b.ctx, runner.Ruling{SessionID: id, SpecialistID: "human", TransitionName: "next", RoundID: tick.Session.Key().ID()})
			if err != nil {
				return err
			}
		}
	}
	return errors.New("it never ends")
}

// outcome tells how a session went, whoever carried it: its history, what it
// taught, and what is left.
func (b *bench) outcome(id specialist.SessionID) string {
	b.Helper()
	s, err := b.r.Session(b.ctx, id)
	b.ok(err)
	var text strings.Builder
	for _, e := range s.History() {
		fmt.Fprintf(&text, "%s by %s (%s) in round %d.%d\n", e.Transition.Name, e.SpecialistID, e.How, e.Round, e.Attempt)
	}
	book, err := b.store.Book(b.ctx, "desk")
	b.ok(err)
	for _, r := range book.Records("desk") {
		fmt.Fprintf(&text, "%s %s %d/%d\n", r.SpecialistID, r.State, r.MatchingChoices, r.TotalComparisons)
	}
	exemplars, err := b.store.Exemplars(b.ctx, "desk", "", 0)
	b.ok(err)
	fmt.Fprintf(&text, "%s in %s, %d exemplars", s.Status, s.State.Name, len(exemplars))
	return text.String()
}

// copyOf returns a store that holds the first records of a session.
func copyOf(t *testing.T, s *session.Session, records []session.StoredRecord) session.Store {
	t.Helper()
	m, f := store.NewMemory(), folderOf(t, s.Machine())
	for _, rec := range records {
		c := &session.Change{First: rec.First}
		if rec.First > 1 {
			c.Before = f.Session()
		}
		var err error
		if c.Events, err = f.Add(rec.Events); err != nil {
			t.Fatal(err)
		}
		c.After = f.Session()
		if err := m.Commit(context.Background(), c); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// answers tells, by round, whose answers records hold, and which asks are open
// after them.
func answers(t *testing.T, records []session.StoredRecord) (given map[string]bool, round string) {
	t.Helper()
	given = map[string]bool{}
	for _, rec := range records {
		raw, err := session.DecodeRaw(rec.Events)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range raw {
			var d struct{ RoundID, SpecialistID, ArbiterID string }
			if err := json.Unmarshal(r.Data, &d); err != nil {
				t.Fatal(err)
			}
			switch r.Kind {
			case "round_opened":
				round = d.RoundID
			case "proposed", "ask_failed":
				given[round+" "+d.SpecialistID] = true
			case "judged":
				given[round+" judge"] = true
			}
		}
	}
	return given, round
}

// TestResumeAfterEveryPrefix loses everything after each record of a session's
// log in turn: what is left leads to the same end, and nobody is asked again
// whose answer is in it. An ask that was out is repeated under its key.
func TestResumeAfterEveryPrefix(t *testing.T) {
	for _, judge := range []string{arbFn("judge"), arbWeb("judge")} {
		b := newBench(t)
		s := b.start(b.course(judge))
		b.ok(b.drive(s.ID))
		want, all := b.outcome(s.ID), b.records(s)
		if len(all) < 12 || !strings.Contains(want, "completed in done") {
			t.Fatalf("%d records lead to %s", len(all), want)
		}
		for n := 1; n <= len(all); n++ {
			copied := copyOf(t, s, all[:n])
			again := newBench(t, func(c *runner.Config) { c.Store = copied })
			again.course(judge)
			open := again.now(s).OpenAsks()
			key := again.now(s).Key()
			given, round := answers(t, all[:n])
			b.ok(again.drive(s.ID))
			if got := again.outcome(s.ID); got != want {
				t.Fatalf("after %d records of %d the session came to\n%s\nwant\n%s", n, len(all), got, want)
			}
			for _, call := range again.cast.calls {
				if given[call] {
					t.Errorf("after %d records, asked again for round and specialist %s (present round %s)", n, call, round)
				}
			}
			if dup := firstDouble(again.cast.calls); dup != "" {
				t.Errorf("after %d records, asked twice for %s", n, dup)
			}
			for _, a := range open {
				if id := key.AskID(a.Index); !slices.Contains(again.cast.askIDs(), id) {
					t.Errorf("after %d records, the open ask of %s was not repeated under its key", n, a.SpecialistID)
				}
			}
		}
	}
}

func firstDouble(list []string) string {
	seen := map[string]bool{}
	for _, s := range list {
		if seen[s] {
			return s
		}
		seen[s] = true
	}
	return ""
}

// errPower is the error of a store whose machine lost power.
var errPower = errors.New("no power")

// A dying store fails one commit and all later ones: before it is stored, or
// after it was stored but before anybody was told.
type dying struct {
	session.Store
	left  int
	after bool
}

// Commit implements session.SessionStore.
func (d *dying) Commit(ctx context.Context, c *session.Change) error {
	d.left--
	if d.left == 0 && d.after {
		if err := d.Store.Commit(ctx, c); err != nil {
			return err
		}
	}
	if d.left <= 0 {
		return errPower
	}
	return d.Store.Commit(ctx, c)
}

// TestCrashAtEveryWrite lets the store die at each commit, before and after it
// was stored: whoever takes over comes to the same end, with nothing reported
// that is not stored and nothing stored twice.
func TestCrashAtEveryWrite(t *testing.T) {
	whole := newBench(t)
	s := whole.start(whole.course(arbWeb("judge")))
	whole.ok(whole.drive(s.ID))
	want := whole.outcome(s.ID)
	for _, after := range []bool{false, true} {
		for n := 1; ; n++ { // until it outlives the session
			memory := store.NewMemory()
			first := newBench(t, func(c *runner.Config) { c.Store = memory })
			s := first.start(first.course(arbWeb("judge")))
			first.r = first.runner(func(c *runner.Config) { c.Store = &dying{memory, n, after} })
			err := first.drive(s.ID)
			if err == nil && n > 12 {
				break
			}
			if !errors.Is(err, errPower) {
				t.Fatalf("the store died at write %d: %v", n, err)
			}
			first.ok(first.r.Close())
			second := newBench(t, func(c *runner.Config) { c.Store = memory })
			second.course(arbWeb("judge"))
			second.ok(second.drive(s.ID))
			if got := second.outcome(s.ID); got != want {
				t.Errorf("crashed at write %d (after: %t), the session came to\n%s\nwant\n%s", n, after, got, want)
			}
		}
	}
}

// TestLostRaceKeepsAnswers loses the race for the commit of answers: they are
// answered again in the session as it is now, and nobody is asked twice. If the
// round is over, they are discarded with their cost.
func TestLostRaceKeepsAnswers(t *testing.T) {
	for _, who := range []string{fn("a"), web("a")} {
		c := &contested{}
		b := newBench(t, func(cfg *runner.Config) { c.Store = cfg.Store; cfg.Store = c })
		b.cast.play("a", spending("again", cost(dollar), ""))
		s := b.start(b.desk(who, human("human"), half))
		c.once("proposed", func() { b.propose(s, "human", "park") })
		tick := b.stepTo(s, runner.TickAdvanced)
		if n := len(b.cast.who()); n != 1 || tick.Transition.Name != "park" || b.count(s, "proposed") != 2 {
			t.Errorf("%d were asked, the step went %s", n, tick.Transition.Name)
		}
		s = b.start(s.Machine())
		c.once("proposed", func() { b.force(s, "park") })
		b.stepTo(s, runner.TickSolicited)
		now := b.now(s)
		if n := len(b.cast.who()); n != 1 || now.State.Name != "parked" || now.Spent().Money != dollar || b.count(s, "discarded") != 1 || b.count(s, "proposed") != 0 {
			t.Errorf("%d were asked, spent %s:\n%s", n, now.Spent().Money, b.log(s, 2))
		}
	}
}

// TestAnotherProcessAsks meets an ask that a living process waits for: it is left
// alone until that process is gone, then repeated at once under its key.
func TestAnotherProcessAsks(t *testing.T) {
	b := newBench(t)
	other := b.runner()
	s := b.start(b.desk(web("a"), half))
	ctx, cancel := context.WithCancel(b.ctx)
	b.cast.play("a", func(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
		b.cast.say("a", "again")
		b.stepTo(s, runner.TickWaiting) // meanwhile, here
		cancel()
		return hanging(ctx, q)
	})
	if _, err := other.Step(ctx, s.ID); !errors.Is(err, context.Canceled) {
		t.Fatalf("the other process: %v", err)
	}
	b.stepTo(s, runner.TickWaiting) // it gave up this ask, but it lives
	b.ok(other.Close())
	b.stepTo(s, runner.TickAdvanced)
	if ids := b.cast.askIDs(); len(ids) != 2 || ids[0] != ids[1] {
		t.Errorf("the asks had the keys %v", ids)
	}
	b.wantLog(s, 2, "asked a#1", "asked a#1", "proposed a again", "judged arb decided", "gated again ok", "executed a again", "round_opened open 2 0")
}

// TestInterrupted cancels a step: what was answered is kept, what was not is
// asked again by the next step under the same key, arbiters too.
func TestInterrupted(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(b.ctx)
	b.cast.say("a", "again")
	b.cast.play("slow", func(inner context.Context, q specialist.Question) (specialist.Answer, error) {
		for b.count(&session.Session{ID: q.Key.Session}, "proposed") == 0 { // until a has proposed
		}
		cancel()
		return hanging(inner, q)
	})
	s := b.start(b.desk(web("a"), web("slow"), arbWeb("judge")))
	if _, err := b.r.Step(ctx, s.ID); !errors.Is(err, context.Canceled) {
		t.Fatalf("Step = %v", err)
	}
	if open := b.now(s).OpenAsks(); len(open) != 1 || open[0].SpecialistID != "slow" || len(b.now(s).Proposals()) != 1 {
		t.Fatalf("open are %+v", open)
	}
	b.cast.say("slow", "park")
	ctx, cancel = context.WithCancel(b.ctx)
	b.cast.judge("judge", arbiter.Func(func(inner context.Context, _ *arbiter.Round) (arbiter.Decision, error) {
		cancel()
		<-inner.Done()
		return arbiter.Decision{}, inner.Err()
	}))
	if _, err := b.r.Step(ctx, s.ID); !errors.Is(err, context.Canceled) {
		t.Fatalf("Step = %v", err)
	}
	b.cast.judge("judge", electFirst)
	b.stepTo(s, runner.TickAdvanced)
	if got := strings.Join(b.cast.who(), " "); strings.Count(got, "a ") != 1 || strings.Count(got, "slow") != 2 || strings.Count(got, "judge") != 2 {
		t.Errorf("asked were %s", got)
	}
	ids := slices.Compact(b.cast.askIDs())
	if len(ids) != 3 {
		t.Errorf("five asks had %d keys, want 3", len(ids))
	}
}

// TestRandomLogs makes a thousand sessions at random with a seed. The bench folds
// every log and compares it with what was live; here each consensus is decided
// again from its record alone.
func TestRandomLogs(t *testing.T) {
	again := 0
	for seed := range uint64(25) {
		rng := rand.New(rand.NewPCG(seed, 35))
		b := newBench(t)
		answer := func(_ context.Context, q specialist.Question) (specialist.Answer, error) {
			names := []string{"again", "park", "back", "finish"}
			switch rng.IntN(8) {
			case 0:
				return specialist.Answer{Usage: cost(dollar)}, errors.New("no")
			case 1:
				panic("no")
			}
			return specialist.Answer{TransitionName: names[rng.IntN(4)], Reasoning: "r\u2028\"", MetaJSON: []byte(`{"n":1.50}`), Usage: given(1, 2, 3, 4), Model: "m"}, nil
		}
		for _, id := range []string{"a", "b", "c"} {
			b.cast.play(id, answer)
		}
		m := b.machine(def{who: []string{fn("a"), fn("b"), fn("c"), human("human"), half}, top: `"guards":{"limits":{"max_steps":12}},"solicit":` + []string{`"all"`, `"eager"`, `"sequential"`}[seed%3]})
		for range 40 {
			s := b.start(m, runner.StartOptions{Meta: []byte(`{"z":1,"a":[2]}`), Seed: seed})
			for range 12 {
				who, what := []string{"a", "b", "c", "human"}[rng.IntN(4)], []string{"again", "park", "back", "finish"}[rng.IntN(4)]
				switch rng.IntN(6) {
				case 0:
					b.r.Propose(b.ctx, runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: machine.SpecialistID(who), TransitionName: what})
				case 1:
					b.r.Decide(b.ctx, runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: machine.SpecialistID(who), TransitionName: what})
				case 2:
					b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{RetryFailed: rng.IntN(2) == 0})
				default:
					b.step(s)
				}
			}
		}
		records, err := b.r.Decisions(b.ctx, "desk", "", 0)
		b.ok(err)
		for _, d := range records {
			if d.Kind != "consensus" {
				continue
			}
			again++
			if got := redecide(t, m, d); got != d.WinningProposalID+": "+d.ArbiterReasoning {
				t.Fatalf("seed %d: decided again, %s; recorded is %s: %s", seed, got, d.WinningProposalID, d.ArbiterReasoning)
			}
		}
	}
	if again < 500 {
		t.Errorf("only %d decisions were made again", again)
	}
}

// redecide decides a recorded round again, from the record alone.
func redecide(t *testing.T, m *machine.Machine, d *session.DecisionRecord) string {
	t.Helper()
	round := &arbiter.Round{Machine: m, State: m.State(d.FromState), Threshold: &d.Threshold}
	var ids []string
	for i, p := range d.Proposals {
		var v struct {
			ProposalID, SpecialistID, TransitionName string
			IsHuman                                  bool
			Arrival                                  int32
		}
		if err := json.Unmarshal(p, &v); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, v.ProposalID)
		round.Votes = append(round.Votes, arbiter.Vote{Rank: int32(i), Weight: d.AlignmentSnapshot[v.SpecialistID],
			Proposal: &specialist.Proposal{SpecialistID: v.SpecialistID, IsHuman: v.IsHuman, Arrival: v.Arrival, Transition: round.State.Transition(v.TransitionName)}})
	}
	decided, err := strategies.AlignmentMargin{}.Decide(context.Background(), round)
	if err != nil || !decided.Consensus() {
		t.Fatalf("decided again, there is no consensus: %s (%v)", decided.Reasoning(), err)
	}
	return ids[decided.Winner] + ": " + decided.Reasoning()
}

// follows checks a log as it is stored: links, hashes, sequence, meaning, and the
// head that the session's row names.
func follows(t *testing.T, s *session.Session, records []session.StoredRecord, head session.Hash) error {
	t.Helper()
	f := folderOf(t, s.Machine())
	f.Definition = func(string) ([]byte, error) { return nil, errors.New("no such definition") }
	var prev session.Hash
	for _, rec := range records {
		if rec.Prev != prev || rec.Hash != session.Chain(prev, s.ID.String(), rec.Events) {
			return fmt.Errorf("the record at %d does not follow", rec.First)
		}
		if _, err := f.Add(rec.Events); err != nil {
			return err
		}
		prev = rec.Hash
	}
	if prev != head {
		return errors.New("the log ends elsewhere")
	}
	return nil
}

// TestTampering alters a log in every way: no altered log passes for the one that
// was written, hashes recomputed or not.
func TestTampering(t *testing.T) {
	b := newBench(t)
	s := b.start(b.course(arbFn("judge")))
	b.ok(b.drive(s.ID))
	records := b.records(s)
	head := records[len(records)-1].Hash
	if err := follows(t, s, records, head); err != nil {
		t.Fatalf("the log as written: %v", err)
	}
	altered := func(change func([]session.StoredRecord) []session.StoredRecord) error {
		var own []session.StoredRecord
		for _, r := range records {
			r.Events = bytes.Clone(r.Events)
			own = append(own, r)
		}
		return follows(t, s, change(own), head)
	}
	for i := range records {
		for at := i % 17; at < len(records[i].Events); at += 17 {
			if altered(func(r []session.StoredRecord) []session.StoredRecord { r[i].Events[at] ^= 1; return r }) == nil {
				t.Fatalf("byte %d of record %d was flipped unseen", at, i)
			}
		}
		for name, change := range map[string]func([]session.StoredRecord) []session.StoredRecord{
			"cut from here": func(r []session.StoredRecord) []session.StoredRecord { return r[:i] },
			"removed":       func(r []session.StoredRecord) []session.StoredRecord { return slices.Delete(r, i, i+1) },
			"doubled":       func(r []session.StoredRecord) []session.StoredRecord { return slices.Insert(r, i, r[i]) },
			"removed, chained anew": func(r []session.StoredRecord) []session.StoredRecord {
				return chained(s, slices.Delete(r, i, i+1))
			},
			"altered, chained anew": func(r []session.StoredRecord) []session.StoredRecord {
				r[i].Events = bytes.Replace(r[i].Events, []byte(`"at":"2026`), []byte(`"at":"2025`), 1)
				return chained(s, r)
			},
		} {
			if altered(change) == nil {
				t.Errorf("record %d: %s, unseen", i, name)
			}
		}
	}
	if session.Chain(session.Hash{}, "one", []byte("x")) == session.Chain(session.Hash{}, "other", []byte("x")) {
		t.Error("a record fits into another session's log")
	}
}

func chained(s *session.Session, records []session.StoredRecord) []session.StoredRecord {
	var prev session.Hash
	for i := range records {
		records[i].Prev, records[i].Hash = prev, session.Chain(prev, s.ID.String(), records[i].Events)
		prev = records[i].Hash
	}
	return records
}

// TestSpendIsKept keeps the cost of failed and repeated asks: each is
// charged once, whatever happens after.
func TestSpendIsKept(t *testing.T) {
	b := newBench(t)
	s := b.start(b.course(arbFn("judge")))
	b.ok(b.drive(s.ID))
	want := b.now(s).Spent()
	all := b.records(s)
	for n := 1; n <= len(all); n++ {
		copied := copyOf(t, s, all[:n])
		again := newBench(t, func(c *runner.Config) { c.Store = copied })
		again.course(arbFn("judge"))
		b.ok(again.drive(s.ID))
		if got := again.now(s).Spent(); got != want {
			t.Errorf("resumed after %d records, spent were %+v, want %+v", n, got, want)
		}
	}
}
