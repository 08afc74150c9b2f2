package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/dialai/dialai/api"
)

// The tools that are not just one operation with the same arguments.

// register has a specialist registered in a role. A human is registered by somebody who says so
// by another way than the words of a model.
func register(role string) func(context.Context, *conversation) outcome {
	return func(ctx context.Context, c *conversation) outcome {
		var human bool
		if json.Unmarshal(c.arguments["isHuman"], &human) == nil && human && !c.config.ArgumentsRule {
			return answered(asking{Code: needsConfirmation, Hint: "an administrator registers humans: POST /v1/machines/{machine}/specialists, or the definition names them"})
		}
		return c.ask(ctx, map[string]any{"role": role})
	}
}

// switching switches a specialist on or off.
func switching(body string) func(context.Context, *conversation) outcome {
	return func(ctx context.Context, c *conversation) outcome {
		call, problem := c.request(nil)
		if problem != nil {
			return outcome{problem: problem}
		}
		call.Body = json.RawMessage(body)
		return c.operate(ctx, call)
	}
}

// runSession starts a session and waits for it. Where nobody carries sessions on, it runs it.
func runSession(ctx context.Context, c *conversation) outcome {
	o := c.ask(ctx, map[string]any{"defaults": true})
	var started struct {
		Session struct{ SessionID string }
		Settled bool
	}
	if !o.into(&started) || started.Settled {
		return o
	}
	var about struct{ Drives bool }
	if a := c.operate(ctx, Call{Method: http.MethodGet, Path: "/v1"}); !a.into(&about) || about.Drives {
		return o
	}
	at := sessionAt(started.Session.SessionID, "")
	if ran := c.operate(ctx, Call{Method: http.MethodPost, Path: at + "/run"}); ran.problem != nil {
		return ran
	}
	return c.operate(ctx, Call{Method: http.MethodGet, Path: at + "/settled"})
}

// sessionAt returns the path of a session, or below it.
func sessionAt(id, below string) string { return "/v1/sessions/" + url.PathEscape(id) + below }

// A ticked is what became of a session in a tick.
type ticked struct {
	SessionID string          `json:"sessionId"`
	Tick      json.RawMessage `json:"tick,omitempty"`
	Problem   *api.Error      `json:"problem,omitempty"`
}

// tickedSchema is that of the answer of tick.
var tickedSchema = map[string]any{
	"type": "object", "required": []string{"items"},
	"properties": map[string]any{"items": map[string]any{"type": "array", "items": map[string]any{
		"type": "object", "required": []string{"sessionId"},
		"properties": map[string]any{"sessionId": map[string]any{"type": "string"}, "tick": map[string]any{"$ref": refTo + "TickView"}, "problem": map[string]any{"type": "object"}},
	}}},
}

// tick steps sessions that run, and those that are overdue, the oldest first.
func tick(ctx context.Context, c *conversation) outcome {
	most := c.number("limit", 100, 100)
	items, done := []ticked{}, map[string]bool{}
	for _, which := range []url.Values{{"status": {"running"}}, {"overdue": {"true"}, "status": {"needs_human"}}} {
		which.Set("order", "asc")
		which.Set("limit", strconv.Itoa(most))
		o := c.operate(ctx, Call{Method: http.MethodGet, Path: "/v1/sessions", Query: which})
		var list struct{ Items []struct{ SessionID string } }
		if !o.into(&list) {
			return o
		}
		for _, at := range list.Items {
			if done[at.SessionID] || len(items) >= most || ctx.Err() != nil {
				continue
			}
			done[at.SessionID] = true
			items = append(items, c.step(ctx, at.SessionID))
		}
	}
	return answered(struct {
		Items []ticked `json:"items"`
	}{items})
}

// step carries one session of a tick one step further.
func (c *conversation) step(ctx context.Context, id string) ticked {
	o := c.operate(ctx, Call{Method: http.MethodPost, Path: sessionAt(id, "/step")})
	var stepped struct{ Tick json.RawMessage }
	if !o.into(&stepped) {
		return ticked{SessionID: id, Problem: o.problem}
	}
	return ticked{SessionID: id, Tick: stepped.Tick}
}
