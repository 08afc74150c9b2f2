package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/session"
)

// How a change becomes rows. Commit encodes its events and chains their hash to the one
// before, outside the committer, which then only writes: the session's row, where its
// sequence is still the one that the change was made from (or the change is stale); the
// log's row; and what follows from the events: alignment, exemplars, lessons, roster.
// All of it is one transaction, or nothing.
//
// What the cache knows of rows saves look-ups; whether a session is still as it was is
// tested by the update itself. The cache learns of a change after it is durable, and
// forgets the session if it failed.

// statements are those of the writing connection, prepared once.
type statements struct {
	update, advance                              *sql.Stmt
	insertSession, insertLog, findSession        *sql.Stmt
	insertMachine, findMachine, insertDefinition *sql.Stmt
	learn, insertExemplar, bumpTrust             *sql.Stmt
	insertLesson                                 *sql.Stmt
	rosterHead, insertRoster                     *sql.Stmt
	auditHead, insertAudit                       *sql.Stmt
}

func (st *statements) prepare(p *preparer) {
	p.prepare(&st.update, `UPDATE sessions SET status=?, current_state=?, round=?, attempt=?, sequence=?, transitions=?, code=?, reason=?,
		updated_at=?, calls=?, input_tokens=?, output_tokens=?, cost_pico_usd=?, reviews=?, head=? WHERE id=? AND sequence=?`)
	p.prepare(&st.advance, `UPDATE sessions SET current_state=?, round=?, attempt=?, sequence=?, transitions=?,
		updated_at=?, calls=?, input_tokens=?, output_tokens=?, cost_pico_usd=?, head=? WHERE id=? AND sequence=?`)
	p.prepare(&st.insertSession, `INSERT INTO sessions (session_id, machine, machine_digest, status, current_state, round, attempt, sequence,
		transitions, code, reason, created_at, updated_at, calls, input_tokens, output_tokens, cost_pico_usd, head)
		VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING`)
	p.prepare(&st.insertLog, `INSERT INTO log (session, first, decides, at, events, prev, hash) VALUES (?,?,?,?,?,?,?)`)
	p.prepare(&st.findSession, `SELECT id FROM sessions WHERE session_id=?`)
	p.prepare(&st.insertMachine, `INSERT INTO machines (machine_name) VALUES (?) ON CONFLICT DO NOTHING`)
	p.prepare(&st.findMachine, `SELECT id FROM machines WHERE machine_name=?`)
	p.prepare(&st.insertDefinition, `INSERT INTO definitions (machine_digest, machine, definition) VALUES (?,?,?) ON CONFLICT DO NOTHING`)
	p.prepare(&st.learn, `INSERT INTO alignment (machine, specialist_id, state, matching, total, updated_at) VALUES (?,?,?,?,1,?)
		ON CONFLICT DO UPDATE SET matching=matching+excluded.matching, total=total+1, updated_at=max(updated_at, excluded.updated_at)`)
	p.prepare(&st.insertExemplar, `INSERT INTO exemplars (machine, state, exemplar) VALUES (?,?,?)`)
	p.prepare(&st.insertLesson, `INSERT INTO lessons (id, lesson) VALUES (?,?)`)
	p.prepare(&st.bumpTrust, `UPDATE machines SET trust_version=trust_version+1 WHERE id=?`)
	p.prepare(&st.rosterHead, `SELECT first, hash FROM roster_log WHERE machine=? ORDER BY id DESC LIMIT 1`)
	p.prepare(&st.auditHead, `SELECT hash FROM llm_audit ORDER BY id DESC LIMIT 1`)
	p.prepare(&st.insertAudit, `INSERT INTO llm_audit (session_id, entry, hash) VALUES (?,?,?)`)
	p.prepare(&st.insertRoster, `INSERT INTO roster_log (machine, first, events, prev, hash) VALUES (?,?,?,?,?)`)
}

// buffers hold the encoded events of a commit until it is written.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// maxBuffer keeps one large commit from holding its memory for ever.
const maxBuffer = 1 << 16

