package runner

import (
	"context"
	"testing"

	"github.com/dialai/dialai/session"
)

// TestTraceCostsNothing: without a Trace a part allocates nothing.
func TestTraceCostsNothing(t *testing.T) {
	r, s := &Runner{}, &session.Session{}
	if n := testing.AllocsPerRun(100, func() {
		_, end := r.trace(context.Background(), PartStep, s)
		end(nil)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
