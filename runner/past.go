package runner

import (
	"context"
	"slices"
	"sync"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// A past is what a session remembers, for proposers and arbiters.
type past struct {
	r *Runner
	s *Session

	mu        *sync.Mutex // nil if only one goroutine looks
	history   []specialist.TransitionRecord
	exemplars []specialist.Exemplar
	loaded    bool
}

// Steps implements [specialist.Past].
func (p *past) Steps() int { return int(p.s.Executed) }

// Visits implements [specialist.Past].
func (p *past) Visits(s *machine.State) int { return p.s.visits(s) }

// Last implements [specialist.Past].
func (p *past) Last() *machine.Transition {
	if p.s.last == nil {
		return nil
	}
	return p.s.last.Transition
}

// History implements [specialist.Past].
func (p *past) History() []specialist.TransitionRecord {
	if p.mu != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
	}
	if p.history == nil {
		p.history = TransitionRecords(p.s.History())
	}
	return p.history
}

// TransitionRecords returns executed transitions as proposers see them.
func TransitionRecords(history []*Executed) []specialist.TransitionRecord {
	records := make([]specialist.TransitionRecord, len(history))
	for i, e := range history {
		records[i] = specialist.TransitionRecord{TransitionName: e.Transition.Name, Reasoning: e.Reasoning, ExecutionTimestamp: e.At, MetaJSON: e.MetaJSON}
	}
	return records
}

// Exemplars implements [specialist.Past]. If the store cannot be read there are
// none: examples help, they are not needed.
func (p *past) Exemplars() []specialist.Exemplar {
	if p.mu != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
	}
	if !p.loaded {
		p.loaded = true
		stored, _ := p.r.store.Exemplars(context.Background(), p.s.Machine().Name(), p.s.State.Name, 0)
		p.exemplars = slices.Clone(stored)
		for i := range p.exemplars { // older programs stored the words for no reason
			p.exemplars[i].Reasoning = givenReason(p.exemplars[i].Reasoning)
		}
	}
	return p.exemplars
}
