package trial

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/dialai/dialai/internal/trust"
)

// Would a rule of promotion let the right models decide alone? From a record of right
// and wrong answers of many models in many states, each rule is played over seeded
// orders: a model works in a state until the rule promotes it, from then on it decides
// that state alone. Counted are promotions, those of models whose share of right
// answers in the whole record is below the target, and how many questions were decided
// alone, how many of them wrongly.
//
// Two rules are played: the e-value of package trust at 1/0.05, whose chance of ever
// promoting a model that is not better than the target is at most one in twenty (Ville
// 1939), and "at least 5 answers, 80 % right", which is common.

// A Marks is the record of models of which only right and wrong are known.
type Marks struct {
	States    []string
	Models    []string
	Questions []Mark
}

// A Mark says which models were right about one question.
type Mark struct {
	State int    // index into Marks.States
	Right []bool // by model
}

// HasMarks reports whether a directory holds marks rather than answers.
func HasMarks(dir fs.FS) bool {
	_, err := fs.Stat(dir, CorrectFile)
	return err == nil
}

// ReadMarks reads [CorrectFile] without the questions of some states. Errors are
// those of [Read]; a state that does not occur is an error too.
func ReadMarks(dir fs.FS, without []string) (*Marks, error) {
	models, err := columnsOfMarks(dir)
	if err != nil {
		return nil, err
	}
	m := &Marks{Models: models}
	states, seen, left := map[string]int{}, map[string]bool{}, map[string]bool{}
	err = rows(dir, CorrectFile, append([]string{"question", "state"}, models...), func(l row) error {
		if seen[l.fields[0]] {
			return l.bad(0, "question %q is listed twice: leave one of the two rows out", l.fields[0])
		}
		seen[strings.Clone(l.fields[0])] = true
		if slices.Contains(without, l.fields[1]) {
			left[strings.Clone(l.fields[1])] = true
			return nil
		}
		mark := Mark{State: index(states, &m.States, l.fields[1])}
		for i, v := range l.fields[2:] {
			if v != "0" && v != "1" {
				return l.bad(i+2, "%s is %q: write 1 for right, 0 for wrong", models[i], v)
			}
			mark.Right = append(mark.Right, v == "1")
		}
		m.Questions = append(m.Questions, mark)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, s := range without {
		if !left[s] {
			return nil, fmt.Errorf("%w: %s: there is no state %q to leave out", ErrData, CorrectFile, s)
		}
	}
	if len(m.Questions) == 0 {
		return nil, fmt.Errorf("%w: %s:1:1: there is no question after the header: write one a line", ErrData, CorrectFile)
	}
	return m, nil
}

// columnsOfMarks returns the columns that are neither question nor state.
func columnsOfMarks(dir fs.FS) ([]string, error) {
	text, err := fs.ReadFile(dir, CorrectFile)
	if err != nil {
		return nil, err
	}
	line, _, _ := strings.Cut(strings.TrimPrefix(string(text), "\ufeff"), "\n")
	var models []string
	for c := range strings.SplitSeq(strings.TrimSuffix(line, "\r"), ",") {
		if c = strings.TrimSpace(c); c != "question" && c != "state" && c != "" {
			models = append(models, c)
		}
	}
	if len(models) == 0 {
		return nil, fmt.Errorf("%w: %s:1:1: no column of a model: question,state and then one column for each", ErrData, CorrectFile)
	}
	return models, nil
}

// A Collapse is what a rule of promotion does to states that come in question by
// question: from its promotion on, a model decides a state alone.
type Collapse struct {
	Kind      string  `json:"kind"` // "collapse"
	Model     string  `json:"model"`
	Rule      string  `json:"rule"`
	Target    float64 `json:"target"` // share of right answers a state must exceed to deserve it
	States    int     `json:"states"`
	Deserving int     `json:"deserving"`
	Promoted  float64 `json:"promoted"` // states, mean over runs
	Wrongly   float64 `json:"wrongly"`  // of these, below the target
	Traffic   float64 `json:"traffic"`  // share of questions decided alone
	AutoError float64 `json:"autoError"`
	Runs      int     `json:"runs"`
}

// Settings of the replay.
const (
	CollapseTarget = .8
	collapseAlpha  = .05
	collapseOrders = 50
	hastyShare     = .8 // of the rule that is shown beside, because it is common
	hastyFrom      = 5
)

var collapseRules = []string{"eProcess", "share >= .8, n >= 5"}

func promotes(rule int, k, n int64) bool {
	if rule == 0 {
		return trust.EValue(k, n, CollapseTarget) >= 1/collapseAlpha
	}
	return n >= hastyFrom && float64(k) >= hastyShare*float64(n)
}

// Collapses replays both rules for every model, over seeded orders.
func Collapses(m *Marks, seed string, parallel int) []Collapse {
	list := make([]Collapse, len(m.Models)*len(collapseRules))
	each(len(list), parallel, func(i int) {
		list[i] = m.replay(i/len(collapseRules), i%len(collapseRules), seed)
	})
	return list
}

func (m *Marks) replay(model, rule int, seed string) Collapse {
	c := Collapse{Kind: "collapse", Model: m.Models[model], Rule: collapseRules[rule], Target: CollapseTarget, States: len(m.States), Runs: collapseOrders}
	deserves := make([]bool, len(m.States))
	for s, t := range m.totals(model) {
		if deserves[s] = float64(t.Matching) > CollapseTarget*float64(t.Total); deserves[s] {
			c.Deserving++
		}
	}
	alone, wrong := 0, 0
	for order := range collapseOrders {
		tallies, promoted := make([]trust.Tally, len(m.States)), make([]bool, len(m.States))
		for _, i := range trust.NewDraw("trial collapse", seed, itoa(order)).Perm(len(m.Questions)) {
			q := &m.Questions[i]
			if promoted[q.State] {
				alone++
				wrong += one(!q.Right[model])
				continue
			}
			t := &tallies[q.State]
			t.Total, t.Matching = t.Total+1, t.Matching+int64(one(q.Right[model]))
			if promotes(rule, t.Matching, t.Total) {
				promoted[q.State] = true
				c.Promoted++
				c.Wrongly += float64(one(!deserves[q.State]))
			}
		}
	}
	c.Promoted, c.Wrongly = c.Promoted/collapseOrders, c.Wrongly/collapseOrders
	c.Traffic, c.AutoError = ratio(alone, collapseOrders*len(m.Questions)), ratio(wrong, alone)
	return c
}

func (m *Marks) totals(model int) []trust.Tally {
	list := make([]trust.Tally, len(m.States))
	for _, q := range m.Questions {
		list[q.State].Total++
		list[q.State].Matching += int64(one(q.Right[model]))
	}
	return list
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// ErrUnknown is wrapped if options name a strategy that does not exist.
var ErrUnknown = errors.New("unknown strategy")

// MostRuns is how many splits, and how many streams, are measured at most.
const MostRuns = 1000

// Check returns an error unless o can be measured: strategies and numbers of decisions
// that are known, each named once, and no more than [MostRuns] splits and orders.
func (o Options) Check() error {
	for i, s := range o.Strategies {
		if newStrategy(s) == nil {
			return fmt.Errorf("%w %q: there are %s", ErrUnknown, s, strings.Join(slices.Concat(Strategies(), Others()), ", "))
		}
		if slices.Contains(o.Strategies[:i], s) {
			return fmt.Errorf("strategy %q is named twice: name it once", s)
		}
	}
	for i, n := range o.Gold {
		if slices.Contains(o.Gold[:i], n) {
			return fmt.Errorf("%d human decisions are named twice: name them once", n)
		}
	}
	switch {
	case len(o.Strategies) == 0:
		return errors.New("no strategy to measure")
	case len(o.Gold) == 0 || slices.Min(o.Gold) < 0:
		return errors.New("numbers of human decisions are 0 or more")
	case o.Splits < 1 || o.Splits > MostRuns:
		return fmt.Errorf("it takes 1 to %d splits, not %d", MostRuns, o.Splits)
	case o.Orders < 0 || o.Orders > MostRuns:
		return fmt.Errorf("orders of streams are 0 to %d, not %d", MostRuns, o.Orders)
	case o.Orders > 0 && !(o.MaxError >= 1e-9 && o.MaxError <= 1-1e-9): // counted in billionths
		return fmt.Errorf("the promised error %v is not between 0 and 1", o.MaxError)
	}
	return nil
}
