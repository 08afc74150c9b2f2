package llm

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/dialai/dialai/internal/packs"
)

// Where a modelId leads. The member provider of a specialist decides; without it,
// DIALAI_LLM_BASE_URL takes every model, then OPENROUTER_API_TOKEN takes every model by
// its whole name, and else the prefix of the id names the provider ("openai/…"), whose
// key must be set. Where nobody can be asked the error says which variable would help,
// and never shows a value. A modelId that looks like a key is refused without being
// quoted.

// A provider is one place where models can be asked.
type provider struct {
	name string
	wire wire
	base string // address of its API, without a slash at the end; "" if the operator must name it
	key  string // the variable that holds its key; "" if it needs none
	// whole says that it takes the modelId unchanged, prefix and all.
	whole bool
}

// Names of variables that decide where models are asked.
const (
	baseVariable   = "DIALAI_LLM_BASE_URL"
	routerVariable = "OPENROUTER_API_TOKEN"
	ollamaVariable = "OLLAMA_HOST"
)

// providers are those that are known, by the names that modelIds and the member
// provider of a specialist use.
var providers = []provider{
	{"openrouter", chat{}, "https://openrouter.ai/api/v1", routerVariable, true},
	{"openai", chat{}, "https://api.openai.com/v1", "OPENAI_API_KEY", false},
	{"anthropic", messages{}, "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", false},
	{"google", generate{}, "https://generativelanguage.googleapis.com/v1beta", "GEMINI_API_KEY", false},
	{"ollama", chat{}, "", "", false},
}

// compatible is the provider at DIALAI_LLM_BASE_URL.
const compatible = "compatible"

// addressVariable holds the variables that say where a provider is, by its name.
var addressVariable = map[string]string{compatible: baseVariable, "ollama": ollamaVariable}

// providerNames returns the names that the member provider of a specialist may have.
func providerNames() []string {
	names := []string{compatible}
	for _, p := range providers {
		names = append(names, p.name)
	}
	return names
}

// named returns the provider of a name; gemini is another name of google.
func named(name string) (provider, bool) {
	if name == "gemini" {
		name = "google"
	}
	i := slices.IndexFunc(providers, func(p provider) bool { return p.name == name })
	if i < 0 {
		return provider{}, false
	}
	return providers[i], true
}

// A route says where one model is asked.
type route struct {
	provider string
	wire     wire
	base     string
	model    string // as that provider calls it
	key      string
}

// errNoKey is what there is to say if no key is set that a model could be asked
// with.
func errNoKey(variable string) error {
	//lint:ignore ST1005 the text is prescribed
	return fmt.Errorf("No LLM API token configured. Set %s environment variable.", variable)
}

// route finds where a model is asked now: the provider decides if there is one,
// else DIALAI_LLM_BASE_URL or OPENROUTER_API_TOKEN, else the prefix of the id.
func (c *Client) route(id modelID) (route, error) {
	prefix, rest, _ := strings.Cut(id.model, "/")
	switch {
	case id.provider == compatible, id.provider == "" && c.base != "":
		if c.base == "" {
			return route{}, fmt.Errorf("provider %q is at DIALAI_LLM_BASE_URL, which is not set", compatible)
		}
		return route{compatible, chat{}, c.base, id.model, c.variable(routerVariable)}, nil
	case id.provider != "":
		p, _ := named(id.provider)
		if own, _ := named(prefix); own.name == p.name && rest != "" && !p.whole {
			return c.at(p, rest)
		}
		return c.at(p, id.model)
	}
	if c.variable(routerVariable) != "" {
		return c.at(providers[0], id.model)
	}
	p, ok := named(prefix)
	switch {
	case !strings.Contains(id.model, "/"):
		return route{}, c.noPrefix(id.model)
	case !ok || rest == "":
		return route{}, errNoKey(routerVariable)
	case c.reachable(p):
		return c.at(p, rest)
	case p.whole:
		return route{}, errNoKey(p.key)
	}
	//lint:ignore ST1005 it goes on from a prescribed text
	return route{}, fmt.Errorf("%w Or set %s, which is enough for %q.", errNoKey(routerVariable), cmp.Or(p.key, ollamaVariable), id.model)
}

// noPrefix says what there is to do about a modelId that names no provider: to name
// one of those that can be asked.
func (c *Client) noPrefix(model string) error {
	var ways []string
	for _, p := range providers {
		if !p.whole && c.reachable(p) {
			ways = append(ways, fmt.Sprintf("%q, since %s is set", p.name+"/"+model, cmp.Or(p.key, ollamaVariable)))
		}
	}
	if len(ways) == 0 {
		return errNoKey(routerVariable)
	}
	//lint:ignore ST1005 it goes on from a prescribed text
	return fmt.Errorf("%w Or write %s.", errNoKey(routerVariable), strings.Join(ways, ", or "))
}

