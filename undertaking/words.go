package undertaking

import (
	"context"
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
	case s.State.Transition("reply") != nil && s.Status == session.NeedsHuman:
		return "it is the reply to the worker", reply(ctx, r, s, text, actor)
	}
	if err := appendWord(ctx, r.Store(), id, Word{ID: uuid.NewString(), Text: text, By: strings.TrimPrefix(actor.Subject, "local:"), Deliver: deliver}, now); err != nil {
		return "", err
	}
	if s.Status == session.NeedsHuman {
		_, err := r.Resume(ctx, id, runner.ResumeOptions{Actor: actor})
		return "the worker is asked again, with it", err
	}
	return map[agent.Delivery]string{agent.Steer: "the worker gets it in its turn", agent.After: "the worker gets it after its turn", agent.Now: "the worker's turn ends for it"}[deliver], nil
}

// reply rules the reply to a worker.
func reply(ctx context.Context, r *runner.Runner, s *session.Session, text string, actor *session.Actor) error {
	_, err := r.Decide(ctx, runner.Ruling{SessionID: s.ID, RoundID: s.Key().ID(), SpecialistID: owner, TransitionName: "reply", MetaJSON: mustJSON(map[string]string{"message": text}), Actor: actor})
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

// A told says which words a worker has, and in which of its turns.
type told struct {
	Words []string `json:"words"`
	Turn  int      `json:"turn"` // how many of its turns had finished
}

func toldOf(words []Word, w *Worker) told {
	t := told{Turn: w.Finished}
	for _, word := range words {
		t.Words = append(t.Words, word.ID)
	}
	return t
}

// unheard returns what a human has said that no worker has, and, when a worker's process was
// opened again, what it was told in a turn that has not finished: it may not have got it.
func (l *Loop) unheard(v *live) (list []Word) {
	w := l.state.worker(v.number)
	for _, word := range l.state.Words {
		if word.Told == 0 || !v.prompted && word.Told == w.Number && word.Turn == w.Finished {
			list = append(list, word)
		}
	}
	return list
}

// deliver gives the worker whose turn runs what a human has said meanwhile. What is for after
// the turn, and what is said while none runs, goes with the next prompt.
func (l *Loop) deliver(ctx context.Context) {
	w := l.state.bound()
	if w == nil || l.live[w.Number] == nil || !l.live[w.Number].turn || l.live[w.Number].closing {
		return
	}
	v := l.live[w.Number]
	var now []Word
	for _, word := range l.unheard(v) {
		switch word.Deliver {
		case agent.After:
		case agent.Now:
			if !v.interrupted {
				l.tell(w.Number, "its turn ends: %s says: %s", word.By, firstLine(word.Text))
				l.interrupt(ctx, v)
			}
		default:
			now = append(now, word)
		}
	}
	if len(now) == 0 {
		return
	}
	l.note(who{orchestrator, w.Number}, kindTold, toldOf(now, w))
	if err := l.flush(ctx); err != nil {
		l.fail(err)
		return
	}
	l.tell(w.Number, "hears: %s", firstLine(now[0].Text))
	if err := v.session.Send(ctx, agent.Message{ID: now[0].ID, Content: wordsFor(now), Deliver: agent.Steer}); err != nil && ctx.Err() == nil {
		l.end(ctx, v)
	}
}
