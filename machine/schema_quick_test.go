package machine

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// slow is Validate by the library alone.
func slow(s *Schema, value []byte) error {
	return (&Schema{source: s.source, resolved: s.resolved}).Validate(value)
}

// TestQuickAgreesWithTheLibrary draws schemas and values at random: what the quick form
// accepts the library does too, and the reverse for values as programs write them.
func TestQuickAgreesWithTheLibrary(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	quick, yes, no := 0, 0, 0
	for range 3000 {
		source := drawnSchema(rng, 3)
		s, err := NewSchema([]byte(source))
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		if s.quick == nil {
			continue
		}
		quick++
		counted := strings.Contains(source, "minProperties") || strings.Contains(source, "maxProperties")
		for range 20 {
			value, usual := drawnValue(rng, 4)
			err := slow(s, []byte(value))
			switch accepted := s.quick.accepts([]byte(value)); {
			case accepted && err != nil:
				t.Fatalf("%s accepts %s: %v", source, value, err)
			case !accepted && err == nil && usual && !counted: // of two members that it does not know it cannot tell how many they are
				t.Fatalf("%s leaves %s to the library", source, value)
			case accepted:
				yes++
			default:
				no++
			}
		}
	}
	if quick < 2000 || yes < 5000 || no < 5000 {
		t.Errorf("of 3000 schemas %d are quick, which accept %d values and refuse %d: the test shows little", quick, yes, no)
	}
}

