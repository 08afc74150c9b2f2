package cli

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/client"
	"github.com/dialai/dialai/internal/files"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Commands at a distance: with --server the operations on sessions are those of a server
// (remote), and what it tells is shown as what is found here. What a session has that no
// command shows it does not have; who may see what, the server has decided.

// distantCommands are those that work at a server, and whether they do in this version.
// All others work here, whatever --server says, but for what nobody does at a server.
var distantCommands = map[string]bool{
	"dialai": true, "run": true, "resume": true, "decide": true, "propose": true, "inbox": true, "sessions": true, "show": true, "log": true, "cancel": true, "fork": true, "proxy": true,
	"tick": true, "move": true, "retract": true, "audit": true, "explain": true, "trust": true, "collapse": true, "risk": true, "metrics": true, "specialists": true,
	"backtest": false, "store": false, "keys": false, "serve": false, "migrate": false,
}

// localFlags make no sense at a server, and why.
var localFlags = []struct{ name, why string }{
	{"store", "sessions are kept where the server keeps them"},
	{"prices", "the server knows what models cost"},
	{"record", "services and models are asked by the server"},
	{"replay", "services and models are asked by the server"},
	{"shadow", "steps are judged by the server"},
	{"guards", "steps are judged by the server"},
	{"interactive", "it asks at the terminal of the server only: rule with dialai decide"},
	{"timeout", "sessions go on at the server: Ctrl-C stops to watch"},
	{"wait", "sessions go on at the server, whether somebody waits or not"},
	{"machine", "what happened to the specialists of a machine is not served in this version"},
}

// distance checks what a command is to do at a server.
func (a *app) distance(cmd *cobra.Command) error {
	f := &a.Flags
	if at := cmd.Flags().Lookup("remote"); at != nil && at.Changed {
		if f.Server == "" {
			f.Server = a.Env("DIALAI_BASE_URL")
		}
		if f.Server == "" {
			return command.Hinted(command.Usage("--remote, but the DIALAI_BASE_URL environment variable is not set"), "set it, or name the server with --server URL")
		}
	}
	if f.Server == "" {
		if f.KeyFile != "" {
			return command.Usage("--key-file without --server")
		}
		return nil
	}
	top := cmd
	for top.HasParent() && top.Parent().HasParent() {
		top = top.Parent()
	}
	served, distant := distantCommands[top.Name()]
	if !top.HasParent() {
		served, distant = true, true
	}
	if !distant {
		f.Server = ""
		return nil
	}
	if !served {
		return command.Hinted(command.Usage("dialai %s does not work at a server in this version", top.Name()), "leave out --server, and run it where the store is")
	}
	for _, l := range localFlags {
		if flag := cmd.Flags().Lookup(l.name); flag != nil && flag.Changed && (l.name != "machine" || top.Name() == "log") {
			return command.Hinted(command.Usage("--%s with --server: %s", l.name, l.why), "leave out one of them")
		}
	}
	return nil
}

// remote is a server in the place of a Runner and its store.
type remote struct {
	*client.Client
	a         *app
	printer   *printer // of what happens to the session that is followed; nil for commands that only look
	programs  *session.Programs
	sent      *machine.Machine               // whose definition the server was sent last
	shown     api.Session                    // the session that was read last, as it was told
	reader    *session.Session               // as of the event that was told last, for what names in the next one mean
	after     int64                          // the number of that event
	withdraws bool                           // the ruling that is told takes another one back
	record    []api.Event                    // that are read, and may have others of their record behind them
	pull      func() (api.Item, error, bool) // the inbox behind the last page
	missing   []string                       // without whom the session was started, if that is to be told
	ahead     *runner.Question               // that was read of it

	reviews     func() (runner.ReviewItem, error, bool) // those that wait behind the last page
	reviewAhead *runner.ReviewItem                      // that was read of them
}

