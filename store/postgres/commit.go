package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/internal/pack"
	"github.com/dialai/dialai/store/internal/projection"
)

// How the rows of a change are written (store/internal/projection says which they are). They are encoded,
// hashed and packed by whoever commits, before the lane sends them as one statement:
//
//	WITH u AS (UPDATE sessions SET … WHERE id=$1 AND sequence=$2 AND head=$3 RETURNING id)
//	INSERT INTO log … SELECT … FROM u RETURNING place
//
// What follows from the record hangs on the row of the log in the same statement: where the session was
// another one, there is nothing for it to hang on, and nothing is written. Then a second look says why:
// the record itself may be there already, by an attempt whose answer was lost or by who committed the very
// same, and that is success; or somebody else has committed first.
//
// Rows of machine names and the texts of definitions are the same whoever writes them. The former are
// made before, by themselves; the latter in the transaction, before everything else.

// A pending is one change, as a statement.
type pending struct {
	projection.Rows
	id      specialist.SessionID
	row     int64  // sessions.id; 0 if it is made
	machine int    // machines.id
	defined bool   // the definition is known to be stored
	lease   *lease // under which it is committed; nil if the session is not leased here
	counts  bool   // there is something to clear in its row in work
	ends    bool   // the session lives no more
	ready   bool   // there is something to do with the session afterwards, for whoever is free

	statement string
	args      []any

	place     int64 // of the record
	committed bool
}

// arg adds an argument and returns its name.
func (p *pending) arg(value any) string {
	p.args = append(p.args, value)
	return "$" + strconv.Itoa(len(p.args))
}

// Commit implements [session.SessionStore].
func (s *Store) Commit(ctx context.Context, c *session.Change) error {
	p, err := s.pending(ctx, c)
	if err != nil {
		return err
	}
	j, l := &job{p: p}, s.hot
	if p.Learned || p.Lesson != nil || len(p.Roster) > 0 {
		l = s.ordered
	}
	if len(p.Roster) > 0 {
		j.alone = p.withRoster
	}
	err = l.do(ctx, j)
	if err != nil {
		s.held.leave(p.lease, nil)
	} else {
		s.held.leave(p.lease, c)
		s.wakes.committed(c.After.ID, p.ready)
	}
	if l == s.ordered {
		s.changed(p.Session.Machine)
	}
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sessions.Delete(c.After.ID)
		return err
	}
	head := p.Record.Hash
	c.After.Head = &head
	s.mu.Lock()
	s.defined.Put(p.Session.Digest, true)
	v, due := s.after(c.After.ID, p.row, c)
	s.remember(c.After.ID, v)
	s.mu.Unlock()
	s.keeper.Offer(due)
	if p.New {
		s.partition(ctx, p.row)
	}
	return nil
}

// pending makes of a change the statement that commits it.
func (s *Store) pending(ctx context.Context, c *session.Change) (p *pending, err error) {
	var prev session.Hash
	if c.Before != nil {
		if c.Before.Head == nil {
			return nil, fmt.Errorf("session %s does not come from this store", c.After.ID)
		}
		prev = *c.Before.Head
	}
	p = &pending{id: c.After.ID}
	if p.Rows, err = projection.Of(c, prev, nil); err != nil {
		return nil, err
	}
	if err := s.lookUp(ctx, p); err != nil {
		return nil, err
	}
	stored := p.Record.Events
	if !s.address.plain {
		stored = pack.Append(nil, p.Record.Events)
	}
	if p.lease = s.held.enter(p.id); p.lease != nil {
		s.held.mu.Lock()
		p.counts = p.lease.counts
		s.held.mu.Unlock()
	}
	p.prepare(c, stored)
	return p, nil
}

// remember caches a session unless a newer one is known. s.mu is held.
func (s *Store) remember(id specialist.SessionID, v cached) {
	if now, ok := s.sessions.Get(id); !ok || now.session.Sequence <= v.session.Sequence {
		s.sessions.Put(id, v)
	}
}

