package postgres_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/store/postgres"
)

// BenchmarkCommit compares commits of sessions, all at once, with the same rows written by the library
// alone: one transaction each over one connection, which is what one session costs at best.
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
		})
	}
	b.Run("raw", func(b *testing.B) {
		address := pgtest.Start(b, true).Database(b)
		begin(b, parse(b), open(b, address, postgres.Options{}))
		conn := connect(b, address)
		events := make([]byte, 150)
		b.ResetTimer()
		for n := range b.N {
			var batch pgx.Batch
			batch.Queue(`WITH u AS (UPDATE dialai.sessions SET sequence=$2, updated_at=$3, ended_at=$3 WHERE id=1 RETURNING id)
				INSERT INTO dialai.log (session, first, at, events, hash) SELECT id, $1, $3, $4, $5 FROM u`, 1000+n, 1000+n, n, events, events[:32])
			if err := conn.SendBatch(b.Context(), &batch).Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
