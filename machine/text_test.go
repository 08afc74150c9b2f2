package machine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/dialai/dialai/machine"
)

func utf16Text(s string, bigEndian bool) string {
	b := []byte("\xFF\xFE")
	if bigEndian {
		b = []byte("\xFE\xFF")
	}
	for _, u := range utf16.Encode([]rune(s)) {
		if bigEndian {
			b = append(b, byte(u>>8), byte(u))
		} else {
			b = append(b, byte(u), byte(u>>8))
		}
	}
	return string(b)
}

// TestEncodings: a file is UTF-8, with or without the mark; anything else is
// said to be, at the byte where it shows.
func TestEncodings(t *testing.T) {
	german := `{"machineName":"Prüfung","initialState":"geprüft","goalState":"geprüft","states":{"geprüft":{}}}`
	latin1 := strings.ReplaceAll(german, "ü", "\xFC")
	want := mustParse(t, "m.json", german).Digest()
	for _, name := range []string{"m.json", "m.yaml", "-"} {
		if got := mustParse(t, name, "\xEF\xBB\xBF"+german).Digest(); got != want {
			t.Errorf("%s: with a byte order mark it is another machine", name)
		}
		for _, c := range []struct{ text, want string }{
			{utf16Text(german, false), "1:1 the file is UTF-16, not UTF-8 | save it as UTF-8"},
			{utf16Text(german, true), "1:1 the file is UTF-16, not UTF-8 | save it as UTF-8"},
			{latin1, "1:19 byte 0xFC is not UTF-8 | save the file as UTF-8"},
			{"{\n  \"é\": \"\xE9\"", "2:9 byte 0xE9 is not UTF-8 | save the file as UTF-8"},
			{"\xEF\xBB\xBF\x80", "1:1 byte 0x80 is not UTF-8 | save the file as UTF-8"},
			{"{\"a\":\"\xED\xA0\x80\"}", "1:7 byte 0xED is not UTF-8 | save the file as UTF-8"},
			{"{}\xC3", "1:3 byte 0xC3 is not UTF-8 | save the file as UTF-8"},
		} {
			p := problems(t, name, c.text).Problems[0]
			_, message, _ := strings.Cut(p.Message, ": ")
			if got := fmt.Sprintf("%d:%d %s | %s", p.Line, p.Column, message, p.Hint); got != c.want || p.Code != "syntax" {
				t.Errorf("%s, %.20q: %s, want %s", name, c.text, got, c.want)
			}
		}
	}
}

