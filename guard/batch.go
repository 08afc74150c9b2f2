package guard

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// A BatchState is what a [BatchLoop] remembers of one session. It holds hashes,
// never arguments or results. The zero BatchState is that of a new session, and
// of one that a human has cleared. It is a value: hooks return the next one and
// change nothing that an older one can see.
type BatchState struct {
	Window  []string      `json:"window,omitempty"`  // hashes of batches, the newest last
	Warned  []string      `json:"warned,omitempty"`  // hashes that were warned of and are still in the window
	Blocked []string      `json:"blocked,omitempty"` // with a ladder: hashes that were blocked, once for each time
	Pending *BatchPending `json:"pending,omitempty"` // a warning nobody has heard yet; never changed once made
}

// A BatchPending is a warning that waits for the next round.
type BatchPending struct {
	Hash    string   `json:"hash"`
	Message string   `json:"message"`
	Count   int      `json:"count"` // of equal batches in the window
	Tools   []string `json:"tools"` // sorted, distinct
}

// A BatchOutcome is what a hook did, in one word.
type BatchOutcome string

// The outcomes. Observe, block and escalate come from ladders only.
const (
	BatchNoop     BatchOutcome = "noop"           // nothing to look at
	BatchContinue BatchOutcome = "continue"       // counted, nothing to say
	BatchInject   BatchOutcome = "inject"         // Message goes to the proposers
	BatchObserve  BatchOutcome = "observe"        // worth an event, nothing else
	BatchWarn     BatchOutcome = "warn_scheduled" // Message goes out with the next BeforeModel
	BatchBlock    BatchOutcome = "block"          // this turn is to be tried again
	BatchEscalate BatchOutcome = "escalate"       // a human is to look
	BatchEnd      BatchOutcome = "end"            // drop the turn's calls, say Message, stop the session
	BatchError    BatchOutcome = "error"          // the hook also returned a LoopError
)

// A BatchResult says what a hook did. The zero value of a member means that it
// does not apply.
type BatchResult struct {
	Outcome BatchOutcome
	Hash    string   // of the batch
	Count   int      // equal batches in the window, this one included
	Blocked int      // how many of them a ladder blocked: each counts once more towards Limit
	Limit   int      // the threshold, limit or rung that was reached
	Tools   []string // sorted, distinct
	Message string   // for models or people; holds no arguments
}

// A LoopHit is one finding of a [BatchLoop].
type LoopHit struct {
	Rule   string          `json:"rule"` // always "batch_repeat"
	Hash   string          `json:"hash"`
	Count  int             `json:"count"`
	Tools  []string        `json:"tools"`
	Detail string          `json:"detail"`
	At     specialist.Time `json:"at"` // milliseconds since 1970, as given to the hook
}

// A LoopError reports a batch that reached the hard limit in mode error.
type LoopError struct {
	Mode BatchMode
	Hits []LoopHit // never empty
}

func (e *LoopError) Error() string {
	details := make([]string, len(e.Hits))
	for i, h := range e.Hits {
		details[i] = h.Detail
	}
	return fmt.Sprintf("loop guard in mode %s: %s", e.Mode, strings.Join(details, "; "))
}

// CodeBatchRepeat is the code of every reason that a [BatchLoop] gives.
const CodeBatchRepeat = "batch_repeat"

// BeforeAgent is to be called when a session opens or resumes. It drops what has
// left the window and forgets nothing else: a pending warning stays. The outcome
// is noop.
func (b *BatchLoop) BeforeAgent(s BatchState) (BatchState, BatchResult) {
	return b.prune(s), BatchResult{Outcome: BatchNoop}
}

// BeforeModel is to be called when the next round's context is made. If a warning
// is pending, the outcome is inject, Message is the text for all proposers, and
// the warning is no longer pending. Otherwise the outcome is noop.
func (b *BatchLoop) BeforeModel(s BatchState) (BatchState, BatchResult) {
	p := s.Pending
	if p == nil {
		return s, BatchResult{Outcome: BatchNoop}
	}
	s.Pending = nil
	return s, BatchResult{Outcome: BatchInject, Hash: p.Hash, Count: p.Count, Tools: p.Tools, Message: p.Message}
}

// AfterModel is to be called once the calls of a turn are known; at is when. It is
// [BatchLoop.Batch] followed by [BatchLoop.AfterBatch] and returns their errors
// with s unchanged.
func (b *BatchLoop) AfterModel(s BatchState, calls []specialist.ToolCall, at specialist.Time) (BatchState, BatchResult, error) {
	batch, err := b.Batch(calls)
	if err != nil {
		return s, BatchResult{}, err
	}
	return b.AfterBatch(s, batch, at)
}

// AfterBatch counts one batch. A stored log of batches that is folded with it
// gives the same states again. In mode error, and only there, it returns a
// [LoopError] when the hard limit is reached, and s as it was; else the error is
// nil. A batch without calls neither counts nor clears.
func (b *BatchLoop) AfterBatch(s BatchState, batch Batch, at specialist.Time) (BatchState, BatchResult, error) {
	if batch.Hash == "" {
		return b.prune(s), BatchResult{Outcome: BatchNoop}, nil
	}
	next := b.push(s, batch.Hash)
	result := BatchResult{Outcome: BatchContinue, Hash: batch.Hash, Count: occurrences(next.Window, batch.Hash), Tools: batch.Tools}
	if b.ladder != nil {
		next, result = b.climb(next, result)
		return next, result, nil
	}
	if result.Count >= b.warnThreshold {
		next, result = b.warn(next, result, b.warnThreshold)
	}
	if result.Count < b.hardLimit {
		return next, result, nil
	}
	switch b.onLoop {
	case OnLoopEnd:
		next.Pending = nil
		result.Outcome, result.Limit, result.Message = BatchEnd, b.hardLimit, b.stopText(result)
	case OnLoopError:
		err := b.loopError(result, at)
		result.Outcome, result.Limit, result.Message = BatchError, b.hardLimit, err.Error()
		return s, result, err
	}
	return next, result, nil
}

