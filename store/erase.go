package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/internal/fold"
)

// Erase takes payloads out of sessions that have ended, and out of their forks, which have copies of
// them: what was said is gone, and what happened, what it cost and what it taught stays, and is verified
// and rebuilt as before (session/erase.go says how, erase_session.go what is written).
//
// Each session is one transaction, forks before what they were forked from: so a run that was
// interrupted finds the rest again when it is run again, also by the subject, which goes with the
// last of them. What a server remembers of a session goes before the session does. Then the file is written
// anew, for what was erased still stands on free pages and in the write-ahead log; a row of erasing
// says that this is still to be done.

// EraseOptions say what is erased: Session, or Subject.
type EraseOptions struct {
	Session  specialist.SessionID
	Subject  string // the whole subject that sessions have now; "" for that of Session alone
	Note     string // why; it is recorded, so it names nobody
	Actor    *session.Actor
	At       specialist.Time // now
	Programs *session.Programs

	after func(step string) error // of tests: fails, or kills the process, after a step
}

// Erased is what was erased, or would be.
type Erased struct {
	Sessions []ErasedSession `json:"sessions"`
	// Remembered counts what a server had kept of the sessions in the control file beside the store.
	Remembered int64 `json:"remembered"`
	// Origins are sessions that some of these were forked from: they have what these had, and were not
	// erased.
	Origins []string `json:"origins,omitempty"`
	// Archives are the files to which sessions of the store were archived: forks may be there.
	Archives []string `json:"archives,omitempty"`
}

// An ErasedSession is one of them.
type ErasedSession struct {
	SessionID   string `json:"sessionId"`
	MachineName string `json:"machineName"`
	Status      string `json:"status"`
	ForkedFrom  string `json:"forkedFrom,omitempty"`
	Records     int    `json:"records"`  // of its log that are other ones now
	AgentLog    int    `json:"agentLog"` // entries
	Audit       int    `json:"audit"`    // entries of the audit of models
}

// Errors of [SQLite.Erase].
var (
	// ErrEraseArchive: the store is an archive; what its sessions taught, and the audit of models, is in
	// the one that it was made of.
	ErrEraseArchive = errors.New("it is an archive, and what its sessions taught stands in the store that it was archived from")
	// ErrStillRead: the sessions were erased, but pages from before are still in use.
	ErrStillRead = errors.New("the sessions are erased, but another process reads the file, so what was there could not be overwritten yet")
)

// An EraseLiveError says that a session lives, so that nothing was erased.
type EraseLiveError struct {
	ID, Status, ForkedFrom string
}

func (e *EraseLiveError) Error() string {
	fork := ""
	if e.ForkedFrom != "" {
		fork = ", which was forked from session " + e.ForkedFrom + ","
	}
	return fmt.Sprintf("session %s%s has not ended: it is %s", e.ID, fork, e.Status)
}

