package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dialai/dialai/agent"
)

// spawn is a spawn whose config has one member.
func spawn(config string) string { return `{"cmd":"spawn","id":"new","config":{` + config + `}}` }

// refusals are what is wrong with commands: the code, and how the message begins.
var refusals = []struct{ line, code, message string }{
	{`{"cmd":"list"`, "bad_json", "the line is not JSON"},
	{`{"cmd":"list"}}`, "bad_json", "the line is not JSON"},
	{`{"cmd":"list"} {"cmd":"list"}`, "bad_json", "the line is not JSON"},
	{"{\"cmd\":\"\xff\"}", "bad_json", "the line is not UTF-8"},
	{`[1]`, "bad_json", "the line is not an object"},
	{`null`, "bad_json", "the line is not an object"},
	{`"list"`, "bad_json", "the line is not an object"},
	{strings.Repeat("[", 20_000), "bad_json", "the line is not JSON"},
	{`{"cmd":"spawn"` + strings.Repeat(" ", 16<<20) + `}`, "line_too_long", "a line has more than 16 MiB"},

	{`{}`, "bad_field", "cmd: is missing"},
	{`{"CMD":"list"}`, "bad_field", "cmd: is missing"},
	{`{"cmd":7}`, "bad_field", "cmd: must be a string"},
	{`{"cmd":null}`, "bad_field", "cmd: is missing"},
	{`{"cmd":"list","req":"7"}`, "bad_field", "req: must be a number"},
	{`{"cmd":"list","req":[7]}`, "bad_field", "req: must be a number"},
	{`{"cmd":"list","req":1` + strings.Repeat("0", 100) + `}`, "bad_field", "req: must be a number"},
	{`{"cmd":"dance"}`, "unknown_cmd", `there is no command "dance"`},

	{`{"cmd":"spawn"}`, "bad_field", "id: is missing"},
	{`{"cmd":"spawn","id":"a b"}`, "bad_field", "id: must have"},
	{`{"cmd":"spawn","id":"` + strings.Repeat("a", 129) + `"}`, "bad_field", "id: must have"},
	{`{"cmd":"spawn","id":"new","config":[]}`, "bad_field", "config: must be an object"},
	{spawn(`"system_prompt":1`), "bad_field", "config.system_prompt: must be a string"},
	{spawn(`"agent":1`), "bad_field", "config.agent: must be a string"},
	{spawn(`"agent":"nobody"`), "spawn_failed", "no such agent: nobody"},
	{spawn(`"agent":"broken"`), "spawn_failed", "it does not open with ***"},
	{spawn(`"agent":"nil"`), "spawn_failed", `there is no agent "nil"`},
	{spawn(`"cwd":"/no/such/folder"`), "bad_field", "config.cwd: must be a folder"},
	{spawn(`"cwd":"host_test.go"`), "bad_field", "config.cwd: must be a folder"},
	{spawn(`"model":"--print"`), "bad_field", "config.model: must not begin with -"},
	{spawn(`"resume":"-x"`), "bad_field", "config.resume: must not begin with -"},
	{spawn(`"resume":"nothing-of-mine"`), "spawn_failed", "scripted:s.jsonl: go on with"},
	{spawn(`"context_base":"moon"`), "bad_field", "config.context_base: must be one of"},
	{spawn(`"budget_usd":0`), "bad_field", "config.budget_usd: must be more than 0"},
	{spawn(`"budget_usd":"1"`), "bad_field", "config.budget_usd: must be a number"},
	{spawn(`"budget_usd":1e999`), "bad_field", "config.budget_usd: must be a number"},
	{spawn(`"agent":"free","budget_usd":1`), "unsupported", "config.budget_usd: free does not tell what it costs"},
	{spawn(`"output_schema":"x"`), "bad_field", "config.output_schema: must be an object"},
	{spawn(`"env":{"A=B":"1"}`), "bad_field", "config.env: has a name that is none"},
	{spawn(`"env":{"KEY":7}`), "bad_field", "config.env.KEY: must be a string"},
	{spawn(`"env":{"KEY":null}`), "bad_field", "config.env.KEY: must be a string"},
	{spawn(`"env":{"KEY":"\u0000"}`), "bad_field", "config.env.KEY: must be a string"},
	{spawn(`"env":[]`), "bad_field", "config.env: must be an object"},
	{spawn(`"hooks":1`), "bad_field", "config.hooks: must be an object"},
	{spawn(`"hooks":{"context_thresholds":[70]}`), "bad_field", "config.hooks.context_thresholds: must be two numbers"},
	{spawn(`"hooks":{"context_thresholds":[null,85]}`), "bad_field", "config.hooks.context_thresholds: must be two numbers"},
	{spawn(`"hooks":{"context_thresholds":[90,85]}`), "bad_field", "config.hooks.context_thresholds: must be two numbers"},
	{spawn(`"hooks":{"context_thresholds":[70,101]}`), "bad_field", "config.hooks.context_thresholds: must be two numbers"},
	{spawn(`"hooks":{"context_thresholds":[70.5,85]}`), "bad_field", "config.hooks.context_thresholds: must be a list"},
	{spawn(`"mcp_tools":"look"`), "bad_field", "config.mcp_tools: must be a list of strings"},
	{spawn(`"mcp_tools":[1]`), "bad_field", "config.mcp_tools[0]: must be a string"},
	{spawn(`"mcp_tools":["look"]`), "bad_field", "config.mcp_tools: must name each tool once, and tools must define it"},
	{spawn(`"mcp_tools":["spawn_orchestrator","spawn_orchestrator"]`), "bad_field", "config.mcp_tools: must name each tool once"},
	{spawn(`"tools":{}`), "bad_field", "config.tools: must be a list of objects"},
	{spawn(`"tools":[null]`), "bad_field", "config.tools[0]: must be an object"},
	{spawn(`"tools":[{}]`), "bad_field", "config.tools[0].name: is missing"},
	{spawn(`"tools":[{"name":"spawn_orchestrator"}]`), "bad_field", "config.tools[0].name: must be of up to 64"},
	{spawn(`"tools":[{"name":"decide"}]`), "bad_field", "config.tools[0].name: must be of up to 64"},
	{spawn(`"tools":[{"name":"a"},{"name":"a"}]`), "bad_field", "config.tools[1].name: must be of up to 64"},
	{spawn(`"tools":[{"name":"a","description":1}]`), "bad_field", "config.tools[0].description: must be a string"},
	{spawn(`"tools":[{"name":"a","input_schema":[]}]`), "bad_field", "config.tools[0].input_schema: must be an object"},
	{spawn(`"permission":7`), "bad_field", "config.permission: must be an object"},
	{spawn(`"permission":{"default":"allow"}`), "bad_field", "config.permission.default: must be one of"},
	{spawn(`"permission":{"allow":"Bash"}`), "bad_field", "config.permission.allow: must be a list of strings"},
	{spawn(`"permission":{"allow":["Bash(*)"]}`), "bad_field", "config.permission.allow: a pattern is"},
	{spawn(`"permission":{"allow":["Bash( *)"]}`), "bad_field", "config.permission.allow: a pattern is"},
	{spawn(`"permission":{"deny":["Bash(git status)"]}`), "bad_field", "config.permission.deny: a pattern is"},
	{spawn(`"permission":{"deny":[""]}`), "bad_field", "config.permission.deny[0]: must be a string"},
	{`{"cmd":"spawn","id":"a"}`, "duplicate_id", "there is a session of this id"},

	{`{"cmd":"message","content":"x"}`, "bad_field", "id: is missing"},
	{`{"cmd":"message","id":"a"}`, "bad_field", "content: is missing"},
	{`{"cmd":"message","id":"a","content":""}`, "bad_field", "content: must not be empty"},
	{`{"cmd":"message","id":"a","content":["x"]}`, "bad_field", "content: must be a string"},
	{`{"cmd":"message","id":"a","content":"x","deliver":"soon"}`, "bad_field", "deliver: must be one of"},
	{`{"cmd":"message","id":"a","content":"x","msg_id":"m1"}`, "bad_field", "msg_id: must be a UUID"},
	{`{"cmd":"message","id":"stiff","content":"x","deliver":"now"}`, "unsupported", "it ends no turn for a message"},
	{`{"cmd":"message","id":"nobody","content":"x"}`, "unknown_id", "there is no session of this id"},

	{`{"cmd":"interrupt"}`, "bad_field", "id: is missing"},
	{`{"cmd":"interrupt","id":"nobody"}`, "unknown_id", "there is no session"},
	{`{"cmd":"kill","id":7}`, "bad_field", "id: must be a string"},
	{`{"cmd":"kill","id":"nobody"}`, "unknown_id", "there is no session"},

	{`{"cmd":"tool_result","id":"a","content":"x"}`, "bad_field", "call: is missing"},
	{`{"cmd":"tool_result","id":"a","call":"c"}`, "bad_field", "content: is missing"},
	{`{"cmd":"tool_result","id":"a","call":"c","content":7}`, "bad_field", "content: must be a string"},
	{`{"cmd":"tool_result","id":"a","call":"c","content":"","is_error":"no"}`, "bad_field", "is_error: must be true or false"},
	{`{"cmd":"tool_result","id":"a","call":"c","content":""}`, "stale", "no tool waits for this call"},
	{`{"cmd":"tool_result","id":"nobody","call":"c","content":""}`, "unknown_id", "there is no session"},

	{`{"cmd":"approve","id":"a","allow":true}`, "bad_field", "ask: is missing"},
	{`{"cmd":"approve","id":"a","ask":"q"}`, "bad_field", "allow: is missing"},
	{`{"cmd":"approve","id":"a","ask":"q","ALLOW":true}`, "bad_field", "allow: is missing"},
	{`{"cmd":"approve","id":"a","ask":"q","allow":1}`, "bad_field", "allow: must be true or false"},
	{`{"cmd":"approve","id":"a","ask":"q","allow":true,"reason":1}`, "bad_field", "reason: must be a string"},
	{`{"cmd":"approve","id":"a","ask":"q","allow":true}`, "stale", "no tool waits for this ask"},

	{`{"cmd":"usage"}`, "bad_field", "id: is missing"},
	{`{"cmd":"usage","id":"nobody"}`, "unknown_id", "there is no session"},
}

