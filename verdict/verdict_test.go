package verdict_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/dialai/dialai/verdict"
)

func TestStatusNames(t *testing.T) {
	for i, name := range []string{"ok", "warn", "retry", "escalate", "abort"} {
		s := verdict.Status(i)
		back, ok := verdict.StatusNamed(name)
		if text, err := json.Marshal(s); s.String() != name || string(text) != `"`+name+`"` || err != nil || back != s || !ok {
			t.Errorf("status %d is %s and %s (%v); %q is %d", i, s, text, err, name, back)
		}
	}
	if s, ok := verdict.StatusNamed("fatal"); s != verdict.OK || ok {
		t.Errorf("StatusNamed(fatal) = %s, %t", s, ok)
	}
	if got := verdict.Status(200).String(); got != "abort" {
		t.Errorf("what is more severe than abort prints as %q", got)
	}
}

func reason(class verdict.Status, code string) verdict.Reason {
	return verdict.Reason{Code: code, Class: class}
}

func TestJoin(t *testing.T) {
	ok := verdict.Verdict{}
	warn := verdict.Verdict{Status: verdict.Warn, Reasons: []verdict.Reason{reason(verdict.Warn, "w")}, Notices: []string{"mind the gap"}}
	retry := verdict.Reject(verdict.Retry, "r", "again")
	for _, c := range []struct {
		name   string
		v, w   verdict.Verdict
		want   string
		notice string
	}{
		{"two of nothing", ok, ok, "ok", "[]"},
		{"a warning after nothing", ok, warn, "warn [w]", "[mind the gap]"},
		{"nothing after a warning", warn, ok, "warn [w]", "[mind the gap]"},
		{"the more severe comes first", warn, retry, "retry [r w]", "[mind the gap]"},
		{"equals stay in order", verdict.Reject(verdict.Retry, "a", ""), retry, "retry [a r]", "[]"},
		{"a notice alone", retry, verdict.Verdict{Notices: []string{"note"}}, "retry [r]", "[note]"},
		{"notices add up", warn, warn, "warn [w w]", "[mind the gap mind the gap]"},
		// Verdicts that a program's own guard may make by hand.
		{"a status without a reason", ok, verdict.Verdict{Status: verdict.Abort}, "abort [unexplained]", "[]"},
		{"a status without a reason before", verdict.Verdict{Status: verdict.Escalate}, warn, "escalate [unexplained w]", "[mind the gap]"},
		{"a status above its reasons", ok, verdict.Verdict{Status: verdict.Abort, Reasons: []verdict.Reason{reason(verdict.Warn, "w")}}, "abort [unexplained w]", "[]"},
		{"a status below its reasons", ok, verdict.Verdict{Reasons: []verdict.Reason{reason(verdict.Abort, "a")}}, "abort [a]", "[]"},
		{"reasons in no order", verdict.Verdict{}, verdict.Verdict{Status: verdict.Abort, Reasons: []verdict.Reason{reason(verdict.Warn, "w"), reason(verdict.Abort, "a")}}, "abort [a w]", "[]"},
		{"a class that does not exist", ok, verdict.Verdict{Status: 99, Reasons: []verdict.Reason{reason(99, "x")}}, "abort [x]", "[]"},
	} {
		v, w := clone(c.v), clone(c.w)
		joined := c.v.Join(c.w)
		if got := shown(joined); got != c.want || fmt.Sprint(joined.Notices) != c.notice {
			t.Errorf("%s: %s %v, want %s %s", c.name, got, joined.Notices, c.want, c.notice)
		}
		if !reflect.DeepEqual(c.v, v) || !reflect.DeepEqual(c.w, w) {
			t.Errorf("%s: joining changed %v or %v", c.name, v, w)
		}
	}
}

// shown returns the status of a verdict and its codes.
func shown(v verdict.Verdict) string {
	if len(v.Reasons) == 0 {
		return v.Status.String()
	}
	return fmt.Sprintf("%s %v", v.Status, v.Codes())
}

func clone(v verdict.Verdict) verdict.Verdict {
	v.Reasons, v.Notices = slices.Clone(v.Reasons), slices.Clone(v.Notices)
	return v
}

// TestJoinProperties: the status is that of the most severe part, which comes
// first, and nothing is lost.
func TestJoinProperties(t *testing.T) {
	const seed = 20260301
	rng := rand.New(rand.NewPCG(seed, 3))
	for range 2000 {
		var all verdict.Verdict
		worst, n := verdict.OK, rng.IntN(6)
		for i := range n {
			class := verdict.Status(1 + rng.IntN(4))
			worst = max(worst, class)
			all = all.Join(verdict.Reject(class, fmt.Sprint(i), ""))
		}
		if all.Status != worst || len(all.Reasons) != n || all.Passed() != (worst <= verdict.Warn) {
			t.Fatalf("seed %d: %v, want %s of %d reasons", seed, all, worst, n)
		}
		for i := 1; i < n; i++ {
			a, b := all.Reasons[i-1], all.Reasons[i]
			if a.Class < b.Class || a.Class == b.Class && a.Code > b.Code {
				t.Fatalf("seed %d: reasons in the order %v", seed, all.Reasons)
			}
		}
	}
}

// TestMeta: the subject of a reason has the name of what it is.
func TestMeta(t *testing.T) {
	for _, c := range []struct {
		r    verdict.Reason
		want string
	}{
		{verdict.Reason{Guard: "limits", Code: "forbidden_pattern", Subject: "2"}, `{"pattern_index":2}`},
		{verdict.Reason{Guard: "loop", Code: "loop_state_cycle", Subject: "plan"}, `{"state":"plan"}`},
		{verdict.Reason{Guard: "loop", Code: "loop_repeated_call", Subject: "search"}, `{"tool":"search"}`},
		{verdict.Reason{Guard: "loop", Code: "loop_cycle"}, `null`},
	} {
		if got, err := json.Marshal(c.r.Meta()); err != nil || string(got) != c.want {
			t.Errorf("%s has %s (%v), want %s", c.r.Code, got, err, c.want)
		}
	}
}

func TestForHuman(t *testing.T) {
	for _, c := range []struct {
		v    verdict.Verdict
		want string
	}{
		{verdict.Verdict{}, "ok"},
		{verdict.Reject(verdict.Warn, "a", ""), "warn [a]"},
		{verdict.Reject(verdict.Retry, "a", ""), "warn [a]"},
		{verdict.Reject(verdict.Escalate, "a", ""), "warn [a]"},
		{verdict.Reject(verdict.Abort, "a", ""), "abort [a]"},
		{verdict.Reject(verdict.Escalate, "a", "").Join(verdict.Reject(verdict.Retry, "b", "")), "warn [a b]"},
		{verdict.Reject(verdict.Retry, "a", "").Join(verdict.Reject(verdict.Abort, "b", "")), "abort [b a]"},
		{verdict.Verdict{Status: verdict.Retry}, "warn [unexplained]"},
	} {
		c.v.Notices = []string{"kept"}
		before := clone(c.v)
		h := c.v.ForHuman()
		if got := shown(h); got != c.want || !slices.Equal(h.Notices, c.v.Notices) {
			t.Errorf("%s becomes %s %v, want %s", shown(c.v), got, h.Notices, c.want)
		}
		if !reflect.DeepEqual(before, c.v) {
			t.Errorf("ForHuman changed %v to %v", before, c.v)
		}
	}
}
