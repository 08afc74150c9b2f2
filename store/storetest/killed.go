package storetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/internal/archive"
	"github.com/dialai/dialai/store/internal/erase"
)

// Processes that archive and erase, and are killed, by the same suite for a file and a database.

// Variables of a process that RunKilled starts: what it does, and with which archive.
const (
	KilledDoes = "DIALAI_KILLED_DOES"
	killedFile = "DIALAI_KILLED_FILE"
)

// killedStep begins the line by which such a process says a step: a test's process has others ("PASS"), after which it waits for nothing.
const killedStep = "step: "

// Killed is what such a process does with its store: it archives, or erases. It says so after each step, and goes on once it is told to.
func Killed(ctx context.Context, s EraseStore) (err error) {
	told := bufio.NewScanner(os.Stdin)
	say := func(step string) error {
		fmt.Println(killedStep + step)
		told.Scan()
		return told.Err()
	}
	file := os.Getenv(killedFile)
	if err := say("begun"); err != nil {
		return err
	}
	switch does := os.Getenv(KilledDoes); does {
	case "archive":
		_, err = s.Archive(ctx, archiveAll(file, say))
	case "erase", "erase in the archive":
		o := ofSubject()
		if o.After = say; does != "erase" {
			o.Archive = file
		}
		_, err = s.Erase(ctx, o)
	default:
		err = fmt.Errorf("a process that does %q is not known", does)
	}
	return err
}

func archiveAll(file string, after func(step string) error) archive.Options {
	return archive.Options{Before: specialist.Time(1) << 50, To: file, At: 7, Programs: session.NewPrograms(), After: after}
}

// RunKilled kills processes that archive and erase after each of their steps, at once or a moment later. Whenever that is, each session is
// in the store or the archive, whole or without payloads, the store verifies, and another process finishes what was begun. command returns
// a process that calls Killed with a store over the data of m. Of so many steps one is taken, which one the seed says.
func RunKilled(t *testing.T, m EraseMaker, every int, command func(t *testing.T) *exec.Cmd) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	k := &killing{eraseBench: &eraseBench{T: t, ctx: t.Context(), EraseMaker: m, store: m.Open(t)}, command: command, rng: rand.New(rand.NewPCG(seed, 1)), file: filepath.Join(t.TempDir(), "archive.db")}
	for _, does := range []string{"erase", "archive", "erase in the archive"} {
		for step, ended := 1+k.rng.IntN(every), false; !ended; step += every {
			is := Speak(t, k.store, true)
			k.begin()
			if does == "erase in the archive" {
				k.ok(k.again("archive"))
			}
			ended = k.kill(does, step)
			k.check(fmt.Sprintf("%s, killed after step %d", does, step), is.ID, is.Fork)
			k.ok(k.again(does))
			in := k.check(fmt.Sprintf("%s, killed after step %d, run again", does, step), is.ID, is.Fork)
			if want := map[string]int{"erase": 1, "archive": 2, "erase in the archive": 3}[does]; in[0] != want || in[1] != want {
				t.Errorf("%s, killed after step %d, run again: the sessions are %v, not %d", does, step, in, want)
			}
			if does == "archive" { // so that the next ones are found by themselves
				k.ok(k.again("erase in the archive"))
			}
			if found := append(k.Found(t, Said[:9]), k.FoundIn(t, Said[:9], k.file)...); len(found) > 0 {
				t.Errorf("%s, killed after step %d: still there: %v", does, step, found)
			}
			if ended && step < 4 {
				t.Errorf("%s has only %d steps", does, step)
			}
		}
	}
}

// A killing is one run of RunKilled.
type killing struct {
	*eraseBench
	command func(t *testing.T) *exec.Cmd
	rng     *rand.Rand
	file    string
}

// begin starts a session that goes on, so that the newest records are none of the others.
func (k *killing) begin() {
	k.Helper()
	r, err := runner.New(runner.Config{Store: k.store})
	k.ok(err)
	defer r.Close()
	m, err := machine.Parse("talking.json", []byte(talking), runner.Checks())
	k.ok(err)
	is, err := r.Start(k.ctx, m, runner.StartOptions{Meta: []byte(`{"about":"something else"}`)})
	k.ok(err)
	k.ok(k.store.AppendAgentLog(k.ctx, is.ID, 0, session.AgentEvent{At: 1, Kind: "note", Data: []byte(`{"text":"on it"}`)}))
}

// kill has a process do something, and kills it a moment after a step. It reports whether it had ended before.
func (k *killing) kill(does string, step int) (ended bool) {
	k.Helper()
	p := k.command(k.T)
	p.Env = append(append(os.Environ(), p.Env...), KilledDoes+"="+does, killedFile+"="+k.file)
	p.Stderr = os.Stderr
	out, err := p.StdoutPipe()
	k.ok(err)
	in, err := p.StdinPipe()
	k.ok(err)
	k.ok(p.Start())
	lines := bufio.NewScanner(out)
	said := 0
	for said < step && lines.Scan() {
		if !strings.HasPrefix(lines.Text(), killedStep) {
			continue
		}
		if said++; said < step || k.rng.IntN(2) == 0 {
			_, err := fmt.Fprintln(in)
			k.ok(err)
		}
	}
	<-time.After(time.Duration(k.rng.Int64N(int64(8 * time.Millisecond))))
	k.ok(p.Process.Kill())
	_, _ = io.Copy(io.Discard, out)
	err = p.Wait()
	if ended = said < step; ended && err != nil {
		k.Errorf("%s: the process has ended by itself: %v", does, err)
	}
	return ended
}

// again does the same by this process, as soon as the other one counts as dead.
func (k *killing) again(does string) (err error) {
	k.Helper()
	for began := time.Now(); ; <-time.After(20 * time.Millisecond) {
		switch does {
		case "archive":
			_, err = k.store.Archive(k.ctx, archiveAll(k.file, nil))
		default:
			o := ofSubject()
			if does != "erase" {
				o.Archive = k.file
			}
			if _, err = k.store.Erase(k.ctx, o); errors.Is(err, session.ErrNotFound) || errors.Is(err, os.ErrNotExist) { // it was done
				err = nil
			}
		}
		if !errors.Is(err, erase.ErrArchiving) || time.Since(began) > time.Minute {
			return err
		}
	}
}

// check returns how sessions are: 0 in the store, 1 erased there, 2 in the archive, 3 erased there; and fails the test
// unless each is somewhere, and the store verifies.
func (k *killing) check(when string, ids ...specialist.SessionID) (how []int) {
	k.Helper()
	k.whole(when)
	for _, id := range ids {
		is := -1
		look := func(s session.Store, base int) {
			if now, err := s.Load(k.ctx, session.NewPrograms(), id); err == nil && is < 0 {
				if is = base; now.Erased() {
					is++
				}
			}
		}
		look(k.Open(k.T), 0)
		if is < 0 {
			k.ok(k.File(k.T, k.file, false, func(s session.Store) { look(s, 2) }))
		}
		if how = append(how, is); is < 0 {
			k.Errorf("%s: session %s is nowhere", when, id)
		}
	}
	if slices.Contains(how, 3) {
		k.lookIn(when, k.file)
	}
	return how
}
