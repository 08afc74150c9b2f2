package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/internal/packs"
	"github.com/dialai/dialai/server/internal/params"
	"github.com/dialai/dialai/session"
)

// Jobs: work that takes longer than a request may, done here and looked at later. A job is a row
// of what the server remembers, put there in one commit with the receipt of the request; the
// process that has put it there works at it, two at a time for a tenant and the others in the
// order in which they came. What the job says while it runs it says at most once a second, and
// that is also when it hears that somebody has cancelled it at another process: its step is
// refused. Streams of events are told of it, too. When the server ends, so do its jobs: they are lost, and say so.
//
// What the work is, job_kinds.go says: it is that of the commands.

const (
	jobsAtOnce  = 2        // of a tenant, in this process
	jobsWaiting = 20       // of a tenant, behind those
	maxResult   = 16 << 20 // bytes
	jobTellsAll = time.Second
)

// A task is the work of a job.
type task struct {
	machineName string // that it is about; "" for none, or all
	alone       bool   // no other task of that kind may run beside it, since it is about the file of the store
	// do does it until ctx ends. What it writes is the result, and finding what the server makes
	// more of later. An error is why the job has failed.
	do func(ctx context.Context, w *working) (control.Outcome, error)
}

// working is a task under way.
type working struct {
	out     bytes.Buffer
	finding any

	mu       sync.Mutex
	done, of int64
}

// tell says how much of how much is done.
func (w *working) tell(done, of int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done, w.of = done, of
}

func (w *working) told() (done, of int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.done, w.of
}

var errTooMuch = errors.New("the result is too large")

// line adds a line to the result.
func (w *working) line(v any) error {
	if w.out.Len() > maxResult {
		return errTooMuch
	}
	return marshal(&w.out, v)
}

// Why a job ends before it is done.
var (
	errJobCancelled = errors.New("the job was cancelled")
	errServerEnds   = errors.New("the server ends")
)

// A jobQueue has the jobs of this process that have not ended.
type jobQueue struct {
	server *Server
	work   sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	under   map[string]*job
	running map[string]int    // by tenant
	waiting map[string][]*job // by tenant
}

// A job is one of this process.
type job struct {
	control.Job
	task   task
	ctx    context.Context //nolint:containedctx // it lives as long as the job
	cancel context.CancelCauseFunc
	news   chan struct{} // closed when something has changed
}

func newJobs(s *Server) *jobQueue {
	return &jobQueue{server: s, under: map[string]*job{}, running: map[string]int{}, waiting: map[string][]*job{}}
}

// room refuses a job where there is no room for it.
func (j *jobQueue) room(tenant string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.closed:
		return &api.Error{Status: http.StatusServiceUnavailable, Code: "shutting_down", Detail: "the server ends", Retryable: true, ExitCode: 1}
	case len(j.waiting[tenant]) >= jobsWaiting:
		return &api.Error{Status: http.StatusTooManyRequests, Code: "too_many_jobs", Detail: fmt.Sprintf("%d jobs wait already", jobsWaiting), Hint: "wait until one of them is done, or cancel one", Retryable: true, ExitCode: 1}
	}
	return nil
}

// add takes up a job that was put where it is remembered.
func (j *jobQueue) add(of control.Job, t task) {
	ctx, cancel := context.WithCancelCause(context.WithValue(context.Background(), tenantKey{}, j.server.tenants[of.Tenant]))
	of.Status = control.JobQueued
	n := &job{Job: of, task: t, ctx: ctx, cancel: cancel, news: make(chan struct{})}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		cancel(errServerEnds)
	}
	j.under[of.ID] = n
	j.waiting[of.Tenant] = append(j.waiting[of.Tenant], n)
	j.next(of.Tenant)
}

// next begins what may run. The caller holds mu.
func (j *jobQueue) next(tenant string) {
	for j.running[tenant] < jobsAtOnce && len(j.waiting[tenant]) > 0 {
		n := j.waiting[tenant][0]
		if j.waiting[tenant] = j.waiting[tenant][1:]; len(j.waiting[tenant]) == 0 {
			delete(j.waiting, tenant)
		}
		j.running[tenant]++
		j.work.Go(func() {
			j.run(n)
			j.mu.Lock()
			defer j.mu.Unlock()
			delete(j.under, n.ID)
			close(n.news)
			if j.running[tenant]--; j.running[tenant] == 0 {
				delete(j.running, tenant)
			}
			j.next(tenant)
		})
	}
}

// step says how it goes on with a job, and reports whether that was taken.
func (j *jobQueue) step(n *job, s control.JobStep) (bool, error) {
	s.ID, s.From, s.At = n.ID, n.Status, j.server.now()
	err := j.server.config.Control.Commit(context.Background(), control.Changes{JobStep: &s})
	if errors.Is(err, control.ErrStale) || errors.Is(err, control.ErrNotFound) { // somebody has cancelled it
		return false, nil
	}
	if err != nil {
		return false, err
	}
	j.server.tellJob(n.ctx, n.ID)
	j.mu.Lock()
	defer j.mu.Unlock()
	n.Status = s.To
	close(n.news)
	n.news = make(chan struct{})
	return true, nil
}

