package prom

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// oneOf returns a value that is one of those that are known, else "other".
func oneOf(value string, known ...string) string {
	if slices.Contains(known, value) {
		return value
	}
	return other
}

// Request notes that a request begins; done that it was answered. A stream's time is not noted.
func (m *Metrics) Request(ctx context.Context) (done func(route, method string, status int, stream bool, took time.Duration)) {
	if m == nil {
		return func(string, string, int, bool, time.Duration) {}
	}
	m.inFlight.Add(ctx, 1)
	return func(route, method string, status int, stream bool, took time.Duration) {
		m.inFlight.Add(ctx, -1)
		method = oneOf(method, http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions)
		set := labels("route", route, "method", method, "status", strconv.Itoa(min(max(status, 100), 599)/100)+"xx")
		m.requests.Add(ctx, 1, set)
		if !stream {
			m.requestTime.Record(ctx, took.Seconds(), set)
		}
	}
}

// AuthFailed notes a request without a credential that is known: with one, or with none.
func (m *Metrics) AuthFailed(ctx context.Context, sent bool) {
	if m == nil {
		return
	}
	reason := "missing"
	if sent {
		reason = "unknown"
	}
	m.authFailures.Add(ctx, 1, labels("reason", reason))
}

// RateLimited notes a request that came too often: "read", "write", "stranger" or "login".
func (m *Metrics) RateLimited(ctx context.Context, kind string) {
	if m != nil {
		m.rateLimited.Add(ctx, 1, labels("kind", oneOf(kind, "read", "write", "stranger", "login")))
	}
}

// Callback notes an answer that came later: "accepted", "repeated", or the code of why not.
func (m *Metrics) Callback(ctx context.Context, result string) {
	if m != nil {
		m.callbacks.Add(ctx, 1, labels("result", oneOf(result, "accepted", "repeated", "callback_used", "round_over", "bad_callback", "bad_signature", "bad_answer", "illegal_answer", "rate_limited")))
	}
}

// Replayed notes a request that was answered as the first time.
func (m *Metrics) Replayed(ctx context.Context, route string) {
	if m != nil {
		m.replays.Add(ctx, 1, labels("route", route))
	}
}

// Stream notes that a stream of events of a kind begins; done that it has ended, and whether
// its reader was too slow or gone.
func (m *Metrics) Stream(ctx context.Context, kind string) (done func(dropped bool)) {
	if m == nil {
		return func(bool) {}
	}
	ctx = context.WithoutCancel(ctx)
	set := labels("kind", oneOf(kind, "session", "machine", "inbox", "all"))
	m.subscribers.Add(ctx, 1, set)
	return func(dropped bool) {
		m.subscribers.Add(ctx, -1, set)
		if dropped {
			m.dropped.Add(ctx, 1, set)
		}
	}
}

// CaughtUp notes that a stream of events of a kind has read the store, since what came next for
// it was not kept in memory.
func (m *Metrics) CaughtUp(ctx context.Context, kind string) {
	if m != nil {
		m.catchUps.Add(ctx, 1, labels("kind", oneOf(kind, "machine", "inbox", "all")))
	}
}

// Delivered notes an attempt to deliver a message to a webhook: "delivered", "failed" if it is
// made again, "dead" if not, "gone" if the webhook wants to be told nothing any more.
func (m *Metrics) Delivered(result string) {
	if m == nil {
		return
	}
	m.deliveries.Add(context.Background(), 1, labels("result", oneOf(result, "delivered", "failed", "dead", "gone")))
	if result == "dead" || result == "gone" {
		m.dead.Add(context.Background(), 1)
	}
}

// Tool notes a request of the Model Context Protocol. The method and the tool are of the
// server's own, or "other".
func (m *Metrics) Tool(ctx context.Context, method, tool, result string) {
	if m != nil {
		m.tools.Add(ctx, 1, labels("method", method, "tool", tool, "result", oneOf(result, "ok", "error", "refused")))
	}
}

// Stepped notes a step of the driver.
func (m *Metrics) Stepped(tenant, machineName string, status runner.TickStatus, err error, delay, took time.Duration) {
	if m == nil {
		return
	}
	ctx := context.Background()
	tenant = m.tenants.label(tenant)
	m.delay.Record(ctx, delay.Seconds(), labels("tenant", tenant))
	word := string(status)
	if err != nil {
		word = "error"
		m.driverErrors.Add(ctx, 1, labels("tenant", tenant, "kind", kindOf(err)))
	}
	m.stepTime.Record(ctx, took.Seconds(), labels("status", word))
	m.series.mu.Lock()
	defer m.series.mu.Unlock()
	m.series.add(point{"steps_total", m.series.place(machineName, 1), word}, 1)
}

