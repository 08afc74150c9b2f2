package session

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// The stored forms of the kinds of events: which members each has, in which order, and
// which are left out while they say nothing. How a form writes and reads says form.go.
// Members that follow from others (ids, the names of targets, roundId) are written for
// people and not read. Names of states, transitions and specialists mean what the
// machine of the session says at that event, so reading needs the session as of the
// event before.

// A storedCreation is Created as it is stored: the definition by its digest.
type storedCreation struct {
	id, machineName, digest, seed string
	options                       *Options
	snapshot                      *snapshot
}

func (c *storedCreation) form(f *form) {
	f.str("sessionId", &c.id)
	f.str("machineName", &c.machineName)
	f.str("machineDigest", &c.digest)
	f.raw("metaJson", &c.options.Meta)
	f.opt("seed", &c.seed)
	f.flag("defaultProposer", &c.options.DefaultProposer)
	f.flag("defaultArbiter", &c.options.DefaultArbiter)
	word(f, "mode", &c.options.Mode)
	f.opt("prices", &c.options.Prices)
	f.opt("subject", &c.options.Subject)
	f.actor("actor", &c.options.Actor)
	if f.reading || c.options.Missing != nil {
		f.texts("missing", &c.options.Missing)
	}
	word(f, "driver", &c.options.Driver)
	if !c.options.Driver.Valid() {
		f.unknown("driver", string(c.options.Driver))
	}
	value(f, "forkedFrom", &c.options.ForkedFrom)
	encoded(f, "snapshot", &c.snapshot, func(p *snapshot) ([]byte, error) { return plainJSON(p), nil }, decodeSnapshot)
}

// form writes; a Folder reads, for only it knows the definitions.
func (d *Created) form(f *form) {
	m := d.Program.Machine
	c := storedCreation{id: f.key.Session.String(), machineName: m.Name(), digest: m.Digest(), options: &d.Options, snapshot: d.snapshot}
	if d.Options.Seed != 0 {
		c.seed = strconv.FormatUint(d.Options.Seed, 10)
	}
	c.form(f)
}

func (d *RoundOpened) form(f *form) {
	if !f.reading {
		f.w.str("roundId", f.key.ID())
	}
	number(f, "round", &d.Round)
	number(f, "attempt", &d.Attempt)
	f.state("state", &d.State)
	f.texts("notices", &d.Notices)
	if f.reading || d.Closed != nil {
		list(f, "closed", &d.Closed, (*ClosedTransition).form)
	}
	dueForm(f, &d.Due)
}

func (d *Asked) form(f *form) {
	list(f, "asks", &d.Asks, (*Ask).form)
	value(f, "wave", &d.Wave)
	if x := d.Wave; f.reading && x != nil && x.Information != nil && len(x.Information) != len(x.Specialists) {
		f.refuse("information", fmt.Sprint(x.Information))
	}
}

func (a *Ask) form(f *form) {
	number(f, "ask", &a.Index)
	f.str("specialistId", &a.SpecialistID)
	f.source(&a.Source)
	f.role(&a.Role, a.Role != machine.Proposer)
	f.flag("shadow", &a.Shadow)
	switch {
	case f.reading && f.text("askId") != "":
		a.Remote = &RemoteAsk{}
	case a.Remote != nil:
		f.w.str("askId", f.key.AskID(a.Index))
	default:
		return
	}
	a.Remote.form(f)
}

func (r *RemoteAsk) form(f *form) {
	f.opt("owner", &r.Owner)
	f.time("deadline", &r.Deadline)
	f.money("estimatedCostUSD", &r.Estimate)
	count(f, "estimatedInputTokens", &r.TokensIn)
	count(f, "estimatedOutputTokens", &r.TokensOut)
	f.flag("accepted", &r.Accepted)
	f.opt("tokenHash", &r.TokenHash)
	count(f, "repeat", &r.Repeat)
	count(f, "spareCalls", &r.Spare.Calls)
	count(f, "spareBilledCalls", &r.Spare.Billed)
	count(f, "spareInputTokens", &r.Spare.TokensIn)
	count(f, "spareOutputTokens", &r.Spare.TokensOut)
	f.money("spareCostUSD", &r.Spare.Money)
	f.flag("lost", &r.Lost)
}

