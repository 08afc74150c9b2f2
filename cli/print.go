package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/cli/internal/remote"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/internal/guardlog"
	"github.com/dialai/dialai/internal/text"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/verdict"
)

// A run as it goes. The printer is the runner's observer, so it sees each record once
// it is durable, in order, and shows its events as a round log, or as one JSON line
// each with the hash of the record. What other processes have committed since is not
// observed, so catchUp takes it from the session before each record.
//
// What is withheld from whoever rules is withheld here too, as long as the round is
// open: nobody knows who reads along. Every text from outside goes through
// render.Clean. Lines of progress go to stderr and are cleared before a line is
// printed; errors of writing stay with the buffer until end returns them.

// A printer shows a session as it goes: as a round log, as JSON, or not at all.
// It is fed by the runner's observer.
type printer struct {
	a        *app
	out      *bufio.Writer
	paint    render.Paint
	status   *render.Progress
	headed   *session.Session // whose header is to be printed before anything else
	round    int32
	attempt  int32
	state    string
	proposed map[int32]string      // what is proposed in the round, by arrival
	opened   bool                  // lines of the current round have been printed
	head     session.Hash          // of the last record, where the store does not say
	shadow   *guardlog.Shadow      // nil unless other guards judge too
	differs  []guardlog.ShadowLine // of the record that is being printed
	hidden   bool                  // the event that is being printed is withheld
	far      *remote.Server        // the server of the session, nil for one of the store
	asked    string                // digest of the question that was printed last
}

func (a *app) newPrinter() *printer {
	return &printer{a: a, out: bufio.NewWriter(a.Out), paint: render.PaintFor(a.Out, a.Env), status: render.NewProgress(a.Screen())}
}

// observe is the runner's observer.
func (p *printer) observe(r session.Change) {
	p.status.Observe(r)
	if r.Before == nil {
		p.Follow(r.After)
	}
	if p.differs = p.shadow.Observe(r); p.a.Flags.JSON {
		p.json(r)
		p.shadowed(p.differs)
	} else {
		p.Text(r)
	}
	p.out.Flush() // its error stays with it, and end returns it
}

// catchUp takes up what other processes have done since the last record: they may
// have closed the round, opened others, and put proposals into the one that is open.
func (p *printer) catchUp(s *session.Session) {
	if s == nil {
		return
	}
	if s.Round != p.round || s.Attempt != p.attempt {
		p.close()
		p.begin(s.Round, s.Attempt, s.State.Name)
	}
	for _, proposal := range s.Proposals() {
		p.proposed[proposal.Arrival] = proposal.Transition.Name
	}
}

// Follow takes up a session where it stands.
func (p *printer) Follow(s *session.Session) {
	if p.far != nil {
		p.far.Begin(s, s.Sequence)
	}
	p.a.SessionID = s.ID.String()
	p.headed = s
	p.status.Follow(s)
	p.begin(s.Round, s.Attempt, s.State.Name)
	p.catchUp(s)
}

func (p *printer) begin(round, attempt int32, state string) {
	p.round, p.attempt, p.state, p.opened, p.proposed = round, attempt, state, false, map[int32]string{}
}

// json prints every event as one line.
func (p *printer) json(r session.Change) {
	hash := r.After.Head
	if hash == nil { // the store computes hashes on demand
		p.head = session.Chain(p.head, r.After.ID.String(), session.AppendEvents(nil, r.Key(), r.First, r.Events))
		hash = &p.head
	}
	for i := range r.Events {
		line := fmt.Appendf(nil, `{"v":1,"sessionId":"%s",`, r.After.ID)
		event, less := p.told(r, i)
		line = append(line, event[1:len(event)-1]...)
		line = fmt.Appendf(line, `,"hash":"%s"`, hash)
		if less {
			line = append(line, `,"withheld":true`...)
		}
		line = append(line, '}')
		fmt.Fprintf(p.out, "%s\n", text.Escaped(line))
	}
}

// told returns an event as JSON, without what is withheld from whoever rules, and
// whether that is less than all.
func (p *printer) told(r session.Change, i int) (event []byte, less bool) {
	event = r.AppendEvent(nil, i)
	var raw session.Raw
	if !hiddenIn(r, i) || json.Unmarshal(event, &raw) != nil {
		return event, false
	}
	if raw, less = r.After.Concealed(raw, r.After.Withheld("") != ""); !less {
		return event, false
	}
	event, err := json.Marshal(raw)
	if err != nil {
		return []byte("{}"), true
	}
	return event, true
}

