package runner_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/dialai/dialai/runner"
)

//go:generate go test -run ^TestRoundDrawing$ -write-drawing .

var writeDrawing = flag.Bool("write-drawing", false, "draw the states of a round in ARCHITECTURE.md")

// TestRoundDrawing compares the diagram of ARCHITECTURE.md with the table that a step
// goes by.
func TestRoundDrawing(t *testing.T) {
	const path, begin, end = "../ARCHITECTURE.md", "<!-- states of a round: written by go generate ./runner -->\n```mermaid\n", "```\n<!-- end of the states of a round -->"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(data), begin)
	drawn, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the states of a round", path)
	}
	want := runner.RoundDrawing()
	switch {
	case drawn == want:
	case *writeDrawing:
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s draws\n%s\nthe table says\n%s", path, drawn, want)
	}
}
