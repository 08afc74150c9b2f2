package machine

import (
	"encoding/json"
	"slices"
)

// Compile checks and compiles a definition that was built in Go. It keeps no
// reference to def. The error is a *[Error] with every problem; as there is no
// file, each has a Path instead of a place.
func Compile(def *Definition, checks Checks) (*Machine, error) {
	c := copier{}
	own := c.definition(def)
	return build(own, checks, origin{}, c.problems)
}

// A copier copies a definition into the form in which a file would have been
// read: raw sections canonical, thresholds in billionths, defaults filled in.
type copier struct{ problems []Problem }

func (c *copier) definition(def *Definition) *Definition {
	own := *def
	own.ConsensusThreshold = copyThreshold(def.ConsensusThreshold)
	own.Specialists = copyRoster(def.Specialists)
	own.RequireTrust = copyOf(def.RequireTrust)
	own.Guards, own.Input = c.raw(def.Guards, "/guards", 1), c.raw(def.Input, "/input", 0)
	own.Risk, own.Solicit, own.Quorum = copyRisk(def.Risk), copySolicit(def.Solicit), copyOf(def.Quorum)
	own.Collapse, own.Audit, own.SecondHuman = copyCollapse(def.Collapse), copyAudit(def.Audit), copySecondHuman(def.SecondHuman)
	own.Groups = slices.Clone(def.Groups)
	for i := range own.Groups {
		own.Groups[i].Humans = slices.Clone(own.Groups[i].Humans)
	}
	own.States = slices.Clone(def.States)
	for i := range own.States {
		c.state(&own.States[i])
	}
	return &own
}

func (c *copier) state(s *StateDefinition) {
	path := pointer("/states", s.Name)
	s.ConsensusThreshold = copyThreshold(s.ConsensusThreshold)
	s.Specialists = copyRoster(s.Specialists)
	s.RequireTrust = copyOf(s.RequireTrust)
	s.Guards = c.raw(s.Guards, path+"/guards", 1)
	s.Risk, s.Solicit, s.Quorum = copyRisk(s.Risk), copySolicit(s.Solicit), copyOf(s.Quorum)
	s.Collapse, s.Audit, s.SecondHuman = copyCollapse(s.Collapse), copyAudit(s.Audit), copySecondHuman(s.SecondHuman)
	s.Irreversible, s.Deciders, s.Due = copyOf(s.Irreversible), slices.Clone(s.Deciders), copyDue(s.Due)
	s.Transitions = slices.Clone(s.Transitions)
	for i := range s.Transitions {
		t := &s.Transitions[i]
		t.Irreversible = copyOf(t.Irreversible)
		if t.Approvals = copyOf(t.Approvals); t.Approvals != nil {
			a := t.Approvals
			a.From, a.Each, a.Exclude = slices.Clone(a.From), slices.Clone(a.Each), slices.Clone(a.Exclude)
		}
		at := path + pointer("/transitions", t.Name)
		t.Parameters, t.Set = c.raw(t.Parameters, at+"/parameters", 0), c.raw(t.Set, at+"/set", 0)
	}
}

// raw returns a section as canonical JSON.
func (c *copier) raw(section json.RawMessage, path string, extensions int) (canonical json.RawMessage) {
	if section == nil {
		return nil
	}
	tree, err := parseJSON(section)
	if err != nil {
		p := Problem{Path: path, Code: err.(*syntaxError).code, Message: err.Error()}
		if p.Code == codeSyntax { // of one value, not of a file
			p.Code, p.Message = "wrong-type", "Invalid JSON: "+p.Message
		}
		c.problems = append(c.problems, p)
		return nil
	}
	d := decoder{}
	d.raw((*[]byte)(&canonical), extensions)(tree, path, "")
	for _, p := range d.problems {
		p.Line, p.Column = 0, 0 // they would be those of the section
		c.problems = append(c.problems, p)
	}
	return canonical
}

func copyOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

func copyThreshold(t *Threshold) *Threshold {
	own := copyOf(t)
	if own != nil {
		if v, err := NewThreshold(own.Given); err == nil { // else refused as it is
			*own = v
		}
	}
	return own
}

func copyRoster(list []Specialist) []Specialist {
	own := slices.Clone(list)
	for i := range own {
		s := &own[i]
		s.Enabled, s.Disabled = copyOf(s.Enabled), copyOf(s.Disabled)
		s.Threshold = copyThreshold(s.Threshold)
		s.EstimatedCostUSD = copyOf(s.EstimatedCostUSD)
	}
	return own
}

func copyRisk(r *Risk) *Risk {
	own := copyOf(r)
	if own != nil && own.Confidence == 0 {
		own.Confidence = defaultConfidence
	}
	return own
}

func copySolicit(s *Solicit) *Solicit {
	own := copyOf(s)
	if own != nil {
		own.Champion, own.HumanCost = copyOf(own.Champion), copyOf(own.HumanCost)
	}
	return own
}
