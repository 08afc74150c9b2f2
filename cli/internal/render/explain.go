package render

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/explain"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/session"
)

// The text of dialai explain. It is made from an explanation alone, in a fixed order:
// what the round was, the votes with what each counted, who did not answer, the verdict
// and its rule, how bayes came to its probabilities, guards, the human, reviews, and
// what would have changed the verdict. What is not there is left out. JSON has
// everything; this text says it in words, and with --verbose adds the figures behind them,
// every expert of the mixture, and what each symbol means (explain_words.go).

// A teller writes an explanation for people. It knows nothing but the data.
type teller struct {
	out io.Writer
	e   *explain.Explanation
	err error

	verbose bool
}

// Explanation prints why a round was decided as it was.
func (st Style) Explanation(out io.Writer, e *explain.Explanation) error {
	switch {
	case st.JSON:
		return JSON(out, e)
	case st.Quiet:
		_, err := fmt.Fprintln(out, Clean(outcomeOf(e)))
		return err
	}
	return explainText(out, e, st.Verbose)
}

// explainText writes an explanation for people; with every number if verbose is set.
func explainText(out io.Writer, e *explain.Explanation, verbose bool) error {
	t := &teller{out: out, e: e, verbose: verbose}
	t.heading()
	t.data()
	t.votes()
	t.failures()
	t.verdict()
	t.judgement()
	t.guards()
	t.human()
	t.reviews()
	t.changes()
	return t.err
}

func (t *teller) line(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.out, format+"\n", args...)
	}
}

func (t *teller) table(rows [][]string) {
	for i := range rows {
		rows[i][0] = "  " + rows[i][0]
	}
	if t.err == nil {
		t.err = Table(t.out, rows)
	}
}

// outcomeOf says in a line what became of the round.
func outcomeOf(e *explain.Explanation) string {
	switch {
	case e.Ruling != nil:
		return fmt.Sprintf("%s, ruled by %s", e.Executed, rulers(e.Ruling))
	case e.Timer:
		return fmt.Sprintf("%s, by the timer: the state was due", e.Executed)
	case e.Executed != "" && e.Verdict != nil:
		return fmt.Sprintf("%s, on the verdict of %s (%s)", e.Executed, e.Verdict.ArbiterID, e.Verdict.Strategy)
	case len(e.Gates) > 0 && e.Verdict != nil && e.Verdict.ConsensusReached:
		return "a guard refused " + e.Gates[len(e.Gates)-1].Transition
	case e.Executed != "":
		return e.Executed + ", decided by the engine"
	case e.Human != nil:
		return "a human must decide: " + e.Human.Reason
	}
	return "not decided yet"
}

// known says who has acted, in brackets; nothing if that is not said.
func known(a *session.Actor) string {
	if !a.Known() {
		return ""
	}
	return " (" + a.Subject + ")"
}

// rulers names the human who ruled, or all who agreed.
func rulers(r *explain.Ruling) string {
	if len(r.Authors) > 1 {
		return strings.Join(r.Authors, " and ")
	}
	return r.HumanID
}

func (t *teller) heading() {
	e := t.e
	t.line("Session ID:    %s", Clean(e.SessionID))
	t.line("Machine:       %s (%.12s)", Clean(e.MachineName), e.MachineDigest)
	attempt := When(e.Attempt > 0, fmt.Sprintf(", attempt %d (dialai explain %s %d.%d shows the one before)", e.Attempt, Clean(e.SessionID), e.Round, e.Attempt-1))
	t.line("Round:         %d from %s%s", e.Round, Clean(e.State), attempt)
	if c := e.Collapse; c != nil {
		t.line("Stage:         %s", Clean(stageOf(c)))
	}
	t.line("Outcome:       %s", Clean(outcomeOf(e)))
}

