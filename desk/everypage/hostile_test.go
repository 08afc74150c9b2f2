package everypage_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dialai/dialai/desk/desktest"
	"github.com/dialai/dialai/internal/text"
)

// hostile are texts that a page must show as they are.
var hostile = []string{
	`<script>pwned=1</script>`, `</script><script>pwned=1</script>`, `<img src=x onerror=pwned=1>`, `<svg onload=pwned=1>`, `<svg><script>pwned=1</script></svg>`,
	`"><img src=x onerror="pwned=1">`, `' onmouseover='pwned=1`, `" autofocus onfocus="pwned=1`, `<iframe srcdoc="<script>parent.pwned=1</script>"></iframe>`, `<iframe src="javascript:parent.pwned=1"></iframe>`,
	`javascript:pwned=1`, `JaVaScRiPt:alert(1)`, `data:text/html,<script>pwned=1</script>`, `<a href="javascript:pwned=1">x</a>`, `<form action=http://evil.example><input name=q></form>`,
	`<style>*{display:none}</style>`, `<link rel=stylesheet href=http://evil.example/x.css>`, `x;background:url(http://evil.example/x)`, `</style><style>body{display:none}`, `<div style="position:fixed;inset:0">x</div>`,
	`<base href=http://evil.example/>`, `<meta http-equiv=refresh content="0;url=http://evil.example">`, `<object data=http://evil.example></object>`, `<embed src=http://evil.example>`, `<img src=http://evil.example/x.png>`,
	`http://evil.example/`, `//evil.example/`, `[x](javascript:pwned=1)`, `{{constructor.constructor("pwned=1")()}}`, `${pwned=1}`,
	`{@html "<img src=x onerror=pwned=1>"}`, `#{7*7}`, `<%= 7*7 %>`, `<!--`, `-->`, `]]>`, `<![CDATA[x]]>`, `&lt;b&gt;&amp;`, `&#x3C;script&#x3E;`, `%3Cscript%3E`,
	"\u202egnp.exe\u202c", "abc\u2066def\u2069", "\u200bzero\u200bwidth\ufeff", "a\u00adsoft\u2060hyphen", "ta\U000e0067gs", "\u0000nul\u0001\u0002", "\u001b[31mred\u001b[0m\u0007", "bell\u0008\u007f\u009b", "line\u2028and\u2029paragraph", "fil\u3164ler\uffa0",
	`__proto__`, `constructor`, `toString`, `hasOwnProperty`, `$&$1$$`, `{name}`, `C:\x\u0041`, `'; DROP TABLE sessions; --`, "👨\u200d👩\u200d👧 ✈\ufe0f", strings.Repeat("W", 300),
}

// shown is a text as the desk shows it.
func shown(of string) string {
	var b strings.Builder
	for _, r := range of {
		switch {
		case !text.Disguises(r) || r == '\n' || r == '\t':
			b.WriteRune(r)
		case r < ' ':
			b.WriteRune(0x2400 + r)
		case r == 0x7f:
			b.WriteRune('␡')
		default:
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		}
	}
	return b.String()
}

// prose are those that a machine file may hold.
func prose() []string {
	return slices.DeleteFunc(slices.Clone(hostile), func(s string) bool { return strings.ContainsFunc(s, text.Disguises) })
}

// hostileMachine says hostile things wherever a machine's author can.
func hostileMachine() desktest.Machine {
	all := strings.Join(prose(), " ¦ ")
	properties, enum := []string{}, []string{}
	for i, s := range prose() {
		properties = append(properties, fmt.Sprintf(`%s:{"type":"string","title":%s,"description":%s}`, desktest.Quoted("m"+strconv.Itoa(i)), desktest.Quoted("T"+s), desktest.Quoted("D"+s)))
		enum = append(enum, desktest.Quoted(s))
	}
	for _, name := range []string{`__proto__`, `<b>x</b>`} {
		properties = append(properties, fmt.Sprintf(`%s:{"type":"string"}`, desktest.Quoted(name)))
	}
	properties = append(properties, `"one":{"enum":[`+strings.Join(enum, ",")+`]}`, `"json":{"type":"object","description":`+desktest.Quoted(all)+`}`)
	return desktest.Machine{Name: "<b>hostile<script>", Prompt: desktest.Quoted(all),
		Transitions: fmt.Sprintf(`"<img src=x onerror=pwned=1>":{"target":"paid","irreversible":false,"description":%s,"parameters":{"type":"object","title":%s,"properties":{%s}}},"{name}":{"target":"refused","irreversible":true}`, desktest.Quoted(all), desktest.Quoted(all), strings.Join(properties, ","))}
}

// has fails the test unless the page shows a text.
func has(p *desktest.Page, where, what string) {
	p.Helper()
	if !desktest.Eval[bool](p, `document.body.textContent.includes(%s) || [...document.querySelectorAll("option")].some((o) => o.textContent === %s)`, what, what) {
		p.Errorf("%s does not show %q", where, what)
	}
}

