package tui

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/undertaking"
)

// What screens read of an undertaking.

// bound returns the worker that goes on, nil if none does.
func bound(u undertaking.State) *undertaking.Worker {
	if u.Bound < 1 || u.Bound > len(u.Workers) {
		return nil
	}
	return &u.Workers[u.Bound-1]
}

// newest returns the newest agent session of a list, nil if it is empty.
func newest(list []undertaking.Worker) *undertaking.Worker {
	if len(list) == 0 {
		return nil
	}
	return &list[len(list)-1]
}

// sessions returns the agent sessions that may be at work: the newest of each specialist.
func sessions(u undertaking.State) (list []*undertaking.Worker) {
	for _, of := range [][]undertaking.Worker{u.Others["manager"], u.Workers, u.Others["verifier-a"], u.Others["verifier-b"]} {
		if w := newest(of); w != nil {
			list = append(list, w)
		}
	}
	return list
}

// nameOf is how people are told of an agent session.
func nameOf(w *undertaking.Worker) string {
	switch w.As {
	case "orchestrator":
		return "Orchestrator " + roman(w.Number)
	case "manager":
		return "The Arbiter"
	case "verifier-a":
		return "Verifier A"
	case "verifier-b":
		return "Verifier B"
	}
	return w.As
}

// speaker is how people are told of who made a move.
func speaker(id string, human bool, number int) string {
	switch {
	case human:
		return "You"
	case id == "manager":
		return "The Arbiter"
	case id == "orchestrator":
		return "Orchestrator " + roman(number)
	case id == "verifier-a":
		return "Verifier A"
	case id == "verifier-b":
		return "Verifier B"
	case id == "checks":
		return "The check"
	}
	return "The engine"
}

// roman writes a number in Roman numerals, from 1 to 3999; others as they are.
func roman(n int) string {
	if n < 1 || n > 3999 {
		return fmt.Sprint(n)
	}
	var b strings.Builder
	for _, d := range []struct {
		value int
		sign  string
	}{{1000, "M"}, {900, "CM"}, {500, "D"}, {400, "CD"}, {100, "C"}, {90, "XC"}, {50, "L"}, {40, "XL"}, {10, "X"}, {9, "IX"}, {5, "V"}, {4, "IV"}, {1, "I"}} {
		for n >= d.value {
			b.WriteString(d.sign)
			n -= d.value
		}
	}
	return b.String()
}

// payload returns a text of a member of the case's data; "" if it has none.
func payload(s *session.Session, name, member string) string {
	var members map[string]json.RawMessage
	var text string
	if json.Unmarshal(s.Data().Get(name), &members) == nil {
		_ = json.Unmarshal(members[member], &text)
	}
	return text
}

// input returns a text that the undertaking was started with.
func input(s *session.Session, name string) string {
	var members map[string]json.RawMessage
	var text string
	if json.Unmarshal(s.Options().Meta, &members) == nil {
		_ = json.Unmarshal(members[name], &text)
	}
	return text
}

// short is how long something takes, for a line.
func short(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d m", int(d.Minutes()))
	}
	return fmt.Sprintf("%d h %d m", int(d.Hours()), int(d.Minutes())%60)
}

// written writes a value of JSON for people: texts as they are, lists with a dash for each.
func written(raw json.RawMessage, indent string) string {
	var text string
	var list []json.RawMessage
	var members map[string]json.RawMessage
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return ""
	case json.Unmarshal(raw, &text) == nil:
		return text
	case json.Unmarshal(raw, &list) == nil:
		var b strings.Builder
		for _, one := range list {
			fmt.Fprintf(&b, "\n%s- %s", indent, strings.TrimPrefix(written(one, indent+"  "), "\n"+indent+"  "))
		}
		return b.String()
	case json.Unmarshal(raw, &members) == nil:
		var b strings.Builder
		for _, name := range ordered(raw) {
			if value := written(members[name], indent+"  "); value != "" {
				fmt.Fprintf(&b, "\n%s%s: %s", indent, strings.ReplaceAll(name, "_", " "), value)
			}
		}
		return b.String()
	}
	return string(raw)
}

// ordered returns the names of an object's members: those that are read first, then the others as
// they stand.
func ordered(raw json.RawMessage) (names []string) {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	if _, err := d.Token(); err != nil {
		return nil
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return names
		}
		var skip json.RawMessage
		if d.Decode(&skip) != nil {
			return names
		}
		names = append(names, fmt.Sprint(name))
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	return names
}

// first are members that are read first, in this order.
var first = []string{
	"understanding", "approach", "deliverables", "out_of_scope", "done_when", "check", "tasks", "command", "exit", "output",
	"accomplished", "remaining", "context", "files", "commits", "open_risks", "text", "evidence",
}

func rank(name string) int {
	if i := slices.Index(first, name); i >= 0 {
		return i
	}
	return len(first)
}