// distant returns the server that --server names.
func (a *app) distant(ctx context.Context, p *printer) (*engine, error) {
	config := client.Config{BaseURL: a.Flags.Server}
	if _, err := client.New(config); err != nil {
		return nil, command.Hinted(command.Usage("--server: %v", err), "such as http://127.0.0.1:8420, as dialai serve prints it")
	}
	key, err := a.distantKey()
	if err != nil {
		return nil, err
	}
	config.Key = key
	c, err := client.New(config)
	if err != nil {
		return nil, err
	}
	r := &remote{Client: c, a: a, printer: p, programs: session.NewPrograms()}
	if p != nil {
		p.far = r
	}
	a.Shorten(ctx, r.Sessions)
	return &engine{operations: r, far: r}, nil
}

// distantKey returns the key that the server is sent: the one in the file that is named, that
// of the environment, or, for a server of this computer, that of this computer.
func (a *app) distantKey() (string, error) {
	if path := a.Flags.KeyFile; path != "" {
		text, err := files.ReadRegular(path, files.ServerKey)
		if err != nil {
			return "", command.Fail(command.ExitFailure, fmt.Errorf("--key-file: %w", err))
		}
		if key := strings.TrimSpace(string(text)); key != "" {
			return key, nil
		}
		return "", fmt.Errorf("--key-file: %s holds no key", path)
	}
	if key := a.Env("DIALAI_API_TOKEN"); key != "" {
		return key, nil
	}
	if !nearby(a.Flags.Server) {
		return "", command.Hinted(fmt.Errorf("there is no key for %s: tried --key-file and DIALAI_API_TOKEN; that of this computer is sent to this computer only", a.Flags.Server),
			"whoever runs the server makes one with dialai keys create")
	}
	path, err := a.ServerKeyPath()
	if err != nil {
		return "", err
	}
	key, err := command.ReadServerKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil // it may let everybody in
	}
	return key, err
}

// nearby reports whether a server is of this computer, by its address.
func nearby(server string) bool {
	if strings.HasPrefix(server, "unix:") {
		return true
	}
	u, err := url.Parse(server)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// told turns what the client says into what the engine would have said.
func (r *remote) told(err error) error {
	if err == nil {
		return nil
	}
	var p *client.Problem
	if !errors.As(err, &p) {
		return r.unreached(err)
	}
	var details []string
	for _, d := range p.Problems {
		details = append(details, strings.TrimPrefix(d.Pointer+": "+d.Message, ": "))
	}
	refused := &runner.Error{Code: p.Code, Message: p.Detail, Hint: p.Hint, Details: details}
	for _, k := range []struct{ is, kind error }{
		{client.ErrNotRunning, runner.ErrNotRunning}, {client.ErrForbidden, runner.ErrForbidden}, {client.ErrNotFound, session.ErrNotFound}, {client.ErrIllegal, runner.ErrIllegal},
	} {
		if errors.Is(p, k.is) {
			refused.Kind = k.kind
		}
	}
	if p.Question != nil {
		return &runner.StaleError{Refusal: refused, Question: *p.Question, Changed: p.Reasons}
	}
	switch {
	case p.Code == "cannot_start":
		return r.placed(p.Problems)
	case errors.Is(p, client.ErrUnauthenticated):
		return command.Hinted(fmt.Errorf("%s does not know the key that it was sent", r.a.Flags.Server), "%s", r.keysTried())
	case p.ExitCode != 0 && p.ExitCode != command.ExitFailure:
		return command.Fail(p.ExitCode, refused)
	}
	return refused
}

// placed returns what keeps a session from its start, at its place in the definition that the
// server was sent.
func (r *remote) placed(problems []api.Problem) error {
	var reasons []error
	for _, d := range problems {
		if d.Pointer == "" || r.sent == nil {
			reasons = append(reasons, errors.New(d.Message))
			continue
		}
		reasons = append(reasons, &runner.DanglingError{Problem: r.sent.Locate(machine.Problem{Path: d.Pointer, Code: d.Code, Message: d.Message, Hint: d.Hint})})
	}
	return errors.Join(reasons...)
}

// keysTried says where a key may be.
func (r *remote) keysTried() string {
	return "a key is that of --key-file FILE, else DIALAI_API_TOKEN, else, at this computer, that in the file server-key which dialai serve prints; dialai keys create makes one"
}

// unreached says that the server was not reached, and what to do.
func (r *remote) unreached(err error) error {
	var untrusted *tls.CertificateVerificationError
	var asked *url.Error
	switch server := r.a.Flags.Server; {
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &untrusted):
		return command.Hinted(fmt.Errorf("the certificate of %s is not to be trusted: %w", server, untrusted.Err), "SSL_CERT_FILE names a file with the authority that has signed it, if that is yours")
	case errors.As(err, &asked):
		return command.Hinted(fmt.Errorf("%s was not reached: %w", server, asked.Err), "is dialai serve running there? --server names another; without it the store of this computer is used")
	}
	return fmt.Errorf("%s: %w", r.a.Flags.Server, err)
}

