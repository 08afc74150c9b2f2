package desktest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/client"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/machines"
	"github.com/dialai/dialai/strategies"
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

// Alone is a machine whose questions humans answer, without anybody who proposes.
var Alone = Machine{Name: "alone", Voters: "none"}

// Working is a machine that goes on by itself, until a limit stops it: in its third round.
const Working = `{"machineName":"working","initialState":"work","goalState":"done","subject":"= \"working \" + string(data.n)",
	"guards":{"limits":{"max_steps":2},"budget":{"hard_limit_calls":500}},
	"states":{"work":{"prompt":"Go on?","transitions":{"again":"work","stop":"done"}},"done":{}},
	"specialists":[{"role":"proposer","specialistId":"bot","strategyFnName":"firstAvailable"},{"role":"proposer","specialistId":"carol","isHuman":true},{"role":"proposer","specialistId":"dave","isHuman":true},{"role":"arbiter","specialistId":"x","strategyFnName":"firstProposal"}]}`

// Starts starts n sessions of a machine, which differ in n.
func (s *Server) Starts(m Machine, n int) (list []Session) {
	s.Helper()
	for i := range n {
		list = append(list, s.Start(m.JSON(), fmt.Sprintf(`{"n":%d}`, i+1)))
	}
	return list
}

// Collapsing plays rounds of the machine "collapsing" in which bot, whom dave bears out, and rob differ, and
// publishes it. Within 26 of them bot is promoted, or can be, where it was frozen meanwhile.
func (s *Server) Collapsing(rounds int) {
	s.Helper()
	m := Machine{Name: "collapsing", State: `"collapse":{"target":0.5,"alpha":0.2},"risk":{"maxError":0.4}`}
	for i := range rounds {
		v := s.Start(m.JSON(), fmt.Sprintf(`{"n":%d}`, i+1), Proposed("bot", "pay", ""), Proposed("rob", "refuse", ""))
		if v.Status == "needs_human" {
			s.Decide("dave", v.SessionID, "pay")
		}
	}
	s.Publish(m.Name, "collapsing.json", m.JSON())
}

// Publish publishes a machine file by a name that there is not yet.
func (s *Server) Publish(name, file, text string) {
	s.Helper()
	c, err := client.New(client.Config{BaseURL: s.URL, Key: s.Key("root")})
	if err == nil {
		_, err = c.PublishFile(s.Context(), name, api.MachineFile{Name: file, Text: text}, "")
	}
	if err != nil {
		s.Fatal(err)
	}
}

// PublishSample publishes the sample machine with carol in the place of the clerk, has her decide some
// refunds, and leaves six.
func (s *Server) PublishSample() {
	s.Helper()
	name, text, ok := machines.Read("refund-desk")
	if !ok {
		s.Fatal("there is no sample refund-desk")
	}
	text = bytes.ReplaceAll(text, []byte("clerk"), []byte("carol"))
	s.Publish("refund-desk", name, string(text))
	m, err := machine.Parse(name, text, strategies.Checks())
	if err != nil {
		s.Fatal(err)
	}
	for i, amount := range []int{20, 80, 25, 150, 30, 12, 300, 40, 18, 90, 22, 60, 25, 110, 15, 20, 240, 310, 18, 95, 500} {
		v := s.Start(string(m.JSON()), fmt.Sprintf(`{"order":"A-%d","amount":%d,"reason":%q,"orders":%d}`, i+1, amount, []string{"late", "damaged", "dislike"}[i%3], i%9))
		if i < 15 {
			s.Decide("carol", v.SessionID, map[bool]string{true: "refund", false: "refuse"}[amount <= 100 && i%3 != 2])
		}
	}
}

// Quoted is a value as JSON.
func Quoted(v any) string {
	text, _ := json.Marshal(v) // what tests write can be written
	return string(text)
}