// lookUp fills in which rows a change belongs to.
func (s *Store) lookUp(ctx context.Context, p *pending) (err error) {
	s.mu.Lock()
	p.machine = s.machine(p.Session.Machine).id
	p.defined, _ = s.defined.Get(p.Session.Digest)
	if v, ok := s.sessions.Get(p.id); ok && !p.New {
		p.row = v.row
	}
	s.mu.Unlock()
	if p.machine == 0 {
		if p.machine, err = s.machineRow(ctx, p.Session.Machine); err != nil {
			return err
		}
	}
	if p.row == 0 && !p.New {
		p.row, err = s.rowOf(ctx, p.id)
	}
	return err
}

// machineRow returns the row of a machine name, and makes it if there is none.
func (s *Store) machineRow(ctx context.Context, name string) (int, error) {
	const find = `SELECT id FROM machines WHERE machine_name=$1`
	ids, err := query(ctx, s, pgx.RowTo[int], find, name)
	if err == nil && len(ids) == 0 {
		if _, err = query(ctx, s, pgx.RowTo[int], `INSERT INTO machines (machine_name) VALUES ($1) ON CONFLICT DO NOTHING RETURNING id`, name); err == nil {
			ids, err = query(ctx, s, pgx.RowTo[int], find, name)
		}
	}
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine(name).id = ids[0]
	return ids[0], nil
}

// A moved is what a column of the row of a session is after a commit.
type moved struct {
	column string
	value  any
}

// moving returns the columns of the row of a session that may change, with its status and the hash of its last record.
func moving(r *projection.Session, status session.Status, head []byte) []moved {
	var ended *int64
	if !status.Live() {
		ended = &r.UpdatedAt
	}
	return []moved{
		{"status", int16(status)}, {"code", r.Code}, {"reason", []byte(r.Reason)}, {"reviews", r.Reviews}, {"subject", []byte(r.Subject)},
		{"due_at", r.DueAt}, {"driver", r.Driver}, {"since", r.Since}, {"timer_at", r.TimerAt}, {"ended_at", ended}, {"current_state", r.State}, {"round", r.Round}, {"attempt", r.Attempt},
		{"sequence", r.Sequence}, {"transitions", r.Executed}, {"updated_at", r.UpdatedAt}, {"calls", r.Calls}, {"input_tokens", r.TokensIn},
		{"output_tokens", r.TokensOut}, {"cost_pico_usd", r.PicoUSD}, {"head", head},
	}
}

// prepare makes the statement.
func (p *pending) prepare(c *session.Change, stored []byte) {
	r := &p.Session
	values := moving(r, c.After.Status, p.Record.Hash[:])
	p.args = make([]any, 0, 2*len(values)+8)
	columns, names, sets := make([]string, 0, len(values)), make([]string, 0, len(values)), make([]string, 0, len(values)+1)
	for _, v := range values {
		name := p.arg(v.value)
		columns, names, sets = append(columns, v.column), append(names, name), append(sets, v.column+"="+name)
	}
	definition := ""
	if p.New || p.Redefined {
		definition = "(SELECT id FROM definitions WHERE machine_digest=" + p.arg(r.Digest) + ")"
	}
	var b strings.Builder
	switch {
	case p.New:
		fmt.Fprintf(&b, `WITH u AS (INSERT INTO sessions (session_id, machine, definition, created_at, started_by, %s) SELECT %s, %s, %s, %s, %s, %s WHERE NOT EXISTS (SELECT FROM archived WHERE session_id=%[2]s) ON CONFLICT DO NOTHING RETURNING id)`,
			strings.Join(columns, ", "), p.arg([16]byte(p.id)), p.arg(p.machine), definition, p.arg(r.CreatedAt), p.arg([]byte(r.StartedBy)), strings.Join(names, ", "))
	default:
		if p.Redefined {
			sets = append(sets, "definition="+definition)
		}
		fmt.Fprintf(&b, `WITH u AS (UPDATE sessions SET %s WHERE id=%s AND sequence=%s AND head=%s RETURNING id)`,
			strings.Join(sets, ", "), p.arg(p.row), p.arg(p.Before), p.arg(p.Record.Prev[:]))
	}
	var decides *int
	if p.Record.Decides {
		decides = &p.machine
	}
	fmt.Fprintf(&b, `, l AS (INSERT INTO log (session, first, decides, at, events, hash) SELECT id, %s, %s, %s, %s, %s FROM u RETURNING place, session)`,
		p.arg(p.Record.First), p.arg(decides), p.arg(p.Record.At), p.arg(stored), p.arg(p.Record.Hash[:]))
	p.queueWork(&b, c)
	p.learn(&b)
	b.WriteString(` SELECT place, session FROM l`)
	p.statement = b.String()
}

