package everypage_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dialai/dialai/desk/desktest"
	"github.com/dialai/dialai/llm/llmtest"
)

// Names of a machine that somebody means harm with.
const (
	evilMachine = `<b>{name}</b></script><script>pwned=1</script>`
	evilState   = `"><img src=x onerror="pwned=1">`
	evilEnd     = `javascript:pwned=1`
	evilWho     = `<svg onload=pwned=1>`
)

// evil is that machine, whose sessions are called as n says.
func evil() string {
	return fmt.Sprintf(`{"machineName":%s,"initialState":%s,"goalState":%s,"subject":"= string(data.n)",
		"states":{%s:{"prompt":%s,"collapse":{"target":0.85},"transitions":{"<i>pay</i>":%s,"refuse":%s}},%s:{}},
		"specialists":[{"role":"proposer","specialistId":"carol","isHuman":true},{"role":"proposer","specialistId":%s,"strategyFnName":"firstAvailable"},{"role":"arbiter","specialistId":"<b>x</b>","strategyFnName":"bayes"}]}`,
		desktest.Quoted(evilMachine), desktest.Quoted(evilState), desktest.Quoted(evilEnd), desktest.Quoted(evilState), desktest.Quoted(strings.Join(prose(), " ¦ ")), desktest.Quoted(evilEnd), desktest.Quoted(evilEnd), desktest.Quoted(evilEnd), desktest.Quoted(evilWho))
}

// plain is a text as JSON that hides nothing of it from a page.
func plain(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a text can be written
	return strings.TrimSpace(b.String())
}

// TestHostilePages: so it is with what sessions, machines, their states, specialists and orders are
// called, in lists, on the pages of a session and of a machine, and in the editor; and with what models
// have said, and were asked.
func TestHostilePages(t *testing.T) {
	s := modelled(t, func(c llmtest.Call) llmtest.Reply {
		if strings.Contains(c.Model, "refusing") {
			return llmtest.Reply{Status: 400, Body: `{"error":{"message":` + plain(strings.Join(hostile, " ¦ ")) + `}}`}
		}
		return llmtest.Reply{Body: `{"id":"<b>id</b>","model":"<b>model</b>","choices":[{"message":{"content":` + plain(strings.Join(hostile, " ¦ ")) + `,"tool_calls":[{"function":{"name":` + plain(c.Tools[0]) + `,"arguments":"{}"}}]}}]}`}
	})
	s.Publish(evilMachine, "evil.json", evil())
	note := strings.Join(hostile[:50], " ¦ ")
	var list []desktest.Session
	for _, h := range hostile[:50] { // a subject has 120 characters
		list = append(list, s.Start(evil(), `{"n":`+desktest.Quoted(h)+`}`))
	}
	q := list[0].Question
	s.Call("carol", 200, "POST", "/v1/sessions/"+list[0].SessionID+"/decisions", fmt.Sprintf(`{"transitionName":"<i>pay</i>","roundId":%q,"questionDigest":%q,"reasoning":%s}`, q.RoundID, q.Digest, desktest.Quoted(note)), nil)
	cancelled := s.Start(desktest.Alone.JSON(), `{"n":`+desktest.Quoted(hostile[1])+`}`)
	s.Call("olga", 200, "POST", "/v1/sessions/"+cancelled.SessionID+"/cancel", `{"note":`+desktest.Quoted(note)+`}`, nil)

	p := desktest.Open(s, "root", "/desk/sessions")
	p.Size(1280, 4000)
	p.Wait(`document.querySelectorAll("[data-session]").length === 51`)
	for _, h := range hostile[:50] {
		has(p, "the list of sessions", shown(h))
	}
	harmless(p, "the list of sessions")
	p.Press("j", "x", "c")
	p.Wait(`document.querySelector("dialog[open]")`)
	harmless(p, "what is cancelled")
	p.Visit("/desk/sessions?machine=" + url.QueryEscape(evilMachine) + "&state=%3Cb%3E&status=%3Cb%3E")
	has(p, "the filters", evilMachine)
	harmless(p, "the filters")
	for name, id := range map[string]string{"decided": list[0].SessionID, "cancelled": cancelled.SessionID} {
		p.Visit("/desk/sessions/" + id)
		unfolded(p, id)
		has(p, "a session that is "+name, shown(note))
		harmless(p, "a session that is "+name)
	}

	for _, voter := range []string{reader, strings.Replace(reader, "reader<", "refusing<", 1)} {
		asked := s.Start(desktest.Machine{Name: "reading", Voters: voter}.JSON(), `{"n":`+desktest.Quoted(note)+`}`)
		p.Visit("/desk/sessions/" + asked.SessionID)
		unfolded(p, asked.SessionID)
		has(p, "how a model was asked", "<b>re")
		for _, h := range hostile {
			has(p, "what a model has said to "+voter, shown(strings.Trim(plain(h), `"`)))
		}
		harmless(p, "how a model was asked")
	}

	at := "/desk/machines/" + url.PathEscape(evilMachine)
	p.Visit("/desk/machines")
	has(p, "the list of machines", evilMachine)
	harmless(p, "the list of machines")
	for tab, names := range map[string][]string{"": {evilState}, "/trust": {evilState, evilWho}, "/promise": nil, "/calibration": nil, "/collapse": {evilState, evilWho}, "/spend": nil, "/who": {evilState, evilWho}, "/try": {evilWho}, "/simulate": {evilWho}} {
		p.Visit(at + tab)
		for _, name := range append(names, evilMachine) {
			has(p, "the machine's page "+tab, name)
		}
		harmless(p, "the machine's page "+tab)
	}
	p.Visit(at + "/simulate")
	p.Reach("main form button.main")
	p.Press("Enter")
	p.Wait(`document.querySelector("main figure")`)
	has(p, "what was simulated", evilWho)
	harmless(p, "what was simulated")
	p.Reach("main form .row button")
	p.Press("Enter")
	p.Wait(`document.querySelector("main form textarea").value.includes(%s)`, evilWho)
	harmless(p, "the panel as JSON")

	p.Visit("/desk/edit?machine=" + url.QueryEscape(evilMachine))
	p.Wait(`document.querySelectorAll("main svg .state").length === 2`)
	has(p, "the editor", evilState)
	harmless(p, "the editor")
	var transitions []string
	for i, h := range hostile {
		transitions = append(transitions, fmt.Sprintf(`"t%d":%s`, i, desktest.Quoted(h)))
	}
	path := filepath.Join(t.TempDir(), "evil.json")
	if err := os.WriteFile(path, []byte(`{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"transitions":{`+strings.Join(transitions, ",\n")+`}},"b":{}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Give("main input[type=file]", path)
	p.Wait(`document.querySelectorAll("main .problems li").length > 20`)
	for _, h := range hostile[:10] {
		has(p, "what is wrong", strings.Trim(fmt.Sprintf("%q", h), `"`))
	}
	harmless(p, "what is wrong")
	p.Press("F8")
	p.Wait(`document.querySelector(".code").shadowRoot.querySelector(".cm-lintRange")`)
	harmless(p, "where it is wrong")
}