// Erasable returns what [SQLite.Erase] would erase, and changes nothing.
func (s *SQLite) Erasable(ctx context.Context, o EraseOptions) (Erased, error) {
	e := erasing{SQLite: s, o: o, roots: map[string]bool{}}
	conn, err := s.read.Conn(ctx)
	if err != nil {
		return Erased{}, translate(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, `BEGIN`); err != nil { // one snapshot for everything
		return Erased{}, translate(err)
	}
	defer conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`)
	r := reader{conn}
	if err := e.allowed(ctx, r); err != nil {
		return Erased{}, err
	}
	plan, err := e.plan(ctx, r)
	if err != nil {
		return Erased{}, err
	}
	for _, f := range plan {
		done, err := e.prepare(ctx, r, f)
		if err != nil {
			return Erased{}, err
		}
		e.count(done)
	}
	e.report.Remembered, err = e.remembered(ctx, false, plan)
	return e.report, err
}

// Erase takes payloads out of ended sessions, while others read and write the store. Interrupted, it can be
// run again. It returns [EraseLiveError] if one of them, or of their forks, lives, and then changes
// nothing, [session.ErrNotFound] if there is none, [session.ArchivedError] for one that was archived, [ErrArchiving] if another process archives or erases, and
// [ErrStillRead] if it has to be run again for the rest.
func (s *SQLite) Erase(ctx context.Context, o EraseOptions) (done Erased, err error) {
	if o.after == nil {
		o.after = func(string) error { return nil }
	}
	lock, err := s.lock("archiving")
	if err != nil {
		return done, err
	}
	switch held, err := lock.TryLock(); {
	case err != nil:
		return done, err
	case !held:
		return done, ErrArchiving
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	e := erasing{SQLite: s, o: o, roots: map[string]bool{}}
	if err := e.allowed(ctx, s.reader()); err != nil {
		return done, err
	}
	err = e.run(ctx)
	return e.report, err
}

// An erasing is one run of Erase.
type erasing struct {
	*SQLite
	o      EraseOptions
	roots  map[string]bool // ids of the sessions that were named
	seen   map[int64]bool  // rows that were erased
	report Erased
}

// allowed returns why nothing may be erased in the store.
func (e *erasing) allowed(ctx context.Context, r reader) error {
	if err := r.frozen(ctx); err != nil {
		return err
	}
	is, err := r.identity(ctx)
	if err == nil && is.ArchiveOf != nil {
		err = &OpenError{e.path, ErrEraseArchive}
	}
	return translate(err)
}

func (e *erasing) run(ctx context.Context) error {
	e.seen = map[int64]bool{}
	for {
		plan, err := e.plan(ctx, e.reader())
		if err != nil {
			return err
		}
		plan = slices.DeleteFunc(plan, func(f family) bool { return e.seen[f.row] })
		if len(plan) == 0 {
			break
		}
		n, err := e.remembered(ctx, true, plan)
		if e.report.Remembered += n; err != nil {
			return err
		}
		if err := e.o.after("forgotten"); err != nil {
			return err
		}
		for _, f := range plan {
			if err := e.one(ctx, f); err != nil {
				return err
			}
			if err := e.o.after("erased"); err != nil {
				return err
			}
		}
	}
	return e.overwrite(ctx)
}

// A family is a session that is erased, and what it was forked from.
type family struct {
	row        int64
	id, status string
	from       string // "" if it is no fork
}

// plan returns the sessions that are named, and their forks: what was forked before what it was forked from.
func (e *erasing) plan(ctx context.Context, r reader) ([]family, error) {
	all, err := r.families(ctx)
	if err != nil {
		return nil, err
	}
	if err := e.named(ctx, r); err != nil {
		return nil, err
	}
	var plan []family
	in := map[string]bool{}
	for grew := true; grew; { // a fork may have been forked itself
		grew = false
		for _, f := range all {
			if !in[f.id] && (e.roots[f.id] || in[f.from]) {
				in[f.id], grew, plan = true, true, append(plan, f)
			}
		}
	}
	e.report.Origins = nil
	for _, f := range plan {
		if f.from != "" && !in[f.from] {
			e.report.Origins = append(e.report.Origins, f.from)
		}
		var status session.Status
		if err := status.UnmarshalText([]byte(f.status)); err != nil || status.Live() {
			return nil, &EraseLiveError{f.id, f.status, f.from}
		}
	}
	slices.SortFunc(plan, func(x, y family) int { return int(y.row - x.row) }) // a fork begins later than what it goes on from
	e.report.Archives = nil
	var archive string
	return plan, each(scan(r.q.QueryContext(ctx, `SELECT DISTINCT archive FROM archived ORDER BY archive`)).into(&archive), func() error {
		e.report.Archives = append(e.report.Archives, archive)
		return nil
	})
}

// named finds the sessions that are named, unless it has.
func (e *erasing) named(ctx context.Context, r reader) error {
	if len(e.roots) > 0 {
		return nil
	}
	var id string
	query, what := `SELECT session_id FROM sessions WHERE session_id=?`, e.o.Session.String()
	if e.o.Subject != "" {
		query, what = `SELECT session_id FROM sessions WHERE subject=?`, e.o.Subject
	}
	for err := range scan(r.q.QueryContext(ctx, query, what)).into(&id) {
		if err != nil {
			return err
		}
		e.roots[id] = true
	}
	if len(e.roots) > 0 {
		return nil
	}
	var unfinished bool
	switch err := r.q.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM erasing)`).Scan(&unfinished); {
	case err != nil:
		return translate(err)
	case e.o.Subject == "":
		return r.elsewhere(ctx, e.o.Session)
	case unfinished: // the subject went with the last of them
		return nil
	}
	return &session.NotFoundError{What: "Session with the subject", ID: e.o.Subject}
}

