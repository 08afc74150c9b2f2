package command

import (
	"fmt"
	"os"
	"os/user"
	"slices"

	"github.com/dialai/dialai/session"
)

// LocalActor returns who works at this terminal, for the record of what they do.
func LocalActor() *session.Actor {
	a := session.LocalActor(OsUser())
	return &a
}

// OsUser returns who runs this program.
func OsUser() string {
	u, err := user.Current()
	if err != nil || u.Username == "" {
		return fmt.Sprintf("user %d", os.Getuid())
	}
	return u.Username
}

// HumanOf returns a human who is declared for the session's state and not disabled by the
// machine file itself, "" if there is none.
func HumanOf(s *session.Session) string {
	for _, x := range slices.Concat(s.State.Roster, s.Machine().Specialists()) {
		if x.IsHuman && !x.Off() {
			return x.SpecialistID
		}
	}
	return ""
}
