// Package bridge drives many sessions of coding agents in one process for a host in any
// language: one JSON object a line goes in (commands), one a line comes out (events).
// docs/bridge.md has the protocol.
//
// One goroutine (run) owns all there is to know. Whatever happens comes to it as a function
// through one channel: a command that was read, an event of a session, a time that is up. It
// never waits: what takes time (to open and to close a session, to ask one for its usage) is
// done by a goroutine of its own, which then says so through the same channel. So there are no
// locks but that of the output.
//
// # A host that does not read
//
// Nothing is lost while it does not: what it has not read yet is kept, and agents stand still.
// Beyond 8 MiB no event is taken from any session; its agent waits, as if it were asked
// something. Commands are still read and answered, so that a host can end what it cannot
// follow; if what it has not read grows beyond 128 MiB all the same, it is taken for gone.
// Of a session that is to end events are taken without bound, since it ends only once its last was
// read. Where all ends, the host has 10 s in which it reads nothing before the bridge gives up.
package bridge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/dialai/dialai/agent"
)

// Serve reads commands from in and writes events to out until the host ends it: by the command
// shutdown, or by the end of in, when it returns nil; or by ctx, or because out takes nothing
// more, when it returns why. It returns when all sessions have ended, with their processes;
// but a Read of in may still wait then. agents makes an agent by the name that a host gives it,
// "" where it gives none; it is called once for each name, by one goroutine.
func Serve(ctx context.Context, in io.Reader, out io.Writer, agents func(name string) (agent.Agent, error)) error {
	b := &bridge{
		agents: agents, known: map[string]agent.Agent{}, mark: newUUID() + "/",
		inbox: make(chan func()), over: make(chan struct{}), out: newOutput(out), sessions: map[string]*session{},
	}
	go b.read(in)
	return b.run(ctx)
}

// A bridge is one call of Serve. All of it belongs to the goroutine of run, but for post.
type bridge struct {
	agents func(string) (agent.Agent, error)
	known  map[string]agent.Agent // those that were made, by their names
	mark   string                 // begins the ids of sessions on this machine
	inbox  chan func()
	over   chan struct{} // closed once nobody takes from inbox any more
	out    *output
	seq    uint64

	sessions map[string]*session // by id, until their exit
	spawned  []*session          // the same, in the order of their spawns
	number   int                 // the highest of an orchestrator that was summoned or spawned
	ending   bool
	shutdown *command // that is to be answered; nil: none
}

// post has f run by the owner, and returns once it was taken.
func (b *bridge) post(f func()) {
	select {
	case b.inbox <- f:
	case <-b.over:
	}
}

// after has f run by the owner in a while.
func (b *bridge) after(d time.Duration, f func()) *time.Timer {
	return time.AfterFunc(d, func() { b.post(f) })
}

// errUnread is why a host is taken for gone.
var errUnread = errors.New("the host does not read what it is told")

// run is the owner.
func (b *bridge) run(ctx context.Context) (err error) {
	defer close(b.over)
	stop, gone := ctx.Done(), b.out.gone
	for !b.ending || len(b.sessions) > 0 {
		select {
		case f := <-b.inbox:
			f()
		case <-stop:
			stop, err = nil, context.Cause(ctx)
			b.end()
		case <-gone:
			gone = nil
			b.end()
		}
	}
	if b.shutdown != nil {
		b.ok(*b.shutdown, "", nil)
	}
	return errors.Join(err, b.out.finish())
}

// end closes all sessions.
func (b *bridge) end() {
	b.ending = true
	b.out.release()
	for _, s := range b.spawned {
		b.close(s)
	}
}

// agent returns an agent by its name: the same each time, since it may remember something.
func (b *bridge) agent(name string) (agent.Agent, error) {
	if a := b.known[name]; a != nil {
		return a, nil
	}
	a, err := b.agents(name)
	if err == nil && a == nil {
		err = fmt.Errorf("there is no agent %q", name)
	}
	if err != nil {
		return nil, err
	}
	b.known[name] = a
	return a, nil
}

// tell tells the host something, about the session of an id, if there is one.
func (b *bridge) tell(id string, body event) {
	b.seq++
	b.out.put(encode(head{Event: body.event(), Seq: b.seq, TS: time.Now().UTC().Format(stamp), ID: id}, body))
}

// ok answers a command that was carried out; result has more to say, or is nil.
func (b *bridge) ok(c command, id string, result any) {
	b.tell(id, okEvent{Req: c.req, result: result})
}

// refuse answers a command that is not carried out.
func (b *bridge) refuse(c command, f fault) {
	b.tell(c.id, errorEvent{Message: f.message, Code: f.code, Req: c.req})
}
