package desk_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dialai/dialai/desk/desktest"
)

// A form is a schema of one parameter, and what is typed into its field: what may be sent and what
// may not, if anything. A text that begins with # is how often Space and ArrowDown are pressed at a choice.
type form struct{ schema, good, bad string }

var forms = []form{
	{`{"type":"string"}`, "x", ""},
	{`{"type":"string","maxLength":3}`, "abc", "abcd"},
	{`{"type":"string","minLength":3}`, "abc", "ab"},
	{`{"type":"string","maxLength":2}`, "😀😀", "😀😀😀"},
	{`{"type":"string","maxLength":2000}`, "long", ""},
	{`{"type":"string","format":"email"}`, "a@b.example", ""},
	{`{"type":"string","format":"uri"}`, "https://a.example", ""},
	{`{"type":"string","format":"hostname"}`, "a.example", ""},
	{`{"type":"string","title":"T","description":"D"}`, "x", ""},
	{`{"type":"number"}`, "1.5", "x"},
	{`{"type":"number","minimum":1}`, "1", "0.99"},
	{`{"type":"number","maximum":1}`, "1", "1.01"},
	{`{"type":"number","exclusiveMinimum":0}`, "0.01", "0"},
	{`{"type":"number","exclusiveMaximum":1}`, "0.99", "1"},
	{`{"type":"number","multipleOf":0.25}`, "0.75", "0.8"},
	{`{"type":"number","minimum":-5,"maximum":-1}`, "-3", "3"},
	{`{"type":"number"}`, "1e3", "1e"},
	{`{"type":"integer"}`, "42", "4.2"},
	{`{"type":"integer","minimum":0}`, "0", "-1"},
	{`{"type":"integer","multipleOf":5}`, "15", "16"},
	{`{"type":"integer"}`, "9007199254740993", "1."},
	{`{"type":"boolean"}`, "#0", ""},
	{`{"type":"boolean","const":true}`, "#0", ""},
	{`{"enum":["a","b","c"]}`, "#1", ""},
	{`{"enum":[1,2,3]}`, "#2", ""},
	{`{"enum":["a","b","c","d","e","f","g"]}`, "#2", ""},
	{`{"enum":[true,false]}`, "#0", ""},
	{`{"oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]}`, "#1", ""},
	{`{"oneOf":[{"const":1},{"const":2}]}`, "#0", ""},
	{`{"type":"object"}`, `{"a":1}`, `[1]`},
	{`{"type":"array"}`, `[1,"a"]`, `{"a":1}`},
	{`{"type":"array","items":{"type":"object","required":["a"]}}`, `[{"a":1}]`, `[{}]`},
	{`{"type":["string","null"]}`, `null`, `1`},
	{`{"anyOf":[{"type":"string"},{"type":"integer"}]}`, `1`, `1.5`},
	{`{"allOf":[{"minimum":1},{"maximum":2}]}`, `2`, `3`},
	{`{"not":{"type":"string"}}`, `1`, `"x"`},
	{`{}`, `{"any":[1,null]}`, `{`},
	{`{"enum":[{"a":1},{"a":2}]}`, `{"a":2}`, `{"a":3}`},
	{`{"const":[1,2]}`, `[1,2]`, `[2,1]`},
	{`{"type":"object","minProperties":1,"additionalProperties":{"type":"integer"}}`, `{"a":1}`, `{"a":"b"}`},
}

// fill types a value into the field of the parameter p, in the place of what is there.
func fill(p *desktest.Page, value string) {
	p.Helper()
	times := 0
	if n, choice := strings.CutPrefix(value, "#"); choice {
		if _, err := fmt.Sscan(n, &times); err != nil {
			p.Fatal(err)
		}
		p.Reach(`[name="payload-p"], select#payload-p`)
		if desktest.Eval[bool](p, `document.activeElement.matches("select")`) {
			times++ // the first is none
		} else {
			p.Press("Space")
		}
		for range times {
			p.Press("ArrowDown")
		}
		return
	}
	p.Reach("#payload-p")
	desktest.Eval[bool](p, `(document.activeElement.select(), true)`)
	p.Press("Backspace")
	p.Type(value)
}

