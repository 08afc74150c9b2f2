package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/server"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
)

// slowly is a store whose log is read only when somebody lets it, or until the reader gives up.
type slowly struct {
	session.Store
	let chan struct{} // closed, or one for each reading

	mu      sync.Mutex
	reading int // who waits to read
}

func (s *slowly) Log(ctx context.Context, machineName string, after int64) iter.Seq2[session.LogEntry, error] {
	return func(yield func(session.LogEntry, error) bool) {
		s.mu.Lock()
		s.reading++
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			s.reading--
			s.mu.Unlock()
		}()
		select {
		case <-s.let:
		case <-ctx.Done():
			yield(session.LogEntry{}, ctx.Err())
			return
		}
		for e, err := range s.Store.Log(ctx, machineName, after) {
			if !yield(e, err) {
				return
			}
		}
	}
}

func (s *slowly) readers() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reading
}

// ask asks for a job.
func (d *desk) ask(body string, header ...string) (j api.Job) {
	d.Helper()
	r := d.want(202, "POST", "/v1/jobs", body, header...)
	if r.into(d.T, &j); r.header.Get("Location") != "/v1/jobs/"+j.JobID || j.Status != control.JobQueued {
		d.Fatalf("asked for %s: %v %s", body, r.header, r.body)
	}
	return j
}

// job returns a job as it is now.
func (d *desk) job(id string) (j api.Job) {
	d.Helper()
	d.want(200, "GET", "/v1/jobs/"+id, "").into(d.T, &j)
	return j
}

// ended waits until a job has ended.
func (d *desk) ended(id string) (j api.Job) {
	d.Helper()
	for !j.Status.Ended() || j.Status == "" {
		d.want(200, "GET", "/v1/jobs/"+id+"?wait=10s", "").into(d.T, &j)
	}
	return j
}

// result returns the lines that a job has come to.
func (d *desk) result(id string) []string {
	d.Helper()
	r := d.want(200, "GET", "/v1/jobs/"+id+"/result", "")
	if r.header.Get("Content-Type") != "application/jsonl" {
		d.Errorf("the result is of type %s", r.header.Get("Content-Type"))
	}
	return strings.SplitAfter(strings.TrimSuffix(string(r.body), "\n"), "\n")
}

// decided has a session decided by a human, and returns it.
func (d *desk) decided(machine, transition string) api.Session {
	d.Helper()
	s := d.start(machine)
	d.want(200, "POST", "/v1/sessions/"+s.SessionID+"/decisions?wait=10s", ruling(s, transition, "carol"))
	return s
}

