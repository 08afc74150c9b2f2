package cli

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/guards"
	"github.com/dialai/dialai/strategies"
)

//go:generate go test -run ^TestReference$ -write-reference .

var writeReference = flag.Bool("write-reference", false, "write docs/cli.md")

// TestReference compares docs/cli.md with the help texts of the program, of which
// it is made.
func TestReference(t *testing.T) {
	const path = "../docs/cli.md"
	want := reference(t)
	if *writeReference {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/cli.md is not what the program says: go generate ./cli writes it")
	}
}

// reference returns the help of every command that is listed, as Markdown.
func reference(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("# Commands\n\nThis is what `dialai <command> --help` prints. It is generated (`go generate ./cli`).\n\n")
	root := testRoot(io.Discard)
	fmt.Fprintf(&b, "Every command has these flags beside its own:\n\n```text\n%s```\n\n", root.PersistentFlags().FlagUsages())
	all := commands(root)
	for _, c := range all {
		path := c.CommandPath()
		fmt.Fprintf(&b, "- [%s](#%s): %s\n", path, strings.ReplaceAll(path, " ", "-"), c.Short)
	}
	for _, c := range all {
		var help bytes.Buffer
		c.InitDefaultHelpFlag()
		c.SetOut(&help)
		if err := c.Help(); err != nil {
			t.Fatal(err)
		}
		own, _, _ := strings.Cut(help.String(), "\nGlobal Flags:\n")
		fmt.Fprintf(&b, "\n## %s\n\n```text\n%s\n```\n", c.CommandPath(), strings.TrimSpace(own))
	}
	return b.Bytes()
}

func testRoot(out io.Writer) *cobra.Command {
	a := &app{App: &command.App{Registry: strategies.Registry{}, In: strings.NewReader(""), Out: out, Err: out, Lookup: func(string) (string, bool) { return "", false }}}
	root := a.root()
	root.SetContext(context.Background())
	return root
}

// commands returns a command and those under it, in the order of help.
func commands(c *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		if !sub.Hidden {
			list = append(list, commands(sub)...)
		}
	}
	return list
}

// TestHelp holds every command to what its help owes to people: what it does at
// length, an example that names it, and a text for every flag.
func TestHelp(t *testing.T) {
	for _, c := range commands(testRoot(io.Discard)) {
		if c.Long == "" || c.Long == c.Short {
			t.Errorf("%s: help does not say more than its line in the list", c.CommandPath())
		}
		if !c.Runnable() && !c.HasSubCommands() { // a topic
			continue
		}
		if !strings.Contains(c.Example, c.CommandPath()) {
			t.Errorf("%s: no example", c.CommandPath())
		}
		for line := range strings.SplitSeq(c.Long+"\n"+c.Example, "\n") {
			if len([]rune(line)) > 90 {
				t.Errorf("%s: a line of help is too wide: %s", c.CommandPath(), line)
			}
		}
		for line := range strings.SplitSeq(c.LocalFlags().FlagUsages(), "\n") {
			if fields := strings.Fields(line); len(fields) > 0 && len(fields) < 3 {
				t.Errorf("%s: a flag without a text: %s", c.CommandPath(), line)
			}
		}
	}
}

// TestReadmeNamesCommands: README's table of commands leaves none out and names none
// that is not there.
func TestReadmeNamesCommands(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## Commands\n")
	table, _, _ = strings.Cut(table, "\n## ")
	named := map[string]bool{}
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		for i, quoted := range strings.Split(cell, "`") {
			if words := strings.Fields(strings.TrimPrefix(quoted, "dialai ")); i%2 == 1 && len(words) > 0 {
				named[words[0]] = true
			}
		}
	}
	for _, c := range testRoot(io.Discard).Commands() {
		if c.IsAvailableCommand() && !named[c.Name()] {
			t.Errorf("README's table of commands lacks %s", c.Name())
		}
		delete(named, c.Name())
	}
	for _, known := range []string{"FILE", "dialai", "completion", "help"} {
		delete(named, known)
	}
	if len(named) > 0 {
		t.Errorf("README's table names commands that are not there: %v", named)
	}
}

// TestEmptyFlags gives every flag that takes text none, as a script does whose variable
// is not set: that is wrong usage, never the flag left out, which would check less or mean
// whoever is the default.
func TestEmptyFlags(t *testing.T) {
	tried := map[string]bool{}
	for _, c := range commands(testRoot(io.Discard)) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !slices.Contains([]string{"string", "stringArray", "stringSlice"}, f.Value.Type()) {
				return
			}
			for _, empty := range []string{"", " "} {
				root := testRoot(io.Discard)
				for _, c := range commands(root) { // whatever it does, it has been called with wrong flags
					c.Args, c.RunE = cobra.ArbitraryArgs, func(*cobra.Command, []string) error { return nil }
				}
				root.SetArgs(append(strings.Fields(c.CommandPath())[1:], "--"+f.Name+"="+empty))
				err := root.Execute()
				if code := command.ExitCode(t.Context(), err); err == nil || !strings.Contains(err.Error(), "--"+f.Name+" is empty") || code != command.ExitUsage && code != guards.CheckInvalid {
					t.Errorf("%s --%s=%q: exit code %d: %v", c.CommandPath(), f.Name, empty, code, err)
				}
			}
			tried[f.Name] = true
		})
	}
	for _, name := range []string{"as", "head", "round", "question", "note", "raise", "guards", "store", "data", "drop", "reasoning"} {
		if !tried[name] {
			t.Errorf("--%s was not tried", name)
		}
	}
}
