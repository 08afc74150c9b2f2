package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unsafe"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/internal/pack"
	"github.com/dialai/dialai/store/internal/projection"
)

// How SQLite writes the rows of a change (store/internal/projection says which they are).
// Commit has them made, encoded and hashed, outside the committer, which then only writes
// them, in one transaction, or nothing.
//
// What the cache knows of rows saves look-ups; whether a session is still as it was is
// tested by the update itself. The cache learns of a change after it is durable, and
// forgets the session if it failed.

// statements are those of the writing connection, prepared once.
type statements struct {
	update, advance, redefine, insertSession     hot
	insertLog, insertLesson                      hot
	learn, insertExemplar, bumpTrust             hot
	findSession, retract                         *sql.Stmt
	insertMachine, findMachine, insertDefinition *sql.Stmt
	rosterHead, insertRoster                     *sql.Stmt
	auditHead, insertAudit                       *sql.Stmt
	agentHead, insertAgentEvent                  *sql.Stmt
	keepLedger, dropLedgers, putSnapshot         *sql.Stmt
	copying                                      hot // whether nothing may be written
}

func (st *statements) prepare(p *preparer) {
	p.hot(&st.update, updateSession(projection.SessionStanding))
	p.hot(&st.redefine, updateSession(sessionDigest))
	p.hot(&st.advance, updateSession(projection.SessionMoving))
	p.hot(&st.insertSession, `INSERT INTO sessions (`+strings.Join(projection.SessionColumns, ", ")+`) SELECT ?1`+places(2, len(projection.SessionColumns))+
		` WHERE NOT EXISTS (SELECT 1 FROM archived WHERE session_id=?1) ON CONFLICT DO NOTHING`)
	p.hot(&st.insertLog, insert("log", projection.LogColumns))
	p.prepare(&st.findSession, `SELECT id FROM sessions WHERE session_id=?`)
	p.prepare(&st.insertMachine, `INSERT INTO machines (machine_name) VALUES (?) ON CONFLICT DO NOTHING`)
	p.prepare(&st.findMachine, `SELECT id FROM machines WHERE machine_name=?`)
	p.prepare(&st.insertDefinition, insert("definitions", projection.DefinitionColumns)+` ON CONFLICT DO NOTHING`)
	p.hot(&st.learn, insert("alignment", projection.AlignmentColumns)+
		` ON CONFLICT DO UPDATE SET matching=matching+excluded.matching, total=total+excluded.total, updated_at=max(updated_at, excluded.updated_at)`)
	p.hot(&st.insertExemplar, insert("exemplars", projection.ExemplarColumns))
	p.prepare(&st.retract, `UPDATE exemplars SET exemplar='' WHERE machine=? AND instr(exemplar, ?)=1`)
	p.hot(&st.insertLesson, `INSERT INTO lessons (id, lesson, at) VALUES (?,?,?)`)
	p.hot(&st.bumpTrust, `UPDATE machines SET trust_version=trust_version+1 WHERE id=?`)
	p.prepare(&st.rosterHead, `SELECT first, hash FROM roster_log WHERE machine=? ORDER BY id DESC LIMIT 1`)
	p.prepare(&st.auditHead, `SELECT hash FROM llm_audit ORDER BY id DESC LIMIT 1`)
	p.prepare(&st.insertAudit, `INSERT INTO llm_audit (session_id, entry, hash) VALUES (?,?,?)`)
	p.prepare(&st.agentHead, `SELECT s.id, coalesce(a.seq, 0), a.hash FROM sessions s LEFT JOIN agent_log a ON a.session=s.id
		WHERE s.session_id=? ORDER BY a.seq DESC LIMIT 1`)
	p.prepare(&st.insertAgentEvent, insert("agent_log", agentColumns))
	p.prepare(&st.keepLedger, `INSERT OR REPLACE INTO ledger_snapshots (scope, place, format, body, hash) VALUES (?,?,?,?,?)`)
	p.prepare(&st.dropLedgers, `DELETE FROM ledger_snapshots WHERE scope=?1 AND place NOT IN (SELECT place FROM ledger_snapshots WHERE scope=?1 ORDER BY place DESC LIMIT ?2)`)
	p.prepare(&st.putSnapshot, putSnapshot)
	p.hot(&st.copying, copyingQuery)
	p.prepare(&st.insertRoster, insert("roster_log", projection.RosterColumns))
}

