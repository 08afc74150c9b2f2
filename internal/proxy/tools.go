package proxy

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/dialai/dialai/internal/text"
)

// A tool is offered if the guards allow it (tool_calls.allowed; without that list all are) and
// it still is what it was when it was first listed: a server that changes what a tool says
// of itself, after somebody has trusted it, no longer offers it through this proxy.

// A digest is that of a tool's definition.
type digest [sha256.Size]byte

// tools are those of the server, as far as they were listed.
type tools struct {
	allowed []string // nil allows all

	mu      sync.Mutex
	seen    map[string]digest
	changed map[string]bool
}

// refuses says why a tool may not be called, "" if it may.
func (t *tools) refuses(name string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.allowed != nil && !slices.Contains(t.allowed, name):
		return fmt.Sprintf("there is no tool %q", name)
	case t.changed[name]:
		return fmt.Sprintf("tool %q is not what it was when it was first listed; restart the proxy to accept it", name)
	}
	return ""
}

// less returns the answer to tools/list without the tools that are not offered. One that
// cannot be read has none.
func (t *tools) less(answer *jsonrpc.Response, warn func(string)) *jsonrpc.Response {
	if answer.Error != nil {
		return answer
	}
	var members map[string]json.RawMessage
	var list []json.RawMessage
	if err := json.Unmarshal(answer.Result, &members); err != nil || json.Unmarshal(members["tools"], &list) != nil {
		return &jsonrpc.Response{ID: answer.ID, Error: &jsonrpc.Error{Code: -32603, Message: "dialai proxy: the server's list of tools cannot be read"}}
	}
	list = slices.DeleteFunc(list, func(tool json.RawMessage) bool { return !t.offers(tool, warn) })
	members["tools"], _ = json.Marshal(append([]json.RawMessage{}, list...)) // it was read
	less, _ := json.Marshal(members)
	return &jsonrpc.Response{ID: answer.ID, Result: less}
}

// offers notes a tool that is listed, and reports whether it is offered.
func (t *tools) offers(tool json.RawMessage, warn func(string)) bool {
	var members map[string]json.RawMessage // by exactly these names
	var name string
	if json.Unmarshal(tool, &members) != nil || json.Unmarshal(members["name"], &name) != nil || name == "" {
		return false
	}
	now := digest(sha256.Sum256(text.Canonical(tool)))
	t.mu.Lock()
	if then, ok := t.seen[name]; !ok {
		t.seen[name] = now
	} else if then != now && !t.changed[name] {
		t.changed[name] = true
		warn(fmt.Sprintf("tool %q has changed since it was first listed: it is not offered any more", name))
	}
	t.mu.Unlock()
	return t.refuses(name) == ""
}
