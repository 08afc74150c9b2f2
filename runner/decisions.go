package runner

import (
	"context"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Decisions returns the newest decisions of a machine, or of one of its states,
// the oldest first. limit 0 means all.
func (r *Runner) Decisions(ctx context.Context, machineName, state string, limit int) ([]*session.DecisionRecord, error) {
	folded := map[specialist.SessionID]map[int64]*session.DecisionRecord{}
	var newest []*session.DecisionRecord
	for ref, err := range r.store.Decided(ctx, machineName) {
		if err != nil {
			return nil, err
		}
		bySeq := folded[ref.Session]
		if bySeq == nil {
			if bySeq, err = r.decisionsOf(ctx, ref.Session); err != nil {
				return nil, err
			}
			folded[ref.Session] = bySeq
		}
		d := bySeq[ref.Seq]
		if d == nil || state != "" && d.FromState != state {
			continue
		}
		newest = append(newest, d)
		if limit > 0 && len(newest) == limit {
			break
		}
	}
	for i, j := 0, len(newest)-1; i < j; i, j = i+1, j-1 {
		newest[i], newest[j] = newest[j], newest[i]
	}
	return newest, nil
}

// decisionsOf returns the decisions of one session by the sequence number at
// which their record begins.
func (r *Runner) decisionsOf(ctx context.Context, id specialist.SessionID) (map[int64]*session.DecisionRecord, error) {
	bySeq := map[int64]*session.DecisionRecord{}
	var first int64
	f := &session.Folder{Programs: r.programs, Definition: r.definition(ctx, id), Decision: func(d *session.DecisionRecord) { bySeq[first] = d }}
	for rec, err := range r.store.Records(ctx, id, 0) {
		if err != nil {
			return nil, err
		}
		first = rec.First
		if _, err := f.Add(rec.Events); err != nil {
			return nil, session.Corrupt("the log of session "+id.String(), err)
		}
	}
	return bySeq, nil
}

// definition finds the definition of a stored session: loading it compiles it.
func (r *Runner) definition(ctx context.Context, id specialist.SessionID) func(digest string) ([]byte, error) {
	return func(string) ([]byte, error) {
		s, err := r.load(ctx, id)
		if err != nil {
			return nil, err
		}
		return s.Machine().JSON(), nil
	}
}
