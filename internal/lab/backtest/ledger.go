package backtest

import (
	"context"
	"iter"
	"slices"

	"github.com/dialai/dialai/internal/trust"
)

// What was known when a recorded round was decided. Lessons are learned in the order of the log
// up to the place that a verdict recorded, so the round is judged by the ledger that it knew;
// under another policy each lesson is first made what it would have been.

// A ledger learns the recorded lessons one by one.
type ledger struct {
	now   *trust.Ledger
	place int64 // Lesson.Seq of the newest in now
	next  func() (trust.Lesson, error, bool)
	stop  func()
	held  *trust.Lesson
	// adapt makes of a lesson what it is under the policy that is tried; it
	// returns false for one that is not learned. nil: all as recorded.
	adapt func(*trust.Lesson) bool
}

func newLedger(ctx context.Context, s Source, adapt func(*trust.Lesson) bool) ledger {
	l := ledger{now: trust.New(), adapt: adapt}
	l.next, l.stop = iter.Pull2(s.Lessons(ctx, 0))
	return l
}

// advance learns all lessons up to a place.
func (l *ledger) advance(ctx context.Context, upTo int64) error {
	for {
		if l.held == nil {
			o, err, more := l.next()
			if err != nil || !more {
				return err
			}
			l.held = &o
		}
		if l.held.Seq > upTo {
			return ctx.Err()
		}
		o := l.held
		l.held, l.place = nil, o.Seq
		if l.adapt != nil && !l.adapt(o) {
			continue
		}
		if err := l.now.Learn(*o); err != nil {
			return err
		}
	}
}

// An audit is what a human said of a round that was closed already.
type audit struct {
	truth     string
	automatic bool    // the engine had decided it
	prob      float64 // with which it was drawn
}

// auditsOf returns the newest human word on every round that was looked at again.
func auditsOf(ctx context.Context, s Source, machineName string) (map[string]audit, error) {
	audits := map[string]audit{}
	for l, err := range s.Lessons(ctx, 0) {
		if err != nil {
			return nil, err
		}
		o := l.Outcome
		if o == nil || o.Source == trust.Forced || machineName != "" && o.Machine != machineName {
			continue
		}
		prob := o.SamplingProb.Float()
		if o.SamplingProb == 0 {
			prob = 1
		}
		audits[o.Round] = audit{o.Truth, o.Automatic, prob}
	}
	return audits, nil
}

// learned is what a round adds to an outcome under the policy that is tried.
type learned struct {
	part      *part
	judgement *trust.Judgement // nil if it was not judged by bayes, or not known
	automatic bool
	noQuorum  bool // too few answered to decide it without a human
}

// adapt makes of a recorded lesson what it would be under the policy.
func (f *fold) adapt(x *trust.Lesson) bool {
	early := f.since == 0 || x.Seq < f.since
	if early && f.Cold {
		return false
	}
	if x.Retracts != nil {
		return f.takenBack(x)
	}
	if u := x.Unruled; u != nil && !early {
		copied := *u
		copied.Proposals = slices.DeleteFunc(slices.Clone(u.Proposals), func(p trust.UnruledProposal) bool { return !f.Policy.keeps(p.SpecialistID) })
		x.Unruled = &copied
		return len(copied.Proposals) > 1
	}
	if x.Outcome == nil {
		return x.Adoption == nil // what was adopted is of another policy, or of these rounds
	}
	copied := *x.Outcome
	o := &copied
	x.Outcome = o
	l, ours := f.learned[o.Round]
	if f.Cold {
		f.kept[o.Round] = false
	}
	if early || !ours {
		return true
	}
	delete(f.learned, o.Round)
	q := l.part.now.Question
	o.PolicyDigest, o.Promise = q.PolicyDigest, nil
	o.P, o.Pick, o.N, o.Automatic, o.Stops = 0, "", 0, l.automatic, nil
	o.NoQuorum = l.noQuorum
	if !l.part.new.bayes {
		return true
	}
	o.Promise = q.Policy.Promise
	if j := l.judgement; j != nil && j.Best >= 0 {
		o.P, o.Pick, o.N = j.P[j.Best], j.Pick, j.N
	}
	f.kept[o.Round] = true
	f.keepAsked(o)
	o.Stops = f.stops(o, &l)
	f.collect(o)
	return true
}

// keepAsked leaves those in an outcome whom the policy asks.
func (f *fold) keepAsked(o *trust.Outcome) {
	kept := o.Proposals[:0:0]
	for _, p := range o.Proposals {
		if p.Human || f.Policy.keeps(p.SpecialistID) {
			kept = append(kept, p)
		}
	}
	o.Proposals = kept
}

// takenBack makes of an outcome that is taken back what was learned of it; it returns false
// if that is nothing.
func (f *fold) takenBack(x *trust.Lesson) bool {
	copied := *x.Retracts
	less, known := f.kept[copied.Round]
	if x.Retracts = &copied; less {
		f.keepAsked(&copied)
	}
	return known || !f.Cold
}
