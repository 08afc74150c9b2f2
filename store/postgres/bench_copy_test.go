package postgres_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/postgres"
)

// agreeing is a machine of three proposers, who agree, and goes on and on.
const agreeing = `{"machineName": "agreeing", "initialState": "open", "goalState": "done", "states": {"open": {"transitions": {"again": "open", "finish": "done"}}, "done": {}},
	"specialists": [{"role": "proposer", "specialistId": "one", "strategyFnName": "firstAvailable"}, {"role": "proposer", "specialistId": "two", "strategyFnName": "firstAvailable"},
		{"role": "proposer", "specialistId": "three", "strategyFnName": "firstAvailable"}, {"role": "arbiter", "specialistId": "judge", "strategyFn": "= leader"}]}`

// stepFile makes a file of so many sessions, each of which has been stepped so many times.
func stepFile(b *testing.B, sessions, steps int) *store.SQLite {
	b.Helper()
	s, err := store.OpenSQLite(b.Context(), filepath.Join(b.TempDir(), "dialai.db"), store.SQLiteOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	r, err := runner.New(runner.Config{Store: s})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	m, err := machine.Parse("agreeing.json", []byte(agreeing), runner.Checks())
	if err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	for n := range 64 {
		wg.Go(func() {
			for i := n; i < sessions; i += 64 {
				is, err := r.Start(b.Context(), m, runner.StartOptions{})
				for range steps {
					if err == nil {
						_, err = r.Step(b.Context(), is.ID)
					}
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return s
}

// BenchmarkCopy compares copying a file of 2,000 sessions with 20 transitions each to a database, until all rows are there (x-rows)
// and until the copy is rebuilt, verified and compared (x-copy), with writing the same rows of the log to the same table by COPY alone.
func BenchmarkCopy(b *testing.B) {
	sessions, steps := 2000, 20
	if testing.Short() {
		sessions, steps = 20, 3
	}
	file, server := stepFile(b, sessions, steps), pgtest.Start(b, true)
	var whole, read, copies, raws []float64
	phases := map[string][]float64{}
	for b.Loop() {
		address := server.Database(b)
		to, err := postgres.Open(b.Context(), address, postgres.Options{Copy: true})
		if err != nil {
			b.Fatal(err)
		}
		began, phase := time.Now(), "copying"
		since := began
		done, err := store.CopyStore(b.Context(), file, to, store.CopyOptions{Programs: session.NewPrograms(), Told: func(step string, _, _ int64) {
			if step != phase {
				phases[phase] = append(phases[phase], time.Since(since).Seconds())
				since, phase = time.Now(), step
			}
		}})
		took := time.Since(began).Seconds()
		if err != nil || done.Records < int64(sessions*steps) {
			b.Fatal(done, err)
		}
		if err := to.Close(); err != nil {
			b.Fatal(err)
		}
		raw := rawCopy(b, address, server.Database(b))
		whole, read = append(whole, raw/took), append(read, raw/phases["copying"][len(read)])
		copies, raws = append(copies, float64(done.Records)/took), append(raws, float64(done.Records)/raw)
	}
	b.ReportMetric(middle(read), "x-rows")
	b.ReportMetric(middle(whole), "x-copy")
	b.ReportMetric(middle(copies), "rows/s")
	b.ReportMetric(middle(raws), "raw-rows/s")
	for phase, list := range phases {
		b.ReportMetric(middle(list), fmt.Sprint("s-", phase))
	}
}

// rawCopy writes the rows of the log of a store to another, empty one by COPY, in one transaction, and returns how many seconds that took.
func rawCopy(b *testing.B, from, to string) float64 {
	b.Helper()
	open(b, to, postgres.Options{}) // it is made
	columns := []string{"place", "session", "first", "decides", "at", "events", "hash"}
	read, _ := connect(b, from).Query(b.Context(), `SELECT place, session, first, decides, at, events, hash FROM dialai.log ORDER BY place`) // the error comes with the rows
	rows, err := pgx.CollectRows(read, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
	if err != nil {
		b.Fatal(err)
	}
	conn := connect(b, to)
	began := time.Now()
	if _, err := conn.CopyFrom(b.Context(), pgx.Identifier{"dialai", "log"}, columns, pgx.CopyFromRows(rows)); err != nil {
		b.Fatal(err)
	}
	return time.Since(began).Seconds()
}
