package webhook

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
)

// Whoever may write a machine may name a variable and an address in it. So that nobody sends a
// token to a place of their own, a program that takes machines from others says to which hosts a
// variable may go (Config.Bound). A host is named in one form: that of an address reached by https
// at its usual port by its name, any other with its port.

// Host returns the one form of a host as people write it: a name or an address, with a port unless
// it is reached by https at the usual one.
func Host(text string) (string, error) {
	if text == "" {
		return "", fmt.Errorf("a host is missing")
	}
	host, port, ok := parseHost(text)
	if !ok || strings.Contains(text, "/") {
		return "", fmt.Errorf("%q is neither a host nor host:port", text)
	}
	if port == "443" {
		port = ""
	}
	return joinHost(host, port), nil
}

// hostOf returns the one form of the host of an address.
func hostOf(u *url.URL) string {
	port := portOf(u)
	if u.Scheme == "https" && port == "443" {
		port = ""
	}
	return joinHost(u.Hostname(), port)
}

// A BoundError says that a variable may not be sent to a host, but to others.
type BoundError struct {
	Variable, Host string
	Bound          []string // where it may go; none means nowhere
}

func (e *BoundError) Error() string {
	to := "it is bound to no host"
	if len(e.Bound) > 0 {
		to = "it is bound to " + strings.Join(e.Bound, ", ")
	}
	return fmt.Sprintf("variable %s may not be sent to %s: %s", e.Variable, e.Host, to)
}

// Hint says what helps.
func (e *BoundError) Hint() string {
	return fmt.Sprintf("who runs the server lets it go there: tokens: [{name: %s, hosts: [%s]}] in the file of dialai serve --config", e.Variable, strings.Join(append(slices.Clip(e.Bound), e.Host), ", "))
}

// A Use is a variable that goes to a host.
type Use struct{ Variable, Host string }

// Uses returns which variables a machine has sent where, as tokens or to sign: those of its
// specialists and of its classifiers, each once. An address that is none is left out: nothing is
// sent there.
func Uses(m *machine.Machine, classifiers ...*guard.ClassifierConfig) (list []Use) {
	add := func(address string, variables ...string) {
		u, err := url.Parse(address)
		if err != nil || u.Host == "" {
			return
		}
		for _, name := range variables {
			if use := (Use{name, hostOf(u)}); name != "" && !slices.Contains(list, use) {
				list = append(list, use)
			}
		}
	}
	roster := func(all []machine.Specialist) {
		for i := range all {
			for _, address := range []string{all[i].StrategyWebhookURL, all[i].ContextWebhookURL} {
				add(address, all[i].WebhookTokenName, all[i].WebhookSecretName)
			}
		}
	}
	roster(m.Specialists())
	for i := range m.States() {
		roster(m.States()[i].Roster)
	}
	for _, c := range classifiers {
		add(c.URL, c.TokenName)
	}
	return list
}
