package session

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// A reading is the data of one event on its way in.
type reading struct {
	data     []byte
	session  *Session
	arrivals int32 // in the round so far
}

func (d *reading) into(v any) error { return json.Unmarshal(d.data, v) }

func (d *reading) state(name string) (*machine.State, error) {
	if s := d.session.Machine().State(name); s != nil {
		return s, nil
	}
	return nil, &DecodeError{"state", name}
}

// transition finds a transition of the session's present state.
func (d *reading) transition(name string) (*machine.Transition, error) {
	if d.session.State != nil {
		if t := d.session.State.Transition(name); t != nil {
			return t, nil
		}
	}
	return nil, &DecodeError{"transition", name}
}

func (d *reading) roundOpened() (Data, error) {
	var v struct {
		Round   int32    `json:"round"`
		Attempt int32    `json:"attempt"`
		State   string   `json:"state"`
		Notices []string `json:"notices"`
	}
	if err := d.into(&v); err != nil {
		return nil, err
	}
	s, err := d.state(v.State)
	return &RoundOpened{v.Round, v.Attempt, s, v.Notices}, err
}

func (d *reading) asked() (Data, error) {
	var v struct {
		Asks []struct {
			Ask              int32           `json:"ask"`
			SpecialistID     string          `json:"specialistId"`
			Mode             string          `json:"mode"`
			Role             machine.Role    `json:"role"`
			AskID            string          `json:"askId"`
			Owner            string          `json:"owner"`
			Deadline         specialist.Time `json:"deadline"`
			EstimatedCostUSD exact.Money     `json:"estimatedCostUSD"`
			TokensIn         int64           `json:"estimatedInputTokens"`
			TokensOut        int64           `json:"estimatedOutputTokens"`
			Accepted         bool            `json:"accepted"`
			TokenHash        string          `json:"tokenHash"`
			Repeat           int32           `json:"repeat"`
			SpareCalls       int64           `json:"spareCalls"`
			SpareBilled      int64           `json:"spareBilledCalls"`
			SpareIn          int64           `json:"spareInputTokens"`
			SpareOut         int64           `json:"spareOutputTokens"`
			SpareCostUSD     exact.Money     `json:"spareCostUSD"`
			Lost             bool            `json:"lost"`
			Shadow           bool            `json:"shadow"`
		} `json:"asks"`
		Wave *Wave `json:"wave"`
	}
	if err := d.into(&v); err != nil {
		return nil, err
	}
	asked := &Asked{Asks: make([]Ask, len(v.Asks)), Wave: v.Wave}
	if x := v.Wave; x != nil && x.Information != nil && len(x.Information) != len(x.Specialists) {
		return nil, &DecodeError{"information", fmt.Sprint(x.Information)}
	}
	for i, a := range v.Asks {
		role, err := roleOr(a.Role)
		if err != nil {
			return nil, err
		}
		asked.Asks[i] = Ask{SpecialistID: a.SpecialistID, Index: a.Ask, Role: role, Source: specialist.SourceNamed(a.Mode), Shadow: a.Shadow}
		if a.AskID != "" {
			asked.Asks[i].Remote = &RemoteAsk{a.Owner, a.Deadline, a.EstimatedCostUSD, a.TokensIn, a.TokensOut, a.Accepted, a.TokenHash, a.Repeat,
				Spare{a.SpareCalls, a.SpareBilled, a.SpareCostUSD, a.SpareIn, a.SpareOut}, a.Lost}
		}
	}
	return asked, nil
}

// roleOr returns the role of that name; none means proposer.
func roleOr(r machine.Role) (machine.Role, error) {
	switch r {
	case "":
		return machine.Proposer, nil
	case machine.Proposer, machine.Arbiter, GuardRole:
		return r, nil
	}
	return "", &DecodeError{"role", string(r)}
}

// UsageJSON is the cost members of an event.
type UsageJSON struct {
	CostUSD         *exact.Money `json:"costUSD"`
	LatencyMsec     *int64       `json:"latencyMsec"`
	NumInputTokens  *int64       `json:"numInputTokens"`
	NumOutputTokens *int64       `json:"numOutputTokens"`
	Calls           *int64       `json:"calls"`
	Unbilled        int64        `json:"unbilledCalls"`
	Estimated       bool         `json:"estimated"`

	TokenDetail *specialist.UsageDetail `json:"tokenDetail"`
}

// Usage returns it as a value that knows which members were given.
func (u UsageJSON) Usage() (v specialist.Usage) {
	if u.CostUSD != nil {
		v = v.WithCost(*u.CostUSD)
	}
	for _, m := range []struct {
		from *int64
		into *int64
		bit  specialist.Given
	}{
		{u.LatencyMsec, &v.LatencyMsec, specialist.LatencyGiven},
		{u.NumInputTokens, &v.NumInputTokens, specialist.InputGiven},
		{u.NumOutputTokens, &v.NumOutputTokens, specialist.OutputGiven},
		{u.Calls, &v.Calls, specialist.CallsGiven},
	} {
		if m.from != nil {
			*m.into, v.Given = *m.from, v.Given|m.bit
		}
	}
	v.Unbilled, v.Estimated, v.Detail = u.Unbilled, u.Estimated, u.TokenDetail
	return v
}

