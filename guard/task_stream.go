package guard

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/internal/text"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// An output judged while it is written. Only what more output cannot put right counts
// before the end: a forbidden literal, too many characters, tokens or dollars over a
// cap, and an end that goes on and on with the same. Everything else waits for Close,
// which judges the whole as CheckContext does.
//
// How the text is cut into chunks must make no difference. So only whole characters are
// read, forbidden literals are looked for again in as many bytes before the new ones as
// one could have begun in, and repetition is found byte by byte: where the last eight
// bytes have occurred before, their distance is a candidate for a period, and a run
// that keeps to it is reported once it has 1,024 bytes and 16 repetitions. Only the
// newest place of each hash is kept, in 4,096 slots, so a period may be missed, but
// none is invented: the bytes are compared.
//
// What was used is charged whatever the verdict, also when the output is given up.

// A Stream judges an output while it is being written, so that a call can be cut
// off before it has cost everything. Partial output is held only to what more
// output cannot repair: forbidden literals, the greatest length, caps of tokens
// and dollars, and going on and on with the same. The whole is judged by Close.
// How the output is cut into chunks makes no difference. A Stream must not be
// used concurrently.
type Stream struct {
	guard  *Guard
	task   string
	text   []byte
	read   int   // how much of text has been judged: whole characters
	runes  int64 // in that
	window int   // the most bytes that a forbidden literal can have
	hits   []int // indices of the forbidden patterns that were found
	tail   tail
	scan   text.Text
	usage  *specialist.Usage
	model  string
	closed bool
}

// Stream returns a Stream of one output of a task.
func (g *Guard) Stream(task string) *Stream {
	s := &Stream{guard: g, task: task}
	for i := range g.config.Forbidden {
		if p := g.config.Forbidden[i].pattern; p.Plain {
			s.window = max(s.window, utf8.UTFMax*utf8.RuneCount(p.Literal))
		}
	}
	return s
}

// Use says what the call has used so far, or what it will at least have used:
// the tokens of the prompt are known from the start. The newest word counts. What is
// negative counts as 0 until the output is closed, which refuses it: nothing that was
// spent comes back.
func (s *Stream) Use(usage specialist.Usage, model string) {
	usage = s.guard.config.Price(usage, model)
	s.usage, s.model = &usage, model
}

// Add judges what has been written so far, with one more chunk. Once it is no
// longer passed the call should be cut off. It counts nothing.
func (s *Stream) Add(chunk string) verdict.Verdict {
	if !s.closed {
		s.text = append(s.text, chunk...)
		s.judge()
	}
	k := &checking{c: s.guard.config, step: &verdict.Step{Task: s.task}}
	s.fill(k.step)
	s.caps(k)
	return verdict.Of(k.reasons)
}

// judge reads what has come, up to the last character that is complete.
func (s *Stream) judge() {
	end := wholeRunes(s.text)
	s.literals(end)
	s.runes += int64(utf8.RuneCount(s.text[s.read:end]))
	if s.guard.config.Loop.Mode != "off" {
		for i := s.read; i < end; i++ {
			s.tail.add(s.text, i)
		}
	}
	s.read = end
}

// wholeRunes returns how much of b is whole characters: what more bytes cannot
// change.
func wholeRunes(b []byte) int {
	for i := len(b) - 1; i >= 0 && i > len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return i
			}
			break
		}
	}
	return len(b)
}

// literals looks for forbidden literals in text[read:end], and in as much before
// it as one may have begun in.
func (s *Stream) literals(end int) {
	if s.window == 0 || end == s.read {
		return
	}
	from := max(0, s.read-s.window+1)
	for back := 0; back < utf8.UTFMax-1 && from > 0 && !utf8.RuneStart(s.text[from]); back++ {
		from-- // a part of a character would be another one
	}
	window := text.StringOf(s.text[from:end])
	s.scan.Read(window, false)
	for i := range s.guard.config.Forbidden {
		if p := s.guard.config.Forbidden[i].pattern; p.Plain && !slices.Contains(s.hits, i) && p.Matches(window, &s.scan) {
			s.hits = append(s.hits, i)
		}
	}
}

// fill puts what was used into a step.
func (s *Stream) fill(step *verdict.Step) {
	if u := s.usage; u != nil {
		step.Model, step.TokensIn, step.TokensOut = s.model, max(u.NumInputTokens, 0), max(u.NumOutputTokens, 0)
		step.Cost, step.CostGiven = max(u.CostUSD, 0), u.Has(specialist.CostGiven)
	}
}

