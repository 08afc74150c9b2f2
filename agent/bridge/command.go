package bridge

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/dialai/dialai/agent"
)

// A code says why something went wrong.
type code string

const (
	badJSON     code = "bad_json"
	badField    code = "bad_field"
	unknownCmd  code = "unknown_cmd"
	unknownID   code = "unknown_id"
	duplicateID code = "duplicate_id"
	unsupported code = "unsupported"
	spawnFailed code = "spawn_failed"
	auth        code = "auth"
	provider    code = "provider"
	crashed     code = "crashed"
	full        code = "full"
	limit       code = "limit"
	lineTooLong code = "line_too_long"
	stale       code = "stale"
)

// codes are all of them.
var codes = []code{badJSON, badField, unknownCmd, unknownID, duplicateID, unsupported, spawnFailed, auth, provider, crashed, full, limit, lineTooLong, stale}

// A fault is why a command is refused.
type fault struct {
	code    code
	message string
}

// A command is a line of the host.
type command struct {
	name  string
	req   json.RawMessage // a number, or nil
	id    string          // of the session that it is about, or ""
	size  int             // of the line, in bytes
	fault *fault          // why it is none; then there is no action
	do    action
}

// An action carries a command out. s is the session that it is about, nil if it is about none.
type action func(b *bridge, s *session, c command)

// readers read the commands. Those of alone are about no session that is there.
var (
	readers = map[string]func(members) action{
		"spawn": readSpawn, "message": readMessage, "interrupt": readInterrupt, "kill": readKill, "tool_result": readToolResult,
		"approve": readApprove, "usage": readUsage, "list": readList, "shutdown": readShutdown,
	}
	alone = []string{"spawn", "list", "shutdown"}
)

// longestReq is how long a number may be that is given back, and longestShown how much of a name
// an error shows.
const (
	longestReq   = 64
	longestShown = 60
)

// parse reads a line.
func parse(line []byte) command {
	c, m := read(line)
	if c.fault == nil {
		c.fault = m.wrong
	}
	if c.fault != nil {
		c.do = nil
	}
	return c
}

// read reads a line, as far as it can be read, and returns what it has looked for.
func read(line []byte) (c command, m members) {
	c.size = len(line)
	switch {
	case !utf8.Valid(line):
		c.fault = &fault{badJSON, "the line is not UTF-8"}
	case !json.Valid(line):
		c.fault = &fault{badJSON, "the line is not JSON"}
	case json.Unmarshal(line, &m.of) != nil || m.of == nil:
		c.fault = &fault{badJSON, "the line is not an object {…}"}
	}
	if c.fault != nil {
		return c, m
	}
	m.reading = &reading{}
	c.req = m.number("req")
	if c.name = m.some("cmd"); m.wrong != nil {
		return c, m
	}
	action := readers[c.name]
	if action == nil {
		c.fault = &fault{unknownCmd, fmt.Sprintf("there is no command %q", shown(c.name))}
		return c, m
	}
	if c.name != "list" && c.name != "shutdown" {
		c.id = m.id()
	}
	c.do = action(m)
	return c, m
}

// number reads a number that is given back as it is.
func (m members) number(name string) json.RawMessage {
	var n json.Number
	raw := m.of[name]
	if !m.get(name, "a number", &n) {
		return nil
	}
	if len(raw) > longestReq || raw[0] == '"' {
		m.fail(name, "must be a number of up to %d digits", longestReq)
		return nil
	}
	return raw
}

func shown(name string) string {
	if r := []rune(name); len(r) > longestShown {
		return string(r[:longestShown]) + "…"
	}
	return name
}

// id reads the id of a session. One that is wrong is not given back.
func (m members) id() string {
	id := m.some("id")
	if id != "" && !idPattern().MatchString(id) {
		m.fail("id", "must have up to 128 letters, digits and . _ : @ -")
		return ""
	}
	return id
}

var idPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9._:@-]{1,128}$`) })

// take carries a command out, or answers why not.
func (b *bridge) take(c command) {
	b.out.check()
	if b.ending {
		return
	}
	s := b.sessions[c.id]
	switch {
	case c.fault != nil:
		b.refuse(c, *c.fault)
	case slices.Contains(alone, c.name):
		c.do(b, nil, c)
	case s == nil:
		b.refuse(c, fault{unknownID, "there is no session of this id"})
	case c.name == "kill":
		c.do(b, s, c)
	case s.closing:
		b.refuse(c, fault{unknownID, "the session is ending"})
	case s.opening:
		b.later(s, c)
	default:
		c.do(b, s, c)
	}
}

func readMessage(m members) action {
	msg := agent.Message{Content: m.some("content"), Deliver: agent.Delivery(m.oneOf("deliver", string(agent.Steer), string(agent.After), string(agent.Now)))}
	msg.ID = m.text("msg_id")
	if msg.ID != "" && !uuidPattern().MatchString(msg.ID) {
		m.fail("msg_id", "must be a UUID")
	}
	return func(b *bridge, s *session, c command) { b.send(s, c, msg) }
}

var uuidPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?i)[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$`) })

func readInterrupt(members) action {
	return func(b *bridge, s *session, c command) { b.answer(s, c, s.live.Interrupt(now), nil) }
}

func readKill(members) action {
	return func(b *bridge, s *session, c command) {
		b.close(s)
		b.ok(c, s.id, nil)
	}
}

func readToolResult(m members) action {
	r := agent.Reply{To: m.some("call"), Content: m.text("content"), IsError: m.flag("is_error")}
	m.there("content")
	return func(b *bridge, s *session, c command) { b.toolResult(s, c, r) }
}

func readApprove(m members) action {
	r := agent.Reply{To: m.some("ask"), Allow: m.flag("allow"), Reason: m.text("reason")}
	m.there("allow")
	return func(b *bridge, s *session, c command) { b.approve(s, c, r) }
}

func readUsage(members) action {
	return func(b *bridge, s *session, c command) { b.probe(s, c) }
}

func readList(members) action {
	return func(b *bridge, _ *session, c command) { b.list(c) }
}

func readShutdown(members) action {
	return func(b *bridge, _ *session, c command) {
		b.shutdown = &c
		b.end()
	}
}
