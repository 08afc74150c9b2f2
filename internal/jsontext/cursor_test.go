package jsontext_test

import (
	"encoding/json"
	"testing"

	"github.com/dialai/dialai/internal/jsontext"
)

// FuzzSkip checks that every JSON value is passed over in one piece, and that no
// bytes whatever make the cursor panic.
func FuzzSkip(f *testing.F) {
	for _, s := range []string{`{"a":[1,"x\"]}",{"b":null}]}`, `"\\"`, `[[[]]]`, `-1.5e3`, `"unfinished`, `{`, ``, `"\\\""`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if json.Valid(b) && !jsontext.Skip(b) {
			t.Errorf("%q is not passed over", b)
		}
	})
}
