package runner

import (
	"context"
	"errors"
	"fmt"

	"github.com/dialai/dialai/internal/cases"
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
)

// A step goes through the states of a round. In each state the engine does one thing and
// says what it has seen; the table says what follows: another state, or the end of the
// step, which commits what was gathered and reports a TickStatus. Nothing else decides
// what is done next. ARCHITECTURE.md draws the table.
//
// Between two states there is always a commit in the making on the session as it is
// known. A state that has to make something durable first (asks that leave this process,
// answers that came in) saves, and begins the next commit before it returns; where
// somebody else was faster the session is read again, and the step begins anew with the
// answers that it has.

// A roundState is what a step is doing with its round.
type roundState uint8

const (
	opening   roundState = iota // a commit is begun on the session, and the round assessed
	asking                      // whoever is due is asked
	receiving                   // answers come in from outside this process
	deciding                    // the arbiter is asked for its verdict
	inquiring                   // the guards ask about the decision
	executing                   // the decision passes the gate, or does not
	roundStates
)

var roundStateNames = [roundStates]string{"opening", "asking", "receiving", "deciding", "inquiring", "executing"}

// A roundInput is what the engine has seen in a state.
type roundInput uint8

const (
	seenNothing   roundInput = iota
	seenIdle                 // the session does not run, and nothing is to be recorded
	seenTimer                // nothing happens before the state is due
	seenElsewhere            // somebody else has decided the round
	seenDeadEnd              // no transition leads on
	seenReady                // somebody can be asked
	seenOut                  // an answer is out that somebody waits for
	seenAsked                // functions have answered, or somebody was refused: who is due now?
	seenSent                 // asks have left this process
	seenMore                 // answers have come, and others may change what they lead to
	seenAllIn                // nobody else is waited for
	seenConsulted            // an arbiter outside this process was asked
	seenTurn                 // mode eager: one was asked, as often as one step does
	seenComplete             // who is not in can change nothing, or will not come
	seenElected              // there is a winner
	seenHuman                // a human has to decide
	seenStopped              // a guard or a budget has stopped the session
	seenChecked              // the guards have asked whom they want to ask
	seenSentBack             // a guard has sent the round back
	seenPassed               // the transition is executed
	roundInputs
)

var roundInputNames = [roundInputs]string{"", "not running", "not due yet", "decided elsewhere", "no way on", "ready", "an answer is out", "some asked", "asks sent", "answers came", "no one waited for",
	"arbiter was consulted", "one asked", "complete", "a winner", "a human is needed", "stopped", "guards have asked", "sent back", "executed"}

// A roundStep is what follows from what was seen: the end of the step, or the next state.
type roundStep struct {
	to   roundState
	ends TickStatus // "" if the step goes on
}

// asItStands ends a step with the status of its session.
const asItStands TickStatus = "as it stands"

// roundTable says what follows in each state from what is seen there. What is not in it
// is never seen.
var roundTable = [roundStates][roundInputs]roundStep{
	opening: {
		seenIdle:      {ends: asItStands},
		seenTimer:     {ends: TickWaiting},
		seenElsewhere: {ends: TickSolicited},
		seenDeadEnd:   {ends: TickFailed},
		seenReady:     {to: asking},
		seenHuman:     {ends: TickHuman},
		seenPassed:    {ends: TickAdvanced},
	},
	asking: {
		seenElsewhere: {ends: TickSolicited},
		seenOut:       {ends: TickWaiting},
		seenAsked:     {to: asking},
		seenSent:      {to: receiving},
		seenConsulted: {to: asking},
		seenTurn:      {ends: TickSolicited},
		seenComplete:  {to: deciding},
		seenElected:   {to: inquiring},
		seenHuman:     {ends: TickHuman},
		seenStopped:   {ends: TickStopped},
	},
	receiving: {
		seenMore:  {to: receiving},
		seenAllIn: {to: asking},
	},
	deciding: {
		seenElsewhere: {ends: TickSolicited},
		seenOut:       {ends: TickWaiting},
		seenConsulted: {to: deciding},
		seenElected:   {to: inquiring},
		seenHuman:     {ends: TickHuman},
		seenStopped:   {ends: TickStopped},
	},
	inquiring: {
		seenElsewhere: {ends: TickSolicited},
		seenOut:       {ends: TickWaiting},
		seenChecked:   {to: executing},
	},
	executing: {
		seenHuman:    {ends: TickHuman},
		seenStopped:  {ends: TickStopped},
		seenSentBack: {ends: TickRejected},
		seenPassed:   {ends: TickAdvanced},
	},
}

