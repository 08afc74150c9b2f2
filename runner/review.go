package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/trust"
)

// A ReviewKind says why a closed round is looked at.
type ReviewKind string

// The kinds of reviews.
const (
	Audit        ReviewKind = "audit"        // the engine decided it, and a human checks that
	SecondLook   ReviewKind = "second"       // a human decided it, and another decides it too
	Adjudication ReviewKind = "adjudication" // two humans disagreed about it, and a third settles it
)

// Draws says what was drawn for a round when it closed: it is logged whatever came
// of it, so that nobody can wonder later.
type Draws struct {
	AuditRate  exact.Billionths `json:"auditRate,omitempty"` // probability of an audit; 0 if none was possible
	Audit      bool             `json:"audit,omitempty"`
	SecondRate exact.Billionths `json:"secondRate,omitempty"` // of a second human
	Second     bool             `json:"second,omitempty"`
}

// A Review is a closed round that waits for a human. It never changes.
type Review struct {
	Kind    ReviewKind
	Key     specialist.RoundKey
	State   *machine.State
	Since   specialist.Time
	outcome *trust.Outcome    // without its truth; of a second look, with that of the first human
	second  *trust.SecondLook // of an adjudication

	revealed []string // who has looked at what was proposed and decided; "" is anybody
}

// seen reports whether somebody has decided the round before.
func (v *Review) seen(id string) bool {
	if v.outcome.HumanID == id {
		return true
	}
	return v.second != nil && (v.second.FirstHuman == id || v.second.SecondHuman == id)
}

// revealedTo reports whether what somebody makes of the round is not blind, because
// they looked, or somebody did who was not named.
func (v *Review) revealedTo(id string) bool {
	return slices.Contains(v.revealed, id) || slices.Contains(v.revealed, "")
}

// Reviewed records what a human made of a closed round. It executes nothing.
type Reviewed struct {
	Review         ReviewKind
	Round, Attempt int32
	SpecialistID   string
	TransitionName string
	Reasoning      string
	Lesson         *trust.Lesson // what it teaches; nil if that has to wait
}

// Reviews returns the closed rounds of the session that wait for a human, the
// oldest first. The caller must not change it.
func (s *Session) Reviews() []*Review { return s.reviews }

// applyReview enters the review that an executed transition was drawn for.
func applyReview(s *Session, o *openRound, d *Executed) {
	if d.Draws == nil || !d.Draws.Audit || d.How != ByConsensus {
		return
	}
	s.await(&Review{Kind: Audit, State: d.Transition.From, Since: d.At, outcome: automatic(s, o, d),
		Key: specialist.RoundKey{Session: s.ID, Round: d.Round, Attempt: d.Attempt}})
}

// await adds a review to those that wait.
func (s *Session) await(v *Review) { s.reviews = append(slices.Clip(s.reviews), v) }

// automatic returns the outcome of a round that the engine decided, but for the
// truth.
func automatic(s *Session, o *openRound, d *Executed) *trust.Outcome {
	key := specialist.RoundKey{Session: s.ID, Round: d.Round, Attempt: d.Attempt}
	a := &trust.Outcome{
		Session: s.ID.String(), Round: key.ID(), Machine: s.Machine().Name(), State: d.Transition.From.Name, DefinitionDigest: s.Machine().Digest(),
		Options: optionsOf(d.Transition.From), Source: trust.Audited, Automatic: true, Pick: d.Transition.Name,
	}
	if d.Draws != nil && d.Draws.Audit {
		a.SamplingProb = d.Draws.AuditRate
	}
	versions := map[string]string{}
	if v := o.verdict; v != nil {
		if e := v.Evidence; e != nil {
			a.PolicyDigest, a.Partial = e.PolicyDigest, e.Partial || o.waved()
			for i, arrival := range v.Order {
				if p := o.arrived(arrival); p != nil {
					versions[p.SpecialistID] = e.Versions[i]
				}
			}
		}
		if j := v.Decision.Judgement; j != nil && j.Best >= 0 {
			if v.Decision.Rule != arbiter.ByChampion { // whose P comes from fewer votes than the promise is tested on
				a.P, a.N = j.P[j.Best], j.N
			}
			if j.Risk != nil {
				a.Promise = &j.Risk.Promise
			}
		}
	}
	a.Proposals = o.learned(func(id string) string { return versions[id] }, s.Machine())
	return a
}

func optionsOf(s *machine.State) []string {
	names := make([]string, len(s.Transitions))
	for i, t := range s.Transitions {
		names[i] = t.Name
	}
	return names
}

// applyReviewed takes a review off the list, and puts on that of a disagreement.
func applyReviewed(s *Session, d *Reviewed, at specialist.Time) {
	i := s.review(d.Round, d.Attempt)
	if i < 0 {
		return // nobody had drawn it
	}
	v := s.reviews[i]
	s.reviews = slices.Delete(slices.Clone(s.reviews), i, i+1)
	if d.Review == SecondLook && d.TransitionName != v.outcome.Truth {
		s.await(&Review{Kind: Adjudication, Key: v.Key, State: v.State, Since: at, outcome: v.outcome, second: v.look(d.SpecialistID, d.TransitionName), revealed: v.revealed})
	}
	if len(s.reviews) == 0 {
		s.reviews = nil
	}
}

