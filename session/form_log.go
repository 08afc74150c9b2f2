package session

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/specialist"
)

// A record is stored as a JSON array of events {seq, at, kind, data}.

// AppendEvents appends events as one JSON array. key is that of the round in
// which they begin, first the sequence number of the first.
func AppendEvents(dst []byte, key specialist.RoundKey, first int64, events []Event) []byte {
	dst = append(dst, '[')
	for i := range events {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst, key = appendEvent(dst, &events[i], first+int64(i), key)
	}
	return append(dst, ']')
}

// appendEvent appends one event and returns the key of the round after it.
func appendEvent(dst []byte, e *Event, seq int64, key specialist.RoundKey) ([]byte, specialist.RoundKey) {
	if o, ok := e.Data.(*RoundOpened); ok {
		key.Round, key.Attempt = o.Round, o.Attempt
	}
	dst = strconv.AppendInt(append(dst, `{"seq":`...), seq, 10)
	dst = e.At.Append(append(dst, `,"at":"`...))
	dst = append(append(dst, `","kind":"`...), e.Data.Kind()...)
	f := forms.Get().(*form)
	f.key, f.w = key, object(append(dst, `","data":`...))
	e.Data.form(f)
	dst = f.w.end()
	f.release()
	return append(dst, '}'), key
}

// A Raw event is an event as it is stored.
type Raw struct {
	Seq  int64           `json:"seq"`
	At   specialist.Time `json:"at"`
	Kind string          `json:"kind"`
	Data json.RawMessage `json:"data"`
}

// DecodeRaw splits the events of one record without looking into them.
func DecodeRaw(events []byte) ([]Raw, error) {
	if !json.Valid(events) {
		return nil, notJSON(events)
	}
	raw, err := SplitRaw(nil, slices.Clone(events)) // Data may be kept
	if err == nil && len(raw) == 0 {
		return nil, fmt.Errorf("the record holds no events")
	}
	return raw, err
}

// SplitRaw is DecodeRaw for events that a store has just written or checked: it appends
// them to raw, with Data that are parts of the record.
func SplitRaw(raw []Raw, events []byte) ([]Raw, error) {
	c := &jsontext.Cursor{B: events}
	c.Elements(func() {
		var e Raw
		c.Members(func(name []byte) {
			switch string(name) {
			case "seq":
				e.Seq = c.Int()
			case "at":
				if e.At.UnmarshalJSON(c.Raw()) != nil {
					c.Fail("a time")
				}
			case "kind":
				e.Kind = string(c.Text())
			case "data":
				e.Data = c.Raw()
			default:
				c.Raw()
			}
		})
		raw = append(raw, e)
	})
	return raw, c.Err
}

// Read reads an event apart from its session. Names mean what they mean in the machine
// and the state of s, of which nothing else counts; an event that needs more of it, such
// as Created or Resumed, cannot be read so.
func (r *Raw) Read(into Data, s *Session) error { return r.read(into, reading(r, s)) }

// Skim is Read without what people and models said, and without what explains a verdict
// or teaches something, but for the risk and the threshold that a judgement was held to
// and for what comparisons came to.
func (r *Raw) Skim(into Data, s *Session) error {
	f := reading(r, s)
	f.skims = true
	return r.read(into, f)
}

func (r *Raw) read(into Data, f *form) error {
	defer f.release()
	into.form(f)
	return f.err
}

// Creation reads from a Created event by which definition the session began, and how.
func (r *Raw) Creation() (digest string, o Options, err error) {
	f := reading(r, nil)
	defer f.release()
	c := storedCreation{options: &o}
	c.form(f)
	return c.digest, o, f.err
}

// reading returns a form that reads an event; no arrival is wrong to it.
func reading(r *Raw, s *Session) *form {
	f := forms.Get().(*form)
	f.reading, f.session, f.arrivals, f.at, f.seq = true, s, -1, r.At, r.Seq
	f.open(r.Data)
	return f
}

// notJSON says what is wrong with a record that is no JSON.
func notJSON(events []byte) error {
	var any json.RawMessage
	return json.Unmarshal(events, &any)
}
