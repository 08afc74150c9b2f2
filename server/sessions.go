package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/server/internal/params"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

func (s *Server) registerSessions() {
	const one = "/v1/sessions/{id}"
	add(s, operation{id: "start-session", method: http.MethodPost, path: "/v1/sessions", summary: "Start a session", needs: mayStart, status: 201, errors: []int{409, 422, 429}}, s.start)
	add(s, operation{id: "list-sessions", method: http.MethodGet, path: "/v1/sessions", summary: "List sessions, the newest first", needs: mayRead}, s.list)
	add(s, operation{id: "get-session", method: http.MethodGet, path: one, summary: "A session, with its question if one is open", needs: mayRead, also: map[int]string{304: "It has not changed"}}, s.get)
	add(s, operation{id: "await-session", method: http.MethodGet, path: one + "/settled", summary: "Wait until nothing of a session goes on by itself", needs: mayRead}, s.await)
	add(s, operation{id: "step-session", method: http.MethodPost, path: one + "/step", summary: "Carry a session one step further", needs: mayDrive, errors: []int{409}}, s.step)
	add(s, operation{id: "run-session", method: http.MethodPost, path: one + "/run", summary: "Run a session until it ends, needs a human, or waits", needs: mayDrive, errors: []int{409}}, s.run)
	add(s, operation{id: "propose", method: http.MethodPost, path: one + "/proposals", summary: "Hand in a proposal for a specialist", needs: mayPropose, status: 201, errors: []int{409, 422, 428}}, s.propose)
	add(s, operation{id: "evaluate", method: http.MethodPost, path: one + "/evaluation", summary: "Say what the arbiter would decide now; nothing changes", needs: mayDrive, errors: []int{409, 422}}, s.evaluate)
	add(s, operation{id: "arbitrate", method: http.MethodPost, path: one + "/arbitration", summary: "Have the arbiter decide the present round", needs: mayDrive, errors: []int{409, 422}}, s.arbitrate)
	add(s, operation{id: "resume-session", method: http.MethodPost, path: one + "/resume", summary: "Take a session up again", needs: mayDrive, errors: []int{409, 422}}, s.resume)
	add(s, operation{id: "raise-limits", method: http.MethodPost, path: one + "/raise", summary: "Lift limits of the guards for a session, and take it up again", needs: mayRule, errors: []int{409, 422}}, s.raise)
	add(s, operation{id: "cancel-session", method: http.MethodPost, path: one + "/cancel", summary: "Stop a session that is not to go on", needs: mayDrive, errors: []int{409}}, s.cancel)
	add(s, operation{id: "fork-session", method: http.MethodPost, path: one + "/fork", summary: "Make a session that goes on from where this one stood", needs: mayDrive, status: 201, errors: []int{409, 422, 429}}, s.fork)
	add(s, operation{id: "move-session", method: http.MethodPost, path: one + "/move", summary: "Move a session to another definition", needs: mayDrive, errors: []int{409, 422}}, s.move)
	add(s, operation{id: "retract-ruling", method: http.MethodPost, path: one + "/retractions", summary: "Say that an executed ruling of one's own was a mistake", needs: mayRule, errors: []int{409, 422}}, s.retract)
	s.registerEvents(one + "/events")
}

type startIn struct {
	params.Wait
	Body api.Start
}

type sessionOut = sessionAnswer[api.Settled]

