package tui

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"pgregory.net/rapid"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/undertaking"
)

// press returns the key of a name.
func press(name string) tea.KeyPressMsg {
	named := map[string]rune{
		"enter": tea.KeyEnter, "tab": tea.KeyTab, "esc": tea.KeyEscape, "backspace": tea.KeyBackspace, "delete": tea.KeyDelete, "up": tea.KeyUp, "down": tea.KeyDown,
		"left": tea.KeyLeft, "right": tea.KeyRight, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "home": tea.KeyHome, "end": tea.KeyEnd,
		"f1": tea.KeyF1, "f2": tea.KeyF2, "f3": tea.KeyF3, "f4": tea.KeyF4, "f5": tea.KeyF5, "f6": tea.KeyF6,
	}
	mod, rest := tea.KeyMod(0), name
	for prefix, m := range map[string]tea.KeyMod{"ctrl+": tea.ModCtrl, "alt+": tea.ModAlt} {
		if after, found := strings.CutPrefix(rest, prefix); found {
			mod, rest = mod|m, after
		}
	}
	if code, known := named[rest]; known {
		return tea.KeyPressMsg{Code: code, Mod: mod}
	}
	k := tea.KeyPressMsg{Code: []rune(rest)[0], Mod: mod}
	if mod == 0 {
		k.Text = rest
	}
	return k
}

// A hand types on a model, and runs what its keys ask for.
type hand struct {
	*model
	said []string
}

func newHand(t testing.TB, w *works) *hand {
	t.Helper()
	h := &hand{}
	note := func(format string, args ...any) { h.said = append(h.said, fmt.Sprintf(format, args...)) }
	h.model = newModel(Config{Acts: Acts{
		Begin: func(text string) (string, error) { note("begin %q", text); return "", nil },
		Say: func(text string, d agent.Delivery) (string, error) {
			note("say %q %s", text, d)
			return "it is heard", nil
		},
		Rule: func(r Ruling) (string, error) {
			note("rule %s %q in %s", r.Transition, r.Message, r.Round)
			return "", errors.New("the question has changed")
		},
		Hold:   func() { note("hold") },
		Resume: func() (string, error) { note("resume"); return "asked again", nil },
	}})
	if w != nil {
		h.now = w.now()
	}
	return h
}

// types types keys: names in angle brackets, and text.
func (h *hand) types(keys ...string) *hand {
	for _, k := range keys {
		names := strings.Split(k, "")
		if name, named := strings.CutPrefix(k, "<"); named {
			names = []string{strings.TrimSuffix(name, ">")}
		}
		for _, name := range names {
			if _, cmd := h.Update(press(name)); cmd != nil {
				if msg := cmd(); msg != nil {
					h.Update(msg)
				}
			}
		}
	}
	return h
}

func (h *hand) did(t testing.TB, want ...string) {
	t.Helper()
	if got := strings.Join(h.said, "; "); got != strings.Join(want, "; ") {
		t.Errorf("it did %s\nwant   %s", got, strings.Join(want, "; "))
	}
	h.said = nil
}

// TestKeys: what each key does.
func TestKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := working(t)
		h := newHand(t, w)
		h.types("use tabs", "<enter>").did(t, `say "use tabs" steer`)
		if h.model.said != "it is heard" {
			t.Errorf("it says %q", h.model.said)
		}
		h.types("<tab>", "later", "<enter>", "<tab>", "a", "<alt+enter>", "b", "<enter>", "<tab>", "x", "<backspace>", "y", "<left>", "z", "<enter>").
			did(t, `say "later" after`, `say "a\nb" now`, `say "zy" steer`)
		h.types("<enter>", "   ", "<enter>").did(t)
		h.types("<f3>", "/hold", "<enter>", "/resume", "<enter>").did(t, "hold", "hold", "resume")
		for k, want := range map[string]screen{"<f1>": helping, "<f4>": tasks, "<f5>": record, "<f6>": logged} {
			if h.types(k); h.screen() != want {
				t.Errorf("%s shows %s", k, h.screen())
			}
			if h.types(k); h.screen() != weaving {
				t.Errorf("%s again shows %s", k, h.screen())
			}
		}
		if h.types("/log orch", "<enter>"); h.screen() != logged || h.filter != "orch" {
			t.Errorf("/log shows %s of %q", h.screen(), h.filter)
		}
		if h.types("<esc>"); h.screen() != weaving || h.filter != "" {
			t.Errorf("Esc shows %s", h.screen())
		}
		h.types("/nothing", "<enter>").did(t)
		if !strings.Contains(h.model.said, "there is no /nothing") {
			t.Errorf("it says %q", h.model.said)
		}
	})
}

