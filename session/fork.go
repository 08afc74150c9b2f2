package session

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// A fork is a session that goes on from where another one stood after one of its commits.
// Its log begins with a snapshot: the events of the other up to there, inside of the first
// event, so that whoever counts events counts none of them twice. Folding it is folding
// them, by the same code, under the id of the session in which they happened; then the
// session gets an id and a clock of its own.
//
// What the other session had spent counts as spent. What nobody may see yet does not come
// along: proposals that are withheld, rulings that wait for others. Nor does what belongs
// to the other session alone: answers that are still out, reviews, what was learned. Who has
// answered in the open round is not asked again, and that round teaches nothing, since
// both sessions would count the same answers.

// A ForkedFrom says from which event of which session another one goes on.
type ForkedFrom struct {
	SessionID string `json:"sessionId"`
	Sequence  int64  `json:"seq"`
	Round     int32  `json:"round"` // that was open then: it goes on with that one
}

// A snapshot is what a fork takes over.
type snapshot struct {
	Spent    SpentView        `json:"spent"`
	Guards   *SpentView       `json:"guards,omitempty"` // of it, by the guards' own questions; nil if Events say it
	Due      *specialist.Time `json:"due,omitempty"`    // by when the state is to be left, counted anew; nil if nobody knows, or it may take as long as it likes
	DueError string           `json:"dueError,omitempty"`
	Events   json.RawMessage  `json:"events"` // as they are stored, but for those that do not come along
	// Withheld says that what the other session has of its open round from a third one does
	// not come along.
	Withheld bool `json:"withheld,omitempty"`
}

// plainJSON returns what encoding/json makes of what was decoded, as it was written then.
func plainJSON(v any) []byte {
	text, err := jsontext.Marshal(v)
	if err != nil {
		panic("session: " + err.Error())
	}
	return text
}

// decodeSnapshot reads a snapshot.
func decodeSnapshot(raw []byte) (p snapshot, err error) {
	if err = json.Unmarshal(raw, &p); err != nil {
		err = fmt.Errorf("snapshot: %w", err)
	}
	return p, err
}

// spentView returns what was spent as it is shown.
func spentView(b spend.Book) SpentView {
	return SpentView{b.Calls, b.TokensIn, b.TokensOut, b.Money, b.Estimated, b.Unpriced}
}

func (v SpentView) book() spend.Book {
	return spend.Book{Calls: v.Calls, TokensIn: v.NumInputTokens, TokensOut: v.NumOutputTokens, Money: v.CostUSD, Estimated: v.Estimated, Unpriced: v.Unpriced}
}

// Plus returns the sum of both, cut off at the largest number.
func (v SpentView) Plus(b spend.Book) SpentView { return spentView(v.book().Plus(b)) }

// A Forker reads the log of a session up to where another one is to go on. Its Folder has to
// have Programs and Definition.
type Forker struct {
	Folder
	Withheld bool // what was proposed in the round in which the log ends is withheld by now
	kept     []keptEvent
	round    int // where the events of the open round begin in kept
	pending  bool
	raw      []Raw
}

type keptEvent struct {
	Raw
	fromRulings bool // it is of rulings that wait for others
}

// Add takes in one record.
func (k *Forker) Add(events []byte) (err error) {
	if k.raw, err = DecodeRaw(events); err != nil {
		return err
	}
	i := 0
	k.Applied = func(_ int64, ev Event, _, _ spend.Book) {
		k.keep(k.raw[i], ev.Data)
		i++
	}
	_, err = k.Folder.Add(events)
	return err
}

func (k *Forker) keep(r Raw, d Data) {
	e := keptEvent{Raw: r}
	switch d := d.(type) {
	case *RoundOpened:
		if d.Attempt == 0 {
			k.round = len(k.kept)
		}
	case *Learned, *Reviewed, *Retracted, *Adopted, *Revealed, *Erased, *DriverChanged:
		return
	case *Ruled:
		e.fromRulings = true
	case *AwaitsHuman:
		e.fromRulings = k.pending
	}
	k.kept, k.pending = append(k.kept, e), k.Round.Pending()
}

// snapshot returns what comes along from where the log was read to.
func (k *Forker) snapshot(due *Due) *snapshot {
	s := k.Session()
	withheld := k.Withheld || s.Withheld("") != "" || s.ConcealsRulings()
	kept := make([]Raw, 0, len(k.kept))
	for i, e := range k.kept {
		if i >= k.round && (e.fromRulings || withheld && e.tells()) {
			continue
		}
		kept = append(kept, e.Raw)
	}
	p := &snapshot{Spent: spentView(s.Spent()), Events: plainJSON(kept), Withheld: withheld && s.round().inherited}
	if probes := s.GuardState().Probes; withheld && probes != (spend.Book{}) { // answers to some may not come along
		spent := spentView(probes)
		p.Guards = &spent
	}
	if due != nil && due.Error == "" {
		p.Due = &due.At
	} else if due != nil {
		p.DueError = due.Error
	}
	return p
}