// learn adds what follows from the record beside its session.
func (p *pending) learn(b *strings.Builder) {
	if p.Lesson != nil {
		fmt.Fprintf(b, `, n AS (INSERT INTO lessons (place, machine, session, at, lesson) SELECT place, %s, session, %s, %s FROM l)`, p.arg(p.machine), p.arg(p.Record.At), p.arg(p.Lesson))
	}
	if !p.Learned {
		return
	}
	if rows := summed(p.Alignment); len(rows) > 0 {
		var specialists, states []string
		var matching, total, updated []int64
		for _, r := range rows {
			specialists, states = append(specialists, r.Specialist), append(states, r.State)
			matching, total, updated = append(matching, r.Matching), append(total, r.Total), append(updated, r.Updated)
		}
		fmt.Fprintf(b, `, a AS (INSERT INTO alignment SELECT %s, x.* FROM l, unnest(%s::text[], %s::text[], %s::bigint[], %s::bigint[], %s::bigint[]) x
			ON CONFLICT (machine, specialist_id, state) DO UPDATE SET matching=alignment.matching+excluded.matching, total=alignment.total+excluded.total, updated_at=greatest(alignment.updated_at, excluded.updated_at))`,
			p.arg(p.machine)+"::int", p.arg(specialists), p.arg(states), p.arg(matching), p.arg(total), p.arg(updated))
	}
	if p.Retracted != "" {
		prefix := []byte(p.Retracted)
		fmt.Fprintf(b, `, x AS (UPDATE exemplars SET exemplar='' WHERE machine=%s AND substring(exemplar FROM 1 FOR %s::int)=%s AND EXISTS (SELECT FROM l))`, p.arg(p.machine), p.arg(len(prefix)), p.arg(prefix))
	}
	if p.Exemplar != nil {
		fmt.Fprintf(b, `, e AS (INSERT INTO exemplars (place, machine, state, exemplar) SELECT place, %s, %s, %s FROM l)`, p.arg(p.machine), p.arg(p.Exemplar.State), p.arg([]byte(p.Exemplar.Text)))
	}
	fmt.Fprintf(b, `, t AS (UPDATE machines SET trust_version=trust_version+1 WHERE id=%s AND EXISTS (SELECT FROM l))`, p.arg(p.machine))
}

// summed returns rows of which no two are of the same specialist and state: a statement changes a row once.
func summed(rows []projection.Alignment) (list []projection.Alignment) {
	at := map[[2]string]int{}
	for _, r := range rows {
		key := [2]string{r.Specialist, r.State}
		i, ok := at[key]
		if !ok {
			at[key] = len(list)
			list = append(list, r)
			continue
		}
		list[i].Matching, list[i].Total, list[i].Updated = list[i].Matching+r.Matching, list[i].Total+r.Total, max(list[i].Updated, r.Updated)
	}
	return list
}

// queueDefinitions adds the statements that store the definitions of a batch, each once and in the order
// of their digests, as everybody does.
func queueDefinitions(send *pgx.Batch, batch []*job) {
	missing := map[string]*pending{}
	for _, j := range batch {
		if (j.p.New || j.p.Redefined) && !j.p.defined {
			missing[j.p.Session.Digest] = j.p
		}
	}
	for _, digest := range slices.Sorted(maps.Keys(missing)) {
		send.Queue(insertDefinition, missing[digest].definition()...)
	}
}

const insertDefinition = `INSERT INTO definitions (machine_digest, machine, definition) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`

// definition returns the arguments of insertDefinition.
func (p *pending) definition() []any {
	return []any{p.Session.Digest, p.machine, []byte(p.Machine.JSON())}
}

