package claude

import (
	"encoding/json"
	"strings"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/agent/internal/process"
)

// finish ends the turn.
func (s *session) finish(text []byte) {
	var r result
	_ = json.Unmarshal(text, &r) // what cannot be read is empty
	s.mu.Lock()
	quiet := s.quiet
	if quiet == nil && s.version == "" { // it would not open
		s.refused = strings.TrimSpace(s.refused + " " + strings.Join(append(r.Errors, r.Result), " "))
	}
	s.mu.Unlock()
	if quiet == nil {
		return
	}
	s.account(r)
	t := s.turn
	done := agent.Done{Outcome: outcome(r), Text: t.text, AgentSession: s.id, Unprompted: !t.prompted}
	if t.fatal != "" {
		done.Outcome = t.fatal
	}
	if done.Outcome != agent.Finished && done.Outcome != agent.Cancelled {
		if done.Problem = t.problem; done.Problem == "" {
			done.Problem = process.Beginning(strings.Join(append(r.Errors, r.Result), " "))
		}
		s.queue.Tell(agent.Failed{Code: string(done.Outcome), Message: done.Problem, Retryable: done.Outcome == agent.Provider})
	}
	s.turn, s.uses = turn{}, map[string]use{}
	s.mu.Lock()
	s.quiet = nil
	s.mu.Unlock()
	s.queue.Tell(done)
	close(quiet)
}

// outcome says how a turn ended; the first that fits.
func outcome(r result) agent.Outcome {
	switch {
	case strings.HasPrefix(r.Reason, "aborted_"): // also where it says success
		return agent.Cancelled
	case r.Reason == "blocking_limit":
		return agent.Full
	case strings.HasPrefix(r.Subtype, "error_max_"):
		return agent.Limit
	case r.Status == 401 || r.Status == 403: // these say success, too
		return agent.Auth
	case r.IsError || strings.HasPrefix(r.Subtype, "error_"):
		return agent.Provider
	}
	return agent.Finished
}