// TestJobs: what jobs come to is what the commands print, and a request that is sent again makes no
// second job.
func TestJobs(t *testing.T) {
	d := newTerminal(t, deskOptions{drives: true})
	d.decided(reviewed, "refuse")
	const body = `{"kind":"backtest","machineName":"claims","arbiter":"firstProposal","maxFlips":100}`
	j, again := d.ask(body, "Idempotency-Key", "k"), d.ask(body, "Idempotency-Key", "k")
	if again.JobID != j.JobID || j.Kind != "backtest" || j.MachineName != "claims" || j.CreatedBy != "local" || j.ExitCode != nil || len(j.Request) == 0 {
		t.Errorf("asked twice: %+v, %+v", j, again)
	}
	if got, want := d.ended(j.JobID), (api.Job{}); got.Status != control.JobDone || *got.ExitCode != 0 || got.Code != "" || got.StartedAt == nil || got.EndedAt == nil || got.ResultBytes == 0 ||
		*got.ExpiresAt != *got.EndedAt+control.JobLifetime || string(got.Request) != body {
		t.Errorf("the job has come to %+v, not %+v", got, want)
	}
	want := d.prints("backtest", "claims", "--arbiter", "firstProposal")
	if got := d.result(j.JobID); !slices.Equal(got, want) || len(got) < 4 {
		t.Errorf("the job has found\n%s\nthe command\n%s", got, want)
	}
	for body, command := range map[string][]string{
		`{"kind":"backtest"}`: {"backtest"},
		`{"kind":"backtest","machineName":"claims","threshold":0.5,"cold":true,"drop":["rob"],"since":"30d","guards":{"limits":{"max_steps":0}}}`: nil,
		`{"kind":"verify"}`: {"store", "verify"},
		`{"kind":"simulate","machine":` + reviewed + `,"rounds":50,"seed":"7"}`:                                       nil,
		`{"kind":"simulate","spec":{"states":[{"name":"a","classes":["x","y"]}],"specialists":[{"id":"v","p":0.9}]}}`: nil,
	} {
		j := d.ask(body)
		if got := d.ended(j.JobID); got.Status != control.JobDone || *got.ExitCode != 0 {
			t.Errorf("%s: %+v", body, got)
			continue
		}
		if got := d.result(j.JobID); command != nil && !slices.Equal(got, d.prints(command...)) || len(got) == 0 {
			t.Errorf("%s has come to\n%s", body, got)
		}
	}
	var list api.List[api.Job]
	if d.want(200, "GET", "/v1/jobs?kind=backtest&order=asc&limit=200", "").into(t, &list); len(list.Items) != 3 || list.Items[0].JobID != j.JobID || list.Items[0].Request != nil {
		t.Errorf("the list has %+v", list.Items)
	}
	if d.want(200, "GET", "/v1/jobs?status=failed", "").into(t, &list); len(list.Items) != 0 {
		t.Errorf("failed are %+v", list.Items)
	}
	if r := d.want(409, "DELETE", "/v1/jobs/"+j.JobID, ""); r.code() != "job_ended" {
		t.Errorf("what is done is cancelled: %s", r.body)
	}
	exceeded := d.ended(d.ask(`{"kind":"backtest","machineName":"claims","arbiter":"firstProposal","maxFlips":0}`).JobID)
	if exceeded.Status != control.JobDone || *exceeded.ExitCode != 1 || exceeded.Code != "exceeded" || !strings.Contains(exceeded.Detail, "more than --max-flips 0") {
		t.Errorf("with more flips than may be it is %+v", exceeded)
	}
	named := 0
	for _, e := range d.logged("POST /v1/jobs") {
		if e.Target == "/v1/jobs/"+j.JobID && e.Result == "Accepted" {
			named++
		}
	}
	if named != 1 {
		t.Errorf("the audit log names the job %d times, want once", named)
	}
	if seen := d.logged("GET /v1/jobs/{job}/result"); len(seen) == 0 || seen[0].Target != "/v1/jobs/"+j.JobID+"/result" {
		t.Errorf("of the results that were read the log says %+v", seen)
	}
}

// unused publishes a machine that nobody has started, and returns a back-test of it.
func (d *desk) unused() string {
	d.Helper()
	d.want(201, "PUT", "/v1/machines/unused", strings.Replace(reviewed, "claims", "unused", 1), "If-None-Match", "*")
	return `{"kind":"backtest","machineName":"unused"}`
}

