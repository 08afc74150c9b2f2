package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/server/internal/params"
	"github.com/dialai/dialai/session"
)

// Operations on jobs: one is begun, listed, looked at, cancelled, and its result fetched (jobs.go carries them out).

func (s *Server) registerJobs() {
	const one = "/v1/jobs/{job}"
	add(s, operation{id: "create-job", method: http.MethodPost, path: "/v1/jobs", summary: "Ask for work that takes longer than a request may: a back-test, a simulation, a check or rebuilding of the store", needs: mayConfigure, status: http.StatusAccepted, errors: []int{409, 422, 501}}, s.createJob)
	add(s, operation{id: "list-jobs", method: http.MethodGet, path: "/v1/jobs", summary: "The jobs of a week", needs: mayConfigure}, s.listJobs)
	add(s, operation{id: "get-job", method: http.MethodGet, path: one, summary: "A job, and how far it is", needs: mayConfigure}, s.getJob)
	add(s, operation{id: "cancel-job", method: http.MethodDelete, path: one, summary: "End a job that is not done", needs: mayConfigure, errors: []int{409}}, s.cancelJob)
	add(s, operation{id: "get-job-result", method: http.MethodGet, path: one + "/result", summary: "What came of a job: the lines that the command prints with --json", needs: mayConfigure, errors: []int{409}, media: []string{linesType}}, s.jobResult)
}

// linesType is the type of a result: a JSON value a line.
const linesType = "application/jsonl"

// mayJob refuses whoever may have no job of a kind done that is about a machine.
func mayJob(p *Principal, kind, machineName string) error {
	switch {
	case kind == kindVerify || kind == kindRebuild:
		return mayEverywhere(p, mayAdmin)
	case machineName != "":
		return mayOf(p, mayConfigure, machineName)
	case kind == kindBacktest:
		return mayEverywhere(p, mayConfigure)
	}
	return nil
}

type createJobIn struct{ Body api.NewJob }

type createdJobOut struct {
	Location string `header:"Location"`
	Body     api.Job
}

func (s *Server) createJob(ctx context.Context, p *Principal, in *createJobIn) (*createdJobOut, error) {
	t, err := s.taskOf(ctx, p, &in.Body)
	if err == nil {
		err = s.jobs.room(p.Tenant)
	}
	if err != nil {
		return nil, err
	}
	request, err := json.Marshal(in.Body)
	if err != nil {
		return nil, err
	}
	of := control.Job{ID: newID(), Tenant: p.Tenant, Kind: in.Body.Kind, Machine: t.machineName, Request: request, CreatedBy: p.Subject, CreatedAt: s.now(), Status: control.JobQueued}
	out := &createdJobOut{"/v1/jobs/" + of.ID, api.JobOf(of)}
	if err := s.shownOnce(ctx, control.Changes{Job: &of}, http.StatusAccepted, out.Location, out.Body); err != nil {
		return nil, err
	}
	s.tellJob(ctx, of.ID)
	s.jobs.add(of, *t)
	return out, nil
}

type listJobsIn struct {
	params.Page
	Order  string `query:"order" enum:"asc,desc" doc:"desc without it: the newest first"`
	Kind   string `query:"kind" enum:"backtest,verify,rebuild,simulate" doc:"only those of this kind"`
	Status string `query:"status" enum:"queued,running,done,failed,cancelled" doc:"only those of this status"`
}

type listJobsOut struct{ Body api.List[api.Job] }

func (s *Server) listJobs(ctx context.Context, p *Principal, in *listJobsIn) (*listJobsOut, error) {
	l, err := listing(fmt.Sprintf("jobs\n%s\n%s", in.Kind, in.Status), p, &in.Page, in.Order != "asc")
	if err != nil {
		return nil, err
	}
	page, err := s.config.Control.Jobs(ctx, l.Query)
	if err != nil {
		return nil, err
	}
	out := &listJobsOut{api.List[api.Job]{Items: []api.Job{}}}
	for _, j := range page {
		out.Body.NextCursor = l.next(len(page), j.Place)
		if (in.Kind == "" || in.Kind == j.Kind) && (in.Status == "" || in.Status == string(j.Status)) && mayJob(p, j.Kind, j.Machine) == nil {
			out.Body.Items = append(out.Body.Items, api.JobOf(j))
		}
	}
	return out, nil
}

