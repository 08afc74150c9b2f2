package render_test

import (
	"testing"

	"github.com/dialai/dialai/cli/internal/render"
)

// TestStoreName: of a store's address everything is shown but a password, wherever it stands.
func TestStoreName(t *testing.T) {
	for name, want := range map[string]string{
		"":                                   "",
		"./a@b:c.db":                         "./a@b:c.db",
		"postgres://me@h/db":                 "postgres://me@h/db",
		"postgres://me:s3cret@h/db?schema=x": "postgres://me@h/db?schema=x",
		"postgresql://h:5432/db?user=me&password=s3cret": "postgresql://h:5432/db?user=me",
		"postgres://h/db?sslPassword=s3cret":             "postgres://h/db",
		"postgres://me:s3cret@h1:1,h2:2/db":              "postgres://me@h1:1,h2:2/db",
		"postgres://me:s3%zzcret@h/db":                   "postgres://…",
	} {
		if got := render.StoreName(name); got != want {
			t.Errorf("%s is shown as %s, want %s", name, got, want)
		}
	}
}