func (s *Server) start(ctx context.Context, p *Principal, in *startIn) (*sessionOut, error) {
	m, err := s.definition(ctx, p, &in.Body)
	if err != nil {
		return nil, err
	}
	o := runner.StartOptions{Meta: in.Body.MetaJSON, Mode: machine.Mode(in.Body.Mode), Defaults: in.Body.Defaults, Actor: p.actor(m.Name())}
	if in.Body.Drive != nil && !*in.Body.Drive {
		o.Driver = session.DriverNone
	}
	o.Arbitrated = o.Driver != session.DriverNone && !p.byTool // DIAL's clients register the arbiter afterwards
	if in.Body.Seed != "" {
		if o.Seed, err = strconv.ParseUint(in.Body.Seed, 10, 64); err != nil {
			return nil, badSeed(in.Body.Seed)
		}
	}
	if h := in.Body.Human; h != "" {
		if _, err := p.viewer(m.Name(), h); err != nil {
			return nil, err
		}
		o.Actor.Humans = []string{h}
	}
	for _, id := range in.Body.AllowMissing {
		o.AllowMissing = append(o.AllowMissing, machine.SpecialistID(id))
	}
	if key := receiptOf(ctx); key != nil {
		o.ID = key.ID() // so that the request starts one session
	}
	at, err := tenantOf(ctx).Runner.Start(ctx, m, o)
	if o.ID != (specialist.SessionID{}) && errors.Is(err, session.ErrExists) {
		at, err = s.started(ctx, m, o)
	}
	if err != nil {
		return nil, err
	}
	at, settled, err := s.answer(ctx, p, at, in.For)
	if err != nil {
		return nil, err
	}
	return &sessionOut{Status: http.StatusCreated, ETag: etag(at), Location: "/v1/sessions/" + at.ID.String(), Body: settled}, nil
}

// started returns the session that the same request has started before, of which nobody
// kept the answer.
func (s *Server) started(ctx context.Context, m *machine.Machine, o runner.StartOptions) (*session.Session, error) {
	at, err := tenantOf(ctx).Runner.Session(ctx, o.ID)
	if err == nil && (at.Machine().Digest() != m.Digest() && len(at.History()) == 0) {
		err = keyReused("this Idempotency-Key has started a session of another definition")
	}
	return at, err
}

// definition returns the machine that a session is to be started of.
func (s *Server) definition(ctx context.Context, p *Principal, in *api.Start) (*machine.Machine, error) {
	var m *machine.Machine
	switch {
	case (in.MachineName == "") == (len(in.Machine) == 0):
		return nil, bad("bad_request", "the request needs machineName, or a definition as machine: one of them")
	case in.MachineName != "":
		if !p.may(mayRead, in.MachineName) {
			return nil, noMachine(in.MachineName)
		}
		v, err := s.of(ctx, p, in.MachineName, in.MachineDigest)
		if err != nil {
			return nil, err
		}
		if m, err = s.parse(v.Definition); err != nil {
			return nil, err
		}
	default:
		var err error
		if m, err = s.parse(in.Machine); err != nil {
			return nil, err
		}
	}
	switch {
	case !p.may(mayStart, m.Name()):
		return nil, mayNot(p, mayStart, m.Name())
	case in.MachineDigest != "" && in.MachineDigest != m.Digest():
		return nil, &api.Error{Status: http.StatusConflict, Code: "stale_machine", Detail: "the definition has another digest: " + m.Digest(), ExitCode: 1}
	}
	return m, nil
}

type listIn struct {
	ID           string `query:"id" doc:"only those whose id begins like this" maxLength:"36"`
	Machine      string `query:"machine"`
	Status       string `query:"status" doc:"running, needs_human, completed, stopped, failed; several with commas between"`
	State        string `query:"state"`
	Code         string `query:"code"`
	Subject      string `query:"subject" doc:"only those whose subject begins like this"`
	Decider      string `query:"decider" doc:"only those in whose state this human may rule"`
	Overdue      bool   `query:"overdue"`
	Awake        bool   `query:"awake" doc:"without those that wait for a timer which has not come"`
	Reviews      bool   `query:"reviews" doc:"only those with closed rounds that a human is to look at"`
	StartedBy    string `query:"startedBy" doc:"only those that this subject has started" maxLength:"300"`
	CreatedAfter string `query:"createdAfter" doc:"a time such as 2026-01-31T12:00:00Z"`
	UpdatedAfter string `query:"updatedAfter" doc:"a time such as 2026-01-31T12:00:00Z"`
	Order        string `query:"order" enum:"asc,desc" doc:"by creation; desc without it"`
	Limit        int    `query:"limit" minimum:"1" maximum:"200" doc:"50 without it"`
	Cursor       string `query:"cursor"`
}

type listOut struct {
	Body api.List[api.Summary]
}

