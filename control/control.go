// Package control says what a server must remember beside its sessions: keys, receipts of
// requests, its audit log, published machines, claims of questions, where tokens may go, webhooks, jobs,
// and who is signed in at a page.
//
//	control.go   the contract of a Store, and what it writes
//	key.go       keys: credentials, what they grant, when they are good
//	receipt.go   requests that are answered once
//	audit.go     the log of who did what, chained by hashes
//	webhook.go   who is told what happens, and what they are still to be told
//	job.go       work that takes longer than a request may
//	signin.go    who is signed in at a page, and tickets for that
//	memory.go    a Store in memory, with memory_webhook.go and memory_job.go
//
// Nothing here reads a clock: whoever calls says what time it is. Store/storetest tests the
// contract line by line, for the form in memory and the one in a file.
package control

import (
	"context"
	"errors"
	"fmt"

	"github.com/dialai/dialai/specialist"
)

// A Store keeps what a server must remember. Each Store is one process among those that
// share the data: receipts and the audit log name it. All methods may be called
// concurrently, and what one has written the next read sees, in every process.
//
// What Begin and Commit have written is on disk when they return nil, where there is a
// disk. When they return an error nothing of it is written, but for one case: where the
// disk fails while it syncs, nobody can say.
type Store interface {
	// Begin records, in one commit, that this process begins what a request asks for: its
	// receipt and its entry in the audit log. Only then may there be an effect.
	//
	// Where the request was answered before, it returns the answer and records nothing. It
	// returns ErrInProgress while a process that lives is at it, and ErrKeyReused where the
	// key came with another body; then nothing is recorded either. What was begun by a process
	// that is gone, or that failed to commit its End, is taken up: Begun says so.
	Begin(ctx context.Context, r Receipt, e Entry) (Begun, error)
	// Commit makes all the changes, or none and says which was refused: by ErrExists,
	// ErrNotFound, ErrStale or a *ClaimedError. It keeps no reference to what it is given.
	Commit(ctx context.Context, c Changes) error

	// Key returns a key, also one that is revoked or has expired, or ErrNotFound.
	Key(ctx context.Context, id string) (Key, error)
	// Keys returns keys in the order in which they were added.
	Keys(ctx context.Context, q Query) ([]Key, error)
	// Machine returns the newest version of a machine, or ErrNotFound.
	Machine(ctx context.Context, tenant, name string) (Machine, error)
	// MachineOf returns the newest version of a machine with a digest, or ErrNotFound.
	MachineOf(ctx context.Context, tenant, name, digest string) (Machine, error)
	// Machines returns the newest version of each machine, in the order in which their
	// names were first published, without definitions.
	Machines(ctx context.Context, q Query) ([]Machine, error)
	// Versions returns the versions of a machine, without definitions; none of one that
	// there is not.
	Versions(ctx context.Context, name string, q Query) ([]Machine, error)
	// Claims returns, of some questions, the claims that hold at a moment.
	Claims(ctx context.Context, tenant string, questionIDs []string, now specialist.Time) ([]Claim, error)
	// ClaimsOf returns the claims of somebody that hold at a moment: what a subject has put for itself,
	// and what is of one of some humans, whoever has put it; the oldest first, so many at most.
	ClaimsOf(ctx context.Context, tenant, subject string, humans []string, now specialist.Time, limit int) ([]Claim, error)
	// Binding returns where a variable may be sent, or ErrNotFound.
	Binding(ctx context.Context, variable string) (Binding, error)
	// SignIn returns a sign-in, also one that is over as long as it is not forgotten, or ErrNotFound.
	SignIn(ctx context.Context, id Hash) (SignIn, error)
	// Webhook returns a webhook, or ErrNotFound.
	Webhook(ctx context.Context, id string) (Webhook, error)
	// Webhooks returns webhooks in the order in which they were added.
	Webhooks(ctx context.Context, q Query) ([]Webhook, error)
	// Delivery returns something that a webhook is to be told, or ErrNotFound; that it has
	// been told it is forgotten.
	Delivery(ctx context.Context, id string) (Delivery, error)
	// Deliveries returns what a webhook is to be told, in the order in which it was stored.
	Deliveries(ctx context.Context, q DeliveryQuery) ([]Delivery, error)
	// StepTime returns for how long a session was stepped, as it was kept last; the zero
	// StepTime if that was not.
	StepTime(ctx context.Context, tenant, sessionID string) (StepTime, error)
	// Job returns a job, or ErrNotFound. One that has not ended, and whose process is gone, has
	// failed with the code JobLost, also where that is written nowhere.
	Job(ctx context.Context, id string) (Job, error)
	// Jobs returns jobs in the order in which they were added, without their requests.
	Jobs(ctx context.Context, q Query) ([]Job, error)
	// JobResult returns what came of a job: JobStep.Result and Finding, or ErrNotFound.
	JobResult(ctx context.Context, id string) (result, finding []byte, err error)
	// Audit returns the records of the audit log in the order in which they were written,
	// those of all processes together.
	Audit(ctx context.Context, q Query) ([]Record, error)
}

