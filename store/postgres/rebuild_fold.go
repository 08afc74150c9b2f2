package postgres

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/internal/projection"
)

// How a rebuild folds logs: to read a log and to fold it is almost all of its work, and sessions do not depend on each other, so
// there are as many readers as processors, up to a few, each with a connection and a snapshot of its own. Nobody else writes
// meanwhile, and what the rebuild has written they do not see, so all of them see the same.
//
// They take the sessions of a page in their order. After one has failed none is begun any more; all before it have been, so
// which error is returned does not depend on who is faster.

// mostReaders is how many there are at most: connections are the server's.
const mostReaders = 4

// A logReader reads logs and folds them. It is for one goroutine.
type logReader struct {
	audit
	conn        *pgx.Conn
	machines    map[string]int    // machines.id; shared, and not changed
	definitions map[string][]byte // the last that were used, by digest
}

// A folded is what the log of one session came to.
type folded struct {
	row      sessionRow
	undriven bool // nobody is to carry it on
	records  int64
	taught   []projection.Taught
	beside   []besideRow
	err      error // what is damaged; then there is nothing else
}

// connect opens the connections that read.
func (b *rebuild) connect(ctx context.Context) error {
	for range min(mostReaders, runtime.GOMAXPROCS(0)) {
		conn, err := b.s.connection(ctx)
		if err != nil {
			return err
		}
		r := &logReader{audit: audit{programs: b.programs}, conn: conn, machines: b.machines, definitions: map[string][]byte{}}
		b.readers = append(b.readers, r)
		if r.tx, err = conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}); err != nil {
			return err
		}
	}
	return nil
}

// hangUp closes them, which ends their transactions.
func (b *rebuild) hangUp(ctx context.Context) {
	for _, r := range b.readers {
		r.conn.Close(context.WithoutCancel(ctx))
	}
	b.readers = nil
}

// fold folds the logs of sessions, and returns what they came to in the same order, up to the first that is damaged.
func (b *rebuild) fold(ctx context.Context, rows []sessionRow) []folded {
	list := make([]folded, len(rows))
	var begun atomic.Int64
	var failed atomic.Bool
	var folding sync.WaitGroup
	for _, r := range b.readers {
		folding.Go(func() {
			for !failed.Load() {
				i := begun.Add(1) - 1
				if i >= int64(len(rows)) {
					return
				}
				if list[i] = r.session(ctx, &rows[i]); list[i].err != nil {
					failed.Store(true)
				}
			}
		})
	}
	folding.Wait()
	return list[:min(int(begun.Load()), len(list))]
}

// session folds the log of one session, as far as it has no record that is damaged.
func (r *logReader) session(ctx context.Context, row *sessionRow) folded {
	damaged := func(problem string) folded {
		return folded{err: &session.CorruptError{What: "the log of session " + row.ID, Problem: problem + "; run dialai store verify"}}
	}
	lacks := ""
	for {
		f := &session.Folder{Programs: r.programs, Definition: func(digest string) ([]byte, error) {
			if text := r.definitions[digest]; text != nil {
				return text, nil
			}
			lacks = digest
			return nil, &session.CorruptError{What: "definition " + digest, Problem: "it is not read yet"}
		}}
		lacks = ""
		is, head, problem := r.fold(ctx, f, row)
		switch {
		case is.err != nil:
			return is
		case lacks != "":
			if err := r.definition(ctx, lacks); err != nil {
				return folded{err: err}
			}
			continue
		case problem != "":
			return damaged(problem)
		case is.records == 0:
			return damaged("it is gone")
		}
		last := f.Session()
		is.row = sessionRow{Session: projection.SessionOf(last), id: row.id, head: head[:]}
		if !last.Status.Live() {
			is.row.ended = &is.row.UpdatedAt
		} else {
			is.undriven = last.Options().Driver != session.DriverPool
		}
		return is
	}
}

// fold adds the records of a session, and returns what they teach, or what is wrong with one.
func (r *logReader) fold(ctx context.Context, f *session.Folder, row *sessionRow) (is folded, head session.Hash, problem string) {
	erased := r.erased(ctx, row)
	for record, err := range r.log(ctx, row.id) {
		if err != nil {
			return folded{err: err}, head, ""
		}
		is.records++
		text, wrong := proven(&erased, head, &record)
		if wrong != nil {
			return is, head, wrong.Error()
		}
		decoded, err := f.Add(text)
		if err != nil {
			return is, head, err.Error()
		}
		copy(head[:], record.hash)
		if t, ok := projection.TaughtBy(record.place, decoded); ok {
			is.taught = append(is.taught, t)
		}
		if beside, ok := compare(&record, row.id, r.machines[f.Session().Machine().Name()], decoded); !ok {
			is.beside = append(is.beside, beside)
		}
	}
	return is, head, ""
}

// compare returns what should stand beside the events of a record of a machine, and whether that does.
func compare(r *logRow, session int64, machine int, events []session.Event) (want besideRow, ok bool) {
	want = besideRow{place: r.place, session: session, at: int64(events[len(events)-1].At)}
	if projection.Follow(events).Decides {
		want.decides = &machine
	}
	same := want.decides == nil && r.decides == nil || want.decides != nil && r.decides != nil && *r.decides == machine
	return want, same && r.at == want.at
}

// definition reads a definition. Some are kept.
func (r *logReader) definition(ctx context.Context, digest string) error {
	if len(r.definitions) > remembered {
		clear(r.definitions)
	}
	var text []byte
	err := r.tx.QueryRow(ctx, `SELECT coalesce((SELECT definition FROM definitions WHERE machine_digest=$1), '')`, digest).Scan(&text)
	if err == nil && len(text) == 0 {
		err = &session.CorruptError{What: "definition " + digest, Problem: "it is not stored"}
	}
	r.definitions[digest] = text
	return err
}
