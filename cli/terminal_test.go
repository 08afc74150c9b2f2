package cli_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
)

const crossroads = `{"machineName": "crossroads", "initialState": "here", "goalState": "there", "states": {
	"here": {"prompt": "Which way?", "transitions": {"left": {"target": "there", "description": "the long way"}, "back": "here", "right": "there"}}, "there": {}}, "specialists": [
	{"role": "proposer", "specialistId": "first", "strategyFnName": "firstAvailable"},
	{"role": "proposer", "specialistId": "last", "strategyFnName": "lastAvailable"},
	{"role": "proposer", "specialistId": "carol", "isHuman": true},
	{"role": "arbiter", "specialistId": "judge"}]}`

// TestInteractive answers at a terminal: wrongly, by number and by name.
func TestInteractive(t *testing.T) {
	h := newHome(t)
	h.file("m.json", crossroads)
	term := h.terminal(nil, "run", "m.json", "--interactive")
	question := term.expect("Decide (1-3, a name, or q to leave it open): ")
	for _, want := range []string{"crossroads: here", "Which way?", "Why you are asked: Cold start", "first  left → there   Choosing first", "  1. left → there", "the long way", "  2. back → here"} {
		if !strings.Contains(question, want) {
			t.Errorf("the question does not say %q:\n%s", want, question)
		}
	}
	for _, wrong := range []string{"4", "0", "-1", "lefft", "", "1.5", "LEFT", "\x1b[A", `"1"`} {
		term.send(wrong + "\n")
		term.expect("is none of the choices.")
		term.expect("Decide (1-3")
	}
	term.send("2\n")
	term.expect("Why? (optional) ")
	term.send("wrong turn\n")
	term.expect("Human carol decided: back → here")
	term.expect("Decide (1-3")
	term.send("  right \n")
	term.expect("Why? (optional) ")
	term.send("\n")
	text := term.ends(0)
	if !strings.Contains(text, "Session complete:\x1b[0m there\n") {
		t.Errorf("it does not say how it ended:\n%s", text)
	}
	id := first(t, `Session ID:    (\S+)`, text)
	if out, _ := h.run(0, "show", id); !strings.Contains(out, "carol (human)  wrong turn\n") {
		t.Errorf("the reason is not kept:\n%s", out)
	}
}

// TestInteractiveLeave leaves a question open, in each way there is; the session
// can be taken up again.
func TestInteractiveLeave(t *testing.T) {
	for name, test := range map[string]struct {
		prompt, type_ string
		code          int
	}{
		"q":               {"Decide (", "q\n", 3},
		"end of input":    {"Decide (", "\x04", 3},
		"Ctrl-C":          {"Decide (", "\x03", 130},
		"Ctrl-C in a why": {"Why? (optional)", "\x03", 130},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			h.file("m.json", crossroads)
			term := h.terminal(nil, "m.json", "-i")
			term.expect("Decide (")
			if test.prompt != "Decide (" {
				term.send("right\n")
				term.expect(test.prompt)
			}
			term.send(test.type_)
			text := term.ends(test.code)
			id := first(t, `Session ID:    (\S+)`, text)
			switch {
			case test.code == 130 && !strings.Contains(text, "interrupted; what was recorded stays. Go on with:\n  dialai resume "+id+"\n"):
				t.Errorf("it does not say how to go on:\n%s", text)
			case test.code == 3 && !strings.Contains(text, "  dialai decide "+id[:8]+" left --question "):
				t.Errorf("it does not say how to decide:\n%s", text)
			}
			h.run(3, "resume", id)
			term = h.terminal(nil, "resume", id, "--interactive")
			term.expect("Decide (")
			term.send("1\n\n")
			term.ends(0)
		})
	}
}

