package expression

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// words are what docs/machine-file.md calls the types of variables.
var words = map[string]string{
	"bool": "true or false", "string": "text", "dyn": "any JSON", "int": "whole number", "double": "number", "wrapper(string)": "text or null",
}

// TestVariablesAreDocumented compares the variables of expressions with the
// tables of docs/machine-file.md: the same ones, in the same order, of the same
// types.
func TestVariablesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/machine-file.md")
	if err != nil {
		t.Fatal(err)
	}
	for use, heading := range map[Use]string{Propose: "Expressions of proposers", Arbitrate: "Expressions of arbiters",
		When: "Expressions of conditions", Set: "Expressions of assignments", Subject: "Expressions of subjects"} {
		env, err := environments[use]()
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, v := range env.Variables() {
			kind := v.Type().String()
			switch {
			case strings.HasPrefix(kind, "type"): // the names of types, which every expression has
				continue
			case v.Value() != nil:
				kind = "null"
			case words[kind] == "":
				t.Errorf("%s has the type %s", v.Name(), kind)
			default:
				kind = words[kind]
			}
			want = append(want, v.Name()+": "+kind)
		}
		_, part, _ := strings.Cut(string(text), "\n### "+heading+"\n")
		part, _, _ = strings.Cut(part, "\n#")
		var got []string
		for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]+) \\|").FindAllStringSubmatch(part, -1) {
			got = append(got, m[1]+": "+m[2])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: they see\n%q, docs/machine-file.md says\n%q", heading, want, got)
		}
	}
}
