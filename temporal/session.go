package temporal

import (
	"cmp"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// The workflow of a session. It goes round one loop: advance, start the asks that are out and
// end those that nobody needs any more, wait. It branches on what activities return, on
// signals, updates and timers only; it knows nothing that the store does not know, and so
// it can begin anew at any time: as a new run when its history has grown long, and from
// nothing when somebody has terminated it.
//
// The order of commands is in the histories of workflows that run. Whoever changes it asks
// workflow.GetVersion first, or makes a new type of workflow, beside which the one before is
// registered for one release; testdata/histories is replayed by the tests. A worker that does not know a type leaves its
// tasks to others. Asking for a version takes two events of each run, a new type none.

// An Input is what a workflow starts with: which session. Activities get nothing of it but that.
type Input struct {
	SessionID string `json:"sessionId"`
	// MostEvents is how long a history may grow until the workflow goes on as a new run, where the server does
	// not suggest it before; 0 means DefaultMostEvents.
	MostEvents int `json:"mostEvents,omitempty"`
	// Since is from when on the session has stood stopped or failed in this state of its log, milliseconds since 1970; 0
	// if it has not. A new run of the workflow goes on from there.
	Since    int64 `json:"since,omitempty"`
	Sequence int64 `json:"sequence,omitempty"` // of the session then
	// Attributes are the search attributes that the namespace knows, and that the workflow sets; Shown is what they are
	// set to.
	Attributes []string `json:"attributes,omitempty"`
	Shown      Shown    `json:"shown,omitzero"`
}

// A Result is how a session has ended.
type Result struct {
	Status string `json:"status"`
	Code   string `json:"code"`
}

// An Ask names an ask that is out: runner.ExternalAsk in JSON.
type Ask struct {
	Round        int32  `json:"round"`
	Attempt      int32  `json:"attempt"`
	Index        int32  `json:"index"`
	Repeat       int32  `json:"repeat"`
	SpecialistID string `json:"specialistId"`
	TimeoutMsec  int64  `json:"timeoutMsec"`
	Deadline     int64  `json:"deadline"` // milliseconds since 1970
}

// A Came is what an ask came to. The answer is in the log.
type Came struct {
	Waits bool `json:"waits"` // for other asks: an advance would do nothing
}

// A Status is where a session stood when its workflow looked last.
type Status struct {
	Sequence int64  `json:"sequence"`
	Status   string `json:"status"`
	State    string `json:"state"`
	RoundID  string `json:"roundId"`
	Code     string `json:"code"`
	WakeAt   int64  `json:"wakeAt"` // milliseconds since 1970; 0 is never
	Asks     []Ask  `json:"asks"`
	Tenant   string `json:"tenant,omitempty"` // whose the session is, as the worker's Runner says; "" where all are of one
}

// How long a workflow waits, and how long its activities may take.
const (
	lookEvery    = 5 * time.Minute  // where nobody tells of commits
	resumeWithin = 24 * time.Hour   // a session that has stopped or failed may be resumed
	advanceTime  = 5 * time.Minute  // one advance begins no step after half of it
	mostAdvance  = 24 * time.Hour   // one step: an arbiter takes as long as its machine lets it, and lost workers are known by their heartbeat
	heartbeat    = 10 * time.Second // after which a worker is lost
	graceOfAsks  = 5 * time.Second  // beyond the time that an ask has
	soonest      = time.Second      // a timer, so that a clock that is off makes no busy loop
)

// Events, updates and bytes of a history after which a workflow goes on as a new run.
const (
	DefaultMostEvents = 4000
	mostUpdates       = 500
	mostBytes         = 4 << 20
)

var retries = temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute}

// A sessionRun is one run of the workflow.
type sessionRun struct {
	in      Input
	version version
	at      Status
	out     map[Ask]underWay
	order   []Ask               // the same, in the order in which they were started
	timer   workflow.Future     // of the last wait, while it has not fired; nil if there is none
	fires   time.Time           // when it does
	halt    workflow.CancelFunc // ends it
	ended   []Ask               // those that have ended, and were out at the last advance all the same
	done    workflow.Channel    // of ending
	ruled   workflow.Channel    // of int: an update is done
	woken   bool                // something has happened with which advance may have something to do
	updates int
}

// An underWay is an ask that an activity sends.
type underWay struct {
	cancel workflow.CancelFunc
	ends   time.Time // when it has had its time
}

// A version says by which rules a workflow goes on.
type version int

