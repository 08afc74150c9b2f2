package server_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/cli"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/strategies"
)

// A terminal is a desk whose files the commands open, too.
type terminal struct {
	*desk
	path string
}

func newTerminal(t *testing.T, o deskOptions) *terminal {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	path := filepath.Join(t.TempDir(), "dialai.db")
	file, err := store.OpenSQLite(t.Context(), path, store.SQLiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	o.store = file
	remembers, err := store.OpenControl(t.Context(), path+".control", store.SQLiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remembers.Close() })
	o.control = remembers
	return &terminal{newDesk(t, o), path}
}

// prints runs a command, and returns what it prints with --json, line by line.
func (d *terminal) prints(args ...string) (lines []string) {
	d.Helper()
	out, err := os.Create(filepath.Join(d.TempDir(), "out"))
	if err != nil {
		d.Fatal(err)
	}
	defer out.Close()
	stdout := os.Stdout
	os.Stdout = out
	code := cli.Main(d.Context(), strategies.Registry{}, append(args, "--json", "--store", d.path))
	os.Stdout = stdout
	text, err := os.ReadFile(out.Name())
	if err != nil || code != 0 {
		d.Fatalf("dialai %s: exit code %d, %v", strings.Join(args, " "), code, err)
	}
	return strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n")
}

// alike fails unless a path answers what a command prints: with lists the items as lines, but
// for members that are named, which change with the time.
func (d *terminal) alike(path string, args ...string) {
	d.Helper()
	r := d.want(200, "GET", path, "")
	lines := d.prints(args...)
	items := []json.RawMessage{r.body}
	if bytes.HasPrefix(r.body, []byte(`{"items":`)) {
		var list api.List[json.RawMessage]
		r.into(d.T, &list)
		items = list.Items
	}
	if len(items) != len(lines) {
		d.Fatalf("%s answers %d items, dialai %s prints %d lines: %s", path, len(items), strings.Join(args, " "), len(lines), r.body)
	}
	for i := range items {
		if got, want := strings.TrimSpace(string(items[i])), strings.TrimSpace(lines[i]); got != want || len(got) < 3 {
			d.Errorf("%s answers\n%s\ndialai %s prints\n%s", path, got, strings.Join(args, " "), want)
		}
	}
}

// told appends notes to the agent_log of a session.
func (d *desk) told(s api.Session, notes ...string) {
	d.Helper()
	id, err := session.ParseID(s.SessionID)
	if err != nil {
		d.Fatal(err)
	}
	for i, note := range notes {
		data, _ := json.Marshal(map[string]string{"text": note})
		if err := d.runner.Store().AppendAgentLog(d.Context(), id, int64(i), session.AgentEvent{Kind: "note", Data: data}); err != nil {
			d.Fatal(err)
		}
	}
}
