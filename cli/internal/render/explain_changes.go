package render

import (
	"fmt"
	"strings"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/explain"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/session"
)

// changes tells what would have changed the verdict.
func (t *teller) changes() {
	c := t.e.Changes
	if c == nil {
		return
	}
	t.line("\nWhat would have changed the verdict:")
	if !c.Reproduced {
		t.line("  %s", notReproduced(c.Why))
		return
	}
	t.distance(c.Distance)
	changed := 0
	for _, w := range c.WhatIfs {
		if w.Changed {
			changed++
			t.line("  %s: %s", Clean(whatIf(w)), Clean(t.outcomeIf(w)))
		}
	}
	if c.Limited {
		t.line("  Only the absence of each vote was tried: there are too many votes and transitions.")
	}
	if changed == 0 && !c.Limited {
		t.line("  No single vote would have: not its absence, nor another choice (%s tried).", Plural(len(c.WhatIfs), "variant"))
	}
}

func notReproduced(why string) string {
	switch why {
	case explain.CustomArbiter:
		return "Not known: the arbiter is a program's own, and is not asked again."
	case explain.NoVotes:
		return "A proposal: there was none."
	}
	return "Not known: decided again, the round does not come out as it was recorded; another version of dialai decided it."
}

func whatIf(w explain.WhatIf) string {
	return Either(w.Instead == "", "Without the vote of "+w.SpecialistID, fmt.Sprintf("If %s had proposed %s", w.SpecialistID, w.Instead))
}

// outcomeIf says what comes of a variant.
func (t *teller) outcomeIf(w explain.WhatIf) string {
	detail, alone := "", w.Instead == "" && len(t.e.Votes) == 1
	switch {
	case w.P != nil:
		detail = fmt.Sprintf(", %s has probability %s", w.Pick, share(*w.P))
	case w.Margin != nil:
		detail = ", margin " + w.Margin.Text2()
	}
	if w.Code == string(trust.NoProposals) && !alone {
		return "a human decides (nobody proposed what is most probable then)"
	}
	if w.Code == session.CodeContested {
		return "the champion would not have decided alone: everybody is asked"
	}
	if w.Transition == "" {
		return "a human decides" + bracketed(t.codeText(w.Code)+detail)
	}
	return w.Transition + " is decided" + bracketed(t.codeText(w.Code)+detail)
}

// codeWords say what codes of verdicts mean where they are not shown; what was decided needs no
// word.
var codeWords = map[string]string{
	string(trust.Decided):            "",
	string(trust.ColdStart):          "too little is known",
	string(trust.BelowThreshold):     "not enough for the threshold",
	string(trust.BelowTau):           "not enough for the promise",
	string(trust.RiskNotEstablished): "the promise is not established yet",
	string(trust.Irreversible):       "it cannot be undone",
	string(trust.CannotReach):        "no further answer could be enough",
}

// codeText returns a code of a verdict, in words unless symbols are asked for.
func (t *teller) codeText(code string) string {
	if words, known := codeWords[code]; known && !t.verbose {
		return words
	}
	return Clean(code)
}

// bracketed puts what there is of a text into brackets after something.
func bracketed(text string) string {
	if text = strings.TrimPrefix(text, ", "); text == "" {
		return ""
	}
	return " (" + text + ")"
}

func (t *teller) distance(d *explain.Distance) {
	if d == nil {
		return
	}
	switch {
	case d.Measure == explain.ByOutcomes:
		t.line("  %s more: bayes decides nothing before there are %d%s.", Plural(int(d.Missing/exact.One), "human decision"), d.Needs/exact.One, t.promised(int64(d.Needs/exact.One)))
	case d.Measure == explain.ByWeight:
	case d.Measure == explain.ByProbability && !t.verbose:
		t.line("  %s", probabilityText(d))
	case d.Missing > 0:
		t.line("  A %s higher by %s: it is %s, and %s decides.", d.Measure, d.Missing, d.Has, d.Needs)
	case d.Measure == explain.ByProbability && d.To != "":
		t.line("  A probability lower by more than %s: it is %s, and below %s %s leads.", -d.Missing, d.Has, d.Needs, Clean(d.To))
	default:
		t.line("  A %s lower by more than %s: it is %s, and %s decides.", d.Measure, -d.Missing, d.Has, d.Needs)
	}
	if d.Weight == nil {
		return
	}
	to, more := Either(d.To != "", d.To+" is decided", "a human decides"), Either(*d.Weight <= 1, "Any further alignment", fmt.Sprintf("Further alignment of %s", *d.Weight))
	t.line("  %s behind %s (a human's vote is 1): %s", more, Clean(d.For), Clean(to))
}

// promised says how many human decisions the promise in force needs, if that is more than n.
func (t *teller) promised(n int64) string {
	v := t.e.Verdict
	if v == nil || v.Judgement == nil || v.Judgement.Risk == nil {
		return ""
	}
	if least := trust.Needed(v.Judgement.Risk.Promise); least > n {
		return fmt.Sprintf(", nor before its promise is established, which takes %d or more", least)
	}
	return ""
}

// probabilityText says what other probability would have changed the outcome.
func probabilityText(d *explain.Distance) string {
	is := fmt.Sprintf("it is %s.", share(d.Has))
	switch {
	case d.Missing > 0:
		return fmt.Sprintf("A probability of %s or more, for which no human is needed: %s", share(d.Needs), is)
	case d.To != "":
		return fmt.Sprintf("A probability below %s, where %s leads: %s", share(d.Needs), Clean(d.To), is)
	}
	return fmt.Sprintf("A probability below %s, where a human decides: %s", share(d.Needs), is)
}

// stageOf says how far the state had come.
func stageOf(c *session.Collapse) string {
	text := string(c.StageOf())
	if x := c.Certificate; x != nil && c.StageOf() == trust.Championed {
		text += fmt.Sprintf(" %s, certified by %d of %d until %s", x.SpecialistID, x.K, x.N, x.ExpiresAt)
	}
	return text + When(c.Since != 0, fmt.Sprintf(", since %s", c.Since)) + When(c.Reason != "", " ("+c.Reason+")")
}
