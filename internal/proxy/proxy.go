// Package proxy stands before an MCP server and guards the tool calls of an agent that
// knows nothing of dialai.
//
//	proxy.go    the messages that pass in both directions
//	call.go     one tool call, from the agent's request to what it is answered
//	tools.go    the list of tools, and tools that change
//	log.go      the event log: what is written before and after a call, and read at a start
//	upstream.go how the server is reached: as a child process, or by its URL
package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dialai/dialai/guard"
)

// Every message of one side is read, and passed on as it is, but for three kinds: the agent's
// tools/call, which is judged first (call.go); its notice that it gives a call up; and the
// server's answer to tools/list, of which tools are left out (tools.go). So whatever else the
// two agree on, in any revision of the protocol, works as without a proxy.
//
// Requests of the agent to which the server has not answered are remembered by their ids. If
// the server ends, each of them is answered with that. The proxy fails closed: what cannot be
// read, judged or logged is refused and not passed on.

// A Config says what a proxy stands between, and what it goes by. Guards, Agent and Server
// are required.
type Config struct {
	Guards *guard.Config
	// Task is what all calls belong to: limits hold for all of it.
	Task string
	// Log is where every call is written, before it is passed on and after; nil writes nothing.
	Log *Log
	// Panel decides on calls that a guard gives to somebody else; nil refuses them.
	Panel Panel
	// Agent and Server are the two sides. Run closes what it has connected.
	Agent, Server Side
	// Timeout is how long the server may take for a call; 0 means ten minutes.
	Timeout time.Duration
	// Warn is told what the operator should know, in a line of text; nil is told nothing.
	Warn func(string)
	now  func() time.Time
}

// A Panel decides whether a call that a guard has given to somebody else may be made. It may
// take as long as ctx lets it. An error is a no.
type Panel func(ctx context.Context, c Call) (Decision, error)

// A Call is what a Panel is asked about. As JSON it is the input of a session.
type Call struct {
	Tool    string          `json:"tool"`
	Args    json.RawMessage `json:"args"`
	Digest  string          `json:"digest"`  // SHA-256 of tool and arguments as canonical JSON, in hex
	Reasons []string        `json:"reasons"` // of the guard
}

// A Decision is what came of a Call.
type Decision struct {
	Allowed bool
	By      string // the session in which it was decided
	Why     string // it was not allowed, for the agent
}

// ErrServerEnded is wrapped by what Run returns where the server ended, and not the agent.
var ErrServerEnded = errors.New("the server ended")

// errAgentEnded ends a Run as it should.
var errAgentEnded = errors.New("the agent ended")

// A proxy is one Run.
type proxy struct {
	Config
	guard  *guard.Guard
	agent  mcp.Connection
	server mcp.Connection
	turn   chan struct{} // whoever has put into it judges and makes a call; calls of a task are one after the other
	tools  tools

	mu      sync.Mutex
	pending map[jsonrpc.ID]*request // of the agent, by their ids
	stopped string                  // why no call is made any more; "" if they are
}

// A request is one of the agent to which the server has not answered.
type request struct {
	method string
	answer chan *jsonrpc.Response // of a call; nil for others, whose answer is passed on
	cancel context.CancelFunc     // of a call
}

// Run passes messages until the agent or the server ends, or ctx does. It returns nil if the
// agent ended, and an error that wraps ErrServerEnded if the server did.
func Run(ctx context.Context, c Config) error {
	p := &proxy{Config: c, turn: make(chan struct{}, 1), pending: map[jsonrpc.ID]*request{}, tools: tools{allowed: c.Guards.Tools.Allowed, seen: map[string]digest{}, changed: map[string]bool{}}}
	if p.now == nil {
		p.now = time.Now
	}
	if p.Timeout <= 0 {
		p.Timeout = 10 * time.Minute
	}
	if p.Warn == nil {
		p.Warn = func(string) {}
	}
	var err error
	if p.guard, err = guard.New(c.Guards, guard.WithClock(p.now)); err != nil {
		return err
	}
	if p.stopped, err = c.Log.restore(p.guard, c.Task, c.Guards); err != nil {
		return err
	}
	if p.server, err = c.Server.transport.Connect(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrServerEnded, err)
	}
	defer p.server.Close()
	if p.agent, err = c.Agent.transport.Connect(ctx); err != nil {
		return err
	}
	defer p.agent.Close()
	return p.pass(ctx)
}

// pass carries messages both ways until one side ends.
func (p *proxy) pass(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	var calls, work sync.WaitGroup
	work.Go(func() { stop(p.fromAgent(ctx, &calls)) })
	work.Go(func() { stop(p.fromServer(ctx)) })
	<-ctx.Done()
	why := context.Cause(ctx)
	if errors.Is(why, ErrServerEnded) {
		p.giveUp(why)
	}
	calls.Wait() // each has been answered, if the agent is there
	p.agent.Close()
	end := p.server.Close()
	work.Wait()
	switch {
	case errors.Is(why, ErrServerEnded) && end != nil:
		return fmt.Errorf("%w: %w", ErrServerEnded, end)
	case errors.Is(why, ErrServerEnded):
		return why
	}
	return nil
}

