package exact_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/dialai/dialai/exact"
)

// FuzzCompact and FuzzTidy: whatever is accepted is valid JSON, is UTF-8, has no
// blanks, comes out the same a second time, and nothing that encoding/json
// refuses is accepted. The seeds are in testdata/fuzz.

func FuzzCompact(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		out, err := exact.Compact(data)
		if err != nil {
			return
		}
		checkRewritten(t, data, out, exact.Compact)
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
		out, err := exact.Tidy(data)
		if err != nil {
			return
		}
		checkRewritten(t, data, out, exact.Tidy)
		canonical, err := exact.Compact(data)
		if err != nil {
			return // a number outside float64
		}
		if again, err := exact.Compact(out); err != nil || !bytes.Equal(again, canonical) {
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

// FuzzParseMoney: an amount that was read is printed exactly and read again.
func FuzzParseMoney(f *testing.F) {
	f.Fuzz(func(t *testing.T, s string) {
		m, err := exact.ParseMoney(s)
		if err != nil {
			return
		}
		if again, err := exact.ParseMoney(m.String()); err != nil || again != m {
			t.Fatalf("ParseMoney(%q) = %d, which prints as %q and reads as %d (%v)", s, int64(m), m, int64(again), err)
		}
	})
}