// harmless fails the test if a text has become more than that, in the page or in a shadow of it.
func harmless(p *desktest.Page, where string) {
	p.Helper()
	if got := desktest.Eval[string](p, `JSON.stringify([typeof pwned, [document, ...[...document.querySelectorAll("*")].flatMap((e) => e.shadowRoot ?? [])].flatMap((in_) => [...in_.querySelectorAll("main script, main img, main iframe, main svg:not([role=img]), main svg image, main svg foreignObject, main object, main embed, main base, main link, main style, main meta, main form[action], [onerror], [onload], [onfocus], [onmouseover], a[href^=javascript], a[href*=evil], b")]).map((e) => e.outerHTML), ({}).x ?? "", /[\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069]/u.exec(document.body.innerText)])`); got != `["undefined",[],"",null]` {
		p.Errorf("%s: texts have become more than that: %s", where, got)
	}
}

// TestHostile: whatever text anybody can put anywhere, it is shown as it is, and nothing else
// happens; so are numbers.
func TestHostile(t *testing.T) {
	s := desktest.Serve(t)
	members := []string{}
	for i, h := range hostile {
		members = append(members, desktest.Quoted(h)+`:`+desktest.Quoted("value "+h), desktest.Quoted("list"+strconv.Itoa(i))+`:[`+desktest.Quoted(h)+`,{"x":`+desktest.Quoted(h)+`}]`)
	}
	facts := `{"n":` + desktest.Quoted(strings.Join(hostile[:20], " ¦ ")) + `,"big":9007199254740993,"huge":123456789012345678901234567890,"small":0.1000000000000000055511151231257827,"deep":` + strings.Repeat(`{"d":`, 40) + `"bottom\u202e"` + strings.Repeat(`}`, 40) + `,` + strings.Join(members, ",") + `}`
	m := hostileMachine()
	first := `<img src=x onerror=pwned=1>`
	said := strings.Join(hostile, " ¦ ")
	v := s.Start(m.JSON(), facts, desktest.Proposed("bot", first, "bot "+said), desktest.Proposed("rob", "{name}", "rob "+said))
	p := desktest.Open(s, "carol", v.Path())
	p.Wait(`document.querySelector("[data-question]")`)
	has := func(where, what string) { t.Helper(); has(p, where, what) }
	harmless := func(where string) { t.Helper(); harmless(p, where) }
	for _, h := range hostile {
		has("the question", shown(h))
		has("the question", shown("value "+h))
	}
	has("the proposals", "bot "+shown(said))
	for _, number := range []string{"9007199254740993", "123456789012345678901234567890", "0.1000000000000000055511151231257827"} {
		has("the question", number)
	}
	harmless("the question")
	desktest.Eval[bool](p, `(document.querySelectorAll("main details").forEach((d) => (d.open = true)), document.querySelector("section button[aria-pressed=false]").click(), true)`)
	has("the facts as JSON", `bottom⟨U+202E⟩`)
	harmless("the facts as JSON")
	p.Press("1")
	p.Wait(`document.querySelector("#payload-m1")`)
	for _, h := range prose() {
		has("the form", "T"+h)
		has("the form", "D"+h)
		has("the form", h)
	}
	harmless("the form")
	p.Reach(`[id="payload-__proto__"]`)
	p.Type("into the member")
	p.Reach("article > form > label textarea")
	p.Type(`<b>why</b> {name}`)
	p.Press("Ctrl+Enter")
	p.Wait(`document.querySelector("[data-outcome]")`)
	harmless("the outcome")
	h := s.Session(v.SessionID).History
	if len(h) != 1 || h[0].Reasoning != `<b>why</b> {name}` || string(h[0].MetaJSON) != `{"__proto__":"into the member"}` {
		t.Errorf("what is decided is %+v", h)
	}

	p.Visit("/desk/sessions/" + v.SessionID)
	desktest.Eval[bool](p, `(document.querySelectorAll("details").forEach((d) => (d.open = true)), true)`)
	has("the session", "value "+shown(hostile[0]))
	has("the session", "9007199254740993")
	harmless("the session")
	p.Visit("/desk/inbox?machine=" + "%3Cscript%3Epwned=1%3C/script%3E&state=javascript:pwned=1&lang=%3Cb%3E")
	p.Wait(`document.querySelector("[data-state=empty]")`)
	has("the filter", "<script>pwned=1</script>")
	harmless("the filter")
	p.Expect("404 /v1/")
	p.Visit("/desk/q/%3Cimg%20src=x%20onerror=pwned=1%3E")
	harmless("a question that there is not")
	for i, h := range hostile { // each as the subject of a row of the list
		if i < 45 {
			s.Start(desktest.Alone.JSON(), `{"n":`+desktest.Quoted(h)+`}`)
		}
	}
	p.Visit("/desk/inbox")
	for i, h := range hostile {
		if i < 45 {
			has("the list", shown("alone "+h))
		}
	}
	harmless("the list")
}
