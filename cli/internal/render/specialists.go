package render

import (
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
)

// RosterLine is a specialist as --json shows it.
type RosterLine struct {
	SpecialistID string       `json:"specialistId"`
	Role         machine.Role `json:"role,omitempty"`
	Registered   bool         `json:"registered"`
	Disabled     bool         `json:"disabled"`
	ChampionOf   []string     `json:"championOf,omitempty"` // states; "" is the machine
}

// Switched prints the line of a specialist that was switched.
func Switched(out io.Writer, roster *session.Roster, id string) error {
	for _, line := range RosterLines(roster) {
		if line.SpecialistID == id {
			return JSON(out, line)
		}
	}
	return JSON(out, RosterLine{SpecialistID: id}) // declared in the file, and on
}

// RosterLines returns the specialists of a roster, each once.
func RosterLines(r *session.Roster) []*RosterLine {
	var list []*RosterLine
	index := map[string]*RosterLine{}
	get := func(id string) *RosterLine {
		if index[id] == nil {
			index[id] = &RosterLine{SpecialistID: id}
			list = append(list, index[id])
		}
		return index[id]
	}
	for i := range r.Specialists {
		e := get(r.Specialists[i].SpecialistID)
		e.Role, e.Registered = r.Specialists[i].Role, true
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

// Roster prints the specialists of a machine.
func (st Style) Roster(out io.Writer, r *session.Roster) error {
	return list(st, out, RosterLines(r), "Nobody is registered, switched off or champion.", []string{"SPECIALIST", "ROLE", "ORIGIN", "SWITCHED", "CHAMPION OF"}, func(e *RosterLine) []string {
		return []string{e.SpecialistID, string(e.Role), Either(e.Registered, "registered", "machine file"), Either(e.Disabled, "off", "on"), championOf(e.ChampionOf)}
	})
}

// championOf names the states in which a specialist is champion.
func championOf(states []string) string {
	for i, s := range states {
		if s == "" {
			states[i] = "(every state)"
		}
	}
	return strings.Join(states, ", ")
}