// tells reports whether an event of the open round may tell what was proposed in it.
func (e *keptEvent) tells() bool {
	return e.Kind != KindRoundOpened && e.Kind != KindResumed && e.Kind != KindEnded && e.Kind != KindMoved && e.Kind != KindCreated
}

// Fork returns the first record of a session that goes on from there at a moment, and the
// session. due says by when it is to leave its state.
func (k *Forker) Fork(id specialist.SessionID, by *Actor, driver Driver, at specialist.Time, due *Due) (*Change, error) {
	s := k.Session()
	options := s.Options()
	options.Seed, options.Closed, options.Actor, options.Subject = 0, nil, by.Clone(), s.Subject()
	options.Driver, options.begun = driver, nil
	options.ForkedFrom = &ForkedFrom{s.ID.String(), s.Sequence, s.Round}
	program := s.Program
	record := AppendEvents(nil, specialist.RoundKey{Session: id}, 1, []Event{{at, &Created{Program: program, Options: options, snapshot: k.snapshot(due)}}})
	f := &Folder{Programs: k.Programs, Definition: k.Definition}
	events, err := f.Add(record)
	if err != nil {
		return nil, err
	}
	return &Change{After: f.Session(), First: 1, Events: events}, nil
}

// timing returns the due of the state in which the fork begins at a moment.
func (p *snapshot) timing(at specialist.Time) *timing {
	switch {
	case p.Due != nil:
		return &timing{Due: Due{At: *p.Due}, reminded: at} // what would have come before never comes
	case p.DueError != "":
		return &timing{Due: Due{Error: p.DueError}}
	}
	return nil
}

// replay folds the events of a snapshot.
func (f *Folder) replay(p *snapshot) error {
	raw, err := DecodeRaw(p.Events)
	if err != nil {
		return err
	}
	for i := range raw {
		data, err := f.decode(&raw[i])
		if err != nil {
			return fmt.Errorf("event %d (%s) of the snapshot: %w", raw[i].Seq, raw[i].Kind, err)
		}
		_ = Apply(&f.Current, &f.Round, &Event{raw[i].At, data})
	}
	if f.Current.State == nil {
		return fmt.Errorf("the snapshot opens no round")
	}
	return nil
}

// applyFork makes s the session that goes on from a snapshot.
func applyFork(s *Session, o *OpenRound, d *Created, at specialist.Time) {
	from := &d.forked.Current
	next := *from
	next.ID, next.Sequence, next.Head = s.ID, 1, nil
	next.CreatedAt, next.UpdatedAt, next.OpenedAt = at, at, at
	// Since the last transition as much time counts as had passed in the other session.
	next.waitedAtMove = from.waitedAtMove - from.waited + from.UpdatedAt - at
	next.waited, next.dormant = 0, true
	next.timing = d.snapshot.timing(at)
	next.owing, next.reviews, next.retracted = nil, nil, nil
	if a := from.Options().Actor; a != nil {
		next.starters = append(slices.Clip(from.starters), a)
	}
	options := d.Options
	next.options = &options
	state := next.GuardState()
	if state.Spent = d.snapshot.Spent.book(); next.guard != nil || state.Spent != (spend.Book{}) {
		next.guard = &state
	}
	if d.snapshot.Guards != nil {
		state.Probes = d.snapshot.Guards.book()
	}
	was := &d.forked.Round
	*o = OpenRound{charged: o.charged, Notices: was.Notices, Arrivals: was.Arrivals, Verdicts: was.Verdicts, SetFailed: was.SetFailed, shown: was.shown}
	if len(was.Proposals) > 0 && !d.snapshot.Withheld { // they were shown, or they had not come along
		o.Proposals, o.Verdict, o.inherited, o.shown = slices.Clone(was.Proposals), was.Verdict, true, true
	}
	*s = next
}

// Start returns where the session stands when it is created: a fork in the round of the other
// one, every other before its first round.
func (d *Created) Start() (state *machine.State, round, attempt int32) {
	if d.forked == nil {
		return d.Program.Machine.Initial(), 0, 0
	}
	return d.forked.Current.State, d.forked.Current.Round, d.forked.Current.Attempt
}

// Brief returns the event as it is shown: of a snapshot only how many events it holds, for
// it is a log of its own, of which not all may be shown.
func (r Raw) Brief() Raw {
	if r.Kind != KindCreated {
		return r
	}
	w := object(nil)
	c := jsontext.Cursor{B: r.Data}
	c.Members(func(name []byte) {
		raw := c.Raw()
		if string(name) != "snapshot" {
			w.raw(string(name), raw)
			return
		}
		var p snapshot
		var events []json.RawMessage
		_ = json.Unmarshal(raw, &p) // what cannot be read holds none
		_ = json.Unmarshal(p.Events, &events)
		w.int("snapshotEvents", int64(len(events)))
	})
	if c.Err == nil {
		r.Data = w.end()
	}
	return r
}

// Inherited reports whether answers of the round were given in the session from which this
// one was forked: it is evidence for nothing, since that one counts them.
func (o *OpenRound) Inherited() bool { return o.inherited }
