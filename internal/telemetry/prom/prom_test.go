package prom

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/dialai/dialai/runner"
)

// scraped returns the samples of a family, by their labels as name=value, in their order.
func scraped(t *testing.T, m *Metrics, family string) map[string]float64 {
	t.Helper()
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(w.Body.Bytes()))
	if err != nil {
		t.Fatalf("%v in %s", err, w.Body)
	}
	got := map[string]float64{}
	for _, s := range families[family].GetMetric() {
		var labels []string
		for _, l := range s.GetLabel() {
			labels = append(labels, l.GetName()+"="+l.GetValue())
		}
		got[strings.Join(labels, " ")] = s.GetCounter().GetValue() + s.GetGauge().GetValue() + float64(s.GetHistogram().GetSampleCount())
	}
	return got
}

func newMetrics(t *testing.T) *Metrics {
	t.Helper()
	m, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// TestHostileNames: however many machines there are, and whatever they are called, there are
// series for the 200 busiest and one for the others, and no step is lost or counted twice.
func TestHostileNames(t *testing.T) {
	m := newMetrics(t)
	for i := range 300 {
		m.Stepped("", fmt.Sprintf("first-%d\n{}\"", i), runner.TickAdvanced, nil, 0, 0)
	}
	for range 50 {
		m.Stepped("", "busy", runner.TickAdvanced, nil, 0, 0)
	}
	for i := range 20_000 {
		m.Stepped("", fmt.Sprintf("flood-%d", i), runner.TickAdvanced, nil, 0, 0)
	}
	got := scraped(t, m, "dialai_steps_total")
	if len(got) != maxMachines+1 {
		t.Errorf("%d series, want those of %d machines and the others", len(got), maxMachines)
	}
	sum := 0.0
	for _, n := range got {
		sum += n
	}
	if sum != 20_350 {
		t.Errorf("%v steps are counted, 20350 were made", sum)
	}
	if got["machine=busy status=advanced"] < 49 { // the first was one of many
		t.Errorf("the busiest machine is not counted by itself: %v", got["machine=busy status=advanced"])
	}
	if n := len(m.series.values); n > maxMachines+1 {
		t.Errorf("%d numbers are kept", n)
	}
}

// TestNumbersOnlyGrow: what is taken back from a number comes off what is added next.
func TestNumbersOnlyGrow(t *testing.T) {
	s := newSeries()
	p := point{"spent_usd_total", "m", ""}
	for _, step := range []struct{ add, want float64 }{{3, 3}, {-2, 3}, {1, 3}, {2, 4}} {
		if s.add(p, step.add); s.values[p] != step.want {
			t.Errorf("after %v there is %v, want %v", step.add, s.values[p], step.want)
		}
	}
}

// TestOtherWords: what a caller can make up is no label.
func TestOtherWords(t *testing.T) {
	m := newMetrics(t)
	m.Request(t.Context())("/v1", "BREW", 999, false, 0)
	m.Tool(t.Context(), "tools/call", "", "fine")
	if got := scraped(t, m, "dialai_http_requests_total"); got["method=other route=/v1 status=5xx"] != 1 || len(got) != 1 {
		t.Errorf("requests are %v", got)
	}
	if got := scraped(t, m, "dialai_mcp_requests_total"); got["method=tools/call result=other tool="] != 1 {
		t.Errorf("tools are %v", got)
	}
	for i := range 1000 {
		m.series.code(fmt.Sprint("code-", i))
	}
	if len(m.series.codes) != maxCodes {
		t.Errorf("%d codes are kept", len(m.series.codes))
	}
	var none *Metrics
	none.Request(t.Context())("", "", 0, false, 0)
	none.Stepped("", "m", "", nil, 0, 0) // nil counts nothing, and does not panic
}

// TestDeliveries: attempts are counted by what came of them, those of messages that are given up
// as dead, too, and what is to be delivered is as it is said to be.
func TestDeliveries(t *testing.T) {
	backlog := int64(7)
	m, err := New(Config{Backlog: func() int64 { return backlog }})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, result := range []string{"delivered", "delivered", "failed", "dead", "gone", "https://example.com"} {
		m.Delivered(result)
	}
	for family, want := range map[string]string{
		"dialai_webhook_deliveries_total": "map[result=dead:1 result=delivered:2 result=failed:1 result=gone:1 result=other:1]",
		"dialai_webhook_dead_total":       "map[:2]",
		"dialai_webhook_backlog":          "map[:7]",
	} {
		if got := fmt.Sprint(scraped(t, m, family)); got != want {
			t.Errorf("%s is %s, want %s", family, got, want)
		}
	}
}
