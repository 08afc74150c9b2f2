package cli

import (
	"fmt"
	"os"
	"os/user"

	"github.com/dialai/dialai/session"
)

// localActor returns who works at this terminal, for the record of what they do.
func localActor() *session.Actor {
	a := session.LocalActor(osUser())
	return &a
}

// osUser returns who runs this program.
func osUser() string {
	u, err := user.Current()
	if err != nil || u.Username == "" {
		return fmt.Sprintf("user %d", os.Getuid())
	}
	return u.Username
}
