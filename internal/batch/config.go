package batch

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/dialai/dialai/internal/section"
	"github.com/dialai/dialai/machine"
)

// The batch_loop section: either two limits, at which repeated batches are warned of and then
// stopped, or a ladder of up to five rungs in their place. Options are checked one by one, and
// only against each other where each is sound, so that one mistake is one problem.

// A Mode says what happens when a batch of tool calls reaches the hard
// limit.
type Mode string

// The modes: go on, stop the session, fail.
const (
	OnLoopContinue Mode = "continue"
	OnLoopEnd      Mode = "end"
	OnLoopError    Mode = "error"
)

// Bounds and defaults of the options of a [Loop].
const (
	MaxOption            = 50
	DefaultHardLimit     = 5
	DefaultWarnThreshold = 3
	DefaultWindowSize    = 20
)

// A Loop finds batches of tool calls that come again and again. It is
// checked when it is made by [Parse] and never changes, so it may be
// used concurrently. The zero Loop is of no use.
type Loop struct {
	hardLimit, warnThreshold int // batches; not used with a ladder
	windowSize               int // batches
	onLoop                   Mode
	warning, stop            string // the advice in the messages
	ladder                   []rung // lowest first; nil: the two limits count
	strict                   bool
	volatile                 map[string][]string // argument names of each tool, lower case
}

// A rung is what the ladder does from some count on.
type rung struct {
	name    string
	outcome Outcome
	at      int64 // count; 0: not there
}

// rungs are the rungs a ladder may have, lowest first.
var rungs = [...]rung{
	{name: "observe", outcome: Observe},
	{name: "steer", outcome: Warn},
	{name: "block", outcome: Block},
	{name: "escalate", outcome: Escalate},
	{name: "stop", outcome: End},
}

const (
	defaultWarning = "Answer with what you have, name what blocks you, or take a different approach."
	defaultStop    = "Nothing new can be expected of another repetition."
)

// removedOptions existed once. They get an error of their own, since leaving one
// in would look as if it still worked.
var removedOptions = []string{"enabled", "maxRepeatedCalls", "maxRepeatedFailures", "detectSameResult", "userMessage", "toolMessage", "debugState"}

// Parse reads a batch_loop section that stands alone, a JSON object; null means {}. All
// numbers count batches and are whole numbers from 1 to [MaxOption].
//
// There is one problem for each option that is unknown, removed, of the wrong type or
// out of range. Only if there is none are options compared with each other: hardLimit
// must be at least warnThreshold, windowSize at least hardLimit, and each rung of a
// ladder reachable. A ladder takes the place of hardLimit, warnThreshold and onLoop. The
// problems have JSON pointers relative to the section.
func Parse(data []byte) (b *Loop, problems []machine.Problem) {
	problems = section.Parse("batch_loop", data, func(r *section.Reader) func(path string, value []byte) { return Read(r, &b) })
	return b, problems
}

// Read reads a batch_loop section; see [Parse].
func Read(r *section.Reader, into **Loop) func(path string, value []byte) {
	return func(path string, value []byte) {
		b := &Loop{onLoop: OnLoopEnd, warning: defaultWarning, stop: defaultStop}
		o := &options{Reader: r, root: path, before: len(r.Problems), rungs: rungs}
		if string(value) == "null" {
			value = []byte("{}")
		}
		o.read(b, value)
		if o.sound() && o.climbs {
			b.climb(o)
		} else if o.sound() {
			b.count(o)
		}
		if o.sound() {
			*into = b
		}
	}
}

// count fills in the two limits.
func (b *Loop) count(o *options) {
	b.hardLimit = cmp.Or(int(o.hard), DefaultHardLimit)
	b.warnThreshold = cmp.Or(int(o.warn), min(DefaultWarnThreshold, b.hardLimit))
	b.windowSize = cmp.Or(int(o.window), max(DefaultWindowSize, b.hardLimit))
	if o.mode != "" {
		b.onLoop = Mode(o.mode)
	}
	if b.hardLimit < b.warnThreshold {
		o.refuse("hardLimit", b.hardLimit, fmt.Sprintf("it must be at least warnThreshold, which is %d", b.warnThreshold), "")
	} else if b.windowSize < b.hardLimit {
		o.refuse("windowSize", b.windowSize, fmt.Sprintf("it must be at least hardLimit, which is %d", b.hardLimit), "")
	}
}

// climb fills in a ladder.
func (b *Loop) climb(o *options) {
	const meaningless, remedy = "it has no meaning beside a ladder", "leave it out"
	if o.hard != 0 {
		o.refuse("hardLimit", o.hard, meaningless, remedy)
	}
	if o.warn != 0 {
		o.refuse("warnThreshold", o.warn, meaningless, remedy)
	}
	if o.mode != "" {
		o.refuse("onLoop", strconv.Quote(o.mode), meaningless, remedy)
	}
	b.ladder = slices.DeleteFunc(o.rungs[:], func(s rung) bool { return s.at == 0 })
	if len(b.ladder) == 0 {
		o.refuse("ladder", "{}", "it has no rung", "")
		return
	}
	b.windowSize = cmp.Or(int(o.window), max(DefaultWindowSize, int(b.ladder[len(b.ladder)-1].at)))
	for i, s := range b.ladder[1:] {
		if below := b.ladder[i]; s.at <= below.at {
			o.refuse("ladder."+s.name, s.at, fmt.Sprintf("it must be more than %s, which is %d", below.name, below.at), "")
		}
	}
	if o.sound() {
		b.deadRungs(o)
	}
}

// deadRungs repeats one batch until nothing new can happen and reports the rungs
// that were never stood on.
func (b *Loop) deadRungs(o *options) {
	var s State
	reached := map[string]bool{}
	for range 2 * b.windowSize {
		s = b.push(s, "x")
		if top := b.standing(occurrences(s.Window, "x") + occurrences(s.Blocked, "x")); top != nil {
			reached[top.name] = true
			s = b.mark(s, "x", top.outcome)
		}
	}
	for _, step := range b.ladder {
		if !reached[step.name] {
			o.refuse("ladder."+step.name, step.at, "no number of repetitions gets there",
				fmt.Sprintf("windowSize is %d, and a batch that comes back after block counts once more", b.windowSize))
		}
	}
}

// Strict returns a copy of b that knows which arguments of a tool say nothing
// about what the call does: those in volatile, which lists names for each tool
// and is compared without regard to the case of ASCII letters. A tool that is not
// listed has the built-in names. A call that would be left without any argument
// keeps them all, so get_issue{id:1} and get_issue{id:2} differ. volatile may be
// nil; it is not kept.
func (b *Loop) Strict(volatile map[string][]string) *Loop {
	next := *b
	next.strict, next.volatile = true, make(map[string][]string, len(volatile))
	for tool, names := range volatile {
		lowered := make([]string, len(names))
		for i, name := range names {
			lowered[i] = lowerASCII(name)
		}
		next.volatile[esTrim(tool)] = lowered
	}
	return &next
}

// Limits returns from how many equal batches on b warns and stops, and what stopping
// means. With a ladder they mean nothing.
func (b *Loop) Limits() (warn, hard int, mode Mode) {
	return b.warnThreshold, b.hardLimit, b.onLoop
}

// Climbs reports whether b has a ladder.
func (b *Loop) Climbs() bool { return b.ladder != nil }