// Session returns a session as the server shows it.
func (r *remote) Session(ctx context.Context, id specialist.SessionID) (*session.Session, error) {
	return r.look(ctx, id, "")
}

// look returns a session as the server shows it to somebody.
func (r *remote) look(ctx context.Context, id specialist.SessionID, viewer machine.SpecialistID) (*session.Session, error) {
	v, err := r.Client.Session(ctx, id.String(), string(viewer))
	if errors.Is(err, client.ErrNotFound) {
		return nil, &session.NotFoundError{What: "Session", ID: id.String()}
	}
	if err != nil {
		return nil, r.told(err)
	}
	return r.take(ctx, v, viewer)
}

// take makes a session of what was told.
func (r *remote) take(ctx context.Context, v api.Session, viewer machine.SpecialistID) (*session.Session, error) {
	m, err := machine.Parse("machine.json", v.Machine, session.StoredChecks()) // which the server has checked when it was new
	if err != nil {
		return nil, err
	}
	p, err := r.programs.Of(m)
	if err != nil {
		return nil, err
	}
	beside := session.Beside{Missing: r.missing}
	for sum, err := range r.Client.Sessions(ctx, client.SessionQuery{ID: v.SessionID}) {
		if err != nil {
			return nil, r.told(err)
		}
		beside.UpdatedAt = sum.UpdatedAt
	}
	if v.Question == nil && v.Status.Live() {
		if q, err := r.Client.Question(ctx, v.SessionID+"."+v.CurrentRoundID, string(viewer)); err == nil { // else it has gone on meanwhile
			v.Question = &q.Question
		}
	}
	if q := v.Question; q != nil {
		q.Viewer = string(viewer)
		beside.Due = session.Due{At: q.Due, Error: q.DueError}
		for _, t := range q.Transitions {
			if t.Closed != "" {
				beside.Closed = append(beside.Closed, t.Name)
			}
		}
	}
	if state := m.State(v.CurrentState); v.Code == session.CodeDeadEnd && state != nil {
		for _, t := range state.Transitions {
			if t.When != "" {
				beside.Closed = append(beside.Closed, t.Name)
			}
		}
	}
	s, err := session.Shown(v.SessionView, p, beside)
	if err == nil && len(v.Waiting) > 0 {
		if beside.Out, err = r.out(ctx, s, v.Waiting); err == nil {
			s, err = session.Shown(v.SessionView, p, beside)
		}
	}
	r.shown = v
	return s, err
}

// out returns the asks whose answers are out, with by when they are due.
func (r *remote) out(ctx context.Context, s *session.Session, waiting []string) (list []session.Ask, err error) {
	last := map[string]session.Ask{}
	for e, err := range r.Client.Log(ctx, s.ID.String(), client.EventQuery{Kinds: []string{session.KindAsked}, Payload: "full"}) {
		if err != nil {
			return nil, r.told(err)
		}
		if d, _ := s.Read(e.Raw); d != nil { // one that is withheld does not say
			for _, a := range d.(*session.Asked).Asks {
				last[a.SpecialistID] = a
			}
		}
	}
	for _, id := range waiting {
		a := last[id]
		a.SpecialistID = id
		list = append(list, a)
	}
	return list, nil
}

// view returns the session that was read last as it was told, to be printed as it is.
func (r *remote) view(q runner.Question) api.Session {
	v := r.shown
	if v.Status != session.NeedsHuman && v.Status != session.Stopped {
		v.Question = nil
	} else {
		v.Question = &q
	}
	return v
}

