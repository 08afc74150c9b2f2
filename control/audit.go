package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/dialai/dialai/specialist"
)

// The audit log says who did what. Each process appends to a chain of its own: a record has
// the hash of the one before it, the first that of the newest record which the store had
// then. So what is changed, left out, put in or moved is found by Verify, but for records
// at the end: whoever wants to know of those keeps Verified.Head elsewhere.
//
// A request makes two entries with the same RequestID: one before its effect, without a
// Result, and one after it, with it. One without the other is of a process that died, or of
// a disk that failed, in between.

// An Entry is one line of the audit log. Members that do not apply are "".
type Entry struct {
	At        specialist.Time `json:"at"`
	RequestID string          `json:"requestId"`
	Tenant    string          `json:"tenant"`
	Subject   string          `json:"subject,omitempty"`
	KeyID     string          `json:"keyId,omitempty"`
	Method    string          `json:"method,omitempty"`  // key, oidc, cookie, elicitation, tool, local or none
	Address   string          `json:"address,omitempty"` // of the peer
	Operation string          `json:"operation,omitempty"`
	Target    string          `json:"target,omitempty"` // what it is about: a session, a machine, a key
	RoundID   string          `json:"roundId,omitempty"`
	Digest    string          `json:"digest,omitempty"` // of what was decided on
	Count     int64           `json:"count,omitempty"`  // of how many requests it speaks, where not of one
	Result    string          `json:"result,omitempty"` // "" means that it is not known yet
}

// A Record is an entry as it is kept.
type Record struct {
	Place    int64  // in the whole log, from 1
	Process  string // whose chain it is in
	Sequence int64  // in that chain, from 1
	Tenant   string // that of the entry
	Data     []byte // the entry
	Hash     Hash   // of the record before and of Data
}

// Record returns the record of an entry that follows one of a hash, at a sequence number of
// a process's chain. prev is the zero Hash for the first record of all.
func (e *Entry) Record(prev Hash, process string, sequence int64) (Record, error) {
	data, err := json.Marshal(e)
	if err != nil {
		return Record{}, err
	}
	return Record{Process: process, Sequence: sequence, Tenant: e.Tenant, Data: data, Hash: chain(prev, process, sequence, data)}, nil
}

// chain returns SHA-256 over the hash before in hex, a line feed, the process, a line feed,
// the sequence number, a line feed, and the data.
func chain(prev Hash, process string, sequence int64, data []byte) (h Hash) {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%s\n%d\n%s", hex.EncodeToString(prev[:]), process, sequence, data)
	sum.Sum(h[:0])
	return h
}

// Entry reads the entry of a record.
func (r *Record) Entry() (e Entry, err error) {
	if err := json.Unmarshal(r.Data, &e); err != nil {
		return Entry{}, fmt.Errorf("record %d of the audit log: %w", r.Place, err)
	}
	return e, nil
}

// Verified is what Verify has found.
type Verified struct {
	Records   int64
	Processes int
	Head      Hash // of the newest record; the zero Hash if there is none
	// Difference is the first place at which the log is not what was written; nil if there
	// is none.
	Difference *Difference
}

// A Difference is a place at which the audit log is not what was written.
type Difference struct {
	Place    int64
	Process  string
	Sequence int64
	Problem  string
}

func (d *Difference) Error() string {
	return fmt.Sprintf("record %d of the audit log (process %s, %d): %s", d.Place, d.Process, d.Sequence, d.Problem)
}

// verifyPage is how many records are held at once.
const verifyPage = 1000

// Verify checks the audit log of a store from its beginning.
func Verify(ctx context.Context, s Store) (Verified, error) {
	type end struct {
		sequence int64
		hash     Hash
	}
	var v Verified
	ends := map[string]end{}
	for q := (Query{Limit: verifyPage}); ; {
		page, err := s.Audit(ctx, q)
		if err != nil || len(page) == 0 {
			return v, err
		}
		for i := range page {
			r := &page[i]
			last, known := ends[r.Process]
			if !known {
				last.hash = v.Head
			}
			if problem := r.problem(last.sequence, last.hash); problem != "" {
				v.Difference = &Difference{r.Place, r.Process, r.Sequence, problem}
				return v, nil
			}
			ends[r.Process] = end{r.Sequence, r.Hash}
			v.Records, v.Processes, v.Head = v.Records+1, len(ends), r.Hash
			q.After = r.Place
		}
	}
}

// problem returns what is wrong with a record that follows another in its chain.
func (r *Record) problem(sequence int64, prev Hash) string {
	e, err := r.Entry()
	switch {
	case r.Sequence != sequence+1:
		return fmt.Sprintf("it should be %d of its process", sequence+1)
	case chain(prev, r.Process, r.Sequence, r.Data) != r.Hash:
		return "its hash is wrong: it, or the record before it, was changed"
	case err != nil:
		return err.Error()
	case e.Tenant != r.Tenant:
		return fmt.Sprintf("it is filed under tenant %q, but speaks of %q", r.Tenant, e.Tenant)
	}
	return ""
}