func (d *Proposed) form(f *form) {
	p := &d.Proposal
	if !f.reading {
		f.w.str("proposalId", f.key.ProposalID(p.Arrival))
	}
	f.str("specialistId", &p.SpecialistID)
	f.truth("isHuman", &p.IsHuman)
	f.transition("transitionName", &p.Transition)
	if !f.reading {
		f.w.str("toState", p.Transition.Target)
	}
	f.prose("reasoning", &p.Reasoning)
	f.raw("metaJson", &p.MetaJSON)
	f.usage(&p.Usage)
	if f.reading {
		p.CreatedAt = f.at
	} else {
		f.w.time("createdAt", p.CreatedAt)
	}
	if number(f, "arrival", &p.Arrival); f.reading && f.arrivals >= 0 && p.Arrival != f.arrivals+1 {
		f.refuse("arrival", strconv.Itoa(int(p.Arrival)))
	}
	f.source(&p.Mode)
	d.detail(f)
	d.replaces(f)
	count(f, "ask", &d.Ask)
	f.actor("actor", &d.Actor)
	f.opt("questionDigest", &d.QuestionDigest)
}

// detail declares what only models, and asks outside this process, have.
func (d *Proposed) detail(f *form) {
	of := d.Detail
	if of == nil {
		if !f.reading {
			return
		}
		of = &specialist.Detail{}
	}
	f.opt("model", &of.Model)
	f.opt("askedModel", &of.Asked)
	if !f.reading && len(of.ToolCalls) > 0 {
		f.w.name("toolCalls")
		f.w.dst = specialist.AppendToolCalls(f.w.dst, of.ToolCalls)
	} else if raw := f.find("toolCalls"); raw != nil {
		f.fail("toolCalls", json.Unmarshal(raw, &of.ToolCalls))
	}
	f.texts("optionOrder", &of.OptionOrder)
	f.opt("askId", &of.AskID)
	if f.reading && (of.Model != "" || of.ToolCalls != nil || of.OptionOrder != nil || of.AskID != "") {
		d.Detail = of
	}
}

// replaces declares the proposal that this one takes the place of.
func (d *Proposed) replaces(f *form) {
	if !f.reading {
		if d.Replaces != 0 {
			f.w.str("replaces", f.key.ProposalID(d.Replaces))
		}
		return
	}
	id := f.text("replaces")
	if id == "" || f.err != nil {
		return
	}
	key := f.session.Key()
	for i := d.Arrival - 1; i > 0 && d.Replaces == 0; i-- {
		if key.ProposalID(i) == id {
			d.Replaces = i
		}
	}
}

func (d *AskFailed) form(f *form) {
	f.str("specialistId", &d.SpecialistID)
	number(f, "ask", &d.Ask)
	f.role(&d.Role, d.Role == machine.Arbiter)
	f.str("code", &d.Code)
	f.str("message", &d.Message)
	f.usage(&d.Usage)
	f.opt("model", &d.Model)
	f.opt("askedModel", &d.Asked)
}

func (d *Discarded) form(f *form) {
	f.str("specialistId", &d.SpecialistID)
	if !f.reading {
		key := f.key
		key.Round, key.Attempt = d.Round, d.Attempt
		f.w.str("roundId", key.ID())
	}
	number(f, "round", &d.Round)
	number(f, "attempt", &d.Attempt)
	number(f, "ask", &d.Ask)
	f.opt("transitionName", &d.TransitionName)
	f.str("code", &d.Code)
	f.usage(&d.Usage)
	f.opt("model", &d.Model)
	f.opt("askedModel", &d.Asked)
	f.money("charged", &d.Charged)
	count(f, "chargedInputTokens", &d.ChargedIn)
	count(f, "chargedOutputTokens", &d.ChargedOut)
	count(f, "repeat", &d.Repeat)
}