// Sessions returns the summaries of sessions, as many as are asked for.
func (r *remote) Sessions(ctx context.Context, q session.ListQuery) (list []session.Summary, err error) {
	for sum, err := range r.each(ctx, q) {
		if err != nil {
			return nil, err
		}
		list = append(list, sum)
	}
	return list, nil
}

// each yields the summaries of sessions, as many as are asked for.
func (r *remote) each(ctx context.Context, q session.ListQuery) iter.Seq2[session.Summary, error] {
	return func(yield func(session.Summary, error) bool) {
		in := client.SessionQuery{ID: q.ID, Machine: q.MachineName, State: q.State, Code: q.Code, Subject: q.Subject, Decider: string(q.Decider), OldestFirst: !q.Desc, Awake: q.Awake != 0, Reviews: q.Reviews}
		for _, s := range q.Statuses {
			in.Statuses = append(in.Statuses, s.String())
		}
		if q.UpdatedAfter != 0 {
			in.UpdatedAfter = q.UpdatedAfter.Time()
		}
		n := 0
		for sum, err := range r.Client.Sessions(ctx, in) {
			if n++; !yield(sum, r.told(err)) || err != nil || n == q.Limit {
				return
			}
		}
	}
}

// Inbox returns a page of questions; the next ones are those behind it.
func (r *remote) Inbox(ctx context.Context, q session.ListQuery, viewer machine.SpecialistID) (items []runner.Question, next session.Cursor, err error) {
	if q.After == "" || r.pull == nil {
		pull, stop := iter.Pull2(r.Client.Inbox(ctx, client.QuestionQuery{Machine: q.MachineName, State: q.State, Code: q.Code, Human: string(q.Decider), As: string(viewer)}))
		context.AfterFunc(ctx, stop)
		r.pull, r.ahead = pull, nil
	}
	if r.ahead != nil {
		items = append(items, *r.ahead)
	}
	for {
		item, err, more := r.pull()
		if !more || err != nil {
			return items, "", r.told(err)
		}
		if item.Viewer = string(viewer); len(items) == q.Limit {
			r.ahead = &item.Question
			return items, "behind", nil
		}
		items = append(items, item.Question)
	}
}

// Question returns the question of a session as somebody sees it. Where none is open it has
// what is known of the session.
func (r *remote) Question(ctx context.Context, s *session.Session, viewer machine.SpecialistID) (runner.Question, error) {
	if viewer != "" || r.shown.SessionID != s.ID.String() || r.shown.Sequence != s.Sequence {
		if _, err := r.look(ctx, s.ID, viewer); err != nil {
			return runner.Question{}, err
		}
	}
	v := r.shown
	if v.Question != nil {
		return *v.Question, nil
	}
	return runner.Question{
		QuestionID: v.SessionID + "." + v.CurrentRoundID, SessionID: v.SessionID, MachineName: v.MachineName, RoundID: v.CurrentRoundID, State: v.CurrentState,
		Prompt: s.State.Prompt, Subject: v.Subject, Facts: factsOf(v), History: v.History, Notices: v.Notices, Code: v.Code, Reason: v.Reason, Viewer: string(viewer), Proposals: v.Proposals,
	}, nil
}

// factsOf returns what a session is about, as a question has it.
func factsOf(v api.Session) session.Facts {
	if v.Data == nil && len(v.MetaJSON) > 0 && v.MetaJSON[0] == '{' {
		return session.Facts{Input: v.MetaJSON, Data: v.MetaJSON}
	}
	f := session.Facts{Input: v.MetaJSON, Data: v.Data}
	if f.Data == nil {
		f.Data = []byte("{}")
	}
	return f
}

// Reveal looks at what is withheld.
func (r *remote) Reveal(ctx context.Context, id specialist.SessionID, viewer machine.SpecialistID, _ *session.Actor) (runner.Question, *session.Session, error) {
	s, err := r.look(ctx, id, viewer)
	if err != nil {
		return runner.Question{}, nil, err
	}
	if !s.Status.Live() {
		q, err := r.Question(ctx, s, viewer)
		return q, s, err
	}
	q, err := r.Client.Reveal(ctx, id.String()+"."+s.Key().ID(), api.Viewer{SpecialistID: string(viewer)})
	if err != nil {
		return q, nil, r.told(err)
	}
	q.Viewer = string(viewer)
	s, err = r.look(ctx, id, viewer)
	r.shown.Question = &q
	return q, s, err
}

