package server

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/internal/packs"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/server/internal/params"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Questions, and the words of humans on them. A ruling says of which round it is and which
// question was seen; both are compared inside the commit, so that nobody rules on what they
// have not seen, however long ago a form was filled in. What a state withholds stays withheld
// from whoever may rule in it, in every answer, until they rule, or look on the record.

func (s *Server) registerQuestions() {
	add(s, operation{id: "list-inbox", method: http.MethodGet, path: "/v1/inbox", summary: "The questions that wait for a human", needs: mayRead}, s.inbox)
	add(s, operation{id: "get-question", method: http.MethodGet, path: "/v1/inbox/{question}", summary: "A question that waits for a human", needs: mayRead}, s.question)
	add(s, operation{id: "reveal-question", method: http.MethodPost, path: "/v1/inbox/{question}/reveal", summary: "Look at what is withheld; it is recorded, and the ruling is not blind", needs: mayRule, errors: []int{409}}, s.reveal)
	add(s, operation{id: "decide", method: http.MethodPost, path: "/v1/sessions/{id}/decisions", summary: "Rule on the open round, on the question that was seen", needs: mayRule, errors: []int{409, 422, 428}}, s.decide)
	add(s, operation{id: "execute", method: http.MethodPost, path: "/v1/sessions/{id}/executions", summary: "Execute a transition by a human's word that teaches nothing", needs: mayRule, errors: []int{409, 422, 428}}, s.execute)
	add(s, operation{id: "withdraw-ruling", method: http.MethodDelete, path: "/v1/sessions/{id}/decisions/{round}", summary: "Take the own ruling back that waits for others", needs: mayRule, errors: []int{409, 422}}, s.withdraw)
	s.registerClaims()
	add(s, operation{id: "list-reviews", method: http.MethodGet, path: "/v1/reviews", summary: "The closed rounds that a human is to look at", needs: mayRead}, s.reviews)
	add(s, operation{id: "review", method: http.MethodPost, path: "/v1/reviews/{question}", summary: "Say what should have been decided in a closed round", needs: mayRule, errors: []int{409, 422}}, s.review)
	add(s, operation{id: "reveal-review", method: http.MethodPost, path: "/v1/reviews/{question}/reveal", summary: "Look at what was decided in a closed round; it is recorded, and the review is not blind", needs: mayRule, errors: []int{409}}, s.revealReview)
}

type inboxIn struct {
	Machine   string `query:"machine"`
	State     string `query:"state"`
	Code      string `query:"code"`
	Human     string `query:"human" doc:"the human who looks; only questions that they may rule on. me is the only one as whom the key may"`
	As        string `query:"as" doc:"the human who looks, at all questions"`
	Unclaimed bool   `query:"unclaimed" doc:"only those that nobody else is at or is to be"`
	Mine      bool   `query:"mine" doc:"only those that the caller is at or is to be, whom it speaks for included: 200 at most, without a cursor"`
	Subject   string `query:"subject" doc:"only those whose subject begins like this"`
	Since     string `query:"since" doc:"only those that began to wait after a time such as 2026-01-31T12:00:00Z"`
	Limit     int    `query:"limit" minimum:"1" maximum:"200" doc:"50 without it"`
	Cursor    string `query:"cursor"`
}

type inboxOut struct {
	Body api.Inbox
}

// mostQuarantined is how many quarantined sessions the inbox has.
const mostQuarantined = 20

// quarantined returns sessions that no process carries on any more, of the machines that the caller may read, however
// many there are of others.
func (s *Server) quarantined(ctx context.Context, p *Principal, machineName string) (list []api.Quarantined, err error) {
	work, ok := tenantOf(ctx).Runner.Store().(session.WorkStore)
	if !ok {
		return nil, nil
	}
	for after := (specialist.SessionID{}); ; {
		page, err := work.Quarantined(ctx, after, maxPage)
		if err != nil {
			return nil, err
		}
		for _, q := range page {
			if machineName != "" && q.MachineName != machineName || !p.may(mayRead, q.MachineName) {
				continue
			}
			shown := api.Quarantined{SessionID: q.Session.String(), MachineName: q.MachineName, Failures: q.Failures, Crashes: q.Crashes}
			if p.may(mayPayload, q.MachineName) {
				shown.Reason = packs.Redact(q.Reason)
			}
			if list = append(list, shown); len(list) == mostQuarantined {
				return list, nil
			}
		}
		if len(page) < maxPage {
			return list, nil
		}
		after = page[len(page)-1].Session
	}
}