func (d *Probed) form(f *form) {
	f.str("guard", &d.Guard)
	number(f, "ask", &d.Ask)
	f.opt("stage", &d.Stage)
	f.opt("question", &d.Question)
	f.opt("reply", &d.Reply)
	if f.reading {
		value(f, "value", &d.Value)
	} else if d.Value != nil {
		f.w.name("value")
		f.w.dst = strconv.AppendFloat(f.w.dst, *d.Value, 'g', -1, 64)
	}
	f.opt("code", &d.Code)
	f.opt("message", &d.Message)
	f.usage(&d.Usage)
	f.opt("model", &d.Model)
	f.opt("askedModel", &d.Asked)
	f.flag("free", &d.Free)
}

func (d *Ruled) form(f *form) {
	if !f.reading {
		f.w.str("roundId", f.key.ID())
	}
	f.str("specialistId", &d.SpecialistID)
	if d.Transition != nil || f.reading && f.find("transitionName") != nil {
		f.transition("transitionName", &d.Transition)
	}
	f.raw("metaJson", &d.MetaJSON)
	f.opt("reasoning", &d.Reasoning)
	f.str("questionDigest", &d.QuestionDigest)
	f.flag("blind", &d.Blind)
	decision := ""
	if d.Direct {
		decision = Direct.String()
	}
	f.opt("decision", &decision)
	value(f, "draws", &d.Draws)
	f.actor("actor", &d.Actor)
	d.Manner.form(f)
	if !f.reading {
		return
	}
	d.Direct = decision != ""
	switch {
	case d.SpecialistID == "":
		f.refuse("specialistId", "")
	case d.Direct && decision != Direct.String():
		f.unknown("decision", decision)
	}
}

func (d *Executed) form(f *form) {
	if !f.reading {
		f.w.str("decisionId", f.key.DecisionID())
	}
	d.How.form(f)
	f.transition("transitionName", &d.Transition)
	if !f.reading {
		f.w.str("fromState", d.Transition.From.Name)
		f.w.str("toState", d.Transition.Target)
	}
	f.truth("isHuman", &d.IsHuman)
	f.opt("specialistId", &d.SpecialistID)
	if !f.reading && d.Arrival != 0 {
		f.w.str("proposalId", f.key.ProposalID(d.Arrival))
	}
	count(f, "arrival", &d.Arrival)
	f.prose("reasoning", &d.Reasoning)
	f.raw("metaJson", &d.MetaJSON)
	if f.reading {
		d.At, d.Round, d.Attempt = f.at, f.session.Round, f.session.Attempt
		if d.How.Ruling() {
			d.Standing = &Standing{}
		}
	}
	if s := d.Standing; s != nil {
		threshold(f, &s.Threshold)
		standing(f, &s.Order, &s.Weights)
	}
	value(f, "draws", &d.Draws)
	f.texts("authors", &d.Authors)
	f.raw("data", &d.Data)
	f.opt("subject", &d.Subject)
	f.actor("actor", &d.Actor)
	f.opt("questionDigest", &d.QuestionDigest)
	d.Manner.form(f)
}

func (k *DecisionKind) form(f *form) {
	if !f.reading {
		f.w.str("decision", k.String())
		return
	}
	name := f.text("decision")
	i := slices.Index(decisionKinds[:], name)
	if *k = DecisionKind(max(i, 0)); i < 0 {
		f.unknown("decision", name)
	}
}

func (d *Learned) form(f *form) {
	list(f, "comparisons", &d.Comparisons, comparisonForm)
	if f.skims {
		return
	}
	if f.reading {
		if len(d.Comparisons) == 0 {
			d.Comparisons = nil
		}
		value(f, "exemplar", &d.Exemplar)
	} else if d.Exemplar != nil {
		f.w.name("exemplar")
		f.w.dst = d.Exemplar.Append(f.w.dst)
	}
	encoded(f, "outcome", &d.Outcome, (*trust.Outcome).Encode, trust.DecodeOutcome)
	encoded(f, "held", &d.Held, (*trust.Outcome).Encode, trust.DecodeOutcome)
	encoded(f, "unruled", &d.Unruled, (*trust.Unruled).Encode, trust.DecodeUnruled)
	value(f, "secondLook", &d.Second)
	if !f.reading {
		return
	}
	if e := d.Exemplar; e != nil && (e.Context == nil || e.Proposals == nil) {
		f.refuse("exemplar", e.ExemplarID)
	}
	if d.Second != nil {
		f.fail("", (&trust.Lesson{Second: d.Second}).Check())
	}
}

