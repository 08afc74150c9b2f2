package render

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
)

// What bayes made of a round, in words: what each vote says and why, and what is promised
// and how far the record has established that. The figures behind these words are shown with
// --verbose.

// spoken tells the votes as bayes counted them.
func (t *teller) spoken(j *trust.Judgement) {
	rows := [][]string{{"SPECIALIST", "PROPOSED", "SPEAKS HERE", "AGREED WITH HUMANS"}}
	for i := range t.e.Votes {
		v := &t.e.Votes[i]
		row := []string{Who(v.SpecialistID, v.Human), v.Transition, "", "not counted"}
		if k := slices.IndexFunc(j.Votes, func(s trust.VoteShare) bool { return s.SpecialistID == v.SpecialistID }); k >= 0 {
			row[2], row[3] = wordOf(&j.Votes[k], v.Correlated), pooledText(&j.Votes[k])
		}
		rows = append(rows, row)
	}
	t.table(rows)
	if n := float64(len(j.Votes)); j.NEff.Float() < .9*n {
		t.line("  %s: these %s say as much as %.1f that do not, in this round.", Either(j.N == 0, "Some of them are expected to err together, for they are alike", "Some of them err together"), Plural(len(j.Votes), "vote"), j.NEff.Float())
	}
}

// wordOf says how much a vote speaks for what it is for, and who else says the same. A
// weight is log-odds: of 3 the odds are 20 to 1, of 1 about 3 to 1.
func wordOf(s *trust.VoteShare, with []trust.Correlation) string {
	weight := s.Weight.Float()
	side := Either(weight < 0, "against it", "for it")
	text := "hardly anything"
	switch size := math.Abs(weight); {
	case size >= 2:
		text = "strongly " + side
	case size >= .7:
		text = side
	case size >= .1:
		text = "a little " + side
	}
	if s.Discount < exact.One && len(with) > 0 {
		var ids []string
		copies := false
		for _, c := range with {
			ids, copies = append(ids, c.With), copies || c.Copy > exact.One/2
		}
		text += fmt.Sprintf(", counted %.0f %% as it %s %s", 100*s.Discount.Float(), Either(copies, "says what is said by", "errs with"), strings.Join(ids, ", "))
	}
	return text
}

// likely returns the i-th probability in percent.
func likely(list []exact.Billionths, i int) string {
	if i >= len(list) {
		return "unknown"
	}
	return share(list[i])
}

// share writes a share in percent, with one decimal where it is not whole. What is not all is not written as all.
func share(b exact.Billionths) string {
	switch v := 100 * b.Float(); {
	case b > 0 && v < .1:
		return "below 0.1 %"
	case b < exact.One && v > 99.9:
		return "above 99.9 %"
	default:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") + " %"
	}
}

// risk tells what is promised, and how far the evidence is.
func (t *teller) risk(j *trust.Judgement) {
	t.line("  Learned from %s of this machine.", Plural(int(j.N), "human decision"))
	switch r := j.Risk; {
	case r == nil && j.Threshold != nil:
		t.line("  The machine declares that %s is enough to decide without a human; nothing is promised of how often that is wrong.", share(*j.Threshold))
	case r != nil:
		t.line("  Promised: at most %s of the decisions without a human are wrong, with confidence %s.", share(r.Promise.MaxError), share(r.Promise.Confidence))
		t.line("  %s", Either(r.Tau > 0, fmt.Sprintf("The record shows it from a probability of %s on (%s): there no human is needed.", share(r.Tau), r.State),
			fmt.Sprintf("The record does not show it for any probability (%s): every round goes to a human. dialai risk %s says how far it is.", r.State, Quote(t.e.MachineName))))
		if t.verbose && r.Tau > 0 {
			t.line("  Tau, the probability from which a transition is decided, is %s.", r.Tau)
		}
	}
}
