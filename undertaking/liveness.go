package undertaking

import (
	"context"
	"time"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/session"
)

// An agent whose turn runs is alive as long as anything comes from it. One that is silent for a
// while is asked for its meter, where it has one: an answer means that its process is there, and
// the turn may be silent longer; none means that it is not. What is silent too long is
// interrupted, closed, and opened again as after a crash. A turn that waits for a permission waits
// for somebody else.

// watch ends what takes too long, and reports whether the session has to be stepped.
func (l *Loop) watch(ctx context.Context) (again bool) {
	for _, v := range l.live {
		if v.turn && !v.closing && !v.interrupted && len(v.asks) == 0 {
			l.listen(ctx, v)
		}
		if v.interrupted && v.turn && l.c.Now().Sub(v.stopped) >= interruptTime {
			l.end(ctx, v) // it does not heed
		}
		again = l.inGrace(ctx, v) || again
	}
	for _, ask := range l.s.OpenAsks() {
		as := ask.SpecialistID
		if as == engine && l.s.State.Name == "summoning" {
			as = orchestrator // whom the engine wakes
		}
		if of := l.goesOn(as); l.state.agent(of) != nil && l.live[of] == nil && l.s.Status == session.Running {
			again = true // it is woken when its time has come
		}
	}
	return again
}

const (
	interruptTime = 5 * time.Second // a turn may go on after it was interrupted
	probeTime     = 10 * time.Second
	maxProbes     = 3 // in a row without an answer
)

// listen gives up a turn that has been silent for too long, and asks before whether its process
// is there.
func (l *Loop) listen(ctx context.Context, v *live) {
	silent := l.c.Now().Sub(v.heard)
	meter, probes := v.session.(agent.Meter)
	limit := l.set.Silence
	if l.state.agent(v.who).Tool != "" {
		limit = l.set.SilenceTool
	}
	if !probes { // nobody can say that it is there: it has longer to show it
		limit += limit / 2
	}
	switch {
	case silent >= limit || v.missed >= maxProbes:
		l.tell(v.who, "no sign of life for %s", silent.Round(time.Second))
		v.silent = true
		l.interrupt(ctx, v)
	case silent < l.set.Quiet:
		v.quiet, v.missed = false, 0
	case !v.quiet:
		v.quiet = true
		l.tell(v.who, "silent for %s", silent.Round(time.Second))
	case probes && !v.probing && (v.missed > 0 || l.c.Now().Sub(v.probed) >= l.set.Quiet):
		l.probe(ctx, v, meter)
	}
}

// probe asks an agent for its meter.
func (l *Loop) probe(ctx context.Context, v *live, meter agent.Meter) {
	v.probing, v.probed = true, l.c.Now()
	l.beside.Go(func() {
		asked, cancel := context.WithTimeout(ctx, probeTime)
		defer cancel()
		_, err := meter.Usage(asked)
		l.in.put(probed{v, err})
	})
}

// A probed is what came of a probe.
type probed struct {
	v   *live
	err error
}

func (p probed) handle(_ context.Context, _ *Loop) bool {
	p.v.probing = false
	if p.v.missed++; p.err == nil {
		p.v.missed = 0
	}
	return false
}
