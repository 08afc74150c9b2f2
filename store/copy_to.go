package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/internal/projection"
	"github.com/dialai/dialai/store/internal/transfer"
)

// A file as what another store is copied into. Of a session nothing is written at first but its record, and
// a row that says its id: then the file is rebuilt, which is how everything else comes to it.
//
// Sessions have numbers in the order in which they began. Those of a database may have others: then they
// get the next one. Numbers of rosters, logs of agents and the audit of models are given without leaving one
// out, and the audit has a chain of hashes.

// At implements [transfer.Target].
func (c *copied) At(ctx context.Context, part transfer.Part) (at transfer.Cursor, err error) {
	err = c.s.read.QueryRowContext(ctx, `SELECT place, rows FROM copied WHERE part=?`, string(part)).Scan(&at.Place, &at.Count)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return at, translate(err)
}

// Clear implements [transfer.Target].
func (c *copied) Clear(ctx context.Context) error {
	return c.write(ctx, func(conn *sql.Conn) error {
		_, err := conn.ExecContext(ctx, `DELETE FROM llm_audit; DELETE FROM copied WHERE part='`+string(transfer.Audit)+`'`)
		return err
	})
}

// Add implements [transfer.Target].
func (c *copied) Add(ctx context.Context, part transfer.Part, rows []transfer.Row, now transfer.Cursor) error {
	return c.write(ctx, func(conn *sql.Conn) error {
		a := &adding{ctx: ctx, conn: conn, file: c.file, prepared: map[string]*sql.Stmt{}}
		defer a.close()
		if err := a.begin(part); err != nil {
			return err
		}
		for i := range rows {
			if a.add(part, &rows[i]); a.err != nil {
				return a.err
			}
		}
		if part.Appended() {
			a.exec(`INSERT OR REPLACE INTO copied (part, place, rows, newest) SELECT ?, ?, ?, coalesce(max(id), 0) FROM `+string(part), string(part), now.Place, now.Count)
		}
		return a.err
	})
}

// An adding writes rows in one transaction. It keeps the first error.
type adding struct {
	ctx      context.Context //nolint:containedctx // of the one call it lives in
	conn     *sql.Conn
	file     bool
	prepared map[string]*sql.Stmt
	number   int64        // of the last row of the part, where they have no gaps
	head     session.Hash // of the audit of models
	err      error
}

func (a *adding) close() {
	for _, s := range a.prepared {
		s.Close()
	}
}

// begin looks up where a part ends.
func (a *adding) begin(part transfer.Part) error {
	switch part {
	case transfer.Rosters, transfer.Agents, transfer.Audit:
		if err := a.conn.QueryRowContext(a.ctx, `SELECT coalesce(max(id), 0) FROM `+string(part)).Scan(&a.number); err != nil || part != transfer.Audit {
			return err
		}
		var head []byte
		err := a.conn.QueryRowContext(a.ctx, `SELECT coalesce((SELECT hash FROM llm_audit WHERE id=?), x'')`, a.number).Scan(&head)
		copy(a.head[:], head)
		return err
	}
	return nil
}

// exec runs a statement, which is prepared once.
func (a *adding) exec(query string, args ...any) (result driver.Result) {
	if a.err != nil {
		return nil
	}
	s := a.prepared[query]
	if s == nil {
		if s, a.err = a.conn.PrepareContext(a.ctx, query); a.err != nil {
			return nil
		}
		a.prepared[query] = s
	}
	result, a.err = s.ExecContext(a.ctx, args...)
	return result
}

// next returns the number of a row of a part that has no gaps.
func (a *adding) next(r *transfer.Row) int64 {
	if a.number++; a.file {
		a.number = r.Place
	}
	return a.number
}

const (
	machineOf = `(SELECT id FROM machines WHERE machine_name=?)`
	sessionOf = `(SELECT id FROM sessions WHERE session_id=?)`
)

func (a *adding) add(part transfer.Part, r *transfer.Row) {
	switch part {
	case transfer.Machines:
		a.exec(`INSERT INTO machines (machine_name) VALUES (?) ON CONFLICT DO NOTHING`, r.Of)
	case transfer.Definitions:
		a.exec(`INSERT INTO definitions (machine_digest, machine, definition) VALUES (?, `+machineOf+`, ?) ON CONFLICT DO NOTHING`, r.Digest, r.Machine, text(r.Body))
	case transfer.Archived:
		a.archived(r)
	case transfer.ArchivedRecords:
		a.exec(`INSERT INTO archived_records (agents, place, hash) VALUES (?,?,?) ON CONFLICT DO NOTHING`, r.Session, r.Place, r.Hash)
	case transfer.Rosters:
		prev := r.Prev
		if prev == nil {
			prev = make([]byte, len(session.Hash{}))
		}
		a.exec(`INSERT INTO roster_log (id, machine, first, events, prev, hash) VALUES (?, `+machineOf+`, ?, ?, ?, ?)`, a.next(r), r.Of, r.First, text(r.Body), prev, r.Hash)
	case transfer.Log:
		a.record(r)
	case transfer.Agents:
		a.agent(r)
	case transfer.Audit:
		if a.head = session.Chain(a.head, r.Of, r.Body); r.Hash != nil {
			copy(a.head[:], r.Hash) // of an entry that was erased it is another one
		}
		a.exec(`INSERT INTO llm_audit (id, session_id, entry, hash) VALUES (?,?,?,?)`, a.next(r), r.Of, text(r.Body), a.head[:])
	case transfer.Gaps:
		a.exec(`INSERT OR REPLACE INTO gaps (place, last) VALUES (?,?)`, r.Place, r.First)
	}
}

