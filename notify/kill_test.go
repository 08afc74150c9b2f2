package notify_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/internal/seal"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/notify"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/webhook"
)

// TestDeliveryWorker is no test: it is a process that TestKilled starts. It starts sessions and
// delivers what is told of them until it is killed.
func TestDeliveryWorker(t *testing.T) {
	dir := os.Getenv("DIALAI_NOTIFY_WORKER")
	if dir == "" {
		t.Skip("only for TestKilled")
	}
	sessions, remembers := openBoth(t, dir)
	r, err := runner.New(runner.Config{Store: sessions})
	if err != nil {
		t.Fatal(err)
	}
	policy, err := webhook.ParsePolicy("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	lock, err := remembers.DeliveryLock()
	if err != nil {
		t.Fatal(err)
	}
	var key seal.Key
	n := notify.New(notify.Config{Control: remembers, Seal: key, Policy: policy, Lock: lock})
	go func() {
		m, err := machine.Parse("test", []byte(byHand), runner.Checks())
		if err != nil {
			panic(err)
		}
		for range 3 {
			if _, err := r.Start(context.Background(), m, runner.StartOptions{}); err != nil {
				panic(err)
			}
		}
	}()
	if err := n.Run(context.Background(), notify.Tenant{Name: "default", Runner: r}); err != nil {
		t.Fatal(err)
	}
}

func openBoth(t *testing.T, dir string) (*store.SQLite, *store.Control) {
	t.Helper()
	path := filepath.Join(dir, "dialai.db")
	sessions, err := store.OpenSQLite(t.Context(), path, store.SQLiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	remembers, err := store.OpenControl(t.Context(), path+".control", store.SQLiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return sessions, remembers
}

// TestKilled kills processes that deliver, each time somewhere else: in the end every session has
// been told of, and what was told twice had the same id and the same words.
func TestKilled(t *testing.T) {
	kills := kills
	if testing.Short() {
		kills = 10
	}
	dir, rng := t.TempDir(), rand.New(rand.NewPCG(20261126, 1))
	var mu sync.Mutex
	bodies := map[string]string{} // by id
	got := make(chan struct{}, 1<<16)
	at := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		id := r.Header.Get("Webhook-Id")
		mu.Lock()
		defer mu.Unlock()
		if before, known := bodies[id]; err == nil && known && before != string(body) {
			t.Errorf("under the id %s came %s and %s", id, before, body)
		}
		if err == nil {
			bodies[id] = string(body)
			got <- struct{}{}
		}
	}))
	defer at.Close()
	sessions, remembers := openBoth(t, dir)
	policy, err := webhook.ParsePolicy("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	maker := notify.Maker{Policy: policy}
	hook, _, err := maker.New(api.NewWebhook{URL: at.URL, Types: []string{"session.started"}}, control.Webhook{Tenant: "default"})
	if err == nil {
		err = remembers.Commit(t.Context(), control.Changes{Webhook: &hook})
	}
	if err != nil {
		t.Fatal(err)
	}
	for range kills {
		work(t, dir, func(kill func()) {
			for range 1 + rng.IntN(3) { // the messages after which it is killed
				<-got
			}
			time.AfterFunc(time.Duration(rng.IntN(3000))*time.Microsecond, kill)
		})
	}
	last := count(t, sessions) + 3 // those that the last one starts
	work(t, dir, func(kill func()) {
		for told := 0; told < last; {
			<-got
			mu.Lock()
			told = len(bodies)
			mu.Unlock()
		}
		kill()
	})
	if n := count(t, sessions); len(bodies) != n || n < kills/4 {
		t.Errorf("of %d sessions %d are told of", n, len(bodies))
	}
	if err := sessions.Close(); err != nil {
		t.Error(err)
	}
	if err := remembers.Close(); err != nil {
		t.Error(err)
	}
}

// work starts a worker, and waits until it is killed.
func work(t *testing.T, dir string, until func(kill func())) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestDeliveryWorker$")
	cmd.Env = append(os.Environ(), fmt.Sprint("DIALAI_NOTIFY_WORKER=", dir))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait() // it was killed
}

func count(t *testing.T, s *store.SQLite) int {
	t.Helper()
	list, err := s.List(t.Context(), session.ListQuery{})
	if err != nil {
		t.Error(err)
	}
	return len(list)
}
