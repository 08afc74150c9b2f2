package jsontext_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/jsontext"
)

// TestCanonical holds Canonical to the examples of RFC 8785 and to its edges.
func TestCanonical(t *testing.T) {
	for in, want := range map[string]string{
		// Section 3.2.2.
		`{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}`: `{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
		// Section 3.2.3: names are sorted by UTF-16 code units, not by code points or bytes.
		`{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`: `{"\r":"Carriage Return","1":"One","` + "\u0080" + `":"Control","ö":"Latin Small Letter O With Diaeresis","€":"Euro Sign","😀":"Emoji: Grinning Face","` + "\ufb33" + `":"Hebrew Letter Dalet With Dagesh"}`,
		// Appendix B.
		`[0,-0,5e-324,-5e-324,1.7976931348623157e308,9007199254740992,295147905179352830000,9.999999999999997e22,1e23,1.0000000000000001e23,999999999999999700000,999999999999999900000,1e21,0.000001,1e-7,333333333.33333325]`: `[0,0,5e-324,-5e-324,1.7976931348623157e+308,9007199254740992,295147905179352830000,9.999999999999997e+22,1e+23,1.0000000000000001e+23,999999999999999700000,999999999999999900000,1e+21,0.000001,1e-7,333333333.33333325]`,
		` { "b" : [ ] , "a" : { } } `: `{"a":{},"b":[]}`,
		`{"a":1e400}`:                 `{"a":1e400}`,
		"\"\x7f\"":                    "\"\x7f\"",
	} {
		got, err := jsontext.Canonical([]byte(in))
		if err != nil || string(got) != want {
			t.Errorf("%s is\n%s (%v), want\n%s", in, got, err, want)
		}
	}
	for _, bad := range []string{``, `{"a":1,"a":1}`, `{"a":1,"b":2,"\u0061":3}`, `1 2`, `{`, `[1`, "\"\xff\"", strings.Repeat("[", 65) + strings.Repeat("]", 65)} {
		if got, err := jsontext.Canonical([]byte(bad)); err == nil {
			t.Errorf("%q is accepted as %s", bad, got)
		}
	}
}

// FuzzCanonical: the form is a fixed point, valid JSON, and that of the same value
// written in another order and with blanks.
func FuzzCanonical(f *testing.F) {
	f.Add([]byte(`{"b":[1.0,{"z":1,"a":2}],"a":"\u20ac"}`))
	f.Add([]byte(`[1e400,-0.0,"\ud800"]`))
	f.Fuzz(func(t *testing.T, in []byte) {
		once, err := jsontext.Canonical(in)
		if err != nil {
			return
		}
		twice, err := jsontext.Canonical(once)
		if err != nil || !bytes.Equal(once, twice) || !json.Valid(once) {
			t.Fatalf("%q is %q, which is %q (%v)", in, once, twice, err)
		}
		var blank bytes.Buffer
		if err := json.Indent(&blank, in, " ", "\t"); err != nil {
			t.Fatal(err)
		}
		if spaced, err := jsontext.Canonical(blank.Bytes()); err != nil || !bytes.Equal(once, spaced) {
			t.Fatalf("%q with blanks is %q (%v), without %q", in, spaced, err, once)
		}
	})
}