func comparisonForm(c *trust.Comparison, f *form) {
	f.str("specialistId", &c.SpecialistID)
	f.opt("state", &c.State)
	f.truth("match", &c.Match)
	if f.reading {
		c.At = f.at
	}
}

func (d *AwaitsHuman) form(f *form) {
	f.str("code", &d.Code)
	f.str("reason", &d.Reason)
	value(f, "draws", &d.Draws)
	f.flag("timer", &d.Timer)
}

func (d *Reviewed) form(f *form) {
	if f.reading {
		d.Review = ReviewKind(f.text("review"))
		if d.Review != Audit && d.Review != SecondLook && d.Review != Adjudication {
			f.unknown("review", string(d.Review))
		}
	} else {
		key := f.key
		key.Round, key.Attempt = d.Round, d.Attempt
		f.w.str("review", string(d.Review))
		f.w.str("roundId", key.ID())
	}
	number(f, "round", &d.Round)
	number(f, "attempt", &d.Attempt)
	f.str("specialistId", &d.SpecialistID)
	f.str("transitionName", &d.TransitionName)
	f.opt("reasoning", &d.Reasoning)
	encoded(f, "lesson", &d.Lesson, (*trust.Lesson).Encode, trust.DecodeLesson)
	f.actor("actor", &d.Actor)
	d.Manner.form(f)
}

func (d *Adopted) form(f *form) {
	f.str("specialistId", &d.SpecialistID)
	f.opt("reason", &d.Reason)
	encoded(f, "lesson", &d.Lesson, (*trust.Lesson).Encode, trust.DecodeLesson)
	f.actor("actor", &d.Actor)
	if f.reading && (d.Lesson == nil || d.Lesson.Adoption == nil) {
		f.refuse("adoption", "nothing")
	}
}

func (d *Revealed) form(f *form) {
	f.str("roundId", &d.RoundID)
	f.opt("specialistId", &d.SpecialistID)
	f.actor("actor", &d.Actor)
	if f.reading && d.RoundID == "" {
		f.refuse("roundId", "")
	}
}

func (d *Resumed) form(f *form) {
	f.actor("actor", &d.Actor)
	f.opt("specialistId", &d.SpecialistID)
	f.opt("note", &d.Note)
	f.flag("retryFailed", &d.RetryFailed)
	f.flag("cleared", &d.Cleared)
	if !f.reading {
		if len(d.Raised) > 0 {
			f.w.name("raised")
			f.w.dst = appendJSON(f.w.dst, d.Raised)
		}
		return
	}
	if raw := f.find("raised"); raw != nil {
		f.fail("raised", json.Unmarshal(raw, &d.Raised))
		d.lift(f)
	}
}

// lift makes the program that has the limits of the session raised.
func (d *Resumed) lift(f *form) {
	for _, r := range d.Raised {
		if r.State != f.session.State.Name {
			f.refuse("state of a raised limit", r.State)
			return
		}
	}
	if len(d.Raised) == 0 {
		return
	}
	var err error
	if d.Program, err = f.session.Program.Lift(f.session.State, d.Raised); err != nil {
		f.fail("", fmt.Errorf("a raised limit: %w", err))
	}
}

func (d *Ended) form(f *form) {
	if f.reading {
		name := f.text("status")
		f.fail("", d.Status.UnmarshalText([]byte(name)))
	} else {
		f.w.str("status", d.Status.String())
	}
	f.str("code", &d.Code)
	f.opt("reason", &d.Reason)
	f.actor("actor", &d.Actor)
}
