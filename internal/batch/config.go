package batch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dialai/dialai/internal/section"
	"github.com/dialai/dialai/machine"
)

// A Mode says what happens when a batch of tool calls reaches the hard
// limit.
type Mode string

// The modes: go on, stop the session, fail with a [LoopError].
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

// Parse reads a batch_loop section, a JSON object; null means {}. All
// numbers count batches and are whole numbers from 1 to [MaxOption].
//
// The error joins one [OptionError] for each option that is unknown, removed,
// given twice, of the wrong type or out of range. Only if there is none are
// options compared with each other: hardLimit must be at least warnThreshold,
// windowSize at least hardLimit, and each rung of a ladder reachable. A ladder
// takes the place of hardLimit, warnThreshold and onLoop.
func Parse(data []byte) (*Loop, error) {
	if string(bytes.TrimSpace(data)) == "null" {
		data = []byte("{}")
	}
	b := &Loop{onLoop: OnLoopEnd, warning: defaultWarning, stop: defaultStop}
	var hard, warn, window int64
	var mode Mode
	ladder := rungs
	limit := func(key string, set *int64) option {
		return wholeOption(key, 1, MaxOption, func(n int64) { *set = n })
	}
	r := &optionReader{removed: removedOptions}
	steps := make([]option, len(ladder))
	for i := range ladder {
		steps[i] = limit(ladder[i].name, &ladder[i].at)
	}
	var climbs bool
	ladderOption := r.inner("ladder", steps)
	r.object(data, []option{
		limit("hardLimit", &hard), limit("warnThreshold", &warn), limit("windowSize", &window),
		choiceOption("onLoop", &mode, OnLoopContinue, OnLoopEnd, OnLoopError),
		textOption("warningMessage", &b.warning), textOption("hardStopMessage", &b.stop),
		{"ladder", func(value []byte) string { climbs = true; return ladderOption.take(value) }},
	})
	if err := r.err(); err != nil {
		return nil, err
	}
	if climbs {
		b.climbs(r, ladder[:], map[string]int64{"hardLimit": hard, "warnThreshold": warn}, window, mode)
	} else {
		b.counts(r, hard, warn, window, mode)
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return b, nil
}

// counts fills in the two limits; 0 stands for an option that is not given.
func (b *Loop) counts(r *optionReader, hard, warn, window int64, mode Mode) {
	b.hardLimit = given(hard, DefaultHardLimit)
	b.warnThreshold = given(warn, min(DefaultWarnThreshold, b.hardLimit))
	b.windowSize = given(window, max(DefaultWindowSize, b.hardLimit))
	if mode != "" {
		b.onLoop = mode
	}
	if b.hardLimit < b.warnThreshold {
		r.report("hardLimit", strconv.AppendInt(nil, int64(b.hardLimit), 10),
			fmt.Sprintf("it must be at least warnThreshold, which is %d", b.warnThreshold), "")
		return
	}
	if b.windowSize < b.hardLimit {
		r.report("windowSize", strconv.AppendInt(nil, int64(b.windowSize), 10),
			fmt.Sprintf("it must be at least hardLimit, which is %d", b.hardLimit), "")
	}
}

func given(value int64, otherwise int) int {
	if value == 0 {
		return otherwise
	}
	return int(value)
}

// climbs fills in a ladder.
func (b *Loop) climbs(r *optionReader, ladder []rung, limits map[string]int64, window int64, mode Mode) {
	for _, key := range slices.Sorted(maps.Keys(limits)) {
		if limits[key] != 0 {
			r.report(key, strconv.AppendInt(nil, limits[key], 10), "it has no meaning beside a ladder", "leave it out")
		}
	}
	if mode != "" {
		r.report("onLoop", []byte(strconv.Quote(string(mode))), "it has no meaning beside a ladder", "leave it out")
	}
	b.ladder = slices.DeleteFunc(slices.Clone(ladder), func(s rung) bool { return s.at == 0 })
	if len(b.ladder) == 0 {
		r.report("ladder", []byte("{}"), "it has no rung", "")
		return
	}
	b.windowSize = given(window, max(DefaultWindowSize, int(b.ladder[len(b.ladder)-1].at)))
	for i, s := range b.ladder {
		if i > 0 && s.at <= b.ladder[i-1].at {
			r.report("ladder."+s.name, strconv.AppendInt(nil, s.at, 10),
				fmt.Sprintf("it must be more than %s, which is %d", b.ladder[i-1].name, b.ladder[i-1].at), "")
		}
	}
	if len(r.errs) == 0 {
		b.deadRungs(r)
	}
}

// deadRungs repeats one batch until nothing new can happen and reports the rungs
// that were never stood on.
func (b *Loop) deadRungs(r *optionReader) {
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
			r.report("ladder."+step.name, strconv.AppendInt(nil, step.at, 10), "no number of repetitions gets there",
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

// Read reads a batch_loop section.
func Read(r *section.Reader, into **Loop) func(path string, value []byte) {
	return func(path string, value []byte) {
		b, err := Parse(json.RawMessage(value))
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
