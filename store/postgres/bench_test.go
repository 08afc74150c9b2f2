package postgres_test

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/postgres"
)

// spent reports what CPU the process has used for each operation since spent was called.
func spent(b *testing.B) (report func()) {
	cpu := func() int64 {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return u.Utime.Nano() + u.Stime.Nano()
	}
	before := cpu()
	return func() { b.ReportMetric(float64(cpu()-before)/1000/float64(b.N), "client-µs/op") }
}

// BenchmarkCommit compares commits of sessions, all at once, with the same rows written by the library
// alone over one connection: one transaction for one session, or one for 64 of them, which is what they cost
// at best.
func BenchmarkCommit(b *testing.B) {
	for _, sessions := range []int{1, 64} {
		b.Run(fmt.Sprint("sessions=", sessions), func(b *testing.B) {
			address := pgtest.Start(b, true).Database(b)
			s, m := open(b, address, postgres.Options{}), parse(b)
			var writers []*writer
			for range sessions {
				writers = append(writers, begin(b, m, s))
			}
			b.ResetTimer()
			report := spent(b)
			var wg sync.WaitGroup
			for i, w := range writers {
				wg.Go(func() {
					for n := i; n < b.N; n += sessions {
						if err := w.commit(b.Context()); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			report()
		})
		b.Run(fmt.Sprint("raw=", sessions), func(b *testing.B) {
			address := pgtest.Start(b, true).Database(b)
			s, m := open(b, address, postgres.Options{}), parse(b)
			for range sessions {
				begin(b, m, s)
			}
			conn := connect(b, address)
			events := make([]byte, 150)
			b.ResetTimer()
			report := spent(b)
			for n := 0; n < b.N; n += sessions {
				var batch pgx.Batch
				for id := 1; id <= min(sessions, b.N-n); id++ {
					batch.Queue(`WITH u AS (UPDATE dialai.sessions SET sequence=$2, updated_at=$3, ended_at=$3 WHERE id=$6 RETURNING id)
						INSERT INTO dialai.log (session, first, at, events, hash) SELECT id, $1, $3, $4, $5 FROM u`, 1000+n, 1000+n, n, events, events[:32], id)
				}
				if err := conn.SendBatch(b.Context(), &batch).Close(); err != nil {
					b.Fatal(err)
				}
			}
			report()
		})
	}
}

// BenchmarkClaim claims 64 sessions of 100 machines, and gives them back, in turns where 1,000 wait and where 100,000
// do, nine of ten of one machine. Either database has been vacuumed, as one is that has been used for a while.
func BenchmarkClaim(b *testing.B) {
	counts := []int{1000, 100_000}
	if testing.Short() {
		counts = []int{100, 1000}
	}
	server := pgtest.Start(b, true)
	var workers []session.Worker
	for _, waiting := range counts {
		address := server.Database(b)
		s := open(b, address, postgres.Options{})
		begin(b, parse(b), s)
		exec(b, address, fmt.Sprintf(`DELETE FROM dialai.work;
			INSERT INTO dialai.machines (machine_name) SELECT 'machine ' || n FROM generate_series(1, 99) n;
			INSERT INTO dialai.sessions (session_id, machine, definition, created_at, started_by, status, code, reason, reviews, subject, due_at, timer_at, current_state,
				round, attempt, sequence, transitions, updated_at, calls, input_tokens, output_tokens, cost_pico_usd, head)
			SELECT gen_random_uuid(), CASE WHEN n%%10=0 THEN 1+n/10%%99 ELSE 100 END, definition, created_at, started_by, status, code, reason, reviews, subject, due_at, timer_at, current_state,
				round, attempt, sequence, transitions, updated_at, calls, input_tokens, output_tokens, cost_pico_usd, head FROM dialai.sessions, generate_series(1, %d) n;
			INSERT INTO dialai.work (session, lane, ready_at) SELECT id, machine, now()-interval '1 ms'*id FROM dialai.sessions WHERE id>1`, waiting))
		exec(b, address, `VACUUM ANALYZE`)
		workers = append(workers, join(b, s))
	}
	var took [2][]float64
	for b.Loop() {
		for i, w := range workers {
			began := time.Now()
			leases := claim(b, w, 64)
			took[i] = append(took[i], float64(time.Since(began))/1e3)
			if len(leases) != 64 {
				b.Fatalf("%d sessions were claimed", len(leases))
			}
			releases := make([]session.Release, len(leases))
			for i, l := range leases {
				releases[i] = session.Release{Session: l.Session, Sequence: l.Sequence}
			}
			if err := w.Release(b.Context(), releases...); err != nil {
				b.Fatal(err)
			}
		}
	}
	few, many := middle(took[0]), middle(took[1])
	b.ReportMetric(few, "µs/few")
	b.ReportMetric(many, "µs/many")
	b.ReportMetric(many/few, "x-few")
}

// BenchmarkStep steps 64 sessions at once, without leases, where each commit writes to the row in work as
// well, and with them; and how many bytes of tables and indexes a transition takes, and of the write-ahead log.
func BenchmarkStep(b *testing.B) {
	address := pgtest.Start(b, true).Database(b)
	s, m := open(b, address, postgres.Options{}), parse(b)
	r, err := runner.New(runner.Config{Store: s})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	const sessions = 64
	var ids []specialist.SessionID
	for range sessions {
		started, err := r.Start(b.Context(), m, runner.StartOptions{})
		if err != nil {
			b.Fatal(err)
		}
		ids = append(ids, started.ID)
	}
	for _, leased := range []bool{false, true} {
		b.Run(fmt.Sprint("leased=", leased), func(b *testing.B) {
			if leased {
				if got := claim(b, join(b, s), sessions); len(got) != sessions {
					b.Fatalf("%d sessions are leased", len(got))
				}
			}
			size := func() int64 {
				return ask[int64](b, address, `SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c WHERE c.relnamespace='dialai'::regnamespace AND c.relkind='r'`)
			}
			const wal = `SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint`
			before, written, report := size(), ask[int64](b, address, wal), spent(b)
			defer func() {
				report()
				b.ReportMetric(float64(ask[int64](b, address, wal)-written)/float64(b.N), "wal-B/op")
				b.ReportMetric(float64(size()-before)/float64(b.N), "stored-B/op")
			}()
			var wg sync.WaitGroup
			for i, id := range ids {
				wg.Go(func() {
					for n := i; n < b.N; n += sessions {
						if tick, err := r.Step(b.Context(), id); err != nil || tick.Status != runner.TickAdvanced {
							b.Errorf("a step has come to %v (%v)", tick, err)
							return
						}
					}
				})
			}
			wg.Wait()
		})
	}
}
