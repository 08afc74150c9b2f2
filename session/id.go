package session

import (
	"github.com/dialai/dialai/specialist"
	"github.com/google/uuid"
)

// ParseID reads a session id.
func ParseID(s string) (specialist.SessionID, error) {
	id, err := uuid.Parse(s)
	if err != nil || len(s) != 36 {
		return specialist.SessionID{}, &NotFoundError{"Session", s}
	}
	return specialist.SessionID(id), nil
}
