package batch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// The batch loop guard as a fold over hashes. AfterBatch puts the hash of a turn's
// calls into a window of the last batches and counts how often it is there:
//
//   - with two limits: at the first the proposers are warned, once as long as the hash
//     is in the window; at the hard limit the session goes on, stops or fails, as the
//     mode says;
//   - with a ladder: the highest rung that the count reaches says what happens, and
//     each block of a batch counts once more, so a batch that comes back after a block
//     climbs faster.
//
// A warning is pending until BeforeModel hands it to the proposers, once. The state
// holds hashes only, is a value, and depends on nothing but the batches: a log of
// batches folded again gives the same states.

// A State is what a [Loop] remembers of one session. It holds hashes,
// never arguments or results. The zero State is that of a new session, and
// of one that a human has cleared. It is a value: hooks return the next one and
// change nothing that an older one can see.
type State struct {
	Window  []string `json:"window,omitempty"`  // hashes of batches, the newest last
	Warned  []string `json:"warned,omitempty"`  // hashes that were warned of and are still in the window
	Blocked []string `json:"blocked,omitempty"` // with a ladder: hashes that were blocked, once for each time
	Pending *Pending `json:"pending,omitempty"` // a warning nobody has been told yet; never changed once made
}

// A Pending is a warning that waits for the next round.
type Pending struct {
	Hash    string   `json:"hash"`
	Message string   `json:"message"`
	Count   int      `json:"count"` // of equal batches in the window
	Tools   []string `json:"tools"` // sorted, distinct
}

// An Outcome is what a hook did, in one word.
type Outcome string

// The outcomes. Observe, block and escalate come from ladders only.
const (
	Noop     Outcome = "noop"           // nothing to look at
	Continue Outcome = "continue"       // counted, nothing to say
	Inject   Outcome = "inject"         // Message goes to the proposers
	Observe  Outcome = "observe"        // worth an event, nothing else
	Warn     Outcome = "warn_scheduled" // Message goes out with the next BeforeModel
	Block    Outcome = "block"          // this turn is to be tried again
	Escalate Outcome = "escalate"       // a human is to look
	End      Outcome = "end"            // drop the turn's calls, say Message, stop the session
	Failed   Outcome = "error"          // the hard limit in mode error; Message says why
)

// A Result says what a hook did. The zero value of a member means that it
// does not apply.
type Result struct {
	Outcome Outcome
	Hash    string   // of the batch
	Count   int      // equal batches in the window, this one included
	Blocked int      // how many of them a ladder blocked: each counts once more towards Limit
	Limit   int      // the threshold, limit or rung that was reached
	Tools   []string // sorted, distinct
	Message string   // for models or people; holds no arguments
}

// Code is the code of every reason that a [Loop] gives.
const Code = "batch_repeat"

// BeforeAgent is to be called when a session opens or resumes. It drops what has
// left the window and forgets nothing else: a pending warning stays. The outcome
// is noop.
func (b *Loop) BeforeAgent(s State) (State, Result) {
	return b.prune(s), Result{Outcome: Noop}
}

// BeforeModel is to be called when the next round's context is made. If a warning
// is pending, the outcome is inject, Message is the text for all proposers, and
// the warning is no longer pending. Otherwise the outcome is noop.
func (b *Loop) BeforeModel(s State) (State, Result) {
	p := s.Pending
	if p == nil {
		return s, Result{Outcome: Noop}
	}
	s.Pending = nil
	return s, Result{Outcome: Inject, Hash: p.Hash, Count: p.Count, Tools: p.Tools, Message: p.Message}
}

// AfterModel is to be called once the calls of a turn are known, and counts their
// batch. At the hard limit in mode error it returns s as it was. A batch without calls
// neither counts nor clears. The error is that of [Loop.Batch], with s unchanged.
func (b *Loop) AfterModel(s State, calls []specialist.ToolCall) (State, Result, error) {
	batch, err := b.Batch(calls)
	if err != nil {
		return s, Result{}, err
	}
	next, result := b.AfterBatch(s, batch)
	return next, result, nil
}

