package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"net/http"
	"slices"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/driver"
	"github.com/dialai/dialai/explain"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/guardlog"
	"github.com/dialai/dialai/internal/packs"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/server/internal/params"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// What is read of the past: why a round went so, what was decided, how models were asked, what
// the guards saw. Whatever is withheld from anybody in a round is left out, as in the events,
// but for one human who has looked at it on the record, and for nobody else whose key has more
// than one: as one of them they would see what another is to decide without sight of it.

func (s *Server) registerHistory() {
	const one, of = "/v1/sessions/{id}", "/v1/machines/{machine}"
	add(s, operation{id: "get-guard-log", method: http.MethodGet, path: one + "/log", summary: "The events of a session as guards saw them: what dialai analyze and replay read", needs: mayPayload}, s.guardLog)
	add(s, operation{id: "explain-round", method: http.MethodGet, path: one + "/explain", summary: "Why a round was decided as it was, and what would have changed it", needs: mayPayload}, s.explain)
	add(s, operation{id: "list-session-decisions", method: http.MethodGet, path: one + "/decisions", summary: "What was executed in a session, on what, the oldest first", needs: mayRead}, s.sessionDecisions)
	add(s, operation{id: "list-model-calls", method: http.MethodGet, path: one + "/audit", summary: "How models were asked in a session, the oldest first", needs: mayPayload}, s.modelCalls)
	add(s, operation{id: "list-agent-events", method: http.MethodGet, path: one + "/agent-log", summary: "What agents did about a session, the oldest first", needs: mayPayload}, s.agentLog)
	add(s, operation{id: "get-driver", method: http.MethodGet, path: one + "/driver", summary: "How it goes with carrying a session on", needs: mayRead}, s.driven)
	add(s, operation{id: "list-machine-events", method: http.MethodGet, path: of + "/log", summary: "What happened to the specialists of a machine, the oldest first", needs: mayRead}, s.machineLog)
	add(s, operation{id: "list-decisions", method: http.MethodGet, path: of + "/decisions", summary: "What was executed in all sessions of a machine, on what, the newest first", needs: mayRead}, s.decisions)
	add(s, operation{id: "list-exemplars", method: http.MethodGet, path: of + "/exemplars", summary: "Decisions of humans that are kept as examples: the newest 1000, the oldest of them first", needs: mayPayload}, s.exemplars)
}

type guardLogIn struct {
	params.Session
	params.Page
	Human   string `query:"human" doc:"the human as whom it is looked at"`
	Format  string `query:"format" enum:"guard" doc:"guard, the only one"`
	From    int64  `query:"from" minimum:"0" doc:"the number of the first event"`
	Payload string `query:"payload" enum:"redacted,full,digest" default:"redacted" doc:"what is told of texts"`
}

type guardLogOut struct{ Body api.List[guard.LogRecord] }

// errEnough ends what is read once a page is full.
var errEnough = errors.New("the page is full")

func (s *Server) guardLog(ctx context.Context, p *Principal, in *guardLogIn) (*guardLogOut, error) {
	at, err := s.session(ctx, p, in.ID, mayPayload)
	if err != nil {
		return nil, err
	}
	hidden, err := s.withheldFrom(ctx, p, at, in.Human)
	if err != nil {
		return nil, err
	}
	// Records are told apart by how many came before, as long as the same rounds are withheld.
	rounds := slices.Sorted(maps.Keys(hidden))
	l, err := listing(fmt.Sprint("guard log ", at.ID, in.From, in.Payload, rounds), p, &in.Page, false)
	if err != nil {
		return nil, err
	}
	out, n := &guardLogOut{api.List[guard.LogRecord]{Items: []guard.LogRecord{}}}, int64(0)
	w := guardlog.New(at, guardlog.Options{From: in.From, Payload: in.Payload, Hidden: hidden}, func(rec *guard.LogRecord) error {
		if n++; n <= l.After {
			return nil
		}
		if len(out.Body.Items) == l.Limit {
			out.Body.NextCursor = l.cursor(n - 1)
			return errEnough
		}
		out.Body.Items = append(out.Body.Items, *rec)
		return nil
	})
	if err := w.Fold(tenantOf(ctx).Runner.Store().Records(ctx, at.ID, 1), math.MaxInt64); err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	return out, nil
}

