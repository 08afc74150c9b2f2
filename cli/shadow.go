package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/dialai/dialai/files"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// A shadow judges the steps of a session a second time, by other guards and
// beside those in force, and says where the two differ. It sees what the log
// holds, decides nothing and records nothing.
type shadow struct {
	replayer *guard.Replayer
	fold     *session.Folder
	log      guardLog
	found    []shadowLine // by the newest record

	sum shadowSummary
}

// shadowLine is one step on which the guards and the shadow differ.
type shadowLine struct {
	V           int      `json:"v"`
	Kind        string   `json:"kind"` // shadow
	SessionID   string   `json:"sessionId"`
	Seq         int64    `json:"seq"` // of the event that records the verdict
	Status      string   `json:"status"`
	Codes       []string `json:"codes"`
	Shadow      string   `json:"shadow"`
	ShadowCodes []string `json:"shadowCodes"`
	Message     string   `json:"message,omitempty"`
}

// shadowSummary counts what a shadow has judged.
type shadowSummary struct {
	V           int    `json:"v"`
	Kind        string `json:"kind"` // shadow_summary
	SessionID   string `json:"sessionId"`
	Checks      int    `json:"checks"`
	Equal       int    `json:"equal"`
	Different   int    `json:"different"`
	Undecidable int    `json:"undecidable"`
}

// loadShadow reads the guards that --guards names; nil if it names none. Guards
// of a file of their own are taken for a machine's.
func (a *app) loadShadow(path string) (*shadow, error) {
	if path == "" {
		return nil, nil
	}
	data, err := a.readFile(path, files.Guards)
	if err != nil {
		return nil, err
	}
	var c *guard.Config
	var states map[string]*guard.Config
	if holdsMachine(path, data) {
		m, err := a.parseMachine(path, data)
		if err != nil {
			return nil, err
		}
		if c, states, err = guardsOf(m); err != nil {
			return nil, err
		}
	} else if err := machine.ParseSection(path, data, guard.HoldsSecret, func(section []byte) (problems []machine.Problem) {
		c, problems = guard.Parse(section, false)
		return problems
	}); err != nil {
		return nil, err
	}
	return &shadow{replayer: guard.NewReplayer(c, states)}, nil
}

// follow takes up a session where it stands: what was judged before is judged
// again, but nothing is said of it.
func (s *shadow) follow(ctx context.Context, e *engine, sess *session.Session) error {
	if s == nil {
		return nil
	}
	s.begin(sess)
	for rec, err := range e.store.Records(ctx, sess.ID, 1) {
		if err != nil {
			return err
		}
		if rec.First > sess.Sequence {
			break
		}
		if _, err := s.fold.Add(rec.Events); err != nil {
			return &session.CorruptError{What: fmt.Sprintf("the record at event %d", rec.First), Problem: err.Error()}
		}
	}
	s.found, s.sum = nil, shadowSummary{}
	return s.log.err
}

func (s *shadow) begin(sess *session.Session) {
	definition := sess.Machine().JSON()
	s.log = guardLog{session: sess, take: s.check}
	s.fold = &session.Folder{
		Programs:   session.NewPrograms(),
		Definition: func(string) ([]byte, error) { return definition, nil },
		Gate:       s.log.gate, Applied: s.log.applied,
	}
	s.log.folder = s.fold
}

// observe takes in a record and returns the steps in it on which the two differ.
func (s *shadow) observe(r session.Record) []shadowLine {
	if s == nil || s.log.err != nil {
		return nil
	}
	if s.found = nil; s.fold == nil {
		s.begin(r.After)
	}
	key := (&session.Change{Before: r.Before, After: r.After}).Key()
	if _, err := s.fold.Add(session.AppendEvents(nil, key, r.First, r.Events)); err != nil && s.log.err == nil {
		s.log.err = err
	}
	return s.found
}

// check judges one step of the log.
func (s *shadow) check(rec *guard.LogRecord) error {
	result, isCheck := s.replayer.Next(*rec)
	if !isCheck {
		return nil
	}
	s.sum.Checks++
	switch {
	case result.Undecidable != "":
		s.sum.Undecidable++
		return nil
	case !result.Differs:
		s.sum.Equal++
		return nil
	}
	s.sum.Different++
	line := shadowLine{V: 1, Kind: "shadow", SessionID: rec.Session, Seq: rec.Seq, Status: result.Recorded.String(), Codes: append([]string{}, result.Codes...),
		Shadow: result.Verdict.Status.String(), ShadowCodes: result.Verdict.Codes()}
	if len(result.Verdict.Reasons) > 0 {
		line.Message = result.Verdict.Reasons[0].Message
	}
	s.found = append(s.found, line)
	return nil
}

// shadowed shows the steps on which guards and shadow differ.
func (p *printer) shadowed(lines []shadowLine) {
	for _, l := range lines {
		if p.a.flags.json {
			_ = printJSON(p.out, l) // its error stays with out, and end returns it
			continue
		}
		p.line("Shadow %s%s, where the guards say %s%s", p.paint.yellow(l.Shadow), because(l.ShadowCodes), l.Status, because(cleanAll(l.Codes)))
	}
}

// because returns codes in brackets, "" if there are none.
func because(codes []string) string {
	if len(codes) == 0 {
		return ""
	}
	return " (" + strings.Join(codes, ", ") + ")"
}

// endShadow sums up what the shadow has judged.
func (p *printer) endShadow(r runner.Result) error {
	s := p.shadow
	if s == nil {
		return nil
	}
	if s.log.err != nil {
		p.hint("the shadow could not follow the session: %s", clean(s.log.err.Error()))
		return nil
	}
	s.sum.V, s.sum.Kind, s.sum.SessionID = 1, "shadow_summary", r.Session.ID.String()
	switch {
	case p.a.flags.json:
		return printJSON(p.out, s.sum)
	case !p.a.flags.quiet:
		fmt.Fprintf(p.out, "Shadow: %s judged without effect, %d equal, %d different, %d undecidable\n", plural(s.sum.Checks, "step"), s.sum.Equal, s.sum.Different, s.sum.Undecidable)
	}
	return nil
}