// Humans returns who may rule in a session, and whether its machine declares any human.
func (r *remote) Humans(ctx context.Context, s *session.Session) (ids []string, declared bool, err error) {
	if !s.Status.Live() && s.Status != session.Stopped { // there is no question
		return r.HumansIn(ctx, s.Machine().Name(), machine.StateName(s.State.Name))
	}
	q, err := r.Question(ctx, s, "")
	return q.Humans, len(q.Humans) > 0 || humanOf(s) != "", err
}

// Outcome returns why a session is not running, as the server tells it.
func (r *remote) Outcome(_ context.Context, s *session.Session, _ machine.SpecialistID) (session.Outcome, error) {
	return s.Outcome(), nil
}

// Start starts a session of a definition that the server is sent.
func (r *remote) Start(ctx context.Context, m *machine.Machine, o runner.StartOptions) (*session.Session, error) {
	r.sent = m
	in := api.Start{Machine: m.JSON(), MetaJSON: o.Meta, Mode: string(o.Mode), Defaults: o.Defaults}
	if o.Seed != 0 {
		in.Seed = fmt.Sprint(o.Seed)
	}
	if o.Actor != nil && len(o.Actor.Humans) > 0 {
		in.Human = o.Actor.Humans[0]
	}
	for _, id := range o.AllowMissing {
		in.AllowMissing = append(in.AllowMissing, string(id))
	}
	started, err := r.Client.Start(ctx, in, client.Write{})
	if err != nil {
		return nil, r.told(err)
	}
	if len(o.AllowMissing) > 0 {
		if err := r.readMissing(ctx, started.Session.SessionID); err != nil {
			return nil, err
		}
	}
	s, err := r.take(ctx, started.Session, "")
	if err == nil {
		r.printer.follow(s)
		r.begin(s, 0)
	}
	return s, err
}

// readMissing reads without whom a session was started.
func (r *remote) readMissing(ctx context.Context, id string) error {
	for e, err := range r.Log(ctx, id, client.EventQuery{Kinds: []string{session.KindCreated}, Payload: "full"}) {
		if err != nil {
			return r.told(err)
		}
		_, o, err := e.Creation()
		if err != nil {
			return err
		}
		r.missing = o.Missing
	}
	return nil
}

// begin has what follows be told from an event on.
func (r *remote) begin(s *session.Session, after int64) {
	own := *s
	r.reader, r.after, r.record = &own, after, nil
	r.a.SessionID = s.ID.String()
}

// watches is how long the server is asked at a time whether a session has settled.
const watches = 30 * time.Second