func (s *Server) inbox(ctx context.Context, p *Principal, in *inboxIn) (*inboxOut, error) {
	named := in.Human
	if named == "me" {
		named = ""
	}
	viewer, err := p.viewer(in.Machine, cmp.Or(named, in.As))
	if err != nil {
		return nil, err
	}
	if in.Human == "me" && viewer == "" {
		return nil, bad("bad_request", "human is me, and the key names %s: say which", orNobody(p.humans(in.Machine)))
	}
	q := session.ListQuery{MachineName: in.Machine, State: in.State, Code: in.Code, Subject: in.Subject, After: session.Cursor(in.Cursor), Limit: parseLimit(in.Limit)}
	since, err := momentOf("since", in.Since)
	if err != nil {
		return nil, err
	}
	if in.Mine {
		return s.mine(ctx, p, in, viewer, since)
	}
	q.WaitingAfter = since
	if in.Human != "" {
		if q.Decider = viewer; in.As != "" {
			if viewer, err = p.viewer(in.Machine, in.As); err != nil {
				return nil, err
			}
		}
	}
	items, next, err := tenantOf(ctx).Runner.Inbox(ctx, q, viewer)
	if err != nil && (ctx.Err() != nil || len(items) == 0 && next == "") {
		return nil, err // otherwise sessions that cannot be read keep the others from nobody
	}
	items = slices.DeleteFunc(items, func(q runner.Question) bool {
		return !p.may(mayPayload, q.MachineName)
	})
	shown, err := s.withClaims(ctx, p, items, viewer, in.Unclaimed)
	if err != nil {
		return nil, err
	}
	out := &inboxOut{api.Inbox{List: api.List[api.Item]{Items: shown, NextCursor: string(next)}}}
	if in.Cursor == "" {
		out.Body.Quarantined, err = s.quarantined(ctx, p, in.Machine)
	}
	return out, err
}

// mine returns the questions that somebody is at or is to be. Claims are few, and lead to them.
func (s *Server) mine(ctx context.Context, p *Principal, in *inboxIn, viewer machine.SpecialistID, since specialist.Time) (*inboxOut, error) {
	humans := p.humans(in.Machine)
	if viewer != "" {
		humans = []string{string(viewer)}
	}
	claims, err := s.config.Control.ClaimsOf(ctx, p.Tenant, p.Subject, humans, s.now(), maxPage)
	if err != nil {
		return nil, err
	}
	items := []api.Item{}
	for _, c := range claims {
		at, err := s.asked(ctx, p, c.QuestionID, mayPayload)
		_, gone := errors.AsType[*session.NotFoundError](err)
		if refused, is := errors.AsType[*api.Error](err); gone || is && refused.Status == http.StatusForbidden {
			continue // it was answered, or is not theirs to see any more
		}
		if err != nil {
			return nil, err
		}
		q, err := tenantOf(ctx).Runner.Question(ctx, at, viewer)
		if err != nil {
			return nil, err
		}
		if (in.Machine == "" || q.MachineName == in.Machine) && (in.State == "" || q.State == in.State) && (in.Code == "" || q.Code == in.Code) && strings.HasPrefix(q.Subject, in.Subject) && q.Since > since {
			items = append(items, api.Item{Question: q, Claim: api.ClaimOf(c)})
		}
	}
	slices.SortStableFunc(items, func(a, b api.Item) int { return cmp.Compare(a.Since, b.Since) })
	return &inboxOut{api.Inbox{List: api.List[api.Item]{Items: items}}}, nil
}

// parts returns the session and the round of a question.
func parts(questionID string) (id, round string) {
	id, round, _ = strings.Cut(questionID, ".")
	return id, round
}

type questionIn struct {
	params.Question
	Human string `query:"human" doc:"the human who looks"`
}

type questionOut struct{ Body runner.Question }

type itemOut struct{ Body api.Item }

func (s *Server) question(ctx context.Context, p *Principal, in *questionIn) (*itemOut, error) {
	at, err := s.asked(ctx, p, in.QuestionID, mayPayload)
	if err != nil {
		return nil, err
	}
	viewer, err := p.viewer(at.Machine().Name(), in.Human)
	if err != nil {
		return nil, err
	}
	q, err := tenantOf(ctx).Runner.Question(ctx, at, viewer)
	if err != nil {
		return nil, err
	}
	shown, err := s.withClaims(ctx, p, []runner.Question{q}, viewer, false)
	if err != nil {
		return nil, err
	}
	return &itemOut{shown[0]}, nil
}

// asked returns the session of a question that is open.
func (s *Server) asked(ctx context.Context, p *Principal, questionID string, do permission) (*session.Session, error) {
	id, round := parts(questionID)
	at, err := s.session(ctx, p, id, do)
	if err != nil {
		if errors.Is(err, session.ErrNotFound) {
			err = &session.NotFoundError{What: "Question", ID: questionID}
		}
		return nil, err
	}
	if at.Key().ID() != round || !at.Status.Live() {
		return nil, &session.NotFoundError{What: "Question", ID: questionID}
	}
	return at, nil
}