// TestInteractiveHumans asks who decides if several could.
func TestInteractiveHumans(t *testing.T) {
	h := newHome(t)
	h.file("m.json", strings.Replace(crossroads, `{"role": "arbiter"`, `{"role": "proposer", "specialistId": "dan", "isHuman": true}, {"role": "arbiter"`, 1))
	term := h.terminal(nil, "m.json", "-i")
	term.expect("Decide (")
	term.send("right\n")
	term.expect("Who are you (carol, dan)? ")
	term.send("eve\n")
	term.expect(`"eve" may not decide here.`)
	term.expect("Who are you (carol, dan)? ")
	term.send("dan\n\n")
	term.expect("Human dan decided: right → there")
	term.ends(0)

	h.forget()
	term = h.terminal(nil, "m.json", "-i")
	term.expect("Decide (")
	term.send("back\n")
	term.expect("Who are you")
	term.send("q\n")
	term.ends(3)
}

// TestInteractiveParameters asks for the parameters of a transition as JSON, where they are
// more than simple values, until they are right.
func TestInteractiveParameters(t *testing.T) {
	h := newHome(t)
	h.file("m.json", strings.Replace(crossroads, `"right": "there"`, `"right": {"target": "there", "parameters": {"type": "object", "required": ["speed", "via"], "properties": {"speed": {"type": "integer", "minimum": 3}, "via": {"type": "array"}}}}`, 1))
	term := h.terminal(nil, "m.json", "-i")
	term.expect("Decide (")
	term.send("right\n\n")
	term.expect("right takes parameters: {")
	term.expect("Parameters as JSON (empty for none, q to leave it open): ")
	term.send("fast\n")
	term.expect(`That is not JSON; an example: {"speed":3,"via":[]}`)
	term.expect("Parameters as JSON")
	term.send("{\"speed\":1,\"via\":[]}\n")
	term.expect("metaJson does not satisfy the parameters")
	term.expect("Parameters as JSON (empty for that, q to leave it open): ")
	term.send("{\"speed\":30,\"via\":[]}\n")
	term.expect("Human carol decided: right → there")
	term.ends(0)

	h.forget()
	term = h.terminal(nil, "m.json", "-i")
	term.expect("Decide (")
	term.send("right\n\n")
	term.expect("Parameters as JSON")
	term.send("q\n")
	term.ends(3)
}

// driving is what a crossroads asks of who turns right.
const driving = `"right": {"target": "there", "parameters": {"type": "object", "required": ["speed", "road", "lights"], "properties": {
	"speed": {"type": "integer", "minimum": 3, "description": "km/h"}, "road": {"type": "string"}, "lights": {"type": "boolean"},
	"lane": {"enum": ["left", "right"]}, "note": {"type": "string"}, "stops": {"type": "array"}}}}`

// TestInteractiveMembers (C7.4) asks for the members of a payload one by one, each by its
// type, offers what was proposed, and asks again for what is refused.
func TestInteractiveMembers(t *testing.T) {
	h := newHome(t)
	h.file("m.json", strings.Replace(crossroads, `"right": "there"`, driving, 1))
	term := h.terminal(nil, "m.json", "-i")
	term.expect("Decide (")
	term.send("right\n\n")
	term.expect("right takes parameters; q leaves it open, - leaves one out:")
	for _, s := range [][2]string{
		{"  speed (integer; km/h): ", ""}, {"speed is required.", ""}, {"  speed (integer; km/h): ", "fast"}, {`"fast" is no integer, and it has to be one.`, "1"},
		{"  road (string): ", `"42"`}, {"  lights (boolean): ", "true"}, {"  lane (left, right; optional): ", "-"}, {"  note (string; optional): ", ""},
		{"metaJson does not satisfy the parameters", ""}, {"  speed (integer; km/h) [1]: ", "30"},
		{`  road (string) ["42"]: `, ""}, {"  lights (boolean) [true]: ", ""}, {"  lane (left, right; optional): ", "left"}, {"  note (string; optional): ", "q"},
	} {
		term.expect(s[0])
		if s[1] != "" || strings.HasSuffix(s[0], ": ") {
			term.send(s[1] + "\n")
		}
	}
	id := first(t, `Session ID:    (\S+)`, term.ends(3))

	h.run(0, "propose", id, "right", "--as", "first", "--data", `{"speed":50,"road":"A 1","lights":false,"stops":["inn"],"lane":"left"}`)
	term = h.terminal(nil, "resume", id, "-i")
	term.expect("Decide (")
	term.send("right\n\n")
	for _, s := range [][2]string{
		{"  speed (integer; km/h) [50]: ", "80"}, {"  road (string) [A 1]: ", ""}, {"  lights (boolean) [false]: ", ""}, {"  lane (left, right; optional) [left]: ", "-"}, {"  note (string; optional): ", "late"},
	} {
		term.expect(s[0])
		term.send(s[1] + "\n")
	}
	term.ends(0)
	if out, _ := h.run(0, "log", id, "--json"); !strings.Contains(out, `"kind":"executed"`) || !strings.Contains(out, `"metaJson":{"speed":80,"road":"A 1","lights":false,"note":"late","stops":["inn"]}`) {
		t.Errorf("executed is something else:\n%s", out)
	}
}

