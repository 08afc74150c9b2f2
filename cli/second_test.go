package cli_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// payments is a machine in which two humans rule before anything is executed.
const payments = `{"machineName":"payments","initialState":"due","goalState":"paid","secondHuman":{"rate":0.5,"irreversibleRate":1,"when":"before"},
	"states":{"due":{"prompt":"Pay?","transitions":{"hold":{"target":"held","irreversible":true},"wire":{"target":"paid","irreversible":true}}},"held":{"final":true},"paid":{}},
	"specialists":[{"role":"proposer","specialistId":"first","strategyFnName":"firstAvailable"},{"role":"arbiter","specialistId":"by"},
	{"role":"proposer","specialistId":"carol","isHuman":true},{"role":"proposer","specialistId":"dave","isHuman":true},{"role":"proposer","specialistId":"erin","isHuman":true}]}`

var (
	uuids  = regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})?\b`)
	hashes = regexp.MustCompile(`\b[0-9a-f]{64}\b|\b[0-9a-f]{12}\b`)
	times  = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`)
)

// plain returns a text without ids, hashes and times, which differ in every session.
func plain(text string) string {
	for _, p := range []*regexp.Regexp{uuids, hashes, times, agePattern} {
		text = p.ReplaceAllString(text, "#")
	}
	return text
}

// TestRulingsAreConcealed has a human choose one thing in one session and another in
// a second: no command shows anything by which they could be told apart, as long as
// the ruling waits for another human's.
func TestRulingsAreConcealed(t *testing.T) {
	var seen [2][]string
	for i, chosen := range []string{"hold", "wire"} {
		h := newHome(t)
		h.file("payments.json", payments)
		out, _ := h.run(3, "payments.json", "--json")
		id := first(t, `"sessionId":"([^"]+)"`, out)
		round := first(t, `"roundId":"([^"]+)"`, out)
		show := func(code int, args ...string) {
			for _, more := range [][]string{nil, {"--json"}, {"--verbose"}} {
				stdout, stderr := h.run(code, append(append([]string{}, args...), more...)...)
				if text := plain(stdout + stderr); strings.Contains(text, "sesame") {
					t.Errorf("%q shows why carol chose %s:\n%s", args, chosen, text)
				} else {
					seen[i] = append(seen[i], fmt.Sprint(args[0], more, "\n", text))
				}
			}
		}
		views := func() {
			for _, args := range [][]string{{"inbox"}, {"show", id}, {"log", id}, {"log", id, "--payload", "full"}, {"explain", id}, {"explain", id, "--show-proposals"},
				{"sessions"}, {"metrics", "payments"}, {"trust", "list", "payments"}, {"audit", id}} {
				show(0, args...)
			}
			show(3, "resume", id)
			stdout, _ := h.run(0, "log", id, "--guard")
			seen[i] = append(seen[i], plain(stdout))
		}
		rule := func() {
			stdout, stderr := h.run(3, "decide", id, chosen, "--round", round, "--as", "carol", "--reasoning", "sesame", "--data", `{"why":"sesame"}`, "--json")
			seen[i] = append(seen[i], plain(stdout+stderr))
		}
		rule()
		views()
		stdout, stderr := h.run(3, "decide", id, "--withdraw", "--as", "carol")
		seen[i] = append(seen[i], strings.Replace(plain(stdout+stderr), "carol chose "+chosen, "carol chose it", 1)) // she may see that
		show(0, "log", id)
		rule()
		views()
		end := map[string]int{"hold": 6, "wire": 0}[chosen]
		if stdout, _ = h.run(end, "decide", id, chosen, "--round", round, "--as", "dave", "--data", `{"why":"sesame"}`); !strings.Contains(stdout, "Humans carol and dave decided: "+chosen) {
			t.Errorf("both chose %s:\n%s", chosen, stdout)
		}
		if log, _ := h.run(0, "log", id); strings.Count(log, "sesame") < 3 {
			t.Errorf("executed, the rulings are still kept back:\n%s", log)
		}
	}
	for i := range min(len(seen[0]), len(seen[1])) {
		if seen[0][i] != seen[1][i] {
			t.Errorf("what is shown depends on what carol chose:\n%s\nor\n%s", seen[0][i], seen[1][i])
		}
	}
	if len(seen[0]) != len(seen[1]) || len(seen[0]) < 40 {
		t.Errorf("%d and %d views were compared", len(seen[0]), len(seen[1]))
	}
}

// TestContestedRulingsShowTheirPayloads: whoever settles what two others chose with different
// payloads sees both in full, in every view, and executes neither without writing it.
func TestContestedRulingsShowTheirPayloads(t *testing.T) {
	h := newHome(t)
	h.file("payments.json", payments)
	out, _ := h.run(3, "payments.json", "--json")
	id, round := first(t, `"sessionId":"([^"]+)"`, out), first(t, `"roundId":"([^"]+)"`, out)
	long := strings.Repeat("x", 130)
	rule := func(who, what string, more ...string) {
		h.run(3, append([]string{"decide", id, what, "--round", round, "--as", who}, more...)...)
	}
	rule("carol", "wire", "--data", `{"reference":"`+long+`","iban":"DE11","amount":1}`)
	rule("dave", "wire", "--data", `{"reference":"`+long+`","iban":"FR22","amount":1000000}`)
	rule("erin", "hold")
	for _, args := range [][]string{{"inbox"}, {"show", id}, {"show", id, "--as", "erin"}} {
		if out, _ := h.run(0, args...); !strings.Contains(out, "DE11") || !strings.Contains(out, "FR22") || !strings.Contains(out, "1000000") || strings.Contains(out, "--data") {
			t.Errorf("%q shows\n%s", args, out)
		}
	}
	if out, _ := h.run(0, "show", id, "--as", "carol"); strings.Count(out, "DE11") != 2 || strings.Count(out, "FR22") != 1 {
		t.Errorf("carol is handed another's payload:\n%s", out)
	}
	term := h.terminal(nil, "resume", id, "--interactive")
	term.expect("Decide (1-2")
	term.send("wire\ncarol\n\n")
	term.expect("The rulings for wire differ in what goes with it.")
	term.send("q\n")
	term.ends(3)
	if out, _ := h.run(0, "log", id, "--json"); strings.Contains(out, `"kind":"executed"`) {
		t.Errorf("something was executed:\n%s", out)
	}
}
