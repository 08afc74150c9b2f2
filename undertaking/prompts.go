package undertaking

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/internal/jsontext"
)

// What workers are told. The system prompt says what their part is; each turn begins with the
// situation, what others said, and the moves that end it. What others said stands in a block
// with its sender and a delimiter that nobody can guess, so that no text poses as another.

// An input is what an undertaking was started with.
type taskInput struct {
	Task  string `json:"task"`
	Spec  string `json:"spec"`
	Check string `json:"check"`
	Cwd   string `json:"cwd"`
}

func (l *Loop) input() taskInput { return read[taskInput](l.s.Options().Meta) }

func systemPrompt(number int) string {
	return fmt.Sprintf(`You are worker %d of one undertaking, which is larger than one session. Whoever talks to you as the user runs it.

Your context is finite. You will be told when it gets full: then bring your work to an end, and hand over with a record. Another worker goes on from that record and from the working tree, and sees nothing else of you. So commit often, in small steps, and keep the list of tasks true (tool tasks).

Give well-bounded pieces of the work to subagents, wait for them, and keep your own context for the whole. No subagent judges its own work. Ask (inquire) only when you cannot decide yourself.

Every turn ends with one move: call the tool submit as the last thing you do. The moves, each with a message:
- report: what you have done; you go on at once.
- inquire: questions [{text, options?}] that only a human can answer.
- hand_off: your record: accomplished [], remaining [], context, and if you like files [], commits [], open_risks [].
- complete: the same record with nothing remaining: all that was asked for is done, and you have checked it.
"complete" is a claim. A check is run on it, and a human decides.`, number)
}

// promptFor returns what a worker's next turn begins with.
func (l *Loop) promptFor(w *Worker, v *live) string {
	switch {
	case l.s.State.Name == "wrapping":
		return "Stop here: your session ends with this turn. Do no more work. Hand over now: submit hand_off with your record (accomplished, remaining, context for whoever goes on, files, commits, open risks)."
	case v.prompts > 0:
		return "Your turn ended without a move. " + l.legal()
	case w.Finished == 0 && w.Opened == 1:
		return l.opening(w) + "\n\n" + l.legal()
	case w.Finished == 0 && !v.prompted: // whatever it was told, it may not have been kept
		return l.opening(w) + "\n\nYou may have begun with this already: look at the working tree.\n\n" + l.legal()
	case w.Opened > 1 && !v.prompted:
		return "Your process was started again. Look at the working tree before you trust what you remember.\n\n" + l.goOn() + "\n\n" + l.legal()
	}
	return l.goOn() + "\n\n" + l.legal()
}

// legal says which moves end the turn.
func (l *Loop) legal() string {
	return "End the turn with submit. Legal moves now: " + strings.Join(moves[l.s.State.Name][orchestrator], ", ") + "."
}

// opening is the first prompt of a worker.
func (l *Loop) opening(w *Worker) string {
	in := l.input()
	var b strings.Builder
	fmt.Fprintf(&b, "The task: %s\nThe working tree: %s\n", in.Task, l.c.Cwd)
	if in.Check != "" {
		fmt.Fprintf(&b, "The check that must pass: %s\n", in.Check)
	}
	if in.Spec != "" {
		b.WriteString("\n" + block("the specification", in.Spec))
	}
	if w.Number == 1 {
		b.WriteString("\nBegin: read what is there, list the tasks, and work.")
		return b.String()
	}
	fmt.Fprintf(&b, "\nWorker %d has handed over to you. Look at the working tree before you trust its record.\n", w.Number-1)
	if l.state.Record != nil {
		b.WriteString("\n" + block("the record of worker "+itoa(w.Number-1), indented(l.state.Record)))
	}
	if last := l.state.Last; last.Transition == "failed" {
		b.WriteString("\n" + l.failedCheck(last))
	}
	if len(l.state.Tasks) > 0 {
		b.WriteString("\n" + block("the list of tasks", taskList(l.state.Tasks)))
	}
	return b.String()
}

// goOn is the prompt of a worker whose turn has ended, by what happened since.
func (l *Loop) goOn() string {
	switch last := l.state.Last; last.Transition {
	case "failed":
		return l.failedCheck(last) + "\nMend it, and go on."
	case "reply":
		return block(last.By, messageIn(last.Payload)) + "\nGo on by that."
	}
	return "Go on with the work."
}

func (l *Loop) failedCheck(m Move) string {
	d := read[struct {
		Command, Output string
		Exit            int
	}](m.Payload)
	return fmt.Sprintf("The check %q does not pass (exit code %d).\n%s", d.Command, d.Exit, block("its output", d.Output))
}

func wordsFor(words []Word) string {
	var b strings.Builder
	for _, w := range words {
		b.WriteString(block(w.By, w.Text))
	}
	return b.String()
}

// notice is what a worker is told of its context.
func notice(level agent.Level, pct int, levels agent.Levels) string {
	switch level {
	case agent.Soft:
		return fmt.Sprintf("Your context is %d %% full. Begin to bring the work to an end; at %d %% you hand over.", pct, levels.Hard)
	case agent.Hard:
		return fmt.Sprintf("Your context is %d %% full. Start nothing new. Submit hand_off with your record now; another worker goes on.", pct)
	}
	return ""
}

// block is a text of somebody else.
func block(sender, text string) string {
	var mark [6]byte
	_, _ = rand.Read(mark[:]) // it never fails
	m := hex.EncodeToString(mark[:])
	return fmt.Sprintf("--- %s (%s) ---\n%s\n--- end (%s) ---\n", sender, m, strings.TrimRight(text, "\n"), m)
}

func indented(raw json.RawMessage) string {
	text, err := json.MarshalIndent(raw, "", "  ")
	if err != nil {
		return string(raw)
	}
	return string(text)
}

func mustJSON(v any) json.RawMessage {
	text, err := jsontext.Marshal(v)
	if err != nil {
		panic("undertaking: " + err.Error()) // never: v is made of texts and numbers
	}
	return text
}
