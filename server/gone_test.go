package server_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
)

// A goneStore is one whose file was removed: a connection that is opened then finds an empty one
// in its place.
type goneStore struct {
	session.Store
	gone atomic.Bool
}

func (s *goneStore) Load(ctx context.Context, p *session.Programs, id specialist.SessionID) (*session.Session, error) {
	if s.gone.Load() {
		return nil, errors.New("no such table: sessions")
	}
	return s.Store.Load(ctx, p, id)
}

func (s *goneStore) Intact() error {
	if s.gone.Load() {
		return store.ErrReplaced
	}
	return nil
}

// TestReadsOfAStoreThatIsGone: that it is gone is said, and not what came of reading it.
func TestReadsOfAStoreThatIsGone(t *testing.T) {
	kept := &goneStore{Store: store.NewMemory()}
	d := newDesk(t, deskOptions{store: kept, drives: true})
	open := d.start(reviewed)
	kept.gone.Store(true)
	if r := d.want(503, "POST", "/v1/sessions/"+open.SessionID+"/decisions", ruling(open, "pay", "carol")); r.code() != "store_gone" {
		t.Errorf("a ruling is refused with %s", r.body)
	}
}
