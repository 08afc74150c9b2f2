package guard

import (
	"github.com/dialai/dialai/internal/batch"
	"github.com/dialai/dialai/verdict"
)

// batch judges the tool calls of a step together. What it finds out is repeated
// when the step is committed ([memory.addBatch]).
func (k *checking) batch() {
	if k.c.Batch == nil {
		return
	}
	_, result, err := k.c.Batch.AfterModel(k.m.batches(), batchOf(k.step))
	if err != nil {
		k.report(verdict.Reason{Code: "internal_error", Guard: "batch_loop", Class: verdict.Abort, Message: err.Error()})
		return
	}
	k.reasons = append(k.reasons, result.Verdict().Reasons...)
	if result.Outcome == batch.Warn {
		k.notices = append(k.notices, result.Message)
	}
}

// batchOf returns the calls that stand for a step: of a transition also itself.
func batchOf(step *verdict.Step) []verdict.ToolCall {
	if step.Transition == "" {
		return step.ToolCalls
	}
	return batch.CallsOf(*step)
}

// addBatch counts the batch of a committed step. Its warning has gone out with
// the verdict, so none stays pending.
func (m *memory) addBatch(c *Config, step *verdict.Step) {
	if c.Batch == nil || step.Human {
		return
	}
	next, result, err := c.Batch.AfterModel(m.batches(), batchOf(step))
	if err != nil || result.Outcome == batch.Failed { // it was judged before, and was let pass
		return
	}
	next, _ = c.Batch.BeforeModel(next)
	m.batch = &next
}

// refuse counts the batch of a step that the ladder, and nothing else, sent back
// or up: else its higher rungs would never be reached, since such a step is not
// committed.
func (m *memory) refuse(c *Config, step *verdict.Step, v verdict.Verdict) {
	if c == nil || c.Batch == nil || !c.Batch.Climbs() || step.Human || !byBatch(v) {
		return
	}
	next, _, err := c.Batch.AfterModel(m.batches(), batchOf(step))
	if err != nil { // it was judged before
		return
	}
	m.batch = &next
}

// byBatch reports whether only the batch loop guard kept the step from passing.
func byBatch(v verdict.Verdict) bool {
	for _, r := range v.Reasons {
		if r.Class > verdict.Warn && r.Code != batch.Code {
			return false
		}
	}
	return !v.Passed()
}

// batches returns what the batch loop guard remembers.
func (m *memory) batches() batch.State {
	if m.batch == nil {
		return batch.State{}
	}
	return *m.batch
}