// TestChooser: the overlay has the keys, makes the move of the round that was shown, and asks for
// the message that a move needs.
func TestChooser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := planned(t)
		h := newHand(t, w)
		shown := w.s.Key().ID()
		h.types("<f2>")
		for i, c := range h.chooser.list {
			if c.ruling.Transition == "amend" {
				h.types(fmt.Sprint(i + 1))
			}
		}
		w.move("owner", "amend", `{"message":"in another process"}`)
		w.move("manager", "state_plan", strings.ReplaceAll(plan, "An export", "Another export"))
		h.Update(news{now: func() *Now { n := w.now(); return &n }()})
		if h.types("<enter>").did(t); h.chooser == nil || !strings.Contains(h.model.said, "needs a message") {
			t.Errorf("an empty message: %q", h.model.said)
		}
		h.types("not quite", "<enter>").did(t, `rule amend "not quite" in `+shown)
		if h.model.said != "not done: the question has changed" || h.chooser != nil {
			t.Errorf("it says %q", h.model.said)
		}
		h.types("<f2>", "<down>", "<down>", "<down>", "<up>", "<esc>").did(t)
		if h.chooser != nil {
			t.Error("Esc leaves it open")
		}
		h.types("assent", "<enter>").did(t, `say "assent" steer`)
		h.types("/assent", "<enter>").did(t, `rule assent "" in `+w.s.Key().ID())
	})
}

// TestClosedMoves: what cannot be chosen is not offered, and the screen says why it cannot.
func TestClosedMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := working(t)
		w.move("orchestrator", "hand_off", record1)
		w.move("manager", "question", `{"message":"How many?"}`)
		w.move("engine", "lost", `{"message":"it has gone"}`)
		w.move("manager", "escalate", `{"message":"What now?","questions":[{"text":"What now?"}]}`)
		h := newHand(t, w)
		h.width, h.height = 80, 60
		for _, c := range choicesOf(h.now) {
			if c.ruling.Transition == "rule" || c.ruling.Transition == "carry_on" {
				t.Errorf("%s is offered without a worker", c.ruling.Transition)
			}
		}
		content, _, _ := h.draw()
		if !strings.Contains(content, "carry_on is closed: ") || !strings.Contains(content, "What now?") {
			t.Errorf("it shows\n%s", content)
		}
	})
}

// TestLevelsShow: a soft level is yellow, a hard one red.
func TestLevelsShow(t *testing.T) {
	for level, code := range map[agent.Level]string{"": "", agent.Soft: "\x1b[33m", agent.Hard: "\x1b[31m"} {
		row := workerRow(&undertaking.Worker{As: "orchestrator", Number: 1, Level: level}, style{})(60)[0]
		if code != "" != strings.Contains(row, "\x1b[") || !strings.Contains(row, code) {
			t.Errorf("%s is %q", level, row)
		}
	}
}

// TestPermissionKeys: a permission that waits is what F2 decides.
func TestPermissionKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHand(t, working(t))
		h.now.Prompts = []Prompt{{Session: "p", Round: "r", Tool: "Bash"}}
		h.types("<f2>", "<enter>").did(t, `rule allow "" in r`)
		h.types("<f2>", "2", "no pushes", "<enter>").did(t, `rule deny "no pushes" in r`)
		h.types("<f2>", "2", "<enter>").did(t, `rule deny "" in r`)
		h.now.Prompts[0] = Prompt{Session: "0123456789", Round: "r", Tool: "AskUserQuestion", Kind: "question"}
		if content, _, _ := h.draw(); !strings.Contains(content, "dialai decide 01234567 answers it") {
			t.Errorf("of a question it shows\n%s", content)
		}
		h.types("<f2>", "1", "<enter>").did(t, `rule deny "" in r`)
	})
}

// TestFirstWords: before anything has begun, what is typed first is what is to be done; what
// comes after it is kept until somebody hears it.
func TestFirstWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHand(t, nil)
		h.types("export the invoices", "<enter>").did(t, `begin "export the invoices"`)
		h.types("as CSV", "<enter>").did(t)
		n := working(t).now()
		_, cmd := h.Update(news{now: &n})
		for _, msg := range collect(cmd) {
			h.Update(msg)
		}
		h.did(t, `say "as CSV" steer`)
	})
}

