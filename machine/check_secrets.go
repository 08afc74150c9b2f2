package machine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Keys that somebody wrote into a machine file. Texts that are shown to models,
// services and people, and names of variables in whose place a key may have been put,
// are looked through one by one, with a hint each; secretsIn looks through all the rest
// of the file, names and comments of others (x-) included. Left out are members that
// are searched elsewhere, patterns and schemas, which say what something looks like,
// and addresses, parts of which may be secret by design.
//
// No problem shows what was found, and conceal takes it out of every other problem of
// the same file, paths included.

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
	c.checkShown("/input", string(c.def.Input), "the input schema of machine %q", c.def.MachineName)
	c.checkShown("/subject", c.def.Subject, "the subject of machine %q", c.def.MachineName)
	for i := range c.def.States {
		s := &c.def.States[i]
		c.checkShown(c.statePath(i)+"/prompt", s.Prompt, "the prompt of state %q", s.Name)
		for j := range s.Transitions {
			t := &s.Transitions[j]
			at := c.statePath(i) + pointer("/transitions", t.Name)
			c.checkShown(at+"/description", t.Description, "the description of transition %q", t.Name)
			c.checkShown(at+"/parameters", string(t.Parameters), "the schema of transition %q", t.Name)
			c.checkShown(at+"/set", string(t.Set), "what transition %q sets", t.Name)
			c.checkShown(at+"/when", t.When, "the condition of transition %q", t.Name)
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

// A secretSearch looks for what looks like a secret in all of a file, names included.
type secretSearch struct {
	holds func(text string) bool
	file  string
	found []Problem
}

// secretsIn returns what looks like a secret in a file, where a name belongs and in what
// nobody reads. No problem shows it.
func secretsIn(file string, tree *node, holds func(text string) bool) []Problem {
	if holds == nil {
		return nil
	}
	s := &secretSearch{holds: holds, file: file}
	s.search(tree, "", known)
	return s.found
}

// Members whose text is not searched here: the checkers of specialists, prompts and models
// say what belongs there, and a part of an address may be a secret by design.
var searchedElsewhere = []string{"prompt", "description", "when", "subject", "webhookTokenName", "webhookSecretName", "provider", "strategyFn", "strategyFnName", "contextFn",
	"modelId", "model", "probe_model", "strategyWebhookUrl", "contextWebhookUrl", "url"}

// Members that say what something has to look like, or are searched as a whole.
var lookedLike = []string{"parameters", "input", "set", "forbidden_patterns", "packs", "schema", "output_schema", "arg_schemas"}

// Members whose own members are named freely.
var freelyNamed = []string{"states", "transitions", "prices"}

// A searchMode says what the names of an object mean for a search.
type searchMode int

const (
	known searchMode = iota // what they say
	free                    // nothing, they are somebody's own
	all                     // nothing, and that of all below neither
)

// in returns the mode of a member's value, and whether it is searched at all.
func (m searchMode) in(name string, value *node) (inner searchMode, searched bool) {
	switch {
	case m == free:
		return known, true
	case m == all:
		return all, true
	case isExtension(name):
		return all, true
	case slices.Contains(freelyNamed, name):
		return free, true
	}
	return known, !slices.Contains(lookedLike, name) && (value.kind != stringNode || !slices.Contains(searchedElsewhere, name))
}

// search looks through a value, whose path holds no secret.
func (s *secretSearch) search(n *node, path string, mode searchMode) {
	if outer := s.file; n.file != "" {
		s.file = n.file
		defer func() { s.file = outer }()
	}
	if n.kind == stringNode && s.holds(n.text) {
		s.report(n.line, n.col, path, lastOf(path)+" holds what looks like a key")
	}
	for i, item := range n.items {
		if n.kind == arrayNode {
			s.search(item, fmt.Sprintf("%s/%d", path, i), mode)
		} else if name := n.keys[i]; s.holds(name.name) {
			s.report(name.line, name.col, path, "a name in "+lastOf(path)+" holds what looks like a key")
		} else if inner, searched := mode.in(name.name, item); searched {
			s.search(item, pointer(path, name.name), inner)
		}
	}
}

func (s *secretSearch) report(line, col int, path, message string) {
	s.found = append(s.found, Problem{File: s.file, Line: line, Column: col, Path: path, Code: "bad-value", Message: message,
		Hint: "keys belong into the environment, not into files"})
}

// conceal takes what looks like a secret out of a problem.
func (p *Problem) conceal(holds func(text string) bool) {
	if holds(p.Message) || holds(p.Hint) {
		p.Message, p.Hint = "what is wrong here cannot be shown, since it holds what looks like a key", "keys belong into the environment, not into files"
	}
	for p.Path != "" && holds(p.Path) {
		p.Path = p.Path[:strings.LastIndexByte(p.Path, '/')]
	}
}

// lastOf returns the last name in a path, leaving out places in lists.
func lastOf(path string) string {
	parts := splitPointer(path)
	for _, part := range slices.Backward(parts) {
		if _, err := strconv.Atoi(part); err != nil && part != "" {
			return clip(part, maxNameRunes)
		}
	}
	return "the file"
}
