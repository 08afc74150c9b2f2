package sim_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/internal/truth"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// Guards that ask before a transition is executed: in some runs a truth gate asks a
// model, and a classifier a service. Both know an ask by its id and count what they
// take for it, as everybody else who is asked.

// The ids under which the log has the guards' own asks.
const (
	truthID      = "__truth"
	classifierID = "__classifier"
)

// inquiries says which guards of a run ask, and how they are paid.
type inquiries struct {
	truth, classifier bool
	free              bool // they are not paid from the session's budget
	telling           int  // how the model of the truth gate says what it took

	estimator string
	adherence float64  // the least that passes
	when      []string // the transitions that need the gate; nil: all
}

// Ways in which a model says what it took.
const (
	inAnswers = iota // with each completion
	toCaller         // to whoever is said to ask, as package llm does
	inTokens         // it only counts tokens, and nobody knows its price
	tellings
)

// drawInquiries draws which guards ask, apart from what else a seed draws, so that
// other machines stay as they are. A gate asks eleven times: what is under way rather
// goes on there than something new begins.
func (w *world) drawInquiries() {
	w.inquiries = inquiries{truth: w.draw(4, "truth") == 0, classifier: w.draw(4, "classifier") == 0, free: w.draw(5, "free") == 0, telling: w.draw(tellings, "telling"),
		estimator: []string{"consistency", "token_logprob_entropy"}[w.draw(2, "estimator")], adherence: []float64{0, 0, 0.5}[w.draw(3, "adherence")]}
	if w.draw(2, "when") == 0 {
		w.inquiries.when = []string{"on", "finish"}
	}
	if w.haste = 1; w.inquiries.truth {
		w.steps, w.haste = 2*w.steps, 4
	}
}

// inquiries returns the members of a section guards that ask, and those of its budget
// that say how that is paid.
func (g *generator) inquiries() (members string, budget []string) {
	w, q := g.w, g.w.inquiries
	if !q.truth && !q.classifier {
		return "", nil
	}
	most := exact.Money(0)
	if q.truth {
		most = g.asked(truthID, true)
		members = q.section()
	}
	if w.mutation.is("gate is not asked") {
		members = ""
	}
	if q.classifier {
		most = max(most, g.asked(classifierID, false))
		members += fmt.Sprintf(`"classifier":{"url":"https://hooks.example/class","token_name":"A_WEBHOOK_TOKEN","on_error":%q,"cache":%d},`,
			[]string{"open", "closed"}[w.draw(2, "on error")], w.draw(2, "cache"))
	}
	budget = []string{fmt.Sprintf(`"default_estimate_usd":%s`, most)}
	if w.draw(5, "share") > 0 {
		budget = append(budget, `"probe_share_max":1`)
	}
	if q.free {
		budget = append(budget, `"debit_probes":false`)
	}
	return members, budget
}

// section returns the section truth.
func (q *inquiries) section() string {
	when := ""
	if q.when != nil {
		when = fmt.Sprintf(`,"when":["%s"]`, strings.Join(q.when, `","`))
	}
	return fmt.Sprintf(`"truth":{"model":"sim/truth","estimator":%q,"thresholds":{"tau_u":%v,"tau_s":0,"tau_a":%v}%s},`, q.estimator, mostUnsure, q.adherence, when)
}

// mostUnsure is how uncertain an answer may be that passes the gate.
const mostUnsure = 0.6

// asked makes whom guards ask, and returns what a budget should think it takes.
func (g *generator) asked(id string, model bool) exact.Money {
	s := &service{w: g.w, id: id, model: model, price: exact.Money(1+g.w.draw(5, "price", id)) * exact.Dollar / 100, accounts: map[string]*account{}}
	g.w.services[id] = s
	return s.price * exact.Money(1+g.w.draw(2, "estimate", id))
}

// Completer implements [strategies.Resolver].
func (o outside) Completer(string) (truth.Completer, error) {
	return oracle{caller{o.p, o.p.w.services[truthID]}}, nil
}

// An oracle is the model of truth gates.
type oracle struct{ caller }

// Complete implements [truth.Completer].
func (o oracle) Complete(ctx context.Context, r truth.CompletionRequest) (truth.Completion, error) {
	w, by := o.p.w, specialist.CallerOf(ctx)
	u, err := o.inquire(ctx, r)
	done := truth.Completion{Text: fmt.Sprintf("%s of %x", r.Purpose, w.hash(r.Prompt))}
	if r.Purpose == truth.PurposeSample && w.draw(4, "unsure", by.SessionID, by.Round, by.Attempt) == 0 {
		done.Text = fmt.Sprintf("%d different words", r.Seed) // from which the gate sees that it is
	}
	if u.Has(specialist.CostGiven) {
		done.Tokens = truth.CountedTokens(10, 5)
		if w.inquiries.telling == inAnswers {
			done.CostUSD = &u.CostUSD
		}
	}
	return done, err
}

// LogProbs implements [truth.LogProber]. It has no place for what that took.
func (o oracle) LogProbs(ctx context.Context, prompt, answer string) ([]float64, error) {
	u, err := o.inquire(ctx, "log probabilities"+prompt+answer)
	if err != nil && u.Has(specialist.CostGiven) {
		err = fmt.Errorf("%w: %w", err, specialist.ErrUncounted)
	}
	return []float64{-0.1}, err
}