// collect runs a sequence of commands.
func collect(cmd tea.Cmd) (list []tea.Msg) {
	if cmd == nil {
		return nil
	}
	switch msg := cmd().(type) {
	case nil:
	case tea.BatchMsg:
		for _, c := range msg {
			list = append(list, collect(c)...)
		}
	default:
		list = append(list, msg)
	}
	return list
}

// TestLeave: Ctrl-C leaves at the second time within three seconds, and any other key stays.
func TestLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := working(t)
		h := newHand(t, w)
		h.types("<ctrl+c>")
		if h.screen() != leaving || h.left {
			t.Errorf("after one Ctrl-C it shows %s", h.screen())
		}
		h.types("x")
		if h.screen() != weaving || len(h.entry.text) > 0 {
			t.Errorf("after another key it shows %s", h.screen())
		}
		h.types("<ctrl+c>")
		h.Update(ticked(h.now.At.Add(4 * time.Second)))
		if _, cmd := h.Update(press("ctrl+c")); cmd != nil || h.left {
			t.Error("after four seconds Ctrl-C leaves at once")
		}
		h.Update(ticked(h.now.At.Add(2 * time.Second)))
		if _, cmd := h.Update(press("ctrl+c")); cmd == nil || !h.left {
			t.Error("the second Ctrl-C does not leave")
		}
		early := newHand(t, nil)
		early.types("<ctrl+c>")
		early.Update(ticked(time.Now()))
		if _, cmd := early.Update(press("ctrl+c")); cmd == nil || !early.left {
			t.Error("the second Ctrl-C does not leave where the first came before all else")
		}
	})
}

// TestScrollAnchor: what is at the top stays there when the terminal changes its width, and what
// is newest is followed at the end.
func TestScrollAnchor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHand(t, working(t))
		h.width, h.height = 120, 20
		for i := range 200 {
			h.lines = append(h.lines, undertaking.Line{At: h.now.At, State: "weaving", Pct: -1, Text: fmt.Sprintf("event %03d %s", i, strings.Repeat("word ", 30))})
		}
		top := func() string {
			content, _, _ := h.draw()
			_, rest, _ := strings.Cut(content, "event ")
			return rest[:3]
		}
		h.types("<f6>")
		if end := top(); end < "190" {
			t.Errorf("the log does not show what is newest, but %s", end)
		}
		h.types("<pgup>", "<pgup>", "<pgup>")
		was := h.at.para
		for _, size := range []int{60, 200, 75, 120} {
			h.Update(tea.WindowSizeMsg{Width: size, Height: 20})
			if now := top(); h.at.para != was || now != fmt.Sprintf("%03d", was) && now != fmt.Sprintf("%03d", was+1) {
				t.Errorf("at %d columns the top is %s, was %d", size, now, was)
			}
		}
		h.types("<home>")
		if top() != "000" {
			t.Errorf("Home shows %s", top())
		}
		h.types("<end>")
		if top() < "190" || h.at != nil {
			t.Errorf("End shows %s", top())
		}
	})
}

// TestActiveTaskInView: of many tasks the one that is active is shown.
func TestActiveTaskInView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHand(t, working(t))
		h.now.State.Tasks = nil
		for i := range 100 {
			h.now.State.Tasks = append(h.now.State.Tasks, undertaking.Task{ID: i + 1, Text: fmt.Sprintf("task %d", i+1), Status: map[bool]string{true: "active", false: "pending"}[i == 70]})
		}
		if content, _, _ := h.draw(); !strings.Contains(content, "task 71") || strings.Contains(content, "task 1 ") {
			t.Errorf("it shows\n%s", content)
		}
	})
}

// TestBell: the human's move rings once, and sets the title.
func TestBell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := planned(t)
		h, n := newHand(t, nil), w.now()
		rings := func(n Now) (count int) {
			_, cmd := h.Update(news{now: &n})
			for _, msg := range collect(cmd) {
				if raw, is := msg.(tea.RawMsg); is && strings.Contains(fmt.Sprint(raw.Msg), "\x1b]9;") {
					count++
				}
			}
			return count
		}
		if rings(n) != 1 || rings(n) != 0 {
			t.Error("it does not ring once")
		}
		if !strings.HasPrefix(h.title(), "! ") {
			t.Errorf("the title is %q", h.title())
		}
		w.move("owner", "assent", "")
		if rings(w.now()) != 0 || strings.HasPrefix(h.title(), "! ") {
			t.Errorf("while others move the title is %q", h.title())
		}
	})
}

