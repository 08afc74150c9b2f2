package storetest

import (
	"fmt"
	"strings"

	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/specialist"
)

// What a store promises of jobs.

func work(id, tenant string, at specialist.Time) *control.Job {
	return &control.Job{ID: id, Tenant: tenant, Kind: "backtest", Machine: "claims", Request: []byte(`{"kind":"backtest"}`), CreatedBy: "key:abc", CreatedAt: at,
		Status: control.JobDone, StartedAt: 9, EndedAt: 9, Done: 9, Of: 9, Outcome: control.Outcome{Code: "none"}, ResultSize: 9, Place: 9, Process: "nobody"}
}

func (b *controlBench) job(s control.Store, id string) control.Job {
	b.Helper()
	j, err := s.Job(b.Context(), id)
	b.ok(err)
	return j
}

// jobs returns a list of jobs, each as "id status".
func (b *controlBench) jobs(s control.Store, q control.Query) string {
	b.Helper()
	list, err := s.Jobs(b.Context(), q)
	b.ok(err)
	var texts []string
	for _, j := range list {
		if j.Request != nil {
			b.Errorf("the list has the request of %s", j.ID)
		}
		texts = append(texts, j.ID+" "+string(j.Status))
	}
	return strings.Join(texts, ", ")
}

func testJobs(b *controlBench) {
	one, two := b.open(), b.open()
	defer b.close(one)
	defer b.close(two)
	ctx := b.Context()
	_, err := one.Job(ctx, "a")
	b.is(err, control.ErrNotFound)
	_, _, err = one.JobResult(ctx, "a")
	b.is(err, control.ErrNotFound)
	b.is(one.Commit(ctx, control.Changes{JobStep: &control.JobStep{ID: "a", From: control.JobQueued, To: control.JobRunning}}), control.ErrNotFound)
	b.commit(one, control.Changes{Job: work("a", "acme", 100)})
	b.is(two.Commit(ctx, control.Changes{Job: work("a", "other", 100)}), control.ErrExists)
	is := b.job(two, "a")
	if is.Process == "" || is.Process == "nobody" {
		b.Errorf("the job is of process %q", is.Process)
	}
	want := control.Job{ID: "a", Tenant: "acme", Kind: "backtest", Machine: "claims", Request: []byte(`{"kind":"backtest"}`), CreatedBy: "key:abc", CreatedAt: 100, Process: is.Process, Status: control.JobQueued, Place: 1}
	b.want(fmt.Sprintf("%+v", is), fmt.Sprintf("%+v", want))

	b.is(one.Commit(ctx, control.Changes{JobStep: &control.JobStep{ID: "a", From: control.JobRunning, To: control.JobDone}}), control.ErrStale)
	b.commit(one, control.Changes{JobStep: &control.JobStep{ID: "a", From: control.JobQueued, To: control.JobRunning, At: 110}})
	b.is(one.Commit(ctx, control.Changes{JobStep: &control.JobStep{ID: "a", From: control.JobQueued, To: control.JobRunning}}), control.ErrStale)
	b.commit(one, control.Changes{JobStep: &control.JobStep{ID: "a", From: control.JobRunning, To: control.JobRunning, At: 120, Done: 3, Of: 7}})
	want.Status, want.StartedAt, want.Done, want.Of = control.JobRunning, 110, 3, 7
	b.want(fmt.Sprintf("%+v", b.job(two, "a")), fmt.Sprintf("%+v", want))
	outcome := control.Outcome{ExitCode: 1, Code: "exceeded", Detail: "ü\x00", Hint: "less"}
	b.commit(one, control.Changes{JobStep: &control.JobStep{ID: "a", From: control.JobRunning, To: control.JobDone, At: 130, Done: 9, Of: 9, Outcome: outcome, Result: []byte("{}\n\x00"), Finding: []byte("[]")}})
	want.Status, want.EndedAt, want.Outcome, want.ResultSize = control.JobDone, 130, outcome, 4
	b.want(fmt.Sprintf("%+v", b.job(two, "a")), fmt.Sprintf("%+v", want))
	result, finding, err := two.JobResult(ctx, "a")
	b.ok(err)
	b.want(fmt.Sprintf("%q %q", result, finding), `"{}\n\x00" "[]"`)
	b.is(one.Commit(ctx, control.Changes{JobStep: &control.JobStep{ID: "a", From: control.JobRunning, To: control.JobFailed}}), control.ErrStale)

	// Whoever cancels does so from anywhere; who works at it is refused from then on.
	b.commit(one, control.Changes{Job: work("b", "other", 100)})
	b.commit(one, control.Changes{JobStep: &control.JobStep{ID: "b", From: control.JobQueued, To: control.JobRunning, At: 110}})
	b.commit(two, control.Changes{JobStep: &control.JobStep{ID: "b", From: control.JobRunning, To: control.JobCancelled, At: 111}})
	b.is(one.Commit(ctx, control.Changes{JobStep: &control.JobStep{ID: "b", From: control.JobRunning, To: control.JobRunning}}), control.ErrStale)
	if result, finding, err := one.JobResult(ctx, "b"); err != nil || result != nil || finding != nil {
		b.Errorf("what was cancelled has come to %q, %q, %v", result, finding, err)
	}
	b.commit(two, control.Changes{Job: work("c", "acme", 100), JobStep: &control.JobStep{ID: "c", From: control.JobQueued, To: control.JobCancelled, At: 112}})
	b.want(b.jobs(one, control.Query{}), "a done, b cancelled, c cancelled")
	b.want(b.jobs(one, control.Query{Tenant: "acme", Desc: true}), "c cancelled, a done")
	b.want(b.jobs(one, control.Query{After: 1, Limit: 1}), "b cancelled")
	b.is(one.Commit(ctx, control.Changes{Job: work("d", "acme", 100), JobStep: &control.JobStep{ID: "a", From: control.JobQueued, To: control.JobRunning}}), control.ErrStale)
	b.want(b.jobs(one, control.Query{Tenant: "acme"}), "a done, c cancelled") // all or nothing
}

