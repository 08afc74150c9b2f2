package serving

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/driver"
	"github.com/dialai/dialai/internal/telemetry/prom"
	"github.com/dialai/dialai/internal/telemetry/spans"
	"github.com/dialai/dialai/notify"
	"github.com/dialai/dialai/server"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/postgres"
)

// How a server is watched: metrics, spans where the variables of OpenTelemetry ask for them, and
// what makes it ready. Only serve makes any of it.

// A watching is told of what a server does. The store and the driver are made after it.
type watching struct {
	metrics *prom.Metrics
	spans   *spans.Spans // nil if nobody wants them
	names   []string     // of the tenants
	engines []*command.Engine
	driver  *driver.Driver
	tells   atomic.Pointer[notify.Notifier]
}

// watch has what the engine does counted and traced.
func (a *app) watch() (*watching, error) {
	w := &watching{}
	var err error
	w.metrics, err = prom.New(prom.Config{
		Live: w.live,
		Driver: func() (list []prom.Load, driving bool) {
			loads := map[string]driver.Load{}
			for _, l := range w.driver.Loads() {
				loads[l.Tenant] = l
			}
			for _, name := range w.names {
				list = append(list, prom.Load{Tenant: name, Ready: loads[name].Ready, Busy: loads[name].Busy})
			}
			mode := w.driver.Status().Mode
			return list, mode == driver.Driving || mode == driver.Stalled
		},
		Backlog: func() int64 {
			if tells := w.tells.Load(); tells != nil {
				return tells.Backlog()
			}
			return 0
		},
	})
	if err != nil {
		return nil, err
	}
	a.Watch.Transaction = w.metrics.Transaction
	if traces, _ := a.WantsTelemetry(); traces {
		w.spans = spans.New()
		a.Watch.Part = w.spans.Part
	}
	return w, nil
}

// live returns how many sessions of all tenants run and wait for humans.
func (w *watching) live(ctx context.Context) (all []session.LiveCount, err error) {
	for _, e := range w.engines {
		list, err := e.Store.Live(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// stepped is told of the driver's steps.
func (w *watching) stepped(s driver.Stepped) {
	w.metrics.Stepped(s.Tenant, s.MachineName, s.Status, s.Err, s.Delay, s.Took)
}

// leastRoom is how much of the disk has to be free, in bytes.
const leastRoom = 256 << 20

// mostBehind is for how long who follows a log in Postgres may be held up by those who write.
const mostBehind = 10 * time.Second

// readyChecks are those of what the store at a path lies on, and of those in Postgres.
func (w *watching) readyChecks(path string) map[string]server.ReadyCheck {
	frozen := server.ReadyCheck{Check: func(ctx context.Context) error { return writable(ctx, w.engines) }, Critical: true}
	if path == "" {
		return map[string]server.ReadyCheck{"writable": frozen, "log": {Check: func(context.Context) error {
			for _, e := range w.engines {
				if kept, ok := e.Store.(*postgres.Store); ok && kept.Behind() > mostBehind {
					return fmt.Errorf("a transaction has been writing for %s: what others commit is not known meanwhile", kept.Behind().Round(time.Second))
				}
			}
			return nil
		}}}
	}
	return map[string]server.ReadyCheck{"writable": frozen, "disk": {Check: func(context.Context) error {
		if room, known := roomAt(path); known && room < leastRoom {
			return fmt.Errorf("%d MiB are free", room>>20)
		}
		return nil
	}}}
}
