package runner

import (
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/session"
)

// A batch is room for the data of the events of a plain round, so that they are
// one allocation and not six.
type batch struct {
	asked     session.Asked
	asks      [4]session.Ask
	judged    session.Judged
	order     [4]int32
	weights   [4]exact.Billionths
	gated     session.Gated
	opened    session.RoundOpened
	used      uint8
	proposals []session.Proposed // of a round asked in this commit
}

const (
	askedUsed = 1 << iota
	judgedUsed
	gatedUsed
	openedUsed
)

// part hands out a part of the batch once: first is its place there, and ok is
// false if it is taken already.
func (t *commit) part(part uint8) (b *batch, ok bool) {
	if t.batch == nil {
		t.batch = &batch{}
	}
	ok = t.batch.used&part == 0
	t.batch.used |= part
	return t.batch, ok
}

func (t *commit) newAsked() *session.Asked {
	b, ok := t.part(askedUsed)
	if !ok {
		return &session.Asked{}
	}
	b.asked.Asks = b.asks[:0]
	return &b.asked
}

func (t *commit) newJudged(votes int) *session.Judged {
	b, ok := t.part(judgedUsed)
	if !ok {
		return &session.Judged{Order: make([]int32, votes), Weights: make([]exact.Billionths, votes)}
	}
	if votes <= len(b.order) {
		b.judged.Order, b.judged.Weights = b.order[:votes:votes], b.weights[:votes:votes]
	} else {
		b.judged.Order, b.judged.Weights = make([]int32, votes), make([]exact.Billionths, votes)
	}
	return &b.judged
}

func (t *commit) newGated() *session.Gated {
	if b, ok := t.part(gatedUsed); ok {
		return &b.gated
	}
	return &session.Gated{}
}

func (t *commit) newOpened() *session.RoundOpened {
	if b, ok := t.part(openedUsed); ok {
		return &b.opened
	}
	return &session.RoundOpened{}
}

// expect makes room for that many proposals.
func (t *commit) expect(n int) {
	b, _ := t.part(0)
	if cap(b.proposals)-len(b.proposals) < n {
		b.proposals = make([]session.Proposed, 0, n)
	}
}

func (t *commit) newProposed() *session.Proposed {
	b, _ := t.part(0)
	if len(b.proposals) == cap(b.proposals) {
		return &session.Proposed{}
	}
	b.proposals = b.proposals[:len(b.proposals)+1]
	return &b.proposals[len(b.proposals)-1]
}
