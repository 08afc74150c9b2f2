package tui

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/exp/golden"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/machines"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/strategies"
	"github.com/dialai/dialai/undertaking"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC
	os.Exit(m.Run())
}

// id matches the ids of sessions, which differ.
var id = regexp.MustCompile(`\b[0-9a-f]{8}\b`)

func drawn(m *model) string {
	content, _, _ := m.draw()
	return id.ReplaceAllString(content, "00000000")
}

// acts does nothing, and can do all.
var acts = Acts{
	Begin: func(string) (string, error) { return "", nil }, Rule: func(Ruling) (string, error) { return "", nil },
	Hold: func() {}, Resume: func() (string, error) { return "", nil },
}

// scenes are what each screen is drawn of.
var scenes = []struct {
	name string
	of   func(t testing.TB) *works
	do   func(m *model)
}{
	{"opening", nil, func(*model) {}},
	{"oracle", planned, func(*model) {}},
	{"weaving", working, func(m *model) { m.entry.insert("a line that is typed\nand another") }},
	{"counsel", func(t testing.TB) *works {
		w := working(t)
		w.move("orchestrator", "inquire", `{"message":"Two rows have no amount.","questions":[{"text":"Leave them out?","options":["yes","no"]}]}`)
		return w
	}, func(*model) {}},
	{"decision", judged, func(*model) {}},
	{"choosing", judged, func(m *model) { m.choose(); m.chooser.at = 1 }},
	{"writing", planned, func(m *model) {
		m.choose()
		for m.chooser.list[m.chooser.at].ruling.Transition != "amend" {
			m.chooser.at++
		}
		m.chosen()
		m.chooser.entry.insert("a semicolon, please")
	}},
	{"permission", working, func(m *model) {
		m.now.Prompts = []Prompt{
			{Session: "s", Round: "r", Agent: "claude", Tool: "Bash", Input: "git push origin main", Why: "it is irreversible", Kind: "dangerous", Since: m.now.At.Add(-3 * time.Minute)},
			{Session: "t", Round: "r", Agent: "claude", Tool: "Write", Since: m.now.At},
		}
	}},
	{"record", working, func(m *model) { m.asked = record }},
	{"tasks", judged, func(m *model) { m.asked = tasks }},
	{"log", working, func(m *model) {
		m.asked = logged
		for i := range 40 {
			m.lines = append(m.lines, undertaking.Line{At: m.now.At, State: "weaving", Worker: "orch-2", Pct: 78, Text: fmt.Sprintf("Write file %d.go with a line that is so long that it does not fit into eighty columns, by far", i)})
		}
	}},
	{"help", working, func(m *model) { m.asked = helping }},
	{"leaving", working, func(m *model) { m.quitAt = m.now.At }},
	{"ended", func(t testing.TB) *works {
		w := judged(t)
		w.move("owner", "sound", `{"message":"Yes."}`)
		w.move("manager", "fulfil", `{"message":"The export is there, checked, and judged."}`)
		return w
	}, func(m *model) { m.ended = true }},
	{"failed", working, func(m *model) { m.ended, m.problem = true, errors.New("the store is read-only: d.db") }},
	{"needs-human", func(t testing.TB) *works {
		w := working(t)
		for _, ask := range w.s.OpenAsks() {
			w.withdraw(ask.SpecialistID, "no_move", "orch-2 ended 3 turns without a move")
		}
		w.settle()
		return w
	}, func(*model) {}},
}

// TestScreens draws every screen in three sizes, as it looks without colours, and one with them.
func TestScreens(t *testing.T) {
	for _, s := range scenes {
		for _, size := range [][2]int{{60, 16}, {80, 24}, {120, 40}} {
			t.Run(fmt.Sprintf("%s-%dx%d", s.name, size[0], size[1]), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := scene(t, s.of, s.do, size)
					content := drawn(m)
					golden.RequireEqual(t, []byte(ansi.Strip(content)))
					fits(t, content, size)
				})
			})
		}
		t.Run(s.name+"-styled", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { golden.RequireEqual(t, []byte(drawn(scene(t, s.of, s.do, [2]int{80, 24})))) })
		})
	}
}

func scene(t testing.TB, of func(testing.TB) *works, do func(*model), size [2]int) *model {
	m := newModel(Config{Acts: acts})
	m.width, m.height = size[0], size[1]
	if of != nil {
		m.now = of(t).now()
	}
	do(m)
	return m
}

