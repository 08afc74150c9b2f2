package session

import (
	"fmt"
	"strconv"

	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// Reading a log back. Add takes each event of a record through four steps: its number
// has to be the next; decode turns the bytes into an event, whose names mean what they
// mean in the session so far; observe tells Gate, Closing and Decision of the round as
// it was before; Apply, the same that runs live, makes the next session of it, and
// Applied is told.
//
// The log begins with Created, which names the program by the digest of its definition.
// A gap, an unknown kind or a name that the machine does not have is an error, and the
// Folder is then where it was before that event; what a store must do about it is its
// own matter. A Folder is used by one goroutine.

// A Folder rebuilds a session from its log, record by record. The zero Folder
// with Programs set is at the beginning of a log.
type Folder struct {
	Programs *Programs
	// Definition returns the stored definition of a digest.
	Definition func(digest string) ([]byte, error)

	// Decision, if set, is called with every decision of the log.
	Decision func(*DecisionRecord)
	// Gate, if set, is called with every step that was judged, as the guards saw
	// it. known is false if the log does not hold what a refused ruling said.
	Gate func(seq int64, g *Gated, step verdict.Step, known bool)
	// Applied, if set, is called with every event of the log, and with what the
	// session had spent before it and after it.
	Applied func(seq int64, ev Event, before, after spend.Book)

	// Charged, if set, is called with all that the session is charged, in the order of the log,
	// before Applied; what was spent in another session, from which this one was forked, is not
	// part of it.
	Charged func(at specialist.Time, c Charge)

	// Closing, if set, is called with every executed transition, and with the
	// session and the round as they were before it.
	Closing func(*Session, *OpenRound, *Executed)

	Current Session
	Round   OpenRound
	verdict verdict.Verdict // of the step that is being executed
	gated   *Gated          // that step, until Gate was told of it
	seq     int64           // of the event gated
}

// Session returns the session as of the records added so far.
func (f *Folder) Session() *Session { return Freeze(&f.Current, &f.Round) }

// Out returns the asks of the present round that went outside this process and
// that nothing has come of yet.
func (f *Folder) Out() (out []Ask) {
	for i := range f.Round.Asks {
		if a := &f.Round.Asks[i]; a.Status.Pending() && a.Remote != nil {
			out = append(out, *a.Ask)
		}
	}
	return out
}

// Add applies the events of one record and returns them.
func (f *Folder) Add(events []byte) ([]Event, error) {
	raw, err := DecodeRaw(events)
	if err != nil {
		return nil, err
	}
	decoded := make([]Event, len(raw))
	for i := range raw {
		if want := f.Current.Sequence + 1; raw[i].Seq != want {
			return nil, fmt.Errorf("event %d where event %d should be", raw[i].Seq, want)
		}
		data, err := f.decode(&raw[i])
		if err != nil {
			return nil, fmt.Errorf("event %d (%s): %w", raw[i].Seq, raw[i].Kind, err)
		}
		decoded[i] = Event{raw[i].At, data}
		f.observe(raw[i].Seq, data)
		before := f.Current.Spent()
		if created, ok := data.(*Created); ok && created.forked != nil {
			before = created.snapshot.Spent.book() // spent in another session
		}
		if f.Charged != nil {
			f.Round.charged = func(c Charge) { f.Charged(raw[i].At, c) }
		}
		_ = Apply(&f.Current, &f.Round, &decoded[i]) // it happened: a charge that makes no sense counts as nothing
		if f.Applied != nil {
			f.Applied(raw[i].Seq, decoded[i], before, f.Current.Spent())
		}
	}
	return decoded, nil
}

// observe makes a decision record of an executed transition, from the round as it
// was before.
func (f *Folder) observe(seq int64, data Data) {
	switch d := data.(type) {
	case *Gated:
		f.verdict = d.Verdict
		if f.gated, f.seq = d, seq; !d.Verdict.Passed() {
			f.gate(refusedStep(&f.Current, &f.Round, d))
		}
	case *Executed:
		f.gate(stepOf(&f.Current, &f.Round, d), true)
		if f.Closing != nil {
			f.Closing(&f.Current, &f.Round, d)
		}
		if f.Decision != nil {
			f.Decision(newDecisionRecord(&f.Current, &f.Round, d, f.verdict, seq))
		}
	}
}

// gate tells Gate of the step that was judged last.
func (f *Folder) gate(step verdict.Step, known bool) {
	if f.Gate != nil && f.gated != nil {
		step.Task, step.Attempt = f.Current.ID.String(), int64(f.Current.Rejects)
		f.Gate(f.seq, f.gated, step, known)
	}
	f.gated = nil
}

// decode turns one stored event into what it says. The session as of the event
// before it gives names their meaning.
func (f *Folder) decode(r *Raw) (Data, error) {
	if f.Current.Program == nil && r.Kind != KindCreated {
		return nil, fmt.Errorf("the log does not begin with %s", KindCreated)
	}
	in := reading(r, &f.Current)
	defer in.release()
	in.arrivals = f.Round.Arrivals
	if r.Kind == KindCreated {
		return f.created(in)
	}
	d := newData(r.Kind)
	if d == nil {
		return nil, unknownKind(r)
	}
	d.form(in)
	if m, ok := d.(*Moved); ok && in.err == nil {
		return d, f.moved(m)
	}
	return d, in.err
}

// unknownKind is the error of an event that only newer programs write.
func unknownKind(r *Raw) error {
	return &NewerError{Has: fmt.Sprintf("event %d is of the kind %q", r.Seq, r.Kind)}
}

// newData returns an empty event of a kind; nil if there is no such kind.
func newData(kind string) Data {
	switch kind {
	case KindRoundOpened:
		return &RoundOpened{}
	case KindAsked:
		return &Asked{}
	case KindProposed:
		return &Proposed{}
	case KindAskFailed:
		return &AskFailed{}
	case KindDiscarded:
		return &Discarded{}
	case KindProbed:
		return &Probed{}
	case KindJudged:
		return &Judged{}
	case KindGated:
		return &Gated{}
	case KindRuled:
		return &Ruled{}
	case KindExecuted:
		return &Executed{}
	case KindLearned:
		return &Learned{}
	case KindReviewed:
		return &Reviewed{}
	case KindMoved:
		return &Moved{}
	case KindRetracted:
		return &Retracted{}
	case KindAdopted:
		return &Adopted{}
	case KindNeedsHuman:
		return &AwaitsHuman{}
	case KindReminded:
		return &Reminded{}
	case KindRevealed:
		return &Revealed{}
	case KindResumed:
		return &Resumed{}
	case KindEnded:
		return &Ended{}
	case KindErased:
		return &Erased{}
	case KindDriver:
		return &DriverChanged{}
	}
	return nil
}

// fork folds the snapshot with which a session begins.
func (f *Folder) fork(c *Created) error {
	c.forked = &Folder{Programs: f.Programs, Definition: f.Definition}
	if err := c.forked.replay(c.snapshot); err != nil {
		return err
	}
	if digest := c.forked.Current.Machine().Digest(); digest != c.Program.Machine.Digest() {
		return &DecodeError{"machineDigest", digest}
	}
	c.Program = c.forked.Current.Program // with limits that were raised
	return nil
}

// created reads how a session began.
func (f *Folder) created(in *form) (Data, error) {
	c := &Created{}
	v := storedCreation{options: &c.Options}
	if v.form(in); in.err != nil {
		return nil, in.err
	}
	if f.Current.Program != nil {
		return nil, fmt.Errorf("the session is created twice")
	}
	id, err := ParseID(v.id)
	if err != nil {
		return nil, &DecodeError{"sessionId", v.id}
	}
	if c.Program, err = f.program(v.digest); err != nil {
		return nil, err
	}
	if v.seed != "" {
		if c.Options.Seed, err = strconv.ParseUint(v.seed, 10, 64); err != nil {
			return nil, &DecodeError{"seed", v.seed}
		}
	}
	switch c.snapshot = v.snapshot; {
	case c.snapshot != nil: // who was missing is missing in it
		if err := f.fork(c); err != nil {
			return nil, err
		}
	case c.Options.Missing != nil:
		c.Program = c.Program.Without(c.Options.Missing)
	}
	f.Current.ID = id
	return c, nil
}