// A broken agent does not open, and says a secret; a free one does not tell what it costs; a
// stiff one refuses to be told something now.
type (
	broken struct{ agent.Agent }
	free   struct{ agent.Agent }
	stiff  struct{ agent.Agent }
)

func (broken) Open(_ context.Context, spec agent.Spec, _ chan<- agent.Event) (agent.Session, error) {
	_, secret, _ := strings.Cut(strings.Join(spec.Env, ""), "=")
	return nil, errors.New("it does not open with " + secret)
}

func (f free) Open(ctx context.Context, spec agent.Spec, events chan<- agent.Event) (agent.Session, error) {
	own := make(chan agent.Event)
	go func() {
		for last := false; !last; {
			e := <-own
			_, last = e.Body.(agent.Exited)
			if o, is := e.Body.(agent.Opened); is {
				o.Agent, o.Capabilities.Cost = "free", false
				e.Body = o
			}
			events <- e
		}
	}()
	return f.Agent.Open(ctx, spec, own)
}

func (s stiff) Open(ctx context.Context, spec agent.Spec, events chan<- agent.Event) (agent.Session, error) {
	live, err := s.Agent.Open(ctx, spec, events)
	return stiffSession{live}, err
}

type stiffSession struct{ agent.Session }

func (s stiffSession) Send(ctx context.Context, m agent.Message) error {
	if m.Deliver == agent.Now {
		return errors.New("it ends no turn for a message")
	}
	return s.Session.Send(ctx, m)
}

