package trust

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// A Lesson is one record of the log that a [Ledger] is folded from: an outcome, a
// second human's answer, or both; or the adoption of a policy.
type Lesson struct {
	Seq     int64       `json:"-"` // place in the store's log, above 0
	Outcome *Outcome    `json:"outcome,omitempty"`
	Second  *SecondLook `json:"secondLook,omitempty"`
	// Settles says that Second was counted as a disagreement before, and a third
	// human has now settled it.
	Settles  bool      `json:"settles,omitempty"`
	Adoption *Adoption `json:"adoption,omitempty"`
}

// Check returns an error unless the lesson can be learned. It wraps [ErrOutcome],
// [ErrSecondLook] or [ErrAdoption].
func (x *Lesson) Check() error {
	switch nothing := x.Outcome == nil && x.Second == nil; {
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
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&x); err != nil {
		return Lesson{}, badOutcome("%v", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return Lesson{}, badOutcome("there is text after the lesson")
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
