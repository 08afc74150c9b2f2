package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/internal/text"
)

// One call of a tool: its arguments become a request, its answer the result. A result is one text
// of JSON and the same as structured content. A refusal is a result, too, that says so: the first
// text is the message, the second has the code, the hint and what else the problem says.

// A conversation is a call of a tool, with what the client has sent along.
type conversation struct {
	*Server
	tool      *tool
	raw       json.RawMessage
	arguments map[string]json.RawMessage
	elicits   *mcp.ElicitationCapabilities // what the client can put to a human; nil is nothing
	state     string                       // what it was to send back
	responses mcp.InputResponseMap         // what the human has said
}

// An outcome is what a call has come to: an answer, or a request to put something to a human.
type outcome struct {
	body    json.RawMessage
	problem *api.Error
	ask     mcp.InputRequestMap
	state   string
}

// refused is the outcome of what is not done.
func refused(status int, code, hint, format string, args ...any) outcome {
	return outcome{problem: &api.Error{Status: status, Code: code, Detail: fmt.Sprintf(format, args...), Hint: hint, ExitCode: 1}}
}

// answered is the outcome of a value.
func answered(v any) outcome {
	body, err := json.Marshal(v)
	if err != nil {
		return refused(http.StatusInternalServerError, "internal", "", "the answer cannot be written")
	}
	return outcome{body: text.Escaped(body)}
}

// do calls the tool.
func (c *conversation) do(ctx context.Context) outcome {
	if problem := c.read(); problem != nil {
		return outcome{problem: problem}
	}
	if c.tool.does != nil {
		return c.tool.does(ctx, c)
	}
	return c.ask(ctx, nil)
}

// result calls the tool and returns the result for a client.
func (c *conversation) result(ctx context.Context) *mcp.CallToolResult {
	o := c.do(ctx)
	switch {
	case o.ask != nil:
		return &mcp.CallToolResult{InputRequests: o.ask, RequestState: o.state}
	case o.problem != nil:
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "Error: " + printable(o.problem.Detail)}, &mcp.TextContent{Text: indented(said(o.problem))}}}
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: indented(o.body)}}, StructuredContent: o.body}
}

// said returns a problem as JSON, without what only HTTP has.
func said(p *api.Error) json.RawMessage {
	body, err := json.Marshal(p)
	var members map[string]json.RawMessage
	if err != nil || json.Unmarshal(body, &members) != nil {
		return json.RawMessage(`{}`)
	}
	for _, name := range []string{"type", "title", "status"} {
		delete(members, name)
	}
	body, _ = json.Marshal(members) // raw values of what was just read
	return text.Escaped(body)
}

// indented returns JSON with two spaces a level.
func indented(body json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, bytes.TrimSpace(body), "", "  ") != nil {
		return string(body)
	}
	return b.String()
}

// read reads the arguments. It checks their names; the operation checks what they say.
func (c *conversation) read() *api.Error {
	c.arguments = map[string]json.RawMessage{}
	if len(bytes.TrimSpace(c.raw)) > 0 {
		if err := json.Unmarshal(c.raw, &c.arguments); err != nil {
			return wrong("", "the arguments are no object")
		}
	}
	known := []string{}
	for _, a := range c.tool.in {
		known = append(known, a.name)
		if v, given := c.arguments[a.name]; given && string(v) == "null" {
			delete(c.arguments, a.name)
		}
		if _, given := c.arguments[a.name]; a.required && !given {
			return wrong("/"+a.name, c.tool.name+" needs "+a.name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.arguments)) {
		if !slices.Contains(known, name) {
			return wrong("/"+name, fmt.Sprintf("%s has no argument %q; it takes %s", c.tool.name, name, cmp.Or(strings.Join(known, ", "), "none")))
		}
	}
	return nil
}

// wrong is the problem of arguments that do not fit.
func wrong(pointer, detail string) *api.Error {
	return &api.Error{Status: http.StatusBadRequest, Code: "bad_request", Detail: detail, ExitCode: 2, Problems: []api.Problem{{Pointer: pointer, Message: detail}}}
}

// text returns an argument that is a text; "" if it is none or not given.
func (c *conversation) text(name string) string {
	var text string
	_ = json.Unmarshal(c.arguments[name], &text) // the operation refuses what is none
	return text
}

// number returns an argument that is a whole number from 0 to most; without if it is none.
func (c *conversation) number(name string, without, most int) int {
	n := without
	if json.Unmarshal(c.arguments[name], &n) != nil {
		n = without
	}
	return min(max(n, 0), most)
}

// request makes the request of the arguments. more are further members of the body.
func (c *conversation) request(more map[string]any) (Call, *api.Error) {
	call := Call{Method: c.tool.method, Path: c.tool.path, Query: url.Values{}}
	body, takes := map[string]any{}, false
	for _, a := range c.tool.in {
		v, given := c.arguments[a.name]
		name := cmp.Or(a.as, a.name)
		switch {
		case a.in == inBody && !given:
			takes = true
		case a.in == inTool, !given && a.without == "":
		case a.in == inBody:
			body[name] = v
		case a.in == inWhole:
			call.Body = v
		default:
			text := a.without
			if given {
				var ok bool
				if text, ok = plain(v); !ok {
					return call, wrong("/"+a.name, a.name+" is no text or number")
				}
			}
			switch a.in {
			case inPath:
				if text == "" || text == "." || text == ".." {
					return call, wrong("/"+a.name, fmt.Sprintf("%s is %q, which is the name of nothing", a.name, text))
				}
				call.Path = strings.ReplaceAll(call.Path, "{"+name+"}", url.PathEscape(text))
			case inWait:
				call.Query.Set("wait", text+"s")
			default:
				call.Query.Set(name, text)
			}
		}
	}
	maps.Copy(body, more)
	if takes || len(body) > 0 {
		call.Body, _ = json.Marshal(body) // what was read as JSON, and texts
	}
	return call, nil
}

// plain returns a text or number as a request has it in its path and query.
func plain(v json.RawMessage) (string, bool) {
	var text string
	if json.Unmarshal(v, &text) == nil {
		return text, true
	}
	var n json.Number
	var yes bool
	if json.Unmarshal(v, &n) == nil || json.Unmarshal(v, &yes) == nil {
		return string(v), true
	}
	return "", false
}

// ask does what the operation of the tool does with the arguments. more are further members of
// the body.
func (c *conversation) ask(ctx context.Context, more map[string]any) outcome {
	call, problem := c.request(more)
	if problem != nil {
		return outcome{problem: problem}
	}
	return c.operate(ctx, call)
}

// operate does what a request asks for.
func (s *Server) operate(ctx context.Context, call Call) outcome {
	a := s.config.API.Do(ctx, call)
	if a.Status < http.StatusMultipleChoices { // a redirection leads to no operation
		return outcome{body: bytes.TrimSpace(a.Body)}
	}
	p := &api.Error{}
	if err := json.Unmarshal(a.Body, p); err != nil || p.Code == "" {
		return refused(http.StatusNotFound, "not_found", "", "there is no %s", call.Path)
	}
	return outcome{problem: p}
}

// into reads what an operation has answered; false if it was refused.
func (o *outcome) into(v any) bool {
	return o.problem == nil && json.Unmarshal(o.body, v) == nil
}
