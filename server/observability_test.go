package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/internal/telemetry/prom"
	"github.com/dialai/dialai/server"
	"github.com/dialai/dialai/store"
)

// metrics are numbers by family and labels, as client_golang's parser reads them.
type metrics map[string]map[string]float64

func scrape(d *desk) metrics {
	d.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(d.want(200, "GET", "/metrics", "").body))
	if err != nil {
		d.Fatal(err)
	}
	all := metrics{}
	for name, f := range families {
		all[name] = map[string]float64{}
		for _, s := range f.GetMetric() {
			var labels []string
			for _, l := range s.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			all[name][strings.Join(labels, " ")] = s.GetCounter().GetValue() + s.GetGauge().GetValue() + float64(s.GetHistogram().GetSampleCount())
		}
	}
	return all
}

// counted returns a desk whose server counts.
func counted(t *testing.T, drives bool) *desk {
	kept := store.NewMemory()
	m, err := prom.New(prom.Config{Live: kept.Live})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return newDesk(t, deskOptions{store: kept, drives: drives, config: server.Config{Metrics: m}})
}

// TestMetrics: what is shown is what happened.
func TestMetrics(t *testing.T) {
	d := counted(t, true)
	first, second := d.start(reviewed), d.start(reviewed)
	d.start(reviewed)
	d.want(200, "POST", "/v1/sessions/"+first.SessionID+"/decisions?wait=10s", ruling(first, "pay", "carol"), "Idempotency-Key", "k1")
	d.want(200, "POST", "/v1/sessions/"+first.SessionID+"/decisions?wait=10s", ruling(first, "pay", "carol"), "Idempotency-Key", "k1")
	d.want(409, "POST", "/v1/sessions/"+first.SessionID+"/decisions", ruling(first, "refuse", "dave"))
	d.want(200, "POST", "/v1/sessions/"+second.SessionID+"/cancel", `{"note":"no"}`)
	d.do("", "GET", "/v1/machines", "")
	d.do("nonsense", "GET", "/v1/machines", "")
	d.want(405, "GET", "/made/up?x=1", "")
	d.rest() // a step is counted once it has ended, and a request is answered before that
	got := scrape(d)
	for _, w := range []struct {
		family, labels string
		want           float64
	}{
		{"dialai_sessions", "needs_human", 1},
		{"dialai_sessions", "running", 0},
		{"dialai_questions_open", "claims", 1},
		{"dialai_sessions_ended_total", "goal claims", 1},
		{"dialai_sessions_ended_total", "cancelled claims", 1},
		{"dialai_decisions_total", "forced claims", 1},
		{"dialai_rulings_total", "claims local", 1},
		{"dialai_asks_total", "builtin answered", 6},
		{"dialai_steps_total", "claims needs_human", 3},
		{"dialai_idempotent_replays_total", "/v1/sessions/{id}/decisions", 1},
		{"dialai_auth_failures_total", "missing", 1},
		{"dialai_auth_failures_total", "unknown", 1},
		{"dialai_http_requests_total", "GET /v1/machines 4xx", 2},
		{"dialai_http_requests_total", "POST /v1/sessions 2xx", 3},
		{"dialai_http_requests_total", "GET other 4xx", 1},
		{"dialai_http_requests_total", "POST /v1/sessions/{id}/decisions 4xx", 1},
		{"dialai_http_in_flight", "", 1},
	} {
		if n, ok := got[w.family][w.labels]; !ok || n != w.want {
			t.Errorf("%s{%s} is %v, want %v; there is %v", w.family, w.labels, n, w.want, got[w.family])
		}
	}
	steps := 0.0
	for _, n := range got["dialai_steps_total"] {
		steps += n
	}
	if n := got["dialai_driver_delay_seconds"]["default"]; n != steps {
		t.Errorf("%v steps were waited for, and %v done", n, steps)
	}
	for name := range got {
		if !strings.HasPrefix(name, "dialai_") {
			t.Errorf("%s does not begin with dialai_", name)
		}
	}
}

// TestStreamsAreCounted: who listens is counted, by the kind of what they listen to, until they
// have gone.
func TestStreamsAreCounted(t *testing.T) {
	d := counted(t, false)
	at := d.reached()
	s := d.begin(reviewed)
	var all []*listener
	for _, path := range []string{"/v1/events", "/v1/machines/claims/events", "/v1/inbox/events", "/v1/sessions/" + s.SessionID + "/events"} {
		all = append(all, d.hear(at, localKey, path, "0"))
	}
	count := func(want float64) {
		t.Helper()
		got := scrape(d)["dialai_sse_subscribers"]
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); got = scrape(d)["dialai_sse_subscribers"] {
			if got["all"] == want && got["machine"] == want && got["inbox"] == want && got["session"] == want {
				return
			}
		}
		t.Errorf("subscribers are counted as %v, want %v of each kind", got, want)
	}
	count(1)
	for _, l := range all {
		l.close()
	}
	count(0)
}

