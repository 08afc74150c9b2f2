package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/session"
)

// What a server must remember, in one SQLite file of its own (file.go). Everything is
// written by the committer; changes that are refused are undone to a savepoint, so that the
// others of their batch are kept.
//
// A process is the file that it keeps locked (owner.go). Whether another one lives is looked
// up between two transactions: names are not used twice, so who is gone stays gone.

// Control keeps what a server must remember in one file. Several processes may use the
// file at once. Close must be called.
type Control struct {
	file
	stmts    controlStatements // of out
	key      *sql.Stmt         // the query of Key
	named    *sql.Stmt         // the query of Machine
	signedIn *sql.Stmt         // the query of SignIn
	owner    session.Owner

	mu    sync.Mutex
	turns map[control.Hash]turn // what this process has begun and not ended
}

// A turn is one time that a request is begun.
type turn struct {
	n    int64
	lost bool // this process failed to end it
}

var _ control.Store = (*Control)(nil)

// controls are the files that hold what a server must remember: "dlct" in ASCII.
var controls = kind{name: "what a server remembers", applicationID: controlsID, dir: "migrations/control", recordedFrom: 1,
	after: func(ctx context.Context, tx *sql.Tx, m migration, _, _ []migration, _ func(part string, done, of int64)) error {
		if err := m.record(ctx, tx); err != nil || m.version > 1 {
			return err
		}
		return mark(ctx, tx, controlsID)
	}}

const controlsID = 0x646c6374

// ControlPath returns where a server keeps the control file of a store, unless it is told otherwise: beside it.
func ControlPath(path string) string { return resolved(path) + ".control" }

// OpenControl opens a file, made (for its owner alone) and migrated if need be. It
// refuses a file that is no SQLite database, one that belongs to another program, one that
// holds sessions, and one that a newer version has migrated.
func OpenControl(ctx context.Context, path string, o SQLiteOptions) (*Control, error) {
	c := &Control{file: file{kind: &controls, path: path}, turns: map[control.Hash]turn{}}
	if err := c.open(ctx, o, c.stmts.prepare); err != nil {
		return nil, err
	}
	c.refuseCopied(&c.stmts.copying)
	var err error
	if c.key, err = c.read.PrepareContext(ctx, `SELECT `+keyColumns+` FROM keys WHERE key_id=?`); err == nil {
		c.named, err = c.read.PrepareContext(ctx, versionQuery+newestVersion)
	}
	if err == nil {
		c.signedIn, err = c.read.PrepareContext(ctx, `SELECT sealed, seen_at, expires_at FROM sign_ins WHERE hash=?`)
	}
	if err == nil && !o.ReadOnly {
		c.owner, err = c.claim()
	}
	if err != nil {
		c.close()
		return nil, &OpenError{path, translate(err)}
	}
	return c, nil
}

// Close waits for the commits under way and closes the file; what this process has begun
// may be taken up by others. The error wraps ErrReplaced if something was committed and the
// file is not there any more.
func (c *Control) Close() error {
	err := c.out.close()
	if c.owner != nil {
		err = errors.Join(err, c.owner.Release())
	}
	return errors.Join(err, c.key.Close(), c.named.Close(), c.signedIn.Close(), c.close())
}

// Path returns the path of the file, to which symbolic links were followed.
func (c *Control) Path() string { return c.path }

// DeliveryLock returns the lock that who delivers to webhooks holds, so that one process does.
// It is free when that has ended, however it did.
func (c *Control) DeliveryLock() (*DriverLock, error) { return c.lock("delivering") }

type controlStatements struct {
	save, release, undo                       *sql.Stmt
	copying                                   hot // whether nothing may be written
	findReceipt, begin, end, forget, purge    *sql.Stmt
	auditHead, auditNewest, insertAudit       *sql.Stmt
	insertKey, revoke, use                    *sql.Stmt
	findMachine, insertMachine, insertVersion *sql.Stmt
	bumpMachine                               *sql.Stmt
	findClaim, putClaim, unclaim, purgeClaims *sql.Stmt
	putStepTime                               *sql.Stmt
	bind                                      *sql.Stmt
	signIns                                   signInStatements
	hooks                                     webhookStatements
	jobs                                      jobStatements
}

