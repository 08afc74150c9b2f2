package guardlog

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/packs"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// A session's log told again as an event log of guards. The records are folded
// (session.Folder) and each event is seen as it is applied, with the spending before
// and after, so every charge and every correction becomes a record, and the sums of the
// guards' log are those of the session. A step that was judged is written when the
// event after it has been applied, since only that says whether it was executed, and
// when.
//
// How much of a step is told is up to the reader: all of it, digests, or digests only
// where the texts hold what looks like a secret or personal data. A text is never cut
// in part: what is left could not be judged again. What is withheld of an open round is
// left out altogether, its spending too.

// PayloadRedacted leaves out the texts of steps that hold secrets or personal data.
const PayloadRedacted = "redacted"

// Options say what of a session is told.
type Options struct {
	From    int64            // the first event
	Payload string           // of a step: redacted, full or digest; "" is full
	Hidden  map[int32]string // the rounds that are withheld, and why
}

// A Log tells the events of a session as guards see them.
type Log struct {
	Options
	take   func(*guard.LogRecord) error // takes the records
	err    error                        // the first
	prices string

	session *session.Session
	round   int64
	folder  *session.Folder
	held    []session.Ask // that are out
	gated   bool          // the event before was a step that was judged
	at      specialist.Time
	pending *guard.LogRecord // a step that was judged: its event has not been applied yet
}

// New returns the log of a session of which nothing has been told yet. take gets
// each record of it.
func New(s *session.Session, o Options, take func(*guard.LogRecord) error) *Log {
	w := &Log{Options: o, take: take, session: s}
	w.folder = &session.Folder{
		Programs:   session.NewPrograms(),
		Definition: func(digest string) ([]byte, error) { return s.Definition(digest), nil },
		Gate:       w.gate, Applied: w.applied,
	}
	return w
}

// Fold tells the records of the session up to an event.
func (w *Log) Fold(records iter.Seq2[session.StoredRecord, error], last int64) error {
	for rec, err := range records {
		if err != nil {
			return err
		}
		if rec.First > last {
			break
		}
		if _, err := w.folder.Add(rec.Events); err != nil {
			return &session.CorruptError{What: fmt.Sprintf("the record at event %d", rec.First), Problem: err.Error()}
		}
		if w.err != nil {
			return w.err
		}
	}
	return nil
}

// write hands on one record of the log. Whatever guards wrote of an open round tells what
// was proposed in it: who answered, with which model, at what cost.
func (w *Log) write(seq int64, at specialist.Time, rec *guard.LogRecord) {
	hidden := w.Hidden[int32(rec.Round)] != ""
	if seq < w.From || w.err != nil || hidden && w.session.Opens(int32(rec.Round)) {
		return
	}
	if hidden {
		conceal(rec)
	}
	rec.V, rec.Seq, rec.Session = 1, seq, w.session.ID.String()
	rec.TS = append(at.Append([]byte{'"'}), '"')
	w.err = w.take(rec)
}

// conceal leaves out of a record of a closed round that waits for a review who was asked and
// what was not executed. What was spent stays, for all that follows goes by it.
func conceal(rec *guard.LogRecord) {
	if rec.Meta != nil {
		rec.Meta.Specialist = ""
	}
	if rec.Type == guard.LogCheck && len(rec.Reason) > 0 {
		rec.Payload, rec.Input = guard.PayloadNone, nil
	}
}

// gate takes in a step that was judged. Where it was executed the fold tells of
// it at the next event, so it is written once that was applied.
func (w *Log) gate(seq int64, g *session.Gated, step verdict.Step, known bool) {
	if w.round == int64(w.session.Round) && g.IsHuman && w.session.ConcealsRulings() {
		return
	}
	rec := &guard.LogRecord{
		Seq: seq, Round: w.round, Type: guard.LogCheck, Verdict: g.Verdict.Status.String(),
		Payload: guard.PayloadNone, Meta: metaOf(g.Verdict),
	}
	if len(g.Verdict.Reasons) > 0 {
		rec.Reason, rec.Message = g.Verdict.Reasons[0].Code, g.Verdict.Reasons[0].Message
	}
	if known {
		rec.Payload, rec.Input = guard.PayloadFull, guard.LogInputOf(step)
		rec.Input.Charged = true
		if step.TokensIn != 0 || step.TokensOut != 0 {
			rec.Tokens = &guard.LogTokens{Input: step.TokensIn, Output: step.TokensOut}
		}
		if w.digested(rec.Input) {
			rec.Payload, rec.Input = guard.PayloadDigest, rec.Input.Digested()
		}
	}
	w.pending = rec
}

// digested reports whether the texts of a step are to stand as digests: all of
// them, or those of a step in which there is something that nobody should read.
// A text is not cut to pieces, since it could not be judged again.
func (w *Log) digested(in *guard.LogInput) bool {
	if w.Payload != PayloadRedacted {
		return w.Payload == string(guard.PayloadDigest)
	}
	texts := []string{string(in.Context), string(in.MetaJSON), string(in.SessionMeta)}
	if in.Output != nil {
		texts = append(texts, *in.Output)
	}
	for _, c := range in.ToolCalls {
		texts = append(texts, string(c.Args), string(c.Result))
	}
	return slices.ContainsFunc(texts, func(text string) bool { return packs.Redact(text) != text })
}

