package explain

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// What the log says of one round. The records of the session are folded up to the round,
// and its events collected: who proposed, who failed and why, the verdict on the votes that
// counted at last and the earlier ones on fewer, what guards said, who ruled, what was
// executed, and what reviews made of it later. Everything else of an explanation follows
// from that, and from what the ledger knew then.

// A trace is what the log says of one attempt at a round.
type trace struct {
	key       specialist.RoundKey
	before    *session.Session // when the round was opened
	last      *session.Session // as it is now
	proposals map[int32]*specialist.Proposal
	live      []*specialist.Proposal // by arrival
	failures  []Failure
	verdict   *session.Judged // on the live proposals; nil if there is none
	judgedAt  specialist.Time // when
	earlier   []EarlierVerdict
	gates     []Gate
	wait      *Wait
	executed  *session.Executed
	ruled     map[string]*session.Ruled // the newest word of each human that waited for others
	retracted *session.Retracted        // nil unless the ruling was taken back
	outcome   *trust.Outcome            // what a ruling taught, or will once another human agrees
	reviews   []Review
	withheld  bool // from those who are to decide or to review it
}

// order returns the arrivals of the votes in the round's order, and their weights:
// as the verdict found them, or else as a human did.
func (t *trace) order() ([]int32, []exact.Billionths) {
	if j := t.verdict; j != nil {
		return j.Order, j.Weights
	}
	if x := t.executed; x != nil && x.Standing != nil {
		return x.Standing.Order, x.Standing.Weights
	}
	order := make([]int32, len(t.live))
	for i, p := range t.live {
		order[i] = p.Arrival
	}
	return order, make([]exact.Billionths, len(t.live))
}

// judged reports whether there ever was a verdict.
func (t *trace) judged() bool { return t.verdict != nil || len(t.earlier) > 0 }

// overtake makes the verdict, if there is one, an earlier one.
func (t *trace) overtake() {
	if j := t.verdict; j != nil {
		t.earlier, t.verdict = append(t.earlier, EarlierVerdict{j.Decision.Code(), j.Decision.Reasoning()}), nil
	}
}

// voters returns the proposals in that order.
func (t *trace) voters() (list []*specialist.Proposal) {
	order, _ := t.order()
	for _, arrival := range order {
		if p := t.proposals[arrival]; p != nil {
			list = append(list, p)
		}
	}
	return list
}

// round returns what was put to the arbiter, but for the evidence of bayes.
func (t *trace) round() *arbiter.Round {
	s := t.before.Offered()
	round := &arbiter.Round{Key: t.key, Machine: t.before.Machine(), State: s, RequireTrust: s.RequireTrust, Meta: t.before.Options().Meta}
	if j := t.verdict; j != nil {
		round.Threshold = j.Threshold
	} else if x := t.executed; x != nil && x.Standing != nil {
		round.Threshold = x.Standing.Threshold
	}
	_, weights := t.order()
	for i, p := range t.voters() {
		v := arbiter.Vote{Proposal: p, Weight: weights[i], Rank: int32(i)}
		if j := t.verdict; j != nil && j.Evidence != nil {
			v.Version = j.Evidence.Versions[i]
		}
		round.Votes = append(round.Votes, v)
	}
	round.Unbound = t.verdict != nil && !t.verdict.Decision.Bound && round.LacksPayload()
	return round
}

// A roundChoice says which round is asked for. The zero roundChoice is the last
// that was judged.
type roundChoice struct {
	id             string
	number         int32
	attempt        int32
	exactlyAttempt bool
}

// parseRound reads how a person names a round.
func parseRound(text string) (roundChoice, error) {
	if text == "" {
		return roundChoice{}, nil
	}
	if _, err := session.ParseID(text); err == nil {
		return roundChoice{id: strings.ToLower(text)}, nil
	}
	number, attempt, dotted := strings.Cut(text, ".")
	n, err := strconv.ParseInt(number, 10, 32)
	c := roundChoice{number: int32(n), exactlyAttempt: dotted}
	if dotted && err == nil {
		n, err = strconv.ParseInt(attempt, 10, 32)
		c.attempt = int32(n)
	}
	if err != nil || c.number < 1 || c.attempt < 0 {
		return c, noRound(runner.ErrIllegal, "bad_round", fmt.Sprintf("round %q is no round", text), "give its number, a number and an attempt such as 3.1, or its id")
	}
	return c, nil
}

func noRound(kind error, code, message, hint string) *runner.Error {
	return &runner.Error{Code: code, Message: message, Hint: hint, Kind: kind}
}

// better reports whether t is to be shown rather than what was found before.
func (c roundChoice) better(t, found *trace) bool {
	switch {
	case c.id != "":
		return t.key.ID() == c.id
	case c.number == 0:
		return t.judged() || t.executed != nil && (found == nil || !found.judged())
	}
	return t.key.Round == c.number && (!c.exactlyAttempt || t.key.Attempt == c.attempt)
}

