package server

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/dialai/dialai/api"
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
