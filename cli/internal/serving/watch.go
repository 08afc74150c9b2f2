package serving

import (
	"context"
	"fmt"

	"github.com/dialai/dialai/driver"
	"github.com/dialai/dialai/internal/telemetry/prom"
	"github.com/dialai/dialai/internal/telemetry/spans"
	"github.com/dialai/dialai/server"
	"github.com/dialai/dialai/session"
)

// How a server is watched: metrics, spans where the variables of OpenTelemetry ask for them, and
// what makes it ready. Only serve makes any of it.

// A watching is told of what a server does. The store and the driver are made after it.
type watching struct {
	metrics *prom.Metrics
	spans   *spans.Spans // nil if nobody wants them
	live    func(context.Context) ([]session.LiveCount, error)
	driver  *driver.Driver
}

// watch has what the engine does counted and traced.
func (a *app) watch() (*watching, error) {
	w := &watching{}
	var err error
	w.metrics, err = prom.New(prom.Config{
		Live: func(ctx context.Context) ([]session.LiveCount, error) { return w.live(ctx) },
		Driver: func() (ready, busy int, driving bool) {
			s := w.driver.Status()
			return s.Ready, s.Busy, s.Mode == driver.Driving || s.Mode == driver.Stalled
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

// stepped is told of the driver's steps.
func (w *watching) stepped(s driver.Stepped) {
	w.metrics.Stepped(s.MachineName, s.Status, s.Err, s.Delay, s.Took)
}

// leastRoom is how much of the disk has to be free, in bytes.
const leastRoom = 256 << 20

// readyChecks are those of what the store lies on.
func readyChecks(path string) map[string]server.ReadyCheck {
	if path == "" {
		return nil
	}
	return map[string]server.ReadyCheck{"disk": {Check: func(context.Context) error {
		if room, known := roomAt(path); known && room < leastRoom {
			return fmt.Errorf("%d MiB are free", room>>20)
		}
		return nil
	}}}
}
