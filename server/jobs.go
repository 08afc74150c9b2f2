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
