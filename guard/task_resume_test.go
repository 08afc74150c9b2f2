package guard_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/verdict"
)

// twice is a step with one call that may be made twice.
const twice = `{"tool_calls":{"blast_radius":{"write":2},"tools":{"write":{"poll":true}}}}`

func step(args string) guard.CheckInput {
	return guard.CheckInput{TaskID: "t", ToolCalls: []verdict.ToolCall{{Name: "write", Args: json.RawMessage(args)}}}
}

func loggedCall(v string, executed bool, args string) guard.LogRecord {
	return guard.LogRecord{
		Type: guard.LogCheck, TaskID: "t", TS: json.RawMessage(`"2026-01-02T03:04:05Z"`), Verdict: v, Meta: &guard.LogMeta{Executed: executed},
		Input: &guard.LogInput{ToolCalls: []guard.LogCall{{Name: "write", Args: json.RawMessage(args)}}, TokensIn: 7},
	}
}

// TestTake: a guard that has taken in a log judges as the one that wrote it.
func TestTake(t *testing.T) {
	g := guardOf(t, twice)
	for _, rec := range []guard.LogRecord{
		loggedCall("ok", false, `1`),
		loggedCall("abort", false, `2`), // was not executed
		loggedCall("escalate", true, `3`),
		{Type: guard.LogConfig, TaskID: "t"},
		{Type: guard.LogReserve, TaskID: "t", Input: &guard.LogInput{ToolCalls: []guard.LogCall{{Name: "write"}}}},
	} {
		if err := g.Take(rec); err != nil {
			t.Fatal(err)
		}
	}
	if s := g.State("t"); s.Steps != 2 || s.Spent.TokensIn != 21 {
		t.Errorf("%d steps, %d tokens; want 2 and 21", s.Steps, s.Spent.TokensIn)
	}
	if v, _, _ := g.Check(step(`4`)); v.Status != verdict.Abort {
		t.Errorf("a third call is %v", v)
	}
	if err := g.Take(loggedCall("ok", false, `{"a":`)); !errors.Is(err, verdict.ErrInput) {
		t.Errorf("what cannot be read is %v", err)
	}
}

// TestAllow: a step that somebody allowed counts, once it is committed, and keeps others out
// until then.
func TestAllow(t *testing.T) {
	g := guardOf(t, twice)
	token, err := g.Allow(step(`1`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Allow(step(`1`)); !errors.Is(err, guard.ErrBusy) {
		t.Errorf("beside it %v", err)
	}
	token.Commit()
	if s := g.State("t"); s.Steps != 1 {
		t.Errorf("%d steps", s.Steps)
	}
	if _, err := g.Allow(guard.CheckInput{}); !errors.Is(err, verdict.ErrInput) {
		t.Errorf("without a task %v", err)
	}
}

// TestCommitResults: what a call gave tells a loop from progress.
func TestCommitResults(t *testing.T) {
	for _, c := range []struct {
		gave string
		want verdict.Status
	}{{`"same"`, verdict.Abort}, {`"other"`, verdict.OK}} {
		g := guardOf(t, twice)
		_, token, err := g.Begin(t.Context(), step(`1`))
		if err != nil {
			t.Fatal(err)
		}
		token.Commit(json.RawMessage(`"same"`))
		again := step(`1`)
		again.ToolCalls[0].Result = json.RawMessage(c.gave)
		if v, _, err := g.DryRun(again); v.Status != c.want || err != nil {
			t.Errorf("after the same, %s is %v, %v", c.gave, v, err)
		}
	}
}

func guardOf(t *testing.T, section string) *guard.Guard {
	t.Helper()
	c, problems := guard.ParseAs([]byte(section), guard.Strict)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	g, err := guard.New(c, guard.WithClock(func() time.Time { return time.Unix(1_800_000_000, 0) }))
	if err != nil {
		t.Fatal(err)
	}
	return g
}
