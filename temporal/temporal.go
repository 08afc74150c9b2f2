// Package temporal drives sessions of dialai on Temporal, for those who run that already.
//
// The truth stays the log in the store: a session is there, every answer and every ruling is
// committed there, and any command reads it there. Temporal holds when things run, and where: ids,
// sequence numbers, statuses. It is never told a question, a proposal, a payload or a secret. So
// a workflow that is lost, reset or terminated loses nothing; [Client.Adopt] starts it
// again from the store.
//
// A session is one workflow (session.go). It runs an activity for each wait, not for each step:
// advance takes all steps up to the next wait, and ask sends one ask that may take long
// (activities.go). Both are safe to be run any number of times, for they are
// [runner.Runner.Advance] and [runner.Runner.Ask]: commits meet a compare-and-swap, and an ask has a key.
//
// The package is a module of its own: who does not use Temporal does not depend on it.
package temporal

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// FormerWorkflowName is that of workflows that a former version has begun; they go on as they were.
const FormerWorkflowName = "dialai.session.v1"

// The names under which workers know what they run. They are in histories, and so they stay.
const (
	WorkflowName    = "dialai.session.v2"
	AdvanceActivity = "advance"
	AskActivity     = "ask"
	DecideActivity  = "decide"
	ProposeActivity = "propose"
	ResumeActivity  = "resume"
	ReviewActivity  = "review"
	StatusQuery     = "status"
	ChangedSignal   = "changed"
	DecideUpdate    = "decide"
	ProposeUpdate   = "propose"
	ResumeUpdate    = "resume"
	ReviewUpdate    = "review"
)

// DefaultQueue is how the name of the task queue of workers and workflows begins where nothing is said.
const DefaultQueue = "dialai"

// A Client starts, tells and asks workflows of the sessions of one store.
type Client struct {
	Temporal client.Client
	Runner   *runner.Runner
	Queue    string // how the name of the task queue begins; "" is DefaultQueue
	// Namespace is that of Temporal, which Adopt asks for its search attributes; "" is client.DefaultNamespace.
	Namespace string
}

// storeID returns what is the same for all processes on one store, and another one for every other store.
func (c *Client) storeID(ctx context.Context) (string, error) {
	secret, err := c.Runner.Store().Secret(ctx)
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("temporal store"))
	return hex.EncodeToString(mac.Sum(nil)[:8]), nil
}

// TaskQueue returns the name of the task queue of the store: a worker gets no session of another one.
func (c *Client) TaskQueue(ctx context.Context) (string, error) {
	id, err := c.storeID(ctx)
	return cmp.Or(c.Queue, DefaultQueue) + "/" + id, err
}

// WorkflowID returns the id of the workflow of a session: dialai/STORE/SESSION.
func (c *Client) WorkflowID(ctx context.Context, id specialist.SessionID) (string, error) {
	store, err := c.storeID(ctx)
	return fmt.Sprintf("dialai/%s/%s", store, id), err
}

// NewWorker returns a worker that runs the sessions of the store. It has not started. After an error that keeps it
// from asking Temporal for work it stops.
func (c *Client) NewWorker(ctx context.Context) (worker.Worker, error) { return c.newWorker(ctx, nil) }

// sticky is how long a task waits for the worker that knows its workflow, which may be gone, before others get it.
const sticky = time.Second

// newWorker is NewWorker. fatal is told of the error after which the worker stops; nil is told nothing.
func (c *Client) newWorker(ctx context.Context, fatal func(error)) (worker.Worker, error) {
	queue, err := c.TaskQueue(ctx)
	if err != nil {
		return nil, err
	}
	w := worker.New(c.Temporal, queue, worker.Options{StickyScheduleToStartTimeout: sticky, WorkerStopTimeout: 20 * time.Second, OnFatalError: fatal})
	Register(w, c.Runner)
	return w, nil
}

// Adopt has a session driven by a workflow: it starts one unless it runs, and returns its id. Whatever has
// become of former workflows of the session does not matter. From then on the driver of the session is
// Temporal, so that no pool carries it on; by is who says so, nil if that is not said. It is changed before
// the workflow is started: if that fails, Adopt again.
//
// Errors: session.ErrNotFound, and those of the store and of Temporal.
func (c *Client) Adopt(ctx context.Context, id specialist.SessionID, by *session.Actor) (workflowID string, err error) {
	s, err := c.Runner.SetDriver(ctx, id, session.DriverTemporal, by)
	if err != nil {
		return "", err
	}
	if workflowID, err = c.WorkflowID(ctx, id); err != nil {
		return "", err
	}
	queue, err := c.TaskQueue(ctx)
	if err != nil {
		return "", err
	}
	known := c.attributes(ctx)
	shown := Shown{s.Status.String(), s.Standing().Code, c.Runner.Tenant(s)}
	values := shown.values()
	values[AttributeMachine] = s.Machine().Name()
	maps.DeleteFunc(values, func(_, value string) bool { return value == "" }) // nothing is to be unset at a start
	in := Input{SessionID: id.String()}
	if len(known) > 0 {
		in.Attributes, in.Shown = known, shown
	}
	_, err = c.Temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: workflowID, TaskQueue: queue,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		WorkflowIDReusePolicy:    enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		TypedSearchAttributes:    sdk.NewSearchAttributes(set(known, values)...),
	}, WorkflowName, in)
	return workflowID, err
}

// Status asks the workflow of a session where it stands, without reading the store.
func (c *Client) Status(ctx context.Context, id specialist.SessionID) (s Status, err error) {
	workflowID, err := c.WorkflowID(ctx, id)
	if err != nil {
		return s, err
	}
	v, err := c.Temporal.QueryWorkflow(ctx, workflowID, "", StatusQuery)
	if err != nil {
		return s, err
	}
	return s, v.Get(&s)
}

// Changed tells the workflow of a session that somebody else has committed something, up to a sequence
// number. A session without a workflow is told nothing, which is no error.
func (c *Client) Changed(ctx context.Context, id specialist.SessionID, sequence int64) error {
	workflowID, err := c.WorkflowID(ctx, id)
	if err != nil {
		return err
	}
	err = c.Temporal.SignalWorkflow(ctx, workflowID, "", ChangedSignal, sequence)
	if _, none := errors.AsType[*serviceerror.NotFound](err); none {
		return nil
	}
	return err
}
