package api

import (
	"github.com/dialai/dialai/control"
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

// KeyOf returns a key as it is shown at a moment.
func KeyOf(k control.Key, now specialist.Time) Key {
	status := "active"
	switch {
	case k.RevokedAt != 0 && now >= k.RevokedAt:
		status = "revoked"
	case k.ExpiresAt != 0 && now >= k.ExpiresAt:
		status = "expired"
	}
	given := func(t specialist.Time) *specialist.Time {
		if t == 0 {
			return nil
		}
		return &t
	}
	return Key{k.ID, k.Name, k.Tenant, status, append([]control.Grant{}, k.Grants...), k.CreatedBy, k.CreatedAt, given(k.ExpiresAt), given(k.RevokedAt), given(k.LastUsed)}
}