// TestJobsRefused: what is wrong with a job is said at once, and none is made.
func TestJobsRefused(t *testing.T) {
	d, file := newDesk(t, deskOptions{}), newTerminal(t, deskOptions{})
	d.want(201, "POST", "/v1/sessions", `{"machine":`+reviewed+`}`)
	driven := newTerminal(t, deskOptions{drives: true})
	for body, want := range map[string]string{
		`{}`:                                    "400 bad_request",
		`{"kind":"dance"}`:                      "400 bad_request",
		`{"kind":"verify"}`:                     "422 memory_store",
		`{"kind":"backtest","head":"1.0.0:ab"}`: "400 bad_request",
		`{"kind":"backtest","rounds":5}`:        "400 bad_request",
		`{"kind":"simulate","machine":` + reviewed + `,"drop":["a"]}`: "400 bad_request",
		`{"kind":"simulate"}`:                                                      "400 bad_request",
		`{"kind":"simulate","machine":{"machineName":"x"}}`:                        "400 invalid_machine",
		`{"kind":"simulate","machine":` + reviewed + `,"seed":"-1"}`:               "400 bad_request",
		`{"kind":"simulate","machine":` + reviewed + `,"rounds":1001,"runs":1000}`: "400 bad_request",
		`{"kind":"simulate","spec":{"stats":[]}}`:                                  "400 invalid_machine",
		`{"kind":"backtest","arbiter":"majority"}`:                                 "400 bad_request",
		`{"kind":"backtest","arbiter":{"treshold":1}}`:                             "400 invalid_machine",
		`{"kind":"backtest","arbiter":{"role":"proposer"}}`:                        "400 bad_request",
		`{"kind":"backtest","risk":{"maxError":2}}`:                                "422 bad_policy",
		`{"kind":"backtest","risk":{"maxError":0.1},"threshold":0.5}`:              "422 bad_policy",
		`{"kind":"backtest","risk":{"maxError":0.1},"arbiter":"firstProposal"}`:    "422 bad_policy",
		`{"kind":"backtest","since":"yesterday"}`:                                  "400 bad_request",
		`{"kind":"backtest","guards":{"limmits":{}}}`:                              "400 invalid_guards",
		`{"kind":"backtest","maxError":2}`:                                         "400 bad_request",
		`{"kind":"backtest","machineName":"nobody's"}`:                             "404 not_found",
		`{"kind":"backtest","machineName":"claims","threshold":7}`:                 "422 bad_policy",
		`{"kind":"backtest","machineName":"claims","arbiter":"= 1 +"}`:             "422 bad_policy",
	} {
		if r := d.do(localKey, "POST", "/v1/jobs", body); fmt.Sprint(r.status, " ", r.code()) != want {
			t.Errorf("%s: %d %s, want %s", body, r.status, r.body, want)
		}
	}
	if r := file.want(400, "POST", "/v1/jobs", `{"kind":"verify","head":"x"}`); r.code() != "bad_request" {
		t.Errorf("a head that is none: %s", r.body)
	}
	if r := driven.want(409, "POST", "/v1/jobs", `{"kind":"rebuild"}`); r.code() != "driven" {
		t.Errorf("rebuilt while sessions are carried on: %s", r.body)
	}
	for _, path := range []string{"/v1/jobs/none", "/v1/jobs/none/result"} {
		d.want(404, "GET", path, "")
	}
	d.want(404, "DELETE", "/v1/jobs/none", "")
	d.want(400, "GET", "/v1/jobs/none?wait=soon", "")
	var list api.List[api.Job]
	if d.want(200, "GET", "/v1/jobs", "").into(t, &list); len(list.Items) != 0 {
		t.Errorf("what was refused is a job: %+v", list.Items)
	}
	// What only the past tells has the job fail: of a machine that is published there is none.
	for body, want := range map[string]string{d.unused(): "not_found 1"} {
		j := d.ended(d.ask(body).JobID)
		if got := fmt.Sprint(j.Code, " ", *j.ExitCode); j.Status != control.JobFailed || got != want || j.Detail == "" {
			t.Errorf("%s: %+v, want %s", body, j, want)
		}
		if r := d.want(409, "GET", "/v1/jobs/"+j.JobID+"/result", ""); r.code() != "job_failed" || !strings.Contains(string(r.body), j.Detail) {
			t.Errorf("the result of what has failed: %s", r.body)
		}
	}
}