func (s *Server) list(ctx context.Context, p *Principal, in *listIn) (*listOut, error) {
	q := session.ListQuery{ID: in.ID, MachineName: in.Machine, State: in.State, Code: in.Code, Subject: in.Subject, Decider: machine.SpecialistID(in.Decider),
		StartedBy: in.StartedBy, After: session.Cursor(in.Cursor), Limit: parseLimit(in.Limit), Desc: in.Order != "asc"}
	var err error
	if q.Statuses, err = statusesOf(in.Status); err != nil {
		return nil, err
	}
	if q.CreatedAfter, err = momentOf("createdAfter", in.CreatedAfter); err != nil {
		return nil, err
	}
	if q.UpdatedAfter, err = momentOf("updatedAfter", in.UpdatedAfter); err != nil {
		return nil, err
	}
	if in.Overdue {
		q.Overdue = s.now()
	}
	if q.Reviews = in.Reviews; in.Awake {
		q.Awake = s.now()
	}
	page, err := tenantOf(ctx).Runner.Sessions(ctx, q)
	if err != nil {
		return nil, err
	}
	out := &listOut{api.List[api.Summary]{Items: []api.Summary{}, NextCursor: string(q.Next(page))}}
	for i := range page {
		if !p.may(mayRead, page[i].MachineName) {
			continue
		}
		if err := s.conceal(ctx, p, &page[i]); err != nil {
			return nil, err
		}
		out.Body.Items = append(out.Body.Items, page[i])
	}
	return out, nil
}

// conceal takes out of a summary what would tell what is withheld in a session, or might in
// one that cannot be read.
func (s *Server) conceal(ctx context.Context, p *Principal, sum *session.Summary) error {
	if !p.may(mayPayload, sum.MachineName) {
		sum.Subject, sum.Reason = "", ""
	}
	if sum.Status == session.Completed || !session.MayTell(sum.Code) {
		return nil
	}
	at, err := tenantOf(ctx).Runner.Session(ctx, sum.SessionID)
	if err != nil {
		sum.Code, sum.Reason = "", ""
		return nil
	}
	o := at.OutcomeFor("")
	sum.Code = o.Code
	if sum.Reason != "" {
		sum.Reason = o.Reason
	}
	return nil
}

type getIn struct {
	params.Session
	Human       string `query:"human" doc:"the human as whom it is looked at"`
	IfNoneMatch string `header:"If-None-Match"`
}

type getOut struct {
	Status       int
	ETag         string `header:"ETag"`
	CacheControl string `header:"Cache-Control"`
	Vary         string `header:"Vary"`
	Body         *api.Session
}

func (s *Server) get(ctx context.Context, p *Principal, in *getIn) (*getOut, error) {
	at, err := s.session(ctx, p, in.ID, mayRead)
	if err != nil {
		return nil, err
	}
	out := &getOut{Status: http.StatusOK, ETag: etag(at), CacheControl: "private, no-cache", Vary: "Authorization, Cookie"}
	if in.IfNoneMatch == out.ETag {
		out.Status = http.StatusNotModified
		return out, nil
	}
	shown, err := s.shown(ctx, p, at, in.Human)
	out.Body = &shown
	return out, err
}

type awaitIn struct {
	params.Session
	params.Wait
	Human string `query:"human" doc:"the human as whom it is looked at"`
}

func (s *Server) await(ctx context.Context, p *Principal, in *awaitIn) (*sessionOut, error) {
	at, err := s.session(ctx, p, in.ID, mayRead)
	if err != nil {
		return nil, err
	}
	at, settled, err := s.settled(ctx, at, in.For)
	if err != nil {
		return nil, err
	}
	shown, err := s.shown(ctx, p, at, in.Human)
	return &sessionOut{Status: http.StatusOK, ETag: etag(at), Body: api.Settled{Session: shown, Settled: settled}}, err
}

type stepIn struct {
	params.Session
	params.Wait
	params.Precondition
}

type stepOut = sessionAnswer[api.Stepped]