// Transaction notes a transaction of the store, of so many commits.
func (m *Metrics) Transaction(commits int, took time.Duration, err error) {
	if m == nil {
		return
	}
	ctx := context.Background()
	if err != nil {
		m.storeErrors.Add(ctx, 1, labels("kind", kindOf(err)))
		return
	}
	m.commitTime.Record(ctx, took.Seconds())
	m.batch.Record(ctx, float64(commits))
}

// Committed notes what was committed to a session by this process.
func (m *Metrics) Committed(c session.Change) {
	if m == nil {
		return
	}
	ctx := context.Background()
	s := m.series
	s.mu.Lock()
	defer s.mu.Unlock()
	name := s.place(c.After.Machine().Name(), 1)
	for i := range c.Events {
		switch d := c.Events[i].Data.(type) {
		case *session.Ended:
			s.add(point{"sessions_ended_total", name, s.code(d.Code)}, 1)
		case *session.Executed:
			s.add(point{"decisions_total", name, d.How.String()}, 1)
			if d.How.Ruling() {
				s.add(point{"rulings_total", name, methodOf(d.Actor)}, 1)
			}
		case *session.Ruled:
			if d.Transition != nil {
				s.add(point{"rulings_total", name, methodOf(d.Actor)}, 1)
			}
		case *session.Gated:
			code := ""
			if len(d.Verdict.Reasons) > 0 {
				code = s.code(d.Verdict.Reasons[0].Code)
			}
			m.verdicts.Add(ctx, 1, labels("status", d.Verdict.Status.String(), "code", code))
		case *session.Proposed:
			if d.Ask != 0 {
				m.asked(ctx, &c, i, d.Ask, "answered", d.Usage)
			}
		case *session.AskFailed:
			m.asked(ctx, &c, i, d.Ask, oneOf(d.Code, session.CodeTimeout, session.CodeIllegal, session.CodeAskError, session.CodeCancelled), d.Usage)
		case *session.Discarded:
			m.asks.Add(ctx, 1, labels("mode", other, "outcome", "late"))
		}
	}
	m.spent(s, name, &c)
}

// spent notes what a commit adds to what the session has spent.
func (m *Metrics) spent(s *series, name string, c *session.Change) {
	now := c.After.Spent()
	was := new(session.Session).Spent()
	if c.Before != nil {
		was = c.Before.Spent()
	}
	if created, ok := c.Events[0].Data.(*session.Created); ok && created.Forked() {
		return // what a fork has inherited was spent by another session
	}
	for _, a := range []struct {
		p point
		v float64
	}{
		{point{"spent_usd_total", name, ""}, float64(now.Money-was.Money) / 1e12},
		{point{"tokens_total", name, "input"}, float64(now.TokensIn - was.TokensIn)},
		{point{"tokens_total", name, "output"}, float64(now.TokensOut - was.TokensOut)},
	} {
		if a.v != 0 {
			s.add(a.p, a.v)
		}
	}
}

// asked notes what came of an ask.
func (m *Metrics) asked(ctx context.Context, c *session.Change, upTo int, index int32, outcome string, u specialist.Usage) {
	set := labels("mode", sourceOf(c, upTo, index), "outcome", outcome)
	m.asks.Add(ctx, 1, set)
	if u.LatencyMsec > 0 {
		m.askTime.Record(ctx, float64(u.LatencyMsec)/1000, set)
	}
}

// sourceOf returns how somebody is asked, by the number of the ask: in the commit, before the event
// at upTo, or in the round as it was before it.
func sourceOf(c *session.Change, upTo int, index int32) string {
	for i := upTo - 1; i >= 0; i-- {
		switch d := c.Events[i].Data.(type) {
		case *session.RoundOpened:
			return other
		case *session.Asked:
			for j := range d.Asks {
				if d.Asks[j].Index == index {
					return d.Asks[j].Source.String()
				}
			}
		}
	}
	if c.Before != nil && c.Before.Open != nil {
		if a := c.Before.Open.At(index); a != nil {
			return a.Source.String()
		}
	}
	return other
}

// methodOf returns how it was found out who rules.
func methodOf(a *session.Actor) string {
	if a == nil {
		return other
	}
	return oneOf(a.Method, "local", "none", "key", "token", "oidc", "cookie", "elicitation", "tool")
}