// TestForms: what the form takes the server takes, for forty schemas; what it does not take is
// not sent.
func TestForms(t *testing.T) {
	if len(forms) != 40 {
		t.Fatalf("there are %d", len(forms))
	}
	s := desktest.Serve(t)
	var p *desktest.Page
	for i, f := range forms {
		m := desktest.Alone
		m.Transitions = fmt.Sprintf(`"pay":{"target":"paid","irreversible":false,"parameters":{"type":"object","required":["p"],"properties":{"p":%s}}},"refuse":"refused"`, f.schema)
		v := s.Start(m.JSON(), fmt.Sprintf(`{"n":%d}`, i))
		if p == nil {
			p = desktest.Open(s, "carol", v.Path())
		}
		p.Visit(v.Path())
		p.Press("1")
		p.Wait(`document.querySelector("[id^=payload-p], [name=payload-p]")`)
		if f.bad != "" && !strings.HasPrefix(f.bad, "#") {
			fill(p, f.bad)
			p.Wait(`document.querySelector("article [aria-invalid=true]") && document.querySelector("article button.main").disabled`)
		}
		fill(p, f.good)
		p.Wait(`!document.querySelector("article button.main").disabled`)
		p.Press("Ctrl+Enter")
		p.Wait(`document.querySelector("[data-outcome]")?.dataset.outcome === %s || document.querySelector("[data-refused]")`, v.Question.QuestionID)
		now := s.Session(v.SessionID)
		if len(now.History) != 1 {
			t.Errorf("%s: the server does not take %s: %s", f.schema, f.good, p.Text())
			continue
		}
		if got := string(now.History[0].MetaJSON); strings.HasPrefix(f.good, "9") && got != `{"p":9007199254740993}` {
			t.Errorf("%s is sent as %s", f.good, got)
		}
	}
}

// TestFormOfMany: lists and objects in objects are filled by keys, and have what the schema wants.
func TestFormOfMany(t *testing.T) {
	s := desktest.Serve(t)
	m := desktest.Alone
	m.Transitions = `"pay":{"target":"paid","irreversible":false,"parameters":{"type":"object","required":["names","at"],"properties":{
		"names":{"type":"array","minItems":2,"items":{"type":"string","minLength":1}},
		"at":{"type":"object","required":["street"],"properties":{"street":{"type":"string","maxLength":50},"of":{"type":"object","properties":{"floor":{"type":"integer","default":3}}}}}}}},"refuse":"refused"`
	v := s.Start(m.JSON(), `{"n":1}`)
	p := desktest.Open(s, "carol", v.Path())
	p.Press("1")
	p.Wait(`document.querySelector("#payload-at-street")`)
	p.Reach("#payload-at-street")
	p.Type("Long Lane 1")
	for i, name := range []string{"ann", "bob"} {
		p.Wait(`document.querySelector("article button.main").disabled`)
		desktest.Eval[bool](p, `([...document.querySelectorAll("fieldset button")].find((b) => b.innerText.startsWith("Add")).focus(), true)`)
		p.Press("Enter")
		p.Wait(fmt.Sprintf(`document.querySelector("#payload-names-%d")`, i))
		p.Reach(fmt.Sprintf("#payload-names-%d", i))
		p.Type(name)
	}
	p.Wait(`!document.querySelector("article button.main").disabled`)
	p.Press("Ctrl+Enter")
	p.Wait(`document.querySelector("[data-outcome]")`)
	decided(t, s, v.SessionID, "pay")
	if got := string(s.Session(v.SessionID).History[0].MetaJSON); !strings.Contains(got, `"names":["ann","bob"]`) || !strings.Contains(got, `"street":"Long Lane 1"`) || !strings.Contains(got, `"floor":3`) {
		t.Errorf("what went with it is %s", got)
	}
}