// sessionDigest is the place of the digest of its definition among the columns of a session.
const sessionDigest = 2

// insert returns the statement that inserts one row.
func insert(table string, columns []string) string {
	return "INSERT INTO " + table + " (" + strings.Join(columns, ", ") + ") VALUES (?" + strings.Repeat(",?", len(columns)-1) + ")"
}

// places returns the numbered places of values from one to another, each behind a comma.
func places(from, to int) string {
	var list strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&list, ",?%d", i)
	}
	return list.String()
}

// updateSession returns the statement that brings the columns of a session from one on up
// to date. One that leaves its status alone leaves it in its place in the index of live
// sessions.
func updateSession(from int) string {
	return "UPDATE sessions SET " + strings.Join(projection.SessionColumns[from:], "=?, ") + "=? WHERE id=? AND sequence=?"
}

// changes are used again, for their buffers.
var changes = sync.Pool{New: func() any { return new(pending) }}

// maxBuffer keeps one large commit from holding its memory for ever.
const maxBuffer = 1 << 16

// text shares the bytes of b as a string; b must not be changed afterwards.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// A pending is one change, encoded and hashed before it reaches the committer.
type pending struct {
	projection.Rows
	known   rows // as cached; 0 where nothing is known
	rows         // as of the transaction that writes it
	defined bool // the definition is known to be stored
	args    []any
	head    []byte // Record.Hash
	packed  []byte // Record.Events, as they are stored
	stored  []byte // packed, or Record.Events themselves
}

// release gives a pending, and its buffers, back.
func (p *pending) release() {
	*p = pending{Rows: projection.Rows{Record: projection.Record{StoredRecord: session.StoredRecord{Events: p.Record.Events[:0]}}}, args: p.args[:0], packed: p.packed[:0]}
	if cap(p.Record.Events) > maxBuffer {
		p.Record.Events, p.packed = nil, nil
	}
	changes.Put(p)
}

// rows are the ids of the rows a change belongs to.
type rows struct {
	row     int64 // sessions.id
	machine int64 // machines.id
}

// Commit implements [session.SessionStore].
func (s *SQLite) Commit(ctx context.Context, c *session.Change) (err error) {
	var prev session.Hash
	if c.Before != nil {
		if c.Before.Head == nil {
			return fmt.Errorf("session %s does not come from this store", c.After.ID)
		}
		prev = *c.Before.Head
	}
	p := changes.Get().(*pending)
	defer p.release() // the job is done with it
	if p.Rows, err = projection.Of(c, prev, p.Record.Events); err != nil {
		return err
	}
	if p.stored = p.Record.Events; !s.plain {
		p.packed = pack.Append(p.packed, p.Record.Events)
		p.stored = p.packed
	}
	s.lookUp(p, c)
	j := &job{ctx: ctx, write: func(ctx context.Context) error { return p.write(ctx, &s.stmts) }}
	if err := s.out.do(j); err != nil {
		s.mu.Lock()
		s.cache.sessions.Delete(c.After.ID)
		s.mu.Unlock()
		return err
	}
	head := p.Record.Hash
	c.After.Head = &head
	s.keeper.Offer(s.remember(p, c))
	return nil
}

// lookUp fills in what is known of the rows a change belongs to.
func (s *SQLite) lookUp(p *pending, c *session.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.cache.machines.Get(p.Session.Machine); ok {
		p.known.machine = known.id
	}
	p.defined, _ = s.cache.known.Get(p.Session.Digest)
	if v, ok := s.cache.sessions.Get(c.After.ID); ok && !p.New {
		p.known.row = v.row
	}
}

// remember brings the cache up to date after a change became durable, and returns of what session a
// snapshot is to be made; nil for none.
func (s *SQLite) remember(p *pending, c *session.Change) *session.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache.machine(p.Session.Machine).id = p.machine
	s.cache.known.Put(p.Session.Digest, true)
	v, due := s.cache.after(c.After.ID, p.row, c)
	s.cache.put(c.After.ID, v)
	return due
}

