package scripted

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dialai/dialai/agent"
)

// A turn is one line being played.
type turn struct {
	*session
	line
	ctx   context.Context // until it is cut off
	depth int             // of the subagent that works
}

// turn plays the next line and returns how that ended.
func (s *session) turn(first *letter) ending {
	ctx, stop := context.WithCancelCause(s.life)
	defer stop(nil)
	s.mu.Lock()
	s.stop = stop
	s.mu.Unlock()
	t := &turn{session: s, ctx: ctx}
	if !s.spent {
		t.line = s.agent.next(s.spec.As)
	}
	s.tell(agent.TurnStarted{})
	s.sort() // first may have come just now
	s.receipt(first, agent.Started)
	if !s.spent {
		t.play()
	}
	return t.close()
}

// play does what the line says, as far as the turn is not cut off.
func (t *turn) play() {
	for _, part := range []func(){t.pause, t.say, t.meter, t.work, t.submit} {
		t.fold()
		if t.ctx.Err() != nil {
			return
		}
		part()
	}
	if t.End == hang {
		t.wait(nil)
	}
	t.fold()
}

func (t *turn) pause() {
	if t.Wait > 0 {
		timer := time.NewTimer(t.Wait)
		defer timer.Stop()
		t.wait(timer.C)
	}
}

// wait returns once until says so, or the turn is cut off. Messages that arrive are told of.
func (t *turn) wait(until <-chan time.Time) {
	for {
		select {
		case <-until:
			return
		case <-t.ctx.Done():
			return
		case <-t.woken:
			t.sort()
		}
	}
}

func (t *turn) say() {
	if t.Text != "" {
		t.tell(agent.Text{Text: t.Text, MessageID: t.messageID()})
	}
}

// messageID is the same for all that one line says and uses: it is one message.
func (t *turn) messageID() string { return fmt.Sprintf("line-%d", t.number) }

// meter tells what the line says of tokens and costs; its tools see it.
func (t *turn) meter() {
	if t.Used == nil && t.Window == 0 && t.CostUSD == nil {
		return
	}
	t.mu.Lock()
	u := &t.usage
	if t.Window > 0 {
		u.Window, u.Ceiling = t.Window, t.Window
	}
	if t.Used != nil {
		u.Used = *t.Used
		u.Tokens.In += *t.Used
	}
	if u.Window == 0 {
		u.Window, u.Ceiling = defaultWindow, defaultWindow
	}
	if t.CostUSD != nil {
		sum := *t.CostUSD
		if u.CostUSD != nil {
			sum += *u.CostUSD
		}
		u.CostUSD = &sum
	}
	told := *u
	t.mu.Unlock()
	t.tell(told)
}

// defaultWindow is that of a script that names none.
const defaultWindow = 200_000

func (t *turn) submit() {
	if t.Submit != nil && t.ctx.Err() == nil {
		t.use(use{Tool: "submit", Input: t.Submit}, "")
	}
}

// close ends the turn.
func (t *turn) close() ending {
	t.mu.Lock()
	t.stop = nil
	cause := context.Cause(t.ctx)
	t.mu.Unlock()
	done := agent.Done{Outcome: agent.Finished, Text: t.Text, AgentSession: t.id, Turn: t.number}
	switch {
	case errors.Is(cause, errStopped):
		done.Outcome = agent.Cancelled
	case cause != nil: // the session ends
		done.Outcome, done.Turn = agent.Cancelled, 0
		t.agent.putBack(t.line)
	case t.End == crash:
		done.Outcome, done.Problem = agent.Crashed, "the script says so"
	case t.End == full || t.spent:
		t.spent = true
		done.Outcome, done.Problem = agent.Full, "the script says so"
	}
	t.finish()
	t.tell(done)
	if done.Outcome == agent.Crashed {
		return crash
	}
	return ""
}