// hiddenIn reports whether an event of a record belongs to the open round, and that
// withholds something. Who looks at what is printed nobody knows.
func hiddenIn(r session.Change, i int) bool {
	if !r.After.Hides("") {
		return false
	}
	for _, e := range r.Events[i:] {
		if _, closes := e.Data.(*session.Executed); closes {
			return false
		}
	}
	return true
}

// Event prints an event as a server told it.
func (p *printer) Event(e api.Event) { _ = render.JSON(p.out, e) } // its error stays with out, and end returns it

// Flush has everything shown that was printed.
func (p *printer) Flush() { p.out.Flush() } // likewise

// header prints what a session is, once, before its rounds.
func (p *printer) header() {
	s := p.headed
	if p.headed = nil; s == nil || p.a.Flags.JSON || p.a.Flags.Quiet {
		return
	}
	m := s.Machine()
	p.status.Clear()
	fmt.Fprintf(p.out, "Machine:       %s\n", render.Clean(m.Name()))
	fmt.Fprintf(p.out, "Initial state: %s\n", render.Clean(m.Initial().Name))
	fmt.Fprintf(p.out, "Goal state:    %s\n", render.Clean(m.Goal().Name))
	fmt.Fprintf(p.out, "Session ID:    %s\n", s.ID)
	if about := s.Subject(); about != "" {
		fmt.Fprintf(p.out, "Subject:       %s\n", render.Clean(about))
	}
	if missing := s.Options().Missing; missing != nil {
		fmt.Fprintf(p.out, "Missing:       %s\n", render.Clean(strings.Join(missing, ", ")))
	}
	fmt.Fprintln(p.out)
}

// Text shows the events of a record, for people.
func (p *printer) Text(r session.Change) {
	p.catchUp(r.Before)
	for i, e := range r.Events {
		p.hidden = r.After.Withheld("") != "" && hiddenIn(r, i)
		switch d := e.Data.(type) {
		case *session.Created:
			p.header()
		case *session.RoundOpened:
			p.close()
			p.begin(d.Round, d.Attempt, d.State.Name)
		case *session.Proposed:
			p.proposal(d)
		case *session.AskFailed:
			p.failed(d)
		case *session.Judged:
			p.judged(d)
		case *session.Probed:
			p.probed(d)
		case *session.Gated:
			p.gated(d.Verdict)
			p.shadowed(p.differs)
		case *session.Ruled:
			p.ruled(d, r.After.ConcealsRulings())
		case *session.Reminded:
			p.Line("Reminder: due at %s, in %s", d.Due, d.Before)
		case *session.Executed:
			p.executed(d)
		case *session.Resumed:
			for _, raised := range d.Raised {
				p.Line("Raised %s from %s to %s (%s: %s)", render.Clean(raised.Limit), raised.From, raised.To, render.Clean(d.By()), render.Clean(d.Note))
			}
		}
	}
}

// Line prints one line of the current round, after its heading.
func (p *printer) Line(format string, args ...any) {
	if p.a.Flags.Quiet {
		return
	}
	p.header()
	p.status.Clear()
	if !p.opened {
		p.opened = true
		fmt.Fprintln(p.out, p.paint.Bold(fmt.Sprintf("Round %d from %s", p.round, render.Clean(p.state))))
	}
	fmt.Fprintf(p.out, "  "+format+"\n", args...)
}

// close ends the round's lines with a blank one.
func (p *printer) close() {
	if p.opened {
		fmt.Fprintln(p.out)
		p.opened = false
	}
}

// say prints one line on stderr if --verbose asks for it.
func (p *printer) say(format string, args ...any) {
	if p.a.Flags.Verbose {
		p.status.Clear()
		fmt.Fprintf(p.a.Err, format+"\n", args...)
	}
}

func (p *printer) proposal(d *session.Proposed) {
	who, somebody := "Proposer", "A proposer"
	if d.IsHuman {
		who, somebody = "Human", "A human"
	}
	id, t := render.Clean(d.SpecialistID), d.Transition
	p.proposed[d.Arrival] = t.Name
	if p.hidden || t.From.Withheld() {
		p.Line("%s has answered (withheld)", somebody)
		return
	}
	p.Line("%s %s proposed: %s → %s", who, id, render.Clean(t.Name), render.Clean(t.Target))
	p.say("[PROPOSE] %s: %s -> %s", id, render.Clean(t.Name), render.Clean(t.Target))
}

