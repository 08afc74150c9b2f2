package desk_test

import (
	"strings"
	"testing"

	"github.com/dialai/dialai/client"
	"github.com/dialai/dialai/desk/desktest"
)

// TestPublish: who writes a machine sees what is wrong where it is wrong, and publishes what they
// have compared with what is there; if that is another one by then, nothing is written over it.
func TestPublish(t *testing.T) {
	s := desktest.Serve(t)
	p := desktest.Open(s, "root", "/desk/edit")
	p.Says("sound")
	publish := func() {
		p.Reach("main .bar button.main")
		p.Press("Enter")
		p.Wait(`document.querySelector("dialog[open] button.main")`)
		p.Reach("dialog button.main")
		p.Press("Enter")
		p.Wait(`!document.querySelector("dialog")`)
	}
	publish()
	p.Says("Published: refunds, version 1.")

	c, err := client.New(client.Config{BaseURL: s.URL, Key: s.Key("root")})
	if err != nil {
		t.Fatal(err)
	}
	was, err := c.Machine(t.Context(), "refunds")
	if err == nil {
		_, err = c.Publish(t.Context(), "refunds", []byte(strings.Replace(string(was.Definition), "asked", "begun", -1)), was.MachineDigest)
	}
	if err != nil {
		t.Fatal(err)
	}
	p.Reach(".text .code")
	p.Press("End")
	p.Type("X") // another name: machineName: refundsX
	p.Says("changed")
	p.Press("Backspace")
	p.Press("ArrowDown", "End", "Backspace") // initialState: aske
	p.Says("1 problem")
	p.Type("d")
	p.Says("sound")
	p.Press("ArrowDown", "End", "Enter")
	p.Type("consensusThreshold: 0.4")
	p.Says("changed")
	p.Expect("412 /v1/machines/refunds")
	publish()
	p.Wait(`document.querySelector("[data-state=error]")`)
	if now, err := c.Machine(t.Context(), "refunds"); err != nil || now.Version != 2 || strings.Contains(string(now.Definition), "0.4") {
		t.Errorf("it is version %d, %v", now.Version, err)
	}
	publish() // what is there now was shown
	p.Says("Published: refunds, version 3.")
	if now, err := c.Machine(t.Context(), "refunds"); err != nil || !strings.Contains(string(now.Definition), "0.4") {
		t.Errorf("it is %s, %v", now.Definition, err)
	}
}

// TestDryRun: who writes a machine says what services and humans would, and sees how it goes on;
// another text is run again with the same words.
func TestDryRun(t *testing.T) {
	s := desktest.Serve(t)
	p := desktest.Open(s, "root", "/desk/edit")
	p.Says("sound")
	p.Reach(".dry button:not(.quiet)")
	p.Press("Enter")
	p.Says("asked: needs a human.")
	p.Reach(".dry .rounds button")
	p.Press("Enter")
	p.Says("closed: completed.")
	p.Says("decided by clerk")
	p.Reach(".text .code")
	p.Press("Ctrl+Home", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown", "End")
	p.Press("Backspace", "Backspace", "Backspace", "Backspace", "Backspace", "Backspace")
	p.Type("asked") // refund leads to where it begins, with the same word for ever
	p.Says("asked: goes on for too long.")
	if got := desktest.Eval[string](p, `[...document.querySelectorAll(".dry .script li")].map((e) => e.innerText).join()`); !strings.HasPrefix(got, "clerk, in asked: refund") {
		t.Errorf("the script is %q", got)
	}
	p.Reach(".dry .script button")
	p.Press("Enter")
	p.Says("asked: needs a human.")
	var list struct{ Items []any }
	if s.Call("root", 200, "GET", "/v1/sessions", "", &list); len(list.Items) != 0 {
		t.Errorf("a dry run has left %v", list.Items)
	}
}

// TestSamples: a sample takes the place of the text, which comes back with the editor's undo.
func TestSamples(t *testing.T) {
	s := desktest.Serve(t)
	p := desktest.Open(s, "root", "/desk/edit")
	p.Says("sound")
	p.Reach("select.samples")
	p.Type("refund")
	p.Says("refund-desk has 2 states and 3 transitions.")
	if got := desktest.Eval[string](p, `document.querySelector("#file").value`); got != "refund-desk.yaml" {
		t.Errorf("the file is called %q", got)
	}
	p.Reach(".text .code")
	p.Press("Ctrl+z")
	p.Says("refunds has 2 states and 2 transitions.")
}

// TestNewVersion: a session can be begun in an older version of its machine, with what that takes.
func TestNewVersion(t *testing.T) {
	s := desktest.Serve(t)
	c, err := client.New(client.Config{BaseURL: s.URL, Key: s.Key("root")})
	if err != nil {
		t.Fatal(err)
	}
	var first string
	for i, m := range []desktest.Machine{alone, {Name: "alone", Voters: "none", Prompt: `"Another question?"`}} {
		made, err := c.Publish(t.Context(), "alone", []byte(m.JSON()), first)
		if err != nil {
			t.Fatal(i, err)
		}
		if first == "" {
			first = made.MachineDigest
		}
	}
	p := desktest.Open(s, "root", "/desk/sessions?machine=alone")
	p.Press("n")
	p.Wait(`document.querySelectorAll("dialog[open] select").length === 2`)
	p.Reach("dialog label:nth-of-type(2) select")
	p.Press("ArrowDown")
	p.Wait(`document.querySelectorAll("dialog select")[1].value === %s`, first)
	p.Reach("dialog textarea")
	p.Type(`{"n":1}`)
	p.Reach("dialog button.main")
	p.Press("Enter")
	p.Wait(`location.pathname.startsWith("/desk/sessions/")`)
	id := strings.TrimPrefix(p.Path(), "/desk/sessions/")
	var begun struct{ MachineDigest string }
	if s.Call("root", 200, "GET", "/v1/sessions/"+id, "", &begun); begun.MachineDigest != first {
		t.Errorf("the session has the version %s, want %s", begun.MachineDigest, first)
	}
}
