package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/dialai/dialai/agent"
)

// Tools that the bridge knows.
const (
	summon = "spawn_orchestrator"
	decide = "decide"
)

var (
	summonTool = agent.Tool{Name: summon, Description: "Summon an orchestrator: a new agent that carries out the task in the prompt. It does not know what was said to you. The call returns at once; what it has to say follows as messages.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"prompt":{"type":"string"}},"required":["prompt"]}`)}
	decideTool = agent.Tool{Name: decide, Description: "Hand in what this turn has come to. Call it before the turn ends; the last call counts."}
)

// A spawning is what a spawn asks for.
type spawning struct {
	agent   string
	spec    agent.Spec
	levels  agent.Levels
	rules   rules
	refuses bool // what no rule allows, instead of asking the host
	budget  float64
}

func readSpawn(m members) action {
	c := m.object("config")
	sp := spawning{agent: c.text("agent"), levels: c.object("hooks").levels()}
	sp.spec = agent.Spec{SystemPrompt: c.text("system_prompt"), Cwd: c.folder("cwd"), Model: c.word("model"), Resume: c.word("resume"),
		Base: agent.Base(c.oneOf("context_base", string(agent.Ceiling), string(agent.Window))), Env: c.env("env"), Tools: c.tools()}
	p := c.object("permission")
	sp.rules = rules{allow: p.patterns("allow"), deny: p.patterns("deny")}
	sp.refuses = p.oneOf("default", "wait", "deny") == "deny"
	if c.get("budget_usd", "a number", &sp.budget) && !(sp.budget > 0) {
		c.fail("budget_usd", "must be more than 0")
	}
	return func(b *bridge, _ *session, c command) { b.spawn(c, sp) }
}

func (m members) levels() agent.Levels {
	var list []int
	if !m.get("context_thresholds", "a list of two whole numbers", &list) {
		list = []int{70, 85}
	}
	if len(list) != 2 || list[0] < 1 || list[0] > list[1] || list[1] > 100 {
		m.fail("context_thresholds", "must be two numbers of per cent, the second no smaller")
		return agent.Levels{}
	}
	return agent.Levels{Soft: list[0], Hard: list[1]}
}

// folder reads a folder that is there; it is that of this process if none is named.
func (m members) folder(name string) string {
	path, err := filepath.Abs(m.text(name))
	if err == nil {
		var info os.FileInfo
		if info, err = os.Stat(path); err == nil && info.IsDir() {
			return path
		}
	}
	m.fail(name, "must be a folder that is there")
	return ""
}

func (m members) env(name string) (list []string) {
	for key, raw := range m.object(name).of {
		var value string
		switch {
		case key == "" || strings.ContainsAny(key, "=\x00"):
			m.fail(name, "has a name that is none")
		case json.Unmarshal(raw, &value) != nil || string(raw) == "null" || strings.Contains(value, "\x00"):
			m.fail(name+"."+key, "must be a string")
		}
		list = append(list, key+"="+value)
	}
	slices.Sort(list)
	return list
}

// tools reads what tools the host serves: those that are named.
func (m members) tools() (list []agent.Tool) {
	defined := map[string]agent.Tool{summon: summonTool}
	for _, t := range m.objects("tools") {
		name := t.some("name")
		if _, is := defined[name]; is || name == decide || !toolPattern().MatchString(name) {
			t.fail("name", "must be of up to 64 letters, digits, _ and -, and no name that is taken")
		}
		defined[name] = agent.Tool{Name: name, Description: t.text("description"), InputSchema: t.schema("input_schema")}
	}
	for _, name := range m.texts("mcp_tools") {
		t, is := defined[name]
		if !is || slices.ContainsFunc(list, func(o agent.Tool) bool { return o.Name == name }) {
			m.fail("mcp_tools", "must name each tool once, and tools must define it")
		}
		list = append(list, t)
	}
	if schema := m.schema("output_schema"); schema != nil {
		t := decideTool
		t.InputSchema = schema
		list = append(list, t)
	}
	return list
}

var toolPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`) })

// spawn opens a session.
func (b *bridge) spawn(c command, sp spawning) {
	if b.sessions[c.id] != nil {
		b.refuse(c, fault{duplicateID, "there is a session of this id; it ends with its exit"})
		return
	}
	a, err := b.agent(sp.agent)
	if err != nil {
		b.refuse(c, fault{spawnFailed, err.Error()})
		return
	}
	sp.spec.ID, sp.spec.As = b.mark+c.id, c.id
	s := newSession(c, sp)
	b.sessions[c.id] = s
	b.spawned = append(b.spawned, s)
	b.count(c.id)
	events := make(chan agent.Event)
	go func() {
		live, err := a.Open(s.life, sp.spec, events)
		b.post(func() { b.opened(s, live, err) })
		if err == nil {
			b.follow(s, events)
		}
	}()
}

// count keeps numbers of orchestrators from being given twice.
func (b *bridge) count(id string) {
	digits, is := strings.CutPrefix(id, "orch-")
	if n, err := strconv.Atoi(digits); is && err == nil && n < 1_000_000_000 {
		b.number = max(b.number, n)
	}
}

// follow hands the events of a session over, no faster than the host reads, unless it is to end:
// it does so only once its last event was taken.
func (b *bridge) follow(s *session, events <-chan agent.Event) {
	for e := range events {
		b.out.room(s.life)
		b.post(func() { b.on(s, e.Body) })
		if _, last := e.Body.(agent.Exited); last {
			return
		}
	}
}

// opened takes a session that is there now, or is not.
func (b *bridge) opened(s *session, live agent.Session, err error) {
	if err != nil {
		why := s.masked(err.Error())
		if s.closing {
			why = "it was ended before it had opened"
		}
		b.notOpened(s, fault{spawnFailed, why})
		b.remove(s)
		return
	}
	s.live = live
	if s.closing {
		s.closing = false
		b.close(s)
	}
}

// notOpened answers a spawn that has come to nothing.
func (b *bridge) notOpened(s *session, f fault) {
	s.opening = false
	b.refuse(s.spawn, f)
}

// begin tells of a session that has opened, and carries out what was asked of it until then.
func (b *bridge) begin(s *session, o agent.Opened) {
	s.info = o
	if s.budget > 0 && !o.Capabilities.Cost {
		b.notOpened(s, fault{unsupported, fmt.Sprintf("config.budget_usd: %s does not tell what it costs", o.Agent)})
		s.mute = true
		b.close(s)
		return
	}
	s.opening = false
	s.meter.usage.Window, s.meter.usage.Ceiling = o.Window, o.Ceiling
	b.tell(s.id, sessionEvent{SessionID: o.AgentSession, Agent: o.Agent, Version: o.Version, Model: o.Model, Window: o.Window, Ceiling: o.Ceiling, Resumed: o.Resumed, Capabilities: names(o.Capabilities)})
	b.ok(s.spawn, s.id, nil)
	b.catchUp(s)
}

// names are those of the capabilities that an agent has.
func names(c agent.Capabilities) []string {
	var has map[string]bool
	text, _ := json.Marshal(c) // booleans have JSON
	_ = json.Unmarshal(text, &has)
	list := []string{}
	for name, is := range has {
		if is {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// mostDeferred is how much may be asked of a session that has not opened, in bytes.
const mostDeferred = 64 << 20

// later keeps a command until the session has opened.
func (b *bridge) later(s *session, c command) {
	if s.deferredSize += c.size; s.deferredSize > mostDeferred {
		b.refuse(c, fault{limit, "the session has not opened, and holds 64 MiB of commands"})
		return
	}
	s.deferred = append(s.deferred, c)
}

// catchUp carries out what was kept.
func (b *bridge) catchUp(s *session) {
	list := s.deferred
	s.deferred = nil
	for _, c := range list {
		b.take(c)
	}
}

// close ends a session; its exit follows.
func (b *bridge) close(s *session) {
	if s.closing {
		return
	}
	s.closing = true
	s.endLife()
	if s.live == nil {
		return // opened does it
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), longestClose)
		defer cancel()
		if s.live.Close(ctx) != nil && ctx.Err() != nil {
			b.post(func() { b.on(s, agent.Exited{Code: -1}) })
		}
	}()
}
