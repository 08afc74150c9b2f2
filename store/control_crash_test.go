package store_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/store"
)

// TestControlWorker is no test: it is a process that TestControlKilled starts. It does some
// requests: begins each, has its effect, which is a file of its id, and ends it. After each of
// the three it says so.
func TestControlWorker(t *testing.T) {
	path, dies := os.Getenv("DIALAI_CONTROL_WORKER"), os.Getenv("DIALAI_CONTROL_DIES")
	if path == "" {
		t.Skip("only for TestControlKilled")
	}
	ctx := context.Background()
	c, err := store.OpenControl(ctx, path, store.SQLiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	say := func(what string, i int) {
		fmt.Printf("%s %d\n", what, i)
		if fmt.Sprint(what, " ", i) == dies {
			self, err := os.FindProcess(os.Getpid())
			if err == nil {
				err = self.Kill()
			}
			if err != nil {
				t.Fatal(err)
			}
			select {}
		}
	}
	var first int
	if _, err := fmt.Sscan(os.Getenv("DIALAI_CONTROL_FIRST"), &first); err != nil {
		t.Fatal(err)
	}
	for i := first; i < first+workOfAWorker; i++ {
		r, e := aRequest(fmt.Sprint(i))
		begun, err := c.Begin(ctx, r, e)
		if errors.Is(err, control.ErrInProgress) {
			continue // the other process is at it
		}
		if err != nil {
			t.Fatal(err)
		}
		if begun.Answer != nil {
			say("replayed", i)
			continue
		}
		say("begun", i)
		f, err := os.OpenFile(filepath.Join(filepath.Dir(path), r.Key.ID().String()), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		switch {
		case err == nil:
			err = f.Close()
		case errors.Is(err, os.ErrExist) && begun.Resumed: // it was there before: the effect is known by its id
			err = nil
		}
		if err != nil {
			t.Fatal(err)
		}
		say("acted", i)
		if err := c.Commit(ctx, answered(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
		say("ended", i)
	}
}

// workOfAWorker is how many requests one does.
const workOfAWorker = 6

// workers are the processes of TestControlKilled.
type workers struct {
	*testing.T
	path string

	mu   sync.Mutex
	said map[string]int // what all of them have said, by how often
}

// work starts a worker on some requests and waits for its end. It kills itself when it says
// something, or is killed after so many lines, if they are given.
func (w *workers) work(first int, dies string, killAfter int) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestControlWorker$", "-test.v")
	cmd.Env = append(os.Environ(), "DIALAI_CONTROL_WORKER="+w.path, fmt.Sprint("DIALAI_CONTROL_FIRST=", first), "DIALAI_CONTROL_DIES="+dies)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.Error(err)
		return
	}
	lines := 0
	for scanner := bufio.NewScanner(out); scanner.Scan(); {
		what, _, _ := strings.Cut(scanner.Text(), " ")
		switch {
		case slices.Contains([]string{"begun", "acted", "ended", "replayed"}, what):
			w.mu.Lock()
			w.said[scanner.Text()]++
			w.mu.Unlock()
			if lines++; lines == killAfter {
				cmd.Process.Kill()
			}
		case strings.Contains(scanner.Text(), "control_crash_test.go"):
			w.Error(scanner.Text())
		}
	}
	if err := cmd.Wait(); err != nil && dies == "" && killAfter == 0 {
		w.Error(err)
	}
}

// TestControlKilled kills processes that do requests: alone, at each place where one may be,
// and anywhere, while another does the same ones. Nobody acts twice but for whom was killed in
// between, no answer that was acknowledged is lost, and in the end every request is answered
// and has had its effect.
func TestControlKilled(t *testing.T) {
	rng := rand.New(rand.NewPCG(20261124, 1))
	w := &workers{T: t, path: filepath.Join(t.TempDir(), "dialai.db.control"), said: map[string]int{}}
	const rounds = 9
	for round := range rounds {
		first := round * workOfAWorker
		if round < 3 {
			at := fmt.Sprint([]string{"begun", "acted", "ended"}[round], " ", first+round)
			if w.work(first, at, 0); w.said[at] != 1 {
				t.Errorf("nobody was killed where one has %s", at)
			}
		} else {
			var wg sync.WaitGroup
			for range 2 {
				after := 1 + rng.IntN(3*workOfAWorker)
				wg.Go(func() { w.work(first, "", after) })
			}
			wg.Wait()
		}
		w.work(first, "", 0)
	}
	for at, n := range map[string]int{"begun 0": 2, "acted 0": 1, "begun 7": 2, "acted 7": 2, "ended 7": 1, "begun 14": 1, "replayed 14": 1} {
		if w.said[at] != n {
			t.Errorf("alone processes have said %q %d times, want %d", at, w.said[at], n)
		}
	}
	withControl(t, w.path, func(c *store.Control) {
		for i := range rounds * workOfAWorker {
			r, e := aRequest(fmt.Sprint(i))
			if b, err := c.Begin(t.Context(), r, e); err != nil || b.Answer == nil || string(b.Answer.Body) != fmt.Sprint(i) {
				t.Errorf("request %d is %+v (%v)", i, b, err)
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(w.path), r.Key.ID().String())); err != nil {
				t.Error(err)
			}
			if n := w.said[fmt.Sprint("ended ", i)]; n > 1 {
				t.Errorf("request %d was ended %d times", i, n)
			}
		}
		if v := verifyControl(t, c); v.Difference != nil || v.Records < 2*rounds*workOfAWorker {
			t.Errorf("the audit log has %+v", v)
		}
	})
}