func (s *Server) step(ctx context.Context, p *Principal, in *stepIn) (*stepOut, error) {
	at, err := s.session(ctx, p, in.ID, mayDrive)
	if err != nil {
		return nil, err
	}
	if err := seen(at, in.IfMatch); err != nil {
		return nil, err
	}
	tick, err := tenantOf(ctx).Runner.StepOn(ctx, at.ID)
	if err != nil && tick.Transition == nil { // else a step before the one that failed is told, with why
		return nil, err
	}
	view := runner.TickResult{Tick: tick, Err: err}.View()
	at, settled, err := s.answer(ctx, p, tick.Session, in.For)
	if err != nil {
		return nil, err
	}
	return &stepOut{Status: http.StatusOK, ETag: etag(at), Body: api.Stepped{Tick: view, Settled: settled}}, nil
}

type runIn struct {
	params.Session
	params.Precondition
	Body *struct {
		MaxSteps int `json:"maxSteps,omitempty" minimum:"0" doc:"transitions; 1000 without it"`
	}
}

type runOut = sessionAnswer[api.Ran]

func (s *Server) run(ctx context.Context, p *Principal, in *runIn) (*runOut, error) {
	at, err := s.session(ctx, p, in.ID, mayDrive)
	if err != nil {
		return nil, err
	}
	if err := seen(at, in.IfMatch); err != nil {
		return nil, err
	}
	var o runner.RunOptions
	if in.Body != nil {
		o.MaxSteps = in.Body.MaxSteps
	}
	r, err := tenantOf(ctx).Runner.Run(ctx, at.ID, o)
	if err != nil {
		return nil, err
	}
	at, settled, err := s.answer(ctx, p, r.Session, "")
	if err != nil {
		return nil, err
	}
	return &runOut{Status: http.StatusOK, ETag: etag(at), Body: api.Ran{Result: api.ResultFor(r), Settled: settled}}, nil
}

type proposeIn struct {
	params.Session
	params.Wait
	params.Precondition
	Body api.Proposal
}

type proposeOut = sessionAnswer[api.Proposed]

func (s *Server) propose(ctx context.Context, p *Principal, in *proposeIn) (*proposeOut, error) {
	at, err := s.session(ctx, p, in.ID, mayPropose)
	if err != nil {
		return nil, err
	}
	b, name := &in.Body, at.Machine().Name()
	who, err := specialistOf(p, name, b.SpecialistID)
	if err != nil {
		return nil, err
	}
	humans, _, err := tenantOf(ctx).Runner.Humans(ctx, at)
	if err != nil {
		return nil, err
	}
	for _, id := range humans {
		if id == string(who) && b.TransitionName != "" && (b.RoundID == "" || b.QuestionDigest == "") {
			return nil, needsQuestion("a human's proposal")
		}
	}
	if b.RoundID == "" {
		b.RoundID = at.Key().ID()
	}
	proposal, after, err := tenantOf(ctx).Runner.Propose(ctx, runner.Submission{
		SessionID: at.ID, SpecialistID: who, RoundID: b.RoundID, QuestionDigest: b.QuestionDigest, TransitionName: b.TransitionName, ToState: b.ToState,
		Reasoning: b.Reasoning, MetaJSON: b.MetaJSON, Usage: b.Usage(), Model: b.Model, ToolCalls: b.ToolCalls, Actor: p.actor(name), If: holds(in.IfMatch),
	})
	if err != nil {
		return nil, err
	}
	text := json.RawMessage(specialist.AppendProposal(nil, after.Key(), proposal))
	after, settled, err := s.answer(ctx, p, after, in.For)
	if err != nil {
		return nil, err
	}
	return &proposeOut{Status: http.StatusCreated, ETag: etag(after), Body: api.Proposed{Proposal: text, Settled: settled}}, nil
}

// needsQuestion refuses a human's word that does not say what it is about.
func needsQuestion(what string) *api.Error {
	return &api.Error{Status: http.StatusPreconditionRequired, Code: "precondition_required", ExitCode: 1,
		Detail: what + " needs roundId and questionDigest, as they were seen", Hint: "the question has them, as roundId and digest: GET /v1/inbox, or the session"}
}

type evaluateOut struct{ Body runner.Consensus }

