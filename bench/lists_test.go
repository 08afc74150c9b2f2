package bench_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
)

// waiting is how many sessions wait for a human.
const waiting = 10_000

// caseFile is a machine whose sessions are about something, and wait at once.
const caseFile = `{"machineName":"case","initialState":"open","goalState":"paid","subject":"= \"Claim of \" + data.name",
	"states":{"open":{"prompt":"Pay?","transitions":{"pay":"paid","refuse":"paid"}},"paid":{}},
	"specialists":[{"role":"proposer","specialistId":"carol","isHuman":true},{"role":"arbiter","specialistId":"judge","strategyFnName":"firstProposal"}]}`

func caseMachine(tb testing.TB) *machine.Machine {
	m, err := machine.Parse("case.json", []byte(caseFile), runner.Checks())
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// waits starts a session and lets it wait.
func waits(tb testing.TB, r *runner.Runner, m *machine.Machine, meta string) *session.Session {
	ctx := context.Background()
	s, err := r.Start(ctx, m, runner.StartOptions{Meta: []byte(meta)})
	if err == nil {
		_, err = r.Step(ctx, s.ID)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// BenchmarkInboxPage compares a page of 50 questions with a page of 50 sessions, both
// among 10,000 sessions that wait: the first page, one in the middle, and those of one
// decider; from a store that this process has just opened, and from one that it works with.
// x-sessions is the ratio to a list of a store as new, x-known to one of a store that is
// worked with.
func BenchmarkInboxPage(b *testing.B) {
	path := filepath.Join(b.TempDir(), "dialai.db")
	crowd(b, path)
	status := []session.Status{session.NeedsHuman}
	middle := session.ListQuery{Limit: 50, Statuses: status}
	for _, c := range []struct {
		name  string
		query session.ListQuery
	}{{"first", middle}, {"middle", middle}, {"decider", session.ListQuery{Limit: 50, Statuses: status, Decider: "carol"}}} {
		for _, fresh := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/fresh=%t", c.name, fresh), func(b *testing.B) { inboxPage(b, path, c.query, c.name == "middle", fresh) })
		}
	}
}

func crowd(b *testing.B, path string) {
	s, err := store.OpenSQLite(context.Background(), path, store.SQLiteOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	m := caseMachine(b)
	r := engine(b, s, loop(b, 1, 0))
	var wg sync.WaitGroup
	for part := range 50 {
		wg.Go(func() {
			for i := range waiting / 50 {
				waits(b, r, m, fmt.Sprintf(`{"name":"%d-%d"}`, part, i))
			}
		})
	}
	wg.Wait()
}

func inboxPage(b *testing.B, path string, q session.ListQuery, middle, fresh bool) {
	ctx := context.Background()
	open := func() (*store.SQLite, *runner.Runner) {
		s, err := store.OpenSQLite(ctx, path, store.SQLiteOptions{})
		if err != nil {
			b.Fatal(err)
		}
		return s, engine(b, s, loop(b, 1, 0))
	}
	s, r := open()
	defer s.Close()
	if middle {
		list, err := r.Sessions(ctx, session.ListQuery{Limit: waiting / 2, Statuses: q.Statuses})
		if err != nil {
			b.Fatal(err)
		}
		q.After = q.CursorAfter(list[len(list)-1].SessionID, 0)
	}
	full := func(n int, err error) {
		if err != nil || n != 50 {
			b.Fatal(n, err)
		}
	}
	sessions := func(r *runner.Runner) {
		list, err := r.Sessions(ctx, q)
		full(len(list), err)
	}
	page := func(r *runner.Runner) {
		items, _, err := r.Inbox(ctx, q, "")
		full(len(items), err)
	}
	took := func(fresh bool, read func(*runner.Runner)) float64 {
		r := r
		if fresh {
			var s *store.SQLite
			s, r = open()
			defer s.Close()
		}
		t0 := time.Now()
		read(r)
		return float64(time.Since(t0))
	}
	var pages, alike, lists []float64
	for b.Loop() {
		pages = append(pages, took(fresh, page))
		alike = append(alike, took(fresh, sessions))
		lists = append(lists, took(false, sessions))
	}
	b.ReportMetric(median(pages)/median(alike), "x-sessions")
	b.ReportMetric(median(pages)/median(lists), "x-known")
	b.ReportMetric(median(pages)/1e6, "ms-page")
}

// BenchmarkQuestion measures how long the question of a session takes that is about 4 KiB
// of data, and was loaded before.
func BenchmarkQuestion(b *testing.B) {
	m := caseMachine(b)
	r := engine(b, store.NewMemory(), loop(b, 1, 0))
	s := waits(b, r, m, `{"name":"`+strings.Repeat("x", 1<<10)+`","lines":[`+strings.Repeat(`{"article":"a","number":1,"price":2.5},`, 80)+`0]}`)
	ctx := context.Background()
	now, err := r.Session(ctx, s.ID)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Question(ctx, now, "carol"); err != nil {
			b.Fatal(err)
		}
	}
}
