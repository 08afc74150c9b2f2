package jsontext_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/dialai/dialai/internal/jsontext"
)

// FuzzCompact and FuzzTidy: whatever is accepted is valid JSON, is UTF-8, has no
// blanks, comes out the same a second time, and nothing that encoding/json
// refuses is accepted. The seeds are in testdata/fuzz.

func FuzzCompact(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		out, err := jsontext.Compact(data)
		if err != nil {
			return
		}
		checkRewritten(t, data, out, jsontext.Compact)
		var before, after any
		if json.Unmarshal(data, &before) != nil || json.Unmarshal(out, &after) != nil {
			t.Fatalf("Compact(%q) = %q: one of the two cannot be read", data, out)
		}
		if !reflect.DeepEqual(before, after) { // -0 is 0
			t.Fatalf("Compact(%q) = %q changed the value from %v to %v", data, out, before, after)
		}
	})
}

func FuzzTidy(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		out, err := jsontext.Tidy(data)
		if err != nil {
			return
		}
		checkRewritten(t, data, out, jsontext.Tidy)
		canonical, err := jsontext.Compact(data)
		if err != nil {
			return // a number outside float64
		}
		if again, err := jsontext.Compact(out); err != nil || !bytes.Equal(again, canonical) {
			t.Fatalf("Compact(Tidy(%q)) = %q, %v, want %q", data, again, err, canonical)
		}
	})
}

func checkRewritten(t *testing.T, data, out []byte, rewrite func([]byte) ([]byte, error)) {
	if !json.Valid(data) || !json.Valid(out) || !utf8.Valid(out) {
		t.Fatalf("%q was accepted and became %q", data, out)
	}
	var dense bytes.Buffer
	if err := json.Compact(&dense, out); err != nil || !bytes.Equal(dense.Bytes(), out) {
		t.Fatalf("%q became %q, which has blanks", data, out)
	}
	if again, err := rewrite(out); err != nil || !bytes.Equal(again, out) {
		t.Fatalf("%q became %q, and that %q (%v)", data, out, again, err)
	}
}
