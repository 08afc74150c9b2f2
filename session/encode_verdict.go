package session

import (
	"encoding/json"
	"strconv"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/trust"
	"github.com/dialai/dialai/verdict"
)

func (d *Judged) append(dst []byte, key specialist.RoundKey) []byte {
	w := object(dst)
	w.str("arbitrationId", key.ArbitrationID(d.Index))
	w.int("index", int64(d.Index))
	if d.Ask != 0 {
		w.int("ask", int64(d.Ask))
	}
	w.str("arbiterId", d.ArbiterID)
	w.str("strategy", d.Strategy)
	w.bool("consensusReached", d.Decision.Consensus())
	if d.Decision.Consensus() {
		w.str("winningProposalId", key.ProposalID(d.Order[d.Decision.Winner]))
		w.int("winner", int64(d.Decision.Winner))
	}
	w.str("code", d.Decision.Code())
	w.int("rule", int64(d.Decision.Rule))
	w.str("reasoning", d.Decision.Reasoning())
	w.opt("subject", d.Decision.Subject)
	if d.Decision.Weight != 0 {
		w.name("weight")
		w.dst = d.Decision.Weight.Append(w.dst)
	}
	w.bool("hasMargin", d.Decision.HasMargin)
	w.name("margin")
	w.dst = d.Margin.Append(w.dst)
	w.threshold(d.Threshold)
	w.standing(d.Order, d.Weights)
	if q := d.Decision.Quorum; q != nil {
		w.name("quorum")
		w.dst = appendJSON(w.dst, q)
	}
	if d.Decision.Bound {
		w.bool("parametersBind", true)
	}
	if e := d.Evidence; e != nil {
		w.name("evidence")
		w.dst = e.append(w.dst)
	}
	if d.Decision.Judgement != nil {
		w.name("explanation")
		w.dst = appendJSON(w.dst, d.Decision.Judgement)
	}
	w.usage(d.Usage)
	w.opt("model", d.Model)
	return w.end()
}

func (e *JudgedBy) append(dst []byte) []byte {
	w := object(dst)
	w.int("place", e.Place)
	w.str("policyDigest", e.PolicyDigest)
	w.name("versions")
	w.dst = appendJSON(w.dst, e.Versions)
	w.flag("partial", e.Partial)
	w.opt("stop", string(e.Stop))
	return w.end()
}

// appendJSON appends what encoding/json makes of v, which is made of texts,
// numbers and lists.
func appendJSON(dst []byte, v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic("runner: " + err.Error())
	}
	return append(dst, text...)
}

// standing writes the order of a round and the weights in it.
func (w *writer) standing(order []int32, weights []exact.Billionths) {
	w.ints("order", order)
	w.name("weights")
	w.dst = append(w.dst, '[')
	for i, weight := range weights {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.dst = weight.Append(w.dst)
	}
	w.dst = append(w.dst, ']')
}

func (w *writer) ints(name string, list []int32) {
	w.name(name)
	w.dst = append(w.dst, '[')
	for i, n := range list {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.dst = strconv.AppendInt(w.dst, int64(n), 10)
	}
	w.dst = append(w.dst, ']')
}

func (w *writer) threshold(t *machine.Threshold) {
	if t != nil {
		w.name("threshold")
		w.dst = exact.AppendFloat(w.dst, t.Given)
	}
}

func (d *Gated) append(dst []byte, _ specialist.RoundKey) []byte {
	w := object(dst)
	w.str("transitionName", d.Transition.Name)
	w.str("toState", d.Transition.Target)
	w.flag("isHuman", d.IsHuman)
	w.str("status", d.Verdict.Status.String())
	if len(d.Verdict.Reasons) > 0 {
		w.name("reasons")
		w.dst = appendReasons(w.dst, d.Verdict.Reasons)
	}
	w.strs("notices", d.Verdict.Notices)
	return w.end()
}

func appendReasons(dst []byte, reasons []verdict.Reason) []byte {
	dst = append(dst, '[')
	for i, r := range reasons {
		if i > 0 {
			dst = append(dst, ',')
		}
		w := object(dst)
		w.str("code", r.Code)
		w.str("guard", r.Guard)
		w.str("class", r.Class.String())
		w.str("message", r.Message)
		w.opt("limit", r.Limit)
		w.opt("observed", r.Seen)
		w.opt("subject", r.Subject)
		if len(r.Indices) > 0 {
			w.ints("indices", r.Indices)
		}
		if f := r.Found; f != nil {
			w.str("part", f.Part)
			if f.Call != 0 {
				w.int("call", int64(f.Call))
			}
			w.int("offset", int64(f.Offset))
			w.int("length", int64(f.Length))
		}
		dst = w.end()
	}
	return append(dst, ']')
}