// fits checks that a screen has as many lines and columns as the terminal.
func fits(t *testing.T, content string, size [2]int) {
	t.Helper()
	lines := strings.Split(content, "\n")
	if len(lines) != size[1] {
		t.Errorf("it has %d lines, want %d", len(lines), size[1])
	}
	for _, line := range lines {
		if w := ansi.StringWidth(line); w != size[0] {
			t.Errorf("a line has %d columns, want %d: %s", w, size[0], line)
		}
	}
}

// TestASCII: with --ascii nothing is drawn that is not ASCII.
func TestASCII(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, s := range scenes {
			m := scene(t, s.of, s.do, [2]int{80, 24})
			m.style.ascii = true
			for _, r := range ansi.Strip(drawn(m)) {
				if r > 0x7e && r != '…' && r != '⏎' && r != '→' {
					t.Errorf("%s has %q", s.name, r)
				}
			}
		}
	})
}

// TestScreenOfState: every state of both machines has a screen.
func TestScreenOfState(t *testing.T) {
	for _, name := range []string{"undertaking", "undertaking-solo"} {
		file, text, _ := machines.Read(name)
		m, err := machine.Parse(file, text, strategies.Checks())
		if err != nil {
			t.Fatal(err)
		}
		for i := range m.States() {
			if s := &m.States()[i]; len(s.Transitions) > 0 && screens[s.Name] == "" {
				t.Errorf("%s has no screen", s.Name)
			}
		}
	}
}

// TestScreenOfEndedAsk: whoever is asked because an agent has given up sees why and what may be chosen,
// in the manager's states too.
func TestScreenOfEndedAsk(t *testing.T) {
	w := begin(t, "undertaking", "Invoice export")
	w.withdraw("manager", "no_move", "manager ended 3 turns without a move")
	w.settle()
	m := newModel(Config{})
	m.now = w.now()
	if got := m.View().Content; m.screen() != decision || !strings.Contains(got, "3 turns without a move") || !strings.Contains(got, "withdraw") {
		t.Errorf("screen %s:\n%s", m.screen(), got)
	}
}

// TestWithheld: what is to be ruled on without sight of the proposals shows none of them, and not why.
func TestWithheld(t *testing.T) {
	file, text, _ := machines.Read("undertaking")
	blind := strings.Replace(string(text), `"quorum": "all",`, `"quorum": "all", "collapse": {},`, 1)
	w := beginText(t, file, []byte(blind), "Invoice export")
	for _, move := range []string{"state_plan", "assent", "awakened", "brief", "begin", "complete", "accept_report", "passed"} {
		w.move("owner", move, `{"message":"m","number":1}`)
	}
	w.move("verifier-a", "sound", `{"message":"It holds.","findings":[]}`)
	w.move("verifier-b", "sound", `{"message":"Indeed.","findings":[]}`)
	m := newModel(Config{})
	m.now, m.height = w.now(), 60
	got := m.View().Content
	if m.screen() != decision || !strings.Contains(got, "2 proposals are withheld") {
		t.Errorf("screen %s:\n%s", m.screen(), got)
	}
	for _, hidden := range []string{"It holds", "Indeed", "Probability"} {
		if strings.Contains(got, hidden) {
			t.Errorf("it tells %q:\n%s", hidden, got)
		}
	}
}

// TestStoppedForBudget: whoever is told that the budget is spent is told how it is raised.
func TestStoppedForBudget(t *testing.T) {
	w := working(t)
	s, err := w.r.Stop(t.Context(), w.s.ID, runner.Stopping{Actor: session.LocalActor("somebody"), Note: "budget: $19.8 of $20 is spent, and the next turn may cost $1"})
	if err != nil {
		t.Fatal(err)
	}
	w.s = s
	m := newModel(Config{})
	if m.now = w.now(); !strings.Contains(m.View().Content, "--raise budget.hard_limit_usd=VALUE --note WHY") {
		t.Errorf("it shows\n%s", m.View().Content)
	}
}

// TestHints: what becomes of what is typed is what the undertaking makes of it.
func TestHints(t *testing.T) {
	w := judged(t)
	if got := hintOf(w.now()); !strings.Contains(got, "the manager hears it with its next turn") {
		t.Errorf("in verifying: %s", got)
	}
	w = planned(t)
	w.move("owner", "assent", "")
	w.move("engine", "awakened", `{"number":1,"message":"m"}`)
	w.move("manager", "escalate", questions)
	if got := hintOf(w.now()); !strings.Contains(got, "What you type is: rule.") {
		t.Errorf("in awaiting_ruling: %s", got)
	}
	w.move("owner", "rule", `{"message":"m"}`)
	w.move("owner", "dismiss", `{"message":"m"}`)
	w.move("owner", "awakened", `{"number":0,"message":"m"}`)
	w.move("manager", "escalate", questions)
	if got := hintOf(w.now()); !strings.Contains(got, "What you type is: recall.") {
		t.Errorf("in awaiting_ruling without a worker: %s", got)
	}
}

