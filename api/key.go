package api

import (
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A Key is what is shown of a key of a server: nothing by which anybody could use it.
type Key struct {
	KeyID     string           `json:"keyId"`
	Name      string           `json:"name"`
	Tenant    string           `json:"tenant"`
	Status    string           `json:"status"` // active, expired or revoked
	Grants    []control.Grant  `json:"grants"`
	CreatedBy string           `json:"createdBy"`
	CreatedAt specialist.Time  `json:"createdAt"`
	ExpiresAt *specialist.Time `json:"expiresAt,omitempty"`
	RevokedAt *specialist.Time `json:"revokedAt,omitempty"` // may be to come
	LastUsed  *specialist.Time `json:"lastUsed,omitempty"`  // the hour
}

// A MadeKey is a key that was made, with what is shown once.
type MadeKey struct {
	Key
	Credential string `json:"credential,omitempty" doc:"what its owner sends; shown this once"`
	Replaces   string `json:"replaces,omitempty"` // the keyId of another
}

// A NewKey says for whom a key is to be made.
type NewKey struct {
	Name      string          `json:"name" minLength:"1" maxLength:"200" doc:"for whom it is"`
	Grants    []control.Grant `json:"grants" minItems:"1" maxItems:"100" doc:"what it may do, with which machines, as whom"`
	ExpiresAt string          `json:"expiresAt,omitempty" doc:"a time such as 2027-01-31T12:00:00Z; without it never"`
}

// A NewTicket says what a ticket is to be for.
type NewTicket struct {
	For string `json:"for" enum:"desk" doc:"desk: a browser signs in with it, as who has made it"`
}

// A Ticket is good for one sign-in.
type Ticket struct {
	Ticket    string          `json:"ticket,omitempty" doc:"shown this once"`
	ExpiresAt specialist.Time `json:"expiresAt"`
}

// A Rotation says how a key takes the place of another.
type Rotation struct {
	Overlap   string `json:"overlap,omitempty" doc:"for how long the old one is still good, such as 24h; without it not at all" maxLength:"20"`
	ExpiresAt string `json:"expiresAt,omitempty" doc:"when the new one is refused; without it it is good as long as the old one was when it was made"`
}

// An AuditRecord is a line of the audit log.
type AuditRecord struct {
	control.Entry
	Place    int64        `json:"place" doc:"in the whole log"`
	Process  string       `json:"process" doc:"whose chain it is in"`
	Sequence int64        `json:"sequence" doc:"in that chain"`
	Hash     control.Hash `json:"hash" doc:"of the record before and of the entry"`
}

// A Store is what a server says of what it keeps.
type Store struct {
	session.StoreStatus
	LastVerify *Verified `json:"lastVerify,omitempty" doc:"the newest check of it that a job of this week has done"`
}

// A Verified is a check of a store.
type Verified struct {
	JobID    string          `json:"jobId"`
	At       specialist.Time `json:"at" doc:"when it was done"`
	ExitCode int             `json:"exitCode" doc:"1 if there is a difference"`
}

// KeyOf returns a key as it is shown at a moment.
func KeyOf(k control.Key, now specialist.Time) Key {
	status := "active"
	switch {
	case k.RevokedAt != 0 && now >= k.RevokedAt:
		status = "revoked"
	case k.ExpiresAt != 0 && now >= k.ExpiresAt:
		status = "expired"
	}
	return Key{k.ID, k.Name, k.Tenant, status, append([]control.Grant{}, k.Grants...), k.CreatedBy, k.CreatedAt, given(k.ExpiresAt), given(k.RevokedAt), given(k.LastUsed)}
}
