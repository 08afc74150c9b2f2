package session_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

//go:generate go test -run ^TestAskDrawing$ -write-drawing .

var writeDrawing = flag.Bool("write-drawing", false, "draw the states of an ask in ARCHITECTURE.md")

// TestAskDrawing compares the diagram of ARCHITECTURE.md with the table that the fold
// goes by.
func TestAskDrawing(t *testing.T) {
	const path, begin, end = "../ARCHITECTURE.md", "<!-- states of an ask: written by go generate ./session -->\n```mermaid\n", "```\n<!-- end of the states of an ask -->"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(data), begin)
	drawn, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the states of an ask", path)
	}
	want := session.AskDrawing()
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

// TestAskStates takes an ask of one dollar through what may come of it: the status that
// follows, and what is charged.
func TestAskStates(t *testing.T) {
	failed := func(code string, u specialist.Usage) session.Data {
		return &session.AskFailed{SpecialistID: "w", Ask: 1, Role: machine.Proposer, Code: code, Usage: u}
	}
	said := specialist.Usage{}.WithCost(3 * exact.Dollar)
	for _, c := range []struct {
		name     string
		accepted bool
		event    session.Data
		status   string
		charged  exact.Money
	}{
		{"failed with a cost", false, failed(session.CodeIllegal, said), "failed", 3 * exact.Dollar},
		{"timed out", true, failed(session.CodeTimeout, specialist.Usage{Estimated: true}.WithCost(exact.Dollar)), "failed", exact.Dollar},
		{"no room", false, failed("budget_usd", specialist.Usage{}.WithCalls(0, 0)), "refused", 0},
		{"decided without it", false, failed(session.CodeCancelled, specialist.Usage{Estimated: true}.WithCost(exact.Dollar)), "cancelled", exact.Dollar},
		{"lost", false, failed(session.CodeLost, specialist.Usage{Estimated: true}.WithCost(exact.Dollar)), "lost", exact.Dollar},
		{"late", false, &session.Discarded{SpecialistID: "w", Round: 1, Ask: 1, Code: session.CodeSuperseded, Usage: said}, "late", 3 * exact.Dollar},
		{"of a former request", false, &session.Discarded{SpecialistID: "w", Round: 1, Ask: 1, Code: session.CodeTakenOver, Usage: said}, "open", 3 * exact.Dollar},
		{"late without a cost", false, &session.Discarded{SpecialistID: "w", Round: 1, Ask: 1, Code: session.CodeSuperseded}, "late", 0},
		{"ended", false, &session.Ended{Status: session.Stopped}, "cancelled", exact.Dollar},
		{"ended while accepted", true, &session.Ended{Status: session.Stopped}, "cancelled", exact.Dollar},
	} {
		status, spent := session.AfterAsk(started(t), c.accepted, c.event)
		if status != c.status || spent.Money != c.charged {
			t.Errorf("%s: the ask is %s, charged were $%s; want %s, $%s", c.name, status, spent.Money, c.status, c.charged)
		}
	}
}
