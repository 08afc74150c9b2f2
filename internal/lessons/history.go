package lessons

import (
	"context"
	"fmt"
	"sync"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/session"
)

// A History follows what everybody's word has counted for in one store: each call reads the
// lessons that have come since the last one, the first all of them. It may be used concurrently.
// The zero History has read nothing yet.
type History struct {
	mu       sync.Mutex
	replaced int64 // how often the store was when now was begun
	now      *trust.History
	place    int64 // Lesson.Seq of the newest lesson in now
}

// Read calls look with every lesson whose commit returned before the call. What it is given is
// look's own until it returns. Where it fails, what it has read so far need not be read again.
func (h *History) Read(ctx context.Context, s session.TrustStore, look func(*trust.History)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	err := h.read(ctx, s)
	for session.Replaced(s) != h.replaced {
		h.now, h.place, h.replaced = nil, 0, session.Replaced(s)
		err = h.read(ctx, s)
	}
	if err == nil {
		look(h.now)
	}
	return err
}

// read reads the lessons that have come.
func (h *History) read(ctx context.Context, s session.TrustStore) error {
	if h.now == nil {
		h.now = trust.NewHistory()
	}
	for x, err := range s.Lessons(ctx, h.place) {
		if err == nil {
			if err = h.now.Learn(x); err != nil {
				err = &session.CorruptError{What: fmt.Sprintf("lesson %d", x.Seq), Problem: err.Error()}
			}
		}
		if err != nil {
			return err
		}
		h.place = x.Seq
	}
	return nil
}
