package cli_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

const longSimulation = "1000000"

// TestMeter: on a terminal, what takes long says how far it is, in one line that is gone
// afterwards; stdout does not have it.
func TestMeter(t *testing.T) {
	h := newHome(t)
	h.file("m.json", crossroads)
	h.file("panel.json", `{"specialists":[{"id":"a","p":0.9},{"id":"b","p":0.8}]}`)
	answers, truths := "question,worker,answer\n", "question,truth\n"
	for q := range 400 {
		truths += fmt.Sprintf("q%d,c%d\n", q, q%50)
		for w := range 10 {
			answers += fmt.Sprintf("q%d,w%d,c%d\n", q, w, (q+q*w%7)%50)
		}
	}
	h.file("answer.csv", answers)
	h.file("truth.csv", truths)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"simulate", "--spec", "panel.json", "--rounds", longSimulation}, " of 1,000,000 rounds, "},
		{[]string{"bench", "decisions", "--data", ".", "--splits", "1000", "--orders", "1000"}, "measuring "},
	} {
		var out bytes.Buffer
		term := h.terminal(&out, c.args...)
		term.expect("\r\x1b[K")
		term.expect(c.want)
		term.send("\x03")
		if text := term.ends(130); !strings.Contains(text, "\r\x1b[K") {
			t.Errorf("%q: the line stays: %q", c.args, text)
		}
		if out.Len() > 0 {
			t.Errorf("%q: stdout has\n%s", c.args, &out)
		}
	}
}

// TestNoMeter: no line for a dumb terminal, nor where JSON or silence was asked for. That
// another terminal has one tells that the time for it has come.
func TestNoMeter(t *testing.T) {
	for name, args := range map[string][]string{"quiet": {"--quiet"}, "json": {"--json"}, "dumb": {}} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			h.file("panel.json", `{"specialists":[{"id":"a","p":0.9},{"id":"b","p":0.8}]}`)
			long := []string{"simulate", "--spec", "panel.json", "--rounds", longSimulation}
			if name == "dumb" {
				h.env = append(h.env, "TERM=dumb")
			}
			silent := h.terminal(nil, append(args, long...)...)
			h.env = append(h.env, "TERM=xterm")
			loud := h.terminal(nil, long...)
			loud.expect(" of 1,000,000 rounds, ")
			for _, term := range []*terminal{loud, silent} {
				term.send("\x03")
			}
			loud.ends(130)
			if text := silent.ends(130); strings.Contains(text, "rounds") || strings.Contains(text, "\x1b[K") {
				t.Errorf("it prints progress: %q", text)
			}
		})
	}
}
