package guardlog

import (
	"iter"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A Shadow judges the steps of a session a second time, by other guards and
// beside those in force, and says where the two differ. It sees what the log
// holds, decides nothing and records nothing.
type Shadow struct {
	replayer *guard.Replayer
	log      *Log         // nil before the first record
	found    []ShadowLine // by the newest record

	sum ShadowSummary
}

// ShadowLine is one step on which the guards and the shadow differ.
type ShadowLine struct {
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

// ShadowSummary counts what a shadow has judged.
type ShadowSummary struct {
	V           int    `json:"v"`
	Kind        string `json:"kind"` // shadow_summary
	SessionID   string `json:"sessionId"`
	Checks      int    `json:"checks"`
	Equal       int    `json:"equal"`
	Different   int    `json:"different"`
	Undecidable int    `json:"undecidable"`
}

// NewShadow returns a shadow that has seen no session yet.
func NewShadow(r *guard.Replayer) *Shadow { return &Shadow{replayer: r} }

// Follow takes up a session where it stands: what was judged before is judged
// again, but nothing is said of it.
func (s *Shadow) Follow(sess *session.Session, records iter.Seq2[session.StoredRecord, error]) error {
	if s == nil {
		return nil
	}
	s.begin(sess)
	err := s.log.Fold(records, sess.Sequence)
	s.found, s.sum = nil, ShadowSummary{}
	return err
}

func (s *Shadow) begin(sess *session.Session) { s.log = New(sess, Options{}, s.check) }

// Observe takes in a record and returns the steps in it on which the two differ.
func (s *Shadow) Observe(r session.Change) []ShadowLine {
	if s == nil {
		return nil
	}
	if s.found = nil; s.log == nil {
		s.begin(r.After)
	}
	if s.log.err != nil {
		return nil
	}
	if _, err := s.log.folder.Add(session.AppendEvents(nil, r.Key(), r.First, r.Events)); err != nil && s.log.err == nil {
		s.log.err = err
	}
	return s.found
}

// check judges one step of the log.
func (s *Shadow) check(rec *guard.LogRecord) error {
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
	line := ShadowLine{V: 1, Kind: "shadow", SessionID: rec.Session, Seq: rec.Seq, Status: result.Recorded.String(), Codes: append([]string{}, result.Codes...),
		Shadow: result.Verdict.Status.String(), ShadowCodes: result.Verdict.Codes()}
	if len(result.Verdict.Reasons) > 0 {
		line.Message = result.Verdict.Reasons[0].Message
	}
	s.found = append(s.found, line)
	return nil
}

// Summary returns what was judged of a session, or why it could not be followed.
func (s *Shadow) Summary(id specialist.SessionID) (sum ShadowSummary, err error) {
	sum = s.sum
	sum.V, sum.Kind, sum.SessionID = 1, "shadow_summary", id.String()
	if s.log != nil {
		err = s.log.err
	}
	return sum, err
}
