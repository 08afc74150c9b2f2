// Package verdict holds what a check is given and what it may say of it.
//
// A check looks at a [Step] and returns a [Verdict]: a [Status], and for whatever
// did not simply pass a [Reason] each. The checks themselves are elsewhere: those
// that come with the program in guard, others in programs. All values are plain;
// nothing here is changed after it was made.
package verdict

import (
	"cmp"
	"slices"
)

// A Status is a verdict in one word.
type Status uint8

// The statuses, in rising severity: go on, go on but listen, ask again, ask a
// human, stop.
const (
	OK Status = iota
	Warn
	Retry
	Escalate
	Abort
)

var statusNames = [...]string{"ok", "warn", "retry", "escalate", "abort"}

// String returns the name used in JSON. There is nothing more severe than abort.
func (s Status) String() string { return statusNames[min(s, Abort)] }

// MarshalText writes the name.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// StatusNamed is the reverse of String; ok is false for unknown names.
func StatusNamed(name string) (s Status, ok bool) {
	i := slices.Index(statusNames[:], name)
	return Status(max(i, 0)), i >= 0
}

// A Verdict is what the checks say of one step. The zero Verdict is ok.
type Verdict struct {
	Status  Status
	Reasons []Reason // most severe first, then in the order of the checks; nil if ok
	Notices []string // text for the next round's proposers
}

// Reject returns the verdict of one reason; status is its class.
func Reject(status Status, code, message string) Verdict {
	return Verdict{Status: status, Reasons: []Reason{{Code: code, Guard: "custom", Class: status, Message: message}}}
}

// InternalError is the verdict on a step whose check panicked: it fails closed.
func InternalError(stage string) Verdict {
	return Verdict{Status: Abort, Reasons: []Reason{{Code: "internal_error", Guard: "internal", Class: Abort, Message: "a check failed in " + stage}}}
}

// Of returns the verdict of the given reasons.
func Of(reasons []Reason) Verdict {
	if len(reasons) == 0 {
		return Verdict{}
	}
	slices.SortStableFunc(reasons, func(a, b Reason) int { return cmp.Compare(b.Class, a.Class) })
	return Verdict{Status: reasons[0].Class, Reasons: reasons}
}

// Codes returns the codes of all reasons.
func (v Verdict) Codes() []string {
	codes := make([]string, len(v.Reasons))
	for i, r := range v.Reasons {
		codes[i] = r.Code
	}
	return codes
}

// Passed reports whether the step may be executed.
func (v Verdict) Passed() bool { return v.Status <= Warn }

// sound returns v with a status that its reasons bear out: a program's own guard
// may have given none, and its verdict must not be lost for that.
func (v Verdict) sound() Verdict {
	v.Status = min(v.Status, Abort)
	reasons := slices.Clone(v.Reasons)
	worst := OK
	for i := range reasons {
		reasons[i].Class = min(reasons[i].Class, Abort)
		worst = max(worst, reasons[i].Class)
	}
	if v.Status > worst {
		reasons = append(reasons, Reason{Code: "unexplained", Guard: "custom", Class: v.Status, Message: "a guard gave no reason"})
	}
	sorted := Of(reasons)
	sorted.Notices = v.Notices
	return sorted
}

// Join returns the verdict of both v and w.
func (v Verdict) Join(w Verdict) Verdict {
	w = w.sound()
	if len(w.Reasons) == 0 && len(w.Notices) == 0 {
		return v
	}
	v = v.sound()
	joined := Of(append(slices.Clip(v.Reasons), w.Reasons...))
	joined.Notices = append(slices.Clip(v.Notices), w.Notices...)
	return joined
}

// ForHuman returns v as it applies to a human's ruling: a ruling is stopped only
// by an abort, everything else becomes a warning.
func (v Verdict) ForHuman() Verdict {
	if v.Status == OK && len(v.Reasons) == 0 {
		return v
	}
	v = v.sound()
	reasons := v.Reasons
	for i := range reasons {
		if reasons[i].Class < Abort {
			reasons[i].Class = Warn
		}
	}
	w := Of(reasons)
	w.Notices = v.Notices
	return w
}
