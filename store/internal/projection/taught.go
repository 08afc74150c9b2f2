package projection

import (
	"encoding/json"
	"fmt"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/internal/pack"
)

// Taught is what follows from one record beside its session. It outlives the record: of a session
// that was archived a store keeps this alone.
type Taught struct {
	Place       int64              `json:"place"`        // of the record in the log
	At          specialist.Time    `json:"at,omitempty"` // when it was written; 0 in what was kept before that was known
	Comparisons []trust.Comparison `json:"comparisons,omitempty"`
	Lesson      json.RawMessage    `json:"lesson,omitempty"`
	State       string             `json:"state,omitempty"`     // of the exemplar
	Exemplar    string             `json:"exemplar,omitempty"`  // its text
	Retracted   string             `json:"retracted,omitempty"` // how the text of an exemplar begins that is to be emptied
	Counts      bool               `json:"counts,omitempty"`    // the machine's version of trust grows by one
	Erased      []string           `json:"erased,omitempty"`    // sums of entries of the audit of models, as in [session.Erased]
	Stats       []byte             `json:"stats,omitempty"`     // what it adds to the tally of its machine; for whoever has the log to fill in
}

// TaughtBy returns what follows from the events of a record at a place; nothing where ok is false.
func TaughtBy(place int64, events []session.Event) (t Taught, ok bool) {
	follows := Follow(events)
	t = Taught{Place: place, Comparisons: follows.Comparisons(), Counts: follows.Teaches()}
	if len(events) > 0 {
		t.At = events[len(events)-1].At
	}
	if follows.Lesson != nil {
		t.Lesson, _ = follows.Lesson.Encode() // never fails: it was decoded
	}
	if l := follows.Learned; l != nil && l.Exemplar != nil {
		t.State, t.Exemplar = l.Exemplar.State, ExemplarOf("", l.Exemplar).Text
	}
	if d := follows.Retracted; d != nil {
		t.Retracted = ExemplarPrefix(d.ExemplarID)
	}
	for i := range events {
		if d, ok := events[i].Data.(*session.Erased); ok {
			t.Erased = append(t.Erased, d.Audit...)
		}
	}
	return t, t.Counts || t.Lesson != nil || t.Erased != nil
}

// PackTaught encodes what followed from the log of a session.
func PackTaught(list []Taught) ([]byte, error) {
	if list == nil {
		list = []Taught{}
	}
	text, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	return pack.Append(nil, text), nil
}

// UnpackTaught reads what PackTaught returned.
func UnpackTaught(packed []byte) (list []Taught, err error) {
	text, err := pack.Unpack(nil, packed)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("it is no list: %w", err)
	}
	return list, nil
}
