package jsontext_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/jsontext"
)

// TestAppendFloat holds numbers to the form of ECMAScript, which RFC 8785 asks
// for; the bits are those whose forms are known to go wrong.
const seed = 20260102

func TestAppendFloat(t *testing.T) {
	for _, c := range []struct {
		bits uint64
		want string
	}{
		{0x0000000000000000, "0"}, {0x8000000000000000, "0"}, // -0
		{0x0000000000000001, "5e-324"}, {0x8000000000000001, "-5e-324"},
		{0x7fefffffffffffff, "1.7976931348623157e+308"}, {0xffefffffffffffff, "-1.7976931348623157e+308"},
		{0x4340000000000000, "9007199254740992"}, {0xc340000000000000, "-9007199254740992"},
		{0x4430000000000000, "295147905179352830000"}, {0x44b52d02c7e14af5, "9.999999999999997e+22"},
		{0x44b52d02c7e14af6, "1e+23"}, {0x44b52d02c7e14af7, "1.0000000000000001e+23"},
		{0x444b1ae4d6e2ef4e, "999999999999999700000"}, {0x444b1ae4d6e2ef4f, "999999999999999900000"}, {0x444b1ae4d6e2ef50, "1e+21"},
		{0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"}, {0x3eb0c6f7a0b5ed8d, "0.000001"},
		{0x41b3de4355555553, "333333333.3333332"}, {0x41b3de4355555554, "333333333.33333325"}, {0x41b3de4355555555, "333333333.3333333"},
		{0x41b3de4355555556, "333333333.3333334"}, {0x41b3de4355555557, "333333333.33333343"},
		{0xbecbf647612f3696, "-0.0000033333333333333333"}, {0x43143ff3c1cb0959, "1424953923781206.2"},
	} {
		f := math.Float64frombits(c.bits)
		if got := jsontext.FormatFloat(f); got != c.want {
			t.Errorf("%016x: %q, want %q", c.bits, got, c.want)
		}
		if got := string(jsontext.AppendFloat([]byte("1e-0"), f)); got != "1e-0"+c.want {
			t.Errorf("%016x: appended %q", c.bits, got)
		}
	}
	for _, c := range []struct {
		f    float64
		want string
	}{
		{1, "1"}, {-1, "-1"}, {0.5, "0.5"}, {0.1, "0.1"}, {1e-6, "0.000001"}, {1e-7, "1e-7"}, {1.5e-9, "1.5e-9"}, {1e-10, "1e-10"}, {1e20, "100000000000000000000"},
		{1e21, "1e+21"}, {1e100, "1e+100"}, {1e-100, "1e-100"}, {4.5, "4.5"}, {2e-3, "0.002"}, {333333333.33333329, "333333333.3333333"}, {1e30, "1e+30"}, {-1e-7, "-1e-7"},
	} {
		if got := jsontext.FormatFloat(c.f); got != c.want {
			t.Errorf("%v: %q, want %q", c.f, got, c.want)
		}
	}
}

func TestAppendFloatReadsBackTheSame(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 8))
	for range 100_000 {
		f := math.Float64frombits(rng.Uint64())
		if math.IsNaN(f) || math.IsInf(f, 0) {
			continue
		}
		text := jsontext.FormatFloat(f)
		if got, err := strconv.ParseFloat(text, 64); err != nil || got != f || !json.Valid([]byte(text)) {
			t.Fatalf("seed %d: %x became %s and then %v (%v)", seed, math.Float64bits(f), text, got, err)
		}
		// encoding/json has the same form but for the sign of the exponent.
		std, _ := json.Marshal(f)
		if same := strings.Replace(string(std), "e+", "e", 1); strings.Replace(text, "e+", "e", 1) != same && f != 0 {
			t.Fatalf("seed %d: %s, encoding/json writes %s", seed, text, std)
		}
	}
}

func TestAppendFloatRefusesWhatIsNoNumber(t *testing.T) {
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("AppendFloat(%v) did not panic", f)
				}
			}()
			jsontext.AppendFloat(nil, f)
		}()
	}
}

