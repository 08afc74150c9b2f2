package batch

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dialai/dialai/internal/section"
	"github.com/dialai/dialai/machine"
)

// The options of a batch_loop section, as they are given; 0 and "" stand for those that
// are not. They are told of in words of their own, which show the value; an option of a
// ladder is called ladder.NAME.
type options struct {
	*section.Reader
	root   string // the path of the section
	before int    // problems, before the section was read

	hard, warn, window int64
	mode               string
	climbs             bool
	rungs              [len(rungs)]rung
}

// sound reports whether nothing was found wrong in the section.
func (o *options) sound() bool { return len(o.Problems) == o.before }

// refuse reports an option with its value.
func (o *options) refuse(key string, value any, problem, hint string) {
	o.report("bad-value", key, fmt.Sprint(value), problem, hint)
}

func (o *options) report(code, key, value, problem, hint string) {
	path, what := o.root, ""
	if key != "" {
		what = fmt.Sprintf("option %q ", key)
	}
	for name := range strings.SplitSeq(key, ".") {
		if name != "" {
			path += "/" + machine.EscapePointer(name)
		}
	}
	o.Report(path, code, fmt.Sprintf("%sis %s: %s", what, section.Shorten([]byte(value)), problem), hint)
}

// read reads the section, what it says into b and what is to be compared into o.
func (o *options) read(b *Loop, value []byte) {
	o.object("", value, []section.Member{
		{Name: "hardLimit", Read: o.limit(&o.hard)},
		{Name: "warnThreshold", Read: o.limit(&o.warn)},
		{Name: "windowSize", Read: o.limit(&o.window)},
		{Name: "onLoop", Read: o.oneOf(&o.mode, OnLoopContinue, OnLoopEnd, OnLoopError)},
		{Name: "warningMessage", Read: o.text(&b.warning)},
		{Name: "hardStopMessage", Read: o.text(&b.stop)},
		{Name: "ladder", Read: func(key string, value []byte) {
			steps := make([]section.Member, len(o.rungs))
			for i := range steps {
				steps[i] = section.Member{Name: o.rungs[i].name, Read: o.limit(&o.rungs[i].at)}
			}
			o.climbs = true
			o.object(key, value, steps)
		}},
	})
}

// object reads an object of options; there are no others, not even x- ones.
func (o *options) object(key string, value []byte, members []section.Member) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(value, &fields) != nil || fields == nil {
		o.refuse(key, string(value), "it must be a JSON object", "")
		return
	}
	inside := ""
	if key != "" {
		inside = key + "."
	}
	known := make([]string, len(members))
	for i, m := range members {
		known[i] = m.Name
		if v, ok := fields[m.Name]; ok {
			m.Read(inside+m.Name, v)
			delete(fields, m.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		problem, hint := "there is no such option", machine.DidYouMean(name, known)
		if key == "" && slices.Contains(removedOptions, name) {
			problem, hint = "this option was removed", "leave it out"
		}
		o.report("unknown-field", inside+name, string(fields[name]), problem, hint)
	}
}

// limit reads a whole number from 1 to MaxOption, however it is written: 5.0 is 5.
func (o *options) limit(into *int64) func(key string, value []byte) {
	return func(key string, value []byte) {
		f, err := strconv.ParseFloat(string(value), 64)
		if err != nil || f != math.Trunc(f) || f < 1 || f > MaxOption {
			o.refuse(key, string(value), fmt.Sprintf("it must be a whole number from 1 to %d", MaxOption), "")
			return
		}
		*into = int64(f)
	}
}

// text reads a text that is not empty once its ends are trimmed.
func (o *options) text(into *string) func(key string, value []byte) {
	return func(key string, value []byte) {
		var s string
		if value[0] != '"' || json.Unmarshal(value, &s) != nil {
			o.refuse(key, string(value), "it must be a text", "")
		} else if s = esTrim(s); s == "" {
			o.refuse(key, string(value), "it must not be empty", "")
		} else {
			*into = s
		}
	}
}

// oneOf reads one of some words.
func (o *options) oneOf(into *string, choices ...Mode) func(key string, value []byte) {
	return func(key string, value []byte) {
		var s string
		if json.Unmarshal(value, &s) != nil || !slices.Contains(choices, Mode(s)) {
			o.refuse(key, string(value), fmt.Sprintf("it must be one of %q", choices), "")
			return
		}
		*into = s
	}
}