// traceRound reads one round of a session from its log.
func traceRound(ctx context.Context, r *runner.Runner, id specialist.SessionID, text string) (*trace, error) {
	choice, err := parseRound(text)
	if err != nil {
		return nil, err
	}
	tracer := &tracer{choice: choice, reviews: map[specialist.RoundKey][]Review{}}
	f := &session.Folder{}
	f.Applied = func(_ int64, ev session.Event, _, _ spend.Book) { tracer.follow(f, ev) }
	for _, err := range r.Fold(ctx, id, f) {
		if err != nil {
			return nil, err
		}
	}
	tracer.close()
	last := f.Session()
	if tracer.found == nil {
		return nil, tracer.missing(last, text)
	}
	found := tracer.found
	found.last = last
	found.reviews = tracer.reviews[found.key]
	if found.executed != nil {
		found.retracted = last.Retracted(found.key.Round)
	}
	if last.Key() == found.key && last.ConcealsRulings() { // what humans agreed about, and a guard refused
		found.gates = slices.DeleteFunc(found.gates, func(g Gate) bool { return g.Human })
	}
	withheld, err := r.WithheldRounds(ctx, last, "")
	found.withheld = withheld[found.key.Round] != ""
	return found, err
}

// A tracer reads a log and keeps the round that is asked for.
type tracer struct {
	choice  roundChoice
	now     *trace
	found   *trace
	rounds  int32
	reviews map[specialist.RoundKey][]Review
}

func (t *tracer) close() {
	if t.now != nil && t.choice.better(t.now, t.found) {
		t.found = t.now
	}
	t.now = nil
}

// missing says that there is no such round, and for a fork where its earlier ones are.
func (t *tracer) missing(s *session.Session, text string) error {
	hint := fmt.Sprintf("it has rounds 1 to %d", t.rounds)
	if t.rounds == 1 {
		hint = "it has round 1 alone"
	}
	if from := s.Options().ForkedFrom; from != nil {
		hint = fmt.Sprintf("it goes on from round %d of session %s, which has the rounds up to there: dialai explain %s ROUND", from.Round, from.SessionID, from.SessionID)
	}
	if text == "" {
		return noRound(session.ErrNotFound, "no_verdict", fmt.Sprintf("no round of session %s was judged or decided yet", s.ID), "dialai show says where it stands")
	}
	return noRound(session.ErrNotFound, "round_not_found", fmt.Sprintf("session %s has no round %s", s.ID, text), hint)
}

func (t *tracer) follow(f *session.Folder, ev session.Event) {
	if _, opened := ev.Data.(*session.RoundOpened); opened {
		t.close()
		t.now = &trace{key: f.Current.Key(), before: f.Session(), proposals: map[int32]*specialist.Proposal{}}
		t.rounds = f.Current.Round
		return
	}
	if d, ok := ev.Data.(*session.Created); ok && d.Options.ForkedFrom != nil { // it goes on with a round
		t.now = &trace{key: f.Current.Key(), before: f.Session(), proposals: map[int32]*specialist.Proposal{}, live: slices.Clone(f.Round.Proposals), verdict: f.Round.Verdict, judgedAt: ev.At}
		for _, p := range f.Round.Proposals {
			t.now.proposals[p.Arrival] = p
		}
		t.rounds = f.Current.Round
		return
	}
	if d, ok := ev.Data.(*session.Reviewed); ok {
		key := specialist.RoundKey{Session: f.Current.ID, Round: d.Round, Attempt: d.Attempt}
		t.reviews[key] = append(t.reviews[key], Review{ev.At, string(d.Review), d.SpecialistID, d.TransitionName, d.Reasoning})
		return
	}
	if t.now != nil {
		t.now.record(ev, f.Round.Proposals)
	}
}

// record adds an event of the round.
func (t *trace) record(ev session.Event, live []*specialist.Proposal) {
	switch d := ev.Data.(type) {
	case *session.Proposed:
		t.overtake()
		t.proposals[d.Arrival] = &d.Proposal
		t.live = append(t.live[:0:0], live...)
	case *session.AskFailed:
		t.failures = append(t.failures, Failure{d.SpecialistID, string(d.Role), d.Code, d.Message})
	case *session.Judged:
		t.overtake()
		t.verdict, t.judgedAt = d, ev.At
	case *session.Gated:
		t.gates = append(t.gates, explainGate(d))
	case *session.AwaitsHuman:
		t.wait = &Wait{d.Code, d.Reason}
	case *session.Ruled:
		if t.ruled == nil {
			t.ruled = map[string]*session.Ruled{}
		}
		t.ruled[d.SpecialistID] = d
	case *session.Executed:
		t.executed = d
	case *session.Learned:
		switch {
		case d.Held != nil:
			t.outcome = d.Held
		case d.Unruled == nil:
			t.outcome = d.Outcome
		}
	}
}

func explainGate(d *session.Gated) Gate {
	g := Gate{Transition: d.Transition.Name, Human: d.IsHuman, Status: d.Verdict.Status.String()}
	for _, r := range d.Verdict.Reasons {
		g.Reasons = append(g.Reasons, Reason{r.Class.String(), r.Code, r.Message, r.Limit, r.Seen})
	}
	return g
}
