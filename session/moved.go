package session

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/dialai/dialai/machine"
)

// Moved records that a session goes on under another definition of its machine. The round
// begins anew (a RoundOpened with the next attempt follows): asks that are out end, and
// rulings that wait for others. Guards keep what was spent, and limits that were raised are
// those of the definition again.
type Moved struct {
	Program *Program       // of the session from now on
	From    string         // digest of the definition before
	State   *machine.State // where the session stands, in the new definition
	// States are names of states that the new definition does not have, each with the one in
	// its place: who has ruled there has ruled in that one. Nil if there are none.
	States  map[string]string
	Subject string // what the session is about from now on; "" if the machine does not say
	Note    string
	Actor   *Actor // who moves it; nil if that is not said
	to      string // digest of the new definition, as it is read
}

func (d *Moved) form(f *form) {
	if !f.reading {
		d.to = d.Program.Machine.Digest()
	}
	f.str("from", &d.From)
	f.str("to", &d.to)
	state := ""
	if d.State != nil {
		state = d.State.Name
	}
	f.str("state", &state)
	f.names("states", &d.States)
	f.opt("subject", &d.Subject)
	f.str("note", &d.Note)
	f.actor("actor", &d.Actor)
	if f.reading {
		d.State = &machine.State{Name: state} // a Folder finds it, which knows the definitions
	}
}

// Next returns the digest of the new definition.
func (d *Moved) Next() string { return d.to }

// moved finds the definition to which a session was moved, and its state.
func (f *Folder) moved(d *Moved) error {
	p, err := f.program(d.to)
	if err != nil {
		return err
	}
	name := d.State.Name
	if d.Program, d.State = p, p.Machine.State(name); d.State == nil {
		return &DecodeError{"state", name}
	}
	return nil
}

// program returns the Program of a digest.
func (f *Folder) program(digest string) (*Program, error) {
	if p := f.Programs.known(digest); p != nil {
		return p, nil
	}
	definition, err := f.Definition(digest)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, err
	case err != nil:
		return nil, &unreadError{err}
	}
	return f.Programs.Parse(digest, definition)
}

func applyMoved(s *Session, o *OpenRound, d *Moved) {
	s.moves = append(slices.Clip(s.moves), moveNotice{s.Round, d.notice(o)})
	o.closeAsks(s)
	o.Rulings = nil
	if s.Status == NeedsHuman {
		s.Status, s.outcome = Running, nil
	}
	was := s.Program
	due := s.State.Due
	s.former = append(slices.Clip(s.former), s.Program)
	if len(d.States) > 0 || s.renamed != nil {
		s.rename(d)
	}
	s.Program, s.State = d.Program.Like(was), d.State
	s.facts = s.facts.moved(s, d)
	if !reflect.DeepEqual(due, d.State.Due) {
		s.timing = nil
	}
	s.timerFailed(false)
	if s.guard != nil {
		cleared := s.guard.Clear()
		s.guard = &cleared
	}
	s.reviews = s.reviewsUnder(d)
}

// A moveNotice tells whoever is asked in a round that the session was moved in it.
type moveNotice struct {
	round int32
	text  string
}

// notice says who has moved the session from where to where, and which rulings ended with
// that.
func (d *Moved) notice(o *OpenRound) string {
	by := ""
	if d.Actor.Known() {
		by = " by " + d.Actor.Subject
	}
	text := fmt.Sprintf("Moved%s from definition %.12s to %.12s: %s", by, d.From, d.Program.Machine.Digest(), d.Note)
	for _, was := range slices.Sorted(maps.Keys(d.States)) {
		text += fmt.Sprintf("; state %s is %s now", was, d.States[was])
	}
	if !o.Pending() {
		return text
	}
	if o.Rulings.Conceals() {
		return fmt.Sprintf("%s (rulings that ended with it: %d)", text, len(o.Rulings.List))
	}
	list := make([]string, len(o.Rulings.List))
	for i, r := range o.Rulings.List {
		list[i] = fmt.Sprintf("%s chose %s", r.SpecialistID, r.Transition.Name)
	}
	return fmt.Sprintf("%s (rulings that ended with it: %s)", text, strings.Join(list, ", "))
}

