package guard

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/specialist"
)

// A State is what the checks remember of one task. The zero State is that of a
// new task. It is a value: its methods return the next one and change nothing
// that an older one can see.
type State struct {
	Steps     int64 // executed
	TokensIn  int64 // of executed steps
	TokensOut int64
	Money     exact.Money // of executed steps
	Spent     Book        // by everybody, losers and rejected attempts included

	visits []visit // the newest last, at most history_limit
	facts  []fact  // one for each transition that brought metaJson
}

// A Book sums what was spent. Sums saturate.
type Book struct {
	Calls     int64
	TokensIn  int64
	TokensOut int64
	Money     exact.Money
	Unpriced  int64 // calls of models without a price
	Estimated int64 // calls charged as estimated
}

// A visit is a stay in a state, with a digest of all that was known then.
type visit struct {
	state   string
	context uint64
}

// A fact is the hash of the metaJson a transition was last executed with.
type fact struct {
	transition string
	hash       uint64
}

// Charge returns s with one call's usage in the spend book. model is "" for
// calls of no model.
func (s State) Charge(u specialist.Usage, model string) State {
	s.Spent.Calls = exact.AddSat(s.Spent.Calls, 1)
	s.Spent.TokensIn = exact.AddSat(s.Spent.TokensIn, u.NumInputTokens)
	s.Spent.TokensOut = exact.AddSat(s.Spent.TokensOut, u.NumOutputTokens)
	s.Spent.Money = s.Spent.Money.Add(u.CostUSD)
	if model != "" && !u.Has(specialist.CostGiven) {
		s.Spent.Unpriced++
	}
	if u.Estimated {
		s.Spent.Estimated++
	}
	return s
}

// Correct returns s after a call that was charged with an estimate turned out
// to cost something else.
func (s State) Correct(charged, real exact.Money) State {
	s.Spent.Money = s.Spent.Money.Add(real - charged)
	return s
}

// Advance returns s after the step was executed. c may be nil.
func (s State) Advance(c *Config, step Step) State {
	s.Steps++
	s.TokensIn = exact.AddSat(s.TokensIn, step.TokensIn)
	s.TokensOut = exact.AddSat(s.TokensOut, step.TokensOut)
	s.Money = s.Money.Add(step.Cost)
	if c == nil {
		return s
	}
	s.facts = s.factsAfter(step)
	keep := s.visits
	if extra := len(keep) + 1 - int(c.Store.HistoryLimit); extra > 0 {
		keep = keep[min(extra, len(keep)):] // a Config made by hand may keep none
	}
	s.visits = append(slices.Clone(keep), visit{step.State, s.context(step)})
	return s
}

// factsAfter returns the facts once the step has been executed.
func (s State) factsAfter(step Step) []fact {
	if len(step.MetaJSON) == 0 {
		return s.facts
	}
	next := fact{step.Transition, hash64(canonical(step.MetaJSON))}
	for i, f := range s.facts {
		if f.transition == next.transition {
			if f == next {
				return s.facts
			}
			facts := slices.Clone(s.facts)
			facts[i] = next
			return facts
		}
	}
	return append(slices.Clip(s.facts), next)
}

// context digests what the session knows: its own metaJson and, for each
// transition, the metaJson it was last executed with. No counter and no clock is
// part of it, so going round in circles leaves it as it was. It is 0 if nothing
// is known.
func (s State) context(step Step) uint64 {
	var d uint64
	if len(step.SessionMeta) > 0 {
		d = hash64(step.SessionMeta)
	}
	for _, f := range s.facts {
		// Hashed together: two transitions that swap their metaJson are news.
		d ^= hash64(append(binary.BigEndian.AppendUint64(nil, f.hash), f.transition...))
	}
	return d
}

// canonical returns one JSON value in a form that does not depend on blanks, the
// order of members, or how a number is written: a model that says the same in
// other words has made no progress. What is no JSON stays as it is. (The
// session's own metaJson needs none of this: it never changes.)
func canonical(data []byte) []byte {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil || dec.More() {
		return data
	}
	sorted, err := json.Marshal(plain(v)) // members of maps come sorted
	if err != nil {
		return data
	}
	return sorted
}

// plain rewrites the numbers of a decoded value: 1.0 and 1e0 are 1. Integers
// written as such keep every digit.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = plain(member)
		}
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case json.Number:
		if f, err := v.Float64(); err == nil && (strings.ContainsAny(v.String(), ".eE") || f == 0) {
			return json.Number(exact.FormatFloat(f))
		}
	}
	return v
}

func hash64(data []byte) uint64 {
	sum := sha256.Sum256(data)
	return binary.BigEndian.Uint64(sum[:8])
}