// TestCatchingUpIsCounted: a stream is counted that has to read the store, once for all the pages of
// it, and none that reads what is kept in memory.
func TestCatchingUpIsCounted(t *testing.T) {
	d := counted(t, false)
	at := d.reached()
	for range 300 {
		d.begin(reviewed) // more than one page
	}
	now := d.hear(at, localKey, "/v1/events", "")
	first := d.begin(reviewed)
	for e := now.next(); !strings.Contains(e.data, first.SessionID); e = now.next() { // it may have begun before the log was followed
		if e.kind == "" {
			t.Fatal("the stream has ended")
		}
	}
	before := scrape(d)["dialai_sse_catchup_total"]["all"]
	s := d.begin(reviewed)
	for e := now.next(); !strings.Contains(e.data, s.SessionID); e = now.next() {
		if e.kind == "" {
			t.Fatal("the stream has ended")
		}
	}
	if got := scrape(d)["dialai_sse_catchup_total"]; got["all"] != before {
		t.Errorf("who reads what is kept in memory is counted as %v, was %v", got, before)
	}
	behind := d.hear(at, localKey, "/v1/machines/claims/events", "0")
	for e := behind.next(); !strings.Contains(e.data, s.SessionID); e = behind.next() {
		if e.kind == "" {
			t.Fatal("the stream has ended")
		}
	}
	if got := scrape(d)["dialai_sse_catchup_total"]; got["machine"] != 1 || got["all"] != before {
		t.Errorf("who has read the store is counted as %v, want once", got)
	}
}

// TestMetricsPermission: the numbers are for whoever may read.
func TestMetricsPermission(t *testing.T) {
	d := counted(t, false)
	d.wantAs("", 401, "GET", "/metrics", "")
	d.wantAs(d.key(control.Grant{Role: control.Viewer}), 200, "GET", "/metrics", "")
	none := newDesk(t, deskOptions{})
	none.want(404, "GET", "/metrics", "")
}

// TestHostilePaths: no path that a caller makes up becomes a label.
func TestHostilePaths(t *testing.T) {
	d := counted(t, false)
	before := len(scrape(d)["dialai_http_requests_total"])
	for _, path := range []string{"/a", "/b/c", "/v1/x", "/v1/sessions/1", "/v1/sessions/2", "/v1/machines/%2e%2e", "/v1/machines/a/b/c", "/problems/1", "/problems/2", "//", "/v1//machines"} {
		for _, method := range []string{"GET", "BREW", "PUT"} {
			d.do(localKey, method, path, "")
		}
	}
	labels := map[string]bool{}
	for series := range scrape(d)["dialai_http_requests_total"] {
		labels[strings.Fields(series)[1]] = true
	}
	for route := range labels {
		if route != "other" && !strings.Contains(route, "{") && route != "/metrics" && route != "/v1/machines" {
			t.Errorf("a path has become the route %q", route)
		}
	}
	if before > 1 {
		t.Errorf("%d series before anything was asked", before)
	}
}

// TestRequestLine: a request is one line with its ids, and without what is secret.
func TestRequestLine(t *testing.T) {
	var lines bytes.Buffer
	d := newDesk(t, deskOptions{config: server.Config{Log: slog.New(slog.NewJSONHandler(&lines, nil))}})
	id := "0198c1d2-0000-4000-8000-000000000001"
	d.do(localKey, "GET", "/v1/inbox/"+id+"."+id, "")
	d.do(localKey, "GET", "/v1/machines/sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghij-AAAAAAAA", "")
	text := lines.String()
	var line struct{ Msg, ID, Session, Round string }
	if err := json.Unmarshal([]byte(strings.SplitN(text, "\n", 2)[0]), &line); err != nil || line.Msg != "request" || line.ID == "" || line.Session != id || line.Round != id {
		t.Errorf("the line is %s: %v", text, err)
	}
	if strings.Count(text, "\n") != 2 || strings.Contains(text, "abcdefghijkl") {
		t.Errorf("the log is %s", text)
	}
}

// TestReadiness: the server is not ready without its stores; what else is wrong is said.
func TestReadiness(t *testing.T) {
	broken := errors.New("broken")
	fails, hangs := func(context.Context) error { return broken }, func(ctx context.Context) error { <-ctx.Done(); return nil }
	for _, c := range []struct {
		name   string
		checks map[string]server.ReadyCheck
		status int
		want   string
	}{
		{"all is well", nil, http.StatusOK, `{"status":"ready","checks":{"control":"ok","driver":"off","store":"ok"}}`},
		{"little room", map[string]server.ReadyCheck{"disk": {Check: fails}}, http.StatusOK, `{"status":"ready","checks":{"control":"ok","disk":"failing","driver":"off","store":"ok"}}`},
		{"without something", map[string]server.ReadyCheck{"x": {Check: fails, Critical: true}}, http.StatusServiceUnavailable, `{"status":"not ready","checks":{"control":"ok","driver":"off","store":"ok","x":"failing"}}`},
		{"hangs", map[string]server.ReadyCheck{"x": {Check: hangs, Critical: true}}, http.StatusServiceUnavailable, `{"status":"not ready","checks":{"control":"ok","driver":"off","store":"ok","x":"failing"}}`},
	} {
		d := newDesk(t, deskOptions{config: server.Config{Ready: c.checks}})
		if r := d.do("", "GET", "/readyz", ""); r.status != c.status || strings.TrimSpace(string(r.body)) != c.want {
			t.Errorf("%s: %d %s", c.name, r.status, r.body)
		}
	}
	d := newDesk(t, deskOptions{control: failingControl{control.NewMemory()}})
	if r := d.do("", "GET", "/readyz", ""); r.status != http.StatusServiceUnavailable || !strings.Contains(string(r.body), `"control":"failing"`) {
		t.Errorf("without control: %d %s", r.status, r.body)
	}
}

// A failingControl cannot be read.
type failingControl struct{ control.Store }

func (failingControl) Keys(context.Context, control.Query) ([]control.Key, error) {
	return nil, errors.New("broken")
}

// newCounts returns metrics that have counted nothing.
func newCounts(t *testing.T) *prom.Metrics {
	t.Helper()
	m, err := prom.New(prom.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}
