package trust_test

import (
	"regexp"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
)

// votes returns a round of machine "desk" in state "open" in which specialists
// propose the options named.
func ask(options []string, choices ...int) trust.Question {
	q := trust.Question{Machine: "desk", State: "open", Options: options}
	for i, c := range choices {
		q.Votes = append(q.Votes, trust.Vote{SpecialistID: string(rune('a' + i)), Option: c})
	}
	return q
}

// outcome returns the same round once a human has chosen.
func outcome(q trust.Question, truth int) trust.Outcome {
	o := trust.Outcome{Machine: q.Machine, State: q.State, Options: q.Options, Truth: q.Options[truth], Source: trust.Forced, Blind: true}
	for _, v := range q.Votes {
		o.Proposals = append(o.Proposals, trust.OutcomeProposal{SpecialistID: v.SpecialistID, Version: v.Version, Model: v.Model, Transition: q.Options[v.Option], OptionOrder: v.OptionOrder})
	}
	return o
}

var yesNo = []string{"yes", "no"}

// TestLedgerLearnsWhomToTrust: before any outcome the majority leads; afterwards
// the one who was always right outweighs the two who never were.
func TestLedgerLearnsWhomToTrust(t *testing.T) {
	l := trust.New()
	q := ask(yesNo, 0, 1, 1)
	before := l.Judge(q)
	if before.Pick != "no" || before.Code != trust.ColdStart || before.Calibrated || before.Winner != 1 {
		t.Errorf("with no outcome: %q by vote %d, %s", before.Pick, before.Winner, before.Code)
	}
	for i := range 40 {
		round := ask(yesNo, i%2, 1-i%2, 1-i%2)
		if err := l.Add(outcome(round, i%2)); err != nil {
			t.Fatal(err)
		}
	}
	after := l.Judge(q)
	if after.Pick != "yes" || after.Winner != 0 || after.N != 40 || after.Votes[1].Weight >= 0 {
		t.Errorf("after 40 outcomes: %+v", after)
	}
	var sum exact.Billionths
	for _, p := range after.P {
		sum += p
	}
	if sum < exact.One-2 || sum > exact.One+2 {
		t.Errorf("the probabilities %s add up to %s", after.P, sum)
	}
}

// TestExplanationIsStableJSON pins the members of a judgement, and their order.
func TestExplanationIsStableJSON(t *testing.T) {
	l := trust.New()
	for i := range 12 {
		add(t, l, outcome(ask(yesNo, i%2, 0), i%2))
	}
	q := ask(yesNo, 0, 1)
	q.Votes[1].Human = true
	got := regexp.MustCompile(`\d+\.\d+`).ReplaceAllString(asText(t, l.Judge(q)), "0.0") // the last digits may differ between architectures
	want := `{"strategy":"bayes","P":[0.0,0.0],"options":["yes","no"],"pick":"no","calibrated":false,"n":12,"experts":[{"name":"V","weight":0.0,"g":0.0,"P":[0.0,0.0]},{"name":"L4","weight":0.0,"g":0.0,"P":[0.0,0.0]},{"name":"L16","weight":0.0,"g":0.0,"P":[0.0,0.0]},{"name":"C","weight":0.0,"g":0.0,"P":[0.0,0.0]},{"name":"W","weight":0.0,"g":0.0,"P":[0.0,0.0]}],"votes":[{"specialist":"a","transition":"yes","trust":0.0,"k":12,"n":12,"weight":0.0,"discount":1,"level":"state","pooled":[{"level":"state","k":12,"n":12}]},{"specialist":"b","transition":"no","human":true,"trust":0.0,"k":0,"n":0,"weight":0.0,"discount":1,"level":"human"}],"prior":[0.0,0.0],"nEff":0.0,"risk":{"promise":{"maxError":0.0,"confidence":0.0},"state":"collecting"},"code":"risk_not_established"}`
	if got != want {
		t.Errorf("a judgement is\n%s\nwant\n%s", got, want)
	}
}
