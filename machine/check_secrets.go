package machine

import "fmt"

// holdsSecret reports whether a member of a specialist that names something holds
// what looks like a secret: a key where the name of its variable belongs, say. The
// problem does not show it, and nothing else is said of that specialist, which might.
// A modelId is for Checks.Model; addresses may have secret parts, which no error shows.
func (c *checker) holdsSecret(at string, s *Specialist) (found bool) {
	if c.Secret == nil {
		return false
	}
	for _, m := range [...]struct{ name, value, hint string }{
		{"webhookTokenName", s.WebhookTokenName, "name the variable of the environment that holds the token"},
		{"webhookSecretName", s.WebhookSecretName, "name the variable of the environment that holds the secret"},
		{"provider", s.Provider, "keys belong into the environment, not into files"},
		{"strategyFn", s.StrategyFn, "keys belong into the environment, not into files"},
		{"strategyFnName", s.StrategyFnName, "keys belong into the environment, not into files"},
		{"contextFn", s.ContextFn, "keys belong into the environment, not into files"},
	} {
		if m.value != "" && c.Secret(m.value) {
			c.report(at+"/"+m.name, false, Problem{Code: "bad-value", Message: fmt.Sprintf("%s holds what looks like a key", m.name), Hint: m.hint})
			found = true
		}
	}
	return found
}

// checkPrompts finds what everybody who is asked is shown and would tell a secret:
// prompts, and what options mean and take.
func (c *checker) checkPrompts() {
	if c.Secret == nil {
		return
	}
	for i := range c.def.States {
		s := &c.def.States[i]
		c.checkShown(c.statePath(i)+"/prompt", s.Prompt, "the prompt of state %q", s.Name)
		for j := range s.Transitions {
			t := &s.Transitions[j]
			at := c.statePath(i) + pointer("/transitions", t.Name)
			c.checkShown(at+"/description", t.Description, "the description of transition %q", t.Name)
			c.checkShown(at+"/parameters", string(t.Parameters), "the schema of transition %q", t.Name)
		}
	}
}

// checkShown reports a text that holds what looks like a key, without showing it.
func (c *checker) checkShown(path, text, what, of string) {
	if text != "" && c.Secret(text) {
		c.report(path, false, Problem{Code: "bad-value", Message: fmt.Sprintf(what+" holds what looks like a key", clip(of, maxNameRunes)),
			Hint: "this is shown to models, services and people, and stays in the log; keys belong into the environment"})
	}
}
