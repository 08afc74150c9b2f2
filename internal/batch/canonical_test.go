package batch_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/batch"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// turn makes calls of texts like `name {"args":1}`.
func turn(calls ...string) (list []specialist.ToolCall) {
	for i, c := range calls {
		name, args, _ := strings.Cut(c, " ")
		list = append(list, specialist.ToolCall{Name: name, Args: json.RawMessage(args), ID: fmt.Sprint(i)})
	}
	return list
}

func TestBatchIdentity(t *testing.T) {
	long := strings.Repeat("x", 159)
	for _, c := range []struct {
		name string
		a, b []specialist.ToolCall
		same bool
	}{
		{"ids", turn(`f {"a":1}`), []specialist.ToolCall{{Name: "f", Args: json.RawMessage(`{"a":1}`), ID: "other"}}, true},
		{"order of calls", turn(`f 1`, `g 2`), turn(`g 2`, `f 1`), true},
		{"how often", turn(`f 1`), turn(`f 1`, `f 1`), false},
		{"names", turn(`f 1`), turn(`g 1`), false},
		{"letter case of names", turn(`f 1`), turn(`F 1`), false},
		{"who got which arguments", turn(`f 1`, `g 2`), turn(`f 2`, `g 1`), false},
		{"calls without a name", turn(`f 1`, ` 2`), turn(`f 1`), true},
		{"absent and null", turn(`f`), turn(`f null`), true},
		{"null and empty", turn(`f null`), turn(`f {}`), false},
		{"order of members", turn(`f {"a":1,"b":{"c":2,"d":3}}`), turn(`f { "b" : {"d":3,"c":2}, "a":1 }`), true},
		{"order of members in lists", turn(`f [{"a":1,"b":2}]`), turn(`f [{"b":2,"a":1}]`), true},
		{"order of lists", turn(`f [1,2]`), turn(`f [2,1]`), false},
		{"null member and none", turn(`f {"a":null}`), turn(`f {}`), false},
		{"volatile: id", turn(`f {"id":1}`), turn(`f {"id":2}`), true},
		{"volatile: requestId", turn(`f {"requestId":1}`), turn(`f {"REQUESTID":"x"}`), true},
		{"volatile: traceId", turn(`f {"traceId":1}`), turn(`f {}`), true},
		{"volatile: timestamp", turn(`f {"Timestamp":1}`), turn(`f {}`), true},
		{"volatile: time", turn(`f {"time":{"a":[1]}}`), turn(`f {}`), true},
		{"volatile: nonce", turn(`f {"nonce":1}`), turn(`f {}`), true},
		{"volatile inside", turn(`f {"a":[{"b":{"iD":1}}]}`), turn(`f {"a":[{"b":{}}]}`), true},
		{"not volatile: request_id", turn(`f {"request_id":1}`), turn(`f {"request_id":2}`), false},
		{"not volatile: user_id", turn(`f {"user_id":1}`), turn(`f {"user_id":2}`), false},
		{"not volatile: blanks around it", turn(`f {" id":1}`), turn(`f {" id":2}`), false},
		{"not volatile: dotted capital i", turn(`f {"İd":1}`), turn(`f {"İd":2}`), false},
		{"volatile by escape", turn(`f {"\u0069d":1}`), turn(`f {"id":2}`), true},
		{"volatile names as values", turn(`f "id"`), turn(`f "time"`), false},
		{"ends of texts", turn(`f " \t\n a b \r "`), turn(`f "a b"`), true},
		{"ends: byte order mark and line separator", turn(`f "\ufeff\u2028a\u00a0\u3000"`), turn(`f "a"`), true},
		{"ends: next line is kept", turn(`f "a\u0085"`), turn(`f "a"`), false},
		{"ends: zero width space is kept", turn(`f "a\u200b"`), turn(`f "a"`), false},
		{"inner blanks", turn(`f "a b"`), turn(`f "a  b"`), false},
		{"letter case", turn(`f "A"`), turn(`f "a"`), false},
		{"names of members are not trimmed", turn(`f {"a":1}`), turn(`f {"a ":1}`), false},
		{"1 and 1.0", turn(`f 1`), turn(`f 1.0`), true},
		{"1 and 1e0 and 10e-1", turn(`f [1,1]`), turn(`f [1e0,10E-1]`), true},
		{"100 and 1e2", turn(`f 100`), turn(`f 1.00e+2`), true},
		{"5 and 50", turn(`f 5`), turn(`f 50`), false},
		{"5 and 0.5", turn(`f 5`), turn(`f 0.5`), false},
		{"0 and -0", turn(`f [0,0]`), turn(`f [-0,-0.0e9]`), true},
		{"0 with a huge exponent", turn(`f 0`), turn(`f 0e99999999999999999999`), true},
		{"1 and -1", turn(`f 1`), turn(`f -1`), false},
		{"1 and text", turn(`f 1`), turn(`f "1"`), false},
		{"1 and true", turn(`f 1`), turn(`f true`), false},
		{"0.1 and 0.10", turn(`f 0.1`), turn(`f 0.10`), true},
		{"beyond 2^53", turn(`f 9007199254740993`), turn(`f 9007199254740992`), false},
		{"digits and exponent are not glued", turn(`f 12e3`), turn(`f 1e23`), false},
		{"JSON in texts", turn(`f "{\"a\":1.0}"`), turn(`f "{\"a\":1}"`), false},
		{"escapes", turn(`f "\u0041\/\ud83d\ude00\n|"`), turn(`f "A/😀\u000a|"`), true},
		{"halves of pairs", turn(`f "a\ud800b"`), turn(`f "a\ud801b"`), false},
		{"long texts, last character", turn(`f "` + long + `yz"`), turn(`f "` + long + `yy"`), false},
		{"long texts, alike", turn(`f "` + long + `yz"`), turn(`f "  ` + long + `yz"`), true},
		{"a long text and its beginning", turn(`f "` + long + `yz"`), turn(`f "` + long + `"`), false},
		{"a call is not its canonical text", turn(`f "g"`), turn(`f:"g"`), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			loop := batchLoop(t, `{}`)
			a, errA := loop.Batch(c.a)
			b, errB := loop.Batch(c.b)
			if errA != nil || errB != nil {
				t.Fatal(errA, errB)
			}
			if (a.Hash == b.Hash) != c.same || len(a.Hash) != 32 {
				t.Errorf("hashes %s and %s, same should be %v", a.Hash, b.Hash, c.same)
			}
		})
	}
}