func (st *controlStatements) prepare(p *preparer) {
	p.prepare(&st.save, `SAVEPOINT changes`)
	p.hot(&st.copying, copyingQuery)
	p.prepare(&st.release, `RELEASE changes`)
	p.prepare(&st.undo, `ROLLBACK TO changes`)
	p.prepare(&st.findReceipt, `SELECT body, at, process, turn, status, location, etag, answer, omitted FROM receipts WHERE key=?`)
	p.prepare(&st.begin, `INSERT OR REPLACE INTO receipts (key, body, at, process, turn) VALUES (?,?,?,?,?)`)
	p.prepare(&st.end, `UPDATE receipts SET status=?, location=?, etag=?, answer=?, omitted=? WHERE key=? AND process=? AND status IS NULL`)
	p.prepare(&st.forget, `DELETE FROM receipts WHERE key=? AND process=? AND status IS NULL`)
	p.prepare(&st.purge, `DELETE FROM receipts WHERE id IN (SELECT id FROM receipts WHERE status IS NOT NULL AND at<=? ORDER BY at LIMIT 2)`)
	p.prepare(&st.auditHead, `SELECT sequence, hash FROM audit WHERE process=? ORDER BY sequence DESC LIMIT 1`)
	p.prepare(&st.auditNewest, `SELECT 0, hash FROM audit ORDER BY id DESC LIMIT 1`)
	p.prepare(&st.insertAudit, insert("audit", []string{"process", "sequence", "tenant", "entry", "hash"}))
	p.prepare(&st.insertKey, insert("keys", strings.Split(keyColumns, ", ")[1:])+` ON CONFLICT DO NOTHING`)
	p.prepare(&st.revoke, `UPDATE keys SET revoked_at=CASE WHEN revoked_at=0 THEN ?2 ELSE min(revoked_at, ?2) END WHERE key_id=?1`)
	p.prepare(&st.use, `UPDATE keys SET last_used=?2 WHERE key_id=?1 AND last_used<?2`)
	p.prepare(&st.findMachine, `SELECT id, newest FROM machines WHERE tenant=? AND name=?`)
	p.prepare(&st.insertMachine, `INSERT INTO machines (tenant, name, newest) VALUES (?,?,1)`)
	p.prepare(&st.bumpMachine, `UPDATE machines SET newest=newest+1 WHERE id=?`)
	p.prepare(&st.insertVersion, insert("versions", []string{"machine", "version", "digest", "definition", "by", "at"}))
	p.prepare(&st.findClaim, `SELECT `+claimColumns+` FROM claims WHERE tenant=? AND question_id=?`)
	p.prepare(&st.putClaim, `INSERT OR REPLACE INTO claims (`+claimColumns+`) VALUES (?,?,?,?,?,?,?,?)`)
	p.prepare(&st.unclaim, `DELETE FROM claims WHERE tenant=?1 AND question_id=?2 AND (?3='' OR subject=?3)`)
	p.prepare(&st.purgeClaims, `DELETE FROM claims WHERE expires_at<=?`)
	p.prepare(&st.putStepTime, `INSERT OR REPLACE INTO step_times (tenant, session_id, resumes, msec) VALUES (?,?,?,?)`)
	p.prepare(&st.bind, insert("bindings", []string{"variable", "host", "at"})+` ON CONFLICT DO NOTHING`)
	st.signIns.prepare(p)
	st.hooks.prepare(p)
	st.jobs.prepare(p)
}

const (
	keyColumns   = "id, key_id, name, hash, tenant, grants, created_by, created_at, expires_at, revoked_at, last_used"
	claimColumns = "tenant, question_id, subject, specialist_id, at, expires_at, note, assigned"
)

// process names this one in what it writes; "" may only read.
func (c *Control) process() string {
	if c.owner == nil {
		return ""
	}
	return c.owner.Name()
}

// Begin implements [control.Store].
func (c *Control) Begin(ctx context.Context, r control.Receipt, e control.Entry) (control.Begun, error) {
	b := &beginning{store: c, receipt: r, entry: e, hash: r.Key.Hash()}
	for {
		err := c.out.do(&job{ctx: ctx, write: b.write})
		switch refused := errors.Is(err, control.ErrInProgress) || errors.Is(err, control.ErrKeyReused); {
		case refused && b.found.Process != c.process() && b.found.Process != b.gone:
			alive, unknown := c.alive(b.found.Process)
			if unknown != nil {
				return control.Begun{}, unknown
			}
			if alive {
				return control.Begun{}, err
			}
			b.gone = b.found.Process
			continue
		case err != nil:
			return control.Begun{}, err
		case b.begun.Answer == nil:
			c.mu.Lock()
			c.turns[b.hash] = turn{n: b.turn}
			c.mu.Unlock()
		}
		return b.begun, nil
	}
}

// A beginning is one call of Begin.
type beginning struct {
	store   *Control
	receipt control.Receipt
	entry   control.Entry
	hash    control.Hash
	gone    string // the process that is known to be gone

	found *control.StoredReceipt
	begun control.Begun
	turn  int64 // that was written
}

