package fold

import (
	"errors"
	"fmt"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/internal/pack"
)

// What a check of a store says of a record that this program cannot read. Its first byte says how it is packed
// (store/internal/pack). One that is not known may be a newer version's, or have been altered, and the byte does not
// tell. The hashes do where they can:
//
//   - If the record gives its hash with a first byte that is known, only that byte was altered: it is damage.
//   - Else the record is a newer version's, or damaged, and both are said, with its place and the byte.
//   - The records behind it follow from its hash, whatever it holds. Where one does not, either was altered: that is
//     damage too, unless another record that cannot be read is behind it, for that may say that it was erased.

// UnknownForm returns what is wrong with a record whose first byte is that of no known form. It wraps a
// [session.NewerError] if the record may be a newer version's. chained reports whether events give the hash of the
// record behind the one before.
func UnknownForm(place int64, stored []byte, chained func(events []byte) bool) error {
	if form, ok := pack.Restored(stored, chained); ok {
		return fmt.Errorf("the first byte of the record at place %d is 0x%02x and was 0x%02x: it was altered", place, stored[0], form)
	}
	return &formError{
		fmt.Sprintf("the record at place %d begins with the byte 0x%02x, which no form has that this version knows: a newer version has written it, or it is damaged; update the program", place, stored[0]),
		&session.NewerError{Has: fmt.Sprintf("it is packed in form %d", stored[0])},
	}
}

// An unpackError is that of a record whose form is not known.
type unpackError struct {
	error
	stored []byte
}

func (e *unpackError) Unwrap() error { return e.error }

// alteredForm returns the first byte that a record had which could not be unpacked, if only that was altered: chained is as in
// [UnknownForm].
func alteredForm(err error, chained func(events []byte) bool) (form byte, ok bool) {
	e, ok := errors.AsType[*unpackError](err)
	if !ok {
		return 0, false
	}
	return pack.Restored(e.stored, chained)
}

// A formError says that nobody can tell whether a record is a newer version's.
type formError struct {
	text  string
	newer *session.NewerError
}

func (e *formError) Error() string { return e.text }

func (e *formError) Unwrap() error { return e.newer }

// Behind holds the records behind one that this program cannot read against the chain of hashes. The zero Behind
// begins with the hash Head of that record.
type Behind struct {
	Stream  string // that the hashes are of
	Head    session.Hash
	damaged int64            // the first event of the first record that cannot be read, by whomever; 0 if there is none
	open    map[int64]string // what would have to be said of records that do not give their hashes, had they been erased, by their first events
}

// Add takes the next record, or why it could not be unpacked. A nil Behind takes none.
func (b *Behind) Add(r *session.StoredRecord, unread error) {
	switch {
	case b == nil:
		return
	case errors.As(unread, new(*session.NewerError)):
		clear(b.open)
	case unread != nil:
		if b.damaged == 0 {
			b.damaged = r.First
		}
	case r.Hash != session.Chain(b.Head, b.Stream, r.Events):
		if b.open == nil {
			b.open = map[int64]string{}
		}
		b.open[r.First] = session.ErasedSum(r.Hash, b.Stream, r.Events)
	default:
		for _, d := range ErasedIn(r.Events) {
			for _, one := range d.Records {
				if sum, wrong := b.open[one.Seq]; wrong && sum == one.Sum {
					delete(b.open, one.Seq)
				}
			}
		}
	}
	b.Head = r.Hash
}

// Problem returns what is wrong with the records and at which event; nil if nothing is known to be.
func (b *Behind) Problem() (first int64, problem error) {
	if b == nil {
		return 0, nil
	}
	first = b.damaged
	for at := range b.open {
		if first == 0 || at < first {
			first = at
		}
	}
	switch {
	case first == 0:
		return 0, nil
	case first == b.damaged:
		return first, errors.New("it cannot be read: the record was altered")
	}
	return first, errors.New("the hash of its record is wrong: the record was altered, or the one before it")
}
