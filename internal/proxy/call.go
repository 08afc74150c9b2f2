package proxy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/internal/text"
	"github.com/dialai/dialai/verdict"
)

// One call, in order:
//
//  1. Tool and arguments are read from exactly the members that the server reads.
//  2. A tool that is not offered is refused; the guard is not asked.
//  3. The guard begins the step. ok and warn go on; retry and abort are refused with their
//     reasons, and after abort everything is; escalate asks the panel, once, for exactly
//     this call.
//  4. The log says that the call is made. If it cannot, nothing is made any more.
//  5. The server is sent the request as it came.
//  6. The guard looks at the result. What its packs or loops stop is withheld.
//  7. The step is committed with the result, the log says what came of it, and the agent is
//     answered.
//
// A call that was sent counts as made, whatever comes back: also where the server takes too
// long, ends, or the agent gives it up.

// A made is a call that the guard has judged.
type made struct {
	tool    string
	args    json.RawMessage
	verdict verdict.Verdict
	token   *guard.Token
	by      string // the session that has allowed it
}

// call judges and makes a call, and answers it.
func (p *proxy) call(ctx context.Context, req *jsonrpc.Request) {
	answer := p.answerCall(ctx, req)
	p.taken(req.ID)
	if answer != nil {
		answer.ID = req.ID
		p.tell(answer)
	}
}

// answerCall returns what the agent is answered, nil if it has given the call up.
func (p *proxy) answerCall(ctx context.Context, req *jsonrpc.Request) *jsonrpc.Response {
	m := &made{}
	var err error
	if m.tool, m.args, err = readCall(req.Params); err != nil {
		return refused(err.Error())
	}
	if why := p.tools.refuses(m.tool); why != "" {
		return refused(why)
	}
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return nil
	}
	if p.stopped != "" {
		return refused(p.stopped)
	}
	if why := p.judge(ctx, m); why != "" {
		return refused(why)
	}
	return p.make(ctx, req, m)
}

// readCall returns the tool and the arguments of a call. Members are taken by exactly their
// names, and none may be there twice, so that what is judged is what the server reads.
func readCall(params json.RawMessage) (string, json.RawMessage, error) {
	tidy, err := jsontext.Tidy(params)
	if err != nil {
		return "", nil, fmt.Errorf("the request cannot be read: %w", err)
	}
	var members map[string]json.RawMessage
	var tool string
	if err := json.Unmarshal(tidy, &members); err != nil || json.Unmarshal(members["name"], &tool) != nil || tool == "" {
		return "", nil, errors.New("the request names no tool")
	}
	if args := members["arguments"]; args != nil {
		return tool, args, nil
	}
	return tool, json.RawMessage("{}"), nil
}

// input is the step of a call.
func (p *proxy) input(m *made, results ...json.RawMessage) guard.CheckInput {
	in := guard.CheckInput{TaskID: p.Task, ToolCalls: []verdict.ToolCall{{Name: m.tool, Args: m.args}}}
	if len(results) > 0 {
		in.ToolCalls[0].Result = results[0]
	}
	return in
}

// judge has the guard begin the step of a call, and the panel decide where it does not. It
// returns why the call is refused, "" if it is not.
func (p *proxy) judge(ctx context.Context, m *made) string {
	var err error
	m.verdict, m.token, err = p.guard.Begin(ctx, p.input(m))
	switch {
	case err != nil:
		return err.Error()
	case m.token != nil:
		return ""
	case m.verdict.Status == verdict.Escalate:
		return p.escalate(ctx, m)
	}
	why := saysNo(m.verdict)
	if m.verdict.Status == verdict.Abort {
		why += ". No tool is called any more in this task"
		p.stopped = "the task was stopped: " + texts(m.verdict)
	}
	if err := p.record(m, nil, m.verdict, false); err != nil {
		return err.Error()
	}
	return why
}

// escalate has the panel decide on a call.
func (p *proxy) escalate(ctx context.Context, m *made) string {
	no := func(why string) string {
		if err := p.record(m, nil, m.verdict, false); err != nil {
			return err.Error()
		}
		return saysNo(m.verdict) + ": " + why
	}
	if p.Panel == nil {
		return no("somebody has to decide, and nobody is there who could (dialai proxy --escalate MACHINE)")
	}
	reasons := []string{}
	for _, r := range m.verdict.Reasons {
		reasons = append(reasons, r.Text())
	}
	d, err := p.Panel(ctx, Call{Tool: m.tool, Args: m.args, Digest: Digest(m.tool, m.args), Reasons: reasons})
	m.by = d.By
	switch {
	case err != nil:
		return no(err.Error())
	case !d.Allowed:
		return no(d.Why)
	}
	if m.token, err = p.guard.Allow(p.input(m)); err != nil {
		return no(err.Error())
	}
	return ""
}

// Digest returns what a call is known by where it is decided on: SHA-256, in hex, of the
// canonical JSON of {"args":…,"tool":…}.
func Digest(tool string, args json.RawMessage) string {
	name, _ := json.Marshal(tool) // a string always can
	sum := sha256.Sum256(text.Canonical(slices.Concat([]byte(`{"tool":`), name, []byte(`,"args":`), args, []byte(`}`))))
	return hex.EncodeToString(sum[:])
}

