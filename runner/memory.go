package runner

import (
	"context"
	"slices"
	"sync"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A memory is what a session remembers, for proposers and arbiters.
type memory struct {
	r *Runner
	s *session.Session

	mu        *sync.Mutex // nil if only one goroutine looks
	history   []specialist.TransitionRecord
	exemplars []specialist.Exemplar
	loaded    bool
}

// Past returns what a session remembers, for an arbiter that decides a recorded round
// again. It may be used by one goroutine at a time.
func (r *Runner) Past(s *session.Session) specialist.Past { return &memory{r: r, s: s} }

// Steps implements [specialist.Past].
func (p *memory) Steps() int { return int(p.s.Executed) }

// Visits implements [specialist.Past].
func (p *memory) Visits(s *machine.State) int { return p.s.Visits(s) }

// Last implements [specialist.Past].
func (p *memory) Last() *machine.Transition {
	if last := p.s.Last(); last != nil {
		return last.Transition
	}
	return nil
}

// History implements [specialist.Past].
func (p *memory) History() []specialist.TransitionRecord {
	if p.mu != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
	}
	if p.history == nil {
		p.history = session.TransitionRecords(p.s.History())
	}
	return p.history
}

// Exemplars implements [specialist.Past]. If the store cannot be read there are
// none: examples help, they are not needed.
func (p *memory) Exemplars() []specialist.Exemplar {
	if p.mu != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
	}
	if !p.loaded {
		p.loaded = true
		stored, _ := p.r.store.Exemplars(context.Background(), p.s.Machine().Name(), machine.StateName(p.s.State.Name), 0)
		p.exemplars = slices.Clone(stored)
		for i := range p.exemplars { // older programs stored the words for no reason
			p.exemplars[i].Reasoning = session.GivenReason(p.exemplars[i].Reasoning)
		}
	}
	return p.exemplars
}