// data tells what the session was about when the round was opened, and what could not be
// chosen in it.
func (t *teller) data() {
	if len(t.e.Data) > 0 && t.err == nil {
		t.line("\nData when the round was opened:")
		printMembers(t.out, "  ", "data", t.e.Data, "the JSON of the explanation has all of it")
	}
	head := "\nClosed in this round:\n"
	for _, o := range t.e.Options {
		if o.Closed != "" {
			t.line("%s  %s: %s", head, Clean(o.Transition), Clean(o.Closed))
			head = ""
		}
	}
}

// pending tells how far the approvals are, and what was ruled that waits for others.
func (t *teller) pending() {
	for _, o := range t.e.Options {
		if text := Approvals(o.Approvals); text != "" {
			t.line("  %s %s", Clean(o.Transition), Clean(text))
		}
	}
	for _, r := range t.e.Rulings {
		with := When(len(r.MetaJSON) > 0, " with "+string(r.MetaJSON))
		t.line("  %s chose %s%s%s", Clean(r.SpecialistID), Clean(r.TransitionName), Clean(with), When(r.Reasoning != "", ": "+Clean(r.Reasoning)))
	}
	if n := t.e.WithheldRulings; n > 0 {
		t.line("  %s withheld until another human has ruled.", Plural(n, "ruling"))
	}
}

// concealed reports whether only what was executed is told of the round.
func (t *teller) concealed() bool { return t.e.Withheld && t.e.Executed != "" }

func (t *teller) votes() {
	if t.concealed() {
		t.line("\nVotes, failures and verdicts are withheld: a human is still to say without sight of them what should have been decided.")
		return
	}
	if len(t.e.Votes) == 0 {
		t.line("\nNobody proposed anything.")
		return
	}
	t.line("\nVotes:")
	if v := t.e.Verdict; v != nil && v.Judgement != nil {
		t.weighted(v.Judgement)
		return
	}
	rows := [][]string{{"SPECIALIST", "PROPOSED", "ALIGNMENT", "AGREED WITH HUMANS", "REASONING"}}
	for i := range t.e.Votes {
		v := &t.e.Votes[i]
		rows = append(rows, []string{Who(v.SpecialistID, v.Human), v.Transition, v.Weight.Text2(), alignmentFrom(v), v.Reasoning})
	}
	t.table(rows)
}

// alignmentFrom says what an alignment was made of.
func alignmentFrom(v *explain.Vote) string {
	switch {
	case v.Human:
		return "a human's vote is 1"
	case v.Agreed == nil:
		return "never, as far as was known"
	case *v.Compared == 0:
		return "not compared yet"
	}
	return fmt.Sprintf("%d of %d%s", *v.Agreed, *v.Compared, When(v.Scope != "", " in this state"))
}

// weighted tells the votes as bayes counted them.
func (t *teller) weighted(j *trust.Judgement) {
	if !t.verbose {
		t.spoken(j)
		return
	}
	rows := [][]string{{"SPECIALIST", "PROPOSED", "TRUST", "WEIGHT", "COUNTS", "AGREED WITH HUMANS"}}
	for i := range t.e.Votes {
		v := &t.e.Votes[i]
		k := slices.IndexFunc(j.Votes, func(s trust.VoteShare) bool { return s.SpecialistID == v.SpecialistID })
		if k < 0 {
			rows = append(rows, []string{Who(v.SpecialistID, v.Human), v.Transition, "", "", "", "not counted"})
			continue
		}
		s := &j.Votes[k]
		rows = append(rows, []string{Who(v.SpecialistID, v.Human), v.Transition, s.Trust.Text2(), fmt.Sprintf("%+.2f", float64(s.Weight)/1e9), discountText(s, v.Correlated), pooledText(s)})
	}
	t.table(rows)
	t.origins()
	t.line("  Trust is the probability of agreeing with a human. Weight is its log-odds: 0 says nothing, below 0 counts against.")
	t.line("  Counts is the share of the weight that is left where specialists err together, as much as the number behind each says.")
	t.line("  These %s are worth %s independent ones, as they weigh in this round; dialai metrics says it of all who can be asked.", Plural(len(j.Votes), "vote"), j.NEff.Text2())
}

