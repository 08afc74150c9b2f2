package undertaking

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
)

// A worker is one agent session that works on the task. It is opened when the orchestrator is
// asked and none goes on, prompted when it is asked and no turn of it runs, and what its turn
// ends with is handed in. It is let go when it has handed over, or is lost: its process cannot
// be brought back, or its context is full.
//
// A turn costs money before anybody knows how much, so a turn begins only if what the dearest
// turn has cost so far still fits into the budget.

// A live is a worker's open process.
type live struct {
	number      int
	session     agent.Session
	ended       chan struct{}                 // closed when its last event was taken
	asks        map[string]context.CancelFunc // permissions that are being asked for
	cost        Cost                          // of the process so far
	charged     Cost                          // that is in the agent_log
	turn        bool                          // runs, or was asked for
	began       time.Time                     // the turn
	prompts     int                           // in a row without a move
	closing     bool
	dismissed   bool // by us: that its process ends says nothing of it
	record      bool // the turn only writes the record
	interrupted bool
	stopped     time.Time // when it was interrupted
	silent      bool      // because of its silence
	heard       time.Time
	said        string // the last text of the turn
	prompted    bool   // at least once
	lost        string // why it cannot be opened again
}

// serveWorker has the bound worker work, and hands in what came of it.
func (l *Loop) serveWorker(ctx context.Context) (bool, error) {
	w := l.state.bound()
	if w == nil {
		return l.openNext(ctx)
	}
	v := l.live[w.Number]
	switch {
	case v != nil && (v.turn || v.closing):
		return false, nil // it is at work, or on its way out
	case l.candidate(w) != nil:
		m, err := l.recorded(ctx, w, *l.candidate(w))
		if err != nil {
			return false, err
		}
		return l.propose(ctx, orchestrator, m)
	case v == nil:
		return l.wake(ctx, w)
	case l.s.State.Name == "wrapping" && (v.prompts > l.set.Prompts || v.record && v.interrupted):
		return false, nil // likewise
	case v.prompts > l.set.Prompts:
		v.prompts = 0
		return l.withdraw(ctx, orchestrator, "no_move", fmt.Sprintf("%s ended %d turns without a move", w.id(), l.set.Prompts+1))
	}
	return l.prompt(ctx, v, l.promptFor(w, v))
}

// candidate returns the move with which a worker's turn has ended, if it is legal here.
func (l *Loop) candidate(w *Worker) *Move {
	if c := l.state.candidate(w); c != nil && !w.Turn && mayMove(l.s.State.Name, orchestrator, c.Transition) {
		return c
	}
	return nil
}

// openNext opens the next worker.
func (l *Loop) openNext(ctx context.Context) (bool, error) {
	if len(l.live) > 0 {
		return false, nil // the one before still works in the tree
	}
	number := len(l.state.Workers) + 1
	if number > 1 && l.state.Churn >= maxChurn {
		return l.stop(ctx, fmt.Sprintf("%d workers in a row have handed over without a commit, a changed file or a finished task", l.state.Churn))
	}
	if did, err := l.overBudget(ctx); did || err != nil {
		return did, err
	}
	now := l.tree(ctx)
	var problems error
	for range maxOpenings {
		err := l.open(ctx, number, "", opening{Since: l.s.Key().Round, HeadBefore: now.Head, TreeBefore: now.Digest})
		if err == nil {
			l.tell(number, "opened %s", l.state.bound().Agent)
			return false, l.promptOpened(ctx, number)
		}
		if problems = errors.Join(problems, err); ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
	}
	return l.stop(ctx, fmt.Sprintf("no session of the agent opens: %v", problems))
}

const (
	maxOpenings = 3 // of one worker, before the undertaking stops
	maxChurn    = 3
)

func (l *Loop) promptOpened(ctx context.Context, number int) error {
	w, v := l.state.worker(number), l.live[number]
	_, err := l.prompt(ctx, v, l.promptFor(w, v))
	return err
}

