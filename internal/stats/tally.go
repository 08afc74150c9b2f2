// Package stats counts what the decisions of a machine come to, and what was spent on them.
package stats

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/internal/wire"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Metrics of a million decisions are sums, and each decision adds to them once; so is what was spent. A
// Tally has these sums for each state and each day of a machine: what a record of a log adds (watch.go), what all records up to a
// place come to (follow.go), kept beside the log as ledgers are, so that nobody counts them twice.
//
// Sums of counts come out the same in whatever order they are added, so that a store can prove
// them session by session. What audits found is weighed, in floats, and is added by the place of the
// lesson; Plus leaves it to whoever has the lessons.

// Format is the number of the way in which tallies are written and counted.
const Format = 2

// A Tally is what decisions of one machine come to. The zero Tally is of none.
type Tally struct {
	States map[string]*State // by the name of the state that was left; never nil pointers
	// Spent is what the sessions have spent, each entry other than zero. What sessions were forked with was
	// spent in others. The sum is that of what the sessions say, but for sums that are cut off at the
	// largest number.
	Spent map[Spending]spend.Book
}

// A Spending says on what something was spent. Corrections count on the day on which they came, so that
// what was spent on a day may be below zero.
type Spending struct {
	Day          specialist.Time // when it began, in UTC
	SpecialistID string          // [session.TruthID] or [session.ClassifierID] for the guards' own questions
	Model        string          // that was charged for; "" if it was none, or nobody has said
	Guards       bool            // the guards asked that themselves
}

