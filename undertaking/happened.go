package undertaking

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"strings"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/internal/packs"
	"github.com/dialai/dialai/permit"
	"github.com/dialai/dialai/specialist"
)

// What agents tell, one event after the other, as the loop takes it. Three of the events wait
// for an answer: a hook and a tool of ours are answered here, from the state as it is now; a
// permission is a session of its own, and is answered when that has ended.

// A happened is an event of an agent.
type happened struct {
	v *live
	e agent.Event
}

func (h happened) handle(ctx context.Context, l *Loop) bool {
	v := h.v
	about := v.who
	if v.heard = l.c.Now(); l.live[v.who] != v {
		return false // of a process that never opened
	}
	switch b := h.e.Body.(type) {
	case agent.Opened, agent.TurnStarted: // are logged by who led to them
	case agent.Usage:
		return l.used(ctx, v, b)
	case agent.Text:
		if b.Parent == "" {
			v.said = b.Text
		}
		b.Text = clip(packs.Redact(b.Text), maxLogged)
		l.note(about, string(b.Kind()), b)
		if b.Parent == "" {
			l.tell(v.who, "says: %s", firstLine(b.Text))
		}
	case agent.ToolUse:
		l.batched(ctx, v, b)
		b.Input = logged(b.Tool, b.Input)
		l.note(about, string(b.Kind()), b)
		if b.Parent == "" {
			l.tell(v.who, "%s %s", b.Tool, firstLine(string(b.Input)))
			if v.using == nil {
				v.using = map[string]string{}
			}
			v.using[b.ID] = b.Tool
		}
		return l.inGrace(ctx, v)
	case agent.ToolDone:
		b.Output = clip(packs.Redact(b.Output), maxLogged)
		l.note(about, string(b.Kind()), b)
		if tool := v.using[b.ID]; tool != "" && !b.OK {
			l.tell(v.who, "%s failed: %s", tool, firstLine(b.Output))
		}
		delete(v.using, b.ID)
	case agent.Log:
		b.Text = clip(packs.Redact(b.Text), maxLogged)
		l.note(about, string(b.Kind()), b)
	case agent.Hook:
		l.answerHook(ctx, v, b)
	case agent.ToolCall:
		return l.called(ctx, v, b)
	case agent.Permission:
		l.permission(ctx, v, b)
	case agent.Withdrawn:
		if cancel := v.asks[b.ID]; cancel != nil {
			cancel()
		}
	case agent.Compaction:
		l.note(about, string(b.Kind()), b)
		return true
	case agent.Retry:
		l.note(about, string(b.Kind()), b)
		l.tell(v.who, "the provider failed (%s), attempt %d of %d", b.Reason, b.Attempt, b.Max)
	case agent.Done:
		return l.turnEnded(ctx, v, b)
	case agent.Exited:
		return l.exited(ctx, v, b)
	default: // subagent, receipt, error
		l.note(about, string(b.Kind()), b)
	}
	return false
}

const maxLogged = 2 << 10 // bytes of a text, a tool's input or its output in the agent_log

// clip shortens a text to some bytes.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
}

func firstLine(text string) string {
	line, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	if line = clip(line, 120); more && !strings.HasSuffix(line, "…") {
		line += " …"
	}
	return line
}

// logged is the input of a tool as the agent_log has it: what looks like a secret is masked.
func logged(tool string, input json.RawMessage) json.RawMessage {
	masked := permit.Masked(tool, input)
	if len(masked) <= maxLogged {
		return masked
	}
	text, err := jsontext.Marshal(clip(string(masked), maxLogged))
	if err != nil {
		return nil
	}
	return text
}

// used: the meter of a worker has moved.
func (l *Loop) used(ctx context.Context, v *live, u agent.Usage) bool {
	about := v.who
	l.note(about, string(u.Kind()), u)
	v.cost.In, v.cost.Out = u.Tokens.In+u.Tokens.CacheRead+u.Tokens.CacheWrite, u.Tokens.Out
	if u.CostUSD != nil {
		v.cost.USD = money(*u.CostUSD)
	} else {
		v.cost.USD = l.priced(v, u.Tokens)
	}
	if w := l.state.agent(v.who); !u.Stale {
		level, crossed := v.levels.Cross(w.Crossed, u.Used, u.Ceiling)
		if level != "" || crossed != w.Crossed {
			l.note(about, kindCrossed, crossing{level, crossed, u.Percent(agent.Ceiling), notice(w.As, level, u.Percent(agent.Ceiling), v.levels)})
		}
		if level != "" {
			l.tell(v.who, "its context is %d %% full (%s)", u.Percent(agent.Ceiling), level)
		}
	}
	if v.turn && !v.interrupted && l.overCap() {
		l.interrupt(ctx, v)
	}
	return l.inGrace(ctx, v) || l.state.agent(v.who).Level == agent.Hard
}