// refused says why a change was not committed: nil if its record is there already. failed says that
// nobody could tell.
func (p *pending) refused(ctx context.Context, conn interface {
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}) (why, failed error) {
	var hash []byte
	err := conn.QueryRow(ctx, `SELECT s.id, l.hash FROM sessions s LEFT JOIN log l ON l.session=s.id AND l.first=$2 WHERE s.session_id=$1`, [16]byte(p.id), p.Record.First).Scan(&p.row, &hash)
	switch {
	case errors.Is(err, pgx.ErrNoRows) && p.New: // it was archived
		return fmt.Errorf("session %s: %w", p.Session.ID, session.ErrExists), nil
	case errors.Is(err, pgx.ErrNoRows):
		return &session.NotFoundError{What: "Session", ID: p.Session.ID}, nil
	case err != nil:
		return nil, err
	case string(hash) == string(p.Record.Hash[:]):
		return nil, nil
	case p.New:
		return fmt.Errorf("session %s: %w", p.Session.ID, session.ErrExists), nil
	}
	return session.ErrStale, nil
}

// withRoster commits a change that appends to the roster of its machine as well.
func (p *pending) withRoster(ctx context.Context, tx pgx.Tx, _ bool) error {
	if (p.New || p.Redefined) && !p.defined {
		if _, err := tx.Exec(ctx, insertDefinition, p.definition()...); err != nil {
			return err
		}
	}
	err := tx.QueryRow(ctx, p.statement, p.args...).Scan(&p.place, &p.row)
	if errors.Is(err, pgx.ErrNoRows) {
		why, failed := p.refused(ctx, tx)
		return errors.Join(why, failed)
	}
	if err == nil && p.ends {
		_, err = tx.Exec(ctx, endWork, p.row)
	}
	for _, e := range p.Roster {
		if err == nil {
			err = appendRoster(ctx, tx, p.machine, p.Session.Machine, e)
		}
	}
	return err
}

// appendRoster appends one event to a machine's log.
func appendRoster(ctx context.Context, tx pgx.Tx, machine int, name string, e session.RosterEvent) error {
	last, head, err := rosterHead(ctx, tx, machine)
	if err != nil {
		return err
	}
	r, err := projection.RosterRecord(name, last, head, e)
	if err != nil {
		return err
	}
	if _, err = tx.Exec(ctx, `INSERT INTO roster_log (machine, first, events, hash) VALUES ($1, $2, $3, $4)`, machine, r.First, r.Events, r.Hash[:]); err == nil {
		_, err = tx.Exec(ctx, `UPDATE machines SET roster_version=$2 WHERE id=$1`, machine, r.First)
	}
	return err
}

// rosterHead locks a machine's log and returns its last sequence number and hash.
func rosterHead(ctx context.Context, tx pgx.Tx, machine int) (last int64, head session.Hash, err error) {
	var hash []byte
	if _, err = tx.Exec(ctx, `SELECT FROM machines WHERE id=$1 FOR NO KEY UPDATE`, machine); err != nil {
		return 0, head, err
	}
	err = tx.QueryRow(ctx, `SELECT first, hash FROM roster_log WHERE machine=$1 ORDER BY first DESC LIMIT 1`, machine).Scan(&last, &hash)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	copy(head[:], hash)
	return last, head, err
}

// Register implements [session.RosterStore].
func (s *Store) Register(ctx context.Context, machineName string, before int64, e session.RosterEvent) error {
	machine, err := s.machineRow(ctx, machineName)
	if err != nil {
		return err
	}
	err = s.ordered.do(ctx, &job{alone: func(ctx context.Context, tx pgx.Tx, again bool) error {
		last, head, err := rosterHead(ctx, tx, machine)
		if err != nil {
			return err
		}
		if again && last == before+1 { // it may be the one that was sent before
			var prev []byte
			if err := tx.QueryRow(ctx, `SELECT coalesce((SELECT hash FROM roster_log WHERE machine=$1 AND first=$2), '')`, machine, before).Scan(&prev); err != nil {
				return err
			}
			var was session.Hash
			copy(was[:], prev)
			if r, err := projection.RosterRecord(machineName, before, was, e); err != nil || r.Hash == head {
				return err
			}
		}
		if last != before {
			return session.ErrStale
		}
		return appendRoster(ctx, tx, machine, machineName, e)
	}})
	s.changed(machineName)
	return err
}
