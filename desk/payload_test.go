package desk_test

import (
	"strings"
	"testing"

	"github.com/dialai/dialai/desk/desktest"
)

// TestPayloadSeen: nobody decides on an amount that they are not shown. What goes with a proposal, with
// another human's word, with what is about to be sent and with what was executed stands where each
// of them is looked at.
func TestPayloadSeen(t *testing.T) {
	s := desktest.Serve(t)
	const parameters = `"parameters":{"type":"object","properties":{"amount":{"type":"integer","title":"How much"}}}`
	m := desktest.Machine{Name: "payments", Transitions: `"pay":{"target":"paid","irreversible":true,"approvals":{"count":2},` + parameters + `},"refuse":{"target":"refused","irreversible":false}`}
	v := s.Start(m.JSON(), `{"n":1}`, strings.Replace(desktest.Proposed("bot", "pay", "as ordered"), `{`, `{"metaJson":{"amount":98765},`, 1), desktest.Proposed("rob", "refuse", "no"))
	p := desktest.Open(s, "carol", v.Path())
	p.Wait(`[...document.querySelectorAll(".proposals li")].some((e) => e.innerText.includes("bot") && e.innerText.includes("98765"))`)
	q := s.Session(v.SessionID).Question
	s.Call("dave", 200, "POST", "/v1/sessions/"+v.SessionID+"/decisions", `{"transitionName":"pay","reasoning":"agreed","metaJson":{"amount":43210},"roundId":"`+q.RoundID+`","questionDigest":"`+q.Digest+`"}`, nil)
	p.Visit(v.Path())
	p.Wait(`[...document.querySelectorAll(".proposals li")].some((e) => e.innerText.includes("dave") && e.innerText.includes("43210"))`)
	p.Press("1")
	p.Wait(`document.querySelector("#payload-amount")`)
	p.Says("Copy from bot")
	p.Reach("#payload-amount")
	p.Type("43210")
	p.Reach("article > form > label textarea")
	p.Type("agreed")
	p.Press("Ctrl+Enter")
	p.Wait(`document.querySelector("dialog[open]")?.innerText.includes("43210")`)
	p.Reach("dialog input")
	p.Type("pay")
	p.Press("Enter")
	p.Wait(`document.querySelector("[data-outcome]")`)
	decided(t, s, v.SessionID, "pay")
	p.Visit("/desk/sessions/" + v.SessionID)
	p.Wait(`document.querySelector("[data-round]")?.innerText.includes("43210") && document.querySelector("[data-round]").innerText.includes("98765")`)
}
