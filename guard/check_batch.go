package guard

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/dialai/dialai/internal/section"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/verdict"
)

// readBatchLoop reads a batch_loop section.
func readBatchLoop(r *section.Reader, into **BatchLoop) func(path string, value []byte) {
	return func(path string, value []byte) {
		b, err := ParseBatchLoop(json.RawMessage(value))
		if err != nil {
			reportOptions(r, path, err)
			return
		}
		*into = b
	}
}

// reportOptions reports the errors of a section that has a reader of its own.
func reportOptions(r *section.Reader, path string, err error) {
	if list, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range list.Unwrap() {
			reportOptions(r, path, e)
		}
		return
	}
	var bad *OptionError
	if !errors.As(err, &bad) {
		r.Report(path, "bad-value", err.Error(), "")
		return
	}
	for name := range strings.SplitSeq(bad.Key, ".") {
		if name != "" {
			path += "/" + machine.EscapePointer(name)
		}
	}
	code := "bad-value"
	if bad.Problem == noSuchOption || bad.Problem == removedOption {
		code = "unknown-field"
	}
	r.Report(path, code, strings.TrimPrefix((&OptionError{Key: bad.Key, Value: bad.Value, Problem: bad.Problem}).Error(), "the section "), bad.Hint)
}

// batch judges the tool calls of a step together. What it finds out is repeated
// when the step is committed ([memory.addBatch]).
func (k *checking) batch() {
	if k.c.Batch == nil {
		return
	}
	_, result, err := k.c.Batch.AfterModel(k.m.batches(), batchOf(k.step), 0)
	var loop *LoopError
	if err != nil && !errors.As(err, &loop) {
		k.report(verdict.Reason{Code: "internal_error", Guard: "batch_loop", Class: verdict.Abort, Message: err.Error()})
		return
	}
	k.reasons = append(k.reasons, result.Verdict().Reasons...)
	if result.Outcome == BatchWarn {
		k.notices = append(k.notices, result.Message)
	}
}

// batchOf returns the calls that stand for a step: of a transition also itself.
func batchOf(step *verdict.Step) []verdict.ToolCall {
	if step.Transition == "" {
		return step.ToolCalls
	}
	return StepBatch(*step)
}

// addBatch counts the batch of a committed step. Its warning has gone out with
// the verdict, so none stays pending.
func (m *memory) addBatch(c *Config, step *verdict.Step) {
	if c.Batch == nil || step.Human {
		return
	}
	next, _, err := c.Batch.AfterModel(m.batches(), batchOf(step), 0)
	if err != nil { // it was judged before, and was let pass
		return
	}
	next, _ = c.Batch.BeforeModel(next)
	m.batch = &next
}

// refuse counts the batch of a step that the ladder, and nothing else, sent back
// or up: else its higher rungs would never be reached, since such a step is not
// committed.
func (m *memory) refuse(c *Config, step *verdict.Step, v verdict.Verdict) {
	if c == nil || c.Batch == nil || c.Batch.ladder == nil || step.Human || !byBatch(v) {
		return
	}
	next, _, err := c.Batch.AfterModel(m.batches(), batchOf(step), 0)
	if err != nil { // it was judged before
		return
	}
	m.batch = &next
}

// byBatch reports whether only the batch loop guard kept the step from passing.
func byBatch(v verdict.Verdict) bool {
	for _, r := range v.Reasons {
		if r.Class > verdict.Warn && r.Code != batchRepeat {
			return false
		}
	}
	return !v.Passed()
}

// batches returns what the batch loop guard remembers.
func (m *memory) batches() BatchState {
	if m.batch == nil {
		return BatchState{}
	}
	return *m.batch
}
