package bridge

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dialai/dialai/agent"
)

// on takes an event of a session.
func (b *bridge) on(s *session, body agent.Body) {
	if b.sessions[s.id] != s {
		return
	}
	if _, last := body.(agent.Exited); s.mute {
		if last {
			b.remove(s)
		}
		return
	}
	switch e := body.(type) {
	case agent.Opened:
		b.begin(s, e)
	case agent.TurnStarted:
		s.turn = turn{running: true}
		b.charge(s)
	case agent.Usage:
		b.measured(s, e)
	case agent.ToolCall:
		b.called(s, e)
	case agent.Permission:
		b.asked(s, e)
	case agent.Withdrawn:
		delete(s.asks, e.ID)
	case agent.Hook:
		b.hooked(s, e)
	case agent.Compaction:
		b.compacts(s, e)
	case agent.Failed:
		b.fail(s, codeOf(e.Code), e.Message, e.Retryable)
	case agent.Done:
		b.done(s, e)
	case agent.Exited:
		b.exited(s, e)
	default:
		b.show(s, body)
	}
}

// show tells the host what it need not act on.
func (b *bridge) show(s *session, body agent.Body) {
	switch e := body.(type) {
	case agent.Text:
		b.tell(s.id, assistantEvent{Text: e.Text, ContextPct: s.meter.pct(), MessageID: e.MessageID, Parent: e.Parent})
	case agent.ToolUse:
		b.tell(s.id, toolUseEvent{Tool: e.Tool, Input: sound(e.Input), ToolUseID: e.ID, Parent: e.Parent})
	case agent.ToolDone:
		b.tell(s.id, toolDoneEvent{ToolUseID: e.ID, OK: e.OK, Millis: e.Millis})
	case agent.Subagent:
		if e.Status == "" {
			b.tell(s.id, subagentStartEvent{Description: e.Description, TaskID: e.TaskID, Depth: e.Depth, Background: e.Background})
			return
		}
		b.tell(s.id, subagentStopEvent{Description: e.Description, TaskID: e.TaskID, Status: e.Status, Tokens: e.Tokens, Millis: e.Millis})
	case agent.Receipt:
		b.tell(s.id, receiptEvent(e))
	case agent.Retry:
		s.turn.attempt = e.Attempt
		b.tell(s.id, retryEvent{Attempt: e.Attempt, Max: e.Max, DelayMS: e.DelayMillis, Status: e.Status, Reason: e.Reason})
	case agent.Log:
		b.tell(s.id, logEvent{Stream: e.Stream, Text: s.masked(e.Text)})
	}
}

// called serves a tool: by itself, if it is one of the bridge's, else by the host.
func (b *bridge) called(s *session, e agent.ToolCall) {
	fail := func(why string) { _ = b.reply(s, agent.Reply{To: e.ID, Content: why, IsError: true}) }
	call := toolCallEvent{Tool: e.Tool, Input: sound(e.Input), Call: e.ID}
	switch {
	case s.closing:
		fail("The session is ending.")
	case e.Parent != "":
		_ = s.live.Answer(now, agent.Reply{To: e.ID, Content: "Only the main agent uses this tool. Report what you have found to it.", IsError: true})
	case !slices.ContainsFunc(s.spec.Tools, func(t agent.Tool) bool { return t.Name == e.Tool }):
		fail(fmt.Sprintf("There is no tool %s.", e.Tool))
	case e.Tool == decide:
		s.turn.decision = call.Input
		_ = b.reply(s, agent.Reply{To: e.ID, Content: "Noted."})
	case e.Tool == summon && !hasPrompt(e.Input):
		fail("prompt must be a text that says what the orchestrator is to do.")
	case e.Tool == summon:
		b.number++
		call.Orch = fmt.Sprintf("orch-%d", b.number)
		b.tell(s.id, call)
		_ = b.reply(s, agent.Reply{To: e.ID, Content: fmt.Sprintf("Orchestrator %s summoned. Awaiting their response.", call.Orch)})
	default:
		s.calls[e.ID] = b.after(longestAnswer, func() {
			if s.calls[e.ID] != nil {
				delete(s.calls, e.ID)
				fail("The host has not answered within 60 s. Go on without it.")
			}
		})
		b.tell(s.id, call)
	}
}