// do does what a step does in a state.
func (w *engine) do(ctx context.Context, at roundState) (roundInput, error) {
	switch at {
	case opening:
		return w.opening(ctx)
	case asking:
		return w.asking(ctx)
	case receiving:
		return w.receiving(ctx)
	case deciding:
		return w.deciding(ctx)
	case inquiring:
		return w.inquiring(ctx)
	}
	return w.executing(ctx)
}

// step goes through the states of the round until the step ends. Where somebody else has
// committed first it begins anew.
func (w *engine) step(ctx context.Context) (Tick, error) {
	at := opening
	for races := 0; races < maxRaces; {
		next, ends, err := w.follow(ctx, at)
		switch {
		case err == nil && ends != "":
			return w.tick(ends), nil
		case err == nil:
			at = next
			continue
		case !errors.Is(err, session.ErrStale):
			return Tick{}, w.giveUp(ctx, err)
		}
		w.abort()
		if err := w.reload(ctx); err != nil {
			return Tick{}, w.giveUp(ctx, err)
		}
		at, races = opening, races+1
	}
	return Tick{}, fmt.Errorf("session %s: %w", w.s.ID, session.ErrStale)
}

// follow does what is done in a state and returns what follows: the status of a step that
// has ended, or else the next state.
func (w *engine) follow(ctx context.Context, at roundState) (next roundState, ends TickStatus, err error) {
	seen, err := w.doTraced(ctx, at)
	if err != nil {
		return at, "", err
	}
	step := &roundTable[at][seen]
	switch step.ends {
	case "":
		if step.to == opening {
			panic(fmt.Sprintf("runner: nothing follows from %q while %s", roundInputNames[seen], roundStateNames[at]))
		}
		return step.to, "", nil
	case asItStands:
		return at, statusOf(w.s), nil
	}
	return at, step.ends, w.save(ctx)
}

// opening begins a commit on the session.
func (w *engine) opening(ctx context.Context) (roundInput, error) {
	w.turn, w.moved = false, Tick{}
	if err := ctx.Err(); err != nil {
		return seenNothing, err
	}
	if w.s.State.Due != nil {
		if seen, err := w.timed(ctx); seen != seenNothing || err != nil {
			return seen, err
		}
	}
	if w.s.Status != session.Running && len(w.responses) == 0 && w.pending == nil {
		return seenIdle, nil
	}
	if err := w.begin(ctx); err != nil {
		return seenNothing, err
	}
	if w.over() {
		return seenElsewhere, nil
	}
	if len(w.now.Offered().Transitions) == 0 {
		w.emit(&session.Ended{Status: session.Failed, Code: session.CodeDeadEnd, Reason: w.now.DeadEnd()})
		return seenDeadEnd, nil
	}
	var err error
	w.by, err = w.arbiter()
	return seenReady, err
}

// asking asks whoever is due, in as many waves as it takes, until the round is complete.
func (w *engine) asking(ctx context.Context) (roundInput, error) {
	if w.over() {
		return seenElsewhere, nil
	}
	due, err := w.due(ctx)
	switch {
	case err != nil:
		return seenNothing, err
	case w.mode() == machine.Eager:
		return w.askingOne(ctx, due)
	case w.championship.alone && len(due) == 0 && !w.waiting():
		if _, _, ok, err := w.alone(ctx); err != nil || !ok {
			return seenAsked, err // the champion must not decide alone: now everybody is asked
		}
	}
	settled, err := w.settled(ctx)
	switch {
	case err != nil || settled:
		w.cancelExternal()
		return seenComplete, err
	case len(due) == 0 && w.waiting():
		return seenOut, nil
	case len(due) == 0:
		return seenComplete, nil
	}
	ask, err := w.wave(ctx, due)
	if err != nil || w.stop != "" {
		return seenComplete, err
	}
	return w.ask(ctx, ask)
}

// askingOne asks one proposer in a step, as DIAL's tick does. Consensus is tested
// before and after, once everybody has answered or two proposals exist.
func (w *engine) askingOne(ctx context.Context, due []*planning.Member) (roundInput, error) {
	if w.turn || len(due) == 0 {
		switch {
		case w.waiting():
			return seenOut, nil
		case len(due) == 0:
			return seenComplete, nil
		}
	}
	if seen, err := w.early(ctx); seen != seenNothing || err != nil {
		return seen, err
	}
	switch {
	case w.turn:
		return seenTurn, nil
	case w.externalOut():
		return seenOut, nil
	}
	next, err := w.favourite(ctx, due)
	if err != nil {
		return seenNothing, err
	}
	return w.ask(ctx, []*planning.Member{next})
}

