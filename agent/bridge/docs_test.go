package bridge

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocs: docs/bridge.md has all commands, events and codes, with exactly the fields that
// they have.
func TestDocs(t *testing.T) {
	file, err := os.ReadFile("../../docs/bridge.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(file)
	same(t, "commands", table(page, "## Commands", 2), commandFields(t))
	config := map[string]string{}
	for name := range fieldsOf(t, `{"cmd":"spawn","config":{"tools":[{}]}}`) {
		if path, is := strings.CutPrefix(strings.ReplaceAll(name, "[0]", "[]"), "config."); is {
			config[path] = ""
		}
	}
	same(t, "config", table(page, "### What a spawn configures", 1), config)
	same(t, "events", table(page, "## Events", 2), eventFields())
	named := map[string]string{}
	for _, c := range codes {
		named[string(c)] = ""
	}
	same(t, "codes", table(page, "## Codes", 1), named)
}

func same(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for name, fields := range want {
		if has, is := got[name]; !is || has != fields {
			t.Errorf("%s: of %s the page says %q (there: %v), it has %q", what, name, has, is, fields)
		}
	}
	for name := range got {
		if _, is := want[name]; !is {
			t.Errorf("%s: the page has %s, which there is not", what, name)
		}
	}
}

var quoted = regexp.MustCompile("`([^`]+)`")

// table reads the first table of a section: what names its rows, and the names in the second
// of its columns, if it has some there.
func table(page, section string, columns int) map[string]string {
	_, rest, _ := strings.Cut(page, "\n"+section+"\n")
	rows := map[string]string{}
	inside := false
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "|") {
			if inside {
				return rows
			}
			continue
		}
		cells := strings.Split(line, "|")
		name := quoted.FindStringSubmatch(cells[1])
		if !inside || name == nil || strings.HasPrefix(cells[1], "-") {
			inside = true
			continue
		}
		rows[name[1]] = ""
		if columns == 2 {
			var list []string
			for _, q := range quoted.FindAllStringSubmatch(cells[2], -1) {
				list = append(list, q[1])
			}
			rows[name[1]] = strings.Join(list, " ")
		}
	}
	return rows
}

// fieldsOf are the fields that a command reads.
func fieldsOf(t *testing.T, line string) map[string]bool {
	t.Helper()
	asked := map[string]bool{}
	c, m := read([]byte(line))
	if m.reading == nil {
		t.Fatalf("%s: %v", line, c.fault)
	}
	for _, name := range m.asked {
		asked[name] = true
	}
	return asked
}

func commandFields(t *testing.T) map[string]string {
	all := map[string]string{}
	for name := range readers {
		_, m := read([]byte(`{"cmd":"` + name + `"}`))
		var list []string
		for _, f := range m.asked {
			if f != "cmd" && f != "req" && !strings.Contains(f, ".") && !slices.Contains(list, f) {
				list = append(list, f)
			}
		}
		all[name] = strings.Join(list, " ")
	}
	return all
}

func eventFields() map[string]string {
	all := map[string]string{}
	for _, e := range []event{sessionEvent{}, assistantEvent{}, toolCallEvent{}, toolUseEvent{}, toolDoneEvent{}, subagentStartEvent{}, subagentStopEvent{},
		contextWarningEvent{}, usageEvent{}, permissionEvent{}, receiptEvent{}, retryEvent{}, compactionEvent{}, doneEvent{}, errorEvent{}, exitEvent{}, logEvent{}, okEvent{}} {
		var list []string
		for f := range reflect.TypeOf(e).Fields() {
			if tag, is := f.Tag.Lookup("json"); is {
				name, options, _ := strings.Cut(tag, ",")
				if options == "omitempty" {
					name += "?"
				}
				list = append(list, name)
			}
		}
		all[e.event()] = strings.Join(list, " ")
	}
	return all
}