// MoveNotices say of each move of the session in the present round who has done it, from
// where to where, why, and which rulings ended with it.
func (s *Session) MoveNotices() (texts []string) {
	for _, m := range s.moves {
		if m.round == s.Round {
			texts = append(texts, m.text)
		}
	}
	return texts
}

// A renaming says what states are called from a move on.
type renaming struct {
	states map[string]string // that have another name in the new definition, by the former one
	to     *machine.Machine  // the new definition
	visits map[string]int32  // of all states until then, by their new names
	steps  int32             // executed before
}

// rename enters what states are called under the definition of a move.
func (s *Session) rename(d *Moved) {
	r := renaming{d.States, d.Program.Machine, map[string]int32{}, s.Executed}
	s.renamed = append(slices.Clip(s.renamed), r)
	r.visits[s.stateNow(s.firstProgram().Machine.Initial().Name, 0)]++
	for i, e := range s.History() {
		r.visits[s.stateNow(e.Transition.Target, int32(i)+1)]++
	}
}

// StateNow returns the state in which a step was executed, counted from 1, as it is in the
// present definition: by the name that it had then. It is nil if that has it no more.
func (s *Session) StateNow(name string, step int32) *machine.State {
	return s.Machine().State(s.stateNow(name, step))
}

// stateNow returns the present name of the state in which a step was executed, counted from 1.
// Under a definition that has no state of the name any more, and of which nobody has said which
// is in its place, it is the name that the state had last of those that the definition has.
func (s *Session) stateNow(name string, step int32) string {
	names := []string{name}
	for _, r := range s.renamed {
		to, ok := r.states[name]
		switch {
		case step > r.steps:
			continue
		case !ok && r.to.State(name) == nil:
			to, ok = lastOf(r.to, names)
		}
		if ok {
			name, names = to, append(names, to)
		}
	}
	return name
}

// lastOf returns the last of the names that a state of the machine has.
func lastOf(m *machine.Machine, names []string) (name string, ok bool) {
	for _, name := range slices.Backward(names) {
		if m.State(name) != nil {
			return name, true
		}
	}
	return "", false
}

// moved returns the facts under another definition, whose defaults fill what the data lack.
// What was written stays, also where nothing writes any more.
func (c *caseFacts) moved(s *Session, d *Moved) *caseFacts {
	m := d.Program.Machine
	switch {
	case c == nil && !m.UsesData():
		return nil
	case c == nil:
		return &caseFacts{data: m.FirstData(s.Options().Meta), subject: d.Subject}
	}
	return &caseFacts{data: m.FirstData(c.data.JSON()), subject: d.Subject}
}

// reviewsUnder returns the reviews whose states the definition has to which the session was
// moved.
func (s *Session) reviewsUnder(d *Moved) (list []*Review) {
	for _, v := range s.reviews {
		state := s.Machine().State(cmp.Or(d.States[v.State.Name], v.State.Name))
		for e, step := s.last, s.Executed; e != nil && state == nil; e, step = e.Previous, step-1 {
			if e.Round == v.Key.Round {
				state = s.StateNow(e.Transition.From.Name, step)
				break
			}
		}
		if state != nil {
			next := *v
			next.State = state
			list = append(list, &next)
		}
	}
	return list
}

// Definition returns the definition of a digest by which the session runs, or has run before
// it was moved, as canonical JSON; nil for any other.
func (s *Session) Definition(digest string) []byte {
	for _, p := range append(slices.Clip(s.former), s.Program) {
		if p.Machine.Digest() == digest {
			return p.Machine.JSON()
		}
	}
	return nil
}
