package undertaking

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// What a human says, in whatever process. Where a human is asked, it is a move, and so a ruling
// about the question as it is; where an agent works, it goes into the agent_log, and the loop
// gives it to the worker: in the running turn, or at the next. It is never lost, and no word of
// a human accepts anything: that is a ruling of its own.

// maxWord is how long a word may be, in bytes.
const maxWord = 32 << 10

// Say says something to an undertaking, and returns what became of it, for people. The errors
// of an undertaking that is over wrap [runner.ErrNotRunning].
func Say(ctx context.Context, r *runner.Runner, id specialist.SessionID, text string, deliver agent.Delivery, actor *session.Actor, now time.Time) (string, error) {
	if text = strings.TrimSpace(text); text == "" || len(text) > maxWord {
		return "", fmt.Errorf("what is said has %d bytes: it may have 1 to %d", len(text), maxWord)
	}
	s, err := r.Session(ctx, id)
	switch {
	case err != nil:
		return "", err
	case !s.Status.Live():
		return "", fmt.Errorf("session %s is %s, and nobody is there to hear it: %w", id, s.Status, runner.ErrNotRunning)
	case s.Status == session.NeedsHuman && AnswerIn(s) != "":
		return said(s, AnswerIn(s)), rule(ctx, r, s, AnswerIn(s), text, actor)
	}
	if err := appendWord(ctx, r.Store(), id, Word{ID: uuid.NewString(), Text: text, By: strings.TrimPrefix(actor.Subject, "local:"), Deliver: deliver}, now); err != nil {
		return "", err
	}
	if s.Status == session.NeedsHuman && !WaitsForOwner(s) {
		_, err := r.Resume(ctx, id, runner.ResumeOptions{Actor: actor})
		return "whose move it is is asked again, with it", err
	}
	return toldHow(s, deliver), nil
}

// AnswerIn returns the move that a human's words are in a state that waits for one; "" if they are
// none. Words never accept anything.
func AnswerIn(s *session.Session) string {
	if !isOwners(s.State.Name) {
		return ""
	}
	for _, name := range []string{"reply", "amend", "rule", "recall"} {
		if t := s.State.Transition(name); t != nil && s.WhyClosed(t) == "" {
			return name
		}
	}
	return ""
}

// said says what words have become that were a ruling.
func said(s *session.Session, transition string) string {
	switch transition {
	case "reply":
		return "it is the reply to the " + map[bool]string{true: "manager", false: "worker"}[s.Machine().Name() == fullMachine]
	case "amend":
		return "the manager changes the plan by it"
	case "rule":
		return "it is your ruling, and the manager goes by it"
	}
	return "the briefing is open again, with it"
}

// isOwners reports whether the move of a state is the owner's.
func isOwners(state string) bool { return movers[state] == owner || state == "ruling" }

// WaitsForOwner reports whether a session that needs a human needs the owner, and nobody else to be
// asked again: the state is the owner's, or all who judge have judged.
func WaitsForOwner(s *session.Session) bool {
	return isOwners(s.State.Name) || s.State.Name == "verifying" && len(s.Proposals()) == len(moves["verifying"])
}

// toldHow says what becomes of words that are no ruling.
func toldHow(s *session.Session, deliver agent.Delivery) string {
	who := "the worker"
	switch mover := movers[s.State.Name]; {
	case s.Machine().Name() != fullMachine:
	case mover != manager && s.State.Name != "weaving":
		return "the manager gets it with its next turn"
	default:
		who = "the manager"
	}
	return map[agent.Delivery]string{agent.Steer: who + " gets it in its turn", agent.After: who + " gets it after its turn", agent.Now: who + "'s turn ends for it"}[deliver]
}

// rule rules with words as the message.
func rule(ctx context.Context, r *runner.Runner, s *session.Session, transition, text string, actor *session.Actor) error {
	_, err := r.Decide(ctx, runner.Ruling{SessionID: s.ID, RoundID: s.Key().ID(), SpecialistID: owner, TransitionName: transition, MetaJSON: Message(text), Actor: actor})
	return err
}

