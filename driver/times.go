package driver

import (
	"context"
	"sync"
	"time"

	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/internal/lru"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// For how long sessions are stepped, each since it was resumed for the last time, or started.
// It is added up here, and each minute of it is kept where a restart does not lose it; only
// then is it looked whether that is too much. So a session that takes less than a minute costs
// nothing more than a sum, and whoever kills the process wins a minute for each session. When
// the Driver ends in peace, what has not been kept is.

// Times keep for how long sessions were stepped. A [control.Store] does.
type Times interface {
	StepTime(ctx context.Context, tenant, sessionID string) (control.StepTime, error)
	Commit(ctx context.Context, c control.Changes) error
}

const (
	keepEvery = time.Minute // that a session was stepped
	worthIt   = time.Second // less is forgotten when a session waits for a human, and when the Driver ends
)

// times are those of the sessions that are known.
type times struct {
	kept  Times
	limit time.Duration
	every time.Duration

	mu       sync.Mutex
	sessions *lru.Cache[specialist.SessionID, unkept]
}

// An unkept is the time that has not been kept.
type unkept struct {
	tenant  string
	resumes int32
	took    time.Duration
}

func newTimes(kept Times, limit time.Duration) *times {
	if kept == nil {
		kept = control.NewMemory()
	}
	return &times{kept: kept, limit: limit, every: min(keepEvery, limit), sessions: lru.New[specialist.SessionID, unkept](remembered)}
}

// add adds the time of a step of a session, and reports whether all of its steps took longer
// than they may. The error says that it could not be kept.
func (t *times) add(ctx context.Context, tenant string, s *session.Session, took time.Duration) (over bool, err error) {
	t.mu.Lock()
	at, _ := t.sessions.Get(s.ID)
	if at.resumes != s.Resumes || at.tenant != tenant {
		at = unkept{tenant: tenant, resumes: s.Resumes}
	}
	if at.took += took; s.Status == session.Running || at.took >= worthIt {
		t.sessions.Put(s.ID, at)
	} else {
		t.sessions.Delete(s.ID) // what waits or has ended costs nothing
	}
	t.mu.Unlock()
	if at.took < t.every {
		return false, nil
	}
	all, err := t.keep(ctx, s.ID, at)
	return max(all, at.took) >= t.limit, err
}

// keep adds to the time of a session that is kept, and returns what it is then.
func (t *times) keep(ctx context.Context, id specialist.SessionID, at unkept) (time.Duration, error) {
	ctx = context.WithoutCancel(ctx)
	all, err := t.kept.StepTime(ctx, at.tenant, id.String())
	if err != nil {
		return 0, err
	}
	if all.Resumes != at.resumes {
		all.Msec = 0
	}
	all = control.StepTime{Tenant: at.tenant, SessionID: id.String(), Resumes: at.resumes, Msec: all.Msec + at.took.Milliseconds()}
	if err := t.kept.Commit(ctx, control.Changes{Stepped: &all}); err != nil {
		return 0, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sessions.Delete(id)
	return time.Duration(all.Msec) * time.Millisecond, nil
}

// keepAll keeps what is worth it. No step is under way.
func (t *times) keepAll() error {
	rest := map[specialist.SessionID]unkept{}
	for id, at := range t.sessions.All() {
		if at.took >= worthIt && at.took >= rest[id].took { // an older one may come, too
			rest[id] = at
		}
	}
	for id, at := range rest {
		if _, err := t.keep(context.Background(), id, at); err != nil {
			return err
		}
	}
	return nil
}