// write begins the request inside the committer's transaction, if it is its turn.
func (b *beginning) write(ctx context.Context) error {
	c := b.store
	var last int64
	var err error
	if b.found, last, err = c.receipt(ctx, b.hash); err != nil {
		return err
	}
	gone := false
	if b.found != nil {
		c.mu.Lock()
		own := c.turns[b.hash]
		c.mu.Unlock()
		gone = b.found.Process == b.gone || b.found.Process == c.process() && own.lost && own.n == last
	}
	if b.begun, err = b.found.Repeat(b.receipt, gone); err != nil {
		return skip(err)
	}
	if b.begun.Answer != nil {
		return nil
	}
	b.turn = last + 1
	if _, err := c.stmts.begin.ExecContext(ctx, b.hash[:], b.receipt.Body[:], b.receipt.At, c.process(), b.turn); err != nil {
		return err
	}
	if _, err := c.stmts.purge.ExecContext(ctx, b.receipt.At-control.ReceiptLifetime); err != nil {
		return err
	}
	return c.append(ctx, b.entry)
}

// receipt returns a receipt, nil if there is none, and how often it was begun.
func (c *Control) receipt(ctx context.Context, key control.Hash) (*control.StoredReceipt, int64, error) {
	var s control.StoredReceipt
	var a control.Answer
	var body []byte
	var status sql.NullInt64
	var turn int64
	err := c.stmts.findReceipt.QueryRowContext(ctx, key[:]).Scan(&body, &s.At, &s.Process, &turn, &status, &a.Location, &a.ETag, &a.Body, &a.Omitted)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, 0, nil
	}
	copy(s.Body[:], body)
	if a.Status = int(status.Int64); status.Valid {
		s.Answer = &a
	}
	return &s, turn, err
}

// append appends an entry to this process's chain of the audit log.
func (c *Control) append(ctx context.Context, e control.Entry) error {
	var sequence int64
	var head []byte
	err := c.stmts.auditHead.QueryRowContext(ctx, c.process()).Scan(&sequence, &head)
	if errors.Is(err, sql.ErrNoRows) {
		err = c.stmts.auditNewest.QueryRowContext(ctx).Scan(&sequence, &head)
	}
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	var prev control.Hash
	copy(prev[:], head)
	r, err := e.Record(prev, c.process(), sequence+1)
	if err != nil {
		return err
	}
	_, err = c.stmts.insertAudit.ExecContext(ctx, r.Process, r.Sequence, r.Tenant, text(r.Data), r.Hash[:])
	return err
}

// Commit implements [control.Store].
func (c *Control) Commit(ctx context.Context, changes control.Changes) error {
	refused := false
	err := c.out.do(&job{ctx: ctx, write: func(ctx context.Context) error {
		err := c.writeChanges(ctx, &changes)
		refused = errors.As(err, new(skipError))
		return err
	}})
	if changes.End != nil {
		c.ended(changes.End.Key.Hash(), err, refused)
	}
	return err
}

// ended notes what became of the end of a request.
func (c *Control) ended(key control.Hash, err error, refused bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch own, is := c.turns[key]; {
	case err == nil:
		delete(c.turns, key)
	case is && !refused:
		c.turns[key] = turn{own.n, true}
	}
}