func (d *Ruled) append(dst []byte, key specialist.RoundKey) []byte {
	w := object(dst)
	w.str("roundId", key.ID())
	w.str("specialistId", d.SpecialistID)
	if d.Transition != nil {
		w.str("transitionName", d.Transition.Name)
	}
	w.raw("metaJson", d.MetaJSON)
	w.opt("reasoning", d.Reasoning)
	w.str("questionDigest", d.QuestionDigest)
	w.flag("blind", d.Blind)
	if d.Direct {
		w.str("decision", Direct.String())
	}
	w.draws(d.Draws)
	return w.end()
}

// draws writes what was drawn, unless nothing could be.
func (w *writer) draws(d *Draws) {
	if d != nil {
		w.name("draws")
		w.dst = appendJSON(w.dst, d)
	}
}

func (d *Executed) append(dst []byte, key specialist.RoundKey) []byte {
	w := object(dst)
	w.str("decisionId", key.DecisionID())
	w.str("decision", d.How.String())
	w.str("transitionName", d.Transition.Name)
	w.str("fromState", d.Transition.From.Name)
	w.str("toState", d.Transition.Target)
	w.bool("isHuman", d.IsHuman)
	w.opt("specialistId", d.SpecialistID)
	if d.Arrival != 0 {
		w.str("proposalId", key.ProposalID(d.Arrival))
		w.int("arrival", int64(d.Arrival))
	}
	w.str("reasoning", d.Reasoning)
	w.raw("metaJson", d.MetaJSON)
	if d.Standing != nil {
		w.threshold(d.Standing.Threshold)
		w.standing(d.Standing.Order, d.Standing.Weights)
	}
	w.draws(d.Draws)
	w.strs("authors", d.Authors)
	return w.end()
}

func (d *Learned) append(dst []byte, _ specialist.RoundKey) []byte {
	dst = append(dst, `{"comparisons":[`...)
	for i, c := range d.Comparisons {
		if i > 0 {
			dst = append(dst, ',')
		}
		w := object(dst)
		w.str("specialistId", c.SpecialistID)
		w.opt("state", c.State)
		w.bool("match", c.Match)
		dst = w.end()
	}
	dst = append(dst, ']')
	if d.Exemplar != nil {
		dst = d.Exemplar.Append(append(dst, `,"exemplar":`...))
	}
	if d.Outcome != nil {
		dst = appendOutcome(append(dst, `,"outcome":`...), d.Outcome)
	}
	if d.Held != nil {
		dst = appendOutcome(append(dst, `,"held":`...), d.Held)
	}
	if d.Second != nil {
		dst = appendJSON(append(dst, `,"secondLook":`...), d.Second)
	}
	return append(dst, '}')
}

// appendOutcome appends an outcome that was checked when it was made.
func appendOutcome(dst []byte, o *trust.Outcome) []byte {
	text, err := o.Encode()
	if err != nil {
		panic("runner: an outcome that was never checked: " + err.Error())
	}
	return append(dst, text...)
}

func (d *AwaitsHuman) append(dst []byte, _ specialist.RoundKey) []byte {
	w := object(dst)
	w.str("code", d.Code)
	w.str("reason", d.Reason)
	w.draws(d.Draws)
	return w.end()
}

func (d *Reviewed) append(dst []byte, key specialist.RoundKey) []byte {
	key.Round, key.Attempt = d.Round, d.Attempt
	w := object(dst)
	w.str("review", string(d.Review))
	w.str("roundId", key.ID())
	w.int("round", int64(d.Round))
	w.int("attempt", int64(d.Attempt))
	w.str("specialistId", d.SpecialistID)
	w.str("transitionName", d.TransitionName)
	w.opt("reasoning", d.Reasoning)
	if d.Lesson != nil {
		w.name("lesson")
		w.dst = appendLesson(w.dst, d.Lesson)
	}
	return w.end()
}

func (d *Adopted) append(dst []byte, _ specialist.RoundKey) []byte {
	w := object(dst)
	w.str("specialistId", d.SpecialistID)
	w.opt("reason", d.Reason)
	w.name("lesson")
	w.dst = appendLesson(w.dst, d.Lesson)
	return w.end()
}

// appendLesson appends a lesson that was checked when it was made.
func appendLesson(dst []byte, l *trust.Lesson) []byte {
	text, err := l.Encode()
	if err != nil {
		panic("runner: a lesson that was never checked: " + err.Error())
	}
	return append(dst, text...)
}

func (d *Resumed) append(dst []byte, _ specialist.RoundKey) []byte {
	w := object(dst)
	w.opt("actor", d.Actor)
	w.opt("note", d.Note)
	w.flag("retryFailed", d.RetryFailed)
	w.flag("cleared", d.Cleared)
	if len(d.Raised) > 0 {
		w.name("raised")
		w.dst = appendJSON(w.dst, d.Raised)
	}
	return w.end()
}

func (d *Ended) append(dst []byte, _ specialist.RoundKey) []byte {
	w := object(dst)
	w.str("status", d.Status.String())
	w.str("code", d.Code)
	w.opt("reason", d.Reason)
	if d.Actor != nil {
		w.name("actor")
		w.dst = appendJSON(w.dst, d.Actor)
	}
	return w.end()
}
