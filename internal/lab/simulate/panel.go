package simulate

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
)

// A panel file: who votes, how well, how alike, and who knows the truth. A voter is
// right with probability p, in single states with another one, or proposes by a
// confusion matrix; voters of one group use the draw of their group with probability
// copy, which is what makes them err together; some fail to answer, and adversaries are
// wrong where they would be right. A drift changes a voter from a round on.
//
// Every member is checked, and every problem is reported with its JSON pointer, so a
// file can be put right in one go. With problems the panel is of no use.

// A Panel says who votes, how well, and who knows the truth.
type Panel struct {
	States  []State
	Voters  []Voter // in roster order
	Human   Human
	Drift   []Drift                    // by round
	Arbiter *machine.Specialist        // nil: the machine's own, or bayes
	Machine map[string]json.RawMessage // further members of the machine that is made of the panel
}

// A State is a state of the machine with the classes that the truth is drawn from.
type State struct {
	Name    string
	Classes []string
	Priors  []float64 // of the classes; they add up to 1

	places []int // of the classes among those of the panel's state; nil: they are all of them
}

// A Voter is one specialist.
type Voter struct {
	ID        string
	P         float64            // probability of proposing the truth, where ByState says nothing
	ByState   map[string]float64 // the same in single states
	Confusion map[string][][]float64
	Cost      exact.Money // of an answer
	Latency   int64       // in ms
	Group     string      // of voters that copy from each other; "" for none
	Copy      float64     // probability of using the group's draw instead of its own
	Failure   float64     // probability of not answering
	Adversary bool        // wrong where it would be right, and of one mind with other adversaries
}

// A Human is who decides when nobody else may.
type Human struct {
	Error   float64 // probability of deciding against the truth
	Minutes float64 // of one decision
}

// A Drift changes a voter from a round on.
type Drift struct {
	Round int // from 1
	Voter string
	P     float64
}

// The defaults of a panel.
const (
	defaultP       = 0.8
	defaultMinutes = 2
	maxVoters      = 256
	maxStates      = 1000
)

// ParsePanel reads a panel from JSON. Its problems name the member by its JSON
// pointer; with any the Panel is not to be used. With a machine, which may be nil, what the
// panel does not say of states is what the machine says.
func ParsePanel(section []byte, m *machine.Machine) (Panel, []machine.Problem) {
	d := &decoder{}
	p := Panel{Human: Human{Minutes: defaultMinutes}}
	top := d.object(section, "", "states", "specialists", "human", "drift", "arbiter", "machine", "classes")
	shared := d.names(top["classes"], "/classes")
	d.list(top["states"], "/states", maxStates, func(raw json.RawMessage, path string) {
		p.States = append(p.States, d.state(raw, path, shared))
	})
	if m != nil {
		p.complete(m)
	} else if top["states"] == nil {
		if shared == nil {
			shared = []string{"yes", "no"}
		}
		p.States = []State{{Name: "open", Classes: shared, Priors: even(len(shared))}}
	}
	d.list(top["specialists"], "/specialists", maxVoters, func(raw json.RawMessage, path string) {
		p.Voters = append(p.Voters, d.voter(raw, path, &p))
	})
	if len(p.Voters) == 0 && len(d.problems) == 0 { // else they may be what is wrong
		d.bad("/specialists", "a panel needs specialists", `{"specialists": [{"id": "model-a", "p": 0.9}]}`)
	}
	p.Human = d.human(top["human"])
	d.list(top["drift"], "/drift", 10_000, func(raw json.RawMessage, path string) { p.Drift = append(p.Drift, d.drift(raw, path, &p)) })
	slices.SortStableFunc(p.Drift, func(a, b Drift) int { return a.Round - b.Round })
	p.Arbiter = d.arbiter(top["arbiter"])
	if raw := top["machine"]; raw != nil {
		p.Machine = d.object(raw, "/machine", "consensusThreshold", "requireTrust", "risk", "solicit", "collapse", "audit", "secondHuman", "optionOrder", "stacking", "learnFrom")
	}
	d.unique(&p)
	return p, d.problems
}

