package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/dialai/dialai/api"
)

// jobAt returns the path of a job, or below it.
func jobAt(id, below string) string { return "/v1/jobs/" + url.PathEscape(id) + below }

// A JobQuery says which jobs are wanted. The zero JobQuery is all of them.
type JobQuery struct {
	Kind, Status string // "" is any
	OldestFirst  bool
}

// CreateJob asks for work that takes longer than a request may. [Client.AwaitJob] waits for it.
func (c *Client) CreateJob(ctx context.Context, in api.NewJob, w Write) (api.Job, error) {
	return do[api.Job](ctx, c, post("/v1/jobs", in, Write{Key: w.Key}))
}

// Jobs yields the jobs of a week, the newest first. An error is the last it yields.
func (c *Client) Jobs(ctx context.Context, q JobQuery) iter.Seq2[api.Job, error] {
	v := values("kind", q.Kind, "status", q.Status)
	if q.OldestFirst {
		v.Set("order", "asc")
	}
	return pages[api.Job](ctx, c, "/v1/jobs", v)
}

// Job returns a job. If it has not ended, the server waits up to wait until something has changed
// of it; 0 does not wait.
func (c *Client) Job(ctx context.Context, id string, wait time.Duration) (api.Job, error) {
	v := url.Values{}
	if wait > 0 {
		v.Set("wait", wait.String())
	}
	return do[api.Job](ctx, c, get(jobAt(id, ""), v))
}

// CancelJob ends a job that is not done.
func (c *Client) CancelJob(ctx context.Context, id string) (api.Job, error) {
	return do[api.Job](ctx, c, call{method: http.MethodDelete, path: jobAt(id, "")})
}

// JobResult returns what came of a job: the lines that the command prints with --json.
func (c *Client) JobResult(ctx context.Context, id string) ([]byte, error) {
	return do[[]byte](ctx, c, call{method: http.MethodGet, path: jobAt(id, "/result"), accept: "*/*"})
}

const (
	jobWait  = 30 * time.Second
	jobPause = 500 * time.Millisecond // between two looks at a job that goes on
)

// AwaitJob waits until a job has ended, and returns it as it is then. told is called with the job
// whenever something has changed of it, and once it has ended; nil is told nothing. A server that is
// not reached is called again as long as any call is.
func (c *Client) AwaitJob(ctx context.Context, id string, told func(api.Job)) (api.Job, error) {
	for {
		j, err := c.Job(ctx, id, jobWait)
		if err != nil {
			return j, err
		}
		if told != nil {
			told(j)
		}
		if j.Status.Ended() {
			return j, nil
		}
		if err := c.config.Sleep(ctx, jobPause); err != nil {
			return j, err
		}
	}
}

// Adopt has the live test of what a policy promises begin with what a back-test of it has found, by
// a human's word. It returns a line for each promise.
func (c *Client) Adopt(ctx context.Context, machineName string, in api.Adopting, w Write) (api.Adopted, error) {
	return do[api.Adopted](ctx, c, post(machineAt(machineName, "/adoptions"), in, Write{Key: w.Key}))
}
