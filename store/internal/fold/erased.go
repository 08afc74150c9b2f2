package fold

import (
	"iter"

	"github.com/dialai/dialai/session"
)

// Erased proves records of a log out of which payloads were taken: they keep a hash that their bytes do
// not give any more, and an event erased further on says what they are. What proves that event is the
// chain, up to which whoever asks goes on. Nothing is read unless a hash is wrong.
type Erased struct {
	Stream  string // that the hashes are of
	Records func() iter.Seq2[session.StoredRecord, error]
	sums    map[int64]string // by the number of the first event; nil until they are read
	proven  map[int64]bool   // records that were proven so, by their first events
}

// Proves reports whether a record that does not give its hash is what an event erased says.
func (e *Erased) Proves(r *session.StoredRecord) bool {
	if e.sums == nil {
		e.sums = map[int64]string{}
		for later, err := range e.Records() {
			if err != nil {
				break // it is said where the records are read for what they are
			}
			for _, d := range ErasedIn(later.Events) {
				for _, one := range d.Records {
					e.sums[one.Seq] = one.Sum
				}
			}
		}
	}
	sum, listed := e.sums[r.First]
	if !listed || sum != session.ErasedSum(r.Hash, e.Stream, r.Events) {
		return false
	}
	if e.proven == nil {
		e.proven = map[int64]bool{}
	}
	e.proven[r.First] = true
	return true
}

// PutBack returns which of the records that an event says were erased has not been proven to be what was left: it is
// as it was before. 0 is none.
func (e *Erased) PutBack(d *session.Erased) int64 {
	for _, one := range d.Records {
		if !e.proven[one.Seq] {
			return one.Seq
		}
	}
	return 0
}

// ErasedIn returns the events erased of a record, none if it cannot be read.
func ErasedIn(events []byte) (list []*session.Erased) {
	raw, err := session.SplitRaw(nil, events)
	if err != nil {
		return nil
	}
	for i := range raw {
		if raw[i].Kind != session.KindErased {
			continue
		}
		d := &session.Erased{}
		if raw[i].Read(d, nil) == nil {
			list = append(list, d)
		}
	}
	return list
}