// testJobsLost: a job that has not ended is lost with its process, and nothing else is.
func testJobsLost(b *controlBench) {
	one, two := b.open(), b.open()
	for _, id := range []string{"queued", "running", "done"} {
		b.commit(one, control.Changes{Job: work(id, "acme", 100)})
	}
	b.commit(two, control.Changes{Job: work("theirs", "acme", 100)})
	for _, id := range []string{"running", "done"} {
		b.commit(one, control.Changes{JobStep: &control.JobStep{ID: id, From: control.JobQueued, To: control.JobRunning, At: 110, Done: 1, Of: 2}})
	}
	b.commit(one, control.Changes{JobStep: &control.JobStep{ID: "done", From: control.JobRunning, To: control.JobDone, At: 120, Result: []byte("x")}})
	b.want(b.jobs(two, control.Query{}), "queued queued, running running, done done, theirs queued")
	b.close(one)
	again := b.open()
	b.want(b.jobs(two, control.Query{}), "queued failed, running failed, done done, theirs queued")
	for _, s := range []ControlStore{two, again} {
		for id, want := range map[string]string{"queued": control.JobLost, "running": control.JobLost, "done": "", "theirs": ""} {
			if j := b.job(s, id); j.Outcome.Code != want || (want == "") != (j.Outcome.ExitCode == 0) || (want == "") != (j.Outcome.Detail == "") {
				b.Errorf("%s is %+v", id, j)
			}
		}
	}
	b.close(two)
	b.want(b.jobs(again, control.Query{}), "queued failed, running failed, done done, theirs failed")
	b.close(again)
}

// testJobsForgotten: a job is there for a week after it has ended.
func testJobsForgotten(b *controlBench) {
	s := b.open()
	defer b.close(s)
	add := func(id string, at specialist.Time) { b.commit(s, control.Changes{Job: work(id, "acme", at)}) }
	end := func(id string, at specialist.Time) {
		b.commit(s, control.Changes{JobStep: &control.JobStep{ID: id, From: control.JobQueued, To: control.JobDone, At: at, Result: []byte("x")}})
	}
	const week = control.JobLifetime
	add("early", 1)
	end("early", 10)
	add("late", 1)
	end("late", 20)
	add("open", 15)
	add("next", week+9)
	b.want(b.jobs(s, control.Query{}), "early done, late done, open queued, next queued")
	add("more", week+10)
	b.want(b.jobs(s, control.Query{}), "late done, open queued, next queued, more queued")
	_, _, err := s.JobResult(b.Context(), "early")
	b.is(err, control.ErrNotFound)
	add("early", week+15) // its id is free again
	b.want(b.jobs(s, control.Query{}), "late done, next queued, more queued, early queued")
	if result, _, err := s.JobResult(b.Context(), "early"); err != nil || result != nil {
		b.Errorf("a new job has the result %q, %v of another one", result, err)
	}
	b.is(s.Commit(b.Context(), control.Changes{Job: work("last", "acme", week+20), JobStep: &control.JobStep{ID: "late", From: control.JobDone, To: control.JobDone}}), control.ErrNotFound)
	b.want(b.jobs(s, control.Query{Limit: 1}), "late done")
}