const (
	beforeFewerEvents version = iota // that of workers before fewerEvents; tests have some
	v1                               // FormerWorkflowName
	v2                               // WorkflowName
)

// Session is the workflow dialai.session.v2.
func Session(ctx workflow.Context, in Input) (Result, error) { return run(ctx, in, v2) }

// FormerSession is the workflow dialai.session.v1, which goes on where it was begun by a former version.
func FormerSession(ctx workflow.Context, in Input) (Result, error) { return run(ctx, in, v1) }

func run(ctx workflow.Context, in Input, of version) (Result, error) {
	s := &sessionRun{in: in, version: of, out: map[Ask]underWay{}, done: workflow.NewChannel(ctx), ruled: workflow.NewBufferedChannel(ctx, mostUpdates)}
	if err := s.handle(ctx); err != nil {
		return Result{}, err
	}
	for {
		s.woken = false
		if err := s.advance(ctx); err != nil {
			return Result{}, err
		}
		if err := s.show(ctx); err != nil {
			return Result{}, err
		}
		if s.at.Status == "completed" || s.over(workflow.Now(ctx)) {
			return s.result(ctx)
		}
		s.drop()
		if s.long(ctx) { // the new run starts what is out
			return Result{}, s.anew(ctx)
		}
		if s.at.Status == "running" { // its time was over
			continue
		}
		s.ask(ctx)
		if err := s.wait(ctx); err != nil {
			return Result{}, err
		}
		if s.long(ctx) {
			return Result{}, s.anew(ctx)
		}
	}
}

// anew goes on as a new run of the same type.
func (s *sessionRun) anew(ctx workflow.Context) error {
	return workflow.NewContinueAsNewError(ctx, workflow.GetInfo(ctx).WorkflowType.Name, s.in)
}

// of is what activities are told.
func (s *sessionRun) of() Input { return Input{SessionID: s.in.SessionID} }

func (s *sessionRun) result(ctx workflow.Context) (Result, error) {
	if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
		return Result{}, err
	}
	return Result{Status: s.at.Status, Code: s.at.Code}, nil
}

// long reports whether it is time for a new run, and nothing is under way that would be lost.
func (s *sessionRun) long(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	most := cmp.Or(s.in.MostEvents, DefaultMostEvents)
	full := info.GetContinueAsNewSuggested() || info.GetCurrentHistoryLength() >= most || info.GetCurrentHistorySize() >= mostBytes || s.updates >= mostUpdates
	return full && len(s.out) == 0 && workflow.AllHandlersFinished(ctx)
}

// advance has all steps taken that can be taken now.
func (s *sessionRun) advance(ctx workflow.Context) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: mostAdvance, HeartbeatTimeout: heartbeat, RetryPolicy: &retries})
	return workflow.ExecuteActivity(ctx, AdvanceActivity, s.of()).Get(ctx, &s.at)
}

// over reports whether a session that has stopped or failed was not resumed in time.
func (s *sessionRun) over(now time.Time) bool {
	if s.at.Status != "stopped" && s.at.Status != "failed" {
		s.in.Since, s.in.Sequence = 0, 0
		return false
	}
	if s.in.Since == 0 || s.in.Sequence != s.at.Sequence {
		s.in.Since, s.in.Sequence = now.UnixMilli(), s.at.Sequence
	}
	return now.Sub(time.UnixMilli(s.in.Since)) >= resumeWithin
}

// drop ends the asks that are out no more.
func (s *sessionRun) drop() {
	for _, a := range slices.Clone(s.order) {
		if !slices.Contains(s.at.Asks, a) {
			s.out[a].cancel()
			s.forget(a)
		}
	}
	s.ended = slices.DeleteFunc(s.ended, func(a Ask) bool { return !slices.Contains(s.at.Asks, a) })
}

// ask starts the asks that are out and not under way.
func (s *sessionRun) ask(ctx workflow.Context) {
	for _, a := range s.at.Asks {
		if s.sends(a) || slices.Contains(s.ended, a) { // what has ended is repeated by an advance, after its deadline
			continue
		}
		within, cancel := workflow.WithCancel(ctx)
		takes := time.Duration(a.TimeoutMsec) * time.Millisecond
		s.out[a] = underWay{cancel, workflow.Now(ctx).Add(takes)}
		s.order = append(s.order, a)
		// Whether it is still in time says the store, by its clock; then an advance repeats it, and this one ends.
		within = workflow.WithActivityOptions(within, workflow.ActivityOptions{StartToCloseTimeout: takes + graceOfAsks, HeartbeatTimeout: heartbeat, RetryPolicy: &retries})
		asked := workflow.ExecuteActivity(within, AskActivity, s.of(), a)
		workflow.Go(ctx, func(ctx workflow.Context) {
			e := ending{ask: a}
			_ = asked.Get(ctx, &e.came) // what came of it is in the log; a worker of a former version says nothing
			s.done.Send(ctx, e)
		})
	}
}