// TestInteractiveNumbers asks what is meant where a name is the number of
// another choice.
func TestInteractiveNumbers(t *testing.T) {
	machine := `{"machineName": "numbers", "initialState": "here", "goalState": "there", "states": {
		"here": {"transitions": {"2": "a", "1": "b", "3": "there"}}, "a": {"final": true}, "b": {"final": true}, "there": {}}, "specialists": [
		{"role": "proposer", "specialistId": "carol", "isHuman": true}, {"role": "arbiter", "specialistId": "judge"}]}`
	for typed, want := range map[string]string{"1.": "2 → a", `"1"`: "1 → b", "2.": "1 → b", `"2"`: "2 → a"} {
		t.Run(typed, func(t *testing.T) {
			h := newHome(t)
			h.file("m.json", machine)
			term := h.terminal(nil, "m.json", "-i")
			term.expect("Decide (")
			term.send("1\n")
			term.expect(`1 is a name and another's number; write 1. for the number, "1" for the name.`)
			term.expect("Decide (")
			term.send(typed + "\n\n")
			term.expect("Human carol decided: " + want)
			term.ends(6)
		})
	}
	h := newHome(t)
	h.file("m.json", machine)
	term := h.terminal(nil, "m.json", "-i")
	term.expect("Decide (")
	term.send("3\n\n") // the third is named so
	term.expect("Human carol decided: 3 → there")
	term.ends(0)
}

// TestInteractiveRace lets somebody else decide while the question is open.
func TestInteractiveRace(t *testing.T) {
	h := newHome(t)
	h.file("m.json", crossroads)
	term := h.terminal(nil, "m.json", "-i")
	id := strings.TrimSpace(first(t, `Session ID: +(\S+)`, term.expect("Decide (")))
	h.run(0, "decide", id, "left")
	term.send("back\n\n")
	text := term.ends(0)
	if !strings.Contains(text, "Nothing was decided: the question has changed meanwhile.") {
		t.Errorf("it does not say so:\n%s", text)
	}
	if out, _ := h.run(0, "show", id); !strings.Contains(out, "left") || strings.Contains(out, "back") {
		t.Errorf("the second decision counts:\n%s", out)
	}
}

// TestInteractiveOutput keeps questions out of stdout: it holds the round log
// only, without colours if it is no terminal.
func TestInteractiveOutput(t *testing.T) {
	h := newHome(t)
	h.file("m.json", crossroads)
	var out bytes.Buffer
	term := h.terminal(&out, "m.json", "-i")
	term.expect("Decide (")
	term.send("1\n\n")
	term.ends(0)
	if text := out.String(); strings.Contains(text, "Decide") || strings.Contains(text, "\x1b") || !strings.HasSuffix(text, "\nSession complete: there\n") {
		t.Errorf("stdout is\n%s", text)
	}
}

// TestColour: colours are for terminals that can show them, and only if nobody
// minds.
func TestColour(t *testing.T) {
	for name, test := range map[string]struct {
		env  string
		want bool
	}{
		"a terminal":     {"TERM=xterm", true},
		"NO_COLOR":       {"NO_COLOR=1", false},
		"empty NO_COLOR": {"NO_COLOR=", true},
		"dumb":           {"TERM=dumb", false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			h.env = append(h.env, test.env)
			h.file("m.json", crossroads)
			text := h.terminal(nil, "m.json").ends(3)
			if got := strings.Contains(text, "\x1b["); got != test.want {
				t.Errorf("colours: %t, want %t\n%q", got, test.want, text)
			}
		})
	}
}

