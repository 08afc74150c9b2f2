package temporal

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"github.com/dialai/dialai/cli"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// What dialai-temporal has beside dialai: serve runs a worker with --temporal, adopt gives a session to a
// workflow, status says with --temporal where that stands, and without a session who asks for work (queue.go).

// settings are what the flags say.
type settings struct {
	address, namespace, queue, ui string
	all                           bool // adopt

	mu      sync.Mutex
	changes map[string]chan change // by tenant
	workers workers
}

// of returns where the changes of a tenant wait.
func (s *settings) of(tenant string) chan change {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changes[tenant] == nil {
		s.changes[tenant] = make(chan change, untold)
	}
	return s.changes[tenant]
}

func (s *settings) flags(f *flag.FlagSet) {
	f.StringVar(&s.address, "temporal", "", "the `address` of the frontend of Temporal, such as 127.0.0.1:7233")
	f.StringVar(&s.namespace, "temporal-namespace", client.DefaultNamespace, "the `namespace` in Temporal")
	f.StringVar(&s.queue, "temporal-queue", DefaultQueue, "how the `name` of the task queue begins, the same for all servers on one store")
	f.StringVar(&s.ui, "temporal-ui", "", "the `URL` of Temporal's page, for links (default: at loopback 1000 ports on, where the server for development has it)")
}

// Driver returns what cli.Main takes.
func Driver() cli.Driver {
	s := &settings{changes: map[string]chan change{}}
	return cli.Driver{
		Name: "temporal", Flags: s.flags, Run: s.run, Ready: s.ready, Committed: s.committed, Detail: s.detail, Serving: s.serving,
		Commands: []cli.DriverCommand{{
			Use: "adopt <session>... | --all", Short: "Have workflows of Temporal drive sessions",
			Long: `Have each of the sessions driven by a workflow of Temporal, whatever became of a workflow that it had
before: what has happened is in the store. From then on no other process carries it on by itself. A session that
a workflow drives is left as it is. Servers with --temporal do the work.`,
			Example: `  dialai-temporal adopt 0b9c1d3e --temporal 127.0.0.1:7233
  dialai-temporal adopt --all --temporal 127.0.0.1:7233`,
			Flags: func(f *flag.FlagSet) {
				f.BoolVar(&s.all, "all", false, "all sessions that have not ended, whoever drives them")
			},
			Run: s.adopt,
		}, {
			Use: "status [session]", Short: "Show where the workflow of a session stands",
			Long: `With --temporal, show where a session stood when its workflow looked last, as Temporal
knows it, and where that is: namespace, task queue, who asks there for work, and its
page in Temporal. A worker answers. Without a session, show where the sessions of the
store are in Temporal: about how many tasks wait for a worker, and who asks for them,
and when they did last. Who lives asks once a minute; who is gone is listed for some
minutes more.`,
			Example: `  dialai-temporal status 0b9c1d3e --temporal 127.0.0.1:7233
  dialai-temporal status --temporal 127.0.0.1:7233`,
			Run: s.status,
		}},
	}
}

// dial connects. It is lazy beside a server, which serves while Temporal is down.
func (s *settings) dial(ctx context.Context, lazy bool) (client.Client, error) {
	o := client.Options{HostPort: s.address, Namespace: s.namespace, Logger: sdklog.NewStructuredLogger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))}
	if lazy {
		return client.NewLazyClient(o)
	}
	c, err := client.DialContext(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("reaching Temporal at %s: %w", s.address, err)
	}
	return c, nil
}

// run is a worker beside dialai serve, and tells workflows what is committed there.
func (s *settings) run(ctx context.Context, e cli.DriverEngine) error {
	if s.address == "" {
		return nil
	}
	c, err := s.dial(ctx, true)
	if err != nil {
		return err
	}
	defer c.Close()
	at := s.client(c, e)
	var told sync.WaitGroup
	defer told.Wait()
	told.Go(func() { s.tell(ctx, at, s.of(e.Tenant)) })
	s.workers.keep(ctx, c, at.newWorker)
	return nil
}

// with runs a command of one session.
func (s *settings) with(ctx context.Context, e cli.DriverEngine, do func(*Client) error) error {
	if s.address == "" {
		return errors.New("which server of Temporal? name its address, as with --temporal 127.0.0.1:7233")
	}
	c, err := s.dial(ctx, false)
	if err != nil {
		return err
	}
	defer c.Close()
	return do(s.client(c, e))
}

