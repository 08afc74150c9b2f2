package webhook

import "strings"

// FromEnvironment returns how webhooks are called according to the environment:
// DIALAI_WEBHOOK_ALLOW says which private addresses may be reached,
// DIALAI_WEBHOOK_TOKEN_NAMES which variables machine files may name. The error names
// the variable.
func FromEnvironment(lookup func(name string) (value string, set bool)) (c Config, err error) {
	c.Lookup = lookup
	allowed, _ := lookup("DIALAI_WEBHOOK_ALLOW")
	if c.Policy, err = ParsePolicy(allowed); err != nil {
		return Config{}, err
	}
	names, _ := lookup("DIALAI_WEBHOOK_TOKEN_NAMES")
	if list := strings.Fields(strings.ReplaceAll(names, ",", " ")); len(list) > 0 {
		c.TokenNames = list
	}
	return c, nil
}