func metaOf(v verdict.Verdict) *guard.LogMeta {
	if len(v.Reasons) == 0 {
		return nil
	}
	meta := &guard.LogMeta{}
	for _, r := range v.Reasons {
		meta.Reasons = append(meta.Reasons, guard.LogReason{Code: r.Code, Guard: r.Guard, Class: r.Class.String()})
	}
	return meta
}

// flush writes the step that was judged.
func (w *Log) flush() {
	if w.pending != nil {
		w.write(w.pending.Seq, w.at, w.pending)
		w.pending = nil
	}
}

// applied takes in an event of the session.
func (w *Log) applied(seq int64, ev session.Event, before, after spend.Book) {
	if _, executes := ev.Data.(*session.Executed); !executes {
		w.at = ev.At
	}
	w.flush()
	w.at = ev.At
	switch d := ev.Data.(type) {
	case *session.Created:
		w.write(seq, ev.At, w.config())
		if from := d.Options.ForkedFrom; from != nil { // it goes on with a round
			w.round = int64(from.Round)
		}
	case *session.RoundOpened:
		w.round = int64(d.Round)
		for _, notice := range d.Notices {
			w.write(seq, ev.At, &guard.LogRecord{Round: w.round, Type: guard.LogNotice, Message: notice})
		}
	case *session.Probed:
		if d.Value != nil {
			w.write(seq, ev.At, &guard.LogRecord{Round: w.round, Type: guard.LogProbe, Stage: d.Stage, Value: d.Value})
		}
	case *session.Resumed:
		if d.Cleared {
			w.write(seq, ev.At, &guard.LogRecord{Round: w.round, Type: guard.LogCleared, Message: d.Note, Meta: &guard.LogMeta{Actor: d.By()}})
		}
		if len(d.Raised) > 0 {
			w.write(seq, ev.At, &guard.LogRecord{Round: w.round, Type: guard.LogRaised, Message: d.Note, Meta: &guard.LogMeta{Actor: d.By(), Raised: d.Raised}})
		}
	}
	w.ledger(seq, ev, before)
	if before != after {
		w.write(seq, ev.At, w.spent(ev.Data, before, after))
	}
}

// config describes the guards in force.
func (w *Log) config() *guard.LogRecord {
	def := w.session.Machine().Definition()
	meta := &guard.LogMeta{Machine: def.MachineName, Digest: w.session.Machine().Digest(), Guards: def.Guards}
	if c, problems := guard.ParseStored([]byte(cmp.Or(string(def.Guards), "{}"))); len(problems) == 0 {
		meta.Profile, w.prices = c.Profile, c.Cost.Version
	}
	w.prices = cmp.Or(w.prices, w.session.Options().Prices)
	for _, s := range def.States {
		if s.Guards != nil {
			meta.States = append(meta.States, guard.LogState{State: s.Name, Guards: s.Guards})
		}
	}
	return &guard.LogRecord{Type: guard.LogConfig, Meta: meta}
}

// ledgerOf describes what a session has spent.
func ledgerOf(b spend.Book) *guard.LogLedger {
	return &guard.LogLedger{Tokens: exact.AddSat(b.TokensIn, b.TokensOut), Calls: b.Calls, USD: b.Money}
}

// spent describes what an event added to what the session has spent.
func (w *Log) spent(data session.Data, before, after spend.Book) *guard.LogRecord {
	usd, calls := after.Money.Add(-before.Money), after.Calls-before.Calls
	meta := &guard.LogMeta{Unpriced: after.Unpriced - before.Unpriced, Estimated: after.Estimated - before.Estimated, Prices: w.prices}
	if calls != 1 {
		meta.Calls = &calls
	}
	rec := &guard.LogRecord{
		Round: w.round, Type: guard.LogSpend, USD: &usd, Meta: meta,
		Ledger: ledgerOf(after),
	}
	if in, out := after.TokensIn-before.TokensIn, after.TokensOut-before.TokensOut; in != 0 || out != 0 {
		rec.Tokens = &guard.LogTokens{Input: in, Output: out}
		meta.Correction = calls != 0 && (in < 0 || out < 0)
	}
	meta.Correction = meta.Correction || calls < 0 || calls > 0 && usd < 0
	switch d := data.(type) {
	case *session.Proposed:
		meta.Specialist = d.SpecialistID
		if d.Detail != nil {
			meta.Model, meta.Asked = d.Detail.Model, d.Detail.Asked
		}
	case *session.Asked:
		for _, a := range d.Asks {
			if a.Remote != nil && a.Remote.Lost {
				meta.Specialist = a.SpecialistID // one of those that are asked again
			}
		}
	case *session.AskFailed:
		meta.Specialist, meta.Model, meta.Asked = d.SpecialistID, d.Model, d.Asked
	case *session.Probed:
		meta.Specialist, meta.Model, meta.Asked, rec.Stage = d.Guard, d.Model, d.Asked, d.Stage
	case *session.Discarded:
		meta.Specialist, meta.Model, meta.Asked = d.SpecialistID, d.Model, d.Asked
	}
	return rec
}