// TestJSONSyntax holds every error of form to its place.
func TestJSONSyntax(t *testing.T) {
	for _, c := range []struct{ marked, want string }{
		{`{"a" ▶1}`, "invalid character '1' after object key"},
		{`{"a":▶}`, "invalid character '}' looking for beginning of value"},
		{`[1,▶,2]`, "invalid character ',' looking for beginning of value"},
		{`{"a":1,▶}`, "invalid character '}' looking for beginning of object key string"},
		{`{▶a:1}`, "invalid character 'a' looking for beginning of object key string"},
		{`{▶'a':1}`, "invalid character '\\'' looking for beginning of object key string"},
		{`{▶]`, "invalid character ']' looking for beginning of object key string"},
		{`{"a":[1▶}`, "invalid character '}' after array element"},
		{`{"a":tru▶}`, "invalid character '}' in literal true (expecting 'e')"},
		{`{"a":-▶x}`, "invalid character 'x' in numeric literal"},
		{`{"a":0▶1}`, "invalid character '1' after object key:value pair"},
		{`{"a":▶.5}`, "invalid character '.' looking for beginning of value"},
		{`{"a":▶NaN}`, "invalid character 'N' looking for beginning of value"},
		{`{"a":▶Infinity}`, "invalid character 'I' looking for beginning of value"},
		{`{"a":▶+1}`, "invalid character '+' looking for beginning of value"},
		{"{\n \"é😀\": 1 ▶ü}", "invalid character 'ü' after object key:value pair"},
		{"{\n\n\t\"é\"▶;1}", "invalid character ';' after object key"},
		{"{\"é\":\"▶\n\"}", "invalid character '\\n' in string literal"},
		{"{\"a\":\"é▶\x01\"}", "invalid character '\\x01' in string literal"},
		{`{"a":"é\▶q"}`, "invalid character 'q' in string escape code"},
		{`{"a":"\u12▶x4"}`, "invalid character 'x' in \\u hexadecimal character escape"},
		{`{"a":1}▶x`, "there is more after the end of the document"},
		{"{} \n ▶{}", "there is more after the end of the document"},
		{`{}▶]`, "there is more after the end of the document"},
		{`▶`, "the document ends too early"}, {"  \n▶", "the document ends too early"},
		{`{▶`, "the document ends too early"}, {`{"a▶`, "the document ends too early"}, {`{"a"▶`, "the document ends too early"}, {`{"a":▶`, "the document ends too early"},
		{"{\"a\":[1,\n\"é\"▶", "the document ends too early"}, {`{"a":1,▶`, "the document ends too early"}, {`nul▶`, "the document ends too early"},
		{`{"a":▶"\ud800"}`, "the string holds half of a surrogate pair"},
		{`{"a":▶"x\udc00y"}`, "the string holds half of a surrogate pair"},
		{`{"a":▶"\ud83d\u0041"}`, "the string holds half of a surrogate pair"},
		{`{"a":▶"\ud83d\ud83d\ude00"}`, "the string holds half of a surrogate pair"},
		{`{"é":1,▶"\ude00":2}`, "the string holds half of a surrogate pair"},
	} {
		expect(t, "m.json", c.marked, "[syntax] Invalid JSON: "+c.want)
	}
}

// TestTruncated: a file cut off anywhere is refused, and where it ends.
func TestTruncated(t *testing.T) {
	for n := range len(review) {
		p := problems(t, "m.json", review[:n]).Problems[0]
		if p.Code != "syntax" || p.Message != "Invalid JSON: the document ends too early" {
			t.Fatalf("cut at %d: %v", n, p)
		}
	}
}

func TestSurrogatePairsAreText(t *testing.T) {
	m := mustParse(t, "m.json", `{"machineName":"\ud83d\ude00 \\ud800 \uFFFD","initialState":"a","goalState":"a","states":{"a":{}}}`)
	if got, want := m.Name(), "😀 \\ud800 \uFFFD"; got != want {
		t.Errorf("the name is %q, want %q", got, want)
	}
}