// TestWhoMayHaveJobs: whoever may publish machines, of those; the store is for who administers it.
func TestWhoMayHaveJobs(t *testing.T) {
	d := newTerminal(t, deskOptions{drives: true})
	d.decided(reviewed, "pay")
	all := map[string]string{"backtest": `{"kind":"backtest"}`, "claims": `{"kind":"backtest","machineName":"claims"}`, "verify": `{"kind":"verify"}`}
	ids := map[string]string{}
	for name, body := range all {
		ids[name] = d.ended(d.ask(body).JobID).JobID
	}
	for who, may := range map[*control.Grant]string{
		{Role: control.Admin}:                               "backtest claims verify",
		{Role: control.Operator}:                            "backtest claims",
		{Role: control.Operator, Machines: []string{"c*"}}:  "claims",
		{Role: control.Operator, Machines: []string{"x"}}:   "",
		{Role: control.Admin, Machines: []string{"claims"}}: "claims",
		{Role: control.Viewer}:                              "",
		{Role: control.Auditor}:                             "",
		{Role: control.Human, Humans: []string{"carol"}}:    "",
	} {
		key := d.key(*who)
		for name, body := range all {
			allowed := slices.Contains(strings.Fields(may), name)
			if r := d.do(key, "POST", "/v1/jobs", body); (r.status == 202) != allowed || !allowed && r.status != 403 && r.status != 404 {
				t.Errorf("%s by %+v: %d %s", name, *who, r.status, r.body)
			}
			for _, path := range []string{"/v1/jobs/" + ids[name], "/v1/jobs/" + ids[name] + "/result"} {
				if r := d.do(key, "GET", path, ""); (r.status == 200) != allowed || !allowed && r.status != 403 && r.status != 404 {
					t.Errorf("%s of %s by %+v: %d %s", path, name, *who, r.status, r.body)
				}
			}
			var list api.List[api.Job]
			if r := d.do(key, "GET", "/v1/jobs", ""); r.status == 200 {
				r.into(t, &list)
			}
			if has := slices.ContainsFunc(list.Items, func(j api.Job) bool { return j.JobID == ids[name] }); has != allowed {
				t.Errorf("%s in the list of %+v: %v", name, *who, has)
			}
		}
	}
}

// TestJobsAtOnce: two jobs run at a time, others wait in their order; one that is cancelled ends, be
// it running or waiting, and makes room.
func TestJobsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowly{Store: store.NewMemory(), let: make(chan struct{})}
		d := newDesk(t, deskOptions{store: slow})
		d.want(201, "POST", "/v1/sessions", `{"machine":`+reviewed+`}`)
		var ids []string
		for range 4 {
			ids = append(ids, d.ask(`{"kind":"backtest"}`).JobID)
		}
		is := func(want string) {
			t.Helper()
			synctest.Wait()
			var got []string
			for _, id := range ids {
				got = append(got, string(d.job(id).Status))
			}
			if fmt.Sprint(got) != want {
				t.Fatalf("the jobs are %s, want %s", got, want)
			}
		}
		is("[running running queued queued]")
		if r := d.want(409, "GET", "/v1/jobs/"+ids[0]+"/result", ""); r.code() != "job_not_done" {
			t.Errorf("the result of what is not done: %s", r.body)
		}
		var j api.Job
		d.want(200, "DELETE", "/v1/jobs/"+ids[2], "").into(t, &j)
		if j.Status != control.JobCancelled || j.ExitCode != nil {
			t.Errorf("cancelled it is %+v", j)
		}
		d.want(200, "DELETE", "/v1/jobs/"+ids[2], "") // again
		d.want(200, "DELETE", "/v1/jobs/"+ids[0], "")
		is("[cancelled running cancelled running]")
		if slow.readers() != 2 {
			t.Errorf("%d jobs read the log", slow.readers())
		}
		if r := d.want(409, "GET", "/v1/jobs/"+ids[0]+"/result", ""); r.code() != "job_cancelled" {
			t.Errorf("the result of what was cancelled: %s", r.body)
		}
		// Who waits is told as soon as something changes.
		waited := make(chan api.Job)
		go func() {
			var j api.Job
			d.want(200, "GET", "/v1/jobs/"+ids[1]+"?wait=30s", "").into(t, &j)
			waited <- j
		}()
		synctest.Wait()
		before := time.Now()
		close(slow.let)
		if j := <-waited; j.Status != control.JobDone || time.Since(before) != 0 {
			t.Errorf("after %v the job is %+v", time.Since(before), j)
		}
		is("[cancelled done cancelled done]")
		// There is room for so many.
		slow.let = make(chan struct{})
		for range 22 {
			ids = append(ids, d.ask(`{"kind":"backtest"}`).JobID)
			synctest.Wait()
		}
		if r := d.want(429, "POST", "/v1/jobs", `{"kind":"backtest"}`); r.code() != "too_many_jobs" || r.header.Get("Retry-After") == "" {
			t.Errorf("one more: %s", r.body)
		}
		close(slow.let)
		for _, id := range ids[4:] {
			if j := d.ended(id); j.Status != control.JobDone {
				t.Errorf("%+v", j)
			}
		}
	})
}

