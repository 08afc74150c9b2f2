package desk_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dialai/dialai/client"
	"github.com/dialai/dialai/desk/desktest"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/machines"
	"github.com/dialai/dialai/strategies"
)

// TestPublish: who writes a machine sees what is wrong where it is wrong, and publishes what they
// have compared with what is there, and with what begins anew by it; if that is another one by then,
// nothing is written over it, and both are shown.
func TestPublish(t *testing.T) {
	s := desktest.Serve(t)
	p := desktest.Open(s, "root", "/desk/edit")
	p.Says("sound")
	asks := ""
	publish := func() {
		p.Reach("main .bar button.main")
		p.Press("Enter")
		p.Wait(`document.querySelector("dialog[open] button.main")`)
		asks = desktest.Eval[string](p, `document.querySelector("dialog").innerText`)
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
	p.Wait(`document.querySelector("[data-both] th").innerText === "Version 2, published" && [...document.querySelectorAll("[data-both] .minus")].some((c) => c.innerText.includes("begun")) && [...document.querySelectorAll("[data-both] .plus")].some((c) => c.innerText.includes("0.4"))`)
	if now, err := c.Machine(t.Context(), "refunds"); err != nil || now.Version != 2 || strings.Contains(string(now.Definition), "0.4") {
		t.Errorf("it is version %d, %v", now.Version, err)
	}
	publish() // what is there now was shown
	p.Says("Published: refunds, version 3.")
	if !strings.Contains(asks, "v2 → v3: nothing is promised any more in begun") || !strings.Contains(asks, "lines unchanged") || strings.Contains(asks, "+ \n") {
		t.Errorf("of what it changes is said\n%s", asks)
	}
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

// TestOtherForm: a machine is the same as JSON and as YAML, whichever it is written in; a draft can be thrown
// away; and before it is published it is said which test begins anew, or that none does.
func TestOtherForm(t *testing.T) {
	s := desktest.Serve(t)
	name, text, _ := machines.Read("refund-desk")
	s.Publish("refund-desk", name, string(text))
	p := desktest.Open(s, "root", "/desk/edit?machine=refund-desk")
	p.Says("sound")
	lines := `[...document.querySelector(".code").shadowRoot.querySelectorAll(".cm-line")].map((l) => l.innerText).join("\n")`
	is := func(what, file, begins string) {
		t.Helper()
		p.Wait(`document.querySelector("#file").value === %s && (`+lines+`).startsWith(%s)`, file, begins)
		p.Wait(`document.querySelector(".ok") && !document.querySelector(".bar .tag")`) // the digest is that of what is published
	}
	p.Reach(".forms button:last-child")
	p.Press("Enter")
	p.Says("It says the same in the other form.")
	is("as YAML", "refund-desk.yaml", "machineName: refund-desk\ninitialState: claimed")
	p.Reach(".text .code")
	p.Press("Ctrl+Home")
	p.Type("# of 2026")
	p.Press("Enter")
	p.Reach(".forms button:first-child")
	p.Press("Enter")
	p.Says("which has no comments")
	is("as JSON", "refund-desk.json", "{\n  \"machineName\": \"refund-desk\"")

	for i, c := range []struct{ old, new, says string }{
		{`Refund of`, `Repayment of`, "The policy digest does not change: nothing begins anew."},
		{`"maxError":0.1`, `"maxError":0.2`, "v1 → v2: the test of the promise begins anew in claimed."},
	} {
		now, err := machine.Parse(name, text, strategies.Checks())
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), fmt.Sprintf("%d.json", i))
		if err := os.WriteFile(path, bytes.Replace(now.JSON(), []byte(c.old), []byte(c.new), 1), 0o600); err != nil {
			t.Fatal(err)
		}
		p.Give("main input[type=file]", path)
		p.Wait(`document.querySelector("#file").value === %s && document.querySelector(".ok") && document.querySelector(".bar .tag")`, fmt.Sprintf("%d.json", i))
		p.Reach("main .bar button.main")
		p.Press("Enter")
		p.Wait(`document.querySelector("dialog[open] [data-tests]").innerText === %s`, c.says)
		if got := desktest.Eval[string](p, `[...document.querySelectorAll("dialog .diff :is(.plus, .minus, .gap)")].map((e) => e.innerText.slice(0, 1)).join("")`); len([]rune(got)) > 5 || !strings.Contains(got, "+") || !strings.Contains(got, "⋯") {
			t.Errorf("%s: of what changes is shown %s", c.new, got)
		}
		p.Press("Escape")
		p.Wait(`!document.querySelector("dialog")`)
	}
	p.Reach("[data-discard]")
	p.Press("Enter")
	is("as it was", "refund-desk.json", "{\n  \"machineName\": \"refund-desk\"")
	p.Visit("/desk/edit?machine=refund-desk")
	is("kept", "refund-desk.json", "{\n  \"machineName\": \"refund-desk\"")
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
	for i, m := range []desktest.Machine{desktest.Alone, {Name: "alone", Voters: "none", Prompt: `"Another question?"`}} {
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