func (p *printer) failed(d *session.AskFailed) {
	who, somebody := "Proposer", "A proposer"
	if d.Role == machine.Arbiter {
		who, somebody = "Arbiter", "The arbiter"
	}
	id, message := render.Clean(d.SpecialistID), render.Clean(strings.TrimSpace(d.Message))
	switch cancelled := d.Code == session.CodeCancelled; {
	case cancelled && p.hidden:
	case p.hidden:
		p.Line("%s has answered (withheld)", somebody)
	case cancelled:
		p.say("[CANCEL] %s: %s", id, message)
	default:
		p.Line("%s %s failed: %s", who, id, p.paint.Red(message))
	}
}

func (p *printer) judged(d *session.Judged) {
	id, short := render.Clean(d.ArbiterID), render.Clean(d.Decision.Short())
	if p.hidden {
		p.Line("Arbiter %s: verdict (withheld)", id)
		return
	}
	if !d.Decision.Consensus() {
		p.Line("Arbiter %s: %s (%s)", id, p.paint.Yellow("no consensus"), short)
		p.say("[ARBITRATE] no consensus (%s)", short)
		return
	}
	p.Line("Arbiter %s: %s (%s)", id, p.paint.Green("consensus reached"), short)
	p.say("[ARBITRATE] consensus reached: %s (%s)", render.Clean(p.proposed[d.Order[d.Decision.Winner]]), render.Clean(cmp.Or(strategyWords[d.Strategy], d.Strategy)))
}

// strategyWords names the strategies that people know by other words.
var strategyWords = map[string]string{"alignmentMargin": "alignment margin", "firstProposal": "first proposal"}

// probed shows what a truth gate has measured, or that nobody answered it.
func (p *printer) probed(d *session.Probed) {
	switch {
	case p.hidden:
	case d.Value != nil:
		p.say("[PROBE] %s %.2f", render.Clean(d.Stage), *d.Value)
	case d.Code != "":
		p.Line("Guards got no answer: %s", p.paint.Red(render.Clean(strings.TrimSpace(d.Message))))
	}
}

func (p *printer) gated(v verdict.Verdict) {
	for _, r := range v.Reasons {
		if p.hidden {
			p.Line("Guard %s (withheld)", r.Class)
			continue
		}
		p.Line("Guard %s: %s (%s)", r.Class, render.Clean(r.Code), render.Clean(r.Message))
	}
}

// ruled shows that a human has ruled, and how unless others must not know.
func (p *printer) ruled(d *session.Ruled, concealed bool) {
	switch t := d.Transition; {
	case t == nil:
		p.Line("Human %s has taken the ruling back", render.Clean(d.SpecialistID))
	case concealed:
		p.Line("Human %s has ruled (withheld)", render.Clean(d.SpecialistID))
	default:
		p.Line("Human %s has ruled: %s → %s", render.Clean(d.SpecialistID), render.Clean(t.Name), render.Clean(t.Target))
	}
}

func (p *printer) executed(d *session.Executed) {
	t := d.Transition
	if len(d.Authors) > 1 {
		p.Line("Humans %s decided: %s → %s", render.Clean(strings.Join(d.Authors, " and ")), render.Clean(t.Name), render.Clean(t.Target))
	} else if d.How == session.ByTimer {
		p.Line("Timer: %s", render.Clean(d.Reasoning))
	} else if d.How != session.ByConsensus {
		p.Line("Human %s decided: %s → %s", render.Clean(d.SpecialistID), render.Clean(t.Name), render.Clean(t.Target))
	}
	p.Line("Executed: %s → %s", render.Clean(t.Name), render.Clean(t.Target))
	p.say("[EXECUTE] %s -> %s", render.Clean(t.From.Name), render.Clean(t.Target))
	p.close()
}

// questionLine is a question among the lines of --json.
type questionLine struct {
	V         int             `json:"v"`
	Kind      string          `json:"kind"` // "question"
	SessionID string          `json:"sessionId"`
	Question  runner.Question `json:"question"`
}

// tellQuestion prints the question that is ruled on, before it is.
func (p *printer) tellQuestion(q runner.Question) error {
	p.asked = q.Digest
	switch {
	case p.a.Flags.JSON:
		return render.JSON(p.out, questionLine{1, "question", q.SessionID, q})
	case p.a.Flags.Quiet:
		return nil
	}
	p.header()
	var b bytes.Buffer
	render.Prompt(&b, render.QuestionHead, q.Prompt)
	if err := p.a.Question(&b, q); err != nil {
		return err
	}
	if b.Len() > 0 {
		fmt.Fprintf(p.out, "%s\n", strings.TrimPrefix(b.String(), "\n"))
	}
	return nil
}