// TestJobsOfOthers: a job that is cancelled at another process ends within a second, and what it
// says of its progress is bounded.
func TestJobsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowly{Store: store.NewMemory(), let: make(chan struct{})}
		d := newDesk(t, deskOptions{store: slow})
		d.want(201, "POST", "/v1/sessions", `{"machine":`+reviewed+`}`)
		j := d.ask(`{"kind":"backtest"}`)
		synctest.Wait()
		if err := d.control.Commit(t.Context(), control.Changes{JobStep: &control.JobStep{ID: j.JobID, From: control.JobRunning, To: control.JobCancelled, At: 1}}); err != nil {
			t.Fatal(err)
		}
		if slow.readers() != 1 {
			t.Fatal("nobody works at the job")
		}
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		if slow.readers() != 0 || d.job(j.JobID).Status != control.JobCancelled {
			t.Errorf("a second later it is %+v", d.job(j.JobID))
		}
	})
}

// TestJobsEndWithTheServer: what a server was at when it ended is lost, and says so.
func TestJobsEndWithTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowly{Store: store.NewMemory(), let: make(chan struct{})}
		d := newDesk(t, deskOptions{store: slow})
		d.want(201, "POST", "/v1/sessions", `{"machine":`+reviewed+`}`)
		ids := []string{d.ask(`{"kind":"backtest"}`).JobID, d.ask(`{"kind":"backtest"}`).JobID, d.ask(`{"kind":"backtest"}`).JobID}
		synctest.Wait()
		ctx, end := context.WithCancel(t.Context())
		end()
		if err := d.server.Serve(ctx, server.Listening{Grace: time.Second}); err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if j := d.job(id); j.Status != control.JobFailed || j.Code != control.JobLost || j.Hint == "" || j.EndedAt == nil {
				t.Errorf("it is %+v", j)
			}
		}
		if r := d.want(503, "POST", "/v1/jobs", `{"kind":"backtest"}`); r.code() != "shutting_down" {
			t.Errorf("another one: %s", r.body)
		}
	})
}