// An opening is what the log says of one beside what the agent says.
type opening struct {
	agent.Opened
	Since      int32  `json:"since,omitempty"` // the round
	HeadBefore string `json:"headBefore,omitempty"`
	TreeBefore string `json:"treeBefore,omitempty"`
}

// open opens a worker, or goes on with its agent session.
func (l *Loop) open(ctx context.Context, number int, resume string, more opening) error {
	name := AgentOf(l.s)
	a, err := l.c.Agent(name)
	if err != nil {
		return err
	}
	events := make(chan agent.Event)
	v := &live{number: number, ended: make(chan struct{}), asks: map[string]context.CancelFunc{}, heard: l.c.Now()}
	opened := make(chan agent.Opened, 1)
	go func() { // until the agent's last event
		defer close(v.ended)
		for e := range events {
			if o, ok := e.Body.(agent.Opened); ok {
				select {
				case opened <- o:
				default:
				}
			}
			l.in.put(happened{v, e})
			if _, last := e.Body.(agent.Exited); last {
				return
			}
		}
	}()
	v.session, err = a.Open(ctx, l.spec(number, resume), events)
	if err != nil {
		close(events)
		return err
	}
	select {
	case more.Opened = <-opened:
	case <-v.ended:
		return errors.New("the agent has ended at once")
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), v.session.Close(context.WithoutCancel(ctx)))
	}
	l.live[number] = v
	if more.Agent == "" {
		more.Agent = name
	}
	return l.commit(ctx, who{orchestrator, number}, string(agent.KindOpened), more)
}

// AgentOf returns the name of the agent that works in an undertaking; "" if its machine names none.
func AgentOf(s *session.Session) string {
	m := s.Machine()
	for _, list := range append([][]machine.Specialist{m.Specialists()}, s.State.Roster) {
		for i := range list {
			if list[i].SpecialistID == orchestrator && list[i].Agent != "" {
				return list[i].Agent
			}
		}
	}
	return ""
}

// spec says what session to open for a worker.
func (l *Loop) spec(number int, resume string) agent.Spec {
	id := l.c.Session.String() + "/orch-" + itoa(number)
	return agent.Spec{
		ID: id, As: orchestrator, Taken: l.state.Taken, Cwd: l.c.Cwd, Model: l.c.Model, SystemPrompt: systemPrompt(number), Resume: resume,
		OwnTools: ownTools, Tools: hostTools, Env: l.c.Env, TrustAgent: l.c.Trust,
	}
}

// ownTools are those of its own that a worker has.
var ownTools = []string{"Agent", "Bash", "Edit", "Read", "Write", "Glob", "Grep"}

// wakeAfter is how long is waited before an agent is opened again that has gone.
var wakeAfter = []time.Duration{time.Second, 4 * time.Second, 16 * time.Second}

// wake opens a worker's agent session again, whose process is gone.
func (l *Loop) wake(ctx context.Context, w *Worker) (bool, error) {
	if w.Failures > l.set.Wakes || w.Lost != "" {
		return false, nil // the engine says that it is lost
	}
	if at, here := l.gone[w.Number]; here && w.Failures > 0 && l.c.Now().Sub(at) < wakeAfter[min(w.Failures, len(wakeAfter))-1] {
		return false, nil
	}
	if did, err := l.overBudget(ctx); did || err != nil {
		return did, err
	}
	if err := l.open(ctx, w.Number, w.AgentSession, opening{}); err != nil {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		l.tell(w.Number, "does not open again: %v", err)
		l.gone[w.Number] = l.c.Now()
		return false, l.commit(ctx, who{orchestrator, w.Number}, string(agent.KindExited), closing{Problem: err.Error(), Lost: lostBy(err)})
	}
	l.tell(w.Number, "opened again")
	return false, l.promptOpened(ctx, w.Number)
}

// lostBy returns why an agent session cannot be opened again; "" if that may be tried.
func lostBy(err error) string {
	if errors.Is(err, agent.ErrUnknown) {
		return "the agent does not know its session any more"
	}
	return ""
}

