// Package prom counts what a server does, and writes it as text for Prometheus.
package prom

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel/attribute"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/dialai/dialai/session"
)

// Whoever does something tells Metrics of it, by a method for each kind of thing; what is
// counted of sessions comes from the events that are committed, so that it says what the log
// says. The instruments are those of OpenTelemetry, and its exporter writes them.
//
// Every label has a closed set of values. Routes are those of the server, statuses and kinds
// those of the program; what a caller can choose (a method, a code, the name of a machine) is
// "other" where it is none of those that are counted by themselves. What is counted by machine
// is kept here (series.go) and read by the exporter, since the names that have series of their
// own change: they are those of the busiest machines (busiest.go).

// A Config says where Metrics look for what nobody tells them. Each may be nil.
type Config struct {
	// Live returns how many sessions run and wait for humans.
	Live func(context.Context) ([]session.LiveCount, error)
	// Driver returns what carries sessions on: how much there is to do for each tenant, and
	// whether this process drives.
	Driver func() (loads []Load, driving bool)
	// Backlog returns how many messages to webhooks this process has to deliver.
	Backlog func() int64
	Now     func() time.Time // nil means time.Now
}

// A Load is how many sessions of a tenant are ready, and how many are stepped.
type Load struct {
	Tenant      string
	Ready, Busy int
}

// Metrics are the numbers of one server. They may be used concurrently; nil counts nothing.
type Metrics struct {
	config  Config
	handler http.Handler
	end     func(context.Context) error
	series  *series
	tenants tenants
	live    live

	requests, authFailures, rateLimited, replays, callbacks   metric.Int64Counter
	asks, verdicts, driverErrors, storeErrors, dropped, tools metric.Int64Counter
	catchUps, deliveries, dead                                metric.Int64Counter
	inFlight, subscribers                                     metric.Int64UpDownCounter
	requestTime, stepTime, delay, askTime, commitTime, batch  metric.Float64Histogram
}

// namespace begins every name.
const namespace = "dialai_"

// seconds are the bounds of histograms of time.
var seconds = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}

// New returns Metrics that have counted nothing.
func New(c Config) (*Metrics, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	m := &Metrics{config: c, series: newSeries()}
	registry := prometheus.NewRegistry()
	exporter, err := otelprom.New(otelprom.WithRegisterer(registry), otelprom.WithoutScopeInfo(), otelprom.WithoutTargetInfo(), otelprom.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes))
	if err != nil {
		return nil, err
	}
	provider := sdk.NewMeterProvider(sdk.WithReader(exporter))
	if err := m.instruments(&making{meter: provider.Meter("github.com/dialai/dialai/internal/telemetry/prom")}); err != nil {
		return nil, err
	}
	m.end = provider.Shutdown
	m.handler = promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
	return m, nil
}

// Close ends counting.
func (m *Metrics) Close() error { return m.end(context.Background()) }

// ServeHTTP writes the numbers as they are.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.handler.ServeHTTP(w, r) }

// A making makes instruments, and keeps what went wrong.
type making struct {
	meter metric.Meter
	errs  []error
}

func (k *making) counter(name, help string) metric.Int64Counter {
	i, err := k.meter.Int64Counter(namespace+name, metric.WithDescription(help))
	k.errs = append(k.errs, err)
	return i
}

func (k *making) level(name, help string) metric.Int64UpDownCounter {
	i, err := k.meter.Int64UpDownCounter(namespace+name, metric.WithDescription(help))
	k.errs = append(k.errs, err)
	return i
}

func (k *making) histogram(name, help string, bounds []float64) metric.Float64Histogram {
	i, err := k.meter.Float64Histogram(namespace+name, metric.WithDescription(help), metric.WithExplicitBucketBoundaries(bounds...))
	k.errs = append(k.errs, err)
	return i
}

func (k *making) read(name, help string, counter bool, read func(context.Context, metric.Float64Observer) error) {
	var err error
	if counter {
		_, err = k.meter.Float64ObservableCounter(namespace+name, metric.WithDescription(help), metric.WithFloat64Callback(read))
	} else {
		_, err = k.meter.Float64ObservableGauge(namespace+name, metric.WithDescription(help), metric.WithFloat64Callback(read))
	}
	k.errs = append(k.errs, err)
}

