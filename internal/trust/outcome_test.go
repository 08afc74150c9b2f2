package trust_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
)

func fullOutcome() trust.Outcome {
	return trust.Outcome{
		Seq: 7, Session: "s1", Round: "r1", Machine: "desk", State: "open", DefinitionDigest: "d", Options: []string{"yes", "no"}, Truth: "no",
		Source: trust.Audited, HumanID: "carol", Blind: true, Automatic: true, SamplingProb: 250_000_000, PolicyDigest: "p",
		Promise: &trust.Promise{MaxError: 50_000_000, Confidence: 900_000_000}, P: 970_000_000, Pick: "yes", N: 40,
		Proposals: []trust.OutcomeProposal{
			{SpecialistID: "a", Version: "1", Model: "m", Transition: "yes", Cost: 5_000_000_000, LatencyMS: 12, OptionOrder: "no"},
			{SpecialistID: "b", Failed: true}, {SpecialistID: "carol", Transition: "no", Human: true},
			{SpecialistID: "c", Transition: "no", Shadow: true}, {SpecialistID: "a", Version: "1", Transition: "no", Replaced: true},
		},
	}
}

func TestOutcomeIsStableJSON(t *testing.T) {
	o := fullOutcome()
	text, err := o.Encode()
	want := `{"seq":7,"session":"s1","round":"r1","machine":"desk","state":"open","definitionDigest":"d","options":["yes","no"],"truth":"no","source":"audit","humanId":"carol","blind":true,"automatic":true,"samplingProb":0.25,"policyDigest":"p","promise":{"maxError":0.05,"confidence":0.9},"p":0.97,"pick":"yes","n":40,"proposals":[{"specialist":"a","version":"1","model":"m","transition":"yes","cost":0.005,"latencyMs":12,"optionOrder":"no"},{"specialist":"b","failed":true},{"specialist":"carol","transition":"no","human":true},{"specialist":"c","transition":"no","shadow":true},{"specialist":"a","version":"1","transition":"no","replaced":true}]}`
	if err != nil || string(text) != want {
		t.Fatalf("an outcome is written (%v)\n%s\nwant\n%s", err, text, want)
	}
	if back, err := trust.DecodeOutcome(text); err != nil || !reflect.DeepEqual(back, o) {
		t.Errorf("it is read as (%v)\n%+v", err, back)
	}
}

// TestBadOutcomes: each is refused with a text that names what is wrong, and the
// ledger stays as it was.
func TestBadOutcomes(t *testing.T) {
	for _, c := range []struct {
		says string
		do   func(o *trust.Outcome)
	}{
		{"machine is empty", func(o *trust.Outcome) { o.Machine = "" }},
		{"state is empty", func(o *trust.Outcome) { o.State = "" }},
		{"options is empty", func(o *trust.Outcome) { o.Options = nil }},
		{`truth "maybe"`, func(o *trust.Outcome) { o.Truth = "maybe" }},
		{`pick "maybe"`, func(o *trust.Outcome) { o.Pick = "maybe" }},
		{`source "model"`, func(o *trust.Outcome) { o.Source = "model" }},
		{"samplingProb 2", func(o *trust.Outcome) { o.SamplingProb = 2 * exact.One }},
		{"p -0.000000001", func(o *trust.Outcome) { o.P = -1 }},
		{"n -1", func(o *trust.Outcome) { o.N = -1 }},
		{"options[1] is empty", func(o *trust.Outcome) { o.Options = []string{"no", ""}; o.Pick = "no" }},
		{`options[1]: "no" is listed twice`, func(o *trust.Outcome) { o.Options = []string{"no", "no"}; o.Pick = "no" }},
		{"promise: maxError 0", func(o *trust.Outcome) { o.Promise = &trust.Promise{Confidence: 1} }},
		{"promise: confidence 1", func(o *trust.Outcome) { o.Promise = &trust.Promise{MaxError: 1, Confidence: exact.One} }},
		{"promise: scopes -1", func(o *trust.Outcome) { o.Promise.Scopes = -1 }},
		{`proposals[0]`, func(o *trust.Outcome) { o.Proposals[0].SpecialistID = "" }},
		{`proposals[0]`, func(o *trust.Outcome) { o.Proposals[0].Transition = "maybe" }},
		{`proposals[3]`, func(o *trust.Outcome) { o.Proposals[3].SpecialistID = "a" }},
	} {
		o := fullOutcome()
		c.do(&o)
		l := trust.New()
		err := l.Add(o)
		if !errors.Is(err, trust.ErrOutcome) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("want an error that says %q, got %v", c.says, err)
		}
		if len(l.Machines()) != 0 || l.N("desk") != 0 {
			t.Errorf("%s: it was counted", c.says)
		}
		if _, err := o.Encode(); err == nil {
			t.Errorf("%s: it is written", c.says)
		}
	}
}

func TestDecodeOutcomeRefuses(t *testing.T) {
	o := fullOutcome()
	good, _ := o.Encode()
	for _, bad := range []string{"", "{}", "null", "[]", string(good[:len(good)-1]), string(good) + "1", `{"weight":1,` + string(good[1:]),
		strings.Replace(string(good), `"n":40`, `"n":"x"`, 1), strings.Replace(string(good), `"p":0.97`, `"p":NaN`, 1)} {
		if _, err := trust.DecodeOutcome([]byte(bad)); !errors.Is(err, trust.ErrOutcome) {
			t.Errorf("%.60s is read: %v", bad, err)
		}
	}
}

// FuzzOutcome: whatever is read can be counted, judged and written again, and
// no probability is out of range.
func FuzzOutcome(f *testing.F) {
	o := fullOutcome()
	text, _ := o.Encode()
	f.Add(text)
	f.Add([]byte(`{"machine":"m","state":"s","options":["a"],"truth":"a","source":"forced"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := trust.DecodeOutcome(data)
		if err != nil {
			return
		}
		l := trust.New()
		for range 12 {
			if err := l.Add(o); err != nil {
				t.Fatal(err)
			}
		}
		checkJudgement(t, l.Judge(trust.Question{Machine: o.Machine, State: o.State, Options: o.Options, Votes: []trust.Vote{{SpecialistID: "a"}, {SpecialistID: "b", Option: len(o.Options) - 1}}}))
		again, err := o.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := trust.DecodeOutcome(again); err != nil || !reflect.DeepEqual(back, o) {
			t.Fatalf("%s is read back as %+v (%v)", again, back, err)
		}
	})
}

// checkJudgement fails if a judgement is not sound in itself.
func checkJudgement(t *testing.T, j trust.Judgement) {
	t.Helper()
	var sum exact.Billionths
	for _, p := range j.P {
		if p < 0 || p > exact.One {
			t.Fatalf("a probability is %s: %+v", p, j)
		}
		sum += p
	}
	if slack := exact.Billionths(len(j.P)); len(j.P) > 0 && (sum < exact.One-slack || sum > exact.One+slack) {
		t.Fatalf("the probabilities %s add up to %s", j.P, sum)
	}
	if j.NEff < 0 || j.NEff > exact.Billionths(len(j.Votes)+1)*10*exact.One {
		t.Fatalf("%d votes are worth %s", len(j.Votes), j.NEff)
	}
	for _, v := range j.Votes {
		if v.Trust < 0 || v.Trust > exact.One || v.Discount < 0 || v.Discount > exact.One {
			t.Fatalf("a vote is %+v", v)
		}
	}
}