// AfterBatch is AfterModel for the batch of the calls. A stored log of batches that is
// folded with it gives the same states again.
func (b *Loop) AfterBatch(s State, batch Batch) (State, Result) {
	if batch.Hash == "" {
		return b.prune(s), Result{Outcome: Noop}
	}
	next := b.push(s, batch.Hash)
	result := Result{Outcome: Continue, Hash: batch.Hash, Count: occurrences(next.Window, batch.Hash), Tools: batch.Tools}
	if b.ladder != nil {
		return b.climbed(next, result)
	}
	if result.Count >= b.warnThreshold {
		next, result = b.warn(next, result, b.warnThreshold)
	}
	if result.Count < b.hardLimit {
		return next, result
	}
	switch b.onLoop {
	case OnLoopEnd:
		next.Pending = nil
		result.Outcome, result.Limit, result.Message = End, b.hardLimit, b.stopText(result)
	case OnLoopError:
		result.Outcome, result.Limit, result.Message = Failed, b.hardLimit, b.errorText(result)
		return s, result
	}
	return next, result
}

// warn schedules a warning, unless there was one for this batch.
func (b *Loop) warn(s State, r Result, limit int) (State, Result) {
	if slices.Contains(s.Warned, r.Hash) {
		return s, r
	}
	r.Outcome, r.Limit, r.Message = Warn, limit, b.warnText(r)
	s.Pending = &Pending{r.Hash, r.Message, r.Count, r.Tools}
	s.Warned = append(slices.Clip(s.Warned), r.Hash)
	return s, r
}

func (b *Loop) warnText(r Result) string {
	return fmt.Sprintf("Loop guard warning: %s. %s", repeated(r), b.warning)
}

func (b *Loop) stopText(r Result) string {
	return fmt.Sprintf("Stopped because %s. %s", repeated(r), b.stop)
}

func (b *Loop) errorText(r Result) string {
	return fmt.Sprintf("loop guard in mode %s: %s, in a window of %d", b.onLoop, repeated(r), b.windowSize)
}

func repeated(r Result) string {
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

// climbed does what the highest rung reached says. A batch that was blocked and
// comes back counts once more for each block.
func (b *Loop) climbed(s State, r Result) (State, Result) {
	r.Blocked = occurrences(s.Blocked, r.Hash)
	top := b.standing(r.Count + r.Blocked)
	if top == nil {
		return s, r
	}
	switch top.outcome {
	case Warn:
		return b.warn(s, r, int(top.at))
	case End:
		r.Message = b.stopText(r)
	case Block, Escalate:
		r.Message = b.warnText(r)
	}
	r.Outcome, r.Limit = top.outcome, int(top.at)
	return b.mark(s, r.Hash, top.outcome), r
}

// standing returns the highest rung that so much evidence reaches, or nil.
func (b *Loop) standing(evidence int) (top *rung) {
	for i := range b.ladder {
		if int64(evidence) >= b.ladder[i].at {
			top = &b.ladder[i]
		}
	}
	return top
}

// mark notes what a rung other than steer leaves behind.
func (b *Loop) mark(s State, hash string, did Outcome) State {
	switch did {
	case Block:
		s.Blocked = last(append(slices.Clip(s.Blocked), hash), b.windowSize)
	case End, Escalate:
		s.Pending = nil
	}
	return s
}

// push appends a hash to the window and prunes.
func (b *Loop) push(s State, hash string) State {
	s.Window = append(slices.Clip(s.Window), hash)
	return b.prune(s)
}

// prune cuts the window to size and drops the marks of hashes that left it.
func (b *Loop) prune(s State) State {
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

// classes says how severe an outcome is; what is missing is ok.
var classes = map[Outcome]verdict.Status{
	Warn: verdict.Warn, Block: verdict.Retry, Escalate: verdict.Escalate, End: verdict.Abort, Failed: verdict.Abort,
}

// Verdict returns r as a verdict: warn_scheduled warns, end and error abort, inject
// is a notice to the proposers, everything else is ok.
func (r Result) Verdict() verdict.Verdict {
	if r.Outcome == Inject {
		return verdict.Verdict{Notices: []string{r.Message}}
	}
	class, found := classes[r.Outcome]
	if !found {
		return verdict.Verdict{}
	}
	return verdict.Of([]verdict.Reason{{Code: Code, Guard: "batch_loop", Class: class, Message: r.Message, Limit: fmt.Sprint(r.Limit), Seen: fmt.Sprint(r.Count + r.Blocked)}})
}
