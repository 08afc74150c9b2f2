package transfer

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/internal/pack"
)

// check holds a row to the hash that it is stored with.
func check(part Part, r *Row) error {
	var of, what string
	text, at := r.Body, r.First
	switch part {
	case Definitions:
		if sum := sha256.Sum256(r.Body); hex.EncodeToString(sum[:]) != r.Digest {
			return &session.CorruptError{What: "definition " + r.Digest, Problem: fmt.Sprintf("its content has digest %x; run dialai store verify", sum)}
		}
		return nil
	case Log:
		of, what = r.Of, "the log of session "+r.Of
		if r.Of == "" || r.Machine == "" {
			return &session.CorruptError{What: fmt.Sprintf("the record at place %d", r.Place), Problem: "its session has no row, or none of its machine; run dialai store verify"}
		}
		var err error
		if text, err = pack.Unpack(nil, r.Body); err != nil {
			return &session.CorruptError{What: what, Problem: fmt.Sprintf("the record at event %d cannot be read: %v", r.First, err)}
		}
	case Rosters:
		of, what = r.Of, "the log of machine "+r.Of
	case Agents:
		of, what = session.AgentStream(r.Of), "the log of agents of session "+r.Of
		if r.Of == "" {
			return &session.CorruptError{What: fmt.Sprintf("entry %d of the logs of agents", r.Place), Problem: "its session has no row; run dialai store verify"}
		}
	case Audit:
		if r.Hash == nil {
			return nil
		}
		of, what, at = r.Of, "the audit of models", r.Place
	default:
		return nil
	}
	var prev session.Hash
	copy(prev[:], r.Prev)
	if hash := session.Chain(prev, of, text); string(hash[:]) != string(r.Hash) {
		if part != Rosters && looksErased(text) {
			r.Erased = true
			return nil
		}
		return &session.CorruptError{What: what, Problem: fmt.Sprintf("the hash of the record at event %d is wrong: it, or one before it, was altered or removed; run dialai store verify", at)}
	}
	return nil
}

// looksErased reports whether payloads may have been taken out of a record. It has no hash of its own then:
// what proves it comes later in its log, and is looked at when the copy is verified.
func looksErased(text []byte) bool {
	return bytes.Contains(text, []byte("[erased ")) || bytes.Contains(text, []byte(`{"erased":"`))
}
