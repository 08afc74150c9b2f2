package postgres_test

import (
	"context"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/postgres"
)

// differing is a machine whose sessions have two proposals that differ, and wait.
const differing = `{"machineName": "asking", "initialState": "open", "goalState": "done", "states": {"open": {"transitions": {"pay": "done", "refuse": "done"}}, "done": {}},
	"specialists": [{"role": "proposer", "specialistId": "carol", "isHuman": true}, {"role": "proposer", "specialistId": "first", "strategyFnName": "firstAvailable"},
		{"role": "proposer", "specialistId": "last", "strategyFnName": "lastAvailable"}, {"role": "arbiter", "specialistId": "judge", "strategyFnName": "alignmentMargin", "threshold": 0.5}]}`

// BenchmarkInbox measures a page of 50 questions among as many waiting sessions as DIALAI_BENCH_WAITING says (20,000),
// in turns with the query of 50 rows by their key that is the least it takes (x-keyset), by a process that knows these
// sessions, and by one that has just begun (fresh). But for the first 100 the sessions are rows alone, by SQL.
func BenchmarkInbox(b *testing.B) {
	waiting, err := strconv.Atoi(os.Getenv("DIALAI_BENCH_WAITING"))
	if err != nil {
		waiting = 20_000
	}
	if testing.Short() {
		waiting = 200
	}
	address := pgtest.Start(b, false).Database(b)
	crowd(b, address, waiting)
	ctx := context.Background()
	conn := connect(b, address)
	keyset := func() float64 {
		t0 := time.Now()
		rows, err := conn.Query(ctx, `SELECT session_id, status, current_state, code, reason, subject, since, due_at FROM dialai.sessions WHERE status=1 AND (since, id)>(0, 0) ORDER BY since, id LIMIT 50`)
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for rows.Next() {
			if _, err := rows.Values(); err != nil {
				b.Fatal(err)
			}
			n++
		}
		if rows.Close(); n != 50 {
			b.Fatal(n, rows.Err())
		}
		return float64(time.Since(t0))
	}
	s, r := benchRunner(b, address)
	defer s.Close()
	for name, fresh := range map[string]bool{"known": false, "fresh": true} {
		b.Run(name, func(b *testing.B) {
			var pages, least []float64
			for b.Loop() {
				s, r := s, r
				if fresh {
					s, r = benchRunner(b, address)
				}
				if _, err := s.Book(ctx, "asking"); err != nil { // it is connected
					b.Fatal(err)
				}
				t0 := time.Now()
				items, _, err := r.Inbox(ctx, session.ListQuery{Limit: 50}, "carol")
				if pages = append(pages, float64(time.Since(t0))); err != nil || len(items) != 50 {
					b.Fatal(len(items), err)
				}
				if least = append(least, keyset()); fresh {
					s.Close()
				}
			}
			b.ReportMetric(middle(pages)/1e6, "ms-page")
			b.ReportMetric(middle(pages)/middle(least), "x-keyset")
		})
	}
}

func benchRunner(b *testing.B, address string) (*postgres.Store, *runner.Runner) {
	s, err := postgres.Open(context.Background(), address, postgres.Options{})
	if err != nil {
		b.Fatal(err)
	}
	r, err := runner.New(runner.Config{Store: s})
	if err != nil {
		b.Fatal(err)
	}
	return s, r
}

// middle returns the median; it sorts the list.
func middle(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// crowd has 100 sessions wait, and makes rows of others that wait for less long.
func crowd(b *testing.B, address string, waiting int) {
	s, r := benchRunner(b, address)
	defer s.Close()
	m, err := machine.Parse("asking.json", []byte(differing), runner.Checks())
	if err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for range 10 {
				is, err := r.Start(b.Context(), m, runner.StartOptions{})
				if err == nil {
					_, err = r.Step(b.Context(), is.ID)
				}
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	conn := connect(b, address)
	if _, err := conn.Exec(b.Context(), `INSERT INTO dialai.sessions (session_id, machine, definition, created_at, started_by, status, code, reason, reviews, subject, due_at, timer_at, driver, since, current_state,
			round, attempt, sequence, transitions, updated_at, calls, input_tokens, output_tokens, cost_pico_usd, head)
		SELECT gen_random_uuid(), machine, definition, created_at, started_by, status, code, reason, reviews, subject, due_at, timer_at, driver, since + 3600000 + n, current_state,
			round, attempt, sequence, transitions, updated_at, calls, input_tokens, output_tokens, cost_pico_usd, head
		FROM (SELECT * FROM dialai.sessions ORDER BY id LIMIT 1) one, generate_series(101, $1) n`, waiting); err != nil {
		b.Fatal(err)
	}
	if _, err := conn.Exec(b.Context(), `ANALYZE dialai.sessions`); err != nil {
		b.Fatal(err)
	}
}