func (d *reading) proposed(at specialist.Time) (Data, error) {
	var v struct {
		UsageJSON
		SpecialistID   string                `json:"specialistId"`
		IsHuman        bool                  `json:"isHuman"`
		TransitionName string                `json:"transitionName"`
		Reasoning      string                `json:"reasoning"`
		MetaJSON       json.RawMessage       `json:"metaJson"`
		Arrival        int32                 `json:"arrival"`
		Mode           string                `json:"mode"`
		Model          string                `json:"model"`
		Asked          string                `json:"askedModel"`
		ToolCalls      []specialist.ToolCall `json:"toolCalls"`
		OptionOrder    []string              `json:"optionOrder"`
		AskID          string                `json:"askId"`
		Replaces       string                `json:"replaces"`
		Ask            int32                 `json:"ask"`
	}
	if err := d.into(&v); err != nil {
		return nil, err
	}
	t, err := d.transition(v.TransitionName)
	if err != nil {
		return nil, err
	}
	if v.Arrival != d.arrivals+1 {
		return nil, &DecodeError{"arrival", strconv.Itoa(int(v.Arrival))}
	}
	p := &Proposed{Ask: v.Ask, Proposal: specialist.Proposal{
		SpecialistID: v.SpecialistID, IsHuman: v.IsHuman, Transition: t, Reasoning: v.Reasoning, MetaJSON: v.MetaJSON,
		Usage: v.Usage(), CreatedAt: at, Arrival: v.Arrival, Mode: specialist.SourceNamed(v.Mode),
	}}
	if v.Model != "" || v.ToolCalls != nil || v.OptionOrder != nil || v.AskID != "" {
		p.Detail = &specialist.Detail{Model: v.Model, Asked: v.Asked, ToolCalls: v.ToolCalls, OptionOrder: v.OptionOrder, AskID: v.AskID}
	}
	if v.Replaces != "" {
		key := d.session.Key()
		for i := v.Arrival - 1; i > 0 && p.Replaces == 0; i-- {
			if key.ProposalID(i) == v.Replaces {
				p.Replaces = i
			}
		}
	}
	return p, nil
}

func (d *reading) askFailed() (Data, error) {
	var v struct {
		UsageJSON
		SpecialistID string       `json:"specialistId"`
		Ask          int32        `json:"ask"`
		Role         machine.Role `json:"role"`
		Code         string       `json:"code"`
		Message      string       `json:"message"`
		Model        string       `json:"model"`
		Asked        string       `json:"askedModel"`
	}
	if err := d.into(&v); err != nil {
		return nil, err
	}
	role, err := roleOr(v.Role)
	return &AskFailed{v.SpecialistID, v.Ask, role, v.Code, v.Message, v.Usage(), v.Model, v.Asked}, err
}

func (d *reading) discarded() (Data, error) {
	var v struct {
		UsageJSON
		SpecialistID   string      `json:"specialistId"`
		Round          int32       `json:"round"`
		Attempt        int32       `json:"attempt"`
		Ask            int32       `json:"ask"`
		TransitionName string      `json:"transitionName"`
		Code           string      `json:"code"`
		Model          string      `json:"model"`
		Asked          string      `json:"askedModel"`
		Charged        exact.Money `json:"charged"`
		ChargedIn      int64       `json:"chargedInputTokens"`
		ChargedOut     int64       `json:"chargedOutputTokens"`
		Repeat         int32       `json:"repeat"`
	}
	err := d.into(&v)
	return &Discarded{v.SpecialistID, v.Round, v.Attempt, v.Ask, v.TransitionName, v.Code, v.Usage(), v.Model, v.Asked, v.Charged, v.ChargedIn, v.ChargedOut, v.Repeat}, err
}

func (d *reading) probed() (Data, error) {
	var v struct {
		UsageJSON
		Guard    string   `json:"guard"`
		Ask      int32    `json:"ask"`
		Stage    string   `json:"stage"`
		Question string   `json:"question"`
		Reply    string   `json:"reply"`
		Value    *float64 `json:"value"`
		Code     string   `json:"code"`
		Message  string   `json:"message"`
		Model    string   `json:"model"`
		Asked    string   `json:"askedModel"`
		Free     bool     `json:"free"`
	}
	err := d.into(&v)
	return &Probed{v.Guard, v.Ask, v.Stage, v.Question, v.Reply, v.Value, v.Code, v.Message, v.Usage(), v.Model, v.Asked, v.Free}, err
}
