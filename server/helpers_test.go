package server_test

import (
	"testing"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

func mustID(t *testing.T, text string) specialist.SessionID {
	t.Helper()
	id, err := session.ParseID(text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