type revealIn struct {
	params.Question
	params.Precondition
	Body *api.Viewer
}

func (s *Server) reveal(ctx context.Context, p *Principal, in *revealIn) (*questionOut, error) {
	at, err := s.asked(ctx, p, in.QuestionID, mayRule)
	if err != nil {
		return nil, err
	}
	if err := seen(at, in.IfMatch); err != nil {
		return nil, err
	}
	named := ""
	if in.Body != nil {
		named = in.Body.SpecialistID
	}
	who, err := s.looker(ctx, p, at, named)
	if err != nil {
		return nil, err
	}
	q, _, err := tenantOf(ctx).Runner.Reveal(ctx, at.ID, who, p.actor(at.Machine().Name()))
	return &questionOut{q}, err
}

type decideIn struct {
	params.Session
	params.Wait
	params.Precondition
	Body api.Ruling
}

func (s *Server) decide(ctx context.Context, p *Principal, in *decideIn) (*ruledOut, error) {
	return s.rule(ctx, p, in, tenantOf(ctx).Runner.Decide)
}

func (s *Server) execute(ctx context.Context, p *Principal, in *decideIn) (*ruledOut, error) {
	return s.rule(ctx, p, in, tenantOf(ctx).Runner.Execute)
}

// rule gives a human's word to the engine: who, on what, and that it was seen.
func (s *Server) rule(ctx context.Context, p *Principal, in *decideIn, give func(context.Context, runner.Ruling) (runner.Arbitration, error)) (*ruledOut, error) {
	at, err := s.session(ctx, p, in.ID, mayRule)
	if err != nil {
		return nil, err
	}
	b := &in.Body
	if b.RoundID == "" || b.QuestionDigest == "" || b.RoundID == runner.CurrentRound {
		return nil, needsQuestion("a ruling")
	}
	who, err := s.human(ctx, p, at, b.SpecialistID)
	if err != nil {
		return nil, err
	}
	q, err := tenantOf(ctx).Runner.Question(ctx, at, who)
	if err != nil {
		return nil, err
	}
	a, err := give(ctx, runner.Ruling{
		SessionID: at.ID, SpecialistID: who, RoundID: b.RoundID, QuestionDigest: b.QuestionDigest, TransitionName: b.TransitionName, ToState: b.ToState,
		Reasoning: b.Reasoning, MetaJSON: b.MetaJSON, Usage: b.Usage(), Manner: b.Recorded(), Reopen: true, Blind: q.Withheld != nil && !p.spokenThrough(), Actor: p.actor(at.Machine().Name()), If: holds(in.IfMatch),
	})
	if errors.Is(err, runner.ErrIllegal) {
		err = s.withChoices(ctx, err, &q, b.TransitionName)
	}
	return s.ruled(ctx, p, a, err, in.For)
}

// withChoices adds to the refusal of a choice what there is to choose, if that is not among it.
func (s *Server) withChoices(ctx context.Context, err error, q *runner.Question, chosen string) error {
	var names []string
	for i := range q.Transitions {
		names = append(names, q.Transitions[i].Name)
	}
	p := s.problem(ctx, err)
	if p.Hint == "" && !slices.Contains(names, chosen) {
		p.Hint = strings.TrimSuffix("the choices are "+strings.Join(names, ", ")+"; "+machine.DidYouMean(chosen, names), "; ")
	}
	return p
}

type withdrawIn struct {
	params.Session
	Round string `path:"round" doc:"the id of the round"`
	Human string `query:"human" doc:"whose ruling; without it that of the only human as whom the key may"`
}

func (s *Server) withdraw(ctx context.Context, p *Principal, in *withdrawIn) (*ruledOut, error) {
	at, err := s.session(ctx, p, in.ID, mayRule)
	if err != nil {
		return nil, err
	}
	who, err := p.viewer(at.Machine().Name(), in.Human)
	if err != nil {
		return nil, err
	}
	if who == "" {
		return nil, bad("bad_request", "human is missing: whose ruling is taken back?")
	}
	a, err := tenantOf(ctx).Runner.Decide(ctx, runner.Ruling{SessionID: at.ID, SpecialistID: who, RoundID: in.Round, Withdraw: true, Actor: p.actor(at.Machine().Name())})
	return s.ruled(ctx, p, a, err, "")
}

