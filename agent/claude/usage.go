package claude

import (
	"context"

	"github.com/dialai/dialai/agent"
)

// tokens are what one request of the model used.
type tokens struct {
	Input      int64 `json:"input_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
}

// A meter keeps how full the context is.
type meter struct {
	usage  agent.Usage
	newest string // the message that told last: it comes once for each of its parts
}

// measure takes what the newest request of the main thread told. What is sent is all that is in
// the context; the answer enters it with the next request.
func (s *session) measure(m said) {
	if m.Usage == nil {
		return
	}
	used := m.Usage.Input + m.Usage.CacheRead + m.Usage.CacheWrite
	s.mu.Lock()
	u := &s.meter.usage
	if m.ID == s.meter.newest && u.Used == used {
		s.mu.Unlock()
		return
	}
	s.meter.newest = m.ID
	if u.Stale = used <= 0; !u.Stale {
		u.Used = used
	}
	told := *u
	s.mu.Unlock()
	s.queue.Tell(told)
}

// A contextUsage is what the program itself says of its context.
type contextUsage struct {
	Model     string `json:"model"`
	Total     int64  `json:"totalTokens"`
	Max       int64  `json:"maxTokens"`
	Threshold int64  `json:"autoCompactThreshold"`
	Enabled   bool   `json:"isAutoCompactEnabled"`
}

const (
	// wall is how far below the window the program refuses to go on.
	wall = 23_000
	// usualWindow is that of a model whose window is not told.
	usualWindow = 200_000
)

// ceiling is up to where the context can be used.
func (c contextUsage) ceiling() int64 {
	most := c.Max - wall
	if c.Enabled && c.Threshold > 0 {
		most = min(most, c.Threshold)
	}
	return min(c.Max, max(most, 1))
}

// Usage asks the program how full its context is. In mid-turn its count lags behind what
// requests have told, so that stands.
func (s *session) Usage(ctx context.Context) (agent.Usage, error) {
	var c contextUsage
	if err := s.request(ctx, map[string]any{"subtype": "get_context_usage", "detail": "summary"}, &c); err != nil {
		return agent.Usage{}, err
	}
	if c.Max <= 0 {
		c.Max = usualWindow
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Model != "" {
		s.model = c.Model
	}
	s.meter.usage.Window, s.meter.usage.Ceiling = c.Max, c.ceiling()
	if s.quiet == nil && c.Total > 0 {
		s.meter.usage.Used = c.Total
	}
	return s.meter.usage, nil
}

// A result ends a turn.
type result struct {
	Subtype    string   `json:"subtype"`
	IsError    bool     `json:"is_error"`
	Reason     string   `json:"terminal_reason"`
	Status     int      `json:"api_error_status"`
	Result     string   `json:"result"`
	Errors     []string `json:"errors"`
	Cost       *float64 `json:"total_cost_usd"` // of the process, subagents included
	ModelUsage map[string]struct {
		Input      int64 `json:"inputTokens"`
		Output     int64 `json:"outputTokens"`
		CacheRead  int64 `json:"cacheReadInputTokens"`
		CacheWrite int64 `json:"cacheCreationInputTokens"`
	} `json:"modelUsage"`
}

// account takes what the turn has cost.
func (s *session) account(r result) {
	var sum agent.Tokens
	for _, m := range r.ModelUsage {
		sum.In += m.Input
		sum.Out += m.Output
		sum.CacheRead += m.CacheRead
		sum.CacheWrite += m.CacheWrite
	}
	s.mu.Lock()
	u := &s.meter.usage
	if len(r.ModelUsage) > 0 {
		u.Tokens = sum
	}
	if r.Cost != nil {
		u.CostUSD = r.Cost
	}
	told := *u
	s.mu.Unlock()
	s.queue.Tell(told)
}
