package runner

import (
	"context"
	"slices"
	"sync"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/trust"
)

// A tx gathers the events of one commit and the session they lead to. It
// belongs to one goroutine. Its buffers are used again and again; what becomes
// part of the log is allocated anew.
type tx struct {
	r      *Runner
	before *Session // nil for a new session
	now    Session
	round  openRound
	events []Event
	at     specialist.Time // one reading of the clock for the whole commit

	plan *plan
	here *statePlan // who takes part in the present round

	batch  *batch        // where the data of the events lies
	asked  *Asked        // the event that the local asks of this commit share
	roster []RosterEvent // that goes with this commit
	reign  reign

	weighed bool // weights has been read
	weights []exact.Billionths
	votes   []arbiter.Vote
	open    []arbiter.Standing
	judging arbiter.Round
	reads   *arbiter.Evidence // nil until bayes decides
	stop    trust.Stop        // why nobody else is asked, "" if somebody is or all were
	past    past
	pending judgement
	change  Change
}

// A batch is room for the data of the events of a plain round, so that they are
// one allocation and not six.
type batch struct {
	asked     Asked
	asks      [4]Ask
	judged    Judged
	order     [4]int32
	weights   [4]exact.Billionths
	gated     Gated
	opened    RoundOpened
	used      uint8
	proposals []Proposed // of a round asked in this commit
}

const (
	askedUsed = 1 << iota
	judgedUsed
	gatedUsed
	openedUsed
)

// take hands out a part of the batch once: first is its place there, and ok is
// false if it is taken already.
func (t *tx) take(part uint8) (b *batch, ok bool) {
	if t.batch == nil {
		t.batch = &batch{}
	}
	ok = t.batch.used&part == 0
	t.batch.used |= part
	return t.batch, ok
}

func (t *tx) newAsked() *Asked {
	b, ok := t.take(askedUsed)
	if !ok {
		return &Asked{}
	}
	b.asked.Asks = b.asks[:0]
	return &b.asked
}

func (t *tx) newJudged(votes int) *Judged {
	b, ok := t.take(judgedUsed)
	if !ok {
		return &Judged{Order: make([]int32, votes), Weights: make([]exact.Billionths, votes)}
	}
	if votes <= len(b.order) {
		b.judged.Order, b.judged.Weights = b.order[:votes:votes], b.weights[:votes:votes]
	} else {
		b.judged.Order, b.judged.Weights = make([]int32, votes), make([]exact.Billionths, votes)
	}
	return &b.judged
}

func (t *tx) newGated() *Gated {
	if b, ok := t.take(gatedUsed); ok {
		return &b.gated
	}
	return &Gated{}
}

func (t *tx) newOpened() *RoundOpened {
	if b, ok := t.take(openedUsed); ok {
		return &b.opened
	}
	return &RoundOpened{}
}

// expect makes room for that many proposals.
func (t *tx) expect(n int) {
	b, _ := t.take(0)
	if cap(b.proposals)-len(b.proposals) < n {
		b.proposals = make([]Proposed, 0, n)
	}
}

func (t *tx) newProposed() *Proposed {
	b, _ := t.take(0)
	if len(b.proposals) == cap(b.proposals) {
		return &Proposed{}
	}
	b.proposals = b.proposals[:len(b.proposals)+1]
	return &b.proposals[len(b.proposals)-1]
}

// begin opens a tx on a session.
func (r *Runner) begin(ctx context.Context, s *Session) (*tx, error) {
	t := &tx{}
	return t, t.begin(ctx, r, s)
}

// beginAnyhow is begin where nobody will be asked: what asking takes may be
// missing.
func (r *Runner) beginAnyhow(ctx context.Context, s *Session) (*tx, error) {
	p, err := r.planAnyhow(ctx, s.Program)
	if err != nil {
		return nil, err
	}
	t := &tx{}
	t.reset(r, p, s)
	return t, nil
}

// begin makes t a tx on a session, whatever it was before.
func (t *tx) begin(ctx context.Context, r *Runner, s *Session) error {
	p, err := r.plan(ctx, s.Program)
	if err == nil {
		t.reset(r, p, s)
	}
	return err
}