// ruled is the answer to a ruling. What a guard has refused is a problem, and so is what the
// engine returns as an error; what waits for another human is not.
func (s *Server) ruled(ctx context.Context, p *Principal, a runner.Arbitration, err error, wait string) (*ruledOut, error) {
	if err != nil {
		problem := s.problem(ctx, err)
		if a.Session != nil && problem.Status != http.StatusForbidden {
			problem.Sequence, problem.Arbitration = a.Session.Sequence, &a
		}
		return nil, problem
	}
	if !a.Executed && !a.Recorded && a.TransitionName != "" {
		return nil, &api.Error{Status: http.StatusConflict, Code: "guard_refused", Detail: a.GuardReason, Arbitration: &a, Reasons: []string{a.GuardReason}, ExitCode: 4}
	}
	at, settled, err := s.answer(ctx, p, a.Session, wait)
	if err != nil {
		return nil, err
	}
	out := api.Ruled{Arbitration: a, Repeated: a.Repeated, Settled: settled}
	if !a.Executed {
		out.Code = at.OutcomeFor("").Code
	}
	return &ruledOut{Status: http.StatusOK, ETag: etag(at), Body: out}, nil
}

type reviewsIn struct {
	Machine string `query:"machine"`
	Session string `query:"session" doc:"only those of the session of this id" maxLength:"100"`
	Human   string `query:"human" doc:"the human who looks"`
	Limit   int    `query:"limit" minimum:"1" maximum:"200" doc:"50 without it"`
	Cursor  string `query:"cursor"`
}

type reviewsOut struct {
	Body api.List[runner.ReviewItem]
}

func (s *Server) reviews(ctx context.Context, p *Principal, in *reviewsIn) (*reviewsOut, error) {
	viewer, err := p.viewer(in.Machine, in.Human)
	if err != nil {
		return nil, err
	}
	items, next, err := tenantOf(ctx).Runner.Reviews(ctx, session.ListQuery{ID: in.Session, MachineName: in.Machine, After: session.Cursor(in.Cursor), Limit: parseLimit(in.Limit)}, viewer)
	if err != nil {
		return nil, err
	}
	out := &reviewsOut{api.List[runner.ReviewItem]{Items: []runner.ReviewItem{}, NextCursor: string(next)}}
	for i := range items {
		if p.may(mayPayload, items[i].MachineName) {
			out.Body.Items = append(out.Body.Items, items[i])
		}
	}
	return out, nil
}

type reviewIn struct {
	params.Question
	params.Precondition
	Body api.Reviewing
}

type reviewOut struct{ Body api.Reviewed }

func (s *Server) review(ctx context.Context, p *Principal, in *reviewIn) (*reviewOut, error) {
	id, round := parts(in.QuestionID)
	at, err := s.session(ctx, p, id, mayRule)
	if err != nil {
		return nil, err
	}
	who := in.Body.SpecialistID
	if bound := p.humans(at.Machine().Name()); who == "" && len(bound) == 1 {
		who = bound[0]
	}
	if who == "" {
		return nil, bad("bad_request", "specialistId is missing: who reviews?")
	}
	if _, err := p.viewer(at.Machine().Name(), who); err != nil {
		return nil, err
	}
	hidden, err := tenantOf(ctx).Runner.WithheldRounds(ctx, at, machine.SpecialistID(who))
	if err != nil {
		return nil, err
	}
	blind := !in.Body.Seen && slices.ContainsFunc(at.Reviews(), func(v *session.Review) bool { return v.Key.ID() == round && hidden[v.Key.Round] != "" })
	done, err := tenantOf(ctx).Runner.Review(ctx, runner.Reviewing{SessionID: at.ID, RoundID: round, SpecialistID: machine.SpecialistID(who), TransitionName: in.Body.TransitionName,
		Reasoning: in.Body.Reasoning, Actor: p.actor(at.Machine().Name()), If: holds(in.IfMatch), Blind: blind, Manner: in.Body.Recorded()})
	if err != nil {
		return nil, err
	}
	return &reviewOut{api.ReviewedOf(done)}, nil
}

// revealReview has somebody look at what was proposed and decided in a round that waits for a
// review. From then on it is kept from them in no answer.
func (s *Server) revealReview(ctx context.Context, p *Principal, in *revealIn) (*sessionOut, error) {
	id, round := parts(in.QuestionID)
	at, err := s.session(ctx, p, id, mayRule)
	if err != nil {
		return nil, err
	}
	if at.ReviewOf(round) == nil {
		return nil, &session.NotFoundError{What: "Review", ID: in.QuestionID}
	}
	if err := seen(at, in.IfMatch); err != nil {
		return nil, err
	}
	named := ""
	if in.Body != nil {
		named = in.Body.SpecialistID
	}
	who, err := s.looker(ctx, p, at, named)
	if err != nil {
		return nil, err
	}
	after, err := tenantOf(ctx).Runner.RevealReview(ctx, at.ID, round, who, p.actor(at.Machine().Name()))
	return s.changed(ctx, p, after, err, "")
}

// looker returns as which human the principal looks on the record at what is withheld. Whoever
// may name anybody and names nobody looks for all of them.
func (s *Server) looker(ctx context.Context, p *Principal, at *session.Session, named string) (machine.SpecialistID, error) {
	if named == "" && p.Anybody {
		return "", nil
	}
	return s.human(ctx, p, at, named)
}
