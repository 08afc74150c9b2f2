package bench_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/driver"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
)

// keys makes keys of operators at a server.
func (g *serverRig) keys(tb testing.TB, n int) (list []string) {
	for range n {
		id, key := control.NewCredential(rand.Reader)
		list = append(list, key)
		if err := g.control.Commit(context.Background(), control.Changes{Keys: []control.Key{{ID: id, Hash: control.HashOf(key), Grants: []control.Grant{{Role: control.Operator, Machines: []string{"*"}}}}}}); err != nil {
			tb.Fatal(err)
		}
	}
	return list
}

// request answers a request that must succeed.
func request(tb testing.TB, c *http.Client, method, url, key, body string) []byte {
	req, err := http.NewRequestWithContext(context.Background(), method, url, strings.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := c.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode/100 != 2 {
		tb.Fatalf("%s %s: %d %s %v", method, url, resp.StatusCode, text, err)
	}
	return text
}

// A crowd of subscribers reads the streams of a server.
type subscribers struct {
	conns []net.Conn
	heard chan struct{} // gets one for each event that somebody has read
	lost  atomic.Int64
}

// subscribe opens n streams, in turn with each of some keys, and counts events of a kind in them.
func subscribe(tb testing.TB, address, path string, keys []string, n int, kind string) *subscribers {
	s := &subscribers{heard: make(chan struct{}, n)}
	var ready sync.WaitGroup
	for i := range n {
		c, err := net.Dial("tcp", address)
		if err != nil {
			tb.Fatal(err)
		}
		s.conns = append(s.conns, c)
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream\r\n\r\n", path, keys[i%len(keys)])
		ready.Add(1)
		go func() {
			in := bufio.NewReaderSize(c, 1<<10)
			once := sync.OnceFunc(ready.Done)
			defer once()
			for {
				line, err := in.ReadSlice('\n')
				if err != nil {
					return
				}
				if once(); string(line) == "event: "+kind+"\n" {
					s.heard <- struct{}{}
				}
			}
		}()
	}
	ready.Wait()
	return s
}

// hear returns once all have heard of an event; lost counts those who do not within 10 s.
func (s *subscribers) hear() {
	for i := range s.conns {
		select {
		case <-s.heard:
		case <-time.After(10 * time.Second):
			s.lost.Add(int64(len(s.conns) - i))
			return
		}
	}
}

func (s *subscribers) leave() {
	for _, c := range s.conns {
		c.Close()
	}
}

// newBroadcaster is the bound: a handler by hand with a queue for each subscriber, to whom it
// writes the same bytes.
func newBroadcaster(tb testing.TB) (address string, tell func(event []byte)) {
	var mu sync.Mutex
	queues := map[chan []byte]bool{}
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		queue := make(chan []byte, 16)
		mu.Lock()
		queues[queue] = true
		mu.Unlock()
		defer func() {
			mu.Lock()
			delete(queues, queue)
			mu.Unlock()
		}()
		w.Header().Set("Content-Type", "text/event-stream")
		out := http.NewResponseController(w)
		for _ = out.Flush(); ; _ = out.Flush() {
			select {
			case event := <-queue:
				if _, err := w.Write(event); err != nil {
					return
				}
			case <-r.Context().Done():
				return
			}
		}
	}))
	tb.Cleanup(at.Close)
	return at.Listener.Addr().String(), func(event []byte) {
		mu.Lock()
		defer mu.Unlock()
		for q := range queues {
			q <- event
		}
	}
}

// footprint is what the process has on its heap and stacks.
func footprint() float64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return float64(s.HeapAlloc + s.StackInuse)
}

// BenchmarkSubscribers compares an event to the last of 1,000 subscribers of all sessions (100
// with -short) with a broadcaster by hand, in turn, and what a subscriber takes, their
// client in this process included.
func BenchmarkSubscribers(b *testing.B) {
	n := 1000
	if testing.Short() {
		n = 100
	}
	g := newServerRig(b)
	keys := g.keys(b, 16)
	address, tell := newBroadcaster(b)
	event := []byte("id: 1\nevent: session_created\ndata: " + strings.Repeat("x", 500) + "\n\n")
	empty := footprint()
	theirs := subscribe(b, address, "/", keys, n, "session_created")
	half := footprint()
	ours := subscribe(b, strings.TrimPrefix(g.url, "http://"), "/v1/events", keys, n, "session_created")
	full := footprint()
	defer theirs.leave()
	defer ours.leave()
	var us, them []float64
	for b.Loop() {
		t0 := time.Now()
		tell(event)
		theirs.hear()
		t1 := time.Now()
		if _, err := g.runner.Start(context.Background(), g.machine, runner.StartOptions{Meta: []byte(`{"amount":120}`), Driver: session.DriverNone}); err != nil {
			b.Fatal(err)
		}
		ours.hear()
		them, us = append(them, t1.Sub(t0).Seconds()), append(us, time.Since(t1).Seconds())
	}
	b.ReportMetric(median(us)*1000, "ms-to-the-last")
	b.ReportMetric(median(us)/median(them), "x-broadcaster")
	b.ReportMetric((full-half)/float64(n)/1024, "KiB/subscriber")
	b.ReportMetric((full-half)/(half-empty), "x-broadcaster-memory")
	b.ReportMetric(float64(ours.lost.Load()), "lost")
}

