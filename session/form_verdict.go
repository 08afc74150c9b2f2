package session

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/verdict"
)

// The stored forms of what arbiters and guards say. A verdict holds what decided: the
// order of the votes and their weights, the threshold in force, the rule, the evidence
// by which bayes judged; so the round can be decided again from it alone. What follows
// from these (the code, the reasoning of a built-in rule) is written for people and
// made again when it is read. check holds what was read to itself: the winner is one of
// the votes, every vote has a weight, every proposal under bayes a version.

func (d *Judged) form(f *form) {
	of := &d.Decision
	if !f.reading {
		f.w.str("arbitrationId", f.key.ArbitrationID(d.Index))
	}
	number(f, "index", &d.Index)
	count(f, "ask", &d.Ask)
	f.str("arbiterId", &d.ArbiterID)
	f.str("strategy", &d.Strategy)
	d.winner(f)
	if !f.reading {
		f.w.str("code", of.Code())
	}
	number(f, "rule", &of.Rule)
	if !f.reading {
		f.w.str("reasoning", of.Reasoning())
	} else if of.Rule == arbiter.Custom || of.Rule == arbiter.NoQuorum {
		of.Text = f.text("reasoning")
	}
	f.opt("subject", &of.Subject)
	if f.reading || of.Weight != 0 {
		f.share("weight", &of.Weight)
	}
	f.truth("hasMargin", &of.HasMargin)
	f.share("margin", &d.Margin)
	threshold(f, &d.Threshold)
	standing(f, &d.Order, &d.Weights)
	value(f, "quorum", &of.Quorum)
	f.flag("parametersBind", &of.Bound)
	value(f, "evidence", &d.Evidence)
	d.explanation(f)
	f.usage(&d.Usage)
	f.opt("model", &d.Model)
	if f.reading {
		d.check(f)
	}
}

// explanation declares why bayes judged so. Who skims learns what it was held to.
func (d *Judged) explanation(f *form) {
	if !f.skims {
		value(f, "explanation", &d.Decision.Judgement)
		return
	}
	raw := f.find("explanation")
	if raw == nil {
		return
	}
	j := &trust.Judgement{}
	d.Decision.Judgement = j
	inner := forms.Get().(*form)
	defer inner.release()
	inner.reading = true
	inner.open(raw)
	word(inner, "code", &j.Code)
	value(inner, "risk", &j.Risk)
	value(inner, "threshold", &j.Threshold)
	f.fail("explanation", inner.err)
}

// winner declares whether there is one, and which.
func (d *Judged) winner(f *form) {
	of := &d.Decision
	consensus := !f.reading && of.Consensus()
	f.truth("consensusReached", &consensus)
	if !f.reading && consensus {
		f.w.str("winningProposalId", f.key.ProposalID(d.Order[of.Winner]))
	}
	if consensus {
		if number(f, "winner", &of.Winner); of.Winner < 0 {
			f.refuse("winner", strconv.Itoa(of.Winner))
		}
	} else if f.reading {
		of.Winner = arbiter.NoWinner
	}
}

// check holds what was read to itself, and fills in what follows from it.
func (d *Judged) check(f *form) {
	of := &d.Decision
	of.Threshold = thresholdOr(d.Threshold)
	if of.HasMargin {
		of.Margin = d.Margin
	}
	switch e := d.Evidence; {
	case of.Winner != arbiter.NoWinner && (of.Winner < 0 || of.Winner >= len(d.Order)):
		f.refuse("winner", strconv.Itoa(of.Winner))
	case of.Judgement == nil && of.Rule == arbiter.ByJudgement:
		f.refuse("explanation", "")
	case e != nil && len(e.Versions) != len(d.Order):
		f.refuse("versions", fmt.Sprint(e.Versions))
	}
	if j := of.Judgement; j != nil {
		j.Best, j.Winner = slices.Index(j.Options, j.Pick), of.Winner
	}
}

// thresholdOr returns the threshold that is compared with where none is set.
func thresholdOr(t *machine.Threshold) machine.Threshold {
	if t != nil {
		return *t
	}
	return machine.Threshold{Given: 1, Weight: exact.One}
}

// threshold declares the threshold in force, as somebody gave it.
func threshold(f *form, v **machine.Threshold) {
	if f.reading {
		value(f, "threshold", v)
	} else if *v != nil {
		f.w.name("threshold")
		f.w.dst = jsontext.AppendFloat(f.w.dst, (*v).Given)
	}
}

// standing declares the order of a round and the weights in it.
func standing(f *form, order *[]int32, weights *[]exact.Billionths) {
	array(f, "order", order, func(dst []byte, n int32) []byte { return strconv.AppendInt(dst, int64(n), 10) },
		func(c *jsontext.Cursor) int32 { return int32(c.Int()) })
	array(f, "weights", weights, func(dst []byte, b exact.Billionths) []byte { return b.Append(dst) }, (*jsontext.Cursor).Billionths)
	if f.reading && len(*order) != len(*weights) {
		f.refuse("weights", fmt.Sprint(*weights))
	}
}

// array declares a list of numbers.
func array[T any](f *form, name string, v *[]T, write func([]byte, T) []byte, read func(*jsontext.Cursor) T) {
	if f.reading {
		if raw := f.find(name); raw != nil {
			c := jsontext.Cursor{B: raw}
			*v = []T{}
			c.Elements(func() { *v = append(*v, read(&c)) })
			f.fail(name, c.Err)
		}
		return
	}
	f.w.name(name)
	f.w.dst = append(f.w.dst, '[')
	for i, n := range *v {
		if i > 0 {
			f.w.dst = append(f.w.dst, ',')
		}
		f.w.dst = write(f.w.dst, n)
	}
	f.w.dst = append(f.w.dst, ']')
}

func (d *Gated) form(f *form) {
	f.transition("transitionName", &d.Transition)
	if !f.reading {
		f.w.str("toState", d.Transition.Target)
	}
	f.flag("isHuman", &d.IsHuman)
	severity(f, "status", &d.Verdict.Status)
	if f.reading || len(d.Verdict.Reasons) > 0 {
		list(f, "reasons", &d.Verdict.Reasons, reasonForm)
	}
	f.texts("notices", &d.Verdict.Notices)
}

// severity declares how severe a verdict of the guards is.
func severity(f *form, name string, v *verdict.Status) {
	if !f.reading {
		f.w.str(name, v.String())
		return
	}
	text, ok := f.text(name), false
	if *v, ok = verdict.StatusNamed(text); !ok {
		f.unknown(name, text)
	}
}

func reasonForm(r *verdict.Reason, f *form) {
	f.str("code", &r.Code)
	f.str("guard", &r.Guard)
	severity(f, "class", &r.Class)
	f.str("message", &r.Message)
	f.opt("limit", &r.Limit)
	f.opt("observed", &r.Seen)
	f.opt("subject", &r.Subject)
	if !f.reading && len(r.Indices) > 0 {
		f.w.name("indices")
		f.w.dst = appendJSON(f.w.dst, r.Indices)
	} else if raw := f.find("indices"); raw != nil {
		f.fail("indices", json.Unmarshal(raw, &r.Indices))
	}
	if f.reading && f.text("part") != "" {
		r.Found = &verdict.Finding{}
	}
	if at := r.Found; at != nil {
		f.str("part", &at.Part)
		count(f, "call", &at.Call)
		number(f, "offset", &at.Offset)
		number(f, "length", &at.Length)
	}
}