func even(n int) []float64 {
	priors := make([]float64, n)
	for i := range priors {
		priors[i] = 1 / float64(n)
	}
	return priors
}

// unique refuses names that stand for two things.
func (d *decoder) unique(p *Panel) {
	for _, list := range []struct {
		path, what string
		ids        []string
	}{{"/states/%d/name", "state", p.names()}, {"/specialists/%d/id", "specialist", p.ids()}} {
		for i, id := range list.ids {
			if slices.Contains(list.ids[:i], id) {
				d.bad(fmt.Sprintf(list.path, i), fmt.Sprintf("%s %q is listed twice", list.what, id), "")
			}
		}
	}
}

func (d *decoder) state(raw json.RawMessage, path string, shared []string) State {
	m := d.object(raw, path, "name", "classes", "priors")
	s := State{Name: d.name(m["name"], path+"/name"), Classes: shared}
	if own := d.names(m["classes"], path+"/classes"); own != nil {
		s.Classes = own
	}
	if len(s.Classes) == 0 {
		d.bad(path+"/classes", "the state has no classes", `list what may be decided there: "classes": ["yes", "no"]`)
	}
	s.Priors = even(len(s.Classes))
	if m["priors"] != nil {
		s.Priors = d.row(m["priors"], path+"/priors", len(s.Classes))
	}
	return s
}

func (d *decoder) voter(raw json.RawMessage, path string, p *Panel) Voter {
	m := d.object(raw, path, "id", "p", "confusion", "costUSD", "latencyMsec", "group", "copy", "failure", "adversary")
	v := Voter{ID: d.name(m["id"], path+"/id"), P: defaultP}
	if first := firstByte(m["p"]); first == '{' {
		v.ByState = map[string]float64{}
		for name, value := range d.object(m["p"], path+"/p", p.names()...) {
			v.ByState[name] = d.number(value, path+"/p/"+machine.EscapePointer(name), 0, 0, 1)
		}
	} else {
		v.P = d.number(m["p"], path+"/p", defaultP, 0, 1)
	}
	if m["confusion"] != nil {
		v.Confusion = d.confusion(m["confusion"], path+"/confusion", p)
	}
	v.Cost = d.money(m["costUSD"], path+"/costUSD")
	v.Latency = int64(d.number(m["latencyMsec"], path+"/latencyMsec", 0, 0, 1e9))
	if m["group"] != nil {
		v.Group = d.name(m["group"], path+"/group")
	}
	v.Copy = d.number(m["copy"], path+"/copy", 0, 0, 1)
	v.Failure = d.number(m["failure"], path+"/failure", 0, 0, 1)
	v.Adversary = d.flag(m["adversary"], path+"/adversary")
	if v.Copy > 0 && v.Group == "" {
		d.bad(path+"/copy", "copy needs a group to copy from", `"group": "model-x", the same for all who copy from each other`)
	}
	return v
}

// names returns the names of the states.
func (p *Panel) names() []string {
	names := make([]string, len(p.States))
	for i := range p.States {
		names[i] = p.States[i].Name
	}
	return names
}

// ids returns those of the voters.
func (p *Panel) ids() (ids []string) {
	for i := range p.Voters {
		ids = append(ids, p.Voters[i].ID)
	}
	return ids
}

// state returns the state of that name, or nil.
func (p *Panel) state(name string) *State {
	for i := range p.States {
		if p.States[i].Name == name {
			return &p.States[i]
		}
	}
	return nil
}

// open returns the state with those of its classes that may be chosen in a round.
func (s *State) open(choices *machine.State) *State {
	if !slices.ContainsFunc(s.Classes, func(c string) bool { return choices.Transition(c) == nil }) {
		return s
	}
	next := &State{Name: s.Name, places: []int{}}
	for i, c := range s.Classes {
		if choices.Transition(c) != nil {
			next.Classes, next.places = append(next.Classes, c), append(next.places, i)
		}
	}
	next.Priors = next.among(s.Priors)
	return next
}

// among returns probabilities of the panel's classes as those of the state's classes: what
// the others would have is theirs, in proportion.
func (s *State) among(row []float64) []float64 {
	if s.places == nil {
		return row
	}
	sum, next := 0., make([]float64, len(s.places))
	for i, place := range s.places {
		next[i] = row[place]
		sum += row[place]
	}
	if sum == 0 {
		return even(len(next))
	}
	for i := range next {
		next[i] /= sum
	}
	return next
}