func hasPrompt(input json.RawMessage) bool {
	var in map[string]json.RawMessage
	var prompt string
	return json.Unmarshal(input, &in) == nil && json.Unmarshal(in["prompt"], &prompt) == nil && prompt != ""
}

// notAllowed is what an agent is told whose host lets it do only what rules allow.
const notAllowed = "The rules of this session do not allow this. Go on without it, or find another way."

// asked answers a permission by the rules, or asks the host.
func (b *bridge) asked(s *session, e agent.Permission) {
	r := s.rules.judge(e.Tool, e.Input)
	switch {
	case r == allow && !e.Question && !s.closing: // a question wants a word, which no rule has
		_ = s.live.Answer(now, agent.Reply{To: e.ID, Allow: true})
	case r == deny || s.refuses || s.closing:
		_ = s.live.Answer(now, agent.Reply{To: e.ID, Reason: notAllowed})
	default:
		s.asks[e.ID] = true
		b.tell(s.id, permissionEvent{Ask: e.ID, Tool: e.Tool, Input: sound(e.Input), Parent: e.Parent})
	}
}

// hooked answers a hook. What is denied is so also where the agent would not have asked.
func (b *bridge) hooked(s *session, e agent.Hook) {
	r := agent.Reply{To: e.ID, Allow: true}
	switch {
	case e.Point == agent.BeforeTool && s.rules.judge(e.Tool, e.Input) == deny:
		r.Allow, r.Reason = false, notAllowed
	case e.Point == agent.AfterTool && e.Parent == "":
		r.Notice = s.meter.take()
	case e.Point == agent.BeforeCompaction:
		r.Allow, r.Reason = false, "The host wants the context as it is. Report what is done and what remains."
	}
	_ = s.live.Answer(now, r)
}

// fail tells why something of a session went wrong.
func (b *bridge) fail(s *session, c code, message string, retryable bool) {
	s.turn.failed = true
	b.tell(s.id, errorEvent{Message: s.masked(message), Code: c, Retryable: retryable, Attempt: s.turn.attempt})
}

// codeOf is the code of what an agent calls so.
func codeOf(name string) code {
	if slices.Contains(codes, code(name)) {
		return code(name)
	}
	return provider
}

// done tells that a turn ended, after why it failed.
func (b *bridge) done(s *session, e agent.Done) {
	if e.Outcome == agent.Cancelled && s.turn.limited {
		e.Outcome = agent.Limit
	}
	if e.Outcome != agent.Finished && e.Outcome != agent.Cancelled && !s.turn.failed {
		b.fail(s, codeOf(string(e.Outcome)), e.Problem, e.Outcome == agent.Crashed || e.Outcome == agent.Provider)
	}
	b.tell(s.id, doneEvent{SessionID: e.AgentSession, Outcome: e.Outcome, CostUSD: s.meter.usage.CostUSD, Decision: s.turn.decision, Unprompted: e.Unprompted})
	s.settle()
	s.turn = turn{failed: e.Outcome == agent.Crashed}
}

// exited tells that a session ended, after why if nobody wanted that.
func (b *bridge) exited(s *session, e agent.Exited) {
	if s.opening {
		b.notOpened(s, fault{spawnFailed, "the program has ended"})
	} else {
		if !s.closing && !s.turn.failed {
			b.fail(s, crashed, "the program has ended", true)
		}
		b.tell(s.id, exitEvent{Code: e.Code, Signal: e.Signal, Left: append([]int{}, e.Left...)})
	}
	b.remove(s)
}