func TestAppendString(t *testing.T) {
	for _, c := range []struct{ s, want string }{
		{"", `""`}, {"plain", `"plain"`}, {`a"b\c/d`, `"a\"b\\c/d"`}, {"\b\t\n\f\r", `"\b\t\n\f\r"`},
		{"\x00\x01\x1f\x7f", "\"\\u0000\\u0001\\u001f\x7f\""}, {"<&>", `"<&>"`}, {"\u2028\u2029", "\"\u2028\u2029\""},
		{"é€😀\u0080", "\"é€😀\u0080\""}, {"a\xffb", "\"a\uFFFDb\""}, {"\xed\xa0\x80", "\"\uFFFD\uFFFD\uFFFD\""}, {"\uFFFD", "\"\uFFFD\""}, {"é\xc3", "\"é\uFFFD\""},
	} {
		if got := string(jsontext.AppendString([]byte("x"), c.s)); got != "x"+c.want {
			t.Errorf("AppendString(%q) = %s, want %s", c.s, got, c.want)
		}
	}
}

// randomString mixes letters, what must be escaped, long code points and bytes
// that are no UTF-8.
func randomString(rng *rand.Rand) string {
	pieces := []string{"a", "é", "😀", "\u2028", "\"", "\\", "\n", "\x00", "\x1f", "\x7f", "\xff", "\xc3", "\xed\xa0\x80", "/", "<", "long plain text"}
	var b strings.Builder
	for range rng.IntN(12) {
		b.WriteString(pieces[rng.IntN(len(pieces))])
	}
	return b.String()
}

func TestAppendStringMeansWhatEncodingJSONMeans(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 9))
	for range 50_000 {
		s := randomString(rng)
		std, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var want, got string
		if err := json.Unmarshal(std, &want); err != nil {
			t.Fatal(err)
		}
		ours := jsontext.AppendString(nil, s)
		if err := json.Unmarshal(ours, &got); err != nil || got != want {
			t.Fatalf("seed %d: %q became %s, which reads %q, want %q (%v)", seed, s, ours, got, want, err)
		}
	}
}

func TestCompactAndTidy(t *testing.T) {
	for _, c := range []struct{ in, compact, tidy string }{
		{" { \"b\" : [ 1 , 2.50 , -0 ] , \"a\" : null } ", `{"b":[1,2.5,0],"a":null}`, `{"b":[1,2.50,-0],"a":null}`},
		{`{"10":true,"9":false}`, `{"10":true,"9":false}`, `{"10":true,"9":false}`},
		{`"\u00e9\/\ud83d\ude00\u003c"`, `"é/😀<"`, `"é/😀<"`},
		{`"\ud800\udc00\udbff\udfff\ufffd"`, "\"\U00010000\U0010ffff\ufffd\"", "\"\U00010000\U0010ffff\ufffd\""},
		{`[1E2,1e-7,100000000000000000000000,0.1e1]`, `[100,1e-7,1e+23,1]`, `[1E2,1e-7,100000000000000000000000,0.1e1]`},
		{`[]`, `[]`, `[]`}, {`{}`, `{}`, `{}`}, {`[[],{}]`, `[[],{}]`, `[[],{}]`}, {"\n\t1\r\n", `1`, `1`}, {`{"":""}`, `{"":""}`, `{"":""}`},
		{`12345678901234567890`, `12345678901234567000`, `12345678901234567890`},
	} {
		if got, err := jsontext.Compact([]byte(c.in)); string(got) != c.compact || err != nil {
			t.Errorf("Compact(%s) = %s, %v, want %s", c.in, got, err, c.compact)
		}
		if got, err := jsontext.Tidy([]byte(c.in)); string(got) != c.tidy || err != nil {
			t.Errorf("Tidy(%s) = %s, %v, want %s", c.in, got, err, c.tidy)
		}
	}
}