// mostOrigins is how many states are named for a vote; JSON has them all.
const mostOrigins = 8

// origins names the states whose records were pooled, where there is more than one.
func (t *teller) origins() {
	for i := range t.e.Votes {
		v := &t.e.Votes[i]
		if len(v.Origins) < 2 {
			continue
		}
		var parts []string
		for _, o := range v.Origins[:min(mostOrigins, len(v.Origins))] {
			where := o.State + When(o.Machine != t.e.MachineName, " of "+o.Machine)
			parts = append(parts, fmt.Sprintf("%s %s of %s", where, o.K, o.N))
		}
		if more := len(v.Origins) - len(parts); more > 0 {
			parts = append(parts, fmt.Sprintf("%d more", more))
		}
		t.line("  Pooled for %s: %s", Clean(v.SpecialistID), Clean(strings.Join(parts, ", ")))
	}
}

// discountText says how much of a vote counts, and for whose sake.
func discountText(s *trust.VoteShare, list []trust.Correlation) string {
	var parts []string
	for _, c := range list {
		parts = append(parts, fmt.Sprintf("%s %s", c.With, c.Rho.Text2()))
	}
	return s.Discount.Text2() + When(len(parts) > 0, " (errs with "+strings.Join(parts, ", ")+")")
}

var levelTexts = map[string]string{trust.LevelState: "here", trust.LevelMachine: "in other states", trust.LevelGlobal: "in other machines"}

// pooledText says which records trust was made of.
func pooledText(s *trust.VoteShare) string {
	if s.Human {
		if s.N == 0 {
			return "a human, never checked by a second one"
		}
		return fmt.Sprintf("a human, right in %d of %d second looks", s.K, s.N)
	}
	var parts []string
	for _, c := range s.Pooled {
		parts = append(parts, fmt.Sprintf("%s of %s %s", c.K, c.N, cmp.Or(levelTexts[c.Level], c.Level)))
	}
	if len(parts) == 0 {
		return "not compared yet: the mean of the machine"
	}
	return strings.Join(parts, ", ")
}

func (t *teller) failures() {
	for i, f := range t.e.Failures {
		if i == 0 {
			t.line("\nNot answered:")
		}
		t.line("  %s: %s (%s)", Clean(f.SpecialistID), Clean(f.Message), Clean(f.Code))
	}
}

// rule says by what a verdict was reached: as it was recorded, or without its symbols.
func (t *teller) rule(v *explain.Verdict) string {
	if words := inWords(v); words != "" && !t.verbose {
		return Clean(words)
	}
	return Clean(v.Reasoning) + bracketed(t.codeText(v.Code))
}

// inWords says by what a promise had a choice decided, or a human asked; "" of all other verdicts.
func inWords(v *explain.Verdict) string {
	j := v.Judgement
	if j == nil || j.Risk == nil || j.Best < 0 || j.Best >= len(j.P) || len(j.Options) < 2 {
		return ""
	}
	promise := fmt.Sprintf("for at most %s errors with confidence %s", share(j.Risk.Promise.MaxError), share(j.Risk.Promise.Confidence))
	has := fmt.Sprintf("%s has probability %s, and ", j.Pick, share(j.P[j.Best]))
	switch trust.Code(v.Code) {
	case trust.Decided:
		return has + share(j.Risk.Tau) + " is enough " + promise
	case trust.BelowTau:
		return has + share(j.Risk.Tau) + " is needed " + promise + ": a human decides"
	case trust.RiskNotEstablished:
		return has + "the record does not show yet which is enough " + promise + ": a human decides"
	}
	return ""
}

