package backtest

import (
	"context"
	"iter"

	"github.com/dialai/dialai/trust"
)

// A ledger learns the recorded outcomes one by one.
type ledger struct {
	now   *trust.Ledger
	place int64 // Outcome.Seq of the newest in now
	next  func() (trust.Outcome, error, bool)
	stop  func()
	held  *trust.Outcome
	// adapt makes of an outcome what it is under the policy that is tried; it
	// returns false for one that is not learned. nil: all as recorded.
	adapt func(*trust.Outcome) bool
}

func newLedger(ctx context.Context, s Source, adapt func(*trust.Outcome) bool) ledger {
	l := ledger{now: trust.New(), adapt: adapt}
	l.next, l.stop = iter.Pull2(s.Outcomes(ctx, 0))
	return l
}

// advance learns all outcomes up to a place.
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
		if err := l.now.Add(*o); err != nil {
			return err
		}
	}
}

// An audit is what a human said of a round that was closed already.
type audit struct {
	truth string
	prob  float64 // with which it was drawn
}

// auditsOf returns the newest human word on every round that was looked at again.
func auditsOf(ctx context.Context, s Source, machineName string) (map[string]audit, error) {
	audits := map[string]audit{}
	for o, err := range s.Outcomes(ctx, 0) {
		if err != nil {
			return nil, err
		}
		if o.Source == trust.Forced || machineName != "" && o.Machine != machineName {
			continue
		}
		prob := o.SamplingProb.Float()
		if o.SamplingProb == 0 {
			prob = 1
		}
		audits[o.Round] = audit{o.Truth, prob}
	}
	return audits, nil
}

// learned is what a round adds to an outcome under the policy that is tried.
type learned struct {
	part      *part
	judgement *trust.Judgement // nil if it was not judged by bayes, or not known
	automatic bool
}

// adapt makes of a recorded outcome what it would be under the policy.
func (f *fold) adapt(o *trust.Outcome) bool {
	early := f.since == 0 || o.Seq < f.since
	if early && f.Cold {
		return false
	}
	l, ours := f.learned[o.Round]
	if early || !ours {
		return true
	}
	delete(f.learned, o.Round)
	q := l.part.now.Question
	o.PolicyDigest, o.Promise = q.PolicyDigest, nil
	o.P, o.Pick, o.N, o.Automatic = 0, "", 0, l.automatic
	if !l.part.new.bayes {
		return true
	}
	o.Promise = q.Policy.Promise
	if j := l.judgement; j != nil && j.Best >= 0 {
		o.P, o.Pick, o.N = j.P[j.Best], j.Pick, j.N
	}
	kept := o.Proposals[:0:0]
	for _, p := range o.Proposals {
		if p.Human || f.Policy.keeps(p.SpecialistID) {
			kept = append(kept, p)
		}
	}
	o.Proposals = kept
	return true
}
