package postgres

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/session"
)

// What servers must remember, in a schema of its own beside that of the sessions, for any number of
// processes. All that write take their turn under one advisory lock, which is held until the commit is
// visible: so each sees what those before it have done, chains of the audit log have one order, and rows
// become visible in the order of their ids. What is refused is refused in the transaction, and undoes it.
//
// A process is the name of an owner (owner.go). One that was not renewed in time is dead to itself, and takes
// another name before it writes again, together with what it had begun and nobody has taken up.
//
// Where the answer to a commit is lost it is sent again (lane.go). Each leaves its number in a row of the
// process, and reads that row first when it is sent again: the lock says that the first attempt has ended, so
// the row says how.

// Control keeps what a server must remember in a schema of a database. Several processes may use it at once.
// Its methods may be called concurrently. Close must be called.
type Control struct {
	database
	lane    *lane
	writer  [16]byte     // names this process in commits
	commits atomic.Int64 // that were begun

	naming sync.Mutex // held while this process takes a name

	// What follows is guarded by database.mu.
	owner *owner                // nil until something is written
	turns map[control.Hash]turn // what this process has begun and not ended
}

// A turn is one time that a request is begun.
type turn struct {
	n    int64
	lost bool // this process failed to end it, or does not know whether it has begun it
}

var _ control.Store = (*Control)(nil)

// OpenControl opens what servers remember beside the store at an address, made and migrated if need be: in
// the schema dialai_control, or of a store in another schema NAME in NAME_control. The address and the errors
// are those of [Open], and so are the options.
func OpenControl(ctx context.Context, name string, o Options) (*Control, error) {
	a, config, err := parse(name, &controlTables)
	if err != nil {
		return nil, err
	}
	c := &Control{turns: map[control.Hash]turn{}}
	rand.Read(c.writer[:]) // never fails
	c.init(a, config, o, nil)
	c.lane = newLane(&c.database, true)
	if err := c.open(ctx, &controlTables); err != nil {
		return nil, err
	}
	return c, nil
}

// Close waits for the commits under way and closes the connections; what this process has begun may be
// taken up by others.
func (c *Control) Close() (err error) {
	c.close()
	c.lane.stop()
	c.mu.Lock()
	owner := c.owner
	c.mu.Unlock()
	if owner != nil {
		err = owner.Release()
	}
	c.end()
	return err
}

// Address returns where it is, as HOST/DATABASE, without any password.
func (c *Control) Address() string { return c.address.String() }

// DeliveryLock returns the lock that who delivers to webhooks holds, so that one process does.
func (c *Control) DeliveryLock() *Lock { return newLock(&c.database, "delivering") }

// A keyError says that secrets are sealed in a database under another key.
type keyError struct{ address address }

func (e *keyError) Error() string {
	return e.address.String() + ": secrets are sealed here under another key"
}

// Advice says what to do about it.
func (e *keyError) Advice() string {
	return "give all servers of a database the same DIALAI_SERVER_KEY; docs/postgres.md says what to do where it was lost"
}

// Seal returns an error if another key than this one was used here before, and remembers the first one by a
// hash. So servers that share what they remember cannot seal secrets that the others cannot open.
func (c *Control) Seal(ctx context.Context, key []byte) error {
	sum := hmac.New(sha256.New, key)
	sum.Write([]byte("dialai control"))
	mark := sum.Sum(nil)
	return c.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var kept []byte
		if err := tx.QueryRow(ctx, `UPDATE meta SET seal=coalesce(seal, $1) RETURNING seal`, mark).Scan(&kept); err != nil {
			return err
		}
		if !hmac.Equal(kept, mark) {
			return &refusal{&keyError{c.address}}
		}
		return nil
	})
}

// A refusal says why changes are not made. It is what became of a commit, however often it was sent.
type refusal struct{ why error }

func (r *refusal) Error() string { return r.why.Error() }
func (r *refusal) Unwrap() error { return r.why }