// sends reports whether an activity sends an ask.
func (s *sessionRun) sends(a Ask) bool {
	_, is := s.out[a]
	return is
}

func (s *sessionRun) forget(a Ask) {
	delete(s.out, a)
	s.order = slices.DeleteFunc(s.order, func(o Ask) bool { return o == a })
}

// An ending is the end of an ask.
type ending struct {
	ask  Ask
	came Came
}

// hasEnded notes the end of an ask, if it was not cancelled. An advance follows, unless others are under way and
// it would do nothing but wait for them.
func (s *sessionRun) hasEnded(e ending, fewer bool) {
	if s.sends(e.ask) {
		s.forget(e.ask)
		s.ended = append(s.ended, e.ask)
		s.woken = s.woken || !fewer || !e.came.Waits || len(s.out) == 0
	}
}

// fewerEvents is the change of v1 by which a wait takes fewer events: a timer that has not fired serves the next wait, too,
// and no advance follows an ask after which there is nothing to do.
const fewerEvents = "fewer-events"

// fewer reports whether fewerEvents holds, which v2 need not ask.
func (s *sessionRun) fewer(ctx workflow.Context) bool {
	return s.version == v2 || s.version == v1 && workflow.GetVersion(ctx, fewerEvents, workflow.DefaultVersion, 1) >= 1
}

// until has a timer fire at a time, unless the one of a former wait does so before.
func (s *sessionRun) until(ctx workflow.Context, at time.Time, fewer bool) {
	if s.timer != nil && fewer && !s.fires.After(at) {
		return
	}
	s.stopTimer()
	timing, cancel := workflow.WithCancel(ctx)
	s.timer, s.fires, s.halt = workflow.NewTimer(timing, at.Sub(workflow.Now(ctx))), at, cancel
}

func (s *sessionRun) stopTimer() {
	if s.timer != nil {
		s.halt()
		s.timer = nil
	}
}

// endsBefore reports whether an ask has had its time before another one: then its end wakes the workflow, without a timer.
func (s *sessionRun) endsBefore(at time.Time) bool {
	return slices.ContainsFunc(s.order, func(a Ask) bool { return !s.out[a].ends.After(at) })
}

// wait returns when advance may have something to do.
func (s *sessionRun) wait(ctx workflow.Context) (err error) {
	after := lookEvery
	if s.at.WakeAt != 0 {
		after = min(after, max(soonest, time.UnixMilli(s.at.WakeAt).Sub(workflow.Now(ctx))))
	}
	fewer, latest := s.fewer(ctx), workflow.Now(ctx).Add(after)
	if !fewer {
		defer s.stopTimer()
	}
	if s.version != v2 {
		s.until(ctx, latest, fewer)
	}
	changed := workflow.GetSignalChannel(ctx, ChangedSignal)
	for !s.woken {
		if s.version == v2 && !s.endsBefore(latest) { // the one that was waited for may have ended
			s.until(ctx, latest, fewer)
		}
		sel := workflow.NewSelector(ctx)
		if s.timer != nil {
			sel.AddFuture(s.timer, func(f workflow.Future) {
				err = f.Get(ctx, nil)
				s.timer, s.woken = nil, true
			})
		}
		sel.AddReceive(changed, func(c workflow.ReceiveChannel, _ bool) {
			var sequence int64
			c.Receive(ctx, &sequence)
			s.woken = s.woken || sequence == 0 || sequence > s.at.Sequence
		})
		sel.AddReceive(s.done, func(c workflow.ReceiveChannel, _ bool) {
			var e ending
			c.Receive(ctx, &e)
			s.hasEnded(e, fewer)
			for c.ReceiveAsync(&e) { // answers that came together need one advance
				s.hasEnded(e, fewer)
			}
		})
		sel.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) { err = ctx.Err(); s.woken = true })
		sel.AddReceive(s.ruled, func(c workflow.ReceiveChannel, _ bool) {
			c.Receive(ctx, nil)
			s.woken = true
		})
		sel.Select(ctx)
	}
	return err
}
