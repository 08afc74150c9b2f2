package trust_test

import (
	"testing"

	"github.com/dialai/dialai/internal/trust"
)

// TestPoliciesInTurns: while sessions of an older definition are ruled beside those of
// the present one, each change of policy begins the test of the promise anew, so that
// neither is ever established on what was right under the other. Once only one is left,
// it takes as many decisions as ever.
func TestPoliciesInTurns(t *testing.T) {
	l, want := trust.New(), trust.Needed(promise(.1))-10
	under := func(digest string) trust.RiskReport {
		o := judged(.99, true, promise(.1))
		o.PolicyDigest = digest
		add(t, l, o)
		return risk(t, l)
	}
	for i := range 4 * int(want) {
		digest := []string{"older", "present"}[i%2]
		if r := under(digest); r.Tau != 0 || r.State != trust.Collecting || r.Epoch != int64(i+1) {
			t.Fatalf("after %d in turns: %+v", i+1, r)
		}
		q := ask(yesNo, 0, 1)
		q.PolicyDigest, q.Policy.Promise = digest, new(promise(.1))
		if j := l.Judge(q); j.Calibrated || j.Code != trust.RiskNotEstablished {
			t.Fatalf("after %d in turns a judgement is %s", i+1, j.Code)
		}
	}
	for n := int64(2); n <= want; n++ { // the last in turns was the first
		if r := under("present"); (r.Tau > 0) != (n == want) {
			t.Fatalf("after %d alone, of %d: %+v", n, want, r)
		}
	}
	late := judged(.99, false, promise(.1))
	late.PolicyDigest, late.Source, late.Automatic, late.SamplingProb = "older", trust.Audited, true, 50_000_000
	add(t, l, late)
	if r := risk(t, l); r.Tau == 0 {
		t.Errorf("an audit of an older decision closes the present test: %+v", r)
	}
}