// early says what follows from a round of two or more proposals before everybody has
// answered; it sees nothing if that is for those who have not.
func (w *engine) early(ctx context.Context) (roundInput, error) {
	enough := w.quorum(w.by).Reached()
	if len(w.open.Proposals) < 2 || !enough && !w.open.HumanSpoke() {
		return seenNothing, nil
	}
	v, consulted, err := w.verdict(ctx)
	switch {
	case err != nil:
		return seenNothing, err
	case consulted:
		return seenConsulted, nil
	case w.over():
		return seenElsewhere, nil
	case v == nil || !v.Decision.Consensus() || !enough && !w.open.ElectedHuman(v):
		return seenNothing, nil
	}
	return seenElected, nil
}

// ask asks those whom the budget lets be asked.
func (w *engine) ask(ctx context.Context, ask []*planning.Member) (roundInput, error) {
	recorded := len(w.events)
	w.turn = true
	ask, err := w.admit(ctx, ask)
	if err != nil {
		return seenNothing, err
	}
	if len(ask) > 0 {
		return w.gather(ctx, ask)
	}
	switch seen := w.overBudget(); {
	case seen != seenNothing:
		return seen, nil
	case w.waiting():
		return seenOut, nil
	case len(w.events) == recorded:
		return seenComplete, nil // nobody is refused, and the verdict holds what they would need
	}
	return seenAsked, nil
}

// deciding has the arbiter decide: the winner goes on to the gate, or the session waits
// for a human.
func (w *engine) deciding(ctx context.Context) (roundInput, error) {
	v, consulted, err := w.verdict(ctx)
	switch {
	case err != nil:
		return seenNothing, err
	case consulted:
		return seenConsulted, nil
	case w.now.Status == session.Stopped && w.now.Key() == w.key:
		return seenStopped, nil
	case w.over():
		return seenElsewhere, nil
	case v == nil && w.arbiterOut():
		return seenOut, nil
	case v == nil:
		w.emit(&session.AwaitsHuman{Code: session.CodeArbiterFailed, Reason: w.arbiterFailure(w.by)})
		return seenHuman, nil
	case !v.Decision.Consensus():
		if l := w.unruled(); l != nil {
			w.emit(l)
		}
		w.emit(&session.AwaitsHuman{Code: v.Decision.Code(), Reason: w.whyHuman(v)})
		return seenHuman, nil
	}
	return seenElected, nil
}

// inquiring puts the decision to those whom the guards of the state ask.
func (w *engine) inquiring(ctx context.Context) (roundInput, error) {
	found, err := w.inquire(ctx, w.elected)
	w.found = found
	switch {
	case errors.Is(err, errElsewhere):
		return seenOut, nil
	case errors.Is(err, errMeanwhile):
		return seenElsewhere, nil
	}
	return seenChecked, err
}

// executing takes the winner of the verdict through the gate, with what came of asking
// about it.
func (w *engine) executing(ctx context.Context) (roundInput, error) {
	v := w.open.Verdict
	d := w.elected(v)
	d.inquiry, d.learned = w.found, w.unruled()
	if w.open.SetFailed != "" { // it is not tried again in this round
		w.emit(&session.AwaitsHuman{Code: session.CodeSetFailed, Reason: w.open.SetFailed})
		return seenHuman, nil
	}
	from := w.now.State
	w.cancelOpen()
	if held, err := w.holdForAudit(ctx, w.by, &d); held || err != nil {
		return seenHuman, err
	}
	w.demoteOnMismatch(d.transition)
	verdict, err := w.execute(ctx, &d)
	if failed, ok := errors.AsType[*cases.SetError](err); ok {
		return w.unset(failed), nil
	}
	if err != nil {
		return seenNothing, err
	}
	if !verdict.Passed() {
		w.moved.Code = verdict.Reasons[0].Code
		return w.refused(verdict), nil
	}
	w.moved.Previous, w.moved.Transition, w.moved.verdict = from, d.transition, v
	return seenPassed, nil
}

// unset records that a transition could not set what it is to set.
func (t *commit) unset(why *cases.SetError) roundInput {
	t.emit(&session.AwaitsHuman{Code: session.CodeSetFailed, Reason: why.Error()})
	return seenHuman
}