func (t *tx) reset(r *Runner, p *plan, s *Session) {
	proposals, asks := t.round.proposals[:0], t.round.asks[:0]
	*t = tx{
		r: r, before: s, now: *s, at: r.now(), plan: p, here: &p.states[s.State.Index],
		events: t.events[:0], votes: t.votes[:0], open: t.open[:0],
	}
	if s.open != nil {
		t.round = *s.open
		proposals, asks = append(proposals, s.open.proposals...), append(asks, s.open.asks...)
	}
	t.round.proposals, t.round.asks = proposals, asks
	t.past.r, t.past.s = r, &t.now
}

// emit adds one event and applies it.
func (t *tx) emit(d Data) {
	t.events = append(t.events, Event{t.at, d})
	apply(&t.now, &t.round, &t.events[len(t.events)-1])
}

// commit makes the events durable and returns the session as it is now. With
// nothing to write it returns the session as it was.
func (t *tx) commit(ctx context.Context) (*Session, error) {
	if len(t.events) == 0 {
		return t.before, nil // a demotion alone waits for something to go with
	}
	first := int64(1)
	if t.before != nil {
		first = t.before.Sequence + 1
	}
	c := &t.change
	*c = Change{Before: t.before, After: freeze(&t.now, &t.round), First: first, Events: t.events, Roster: t.roster}
	if err := t.r.store.Commit(ctx, c); err != nil {
		return nil, err
	}
	t.r.ended(c.After)
	if t.r.config.Observer != nil {
		t.r.config.Observer(Record{Before: c.Before, After: c.After, First: c.First, Events: c.Events})
	}
	return c.After, nil
}

// members returns who proposes in the present round.
func (t *tx) members() []member {
	if o := t.now.options; o != nil && o.DefaultProposer && len(t.here.members) == 0 && t.here.state.Roster == nil {
		return []member{defaultProposer(t.now.ID)}
	}
	return t.here.members
}

// arbiter returns who decides the present round.
func (t *tx) arbiter() (*member, error) {
	if t.here.arbiter != nil {
		return t.here.arbiter, nil
	}
	if o := t.now.options; o != nil && o.DefaultArbiter {
		return defaultArbiter(t.now.ID), nil
	}
	return nil, refuse(ErrNotFound, CodeNoArbiter, "No arbiter registered for machine: %s", t.now.Machine().Name())
}

// weigh returns the standing of the members of the round.
func (t *tx) weigh(ctx context.Context, members []member) ([]exact.Billionths, error) {
	if t.weighed {
		return t.weights, nil
	}
	b, err := t.r.store.Book(ctx, t.now.Machine().Name())
	if err != nil {
		return nil, err
	}
	if len(members) == len(t.here.members) {
		t.weights = t.here.weights(b)
	} else { // a default proposer stands in
		t.weights = make([]exact.Billionths, len(members))
		for i := range members {
			t.weights[i] = b.Score(members[i].SpecialistID, t.here.scope)
		}
	}
	t.weighed = true
	return t.weights, nil
}

// mode returns how the proposers of the present round are asked.
func (t *tx) mode() machine.Mode {
	if o := t.now.options; o != nil && o.Mode != "" {
		return o.Mode
	}
	return t.now.State.Solicit.Mode
}

// standings returns the votes of the round in the order in which it is put to
// the arbiter: humans first and then by roster, so that no network decides; by
// arrival where arrival is what counts.
func (t *tx) standings(ctx context.Context, by *member) ([]arbiter.Vote, error) {
	members := t.members()
	weights, err := t.weigh(ctx, members)
	if err != nil {
		return nil, err
	}
	t.votes = t.votes[:0]
	for _, p := range t.round.proposals {
		if t.shadows(p.SpecialistID) {
			continue
		}
		rank, weight := t.place(p, members, weights)
		vote := arbiter.Vote{Proposal: p, Rank: rank, Weight: weight}
		if by.byBayes() {
			vote.Version = t.here.version(p.SpecialistID)
		}
		t.votes = append(t.votes, vote)
	}
	votes := t.votes
	if t.mode() == machine.Eager || by.StrategyFnName == firstProposal {
		return votes, nil // by arrival already
	}
	// Insertion sort: a round is short and mostly in order.
	for i := 1; i < len(votes); i++ {
		for j := i; j > 0 && votes[j].Rank < votes[j-1].Rank; j-- {
			votes[j], votes[j-1] = votes[j-1], votes[j]
		}
	}
	return votes, nil
}

