package bench_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/driver"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/server"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
)

// panel3 is a machine of one decision: three local proposers, then the goal.
const panel3 = `{"machineName":"panel","initialState":"a","goalState":"done","input":{"type":"object","required":["amount"],"properties":{"amount":{"type":"number"}}},
	"states":{"a":{"transitions":{"on":"done"}},"done":{}},
	"specialists":[{"role":"proposer","specialistId":"p1","strategyFnName":"firstAvailable"},{"role":"proposer","specialistId":"p2","strategyFnName":"firstAvailable"},
		{"role":"proposer","specialistId":"p3","strategyFnName":"firstAvailable"},{"role":"arbiter","specialistId":"x","strategyFnName":"firstProposal"}]}`

// A serverRig is a server with a driver over SQLite stores, over loopback, who calls it with a
// key, and the runner beneath.
type serverRig struct {
	runner  *runner.Runner
	control control.Store
	machine *machine.Machine
	url     string
	key     string
	client  *http.Client
	end     func() // the server ends; more than once does no more
}

func newServerRig(tb testing.TB) *serverRig {
	tb.Helper()
	return openServerRig(tb, filepath.Join(tb.TempDir(), "bench.db"))
}

// openServerRig is newServerRig with a store that may have sessions; where a server was before
// nothing is made again, and nobody has a key.
func openServerRig(tb testing.TB, path string) *serverRig {
	tb.Helper()
	ctx := context.Background()
	kept, err := store.OpenSQLite(ctx, path, store.SQLiteOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	remembers, err := store.OpenControl(ctx, path+".control", store.SQLiteOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	id, key := control.NewCredential(rand.Reader)
	m, err := machine.Parse("panel.json", []byte(panel3), runner.Checks())
	if err != nil {
		tb.Fatal(err)
	}
	carry := driver.New(driver.Config{Times: remembers})
	var web *server.Server
	r, err := runner.New(runner.Config{Store: kept, Observer: func(c session.Change) {
		carry.Observer("default")(c)
		web.Observer("default")(c)
	}})
	if err != nil {
		tb.Fatal(err)
	}
	made := control.Changes{Keys: []control.Key{{ID: id, Hash: control.HashOf(key), Grants: []control.Grant{{Role: control.Operator, Machines: []string{"*"}}, {Role: control.Human, Machines: []string{"*"}, Humans: []string{"carol"}}}}}}
	made.Publish = &control.Machine{Tenant: "default", Name: m.Name(), Version: 1, Digest: m.Digest(), Definition: m.JSON()}
	if _, err := remembers.Machine(ctx, "default", m.Name()); err != nil {
		if err := remembers.Commit(ctx, made); err != nil {
			tb.Fatal(err)
		}
	}
	web = server.New(server.Config{Tenants: []server.Tenant{{Name: "default", Runner: r}}, Driver: carry, Checks: runner.Checks(), Control: remembers, Who: server.Keys(remembers, nil)})
	at := httptest.NewServer(web.Handler())
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- carry.Run(ctx, driver.Tenant{Name: "default", Runner: r}) }()
	end := sync.OnceFunc(func() {
		at.CloseClientConnections()
		at.Close()
		cancel()
		if err := <-done; err != nil {
			tb.Error(err)
		}
		kept.Close()
		remembers.Close()
	})
	tb.Cleanup(end)
	return &serverRig{r, remembers, m, at.URL, key, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}, end}
}

// session starts a session and waits for its end.
func (g *serverRig) session(tb testing.TB, n int) {
	body := call(tb, g.client, g.url+"/v1/sessions?wait=30s", g.key, fmt.Sprintf("%d-%d", n, time.Now().UnixNano()), `{"machineName":"panel","metaJson":{"amount":120}}`)
	if !bytes.Contains(body, []byte(`"status":"completed"`)) {
		tb.Errorf("the session is not at its goal: %s", body)
	}
}

func call(tb testing.TB, c *http.Client, url, key, once, body string) []byte {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, bytes.NewBufferString(body))
	if err != nil {
		tb.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Idempotency-Key", once)
	resp, err := c.Do(req)
	if err != nil {
		tb.Error(err)
		return nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusCreated {
		tb.Errorf("%d %s %v", resp.StatusCode, text, err)
	}
	return text
}

// newPlainServer is the bound: a handler by hand that reads JSON, inserts one row into SQLite,
// fully synced, and answers with JSON.
func newPlainServer(tb testing.TB) (request func(n int)) {
	tb.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(tb.TempDir(), "plain.db")+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(10000)")
	if err != nil {
		tb.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("CREATE TABLE sessions (id INTEGER PRIMARY KEY, body TEXT)"); err != nil {
		tb.Fatal(err)
	}
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in map[string]any
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		text, err := json.Marshal(in)
		if err == nil {
			_, err = db.ExecContext(r.Context(), "INSERT INTO sessions (body) VALUES (?)", text)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusCreated)
		w.Write(text)
	}))
	tb.Cleanup(func() {
		at.Close()
		db.Close()
	})
	c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	return func(n int) {
		call(tb, c, at.URL, "", fmt.Sprint(n), `{"machineName":"panel","metaJson":{"amount":120}}`)
	}
}

// BenchmarkServer compares a session over HTTP, from its start to its goal by three local
// proposers, with key and Idempotency-Key, with one insert behind a handler by hand: rates by
// one client and by 64, and the processor time with that of the engine alone and of the handler.
func BenchmarkServer(b *testing.B) {
	rate := func(clients, n int, f func(n int)) float64 {
		start := time.Now()
		parallel(clients, n, func(w int) { f(w) })
		return float64(n) / time.Since(start).Seconds()
	}
	for _, c := range []struct{ clients, each int }{{1, 100}, {64, 1280}} {
		b.Run(fmt.Sprintf("clients=%d", c.clients), func(b *testing.B) {
			g, plain := newServerRig(b), newPlainServer(b)
			each := c.each
			if testing.Short() {
				each = c.clients
			}
			var ratios, shares, plains, spent []float64
			for b.Loop() {
				t := cpu()
				before := rate(c.clients, each, plain)
				t0 := cpu()
				ours := rate(c.clients, each, func(n int) { g.session(b, n) })
				t1 := cpu()
				rate(c.clients, each, func(int) {
					s, err := g.runner.Start(context.Background(), g.machine, runner.StartOptions{Meta: []byte(`{"amount":120}`), Driver: session.DriverNone})
					if err == nil {
						_, err = g.runner.Run(context.Background(), s.ID, runner.RunOptions{})
					}
					if err != nil {
						b.Error(err)
					}
				})
				t2 := cpu()
				after := rate(c.clients, each, plain)
				ratios, shares = append(ratios, ours/((before+after)/2)), append(shares, float64(t1-t0)/float64(t2-t1))
				plains, spent = append(plains, float64(t1-t0)/float64(t0-t)), append(spent, float64(t1-t0)/float64(each)/1000)
			}
			b.ReportMetric(median(ratios), "x-plain-rate")
			b.ReportMetric(median(shares), "x-engine-cpu")
			b.ReportMetric(median(plains), "x-plain-cpu")
			b.ReportMetric(median(spent), "us-CPU")
		})
	}
}
