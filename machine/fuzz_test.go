package machine_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dialai/dialai/machine"
)

// FuzzParse: reading never panics, what is accepted is the same machine when its
// normal form is read again, in JSON and in YAML, and every problem lies inside
// the file. The seeds are in testdata/fuzz.
func FuzzParse(f *testing.F) {
	rules := checks()
	f.Fuzz(func(t *testing.T, yaml bool, data []byte) {
		name := "m.json"
		if yaml {
			name = "m.yaml"
		}
		m, err := machine.Parse(name, data, rules)
		if err != nil {
			checkError(t, name, data, err)
			return
		}
		again, err := machine.Parse("again.json", m.JSON(), rules)
		if err != nil || again.Digest() != m.Digest() || string(again.JSON()) != string(m.JSON()) {
			t.Fatalf("the normal form %s is not read as itself: %v", m.JSON(), err)
		}
		compiled, err := machine.Compile(m.Definition(), rules)
		if err != nil || compiled.Digest() != m.Digest() {
			t.Fatalf("the definition of %s is not compiled to itself: %v", m.JSON(), err)
		}
		for _, p := range m.Lint(machine.LintOptions{}) {
			checkProblem(t, name, data, p)
		}
	})
}

func checkError(t *testing.T, name string, data []byte, err error) {
	var invalid *machine.Error
	if !errors.As(err, &invalid) || len(invalid.Problems) == 0 {
		t.Fatalf("Parse = %v, want an *Error with problems", err)
	}
	for i, p := range invalid.Problems {
		checkProblem(t, name, data, p)
		if i > 0 {
			if q := invalid.Problems[i-1]; q.Line > p.Line || q.Line == p.Line && q.Column > p.Column {
				t.Fatalf("%v comes after %v", p, q)
			}
		}
	}
	if text := invalid.Error(); !strings.HasPrefix(text, "Invalid ") {
		t.Fatalf("the text begins with %.80q", text)
	}
}

// checkProblem fails unless p lies inside the file.
func checkProblem(t *testing.T, name string, data []byte, p machine.Problem) {
	if p.File != name || p.Code == "" || p.Message == "" || p.Line < 1 || p.Column < 1 {
		t.Fatalf("the problem is %+v", p)
	}
	lines := splitLines(name, string(data))
	if p.Line > len(lines) {
		t.Fatalf("%v lies behind the %d lines of the file", p, len(lines))
	}
	if n := utf8.RuneCountInString(lines[p.Line-1]); p.Column > n+1 {
		t.Fatalf("%v lies behind the %d characters of its line", p, n)
	}
}

// splitLines splits where a line ends: YAML has more line breaks than JSON.
func splitLines(name, text string) []string {
	text = strings.TrimPrefix(text, "\uFEFF")
	if name == "m.yaml" && utf8.ValidString(text) { // else nothing reads it as YAML
		text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n").Replace(text)
	}
	return strings.Split(text, "\n")
}

// FuzzSchema: compiling a schema never panics, and whatever it accepts checks
// any value without panicking or running for ever.
func FuzzSchema(f *testing.F) {
	f.Fuzz(func(t *testing.T, source, value []byte) {
		s, err := machine.NewSchema(source)
		if err != nil {
			return
		}
		_ = s.Validate(value) // either answer is fine
	})
}
