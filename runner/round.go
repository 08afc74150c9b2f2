package runner

import (
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// An openRound is what has happened in the current round. It never changes once
// its session is stored.
type openRound struct {
	proposals []*specialist.Proposal // live ones, by arrival
	asks      []askState
	probes    []*Probed // what the guards were told
	verdict   *Judged   // on exactly these proposals; nil if there is none yet
	notices   []string
	arrivals  int32 // proposals so far, replaced ones included
	judged    int32 // verdicts so far
	cost      exact.Money
	blocked   bool            // the arbiter failed: it is asked again on resume only
	judging   bool            // an arbiter outside this process is being asked
	wave      *Wave           // the first; nil unless the round is asked in waves that bayes chooses
	draws     *Draws          // why a human is asked, if that was drawn; nil else
	refused   error           // a charge of the event that is being applied; nil between events
	rulings   *pendingRulings // of humans; nil if none was ever recorded
	shown     bool            // a human was asked for another reason than an audit
	revealed  []string        // who has looked at what is withheld; "" for somebody who was not named
}

// An askState is one ask of the round and what became of it. The Ask never
// changes: a newer one takes its place.
type askState struct {
	*Ask
	status  askStatus
	unpaid  bool       // it has failed because a budget or a quota had no room
	failed  *AskFailed // why it has failed; nil if it has not
	account *account   // what is owed for it; nil for one that was only recorded yet, and inside this process
}

type askStatus uint8

const (
	askOpen askStatus = iota
	askAnswered
	askFailed
	askCancelled
)

// empty reports whether nothing has happened in the round.
func (o *openRound) empty() bool {
	return len(o.proposals) == 0 && len(o.asks) == 0 && len(o.notices) == 0 && o.verdict == nil && o.arrivals == 0 && o.rulings == nil
}

// proposal returns the live proposal of a specialist, or nil.
func (o *openRound) proposal(id string) *specialist.Proposal {
	for _, p := range o.proposals {
		if p.SpecialistID == id {
			return p
		}
	}
	return nil
}

// ask returns the newest ask of a specialist in a role, or nil.
func (o *openRound) ask(id string, role machine.Role) *askState {
	for i := len(o.asks) - 1; i >= 0; i-- {
		if a := &o.asks[i]; a.SpecialistID == id && a.Role == role {
			return a
		}
	}
	return nil
}

// before returns how many asks of a specialist came before one.
func (o *openRound) before(id string, role machine.Role, index int32) (n int32) {
	for i := range o.asks {
		if a := &o.asks[i]; a.SpecialistID == id && a.Role == role && a.Index < index {
			n++
		}
	}
	return n
}

// at returns the ask with that index, or nil.
func (o *openRound) at(index int32) *askState {
	if i := int(index) - 1; i >= 0 && i < len(o.asks) && o.asks[i].Index == index {
		return &o.asks[i] // they are numbered as they come
	}
	for i := range o.asks {
		if o.asks[i].Index == index {
			return &o.asks[i]
		}
	}
	return nil
}

// A finder finds proposals and asks by specialist, quickly also where there are
// many. It is good until the round changes.
type finder struct {
	o         *openRound
	proposals map[string]*specialist.Proposal
	asks      map[string]*askState
}

// many is the number of entries from which an index pays.
const many = 16

func (o *openRound) finder() finder {
	f := finder{o: o}
	if len(o.proposals)+len(o.asks) <= many {
		return f
	}
	f.proposals, f.asks = make(map[string]*specialist.Proposal, len(o.proposals)), make(map[string]*askState, len(o.asks))
	for _, p := range o.proposals {
		f.proposals[p.SpecialistID] = p
	}
	for i := range o.asks {
		if a := &o.asks[i]; a.Role == machine.Proposer {
			f.asks[a.SpecialistID] = a
		}
	}
	return f
}

func (f finder) proposal(id string) *specialist.Proposal {
	if f.proposals == nil {
		return f.o.proposal(id)
	}
	return f.proposals[id]
}

// ask returns the newest ask of a proposer, or nil.
func (f finder) ask(id string) *askState {
	if f.asks == nil {
		return f.o.ask(id, machine.Proposer)
	}
	return f.asks[id]
}
