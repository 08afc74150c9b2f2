package runner

import (
	"encoding/json"
	"strconv"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/trust"
)

// The stored form of events: a JSON array of {seq, at, kind, data}, members in a
// fixed order, so that the same events always give the same bytes and the same
// hash. decode.go reads it back.

// AppendEvents appends events as one JSON array. key is that of the round in
// which they begin, first the sequence number of the first.
func AppendEvents(dst []byte, key specialist.RoundKey, first int64, events []Event) []byte {
	dst = append(dst, '[')
	for i := range events {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst, key = appendEvent(dst, &events[i], first+int64(i), key)
	}
	return append(dst, ']')
}

// appendEvent appends one event and returns the key of the round after it.
func appendEvent(dst []byte, e *Event, seq int64, key specialist.RoundKey) ([]byte, specialist.RoundKey) {
	if o, ok := e.Data.(*RoundOpened); ok {
		key.Round, key.Attempt = o.Round, o.Attempt
	}
	dst = strconv.AppendInt(append(dst, `{"seq":`...), seq, 10)
	dst = e.At.Append(append(dst, `,"at":"`...))
	dst = append(append(dst, `","kind":"`...), e.Data.Kind()...)
	dst = e.Data.append(append(dst, `","data":`...), key)
	return append(dst, '}'), key
}

// A writer appends the members of one JSON object.
type writer struct {
	dst  []byte
	some bool
}

func object(dst []byte) writer { return writer{dst: append(dst, '{')} }

func (w *writer) end() []byte { return append(w.dst, '}') }

func (w *writer) name(name string) {
	if w.some {
		w.dst = append(w.dst, ',')
	}
	w.some = true
	w.dst = append(append(append(w.dst, '"'), name...), '"', ':')
}

// str writes a member; opt only if it is not empty.
func (w *writer) str(name, v string) {
	w.name(name)
	w.dst = exact.AppendString(w.dst, v)
}

func (w *writer) opt(name, v string) {
	if v != "" {
		w.str(name, v)
	}
}

func (w *writer) int(name string, v int64) {
	w.name(name)
	w.dst = strconv.AppendInt(w.dst, v, 10)
}

// count writes a member unless it is 0.
func (w *writer) count(name string, v int64) {
	if v != 0 {
		w.int(name, v)
	}
}

func (w *writer) bool(name string, v bool) {
	w.name(name)
	w.dst = strconv.AppendBool(w.dst, v)
}

func (w *writer) flag(name string, v bool) {
	if v {
		w.bool(name, v)
	}
}

func (w *writer) raw(name string, v []byte) {
	if v != nil {
		w.name(name)
		w.dst = append(w.dst, v...)
	}
}

func (w *writer) time(name string, t specialist.Time) {
	w.name(name)
	w.dst = append(t.Append(append(w.dst, '"')), '"')
}

func (w *writer) strs(name string, list []string) {
	if len(list) == 0 {
		return
	}
	w.name(name)
	w.dst = append(w.dst, '[')
	for i, s := range list {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.dst = exact.AppendString(w.dst, s)
	}
	w.dst = append(w.dst, ']')
}

func (w *writer) usage(u specialist.Usage) { w.dst = specialist.AppendUsage(w.dst, u) }

func (w *writer) money(name string, m exact.Money) {
	w.name(name)
	w.dst = m.Append(w.dst)
}

func (d *Created) append(dst []byte, key specialist.RoundKey) []byte {
	w := object(dst)
	w.str("sessionId", key.Session.String())
	w.str("machineName", d.Program.Machine.Name())
	w.str("machineDigest", d.Program.Machine.Digest())
	w.raw("metaJson", d.Options.Meta)
	if d.Options.Seed != 0 {
		w.str("seed", strconv.FormatUint(d.Options.Seed, 10))
	}
	w.flag("defaultProposer", d.Options.DefaultProposer)
	w.flag("defaultArbiter", d.Options.DefaultArbiter)
	w.opt("mode", string(d.Options.Mode))
	w.opt("prices", d.Options.Prices)
	return w.end()
}

func (d *RoundOpened) append(dst []byte, key specialist.RoundKey) []byte {
	w := object(dst)
	w.str("roundId", key.ID())
	w.int("round", int64(d.Round))
	w.int("attempt", int64(d.Attempt))
	w.str("state", d.State.Name)
	w.strs("notices", d.Notices)
	return w.end()
}