func TestBatchTools(t *testing.T) {
	batch, err := batchLoop(t, `{}`).Batch(turn(`g 1`, `f 2`, `g 3`, ` 4`))
	if err != nil || strings.Join(batch.Tools, " ") != "f g" {
		t.Errorf("Batch = %+v, %v", batch, err)
	}
	empty, err := batchLoop(t, `{}`).Batch(turn(` 1`, ``))
	if err != nil || empty.Hash != "" || empty.Tools != nil {
		t.Errorf("Batch of nameless calls = %+v, %v", empty, err)
	}
}

func TestBatchRefusesArguments(t *testing.T) {
	deep := strings.Repeat("[", 64) + strings.Repeat("]", 64)
	loop := batchLoop(t, `{}`)
	if _, err := loop.Batch(turn("f " + deep)); err != nil {
		t.Errorf("64 levels: %v", err)
	}
	for _, args := range []string{`{`, `1 2`, `NaN`, `{"a":1,"a":1}`, `{"a":1,"\u0061":2}`, `{"b":[{"id":1,"id":2}]}`, "[" + deep + "]", `1e9999999999999999`, `1e99999999999999999999`, `-1e-9999999999999999`} {
		s := batch.State{Window: []string{"x"}}
		next, r, err := loop.AfterModel(s, turn("f "+args))
		if !errors.Is(err, verdict.ErrInput) || r.Outcome != "" || len(next.Window) != 1 {
			t.Errorf("%.40s: %+v, %+v, %v", args, next, r, err)
		}
	}
}

