package erase_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/internal/erase"
)

// A paged is a store of sessions that all have ended but the last one; none is read further.
type paged struct {
	erase.View
	all  []erase.Family
	held int // the most that were asked for at a time
}

func (p *paged) Look(context.Context, *erase.Options) (erase.Looked, error) {
	return erase.Looked{Named: []string{"s500"}}, nil
}

func (p *paged) Families(_ context.Context, after erase.Family, n int) ([]erase.Family, error) {
	p.held = max(p.held, n)
	rest := p.all[after.Row:]
	return rest[:min(n, len(rest))], nil
}

// TestErasePages: a fork is found on whatever page it stands, before or behind what it was forked from, and never more than a page
// of sessions is asked for.
func TestErasePages(t *testing.T) {
	const n = 3000
	p := &paged{all: make([]erase.Family, n)}
	for i := range p.all {
		p.all[i] = erase.Family{Row: int64(i + 1), ID: fmt.Sprintf("s%d", i), Status: "completed"}
	}
	p.all[2500].From, p.all[20].From, p.all[n-1].From, p.all[n-1].Status = "s500", "s2500", "s20", "running"
	for size, want := range map[int]int{0: 1000, 7: 7} {
		p.held = 0
		_, err := erase.Erasable(t.Context(), p, erase.Options{Session: specialist.SessionID{1}, Page: size}, nil)
		if live, ok := errors.AsType[*erase.LiveError](err); !ok || live.ID != "s2999" || p.held != want {
			t.Errorf("pages of %d: %v, %d at a time", size, err, p.held)
		}
	}
}