// run works at a job until it has ended.
func (j *jobQueue) run(n *job) {
	defer n.cancel(nil)
	w := &working{}
	outcome, err := control.Outcome{}, context.Cause(n.ctx)
	if err == nil && n.task.alone {
		alone := tenantOf(n.ctx).alone
		select {
		case alone <- struct{}{}:
			defer func() { <-alone }()
		case <-n.ctx.Done():
			err = context.Cause(n.ctx)
		}
	}
	if err == nil {
		taken, failed := j.step(n, control.JobStep{To: control.JobRunning})
		if failed == nil && !taken {
			return
		}
		if err = failed; err == nil {
			told := make(chan struct{})
			j.work.Go(func() { defer close(told); j.tellOf(n, w) })
			outcome, err = j.do(n, w)
			n.cancel(err)
			<-told
		}
	}
	j.end(n, w, outcome, err)
}

// do does the work, which may panic.
func (j *jobQueue) do(n *job, w *working) (outcome control.Outcome, err error) {
	defer func() {
		if v := recover(); v != nil {
			j.server.config.Log.Error("panic in a job", "job", n.ID, "value", packs.Redact(fmt.Sprint(v)), "stack", string(debug.Stack()))
			err = internalProblem()
		}
	}()
	outcome, err = n.task.do(n.ctx, w)
	if why := context.Cause(n.ctx); err != nil && why != nil {
		err = why
	}
	return outcome, err
}

// tellOf says how far a job is, while it runs, and ends it if it was cancelled elsewhere.
func (j *jobQueue) tellOf(n *job, w *working) {
	ticks := time.NewTicker(jobTellsAll)
	defer ticks.Stop()
	var last [2]int64
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-ticks.C:
		}
		done, of := w.told()
		if now := [2]int64{done, of}; now != last {
			if taken, err := j.step(n, control.JobStep{To: control.JobRunning, Done: done, Of: of}); err != nil {
				j.server.config.Log.Warn("the progress of a job is not recorded", "job", n.ID, "error", packs.Redact(err.Error()))
			} else if last = now; !taken {
				n.cancel(errJobCancelled)
			}
			continue
		}
		if is, err := j.server.config.Control.Job(n.ctx, n.ID); errors.Is(err, control.ErrNotFound) || err == nil && is.Status.Ended() {
			n.cancel(errJobCancelled)
		}
	}
}

// jobProgress is the kind of what streams are told of a job.
const jobProgress = "job.progress"

// tellJob tells streams of events how far a job is now. What cannot be looked up is not told: whoever
// wants to know asks for the job.
func (s *Server) tellJob(ctx context.Context, id string) {
	is, err := s.config.Control.Job(context.WithoutCancel(ctx), id)
	if err != nil {
		return
	}
	is.Request = nil // as in lists
	data, err := json.Marshal(api.JobOf(is))
	if err != nil {
		return
	}
	e := api.Event{V: 1, Machine: is.Machine, Raw: session.Raw{At: s.now(), Kind: jobProgress, Data: data}}
	tenantOf(ctx).tell(passing{kind: jobProgress, machine: is.Machine, event: e, may: func(p *Principal) bool {
		return p.may(mayConfigure, "") && mayJob(p, is.Kind, is.Machine) == nil
	}})
}

// end says what came of a job.
func (j *jobQueue) end(n *job, w *working, outcome control.Outcome, err error) {
	s := control.JobStep{To: control.JobDone, Outcome: outcome, Result: append([]byte{}, w.out.Bytes()...)}
	if err == nil && w.finding != nil {
		s.Finding, err = json.Marshal(w.finding)
	}
	switch {
	case errors.Is(err, errJobCancelled): // whoever has done so has said it
		return
	case errors.Is(err, errServerEnds):
		s = control.JobStep{To: control.JobFailed, Outcome: control.Outcome{ExitCode: 1, Code: control.JobLost, Detail: "the server ended before it was done", Hint: "ask for it again"}}
	case errors.Is(err, errTooMuch):
		s = control.JobStep{To: control.JobFailed, Outcome: control.Outcome{ExitCode: 1, Code: "result_too_large", Detail: fmt.Sprintf("the result has more than %d bytes", maxResult), Hint: "ask for less, such as what happened since a later moment"}}
	case err != nil:
		s = control.JobStep{To: control.JobFailed, Outcome: j.server.outcomeOf(err)}
	}
	if _, failed := j.step(n, s); failed != nil {
		j.server.config.Log.Error("what came of a job is not recorded", "job", n.ID, "error", packs.Redact(failed.Error()))
		if _, failed = j.step(n, control.JobStep{To: control.JobFailed, Outcome: j.server.outcomeOf(failed)}); failed != nil {
			j.server.config.Log.Error("nor is that it has failed", "job", n.ID, "error", packs.Redact(failed.Error()))
		}
	}
}

// outcomeOf says why a job has failed.
func (s *Server) outcomeOf(err error) control.Outcome {
	p := s.problem(context.Background(), err)
	if p.ExitCode == 0 {
		p.ExitCode = 1
	}
	return control.Outcome{ExitCode: p.ExitCode, Code: p.Code, Detail: p.Detail, Hint: p.Hint}
}

// cancelled ends a job of this process that was cancelled.
func (j *jobQueue) cancelled(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if n := j.under[id]; n != nil {
		n.cancel(errJobCancelled)
	}
}

// close ends all jobs, and takes no more.
func (j *jobQueue) close() {
	j.mu.Lock()
	j.closed = true
	for _, n := range j.under {
		n.cancel(errServerEnds)
	}
	j.mu.Unlock()
	j.work.Wait()
}

// changed returns what is closed when something changes of a job; nil if another process works at
// it, or nobody.
func (j *jobQueue) changed(id string) <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	if n := j.under[id]; n != nil {
		return n.news
	}
	return nil
}

// The operations.

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
