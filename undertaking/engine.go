package undertaking

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/packs"
	"github.com/dialai/dialai/permit"
	"github.com/dialai/dialai/session"
)

// What the engine's own seat decides, all of it from figures: when a worker's context is too
// full for new work, when it is lost, and what no agent may do. Soft is told once, hard acts.

// serveEngine answers the engine's ask, if it has something to say.
func (l *Loop) serveEngine(ctx context.Context) (bool, error) {
	transition, reason := l.engineMove()
	if transition == "" || !mayMove(l.s.State.Name, engine, transition) {
		return false, nil
	}
	payload := map[string]any{"reason": reason}
	if transition == "lost" {
		payload["record"] = l.lostRecord(ctx, l.state.bound(), reason)
	}
	return l.propose(ctx, engine, Move{Transition: transition, Payload: mustJSON(payload)})
}

// engineMove returns what the engine has to say of the bound worker; "" if that is nothing.
func (l *Loop) engineMove() (transition, reason string) {
	w := l.state.bound()
	if w == nil {
		return "", ""
	}
	v := l.live[w.Number]
	pct := percent(w.Usage)
	switch {
	case w.Lost != "":
		return "lost", w.Lost
	case w.Failures > l.set.Wakes:
		return "lost", fmt.Sprintf("its process has gone %d times without a completed turn", w.Failures)
	case v == nil && w.Crossed.Hard && room(w.Usage) < minRoom, w.Compaction && v == nil && w.Usage.Used > 0 && room(w.Usage) < minRoom:
		return "lost", "its context is full"
	case l.s.State.Name == "wrapping" && v != nil && v.record && !v.turn && v.interrupted:
		return "lost", fmt.Sprintf("it wrote no record within %s", l.set.RecordTime)
	case l.s.State.Name == "wrapping" && v != nil && !v.turn && v.prompts > l.set.Prompts:
		return "lost", "it was asked for its record and gave none"
	case l.s.State.Name != "wrapping" && w.Compaction:
		return "cut_short", "its context was to be compacted, at " + pct
	case l.s.State.Name != "wrapping" && w.Crossed.Hard:
		return "cut_short", "its context is " + pct + " full"
	}
	return "", ""
}

// minRoom is how many tokens a worker needs to write its record.
const minRoom = 8000

// room returns how many tokens are left; a context of unknown size has room.
func room(u agent.Usage) int64 {
	if u.Ceiling <= 0 {
		return minRoom
	}
	return u.Ceiling - u.Used
}

// inGrace interrupts a worker that was cut short and has had its time, and reports whether it
// did.
func (l *Loop) inGrace(ctx context.Context, v *live) bool {
	w := l.state.worker(v.number)
	if l.s.State.Name != "wrapping" || !v.turn || v.interrupted || l.state.Bound != v.number {
		return false
	}
	if v.record && l.c.Now().Sub(v.began) < l.set.RecordTime {
		return false
	}
	if !v.record && w.Uses <= l.set.GraceUses && l.c.Now().Sub(l.s.EnteredAt().Time()) < l.set.GraceTime && room(w.Usage) >= minRoom {
		return false
	}
	l.interrupt(ctx, v)
	return true
}

// refused returns why a worker may not use a tool; "" if it may.
func (l *Loop) refused(w *Worker, h agent.Hook) string {
	switch {
	case spawns(h.Tool):
		switch {
		case h.Parent != "":
			return "a subagent starts no subagents: do the work, and tell the one that started you"
		case w.Crossed.Hard || w.Compaction:
			return "your context is nearly full: start nothing new, and hand over"
		case w.SpawnedNow >= l.set.SpawnsTurn:
			return fmt.Sprintf("this turn has started %d subagents, and may not start more: end the turn with a report, and go on in the next", w.SpawnedNow)
		case w.Spawned >= l.set.SpawnsAll:
			return fmt.Sprintf("this session has started %d subagents, and may not start more: hand over", w.Spawned)
		}
	case h.Tool == "Bash":
		if permit.Stashes(h.Input) {
			return "git stash is one stack for all worktrees: commit on a branch instead"
		}
	}
	return ""
}

// spawns reports whether a tool starts a subagent.
func spawns(tool string) bool { return tool == "Task" || tool == "Agent" }

// capUSD returns the budget's limit in dollars, and whether there is one.
func capUSD(s *session.Session) (exact.Money, bool) {
	if c := s.Program.Guards(s.State); c != nil && c.Budget != nil && c.Budget.HardUSD != nil {
		return *c.Budget.HardUSD, true
	}
	return 0, false
}

func capTokens(s *session.Session) (int64, bool) {
	if c := s.Program.Guards(s.State); c != nil && c.Budget != nil && c.Budget.HardTokens != nil {
		return *c.Budget.HardTokens, true
	}
	return 0, false
}

// spent returns what the undertaking has cost: what the session's log has, what it does not
// have yet, and what the open process of a worker has not been charged.
func (l *Loop) spent() Cost {
	book := l.s.Spent()
	sum := Cost{book.Money, book.TokensIn, book.TokensOut}.plus(l.state.unpaid())
	for _, v := range l.live {
		sum = sum.plus(v.cost.minus(v.charged))
	}
	return sum
}

// budgetNote begins the note of an undertaking that was stopped for its budget.
const budgetNote = "budget: "