// BenchmarkWaitingOverHTTP measures what 10,000 sessions that wait for a human cost a server that
// has driven them there (1,000 with -short): bytes of its heap for each, and how many more
// than the engine and its store take; a page of 50 of its inbox, beside a page of 50 sessions
// and the inbox of a server with 50; and a ruling, beside one there.
func BenchmarkWaitingOverHTTP(b *testing.B) {
	crowd := waiting
	if testing.Short() {
		crowd = 1000
	}
	few, many := newServerRig(b), newServerRig(b)
	m := caseMachine(b)
	alone, err := store.OpenSQLite(context.Background(), filepath.Join(b.TempDir(), "alone.db"), store.SQLiteOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer alone.Close()
	r := engine(b, alone, loop(b, 1, 0))
	waits(b, r, m, `{"name":"0"}`)
	empty := footprint()
	parallel(16, crowd, func(w int) { waits(b, r, m, fmt.Sprintf(`{"name":"%d"}`, w)) })
	before := footprint()
	for g, n := range map[*serverRig]int{few: 50, many: crowd} {
		parallel(16, n, func(w int) {
			if _, err := g.runner.Start(context.Background(), m, runner.StartOptions{Meta: fmt.Appendf(nil, `{"name":"%d"}`, w)}); err != nil {
				b.Error(err)
			}
		})
		for {
			live, err := g.runner.Store().Live(context.Background())
			if err != nil {
				b.Fatal(err)
			}
			asked := 0
			for _, l := range live {
				if l.Status == session.NeedsHuman {
					asked += l.Sessions
				}
			}
			if asked == n {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	each := (footprint() - before) / float64(crowd)
	page := func(g *serverRig, path string) float64 {
		t0 := time.Now()
		request(b, g.client, "GET", g.url+path, g.key, "")
		return float64(time.Since(t0))
	}
	rule := func(g *serverRig) float64 {
		var at api.List[api.Item]
		if err := json.Unmarshal(request(b, g.client, "GET", g.url+"/v1/inbox?limit=1", g.key, ""), &at); err != nil || len(at.Items) == 0 {
			b.Fatal(err)
		}
		q := at.Items[0]
		body := fmt.Sprintf(`{"transitionName":"pay","roundId":%q,"questionDigest":%q,"specialistId":"carol"}`, q.RoundID, q.Digest)
		t0 := time.Now()
		request(b, g.client, "POST", g.url+"/v1/sessions/"+q.SessionID+"/decisions", g.key, body)
		return float64(time.Since(t0))
	}
	var inbox, list, small, ruling, alike []float64
	for b.Loop() {
		if len(alike) < 40 {
			alike, ruling = append(alike, rule(few)), append(ruling, rule(many))
		}
		inbox = append(inbox, page(many, "/v1/inbox?limit=50"))
		list = append(list, page(many, "/v1/sessions?limit=50&status=needs_human"))
		small = append(small, page(few, "/v1/inbox?limit=50"))
	}
	b.ReportMetric(each, "B/session")
	b.ReportMetric(each-(before-empty)/float64(crowd), "B/session-more")
	b.ReportMetric(median(inbox)/1e6, "ms-page")
	b.ReportMetric(median(inbox)/median(list), "x-sessions")
	b.ReportMetric(median(inbox)/median(small), "x-50-waiting")
	b.ReportMetric(median(ruling)/median(alike), "x-ruling")
}

// BenchmarkRestart measures how long a server takes until it is ready, among 10,000 sessions that
// wait for a human, beside opening their store and listing 50 of them, and beside a server
// without sessions.
func BenchmarkRestart(b *testing.B) {
	ctx, dir := context.Background(), b.TempDir()
	path := filepath.Join(dir, "dialai.db")
	crowd(b, path)
	ready := func(path string) float64 {
		t0 := time.Now()
		g := openServerRig(b, path)
		for {
			if body := request(b, g.client, "GET", g.url+"/readyz", g.key, ""); strings.Contains(string(body), driver.Driving) {
				break
			}
		}
		took := time.Since(t0).Seconds()
		g.end()
		return took
	}
	var ours, bare, empty []float64
	for b.Loop() {
		t0 := time.Now()
		s, err := store.OpenSQLite(ctx, path, store.SQLiteOptions{})
		if err == nil {
			_, err = s.List(ctx, session.ListQuery{Limit: 50, Statuses: []session.Status{session.NeedsHuman}})
		}
		if err != nil {
			b.Fatal(err)
		}
		bare = append(bare, time.Since(t0).Seconds())
		s.Close()
		ours, empty = append(ours, ready(path)), append(empty, ready(filepath.Join(dir, "empty.db")))
	}
	b.ReportMetric(median(ours)*1000, "ms-ready")
	b.ReportMetric(median(ours)/median(bare), "x-open")
	b.ReportMetric(median(ours)/median(empty), "x-empty")
}

// BenchmarkTool compares the processor time of a session that is read as a tool with that of one
// read over HTTP, the client's included.
func BenchmarkTool(b *testing.B) {
	g := newServerRig(b)
	m, err := machine.Parse("case.json", []byte(caseFile), runner.Checks())
	if err != nil {
		b.Fatal(err)
	}
	s := waits(b, g.runner, m, `{"name":"a"}`)
	call := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_session","arguments":{"sessionId":%q}}}`, s.ID)
	tool := func() { request(b, g.client, "POST", g.url+"/mcp", g.key, call) }
	rest := func() { request(b, g.client, "GET", g.url+"/v1/sessions/"+s.ID.String(), g.key, "") }
	for _, f := range []func(){tool, rest} {
		for range 20 {
			f()
		}
	}
	var tools, rests []float64
	spent := func(f func()) float64 {
		t0 := cpu()
		for range 200 {
			f()
		}
		return float64(cpu()-t0) / 200
	}
	for b.Loop() {
		tools = append(tools, spent(tool))
		rests = append(rests, spent(rest))
	}
	b.ReportMetric(median(tools)/1000, "us-CPU/tool")
	b.ReportMetric(median(rests)/1000, "us-CPU/rest")
	b.ReportMetric(median(tools)/median(rests), "x-rest")
}