func (s *settings) client(c client.Client, e cli.DriverEngine) *Client {
	return &Client{Temporal: c, Runner: e.Runner, Queue: s.queue, Namespace: s.namespace}
}

func (s *settings) adopt(ctx context.Context, e cli.DriverEngine, args []string) error {
	switch {
	case len(args) == 0 && !s.all:
		return errors.New("which session? dialai-temporal sessions lists them, and --all takes all that have not ended")
	case len(args) > 0 && s.all:
		return errors.New("which sessions? name them, or give --all")
	}
	return s.with(ctx, e, func(c *Client) error {
		for _, id := range args {
			found, err := e.Find(ctx, id)
			if err == nil {
				err = adopt(ctx, e, c, found.ID)
			}
			if err != nil {
				return err
			}
		}
		if !s.all {
			return nil
		}
		for found, err := range session.Each(ctx, e.Sessions, session.ListQuery{Statuses: session.LiveStatuses()}) {
			if err == nil {
				err = adopt(ctx, e, c, found.SessionID)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// adopt has a workflow drive a session, and says so.
func adopt(ctx context.Context, e cli.DriverEngine, c *Client, id specialist.SessionID) error {
	workflowID, err := c.Adopt(ctx, id, e.Actor)
	if err != nil {
		return fmt.Errorf("session %s: %w", id, err)
	}
	if e.JSON {
		return json.NewEncoder(e.Out).Encode(map[string]string{"sessionId": id.String(), "workflowId": workflowID})
	}
	_, err = fmt.Fprintf(e.Out, "%s is driven by workflow %s\n", id, workflowID)
	return err
}

// detail names the workflow of a session, which follows from its id: nobody is asked.
func (s *settings) detail(ctx context.Context, e cli.DriverEngine, of *session.Session) (string, error) {
	return (&Client{Runner: e.Runner}).WorkflowID(ctx, of.ID)
}

// A change is what a workflow is told of.
type change struct {
	session  specialist.SessionID
	sequence int64
}

// untold is how many changes are kept that workflows were not told of yet, as while Temporal is down. What is dropped a
// workflow finds when it looks.
const untold = 4096

// committed notes what workflows are to be told.
func (s *settings) committed(tenant string, c session.Change) {
	if s.address == "" || !tells(&c) {
		return
	}
	select {
	case s.of(tenant) <- change{c.After.ID, c.After.Sequence}:
	default:
	}
}

// tells reports whether a commit is of something that a workflow does not do itself: humans, and answers that
// came later.
func tells(c *session.Change) bool {
	for i := range c.Events {
		switch d := c.Events[i].Data.(type) {
		case *session.Ruled, *session.Resumed, *session.Moved:
			return true
		case *session.Executed:
			if d.IsHuman {
				return true
			}
		case *session.Ended:
			if d.Code == session.CodeCancelled {
				return true
			}
		case *session.Proposed:
			if d.Actor != nil || d.Proposal.IsHuman || later(c.Before, d.Ask) {
				return true
			}
		case *session.AskFailed:
			if later(c.Before, d.Ask) {
				return true
			}
		}
	}
	return false
}

// later reports whether an ask was one that would be answered later.
func later(s *session.Session, index int32) bool {
	if s == nil || s.Open == nil || index == 0 {
		return false
	}
	a := s.Open.At(index)
	return a != nil && a.Remote != nil && a.Remote.Accepted
}

// down reports whether an error says that Temporal is not there.
func down(err error) bool {
	_, gone := errors.AsType[*serviceerror.Unavailable](err)
	_, late := errors.AsType[*serviceerror.DeadlineExceeded](err)
	return gone || late || errors.Is(err, context.DeadlineExceeded)
}

// tell tells workflows of changes until ctx is done.
func (s *settings) tell(ctx context.Context, c *Client, changes <-chan change) {
	for {
		select {
		case <-ctx.Done():
			return
		case of := <-changes:
			for again := true; again && ctx.Err() == nil; { // while Temporal is down, all the others would fail as well
				within, cancel := context.WithTimeout(ctx, 5*time.Second)
				err := c.Changed(within, of.session, of.sequence)
				cancel()
				if again = down(err); again {
					select {
					case <-ctx.Done():
					case <-time.After(time.Second):
					}
				}
			}
		}
	}
}