// warn schedules a warning, unless there was one for this batch.
func (b *BatchLoop) warn(s BatchState, r BatchResult, limit int) (BatchState, BatchResult) {
	if slices.Contains(s.Warned, r.Hash) {
		return s, r
	}
	r.Outcome, r.Limit, r.Message = BatchWarn, limit, b.warnText(r)
	s.Pending = &BatchPending{r.Hash, r.Message, r.Count, r.Tools}
	s.Warned = append(slices.Clip(s.Warned), r.Hash)
	return s, r
}

func (b *BatchLoop) warnText(r BatchResult) string {
	return fmt.Sprintf("Loop guard warning: %s. %s", repeated(r), b.warning)
}

func (b *BatchLoop) stopText(r BatchResult) string {
	return fmt.Sprintf("Stopped because %s. %s", repeated(r), b.stop)
}

func (b *BatchLoop) loopError(r BatchResult, at specialist.Time) *LoopError {
	detail := fmt.Sprintf("%s, in a window of %d", repeated(r), b.windowSize)
	return &LoopError{b.onLoop, []LoopHit{{CodeBatchRepeat, r.Hash, r.Count, r.Tools, detail, at}}}
}

func repeated(r BatchResult) string {
	times := "times"
	if r.Count == 1 {
		times = "time"
	}
	text := fmt.Sprintf("the same batch of tool calls (%s) came %d %s", strings.Join(r.Tools, ", "), r.Count, times)
	if r.Blocked > 0 {
		text += fmt.Sprintf(", %d of them blocked", r.Blocked)
	}
	return text
}

// climb does what the highest rung reached says. A batch that was blocked and
// comes back counts once more for each block.
func (b *BatchLoop) climb(s BatchState, r BatchResult) (BatchState, BatchResult) {
	r.Blocked = occurrences(s.Blocked, r.Hash)
	top := b.standing(r.Count + r.Blocked)
	if top == nil {
		return s, r
	}
	switch top.outcome {
	case BatchWarn:
		return b.warn(s, r, int(top.at))
	case BatchEnd:
		r.Message = b.stopText(r)
	case BatchBlock, BatchEscalate:
		r.Message = b.warnText(r)
	}
	r.Outcome, r.Limit = top.outcome, int(top.at)
	return b.mark(s, r.Hash, top.outcome), r
}

// standing returns the highest rung that so much evidence reaches, or nil.
func (b *BatchLoop) standing(evidence int) (top *rung) {
	for i := range b.ladder {
		if int64(evidence) >= b.ladder[i].at {
			top = &b.ladder[i]
		}
	}
	return top
}

// mark notes what a rung other than steer leaves behind.
func (b *BatchLoop) mark(s BatchState, hash string, did BatchOutcome) BatchState {
	switch did {
	case BatchBlock:
		s.Blocked = last(append(slices.Clip(s.Blocked), hash), b.windowSize)
	case BatchEnd, BatchEscalate:
		s.Pending = nil
	}
	return s
}

// push appends a hash to the window and prunes.
func (b *BatchLoop) push(s BatchState, hash string) BatchState {
	s.Window = append(slices.Clip(s.Window), hash)
	return b.prune(s)
}

// prune cuts the window to size and drops the marks of hashes that left it.
func (b *BatchLoop) prune(s BatchState) BatchState {
	s.Window = slices.Clone(last(s.Window, b.windowSize))
	var warned, blocked []string
	for _, hash := range s.Warned {
		if slices.Contains(s.Window, hash) && !slices.Contains(warned, hash) {
			warned = append(warned, hash)
		}
	}
	for _, hash := range last(s.Blocked, b.windowSize) {
		if slices.Contains(s.Window, hash) {
			blocked = append(blocked, hash)
		}
	}
	s.Warned, s.Blocked = warned, blocked
	return s
}

func last(hashes []string, n int) []string { return hashes[max(0, len(hashes)-n):] }

func occurrences(hashes []string, hash string) (n int) {
	for _, h := range hashes {
		if h == hash {
			n++
		}
	}
	return n
}

// batchClasses says how severe an outcome is; what is missing is ok.
var batchClasses = map[BatchOutcome]verdict.Status{
	BatchWarn: verdict.Warn, BatchBlock: verdict.Retry, BatchEscalate: verdict.Escalate, BatchEnd: verdict.Abort, BatchError: verdict.Abort,
}

// Verdict returns r as a verdict: warn_scheduled warns, end and error abort, inject
// is a notice to the proposers, everything else is ok.
func (r BatchResult) Verdict() verdict.Verdict {
	if r.Outcome == BatchInject {
		return verdict.Verdict{Notices: []string{r.Message}}
	}
	class, found := batchClasses[r.Outcome]
	if !found {
		return verdict.Verdict{}
	}
	return verdict.Of([]verdict.Reason{{Code: CodeBatchRepeat, Guard: "batch_loop", Class: class, Message: r.Message, Limit: fmt.Sprint(r.Limit), Seen: fmt.Sprint(r.Count + r.Blocked)}})
}
