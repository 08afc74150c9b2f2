package control

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/dialai/dialai/specialist"
)

// A request with an idempotency key has one effect, however often it is sent. Before the
// effect its receipt says that a process has begun it (Store.Begin); after it the receipt
// has the answer (Changes.End), which later requests are given.
//
// A process that dies in between leaves a receipt that nobody will end. The next request
// takes it up and acts again, though the effect may have happened: so every effect must be
// known again by itself, as a session is by the id that ReceiptKey.ID makes.
//
//	             Begin                        Begin again
//	no receipt ---------> begun by a process -------------> ErrInProgress, while it lives
//	     ^                    |        |     -------------> taken up, when it is gone
//	     |   End, no Answer   |        | End with an Answer
//	     +--------------------+        v
//	     +--- 24 h after At ----- answered ---------------> the answer
//
// With another body than the receipt has, Begin again is ErrKeyReused.

// A ReceiptKey names a request: an idempotency key, and whose it is.
type ReceiptKey struct {
	Tenant, Subject, Method, Path string
	Key                           string // of the header Idempotency-Key
}

// Hash returns the hash under which the receipt is kept: SHA-256 over "dialai receipt" and
// the five texts in the order of ReceiptKey, each after its length in bytes as 8 bytes, the
// highest first.
func (k ReceiptKey) Hash() (h Hash) {
	sum := sha256.New()
	for _, text := range []string{"dialai receipt", k.Tenant, k.Subject, k.Method, k.Path, k.Key} {
		sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(text))))
		sum.Write([]byte(text))
	}
	sum.Sum(h[:0])
	return h
}

// ID returns the id of what the request makes, a session for example: a UUID version 8 (RFC
// 9562) cut from Hash.
func (k ReceiptKey) ID() (id specialist.SessionID) {
	h := k.Hash()
	copy(id[:], h[:])
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id
}

// A Receipt is what Begin is told of a request.
type Receipt struct {
	Key  ReceiptKey
	Body Hash // of the request
	At   specialist.Time
}

// ReceiptLifetime is how long an answer is kept, in milliseconds after the request.
const ReceiptLifetime specialist.Time = 24 * 60 * 60 * 1000

// An Answer is what is kept of what a request was answered.
type Answer struct {
	Status   int // of HTTP
	Location string
	ETag     string
	Body     []byte
	// Omitted says that the body had more than MaxAnswer bytes and is not kept: Location
	// names what it was about.
	Omitted bool
}

// MaxAnswer is how long a body is kept, in bytes.
const MaxAnswer = 64 << 10

// Kept returns a copy of what is kept of an answer.
func (a Answer) Kept() Answer {
	if a.Body = slices.Clone(a.Body); len(a.Body) > MaxAnswer {
		a.Body, a.Omitted = nil, true
	}
	return a
}

// Begun is what becomes of Begin.
type Begun struct {
	// Answer is what the request was answered before; nothing is to be done. nil means that
	// it is this process's turn.
	Answer *Answer
	// Resumed says that it was begun before, and its effect may have happened.
	Resumed bool
}

// An End ends what this process has begun.
type End struct {
	Key    ReceiptKey
	Answer *Answer // nil forgets the request: the next one is a new one
}

// Errors of Begin.
var (
	// ErrInProgress: the request is still being answered.
	ErrInProgress = errors.New("a request with this idempotency key is under way")
	// ErrKeyReused: the key came with another body before.
	ErrKeyReused = errors.New("this idempotency key was used for another request")
)

// A StoredReceipt is a receipt as a Store keeps it.
type StoredReceipt struct {
	Body    Hash
	At      specialist.Time
	Process string  // that has begun it
	Answer  *Answer // nil until it has ended
}

// Repeat returns what becomes of a request where there is a receipt, nil for none: it is
// the rule that each Store goes by. gone says that the process which has begun it is no
// more, or has failed to end it. If Repeat returns neither an answer nor an error, the
// receipt is to be replaced.
func (s *StoredReceipt) Repeat(r Receipt, gone bool) (Begun, error) {
	switch {
	case s == nil || s.Expired(r.At) && (s.Answer != nil || gone):
		return Begun{}, nil
	case s.Body != r.Body:
		return Begun{}, ErrKeyReused
	case s.Answer != nil:
		return Begun{Answer: s.Answer}, nil
	case !gone:
		return Begun{}, ErrInProgress
	}
	return Begun{Resumed: true}, nil
}

// Expired reports whether an answer is kept no longer.
func (s *StoredReceipt) Expired(now specialist.Time) bool { return now >= s.At+ReceiptLifetime }