// Exceeded returns the limit that an undertaking was stopped for because a turn more might not
// fit into it, as resume raises it; "" if it was stopped for something else, or is not.
func Exceeded(s *session.Session) string {
	switch reason := s.Outcome().Reason; {
	case s.Status != session.Stopped || !strings.HasPrefix(reason, budgetNote):
		return ""
	case strings.HasSuffix(reason, "tokens are spent"):
		return "budget.hard_limit_tokens"
	}
	return "budget.hard_limit_usd"
}

// overBudget stops the undertaking if a turn more might cost more than is left, and reports
// whether it did.
func (l *Loop) overBudget(ctx context.Context) (bool, error) {
	spent, next := l.spent(), or(l.state.Dearest, l.set.FirstTurn)
	limit, limited := capUSD(l.s)
	if limited && spent.USD+next > limit {
		return l.stop(ctx, fmt.Sprintf(budgetNote+"$%s of $%s is spent, and the next turn may cost $%s", spent.USD, limit, next))
	}
	if tokens, limited := capTokens(l.s); limited && spent.In+spent.Out >= tokens {
		return l.stop(ctx, fmt.Sprintf(budgetNote+"%d of %d tokens are spent", spent.In+spent.Out, tokens))
	}
	if limited && 5*spent.USD >= 4*limit && !l.told["budget"] {
		l.told["budget"] = true
		l.tell(l.state.Bound, "$%s of $%s is spent", spent.USD, limit)
	}
	return false, nil
}

// overCap reports whether a running turn has brought the undertaking over its budget.
func (l *Loop) overCap() bool {
	spent := l.spent()
	usd, inUSD := capUSD(l.s)
	tokens, inTokens := capTokens(l.s)
	return inUSD && spent.USD > usd || inTokens && spent.In+spent.Out > tokens
}

// serveChecks has the check run, or hands in what follows from it.
func (l *Loop) serveChecks(ctx context.Context) (bool, error) {
	if l.s.State.Name == "ruling" {
		last := l.state.Last
		switch {
		case last.Transition != "passed":
		case read[struct{ Command string }](last.Payload).Command == "":
			return l.withdraw(ctx, checks, "nothing_ran", "no check command was run, so no check speaks for the work")
		default:
			return l.propose(ctx, checks, Move{Transition: "accept", Payload: mustJSON(map[string]string{"message": "the check has passed"})})
		}
		return l.withdraw(ctx, checks, "nothing_passed", "the worker asks, and no check speaks for it")
	}
	if l.check != nil {
		return false, nil
	}
	for _, v := range l.live {
		if v.turn || v.closing {
			return false, nil // it may still change what is checked
		}
	}
	running, cancel := context.WithTimeout(ctx, l.set.CheckTime)
	l.check, l.checked = cancel, l.s.Key().Round
	line := l.input().Check
	if line != "" {
		l.tell(0, "runs the check: %s", firstLine(line))
	}
	round := l.checked
	l.beside.Go(func() {
		defer cancel()
		l.in.put(runCheck(running, l.c.Cwd, line, round))
	})
	return false, nil
}

// A checkDone is what came of a check.
type checkDone struct {
	round   int32
	command string
	exit    int
	output  string
}

const maxOutput = 4 << 10 // bytes of a check's output, the last

// runCheck runs a check command in the working tree, in a process group of its own.
func runCheck(ctx context.Context, cwd, line string, round int32) checkDone {
	d := checkDone{round: round, command: line}
	if line == "" {
		d.output = "there is no check command: nothing was run"
		return d
	}
	tail := &tail{max: maxOutput}
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir, cmd.Stdout, cmd.Stderr = cwd, tail, tail
	inGroup(cmd)
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	d.output = packs.Redact(tail.String())
	switch {
	case ctx.Err() == context.DeadlineExceeded:
		d.exit, d.output = -1, d.output+"\n(the check took too long, and was ended)"
	case cmd.ProcessState != nil:
		d.exit = cmd.ProcessState.ExitCode()
	case err != nil:
		d.exit, d.output = -1, err.Error()
	}
	return d
}

func (d checkDone) handle(ctx context.Context, l *Loop) bool {
	l.check = nil
	if l.s.State.Name != "checking" || l.s.Key().Round != d.round || ctx.Err() != nil {
		return true
	}
	transition := "passed"
	output := d.output
	if remaining := read[struct{ Remaining []string }](l.state.Record).Remaining; d.exit == 0 && len(remaining) > 0 {
		transition, output = "failed", output+"\n(the check passes, and work remains)"
	} else if d.exit != 0 {
		transition = "failed"
	}
	payload := mustJSON(map[string]any{"command": d.command, "exit": d.exit, "output": output, "tree": l.tree(ctx).Digest, "message": firstLine(d.command)})
	if _, err := l.propose(ctx, checks, Move{Transition: transition, Payload: payload}); err != nil {
		l.fail(err)
	}
	return true
}

// A tail keeps the end of what is written to it.
type tail struct {
	max  int
	text []byte
	cut  bool
}

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	if over := len(t.text) - t.max; over > 0 {
		t.text, t.cut = append(t.text[:0], t.text[over:]...), true
	}
	return len(p), nil
}

func (t *tail) String() string {
	text := string(t.text)
	if t.cut {
		text = "…" + text
	}
	return text
}