const slow = `{"machineName": "slow", "initialState": "here", "goalState": "there", "states": {"here": {"transitions": {"on": "there"}}, "there": {}}, "specialists": [
	{"role": "proposer", "specialistId": "a-service-with-a-name-that-is-longer-than-any-terminal-is-wide", "strategyWebhookUrl": "http://$HOOK/wait", "webhookTokenName": "EXAMPLE_WEBHOOK_TOKEN"}]}`

// TestCountdownLeavesPrompts: where a timer runs, no line is written over what somebody is asked
// and types (cases.md 7.4).
func TestCountdownLeavesPrompts(t *testing.T) {
	t.Parallel() // it takes two seconds
	h := newHome(t)
	h.file("m.json", strings.Replace(crossroads, `"here": {`, `"here": {"due": {"in": "24h", "then": "left"}, `, 1))
	term := h.terminal(nil, "m.json", "-i")
	term.expect("Decide (")
	for begin := time.Now(); time.Since(begin) < 1600*time.Millisecond; {
		term.send("no\n")
		if text := term.expect("Decide ("); strings.Contains(text, "\x1b[K") {
			t.Fatalf("a line is written over the question: %q", text)
		}
	}
	term.send("right\n\n")
	term.ends(0)
}

// TestProgress: a terminal is told whom a long step waits for, in one line that
// fits and that is gone afterwards.
func TestProgress(t *testing.T) {
	h := newHome(t)
	service := h.service()
	h.file("m.json", strings.ReplaceAll(slow, "$HOOK", service.address()))
	var out bytes.Buffer
	term := h.terminal(&out, "m.json")
	term.expect("\r\x1b[Kwaiting for ")
	if rest := term.expect("s)"); utf8.RuneCountInString("waiting for "+rest+"s)") > 60 {
		t.Errorf("the line is too long: %q", rest)
	}
	close(service.released)
	if text := term.ends(0); !strings.HasSuffix(text, "\r\x1b[K") {
		t.Errorf("the line stays: %q", text)
	}
	if strings.Contains(out.String(), "waiting") {
		t.Errorf("stdout has it:\n%s", &out)
	}
}

// TestNoProgress: no line for a dumb terminal, nor where JSON or silence was
// asked for, and none if stderr is no terminal. A second session is what tells
// that a second has passed: it prints its own line.
func TestNoProgress(t *testing.T) {
	for name, args := range map[string][]string{"quiet": {"--quiet"}, "json": {"--json"}, "dumb": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it takes two seconds
			h := newHome(t)
			service := h.service()
			h.file("m.json", strings.ReplaceAll(slow, "$HOOK", service.address()))
			h.file("crossroads.json", crossroads)
			h.run(3, "crossroads.json") // makes the store
			loud := h.terminal(nil, "m.json")
			if name == "dumb" {
				h.env = append(h.env, "TERM=dumb")
			}
			silent := h.terminal(nil, append(args, "m.json")...)
			h.awaits(service, 2)
			loud.expect("waiting for ")
			loud.expect("(2s)")
			close(service.released)
			loud.ends(0)
			if text := silent.ends(0); strings.Contains(text, "waiting for") {
				t.Errorf("it prints progress: %q", text)
			}
		})
	}
}

// TestInterrupt: Ctrl-C while a service is asked ends the program with 130; the
// ask is on record, and resume repeats it.
func TestInterrupt(t *testing.T) {
	h := newHome(t)
	service := h.service()
	h.file("m.json", strings.ReplaceAll(slow, "$HOOK", service.address()))
	term := h.terminal(nil, "m.json")
	h.awaits(service, 1)
	term.send("\x03")
	text := term.ends(130)
	id := first(t, `Go on with:\n  dialai resume (\S+)\n`, text)
	close(service.released)
	if out, _ := h.run(0, "resume", id, "--quiet"); out != "Session complete: there\n" {
		t.Errorf("resume prints %q", out)
	}
	h.awaits(service, 2)
	h.run(0, "store", "verify")
}

