package permit

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

// Each property is held to with every line of the table, so that none depends on what is drawn;
// FuzzLines draws other lines.

// TestAppended: whatever a line is, what follows it makes nothing of it more permissive, and
// rm -rf / makes it dangerous.
func TestAppended(t *testing.T) {
	p := newPlace(t)
	for i, line := range completeLines(t) {
		if i%stride != 0 {
			continue
		}
		before := p.lookQuietly(line)
		joint := []string{"\n\n", "\n\ntrue;", "\n\n: &&", "\n\n: |"}[i%4]
		switch after := p.lookQuietly(line + joint + " rm -rf /"); {
		case !atMost(after, before):
			t.Errorf("%s: was %s, with rm -rf / it is %s", line, shown(before), shown(after))
		case after.Kind != kindDangerous || after.Inside || after.ReadOnly || after.Listed == "allow":
			t.Errorf("%s: with rm -rf / it is %s", line, shown(after))
		}
		if after := p.lookQuietly(line + joint + " unknown x"); !atMost(after, before) || after.ReadOnly || after.Listed == "allow" {
			t.Errorf("%s: was %s, with a command that nobody knows it is %s", line, shown(before), shown(after))
		}
	}
}

// TestWrapped: whatever runs a line does not make it more permissive.
func TestWrapped(t *testing.T) {
	p := newPlace(t)
	p.settings.Rules = Rules{}
	for i, line := range tableLines(t) {
		if i%stride != 0 {
			continue
		}
		before := p.lookQuietly(line)
		for _, by := range [][2]string{{"", "\n"}, {"(", "\n)"}, {"{ ", "\n}"}, {"if true; then ", "\nfi"}, {"echo $(", "\n)"}, {"x=$(", "\n)"}, {"f() { ", "\n}"}, {"cat <(", "\n)"}} {
			if after := p.lookQuietly(by[0] + line + by[1]); !atMost(after, before) {
				t.Errorf("%s: was %s, after %s it is %s", line, shown(before), by[0], shown(after))
			}
		}
		quoted := "'" + strings.ReplaceAll(line, "'", `'\''`) + "'"
		for _, by := range []string{"sh -c ", "bash -lc ", "eval ", "sudo sh -c ", "trap "} {
			text := by + quoted
			if by == "trap " {
				text += " EXIT"
			}
			after := p.lookQuietly(text)
			if before.Kind == kindDangerous && after.Kind != kindDangerous || before.Listed == "deny" && after.Listed != "deny" || after.ReadOnly || after.Inside && !before.Inside {
				t.Errorf("%s: was %s, after %s it is %s", line, shown(before), by, shown(after))
			}
		}
	}
}

// TestMoreRules: another allow never denies, another deny never allows, and no rule changes
// what a prompt is.
func TestMoreRules(t *testing.T) {
	p := newPlace(t)
	patterns := []string{"Bash", "Bash(git*)", "Bash(ls*)", "Bash(cat a.txt)", "Bash(rm*)", "Read", "shell"}
	for i, line := range tableLines(t) {
		if i%stride != 0 {
			continue
		}
		draw := rand.New(rand.NewPCG(uint64(i), 0)) // the same in each run
		one := func() string { return patterns[draw.IntN(len(patterns))] }
		allow, more := []string{one(), one(), one()}[:draw.IntN(4)], one()
		with := func(allow, deny []string) facts {
			q := *p
			q.settings.Rules = rules(t, allow, deny)
			return q.lookQuietly(line)
		}
		few, allowed, denied := with(allow, nil), with(append(allow, more), nil), with(allow, []string{more})
		if few.Listed == "allow" && allowed.Listed != "allow" || few.Listed == "deny" && allowed.Listed != "deny" || few.Listed != "allow" && denied.Listed == "allow" {
			t.Errorf("%s: %s, with an allow %s, with a deny %s", line, shown(few), shown(allowed), shown(denied))
		}
		if few.Kind != allowed.Kind || few.Kind != denied.Kind || few.Inside != denied.Inside {
			t.Errorf("%s: a rule changes what it is", line)
		}
	}
}

// lookQuietly looks at a line of Bash that can be written as JSON.
func (p *place) lookQuietly(line string) facts {
	data, err := json.Marshal(map[string]string{"command": line})
	if err != nil {
		panic(err)
	}
	f, err := lookAt(Prompt{Tool: "Bash", Input: data, Cwd: p.cwd}, p.settings)
	if err != nil {
		panic(err)
	}
	return f
}