type machineLogIn struct {
	params.Machine
	params.Page
	params.Texts
	From int64 `query:"from" minimum:"0" doc:"the number of the first event"`
}

type machineLogOut struct{ Body eventsBody }

func (s *Server) machineLog(ctx context.Context, p *Principal, in *machineLogIn) (*machineLogOut, error) {
	if err := mayOf(p, mayRead, in.Name); err != nil {
		return nil, err
	}
	bare := in.Payload == "none" || !p.may(mayPayload, in.Name)
	if bare && in.Payload != "" && in.Payload != "none" {
		return nil, mayNot(p, mayPayload, in.Name)
	}
	if _, err := s.roster(ctx, p, in.Name); err != nil {
		return nil, err
	}
	l, err := listing(fmt.Sprint("log of machine ", in.Name, "\n", in.From, in.Payload), p, &in.Page, false)
	if err != nil {
		return nil, err
	}
	from, view := max(in.From, l.After+1), api.LogView{Redacted: in.Payload != "full"}
	page, err := l.events(from, view.RosterEvents(in.Name, tenantOf(ctx).Runner.Store().RosterRecords(ctx, in.Name, from)))
	for i := range page.Items {
		if bare {
			page.Items[i].Data = json.RawMessage("{}")
		}
	}
	return &machineLogOut{page}, err
}

type explainIn struct {
	params.Session
	Round string `query:"round" doc:"its number, a number and an attempt such as 3.1, or its id; without it the last that was judged" maxLength:"100"`
	Human string `query:"human" doc:"the human as whom it is looked at"`
}

type explainOut struct{ Body *explain.Explanation }

func (s *Server) explain(ctx context.Context, p *Principal, in *explainIn) (*explainOut, error) {
	at, err := s.session(ctx, p, in.ID, mayPayload)
	if err != nil {
		return nil, err
	}
	hidden, err := s.withheldFrom(ctx, p, at, in.Human)
	if err != nil {
		return nil, err
	}
	why, err := explain.Round(ctx, tenantOf(ctx).Runner, at.ID, in.Round)
	if err != nil {
		return nil, err
	}
	if why.Withheld {
		why.Withheld = hidden[why.Round] != ""
	}
	if why.Withheld && why.Executed == "" {
		return nil, forbidden("withheld", "POST /v1/inbox/{question}/reveal looks all the same, on the record", "a human is to look at this round without having seen what was proposed")
	}
	if why.Withheld {
		why.Conceal()
	}
	return &explainOut{why}, nil
}

// withheldIDs returns the ids of the closed rounds of a session that wait for a review, and of
// the exemplars that they have made.
func (s *Server) withheldIDs(ctx context.Context, at *session.Session) (map[string]bool, error) {
	hidden, err := tenantOf(ctx).Runner.WithheldRounds(ctx, at, "")
	ids := map[string]bool{}
	for _, v := range at.Reviews() {
		if hidden[v.Key.Round] != "" {
			ids[v.Key.ID()], ids[v.Key.ExemplarID()] = true, true
		}
	}
	return ids, err
}

type decisionsOut struct{ Body api.List[api.Decision] }

type sessionPage struct {
	params.Session
	params.Page
}

func (s *Server) sessionDecisions(ctx context.Context, p *Principal, in *sessionPage) (*decisionsOut, error) {
	at, err := s.session(ctx, p, in.ID, mayRead)
	if err != nil {
		return nil, err
	}
	all, hidden, err := s.decided(ctx, at.ID)
	if err != nil {
		return nil, err
	}
	shown := []api.Decision{}
	for _, seq := range slices.Sorted(maps.Keys(all)) {
		shown = append(shown, api.DecisionOf(*all[seq], hidden[all[seq].RoundID], p.may(mayPayload, at.Machine().Name())))
	}
	page, err := pageOf("decisions of "+at.ID.String(), p, &in.Page, shown, func(d api.Decision) string { return d.DecisionID })
	return &decisionsOut{page}, err
}