// text shares the bytes of b as a string; b must not be changed afterwards.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// A pending is one change, encoded and hashed before it reaches the committer.
type pending struct {
	c       *session.Change
	id      string
	known   rows // as cached; 0 where nothing is known
	rows         // as of the transaction that writes it
	defined bool // the definition is known to be stored
	events  string
	prev    session.Hash
	hash    session.Hash
}

// rows are the ids of the rows a change belongs to.
type rows struct {
	row     int64 // sessions.id
	machine int64 // machines.id
}

// Commit implements [session.SessionStore].
func (s *SQLite) Commit(ctx context.Context, c *session.Change) error {
	p := &pending{c: c, id: c.After.ID.String()}
	if c.Before != nil {
		if c.Before.Head == nil {
			return fmt.Errorf("session %s does not come from this store", p.id)
		}
		p.prev = *c.Before.Head
	}
	buffer := buffers.Get().(*[]byte)
	events := session.AppendEvents((*buffer)[:0], c.Key(), c.First, c.Events)
	p.hash = session.Chain(p.prev, p.id, events)
	p.events = text(events)
	s.lookUp(p)
	j := &job{ctx: ctx, write: p.write}
	err := s.out.do(j)
	if *buffer = events; cap(events) <= maxBuffer { // the job is done with it
		buffers.Put(buffer)
	}
	if err != nil {
		s.mu.Lock()
		s.cache.sessions.Delete(c.After.ID)
		s.mu.Unlock()
		return err
	}
	c.After.Head = &p.hash
	s.remember(p, j.foreign)
	return nil
}

// lookUp fills in what is known of the rows a change belongs to.
func (s *SQLite) lookUp(p *pending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := p.c.After.Machine()
	if known, ok := s.cache.machines.Get(m.Name()); ok {
		p.known.machine = known.id
	}
	p.defined, _ = s.cache.known.Get(m.Digest())
	if v, ok := s.cache.sessions.Get(p.c.After.ID); ok && p.c.Before != nil {
		p.known.row = v.row
	}
}

// remember brings the cache up to date after a change became durable.
func (s *SQLite) remember(p *pending, foreign bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := p.c.After.Machine()
	if foreign {
		s.cache.forget()
	}
	known := s.cache.machine(m.Name())
	known.id = p.machine
	s.cache.known.Put(m.Digest(), true)
	if p.c.Learned() != nil || p.c.Roster != nil {
		known.forget()
	}
	s.cache.put(p.c.After.ID, cached{p.row, p.c.After})
}

// write writes one change inside the committer's transaction.
func (p *pending) write(ctx context.Context, st *statements) error {
	p.rows = p.known // it may be the second try
	if err := p.writeSession(ctx, st); err != nil {
		return err
	}
	var decides any
	if p.c.Decides() {
		decides = p.machine
	}
	after := p.c.After
	logged, err := st.insertLog.ExecContext(ctx, p.row, p.c.First, decides, int64(after.UpdatedAt), p.events, p.prev[:], p.hash[:])
	if err != nil {
		return err
	}
	if l := p.c.Learned(); l != nil {
		if err := p.writeLearned(ctx, st, l); err != nil {
			return err
		}
	}
	if l := p.c.Lesson(); l != nil {
		if err := writeLesson(ctx, st, logged, l); err != nil {
			return err
		}
	}
	for _, e := range p.c.Roster {
		if err := appendRoster(ctx, st, p.machine, after.Machine().Name(), -1, e); err != nil {
			return err
		}
	}
	return nil
}

func (p *pending) writeSession(ctx context.Context, st *statements) error {
	after := p.c.After
	if p.machine == 0 {
		var err error
		if p.machine, err = machineRow(ctx, st, after.Machine().Name()); err != nil {
			return err
		}
	}
	if p.c.Before == nil {
		return p.insertSession(ctx, st)
	}
	if p.row == 0 {
		err := st.findSession.QueryRowContext(ctx, p.id).Scan(&p.row)
		if errors.Is(err, sql.ErrNoRows) {
			return skip(&session.NotFoundError{What: "Session", ID: p.id})
		}
		if err != nil {
			return err
		}
	}
	result, err := p.update(ctx, st)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return errors.Join(skipIf(err == nil, session.ErrStale), err)
	}
	return nil
}

