package permit

import (
	"errors"

	"github.com/dialai/dialai/internal/packs"
	"github.com/dialai/dialai/internal/section"
	"github.com/dialai/dialai/machine"
)

// ParseRules reads a file of permissions, JSON or YAML by its name: an object with the lists
// allow and deny of patterns. The error is a *[machine.Error], each problem with its place.
func ParseRules(name string, data []byte) (rules Rules, err error) {
	err = machine.ParseSection(name, data, packs.HoldsSecret, func(text []byte) []machine.Problem {
		return section.Parse("permissions", text, func(r *section.Reader) func(path string, value []byte) {
			return r.Object([]section.Member{
				{Name: "allow", Read: section.List(r, &rules.Allow, readPattern(r))},
				{Name: "deny", Read: section.List(r, &rules.Deny, readPattern(r))},
			})
		})
	})
	if err != nil {
		return Rules{}, err
	}
	return rules, nil
}

// readPattern reads a pattern.
func readPattern(r *section.Reader) func(path string, value []byte) Pattern {
	return func(path string, value []byte) Pattern {
		var text string
		before := len(r.Problems)
		if r.Name(&text)(path, value); len(r.Problems) > before {
			return Pattern{}
		}
		p, err := ParsePattern(text)
		if wrong, ok := errors.AsType[*patternError](err); ok {
			r.Report(path, "bad-pattern", wrong.message, wrong.hint)
		}
		return p
	}
}
