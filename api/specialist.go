package api

import (
	"maps"
	"slices"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
)

// A Specialist is what the roster of a machine says of one.
type Specialist struct {
	SpecialistID string       `json:"specialistId"`
	Role         machine.Role `json:"role,omitempty"`
	Registered   bool         `json:"registered"`
	IsHuman      bool         `json:"isHuman,omitempty"` // of one who is registered
	Disabled     bool         `json:"disabled"`
	ChampionOf   []string     `json:"championOf,omitempty"` // states; "" is the machine
}

// Alignment is how often a specialist chose as humans did.
type Alignment = trust.Record

// SpecialistsOf returns the specialists that a roster says something of, each once.
func SpecialistsOf(r *session.Roster) []*Specialist {
	var list []*Specialist
	index := map[string]*Specialist{}
	get := func(id string) *Specialist {
		if index[id] == nil {
			index[id] = &Specialist{SpecialistID: id}
			list = append(list, index[id])
		}
		return index[id]
	}
	for i := range r.Specialists {
		e := get(r.Specialists[i].SpecialistID)
		e.Role, e.Registered, e.IsHuman = r.Specialists[i].Role, true, r.Specialists[i].IsHuman
	}
	for _, id := range slices.Sorted(maps.Keys(r.Off)) {
		get(id).Disabled = true
	}
	for _, state := range slices.Sorted(maps.Keys(r.Champions)) {
		e := get(r.Champions[state].ID)
		e.ChampionOf = append(e.ChampionOf, state)
	}
	return list
}

// SpecialistIn returns what a roster says of one specialist: of one that it does not know, that
// they are on.
func SpecialistIn(r *session.Roster, id string) *Specialist {
	for _, s := range SpecialistsOf(r) {
		if s.SpecialistID == id {
			return s
		}
	}
	return &Specialist{SpecialistID: id}
}
