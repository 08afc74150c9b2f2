package session

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// The stored form of an event is declared once. Each kind of event has a method form that
// names its members in the order in which they are stored. A form that writes appends
// each; one that reads finds each by its name, in whatever order they stand, and passes
// over what nobody names, so that older programs read the logs of newer ones. Members
// that follow from others (ids, the names of targets) are written for people, and not
// read. One that skims, for those who go through a million rounds, leaves out what was
// said and what explains it.
//
// Written, the same events always give the same bytes, and so the same hash. Stored
// forms only grow: a new member is left out as long as it says nothing, so that the bytes
// of old logs stay what they are (TestGoldenLogs).

// A form writes one JSON object, or reads one.
type form struct {
	w       writer
	reading bool
	err     error // the first that reading found

	key specialist.RoundKey // of the round in which the event happened, when writing

	session  *Session // as of the event before, when reading: it gives names their meaning
	arrivals int32    // in the round so far; negative if nobody counted
	at       specialist.Time
	seq      int64    // of the event, when reading
	skims    bool     // see Raw.Skim
	found    []member // the members of the object that is read
	next     int      // where the next member that is asked for is expected
}

// A member is one member of an object as it is stored.
type member struct{ name, value []byte }

var forms = sync.Pool{New: func() any { return new(form) }}

// release gives the buffers of a form back.
func (f *form) release() {
	clear(f.found)
	*f = form{found: f.found[:0]}
	forms.Put(f)
}

// open begins to read an object.
func (f *form) open(data []byte) {
	f.found, f.next = f.found[:0], 0
	c := jsontext.Cursor{B: data}
	c.Members(func(name []byte) { f.found = append(f.found, member{name, c.Raw()}) })
	f.fail("", c.Err)
}

// find returns the value of a member; nil if there is none, or if it is null.
func (f *form) find(name string) []byte {
	for i := range f.found {
		at := f.next + i
		if at >= len(f.found) {
			at -= len(f.found)
		}
		if string(f.found[at].name) == name {
			f.next = at + 1
			if value := f.found[at].value; string(value) != "null" {
				return value
			}
			return nil
		}
	}
	return nil
}

// fail notes the first error of reading.
func (f *form) fail(name string, err error) {
	switch {
	case err == nil || f.err != nil:
	case name == "":
		f.err = err
	default:
		f.err = fmt.Errorf("%s: %w", name, err)
	}
}

// refuse notes a value that makes no sense.
func (f *form) refuse(what, value string) { f.fail("", &DecodeError{what, value}) }

// unknown notes a value that is none of those which this version knows for a member. The hash of the record was held against it
// before, so it was written so: by a newer version. That there is none at all makes no sense.
func (f *form) unknown(name, value string) {
	if value == "" {
		f.refuse(name, value)
		return
	}
	f.fail("", &NewerError{Has: fmt.Sprintf("event %d has the %s %q", f.seq, name, value)})
}

// str declares a text; opt one that is left out if it is empty.
func (f *form) str(name string, v *string) {
	if f.reading {
		*v = f.text(name)
		return
	}
	f.w.str(name, *v)
}

func (f *form) opt(name string, v *string) {
	if f.reading || *v != "" {
		f.str(name, v)
	}
}

// prose is str for what somebody said, which nothing but people and models understands.
func (f *form) prose(name string, v *string) {
	if !f.skims {
		f.str(name, v)
	}
}

// text reads a text; "" if there is none.
func (f *form) text(name string) string {
	raw := f.find(name)
	if raw == nil {
		return ""
	}
	c := jsontext.Cursor{B: raw}
	s := string(c.Text())
	f.fail(name, c.Err)
	return s
}

// word declares a text of a type of its own that is left out if it is empty.
func word[T ~string](f *form, name string, v *T) {
	if f.reading {
		*v = T(f.text(name))
	} else if *v != "" {
		f.w.str(name, string(*v))
	}
}

// number declares a whole number; count one that is left out if it is 0.
func number[T ~int | ~int32 | ~int64 | ~uint8](f *form, name string, v *T) {
	if !f.reading {
		f.w.int(name, int64(*v))
		return
	}
	raw := f.find(name)
	if raw == nil {
		*v = 0
		return
	}
	c := jsontext.Cursor{B: raw}
	n := c.Int()
	if *v = T(n); int64(*v) != n {
		c.Fail("a smaller number")
	}
	f.fail(name, c.Err)
}

func count[T ~int | ~int32 | ~int64 | ~uint8](f *form, name string, v *T) {
	if f.reading || *v != 0 {
		number(f, name, v)
	}
}

// truth declares true or false; flag leaves false out.
func (f *form) truth(name string, v *bool) {
	if !f.reading {
		f.w.bool(name, *v)
		return
	}
	switch raw := f.find(name); string(raw) { // no text is one of these: it is quoted
	case "", "false":
		*v = false
	case "true":
		*v = true
	default:
		f.fail(name, fmt.Errorf("%s is not true or false", raw))
	}
}

func (f *form) flag(name string, v *bool) {
	if f.reading || *v {
		f.truth(name, v)
	}
}

// raw declares a JSON value that is left out if it is nil.
func (f *form) raw(name string, v *json.RawMessage) {
	if f.reading {
		*v = slices.Clone(f.find(name))
	} else {
		f.w.raw(name, *v)
	}
}