// TestLostJobs: what a process was at that is gone is lost for whoever looks from another one.
func TestLostJobs(t *testing.T) {
	path := t.TempDir() + "/control"
	open := func() *store.Control {
		t.Helper()
		c, err := store.OpenControl(t.Context(), path, store.SQLiteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	before := open()
	slow := &slowly{Store: store.NewMemory(), let: make(chan struct{})}
	d := newDesk(t, deskOptions{store: slow, control: before})
	d.want(201, "POST", "/v1/sessions", `{"machine":`+reviewed+`}`)
	j := d.ask(`{"kind":"backtest"}`)
	if err := before.Close(); err != nil { // as if it had died: it cannot say anything any more
		t.Fatal(err)
	}
	after := open()
	defer after.Close()
	d = newDesk(t, deskOptions{store: slow.Store, control: after})
	if got := d.job(j.JobID); got.Status != control.JobFailed || got.Code != control.JobLost || *got.ExitCode != 1 {
		t.Errorf("it is %+v", got)
	}
	if r := d.want(409, "DELETE", "/v1/jobs/"+j.JobID, ""); r.code() != "job_ended" {
		t.Errorf("what is lost is cancelled: %s", r.body)
	}
	close(slow.let)
}

// TestRebuildJob: a store is rebuilt where nobody carries its sessions on, this process or another.
func TestRebuildJob(t *testing.T) {
	d := newTerminal(t, deskOptions{})
	d.want(201, "POST", "/v1/sessions", `{"machine":`+reviewed+`}`)
	j := d.ended(d.ask(`{"kind":"rebuild"}`).JobID)
	if j.Status != control.JobDone || *j.ExitCode != 0 || !strings.HasPrefix(d.result(j.JobID)[0], `{"sessions":1,`) {
		t.Errorf("rebuilt: %+v", j)
	}
	lock, err := d.runner.Store().(*store.SQLite).DriverLock()
	if err != nil {
		t.Fatal(err)
	}
	if free, err := lock.TryLock(); !free || err != nil {
		t.Fatal("the lock is held after the rebuilding", err)
	}
	if j := d.ended(d.ask(`{"kind":"rebuild","acceptCut":true}`).JobID); j.Status != control.JobFailed || j.Code != "driven" {
		t.Errorf("while another process carries sessions on: %+v", j)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	d.want(201, "POST", "/v1/sessions", `{"machine":`+reviewed+`}`) // the server goes on
	var is api.Store
	if d.want(200, "GET", "/v1/store", "").into(t, &is); is.LastVerify != nil {
		t.Errorf("before a check the store is %+v", is)
	}
	if j := d.ended(d.ask(`{"kind":"verify"}`).JobID); *j.ExitCode != 0 {
		t.Errorf("verified: %+v", j)
	} else if d.want(200, "GET", "/v1/store", "").into(t, &is); is.LastVerify == nil || is.LastVerify.JobID != j.JobID || is.LastVerify.At != *j.EndedAt || is.LastVerify.ExitCode != 0 {
		t.Errorf("after it the store is %+v", is)
	}
}

// asked is a machine whose arbiter leaves every round to a human.
const asked = `{"machineName":"desk","initialState":"a","goalState":"done","states":{"a":{"transitions":{"on":"a","finish":"done"}},"done":{}},
	"specialists":[{"role":"proposer","specialistId":"one","strategyFn":"= \"on\""},{"role":"proposer","specialistId":"carol","isHuman":true},{"role":"arbiter","specialistId":"judge","strategyFn":"= none"}]}`

// taught returns a session of asked in which carol has decided 20 rounds.
func (d *desk) taught() api.Session {
	d.Helper()
	s := d.start(asked)
	for range 20 {
		var ruled api.Ruled
		d.want(200, "POST", "/v1/sessions/"+s.SessionID+"/decisions?wait=10s", ruling(s, "on", "carol")).into(d.T, &ruled)
		s = ruled.Session
	}
	return s
}

// TestAdoptTheLost: an adoption of which only the effect is known is taken up when it is sent
// again, and adopts nothing a second time; that of another request does.
func TestAdoptTheLost(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true, control: &forgetful{Store: control.NewMemory()}})
	s := d.taught()
	found := d.ended(d.ask(`{"kind":"backtest","machineName":"desk","arbiter":"bayes","risk":{"maxError":0.45,"confidence":0.55}}`).JobID).JobID
	const path = "/v1/machines/desk/adoptions"
	body := fmt.Sprintf(`{"jobId":%q,"specialistId":"carol"}`, found)
	adopted := func(key string, events int) *reply {
		r := d.want(200, "POST", path, body, "Idempotency-Key", key)
		var list api.List[api.Event]
		d.want(200, "GET", "/v1/sessions/"+s.SessionID+"/events?kinds=policy_adopted", "").into(t, &list)
		if len(list.Items) != events {
			t.Errorf("after an adoption with the key %s the log has %d, want %d", key, len(list.Items), events)
		}
		return r
	}
	first, again := adopted("lost", 1), adopted("lost", 1)
	if string(again.body) != string(first.body) || again.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("taken up, the request is answered %s, want %s", again.body, first.body)
	}
	if third := adopted("lost", 1); third.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("once its end is known, it is not repeated: %v", third.header)
	}
	adopted("another", 2)
	// A key whose receipt is gone, and that has adopted something else.
	key := control.ReceiptKey{Tenant: "default", Subject: "local", Method: "POST", Path: path, Key: "former"}
	former := trust.Adoption{Machine: "desk", Promise: trust.DefaultPromise(), PolicyDigest: "another", Pairs: []trust.Pair{{P: 900_000_000, Right: true}}}
	if _, err := d.runner.Adopt(t.Context(), runner.Adopting{Adoption: former, Trial: session.Trial{Policy: "p", From: 1, To: 1}, SpecialistID: "carol", ID: key.ID().String()}); err != nil {
		t.Fatal(err)
	}
	if r := d.want(422, "POST", path, body, "Idempotency-Key", key.Key); r.code() != "key_reused" {
		t.Errorf("a key that has adopted something else: %s", r.body)
	}
}