func TestBatchStrict(t *testing.T) {
	names := map[string][]string{"poll": {"Cursor"}, "exact": {}}
	loop := batchLoop(t, `{}`).Strict(names)
	names["poll"][0] = "q"
	for _, c := range []struct {
		name string
		a, b string
		same bool
	}{
		{"an only argument is kept", `get {"id":1}`, `get {"id":2}`, false},
		{"one beside others is not", `get {"id":1,"q":"a"}`, `get {"id":2,"q":"a"}`, true},
		{"nothing but volatile ones are kept", `get {"id":1,"time":1}`, `get {"id":2,"time":1}`, false},
		{"objects inside are no arguments", `get {"a":{"id":1}}`, `get {"a":{"id":2}}`, true},
		{"own names", `poll {"cursor":1,"q":"a"}`, `poll {"CURSOR":2,"q":"a"}`, true},
		{"own names replace the built-in ones", `poll {"id":1,"q":"a"}`, `poll {"id":2,"q":"a"}`, false},
		{"the list of names is a copy", `poll {"cursor":1,"q":"a"}`, `poll {"cursor":1,"q":"b"}`, false},
		{"no names", `exact {"id":1,"q":"a"}`, `exact {"id":2,"q":"a"}`, false},
	} {
		a, _ := loop.Batch(turn(c.a))
		b, _ := loop.Batch(turn(c.b))
		if (a.Hash == b.Hash) != c.same {
			t.Errorf("%s: %s and %s, same should be %v", c.name, c.a, c.b, c.same)
		}
	}
}

// shuffled writes v as JSON with the members of objects in random order and random
// blanks.
func shuffled(rng *rand.Rand, v any) string {
	blank := []string{"", " ", "\n\t"}[rng.IntN(3)]
	switch v := v.(type) {
	case map[string]any:
		var parts []string
		for name, member := range v {
			key, _ := json.Marshal(name)
			parts = append(parts, string(key)+blank+":"+shuffled(rng, member))
		}
		rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		return "{" + blank + strings.Join(parts, ","+blank) + "}"
	case []any:
		var parts []string
		for _, item := range v {
			parts = append(parts, shuffled(rng, item))
		}
		return "[" + strings.Join(parts, blank+",") + blank + "]"
	}
	text, _ := json.Marshal(v)
	return blank + string(text)
}

func FuzzBatchCanonical(f *testing.F) {
	for _, seed := range []string{
		`{"b":[1.50,{"id":3,"a":null}],"a":" x "}`, `"\ud83d\ude00 \ud800"`, `-0.001E+05`, `{"ID":1,"q":"` + strings.Repeat("é", 200) + `"}`,
		`{"a":{"timestamp":{}},"z":[[],{}]}`, `1e400`, `{"a":1,"a":2}`, "\"\xff\"", `[`, ``, `"` + strings.Repeat("😀", 90) + `"`, `{"\"":1,"\\":2}`,
	} {
		f.Add([]byte(seed), uint64(1))
	}
	compat := batchLoop(f, `{}`)
	loops := []*batch.Loop{compat, compat.Strict(map[string][]string{"f": {"a"}})}
	f.Fuzz(func(t *testing.T, args []byte, seed uint64) {
		for _, loop := range loops {
			canonical, err := loop.CanonicalArgs("f", args)
			if err != nil {
				continue
			}
			if !json.Valid(canonical) {
				t.Fatalf("%q: the canonical form %q is no JSON", args, canonical)
			}
			again, err := loop.CanonicalArgs("f", canonical)
			if err != nil || !bytes.Equal(again, canonical) {
				t.Fatalf("%q: %q, and then %q, %v", args, canonical, again, err)
			}
			if bytes.Contains(args, []byte(`\u`)) || len(bytes.TrimSpace(args)) == 0 {
				continue // encoding/json loses halves of pairs
			}
			var v any
			dec := json.NewDecoder(bytes.NewReader(args))
			dec.UseNumber()
			if dec.Decode(&v) != nil {
				t.Fatalf("%q is accepted but no JSON", args)
			}
			other := shuffled(rand.New(rand.NewPCG(seed, 0)), v)
			if moved, err := loop.CanonicalArgs("f", []byte(other)); err != nil || !bytes.Equal(moved, canonical) {
				t.Fatalf("seed %d: %q is %q, but %q is %q, %v", seed, args, canonical, other, moved, err)
			}
		}
	})
}