// priced returns what the tokens of a process cost whose agent does not say.
func (l *Loop) priced(v *live, t agent.Tokens) exact.Money {
	model := cmp.Or(l.state.agent(v.who).Model, l.c.Model)
	if l.c.Price != nil {
		cost, known := l.c.Price(model, specialist.Usage{
			NumInputTokens: t.In, NumOutputTokens: t.Out, Given: specialist.InputGiven | specialist.OutputGiven,
			Detail: &specialist.UsageDetail{CacheReadTokens: t.CacheRead, CacheWrite5mTokens: t.CacheWrite},
		})
		if known {
			return cost
		}
	}
	if !l.told["price"] {
		l.told["price"] = true
		l.tell(v.who, "no price of the model %q is known: only --max-tokens limits it", model)
	}
	return 0
}

type crossing struct {
	Level   agent.Level   `json:"level,omitempty"`
	Crossed agent.Crossed `json:"crossed"`
	Pct     int           `json:"pct"`
	Notice  string        `json:"notice,omitempty"`
}

// interrupt ends the running turn.
func (l *Loop) interrupt(ctx context.Context, v *live) {
	v.interrupted, v.stopped = true, l.c.Now()
	if err := v.session.Interrupt(ctx); err != nil && ctx.Err() == nil {
		l.end(ctx, v)
	}
}

// drop ends the running turn, and what it was to end with is not handed in.
func (l *Loop) drop(ctx context.Context, v *live) {
	v.dropped = true
	l.interrupt(ctx, v)
}

// charge puts what a process has cost since the last time into the agent_log.
func (l *Loop) charge(v *live) {
	if c := v.cost.minus(v.charged); c != (Cost{}) {
		v.charged = v.cost
		l.note(v.who, kindCharge, c)
	}
}

// turnEnded: what the turn has cost and its end are durable before anything follows.
func (l *Loop) turnEnded(ctx context.Context, v *live, d agent.Done) bool {
	v.turn, v.using = false, nil
	l.endBatch(ctx, v)
	w := l.state.agent(v.who)
	l.charge(v)
	if d.Text == "" {
		d.Text = v.said
	}
	d.Text = clip(packs.Redact(d.Text), maxLogged)
	candidate := l.state.candidate(w)
	cut := v.dismissed && d.Outcome == agent.Cancelled // by us, who leave: it is made again, and so is its move
	if (v.dropped || cut) && candidate != nil {
		l.note(v.who, kindRefused, map[string]string{"reason": "the turn was ended"})
		candidate = nil
	}
	if candidate != nil && len(v.said) > len(messageIn(candidate.Payload)) {
		l.note(v.who, kindSubmitted, withText(*candidate, v.said))
	}
	l.note(v.who, string(d.Kind()), d)
	if err := l.flush(ctx); err != nil {
		l.fail(err)
		return true
	}
	switch d.Outcome {
	case agent.Finished, agent.Limit:
		if v.prompts++; candidate != nil {
			v.prompts = 0
		}
	case agent.Cancelled:
		if v.silent {
			l.end(ctx, v)
		}
	case agent.Full:
		v.lost = "its context is full"
		l.end(ctx, v)
	case agent.Auth:
		if _, err := l.stop(ctx, "the agent's provider refuses the credentials: "+d.Problem); err != nil {
			l.fail(err)
		}
	case agent.Crashed, agent.Provider:
		l.tell(v.who, "its turn ended: %s %s", d.Outcome, d.Problem)
		l.end(ctx, v)
	}
	return true
}

