package server

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math"
)

// A cursor is the id of an event in a stream over many sessions: whoever begins again with it,
// at any process, gets what comes behind that event. To others it is a text without a meaning.
// It says of which store and which stream it is, the place in the two logs of which all is
// seen, and of the record that comes next how far it is.
type cursor struct {
	place
	// part is the number of the last event that was seen of the next record: of that of a
	// session, or if it is below 0 of that of a machine name. 0 means none.
	part int64
}

// origin is what a cursor begins with: of which store it is, and of which stream.
type origin [12]byte

// originOf returns the origin of the cursors of a stream.
func originOf(epoch, stream string) (o origin) {
	known, _ := hex.DecodeString(epoch) // of whatever form it is, that of one store stays the same
	copy(o[:8], known)
	sum := sha256.Sum256([]byte(stream))
	copy(o[8:], sum[:4])
	return o
}

// text returns the cursor as it is told.
func (c cursor) text(of origin) string {
	b := append(make([]byte, 0, 48), of[:]...)
	for _, n := range []int64{c.log, c.roster, c.part} {
		b = binary.AppendVarint(b, n)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// readCursor reads a cursor. fits is false if it is of another store.
func readCursor(text string, of origin) (c cursor, fits, ok bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) < len(of) || [4]byte(b[8:12]) != [4]byte(of[8:]) {
		return c, false, false
	}
	fits, b = [8]byte(b[:8]) == [8]byte(of[:8]), b[len(of):]
	for _, into := range []*int64{&c.log, &c.roster, &c.part} {
		n, used := binary.Varint(b)
		if used <= 0 {
			return c, false, false
		}
		*into, b = n, b[used:]
	}
	return c, fits, len(b) == 0 && c.log >= 0 && c.roster >= 0 && c.log < math.MaxInt64 && c.roster < math.MaxInt64 && c.part > math.MinInt64
}

// ahead returns the cursor behind an event of an entry, which is not the last of it.
func ahead(past place, e *entry, seq int64) cursor {
	c := cursor{past, seq}
	if e.isRoster() {
		c.roster, c.part = e.at.roster-1, -seq
	} else {
		c.log = e.at.log - 1
	}
	return c
}

// has reports whether an event of an entry, which is the next of its log, was seen.
func (c cursor) has(e *entry, seq int64) bool {
	if e.isRoster() {
		return c.part < 0 && seq <= -c.part
	}
	return c.part > 0 && seq <= c.part
}
