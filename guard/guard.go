// Package guard watches answers and spending; it may stop or warn, never
// choose.
//
// Every check is a pure function of a [Config], a [State] and a [Step]:
// [Config.Check] judges, [State.Advance] counts what was judged fit. [Guard]
// wraps the two for programs that use the package alone. The engine keeps the
// State with the session instead and counts in the transaction that stores the
// transition: that is what two-phase means here.
package guard

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/specialist"
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

// A Reason says why a step did not simply pass.
type Reason struct {
	Code    string   // stable, such as "max_steps"
	Guard   string   // the family of checks it belongs to
	Class   Status   // how severe it is
	Message string   // for people; never contains what was matched
	Limit   string   // the limit as text; "" where there is none
	Seen    string   // what was held against it
	Subject string   // the tool, the index of the pattern or the pack's rule it is about
	Indices []int32  // of the history, for loops
	Found   *Finding // where, for packs
}

// Text returns "code: message".
func (r Reason) Text() string { return r.Code + ": " + r.Message }

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

// with returns the verdict of the given reasons.
func with(reasons []Reason) Verdict {
	if len(reasons) == 0 {
		return Verdict{}
	}
	slices.SortStableFunc(reasons, func(a, b Reason) int { return cmp.Compare(b.Class, a.Class) })
	return Verdict{Status: reasons[0].Class, Reasons: reasons}
}

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
	sorted := with(reasons)
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
	joined := with(append(slices.Clip(v.Reasons), w.Reasons...))
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
	w := with(reasons)
	w.Notices = v.Notices
	return w
}

// A Step is one candidate transition, or one step of any task. The zero value of
// a member means that it is absent.
type Step struct {
	Task        string // the session's id
	Number      int64  // of this step from 1, if the caller counts
	FromState   string
	State       string // the state it leads to
	Transition  string
	Output      string // the winner's reasoning
	HasOutput   bool   // Output counts though it may be empty
	Canned      bool   // Output is a fixed text of a program, so repeating it says nothing
	MetaJSON    json.RawMessage
	ToolCalls   []ToolCall
	Model       string
	TokensIn    int64
	TokensOut   int64
	Cost        exact.Money
	CostGiven   bool // Cost is known, so no price is needed
	Attempt     int64
	Human       bool            // a human's ruling: only budget, tool and pack checks run
	SessionMeta json.RawMessage // the session's metaJson
	Context     json.RawMessage // what else the task knows, where the caller says

	// When the step is judged, when the task began, and when it last moved. 0
	// means that nobody knows; then limits of time do not count.
	At, Began, Moved specialist.Time
}

// says reports whether the output is one that could repeat others.
func (s *Step) says() bool { return s.HasOutput && s.Output != "" && !s.Canned && !s.Human }

// A ToolCall is one call of a tool.
type ToolCall = specialist.ToolCall

// A Checker is a guard of a program's own, run after the built-in checks.
//
// Check judges one step. It must not keep s, and must judge the same step alike.
// A panic counts as an abort with code internal_error, and a status without a
// reason counts too. It may be called concurrently.
type Checker interface {
	Check(ctx context.Context, s Step) Verdict
}

// Func makes a Checker of a function.
type Func func(ctx context.Context, s Step) Verdict

// Check calls f.
func (f Func) Check(ctx context.Context, s Step) Verdict { return f(ctx, s) }

// Reject returns the verdict of one reason; status is its class.
func Reject(status Status, code, message string) Verdict {
	return Verdict{Status: status, Reasons: []Reason{{Code: code, Guard: "custom", Class: status, Message: message}}}
}

// safely asks a guard of the program's own; a panic fails closed.
func safely(ctx context.Context, c Checker, s Step) (v Verdict) {
	defer func() {
		if recover() != nil {
			v = InternalError("a custom guard")
		}
	}()
	return c.Check(ctx, s)
}

// InternalError is the verdict on a step whose check panicked: it fails closed.
func InternalError(stage string) Verdict {
	return Verdict{Status: Abort, Reasons: []Reason{{Code: "internal_error", Guard: "internal", Class: Abort, Message: "a check failed in " + stage}}}
}