// exited: a process has gone.
func (l *Loop) exited(ctx context.Context, v *live, e agent.Exited) bool {
	l.charge(v)
	for _, cancel := range v.asks {
		cancel()
	}
	delete(l.live, v.who)
	l.gone[v.who] = l.c.Now()
	l.note(v.who, string(e.Kind()), closing{Exited: e, Lost: v.lost, Closed: v.dismissed})
	if len(e.Left) > 0 {
		l.tell(v.who, "processes are left: %v", e.Left)
	}
	if err := l.flush(ctx); err != nil {
		l.fail(err)
	}
	return true
}

// answer answers what an agent waits for.
func (l *Loop) answer(ctx context.Context, v *live, r agent.Reply) {
	if err := v.session.Answer(ctx, r); err != nil && ctx.Err() == nil && !v.closing {
		l.tell(v.who, "an answer did not reach it: %v", err)
	}
}

// permission has what an agent asks to be allowed decided by a session of its own.
func (l *Loop) permission(ctx context.Context, v *live, p agent.Permission) {
	asking, cancel := context.WithCancel(ctx)
	v.asks[p.ID] = cancel
	w := l.state.agent(v.who)
	prompt := permit.Prompt{
		Agent: w.Agent, AgentSession: w.AgentSession, Undertaking: l.c.Session.String(), Tool: p.Tool, Input: p.Input, Cwd: l.c.Cwd,
		BlockedPath: p.BlockedPath, Suggestions: p.Suggestions,
	}
	l.tell(v.who, "asks for %s", p.Tool)
	l.beside.Go(func() {
		answer, err := l.c.Permit.Ask(asking, prompt)
		l.in.put(permitted{v, p, answer, err})
	})
}

// A permitted is what came of a permission.
type permitted struct {
	v      *live
	asked  agent.Permission
	answer permit.Answer
	err    error
}

func (p permitted) handle(ctx context.Context, l *Loop) bool {
	cancel := p.v.asks[p.asked.ID]
	if cancel == nil || l.live[p.v.who] != p.v {
		return false
	}
	cancel()
	delete(p.v.asks, p.asked.ID)
	r := agent.Reply{To: p.asked.ID, Allow: p.err == nil && p.answer.Behavior == permit.Allow, Answers: p.answer.Answers}
	switch {
	case r.Allow:
	case p.err != nil:
		r.Reason = "it could not be asked for"
	default:
		r.Reason = p.answer.Message
	}
	l.note(p.v.who, string(agent.KindPermission), decided{p.asked.Tool, p.answer.Session.String(), r.Allow})
	l.tell(p.v.who, "%s %s", map[bool]string{true: "may use", false: "may not use"}[r.Allow], p.asked.Tool)
	p.v.heard = l.c.Now()
	l.answer(ctx, p.v, r)
	return false
}

type decided struct {
	Tool    string `json:"tool"`
	Session string `json:"session"`
	Allowed bool   `json:"allowed"`
}

// answerHook answers from what is known now: subagents within their limits, no stash, and a
// notice with the next result of a tool.
func (l *Loop) answerHook(ctx context.Context, v *live, h agent.Hook) {
	w := l.state.agent(v.who)
	r := agent.Reply{To: h.ID, Allow: true}
	switch h.Point {
	case agent.BeforeTool:
		if r.Reason = l.refused(w, h); r.Reason != "" {
			r.Allow = false
			l.tell(v.who, "refused: %s", r.Reason)
		} else if spawns(h.Tool) { // counted before it starts: many may be asked for at once
			l.note(v.who, kindSpawn, nil)
		}
	case agent.AfterTool:
		if r.Notice = w.Notice; h.Parent != "" {
			r.Notice = ""
		}
		if r.Notice != "" {
			l.note(v.who, kindNoticed, nil)
		}
	case agent.BeforeCompaction:
		r.Allow, r.Reason = false, "hand over instead: the next worker gets your record, not a summary"
		l.note(v.who, string(agent.KindCompaction), agent.Compaction{Trigger: h.Trigger, Blocked: true})
		l.in.put(nudge{})
	}
	l.answer(ctx, v, r)
}

// A nudge has the session stepped.
type nudge struct{}

func (nudge) handle(context.Context, *Loop) bool { return true }

// money returns dollars; what cannot be an amount is none. Agents add up in floating point: what is
// below a thousand-millionth is theirs.
func money(usd float64) exact.Money {
	m, err := exact.MoneyFromFloat(math.Round(usd*1e9) / 1e9)
	if err != nil || m < 0 {
		return 0
	}
	return m
}
