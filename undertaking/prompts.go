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

// What agents are told. The system prompt says what their part is; each turn begins with the
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

// checkCommand returns the command that passes when the work is done: that of the human, or else
// of the plan that the human has agreed to; "" for none.
func (l *Loop) checkCommand() string {
	if in := l.input(); in.Check != "" || !l.full() {
		return in.Check
	}
	return read[struct{ Check string }](l.data("plan")).Check
}

// data returns a member of the case's data, nil if it has none.
func (l *Loop) data(name string) json.RawMessage { return l.s.Data().Get(name) }

// systemPrompt says what an agent's part is.
func (l *Loop) systemPrompt(of who) string {
	switch {
	case of.As == manager:
		return managerPart
	case isVerifier(of.As):
		return verifierPart
	case l.full():
		return fmt.Sprintf(workerPart+workerFull, of.Number)
	}
	return fmt.Sprintf(workerPart+workerSolo, of.Number)
}

// promptFor returns what a turn begins with, before what was said and the moves.
func (l *Loop) promptFor(w *Worker, v *live) string {
	switch {
	case v.prompts > 0 && l.s.State.Name != "wrapping":
		return "Your turn ended without a move."
	case w.As == manager:
		return l.managerPrompt(w, v)
	case isVerifier(w.As):
		return l.verifierPrompt()
	}
	return l.workerPrompt(w, v)
}

// legal says which moves end the turn.
func (l *Loop) legal(as string) string {
	return "End the turn with submit. Legal moves now: " + strings.Join(moves[l.s.State.Name][as], ", ") + "."
}

// restarted is told whose process was started again.
const restarted = "Your process was started again, so you may have been interrupted in mid-turn. "

func wordsFor(words []Word) string {
	var b strings.Builder
	for _, w := range words {
		b.WriteString(block(w.By, w.Text))
	}
	return b.String()
}

// notice is what an agent is told of its context.
func notice(as string, level agent.Level, pct int, levels agent.Levels) string {
	switch {
	case level == "":
		return ""
	case as == manager && level == agent.Soft:
		return fmt.Sprintf("Your context is %d %% full; at %d %% another manager takes your place. Your next submit needs continuity {intent, decisions [], open_questions []}: what your successor must know.", pct, levels.Hard)
	case as == manager:
		return fmt.Sprintf("Your context is %d %% full. End this turn with a move; another manager takes your place.", pct)
	case isVerifier(as):
		return fmt.Sprintf("Your context is %d %% full. Give your verdict.", pct)
	case level == agent.Soft:
		return fmt.Sprintf("Your context is %d %% full. Begin to bring the work to an end; at %d %% you hand over.", pct, levels.Hard)
	}
	return fmt.Sprintf("Your context is %d %% full. Start nothing new. Submit hand_off with your record now; another worker goes on.", pct)
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