// TestAnyKeys: no keys, sizes and news make it panic or draw outside of the terminal.
func TestAnyKeys(t *testing.T) {
	var states []Now
	synctest.Test(t, func(t *testing.T) { states = []Now{{}, planned(t).now(), working(t).now(), judged(t).now()} })
	names := []string{"enter", "tab", "esc", "backspace", "delete", "up", "down", "left", "right", "pgup", "pgdown", "home", "end", "f1", "f2", "f3", "f4", "f5", "f6", "ctrl+c", "alt+enter", "a", "/", "1", "9", "漢", "é"}
	rapid.Check(t, func(rt *rapid.T) {
		h := newHand(t, nil)
		for range rapid.IntRange(1, 40).Draw(rt, "n") {
			switch rapid.IntRange(0, 9).Draw(rt, "what") {
			case 0:
				h.Update(tea.WindowSizeMsg{Width: rapid.IntRange(0, 130).Draw(rt, "width"), Height: rapid.IntRange(0, 50).Draw(rt, "height")})
			case 1:
				n := states[rapid.IntRange(0, len(states)-1).Draw(rt, "state")]
				h.Update(news{now: &n})
			default:
				h.Update(press(rapid.SampledFrom(names).Draw(rt, "key")))
			}
			content, x, y := h.draw()
			lines := strings.Split(content, "\n")
			if len(lines) > max(1, h.height) || x >= max(1, h.width) || y >= max(1, h.height) {
				rt.Fatalf("%d lines, cursor %d, %d in %d×%d", len(lines), x, y, h.width, h.height)
			}
		}
	})
}

// TestKeysDocumented: the documentation lists the keys as they are.
func TestKeysDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/undertakings.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		name := k.name
		if k.command != "" {
			name = strings.TrimPrefix(name+", `"+k.command+"`", ", ")
		}
		if row := "| " + name + " | " + k.does + " |"; !strings.Contains(string(text), row) {
			t.Errorf("docs/undertakings.md lacks the row\n%s", row)
		}
	}
	picture, err := os.ReadFile("testdata/TestScreens/weaving-60x16.golden")
	if err != nil {
		t.Fatal(err)
	}
	if shown := "    " + strings.ReplaceAll(strings.TrimSpace(string(picture)), "\n", "\n    "); !strings.Contains(string(text), shown) {
		t.Errorf("docs/undertakings.md has another picture than\n%s", picture)
	}
}

// TestNotDone: what was typed for nothing is there again, and can be tried again.
func TestNotDone(t *testing.T) {
	h := newHand(t, nil)
	failing := errors.New("the program of the agent is not there")
	h.c.Begin = func(text string) (string, error) { h.said = append(h.said, "begin "+text); return "", failing }
	h.types("build it", "<enter>").did(t, "begin build it")
	if got := string(h.entry.text); got != "build it" || !strings.Contains(h.model.said, "not done") {
		t.Errorf("%q is typed, and it says %q", got, h.model.said)
	}
	h.types(" now", "<enter>").did(t, "begin build it now")

	h = newHand(t, working(t))
	h.c.Say = func(string, agent.Delivery) (string, error) { return "", failing }
	if h.types("words", "<enter>"); string(h.entry.text) != "words" {
		t.Errorf("%q is typed", string(h.entry.text))
	}
}

// TestStray: words that are typed or pasted while a move is chosen choose none, whatever they end with;
// a message takes what is pasted.
func TestStray(t *testing.T) {
	h := newHand(t, judged(t))
	h.types("<f2>", "in 2 words", "<enter>").did(t)
	h.types("<esc>", "<f2>")
	h.Update(tea.PasteMsg{Content: "words"})
	h.types("<enter>").did(t)
	if h.chooser == nil || len(h.entry.text) != 0 {
		t.Errorf("the overlay is gone, or %q is typed", string(h.entry.text))
	}
	if h.types("<down>", "<up>", "<enter>"); len(h.said) != 1 || !strings.HasPrefix(h.said[0], "rule sound") {
		t.Errorf("it did %v", h.said)
	}

	h = newHand(t, planned(t))
	h.types("<f2>", "2")
	h.Update(tea.PasteMsg{Content: "a semi\r\ncolon"})
	if h.types("<enter>"); len(h.said) != 1 || !strings.HasPrefix(h.said[0], `rule amend "a semi\ncolon"`) {
		t.Errorf("it did %v", h.said)
	}
}
