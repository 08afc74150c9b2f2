package sim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Sessions are forked, also forks, from the newest event or from a commit before it, while
// they run. What the models know of a fork they work out from the log of the other session.

const forkedRight = "a fork goes on from where the other session stood"

// mostSessions is how many sessions of a run there may be before nobody forks any more.
const mostSessions = 4

// forks returns the choices of whoever forks sessions, in the runs in which somebody does.
func (p *process) forks() (list []choice) {
	w := p.w
	if w.draw(3, "forks") > 0 || len(w.sessions) >= mostSessions {
		return nil
	}
	for _, s := range w.sessions {
		if s.now == nil {
			continue
		}
		for _, back := range []int{0, 1, 4} {
			at := s.boundary(back)
			list = append(list, choice{fmt.Sprintf("%s forks %s at %d", p.name, s, at), 1, false, func() {
				p.run("forks", s, func(ctx context.Context, s *observed) error {
					_, err := p.r.Fork(ctx, s.id, runner.Forking{At: at, Actor: operator})
					return err
				})
			}})
		}
	}
	return list
}

// boundary returns where a commit ends, so many commits before the newest.
func (s *observed) boundary(back int) int64 {
	return s.ends[max(0, len(s.ends)-1-back)]
}

// An origin is where a fork begins.
type origin struct {
	from   *session.Session // the other session, as it stood there
	opened int64            // the event by which its open round had opened
	err    error            // why it did not stand there
	later  bool             // something of the round was withheld since that was not then, and the fork has no answers of it
}

// withheld reports whether something of the open round was withheld from somebody.
func (o *origin) withheld() bool { return o.from.Withheld("") != "" || o.from.ConcealsRulings() }

// inherit brings the model of a fork up to where the fork begins: by all that the other
// session's log says up to there, without what belongs to that session alone.
func (c *check) inherit(d *session.Created) {
	s := c.s
	counts := maps.Clone(c.w.counts)
	o := &origin{}
	defer func() { s.origin = o }() // also where the other session is a fork itself
	f := &session.Folder{Programs: s.folder.Programs}
	f.Applied = s.folder.Applied
	parent := slices.IndexFunc(c.w.sessions, func(o *observed) bool { return o.id.String() == d.Options.ForkedFrom.SessionID })
	for rec, err := range c.w.base.Records(context.Background(), c.w.sessions[parent].id, 0) {
		s.spent = s.spent[:0]
		r := &check{w: c.w, s: s, before: f.Session()}
		if err == nil {
			r.events, err = f.Add(bytes.Clone(rec.Events))
		}
		if err != nil {
			o.err = err
			return
		}
		if rec.First == 1 {
			r.before = nil
		}
		r.after = f.Session()
		r.enter()
		if i := r.opens(); i >= 0 {
			o.opened = rec.First + int64(i)
		}
		if r.after.Sequence >= d.Options.ForkedFrom.Sequence {
			break
		}
	}
	was := f.Session()
	if len(c.after.Proposals()) == 0 {
		o.later = c.w.withheldSince(c.w.sessions[parent], was.Round, was.Sequence)
	}
	if o.from = was; was.Sequence != d.Options.ForkedFrom.Sequence {
		o.err = fmt.Errorf("no commit ends at event %d", d.Options.ForkedFrom.Sequence)
	}
	c.w.counts = counts
	s.asks, s.hearings, s.twice, s.over = map[string]*ask{}, map[specialist.RoundKey]*hearing{}, nil, nil
	s.ruled, s.said, s.contested, s.audited = map[specialist.RoundKey][]*session.Ruled{}, map[specialist.RoundKey]map[string]bool{}, map[specialist.RoundKey]bool{}, map[specialist.RoundKey]bool{}
	s.taught, s.reviewed = map[specialist.RoundKey]*session.Learned{}, map[specialist.RoundKey]bool{}
	s.base, s.probeBase = was.Spent().Money, was.GuardState().Probes.Money
	s.grace = max(s.grace, s.base)
	s.panels = map[specialist.RoundKey]*panel{}
	for _, p := range c.after.Proposals() {
		if !p.IsHuman {
			s.panel(c.after.Key()).answered[p.SpecialistID] = true
		}
	}
	l := s.cases
	l.drawn, l.wrong = map[specialist.RoundKey]bool{}, map[string]error{}
	if c.w.cases != nil {
		c.dueAnew(c.after.State.Name, c.after.Due(), c.after.CreatedAt)
	}
}