func (t *teller) verdict() {
	for _, v := range t.e.Earlier {
		t.line("\nEarlier, on other votes: %s", Clean(v.Reasoning)+bracketed(t.codeText(v.Code)))
	}
	v := t.e.Verdict
	if v == nil {
		return
	}
	t.line("\nVerdict of %s (%s):", Clean(v.ArbiterID), Clean(v.Strategy))
	t.line("  %s", Either(v.ConsensusReached, fmt.Sprintf("%s, proposed by %s", Clean(v.Transition), Clean(v.SpecialistID)), "no consensus"))
	t.line("  Rule: %s", t.rule(v))
	if q := v.Quorum; q != nil && q.Answered < q.Counted && q.Reached() {
		t.line("  Answered: %d of %d answered, %d needed", q.Answered, q.Counted, q.Needed)
	}
	if v.Judgement != nil || len(v.Scores) == 0 {
		return
	}
	rows := [][]string{{"TRANSITION", "ALIGNMENT", "VOTES"}}
	for _, s := range v.Scores {
		rows = append(rows, []string{s.Transition, s.Sum.Text2(), fmt.Sprint(s.Votes)})
	}
	t.table(rows)
	if v.Strategy != "alignmentMargin" {
		return // which others decide by is in their reasoning
	}
	threshold := "1, as nobody set one"
	if v.Threshold != nil {
		threshold = v.Threshold.String()
	}
	t.line("  Margin %s of all alignment; threshold %s", v.Margin.Text2(), threshold)
}

// judgement tells how bayes came to its probabilities.
func (t *teller) judgement() {
	if t.e.Verdict == nil || t.e.Verdict.Judgement == nil {
		return
	}
	j := t.e.Verdict.Judgement
	t.line("\nHow probable each choice is to be a human's:")
	for i, o := range j.Options {
		t.line("  %s: %s, before anybody had spoken %s", Clean(o), likely(j.P, i), likely(j.Prior, i))
	}
	if t.verbose {
		t.mixture(j)
	} else if len(j.Experts) > 0 {
		t.line("  Made of %d ways to count the votes; --verbose shows each.", len(j.Experts))
	}
	t.risk(j)
}

// ways says what the names of the experts stand for.
var ways = map[string]string{
	"V": "votes counted alike", "L4": "votes weighed by trust, which soon goes by the state's own record",
	"L16": "votes weighed by trust, which leans longer on other states", "C": "which choice each specialist takes for which", "W": "votes weighed by alignment, as alignmentMargin does", "S": "weights fitted to this machine's decisions",
	"O": "votes weighed by trust, learned from rounds without a human's word, too", "D": "which choice each specialist takes for which, learned from these, too",
}

// mixture tells what each expert of the mixture says.
func (t *teller) mixture(j *trust.Judgement) {
	t.line("\nWhat each way to count the votes says:")
	head := []string{"TRANSITION", "P", "PRIOR"}
	for _, e := range j.Experts {
		head = append(head, e.Name)
	}
	rows := [][]string{head}
	for i, o := range j.Options {
		row := []string{o, at(j.P, i), at(j.Prior, i)}
		for _, e := range j.Experts {
			row = append(row, at(e.P, i))
		}
		rows = append(rows, row)
	}
	share, heat := []string{"share", "", ""}, []string{"temperature", "", ""}
	for _, e := range j.Experts {
		share, heat = append(share, fmt.Sprintf("%.3f", e.Weight.Float())), append(heat, fmt.Sprintf("%.3f", e.G.Float()))
	}
	if len(j.Experts) > 0 {
		rows = append(rows, share, heat)
	}
	t.table(rows)
	for _, e := range j.Experts {
		t.line("  %s: %s", e.Name, ways[e.Name])
	}
	t.line("  P is the probability that a human chooses it, their mixture by share; prior is P before the votes.")
	if slices.ContainsFunc(j.Experts, func(e trust.ExpertShare) bool { return e.Name == "O" || e.Name == "D" }) {
		t.line("  O and D only help to choose the most probable: where it is the same without them, P leaves them out; else it is no surer than without.")
	}
	t.line("  A temperature below 1 makes a way less sure of itself.")
}