func (s Spending) compare(o Spending) int {
	guards := func(s Spending) int {
		if s.Guards {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(s.Day, o.Day), cmp.Compare(s.SpecialistID, o.SpecialistID), cmp.Compare(s.Model, o.Model), cmp.Compare(guards(s), guards(o)))
}

func (t *Tally) spend(on Spending, b spend.Book) {
	if t.Spent == nil {
		t.Spent = map[Spending]spend.Book{}
	}
	if b = t.Spent[on].Plus(b); b == (spend.Book{}) {
		delete(t.Spent, on)
		return
	}
	t.Spent[on] = b
}

// A State is what the decisions by which one state was left come to, and what was learned of them.
type State struct {
	Human, Automatic int64 // decisions, what timers executed left out
	Timers           int64 // transitions that timers executed
	NoQuorum         int64 // of Human, where too few had answered

	Margins, Measured int64 // the sum of the margins of automatic decisions, in billionths, and of how many it is
	Looks, Looked     int64 // how often humans said how long they had looked, and the sum in milliseconds
	Asked             int64 // proposers
	Cost              exact.Money
	Votes             map[string]*Votes // by specialist

	Audits  trust.Audits // of automatic decisions
	Beside  int64        // how often humans looked at rounds that they had not to decide
	Seconds int64        // rounds on which a second human ruled
	Apart   int64        // of Seconds, where the two disagreed
}

// Votes are the proposals of one specialist in decided rounds.
type Votes struct {
	Place, Nth int64 // of the record with the first, and which vote of that it is
	Human      bool  // a human gave the first
	Total, Won int64 // proposals, and those whose transition was executed
}

// State returns the sums of a state, made if there are none.
func (t *Tally) State(name string) *State {
	s := t.States[name]
	if s == nil {
		if t.States == nil {
			t.States = map[string]*State{}
		}
		s = &State{}
		t.States[name] = s
	}
	return s
}

// Add adds what a record at a place adds.
func (t *Tally) Add(place int64, r Record) {
	if d := r.Decision; d != nil {
		t.State(d.FromState).decided(place, d)
	}
	for _, l := range r.Looks {
		s := t.State(l.State)
		s.Looks, s.Looked = s.Looks+1, s.Looked+l.Milliseconds
	}
	for _, c := range r.Charges {
		t.spend(c.Spending, c.Book)
	}
}

func (s *State) decided(place int64, d *session.DecisionRecord) {
	switch {
	case d.Timed():
		s.Timers++
		return
	case d.IsHuman:
		s.Human++
		if d.NoQuorum {
			s.NoQuorum++
		}
	default:
		s.Automatic++
		if d.ConsensusMargin != nil {
			s.Margins, s.Measured = s.Margins+int64(*d.ConsensusMargin), s.Measured+1
		}
	}
	for _, looked := range d.Looks {
		s.Looks, s.Looked = s.Looks+1, s.Looked+looked
	}
	s.Asked, s.Cost = s.Asked+int64(len(d.Asked)), s.Cost.Add(d.CostUSD)
	for i, v := range d.Votes {
		won := int64(0)
		if v.Won {
			won = 1
		}
		s.voted(v.SpecialistID, Votes{place, int64(i), v.Human, 1, won})
	}
}

// voted adds votes of a specialist.
func (s *State) voted(id string, v Votes) {
	if s.Votes == nil {
		s.Votes = map[string]*Votes{}
	}
	if was := s.Votes[id]; was != nil {
		v.Total, v.Won = v.Total+was.Total, v.Won+was.Won
		if was.before(v) {
			v.Place, v.Nth, v.Human = was.Place, was.Nth, was.Human
		}
	}
	s.Votes[id] = &v
}

// before reports whether the first of v came before that of w.
func (v Votes) before(w Votes) bool { return v.Place < w.Place || v.Place == w.Place && v.Nth < w.Nth }

// Voters returns who proposed, in the order in which their first proposals were decided on.
func (s *State) Voters() []string {
	return slices.SortedFunc(maps.Keys(s.Votes), func(a, b string) int {
		v, w := s.Votes[a], s.Votes[b]
		return cmp.Or(cmp.Compare(v.Place, w.Place), cmp.Compare(v.Nth, w.Nth))
	})
}

// Learn adds a lesson. decided says that its record is one by which a human decided the round: then
// nobody looked at it beside that. Lessons must be added in the order of their places.
func (t *Tally) Learn(x *trust.Lesson, decided bool) {
	if o := x.Outcome; o != nil {
		s := t.State(o.State)
		s.Audits.Add(o)
		if o.Source == trust.Audited && !decided && x.Second == nil { // else who looked first has decided
			s.Beside++
		}
	}
	if second := x.Second; second != nil {
		s := t.State(second.State)
		s.Beside++
		if second.Settled != "" && !x.Settles {
			s.Beside++ // the third human ruled before anything was executed
		}
		if x.Settles {
			return
		}
		s.Seconds++
		if second.First != second.Second {
			s.Apart++
		}
	}
}

// Plus adds what o counts. What o learned of is not added: see [Tally.Learn].
func (t *Tally) Plus(o *Tally) {
	for name, add := range o.States {
		s := t.State(name)
		s.Human, s.Automatic, s.Timers, s.NoQuorum = s.Human+add.Human, s.Automatic+add.Automatic, s.Timers+add.Timers, s.NoQuorum+add.NoQuorum
		s.Margins, s.Measured = s.Margins+add.Margins, s.Measured+add.Measured
		s.Looks, s.Looked = s.Looks+add.Looks, s.Looked+add.Looked
		s.Asked, s.Cost = s.Asked+add.Asked, s.Cost.Add(add.Cost)
		for id, v := range add.Votes {
			s.voted(id, *v)
		}
	}
	for on, b := range o.Spent {
		t.spend(on, b)
	}
}

// Of returns the sums of one state, or of all of them if state is "". It shares nothing with t.
func (t *Tally) Of(state string) *State {
	sum := &Tally{}
	all := sum.State("")
	for name, s := range t.States {
		if state != "" && name != state {
			continue
		}
		sum.Plus(&Tally{States: map[string]*State{"": s}})
		all.Beside, all.Seconds, all.Apart = all.Beside+s.Beside, all.Seconds+s.Seconds, all.Apart+s.Apart
		all.Audits = all.Audits.Plus(s.Audits)
	}
	return all
}

// Clone returns a copy that shares nothing with t.
func (t *Tally) Clone() *Tally {
	c := &Tally{}
	c.Plus(t)
	for name, s := range t.States {
		d := c.State(name)
		d.Beside, d.Seconds, d.Apart, d.Audits = s.Beside, s.Seconds, s.Apart, s.Audits
	}
	return c
}

// Code writes t, or fills it in.
func (t *Tally) Code(c *wire.Coder) {
	wire.TextMap(c, &t.States, func(s **State) {
		if c.Reading() {
			*s = &State{}
		}
		(*s).code(c)
	})
	wire.Map(c, &t.Spent, Spending.compare, func(on *Spending, b *spend.Book) {
		wire.Int(c, &on.Day)
		wire.Text(c, &on.SpecialistID)
		wire.Text(c, &on.Model)
		c.Bool(&on.Guards)
		for _, n := range []*int64{&b.Calls, &b.TokensIn, &b.TokensOut, &b.Unpriced, &b.Estimated} {
			wire.Int(c, n)
		}
		wire.Int(c, &b.Money)
	})
}

func (s *State) code(c *wire.Coder) {
	for _, n := range []*int64{&s.Human, &s.Automatic, &s.Timers, &s.NoQuorum, &s.Margins, &s.Measured, &s.Looks, &s.Looked, &s.Asked, &s.Beside, &s.Seconds, &s.Apart} {
		wire.Int(c, n)
	}
	wire.Int(c, &s.Cost)
	wire.TextMap(c, &s.Votes, func(v **Votes) {
		if c.Reading() {
			*v = &Votes{}
		}
		wire.Int(c, &(*v).Place)
		wire.Int(c, &(*v).Nth)
		c.Bool(&(*v).Human)
		wire.Int(c, &(*v).Total)
		wire.Int(c, &(*v).Won)
	})
	s.Audits.Code(c)
}
