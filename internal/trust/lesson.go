package trust

import (
	"encoding/json"
	"fmt"

	"github.com/dialai/dialai/specialist"
)

// A Lesson is one record of the log that a [Ledger] is folded from: an outcome, a
// second human's answer, or both; or the adoption of a policy, an outcome that is taken back,
// or a round without a human's word.
type Lesson struct {
	Seq int64 `json:"-"` // place in the store's log, above 0
	// At is when the record of the log was written; 0 if that is not known. Nothing is learned
	// from it.
	At      specialist.Time `json:"-"`
	Outcome *Outcome        `json:"outcome,omitempty"`
	Second  *SecondLook     `json:"secondLook,omitempty"`
	// Settles says that Second was counted as a disagreement before, and a third
	// human has now settled it.
	Settles  bool      `json:"settles,omitempty"`
	Adoption *Adoption `json:"adoption,omitempty"`
	// Retracts is an outcome that was learned, and that the human who gave it takes back: it
	// leaves what everybody's word counts for.
	Retracts *Outcome `json:"retracts,omitempty"`
	// Unruled is a round of which no human has said what is right.
	Unruled *Unruled `json:"unruled,omitempty"`
}

// Check returns an error unless the lesson can be learned. It wraps [ErrOutcome],
// [ErrSecondLook] or [ErrAdoption].
func (x *Lesson) Check() error {
	switch nothing := x.Outcome == nil && x.Second == nil; {
	case x.Unruled != nil && (x.Adoption != nil || x.Retracts != nil || !nothing):
		return badOutcome("a round without a human's word stands beside something else: it is a lesson of its own")
	case x.Unruled != nil:
		return x.Unruled.Check()
	case x.Retracts != nil && (x.Adoption != nil || !nothing):
		return badOutcome("what is taken back stands beside something else: it is a lesson of its own")
	case x.Retracts != nil:
		return x.Retracts.Check()
	case x.Adoption != nil && !nothing:
		return fmt.Errorf("%w: it stands beside something else: it is a lesson of its own", ErrAdoption)
	case x.Adoption != nil:
		return x.Adoption.Check()
	case nothing:
		return badOutcome("a lesson holds neither an outcome nor a second look nor an adoption")
	}
	if x.Second != nil {
		if err := x.Second.check(); err != nil {
			return err
		}
		if x.Settles && (x.Second.Settled == "" || x.Second.First == x.Second.Second) {
			return fmt.Errorf("%w: there is nothing to settle: give the third choice of a disagreement", ErrSecondLook)
		}
	}
	if x.Outcome != nil {
		return x.Outcome.Check()
	}
	return nil
}

// Encode returns x as one line of JSON without blanks, without its Seq.
func (x *Lesson) Encode() ([]byte, error) {
	if err := x.Check(); err != nil {
		return nil, err
	}
	return json.Marshal(x)
}

// DecodeLesson reads what [Lesson.Encode] wrote, as strictly as [DecodeOutcome].
func DecodeLesson(data []byte) (Lesson, error) {
	var x Lesson
	if err := decode(data, &x, "lesson"); err != nil {
		return Lesson{}, err
	}
	return x, x.Check()
}

// Learn counts a lesson. It returns an error, and changes nothing, if
// [Lesson.Check] refuses it.
func (l *Ledger) Learn(x Lesson) error {
	if err := x.Check(); err != nil {
		return err
	}
	if x.Adoption != nil {
		return l.Adopt(*x.Adoption)
	}
	if x.Unruled != nil {
		return l.AddUnruled(*x.Unruled)
	}
	if x.Retracts != nil {
		return l.Retract(*x.Retracts)
	}
	if s := x.Second; s != nil {
		count := l.AddSecondLook
		if x.Settles {
			count = l.Settle
		}
		if err := count(*s); err != nil {
			return err
		}
	}
	if x.Outcome == nil {
		return nil
	}
	o := *x.Outcome
	o.Seq = x.Seq
	return l.Add(o)
}
