package command

import (
	"fmt"
	"os"
	"os/user"

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