// families returns all sessions in the order in which they began. What one was forked from stands in its first record.
func (r reader) families(ctx context.Context) (list []family, err error) {
	var f family
	var packed, buffer []byte
	err = each(scan(r.q.QueryContext(ctx, `SELECT s.id, s.session_id, s.status, l.events FROM sessions s CROSS JOIN log l ON l.session=s.id AND l.first=1 ORDER BY s.id`)).
		into(&f.row, &f.id, &f.status, &packed), func() error {
		events, err := fold.Unpack(buffer, packed, 1)
		if err != nil {
			return err
		}
		buffer = events
		if f.from = ""; bytes.Contains(events, []byte(`"forkedFrom"`)) {
			raw, err := session.SplitRaw(nil, events)
			if err != nil || len(raw) == 0 {
				return session.Corrupt("the log of session "+f.id, fmt.Errorf("its first record cannot be read"))
			}
			_, options, err := raw[0].Creation()
			if err != nil {
				return session.Corrupt("the log of session "+f.id, err)
			}
			if options.ForkedFrom != nil {
				f.from = options.ForkedFrom.SessionID
			}
		}
		list = append(list, f)
		return nil
	})
	return list, err
}

// one erases one session, in one transaction.
func (e *erasing) one(ctx context.Context, f family) error {
	var done *erasure
	err := e.out.do(&job{ctx: ctx, alone: func(ctx context.Context, conn *sql.Conn) error {
		if _, err := conn.ExecContext(ctx, `PRAGMA secure_delete=ON`); err != nil {
			return err
		}
		return inTransaction(ctx, conn, func() (err error) {
			r := reader{conn}
			if err := r.frozen(ctx); err != nil {
				return err
			}
			if done, err = e.prepare(ctx, r, f); err != nil || done.nothing() {
				return err
			}
			return done.write(ctx, conn)
		})
	}})
	if err != nil {
		return err
	}
	e.mu.Lock()
	if id, err := session.ParseID(f.id); err == nil {
		e.cache.sessions.Delete(id)
	}
	e.mu.Unlock()
	e.seen[f.row] = true
	e.count(done)
	return nil
}

// count adds what was erased to the report.
func (e *erasing) count(done *erasure) {
	if !done.nothing() {
		e.report.Sessions = append(e.report.Sessions, ErasedSession{done.id, done.machineName, done.status, done.from, len(done.records), len(done.agents), len(done.audit)})
	}
}

// overwrite writes the file anew, if something was erased, and empties the write-ahead log: nothing is left
// of what was there.
func (e *erasing) overwrite(ctx context.Context) error {
	return e.out.do(&job{ctx: ctx, alone: func(ctx context.Context, conn *sql.Conn) error {
		var due bool
		if err := conn.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM erasing)`).Scan(&due); err != nil || !due {
			return err
		}
		if err := overwrite(ctx, conn); err != nil {
			return err
		}
		if err := e.o.after("overwritten"); err != nil {
			return err
		}
		if lock, err := e.DriverLock(); err == nil { // else a rebuild may be under way
			if free, err := lock.TryLock(); err == nil && free {
				_, err = os.Stat(e.path + ".rebuild")
				if err == nil { // one that was killed
					err = removeStore(e.path + ".rebuild")
				}
				if err = errors.Join(lock.Unlock(), err); err != nil && !errors.Is(err, os.ErrNotExist) {
					return err
				}
			}
		}
		_, err := conn.ExecContext(ctx, `DELETE FROM erasing`)
		return err
	}})
}

// overwrite writes a file anew.
func overwrite(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, `VACUUM`); err != nil {
		return err
	}
	var busy, frames, written int64
	if err := conn.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &frames, &written); err != nil {
		return err
	}
	if busy != 0 {
		return ErrStillRead
	}
	return nil
}

// remembered counts, or deletes, what a server keeps of the sessions in the control file beside the store.
func (e *erasing) remembered(ctx context.Context, forget bool, plan []family) (n int64, err error) {
	path := ControlPath(e.path)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) || len(plan) == 0 {
		return 0, nil
	}
	c, err := OpenControl(ctx, path, SQLiteOptions{ReadOnly: !forget, BusyTimeout: e.how.busy})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	ids := make([]string, len(plan))
	for i, f := range plan {
		ids[i] = f.id
	}
	if !forget {
		return c.naming(ctx, ids)
	}
	return c.forgetSessions(ctx, ids)
}