// review returns the index of the review of a round, -1 if there is none.
func (s *Session) review(round, attempt int32) int {
	return slices.IndexFunc(s.reviews, func(v *Review) bool { return v.Key.Round == round && v.Key.Attempt == attempt })
}

// reviewing returns the index of the review of a round by its id, -1 if there is none.
func (s *Session) reviewing(roundID string) int {
	return slices.IndexFunc(s.reviews, func(v *Review) bool { return v.Key.ID() == roundID })
}

// look returns what two humans made of the round.
func (v *Review) look(by, transition string) *trust.SecondLook {
	o := v.outcome
	return &trust.SecondLook{Machine: o.Machine, State: o.State, Options: len(o.Options), FirstHuman: o.HumanID, First: o.Truth, SecondHuman: by, Second: transition}
}

// lesson returns what a human's answer to the review teaches.
func (v *Review) lesson(in Reviewing) *trust.Lesson {
	o := *v.outcome
	switch v.Kind {
	case Audit:
		o.Truth, o.HumanID, o.Blind = in.TransitionName, in.SpecialistID, in.Blind
		return &trust.Lesson{Outcome: &o}
	case SecondLook:
		look := v.look(in.SpecialistID, in.TransitionName)
		if look.First != look.Second {
			return &trust.Lesson{Second: look}
		}
		return &trust.Lesson{Second: look, Outcome: &o}
	}
	look := *v.second
	look.Settled = in.TransitionName
	o.Truth, o.HumanID, o.Source, o.Blind = in.TransitionName, in.SpecialistID, trust.Adjudicated, in.Blind
	return &trust.Lesson{Second: &look, Outcome: &o, Settles: true}
}

// A Reviewing is a human's answer about a closed round.
type Reviewing struct {
	SessionID      specialist.SessionID
	RoundID        string
	SpecialistID   string // who answers
	TransitionName string // what should have been decided
	Reasoning      string
	Blind          bool // whoever answers has seen neither proposals nor decision; a recorded look says otherwise
}

// ErrReviewed is wrapped if a round cannot be reviewed because that was done, or
// because a human decided it.
var ErrReviewed = errors.New("the round needs no review")

// Review records what a human makes of a closed round, and executes nothing. The
// round is one of [Session.Reviews], or any other that the engine decided: then
// the answer is an overruling if it differs, and no random sample. The session may
// have ended.
//
// Errors: ErrNotFound, ErrIllegal for a transition that the round did not have,
// ErrForbidden for who may not answer, ErrReviewed, and a store that fails.
func (r *Runner) Review(ctx context.Context, in Reviewing) (*Reviewed, error) {
	for range maxRaces {
		s, err := r.load(ctx, in.SessionID)
		if err != nil {
			return nil, err
		}
		d, err := r.reviewOnce(ctx, s, in)
		if !errors.Is(err, ErrStale) {
			return d, err
		}
	}
	return nil, fmt.Errorf("session %s: %w", in.SessionID, ErrStale)
}

func (r *Runner) reviewOnce(ctx context.Context, s *Session, in Reviewing) (*Reviewed, error) {
	v, err := r.reviewOf(ctx, s, in.RoundID)
	if err != nil {
		return nil, err
	}
	if v.State.Transition(in.TransitionName) == nil {
		return nil, refuse(ErrIllegal, CodeIllegal, "Invalid transition %q from state %q", in.TransitionName, v.State.Name)
	}
	if err := r.mayReview(ctx, s, v, in.SpecialistID); err != nil {
		return nil, err
	}
	in.Blind = in.Blind && !v.revealedTo(in.SpecialistID)
	t, err := r.begin(ctx, s)
	if err != nil {
		return nil, err
	}
	d := &Reviewed{Review: v.Kind, Round: v.Key.Round, Attempt: v.Key.Attempt, SpecialistID: in.SpecialistID, TransitionName: in.TransitionName,
		Reasoning: clip(in.Reasoning, maxReasoning), Lesson: v.lesson(in)}
	if err := d.Lesson.Check(); err != nil {
		return nil, err
	}
	t.emit(d)
	_, err = t.commit(ctx)
	return d, err
}