// instruments makes all of them.
func (m *Metrics) instruments(k *making) error {
	m.requests = k.counter("http_requests_total", "Requests that were answered.")
	m.requestTime = k.histogram("http_request_duration_seconds", "How long answering took, streams aside.", seconds)
	m.inFlight = k.level("http_in_flight", "Requests that are being answered, streams included.")
	m.authFailures = k.counter("auth_failures_total", "Requests without a credential that is known.")
	m.rateLimited = k.counter("rate_limited_total", "Requests that came too often.")
	m.callbacks = k.counter("callbacks_total", "Answers of services that came later.")
	m.replays = k.counter("idempotent_replays_total", "Requests that were answered as the first time.")
	m.subscribers = k.level("sse_subscribers", "Streams of events that are open.")
	m.dropped = k.counter("sse_dropped_total", "Streams that ended because their reader was too slow or gone.")
	m.catchUps = k.counter("sse_catchup_total", "Times that a stream read the store, since what came next was not kept in memory.")
	m.deliveries = k.counter("webhook_deliveries_total", "Attempts to deliver a message to a webhook.")
	m.dead = k.counter("webhook_dead_total", "Messages to webhooks that were given up.")
	m.asks = k.counter("asks_total", "Asks of specialists that came to an end.")
	m.askTime = k.histogram("ask_duration_seconds", "How long answers took, as far as they say so.", seconds)
	m.verdicts = k.counter("guard_verdicts_total", "What guards said of steps that were about to be executed.")
	m.stepTime = k.histogram("step_duration_seconds", "How long steps took, asking included.", seconds)
	m.delay = k.histogram("driver_delay_seconds", "How long sessions were ready before they were stepped.", seconds)
	m.driverErrors = k.counter("driver_errors_total", "Steps that failed, and are tried again.")
	m.commitTime = k.histogram("store_commit_duration_seconds", "How long transactions of the store took, syncing included.", seconds)
	m.batch = k.histogram("store_batch_size", "Commits that shared a transaction.", []float64{1, 2, 4, 8, 16, 32, 64, 128, 256})
	m.storeErrors = k.counter("store_errors_total", "Transactions of the store that failed.")
	m.tools = k.counter("mcp_requests_total", "Requests of the Model Context Protocol.")
	for _, f := range families {
		k.read(f.name, f.help, true, func(_ context.Context, o metric.Float64Observer) error {
			m.series.observe(f.name, o)
			return nil
		})
	}
	m.readLive(k)
	m.readDriver(k)
	k.read("webhook_backlog", "Messages to webhooks that are to be delivered.", false, func(_ context.Context, o metric.Float64Observer) error {
		if m.config.Backlog != nil {
			o.Observe(float64(m.config.Backlog()))
		}
		return nil
	})
	return errors.Join(k.errs...)
}

func (m *Metrics) readDriver(k *making) {
	for _, g := range []struct {
		name, help string
		of         func(l Load, driving bool) float64
	}{
		{"driver_ready", "Sessions that wait for a free worker.", func(l Load, _ bool) float64 { return float64(l.Ready) }},
		{"driver_busy", "Steps under way.", func(l Load, _ bool) float64 { return float64(l.Busy) }},
		{"driver_driving", "1 if this process carries sessions on.", func(_ Load, driving bool) float64 {
			if driving {
				return 1
			}
			return 0
		}},
	} {
		k.read(g.name, g.help, false, func(_ context.Context, o metric.Float64Observer) error {
			if m.config.Driver == nil {
				return nil
			}
			loads, driving := m.config.Driver()
			sums := map[string]float64{}
			for _, l := range loads {
				label := m.tenants.label(l.Tenant)
				if v := g.of(l, driving); g.name == "driver_driving" {
					sums[label] = v
				} else {
					sums[label] += v
				}
			}
			for label, v := range sums {
				o.Observe(v, labels("tenant", label))
			}
			return nil
		})
	}
}

// labels returns names and values, one after the other.
func labels(pairs ...string) metric.MeasurementOption {
	list := make([]attribute.KeyValue, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		list = append(list, attribute.String(pairs[i], pairs[i+1]))
	}
	return metric.WithAttributeSet(attribute.NewSet(list...))
}

// A live is what the store last said of live sessions.
type live struct {
	mu   sync.Mutex
	at   time.Time
	list []session.LiveCount
}

// liveFor is how long that is believed, so that whoever asks often costs the store nothing.
const liveFor = 10 * time.Second

// counted returns what the store says of live sessions. If it fails nothing is said: a number
// that is missing is better than an old one.
func (m *Metrics) counted(ctx context.Context) []session.LiveCount {
	m.live.mu.Lock()
	defer m.live.mu.Unlock()
	if now := m.config.Now(); m.config.Live != nil && (m.live.at.IsZero() || now.Sub(m.live.at) >= liveFor) {
		list, err := m.config.Live(ctx)
		if err != nil {
			return nil
		}
		m.live.at, m.live.list = now, list
	}
	return m.live.list
}

// readLive reads the numbers of live sessions.
func (m *Metrics) readLive(k *making) {
	k.read("sessions", "Sessions that have not ended.", false, func(ctx context.Context, o metric.Float64Observer) error {
		byStatus := map[string]int{}
		list := m.counted(ctx)
		for _, c := range list {
			byStatus[c.Status.String()] += c.Sessions
		}
		for _, s := range session.LiveStatuses() {
			if list != nil {
				o.Observe(float64(byStatus[s.String()]), labels("status", s.String()))
			}
		}
		return nil
	})
	k.read("questions_open", "Sessions that wait for a human.", false, func(ctx context.Context, o metric.Float64Observer) error {
		m.questions(ctx, func(machine string, n int, _ float64) { o.Observe(float64(n), labels("machine", machine)) })
		return nil
	})
	k.read("question_age_seconds", "How long ago anything happened to the session that has waited longest for a human.", false, func(ctx context.Context, o metric.Float64Observer) error {
		m.questions(ctx, func(machine string, _ int, age float64) { o.Observe(age, labels("machine", machine)) })
		return nil
	})
}

// questions says of each machine how many sessions wait for a human, and the oldest for how long.
func (m *Metrics) questions(ctx context.Context, say func(machine string, n int, age float64)) {
	type open struct {
		n   int
		age float64
	}
	all := map[string]open{}
	for _, c := range m.counted(ctx) {
		if c.Status != session.NeedsHuman {
			continue
		}
		name := m.series.machine(c.MachineName, 0)
		q := all[name]
		q.n += c.Sessions
		q.age = max(q.age, m.config.Now().Sub(c.Oldest.Time()).Seconds())
		all[name] = q
	}
	for name, q := range all {
		say(name, q.n, q.age)
	}
}