// archived writes where a session is; if it was copied before that, it goes.
func (a *adding) archived(r *transfer.Row) {
	a.exec(`INSERT INTO archived (session_id, row, machine, sequence, head, taught, archive, at) VALUES (?, ?, `+machineOf+`, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		r.Of, r.Session, r.Machine, r.First, r.Hash, r.Body, r.Archive, r.At)
	for _, table := range []string{"log", "agent_log", "snapshots"} {
		a.exec(`DELETE FROM `+table+` WHERE session=`+sessionOf, r.Of)
	}
	a.exec(`DELETE FROM sessions WHERE session_id=?`, r.Of)
}

// record writes a record of a session, with the first one a row that says whose it is.
func (a *adding) record(r *transfer.Row) {
	if r.First == 1 {
		of := projection.Session{ID: r.Of, Digest: r.Digest}
		var machine int64
		var head []byte
		fields := projection.Values(of.Fields(nil, &machine, &head))
		fields[1], fields[len(fields)-1] = r.Machine, []byte{}
		values := strings.Replace(strings.TrimPrefix(strings.Repeat(", ?", len(fields)), ", "), "?, ?", "?, "+machineOf, 1)
		a.exec(`INSERT INTO sessions (id, `+strings.Join(projection.SessionColumns, ", ")+`) SELECT max(?, coalesce((SELECT max(id) FROM sessions), 0) + 1), `+values, append([]any{r.Session}, fields...)...)
	}
	var decides any
	if r.Decides != "" {
		decides = r.Decides
	}
	a.wrote(r, a.exec(`INSERT INTO log (id, session, first, decides, at, events, hash) SELECT ?, s.id, ?, `+machineOf+`, ?, ?, ? FROM sessions s WHERE s.session_id=?`,
		r.Place, r.First, decides, r.At, r.Body, r.Hash, r.Of))
}

// agent writes an entry of the log of an agent. Numbers of those that were archived are not given again.
func (a *adding) agent(r *transfer.Row) {
	number := a.next(r)
	for taken := !a.file; taken && a.err == nil; {
		if a.err = a.conn.QueryRowContext(a.ctx, `SELECT EXISTS (SELECT 1 FROM archived_records WHERE agents=1 AND place=?)`, number).Scan(&taken); taken {
			number++
		}
	}
	a.number = number
	a.wrote(r, a.exec(`INSERT INTO agent_log (id, session, seq, event, hash) SELECT ?, s.id, ?, ?, ? FROM sessions s WHERE s.session_id=?`, number, r.First, text(r.Body), r.Hash, r.Of))
}

// wrote makes an error of a row that was not written, because its session has not begun.
func (a *adding) wrote(r *transfer.Row, result driver.Result) {
	if a.err != nil {
		return
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		a.err = errors.Join(err, &session.CorruptError{What: "the log of session " + r.Of, Problem: fmt.Sprintf("it has no first record before the one at place %d; run dialai store verify", r.Place)})
	}
}

// Rebuild implements [transfer.Target].
func (c *copied) Rebuild(ctx context.Context, programs *session.Programs, told func(step string, done, of int64)) error {
	if !c.file {
		if err := c.write(ctx, func(conn *sql.Conn) error {
			_, err := conn.ExecContext(ctx, `INSERT OR REPLACE INTO gaps (place, last) `+emptyPlaces(logPlaces))
			return err
		}); err != nil {
			return err
		}
	}
	damaged := func(r Report, err error) error {
		if err == nil && r.Difference != nil {
			err = &session.CorruptError{What: "the copy " + c.s.path, Problem: r.Difference.Error()}
		}
		return err
	}
	defer c.s.OnProgress(nil)
	c.s.OnProgress(func(done, of int64) { told("rebuilding", done, of) })
	if err := damaged(c.s.Rebuild(ctx, programs, RebuildOptions{})); err != nil {
		return err
	}
	c.s.OnProgress(func(done, of int64) { told("verifying", done, of) })
	return damaged(c.s.Verify(ctx, programs))
}