// humanFirst is subtracted from the rank of humans.
const humanFirst = 1 << 20

// place returns a proposal's rank and its author's weight. Proposals of members
// that have left since count nothing, but they are put to the arbiter.
func (t *tx) place(p *specialist.Proposal, members []member, weights []exact.Billionths) (int32, exact.Billionths) {
	for i := range members {
		if m := &members[i]; m.SpecialistID == p.SpecialistID {
			if p.IsHuman {
				return m.rank - humanFirst, exact.One
			}
			return m.rank, weights[i]
		}
	}
	if p.IsHuman {
		for i := range t.here.humans {
			if h := &t.here.humans[i]; h.SpecialistID == p.SpecialistID {
				return h.rank - humanFirst, exact.One
			}
		}
		return -1, exact.One
	}
	return int32(len(members)), 0
}

// arbiterRound returns the round as the arbiter sees it, valid until t changes.
func (t *tx) arbiterRound(ctx context.Context, votes []arbiter.Vote, by *member) (*arbiter.Round, error) {
	st := t.now.State
	t.judging = arbiter.Round{
		Key: t.now.Key(), Machine: t.now.Machine(), State: st, RequireTrust: st.RequireTrust,
		Threshold: st.Threshold, Votes: votes, Past: &t.past,
	}
	if t.judging.Threshold == nil {
		t.judging.Threshold = by.Threshold
	}
	if t.now.options != nil {
		t.judging.Meta = t.now.options.Meta
	}
	if by.byBayes() {
		e, err := t.evidence(ctx)
		if err != nil {
			return nil, err
		}
		own := *e
		own.Question.Partial, own.Question.Stop = t.partial(), t.stop
		t.judging.Evidence = &own
	}
	return &t.judging, nil
}

// question returns what the proposers of the round are asked, valid until t
// changes.
func (t *tx) question() specialist.Question { return questionOf(&t.now, t.round.notices, &t.past) }

func questionOf(s *Session, notices []string, p *past) specialist.Question {
	q := specialist.Question{Key: s.Key(), Machine: s.Machine(), State: s.State, Notices: notices, Past: p}
	if o := s.options; o != nil {
		q.Meta, q.Seed = o.Meta, o.Seed
	}
	return q
}

// judge implements judge: it is called by the gate, inside the event.
func (t *tx) judge(string, string) guard.Verdict {
	return t.pending.verdict(t)
}

// A judgement is the step that is passing the gate.
type judgement struct {
	ctx     context.Context
	step    guard.Step
	inquiry *inquiry // nil if nobody was asked about the step
}

// verdict judges the step. Guards that had to ask somebody have done so before:
// here it is made sure of.
func (j *judgement) verdict(t *tx) guard.Verdict {
	v := j.alone(t)
	if v.Passed() && !j.step.Human && t.now.Program.Guards(t.now.State).Asks(j.step.Transition) {
		return v.Join(j.inquiry.on(&j.step))
	}
	return v
}

// alone judges the step by the guards that ask nobody.
func (j *judgement) alone(t *tx) (v guard.Verdict) {
	state := guard.State{}
	if t.now.guard != nil {
		state = *t.now.guard
	}
	v = t.now.Program.Guards(t.now.State).Check(state, j.step)
	if j.step.Human {
		return v // custom guards judge content, and a ruling's is a human's
	}
	for _, c := range t.r.config.Guards {
		v = v.Join(safely(j.ctx, c, j.step))
	}
	return v
}

// safely runs a guard of the program's own; a panic fails closed.
func safely(ctx context.Context, c guard.Checker, s guard.Step) (v guard.Verdict) {
	defer func() {
		if recover() != nil {
			v = guard.InternalError("a custom guard")
		}
	}()
	return c.Check(ctx, s)
}