// TestAdoptions: a human adopts what a back-test found of what a policy promises; nobody else does,
// and nothing else is adopted.
func TestAdoptions(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	s := d.taught()
	find := func(more string) string {
		j := d.ended(d.ask(`{"kind":"backtest","machineName":"desk"` + more + `}`).JobID)
		if j.Status != control.JobDone {
			t.Fatalf("%s: %+v", more, j)
		}
		return j.JobID
	}
	const path, bayes = "/v1/machines/desk/adoptions", `,"arbiter":"bayes","risk":{"maxError":0.45,"confidence":0.55}`
	found := find(bayes)
	find(strings.Replace(bayes, "0.45", "0.4", 1)) // the best of two is adopted at less confidence
	adopt := func(job, who string) string {
		return fmt.Sprintf(`{"jobId":%q,"specialistId":%q,"reasoning":"it was right"}`, job, who)
	}
	carol := d.key(control.Grant{Role: control.Human, Humans: []string{"carol"}})
	for body, want := range map[string]string{
		adopt("none", "carol"): "404 not_found",
		adopt(d.ended(d.ask(`{"kind":"simulate","machine":`+reviewed+`,"rounds":5}`).JobID).JobID, "carol"): "404 not_found",
		adopt(find(""), "carol"):                               "422 promises_nothing",
		adopt(find(`,"threshold":0.5`), "carol"):               "422 promises_nothing",
		adopt(find(bayes+`,"cold":true`), "carol"):             "422 promises_nothing",
		adopt(find(bayes+`,"maxFlips":0`), "carol"):            "409 exceeded",
		adopt(d.ended(d.ask(d.unused()).JobID).JobID, "carol"): "404 not_found",
		adopt(found, "one"):                                    "403 not_human",
		`{"reasoning":"why"}`:                                  "400 bad_request",
	} {
		if r := d.do(localKey, "POST", path, body); fmt.Sprint(r.status, " ", r.code()) != want {
			t.Errorf("%s: %d %s, want %s", body, r.status, r.body, want)
		}
	}
	for who, want := range map[*control.Grant]string{
		{Role: control.Operator}:                        "403 forbidden",
		{Role: control.Admin}:                           "403 not_a_decider",
		{Role: control.Human, Humans: []string{"dave"}}: "403 not_a_decider",
	} {
		if r := d.do(d.key(*who), "POST", path, adopt(found, "")); fmt.Sprint(r.status, " ", r.code()) != want {
			t.Errorf("adopted by %+v: %d %s, want %s", *who, r.status, r.body, want)
		}
	}
	if r := d.wantAs(carol, 403, "POST", path, adopt(found, "dave")); r.code() != "not_bound" {
		t.Errorf("adopted as somebody else: %s", r.body)
	}
	var got, again api.Adopted
	d.wantAs(carol, 200, "POST", path, adopt(found, ""), "Idempotency-Key", "a").into(t, &got)
	d.wantAs(carol, 200, "POST", path, adopt(found, ""), "Idempotency-Key", "a").into(t, &again)
	if len(got.Adopted) != 1 || got.Adopted[0].Pairs != 10 || got.Adopted[0].SpecialistID != "carol" || got.Adopted[0].Tried != 2 || fmt.Sprint(got) != fmt.Sprint(again) {
		t.Errorf("adopted: %+v, and again %+v", got, again)
	}
	// Of a back-test of all machines what is adopted is that of the one.
	d.decided(reviewed, "pay")
	all := d.ended(d.ask(`{"kind":"backtest"` + bayes + `}`).JobID).JobID
	if d.want(200, "POST", path, adopt(all, "carol")).into(t, &again); len(again.Adopted) != 1 || again.Adopted[0].Machine != "desk" {
		t.Errorf("of all machines: %+v", again)
	}
	var events api.List[api.Event]
	d.want(200, "GET", "/v1/sessions/"+s.SessionID+"/events?kinds=policy_adopted&payload=full", "").into(t, &events)
	if len(events.Items) != 2 || !strings.Contains(string(events.Items[0].Data), `"method":"key"`) || !strings.Contains(string(events.Items[0].Data), "it was right") {
		t.Errorf("the log has %+v", events.Items)
	}
}

