package lessons

import (
	"context"
	"slices"
	"sync"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A Past is what a session remembers, for proposers and arbiters: it is made of the two
// exported fields, and may be used concurrently.
type Past struct {
	Store interface {
		Exemplars(ctx context.Context, machineName string, state machine.StateName, limit int) ([]specialist.Exemplar, error)
	}
	Session *session.Session

	mu        sync.Mutex
	history   []specialist.TransitionRecord
	exemplars []specialist.Exemplar
	loaded    bool
}

// Steps implements [specialist.Past].
func (p *Past) Steps() int { return int(p.Session.Executed) }

// Visits implements [specialist.Past].
func (p *Past) Visits(s *machine.State) int { return p.Session.Visits(s) }

// Last implements [specialist.Past].
func (p *Past) Last() *machine.Transition {
	if last := p.Session.Last(); last != nil {
		return last.Transition
	}
	return nil
}

// History implements [specialist.Past].
func (p *Past) History() []specialist.TransitionRecord {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.history == nil {
		p.history = session.TransitionRecords(p.Session.History())
	}
	return p.history
}

// Exemplars implements [specialist.Past]. If the store cannot be read there are
// none: examples help, they are not needed.
func (p *Past) Exemplars() []specialist.Exemplar {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.loaded {
		p.loaded = true
		stored, _ := p.Store.Exemplars(context.Background(), p.Session.Machine().Name(), machine.StateName(p.Session.State.Name), 0)
		p.exemplars = slices.Clone(stored)
		for i := range p.exemplars { // older programs stored the words for no reason
			p.exemplars[i].Reasoning = session.GivenReason(p.exemplars[i].Reasoning)
		}
	}
	return p.exemplars
}
