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

// checkPrompts finds prompts that would tell everybody a secret.
func (c *checker) checkPrompts() {
	for i := range c.def.States {
		s := &c.def.States[i]
		if c.Secret != nil && s.Prompt != "" && c.Secret(s.Prompt) {
			c.report(c.statePath(i)+"/prompt", false, Problem{Code: "bad-value", Message: fmt.Sprintf("the prompt of state %q holds what looks like a key", s.Name),
				Hint: "prompts are shown to models, services and people, and stay in the log; keys belong into the environment"})
		}
	}
}
