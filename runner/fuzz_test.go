package runner_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// logs returns the logs of sessions that hold every kind of event, one record a
// line.
func logs(t testing.TB) (m *machine.Machine, logs [][]byte) {
	b := newBench(t, public, func(c *runner.Config) {
		c.Guards = []guard.Checker{reject("park", verdict.Retry, "house", "no"), reject("finish", verdict.Abort, "house", "never")}
	})
	m = b.machine(def{who: []string{web("w", estimated("0.5")), fn("a"), human("human"), arbWeb("judge")}})
	b.cast.judge("judge", electFirst)
	join := func(s *session.Session) {
		var lines [][]byte
		for _, rec := range b.records(s) {
			lines = append(lines, rec.Events)
		}
		logs = append(logs, bytes.Join(lines, []byte("\n")))
	}
	answers := []part{accepting, saying("again"), failing(errors.New("no")), saying("park"), saying("finish")}
	for _, answer := range answers {
		b.cast.play("w", answer)
		b.cast.play("a", func(context.Context, specialist.Question) (specialist.Answer, error) {
			return specialist.Answer{TransitionName: "again", Reasoning: "ü\u2028", MetaJSON: []byte(`{"n":[1.50,null]}`), Usage: given(dollar, 1, 2, 3), Model: "m",
				ToolCalls: []specialist.ToolCall{{Name: "t", Args: []byte(`{}`), ID: "1"}}}, nil
		})
		s := b.start(m, runner.StartOptions{Meta: []byte(`{"k":1}`), Seed: 7, Mode: machine.Sequential})
		for range 4 {
			b.step(s)
			b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{Actor: someone, Note: "on", RetryFailed: true})
		}
		round := b.now(s).Key().ID()
		b.r.Propose(b.ctx, runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "again"})
		b.r.Propose(b.ctx, runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "again"})
		b.r.Decide(b.ctx, runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "again"})
		b.r.Propose(b.ctx, runner.Submission{SessionID: s.ID, SpecialistID: "a", RoundID: round, TransitionName: "again", Usage: cost(dollar)})
		b.cast.judge("judge", electNone)
		b.step(s)
		join(s)
		b.cast.judge("judge", arbiter.Func(func(context.Context, *arbiter.Round) (arbiter.Decision, error) {
			return arbiter.Decision{}, errors.New("no")
		}))
		s = b.start(m)
		b.step(s)
		b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{RetryFailed: true})
		join(s)
		b.cast.judge("judge", electFirst)
	}
	return m, logs
}

// TestSeedsHoldEveryKind keeps the seeds of the fuzz test worth their name.
func TestSeedsHoldEveryKind(t *testing.T) {
	_, logs := logs(t)
	all := bytes.Join(logs, nil)
	for _, kind := range []string{session.KindCreated, session.KindRoundOpened, session.KindAsked, session.KindProposed, session.KindAskFailed, session.KindDiscarded, session.KindJudged,
		session.KindGated, session.KindExecuted, session.KindLearned, session.KindNeedsHuman, session.KindResumed, session.KindEnded} {
		if !bytes.Contains(all, []byte(`"kind":"`+kind+`"`)) {
			t.Errorf("no seed holds an event of kind %s", kind)
		}
	}
}

// fold reads a log, one record a line, and writes again what it read.
func fold(t *testing.T, m *machine.Machine, log []byte) (again []byte, s *session.Session, err error) {
	t.Helper()
	f := folderOf(t, m)
	f.Definition = func(digest string) ([]byte, error) { return nil, fmt.Errorf("no definition %q", digest) }
	f.Decision = func(*session.DecisionRecord) {}
	seq := int64(1)
	for i, rec := range bytes.Split(log, []byte("\n")) {
		before := f.Session().Key()
		events, err := f.Add(rec)
		if err != nil {
			return nil, nil, err
		}
		if i > 0 {
			again = append(again, '\n')
		}
		before.Session = f.Session().ID
		again = session.AppendEvents(again, before, seq, events)
		seq += int64(len(events))
	}
	return again, f.Session(), nil
}

// FuzzFolder reads logs as they might be found on a disk. Reading never panics,
// and a log that is accepted has one form: written again, it is accepted again,
// means the same, and comes out as the same bytes. Logs that this program wrote
// are in that form already.
func FuzzFolder(f *testing.F) {
	m, seeds := logs(f)
	for _, log := range seeds {
		f.Add(log)
	}
	f.Fuzz(func(t *testing.T, log []byte) {
		once, s, err := fold(t, m, log)
		if err != nil {
			return
		}
		view(t, s)
		twice, same, err := fold(t, m, once)
		if err != nil {
			t.Fatalf("accepted, written again and refused: %v\n%s\n%s", err, log, once)
		}
		if !bytes.Equal(once, twice) {
			t.Fatalf("written again, a log changes from\n%s\nto\n%s", once, twice)
		}
		compare(t, s, same)
	})
}

// TestFoldGivesTheSameBytes holds logs of this program to their bytes.
func TestFoldGivesTheSameBytes(t *testing.T) {
	m, logs := logs(t)
	for _, log := range logs {
		if again, _, err := fold(t, m, log); err != nil || !bytes.Equal(again, log) {
			t.Errorf("%v: written again, the log\n%s\nis\n%s", err, log, again)
		}
	}
}

// TestFolderRefuses reads logs that contradict themselves. An arrival out of all
// proportion once kept the reader busy for minutes, and an exemplar without its
// proposals was read but could not be written.
func TestFolderRefuses(t *testing.T) {
	m, logs := logs(t)
	for _, c := range []struct{ old, bad string }{
		{`"seq":3,`, `"seq":4,`},
		{`"kind":"session_created"`, `"kind":"round_opened"`},
		{`"kind":"asked"`, `"kind":"session_created"`},
		{`"kind":"asked"`, `"kind":"asket"`},
		{`"arrival":3,"mode":"submitted","replaces"`, `"arrival":2147483647,"mode":"submitted","replaces"`},
		{`"arrival":2,`, `"arrival":1,`},
		{`"proposals":[`, `"x":[`},
		{`"context":{`, `"x":{`},
		{`"transitionName":"again"`, `"transitionName":"back"`}, // of another state
		{`"state":"open"`, `"state":"nowhere"`},
		{`"status":"ok"`, `"status":"fine"`},
		{`"decision":"forced"`, `"decision":"free"`},
		{`"weights":[1,0]`, `"weights":[1]`},
		{`"seed":"7"`, `"seed":"-7"`},
		{`"mode":"webhook","askId"`, `"mode":"webhook","role":"0","askId"`},
		{m.Digest(), strings.Repeat("0", 64)},
	} {
		bad := bytes.Replace(logs[0], []byte(c.old), []byte(c.bad), 1)
		if bytes.Equal(bad, logs[0]) {
			t.Errorf("the log holds no %s", c.old)
		}
		if _, _, err := fold(t, m, bad); err == nil {
			t.Errorf("a log was read with %s for %s", c.bad, c.old)
		}
	}
}
