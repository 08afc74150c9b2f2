package undertaking

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
)

// An agent session is opened when its specialist is asked and none goes on, woken when its
// process is gone, prompted when it is asked and no turn of it runs, and what its turn ends with
// is handed in. One turn of it runs at a time.
//
// A turn costs money before anybody knows how much, so a turn begins only if what the dearest
// turn has cost so far still fits into the budget.

// A live is the open process of an agent session.
type live struct {
	who         who
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
	dropped     bool      // by a human: the move of the turn does not count
	stopped     time.Time // when it was interrupted
	silent      bool      // because of its silence
	heard       time.Time
	quiet       bool              // people were told of its silence
	probing     bool              // it is asked whether it is there
	probed      time.Time         // when that was asked last
	missed      int               // times it did not say so, in a row
	said        string            // the last text of the turn
	batch       batchOf           // the tool uses of its newest message
	loops       string            // why its ask ends: it goes round
	using       map[string]string // tools that run and were told of, by the id of the use
	levels      agent.Levels
	prompted    bool   // at least once
	lost        string // why it cannot be opened again
}

// attend has an agent session work, and hands in what came of it.
func (l *Loop) attend(ctx context.Context, w *Worker) (bool, error) {
	v := l.live[w.who()]
	switch {
	case v != nil && (v.turn || v.closing):
		return false, nil // it is at work, or on its way out
	case v != nil && v.loops != "":
		note := v.loops
		v.loops = ""
		return l.withdraw(ctx, w.As, "loop", note)
	case l.candidate(w) != nil:
		return l.handIn(ctx, w, *l.candidate(w))
	case v == nil:
		return l.wake(ctx, w)
	case v.prompts > l.set.Prompts:
		v.prompts = 0
		return l.withdraw(ctx, w.As, "no_move", fmt.Sprintf("%s ended %d turns without a move", w.id(), l.set.Prompts+1))
	}
	return l.prompt(ctx, v, l.promptFor(w, v))
}

// candidate returns the move with which a session's turn has ended, if it is legal here.
func (l *Loop) candidate(w *Worker) *Move {
	if c := l.state.candidate(w); c != nil && !w.Turn && mayMove(l.s.State.Name, w.As, c.Transition) {
		return c
	}
	return nil
}

// handIn hands in the move of an agent session, unless it makes it too often.
func (l *Loop) handIn(ctx context.Context, w *Worker, m Move) (bool, error) {
	if over, err := l.visit(ctx, w, m); over != "" || err != nil {
		if err == nil {
			return l.withdraw(ctx, w.As, "visits", over)
		}
		return false, err
	}
	l.listTasks(w, m)
	m, err := l.recorded(ctx, w, m)
	if err != nil {
		return false, err
	}
	return l.propose(ctx, w.As, m)
}

// An opening is what the log says of one beside what the agent says.
type opening struct {
	agent.Opened
	Since      int32  `json:"since,omitempty"` // the round
	Told       int32  `json:"told,omitempty"`  // the round up to which what was said is for those before it
	Fresh      bool   `json:"fresh,omitempty"` // it remembers nothing
	Hard       int    `json:"hard,omitempty"`  // at how full a context it hands over, in per cent
	HeadBefore string `json:"headBefore,omitempty"`
	TreeBefore string `json:"treeBefore,omitempty"`
}

// open opens an agent session, or goes on with it.
func (l *Loop) open(ctx context.Context, of who, resume string, more opening) error {
	name := agentOf(l.s, of.As)
	a, err := l.c.Agent(name)
	if err != nil {
		return err
	}
	events := make(chan agent.Event)
	v := &live{who: of, ended: make(chan struct{}), asks: map[string]context.CancelFunc{}, heard: l.c.Now()}
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
	v.session, err = a.Open(ctx, l.spec(of, resume), events)
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
	l.live[of] = v
	v.levels = levelsOf(l.set.Levels, more.Capabilities)
	more.Hard = v.levels.Hard
	if more.Agent == "" {
		more.Agent = name
	}
	return l.commit(ctx, of, string(agent.KindOpened), more)
}

// earlier is how many points earlier an agent hands over that may compact its context unasked, or
// that does not say how full it is until a turn has ended.
const earlier = 10

func levelsOf(l agent.Levels, c agent.Capabilities) agent.Levels {
	if !c.BlockCompaction || !c.LiveUsage {
		l.Hard = max(l.Hard-earlier, l.Soft)
	}
	return l
}

// agentOf returns the name of the agent that a specialist is in an undertaking; "" if its machine
// names none.
func agentOf(s *session.Session, specialist string) string {
	m := s.Machine()
	for _, list := range append([][]machine.Specialist{m.Specialists()}, s.State.Roster) {
		for i := range list {
			if list[i].SpecialistID == specialist && list[i].Agent != "" {
				return list[i].Agent
			}
		}
	}
	return ""
}