// TestProgressIsTold: streams of events are told how far a job is, without an id and only those of
// whoever may have it; who begins again is not told of it again, nor is an inbox.
func TestProgressIsTold(t *testing.T) {
	d := newTerminal(t, deskOptions{drives: true})
	at := d.reached()
	d.decided(reviewed, "pay")
	operator := d.key(control.Grant{Role: control.Operator, Machines: []string{"claims"}})
	all, one := d.hear(at, localKey, "/v1/events", ""), d.hear(at, operator, "/v1/machines/claims/events", "")
	inbox := d.hear(at, localKey, "/v1/inbox/events", "")
	kept := map[string]*listener{
		"that may have no job": d.hear(at, d.key(control.Grant{Role: control.Viewer}), "/v1/events", ""),
		"of other kinds":       d.hear(at, localKey, "/v1/events?kinds=session_created", ""),
	}
	j := d.ended(d.ask(`{"kind":"backtest","machineName":"claims"}`).JobID)
	for _, l := range []*listener{all, one} {
		for status := control.JobStatus(""); status != control.JobDone; {
			var e api.Event
			var told api.Job
			got := l.next()
			err := json.Unmarshal([]byte(got.data), &e)
			if err == nil {
				err = json.Unmarshal(e.Data, &told)
			}
			if err != nil || got.id != "" || got.kind != "job.progress" || e.Kind != got.kind || e.Machine != "claims" || told.JobID != j.JobID || told.Request != nil || status == "" && told.Status != control.JobQueued {
				t.Fatalf("told after %q: %+v, %v", status, got, err)
			}
			status = told.Status
		}
	}
	kept["that comes later"] = d.hear(at, localKey, "/v1/events", "")
	d.start(alone2)
	for name, l := range kept {
		if e := l.next(); e.kind != "session_created" {
			t.Errorf("a stream %s is told %+v", name, e)
		}
	}
	if e := inbox.next(); e.kind != "question.opened" {
		t.Errorf("an inbox is told %+v", e)
	}
}
