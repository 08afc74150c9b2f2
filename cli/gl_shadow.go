package cli

import (
	"iter"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A shadow judges the steps of a session a second time, by other guards and
// beside those in force, and says where the two differ. It sees what the log
// holds, decides nothing and records nothing.
type shadow struct {
	replayer *guard.Replayer
	log      *guardLog    // nil before the first record
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

func newShadow(r *guard.Replayer) *shadow { return &shadow{replayer: r} }

// follow takes up a session where it stands: what was judged before is judged
// again, but nothing is said of it.
func (s *shadow) follow(sess *session.Session, records iter.Seq2[session.StoredRecord, error]) error {
	if s == nil {
		return nil
	}
	s.begin(sess)
	err := s.log.fold(records, sess.Sequence)
	s.found, s.sum = nil, shadowSummary{}
	return err
}

func (s *shadow) begin(sess *session.Session) { s.log = newGuardLog(sess, guardLogOptions{}, s.check) }

// observe takes in a record and returns the steps in it on which the two differ.
func (s *shadow) observe(r session.Record) []shadowLine {
	if s == nil {
		return nil
	}
	if s.found = nil; s.log == nil {
		s.begin(r.After)
	}
	if s.log.err != nil {
		return nil
	}
	key := (&session.Change{Before: r.Before, After: r.After}).Key()
	if _, err := s.log.folder.Add(session.AppendEvents(nil, key, r.First, r.Events)); err != nil && s.log.err == nil {
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

// summary returns what was judged of a session, or why it could not be followed.
func (s *shadow) summary(id specialist.SessionID) (sum shadowSummary, err error) {
	sum = s.sum
	sum.V, sum.Kind, sum.SessionID = 1, "shadow_summary", id.String()
	if s.log != nil {
		err = s.log.err
	}
	return sum, err
}
