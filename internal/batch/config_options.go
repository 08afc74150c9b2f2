package batch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dialai/dialai/internal/section"
	"github.com/dialai/dialai/machine"
)

// An OptionError reports one option of a batch_loop section that cannot
// be used. Several are joined with [errors.Join].
type OptionError struct {
	Key     string // such as "hardLimit" or "thresholds.tau_u"; "" for the whole section
	Value   string // as JSON, cut if it is long
	Problem string
	Hint    string // what to do about it; may be empty
}

func (e *OptionError) Error() string {
	what := "the section"
	if e.Key != "" {
		what = fmt.Sprintf("option %q", e.Key)
	}
	text := fmt.Sprintf("%s is %s: %s", what, e.Value, e.Problem)
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// An option is one member of a section. take returns what is wrong with its
// value, or "".
type option struct {
	key  string
	take func(value []byte) string
}

// An optionReader reads the members of one object and collects what is wrong.
type optionReader struct {
	path    string // of the object, "" for the section itself
	removed []string
	errs    []error
}

func (r *optionReader) report(key string, value []byte, problem, hint string) {
	if key != "" && r.path != "" {
		key = r.path + "." + key
	} else if key == "" {
		key = r.path
	}
	r.errs = append(r.errs, &OptionError{key, section.Shorten(value), problem, hint})
}

// What is wrong with an option itself, not with its value.
const (
	noSuchOption  = "there is no such option"
	removedOption = "this option was removed"
)

// object reads data, which must be one JSON object, and returns what each given
// option was set to.
func (r *optionReader) object(data []byte, options []option) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, _ := dec.Token(); t != json.Delim('{') || !json.Valid(data) {
		r.report("", data, "it must be a JSON object", "")
		return
	}
	seen := map[string]bool{}
	for dec.More() { // nothing can fail any more: the whole is valid
		var value json.RawMessage
		t, _ := dec.Token()
		_ = dec.Decode(&value)
		key, _ := t.(string)
		r.one(key, value, seen[key], options)
		seen[key] = true
	}
}

func (r *optionReader) one(key string, value []byte, again bool, options []option) {
	i := slices.IndexFunc(options, func(o option) bool { return o.key == key })
	switch {
	case again:
		r.report(key, value, "it is given twice", "")
	case i >= 0:
		if problem := options[i].take(value); problem != "" {
			r.report(key, value, problem, "")
		}
	case slices.Contains(r.removed, key):
		r.report(key, value, removedOption, "leave it out")
	default:
		known := make([]string, len(options))
		for i, o := range options {
			known[i] = o.key
		}
		r.report(key, value, noSuchOption, machine.DidYouMean(key, known))
	}
}

// inner reads an object inside the one being read.
func (r *optionReader) inner(key string, options []option) option {
	return option{key, func(value []byte) string {
		nested := &optionReader{path: strings.TrimPrefix(r.path+"."+key, ".")}
		nested.object(value, options)
		r.errs = append(r.errs, nested.errs...)
		return ""
	}}
}

func (r *optionReader) err() error { return errors.Join(r.errs...) }

// wholeOption takes whole numbers in a range, however they are written: 5.0 is 5.
func wholeOption(key string, low, high int64, set func(int64)) option {
	return option{key, func(value []byte) string {
		f, err := strconv.ParseFloat(string(value), 64)
		switch {
		case err == nil && f == math.Trunc(f) && f >= float64(low) && f <= float64(high):
			set(int64(f))
			return ""
		case high < math.MaxInt32:
			return fmt.Sprintf("it must be a whole number from %d to %d", low, high)
		}
		return fmt.Sprintf("it must be a whole number from %d", low)
	}}
}

// textOption takes texts that are not empty once their ends are trimmed.
func textOption(key string, set *string) option {
	return option{key, func(value []byte) string {
		var s string
		if value[0] != '"' || json.Unmarshal(value, &s) != nil {
			return "it must be a text"
		}
		if s = esTrim(s); s == "" {
			return "it must not be empty"
		}
		*set = s
		return ""
	}}
}

// choiceOption takes one of some words.
func choiceOption[T ~string](key string, set *T, choices ...T) option {
	return option{key, func(value []byte) string {
		var s T
		if json.Unmarshal(value, &s) != nil || !slices.Contains(choices, s) {
			return fmt.Sprintf("it must be one of %q", choices)
		}
		*set = s
		return ""
	}}
}
