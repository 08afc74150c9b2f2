package machine_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
)

// TestInclude: a guards section may stand in a file of its own, and what is
// wrong with it is found there.
func TestInclude(t *testing.T) {
	files := map[string]string{
		"ok.yaml":    "limits:\n  max_steps: 3\n",
		"wrong.yaml": "limits:\n  max_steps: 3\n  max_step: 4\ncost: 7\n",
		"twice.json": "{\n \"retry\": {},\n \"retry\": {} }",
		"torn.json":  `{"limits":`,
	}
	c := checks()
	c.Include = func(path string) ([]byte, error) {
		if text, ok := files[path]; ok {
			return []byte(text), nil
		}
		if path == "folder" {
			return nil, &fs.PathError{Op: "statat", Path: path, Err: errors.New("it is a directory")}
		}
		return nil, fmt.Errorf("open %s: %w", path, fs.ErrNotExist)
	}
	for _, tc := range []struct {
		path string
		want []string
	}{
		{"ok.yaml", nil},
		{"wrong.yaml", []string{"wrong.yaml:3:3: error[unknown-field]: limits has no field \"max_step\"", "wrong.yaml:4:7: error[wrong-type]: cost must be an object"}},
		{"twice.json", []string{"twice.json:3:2: error[duplicate-key]: this name is already defined at line 2, column 2"}},
		{"torn.json", []string{"torn.json:1:11: error[syntax]: Invalid JSON\n"}},
		{"none.json", []string{"m.yaml:3:9: error[bad-include]: guards names \"none.json\", and there is no such file\n    hint: the path is relative to the machine file: there would have to be a file none.json"}},
		{"''", []string{"m.yaml:3:9: error[bad-include]: guards is \"\", which names no file\n    hint: write the section in its place, or the path of a file that holds it"}},
		{"folder", []string{"m.yaml:3:9: error[bad-include]: the guards file \"folder\" cannot be read: it is a directory\n"}},
	} {
		text := fmt.Sprintf("machineName: m\ninitialState: a\nguards: %s\ngoalState: a\nstates: {a: {}}\n", tc.path)
		m, err := machine.Parse("m.yaml", []byte(text), c)
		if tc.want == nil {
			if err != nil || string(m.Definition().Guards) != `{"limits":{"max_steps":3}}` {
				t.Errorf("%s: %v", tc.path, err)
			}
			continue
		}
		var invalid *machine.Error
		if !errors.As(err, &invalid) || len(invalid.Problems) != len(tc.want) {
			t.Errorf("%s: %v, want %q", tc.path, err, tc.want)
			continue
		}
		summary := "Invalid machine definition: "
		if name := invalid.Problems[0].File; name != "m.yaml" { // a name twice is one of which file?
			summary = "Invalid guards file " + name + ": "
		}
		if got, want := invalid.Summary(), summary+invalid.Problems[0].Message; got != want {
			t.Errorf("%s: %s, want %s", tc.path, got, want)
		}
		for i, p := range invalid.Problems {
			if !strings.HasPrefix(p.String(), tc.want[i]) {
				t.Errorf("%s: %s, want %s", tc.path, p, tc.want[i])
			}
		}
	}
}

func TestParseSection(t *testing.T) {
	check := func(section []byte) []machine.Problem { return guard.Check(section, false) }
	if err := machine.ParseSection("g.yaml", []byte("limits: {max_steps: 1}"), nil, check); err != nil {
		t.Error(err)
	}
	err := machine.ParseSection("g.json", []byte("{\n  \"limits\": {\"max_steps\": -1},\n  \"x\": 1 }"), nil, check)
	var invalid *machine.Error
	if !errors.As(err, &invalid) || len(invalid.Problems) != 2 || invalid.Problems[0].Line != 2 || invalid.Problems[0].Column != 27 || invalid.Problems[1].Line != 3 || invalid.Problems[1].Column != 3 {
		t.Errorf("%v", err)
	}
}

// TestForeignFile: of a file that is something else, perhaps one of secrets, nothing is
// shown but names that are like those of fields.
func TestForeignFile(t *testing.T) {
	const foreign = "f.yaml:1:1: error[foreign-file]: none of its fields is a field of "
	for text, want := range map[string]string{
		"hunter2: a\nsesame: b\n":           foreign + "the machine",
		"hunter2: a\nhunter2: b\n":          foreign + "the machine",
		"hunter2: \"a\u200b\"\n":            foreign + "the machine",
		"state: {}\nhunter2: a\n":           foreign + `the machine|f.yaml:1:1: error[unknown-field]: the machine has no field "state"` + "\n    hint: did you mean \"states\"?",
		"stats: {}\n":                       `f.yaml:1:1: error[unknown-field]: the machine has no field "stats"` + "\n    hint: did you mean \"states\"?",
		"machineName: m\nhunter2: a\n":      `f.yaml:2:1: error[unknown-field]: the machine has no field "hunter2"`,
		"x-note: a\n$schema: b\n":           "",
		"x-note: a\nhunter2: a\n$schema: b": foreign + "the machine",
	} {
		_, err := machine.Parse("f.yaml", []byte(text), machine.Checks{})
		var invalid *machine.Error
		if !errors.As(err, &invalid) {
			t.Fatalf("%q: %v", text, err)
		}
		var got []string
		for _, p := range invalid.Problems {
			if p.Code != "missing-field" {
				got = append(got, strings.TrimSuffix(p.String(), "\n    hint: is it the right file? Nothing else of it is shown"))
			}
		}
		if got := strings.Join(got, "|"); got != want {
			t.Errorf("%q:\n got %s\nwant %s", text, got, want)
		}
	}
	for text, want := range map[string]string{
		`{"hunter2": 1}`:                        "Invalid file: none of its fields is a field of a specialist\nf.json:1:1: error[foreign-file]: none of its fields is a field of a specialist\n    hint: is it the right file? Nothing else of it is shown",
		`{"role": "arbiter", "threshold": "x"}`: `f.json:1:34: error[wrong-type]`,
		`[1]`:                                   "f.json:1:1: error[wrong-type]: a specialist must be an object, not an array",
		`{`:                                     "f.json:1:2: error[syntax]",
	} {
		if err := machine.ParseSpecialist("f.json", []byte(text), nil, &machine.Specialist{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	s := machine.Specialist{Role: machine.Arbiter}
	if err := machine.ParseSpecialist("f.yaml", []byte("strategyFnName: bayes\n"), nil, &s); err != nil || s.StrategyFnName != "bayes" || s.Role != machine.Arbiter {
		t.Errorf("%+v, %v", s, err)
	}
}