func (d *Asked) append(dst []byte, key specialist.RoundKey) []byte {
	dst = append(dst, `{"asks":[`...)
	for i := range d.Asks {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = d.Asks[i].append(dst, key)
	}
	dst = append(dst, ']')
	if d.Wave != nil {
		dst = appendJSON(append(dst, `,"wave":`...), d.Wave)
	}
	return append(dst, '}')
}

func (a *Ask) append(dst []byte, key specialist.RoundKey) []byte {
	w := object(dst)
	w.int("ask", int64(a.Index))
	w.str("specialistId", a.SpecialistID)
	w.str("mode", a.Source.String())
	if a.Role != machine.Proposer {
		w.str("role", string(a.Role))
	}
	w.flag("shadow", a.Shadow)
	if r := a.Remote; r != nil {
		w.str("askId", key.AskID(a.Index))
		w.opt("owner", r.Owner)
		w.time("deadline", r.Deadline)
		if r.Estimate != 0 {
			w.money("estimatedCostUSD", r.Estimate)
		}
		w.count("estimatedInputTokens", r.TokensIn)
		w.count("estimatedOutputTokens", r.TokensOut)
		w.flag("accepted", r.Accepted)
		w.opt("tokenHash", r.TokenHash)
		if r.Repeat != 0 {
			w.int("repeat", int64(r.Repeat))
		}
	}
	return w.end()
}

func (d *Proposed) append(dst []byte, key specialist.RoundKey) []byte {
	dst = specialist.AppendProposal(dst, key, &d.Proposal, false)
	if d.Ask == 0 {
		return dst
	}
	dst = append(dst[:len(dst)-1], `,"ask":`...)
	return append(strconv.AppendInt(dst, int64(d.Ask), 10), '}')
}

func (d *AskFailed) append(dst []byte, _ specialist.RoundKey) []byte {
	w := object(dst)
	w.str("specialistId", d.SpecialistID)
	w.int("ask", int64(d.Ask))
	if d.Role == machine.Arbiter {
		w.str("role", string(d.Role))
	}
	w.str("code", d.Code)
	w.str("message", d.Message)
	w.usage(d.Usage)
	w.opt("model", d.Model)
	return w.end()
}

func (d *Discarded) append(dst []byte, key specialist.RoundKey) []byte {
	w := object(dst)
	w.str("specialistId", d.SpecialistID)
	key.Round, key.Attempt = d.Round, d.Attempt
	w.str("roundId", key.ID())
	w.int("round", int64(d.Round))
	w.int("attempt", int64(d.Attempt))
	w.int("ask", int64(d.Ask))
	w.opt("transitionName", d.TransitionName)
	w.str("code", d.Code)
	w.usage(d.Usage)
	w.opt("model", d.Model)
	if d.Charged != 0 {
		w.money("charged", d.Charged)
	}
	w.count("chargedInputTokens", d.ChargedIn)
	w.count("chargedOutputTokens", d.ChargedOut)
	return w.end()
}

func (d *Probed) append(dst []byte, _ specialist.RoundKey) []byte {
	w := object(dst)
	w.str("guard", d.Guard)
	w.int("ask", int64(d.Ask))
	w.opt("stage", d.Stage)
	w.opt("question", d.Question)
	w.opt("reply", d.Reply)
	if d.Value != nil {
		w.name("value")
		w.dst = strconv.AppendFloat(w.dst, *d.Value, 'g', -1, 64)
	}
	w.opt("code", d.Code)
	w.opt("message", d.Message)
	w.usage(d.Usage)
	w.opt("model", d.Model)
	w.flag("free", d.Free)
	return w.end()
}

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

func appendReasons(dst []byte, reasons []guard.Reason) []byte {
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
	if d.Draws != nil {
		w.name("draws")
		w.dst = appendJSON(w.dst, d.Draws)
	}
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
	if d.Draws != nil {
		w.name("draws")
		w.dst = appendJSON(w.dst, d.Draws)
	}
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
	return w.end()
}

func (d *Ended) append(dst []byte, _ specialist.RoundKey) []byte {
	w := object(dst)
	w.str("status", d.Status.String())
	w.str("code", d.Code)
	w.opt("reason", d.Reason)
	return w.end()
}
