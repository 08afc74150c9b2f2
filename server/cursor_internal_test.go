package server

import (
	"strings"
	"testing"
)

// FuzzCursor: the id of an event that is read is that of one place of one stream of one store, and
// what is no id is not read, whatever it is.
func FuzzCursor(f *testing.F) {
	of, other := originOf("00112233445566778899aabbccddeeff", "events"), originOf("00112233445566778899aabbccddeeff", "inbox")
	for _, c := range []cursor{{}, {place{1, 2}, 3}, {place{1 << 40, 0}, -7}} {
		f.Add(c.text(of))
		f.Add(c.text(other))
	}
	f.Add("")
	f.Add("0")
	f.Add(strings.Repeat("A", 100))
	f.Fuzz(func(t *testing.T, text string) {
		c, fits, ok := readCursor(text, of)
		if !ok {
			return
		}
		if c.log < 0 || c.roster < 0 {
			t.Fatalf("%q is before the beginning: %+v", text, c)
		}
		if _, _, also := readCursor(text, other); also {
			t.Fatalf("%q is of two streams", text)
		}
		if again, _, ok := readCursor(c.text(of), of); !ok || again != c {
			t.Fatalf("%q is %+v, and again %+v", text, c, again)
		}
		if fits && c.text(of) != text && len(text) <= len(c.text(of)) {
			t.Fatalf("%q and %q are one place", text, c.text(of))
		}
	})
}