// reviewOf returns the review of a round: one that waits, or of a round that the
// engine decided and nobody has looked at.
func (r *Runner) reviewOf(ctx context.Context, s *Session, roundID string) (*Review, error) {
	if i := s.reviewing(roundID); i >= 0 {
		return s.reviews[i], nil
	}
	var found *Review
	var reviewed bool
	f := &Folder{Programs: r.programs, Definition: r.definition(ctx, s.ID)}
	f.closing = func(now *Session, o *openRound, d *Executed) {
		key := specialist.RoundKey{Session: s.ID, Round: d.Round, Attempt: d.Attempt}
		if key.ID() != roundID {
			return
		}
		found = &Review{Kind: Audit, Key: key, State: d.Transition.From, Since: d.At, outcome: automatic(now, o, d)}
		found.outcome.Unasked, reviewed = true, d.IsHuman
	}
	f.Applied = func(_ int64, ev Event, _, _ guard.Book) {
		if d, ok := ev.Data.(*Reviewed); ok && found != nil && d.Round == found.Key.Round && d.Attempt == found.Key.Attempt {
			reviewed = true
		}
	}
	for rec, err := range r.store.Records(ctx, s.ID, 0) {
		if err != nil {
			return nil, err
		}
		if _, err := f.Add(rec.Events); err != nil {
			return nil, corrupt("the log of session "+s.ID.String(), err)
		}
	}
	switch {
	case found == nil:
		return nil, &NotFoundError{"Closed round", roundID}
	case reviewed:
		return nil, refuse(ErrReviewed, "reviewed", "round %s was decided or reviewed by a human already", roundID)
	}
	return found, nil
}

// mayReview returns an error unless somebody may answer a review: a human who
// takes part in the state and has not decided the round before; the operator
// where there is none.
func (r *Runner) mayReview(ctx context.Context, s *Session, v *Review, id string) error {
	p, err := r.planAnyhow(ctx, s.Program)
	if err != nil {
		return err
	}
	here := &p.states[v.State.Index]
	m := here.find(id)
	switch {
	case v.seen(id):
		return refuse(ErrForbidden, "same_human", "%s has decided round %s before: somebody else must", id, v.Key.ID())
	case m != nil && m.IsHuman && !m.off:
		return nil
	case id == Operator && r.config.AllowOperator && len(here.reviewers(v)) == 0:
		return nil
	}
	return refuse(ErrForbidden, "not_human", "only humans who take part in state %q can review its rounds, and %q is none", v.State.Name, id)
}

// reviewers returns who may answer a review.
func (p *statePlan) reviewers(v *Review) (ids []string) {
	return slices.DeleteFunc(p.humansOn(), v.seen)
}

// A ReviewItem is a closed round that waits for a human. It says neither what was
// proposed nor what was decided.
type ReviewItem struct {
	Review      ReviewKind        `json:"review"`
	SessionID   string            `json:"sessionId"`
	MachineName string            `json:"machineName"`
	RoundID     string            `json:"roundId"`
	Round       int32             `json:"round"`
	State       string            `json:"state"`
	Prompt      string            `json:"prompt"`
	Transitions []InboxTransition `json:"transitions"` // in an order of its own
	Since       specialist.Time   `json:"since"`
	Humans      []string          `json:"humans"` // who may answer; empty if nobody declared may
}

// Reviews lists the closed rounds that wait for a human, of all sessions, or of
// those of one machine if machineName is not "". The transitions are in random
// order, the same at each call. Sessions that cannot be read spoil nothing but
// themselves, as in [Runner.Inbox].
func (r *Runner) Reviews(ctx context.Context, machineName string) ([]ReviewItem, error) {
	list, err := r.store.List(ctx, ListQuery{MachineName: machineName, Reviews: true})
	if err != nil {
		return nil, err
	}
	items := []ReviewItem{}
	var unread []error
	for _, sum := range list {
		own, err := r.reviewsOf(ctx, sum.SessionID)
		switch {
		case ctx.Err() != nil:
			return items, ctx.Err()
		case err != nil:
			unread = append(unread, err)
		}
		items = append(items, own...)
	}
	return items, errors.Join(unread...)
}

// reviewsOf lists the reviews of one session.
func (r *Runner) reviewsOf(ctx context.Context, sessionID string) (items []ReviewItem, err error) {
	id, err := ParseID(sessionID)
	if err != nil {
		return nil, err
	}
	err = r.contain(id, func() error {
		s, err := r.load(ctx, id)
		if err != nil {
			return err
		}
		p, err := r.planAnyhow(ctx, s.Program)
		if err != nil {
			return err
		}
		for _, v := range s.reviews {
			items = append(items, v.item(s, &p.states[v.State.Index]))
		}
		return nil
	})
	return items, err
}

func (v *Review) item(s *Session, here *statePlan) ReviewItem {
	item := ReviewItem{Review: v.Kind, SessionID: s.ID.String(), MachineName: s.Machine().Name(), RoundID: v.Key.ID(), Round: v.Key.Round,
		State: v.State.Name, Prompt: v.State.Prompt, Since: v.Since, Humans: append([]string{}, here.reviewers(v)...)}
	choices := choicesOf(v.State)
	for _, i := range trust.OptionOrder(s.ID.String(), v.Key.ID(), string(v.Kind), len(choices), 0) {
		item.Transitions = append(item.Transitions, choices[i])
	}
	return item
}

// Key returns the key of the round that the transition closed.
func (e *Executed) Key(session specialist.SessionID) specialist.RoundKey {
	return specialist.RoundKey{Session: session, Round: e.Round, Attempt: e.Attempt}
}
