package runner

import (
	"context"
	"iter"
	"slices"

	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/internal/stats"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Decisions returns the newest decisions of a machine, or of one of its states,
// the oldest first. limit 0 means all.
func (r *Runner) Decisions(ctx context.Context, machineName string, state machine.StateName, limit int) (list []*session.DecisionRecord, err error) {
	for d, err := range r.NewestDecisions(ctx, machineName, state) {
		if err != nil {
			return nil, err
		}
		if list = append(list, d); len(list) == limit {
			break
		}
	}
	slices.Reverse(list)
	return list, nil
}

// NewestDecisions yields the decisions of a machine, or of one of its states, the newest first. What
// it costs grows with what is looked at.
func (r *Runner) NewestDecisions(ctx context.Context, machineName string, state machine.StateName) iter.Seq2[*session.DecisionRecord, error] {
	return func(yield func(*session.DecisionRecord, error) bool) {
		folded := map[specialist.SessionID]map[int64]*session.DecisionRecord{}
		for ref, err := range r.store.Decided(ctx, machineName) {
			bySeq := folded[ref.Session]
			if err == nil && bySeq == nil {
				bySeq, err = r.SessionDecisions(ctx, ref.Session)
				folded[ref.Session] = bySeq
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if d := bySeq[ref.Seq]; d != nil && (state == "" || d.FromState == string(state)) && !yield(d, nil) {
				return
			}
		}
	}
}

// Tally returns what the decisions of a machine come to. It must not be changed. What it costs grows
// with what has come since somebody asked last.
func (r *Runner) Tally(ctx context.Context, machineName string) (*stats.Tally, error) {
	return r.tallies.Of(ctx, machineName)
}

// SessionDecisions returns the decisions of one session by the sequence number at
// which their record begins: the Seq of a [session.DecisionRef].
func (r *Runner) SessionDecisions(ctx context.Context, id specialist.SessionID) (map[int64]*session.DecisionRecord, error) {
	bySeq := map[int64]*session.DecisionRecord{}
	var decided *session.DecisionRecord
	byRound := map[string]*session.DecisionRecord{}
	f := &session.Folder{Decision: func(d *session.DecisionRecord) { decided, byRound[d.RoundID] = d, d }}
	f.Applied = func(_ int64, ev session.Event, _, _ spend.Book) {
		if v, ok := ev.Data.(*session.Reviewed); ok && v.Looked > 0 {
			if d := byRound[(specialist.RoundKey{Session: id, Round: v.Round, Attempt: v.Attempt}).ID()]; d != nil {
				d.Looks = append(d.Looks, v.Looked)
			}
		}
	}
	for first, err := range r.Fold(ctx, id, f) {
		switch {
		case err != nil:
			return nil, err
		case decided != nil:
			bySeq[first], decided = decided, nil
		}
	}
	return bySeq, nil
}

// Fold reads the log of a session into f, record by record: what f is to be told of is
// set before, and where it finds programs and definitions is set here. It yields the
// sequence number at which each record begins once f has it, and f may be looked at
// then. The error that ends it is ErrNotFound, that of a log that is damaged, or of a
// store that fails.
func (r *Runner) Fold(ctx context.Context, id specialist.SessionID, f *session.Folder) iter.Seq2[int64, error] {
	f.Programs, f.Definition = r.programs, r.definition(ctx, id)
	return func(yield func(int64, error) bool) {
		for rec, err := range r.store.Records(ctx, id, 0) {
			if err == nil {
				if _, err = f.Add(rec.Events); err != nil {
					err = session.Corrupt("the log of session "+id.String(), err)
				}
			}
			if !yield(rec.First, err) || err != nil {
				return
			}
		}
	}
}

// definition finds the definition of a stored session: loading it compiles it.
func (r *Runner) definition(ctx context.Context, id specialist.SessionID) func(digest string) ([]byte, error) {
	return func(digest string) ([]byte, error) {
		s, err := r.load(ctx, id)
		if err != nil {
			return nil, err
		}
		if text := s.Definition(digest); text != nil {
			return text, nil
		}
		return nil, &session.NotFoundError{What: "Definition", ID: digest}
	}
}