func TestCompactAndTidyRefuse(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, in := range []string{
		``, ` `, `{`, `[`, `[1`, `[1,`, `[1,]`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,}`, `{a:1}`, `[1 2]`, `{"a" 1}`, `]`, `}`, `,`, `:`,
		`1 2`, `{} {}`, `[] x`, `[]]`, `nul`, `truex`, `01`, `+1`, `.5`, `'a'`, "\"\n\"", `"\x"`, `NaN`, `[1,,2]`, `{"a":1,"b"}`, `[}`, `{]`,
		`{"a":1,"a":2}`, `{"x":{"a":1,"b":2,"a":1}}`, `{"a":1,"\u0061":2}`, `[{"k":1,"k":1}]`,
		deep(jsontext.MaxDepth + 1), strings.Repeat(`{"a":`, jsontext.MaxDepth+1) + "1" + strings.Repeat("}", jsontext.MaxDepth+1), strings.Repeat("[", 100_000),
		`"\ud800"`, `"\udc00"`, `["\ud83d\u0041"]`, `["\ud83d\ud83d\ude00"]`, `{"\udfff":1}`, `["�\\\ud800"]`,
		"\"\xff\"", "{\"\xc3\":1}", "\xef\xbb\xbf{}", "\xff\xfe{\x00}\x00",
	} {
		if got, err := jsontext.Compact([]byte(in)); err == nil {
			t.Errorf("Compact(%.60q) = %.60s", in, got)
		}
		if got, err := jsontext.Tidy([]byte(in)); err == nil {
			t.Errorf("Tidy(%.60q) = %.60s", in, got)
		}
	}
	for _, in := range []string{deep(jsontext.MaxDepth), `[{"a":1},{"a":2}]`, `{"a":{"a":1}}`} {
		if _, err := jsontext.Compact([]byte(in)); err != nil {
			t.Errorf("Compact(%.60q): %v", in, err)
		}
	}
	for in, want := range map[string]string{
		`{"é":"x\ud800"}`:                          `\ud800, character 8 of it, is half of a surrogate pair and stands for no character`,
		`["\ud83d\ude00","�\\ud800",{"\uDFFF":1}]`: `\uDFFF, character 30 of it, is half of a surrogate pair and stands for no character`,
	} {
		if _, err := jsontext.Tidy([]byte(in)); err == nil || err.Error() != want {
			t.Errorf("Tidy(%s): %v, want %s", in, err, want)
		}
	}
	if got, err := jsontext.Tidy([]byte(`"�\\ud800"`)); err != nil || string(got) != `"�\\ud800"` {
		t.Errorf("an escaped backslash before ud800 became %s, %v", got, err)
	}
	if _, err := jsontext.Compact([]byte(`[1e400]`)); !errors.Is(err, exact.ErrRange) {
		t.Errorf("Compact of a number outside float64: %v, want ErrRange", err)
	}
	if got, err := jsontext.Tidy([]byte(`[1e400]`)); err != nil || string(got) != `[1e400]` {
		t.Errorf("Tidy of a number outside float64 = %s, %v", got, err)
	}
}

// randomValue returns a JSON value as encoding/json reads it.
func randomValue(rng *rand.Rand, depth int) any {
	switch n := rng.IntN(7); {
	case n == 0:
		return nil
	case n == 1:
		return rng.IntN(2) == 0
	case n == 2:
		return rng.NormFloat64() * math.Pow(10, float64(rng.IntN(60)-30))
	case n < 5 || depth == 0:
		return strings.ToValidUTF8(randomString(rng), "?")
	case n == 5:
		list := make([]any, rng.IntN(4))
		for i := range list {
			list[i] = randomValue(rng, depth-1)
		}
		return list
	}
	members := map[string]any{}
	for range rng.IntN(4) {
		members[strings.ToValidUTF8(randomString(rng), "?")] = randomValue(rng, depth-1)
	}
	return members
}

// TestCompactKeepsTheValue: canonical text means what the text meant, is a fixed
// point, and is the same however the value was laid out.
func TestCompactKeepsTheValue(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 10))
	for range 5_000 {
		want := randomValue(rng, 4)
		plain, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var indented bytes.Buffer
		if err := json.Indent(&indented, plain, "", "\t"); err != nil {
			t.Fatal(err)
		}
		canonical, err := jsontext.Compact(plain)
		var got any
		if err == nil {
			err = json.Unmarshal(canonical, &got)
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: %s became %s (%v)", seed, plain, canonical, err)
		}
		for _, again := range [][]byte{canonical, indented.Bytes()} {
			if second, err := jsontext.Compact(again); err != nil || !bytes.Equal(second, canonical) {
				t.Fatalf("seed %d: Compact(%s) = %s, %v, want %s", seed, again, second, err, canonical)
			}
		}
	}
}
