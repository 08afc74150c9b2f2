package temporal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/dialai/dialai/cli"
)

// Where the sessions of a store are in Temporal, for whoever looks why they do not go on: the namespace and the task
// queue, who asks it for work, what waits there, and Temporal's own page. dialai serve says it when it listens, the
// command status at any time, of the whole store or of one session.

// A QueueStatus is where the sessions of a store are in Temporal, and who asks for work there.
type QueueStatus struct {
	Address   string `json:"address"`
	Namespace string `json:"namespace"`
	TaskQueue string `json:"taskQueue"`
	Page      string `json:"page,omitempty"` // the URL of the queue in Temporal's page; "" if that is not known
	// Pollers have asked for work in the last minutes, by their identity. One that is gone is listed for some minutes more.
	Pollers []Poller `json:"pollers"`
	Backlog int64    `json:"backlog"` // about how many tasks wait for a worker
}

// A Poller is a process that asks a task queue for work.
type Poller struct {
	Identity   string `json:"identity"`   // PROCESS@COMPUTER@
	Workflows  bool   `json:"workflows"`  // it asks for tasks of workflows
	Activities bool   `json:"activities"` // it asks for activities
	LastAccess int64  `json:"lastAccess"` // when it asked last, milliseconds since 1970: a worker asks at least once a minute
}

// DescribeQueue asks Temporal who asks for work of the store's sessions, and what waits. Of an error all is
// returned that is known without Temporal. Address and Page are not.
func (c *Client) DescribeQueue(ctx context.Context) (q QueueStatus, err error) {
	q.Namespace, q.Pollers = cmp.Or(c.Namespace, client.DefaultNamespace), []Poller{}
	if q.TaskQueue, err = c.TaskQueue(ctx); err != nil {
		return q, err
	}
	for _, of := range []enums.TaskQueueType{enums.TASK_QUEUE_TYPE_WORKFLOW, enums.TASK_QUEUE_TYPE_ACTIVITY} {
		is, err := c.Temporal.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
			Namespace: q.Namespace, TaskQueue: &taskqueue.TaskQueue{Name: q.TaskQueue, Kind: enums.TASK_QUEUE_KIND_NORMAL}, TaskQueueType: of, ReportStats: true,
		})
		if err != nil {
			return q, err
		}
		q.Backlog += is.GetStats().GetApproximateBacklogCount()
		for _, p := range is.GetPollers() {
			q.add(p, of == enums.TASK_QUEUE_TYPE_WORKFLOW)
		}
	}
	slices.SortFunc(q.Pollers, func(a, b Poller) int { return strings.Compare(a.Identity, b.Identity) })
	return q, nil
}

// add notes that a poller asks for workflows, or for activities.
func (q *QueueStatus) add(p *taskqueue.PollerInfo, workflows bool) {
	i := slices.IndexFunc(q.Pollers, func(had Poller) bool { return had.Identity == p.GetIdentity() })
	if i < 0 {
		i = len(q.Pollers)
		q.Pollers = append(q.Pollers, Poller{Identity: p.GetIdentity()})
	}
	at := &q.Pollers[i]
	at.Workflows, at.Activities = at.Workflows || workflows, at.Activities || !workflows
	at.LastAccess = max(at.LastAccess, p.GetLastAccessTime().AsTime().UnixMilli())
}

// page returns a URL of Temporal's page: what --temporal-ui says, or where the server for development has it, a thousand
// ports on at loopback; "" if neither is known.
func (s *settings) page(kind, name string) string {
	at := strings.TrimRight(s.ui, "/")
	if host, port, err := net.SplitHostPort(s.address); at == "" && err == nil {
		n, err := strconv.Atoi(port)
		if ip := net.ParseIP(host); err != nil || host != "localhost" && !ip.IsLoopback() {
			return ""
		}
		at = "http://" + net.JoinHostPort(host, strconv.Itoa(n+1000))
	}
	if at == "" {
		return ""
	}
	return at + "/namespaces/" + url.PathEscape(s.namespace) + "/" + kind + "/" + url.PathEscape(name)
}

// describe says where the sessions of a store are. Without Temporal it says what is known, and the error.
func (s *settings) describe(ctx context.Context, c *Client) (QueueStatus, error) {
	q, err := c.DescribeQueue(ctx)
	q.Address, q.Page = s.address, s.page("task-queues", q.TaskQueue)
	return q, err
}

// serving is what dialai serve says of Temporal when it listens.
func (s *settings) serving(ctx context.Context, e cli.DriverEngine) (text string, about any) {
	if s.address == "" {
		return "", nil
	}
	c, err := s.dial(ctx, true)
	if err != nil {
		return "", nil // the worker says it
	}
	defer c.Close()
	q, err := s.describe(ctx, s.client(c, e))
	lines := []string{fmt.Sprintf("at %s, namespace %s, task queue %s, %s", s.address, q.Namespace, q.TaskQueue, polled(q, err))}
	if q.Page != "" {
		lines = append(lines, q.Page)
	}
	return strings.Join(lines, "\n"), q
}

// polled says who asked for work before a server begins to.
func polled(q QueueStatus, err error) string {
	switch {
	case err != nil:
		return "which does not answer: sessions there go on when it does"
	case len(q.Pollers) == 0:
		return "no pollers before this one"
	case len(q.Pollers) == 1:
		return "1 poller before this one"
	}
	return fmt.Sprintf("%d pollers before this one", len(q.Pollers))
}

