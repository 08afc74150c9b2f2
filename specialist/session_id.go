package specialist

import (
	"bytes"
	"encoding/hex"
	"fmt"
)

// A SessionID is a random UUID (version 4). The zero value is no session.
type SessionID [16]byte

// String returns the UUID in its usual form.
func (id SessionID) String() string {
	var b [36]byte
	hex.Encode(b[0:8], id[0:4])
	hex.Encode(b[9:13], id[4:6])
	hex.Encode(b[14:18], id[6:8])
	hex.Encode(b[19:23], id[8:10])
	hex.Encode(b[24:36], id[10:16])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}

// MarshalText writes what String returns.
func (id SessionID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (id *SessionID) UnmarshalText(text []byte) error {
	digits := bytes.ReplaceAll(text, []byte("-"), nil)
	var read SessionID
	if len(digits) != 2*len(read) {
		return fmt.Errorf("%q is not the id of a session", text)
	}
	if _, err := hex.Decode(read[:], digits); err != nil || read.String() != string(bytes.ToLower(text)) {
		return fmt.Errorf("%q is not the id of a session", text)
	}
	*id = read
	return nil
}