// row returns how a voter with a confusion matrix proposes where a class is the truth.
func (s *State) row(rows [][]float64, truth int) []float64 {
	if s.places != nil {
		truth = s.places[truth]
	}
	return s.among(rows[truth])
}

// confusion reads a matrix for each state: a row for each truth, a column for each
// proposal. A lone matrix stands for all states.
func (d *decoder) confusion(raw json.RawMessage, path string, p *Panel) map[string][][]float64 {
	byState := map[string][][]float64{}
	if firstByte(raw) == '[' {
		for _, s := range p.States {
			byState[s.Name] = d.matrix(raw, path, len(s.Classes))
		}
		return byState
	}
	for name, value := range d.object(raw, path, p.names()...) {
		if s := p.state(name); s != nil {
			byState[name] = d.matrix(value, path+"/"+machine.EscapePointer(name), len(s.Classes))
		}
	}
	return byState
}

func (d *decoder) matrix(raw json.RawMessage, path string, n int) (rows [][]float64) {
	d.list(raw, path, n, func(raw json.RawMessage, path string) { rows = append(rows, d.row(raw, path, n)) })
	if len(rows) != n {
		d.bad(path, fmt.Sprintf("it has %d rows, and the state %d classes", len(rows), n), "one row for each truth, one column for each proposal")
		for len(rows) < n {
			rows = append(rows, even(n))
		}
	}
	return rows
}

// row reads probabilities that add up to 1.
func (d *decoder) row(raw json.RawMessage, path string, n int) (row []float64) {
	sum := 0.
	d.list(raw, path, n, func(raw json.RawMessage, path string) {
		row = append(row, d.number(raw, path, 0, 0, 1))
		sum += row[len(row)-1]
	})
	if len(row) != n {
		d.bad(path, fmt.Sprintf("it has %d probabilities, and the state %d classes", len(row), n), "")
		return even(n)
	}
	if math.Abs(sum-1) > 1e-6 {
		d.bad(path, fmt.Sprintf("the probabilities add up to %v", sum), "they have to add up to 1")
	}
	return row
}

func (d *decoder) human(raw json.RawMessage) Human {
	h := Human{Minutes: defaultMinutes}
	if raw == nil {
		return h
	}
	m := d.object(raw, "/human", "error", "minutes")
	h.Error = d.number(m["error"], "/human/error", 0, 0, 1)
	h.Minutes = d.number(m["minutes"], "/human/minutes", defaultMinutes, 0, 1e6)
	return h
}

func (d *decoder) drift(raw json.RawMessage, path string, p *Panel) Drift {
	m := d.object(raw, path, "round", "specialist", "p")
	f := Drift{Round: int(d.number(m["round"], path+"/round", 1, 1, 1e9)), Voter: d.name(m["specialist"], path+"/specialist"), P: d.number(m["p"], path+"/p", 0, 0, 1)}
	if m["p"] == nil {
		d.bad(path+"/p", "p is missing", "the probability of being right from that round on")
	}
	ids := p.ids()
	if !slices.Contains(ids, f.Voter) {
		d.bad(path+"/specialist", fmt.Sprintf("there is no specialist %q", f.Voter), machine.DidYouMean(f.Voter, ids))
	}
	return f
}

// arbiter reads the name of a strategy, or an arbiter as machine files have it.
func (d *decoder) arbiter(raw json.RawMessage) *machine.Specialist {
	s := &machine.Specialist{Role: machine.Arbiter, SpecialistID: "arbiter"}
	switch firstByte(raw) {
	case 0:
		return nil
	case '"':
		s.StrategyFnName = d.name(raw, "/arbiter")
		return s
	}
	d.object(raw, "/arbiter", "specialistId", "strategyFnName", "strategyFn", "threshold", "role")
	if err := json.Unmarshal(raw, s); err != nil {
		d.bad("/arbiter", err.Error(), `a strategy such as "bayes", or an arbiter as in a machine file`)
	}
	return s
}