func (s *Server) evaluate(ctx context.Context, p *Principal, in *params.Session) (*evaluateOut, error) {
	at, err := s.session(ctx, p, in.ID, mayDrive)
	if err != nil {
		return nil, err
	}
	if at.Withheld("") != "" {
		return nil, forbidden("withheld", "it is shown once a human has ruled", "what was proposed in this round is withheld, and with it what would be decided")
	}
	c, err := tenantOf(ctx).Runner.Evaluate(ctx, at.ID)
	return &evaluateOut{c}, err
}

type arbitrateIn struct {
	params.Session
	params.Wait
	params.Precondition
	Body *api.Arbitrating
}

type ruledOut = sessionAnswer[api.Ruled]

func (s *Server) arbitrate(ctx context.Context, p *Principal, in *arbitrateIn) (*ruledOut, error) {
	at, err := s.session(ctx, p, in.ID, mayDrive)
	if err != nil {
		return nil, err
	}
	r := runner.Ruling{SessionID: at.ID, RoundID: at.Key().ID(), Actor: p.actor(at.Machine().Name()), If: holds(in.IfMatch)}
	if in.Body != nil && in.Body.RoundID != "" {
		r.RoundID = in.Body.RoundID
	}
	a, err := tenantOf(ctx).Runner.Decide(ctx, r)
	if a.Session != nil && !a.Executed && a.Session.Withheld("") != "" {
		if err != nil && s.problem(ctx, err).Code == "set_failed" { // it names the winner
			return nil, forbidden("withheld", "it is shown once a human has ruled", "what was proposed in this round is withheld, and what the arbiter has made of it could not be executed")
		}
		// Whoever is to rule without sight of the proposals would see the arbiter's in this.
		a = runner.Arbitration{ArbitrationID: a.ArbitrationID, SessionID: a.SessionID, RoundID: a.RoundID, Stale: a.Stale, Session: a.Session}
	}
	return s.ruled(ctx, p, a, err, in.For)
}

type resumeIn struct {
	params.Session
	params.Wait
	params.Precondition
	Body *api.Resuming
}

func (s *Server) resume(ctx context.Context, p *Principal, in *resumeIn) (*sessionOut, error) {
	at, err := s.session(ctx, p, in.ID, mayDrive)
	if err != nil {
		return nil, err
	}
	b := api.Resuming{}
	if in.Body != nil {
		b = *in.Body
	}
	if _, err := p.viewer(at.Machine().Name(), b.SpecialistID); err != nil {
		return nil, err
	}
	after, err := tenantOf(ctx).Runner.Resume(ctx, at.ID, runner.ResumeOptions{
		Actor: p.actor(at.Machine().Name()), SpecialistID: machine.SpecialistID(b.SpecialistID), Note: b.Note, RetryFailed: b.RetryFailed, KeepFailed: b.KeepFailed, Clear: b.Clear, If: holds(in.IfMatch),
	})
	return s.changed(ctx, p, after, err, in.For)
}

type raiseIn struct {
	params.Session
	params.Wait
	params.Precondition
	Body api.Raising
}

func (s *Server) raise(ctx context.Context, p *Principal, in *raiseIn) (*sessionOut, error) {
	at, err := s.session(ctx, p, in.ID, mayRule)
	if err != nil {
		return nil, err
	}
	who, err := s.human(ctx, p, at, in.Body.SpecialistID)
	if err != nil {
		return nil, err
	}
	o := runner.ResumeOptions{Actor: p.actor(at.Machine().Name()), SpecialistID: who, Note: in.Body.Note, If: holds(in.IfMatch)}
	for _, r := range in.Body.Raise {
		o.Raise = append(o.Raise, guard.Raise{Limit: r.Limit, To: r.To})
	}
	after, err := tenantOf(ctx).Runner.Resume(ctx, at.ID, o)
	return s.changed(ctx, p, after, err, in.For)
}

// changed is the answer to what has changed a session.
func (s *Server) changed(ctx context.Context, p *Principal, after *session.Session, err error, wait string) (*sessionOut, error) {
	if err != nil {
		return nil, err
	}
	after, settled, err := s.answer(ctx, p, after, wait)
	if err != nil {
		return nil, err
	}
	return &sessionOut{Status: http.StatusOK, ETag: etag(after), Body: settled}, nil
}

type noteIn struct {
	params.Session
	params.Precondition
	Body api.Note
}

