package bench_test

import (
	"context"
	"time"
)

// L1 is the honest lower bound of a round: the same logical work, written by
// hand for one purpose. A compiled machine of index tables, an interface call
// for each proposer, a pick, a legality check, counters, one reading of the
// clock, one history record; a new session every hundred rounds.

type l1Machine struct {
	next   [][]int32 // by state and transition, -1 where illegal
	limits struct{ steps, visits int32 }
}

type l1Session struct {
	machine *l1Machine
	state   int32
	round   int32
	steps   int32
	visits  []int32
	history []l1Record
}

// l1Record is 48 bytes, as a compact history record is.
type l1Record struct {
	at                   int64
	from, to, transition int32
	round, proposals     int32
	reasoning            string
}

type l1Proposal struct {
	transition int32
	reasoning  string
}

type l1Question struct {
	session *l1Session
	state   int32
	legal   int
}

type l1Proposer interface {
	propose(ctx context.Context, q *l1Question) (l1Proposal, error)
}

type l1First struct{ reasoning string }

func (p *l1First) propose(_ context.Context, _ *l1Question) (l1Proposal, error) {
	return l1Proposal{0, p.reasoning}, nil
}

type l1Engine struct {
	proposers []l1Proposer
	buffer    []l1Proposal
}

func (e *l1Engine) start(m *l1Machine) *l1Session {
	return &l1Session{machine: m, round: 1, visits: make([]int32, len(m.next))}
}

// step runs one round by weighted majority.
func (e *l1Engine) step(ctx context.Context, s *l1Session) bool {
	legal := s.machine.next[s.state]
	q := l1Question{s, s.state, len(legal)}
	e.buffer = e.buffer[:0]
	for _, p := range e.proposers {
		a, err := p.propose(ctx, &q)
		if err != nil || a.transition < 0 || int(a.transition) >= len(legal) {
			continue
		}
		e.buffer = append(e.buffer, a)
	}
	var counts [16]int32
	winner, best := -1, int32(0)
	for i := range e.buffer {
		t := e.buffer[i].transition
		if counts[t]++; counts[t] > best {
			winner, best = i, counts[t]
		}
	}
	if winner < 0 || s.steps >= s.machine.limits.steps {
		return false
	}
	a := &e.buffer[winner]
	to := legal[a.transition]
	if to < 0 || s.visits[to] >= s.machine.limits.visits {
		return false
	}
	s.history = append(s.history, l1Record{
		at: time.Now().UnixMilli(), from: s.state, to: to, transition: a.transition,
		round: s.round, proposals: int32(len(e.buffer)), reasoning: a.reasoning,
	})
	s.visits[to]++
	s.state = to
	s.steps++
	s.round++
	return true
}