// fromAgent reads what the agent sends.
func (p *proxy) fromAgent(ctx context.Context, calls *sync.WaitGroup) error {
	for {
		m, err := p.agent.Read(ctx)
		if err != nil {
			return fmt.Errorf("%w: %w", errAgentEnded, err)
		}
		req, ok := m.(*jsonrpc.Request)
		switch {
		case !ok:
			p.forward(ctx, m)
		case req.Method == "tools/call" && !req.IsCall():
			p.Warn("the agent sent tools/call without an id: it was not passed on")
		case req.Method == "tools/call":
			if held, cancel, ok := p.hold(ctx, req); ok {
				calls.Go(func() { defer cancel(); p.call(held, req) })
			}
		case req.Method == "notifications/cancelled" && p.cancelled(req):
		case req.IsCall():
			if p.remember(req, &request{method: req.Method}) {
				p.forward(ctx, m)
			}
		default:
			p.forward(ctx, m)
		}
	}
}

// hold remembers a call, and returns the context that ends with it.
func (p *proxy) hold(ctx context.Context, req *jsonrpc.Request) (context.Context, context.CancelFunc, bool) {
	ctx, cancel := context.WithCancel(ctx)
	ok := p.remember(req, &request{method: req.Method, answer: make(chan *jsonrpc.Response, 1), cancel: cancel})
	if !ok {
		cancel()
	}
	return ctx, cancel, ok
}

// remember notes a request until it is answered. An id that is out already is refused.
func (p *proxy) remember(req *jsonrpc.Request, r *request) bool {
	p.mu.Lock()
	_, twice := p.pending[req.ID]
	if !twice {
		p.pending[req.ID] = r
	}
	p.mu.Unlock()
	if twice {
		p.Warn(fmt.Sprintf("the agent sent a second request with the id %v before the first was answered: it was not passed on", req.ID.Raw()))
	}
	return !twice
}

// taken returns a request and forgets it; nil if nobody waits for that.
func (p *proxy) taken(id jsonrpc.ID) *request {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.pending[id]
	delete(p.pending, id)
	return r
}

// cancelled ends the call that the agent gives up, and reports whether it is one that the
// proxy holds: then whoever makes it tells the server, if that was sent it.
func (p *proxy) cancelled(req *jsonrpc.Request) bool {
	var in struct {
		RequestID any `json:"requestId"`
	}
	if json.Unmarshal(req.Params, &in) != nil {
		return false
	}
	id, err := jsonrpc.MakeID(in.RequestID)
	if err != nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.pending[id]
	if r == nil || r.cancel == nil {
		return false
	}
	r.cancel()
	return true
}

// forward sends the server what the agent sent. What cannot be sent is answered with why.
func (p *proxy) forward(ctx context.Context, m jsonrpc.Message) {
	err := p.server.Write(ctx, m)
	if err == nil {
		return
	}
	p.Warn("the server could not be sent what the agent asked: " + err.Error())
	if req, ok := m.(*jsonrpc.Request); ok && req.IsCall() && p.taken(req.ID) != nil {
		p.fail(req.ID, err)
	}
}

// fromServer reads what the server sends.
func (p *proxy) fromServer(ctx context.Context) error {
	for {
		m, err := p.server.Read(ctx)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrServerEnded, err)
		}
		answer, ok := m.(*jsonrpc.Response)
		if !ok {
			p.tell(m)
			continue
		}
		r := p.taken(answer.ID)
		switch {
		case r == nil: // nobody waits for it any more
		case r.answer != nil:
			own := *answer // the transport looks at its own once more
			r.answer <- &own
		case r.method == "tools/list":
			p.tell(p.tools.less(answer, p.Warn))
		case r.method == "initialize":
			if at, ok := p.Server.transport.(*remote); ok {
				at.agreed(answer.Result)
			}
			p.tell(answer)
		default:
			p.tell(answer)
		}
	}
}

// giveUp answers all that the server has not answered with why it will not. Calls are
// answered by whoever makes them.
func (p *proxy) giveUp(why error) {
	p.mu.Lock()
	var left []jsonrpc.ID
	for id, r := range p.pending {
		if r.answer == nil {
			left = append(left, id)
			delete(p.pending, id)
		}
	}
	p.mu.Unlock()
	for _, id := range left {
		p.fail(id, why)
	}
}

// tell sends the agent a message. If that fails the agent is gone, which reading finds.
func (p *proxy) tell(m jsonrpc.Message) { _ = p.agent.Write(context.Background(), m) }

// fail answers a request with an error.
func (p *proxy) fail(id jsonrpc.ID, why error) {
	p.tell(&jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: -32603, Message: "dialai proxy: " + why.Error()}})
}
