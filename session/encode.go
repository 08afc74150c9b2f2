package session

import (
	"strconv"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// The stored form of events: a JSON array of {seq, at, kind, data}, members in a
// fixed order, so that the same events always give the same bytes and the same
// hash. The decode files read it back.

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
		w.spare(r.Spare)
		w.flag("lost", r.Lost)
	}
	return w.end()
}

func (w *writer) spare(s Spare) {
	w.count("spareCalls", s.Calls)
	w.count("spareBilledCalls", s.Billed)
	w.count("spareInputTokens", s.TokensIn)
	w.count("spareOutputTokens", s.TokensOut)
	if s.Money != 0 {
		w.money("spareCostUSD", s.Money)
	}
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
	w.opt("askedModel", d.Asked)
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
	w.opt("askedModel", d.Asked)
	if d.Charged != 0 {
		w.money("charged", d.Charged)
	}
	w.count("chargedInputTokens", d.ChargedIn)
	w.count("chargedOutputTokens", d.ChargedOut)
	w.count("repeat", int64(d.Repeat))
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
	w.opt("askedModel", d.Asked)
	w.flag("free", d.Free)
	return w.end()
}