// make sends the server a call that may be made, and returns what the agent is answered.
func (p *proxy) make(ctx context.Context, req *jsonrpc.Request, m *made) *jsonrpc.Response {
	if err := p.Log.begin(p.Task, p.input(m), p.now()); err != nil {
		m.token.Release()
		return refused(p.halt(err))
	}
	answer, why := p.send(ctx, req)
	if answer == nil || answer.Error != nil {
		m.token.Commit()
		if err := p.record(m, nil, m.verdict, true); err != nil {
			return refused(err.Error())
		}
		if answer == nil {
			answer = refused(why)
		}
		return answer
	}
	found := p.look(m, answer.Result)
	v := m.verdict.Join(found)
	m.token.Commit(answer.Result)
	if found.Status == verdict.Abort {
		p.stopped = "the task was stopped: " + texts(found)
	}
	if err := p.record(m, answer.Result, v, true); err != nil {
		return refused(err.Error())
	}
	switch {
	case found.Status > verdict.Warn:
		return refused(fmt.Sprintf("tool %q was called, and what it gave is withheld: %s", m.tool, texts(found)))
	case v.Status == verdict.Warn:
		answer.Result = warned(answer.Result, v)
	case found.Status == verdict.Warn: // of a call that somebody has allowed
		answer.Result = warned(answer.Result, found)
	}
	return answer
}

// send passes a call on and waits for its answer; without one it says why there is none.
func (p *proxy) send(ctx context.Context, req *jsonrpc.Request) (*jsonrpc.Response, string) {
	p.mu.Lock()
	r := p.pending[req.ID]
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	if err := p.server.Write(ctx, req); err != nil {
		return nil, "the server could not be asked: " + err.Error()
	}
	select {
	case answer := <-r.answer:
		return answer, ""
	case <-ctx.Done():
	}
	if cause := context.Cause(ctx); errors.Is(cause, ErrServerEnded) {
		return nil, "the server ended before it answered"
	}
	id, _ := json.Marshal(map[string]any{"requestId": req.ID.Raw(), "reason": "nobody waits for it any more"}) // an id always can
	_ = p.server.Write(context.WithoutCancel(ctx), &jsonrpc.Request{Method: "notifications/cancelled", Params: id})
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, fmt.Sprintf("the server did not answer within %s; what it has done nobody knows", p.Timeout)
	}
	return nil, "the call was given up"
}

// look has the guard look at what a call gave: whether its packs find something in it, and
// whether it is a loop of which it did not know. It changes nothing. Packs report a rule once
// in a step, so they look at the result without the arguments.
func (p *proxy) look(m *made, result json.RawMessage) verdict.Verdict {
	whole, _, err := p.guard.DryRun(p.input(m, result))
	alone, _, also := p.guard.DryRun(p.input(&made{tool: m.tool}, result))
	if err != nil || also != nil {
		return verdict.InternalError("the result")
	}
	var reasons []verdict.Reason
	for _, r := range alone.Reasons {
		if r.Guard == "packs" {
			reasons = append(reasons, r)
		}
	}
	for _, r := range whole.Reasons {
		if r.Guard == "loop" && !slices.ContainsFunc(m.verdict.Reasons, func(had verdict.Reason) bool { return had.Code == r.Code }) {
			reasons = append(reasons, r)
		}
	}
	return verdict.Of(reasons)
}

// record writes what came of a call. What cannot be logged is not done: nothing is, then.
func (p *proxy) record(m *made, result json.RawMessage, v verdict.Verdict, executed bool) error {
	in := p.input(m)
	if result != nil {
		in = p.input(m, result)
	}
	if err := p.Log.end(p.Task, in, v, executed, m.by, p.now()); err != nil {
		return errors.New(p.halt(err))
	}
	return nil
}

// halt ends all calls, since the log cannot be written.
func (p *proxy) halt(err error) string {
	p.stopped = "the log cannot be written, and nothing is done that is not in it"
	p.Warn("the log cannot be written, so no tool is called any more: " + err.Error())
	return p.stopped
}

// saysNo says that a guard has refused a call, and why.
func saysNo(v verdict.Verdict) string {
	return map[verdict.Status]string{verdict.Retry: "try another way", verdict.Escalate: "not without somebody's word", verdict.Abort: "refused"}[v.Status] + ": " + texts(v)
}

// texts joins the reasons of a verdict.
func texts(v verdict.Verdict) string {
	var list []string
	for _, r := range v.Reasons {
		list = append(list, r.Text())
	}
	return strings.Join(list, "; ")
}

// refused is the answer to a call that was not made, or of which the result is withheld.
func refused(why string) *jsonrpc.Response {
	result, _ := json.Marshal(map[string]any{"content": []any{textItem(why)}, "isError": true}) // a text always can
	return &jsonrpc.Response{Result: result}
}

func textItem(why string) map[string]string {
	return map[string]string{"type": "text", "text": "dialai: " + why}
}

// warned returns a result with what the guard warns of behind its content.
func warned(result json.RawMessage, v verdict.Verdict) json.RawMessage {
	var members map[string]json.RawMessage
	var content []json.RawMessage
	if json.Unmarshal(result, &members) != nil || json.Unmarshal(members["content"], &content) != nil {
		return result // no result of a tool, such as a task that is to give one
	}
	item, _ := json.Marshal(textItem("warning: " + texts(v)))
	members = maps.Clone(members)
	members["content"], _ = json.Marshal(append(content, item))
	more, err := json.Marshal(members)
	if err != nil {
		return result
	}
	return more
}
