package llm

import (
	"fmt"
	"strconv"

	"github.com/dialai/dialai/webhook"
)

// FromEnvironment returns how models are asked according to the environment:
// DIALAI_WEBHOOK_ALLOW says which private addresses may be reached, DIALAI_AUDIT how much
// the audit keeps, DIALAI_LLM_CONCURRENT and DIALAI_LLM_PER_MINUTE how hard each provider
// is called. Keys are looked up at every call. The error names the variable.
func FromEnvironment(lookup func(name string) (value string, set bool)) (c Config, err error) {
	c.Lookup = lookup
	hooks, err := webhook.FromEnvironment(lookup)
	if err != nil {
		return Config{}, err
	}
	c.Policy = hooks.Policy
	audit, _ := lookup("DIALAI_AUDIT")
	if c.AuditAs, err = parseAuditMode(audit); err != nil {
		return Config{}, err
	}
	var l Limits
	if l.MaxConcurrent, err = limit(lookup, "DIALAI_LLM_CONCURRENT"); err != nil {
		return Config{}, err
	}
	if l.PerMinute, err = limit(lookup, "DIALAI_LLM_PER_MINUTE"); err != nil {
		return Config{}, err
	}
	c.Limits = map[string]Limits{"": l}
	return c, nil
}

// limit returns a variable that is a number from 1 on; 0 if it is not set.
func limit(lookup func(string) (string, bool), name string) (int, error) {
	text, _ := lookup(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%s is %q, it must be a whole number from 1 on", name, text)
	}
	return n, nil
}