// Run tells what happens to a session until it ends, needs a human, or waits. Where nobody
// carries it on, or so many transitions are enough, it has the server do that.
func (r *remote) Run(ctx context.Context, id specialist.SessionID, o runner.RunOptions) (runner.Result, error) {
	about, err := r.About(ctx)
	if err != nil {
		return runner.Result{}, r.told(err)
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	type end struct {
		result api.Result
		at     api.Session
		err    error
	}
	done := make(chan end, 1)
	go func() {
		defer stop()
		for about.Drives && o.MaxSteps == runner.DefaultMaxSteps {
			at, err := r.Await(ctx, id.String(), "", watches)
			if err != nil || at.Settled && at.Session.Status != session.Running {
				done <- end{at: at.Session, err: err}
				return
			}
			if at.Settled { // nobody carries on this one, or it waits
				break
			}
		}
		ran, err := r.Client.Run(ctx, id.String(), o.MaxSteps, client.Write{})
		done <- end{ran.Result, ran.Session, err}
	}()
	r.watch(following, id)
	left := <-done
	if left.err != nil {
		return runner.Result{}, r.told(left.err)
	}
	r.catchUp(ctx, id, left.at.Sequence)
	s, err := r.take(ctx, left.at, "")
	if err != nil {
		return runner.Result{}, err
	}
	result := runner.Result{Status: left.result.Status, Session: s, Code: left.result.Code, Reason: left.result.Reason}
	if result.Status == "" {
		result.Status = s.Status.String()
	}
	if s.Status != session.Running {
		result.Reason, result.Code = s.Outcome().Reason, s.Outcome().Code
	}
	return result, nil
}

// watch tells events as they come until ctx ends, or the session has completed. What it cannot
// read it leaves to whoever looks at the session.
func (r *remote) watch(ctx context.Context, id specialist.SessionID) {
	if r.printer == nil || r.reader == nil {
		return
	}
	for e, err := range r.Events(ctx, id.String(), client.EventQuery{After: r.after, Payload: "full"}) {
		if err != nil {
			return
		}
		r.add(e)
	}
}

// catchUp tells the events up to a number that were not told yet.
func (r *remote) catchUp(ctx context.Context, id specialist.SessionID, until int64) {
	if r.printer == nil || r.reader == nil {
		return
	}
	for e, err := range r.Log(ctx, id.String(), client.EventQuery{After: r.after, Payload: "full"}) {
		if err != nil || e.Seq > until {
			break
		}
		r.add(e)
	}
	r.tell()
}

// add takes in an event, and tells the record before it once that is whole.
func (r *remote) add(e api.Event) {
	if len(r.record) > 0 && r.record[0].Hash != e.Hash {
		r.tell()
	}
	r.record, r.after = append(r.record, e), e.Seq
}

// tell has the printer show a record.
func (r *remote) tell() {
	p, record := r.printer, r.record
	if r.record = nil; len(record) == 0 {
		return
	}
	defer p.out.Flush() // its error stays with it, and end returns it
	if p.a.Flags.JSON {
		for _, e := range record {
			_ = render.JSON(p.out, e) // likewise
		}
		return
	}
	c := session.Change{After: r.reader, First: record[0].Seq}
	for _, e := range record {
		if e.Withheld && r.less(e) {
			continue
		}
		d, err := r.reader.Read(e.Raw)
		if err != nil {
			continue // a later version may know more kinds
		}
		if o, ok := d.(*session.RoundOpened); ok {
			r.reader.State, r.reader.Round, r.reader.Attempt = o.State, o.Round, o.Attempt
		}
		c.Events = append(c.Events, session.Event{At: e.At, Data: d})
		p.text(c)
		c.Events = nil
	}
}

// less tells an event of which the server says less than the log, if it is one that is told.
func (r *remote) less(e api.Event) bool {
	p := r.printer
	var d struct{ SpecialistID, ArbiterID string }
	_ = json.Unmarshal(e.Data, &d) // without a name there is none
	switch e.Kind {
	case "answered":
		p.line("A proposer has answered (withheld)")
	case session.KindJudged:
		p.line("Arbiter %s: verdict (withheld)", render.Clean(d.ArbiterID))
	case session.KindRuled:
		p.line(render.Either(r.withdraws, "Human %s has taken the ruling back", "Human %s has ruled (withheld)"), render.Clean(d.SpecialistID))
	case session.KindRoundOpened, session.KindNeedsHuman, session.KindEnded:
		return false // their names are there
	}
	return true
}

// Resume takes a session up again.
func (r *remote) Resume(ctx context.Context, id specialist.SessionID, o runner.ResumeOptions) (*session.Session, error) {
	var after api.Settled
	var err error
	if len(o.Raise) > 0 {
		in := api.Raising{Note: o.Note, SpecialistID: string(o.SpecialistID)}
		for _, l := range o.Raise {
			if !json.Valid([]byte(l.To)) { // it cannot be sent, and here is who says what is wrong
				s, err := r.Session(ctx, id)
				if err != nil {
					return nil, err
				}
				_, problems := s.Program.Guards(s.State).Raise(s.State.Name, o.Raise)
				return nil, command.Usage("%s", problems[0].Message)
			}
			in.Raise = append(in.Raise, api.Raise{Limit: l.Limit, To: l.To})
		}
		after, err = r.Raise(ctx, id.String(), in, client.Write{})
	} else {
		after, err = r.Client.Resume(ctx, id.String(), api.Resuming{Note: o.Note, SpecialistID: string(o.SpecialistID), RetryFailed: o.RetryFailed, KeepFailed: o.KeepFailed, Clear: o.Clear}, client.Write{})
	}
	if err != nil {
		return nil, r.told(err)
	}
	return r.take(ctx, after.Session, "")
}

// Decide rules on a session, and tells what came of it.
func (r *remote) Decide(ctx context.Context, in runner.Ruling) (runner.Arbitration, error) {
	id := in.SessionID.String()
	if q := r.shown.Question; in.QuestionDigest == "" && q != nil { // the round is not that of the question, which is refused
		in.QuestionDigest = q.Digest
	}
	var ruled api.Ruled
	var err error
	if r.withdraws = in.Withdraw; in.Withdraw {
		ruled, err = r.Withdraw(ctx, id, in.RoundID, string(in.SpecialistID))
	} else {
		ruled, err = r.Client.Decide(ctx, id, api.Ruling{TransitionName: in.TransitionName, RoundID: in.RoundID, QuestionDigest: in.QuestionDigest, SpecialistID: string(in.SpecialistID), Reasoning: in.Reasoning, MetaJSON: in.MetaJSON}, client.Write{})
	}
	if err == nil {
		a := ruled.Arbitration
		r.catchUp(ctx, in.SessionID, ruled.Session.Sequence)
		a.Session, err = r.take(ctx, ruled.Session, "")
		return a, err
	}
	var p *client.Problem
	if !errors.As(err, &p) || p.Arbitration == nil && !errors.Is(p, client.ErrForbidden) {
		return runner.Arbitration{}, r.told(err)
	}
	a := runner.Arbitration{SessionID: id, RoundID: in.RoundID, SpecialistID: string(in.SpecialistID), GuardReason: p.Detail}
	if p.Arbitration != nil {
		a = *p.Arbitration
	}
	if a.Session, err = r.Session(ctx, in.SessionID); err != nil {
		return runner.Arbitration{}, err
	}
	r.catchUp(ctx, in.SessionID, a.Session.Sequence)
	if errors.Is(p, client.ErrGuard) {
		return a, nil
	}
	return a, seenBy(in.SpecialistID, r.told(p))
}

// seenBy says of a question that has changed who looks at it.
func seenBy(viewer machine.SpecialistID, err error) error {
	if stale, ok := errors.AsType[*runner.StaleError](err); ok {
		stale.Question.Viewer = string(viewer)
	}
	return err
}

// Propose hands in a proposal, and tells what came of it.
func (r *remote) Propose(ctx context.Context, in runner.Submission) (*specialist.Proposal, *session.Session, error) {
	if q := r.shown.Question; in.TransitionName != "" && in.QuestionDigest == "" && q != nil { // of another round, which is refused
		in.QuestionDigest = q.Digest
	}
	body := api.Proposal{SpecialistID: string(in.SpecialistID), RoundID: in.RoundID, QuestionDigest: in.QuestionDigest, TransitionName: in.TransitionName, Reasoning: in.Reasoning, MetaJSON: in.MetaJSON, Cost: api.CostOf(in.Usage)}
	done, err := r.Client.Propose(ctx, in.SessionID.String(), body, client.Write{})
	if err != nil {
		s, failed := r.Session(ctx, in.SessionID)
		if failed == nil {
			r.catchUp(ctx, in.SessionID, s.Sequence)
		}
		return nil, s, seenBy(in.SpecialistID, r.told(err))
	}
	r.catchUp(ctx, in.SessionID, done.Session.Sequence)
	s, err := r.take(ctx, done.Session, "")
	return nil, s, err
}

// Stop cancels a session.
func (r *remote) Stop(ctx context.Context, id specialist.SessionID, why runner.Stopping) (*session.Session, error) {
	after, err := r.Cancel(ctx, id.String(), api.Note{Note: why.Note}, client.Write{})
	if err != nil {
		return nil, r.told(err)
	}
	return r.take(ctx, after.Session, "")
}

// Fork makes a session that goes on from where another one stood.
func (r *remote) Fork(ctx context.Context, id specialist.SessionID, o runner.Forking) (*session.Session, error) {
	after, err := r.Client.Fork(ctx, id.String(), api.Forking{Sequence: o.At}, client.Write{})
	if err != nil {
		return nil, r.told(err)
	}
	return r.take(ctx, after.Session, "")
}
