package planning

import (
	"fmt"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/truth"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
)

// A Respondents has everybody whom the guards of a state ask.
type Respondents struct {
	Classifier guard.Classifier
	Asker      *guard.Asker
	Model      truth.Completer // of the truth gate; nil if there is none
	Prober     truth.Completer
}

// respondents makes everybody ready whom the guards of a state ask.
func (b *planner) respondents(p *session.Program, st *machine.State) *Respondents {
	if b.looking {
		return nil
	}
	c := p.Guards(st)
	if c == nil || c.Classifier == nil && c.Truth == nil {
		return nil
	}
	d, err := &Respondents{}, error(nil)
	if c.Classifier != nil {
		if d.Classifier, err = b.classifier(c.Classifier); err != nil {
			b.fail(fmt.Errorf("the classifier of state %q: %w", st.Name, err))
		}
		d.Asker = b.Asker(c.Classifier)
	}
	if c.Truth != nil {
		if d.Model, err = b.completer(c.Truth.Model); err == nil {
			d.Prober, err = b.completer(c.Truth.Prober())
		}
		if err != nil {
			b.fail(fmt.Errorf("the truth gate of state %q: %w", st.Name, err))
		}
	}
	return d
}

func (b *planner) completer(model string) (truth.Completer, error) {
	c, err := b.Resolver.Completer(model)
	switch {
	case err != nil:
		return nil, fmt.Errorf("it asks the model %q: %w", model, err)
	case c == nil:
		return nil, fmt.Errorf("it asks the model %q, and this program has no such model: set Resolver of the runner's Config, or switch the gate off (\"truth\": false)", model)
	}
	return c, nil
}

func (b *planner) classifier(c *guard.ClassifierConfig) (guard.Classifier, error) {
	found, err := b.Resolver.Classifier(c)
	switch {
	case found != nil || err != nil:
		return found, err
	case c.Function != "":
		return nil, fmt.Errorf("the function %q is not in the Registry", c.Function)
	}
	return nil, fmt.Errorf("it is at %s, and this program has no way to ask it", c.URL)
}
