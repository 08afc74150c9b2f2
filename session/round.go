package session

import (
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// The open round, as the fold leaves it: who was asked, what became of it, what was proposed,
// judged and ruled. Whatever a step decides by is here or in the session. What an ask costs is
// in account.go, which states it passes through in ask_state.go.

// An OpenRound is what has happened in the current round. It never changes once
// its session is stored.
type OpenRound struct {
	Proposals []*specialist.Proposal // live ones, by arrival
	Asks      []AskState
	Probes    []*Probed // what the guards were told
	Verdict   *Judged   // on exactly these proposals; nil if there is none yet
	Notices   []string
	Arrivals  int32 // proposals so far, replaced ones included
	Verdicts  int32 // verdicts so far
	Cost      exact.Money
	Blocked   bool            // the arbiter failed: it is asked again on resume only
	Wave      *Wave           // the first; nil unless the round is asked in waves that bayes chooses
	Draws     *Draws          // why a human is asked, if that was drawn; nil else
	SetFailed string          // why the elected transition could not write the data; "" unless that was tried
	refused   error           // a charge of the event that is being applied; nil between events
	charged   func(Charge)    // is told of each; nil if nobody wants to know
	Rulings   *PendingRulings // of humans; nil if none was ever recorded
	shown     bool            // a human was asked for another reason than an audit
	inherited bool            // answers of it were given in the session from which this one was forked
	revealed  []string        // who has looked at what is withheld; "" for somebody who was not named
}

// An AskState is one ask of the round and what became of it. The Ask never
// changes: a newer one takes its place.
type AskState struct {
	*Ask
	Status  AskStatus
	failed  *AskFailed // why it has failed, or was cancelled; nil if nobody said
	account *account   // what is owed for it; nil for one that was only recorded yet, and inside this process
}

// empty reports whether nothing has happened in the round.
func (o *OpenRound) empty() bool {
	return len(o.Proposals) == 0 && len(o.Asks) == 0 && len(o.Notices) == 0 && o.Verdict == nil && o.Arrivals == 0 && o.Rulings == nil
}

// Proposal returns the live proposal of a specialist, or nil.
func (o *OpenRound) Proposal(id string) *specialist.Proposal {
	for _, p := range o.Proposals {
		if p.SpecialistID == id {
			return p
		}
	}
	return nil
}

// Ask returns the newest ask of a specialist in a role, or nil.
func (o *OpenRound) Ask(id string, role machine.Role) *AskState {
	for i := len(o.Asks) - 1; i >= 0; i-- {
		if a := &o.Asks[i]; a.SpecialistID == id && a.Role == role {
			return a
		}
	}
	return nil
}

// Before returns how many asks of a specialist came before one.
func (o *OpenRound) Before(id string, role machine.Role, index int32) (n int32) {
	for i := range o.Asks {
		if a := &o.Asks[i]; a.SpecialistID == id && a.Role == role && a.Index < index {
			n++
		}
	}
	return n
}

// At returns the ask with that index, or nil.
func (o *OpenRound) At(index int32) *AskState {
	if i := int(index) - 1; i >= 0 && i < len(o.Asks) && o.Asks[i].Index == index {
		return &o.Asks[i] // they are numbered as they come
	}
	for i := range o.Asks {
		if o.Asks[i].Index == index {
			return &o.Asks[i]
		}
	}
	return nil
}

// A Finder finds proposals and asks by specialist, quickly also where there are
// many. It is good until the round changes.
type Finder struct {
	o         *OpenRound
	proposals map[string]*specialist.Proposal
	asks      map[string]*AskState
}

// many is the number of entries from which an index pays.
const many = 16

// Finder returns a Finder for the round as it is now.
func (o *OpenRound) Finder() Finder {
	f := Finder{o: o}
	if len(o.Proposals)+len(o.Asks) <= many {
		return f
	}
	f.proposals, f.asks = make(map[string]*specialist.Proposal, len(o.Proposals)), make(map[string]*AskState, len(o.Asks))
	for _, p := range o.Proposals {
		f.proposals[p.SpecialistID] = p
	}
	for i := range o.Asks {
		if a := &o.Asks[i]; a.Role == machine.Proposer {
			f.asks[a.SpecialistID] = a
		}
	}
	return f
}

// Proposal returns the live proposal of a specialist, or nil.
func (f Finder) Proposal(id string) *specialist.Proposal {
	if f.proposals == nil {
		return f.o.Proposal(id)
	}
	return f.proposals[id]
}

// Ask returns the newest ask of a proposer, or nil.
func (f Finder) Ask(id string) *AskState {
	if f.asks == nil {
		return f.o.Ask(id, machine.Proposer)
	}
	return f.asks[id]
}
