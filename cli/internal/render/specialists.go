package render

import (
	"io"
	"strings"

	"github.com/dialai/dialai/api"
)

// Roster prints the specialists of a machine.
func (st Style) Roster(out io.Writer, specialists []*api.Specialist) error {
	return list(st, out, specialists, "Nobody is registered, switched off or champion.", []string{"SPECIALIST", "ROLE", "ORIGIN", "SWITCHED", "CHAMPION OF"}, func(e *api.Specialist) []string {
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