// status is the command status with a flag of Temporal.
func (s *settings) status(ctx context.Context, e cli.DriverEngine, args []string) error {
	if len(args) == 0 {
		return s.statusOfQueue(ctx, e)
	}
	return s.statusOf(ctx, e, args[0])
}

func (s *settings) statusOfQueue(ctx context.Context, e cli.DriverEngine) error {
	return s.with(ctx, e, func(c *Client) error {
		q, err := s.describe(ctx, c)
		if err != nil {
			return fmt.Errorf("task queue %s: %w", q.TaskQueue, err)
		}
		if e.JSON {
			return json.NewEncoder(e.Out).Encode(q)
		}
		q.print(e.Out, time.Now())
		return nil
	})
}

// print writes all that is known.
func (q *QueueStatus) print(out io.Writer, now time.Time) {
	fmt.Fprintf(out, "Temporal:    %s\nNamespace:   %s\nTask queue:  %s\n", q.Address, q.Namespace, q.TaskQueue)
	if q.Page != "" {
		fmt.Fprintf(out, "Page:        %s\n", q.Page)
	}
	fmt.Fprintf(out, "Backlog:     %d\nPollers:     %d\n", q.Backlog, len(q.Pollers))
	for _, p := range q.Pollers {
		does := "workflows and activities"
		switch {
		case !p.Activities:
			does = "workflows"
		case !p.Workflows:
			does = "activities"
		}
		fmt.Fprintf(out, "  %s  %s, asked %s ago\n", p.Identity, does, p.ago(now))
	}
	if len(q.Pollers) == 0 {
		fmt.Fprintf(out, "    hint: nobody runs these sessions: dialai-temporal serve --temporal %s does\n", q.Address)
	}
}

func (p *Poller) ago(now time.Time) time.Duration {
	return max(0, now.Sub(time.UnixMilli(p.LastAccess)).Round(time.Second))
}

// asked says when somebody asked for work last.
func (q *QueueStatus) asked(now time.Time) string {
	if len(q.Pollers) == 0 {
		return "nobody has asked for work for minutes"
	}
	last := slices.MaxFunc(q.Pollers, func(a, b Poller) int { return cmp.Compare(a.LastAccess, b.LastAccess) })
	return fmt.Sprintf("%s asked for work %s ago", last.Identity, last.ago(now))
}

// A WorkflowStatus is what the command status says of a session with --json.
type WorkflowStatus struct {
	WorkflowID string `json:"workflowId"`
	Page       string `json:"page,omitempty"` // the URL of the workflow in Temporal's page; "" if that is not known
	Status
	Stored int64       `json:"stored"` // the sequence number of the session in the store: the workflow has not looked yet if that is later
	Queue  QueueStatus `json:"queue"`
}

// answersWithin is how long a worker has to say where a workflow stands.
const answersWithin = 10 * time.Second

func (s *settings) statusOf(ctx context.Context, e cli.DriverEngine, id string) error {
	return s.with(ctx, e, func(c *Client) error {
		found, err := e.Find(ctx, id)
		if err != nil {
			return err
		}
		var at WorkflowStatus
		if at.WorkflowID, err = c.WorkflowID(ctx, found.ID); err != nil {
			return err
		}
		if at.Queue, err = s.describe(ctx, c); err != nil {
			return fmt.Errorf("task queue %s: %w", at.Queue.TaskQueue, err)
		}
		at.Page = s.page("workflows", at.WorkflowID)
		within, cancel := context.WithTimeout(ctx, answersWithin)
		defer cancel()
		at.Status, err = c.Status(within, found.ID)
		if _, none := errors.AsType[*serviceerror.NotFound](err); none {
			return fmt.Errorf("no workflow drives session %s: dialai-temporal adopt %[1]s starts one", found.ID)
		}
		if err != nil { // a worker answers, not Temporal
			return fmt.Errorf("session %s: no worker says where its workflow stands, and %s: dialai-temporal serve --temporal %s is one: %w", found.ID, at.Queue.asked(time.Now()), s.address, err)
		}
		if at.Stored = found.Sequence; at.Asks == nil {
			at.Asks = []Ask{}
		}
		if e.JSON {
			return json.NewEncoder(e.Out).Encode(at)
		}
		at.print(e.Out)
		return nil
	})
}

func (at *WorkflowStatus) print(out io.Writer) {
	fmt.Fprintf(out, "Workflow:    %s\n", at.WorkflowID)
	if at.Page != "" {
		fmt.Fprintf(out, "Page:        %s\n", at.Page)
	}
	fmt.Fprintf(out, "Namespace:   %s\nTask queue:  %s\nPollers:     %d\n", at.Queue.Namespace, at.Queue.TaskQueue, len(at.Queue.Pollers))
	if at.Status.Status == "" {
		fmt.Fprintf(out, "Status:      it has begun, and not looked yet\n")
		return
	}
	behind := ""
	if at.Stored > at.Sequence {
		behind = fmt.Sprintf(" (the store is at %d: it looks within %g minutes)", at.Stored, lookEvery.Minutes())
	}
	fmt.Fprintf(out, "Status:      %s\nState:       %s\nSequence:    %d%s\nAsks:        %d\n", strings.TrimSpace(at.Status.Status+" "+at.Code), at.State, at.Sequence, behind, len(at.Asks))
}