// A closing is what the log says of an exit beside what the agent says.
type closing struct {
	agent.Exited
	Closed  bool   `json:"closed,omitempty"` // by us
	Host    bool   `json:"host,omitempty"`   // with the process that drove it
	Problem string `json:"problem,omitempty"`
	Lost    string `json:"lost,omitempty"` // why it cannot be opened again
}

// prompt begins a turn, if the budget has room for one.
func (l *Loop) prompt(ctx context.Context, v *live, text string) (bool, error) {
	if did, err := l.overBudget(ctx); did || err != nil {
		return did, err
	}
	about := who{orchestrator, v.number}
	if words := l.unheard(v); len(words) > 0 {
		text += "\n\n" + wordsFor(words)
		l.note(about, kindTold, toldOf(words, l.state.worker(v.number)))
	}
	if w := l.state.worker(v.number); w.Notice != "" {
		text += "\n\n" + w.Notice
		l.note(about, kindNoticed, nil)
	}
	if err := l.commit(ctx, about, string(agent.KindTurn), nil); err != nil {
		return false, err
	}
	v.turn, v.prompted, v.interrupted, v.record, v.began, v.heard, v.said = true, true, false, l.s.State.Name == "wrapping", l.c.Now(), l.c.Now(), ""
	err := v.session.Send(ctx, agent.Message{ID: uuid.NewString(), Content: text, Deliver: agent.Steer})
	if err != nil && ctx.Err() == nil { // its end follows as an event
		l.tell(v.number, "cannot be prompted: %v", err)
		l.end(ctx, v)
		return false, nil
	}
	return false, err
}

// end closes a worker's process; its exit follows as an event.
func (l *Loop) end(ctx context.Context, v *live) {
	if v.closing {
		return
	}
	v.closing = true
	for _, cancel := range v.asks {
		cancel()
	}
	go func() {
		if err := v.session.Close(context.WithoutCancel(ctx)); err != nil {
			l.in.put(problem{v.number, err})
		}
	}()
}

// A problem is what went wrong beside the loop.
type problem struct {
	number int
	err    error
}

func (p problem) handle(_ context.Context, l *Loop) bool {
	l.tell(p.number, "%v", p.err)
	return false
}

// closeAll ends every process, and waits for their last events.
func (l *Loop) closeAll(ctx context.Context) error {
	if l.check != nil {
		l.check()
	}
	for _, v := range l.live {
		v.dismissed = true
		l.end(ctx, v)
	}
	for {
		for e := l.in.take(); e != nil; e = l.in.take() {
			if h, ok := e.(happened); ok {
				h.handle(ctx, l)
			}
		}
		if len(l.live) == 0 {
			break
		}
		<-l.in.filled
	}
	l.beside.Wait() // what nobody asks any more is withdrawn, and no check is left
	return l.flush(ctx)
}

// release lets the bound worker go if a move did, also one that was executed while this process
// was not there. A human's move may have no record; one is made from the logs then.
func (l *Loop) release(ctx context.Context) error {
	w, left := l.state.bound(), l.state.left()
	if left == nil {
		return nil
	}
	reason := reasonOf(w, left.Transition)
	var record json.RawMessage
	if l.state.RecordRound < left.Round {
		record = l.lostRecord(ctx, w, "its hand-over was ruled")
	}
	now := l.tree(ctx)
	idle := now.Digest == w.TreeBefore && now.Head == w.HeadBefore && !l.finishedBy(w.Number)
	number := w.Number
	if err := l.commit(ctx, who{orchestrator, number}, kindReleased, released{reason, idle, record, left.Round}); err != nil {
		return err
	}
	if v := l.live[number]; v != nil {
		v.dismissed = true
		l.end(ctx, v)
	}
	return nil
}

type released struct {
	Reason string `json:"reason"`
	Idle   bool   `json:"idle"`
	// Record is made where the move had none.
	Record json.RawMessage `json:"record,omitempty"`
	Round  int32           `json:"round"` // of the move
}

// finishedBy reports whether a worker has finished a task.
func (l *Loop) finishedBy(number int) bool {
	for _, t := range l.state.Tasks {
		if t.Number == number && (t.Status == "done" || t.Status == "verified") {
			return true
		}
	}
	return false
}