// decision is a transition that somebody decided to execute.
type decision struct {
	transition *machine.Transition
	how        DecisionKind
	by         string // the winner or the human; may be ""
	arrival    int32
	reasoning  string
	meta       []byte
	winner     *specialist.Proposal // nil unless it was elected
	blind      bool                 // the human had seen no proposals
	draws      *Draws
	learned    *Learned
	standing   *Standing // of the round a human closes
	inquiry    *inquiry  // nil if nobody was asked about it
}

// execute takes a decision through the gate and, if it passes, moves the
// session. It is the only way a session moves. The verdict is recorded whatever
// it is; what follows from a refusal is up to the caller.
func (t *tx) execute(ctx context.Context, d decision) (guard.Verdict, error) {
	t.pending = judgement{ctx: ctx, step: t.step(d), inquiry: d.inquiry}
	permit, verdict, err := t.here.gates[d.transition.Index].pass(ctx, t)
	if err != nil {
		return verdict, err
	}
	g := t.newGated()
	*g = Gated{Transition: d.transition, Verdict: verdict, IsHuman: d.how != ByConsensus}
	t.emit(g)
	if permit.valid {
		t.move(permit, d, verdict)
	}
	return verdict, nil
}

// move executes what a permit allows.
func (t *tx) move(p permit, d decision, v guard.Verdict) {
	round := t.now.Round
	t.emit(&Executed{
		Transition: p.transition, How: d.how, IsHuman: d.how != ByConsensus,
		SpecialistID: d.by, Arrival: d.arrival, Reasoning: d.reasoning, MetaJSON: d.meta,
		At: t.at, Standing: d.standing, Round: round, Attempt: t.now.Attempt, Draws: d.draws,
	})
	if d.learned != nil {
		t.emit(d.learned)
	}
	switch to := p.transition.To; {
	case to.Terminal():
		end := ended(to)
		t.emit(&end)
	default:
		o := t.newOpened()
		*o = RoundOpened{Round: round + 1, State: to, Notices: slices.Clip(v.Notices)}
		t.emit(o)
		t.here, t.weighed, t.reads = &t.plan.states[to.Index], false, nil
	}
}

// step returns a decision as the guards see it.
func (t *tx) step(d decision) guard.Step {
	s := stepFor(&t.now, d.transition, d.reasoning, d.meta, d.how != ByConsensus, d.winner)
	s.Attempt, s.At = int64(t.now.Rejects), t.at
	if len(t.r.config.Guards) > 0 || t.now.Program.Guarded {
		s.Task = t.now.ID.String()
	}
	return s
}

// A past is what a session remembers, for proposers and arbiters.
type past struct {
	r *Runner
	s *Session

	mu        *sync.Mutex // nil if only one goroutine looks
	history   []specialist.TransitionRecord
	exemplars []specialist.Exemplar
	loaded    bool
}

// Steps implements [specialist.Past].
func (p *past) Steps() int { return int(p.s.Executed) }

// Visits implements [specialist.Past].
func (p *past) Visits(s *machine.State) int { return p.s.visits(s) }

// Last implements [specialist.Past].
func (p *past) Last() *machine.Transition {
	if p.s.last == nil {
		return nil
	}
	return p.s.last.Transition
}

// History implements [specialist.Past].
func (p *past) History() []specialist.TransitionRecord {
	if p.mu != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
	}
	if p.history == nil {
		p.history = TransitionRecords(p.s.History())
	}
	return p.history
}

// TransitionRecords returns executed transitions as proposers see them.
func TransitionRecords(history []*Executed) []specialist.TransitionRecord {
	records := make([]specialist.TransitionRecord, len(history))
	for i, e := range history {
		records[i] = specialist.TransitionRecord{TransitionName: e.Transition.Name, Reasoning: e.Reasoning, ExecutionTimestamp: e.At, MetaJSON: e.MetaJSON}
	}
	return records
}

// Exemplars implements [specialist.Past]. If the store cannot be read there are
// none: examples help, they are not needed.
func (p *past) Exemplars() []specialist.Exemplar {
	if p.mu != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
	}
	if !p.loaded {
		p.loaded = true
		p.exemplars, _ = p.r.store.Exemplars(context.Background(), p.s.Machine().Name(), p.s.State.Name, 0)
	}
	return p.exemplars
}