// withheldSince reports whether something of a round of a session is withheld, or was since an
// event: whoever forks has read it at some moment between, and copies nothing that was
// withheld then. So it is where the round had been closed because a human was to look at it again.
func (w *world) withheldSince(s *observed, round int32, at int64) bool {
	f := &session.Folder{Programs: s.folder.Programs}
	for rec, err := range w.base.Records(context.Background(), s.id, 0) {
		if err == nil {
			_, err = f.Add(bytes.Clone(rec.Events))
		}
		if err != nil {
			return false // as others find
		}
		now := f.Session()
		if slices.ContainsFunc(now.Reviews(), func(v *session.Review) bool { return v.Key.Round == round }) {
			return true
		}
		if now.Sequence >= at && now.Round == round && (now.Withheld("") != "" || now.ConcealsRulings()) {
			return true
		}
	}
	return false
}

// opens returns which event of a record opens a round; -1 if none does.
func (c *check) opens() int {
	return slices.IndexFunc(c.events, func(e session.Event) bool {
		d, ok := e.Data.(*session.RoundOpened)
		return ok && d.Attempt == 0
	})
}

// forkedRight compares a fork with the other session as that stood.
func (c *check) forkedRight() error {
	o := c.s.origin
	if o == nil {
		return nil
	}
	if o.err != nil {
		return o.err
	}
	key := specialist.RoundKey{Session: c.s.id, Round: o.from.Round, Attempt: o.from.Attempt}
	for i, e := range c.events {
		if _, ok := e.Data.(*session.Learned); ok && c.keys[i] == key && len(o.from.Proposals()) > 0 && !o.withheld() && !o.later {
			return fmt.Errorf("round %d teaches something, and has answers of the other session", key.Round)
		}
	}
	if c.before != nil {
		return nil
	}
	c.w.count("forks")
	was, is := o.from, c.after
	if a, b := inherited(was), inherited(is); a != b {
		return fmt.Errorf("the other session was\n%s\nthe fork is\n%s", a, b)
	}
	var proposals []*specialist.Proposal
	if !o.withheld() && !o.later {
		proposals = was.Proposals()
	}
	if !slices.EqualFunc(is.Proposals(), proposals, func(a, b *specialist.Proposal) bool {
		return a.SpecialistID == b.SpecialistID && a.Transition.Name == b.Transition.Name && a.Arrival == b.Arrival
	}) {
		return fmt.Errorf("it has %d proposals, the other session had %d, withheld: %t", len(is.Proposals()), len(was.Proposals()), o.withheld())
	}
	if is.Status == session.Completed || is.Status.Live() != was.Status.Live() || len(is.OpenAsks()) > 0 || pending(is) || len(is.Reviews()) > 0 {
		return fmt.Errorf("it is %s, has %d asks, %d reviews, and pending rulings: %t", is.Status, len(is.OpenAsks()), len(is.Reviews()), pending(is))
	}
	return c.snapshot()
}

// snapshot looks at which events of the other session have come along.
func (c *check) snapshot() error {
	var stored []struct {
		Data struct {
			Snapshot struct {
				Events []session.Raw `json:"events"`
			} `json:"snapshot"`
		} `json:"data"`
	}
	if err := json.Unmarshal(c.stored.Events, &stored); err != nil {
		return err
	}
	for _, e := range stored[0].Data.Snapshot.Events {
		open := e.Seq >= c.s.origin.opened
		switch e.Kind {
		case session.KindLearned, session.KindReviewed, session.KindRetracted, session.KindAdopted, session.KindRevealed:
			return fmt.Errorf("event %d comes along: %s", e.Seq, e.Kind)
		case session.KindProposed, session.KindJudged, session.KindAskFailed:
			if open && c.s.origin.withheld() {
				return fmt.Errorf("event %d comes along, and is withheld: %s", e.Seq, e.Kind)
			}
		case session.KindRuled:
			if open {
				return fmt.Errorf("event %d comes along, which waits for others: %s", e.Seq, e.Kind)
			}
		}
	}
	return nil
}

// inherited says what is the same in a session and its fork.
func inherited(s *session.Session) string {
	var steps []string
	for e := s.Last(); e != nil; e = e.Previous {
		steps = append(steps, fmt.Sprint(e.Transition.Name, e.Round, e.How, e.SpecialistID, e.Authors, e.At))
	}
	return fmt.Sprint(s.Machine().Digest(), s.State.Name, s.Round, s.Attempt, s.Executed, s.Rejects, s.Spent(), string(s.Data().JSON()), s.Subject(), s.Closed(), steps)
}