// write writes one change inside the committer's transaction.
func (p *pending) write(ctx context.Context, st *statements) error {
	p.rows = p.known // it may be the second try
	if err := p.writeSession(ctx, st); err != nil {
		return err
	}
	r := &p.Record
	var decides any
	if r.Decides {
		decides = p.machine
	}
	logged, err := st.insertLog.exec(p.row, r.First, decides, r.At, p.stored, r.Hash[:])
	if err == nil && p.Lesson != nil {
		var id int64
		if id, err = logged.LastInsertId(); err == nil {
			_, err = st.insertLesson.exec(id, text(p.Lesson), int64(p.Record.At))
		}
	}
	if err == nil && p.Learned {
		err = p.writeLearned(ctx, st)
	}
	for i := 0; err == nil && i < len(p.Roster); i++ {
		err = appendRoster(ctx, st, p.machine, p.Session.Machine, -1, p.Roster[i])
	}
	return err
}

// writeSession writes the row of the session, and before it what it refers to.
func (p *pending) writeSession(ctx context.Context, st *statements) (err error) {
	if p.machine == 0 {
		if p.machine, err = machineRow(ctx, st, p.Session.Machine); err != nil {
			return err
		}
	}
	if (p.New || p.Redefined) && !p.defined {
		if _, err := st.insertDefinition.ExecContext(ctx, p.Session.Digest, p.machine, text(p.Machine.JSON())); err != nil {
			return err
		}
	}
	if !p.New && p.row == 0 {
		err := st.findSession.QueryRowContext(ctx, p.Session.ID).Scan(&p.row)
		if errors.Is(err, sql.ErrNoRows) {
			return skip(session.ErrStale) // it was archived: whoever loads it is told so
		}
		if err != nil {
			return err
		}
	}
	result, err := p.putSession(st)
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	switch {
	case err != nil:
		return err
	case n == 0 && p.New:
		return skip(fmt.Errorf("session %s: %w", p.Session.ID, session.ErrExists))
	case n == 0:
		return skip(session.ErrStale)
	case p.New:
		p.row, err = result.LastInsertId()
	}
	return err
}

// putSession inserts the row of the session, or brings it up to date.
func (p *pending) putSession(st *statements) (driver.Result, error) {
	p.head = p.Record.Hash[:]
	fields := p.Session.Fields(p.args[:0], &p.machine, &p.head)
	p.args = append(fields, p.row, p.Before)
	switch {
	case p.New:
		return st.insertSession.exec(projection.Values(fields)...)
	case p.Redefined:
		return st.redefine.exec(projection.Values(p.args[sessionDigest:])...)
	case p.Moved:
		return st.advance.exec(projection.Values(p.args[projection.SessionMoving:])...)
	}
	return st.update.exec(projection.Values(p.args[projection.SessionStanding:])...)
}

func machineRow(ctx context.Context, st *statements, name string) (id int64, err error) {
	if _, err := st.insertMachine.ExecContext(ctx, name); err != nil {
		return 0, err
	}
	err = st.findMachine.QueryRowContext(ctx, name).Scan(&id)
	return id, err
}

func (p *pending) writeLearned(ctx context.Context, st *statements) error {
	for i := range p.Alignment {
		if _, err := st.learn.exec(p.Alignment[i].Fields(nil, &p.machine)...); err != nil {
			return err
		}
	}
	if p.Exemplar != nil {
		if _, err := st.insertExemplar.exec(p.Exemplar.Fields(nil, &p.machine)...); err != nil {
			return err
		}
	}
	if p.Retracted != "" {
		if _, err := st.retract.ExecContext(ctx, p.machine, p.Retracted); err != nil {
			return err
		}
	}
	_, err := st.bumpTrust.exec(p.machine)
	return err
}

// appendRoster appends one event to a machine's log. before is the sequence
// number the log must have, -1 for any.
func appendRoster(ctx context.Context, st *statements, machine int64, name string, before int64, e session.RosterEvent) error {
	var last int64
	var head []byte
	if err := st.rosterHead.QueryRowContext(ctx, machine).Scan(&last, &head); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if before >= 0 && last != before {
		return skip(session.ErrStale)
	}
	var prev session.Hash
	copy(prev[:], head)
	r, err := projection.RosterRecord(name, last, prev, e)
	if err != nil {
		return err
	}
	_, err = st.insertRoster.ExecContext(ctx, machine, r.First, text(r.Events), prev[:], r.Hash[:])
	return err
}

// Register implements [session.RosterStore].
func (s *SQLite) Register(ctx context.Context, machineName string, before int64, e session.RosterEvent) error {
	return s.out.do(&job{ctx: ctx, write: func(ctx context.Context) error {
		id, err := machineRow(ctx, &s.stmts, machineName)
		if err != nil {
			return err
		}
		return appendRoster(ctx, &s.stmts, id, machineName, before, e)
	}})
}