// TestInterruptWhileReading interrupts the program while it waits for a file that does
// not come.
func TestInterruptWhileReading(t *testing.T) {
	h := newHome(t)
	pipe := filepath.Join(h.dir, "pipe.json")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	h.file("guards.json", `{"limits": {"max_steps": 2}}`)
	h.file("budget.json", `{"hard_limit_calls": 2}`)
	h.file("answer.csv", "question,worker,answer\nq,w,yes\n")
	h.file("truth.csv", "question,truth\nq,yes\n")
	for _, args := range [][]string{
		{"pipe.json"}, {"lint", "pipe.json"}, {"analyze", "pipe.json"}, {"replay", "pipe.json", "--guards", "guards.json"}, {"check", "--guards", "pipe.json"},
		{"budget", "pipe.json"}, {"budget", "budget.json", "--trace", "pipe.json"}, {"vectors", "pipe.json"}, {"bench", "decisions", "--data", ".", "--workers", "pipe.json"},
	} {
		cmd := h.command(args...)
		var problems bytes.Buffer
		cmd.Stderr = &problems
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(patience, func() { cmd.Process.Kill() })
		writer, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits until the program reads
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if got := exitOf(t, cmd.Wait()); got != 130 || !strings.Contains(problems.String(), "interrupted") {
			t.Errorf("dialai %q: exit code %d\n%s", args, got, &problems)
		}
		timer.Stop()
		writer.Close()
	}
}

// TestInterruptWhileMeasuring interrupts a comparison of strategies that would take
// minutes.
func TestInterruptWhileMeasuring(t *testing.T) {
	h := newHome(t)
	answers, truths := "question,worker,answer\nunknown,w,c\n", "question,truth\n"
	for q := range 400 {
		truths += fmt.Sprintf("q%d,c%d\n", q, q%50)
		for w := range 10 {
			answers += fmt.Sprintf("q%d,w%d,c%d\n", q, w, (q+q*w%7)%50)
		}
	}
	h.file("answer.csv", answers)
	h.file("truth.csv", truths)
	cmd := h.command("bench", "decisions", "--data", ".", "--splits", "1000", "--orders", "1000")
	problems, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(patience, func() { cmd.Process.Kill() }).Stop()
	lines := bufio.NewReader(problems)
	if line, err := lines.ReadString('\n'); !strings.Contains(line, "its answers are left out") { // the next thing is to measure
		t.Fatalf("it said %q, %v", line, err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(lines)
	if got := exitOf(t, cmd.Wait()); got != 130 || !strings.Contains(string(rest), "interrupted") {
		t.Errorf("exit code %d\n%s", got, rest)
	}
}

// TestInterruptWhileReadingStdin interrupts every command that reads stdin while
// nothing comes: it ends at once, with 130.
func TestInterruptWhileReadingStdin(t *testing.T) {
	h := newHome(t)
	h.file("guards.json", `{"limits": {"max_steps": 2}}`)
	h.file("budget.json", `{"hard_limit_calls": 2}`)
	for _, args := range [][]string{
		{"-"}, {"run", "-"}, {"lint", "-"}, {"graph", "-"}, {"simulate", "-"},
		{"check", "--guards", "guards.json"}, {"check", "--guards", "guards.json", "--stateful"}, {"check", "--guards", "-"},
		{"replay", "-", "--guards", "guards.json"}, {"replay", "guards.json", "--guards", "-"}, {"analyze", "-"},
		{"budget", "-"}, {"budget", "budget.json", "--trace", "-"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			cmd := h.command(args...)
			var problems bytes.Buffer
			cmd.Stderr = &problems
			reader, writer, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer writer.Close()
			cmd.Stdin = reader
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			reader.Close()
			defer time.AfterFunc(patience, func() { cmd.Process.Kill() }).Stop()
			taken(t, writer)
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			if got := exitOf(t, cmd.Wait()); got != 130 || problems.String() != "interrupted\n" {
				t.Errorf("exit code %d\n%s", got, &problems)
			}
		})
	}
}

// taken writes more blanks than a pipe holds, so that they are written only once the
// program at the other end reads, and waits for more.
func taken(t *testing.T, w *os.File) {
	t.Helper()
	if err := w.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteString(strings.Repeat(" ", 1<<18)); err != nil {
		t.Fatalf("the program does not read: %v", err)
	}
}
