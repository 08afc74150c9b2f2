package desk_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dialai/dialai/desk/desktest"
)

// narrow fails the test if the page needs scrolling sideways, wide or narrow.
func narrow(p *desktest.Page, name string) {
	p.Helper()
	for _, width := range []int64{1280, 360} {
		p.Size(width, 900)
		p.Narrow(name)
	}
	p.Size(1280, 900)
}

// TestLargeMachine: a state of 256 transitions with names of 128 wide characters is asked with a box to
// filter them, a machine of 1,000 states is drawn as a grid, and neither scrolls the page sideways.
func TestLargeMachine(t *testing.T) {
	s := desktest.Serve(t)
	m := desktest.Machine{Name: strings.Repeat("磨", 128), Voters: "none"}
	var transitions []string
	for i := range 256 {
		transitions = append(transitions, fmt.Sprintf(`"%s%03d":{"target":"paid","irreversible":false}`, strings.Repeat("払", 125), i))
	}
	m.Transitions = strings.Join(transitions, ",")
	v := s.Start(m.JSON(), `{"n":1}`)
	p := desktest.Open(s, "carol", v.Path())
	p.Wait(`document.querySelector("[data-choice]")`)
	p.Press("1")
	p.Reach("fieldset input:not([type=radio])")
	p.Type("払255")
	p.Wait(`document.querySelectorAll("[data-choice]").length === 2 && document.querySelectorAll("[data-choice]")[0].querySelector("input").checked`)
	narrow(p, "the question")
	for _, path := range []string{"/desk/sessions", "/desk/sessions/" + v.SessionID, "/desk/machines/" + m.Name} {
		p.Visit(path)
		p.Wait(`document.body.innerText.includes("磨磨磨")`)
		narrow(p, path)
	}

	var states []string
	for i := range 999 {
		states = append(states, fmt.Sprintf(`"state%d":{"transitions":{"go":"state%d"}}`, i, i+1))
	}
	large := `{"machineName":"large","initialState":"state0","goalState":"state999","states":{` + strings.Join(states, ",") + `,"state999":{}},"specialists":[{"role":"proposer","specialistId":"carol","isHuman":true}]}`
	s.Publish("large", "large.json", large)
	p = desktest.Open(s, "root", "/desk/edit?machine=large")
	p.Wait(`document.querySelectorAll("main svg .state").length === 1000`)
	if got := desktest.Eval[string](p, `JSON.stringify([new Set([...document.querySelectorAll("main svg .state rect")].map((r) => r.getAttribute("x"))).size > 5, new Set([...document.querySelectorAll("main svg .state rect")].map((r) => r.getAttribute("y"))).size > 5])`); got != `[true,true]` {
		t.Errorf("the states are in rows and columns: %s", got)
	}
	// Of that many transitions those stand out that lead from the state that is chosen, or to it.
	p.Reach(".over[aria-label=state0]")
	p.Press("Enter")
	p.Wait(`document.querySelector("main svg .far")`)
	if near := desktest.Eval[int](p, `document.querySelectorAll("main svg .edge:not(.far)").length`); near != 2 {
		t.Errorf("%d lines stand out, want the start and that of go", near)
	}
	narrow(p, "the editor")
}