// A Query says which part of a list is wanted. The zero Query is all of it.
type Query struct {
	Tenant string // only what belongs to it; "" means every tenant
	After  int64  // only what comes after this Place, in the order of the list; 0 means from the beginning
	Limit  int    // so many at most; 0 means all
	Desc   bool   // the newest first
}

// Changes are what one Commit makes, all or nothing. The zero Changes are none.
type Changes struct {
	Entries []Entry   // to append to the audit log, in this order
	End     *End      // of what this process has begun; ErrStale if that is not under way here
	Keys    []Key     // to add; ErrExists if there is one of that id
	Revoked []KeyTime // keys that are refused from then on; where one is refused from earlier on, that stays. ErrNotFound
	Used    []KeyTime // keys that were used: Key.LastUsed becomes the hour, unless it is later. Unknown ones are left out
	Publish *Machine  // ErrStale unless its Version follows the newest one (1 for a new name)
	Claim   *Claim    // put, in place of one that gives way to it (Claim.GivesWay); else a *ClaimedError
	Bind    *Binding  // to add; ErrExists if the variable is bound
	Unclaim *Claim    // takes the claim of a question back if it is of this Subject, or of any if that is ""

	SignIn  *SignIn     // to add; ErrExists. Those that are over by its SeenAt are forgotten
	SignOut *Hash       // of a sign-in, which is forgotten; ErrNotFound. So of many who use a ticket one does
	Seen    *SignInTime // SignIn.SeenAt becomes it, unless that is later. Unknown ones are left out

	Stepped *StepTime // put, in place of that of the session

	Unhook     string     // removes a webhook and what it is to be told; ErrNotFound
	Webhook    *Webhook   // put: Version 1 adds it (ErrExists), another follows the one that is there (ErrStale)
	Walk       *Walk      // ErrStale
	Deliveries []Delivery // stored, to be sent from the first attempt on; ErrNotFound without the webhook
	Attempt    *Attempt   // ErrStale

	// Job is added, queued in this process; ErrExists. Jobs that have ended JobLifetime before
	// its CreatedAt, or were added then and have not ended, are forgotten.
	Job     *Job
	JobStep *JobStep // ErrStale, ErrNotFound
}

// A KeyTime is a key and a moment.
type KeyTime struct {
	ID string
	At specialist.Time
}

// A SignInTime is a sign-in and a moment.
type SignInTime struct {
	ID Hash
	At specialist.Time
}

// A Machine is one published version of a machine.
type Machine struct {
	Tenant     string
	Name       string
	Version    int64  // from 1, by name
	Digest     string // of the definition
	Definition []byte // as it was published; nil in lists
	By         string // the subject that published it
	At         specialist.Time
	Place      int64 // in the list it comes from; Commit ignores it
}

// A Claim says who is at a question, or who is to be. It is advice to others, not a lock.
type Claim struct {
	Tenant       string
	QuestionID   string
	Subject      string // who has put it, and takes it back
	SpecialistID string // the human whose it is
	At           specialist.Time
	ExpiresAt    specialist.Time // it is over from then on
	Note         string          // for that human; of 1000 characters at most
	Assigned     bool            // the subject has named somebody else than as whom it acts
	As           string          // the human as whom the subject acts, "" if as none; it is not kept
}

// How long a claim holds, and one of somebody who was named, in milliseconds.
const (
	ClaimLifetime      specialist.Time = 30 * 60 * 1000
	AssignmentLifetime specialist.Time = 7 * 24 * 60 * 60 * 1000
)

// GivesWay reports whether another claim takes the place of c: it is over, or it is of the same
// subject. Only an assignment takes the place of an assignment, and it may be by who has got it.
func (c *Claim) GivesWay(to *Claim) bool {
	switch {
	case to.At >= c.ExpiresAt:
		return true
	case c.Assigned:
		return to.Assigned && (to.Subject == c.Subject || to.As != "" && to.As == c.SpecialistID)
	}
	return to.Subject == c.Subject
}

// A StepTime is for how long a session was stepped since it was resumed for the last time, or
// started.
type StepTime struct {
	Tenant    string
	SessionID string
	Resumes   int32
	Msec      int64
}

// A Binding says to which host a variable with a token may be sent, for all tenants: the one for
// which it was used first.
type Binding struct {
	Variable, Host string
	At             specialist.Time
}

// A ClaimedError says that somebody else has claimed a question, or that it is assigned.
type ClaimedError struct{ Claim Claim }

func (e *ClaimedError) Error() string {
	if e.Claim.Assigned {
		return fmt.Sprintf("question %s is assigned to %s by %s until %s", e.Claim.QuestionID, e.Claim.SpecialistID, e.Claim.Subject, e.Claim.ExpiresAt)
	}
	return fmt.Sprintf("question %s is claimed by %s until %s", e.Claim.QuestionID, e.Claim.Subject, e.Claim.ExpiresAt)
}

// Errors that callers ask for by name.
var (
	// ErrNotFound: there is nothing of that name.
	ErrNotFound = errors.New("not found")
	// ErrExists: there is something of that name already.
	ErrExists = errors.New("exists already")
	// ErrStale: what a change begins from is not so any more.
	ErrStale = errors.New("has changed since it was read")
)
