package undertaking

import (
	"context"
	"os/exec"
	"time"

	"github.com/dialai/dialai/internal/packs"
)

// The check is a command. It speaks before anybody else does, so that no vote beats a failing
// test.

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
		if v.who.As != manager && (v.turn || v.closing) {
			return false, nil // it may still change what is checked
		}
	}
	running, cancel := context.WithTimeout(ctx, l.set.CheckTime)
	l.check, l.checked = cancel, l.s.Key().Round
	line := l.checkCommand()
	if line != "" {
		l.tell(who{}, "runs the check: %s", firstLine(line))
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