// reachable reports whether a provider can be asked as far as variables say.
func (c *Client) reachable(p provider) bool {
	if p.key == "" {
		return c.baseOf(p) != ""
	}
	return c.variable(p.key) != ""
}

// at returns the route to a model of a provider.
func (c *Client) at(p provider, model string) (route, error) {
	r := route{provider: p.name, wire: p.wire, base: c.baseOf(p), model: model}
	if r.base == "" {
		return r, fmt.Errorf("provider %q is at OLLAMA_HOST, which is not set; for example 127.0.0.1:11434", p.name)
	}
	if p.key != "" {
		if r.key = c.variable(p.key); r.key == "" {
			return r, errNoKey(p.key)
		}
	}
	return r, nil
}

// baseOf returns the address of a provider's API; "" if nobody has named it.
func (c *Client) baseOf(p provider) string {
	return cmp.Or(c.endpoints[p.name], p.base)
}

// A modelID is what a machine file says of a model.
type modelID struct {
	model    string // without the flags
	provider string // "" if the id and the environment decide
	noTools  bool
	noSchema bool
}

// parseModelID reads a modelId, which may end in flags, and the name of its
// provider.
func parseModelID(id, provider string) (m modelID, err error) {
	if packs.Redact(id) != id {
		return m, errors.New("modelId holds what looks like a key; keys belong into the environment, not into files") // so it is not shown
	}
	m = modelID{model: strings.TrimSpace(id), provider: provider}
	if name, flags, ok := strings.Cut(m.model, "["); ok {
		m.model = strings.TrimSpace(name)
		list, closed := strings.CutSuffix(flags, "]")
		if !closed {
			return m, fmt.Errorf("modelId %q: the flags have no end; write for example %s[tools=no]", id, m.model)
		}
		if err := m.flags(id, list); err != nil {
			return m, err
		}
	}
	switch {
	case m.model == "":
		return m, fmt.Errorf("modelId %q names no model", id)
	case m.noSchema && !m.noTools:
		return m, fmt.Errorf("modelId %q: schema=no needs tools=no, since tools come first", id)
	case provider != "" && !slices.Contains(append(providerNames(), "gemini"), provider):
		return m, fmt.Errorf("provider %q is not one of %s", provider, strings.Join(providerNames(), ", "))
	}
	return m, nil
}

// CheckModel returns what is wrong with a modelId or with the provider beside it, ""
// for none; nil if a model can be asked by them. The error shows no key.
func CheckModel(id, provider string) error {
	_, err := parseModelID(id, provider)
	return err
}

// Ready returns why a model cannot be asked as far as variables say, such as that no key is
// set for it; nil if it can. Nobody is asked.
func (c *Client) Ready(id, provider string) error {
	m, err := parseModelID(id, provider)
	if err == nil {
		_, err = c.route(m)
	}
	return err
}

func (m *modelID) flags(id, list string) error {
	for flag := range strings.SplitSeq(list, ",") {
		switch strings.TrimSpace(flag) {
		case "tools=no":
			m.noTools = true
		case "schema=no":
			m.noSchema = true
		case "tools=yes", "schema=yes":
		default:
			return fmt.Errorf("modelId %q: the flag %q is none of tools=no and schema=no", id, strings.TrimSpace(flag))
		}
	}
	return nil
}

// ollamaBase returns the address of the API of an Ollama server from the value of
// OLLAMA_HOST, which may lack the scheme and the port. A server that listens
// everywhere is asked on this machine.
func ollamaBase(host string) string {
	host = strings.TrimSpace(host)
	if host == "" {
		return ""
	}
	if !strings.Contains(host, "://") {
		host = "http://" + host
	}
	u, err := url.Parse(host)
	if err != nil || u.Host == "" {
		return strings.TrimRight(host, "/") + "/v1" // whoever calls it says what is wrong
	}
	name, port := u.Hostname(), u.Port()
	if port == "" && u.Scheme == "http" {
		port = "11434"
	}
	if name == "0.0.0.0" || name == "::" {
		name = "127.0.0.1"
	}
	if port != "" {
		u.Host = net.JoinHostPort(name, port)
	}
	return strings.TrimSuffix(strings.TrimRight(u.String(), "/"), "/v1") + "/v1"
}
