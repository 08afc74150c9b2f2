package control

import (
	"slices"

	"github.com/dialai/dialai/specialist"
)

// A webhook is an address that is told what happens. Its cursor says up to which record of
// the log it has been seen to; what it is to be told of a record is stored, as deliveries, in
// the commit that moves the cursor past it. So a crash loses nothing, and makes nothing twice
// that has not the same id. A delivery is kept until it has arrived, or until it has been
// dead for DeadLifetime.
//
//	                  Attempt, Done
//	stored: pending -----------------> gone
//	  ^ ^      |  ^
//	  | |      |  | Attempt, NextAt: later
//	  | |      +--+
//	  | |      | Attempt without NextAt
//	  | |      v
//	  | +---- dead -------------------> gone
//	  |  stored again      30 days
//	  +- stored again: at once, from the first attempt on

// A Webhook is an address that is told what happens.
type Webhook struct {
	ID       string
	Tenant   string
	URL      string
	Types    []string // of what it is told; none means all
	Machines []string // names, * stands for any characters; none means all
	Include  []string // what is in it beside references
	// Secret signs what is sent, and so does OldSecret until OldUntil. Both are sealed.
	Secret    []byte
	OldSecret []byte
	OldUntil  specialist.Time
	Off       string // why nothing is sent; "" means that it is
	Version   int64  // from 1; each Put and each Attempt that says Off makes the next one
	CreatedBy string // the subject
	CreatedAt specialist.Time

	// What follows is moved by Walk and Attempt, and left alone by a Put of a later version.
	Epoch        string          // of the log that Cursor is in
	Cursor       int64           // the place of the newest record that it has been seen to for
	Roster       int64           // likewise in the logs of machine names; -1: it begins where these stand
	FailingSince specialist.Time // the first failure since the last success; 0 if there is none
	LastSuccess  specialist.Time // 0 means never
	LastError    string          // of the newest failure

	// What follows is worked out; Commit ignores it.
	Pending int64           // deliveries that are to be sent
	NextAt  specialist.Time // when the first of them is; 0 if there is none
	Place   int64           // among all webhooks
}

// Why nothing is sent to a webhook.
const (
	OffDisabled = "disabled" // somebody has switched it off
	OffGone     = "gone"     // the address has answered 410
	OffFailing  = "failing"  // nothing has arrived for five days
)

// Covers reports whether a webhook is told something of a machine.
func (w *Webhook) Covers(kind, machineName string) bool {
	return (len(w.Types) == 0 || slices.Contains(w.Types, kind)) && (len(w.Machines) == 0 || (&Grant{Machines: w.Machines}).Covers(machineName))
}

// clone returns a copy that shares nothing.
func (w Webhook) clone() Webhook {
	w.Types, w.Machines, w.Include = slices.Clone(w.Types), slices.Clone(w.Machines), slices.Clone(w.Include)
	w.Secret, w.OldSecret = slices.Clone(w.Secret), slices.Clone(w.OldSecret)
	return w
}

// A Delivery is something that a webhook is to be told.
type Delivery struct {
	ID        string // that of the message: the same on every attempt, and when it is stored again
	WebhookID string
	Type      string
	Body      []byte // nil in lists, but of those that are due
	CreatedAt specialist.Time
	NextAt    specialist.Time // it is not sent before
	DeadAt    specialist.Time // since when it is not sent any more; 0 while it is
	Attempts  int
	Status    int    // of HTTP, of the newest answer; 0 if there was none
	Error     string // of the newest attempt
	Place     int64  // among all deliveries; Commit ignores it
}

// DeadLifetime is how long a delivery is kept that could not be made, in milliseconds.
const DeadLifetime specialist.Time = 30 * 24 * 60 * 60 * 1000

// A DeliveryQuery says which deliveries of a webhook are wanted.
type DeliveryQuery struct {
	Query
	WebhookID string
	Dead      *bool // only those that are, or are not; nil means both
	// Due asks for those that are to be sent at this moment, in the order of NextAt, in place
	// of what Dead, After and Desc say.
	Due specialist.Time
}

// A Walk moves the cursor of a webhook, in both logs. It is ErrStale unless the cursor is at From
// and FromRoster.
type Walk struct {
	WebhookID            string
	From, To             int64
	FromRoster, ToRoster int64
	Epoch                string // of the logs that To and ToRoster are in
}

// An Attempt is what came of sending a delivery. It is ErrStale unless that is pending after
// so many attempts.
type Attempt struct {
	DeliveryID string
	WebhookID  string
	Before     int // attempts before this one
	At         specialist.Time
	Done       bool            // it has arrived
	NextAt     specialist.Time // when it is sent again; 0 means that it is dead, unless it has arrived
	Status     int             // of HTTP; 0 if there was no answer
	Error      string
	Off        string // switches the webhook off, unless it is off already
}