// writeChanges makes changes, or none if one is refused, inside the committer's
// transaction.
func (c *Control) writeChanges(ctx context.Context, changes *control.Changes) error {
	if _, err := c.stmts.save.ExecContext(ctx); err != nil {
		return err
	}
	err := c.write(ctx, changes)
	if errors.As(err, new(skipError)) {
		if _, err := c.stmts.undo.ExecContext(ctx); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	if _, err := c.stmts.release.ExecContext(ctx); err != nil {
		return err
	}
	return err
}

func (c *Control) write(ctx context.Context, changes *control.Changes) error {
	for _, e := range changes.Entries {
		if err := c.append(ctx, e); err != nil {
			return err
		}
	}
	for _, write := range []func(context.Context, *control.Changes) error{c.writeEnd, c.writeKeys, c.writeMachine, c.writeClaim, c.writeStepTime, c.writeBinding, c.writeSignIns, c.writeWebhooks, c.writeJob} {
		if err := write(ctx, changes); err != nil {
			return err
		}
	}
	return nil
}

// changed reports whether a statement has changed a row.
func changed(result sql.Result, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

func (c *Control) writeEnd(ctx context.Context, changes *control.Changes) error {
	if changes.End == nil {
		return nil
	}
	key := changes.End.Key.Hash()
	var ended bool
	var err error
	if a := changes.End.Answer; a == nil {
		ended, err = changed(c.stmts.forget.ExecContext(ctx, key[:], c.process()))
	} else {
		a := a.Kept()
		ended, err = changed(c.stmts.end.ExecContext(ctx, a.Status, a.Location, a.ETag, a.Body, a.Omitted, key[:], c.process()))
	}
	if err == nil && !ended {
		err = skip(fmt.Errorf("receipt: %w", control.ErrStale))
	}
	return err
}

func (c *Control) writeKeys(ctx context.Context, changes *control.Changes) error {
	for _, k := range changes.Keys {
		grants, err := json.Marshal(k.Grants)
		if err != nil {
			return err
		}
		added, err := changed(c.stmts.insertKey.ExecContext(ctx, k.ID, k.Name, k.Hash[:], k.Tenant, string(grants), k.CreatedBy, k.CreatedAt, k.ExpiresAt, k.RevokedAt, k.LastUsed))
		if err == nil && !added {
			err = skip(fmt.Errorf("key %s: %w", k.ID, control.ErrExists))
		}
		if err != nil {
			return err
		}
	}
	for _, r := range changes.Revoked {
		known, err := changed(c.stmts.revoke.ExecContext(ctx, r.ID, r.At))
		if err == nil && !known {
			err = skip(fmt.Errorf("key %s: %w", r.ID, control.ErrNotFound))
		}
		if err != nil {
			return err
		}
	}
	for _, u := range changes.Used {
		if _, err := c.stmts.use.ExecContext(ctx, u.ID, u.Hour()); err != nil {
			return err
		}
	}
	return nil
}

func (c *Control) writeMachine(ctx context.Context, changes *control.Changes) error {
	m := changes.Publish
	if m == nil {
		return nil
	}
	var id, newest int64
	err := c.stmts.findMachine.QueryRowContext(ctx, m.Tenant, m.Name).Scan(&id, &newest)
	switch {
	case err != nil && !errors.Is(err, sql.ErrNoRows):
		return err
	case m.Version != newest+1:
		return skip(fmt.Errorf("machine %s: %w: version %d does not follow %d", m.Name, control.ErrStale, m.Version, newest))
	case newest > 0:
		_, err = c.stmts.bumpMachine.ExecContext(ctx, id)
	default:
		var added sql.Result
		if added, err = c.stmts.insertMachine.ExecContext(ctx, m.Tenant, m.Name); err == nil {
			id, err = added.LastInsertId()
		}
	}
	if err == nil {
		_, err = c.stmts.insertVersion.ExecContext(ctx, id, m.Version, m.Digest, text(m.Definition), m.By, m.At)
	}
	return err
}

func (c *Control) writeClaim(ctx context.Context, changes *control.Changes) error {
	if n := changes.Claim; n != nil {
		var held control.Claim
		err := c.stmts.findClaim.QueryRowContext(ctx, n.Tenant, n.QuestionID).Scan(claimFields(&held)...)
		switch {
		case err != nil && !errors.Is(err, sql.ErrNoRows):
			return err
		case err == nil && !held.GivesWay(n):
			return skip(&control.ClaimedError{Claim: held})
		}
		if _, err = c.stmts.purgeClaims.ExecContext(ctx, n.At); err != nil {
			return err
		}
		if _, err = c.stmts.putClaim.ExecContext(ctx, n.Tenant, n.QuestionID, n.Subject, n.SpecialistID, n.At, n.ExpiresAt, n.Note, n.Assigned); err != nil {
			return err
		}
	}
	if u := changes.Unclaim; u != nil {
		if _, err := c.stmts.unclaim.ExecContext(ctx, u.Tenant, u.QuestionID, u.Subject); err != nil {
			return err
		}
	}
	return nil
}

func (c *Control) writeStepTime(ctx context.Context, changes *control.Changes) error {
	t := changes.Stepped
	if t == nil {
		return nil
	}
	_, err := c.stmts.putStepTime.ExecContext(ctx, t.Tenant, t.SessionID, t.Resumes, t.Msec)
	return err
}

func (c *Control) writeBinding(ctx context.Context, changes *control.Changes) error {
	b := changes.Bind
	if b == nil {
		return nil
	}
	added, err := changed(c.stmts.bind.ExecContext(ctx, b.Variable, b.Host, b.At))
	if err == nil && !added {
		err = skip(fmt.Errorf("variable %s: %w", b.Variable, control.ErrExists))
	}
	return err
}

func claimFields(n *control.Claim) []any {
	return []any{&n.Tenant, &n.QuestionID, &n.Subject, &n.SpecialistID, &n.At, &n.ExpiresAt, &n.Note, &n.Assigned}
}
