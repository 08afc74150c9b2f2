package desktest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// people take part in every machine of the seeds.
const people = `{"role":"proposer","specialistId":"carol","isHuman":true},{"role":"proposer","specialistId":"dave","isHuman":true},{"role":"proposer","specialistId":"erin","isHuman":true}`

// A Machine is a definition of one state, ask, of which a session asks carol, dave and erin.
type Machine struct {
	Name        string // also of its questions' subjects: Name and what n says
	State       string // further members of the state ask, such as "collapse":{}
	Transitions string // of the state; "" is pay and refuse
	Voters      string // "" are two who differ; none asks humans only
	Prompt      string // "" asks whether to pay
}

// JSON is the definition.
func (m Machine) JSON() string {
	if m.Transitions == "" {
		m.Transitions = `"pay":{"target":"paid","irreversible":false},"refuse":{"target":"refused","irreversible":false}`
	}
	if m.Prompt == "" {
		m.Prompt = `"Should this be paid?"`
	}
	switch m.Voters {
	case "":
		m.Voters = `{"role":"proposer","specialistId":"bot","strategyFnName":"firstAvailable"},{"role":"proposer","specialistId":"rob","strategyFnName":"lastAvailable"},`
	case "none":
		m.Voters = ""
	}
	arbiter := "alignmentMargin"
	if strings.Contains(m.State, `"collapse"`) {
		arbiter = "bayes"
	}
	if m.State != "" {
		m.State += ","
	}
	return fmt.Sprintf(`{"machineName":%q,"initialState":"ask","goalState":"paid","subject":"= has(data.n) ? \"%s \" + string(data.n) : \"%s\"",
		"states":{"ask":{"prompt":%s,%s"transitions":{%s}},"paid":{},"refused":{"final":true}},
		"specialists":[%s,%s{"role":"arbiter","specialistId":"x","strategyFnName":%q}]}`, m.Name, m.Name, m.Name, m.Prompt, m.State, m.Transitions, people, m.Voters, arbiter)
}

// Kinds are the machines of the seeds, by name: one for each kind of question.
var Kinds = map[string]Machine{
	"plain":      {Name: "plain"},
	"collapsing": {Name: "collapsing", State: `"collapse":{"target":0.85}`},
	"audited":    {Name: "audited", State: `"audit":{"mode":"before","rate":1,"newcomerRate":1}`, Voters: `{"role":"proposer","specialistId":"bot","strategyFnName":"firstAvailable"},`},
	"final":      {Name: "final", Transitions: `"erase":{"target":"paid","irreversible":true,"description":"All of it goes"},"keep":{"target":"refused","irreversible":false}`},
	"approved":   {Name: "approved", Transitions: `"pay":{"target":"paid","irreversible":false,"approvals":{"count":2}},"refuse":{"target":"refused","irreversible":false}`},
	"parameters": {Name: "parameters", Transitions: `"pay":{"target":"paid","irreversible":false,"parameters":{"type":"object","required":["amount"],"properties":{
		"amount":{"type":"number","minimum":1,"title":"How much"},"speed":{"enum":["slow","fast"]},"when":{"type":"string","format":"date"},"note":{"type":"string","maxLength":40}}}},"refuse":{"target":"refused","irreversible":false}`},
	"due":        {Name: "due", State: `"due":{"in":"48h","then":"refuse"}`},
	"overdue":    {Name: "overdue", State: `"due":"1ms"`},
	"closed":     {Name: "closed", Transitions: `"pay":{"target":"paid","irreversible":false,"when":"= data.amount > 100"},"refuse":{"target":"refused","irreversible":false}`},
	"looked":     {Name: "looked", State: `"audit":{"mode":"after","rate":1,"newcomerRate":1}`, Voters: `{"role":"proposer","specialistId":"bot","strategyFnName":"firstAvailable"},`},
	"second":     {Name: "second", State: `"secondHuman":{"rate":1}`, Voters: "none"},
	"permission": {Name: "permission", Prompt: `"May the agent do this, this once?"`, State: `"collapse":{}`},
}

// Proposed is a proposal of bot or rob, with what they say of it.
func Proposed(who, transition, reasoning string) string {
	said, _ := json.Marshal(map[string]string{"specialistId": who, "transitionName": transition, "reasoning": reasoning}) // texts can be written
	return string(said)
}

// Reason is what bot says wherever it is withheld: it must not be seen.
const Reason = "bot-says-pay-98765"

// Seed starts a session of every kind of question, and returns them by the name of their machine; of
// reviews by audit, second and adjudication.
func (s *Server) Seed() map[string]Session {
	s.Helper()
	list := map[string]Session{}
	facts := `{"n":1,"amount":20,"reason":"late","orders":1}`
	differ := []string{Proposed("bot", "pay", Reason), Proposed("rob", "refuse", "rob-says-refuse-98765")}
	for _, name := range []string{"plain", "approved", "parameters", "due", "overdue", "closed", "final"} {
		list[name] = s.Start(Kinds[name].JSON(), facts)
	}
	s.Decide("dave", list["approved"].SessionID, "pay")
	list["collapsing"] = s.Start(Kinds["collapsing"].JSON(), facts, differ...)
	list["audited"] = s.Start(Kinds["audited"].JSON(), facts, differ[0])
	list["permission"] = s.Start(Kinds["permission"].JSON(), `{"tool":"Bash","input":{"command":"rm -r build"},"cwd":"/srv"}`, differ...)
	list["audit"] = s.Start(Kinds["looked"].JSON(), facts, differ[0])
	for _, name := range []string{"second", "adjudication"} {
		list[name] = s.Start(Kinds["second"].JSON(), facts)
		s.Decide("erin", list[name].SessionID, "pay")
	}
	id := list["adjudication"].SessionID
	for _, r := range s.Reviews("dave") {
		if strings.HasPrefix(r, id) {
			s.Call("dave", 200, "POST", "/v1/reviews/"+r, `{"transitionName":"refuse"}`, nil)
		}
	}
	return list
}

// Reviews are the ids of what somebody is to review.
func (s *Server) Reviews(who string) (ids []string) {
	s.Helper()
	var list struct {
		Items []struct {
			QuestionID string
			Humans     []string
		}
	}
	s.Call(who, 200, "GET", "/v1/reviews?human="+who, "", &list)
	for _, i := range list.Items {
		if slices.Contains(i.Humans, who) {
			ids = append(ids, i.QuestionID)
		}
	}
	return ids
}