// object writes an object of n members with the same value.
func members(n int, value string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"n%d":%s`, i, value)
	}
	return b.String()
}

// TestLimits is every limit of size: at the limit a file is fine, above it is
// refused. ▶ is where.
func TestLimits(t *testing.T) {
	const head = `{"machineName":"m","initialState":"a","goalState":"b",`
	states := func(rest string) string { return head + `"states":▶{"a":{},"b":{}` + rest + `}}` }
	in := func(member string) string { return head + `"states":{"a":{},"b":{}},` + member + `}` }
	state := func(member string) string { return head + `"states":{"a":{` + member + `},"b":{}}}` }
	object := func(member string) string { return state(`"transitions":{"t":{"target":"b",` + member + `}}`) }
	list := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,{"role":"proposer","specialistId":"s%d","strategyFn":"f"}`, i)
		}
		return `"specialists":▶[` + b.String()[1:] + `]`
	}
	model := func(n int) string {
		return in(`"specialists":[{"role":"proposer","specialistId":"s","contextFn":"f","modelId":▶"` + strings.Repeat("é", n) + `"}]`)
	}
	transitions := func(n int) string { return `"transitions":▶{"z":"a"` + members(n-1, `"b"`) + `}` }
	full := strings.ReplaceAll(`{`+transitions(256)+`}`, mark, "")
	schema := func(size int) string {
		return `"parameters":▶{"title":"` + strings.Repeat("s", size-len(`{"title":""}`)) + `"}`
	}
	deep := func(n int) string {
		return `"x-deep":` + strings.Repeat("[", n-1) + mark + "[" + strings.Repeat("]", n)
	}
	for _, c := range []struct{ what, fine, above, want string }{
		{"file", mark + minimal + strings.Repeat(" ", 1<<20-len(minimal)), mark + minimal + strings.Repeat(" ", 1<<20-len(minimal)+1), `[too-large] the file is larger than 1048576 bytes | a machine file holds states and specialists; keep data elsewhere`},
		{"states", states(members(998, "{}")), states(members(999, "{}")), `[too-large] states has more than 1000 entries`},
		{"transitions of a state", state(transitions(256)), state(transitions(257)), `[too-large] transitions has more than 256 entries`},
		{"transitions in all", states(members(39, full)), strings.Replace(strings.ReplaceAll(states(members(40, full)), mark, ""), `"states"`, mark+`"states"`, 1), `[too-large] the machine has 10240 transitions, more than 10000`},
		{"specialists", in(list(256)), in(list(257)), `[too-large] specialists has more than 256 entries`},
		{"specialists of a state", state(list(256)), state(list(257)), `[too-large] specialists has more than 256 entries`},
		{"modelId", model(256), model(257), `[too-large] modelId has more than 256 characters`},
		{"name", states(`,"` + strings.Repeat("é", 128) + `":{}`), head + `"states":{"a":{},"b":{},▶"` + strings.Repeat("é", 129) + `":{}}}`, `[bad-name] the name "` + strings.Repeat("é", 128) + `…" is longer than 128 characters | choose a short name of printable characters`},
		{"prompt", state(`"prompt":"` + strings.Repeat("é", 32768) + `"`), state(`"prompt":▶"a` + strings.Repeat("é", 32768) + `"`), `[too-large] prompt is larger than 65536 bytes`},
		{"description", object(`"description":"` + strings.Repeat("é", 2048) + `"`), object(`"description":▶"` + strings.Repeat("é", 2049) + `"`), `[too-large] description is larger than 4096 bytes`},
		{"parameters", object(schema(64 << 10)), object(schema(64<<10 + 1)), `[too-large] parameters is larger than 65536 bytes`},
		{"nesting", in(deep(63)), in(deep(64)), `[too-large] values are nested deeper than 64`},
		{"values", in(`"x-many":[` + strings.Repeat("0,", 99_991) + "0]"), in(`"x-many":[` + strings.Repeat("0,", 99_992) + "▶0]"), `[too-large] the file has more than 100000 values`},
	} {
		fine, _ := unmark(c.fine)
		if _, err := machine.Parse("m.json", []byte(fine), checks()); err != nil {
			t.Errorf("%s at the limit: %.300v", c.what, err)
		}
		t.Run(c.what, func(t *testing.T) { expect(t, "m.json", c.above, c.want) })
	}
}

// TestSchemaLimits: parameters deeper than 32 are refused by their own code.
func TestSchemaLimits(t *testing.T) {
	deep := func(n int) string {
		return strings.Repeat(`{"items":`, n-1) + "{}" + strings.Repeat("}", n-1)
	}
	text := func(n int) string {
		return `{"machineName":"m","initialState":"a","goalState":"a","states":{"a":{"transitions":{"t":{"target":"a","parameters":` + mark + deep(n) + `}}}}}`
	}
	fine, _ := unmark(text(32))
	mustParse(t, "m.json", fine)
	expect(t, "m.json", text(33), `[bad-schema] parameters of transition "t" in state "a": the schema is nested 33 deep, more than 32 | parameters is a JSON Schema (draft 2020-12) without remote references`)
}

