package bridge

import (
	"fmt"
	"time"

	"github.com/dialai/dialai/agent"
)

// A meter is how full the context of a session is, and what follows from that: the warnings of
// the host, and the notice that the agent is given of each.
type meter struct {
	base      agent.Base
	levels    agent.Levels
	usage     agent.Usage
	crossed   agent.Crossed
	compacted bool   // it was told that the agent wants to compact, and the context is as full still
	notice    string // for the agent, once it reads something
	told      time.Time
	waits     *time.Timer // until usage may be told again; nil: nothing is to be told
}

// compactionLevel is that of a context which the agent would compact, or has.
const compactionLevel agent.Level = "compaction"

// perUsage is how long it is between two events of usage.
const perUsage = time.Second

// pct is how full the context is, 0 where that is not known.
func (m *meter) pct() int { return max(0, m.usage.Percent(m.base)) }

func (m *meter) event(u agent.Usage) usageEvent {
	return usageEvent{Used: u.Used, Window: u.Window, Ceiling: u.Ceiling, ContextPct: max(0, u.Percent(m.base)), Tokens: u.Tokens, CostUSD: u.CostUSD}
}

// notices are what an agent is told.
var notices = map[agent.Level]string{
	agent.Soft: "[Notice] Your context is %d %% full. Finish what you are at and begin nothing large.",
	agent.Hard: "[Notice] Your context is %d %% full. Begin nothing new. Report now what is done, what remains, and what whoever goes on must know.",
}

// measured takes a new value of a session.
func (b *bridge) measured(s *session, u agent.Usage) {
	m := &s.meter
	m.usage = u
	var level agent.Level
	level, m.crossed = m.levels.Cross(m.crossed, u.Used, m.base.Of(u))
	if !m.crossed.Hard {
		m.compacted = false
	}
	if m.crossed == (agent.Crossed{}) {
		m.notice = ""
	}
	b.tellUsage(s)
	if level != "" {
		b.warn(s, level, level)
	}
	b.charge(s)
}

// warn tells the host, and has the agent be told, that a level was crossed.
func (b *bridge) warn(s *session, told, noticed agent.Level) {
	m := &s.meter
	b.tell(s.id, contextWarningEvent{Pct: m.pct(), Level: told, Used: m.usage.Used, Ceiling: m.usage.Ceiling})
	m.notice = fmt.Sprintf(notices[noticed], m.pct())
}

// compacts tells of a compaction. One that was blocked is tried again and again, and is one
// crossing; both count as the hard level.
func (b *bridge) compacts(s *session, c agent.Compaction) {
	b.tell(s.id, compactionEvent(c))
	m := &s.meter
	if m.compacted && c.Blocked {
		return
	}
	m.compacted = c.Blocked
	m.crossed = agent.Crossed{Soft: true, Hard: true}
	b.warn(s, compactionLevel, agent.Hard)
}

// take returns the notice that the agent has not been given, for whoever gives it.
func (m *meter) take() (notice string) {
	notice, m.notice = m.notice, ""
	return notice
}

// tellUsage tells the newest value, at once or when a second has passed since the last.
func (b *bridge) tellUsage(s *session) {
	m := &s.meter
	if m.waits != nil {
		return
	}
	if left := perUsage - time.Since(m.told); left > 0 {
		m.waits = b.after(left, func() {
			if m.waits = nil; b.sessions[s.id] == s {
				b.tellUsage(s)
			}
		})
		return
	}
	m.told = time.Now()
	b.tell(s.id, m.event(m.usage))
}

// charge ends the turn of a session that has cost too much.
func (b *bridge) charge(s *session) {
	if !s.overspent() || s.turn.limited {
		return
	}
	s.turn.limited = true
	b.fail(s, limit, fmt.Sprintf("the session has cost more than its budget of $%g", s.budget), false)
	b.interrupt(s)
}

func (s *session) overspent() bool {
	cost := s.meter.usage.CostUSD
	return s.budget > 0 && cost != nil && *cost > s.budget
}