// caps reports everything that is known, in the order of the checks.
func (s *Stream) caps(k *checking) {
	t := s.guard.lock(s.task)
	state := t.state
	t.mu.Unlock()
	if s.usage != nil {
		state = state.Charge(usageOf(k.step), k.step.Model)
	}
	k.s = &state
	k.limits() // but for the length: the step has no output
	if most := k.c.Limits.OutputMax; most != nil && s.runes > *most {
		k.over("length_max", "limits", "the length of the output", *most, s.runes).Class = verdict.Retry
	}
	slices.Sort(s.hits)
	for _, i := range s.hits {
		k.report(forbiddenReason(i))
	}
	k.cost()
	k.reasons = append(k.reasons, s.tail.reasons()...)
}

// Close judges the whole output, as CheckContext does, and counts the step if it
// may be executed. in says the rest of the step; its output is what was written,
// and its usage that of Use, if there was any. Going on with the same is held
// against the step too. Whatever the verdict, what was used is spent.
func (s *Stream) Close(ctx context.Context, in CheckInput) (verdict.Verdict, Metrics, error) {
	output := string(s.text)
	if in.Output = &output; in.TaskID == "" {
		in.TaskID = s.task
	}
	switch {
	case s.closed:
		return verdict.Verdict{}, Metrics{}, fmt.Errorf("%w: the stream is closed", verdict.ErrInput)
	case in.TaskID != s.task:
		return verdict.Verdict{}, Metrics{}, fmt.Errorf("%w: the stream is of task %q, the step of %q", verdict.ErrInput, s.task, in.TaskID)
	}
	if err := in.check(); err != nil {
		return verdict.Verdict{}, Metrics{}, err
	}
	step := in.step(s.guard.config)
	if u := s.usage; u != nil && (u.NumInputTokens < 0 || u.NumOutputTokens < 0 || u.CostUSD < 0) {
		return verdict.Verdict{}, Metrics{}, fmt.Errorf("%w: a negative usage", verdict.ErrInput)
	}
	s.fill(&step)
	v, token, err := s.guard.beginWith(ctx, step, s.guard.classifier, s.tail.reasons()...)
	if err != nil {
		return v, Metrics{}, err
	}
	if s.closed = true; token != nil {
		token.Commit()
	}
	t := s.guard.lock(s.task)
	defer t.mu.Unlock()
	return v, t.metrics(&step), nil
}

// Abandon gives the output up: it counts for nothing but what it has cost, which
// is estimated if Use was not called. After Close it does nothing.
func (s *Stream) Abandon() {
	if s.closed {
		return
	}
	s.closed = true
	step := verdict.Step{Task: s.task}
	s.fill(&step)
	usage := usageOf(&step)
	if s.usage == nil {
		usage.NumOutputTokens, usage.Estimated = spend.EstimateTokens(string(s.text)), true
	} else {
		usage.Estimated = s.usage.Estimated
	}
	t := s.guard.lock(s.task)
	defer t.mu.Unlock()
	t.state = t.state.Charge(usage, step.Model)
}

// What counts as going on with the same: a run of at least so many bytes that
// says the same at least so many times, each time in at most so many bytes. It
// is a lot, since tables and lists of zeros repeat themselves too.
const (
	tailBytes   = 1024
	tailRepeats = 16
	tailPeriod  = 2048
)

// A tail finds texts that go on and on with the same. It reads them byte by byte
// and proposes a period where the last eight bytes have occurred before. The
// same text is always judged alike.
type tail struct {
	seen   []int32 // by hash of eight bytes, where they ended last
	last   uint64  // eight bytes
	period int     // that the run has; 0 if there is none
	run    int     // bytes that equal those a period before them
	found  int     // the period, once there was a run that is long enough
}

const tailSlots = 1 << 12

// add reads said[i], after all before it.
func (t *tail) add(said []byte, i int) {
	const gram = 8
	if t.last = t.last<<8 | uint64(said[i]); i < gram-1 {
		return
	}
	if t.seen == nil {
		t.seen = make([]int32, tailSlots)
	}
	slot := &t.seen[t.last*text.Prime1>>(64-12)]
	before := int(*slot)
	*slot = int32(i + 1)
	if t.period > 0 && said[i] == said[i-t.period] {
		if t.run++; t.run+t.period >= max(tailBytes, tailRepeats*t.period) && t.found == 0 {
			t.found = t.period
		}
		return
	}
	t.period, t.run = 0, 0
	if before > 0 && i+1-before <= tailPeriod && binary.BigEndian.Uint64(said[before-gram:]) == t.last {
		t.period, t.run = i+1-before, gram
	}
}

// reasons returns what there is to report.
func (t *tail) reasons() []verdict.Reason {
	if t.found == 0 {
		return nil
	}
	return []verdict.Reason{{
		Code: "loop_repeat_output", Guard: "loop", Class: verdict.Retry,
		Message: fmt.Sprintf("the output says the same %d bytes over and over", t.found),
		Limit:   fmt.Sprint(tailRepeats), Seen: fmt.Sprint(tailRepeats),
	}}
}
