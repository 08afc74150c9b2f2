package specialist

import (
	"strconv"

	"github.com/dialai/dialai/internal/jsontext"
)

// AppendProposal appends p as one JSON object, as it is shown.
func AppendProposal(dst []byte, key RoundKey, p *Proposal) []byte {
	str := func(name, value string) {
		dst = append(append(append(dst, ',', '"'), name...), '"', ':')
		dst = jsontext.AppendString(dst, value)
	}
	dst = append(append(dst, `{"proposalId":"`...), key.ProposalID(p.Arrival)...)
	dst = append(dst, '"')
	str("sessionId", key.Session.String())
	str("roundId", key.ID())
	str("specialistId", p.SpecialistID)
	dst = strconv.AppendBool(append(dst, `,"isHuman":`...), p.IsHuman)
	str("transitionName", p.Transition.Name)
	str("toState", p.Transition.Target)
	str("reasoning", p.Reasoning)
	if p.MetaJSON != nil {
		dst = append(append(dst, `,"metaJson":`...), p.MetaJSON...)
	}
	dst = AppendUsage(dst, p.Usage)
	dst = append(p.CreatedAt.Append(append(dst, `,"createdAt":"`...)), '"')
	dst = strconv.AppendInt(append(dst, `,"arrival":`...), int64(p.Arrival), 10)
	str("mode", p.Mode.String())
	if d := p.Detail; d != nil {
		if d.Model != "" {
			str("model", d.Model)
		}
		if d.Asked != "" {
			str("askedModel", d.Asked)
		}
		if len(d.ToolCalls) > 0 {
			dst = AppendToolCalls(append(dst, `,"toolCalls":`...), d.ToolCalls)
		}
		if len(d.OptionOrder) > 0 {
			dst = append(dst, `,"optionOrder":[`...)
			for i, o := range d.OptionOrder {
				if i > 0 {
					dst = append(dst, ',')
				}
				dst = jsontext.AppendString(dst, o)
			}
			dst = append(dst, ']')
		}
		if d.AskID != "" {
			str("askId", d.AskID)
		}
	}
	if p.Replaces != 0 {
		str("replaces", key.ProposalID(p.Replaces))
	}
	return append(dst, '}')
}

// AppendToolCalls appends tool calls as a JSON array.
func AppendToolCalls(dst []byte, calls []ToolCall) []byte {
	dst = append(dst, '[')
	for i, c := range calls {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsontext.AppendString(append(dst, `{"name":`...), c.Name)
		if c.Args != nil {
			dst = append(append(dst, `,"args":`...), c.Args...)
		}
		if c.ID != "" {
			dst = jsontext.AppendString(append(dst, `,"id":`...), c.ID)
		}
		if c.Result != nil {
			dst = append(append(dst, `,"result":`...), c.Result...)
		}
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// AppendHistory appends executed transitions as a JSON array of DIAL's four
// members each.
func AppendHistory(dst []byte, history []TransitionRecord) []byte {
	dst = append(dst, '[')
	for i := range history {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = history[i].append(dst)
	}
	return append(dst, ']')
}