// inquire puts a question of the truth gate, and tells who asks what it took.
func (o oracle) inquire(ctx context.Context, question any) (specialist.Usage, error) {
	u, err := o.guarded(ctx, question)
	if o.p.w.inquiries.telling != toCaller {
		return u, err
	}
	told := u
	if u == (specialist.Usage{}) { // as a client does whose answer is lost
		told = specialist.Usage{NumInputTokens: 10, NumOutputTokens: 100, Estimated: true, Given: specialist.InputGiven | specialist.OutputGiven}
	}
	specialist.CallerOf(ctx).Spent(told, "sim/truth", "")
	return u, err
}

// guarded makes the request for a question of the guards' own, which the log must have.
func (c caller) guarded(ctx context.Context, question any) (specialist.Usage, error) {
	w, by := c.p.w, specialist.CallerOf(ctx)
	key := specialist.RoundKey{Round: by.Round, Attempt: by.Attempt}
	for _, s := range w.sessions {
		if s.id.String() == by.SessionID {
			key.Session = s.id
		}
	}
	w.mu.Lock()
	w.questions[by.AskID] = fmt.Sprint(question)
	w.mu.Unlock()
	return c.call(ctx, key, by.AskID, nil)
}

// Classifier implements [strategies.Resolver].
func (o outside) Classifier(*guard.ClassifierConfig) (guard.Classifier, error) {
	return censor{caller{o.p, o.p.w.services[classifierID]}}, nil
}

// A censor is a service that classifies.
type censor struct{ caller }

// Classify implements [guard.Classifier].
func (c censor) Classify(ctx context.Context, q guard.Classification) (guard.ClassifierAnswer, error) {
	verdict := []verdict.Status{verdict.OK, verdict.OK, verdict.OK, verdict.OK, verdict.Warn, verdict.Retry, verdict.Escalate}[c.p.w.draw(7, "verdict", q.Text)]
	u, err := c.guarded(ctx, q.Stage+q.Meta.State+q.Text)
	return guard.ClassifierAnswer{Verdict: verdict, Score: 0.5, Usage: u}, err
}

// A hearing is what the guards of a round were told.
type hearing struct {
	answered map[string]string // questions: the asks that were answered
	passed   map[string]bool   // what the truth gate measures, and whether that has passed
}

func (s *observed) hearing(key specialist.RoundKey) *hearing {
	if s.hearings[key] == nil {
		s.hearings[key] = &hearing{map[string]string{}, map[string]bool{}}
	}
	return s.hearings[key]
}

// passes reports whether a measurement lets a decision pass.
func (q *inquiries) passes(stage string, value float64) bool {
	switch stage {
	case truth.StageUncertainty:
		return value <= mostUnsure
	case truth.StageAdherence:
		return value >= q.adherence
	}
	return true
}

// gates looks at what is executed without a human's word.
func (c *check) gates() error { return c.unheard }

// gated compares what the engine executes with what the truth gate was told: the answer
// to each of its questions.
func (c *check) gated(key specialist.RoundKey, d *session.Executed) {
	q := c.w.inquiries
	if !q.truth || d.How != session.ByConsensus || q.when != nil && !slices.Contains(q.when, d.Transition.Name) {
		return
	}
	c.w.count("passed by gates")
	need, h := 3+4+4, c.s.hearing(key)
	if q.estimator == "token_logprob_entropy" {
		need = 1 + 4 + 4
	}
	n := 0
	for question := range h.answered {
		if strings.HasPrefix(question, truthID) {
			n++
		}
	}
	if n < need || !h.passed[truth.StageUncertainty] || !h.passed[truth.StageSensitivity] || !h.passed[truth.StageAdherence] {
		c.unheard = fmt.Errorf("%s is executed in round %d.%d after %d of %d answers, and measurements of which %v have passed", d.Transition.Name, key.Round, key.Attempt, n, need, h.passed)
	}
}

// probed enters what came of a question of the guards' own. One that is answered is
// not asked again in its round.
func (s *observed) probed(key specialist.RoundKey, d *session.Probed) {
	h := s.hearing(key)
	if d.Ask == 0 {
		s.w.count("measurements")
		h.passed[d.Stage] = h.passed[d.Stage] || s.w.inquiries.passes(d.Stage, *d.Value)
		return
	}
	id := key.AskID(d.Ask)
	s.w.count("questions of guards")
	if d.Code == session.CodeLost {
		s.w.count("questions of guards that were lost")
	}
	if d.Code == "" {
		s.w.mu.Lock()
		question := d.Guard + s.w.questions[id]
		s.w.mu.Unlock()
		if first := h.answered[question]; first != "" && s.twice == nil {
			s.twice = fmt.Errorf("%s was answered in %s, and is asked again in %s", d.Guard, s.w.short(key, first), s.w.short(key, id))
		}
		h.answered[question] = id
	}
	s.settle(key, d.Ask, d.Usage, d.Code == "")
}

// probes compares what the guards have spent with what those count whom they asked.
func (c *check) probes() error {
	low, high := c.s.probeBase, c.s.probeBase
	for _, a := range c.s.asks {
		if a.guards {
			least, most := a.charge()
			low, high = low+least, high+most
		}
	}
	book := c.after.GuardState().Probes
	if book.Money < low || book.Money > high || c.w.inquiries.free && book != (spend.Book{}) {
		return fmt.Errorf("the guards have spent %+v, their asks cost %s (at most %s):%s", book, low, high, c.s.accounts())
	}
	return nil
}

var _ truth.LogProber = oracle{}