// decided returns the decisions of a session, and the ids of those that are withheld.
func (s *Server) decided(ctx context.Context, id specialist.SessionID) (map[int64]*session.DecisionRecord, map[string]bool, error) {
	at, err := tenantOf(ctx).Runner.Session(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	hidden, err := s.withheldIDs(ctx, at)
	if err != nil {
		return nil, nil, err
	}
	all, err := tenantOf(ctx).Runner.SessionDecisions(ctx, id)
	return all, hidden, err
}

type decisionsIn struct {
	params.Machine
	params.Page
	State string `query:"state" doc:"only those in this state"`
}

func (s *Server) decisions(ctx context.Context, p *Principal, in *decisionsIn) (*decisionsOut, error) {
	if err := s.known(ctx, p, in.Name); err != nil {
		return nil, err
	}
	refs, err := pageEach("decisions of "+in.Name+"\n"+in.State, p, &in.Page, tenantOf(ctx).Runner.Store().Decided(ctx, in.Name),
		func(r session.DecisionRef) string { return fmt.Sprint(r.Session, r.Seq) })
	if err != nil {
		return nil, err
	}
	type decided struct {
		all    map[int64]*session.DecisionRecord
		hidden map[string]bool
	}
	known := map[specialist.SessionID]decided{}
	out := &decisionsOut{api.List[api.Decision]{Items: []api.Decision{}, NextCursor: refs.NextCursor}}
	for _, ref := range refs.Items {
		of, is := known[ref.Session]
		if !is {
			if of.all, of.hidden, err = s.decided(ctx, ref.Session); err != nil {
				return nil, err
			}
			known[ref.Session] = of
		}
		if d := of.all[ref.Seq]; d != nil && (in.State == "" || d.FromState == in.State) {
			out.Body.Items = append(out.Body.Items, api.DecisionOf(*d, of.hidden[d.RoundID], p.may(mayPayload, in.Name)))
		}
	}
	return out, nil
}

type exemplarsOut struct{ Body api.List[api.Exemplar] }

func (s *Server) exemplars(ctx context.Context, p *Principal, in *decisionsIn) (*exemplarsOut, error) {
	if err := s.known(ctx, p, in.Name); err != nil {
		return nil, err
	}
	if !p.may(mayPayload, in.Name) {
		return nil, mayNot(p, mayPayload, in.Name)
	}
	all, err := tenantOf(ctx).Runner.Store().Exemplars(ctx, in.Name, machine.StateName(in.State), session.MaxExemplars)
	if err != nil {
		return nil, err
	}
	page, err := pageOf("exemplars of "+in.Name+"\n"+in.State, p, &in.Page, all, func(e specialist.Exemplar) string { return e.ExemplarID })
	if err != nil {
		return nil, err
	}
	out := &exemplarsOut{api.List[api.Exemplar]{Items: []api.Exemplar{}, NextCursor: page.NextCursor}}
	for _, e := range page.Items {
		withheld, err := s.withheldExemplar(ctx, &e)
		if err != nil {
			return nil, err
		}
		out.Body.Items = append(out.Body.Items, api.ExemplarOf(e, withheld))
	}
	return out, nil
}

// withheldExemplar reports whether the round of an exemplar waits for a review.
func (s *Server) withheldExemplar(ctx context.Context, e *specialist.Exemplar) (bool, error) {
	id, err := session.ParseID(e.SessionID)
	if err != nil {
		return true, nil // of whose round nothing is known
	}
	at, err := tenantOf(ctx).Runner.Session(ctx, id)
	if err != nil {
		return true, err
	}
	hidden, err := s.withheldIDs(ctx, at)
	return hidden[e.ExemplarID], err
}

// withheldFrom returns the rounds of a session of which something is kept from the caller, who
// looks as a human that they name.
func (s *Server) withheldFrom(ctx context.Context, p *Principal, at *session.Session, named string) (map[int32]string, error) {
	viewer, err := p.viewer(at.Machine().Name(), named)
	if err != nil {
		return nil, err
	}
	if len(p.humans(at.Machine().Name())) > 1 {
		viewer = ""
	}
	return tenantOf(ctx).Runner.WithheldRounds(ctx, at, viewer)
}

type modelCallsIn struct {
	params.Session
	params.Page
	Human string `query:"human" doc:"the human as whom it is looked at"`
}

type modelCallsOut struct{ Body api.List[api.ModelCall] }

func (s *Server) modelCalls(ctx context.Context, p *Principal, in *modelCallsIn) (*modelCallsOut, error) {
	at, err := s.session(ctx, p, in.ID, mayPayload)
	if err != nil {
		return nil, err
	}
	hidden, err := s.withheldFrom(ctx, p, at, in.Human)
	if err != nil {
		return nil, err
	}
	var shown iter.Seq2[api.ModelCall, error] = func(yield func(api.ModelCall, error) bool) {
		for e, err := range tenantOf(ctx).Runner.Store().Audit(ctx, at.ID) {
			if !yield(api.ModelCallOf(e, hidden[cmp.Or(e.Round, at.Round)] != ""), err) {
				return
			}
		}
	}
	page, err := pageEach("model calls of "+at.ID.String(), p, &in.Page, shown, func(c api.ModelCall) string { return c.AuditEntryID })
	return &modelCallsOut{page}, err
}

type agentLogIn struct {
	params.Session
	params.Page
	Human   string `query:"human" doc:"the human as whom it is looked at"`
	Payload string `query:"payload" enum:"redacted,full" default:"redacted" doc:"what is told of texts"`
	From    int64  `query:"from" minimum:"0" doc:"the number of the first event"`
	Kind    string `query:"kind" maxLength:"64" doc:"only events of this kind, such as permission, each with the session in which that was decided"`
}

type agentLogOut struct{ Body eventsBody }

func (s *Server) agentLog(ctx context.Context, p *Principal, in *agentLogIn) (*agentLogOut, error) {
	at, err := s.session(ctx, p, in.ID, mayPayload)
	if err != nil {
		return nil, err
	}
	hidden, err := s.withheldFrom(ctx, p, at, in.Human)
	if err != nil {
		return nil, err
	}
	l, err := listing(fmt.Sprint("agent log ", at.ID, in.From, in.Payload, in.Kind), p, &in.Page, false)
	if err != nil {
		return nil, err
	}
	from, view := max(in.From, l.After+1), api.LogView{Redacted: in.Payload != "full", Hidden: hidden}
	entries := ofKind(tenantOf(ctx).Runner.Store().AgentLog(ctx, at.ID, from-1), in.Kind)
	page, err := l.events(from, view.AgentEvents(at.ID.String(), entries))
	return &agentLogOut{page}, err
}

// ofKind leaves out what is not of a kind; "" has all.
func ofKind(entries iter.Seq2[session.AgentEvent, error], kind string) iter.Seq2[session.AgentEvent, error] {
	return func(yield func(session.AgentEvent, error) bool) {
		for e, err := range entries {
			if (err != nil || kind == "" || e.Kind == kind) && !yield(e, err) {
				return
			}
		}
	}
}

type drivenOut struct{ Body api.Driven }

func (s *Server) driven(ctx context.Context, p *Principal, in *params.Session) (*drivenOut, error) {
	at, err := s.session(ctx, p, in.ID, mayRead)
	if err != nil {
		return nil, err
	}
	out := &drivenOut{api.Driven{Mode: "off"}}
	switch {
	case at.Options().Driver != session.DriverPool:
		out.Body.Mode = at.Options().Driver.String()
		return out, nil
	case s.config.Driver == nil:
		return out, nil
	}
	if out.Body.Mode = s.config.Driver.Status().Mode; !s.config.Driver.Drives(tenantOf(ctx).Name) {
		out.Body.Mode = driver.Standby
	}
	var a driver.Attempt
	if a, out.Body.Known = s.config.Driver.Attempt(tenantOf(ctx).Name, at.ID); a.Next != 0 {
		out.Body.NextAttempt = &a.Next
	}
	if out.Body.Tries = a.Tries; p.may(mayPayload, at.Machine().Name()) {
		out.Body.LastError = packs.Redact(a.Error)
	}
	return out, nil
}
