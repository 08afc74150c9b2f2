// Package pack is how a store writes the events of a record, and reads them.
//
// What is stored begins with a byte that says how. A '[' is the JSON array itself, as all records were
// written once, and as a store with pack=off writes them. 1 is a block of S2 with the first dictionary:
// what most records have in common stands there once, and not in each of them. A dictionary is frozen
// when it is released, for there are records that cannot be read without it; another one is another
// byte. What hashes, exports and readers see is the JSON, however it is stored.
//
// Of S2 (github.com/klauspost/compress/s2, a Snappy with larger offsets) and zstd, deflate and the rest
// it is S2 since a record is written while its session waits: 1.5 µs for 2 KB, a fifth of it left.
package pack

import (
	"bytes"
	_ "embed" // for dictionaries
	"fmt"
	"sync"

	"github.com/klauspost/compress/s2"

	"github.com/dialai/dialai/session"
)

const (
	plain = '['
	s2One = 1
)

// Largest is how many bytes of JSON a record has at most that is read: 64 MiB.
const Largest = 64 << 20

//go:embed 1.dict
var one []byte

var dictionary = sync.OnceValue(func() *s2.Dict { return s2.MakeDictManual(one, 0) })

// Block returns data as a block of S2 of its own: for what is no record, and has nothing in common
// with the dictionary.
func Block(data []byte) []byte { return s2.Encode(nil, data) }

// Unblock returns what Block was given. It refuses what says that it has more than [Largest] bytes.
func Unblock(stored []byte) ([]byte, error) {
	n, err := s2.DecodedLen(stored)
	if err == nil && n > Largest {
		err = fmt.Errorf("it says that it has %d bytes, more than %d", n, Largest)
	}
	if err != nil {
		return nil, err
	}
	return s2.Decode(nil, stored)
}

// Append appends the events of a record, a JSON array, as they are stored. The result does not share
// memory with events.
func Append(dst, events []byte) []byte {
	at := len(dst)
	if need := at + 1 + s2.MaxEncodedLen(len(events)); cap(dst) < need {
		dst = append(make([]byte, 0, need), dst...)
	}
	packed := dictionary().Encode(dst[at+1:cap(dst)], events)
	if len(packed) >= len(events) {
		return append(dst, events...)
	}
	return append(append(dst, s2One), packed...)
}

// Unpack returns the events of a record that is stored. It may be stored itself, or in dst's memory,
// which may be nil.
func Unpack(dst, stored []byte) ([]byte, error) {
	switch {
	case len(stored) == 0:
		return nil, fmt.Errorf("it is empty")
	case stored[0] == plain:
		return stored, nil
	case stored[0] != s2One:
		return nil, &session.NewerError{Has: fmt.Sprintf("it is packed in form %d", stored[0])}
	}
	n, err := s2.DecodedLen(stored[1:])
	if err == nil && n > Largest {
		err = fmt.Errorf("it says that it has %d bytes, more than %d", n, Largest)
	}
	if err != nil {
		return nil, err
	}
	return dictionary().Decode(dst[:cap(dst)], stored[1:])
}

// Restored returns the form of a record whose first byte was altered: the one in which right finds its events to be
// right. It reports whether there is one. The record stays as it is.
func Restored(stored []byte, right func(events []byte) bool) (form byte, ok bool) {
	if len(stored) == 0 {
		return 0, false
	}
	restored := bytes.Clone(stored)
	for _, form := range []byte{plain, s2One} {
		restored[0] = form
		if events, err := Unpack(nil, restored); err == nil && right(events) {
			return form, true
		}
	}
	return 0, false
}
