package session

import (
	"encoding/json"
	"slices"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/internal/wire"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// What a log was folded into up to a record, as bytes, so that a long session need not be folded from its
// beginning each time: whoever has a snapshot restores it and adds the records behind it.
//
// A snapshot is made only where a round has just been opened and nothing has happened in it
// ([Change.Begins]). There the open round is the zero one by construction, so that no proposal, no ask under
// way, nothing withheld and no ruling that waits has to be written down: all that a round holds comes from
// the records behind. What is left is coded member by member, by one function for both directions (package
// wire). The same session has the same bytes, whoever has folded it, and that is how a snapshot is proven.
//
// Definitions are named by their digests, transitions by their place in that of their time: a session that
// was moved has had several, and its moves say in which round each of them ended.

// SnapshotFormat is the number of the form in which [Session.Snapshot] writes. Another form is another
// number, and so is anything that makes the fold of a log come to something else.
const SnapshotFormat = 2

// largestSnapshot is the most bytes that a snapshot has.
const largestSnapshot = 16 << 20

// Begins reports whether the change ends where a round was opened in which nothing has happened yet: there
// a snapshot may be made of the session.
func (c *Change) Begins() bool {
	if c.After.Open != nil || c.After.Status != Running || len(c.Events) == 0 {
		return false
	}
	d, ok := c.Events[len(c.Events)-1].Data.(*RoundOpened)
	return ok && len(d.Notices) == 0
}

// Snapshot returns the bytes of a session that begins a round ([Change.Begins]); nil if it cannot be
// written, or would be larger than [largestSnapshot].
func (s *Session) Snapshot() []byte {
	if s.Open != nil || s.Status != Running || s.erased || len(s.moves) != len(s.former) {
		return nil
	}
	next := *s // the Coder is handed places to fill in
	k := snapshotCoder{Coder: wire.NewWriter(), s: &next}
	if k.session(); k.unfit || len(k.Bytes()) > largestSnapshot {
		return nil
	}
	return k.Bytes()
}

// Restore puts f where the session of a snapshot stood, as if all records up to there had been added. The
// Folder has to be at the beginning of a log; after an error it must not be used.
func (f *Folder) Restore(snapshot []byte) error {
	k := snapshotCoder{Coder: wire.NewReader(snapshot), s: &f.Current, f: f}
	k.session()
	if k.err != nil {
		return k.err
	}
	return k.Close()
}

// A snapshotCoder codes one session.
type snapshotCoder struct {
	*wire.Coder
	s        *Session
	f        *Folder // that reads; nil while writing
	programs []*Program
	unfit    bool  // something of the session cannot be written
	err      error // why a definition could not be had
}

func (k *snapshotCoder) session() {
	s := k.s
	id := string(s.ID[:])
	wire.Text(k.Coder, &id)
	k.Check(len(id) == len(s.ID), "an id has another length")
	if k.Reading() {
		copy(s.ID[:], id)
	}
	if k.allPrograms(); !k.goesOn() {
		return
	}
	k.state(s.Program.Machine, &s.State)
	wire.Int(k.Coder, &s.Sequence)
	for _, t := range []*specialist.Time{&s.CreatedAt, &s.UpdatedAt, &s.OpenedAt, &s.waited, &s.waitedAtMove} {
		wire.Int(k.Coder, t)
	}
	for _, n := range []*int32{&s.Round, &s.Attempt, &s.Executed, &s.SinceResumed, &s.Resumes, &s.Rejects} {
		wire.Int(k.Coder, n)
	}
	k.Bool(&s.dormant)
	wire.Pointer(k.Coder, &s.options, k.options)
	if k.history(); !k.goesOn() {
		return
	}
	wire.Pointer(k.Coder, &s.guard, func(g *guard.State) { g.Code(k.Coder) })
	k.debts()
	wire.Slice(k.Coder, &s.reviews, func(v **Review) { k.review(v) })
	wire.Pointer(k.Coder, &s.facts, k.facts)
	wire.Pointer(k.Coder, &s.timing, func(t *timing) {
		k.due(&t.Due)
		wire.Int(k.Coder, &t.reminded)
		k.Bool(&t.failed)
	})
	wire.Slice(k.Coder, &s.renamed, k.renaming)
	wire.Slice(k.Coder, &s.starters, func(a **Actor) { k.actor(a) })
	k.retracted()
}

// goesOn reports whether there is any sense in going on.
func (k *snapshotCoder) goesOn() bool { return !k.unfit && k.err == nil && k.Err() == nil }

// allPrograms codes by what the session runs and has run, and in which round it was moved from one to the
// next.
func (k *snapshotCoder) allPrograms() {
	s := k.s
	wire.Slice(k.Coder, &s.moves, func(m *moveNotice) {
		wire.Int(k.Coder, &m.round)
		wire.Text(k.Coder, &m.text)
	})
	k.programs = append(slices.Clip(s.former), s.Program)
	if k.Reading() {
		k.programs = make([]*Program, len(s.moves)+1)
	}
	for i := range k.programs {
		k.program(&k.programs[i])
	}
	if n := len(s.moves); k.Reading() && k.goesOn() {
		if s.Program = k.programs[n]; n > 0 {
			s.former = k.programs[:n:n]
		}
	}
}

func (k *snapshotCoder) program(p **Program) {
	digest, missing, raised, lifts := "", []string(nil), []guard.Raise(nil), []int32(nil)
	if !k.Reading() {
		digest, missing, raised, lifts = (*p).Machine.Digest(), (*p).missing, (*p).raised, (*p).lifts
	}
	wire.Text(k.Coder, &digest)
	k.texts(&missing)
	wire.Slice(k.Coder, &raised, func(r *guard.Raise) {
		wire.Text(k.Coder, &r.Limit)
		wire.Text(k.Coder, &r.State)
		wire.Text(k.Coder, &r.From)
		wire.Text(k.Coder, &r.To)
	})
	slice(k, &lifts)
	if !k.Reading() || !k.goesOn() {
		return
	}
	if *p, k.err = k.f.program(digest); k.err == nil && missing != nil {
		*p = (*p).Without(missing)
	}
	for _, n := range lifts {
		if k.err != nil {
			return
		}
		if k.Check(n > 0 && int(n) <= len(raised), "limits were raised that are not there"); k.Err() != nil {
			return
		}
		state := (*p).Machine.State(raised[0].State)
		if k.Check(state != nil, "a limit was raised in a state that is not there"); k.Err() != nil {
			return
		}
		*p, k.err = (*p).Lift(state, slices.Clip(raised[:n]))
		raised = raised[n:]
	}
	k.Check(len(raised) == 0, "limits were raised at no time")
}

// state codes a state of a machine by its place.
func (k *snapshotCoder) state(m *machine.Machine, st **machine.State) {
	at, states := 0, m.States()
	if !k.Reading() {
		if at = (*st).Index; at >= len(states) || &states[at] != *st {
			k.unfit = true
			return
		}
	}
	wire.Int(k.Coder, &at)
	if k.Check(at >= 0 && at < len(states), "a state is not there"); k.Reading() && k.Err() == nil {
		*st = &states[at]
	}
}

// history codes the executed transitions, the oldest first.
func (k *snapshotCoder) history() {
	s, list := k.s, []*Executed(nil)
	if !k.Reading() {
		list = s.History()
		k.unfit = k.unfit || slices.Contains(list, nil)
	}
	if k.unfit {
		return
	}
	wire.Slice(k.Coder, &list, func(e **Executed) {
		if k.Reading() {
			*e = &Executed{Previous: s.last}
			s.last = *e
		}
		k.executed(*e)
	})
	k.Check(len(list) == int(s.Executed), "there are more transitions than it says, or fewer")
}

func (k *snapshotCoder) executed(e *Executed) {
	wire.Int(k.Coder, &e.Round)
	wire.Int(k.Coder, &e.Attempt)
	k.transition(e)
	how := int32(e.How)
	wire.Int(k.Coder, &how)
	k.Check(how >= 0 && int(how) < len(decisionKinds), "a decision is of a kind that is not known")
	if k.Reading() {
		e.How = DecisionKind(how)
	}
	k.Bool(&e.IsHuman)
	wire.Text(k.Coder, &e.SpecialistID)
	wire.Int(k.Coder, &e.Arrival)
	wire.Text(k.Coder, &e.Reasoning)
	k.raw(&e.MetaJSON)
	wire.Int(k.Coder, &e.At)
	wire.Pointer(k.Coder, &e.Standing, func(x *Standing) {
		slice(k, &x.Order)
		slice(k, &x.Weights)
		if k.Reading() && len(x.Order) == 0 { // the log has an empty list, and so does what is shown
			x.Order, x.Weights = []int32{}, []exact.Billionths{}
		}
		wire.Pointer(k.Coder, &x.Threshold, func(t *machine.Threshold) {
			k.Float(&t.Given)
			wire.Int(k.Coder, &t.Weight)
		})
	})
	wire.Pointer(k.Coder, &e.Draws, func(d *Draws) {
		wire.Int(k.Coder, &d.AuditRate)
		k.Bool(&d.Audit)
		wire.Int(k.Coder, &d.SecondRate)
		k.Bool(&d.Second)
	})
	k.texts(&e.Authors)
	k.raw(&e.Data)
	wire.Text(k.Coder, &e.Subject)
	k.actor(&e.Actor)
	wire.Text(k.Coder, &e.QuestionDigest)
	wire.Int(k.Coder, &e.Looked)
	wire.Text(k.Coder, &e.Note)
	k.Bool(&e.Bulk)
	wire.Int(k.Coder, &e.Visits)
}

// slice codes whole numbers.
func slice[T ~int | ~int32 | ~int64](k *snapshotCoder, list *[]T) {
	wire.Slice(k.Coder, list, func(n *T) { wire.Int(k.Coder, n) })
}

// transition codes an executed transition by its place in the definition that its round had at the end.
func (k *snapshotCoder) transition(e *Executed) {
	n := 0
	for n < len(k.s.moves) && k.s.moves[n].round <= e.Round {
		n++
	}
	from, at := (*machine.State)(nil), 0
	if !k.Reading() {
		from, at = e.Transition.From, e.Transition.Index
	}
	if k.state(k.programs[n].Machine, &from); !k.goesOn() {
		return
	}
	wire.Int(k.Coder, &at)
	if k.Check(at >= 0 && at < len(from.Transitions), "a transition is not there"); k.Err() != nil {
		return
	}
	if k.Reading() {
		e.Transition = from.Transitions[at]
	} else {
		k.unfit = at >= len(from.Transitions) || from.Transitions[at] != e.Transition
	}
}

func (k *snapshotCoder) options(o *Options) {
	k.raw(&o.Meta)
	wire.Bits(k.Coder, &o.Seed)
	for _, v := range []*bool{&o.DefaultProposer, &o.DefaultArbiter} {
		k.Bool(v)
	}
	wire.Text(k.Coder, &o.Mode)
	wire.Text(k.Coder, &o.Prices)
	wire.Text(k.Coder, &o.Subject)
	wire.Text(k.Coder, &o.Driver)
	wire.Pointer(k.Coder, &o.begun, func(d *Driver) { wire.Text(k.Coder, d) })
	wire.Slice(k.Coder, &o.Closed, k.closed)
	wire.Pointer(k.Coder, &o.Due, k.due)
	k.actor(&o.Actor)
	wire.Pointer(k.Coder, &o.ForkedFrom, func(v *ForkedFrom) {
		wire.Text(k.Coder, &v.SessionID)
		wire.Int(k.Coder, &v.Sequence)
		wire.Int(k.Coder, &v.Round)
	})
	k.texts(&o.Missing)
}

func (k *snapshotCoder) closed(c *ClosedTransition) {
	wire.Text(k.Coder, &c.TransitionName)
	wire.Text(k.Coder, &c.Error)
}

func (k *snapshotCoder) due(d *Due) {
	wire.Int(k.Coder, &d.At)
	wire.Text(k.Coder, &d.Error)
}

func (k *snapshotCoder) actor(a **Actor) {
	wire.Pointer(k.Coder, a, func(a *Actor) {
		wire.Text(k.Coder, &a.Subject)
		wire.Text(k.Coder, &a.Method)
		k.texts(&a.Humans)
	})
}

func (k *snapshotCoder) texts(list *[]string) {
	wire.Slice(k.Coder, list, func(s *string) { wire.Text(k.Coder, s) })
}

func (k *snapshotCoder) raw(v *json.RawMessage) {
	text := string(*v)
	if wire.Text(k.Coder, &text); k.Reading() && text != "" {
		*v = json.RawMessage(text)
	}
}

// offered codes a state of the present definition that may lack some of its transitions.
func (k *snapshotCoder) offered(st **machine.State) {
	var left []int
	var whole *machine.State
	if !k.Reading() {
		whole = k.s.Program.Machine.State((*st).Name)
		if k.unfit = k.unfit || whole == nil; k.unfit {
			return
		}
		if *st != whole {
			for _, t := range (*st).Transitions {
				left = append(left, t.Index)
			}
		}
	}
	all := whole == *st
	if k.state(k.s.Program.Machine, &whole); !k.goesOn() {
		return
	}
	k.Bool(&all)
	slice(k, &left)
	switch {
	case !k.Reading():
	case all:
		*st = whole
	default:
		*st = whole.Without(func(t *machine.Transition) bool { return !slices.Contains(left, t.Index) })
	}
}

func (k *snapshotCoder) facts(c *caseFacts) {
	var data json.RawMessage
	if !k.Reading() {
		data = c.data.JSON()
	}
	k.raw(&data)
	wire.Text(k.Coder, &c.subject)
	wire.Slice(k.Coder, &c.closed, k.closed)
	if k.Reading() && k.goesOn() {
		c.data = jsontext.ReadObject(data)
		if len(c.closed) > 0 {
			c.offered = k.s.State.Without((&RoundOpened{Closed: c.closed}).Closes)
		}
	}
}

func (k *snapshotCoder) renaming(r *renaming) {
	wire.TextMap(k.Coder, &r.states, func(to *string) { wire.Text(k.Coder, to) })
	digest := ""
	if !k.Reading() {
		digest = r.to.Digest()
	}
	wire.Text(k.Coder, &digest)
	if k.Reading() && k.goesOn() {
		var p *Program
		if p, k.err = k.f.program(digest); k.err == nil {
			r.to = p.Machine
		}
	}
	wire.TextMap(k.Coder, &r.visits, func(n *int32) { wire.Int(k.Coder, n) })
	wire.Int(k.Coder, &r.steps)
}

// retracted codes the rulings that were taken back as the events that they are.
func (k *snapshotCoder) retracted() {
	var events json.RawMessage
	if len(k.s.retracted) > 0 && !k.Reading() {
		list := make([]Event, len(k.s.retracted))
		for i, d := range k.s.retracted {
			list[i].Data = d
		}
		events = AppendEvents(nil, k.s.Key(), 1, list)
	}
	if k.raw(&events); !k.Reading() || !k.goesOn() || events == nil {
		return
	}
	raw, err := DecodeRaw(events)
	for i := 0; i < len(raw) && err == nil; i++ {
		d := &Retracted{}
		err = raw[i].Read(d, k.s)
		k.s.retracted = append(k.s.retracted, d)
	}
	k.err = err
}