// TestFiles: a file that is larger than the server takes, or no text in UTF-8, is refused before it is
// sent, with the limit or the line, and the text that is there stays.
func TestFiles(t *testing.T) {
	s := desktest.Serve(t)
	p := desktest.Open(s, "root", "/desk/edit")
	p.Says("sound")
	p.Wait(`!document.querySelector(".bar .tag")`) // nobody has changed anything
	dir := t.TempDir()
	for name, text := range map[string]string{"large.json": `{"machineName":"` + strings.Repeat("x", 2<<20) + `"}`, "binary.yaml": "machineName: a\x00b", "latin.yaml": "machineName: a\n# caf\xe9\n"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p.Give("main input[type=file]", path)
		p.Says(map[string]string{"large.json": "The file is larger than 1,024 KiB", "binary.yaml": "The file is no text", "latin.yaml": "Line 2 of latin.yaml is no UTF-8"}[name])
		p.Visit("/desk/edit")
		p.Says("sound")
	}
	path := filepath.Join(dir, "ok.json")
	if err := os.WriteFile(path, []byte(desktest.Alone.JSON()), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Give("main input[type=file]", path)
	p.Wait(`document.querySelector("#file").value === "ok.json" && document.querySelector("main svg").ariaLabel.startsWith("alone")`)
	empty := filepath.Join(dir, "empty.yaml")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.Give("main input[type=file]", empty)
	p.Says("There is no machine in it yet")
}

// TestUnknown: a filter that nothing is as is named and gone with one key; what there is not and what
// one may not see are the same page, with the way to the list.
func TestUnknown(t *testing.T) {
	s := desktest.Serve(t)
	v := s.Starts(desktest.Alone, 1)[0]
	p := desktest.Open(s, "carol", "/desk/sessions?status=sleeping")
	p.Wait(`document.querySelector("[data-state=empty] button")?.innerText.includes("sleeping")`)
	p.Reach("[data-state=empty] button")
	p.Press("Enter")
	p.Wait(`document.querySelectorAll("[data-session]").length === 1 && location.search === ""`)
	for at, row := range map[string]string{"inbox?mine=nobodys": "[data-row]", "inbox?state=nowhere": "[data-row]", "reviews?machine=none": ""} {
		p.Visit("/desk/" + at)
		_, named, _ := strings.Cut(at, "=")
		p.Wait(`document.querySelector("[data-state=empty] button")?.innerText.includes(%s)`, named)
		p.Reach("[data-state=empty] button")
		p.Press("Enter")
		p.Wait(`location.search === ""`)
		if row != "" {
			p.Wait(`document.querySelectorAll(%s).length === 1`, row)
		}
	}

	var made struct{ Credential string }
	s.Call("", 201, "POST", "/v1/keys", `{"name":"other","grants":[{"role":"human","machines":["other"],"humans":["carol"]}]}`, &made)
	other := desktest.Open(s, "", "/desk/settings")
	other.Reach("input[type=password]")
	other.Type(made.Credential)
	other.Press("Enter")
	other.Wait(`document.querySelector("nav")`)
	other.Expect("404 /v1/", "403 /v1/")
	says := map[string][]string{}
	for _, path := range []string{"/desk/sessions/" + v.SessionID, "/desk/sessions/00000000-0000-4000-8000-000000000000", "/desk/machines/alone/trust", "/desk/machines/none/trust"} {
		other.Visit(path)
		other.Wait(`document.querySelector("main [data-state=error] a")`)
		list := desktest.Eval[string](other, `document.querySelector("main [data-state=error] a").getAttribute("href")`)
		if !strings.HasPrefix(path, list+"/") {
			t.Errorf("%s leads to %s", path, list)
		}
		says[list] = append(says[list], desktest.Eval[string](other, `[...document.querySelectorAll("main [data-state=error] > *:not(.row)")].map((e) => e.innerText).join("\n")`))
	}
	for list, texts := range says {
		if len(texts) != 2 || texts[0] != texts[1] || texts[0] == "" {
			t.Errorf("what there is not, and what one may not see, of %s: %q", list, texts)
		}
	}
}

// TestWideNames: a machine and a state of 128 wide characters are cut, and nothing scrolls sideways or lies
// across something else.
func TestWideNames(t *testing.T) {
	s := desktest.Serve(t)
	wide := desktest.Machine{Name: strings.Repeat("退", 128)}
	s.Starts(wide, 2)
	p := desktest.Open(s, "carol", "/desk/inbox?machine="+url.QueryEscape(wide.Name))
	p.Wait(`document.querySelectorAll("[data-row]").length === 2`)
	for _, width := range []int64{360, 768, 1024, 1280} {
		p.Size(width, 800)
		p.Wait(`document.documentElement.scrollWidth <= innerWidth && document.querySelectorAll("[data-row]").length === 2`)
		if over := desktest.Eval[[]string](p, `(list => [...document.querySelectorAll(".list *")].filter((e) => e.getClientRects().length > 0 && e.getBoundingClientRect().right > list.right + 1).map((e) => e.tagName + " " + e.className))(document.querySelector(".list").getBoundingClientRect())`); len(over) > 0 {
			t.Errorf("at %d beyond the list: %v", width, over)
		}
	}
}

// TestEnded: a session that has ended offers nothing that cannot be done with it.
func TestEnded(t *testing.T) {
	s := desktest.Serve(t)
	v := s.Starts(desktest.Alone, 1)[0]
	s.Decide("dave", v.SessionID, "pay")
	p := desktest.Open(s, "root", "/desk/sessions/"+v.SessionID)
	p.Wait(`document.querySelector("main [data-status=completed]")`)
	p.Press("c", "u", "l", "a")
	if got := desktest.Eval[string](p, `JSON.stringify([location.pathname, document.querySelectorAll("dialog, main header button, main header .button").length])`); got != desktest.Quoted([]any{"/desk/sessions/" + v.SessionID, json.Number("0")}) {
		t.Errorf("where it is, and what is offered: %s", got)
	}
}
