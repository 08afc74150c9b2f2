package specialist

import (
	"crypto/sha256"
	"encoding/binary"
)

// A RoundKey names one round of a session: the number of the round and, since
// a guard may have it asked again, the attempt. The ids of everything in the
// round follow from it, so none is stored or drawn.
type RoundKey struct {
	Session SessionID
	Round   int32 // from 1
	Attempt int32 // from 0
}

// The kinds of things that have an id of their own.
const (
	roundKind       = "round"
	proposalKind    = "proposal"
	askKind         = "ask"
	arbitrationKind = "arbitration"
	decisionKind    = "decision"
	exemplarKind    = "exemplar"
)

// derive returns a UUID version 8 (RFC 9562) cut from the SHA-256 of session id,
// kind, round, attempt and index.
func (k RoundKey) derive(kind string, index int32) string {
	var b [28 + len(arbitrationKind)]byte
	copy(b[:], k.Session[:])
	binary.BigEndian.PutUint32(b[16:], uint32(k.Round))
	binary.BigEndian.PutUint32(b[20:], uint32(k.Attempt))
	binary.BigEndian.PutUint32(b[24:], uint32(index))
	n := 28 + copy(b[28:], kind)
	sum := sha256.Sum256(b[:n])
	var id SessionID
	copy(id[:], sum[:16])
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}

// ID returns the roundId.
func (k RoundKey) ID() string { return k.derive(roundKind, 0) }

// ProposalID returns the id of the proposal that arrived at the given place.
func (k RoundKey) ProposalID(arrival int32) string { return k.derive(proposalKind, arrival) }

// AskID returns the id of the round's ask with that index; it is the
// idempotency key of the request.
func (k RoundKey) AskID(index int32) string { return k.derive(askKind, index) }

// ArbitrationID returns the id of the round's verdict with that index.
func (k RoundKey) ArbitrationID(index int32) string { return k.derive(arbitrationKind, index) }

// DecisionID returns the id of the round's decision.
func (k RoundKey) DecisionID() string { return k.derive(decisionKind, 0) }

// ExemplarID returns the id of the exemplar that the round's decision makes.
func (k RoundKey) ExemplarID() string { return k.derive(exemplarKind, 0) }