// TestCells: ten cells, a tenth each, rounded half up.
func TestCells(t *testing.T) {
	look := style{ascii: true}
	for pct, want := range map[int]int{-1: 0, 0: 0, 4: 0, 5: 1, 14: 1, 15: 2, 74: 7, 75: 8, 78: 8, 84: 8, 85: 9, 94: 9, 95: 10, 100: 10, 130: 10} {
		if got := strings.Count(look.cells(pct), "#"); got != want || len(look.cells(pct)) != 10 {
			t.Errorf("%d %% is %d cells of %d, want %d of 10", pct, got, len(look.cells(pct)), want)
		}
	}
}

func TestRoman(t *testing.T) {
	for n, want := range map[int]string{1: "I", 2: "II", 4: "IV", 9: "IX", 14: "XIV", 40: "XL", 99: "XCIX", 400: "CD", 1994: "MCMXCIV", 3999: "MMMCMXCIX", 0: "0", 4000: "4000"} {
		if got := roman(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}

// TestTooSmall: below sixty columns or sixteen lines there is one line, which says so.
func TestTooSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := working(t)
		for _, size := range [][2]int{{59, 16}, {60, 15}, {20, 5}, {1, 1}, {0, 0}} {
			m := newModel(Config{})
			m.now, m.width, m.height = w.now(), size[0], size[1]
			content, _, _ := m.draw()
			if strings.Contains(content, "\n") || ansi.StringWidth(content) > max(size[0], 0) {
				t.Errorf("at %v it draws %q", size, content)
			}
			if size[0] >= 20 && !strings.Contains(content, fmt.Sprintf("60×16 needed, %d×%d", size[0], size[1])) {
				t.Errorf("at %v it says %q", size, content)
			}
		}
	})
}

// TestHostileText: nothing that comes from outside makes the terminal obey.
func TestHostileText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := `\u001b[2J\u001b]0;x\u0007\u0085\u202e\r\n\ttail`
		w := begin(t, "undertaking", "Export\x1b[2J\x07\u202e")
		w.log("opened", `{"as":"manager","number":1,"agent":"claude`+bad+`","session_id":"m1","since":1}`)
		w.move("manager", "ask", `{"message":"`+bad+`","questions":[{"text":"`+bad+`","options":["`+bad+`"]}]}`)
		w.move("owner", "reply", `{"message":"`+bad+`"}`)
		w.move("manager", "state_plan", strings.ReplaceAll(plan, "An export", bad))
		w.move("owner", "assent", "")
		w.log("opened", `{"as":"orchestrator","number":1,"agent":"`+bad+`","session_id":"o1","since":4}`, "tool", `{"as":"orchestrator","number":1,"tool":"`+bad+`"}`, "task", `{"as":"orchestrator","number":1,"id":1,"text":"`+bad+`","status":"active"}`)
		m := newModel(Config{Acts: acts})
		m.now = w.now()
		m.now.Prompts = []Prompt{{Agent: "\x1b[2J", Tool: "\x1b[2J", Input: "\x1b[2J\x9b2J", Why: "\x07", Kind: "k"}}
		m.lines = []undertaking.Line{{At: m.now.At, State: "\x1b[2J", Text: "\x1b]0;x\x07"}}
		m.said = "\x1b[2J"
		m.entry.insert("\x1b[2J\x07")
		for _, asked := range []screen{"", record, tasks, logged, helping, oracle, weaving, counsel, decision, over} {
			m.asked = asked
			for _, size := range [][2]int{{60, 16}, {120, 60}} {
				m.width, m.height = size[0], size[1]
				content := drawn(m)
				for _, code := range regexp.MustCompile(`\x1b[^m]*?[A-Za-ln-z\x07]`).FindAllString(strings.ReplaceAll(content, "\x1b[m", ""), -1) {
					if !regexp.MustCompile(`^\x1b\[\d*m`).MatchString(code) {
						t.Errorf("%s draws %q", asked, code)
					}
				}
				if strings.ContainsAny(content, "\x07\u009b\u0085\u202e\r\t") {
					t.Errorf("%s draws what a terminal obeys", asked)
				}
				fits(t, content, size)
			}
		}
		if strings.ContainsAny(m.title(), "\x1b\x07\u202e") {
			t.Errorf("the title is %q", m.title())
		}
	})
}