// appendWord appends a word to the agent_log, whoever else does.
func appendWord(ctx context.Context, store session.Store, id specialist.SessionID, w Word, now time.Time) error {
	data := mustJSON(w)
	for range maxRaces {
		last := int64(0)
		var at specialist.Time
		for e, err := range store.AgentLog(ctx, id, 0) {
			if err != nil {
				return err
			}
			last, at = e.Seq, e.At
		}
		err := store.AppendAgentLog(ctx, id, last, session.AgentEvent{At: max(at, specialist.TimeOf(now)), Kind: kindSaid, Data: data})
		if !errors.Is(err, session.ErrStale) {
			return err
		}
	}
	return session.ErrStale
}

// A hearing says which words an agent session has, and in which of its turns.
type hearing struct {
	Words []string `json:"words"`
	Turn  int      `json:"turn"` // how many of its turns had finished
}

func toldOf(words []Word, w *Worker) hearing {
	t := hearing{Turn: w.Finished}
	for _, word := range words {
		t.Words = append(t.Words, word.ID)
	}
	return t
}

// hearer returns the agent session that words are for: the manager's, or else the worker's; nil if
// none is there.
func (l *Loop) hearer() *Worker {
	if l.full() {
		return l.state.manager()
	}
	return l.state.bound()
}

// unheard returns what a human has said that an agent session has to be told.
func (l *Loop) unheard(w *Worker, again bool) []Word {
	if h := l.hearer(); h == nil || h.who() != w.who() {
		return nil
	}
	return l.state.unheard(w.who(), again)
}

// unheard returns what a human has said that nobody has, and what was told in a turn that did not
// finish: to a session before, or, with again, to this one.
func (s *State) unheard(of who, again bool) (list []Word) {
	for _, word := range s.Words {
		had := s.agent(who{of.As, word.Told})
		if had == nil || had.Finished == word.Turn && (had.Number != of.Number || again) {
			list = append(list, word)
		}
	}
	return list
}

// deliver gives whose turn runs what was said meanwhile: what a human has said, and to a worker
// what the manager has. What is for after the turn, and what is said while none runs, goes with
// the next prompt.
func (l *Loop) deliver(ctx context.Context) {
	if w := l.hearer(); w != nil {
		l.deliverWords(ctx, w)
	}
	if w := l.state.bound(); w != nil {
		l.deliverLetters(ctx, w)
	}
}

// running returns the open process of an agent session whose turn runs, nil if none does.
func (l *Loop) running(w *Worker) *live {
	if v := l.live[w.who()]; v != nil && v.turn && !v.closing {
		return v
	}
	return nil
}

func (l *Loop) deliverWords(ctx context.Context, w *Worker) {
	v := l.running(w)
	if v == nil {
		return
	}
	var now []Word
	for _, word := range l.unheard(w, !v.prompted) {
		switch word.Deliver {
		case agent.After:
		case agent.Now:
			if !v.interrupted {
				l.tell(w.who(), "its turn ends: %s says: %s", word.By, firstLine(word.Text))
				l.interrupt(ctx, v)
			}
		default:
			now = append(now, word)
		}
	}
	if len(now) > 0 {
		l.tell(w.who(), "hears: %s", firstLine(now[0].Text))
		l.steer(ctx, v, kindTold, toldOf(now, w), wordsFor(now))
	}
}

// steer says something in a running turn, and what was said is in the agent_log before that.
func (l *Loop) steer(ctx context.Context, v *live, kind string, said any, text string) {
	if err := l.commit(ctx, v.who, kind, said); err != nil {
		l.fail(err)
		return
	}
	if err := v.session.Send(ctx, agent.Message{ID: uuid.NewString(), Content: text, Deliver: agent.Steer}); err != nil && ctx.Err() == nil {
		l.end(ctx, v)
	}
}

// Message returns the payload of a ruling that says something.
func Message(text string) json.RawMessage { return mustJSON(map[string]string{"message": text}) }