func at(list []exact.Billionths, i int) string {
	if i >= len(list) {
		return ""
	}
	return fmt.Sprintf("%.3f", list[i].Float())
}

func (t *teller) guards() {
	for i, g := range t.e.Gates {
		if i == 0 {
			t.line("\nGuards:")
		}
		t.line("  %s: %s", Clean(g.Transition), Clean(g.Status))
		for _, r := range g.Reasons {
			t.line("    %s: %s (%s)", Clean(r.Class), Clean(r.Message), Clean(r.Code))
		}
	}
}

// asked says why a human was asked: as it was recorded, or without its symbols.
func (t *teller) asked(w *explain.Wait) string {
	if v := t.e.Verdict; v != nil && !t.verbose && w.Code == v.Code && inWords(v) != "" {
		return t.codeText(w.Code)
	}
	return Clean(w.Reason) + bracketed(t.codeText(w.Code))
}

func (t *teller) human() {
	if w := t.e.Human; w != nil {
		t.line("\nA human was asked: %s", t.asked(w))
		t.pending()
	}
	r := t.e.Ruling
	if r == nil {
		return
	}
	t.line("\nRuling of %s%s, at %s:", Clean(rulers(r)), Clean(known(r.Actor)), r.At)
	t.line("  %s → %s: %s", Clean(r.Transition), Clean(r.ToState), Clean(r.Reasoning))
	for _, w := range r.Words {
		t.line("  %s: %s", Clean(w.HumanID), Clean(w.Reasoning))
	}
	if r.Kind == session.Direct.String() {
		t.line("  Executed without teaching anything.")
	}
	if r.Unasked {
		t.line("  Nobody had asked: it is no random sample of this machine's rounds.")
	}
	if r.Blind {
		t.line("  Made without sight of the proposals.")
	}
	if !t.concealed() {
		t.line("  %s", Clean(t.engineView(r)))
	}
	if x := r.Retracted; x != nil {
		t.line("  Taken back by %s: %s. Nobody learns from it any more; tests keep what they counted.", Clean(x.HumanID), Clean(x.Note))
	}
}

// engineView says what the engine had made of what a human decided.
func (t *teller) engineView(r *explain.Ruling) string {
	switch {
	case r.Agreed == nil:
		return "The engine had no opinion."
	case r.Decides && *r.Agreed:
		return fmt.Sprintf("The engine would have decided the same: %s.", r.Pick)
	case r.Decides:
		return fmt.Sprintf("The engine would have decided %s.", r.Pick)
	}
	p := When(r.P > 0, ", with probability "+share(r.P))
	return fmt.Sprintf("The engine leaned %s%s, but not enough to decide alone.", Either(*r.Agreed, "the same way", "towards "+r.Pick), p)
}

// reviews tells what became of the round after it had closed.
func (t *teller) reviews() {
	d := t.e.Draws
	switch {
	case d == nil:
	case d.Audit:
		t.line("\nDrawn for an audit, with probability %s.", d.AuditRate)
	case d.Second:
		t.line("\nDrawn for a second human, with probability %s.", d.SecondRate)
	case d.AuditRate > 0:
		t.line("\nNot drawn for an audit, with probability %s.", d.AuditRate)
	case d.SecondRate > 0:
		t.line("\nNot drawn for a second human, with probability %s.", d.SecondRate)
	}
	for _, r := range t.e.Reviews {
		same := Either(r.Transition == t.e.Executed, "the same", "another choice")
		t.line("Review (%s) by %s, at %s: %s, %s.%s", Clean(r.Review), Clean(r.HumanID), r.At, Clean(r.Transition), same, When(r.Reasoning != "", " "+Clean(r.Reasoning)))
	}
}