// TestBombs: no small file becomes a large machine, and none takes long.
func TestBombs(t *testing.T) {
	const head = "machineName: m\ninitialState: a\ngoalState: b\n"
	var laughs, long strings.Builder
	laughs.WriteString("x-0: &l0 [0,0,0,0,0,0,0,0,0,0]\n")
	for i := 1; i < 12; i++ {
		alias := fmt.Sprintf("*l%d,", i-1)
		fmt.Fprintf(&laughs, "x-%d: &l%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(alias, 10), ","))
	}
	fmt.Fprintf(&long, "x-p: &p %s\nstates:\n  b: {}\n", strings.Repeat("p", 60_000))
	for i := range 100 {
		fmt.Fprintf(&long, "  s%d: {prompt: *p}\n", i)
	}
	for _, c := range []struct{ name, text, want string }{
		{"m.yaml", head + laughs.String() + "states: {a: {}, b: {}}\n", "Invalid machine definition: the file has more than 100000 values"},
		{"m.yaml", head + long.String() + "  a: {}\n", "Invalid machine definition: with its aliases expanded, the file is larger than 1048576 bytes"},
		{"m.yaml", strings.Repeat("- ", 10_000), "Invalid machine definition: values are nested deeper than 64"},
		{"m.yaml", strings.Repeat("[", 60_000), ""}, {"m.yaml", strings.Repeat("{a: ", 60_000), ""}, {"m.yaml", strings.Repeat("? {a}\n", 3_000), ""},
		{"m.json", strings.Repeat("[", 1<<20), "Invalid machine definition: values are nested deeper than 64"},
		{"m.json", strings.Repeat(`{"a":`, 200_000), "Invalid machine definition: values are nested deeper than 64"},
		{"m.json", `{"a":"` + strings.Repeat("é", 400_000) + `",` + strings.Repeat(`"b":[0,0],`, 20_000) + `"c":0}`, "Invalid machine definition: missing or invalid machineName"},
		{"m.json", `{` + strings.Repeat(`"unknwn":0,`, 90_000) + `"states":0}`, "Invalid machine definition: missing or invalid machineName"},
		{"m.json", `{"machineName":"m","initialState":"n0","goalState":"n0","states":{"q":{}` + members(25_000, `{"transitions":{"t":"m0"}}`) + `}}`, `Invalid machine definition: transition "t" in state "n0" points to non-existent state "m0"`},
	} {
		start := time.Now()
		got := problems(t, c.name, c.text).Summary()
		if c.want != "" && got != c.want {
			t.Errorf("%.60q: %s, want %s", c.text, got, c.want)
		}
		t.Logf("%.40q: %v", c.text, time.Since(start))
		if took := time.Since(start); took > 20*time.Second { // each takes well below a second
			t.Errorf("%.60q took %v", c.text, took)
		}
	}
}

// TestNormalizedMachineIsNoLargerThanAFile: what is accepted can be read again,
// though its normal form is longer than what was written.
func TestNormalizedMachineIsNoLargerThanAFile(t *testing.T) {
	var b strings.Builder
	for i := range 39 {
		fmt.Fprintf(&b, `,"s%d":{"transitions":{"z":"a"`, i)
		for j := range 255 {
			fmt.Fprintf(&b, `,"%s%d":"b"`, strings.Repeat("t", 90), j)
		}
		b.WriteString(`}}`)
	}
	text := `{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{},"b":{}` + b.String() + `}}`
	if len(text) > 1<<20 {
		t.Fatalf("the file itself has %d bytes", len(text))
	}
	p := problems(t, "m.json", text).Problems[0]
	if p.Code != "too-large" || !strings.HasPrefix(p.Message, "the machine, normalized, has ") || p.Line != 1 || p.Column != 1 {
		t.Errorf("%v", p)
	}
	zeros := `{"target":"b","parameters":{"enum":[` + strings.Repeat("0,", 29_000) + `0]}}`
	many := `{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"transitions":{"z":"b"` + members(3, zeros) + `}},"b":{}` +
		members(30, `{"transitions":{"z":"a"`+members(255, `"b"`)+`}}`) + `}}`
	p = problems(t, "m.json", many).Problems[0]
	if p.Code != "too-large" || !strings.HasSuffix(p.Message, " values, more than 100000") || !strings.HasPrefix(p.Message, "the machine, normalized, has ") {
		t.Errorf("%v", p)
	}
}
