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
	p.Reach(".code")
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
