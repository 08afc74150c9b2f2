package explain

import (
	"context"
	"encoding/json"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// What an explanation consists of, and how it is put together, in this order:
//
//  1. traceRound (trace.go) reads what the log says of one attempt at the round.
//  2. explanation makes plain data of it: options, votes, failures, verdict, gates,
//     ruling.
//  3. standingsOf adds what the weight of each vote was made of, where the tallies of
//     today still contain it; collapseThen how far the state had come at that time.
//  4. decideAgain (whatif.go) decides the round once more, as it was and with one thing
//     different; from that come the changes, what the engine would have made of a round
//     that a human ruled, and the correlations among votes.
//
// Nothing is asked and nothing is written. The JSON of these types is stable; text is
// made of them elsewhere (cli/internal/render).

// An Explanation says why one round went as it did: everything that was known,
// what was made of it, and what would have changed it. It is plain data with a
// stable JSON form, from which the text of dialai explain is made.
type Explanation struct {
	SessionID     string           `json:"sessionId"`
	MachineName   string           `json:"machineName"`
	MachineDigest string           `json:"machineDigest"`
	RoundID       string           `json:"roundId"`
	Round         int32            `json:"round"`
	Attempt       int32            `json:"attempt"`
	State         string           `json:"state"`
	Data          json.RawMessage  `json:"data,omitempty"` // of the session when the round was opened; nil if it has none
	Options       []Option         `json:"options"`        // the legal transitions, in definition order
	Votes         []Vote           `json:"votes"`          // in the round's order; what the verdict, or else the ruling, found
	Failures      []Failure        `json:"failures,omitempty"`
	Verdict       *Verdict         `json:"verdict,omitempty"` // on these votes; nil if there is none, or none yet
	Earlier       []EarlierVerdict `json:"earlier,omitempty"` // verdicts on fewer or other proposals of the round
	Gates         []Gate           `json:"gates,omitempty"`   // what the guards said of each step that was to be executed
	Ruling        *Ruling          `json:"ruling,omitempty"`  // of a human
	Executed      string           `json:"executed,omitempty"`
	Timer         bool             `json:"timer,omitempty"` // it was executed because the state was due: nobody decided
	ToState       string           `json:"toState,omitempty"`
	Human         *Wait            `json:"human,omitempty"` // that a human had to be asked, and why
	// Rulings are those of the open round that wait for others and are no secret;
	// WithheldRulings is how many more there are.
	Rulings         []session.QuestionRuling `json:"rulings,omitempty"`
	WithheldRulings int                      `json:"withheldRulings,omitempty"`
	Draws           *session.Draws           `json:"draws,omitempty"` // whether the closed round was drawn for another look
	Reviews         []Review                 `json:"reviews,omitempty"`
	Changes         *Changes                 `json:"changes,omitempty"`
	// Withheld says that a human is still to decide or to review the round without
	// having seen what was proposed: whoever may be that human must not be shown
	// this.
	Withheld bool `json:"withheld,omitempty"`
	// Collapse is how far the state had come, if it declares that.
	Collapse *session.Collapse `json:"collapse,omitempty"`
}

// A Review is what a human made of the round after it had closed.
type Review struct {
	At         specialist.Time `json:"at"`
	Review     string          `json:"review"` // audit, second or adjudication
	HumanID    string          `json:"humanId"`
	Transition string          `json:"transition"`
	Reasoning  string          `json:"reasoning,omitempty"`
}

// An Option is a legal transition.
type Option struct {
	Transition   string `json:"transition"`
	Target       string `json:"target"`
	Irreversible bool   `json:"irreversible,omitempty"`
	Closed       string `json:"closed,omitempty"` // why it could not be chosen in this round; "" if it could
	// Approvals say of the open round how many humans have to choose it, and who has; nil if
	// one is enough, and of a round that is closed.
	Approvals *session.QuestionApprovals `json:"approvals,omitempty"`
}

// A Vote is one proposal with its author's standing at that time.
type Vote struct {
	SpecialistID string           `json:"specialist"`
	ProposalID   string           `json:"proposalId"`
	Transition   string           `json:"transition"`
	Human        bool             `json:"human,omitempty"`
	Reasoning    string           `json:"reasoning,omitempty"`
	Model        string           `json:"model,omitempty"`
	Version      string           `json:"version,omitempty"` // digest of what the author is; under bayes only
	CostUSD      exact.Money      `json:"costUSD,omitempty"`
	Weight       exact.Billionths `json:"weight"`             // its alignment; 1 for humans
	Agreed       *int64           `json:"agreed,omitempty"`   // of that alignment: agreements with humans, nil if it cannot be told
	Compared     *int64           `json:"compared,omitempty"` // and comparisons
	Scope        string           `json:"scope,omitempty"`    // the state that alone the alignment is of; "" for the whole machine
	// Correlated says for whose sake bayes discounted the vote.
	Correlated []trust.Correlation `json:"correlated,omitempty"`
	// Origins are the states whose records bayes pooled for this vote.
	Origins []trust.Origin `json:"origins,omitempty"`
}

// A Failure is an ask that brought no proposal.
type Failure struct {
	SpecialistID string `json:"specialist"`
	Role         string `json:"role"`
	Code         string `json:"code"`
	Message      string `json:"message,omitempty"`
}

// A Verdict is what the arbiter made of the votes.
type Verdict struct {
	At                specialist.Time    `json:"at"`
	ArbiterID         string             `json:"arbiterId"`
	Strategy          string             `json:"strategy"`
	ConsensusReached  bool               `json:"consensusReached"`
	Code              string             `json:"code"`
	Reasoning         string             `json:"reasoning"`
	Transition        string             `json:"transition,omitempty"`
	WinningProposalID string             `json:"winningProposalId,omitempty"`
	SpecialistID      string             `json:"specialist,omitempty"` // whose proposal won
	Margin            exact.Billionths   `json:"margin"`               // by alignment, whatever the strategy
	Threshold         *machine.Threshold `json:"threshold,omitempty"`  // in force; nil if nobody set one
	Scores            []Score            `json:"scores"`
	Judgement         *trust.Judgement   `json:"judgement,omitempty"` // of bayes
	Quorum            *arbiter.Quorum    `json:"quorum,omitempty"`    // how far the panel had answered; nil in older logs
}

// A Score is the sum of the alignments behind one transition.
type Score struct {
	Transition string           `json:"transition"`
	Sum        exact.Billionths `json:"sum"`
	Votes      int              `json:"votes"`
}

// An EarlierVerdict is one that later proposals overtook.
type EarlierVerdict struct {
	Code      string `json:"code"`
	Reasoning string `json:"reasoning"`
}

// A Gate is what the guards said of a step.
type Gate struct {
	Transition string   `json:"transition"`
	Human      bool     `json:"human,omitempty"`
	Status     string   `json:"status"` // ok, warn, retry, escalate or abort
	Reasons    []Reason `json:"reasons,omitempty"`
}

// A Reason is one finding of a guard.
type Reason struct {
	Class    string `json:"class"`
	Code     string `json:"code"`
	Message  string `json:"message"`
	Limit    string `json:"limit,omitempty"`
	Observed string `json:"observed,omitempty"`
}

// A Ruling is a human's decision, and what the engine had made of the
// same votes.
type Ruling struct {
	At         specialist.Time  `json:"at"`
	HumanID    string           `json:"humanId"`
	Authors    []string         `json:"authors,omitempty"`        // the humans who chose it, if there was more than one
	Words      []Word           `json:"words,omitempty"`          // what those before the last of them said
	Actor      *session.Actor   `json:"actor,omitempty"`          // the person or program that ruled, of several the last; nil if that is not said
	Digest     string           `json:"questionDigest,omitempty"` // of the question on which it was ruled; "" if the ruling named none
	Kind       string           `json:"kind"`                     // forced, or executed: that teaches nothing
	Transition string           `json:"transition"`
	ToState    string           `json:"toState"`
	Reasoning  string           `json:"reasoning,omitempty"`
	Blind      bool             `json:"blind,omitempty"`     // the human had seen no proposals
	Unasked    bool             `json:"unasked,omitempty"`   // nobody had asked the human
	Pick       string           `json:"pick,omitempty"`      // what the engine found best; "" if it cannot be told
	P          exact.Billionths `json:"p,omitempty"`         // its probability, under bayes
	Retracted  *Retraction      `json:"retracted,omitempty"` // nil if it stands
	Decides    bool             `json:"decides,omitempty"`   // the engine would have executed Pick
	Agreed     *bool            `json:"agreed,omitempty"`    // the human chose Pick; nil without one
}

// A Retraction says that a ruling was taken back, as a mistake of its author.
type Retraction struct {
	HumanID string `json:"humanId"`
	Note    string `json:"note"`
}

// A Wait is that and why a human had to be asked.
type Wait struct {
	Code   string `json:"code"`
	Reason string `json:"reason"`
}

// Round says why a round of a session went as it did. round is its number, a
// number and an attempt such as "3.1", or its id; "" stands for the last round
// with a verdict, or else the last that a human closed. It reads only, and asks
// nobody: an arbiter of a program's own is not called again.
func Round(ctx context.Context, r *runner.Runner, id specialist.SessionID, round string) (*Explanation, error) {
	t, err := traceRound(ctx, r, id, round)
	if err != nil {
		return nil, err
	}
	e := t.explanation()
	if err := t.pending(ctx, r, e); err != nil {
		return nil, err
	}
	if err := standingsOf(ctx, r.Store(), t, e); err != nil {
		return nil, err
	}
	if e.Collapse, err = collapseThen(ctx, r.Store(), t); err != nil {
		return nil, err
	}
	again, err := decideAgain(ctx, r, t)
	if err != nil {
		return nil, err
	}
	again.ruling(e.Ruling)
	e.Changes = again.changes()
	again.correlations(e.Votes)
	return e, nil
}

// Conceal leaves of the explanation of a closed round what every view tells: what was
// executed, by whose ruling and why. What was proposed and made of it is left out.
func (e *Explanation) Conceal() {
	e.Votes, e.Failures, e.Verdict, e.Earlier, e.Gates, e.Human, e.Reviews, e.Changes = []Vote{}, nil, nil, nil, nil, nil, nil, nil
	if r := e.Ruling; r != nil {
		r.Pick, r.P, r.Decides, r.Agreed = "", 0, false, nil
	}
}

// explanation returns what the log alone says.
func (t *trace) explanation() *Explanation {
	m := t.before.Machine()
	e := &Explanation{
		SessionID: t.key.Session.String(), MachineName: m.Name(), MachineDigest: m.Digest(), RoundID: t.key.ID(), Round: t.key.Round, Attempt: t.key.Attempt,
		State: t.before.State.Name, Options: []Option{}, Votes: []Vote{}, Failures: t.failures, Earlier: t.earlier, Gates: t.gates, Human: t.wait, Reviews: t.reviews, Withheld: t.withheld,
	}
	if d := t.before.Data(); len(d.Members()) > 0 {
		e.Data = d.JSON()
	}
	for _, o := range t.before.State.Transitions {
		e.Options = append(e.Options, Option{Transition: o.Name, Target: o.Target, Irreversible: o.Irreversible, Closed: t.before.WhyClosed(o)})
	}
	for i, p := range t.voters() {
		e.Votes = append(e.Votes, t.vote(i, p))
	}
	if j := t.verdict; j != nil {
		e.Verdict = t.explainVerdict(j)
	}
	if x := t.executed; x != nil {
		e.Executed, e.ToState = x.Transition.Name, x.Transition.Target
		e.Ruling, e.Draws, e.Timer = t.explainRuling(x), x.Draws, x.How == session.ByTimer
	}
	return e
}

// pending adds of the open round how far the approvals are, what was ruled, as far as anybody
// may know, and why a human is asked, by who may rule now.
func (t *trace) pending(ctx context.Context, r *runner.Runner, e *Explanation) error {
	s := t.last
	if s.Key() != t.key || s.Status == session.Completed {
		return nil
	}
	humans, _, err := r.Humans(ctx, s)
	if err != nil {
		return err
	}
	for i, o := range s.State.Transitions {
		e.Options[i].Approvals = s.ApprovalsOf(o, humans, "")
	}
	e.Rulings, e.WithheldRulings = s.RulingsFor("")
	if o := s.OutcomeBy(humans); e.Human != nil && s.Status == session.NeedsHuman {
		e.Human = &Wait{o.Code, o.Reason}
	}
	return nil
}

// vote explains the i-th vote of the round.
func (t *trace) vote(i int, p *specialist.Proposal) Vote {
	v := Vote{
		SpecialistID: p.SpecialistID, ProposalID: t.key.ProposalID(p.Arrival), Transition: p.Transition.Name, Human: p.IsHuman,
		Reasoning: p.Reasoning, CostUSD: p.Usage.CostUSD,
	}
	if _, weights := t.order(); i < len(weights) {
		v.Weight = weights[i]
	}
	if p.Detail != nil {
		v.Model = p.Detail.Model
	}
	if j := t.verdict; j != nil && j.Evidence != nil && i < len(j.Evidence.Versions) {
		v.Version = j.Evidence.Versions[i]
	}
	return v
}

func (t *trace) explainVerdict(j *session.Judged) *Verdict {
	v := &Verdict{
		At: t.judgedAt, ArbiterID: j.ArbiterID, Strategy: j.Strategy, ConsensusReached: j.Decision.Consensus(), Code: j.Decision.Code(),
		Reasoning: j.Decision.Reasoning(), Margin: j.Margin, Threshold: j.Threshold, Scores: []Score{}, Judgement: j.Decision.Judgement, Quorum: j.Decision.Quorum,
	}
	round := t.round()
	for _, s := range round.Tally(nil) {
		v.Scores = append(v.Scores, Score{s.Transition.Name, s.Sum, s.Count})
	}
	if v.ConsensusReached {
		w := round.Votes[j.Decision.Winner]
		v.Transition, v.WinningProposalID, v.SpecialistID = w.Transition.Name, t.key.ProposalID(w.Arrival), w.SpecialistID
	}
	return v
}

// A Word is why a human chose what others chose, too.
type Word struct {
	HumanID   string `json:"humanId"`
	Reasoning string `json:"reasoning"`
}

func (t *trace) explainRuling(x *session.Executed) *Ruling {
	if !x.How.Ruling() {
		return nil
	}
	r := &Ruling{
		At: x.At, HumanID: x.SpecialistID, Kind: x.How.String(), Transition: x.Transition.Name, ToState: x.Transition.Target,
		Reasoning: x.Reasoning, Unasked: t.wait == nil, Authors: x.Authors, Actor: x.Actor, Digest: x.QuestionDigest,
	}
	for _, id := range x.Authors {
		if d := t.ruled[id]; d != nil && d.Reasoning != "" && id != x.SpecialistID {
			r.Words = append(r.Words, Word{id, d.Reasoning})
		}
	}
	if d := t.retracted; d != nil {
		r.Retracted = &Retraction{d.SpecialistID, d.Note}
	}
	if o := t.outcome; o != nil {
		r.Blind, r.Unasked, r.Pick, r.P = o.Blind, o.Unasked, o.Pick, o.P
	}
	return r
}

// standingsOf fills in what the alignments of the votes were made of.
func standingsOf(ctx context.Context, s session.Store, t *trace, e *Explanation) error {
	book, err := s.Book(ctx, e.MachineName)
	if err != nil {
		return err
	}
	scope := ""
	if t.before.State.Roster != nil {
		scope = t.before.State.Name
	}
	for i := range e.Votes {
		v := &e.Votes[i]
		if v.Human {
			continue
		}
		v.Scope = scope
		if made, ok := trust.TallyOf(v.Weight, book.Tally(trust.Key{SpecialistID: v.SpecialistID, State: scope})); ok {
			v.Agreed, v.Compared = &made.Matching, &made.Total
		}
	}
	return nil
}

// collapseThen returns how far the state of a round had come when it was judged,
// or else when it was opened; nil if it declares no collapse.
func collapseThen(ctx context.Context, s session.Store, t *trace) (*session.Collapse, error) {
	if t.before.State.Collapse == nil {
		return nil, nil
	}
	then, c := max(t.before.UpdatedAt, t.judgedAt), session.Collapse{}
	for rec, err := range s.RosterRecords(ctx, t.before.Machine().Name(), 0) {
		if err != nil {
			return nil, err
		}
		events, err := session.DecodeRosterEvents(rec.Events)
		if err != nil {
			return nil, &session.CorruptError{What: "the log of machine " + t.before.Machine().Name(), Problem: err.Error()}
		}
		for _, e := range events {
			if e.State == t.before.State.Name && e.At <= then {
				c = c.With(e)
			}
		}
	}
	return &c, nil
}
