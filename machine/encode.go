package machine

import (
	"strconv"

	"github.com/dialai/dialai/exact"
)

// An objectWriter appends the members of one JSON object in canonical form.
// Absent members (zero values) are left out.
type objectWriter struct {
	dst  []byte
	some bool // a member has been written
}

func (w *objectWriter) name(name string) {
	if w.some {
		w.dst = append(w.dst, ',')
	}
	w.some = true
	w.dst = append(exact.AppendString(w.dst, name), ':')
}

func (w *objectWriter) str(name, value string) {
	if value != "" {
		w.name(name)
		w.dst = exact.AppendString(w.dst, value)
	}
}

func (w *objectWriter) flag(name string, value bool) {
	if value {
		w.name(name)
		w.dst = append(w.dst, "true"...)
	}
}

func (w *objectWriter) optionalFlag(name string, value *bool) {
	if value != nil {
		w.name(name)
		w.dst = strconv.AppendBool(w.dst, *value)
	}
}

func (w *objectWriter) float(name string, value float64) {
	w.name(name)
	w.dst = exact.AppendFloat(w.dst, value)
}

func (w *objectWriter) count(name string, value int) {
	if value != 0 {
		w.name(name)
		w.dst = strconv.AppendInt(w.dst, int64(value), 10)
	}
}

func (w *objectWriter) duration(name string, value Duration) {
	if value != 0 {
		w.str(name, value.String())
	}
}

func (w *objectWriter) threshold(name string, value *Threshold) {
	if value != nil {
		w.float(name, value.Given)
	}
}

func (w *objectWriter) raw(name string, value []byte) {
	if value != nil {
		w.name(name)
		w.dst = append(w.dst, value...)
	}
}

func (w *objectWriter) roster(list []Specialist) {
	if list == nil {
		return
	}
	w.name("specialists")
	w.dst = append(w.dst, '[')
	for i := range list {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.dst = list[i].AppendJSON(w.dst)
	}
	w.dst = append(w.dst, ']')
}

// policy writes the members that machine and state share.
func (w *objectWriter) policy(requireTrust *bool, guards []byte, risk *Risk, solicit *Solicit, quorum *Quorum, o oversight) {
	w.optionalFlag("requireTrust", requireTrust)
	w.raw("guards", guards)
	if risk != nil {
		w.name("risk")
		r := objectWriter{dst: append(w.dst, '{')}
		r.float("maxError", risk.MaxError)
		r.float("confidence", risk.Confidence)
		r.str("test", risk.Test)
		r.flag("familywise", risk.Familywise)
		w.dst = append(r.dst, '}')
	}
	if solicit != nil {
		w.name("solicit")
		s := objectWriter{dst: append(w.dst, '{')}
		s.str("mode", string(solicit.Mode))
		s.duration("timeout", solicit.Timeout)
		s.duration("roundTimeout", solicit.RoundTimeout)
		s.duration("asyncTimeout", solicit.AsyncTimeout)
		s.count("maxParallel", solicit.MaxParallel)
		if solicit.Wave == AutoWave {
			s.str("wave", "auto")
		} else {
			s.count("wave", solicit.Wave)
		}
		s.optionalFlag("champion", solicit.Champion)
		s.money("humanCost", solicit.HumanCost)
		w.dst = append(s.dst, '}')
	}
	w.quorum(quorum)
	w.oversight(o)
}

func (s *StateDefinition) appendJSON(dst []byte) []byte {
	w := objectWriter{dst: append(dst, '{')}
	w.str("prompt", s.Prompt)
	if s.Transitions != nil {
		w.name("transitions")
		w.dst = append(w.dst, '{')
		for i := range s.Transitions {
			if i > 0 {
				w.dst = append(w.dst, ',')
			}
			w.dst = append(exact.AppendString(w.dst, s.Transitions[i].Name), ':')
			w.dst = s.Transitions[i].appendJSON(w.dst)
		}
		w.dst = append(w.dst, '}')
	}
	w.threshold("consensusThreshold", s.ConsensusThreshold)
	w.roster(s.Specialists)
	w.policy(s.RequireTrust, s.Guards, s.Risk, s.Solicit, s.Quorum, oversight{s.Collapse, s.Audit, s.SecondHuman, s.OptionOrder})
	w.optionalFlag("irreversible", s.Irreversible)
	w.flag("final", s.Final)
	return append(w.dst, '}')
}

func (t *TransitionDefinition) appendJSON(dst []byte) []byte {
	w := objectWriter{dst: append(dst, '{')}
	w.str("target", t.Target)
	w.str("description", t.Description)
	w.raw("parameters", t.Parameters)
	w.optionalFlag("irreversible", t.Irreversible)
	return append(w.dst, '}')
}

// AppendJSON appends s in canonical form.
func (s *Specialist) AppendJSON(dst []byte) []byte {
	w := objectWriter{dst: append(dst, '{')}
	w.str("role", string(s.Role))
	w.str("specialistId", s.SpecialistID)
	w.str("machineName", s.MachineName)
	w.flag("isHuman", s.IsHuman)
	w.optionalFlag("enabled", s.Enabled)
	w.optionalFlag("disabled", s.Disabled)
	w.str("strategyFn", s.StrategyFn)
	w.str("strategyFnName", s.StrategyFnName)
	w.str("strategyWebhookUrl", s.StrategyWebhookURL)
	w.str("contextFn", s.ContextFn)
	w.str("contextWebhookUrl", s.ContextWebhookURL)
	w.str("modelId", s.ModelID)
	w.str("webhookTokenName", s.WebhookTokenName)
	w.threshold("threshold", s.Threshold)
	w.duration("timeout", s.Timeout)
	if s.EstimatedCostUSD != nil {
		w.name("estimatedCostUSD")
		w.dst = s.EstimatedCostUSD.Append(w.dst)
	}
	w.str("webhookSecretName", s.WebhookSecretName)
	w.str("provider", s.Provider)
	w.flag("required", s.Required)
	return append(w.dst, '}')
}