func (s *Server) cancel(ctx context.Context, p *Principal, in *noteIn) (*sessionOut, error) {
	at, err := s.session(ctx, p, in.ID, mayDrive)
	if err != nil {
		return nil, err
	}
	after, err := tenantOf(ctx).Runner.Stop(ctx, at.ID, runner.Stopping{Actor: *p.actor(at.Machine().Name()), Note: in.Body.Note, If: holds(in.IfMatch)})
	return s.changed(ctx, p, after, err, "")
}

type forkIn struct {
	params.Session
	params.Precondition
	Body *api.Forking
}

func (s *Server) fork(ctx context.Context, p *Principal, in *forkIn) (*sessionOut, error) {
	at, err := s.session(ctx, p, in.ID, mayDrive)
	if err != nil {
		return nil, err
	}
	if err := seen(at, in.IfMatch); err != nil {
		return nil, err
	}
	o := runner.Forking{Actor: p.actor(at.Machine().Name())}
	if in.Body == nil || !in.Body.Drive {
		o.Driver = session.DriverNone
	}
	if in.Body != nil {
		o.At = in.Body.Sequence
	}
	fork, err := tenantOf(ctx).Runner.Fork(ctx, at.ID, o)
	out, err := s.changed(ctx, p, fork, err, "")
	if err == nil {
		out.Status, out.Location = http.StatusCreated, "/v1/sessions/"+fork.ID.String()
	}
	return out, err
}

type moveIn struct {
	params.Session
	params.Precondition
	Body api.Moving
}

func (s *Server) move(ctx context.Context, p *Principal, in *moveIn) (*sessionOut, error) {
	at, err := s.session(ctx, p, in.ID, mayDrive)
	if err != nil {
		return nil, err
	}
	definition := in.Body.Definition
	if (len(definition) == 0) == (in.Body.MachineDigest == "") {
		return nil, bad("bad_request", "the request needs a definition, or the machineDigest of a published one: one of them")
	}
	if in.Body.MachineDigest != "" {
		v, err := s.of(ctx, p, at.Machine().Name(), in.Body.MachineDigest)
		if err != nil {
			return nil, err
		}
		definition = v.Definition
	}
	m, err := s.parse(definition)
	if err != nil {
		return nil, err
	}
	if !p.may(mayDrive, m.Name()) {
		return nil, mayNot(p, mayDrive, m.Name())
	}
	o := runner.Moving{Actor: *p.actor(at.Machine().Name()), Note: in.Body.Note, DryRun: in.Body.DryRun, If: holds(in.IfMatch), States: map[machine.StateName]machine.StateName{}}
	for from, to := range in.Body.States {
		o.States[machine.StateName(from)] = machine.StateName(to)
	}
	after, err := tenantOf(ctx).Runner.Move(ctx, at.ID, m, o)
	if err == nil && o.DryRun {
		shown, err := s.shown(ctx, p, after, "")
		return &sessionOut{Status: http.StatusOK, Body: api.Settled{Session: shown, Settled: isSettled(after)}}, err
	}
	return s.changed(ctx, p, after, err, "")
}

type retractIn struct {
	params.Session
	params.Precondition
	Body api.Retracting
}

func (s *Server) retract(ctx context.Context, p *Principal, in *retractIn) (*sessionOut, error) {
	at, err := s.session(ctx, p, in.ID, mayRule)
	if err != nil {
		return nil, err
	}
	bound := p.humans(at.Machine().Name())
	who := in.Body.SpecialistID
	if who == "" && len(bound) == 1 {
		who = bound[0]
	}
	if who == "" {
		return nil, bad("bad_request", "specialistId is missing: whose ruling was it?")
	}
	if _, err := p.viewer(at.Machine().Name(), who); err != nil {
		return nil, err
	}
	after, err := tenantOf(ctx).Runner.Retract(ctx, runner.Retracting{SessionID: at.ID, RoundID: in.Body.RoundID, SpecialistID: machine.SpecialistID(who), Note: in.Body.Note, Actor: p.actor(at.Machine().Name()), If: holds(in.IfMatch)})
	return s.changed(ctx, p, after, err, "")
}