// update brings the row of a session up to date. A session that only moved on
// keeps its status and what goes with it, and so its place in the index of live
// sessions.
func (p *pending) update(ctx context.Context, st *statements) (sql.Result, error) {
	before, after := p.c.Before, p.c.After
	o, spent := after.Outcome(), after.Spent()
	if was := before.Outcome(); after.Status == before.Status && o.Code == was.Code && o.Reason == was.Reason && len(after.Reviews()) == len(before.Reviews()) {
		return st.advance.ExecContext(ctx, after.State.Name, after.Round, after.Attempt, after.Sequence, after.Executed,
			int64(after.UpdatedAt), spent.Calls, spent.TokensIn, spent.TokensOut, int64(spent.Money), p.hash[:], p.row, before.Sequence)
	}
	return st.update.ExecContext(ctx, after.Status.String(), after.State.Name, after.Round, after.Attempt, after.Sequence, after.Executed,
		o.Code, o.Reason, int64(after.UpdatedAt), spent.Calls, spent.TokensIn, spent.TokensOut, int64(spent.Money), len(after.Reviews()), p.hash[:], p.row, before.Sequence)
}

func skipIf(yes bool, err error) error {
	if yes {
		return skip(err)
	}
	return nil
}

func (p *pending) insertSession(ctx context.Context, st *statements) error {
	after := p.c.After
	m := after.Machine()
	if !p.defined {
		if _, err := st.insertDefinition.ExecContext(ctx, m.Digest(), p.machine, text(m.JSON())); err != nil {
			return err
		}
	}
	o, spent := after.Outcome(), after.Spent()
	result, err := st.insertSession.ExecContext(ctx, p.id, p.machine, m.Digest(), after.Status.String(), after.State.Name, after.Round, after.Attempt,
		after.Sequence, after.Executed, o.Code, o.Reason, int64(after.CreatedAt), int64(after.UpdatedAt), spent.Calls, spent.TokensIn, spent.TokensOut, int64(spent.Money), p.hash[:])
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return errors.Join(skipIf(err == nil, fmt.Errorf("session %s: %w", p.id, session.ErrExists)), err)
	}
	p.row, err = result.LastInsertId()
	return err
}

func machineRow(ctx context.Context, st *statements, name string) (id int64, err error) {
	if _, err := st.insertMachine.ExecContext(ctx, name); err != nil {
		return 0, err
	}
	err = st.findMachine.QueryRowContext(ctx, name).Scan(&id)
	return id, err
}

func (p *pending) writeLearned(ctx context.Context, st *statements, l *session.Learned) error {
	for _, c := range l.Comparisons {
		match := 0
		if c.Match {
			match = 1
		}
		if _, err := st.learn.ExecContext(ctx, p.machine, c.SpecialistID, c.State, match, int64(c.At)); err != nil {
			return err
		}
	}
	if l.Exemplar != nil {
		if _, err := st.insertExemplar.ExecContext(ctx, p.machine, l.Exemplar.State, text(l.Exemplar.Append(nil))); err != nil {
			return err
		}
	}
	_, err := st.bumpTrust.ExecContext(ctx, p.machine)
	return err
}

// writeLesson writes a lesson under the row of the log that holds it.
func writeLesson(ctx context.Context, st *statements, logged sql.Result, l *trust.Lesson) error {
	id, err := logged.LastInsertId()
	if err != nil {
		return err
	}
	lesson, err := l.Encode()
	if err != nil {
		return err
	}
	_, err = st.insertLesson.ExecContext(ctx, id, text(lesson))
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
	events, err := session.AppendRosterEvent(nil, last+1, e)
	if err != nil {
		return err
	}
	hash := session.Chain(prev, name, events)
	_, err = st.insertRoster.ExecContext(ctx, machine, last+1, text(events), prev[:], hash[:])
	return err
}

// Register implements [session.RosterStore].
func (s *SQLite) Register(ctx context.Context, machineName string, before int64, e session.RosterEvent) error {
	err := s.out.do(&job{ctx: ctx, write: func(ctx context.Context, st *statements) error {
		id, err := machineRow(ctx, st, machineName)
		if err != nil {
			return err
		}
		return appendRoster(ctx, st, id, machineName, before, e)
	}})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache.machine(machineName).forget()
	return err
}
