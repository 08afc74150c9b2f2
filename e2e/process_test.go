package e2e_test

import (
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/strategies"
	"github.com/dialai/dialai/webhook"
)

// loopback is the far side of services on this machine.
func loopback(t *testing.T) strategies.Resolver {
	t.Helper()
	policy, err := webhook.ParsePolicy("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	return webhook.New(webhook.Config{Policy: policy, Lookup: func(string) (string, bool) { return "token", true }})
}

// inProcess looks at a store from the test's own process.
func inProcess(t *testing.T, path string, config runner.Config, f func(*runner.Runner, *store.SQLite)) {
	t.Helper()
	s, err := store.OpenSQLite(t.Context(), path, store.SQLiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	config.Store = s
	r, err := runner.New(config)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f(r, s)
}

// runAll runs processes at once, each until it ends or after has passed, when it is
// killed; after 0 it may finish. It returns how many were killed. A failure is the
// test's, unless the process printed excused.
func runAll(t *testing.T, commands []*exec.Cmd, after func() time.Duration, excused string) (killed int) {
	t.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	for _, cmd := range commands {
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = io.Discard, &out
		delay := after()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if delay > 0 {
				timer := time.AfterFunc(delay, func() { cmd.Process.Kill() })
				defer timer.Stop()
			}
			err := cmd.Wait()
			mu.Lock()
			defer mu.Unlock()
			switch {
			case cmd.ProcessState.ExitCode() == -1:
				killed++
			case err != nil && (excused == "" || !strings.Contains(out.String(), excused)):
				t.Errorf("%v: %v\n%s", cmd.Args[1:], err, out.String())
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return killed
}
