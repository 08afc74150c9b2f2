package trust

import (
	"fmt"
	"slices"

	"github.com/dialai/dialai/exact"
)

// What to know of a panel before relying on it. Specialists that err together are worth
// fewer than they are: the ledger lets all of them propose the same option, and says
// how many independent voters the votes are worth, given how often their authors have
// erred alike (ballot.effective). From the same counts come the findings of Lint: too
// few independent voters, one model for all, a fixed order of options, somebody who is
// right less often than chance, somebody whose answer tells next to nothing.
//
// How much an answer tells is the expected information, in nats, that the search for
// the next wave computes (wave_plan.go) before anybody has voted. Findings that blame
// somebody wait for 20 comparisons, pruning for 50.
//
// The other findings are of the promise: none at all, one below the rate at which
// humans err, one that takes more than 1,000 human decisions.

// A Finding is something to know about a roster or a promise before relying on it.
type Finding struct {
	Code    string `json:"code"` // stable
	Message string `json:"message"`
	Subject string `json:"subject,omitempty"` // the specialist meant, if one is
}

// The codes of findings.
const (
	FewVoters       = "DIV001"
	OneModel        = "DIV002"
	FixedOrder      = "DIV003"
	BelowChance     = "DIV004"
	TellsNothing    = "DIV005"
	NoPromise       = "RISK001"
	BelowHumanFloor = "RISK002"
	TooManyNeeded   = "RISK003"
	NothingToLearn  = "LEARN001" // from rounds: nothing is decided by bayes
	TeachesItself   = "LEARN002"
	LearnsLate      = "LEARN003"
)

// Bars of the findings.
const (
	enoughToBlame = 20   // comparisons
	enoughToPrune = 50   // outcomes
	nothingTold   = .01  // nat; who costs money and tells less can be pruned
	tooMany       = 1000 // human decisions
)

// A Panel is a roster whose diversity is judged: those who can be asked in a state,
// none of them human.
type Panel struct {
	Machine, State string
	Options        []string
	Roster         []Open
	FixedOrder     bool // everyone sees the options in the order of the definition
	Policy         Policy
	Bayes          bool // rounds are decided by probability
}

// Effective returns how many independent voters a panel is worth.
func (l *Ledger) Effective(p Panel) exact.Billionths {
	_, b := l.panel(&p)
	return b.effective()
}

// panel returns a scored ballot on which everyone proposes the first option, and
// the search on an empty one for what each would tell.
func (l *Ledger) panel(p *Panel) (*search, *ballot) {
	q := Question{Machine: p.Machine, State: p.State, Options: p.Options, Policy: p.Policy, Partial: true}
	s := l.seek(&q, p.Roster, Asking{})
	b := s.b.fork(len(s.open))
	for _, v := range s.open {
		b.join(v)
	}
	return s, b
}

// Lint returns what is wrong with a panel and its promise, as far as the ledger
// shows, in the order of the codes.
func (l *Ledger) Lint(p Panel) []Finding {
	var list []Finding
	add := func(code, subject, format string, args ...any) {
		list = append(list, Finding{code, fmt.Sprintf(format, args...), subject})
	}
	if len(p.Roster) > 0 && len(p.Options) > 1 {
		l.lintVoters(&p, add)
	}
	l.lintPromise(&p, add)
	return list
}

func (l *Ledger) lintVoters(p *Panel, add func(code, subject, format string, args ...any)) {
	s, b := l.panel(p)
	n := len(p.Roster)
	if eff := b.effective(); n > 1 && eff.Float() < float64(n)/2 {
		add(FewVoters, "", "%d specialists, effective %.1f: they err together; add another model or another way of asking", n, eff.Float())
	}
	if n > 1 && !slices.ContainsFunc(p.Roster, func(o Open) bool { return !sameModel(o.Model, p.Roster[0].Model) }) {
		add(OneModel, "", "all %d specialists are of the model %q: add another", n, p.Roster[0].Model)
	}
	if p.FixedOrder && n > 1 {
		add(FixedOrder, "", "everyone sees the options in the same order: leave optionOrder at random")
	}
	for i := range s.open {
		v := &s.open[i]
		if c := v.levels[0].plus(v.levels[1]); c.n >= enoughToBlame*1000 && v.p4 < 1/float64(b.k) {
			add(BelowChance, v.id, "%q agrees with humans in %d of %d, less often than by chance", v.id, c.k/1000, c.n/1000)
		}
	}
	for _, i := range s.uninformative() {
		add(TellsNothing, s.open[i].id, "the answers of %q tell next to nothing: it could be left out", s.open[i].id)
	}
}

// Uninformative returns the specialists of a panel, by index, who cost money and
// tell next to nothing, as far as 50 comparisons or more show: those that pruning
// leaves out.
func (l *Ledger) Uninformative(p Panel) []int {
	if len(p.Options) < 2 {
		return nil
	}
	s, _ := l.panel(&p)
	return s.uninformative()
}

func (s *search) uninformative() []int {
	s.inform("")
	var list []int
	for i := range s.open {
		v := &s.open[i]
		if v.levels[0].plus(v.levels[1]).n >= enoughToPrune*1000 && v.cost > 0 && s.info[i] < nothingTold {
			list = append(list, i)
		}
	}
	return list
}

func (l *Ledger) lintPromise(p *Panel, add func(code, subject, format string, args ...any)) {
	promise := p.Policy.Promise
	switch {
	case !p.Bayes:
		return
	case promise == nil && p.Policy.Threshold != nil:
		add(NoPromise, "", "a threshold alone promises nothing: declare risk {maxError, confidence}")
		return
	case promise == nil:
		return
	}
	if floor, pairs := l.HumanError(p.Machine); pairs > 0 && promise.MaxError < floor {
		add(BelowHumanFloor, "", "maxError %s is below %s, the rate at which humans err here", promise.MaxError, floor)
	}
	if n := Needed(*promise); n > tooMany {
		add(TooManyNeeded, "", "maxError %s with confidence %s takes %d human decisions or more, even without an error", promise.MaxError, promise.Confidence, n)
	}
}

// fewWords is the number of outcomes from which rounds without a human's word hardly tell more.
const fewWords = 100

// Learning returns what learning from rounds without a human's word risks in a machine whose
// voters are these panels, where that is its policy, or when it would help, as long as only few
// outcomes are known of it; false if there is nothing to say. Where the voters of a panel err
// together it is no good advice to learn from their agreement, and it is none.
func (l *Ledger) Learning(machine string, panels []Panel) (f Finding, together, any bool) {
	if len(panels) == 0 {
		return f, false, false
	}
	for _, p := range panels {
		together = together || slices.ContainsFunc(l.Lint(p), func(x Finding) bool { return x.Code == FewVoters || x.Code == OneModel })
	}
	switch n := l.N(machine); {
	case panels[0].Policy.Rounds:
		return Finding{Code: TeachesItself, Message: "bayes learns from rounds that no human decided, too, and a panel that errs together or colludes could teach itself: " +
			"it is weighed by what humans say, and promises, trust and promotion go by that alone, so keep audits on; " +
			"it helps where voters err independently, and many rounds have no human's word"}, together, true
	case n >= EligibleFrom && n < fewWords && !together:
		return Finding{Code: LearnsLate, Message: fmt.Sprintf("bayes learns from humans alone, and knows %d of their decisions: "+
			"where voters err independently and many rounds have no human's word, \"learnFrom\": \"humansAndRounds\" tells sooner who is good; "+
			"where they err together or collude, they could teach themselves", n)}, false, true
	}
	return Finding{}, together, false
}
