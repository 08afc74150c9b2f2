package guard

import (
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/internal/text"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// What the checks know of a task, as a value. Two books are kept: what executed steps
// cost (Steps, TokensIn, Money), and what everybody spent (Spent), rejected attempts
// included; caps say which they read. Charge and Correct change spending, Advance
// counts an executed step, Refuse one that was not: that leaves nothing behind, except
// in the window of the batch loop guard.
//
// What the task knows is a digest: the session's metaJson, the caller's context, and
// for each transition the metaJson it was last executed with, combined by exclusive or,
// so that the order in which they were learned does not count. No counter and no clock
// is in it, so going round in circles leaves it as it was; foresee says what it will be
// once a step is executed. A State shares its memory with older ones and copies it
// before it changes it.

// A State is what the checks remember of one task. The zero State is that of a
// new task. It is a value: its methods return the next one and change nothing
// that an older one can see.
type State struct {
	Steps     int64 // executed
	TokensIn  int64 // of executed steps
	TokensOut int64
	Money     exact.Money // of executed steps
	Spent     spend.Book  // by everybody, losers and rejected attempts included
	Probes    spend.Book  // of Spent, by the guards' own questions

	warned   bool    // of a soft limit of the budget
	unpriced string  // the model without a price that was called last; "" if none was
	memory   *memory // nil until there is something to remember
}

// Charge returns s with the usage of an ask in the spend book, which may have taken
// several calls. model is "" for calls of no model; it is shown to people if it has
// no price.
func (s State) Charge(u specialist.Usage, model string) State {
	b := spend.Book{Calls: u.Made(), TokensIn: u.NumInputTokens, TokensOut: u.NumOutputTokens, Money: u.CostUSD}
	if n := u.Billed(); n > 0 && model != "" && !u.Has(specialist.CostGiven) {
		b.Unpriced, s.unpriced = n, model
	}
	if u.Estimated {
		b.Estimated = 1
	}
	s.Spent = s.Spent.Plus(b)
	return s
}

// Correct returns s after a call that was charged with an estimate turned out
// to have cost something else.
func (s State) Correct(charged, real specialist.Usage) State {
	s.Spent = s.Spent.Correct(charged, real)
	return s
}

// ChargeProbe is Charge for a question that the guards asked themselves.
func (s State) ChargeProbe(u specialist.Usage, model string) State {
	s.Probes = State{Spent: s.Probes}.Charge(u, model).Spent
	return s.Charge(u, model)
}

// CorrectProbe is Correct for a question that the guards asked themselves.
func (s State) CorrectProbe(charged, real specialist.Usage) State {
	s.Probes = s.Probes.Correct(charged, real)
	return s.Correct(charged, real)
}

// Advance returns s after the step was executed. c may be nil.
func (s State) Advance(c *Config, step verdict.Step) State {
	s = s.count(&step)
	if c == nil {
		return s
	}
	s.warned = s.warned || c.Budget != nil && c.Budget.OverSoft(s.Spent)
	m := &memory{}
	if s.memory != nil {
		m = s.memory.clone()
	}
	m.learn(c, &step)
	l := looks.Get().(*look)
	defer l.release()
	if l.read(c, &step, m.digest(&step)) == nil { // a step that was judged can be read
		m.add(c, &step, l, false)
	}
	s.memory = m
	return s
}

// Refuse returns s after v kept the step from being executed. Such a step leaves
// nothing behind, except where the ladder of the batch loop guard alone refused
// it: a batch that comes back is stronger evidence. c may be nil.
func (s State) Refuse(c *Config, step verdict.Step, v verdict.Verdict) State {
	m := memory{}
	if s.memory != nil {
		m = *s.memory
	}
	before := m.batch
	if m.refuse(c, &step, v); m.batch != before {
		s.memory = &m
	}
	return s
}

// Clear returns s without what loop detection remembers, so that the next step is
// judged afresh; counters, tools, facts and spending stay.
func (s State) Clear() State {
	if s.memory != nil {
		s.memory = s.memory.clone()
		s.memory.clear()
	}
	return s
}

// clear forgets what has repeated.
func (m *memory) clear() { *m = memory{facts: m.facts, tools: m.tools, index: m.index} }

// count returns s with the step in its counters.
func (s State) count(step *verdict.Step) State {
	s.Steps = max(exact.AddSat(s.Steps, 1), step.Number)
	s.TokensIn = exact.AddSat(s.TokensIn, step.TokensIn)
	s.TokensOut = exact.AddSat(s.TokensOut, step.TokensOut)
	s.Money = s.Money.Add(step.Cost)
	return s
}

// ToolCounts calls f with every tool that executed steps have called, in the
// order of the first call, and how often.
func (s State) ToolCounts(f func(tool string, calls int64)) {
	if s.memory == nil {
		return
	}
	for _, t := range s.memory.tools {
		f(t.Name, t.Calls)
	}
}

// learn takes in the metaJson of a transition.
func (m *memory) learn(c *Config, step *verdict.Step) {
	if len(step.MetaJSON) == 0 {
		return
	}
	next := factOf(c, step)
	for i := range m.facts {
		if m.facts[i].Transition == next.Transition {
			m.facts[i] = next
			return
		}
	}
	m.facts = append(m.facts, next)
}

// factOf returns what a step tells: metaJson that says the same in other words
// is the same fact. What is no JSON stays as it is.
func factOf(c *Config, step *verdict.Step) fact {
	var h text.JSONHasher
	said, err := h.Hash(step.MetaJSON)
	switch {
	case err != nil:
		said = text.HashBytes(step.MetaJSON)
	case c.Loop.Normalize:
		said, _ = h.HashNormal(step.MetaJSON)
	}
	return fact{step.Transition, hash(said)}
}

// digest digests what the task knows once the step's metaJson has been learnt:
// the session's own metaJson, whatever the caller says of the context, and, for
// each transition, the metaJson it was last executed with. No counter and no
// clock is part of it, so going round in circles leaves it as it was. It is 0 if
// nothing is known.
func (m *memory) digest(step *verdict.Step) hash {
	var d uint64
	if len(step.SessionMeta) > 0 {
		d = text.HashBytes(step.SessionMeta)
	}
	if len(step.Context) > 0 {
		d ^= text.HashInto(text.Prime2, step.Context)
	}
	for _, f := range m.facts {
		d ^= uint64(f.mix())
	}
	return hash(d)
}

// mix hashes a fact as a whole: two transitions that swap their metaJson are news.
func (f fact) mix() hash { return hash(text.HashInto(uint64(f.Hash), text.BytesOf(f.Transition))) }

// foresee returns the digest as it will be if the step is executed, and changes
// nothing.
func (m *memory) foresee(c *Config, step *verdict.Step) hash {
	d := m.digest(step)
	if len(step.MetaJSON) == 0 {
		return d
	}
	next := factOf(c, step)
	for _, f := range m.facts {
		if f.Transition == next.Transition {
			d ^= f.mix()
		}
	}
	return d ^ next.mix()
}