// jobOf returns a job of the caller's tenant that they may see.
func (s *Server) jobOf(ctx context.Context, p *Principal, id string) (control.Job, error) {
	j, err := s.config.Control.Job(ctx, id)
	if errors.Is(err, control.ErrNotFound) || err == nil && (j.Tenant != p.Tenant || mayJob(p, j.Kind, j.Machine) != nil) {
		return j, &session.NotFoundError{What: "Job", ID: id}
	}
	return j, err
}

type getJobIn struct {
	params.Job
	For string `query:"wait" doc:"wait up to so long, such as 30s, until something has changed of it" maxLength:"20"`
}

type jobOut struct{ Body api.Job }

func (s *Server) getJob(ctx context.Context, p *Principal, in *getJobIn) (*jobOut, error) {
	wait, err := s.waitOf(in.For)
	if err != nil {
		return nil, err
	}
	news := s.jobs.changed(in.ID) // before it is looked at, so that nothing is missed
	j, err := s.jobOf(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for seen := j; wait > 0 && !j.Status.Ended() && j.Status == seen.Status && j.Done == seen.Done; {
		select {
		case <-ctx.Done():
			return &jobOut{api.JobOf(j)}, nil
		case <-s.closing:
			return &jobOut{api.JobOf(j)}, nil
		case <-news:
		case <-time.After(jobTellsAll): // another process may work at it
		}
		news = s.jobs.changed(in.ID)
		if j, err = s.jobOf(context.WithoutCancel(ctx), p, in.ID); err != nil {
			return nil, err
		}
	}
	return &jobOut{api.JobOf(j)}, nil
}

func (s *Server) cancelJob(ctx context.Context, p *Principal, in *params.Job) (*jobOut, error) {
	for {
		j, err := s.jobOf(ctx, p, in.ID)
		switch {
		case err != nil:
			return nil, err
		case j.Status == control.JobCancelled:
			return &jobOut{api.JobOf(j)}, nil
		case j.Status.Ended():
			return nil, &api.Error{Status: http.StatusConflict, Code: "job_ended", Detail: "the job is " + string(j.Status), ExitCode: 1}
		}
		err = s.config.Control.Commit(ctx, control.Changes{JobStep: &control.JobStep{ID: j.ID, From: j.Status, To: control.JobCancelled, At: s.now()}})
		if err != nil && !errors.Is(err, control.ErrStale) { // it has gone on meanwhile
			return nil, err
		}
		if err == nil {
			s.tellJob(ctx, j.ID)
		}
		s.jobs.cancelled(j.ID)
	}
}

type jobResultOut struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

func (s *Server) jobResult(ctx context.Context, p *Principal, in *params.Job) (*jobResultOut, error) {
	j, err := s.jobOf(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	if err := notDone(&j); err != nil {
		return nil, err
	}
	p.payload = p.payload || j.Kind == kindBacktest // it says how sessions were decided, and by whom
	result, _, err := s.config.Control.JobResult(ctx, j.ID)
	return &jobResultOut{linesType, result}, err
}

// notDone returns why a job has no result; nil if it has one.
func notDone(j *control.Job) error {
	p := &api.Error{Status: http.StatusConflict, Detail: "the job is " + string(j.Status), ExitCode: 1}
	switch j.Status {
	case control.JobDone:
		return nil
	case control.JobFailed:
		p.Code, p.Detail, p.Hint, p.ExitCode = "job_failed", j.Outcome.Detail, j.Outcome.Hint, j.Outcome.ExitCode
	case control.JobCancelled:
		p.Code = "job_cancelled"
	default:
		p.Code, p.Hint = "job_not_done", "GET the job with wait=30s until it has ended"
	}
	return p
}
