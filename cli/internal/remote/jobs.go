package remote

import (
	"context"
	"errors"
	"time"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/client"
)

// giveUp is how long a server has to be told that nobody waits for a job any more.
const giveUp = 5 * time.Second

// Work has the server do a job, and returns its id and its result: the lines of the command. tell
// is told how much of how much is done; nil is told nothing. When ctx ends, so does the job. The
// errors are those that the command has.
func (r *Server) Work(ctx context.Context, in api.NewJob, tell func(done, of int64)) (id string, result []byte, err error) {
	j, err := r.CreateJob(ctx, in, client.Write{})
	if err != nil {
		return "", nil, r.Told(err)
	}
	id = j.JobID
	j, err = r.AwaitJob(ctx, id, func(j api.Job) {
		if tell != nil && j.Progress != nil {
			tell(j.Progress.Done, j.Progress.Of)
		}
	})
	if ctx.Err() != nil {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveUp)
		defer cancel()
		_, _ = r.CancelJob(last, id) // who does not hear it works for nobody
		return id, nil, ctx.Err()
	}
	if err == nil {
		err = failed(&j)
	}
	if err == nil {
		result, err = r.JobResult(ctx, id)
	}
	return id, result, r.Told(err)
}

// failed returns why a job that has ended has no result; nil if it has one.
func failed(j *api.Job) error {
	switch j.Status {
	case "done":
		return nil
	case "cancelled":
		return errors.New("the job was cancelled at the server")
	}
	p := &client.Problem{Code: j.Code, Detail: j.Detail, Hint: j.Hint, ExitCode: api.ExitFailure}
	if j.ExitCode != nil {
		p.ExitCode = *j.ExitCode
	}
	if j.Code == "not_found" {
		p.Status = 404 // of HTTP: as if the request had been answered so
	}
	return p
}
