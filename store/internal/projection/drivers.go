package projection

import (
	"bytes"
	"encoding/json"
	"iter"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/internal/pack"
)

// Drivers are who carries sessions on by itself, by the numbers of their rows, as far as records of their logs say
// it: for the migrations that give the rows of sessions that column, before anything can be folded. Make it with a
// literal.
type Drivers map[int64]driven

type driven struct {
	place  int64 // of the record that says so
	driver session.Driver
}

// Add takes note of a record of the session with that row, as it is stored. Records may come in any order. One that
// cannot be read says nothing: verifying the store names it.
func (d Drivers) Add(row, place int64, stored []byte) {
	events, err := pack.Unpack(nil, stored)
	if err != nil || !bytes.Contains(events, []byte(`"driver"`)) || place < d[row].place {
		return
	}
	list, err := session.DecodeRaw(events)
	if err != nil {
		return
	}
	for _, e := range list {
		if e.Kind != session.KindCreated && e.Kind != session.KindDriver {
			continue
		}
		var says struct{ Driver session.Driver }
		if json.Unmarshal(e.Data, &says) != nil || says.Driver == "" {
			continue
		}
		if says.Driver == session.Driver(session.DriverPool.String()) {
			says.Driver = session.DriverPool
		}
		d[row] = driven{place, says.Driver}
	}
}

// Changed returns the rows of sessions that are not carried on by any process that does so for its store.
func (d Drivers) Changed() iter.Seq2[int64, session.Driver] {
	return func(yield func(int64, session.Driver) bool) {
		for row, is := range d {
			if is.driver != session.DriverPool && !yield(row, is.driver) {
				return
			}
		}
	}
}
