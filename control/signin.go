package control

import (
	"fmt"
	"maps"

	"github.com/dialai/dialai/specialist"
)

// A SignIn is one at a page, or a ticket for one. It is found by a hash of the secret that whoever
// has it sends, and who that is is sealed with the secret: who reads the store can use none, and
// learns of nobody.
type SignIn struct {
	ID        Hash
	Sealed    string
	SeenAt    specialist.Time // when it was used last, about
	ExpiresAt specialist.Time // it is forgotten from then on
}

// signIns are those of a Memory.
type signIns map[Hash]SignIn

// refuse returns why changes of sign-ins cannot be made.
func (s signIns) refuse(c *Changes) error {
	if c.SignOut != nil {
		if _, known := s[*c.SignOut]; !known {
			return fmt.Errorf("sign-in: %w", ErrNotFound)
		}
	}
	if c.SignIn != nil {
		if _, known := s[c.SignIn.ID]; known {
			return fmt.Errorf("sign-in: %w", ErrExists)
		}
	}
	return nil
}

// change makes changes that are not refused.
func (s signIns) change(c *Changes) {
	if c.SignOut != nil {
		delete(s, *c.SignOut)
	}
	if n := c.SignIn; n != nil {
		maps.DeleteFunc(s, func(_ Hash, old SignIn) bool { return old.ExpiresAt <= n.SeenAt })
		s[n.ID] = *n
	}
	if c.Seen != nil {
		if at, known := s[c.Seen.ID]; known {
			at.SeenAt = max(at.SeenAt, c.Seen.At)
			s[c.Seen.ID] = at
		}
	}
}