// refuse returns a refusal unless there is an error already.
func refuse(err error, format string, args ...any) error {
	if err == nil {
		err = &refusal{fmt.Errorf(format, args...)}
	}
	return err
}

// write has something written in a transaction, in turn with all other processes. What do returns beside
// an error it must set at its end only: it may be called again.
func (c *Control) write(ctx context.Context, do func(ctx context.Context, tx pgx.Tx) error) error {
	n := c.commits.Add(1)
	err := c.lane.do(ctx, &job{alone: func(ctx context.Context, tx pgx.Tx, again bool) error {
		if again {
			var newest int64
			err := tx.QueryRow(ctx, `SELECT number FROM commits WHERE writer=$1`, c.writer).Scan(&newest)
			if err == nil && newest == n || err != nil && !errors.Is(err, pgx.ErrNoRows) {
				return err
			}
		}
		if err := do(ctx, tx); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO commits (writer, number, at) VALUES ($1, $2, now()) ON CONFLICT (writer) DO UPDATE SET number=excluded.number, at=excluded.at`, c.writer, n)
		return err
	}})
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.why
	}
	return err
}

// name returns the name of this process in what it writes, "" if it has none yet.
func (c *Control) name() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owner == nil {
		return ""
	}
	return c.owner.name
}

// present gives this process a name, or another one if it is dead to others, or soon will be. What it had
// begun under the old name goes with it unless somebody has taken it up.
func (c *Control) present(ctx context.Context) error {
	c.naming.Lock()
	defer c.naming.Unlock()
	c.mu.Lock()
	before := c.owner
	c.mu.Unlock()
	if before != nil && before.lives() {
		return nil
	}
	next, err := c.claim(ctx)
	if err != nil {
		return err
	}
	err = c.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var all pgx.Batch
		all.Queue(`DELETE FROM commits WHERE at<now()-interval '1 day'`)
		if before != nil {
			all.Queue(`UPDATE receipts SET process=$1 WHERE process=$2 AND status IS NULL`, next.name, before.name)
			all.Queue(`UPDATE jobs SET process=$1 WHERE process=$2 AND ended_at=0`, next.name, before.name)
		}
		return tx.SendBatch(ctx, &all).Close()
	})
	if err != nil {
		return errors.Join(err, next.Release())
	}
	c.mu.Lock()
	c.owner = next
	c.mu.Unlock()
	if before != nil {
		return before.Release()
	}
	return nil
}

// Begin implements [control.Store].
func (c *Control) Begin(ctx context.Context, r control.Receipt, e control.Entry) (control.Begun, error) {
	if err := c.present(ctx); err != nil {
		return control.Begun{}, err
	}
	hash := r.Key.Hash()
	var begun control.Begun
	var n int64 // of the turn that was written
	err := c.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		is, written, err := c.begin(ctx, tx, hash, &r, &e)
		if err == nil {
			begun, n = is, written
		}
		return err
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if n > 0 && (err == nil || errors.Is(err, session.ErrUnknown)) {
		c.turns[hash] = turn{n, err != nil}
	}
	if err != nil {
		return control.Begun{}, err
	}
	return begun, nil
}

// begin begins a request, if it is its turn. It returns which turn was written, 0 if none was.
func (c *Control) begin(ctx context.Context, tx pgx.Tx, hash control.Hash, r *control.Receipt, e *control.Entry) (begun control.Begun, n int64, err error) {
	found, last, alive, err := readReceipt(ctx, tx, hash)
	if err != nil {
		return begun, 0, err
	}
	me := c.name()
	gone := found != nil && !alive && found.Process != me
	if found != nil && found.Process == me {
		c.mu.Lock()
		own := c.turns[hash]
		c.mu.Unlock()
		gone = own.lost && own.n == last
	}
	if begun, err = found.Repeat(*r, gone); err != nil {
		return begun, 0, &refusal{err}
	}
	if begun.Answer != nil {
		return begun, 0, nil
	}
	if _, err := tx.Exec(ctx, `INSERT INTO receipts (key, body, at, process, turn) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (key) DO UPDATE SET body=excluded.body, at=excluded.at, process=excluded.process, turn=excluded.turn, status=NULL, location='', etag='', answer=NULL, omitted=false`,
		hash[:], r.Body[:], int64(r.At), me, last+1); err != nil {
		return begun, 0, err
	}
	if _, err := tx.Exec(ctx, `DELETE FROM receipts WHERE key IN (SELECT key FROM receipts WHERE status IS NOT NULL AND at<=$1 ORDER BY at LIMIT 2)`, int64(r.At-control.ReceiptLifetime)); err != nil {
		return begun, 0, err
	}
	return begun, last + 1, c.append(ctx, tx, e)
}

// readReceipt returns a receipt, nil if there is none, how often it was begun, and whether who has begun it
// lives.
func readReceipt(ctx context.Context, tx pgx.Tx, key control.Hash) (_ *control.StoredReceipt, turn int64, alive bool, err error) {
	var s control.StoredReceipt
	var a control.Answer
	var body []byte
	var status *int
	err = tx.QueryRow(ctx, `SELECT body, at, process, turn, status, location, etag, answer, omitted, EXISTS (SELECT FROM owners WHERE name=process AND until>now()) FROM receipts WHERE key=$1`, key[:]).
		Scan(&body, &s.At, &s.Process, &turn, &status, (*outside)(&a.Location), (*outside)(&a.ETag), &a.Body, &a.Omitted, &alive)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, 0, false, nil
	}
	copy(s.Body[:], body)
	if status != nil {
		a.Status, s.Answer = *status, &a
	}
	return &s, turn, alive, err
}

// append appends an entry to this process's chain of the audit log.
func (c *Control) append(ctx context.Context, tx pgx.Tx, e *control.Entry) error {
	var newest, sequence int64
	var head []byte
	err := tx.QueryRow(ctx, `SELECT a.id, coalesce(p.sequence, 0), coalesce(p.hash, a.hash) FROM (SELECT id, hash FROM audit ORDER BY id DESC LIMIT 1) a
		LEFT JOIN (SELECT sequence, hash FROM audit WHERE process=$1 ORDER BY sequence DESC LIMIT 1) p ON true`, c.name()).Scan(&newest, &sequence, &head)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	var prev control.Hash
	copy(prev[:], head)
	r, err := e.Record(prev, c.name(), sequence+1)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO audit (id, process, sequence, tenant, entry, hash) VALUES ($1, $2, $3, $4, $5, $6)`, newest+1, r.Process, r.Sequence, outside(r.Tenant), r.Data, r.Hash[:])
	return err
}

// Commit implements [control.Store].
func (c *Control) Commit(ctx context.Context, changes control.Changes) error {
	err := c.present(ctx)
	if err == nil {
		err = c.write(ctx, func(ctx context.Context, tx pgx.Tx) error { return c.change(ctx, tx, &changes) })
	}
	if changes.End != nil {
		c.ended(changes.End.Key.Hash(), err)
	}
	return err
}

// ended notes what became of the end of a request.
func (c *Control) ended(key control.Hash, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch own, is := c.turns[key]; {
	case err == nil:
		delete(c.turns, key)
	case is && !refusedBy(err):
		c.turns[key] = turn{own.n, true}
	}
}

// refusedBy reports whether an error says that changes were refused.
func refusedBy(err error) bool {
	return errors.Is(err, control.ErrStale) || errors.Is(err, control.ErrExists) || errors.Is(err, control.ErrNotFound) || errors.As(err, new(*control.ClaimedError))
}

// An outside is a text that outsiders wrote, as a column of bytes has it.
type outside string

// ScanBytes reads it.
func (o *outside) ScanBytes(b []byte) error {
	*o = outside(b)
	return nil
}

// BytesValue writes it.
func (o outside) BytesValue() ([]byte, error) { return append([]byte{}, o...), nil }