// texts declares a list of texts that is left out if it is empty.
func (f *form) texts(name string, v *[]string) {
	if !f.reading {
		f.w.strs(name, *v)
		return
	}
	if raw := f.find(name); raw != nil {
		f.fail(name, json.Unmarshal(raw, v))
	}
}

// names declares an object of texts that is left out if it is empty.
func (f *form) names(name string, v *map[string]string) {
	if !f.reading {
		if len(*v) > 0 {
			raw, _ := json.Marshal(*v) // sorted by key; texts always marshal
			f.w.raw(name, raw)
		}
		return
	}
	if raw := f.find(name); raw != nil {
		f.fail(name, json.Unmarshal(raw, v))
	}
}

// money declares an amount that is left out if it is 0.
func (f *form) money(name string, v *exact.Money) {
	if !f.reading {
		if *v != 0 {
			f.w.money(name, *v)
		}
	} else if raw := f.find(name); raw != nil {
		f.fail(name, v.UnmarshalJSON(raw))
	}
}

// share declares a number of billionths.
func (f *form) share(name string, v *exact.Billionths) {
	if !f.reading {
		f.w.name(name)
		f.w.dst = v.Append(f.w.dst)
	} else if raw := f.find(name); raw != nil {
		f.fail(name, v.UnmarshalJSON(raw))
	}
}

func (f *form) time(name string, v *specialist.Time) {
	if !f.reading {
		f.w.time(name, *v)
	} else if raw := f.find(name); raw != nil {
		f.fail(name, v.UnmarshalJSON(raw))
	}
}

// usage declares what an answer cost.
func (f *form) usage(v *specialist.Usage) {
	if !f.reading {
		f.w.dst = specialist.AppendUsage(f.w.dst, *v)
		return
	}
	var err error
	*v, err = specialist.ReadUsage(f.find)
	f.fail("", err)
}

// list declares a list; each declares the members of one element.
func list[T any](f *form, name string, v *[]T, each func(*T, *form)) {
	if f.reading {
		if raw := f.find(name); raw != nil {
			readList(f, name, raw, v, each)
		}
		return
	}
	f.w.name(name)
	f.w.dst = append(f.w.dst, '[')
	outer := f.w
	for i := range *v {
		if i > 0 {
			outer.dst = append(outer.dst, ',')
		}
		f.w = object(outer.dst)
		each(&(*v)[i], f)
		outer.dst = f.w.end()
	}
	outer.dst = append(outer.dst, ']')
	f.w = outer
}

func readList[T any](f *form, name string, raw []byte, v *[]T, each func(*T, *form)) {
	inner := forms.Get().(*form)
	defer inner.release()
	inner.reading, inner.session, inner.at, inner.seq = true, f.session, f.at, f.seq
	c := jsontext.Cursor{B: raw}
	*v = []T{}
	c.Elements(func() {
		inner.open(c.Raw())
		var one T
		each(&one, inner)
		*v = append(*v, one)
	})
	f.fail(name, c.Err)
	f.fail("", inner.err)
}

// value declares what encoding/json writes and reads; it is left out if it is nil.
func value[T any](f *form, name string, v **T) {
	if !f.reading {
		if *v != nil {
			f.w.name(name)
			f.w.dst = appendJSON(f.w.dst, *v)
		}
		return
	}
	if raw := f.find(name); raw != nil {
		*v = new(T)
		f.fail(name, json.Unmarshal(raw, *v))
	}
}

// encoded declares what has a checked form of its own; it is left out if it is nil.
func encoded[T any](f *form, name string, v **T, encode func(*T) ([]byte, error), decode func([]byte) (T, error)) {
	if f.reading {
		if raw := f.find(name); raw != nil {
			read, err := decode(raw)
			*v = &read
			f.fail("", err)
		}
		return
	}
	if *v == nil {
		return
	}
	text, err := encode(*v)
	if err != nil {
		panic("session: " + name + " was never checked: " + err.Error())
	}
	f.w.raw(name, text)
}

// appendJSON appends what encoding/json makes of v, which is made of texts,
// numbers and lists.
func appendJSON(dst []byte, v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic("session: " + err.Error())
	}
	return append(dst, text...)
}

// state declares a state by its name.
func (f *form) state(name string, v **machine.State) {
	if !f.reading {
		f.w.str(name, (*v).Name)
		return
	}
	text := f.text(name)
	if *v = f.session.Machine().State(text); *v == nil {
		f.refuse("state", text)
	}
}

// transition declares a transition of the session's present state by its name.
func (f *form) transition(name string, v **machine.Transition) {
	if !f.reading {
		f.w.str(name, (*v).Name)
		return
	}
	text := f.text(name)
	if f.session.State != nil {
		*v = f.session.State.Transition(text)
	}
	if *v == nil {
		f.refuse("transition", text)
	}
}

// role declares a role; implied, the role of most, is left out.
func (f *form) role(v *machine.Role, written bool) {
	if !f.reading {
		if written {
			f.w.str("role", string(*v))
		}
		return
	}
	switch *v = machine.Role(f.text("role")); *v {
	case "":
		*v = machine.Proposer
	case machine.Proposer, machine.Arbiter, GuardRole:
	default:
		f.unknown("role", string(*v))
	}
}

// source declares how somebody was asked.
func (f *form) source(v *specialist.Source) {
	if f.reading {
		*v = specialist.SourceNamed(f.text("mode"))
	} else {
		f.w.str("mode", v.String())
	}
}