// TestRefusals: each command says which of its fields is wrong, and with which code; it changes
// nothing, and the next command is carried out.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := script(t, `{"text": "x"}`)
		a["broken"], a["free"], a["nil"], a["stiff"] = broken{a[""]}, free{a[""]}, nil, stiff{a[""]}
		h := serve(t, a)
		h.send(`{"cmd":"spawn","id":"a"}`)
		h.until("session", "id=a")
		h.send(`{"cmd":"spawn","id":"stiff","config":{"agent":"stiff"}}`)
		h.until("session", "id=stiff")
		for i, r := range refusals {
			line := r.line
			if strings.Contains(line, `"broken"`) {
				line = strings.Replace(line, `"config":{`, `"config":{"env":{"API_KEY":"sk-0123456789"},`, 1)
			}
			if strings.HasPrefix(line, `{"cmd"`) && r.code != "bad_json" && r.code != "line_too_long" && !strings.Contains(line, `"req"`) {
				line = fmt.Sprintf(`{"req":%d,%s`, 1000+i, line[1:])
			}
			go h.send(line)
			e := h.until("error")
			if e.text("code") != r.code || !strings.HasPrefix(e.text("message"), r.message) || strings.HasPrefix(line, `{"req":`) && e.number("req") != float64(1000+i) {
				t.Errorf("%.200s\nis answered %v\nwant %s, %s", r.line, e, r.code, r.message)
			}
			if strings.Contains(fmt.Sprint(e), "sk-0123456789") {
				t.Errorf("a secret is told: %v", e)
			}
		}
		h.send(`{"cmd":"list","req":1,"and":{"what":"is not known"}}`)
		if e := h.until("ok", "req=1"); len(e["sessions"].([]any)) != 2 {
			t.Errorf("%v", e)
		}
		if err := h.end(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestEveryCode: however an agent fails, the host is told one of the codes, once for each turn.
func TestEveryCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := serve(t, agents{"": says{bodies: []agent.Body{
			agent.Opened{}, agent.TurnStarted{}, agent.Retry{Attempt: 3, Max: 10, Reason: "401"}, agent.Failed{Code: "auth", Message: "refused"}, agent.Done{Outcome: agent.Auth},
			agent.TurnStarted{}, agent.Done{Outcome: agent.Provider}, agent.TurnStarted{}, agent.Failed{Code: "strange"}, agent.Done{Outcome: agent.Provider},
			agent.TurnStarted{}, agent.Done{Outcome: agent.Limit}, agent.Failed{Code: "line_too_long"}, agent.TurnStarted{}, agent.Done{Outcome: agent.Full},
			agent.Exited{Code: -1, Signal: "killed", Left: []int{7}},
		}}})
		h.send(`{"cmd":"spawn","id":"a"}`)
		want := []string{"auth", "provider", "provider", "limit", "line_too_long", "full", "crashed"}
		for _, code := range want {
			h.until("error", "code="+code, "id=a")
		}
		h.until("exit", "code=-1", "signal=killed", "left=[7]")
		if err := h.end(); err != nil || len(h.all("error")) != len(want) || len(h.all("error", "attempt=3")) != 1 {
			t.Errorf("%v\n%s", err, h)
		}
	})
}
