package runner_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/report"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
)

// spentOn returns what was spent on a machine, as it is followed and as another process reads it.
func (b *bench) spentOn(q report.SpendQuery) (lines []string) {
	b.Helper()
	list, err := report.SpentOf(b.ctx, b.r, "desk", q)
	b.ok(err)
	again, err := report.SpentOf(b.ctx, b.runner(), "desk", q)
	b.ok(err)
	line := func(s report.Spent) string {
		text := fmt.Sprintf("%s %s %s: %d calls, %d/%d tokens, $%s, %d estimated, %d unpriced", s.Day, s.SpecialistID, s.Model, s.Calls, s.NumInputTokens, s.NumOutputTokens, s.CostUSD, s.Estimated, s.Unpriced)
		if g := s.Guards; g != nil {
			text += fmt.Sprintf(", guards %d calls, $%s", g.Calls, g.CostUSD)
		}
		return text
	}
	for i := range list {
		lines = append(lines, line(list[i]))
		if i >= len(again) || len(list) != len(again) || line(again[i]) != lines[i] {
			b.Errorf("followed it is\n%+v\nread at once\n%+v", list, again)
		}
	}
	return lines
}

// TestSpentOf: what an answer says is charged to whom, what model and what day, an estimate until
// then; the correction counts on its own day, and what a fork began with was spent elsewhere.
func TestSpentOf(t *testing.T) {
	late := time.Duration(0)
	b := newBench(t, public, func(c *runner.Config) {
		now := c.Now
		c.Now = func() time.Time { return now().Add(late) }
	})
	b.cast.play("w", accepting)
	b.cast.play("m", spending("again", specialist.Usage{NumInputTokens: 100, NumOutputTokens: 7, Given: specialist.InputGiven | specialist.OutputGiven}, "gpt"))
	s := b.start(b.desk(web("w", estimated("0.5")), fn("m"), human("human"), half))
	b.stepTo(s, runner.TickWaiting)
	ask := b.cast.lastAsk()
	b.force(s, "again") // nobody waits for w any more
	want := []string{" m : 1 calls, 100/7 tokens, $0, 0 estimated, 1 unpriced", " w : 1 calls, 0/0 tokens, $0.5, 1 estimated, 0 unpriced"}
	if got := b.spentOn(report.SpendQuery{}); !slices.Equal(got, want) {
		t.Errorf("it is %q, want %q", got, want)
	}
	late = 48 * time.Hour
	if _, err := b.callback(ask, ask.CallbackToken, specialist.Answer{TransitionName: "park", Usage: specialist.Usage{}.WithCost(dollar / 8), Model: "claude"}); err == nil {
		t.Fatal("a late answer is taken")
	}
	for by, want := range map[string][]string{
		"":      {" m : 1 calls, 100/7 tokens, $0, 0 estimated, 1 unpriced", " w : 1 calls, 0/0 tokens, $0.125, 1 estimated, 0 unpriced"},
		"model": {"  : 0 calls, 0/0 tokens, $0, 1 estimated, 0 unpriced", "  claude: 1 calls, 0/0 tokens, $0.125, 0 estimated, 0 unpriced", "  gpt: 1 calls, 100/7 tokens, $0, 0 estimated, 1 unpriced"},
		"day":   {"2026-01-02  : 2 calls, 100/7 tokens, $0.5, 1 estimated, 1 unpriced", "2026-01-04  : 0 calls, 0/0 tokens, $-0.375, 0 estimated, 0 unpriced"},
		"total": {"  : 2 calls, 100/7 tokens, $0.125, 1 estimated, 1 unpriced"},
	} {
		if got := b.spentOn(report.SpendQuery{By: by}); !slices.Equal(got, want) {
			t.Errorf("by %q it is\n%q, want\n%q", by, got, want)
		}
	}
	if got := b.spentOn(report.SpendQuery{Since: "2026-01-03", Until: "2026-01-04", By: "total"}); got[0] != "  : 0 calls, 0/0 tokens, $-0.375, 0 estimated, 0 unpriced" {
		t.Errorf("of two days it is %q", got)
	}
	if got := b.spentOn(report.SpendQuery{Until: "2026-01-01"}); len(got) != 0 {
		t.Errorf("before anything it is %q", got)
	}
	before := b.spentOn(report.SpendQuery{By: "total"})
	if f := b.fork(s, b.now(s).Sequence); b.now(f).Spent().Money == 0 {
		t.Fatal("the fork begins with nothing")
	}
	if got := b.spentOn(report.SpendQuery{By: "total"}); !slices.Equal(got, before) {
		t.Errorf("a fork makes %q of %q", got, before)
	}
	for _, q := range []report.SpendQuery{{By: "state"}, {By: "day,day"}, {By: "total,day"}, {Since: "yesterday"}, {Until: "2026-13-01"}} {
		if _, err := report.SpentOf(b.ctx, b.r, "desk", q); err == nil {
			t.Errorf("%+v is answered", q)
		}
	}
	if _, err := report.SpentOf(b.ctx, b.r, "nothing", report.SpendQuery{}); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("of no machine: %v", err)
	}
}

// TestSpentOfGuards: what guards ask of models is theirs.
func TestSpentOfGuards(t *testing.T) {
	o := &oracle{}
	b := newBench(t, o.with)
	s := b.probed("")
	b.stepTo(s, runner.TickAdvanced)
	spent := b.now(s).Spent()
	got := b.spentOn(report.SpendQuery{By: "specialist,model"})
	want := fmt.Sprintf(" %s m: %d calls", session.TruthID, probes)
	if !slices.ContainsFunc(got, func(line string) bool {
		return strings.HasPrefix(line, want) && strings.Contains(line, fmt.Sprintf(", guards %d calls", probes))
	}) || spent.Calls != probes {
		t.Errorf("it is %q, and the session has spent %+v", got, spent)
	}
}

// TestSpentGoesOn: however the requests fall between the steps of many sessions, also on a file
// and where a read fails halfway, the sum is what the sessions say.
func TestSpentGoesOn(t *testing.T) {
	file, err := store.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "dialai.db"), store.SQLiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	fails := 0
	b := newBench(t, func(c *runner.Config) { c.Store = halting{file, &fails} })
	b.cast.play("w", spending("again", cost(dollar/3), ""))
	m := b.desk(web("w", estimated("1")), human("human"), half)
	var sessions []*session.Session
	for i := range 6 {
		sessions = append(sessions, b.start(m))
		for j := range i + 1 {
			b.stepTo(sessions[j], runner.TickAdvanced)
		}
		if i == 3 {
			fails = 2
			for range 2 {
				if _, err := b.r.Tally(b.ctx, "desk"); err == nil {
					t.Error("a log that cannot be read is passed over")
				}
			}
		}
		tally, err := b.r.Tally(b.ctx, "desk")
		b.ok(err)
		var sum, want spend.Book
		for _, book := range tally.Spent {
			sum = sum.Plus(book)
		}
		for _, s := range sessions {
			want = want.Plus(b.now(s).Spent())
		}
		if sum != want || want.Money != exact.Money((i+1)*(i+2)/2)*(dollar/3) {
			t.Errorf("after %d sessions the sum is %+v, want %+v", i+1, sum, want)
		}
	}
	if tally, err := b.r.Tally(b.ctx, "nothing"); err != nil || len(tally.Spent) != 0 {
		t.Errorf("of no machine: %v, %v", tally, err)
	}
}
