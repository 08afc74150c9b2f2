// Package rpc speaks JSON-RPC with the program of an agent: requests of ours and the answers to them,
// and the answers to requests of the program. What the methods are is up to each agent.
package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/dialai/dialai/agent"
)

// A Peer is the program. Its fields are set before it is used, and its methods may be called
// concurrently, but Answered: that is for whoever reads the program's lines.
type Peer struct {
	Send    func(line []byte) error // a line to the program
	Gone    <-chan struct{}         // closed once the program has ended
	Version string                  // of JSON-RPC, in every message; "" leaves it out

	mu      sync.Mutex
	asked   int                 // requests of ours, which have ids
	answers map[int]func(Reply) // what to do with their answers
}

// A Reply is the program's answer to a request.
type Reply struct {
	Result json.RawMessage
	Error  *Refusal // nil if it is none
}

// A Refusal is an error of the protocol.
type Refusal struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

func (r *Refusal) Error() string { return "the program says: " + r.Message }

// Ask asks the program; then is called by whoever calls Answered, if the program answers.
func (p *Peer) Ask(method string, params any, then func(Reply)) {
	p.mu.Lock()
	if p.asked++; p.answers == nil {
		p.answers = map[int]func(Reply){}
	}
	id := p.asked
	p.answers[id] = then
	p.mu.Unlock()
	_ = p.write(map[string]any{"id": id, "method": method, "params": params}) // what has ended says so
}

// Wait asks the program and reads its answer into out, unless that says nothing. The error wraps
// [agent.ErrClosed] if the program has ended, and is a [*Refusal] if it refuses.
func (p *Peer) Wait(ctx context.Context, method string, params, out any) error {
	answer := make(chan Reply, 1)
	p.Ask(method, params, func(r Reply) { answer <- r })
	select {
	case r := <-answer:
		switch {
		case r.Error != nil:
			return fmt.Errorf("%s: %w", method, r.Error)
		case len(r.Result) == 0:
			return nil
		}
		if err := json.Unmarshal(r.Result, out); err != nil {
			return fmt.Errorf("%s: the answer cannot be read: %w", method, err)
		}
		return nil
	case <-p.Gone:
		return fmt.Errorf("%s: %w", method, agent.ErrClosed)
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", method, ctx.Err())
	}
}

// Answered takes an answer of the program: the members of its message. One to nothing that was
// asked is left alone.
func (p *Peer) Answered(id, result, failure json.RawMessage) {
	var of int
	if json.Unmarshal(id, &of) != nil {
		return
	}
	r := Reply{Result: result}
	if len(failure) > 0 {
		_ = json.Unmarshal(failure, &r.Error) // null is none
	}
	p.mu.Lock()
	then := p.answers[of]
	delete(p.answers, of)
	p.mu.Unlock()
	if then != nil {
		then(r)
	}
}

// Notify tells the program something that has no answer.
func (p *Peer) Notify(method string, params any) error {
	line := map[string]any{"method": method}
	if params != nil {
		line["params"] = params
	}
	return p.write(line)
}

// Respond answers a request of the program, by its id.
func (p *Peer) Respond(id string, result any) {
	_ = p.write(map[string]any{"id": json.RawMessage(id), "result": result}) // what has ended says so
}

// Unsupported refuses a request whose method is not known.
func (p *Peer) Unsupported(id, method string) {
	_ = p.write(map[string]any{"id": json.RawMessage(id), "error": map[string]any{"code": -32601, "message": "unsupported: " + method}})
}

func (p *Peer) write(line map[string]any) error {
	if p.Version != "" {
		line["jsonrpc"] = p.Version
	}
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	return p.Send(text)
}