// drawnSchema returns a schema at random, most of them without words that only the
// library knows.
func drawnSchema(rng *rand.Rand, depth int) string {
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	if rng.IntN(12) == 0 {
		return pick("true", "false", "{}")
	}
	var words []string
	add := func(odds int, format string, args ...any) {
		if rng.IntN(odds) == 0 {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	add(2, `"type":%s`, pick(`"object"`, `"object"`, `"string"`, `"number"`, `"integer"`, `"array"`, `"boolean"`, `"null"`, `["string","null"]`, `["integer","object"]`, `["number","array"]`))
	add(8, `"enum":%s`, pick(`["a","bb"]`, `[1,2.5]`, `[null,true,"é"]`, `[]`, `[0,false]`))
	add(20, `"const":%s`, pick(`"a"`, `2.5`, `null`, `false`))
	add(6, `"minimum":%s`, pick("0", "1", "2.5", "-3"))
	add(6, `"maximum":%s`, pick("1", "2.5", "100"))
	add(12, `"exclusiveMinimum":%s`, pick("0", "2.5"))
	add(12, `"exclusiveMaximum":%s`, pick("1", "2.5"))
	add(6, `"minLength":%d`, rng.IntN(3))
	add(6, `"maxLength":%d`, rng.IntN(4))
	add(10, `"pattern":%s`, pick(`"^a"`, `"b+$"`, `"."`))
	add(8, `"minItems":%d`, rng.IntN(3))
	add(8, `"maxItems":%d`, rng.IntN(3))
	add(10, `"minProperties":%d`, rng.IntN(3))
	add(10, `"maxProperties":%d`, rng.IntN(4))
	add(4, `"required":%s`, pick(`["a"]`, `["a","b"]`, `["zz"]`, `[]`))
	add(9, `"description":"what it is","x-own":{"minimum":5}`)
	add(40, `"uniqueItems":true`)
	if depth > 0 {
		add(3, `"properties":{"a":%s,"b":%s,"é":%s}`, drawnSchema(rng, depth-1), drawnSchema(rng, depth-1), drawnSchema(rng, 0))
		add(6, `"additionalProperties":%s`, drawnSchema(rng, depth-1))
		add(4, `"items":%s`, drawnSchema(rng, depth-1))
		add(40, `"anyOf":[%s,%s]`, drawnSchema(rng, 0), drawnSchema(rng, 0))
	}
	return "{" + strings.Join(words, ",") + "}"
}

// drawnValue returns a JSON text at random, which may be none, and whether it is one as
// programs write it: without escapes, members that are there twice, and numbers that
// take more than 15 digits.
func drawnValue(rng *rand.Rand, depth int) (text string, usual bool) {
	usual = true
	switch rng.IntN(14) {
	case 0, 1:
		return []string{`"a"`, `"bb"`, `"é"`, `"abc"`, `""`, `"日本語"`}[rng.IntN(6)], true
	case 2, 3:
		return []string{"0", "1", "2.5", "-3", "100", "0.1", "-0", "7", "2.50", "1.5"}[rng.IntN(10)], true
	case 4:
		return []string{"true", "false", "null"}[rng.IntN(3)], true
	case 5:
		return []string{`"\u0061"`, `"a\nb"`, `"\ud83d\ude00"`, `"` + "\xff" + `"`, "1e2", "1.0", "12345678901234567890", "1e999", "-", "01", "1.", `"\x"`, "tru", "\"\n\"", "", "{", "[1,]", `{"a":1,}`, `{"a" 1}`, `{,}`}[rng.IntN(20)], false
	case 6, 7, 8:
		parts := []string{}
		for range rng.IntN(4) {
			if depth > 0 {
				v, ok := drawnValue(rng, depth-1)
				parts, usual = append(parts, v), usual && ok
			}
		}
		return "[" + strings.Join(parts, " , ") + "]", usual
	}
	var parts []string
	seen := map[string]bool{}
	for range rng.IntN(4) {
		if depth == 0 {
			break
		}
		name := []string{`"a"`, `"b"`, `"zz"`, `"c"`, `"é"`, `"a\u0062"`}[rng.IntN(6)]
		v, ok := drawnValue(rng, depth-1)
		usual = usual && ok && !seen[name] && name != `"a\u0062"` && name != `"é"`
		seen[name] = true
		parts = append(parts, name+": "+v)
	}
	return "{" + strings.Join(parts, ", ") + "}", usual && !(seen[`"zz"`] || seen[`"c"`])
}

// TestQuickForms says which schemas have a quick form: all that say no more than types,
// members, items, bounds, lengths, patterns and values without parts.
func TestQuickForms(t *testing.T) {
	for source, want := range map[string]bool{
		`true`: true, `false`: true, `{}`: true, `{"type":"object","required":["q"],"properties":{"q":{"type":"string","maxLength":200}},"additionalProperties":false}`: true,
		`{"properties":{"a":{"items":{"enum":["x",1,null]}}},"title":"t","format":"date","x-y":1}`: true, `{"const":"a"}`: true, `{"pattern":"^a"}`: true,
		`{"$ref":"#/$defs/a","$defs":{"a":{}}}`: false, `{"anyOf":[{}]}`: false, `{"not":{"type":"null"}}`: false, `{"enum":[[1]]}`: false, `{"const":{}}`: false,
		`{"patternProperties":{"a":{}}}`: false, `{"uniqueItems":true}`: false, `{"multipleOf":2}`: false, `{"prefixItems":[{}]}`: false, `{"properties":{"a":{"not":{"const":1}}}}`: false,
		`{"dependentRequired":{"a":["b"]}}`: false, `{"propertyNames":{}}`: false, `{"contains":{}}`: false,
	} {
		s, err := NewSchema([]byte(source))
		if err != nil || (s.quick != nil) != want {
			t.Errorf("%s: quick is %t, %v", source, s != nil && s.quick != nil, err)
		}
	}
	var many strings.Builder
	for i := range 65 {
		fmt.Fprintf(&many, `"m%d":true,`, i)
	}
	if s, err := NewSchema([]byte(`{"properties":{` + many.String()[:many.Len()-1] + `}}`)); err != nil || s.quick != nil {
		t.Errorf("65 members have a quick form: %v", err)
	}
}

// TestQuickValuesCostNothing: what satisfies a quick schema takes no allocation.
func TestQuickValuesCostNothing(t *testing.T) {
	s, err := NewSchema([]byte(`{"type":"object","required":["q","n"],"properties":{"q":{"type":"string","minLength":1,"maxLength":200,"pattern":"^[a-zé ]+$"},
		"n":{"type":"integer","minimum":1,"maximum":50},"kind":{"enum":["a","b"]},"tags":{"type":"array","items":{"type":"string"},"maxItems":9}},"additionalProperties":false}`))
	if err != nil {
		t.Fatal(err)
	}
	value := []byte(`{"kind": "b", "n": 12, "q": "café with cream", "tags": ["x", "y", "z"]}`)
	if n := testing.AllocsPerRun(100, func() {
		if err := s.Validate(value); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("it takes %v allocations", n)
	}
}

// FuzzQuick: the quick form accepts nothing that the library refuses.
func FuzzQuick(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		value, _ := drawnValue(rng, 4)
		f.Add(drawnSchema(rng, 3), value)
	}
	f.Add(`{"properties":{"\ufffd":false}}`, "{\"\xff\":1}")
	f.Add(`{"maxLength":1}`, `"\ud800\ud800"`)
	f.Fuzz(func(t *testing.T, source, value string) {
		s, err := NewSchema([]byte(source))
		if err != nil || s.quick == nil || !s.quick.accepts([]byte(value)) {
			return
		}
		if err := slow(s, []byte(value)); err != nil || !json.Valid([]byte(value)) {
			t.Errorf("%s accepts %q: %v", source, value, err)
		}
	})
}

// TestQuickLeavesToTheLibrary are values that the quick form does not accept although
// their bytes look well: what they mean is for the library to say.
func TestQuickLeavesToTheLibrary(t *testing.T) {
	for _, c := range []struct{ schema, value string }{
		{`{"properties":{"a":{}},"minProperties":2}`, `{"a":1,"a":2}`},
		{`{"minProperties":2}`, `{"x":1,"x":2}`},
		{`{"properties":{"a":{"type":"string"}}}`, `{"a":"x","a":"y"}`},
		{`{"properties":{"a":false}}`, `{"\u0061":1}`},
		{`{"properties":{"\ufffd":false}}`, "{\"\xff\":1}"},
		{`{"maxLength":1}`, `"\ud83d\ude00"`},
		{`{"type":"integer"}`, `1.0`}, {`{"type":"integer"}`, `1e2`}, {`{"maximum":9}`, `0.1234567890123456`},
		{`{}`, `1e999`}, {`{}`, strings.Repeat("[", 200) + strings.Repeat("]", 200)}, {`{"enum":["a"]}`, `"\u0061"`},
	} {
		s, err := NewSchema([]byte(c.schema))
		if err != nil || s.quick == nil {
			t.Fatalf("%s has no quick form: %v", c.schema, err)
		}
		if s.quick.accepts([]byte(c.value)) {
			t.Errorf("%s accepts %s", c.schema, c.value)
		}
		if got, want := s.Validate([]byte(c.value)), slow(s, []byte(c.value)); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s on %s: %v, the library alone says %v", c.schema, c.value, got, want)
		}
	}
}