// AgentsOf returns the names of the agents that take part in an undertaking.
func AgentsOf(s *session.Session) (names []string) {
	for _, id := range []string{manager, orchestrator, verifierA, verifierB} {
		if name := agentOf(s, id); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// spec says what session to open.
func (l *Loop) spec(of who, resume string) agent.Spec {
	model := ""
	if agentOf(l.s, of.As) == agentOf(l.s, orchestrator) { // another agent has other models
		model = l.c.Model
	}
	return agent.Spec{
		ID: l.c.Session.String() + "/" + of.String(), As: of.As, Taken: l.state.Taken, Cwd: l.c.Cwd, Model: model, Resume: resume,
		SystemPrompt: l.systemPrompt(of), OwnTools: ownTools[of.As], Tools: hostTools(of.As), Env: l.c.Env, TrustAgent: l.c.Trust,
	}
}

// ownTools are those of its own that an agent has. A manager has none: it decides by what it is
// told.
var ownTools = map[string][]string{
	manager:      {},
	orchestrator: {"Agent", "Bash", "Edit", "Read", "Write", "Glob", "Grep"},
	verifierA:    {"Bash", "Read"},
	verifierB:    {"Bash", "Read"},
}

// wakeAfter is how long is waited before an agent is opened again that has gone.
var wakeAfter = []time.Duration{time.Second, 4 * time.Second, 16 * time.Second}

// wake opens an agent session again, whose process is gone.
func (l *Loop) wake(ctx context.Context, w *Worker) (bool, error) {
	if w.Failures > l.set.Wakes || w.Lost != "" {
		return false, nil // it is lost, which is said elsewhere
	}
	if at, here := l.gone[w.who()]; here && w.Failures > 0 && l.c.Now().Sub(at) < wakeAfter[min(w.Failures, len(wakeAfter))-1] {
		return false, nil
	}
	if did, err := l.overBudget(ctx); did || err != nil {
		return did, err
	}
	of := w.who()
	if err := l.open(ctx, of, w.AgentSession, opening{}); err != nil {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		l.tell(of, "does not open again: %v", err)
		l.gone[of] = l.c.Now()
		return false, l.commit(ctx, of, string(agent.KindExited), closing{Problem: err.Error(), Lost: lostBy(err)})
	}
	l.tell(of, "opened again")
	if l.s.State.Name == "summoning" {
		return true, nil // it is briefed first
	}
	return false, l.promptOpened(ctx, of)
}

// maxOpenings is how often a session that is new is tried to be opened.
const maxOpenings = 3

// openNew opens an agent session that is new, and returns whether it stopped the undertaking
// because none opens.
func (l *Loop) openNew(ctx context.Context, of who, more opening) (stopped bool, err error) {
	if did, err := l.overBudget(ctx); did || err != nil {
		return did, err
	}
	more.Since, more.Fresh = l.s.Key().Round, true
	var problems error
	for range maxOpenings {
		err := l.open(ctx, of, "", more)
		if err == nil {
			l.tell(of, "opened %s", l.state.agent(of).Agent)
			return false, nil
		}
		if problems = errors.Join(problems, err); ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
	}
	return l.stop(ctx, fmt.Sprintf("no session of the agent opens: %v", problems))
}

func (l *Loop) promptOpened(ctx context.Context, of who) error {
	w, v := l.state.agent(of), l.live[of]
	_, err := l.prompt(ctx, v, l.promptFor(w, v))
	return err
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
	w := l.state.agent(v.who)
	letters := l.letters(w, w.Told)
	if len(letters) > 0 {
		text += "\n\n" + lettersFor(letters)
	}
	if v.who.As == manager && len(l.state.Met) > 0 {
		text += "\n\nWhat befell workers since your last turn:\n- " + strings.Join(l.state.Met, "\n- ")
	}
	if words := l.unheard(w, !v.prompted); len(words) > 0 {
		text += "\n\n" + wordsFor(words)
		l.note(v.who, kindTold, toldOf(words, w))
	}
	if w := l.state.agent(v.who); w.Notice != "" {
		text += "\n\n" + w.Notice
		l.note(v.who, kindNoticed, nil)
	}
	text += "\n\n" + l.legal(v.who.As)
	if err := l.commit(ctx, v.who, string(agent.KindTurn), turnBegan{newestOf(letters, w.Told)}); err != nil {
		return false, err
	}
	v.turn, v.prompted, v.interrupted, v.dropped, v.record, v.began, v.heard, v.said = true, true, false, false, l.s.State.Name == "wrapping", l.c.Now(), l.c.Now(), ""
	err := v.session.Send(ctx, agent.Message{ID: uuid.NewString(), Content: text, Deliver: agent.Steer})
	if err != nil && ctx.Err() == nil { // its end follows as an event
		l.tell(v.who, "cannot be prompted: %v", err)
		l.end(ctx, v)
		return false, nil
	}
	return false, err
}

// A turnBegan says up to which round a turn has what was said to its session.
type turnBegan struct {
	Round int32 `json:"round,omitempty"`
}

// end closes the process of an agent session; its exit follows as an event.
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
			l.in.put(problem{v.who, err})
		}
	}()
}

// A problem is what went wrong beside the loop.
type problem struct {
	who who
	err error
}

func (p problem) handle(_ context.Context, l *Loop) bool {
	l.tell(p.who, "%v", p.err)
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
