package text

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/jsontext"
)

func TestHashEqual(t *testing.T) {
	for _, group := range [][]string{
		{`{"a":1,"b":{"c":2,"d":3}}`, `{"b":{"d":3,"c":2},"a":1}`, " { \"b\" : {\"d\":3e0,\"c\":2.0} ,\n\"\\u0061\":10e-1}"},
		{`1`, `1.0`, `1e0`, `10e-1`, `0.1e1`, `100000000000000000000e-20`},
		{`0`, `-0`, `0.000`, `0e99999`, `-0.0e-5`},
		{`"é\n"`, `"\u00e9\u000A"`},
		{`"😀"`, `"\ud83d\ude00"`},
		{`"\u0000"`}, {`"\u0000\u0000"`}, {`{"":1}`}, {`{"\u0000":1}`},
		{`[]`, ` [ ] `}, {`{}`}, {`[[]]`}, {`[1,2]`}, {`[2,1]`}, {`[12]`}, {`null`}, {`""`}, {`"null"`}, {`true`}, {`false`},
		{`-1`}, {`"1"`}, {`9007199254740993`}, {`9007199254740992`}, {`0.1`}, {`0.01`}, {`10`},
		{`{"a":{"b":1}}`}, {`{"b":{"a":1}}`}, {`{"a":"b"}`}, {`{"b":"a"}`}, {`{"a":null}`}, {`{"a":[null]}`}, {`{"a":1,"b":2}`}, {`{"a":2,"b":1}`},
	} {
		for _, s := range group {
			h := hashOf(t, s)
			for _, other := range group {
				if hashOf(t, other) != h {
					t.Errorf("%s and %s differ", s, other)
				}
			}
			seenHashes[h] = append(seenHashes[h], group[0])
		}
	}
	for _, names := range seenHashes {
		for _, n := range names {
			if n != names[0] {
				t.Errorf("%s and %s are taken for one", n, names[0])
			}
		}
	}
}

var seenHashes = map[uint64][]string{}

func hashOf(t *testing.T, s string) uint64 {
	t.Helper()
	var h JSONHasher
	v, err := h.Hash([]byte(s))
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return v
}

func TestHashErrors(t *testing.T) {
	deep := strings.Repeat("[", 66) + strings.Repeat("]", 66)
	for s, want := range map[string]error{
		``: errSyntax, `{`: errSyntax, `[1,]`: errSyntax, `{"a":1,}`: errSyntax, `{a:1}`: errSyntax, `01`: errSyntax, `1.`: errSyntax, `.5`: errSyntax, `1e`: errSyntax,
		`+1`: errSyntax, `-`: errSyntax, `tru`: errSyntax, `"a`: errSyntax, "\"\n\"": errSyntax, `"\x"`: errSyntax, `"\u12"`: errSyntax, `"a\`: errSyntax, `NaN`: errSyntax, `[1 2]`: errSyntax, `{"a" 1}`: errSyntax,
		`1 2`: errTrailing, `{"a":1,"\u0061":2}`: errDuplicate, `1e100001`: errNumber, `1e99999999999999999999`: errNumber, deep: errNesting,
		`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1,"l":1,"m":1,"n":1,"c":2}`: errDuplicate,
	} {
		var h JSONHasher
		if _, err := h.Hash([]byte(s)); !errors.Is(err, want) {
			t.Errorf("%.60q: %v, want %v", s, err, want)
		}
		if err := h.Check([]byte(s)); !errors.Is(err, want) {
			t.Errorf("%.60q, only checked: %v, want %v", s, err, want)
		}
	}
}

// meaning writes a value so that equal values are written alike: the plain
// definition of what hash compares.
func meaning(v any) string {
	switch v := v.(type) {
	case map[string]any:
		m := map[string]string{}
		for k, e := range v {
			m[k] = meaning(e)
		}
		b, _ := json.Marshal(m)
		return "{" + string(b)
	case []any:
		s := make([]string, len(v))
		for i := range v {
			s[i] = meaning(v[i])
		}
		b, _ := json.Marshal(s)
		return "[" + string(b)
	case json.Number:
		r, _ := new(big.Rat).SetString(v.String())
		return "#" + r.String()
	case string:
		return "$" + v
	}
	return fmt.Sprint(v)
}

// FuzzHash compares jsonHasher with encoding/json: it accepts the same values,
// and equal hashes mean equal values. What only checks a value finds what hash
// finds, and two values are the same exactly if they mean the same.
func FuzzHash(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.50,"x\u00e9",{"b":null}],"c":true}`, `[1e5,-0.0]`, `"\ud800"`, "\"\xff\"", `{"a":1,"a":2}`} {
		f.Add([]byte(s), []byte(s))
	}
	known := map[uint64]string{}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		for _, data := range [][]byte{a, b} {
			var h JSONHasher
			got, err := h.Hash(data)
			if only := h.Check(data); !errors.Is(only, err) {
				t.Fatalf("%q: %v, only checked %v", data, err, only)
			}
			if valid := json.Valid(data); err == nil && !valid || errors.Is(err, errSyntax) && valid { // the first of several faults is reported
				t.Fatalf("%q: %v, encoding/json says %v", data, err, valid)
			}
			if err != nil || bytes.ContainsAny(data, "eE") {
				continue // exponents make numbers that take too long to write out
			}
			if again, err := jsontext.Tidy(data); err == nil {
				if other, err := h.Hash(again); err != nil || other != got {
					t.Fatalf("%q and %q differ", data, again)
				}
			}
			dec := json.NewDecoder(bytes.NewReader(data))
			dec.UseNumber()
			var v any
			if err := dec.Decode(&v); err != nil {
				t.Fatal(err)
			}
			if m, seen := known[got]; seen && m != meaning(v) {
				t.Fatalf("%s and %s have one hash", m, meaning(v))
			}
			known[got] = meaning(v)
		}
		var h JSONHasher
		x, errA := h.Hash(a)
		y, errB := h.Hash(b)
		if errA == nil && errB == nil && SameJSON(a, b, false) && x != y {
			t.Fatalf("%q and %q: the hashes say something else than the values", a, b)
		}
	})
}

// TestHashOrder shuffles the members of random objects.
func TestHashOrder(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 4))
	for range 300 {
		members := make([]string, 1+r.IntN(30))
		for i := range members {
			members[i] = fmt.Sprintf(`"k%d":%d`, i, r.IntN(3))
		}
		one := hashOf(t, "{"+strings.Join(members, ",")+"}")
		r.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		if other := hashOf(t, "{"+strings.Join(members, ", ")+"}"); other != one {
			t.Fatalf("the order of %v counts", members)
		}
	}
}

func BenchmarkHash(b *testing.B) {
	data := []byte(sampleArgs(330))
	var h JSONHasher
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.Hash(data); err != nil {
			b.Fatal(err)
		}
	}
}

// sampleArgs returns about n bytes of arguments as tools get them.
func sampleArgs(n int) string {
	text := sampleText(n - 130)
	out, _ := json.Marshal(map[string]any{"path": "internal/server/handler_test.go", "offset": 120, "limit": 80, "recursive": false, "tags": []string{"go", "test"}, "query": text})
	return string(out)
}
