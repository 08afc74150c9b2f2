package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/looplab/fsm"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/verdict"
)

// This is the only file that knows the state machine library, and the only one
// that can make a permit. A session moves only with a permit (engine.execute), and
// a permit is only made by a before_event callback that let the event pass: so
// no transition gets past the guards.
//
// The library never fires again on a cancelled context or a panic, and calls a
// self-loop an error. Hence: one small FSM for each compiled transition, pooled;
// its state is set before each event; the event gets a context that cannot be
// cancelled; callbacks look only at the event; and an FSM is dropped after
// anything but a clean result.

// The callback keys. A misspelt key would be ignored without a word, so a test
// proves that each fires.
const (
	beforeAny = "before_event"
	afterAny  = "after_event"
)

// A permit is the right to execute one transition once.
type permit struct {
	transition *machine.Transition
	valid      bool
}

// A gate lets steps through one compiled transition.
type gate struct {
	transition *machine.Transition
	passages   sync.Pool // of *passage
}

func (g *gate) init(t *machine.Transition) { g.transition = t }

// A passage is one FSM that has the gate's transition and nothing else.
type passage struct {
	fsm     *fsm.FSM
	judge   judge // of the step that is passing
	verdict verdict.Verdict
	asked   bool // the guards have been asked
	fired   bool // the event has happened
}

// A judge gives the guards' verdict on the step that is about to be executed.
type judge interface {
	judge(src, dst string) verdict.Verdict
}

// errRefused cancels an event that the guards do not let pass.
var errRefused = errors.New("refused by a guard")

func (g *gate) newPassage() *passage {
	p := &passage{}
	t := g.transition
	p.fsm = fsm.NewFSM(t.From.Name,
		fsm.Events{{Name: t.Name, Src: []string{t.From.Name}, Dst: t.Target}},
		fsm.Callbacks{
			beforeAny: func(_ context.Context, e *fsm.Event) {
				p.asked = true
				p.verdict = p.judge.judge(e.Src, e.Dst)
				if !p.verdict.Passed() {
					e.Cancel(errRefused)
				}
			},
			afterAny: func(context.Context, *fsm.Event) { p.fired = true },
		})
	return p
}

// pass fires the transition's event. The permit is valid only if the guards let
// the event pass and it happened.
func (g *gate) pass(ctx context.Context, j judge) (permit, verdict.Verdict, error) {
	if err := ctx.Err(); err != nil {
		return permit{}, verdict.Verdict{}, err
	}
	p, _ := g.passages.Get().(*passage)
	if p == nil {
		p = g.newPassage()
	}
	p.judge, p.verdict, p.asked, p.fired = j, verdict.Verdict{}, false, false
	if ctx.Done() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	p.fsm.SetState(g.transition.From.Name)
	err := p.fsm.Event(ctx, g.transition.Name)
	p.judge = nil
	verdict := p.verdict // once p is back in the pool it belongs to somebody else
	if err != nil && !isSame(err) {
		if p.asked && isRefused(err) {
			g.passages.Put(p)
			return permit{}, verdict, nil
		}
		return permit{}, verdict, fmt.Errorf("transition %q: %w", g.transition.Name, err)
	}
	if !p.asked || !p.fired || !verdict.Passed() {
		return permit{}, verdict, fmt.Errorf("transition %q was executed past its guards", g.transition.Name)
	}
	g.passages.Put(p)
	return permit{g.transition, true}, verdict, nil
}

// isSame reports whether err only says that a transition led back to its own
// state.
func isSame(err error) bool {
	var same fsm.NoTransitionError
	return errors.As(err, &same) && same.Err == nil
}

// isRefused reports whether the guards cancelled the event.
func isRefused(err error) bool {
	var cancelled fsm.CanceledError
	return errors.As(err, &cancelled) && errors.Is(err, errRefused)
}
