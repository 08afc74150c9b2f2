package machine

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/jsontext"
)

// A definition is the machine file as data: the fields have the members' names, and their
// tags the bounds that a single value has to keep (go-playground/validator). What is true only
// of several values together is checked in check*.go, once the file is decoded. Compile makes
// a Machine of it, with every name resolved. The order of the fields is that of the canonical
// form, of which the digest is taken; absent members are not in it, so that the digests of
// files without a newer member stay.

// A Definition is a machine file as it was written: every list, and the states
// and transitions too, in written order. Parse makes one from a file; a program
// may also build one and hand it to [Compile]. The zero value of every optional
// field means that the field is absent. The fields stand in the order of the canonical form.
type Definition struct {
	MachineName        string          `json:"machineName,omitempty" validate:"name"`
	InitialState       string          `json:"initialState,omitempty"`
	GoalState          string          `json:"goalState,omitempty"`
	States             stateList       `json:"states" validate:"max=1000,dive"`
	Specialists        []Specialist    `json:"specialists,omitzero" validate:"max=256,dive"`
	ConsensusThreshold *Threshold      `json:"consensusThreshold,omitempty" validate:"omitnil,unit"`
	RequireTrust       *bool           `json:"requireTrust,omitempty"`
	Guards             json.RawMessage `json:"guards,omitzero"` // one JSON value, see package guard
	Risk               *Risk           `json:"risk,omitempty"`
	Solicit            *Solicit        `json:"solicit,omitempty"`
	Quorum             *Quorum         `json:"quorum,omitempty" validate:"-"` // see checkQuorum
	Collapse           *Collapse       `json:"collapse,omitempty"`
	Audit              *Audit          `json:"audit,omitempty"`
	SecondHuman        *SecondHuman    `json:"secondHuman,omitempty"`
	OptionOrder        OptionOrder     `json:"optionOrder,omitempty" validate:"omitempty,oneof=random declared"`
	Stacking           string          `json:"stacking,omitempty" validate:"omitempty,oneof=auto off"`
	LearnFrom          string          `json:"learnFrom,omitempty" validate:"omitempty,oneof=humans humansAndRounds"`
	Input              json.RawMessage `json:"input,omitzero" validate:"maxbytes=65536"` // a JSON Schema for a session's metaJson
	Subject            string          `json:"subject,omitempty"`                        // an expression: what a session is about
	Groups             groupList       `json:"groups,omitzero" validate:"max=256"`       // of humans; nil if absent
}

// A StateDefinition is one state of a machine file.
type StateDefinition struct {
	Name               string          `json:"name" validate:"name"` // its key in "states"
	Prompt             string          `json:"prompt,omitempty" validate:"maxbytes=65536"`
	Transitions        transitionList  `json:"transitions,omitzero" validate:"max=256,dive"` // nil if absent
	ConsensusThreshold *Threshold      `json:"consensusThreshold,omitempty" validate:"omitnil,unit"`
	Specialists        []Specialist    `json:"specialists,omitzero" validate:"max=256,dive"` // nil if absent; an empty list means nobody
	RequireTrust       *bool           `json:"requireTrust,omitempty"`
	Guards             json.RawMessage `json:"guards,omitzero"`
	Risk               *Risk           `json:"risk,omitempty"`
	Solicit            *Solicit        `json:"solicit,omitempty"`
	Quorum             *Quorum         `json:"quorum,omitempty" validate:"-"` // see checkQuorum
	Collapse           *Collapse       `json:"collapse,omitempty"`
	Audit              *Audit          `json:"audit,omitempty"`
	SecondHuman        *SecondHuman    `json:"secondHuman,omitempty"`
	OptionOrder        OptionOrder     `json:"optionOrder,omitempty" validate:"omitempty,oneof=random declared"`
	Irreversible       *bool           `json:"irreversible,omitempty"`
	Final              bool            `json:"final,omitempty"`
	Deciders           []string        `json:"deciders,omitzero" validate:"max=256"` // ids and groups of those who may rule; nil means every human who takes part
	Due                *Due            `json:"due,omitempty" validate:"-"`           // by when it is to be left; see checkDue
}

// A TransitionDefinition is one transition of a state.
type TransitionDefinition struct {
	Name         string          `json:"name" validate:"name"` // its key in "transitions"
	Target       string          `json:"target,omitempty"`
	Description  string          `json:"description,omitempty" validate:"maxbytes=4096"`
	Parameters   json.RawMessage `json:"parameters,omitzero" validate:"maxbytes=65536"` // a JSON Schema for metaJson
	Irreversible *bool           `json:"irreversible,omitempty"`
	When         string          `json:"when,omitempty"`                         // an expression: whether it may be chosen
	Set          json.RawMessage `json:"set,omitzero" validate:"maxbytes=65536"` // an object: what it writes into a session's data
	Approvals    *Approvals      `json:"approvals,omitempty" validate:"-"`       // see checkApprovals
}

// A Role says what a specialist does.
type Role string

// The two roles.
const (
	Proposer Role = "proposer"
	Arbiter  Role = "arbiter"
)

// A SpecialistID is what a caller calls a specialist, and a StateName a state. They keep
// the two, and other texts, apart in what is asked of the engine; definitions and what is
// stored hold plain text.
type (
	SpecialistID string
	StateName    string
)

// A Specialist declares who proposes or arbitrates and how it is asked. It is
// plain data and may be copied.
type Specialist struct {
	Role               Role         `json:"role" validate:"oneof=proposer arbiter"`
	SpecialistID       string       `json:"specialistId" validate:"name"`
	MachineName        string       `json:"machineName,omitempty"`
	IsHuman            bool         `json:"isHuman,omitempty"`
	Enabled            *bool        `json:"enabled,omitempty"`
	Disabled           *bool        `json:"disabled,omitempty"`
	StrategyFn         string       `json:"strategyFn,omitempty"` // a Registry name, or an expression after "="
	StrategyFnName     string       `json:"strategyFnName,omitempty"`
	StrategyWebhookURL string       `json:"strategyWebhookUrl,omitempty" validate:"omitempty,weburl"`
	ContextFn          string       `json:"contextFn,omitempty"`
	ContextWebhookURL  string       `json:"contextWebhookUrl,omitempty" validate:"omitempty,weburl"`
	ModelID            string       `json:"modelId,omitempty" validate:"max=256"`
	Agent              string       `json:"agent,omitempty" validate:"max=1024"` // a coding agent, which answers later
	WebhookTokenName   string       `json:"webhookTokenName,omitempty" validate:"max=128"`
	Threshold          *Threshold   `json:"threshold,omitempty" validate:"omitnil,unit"`
	Timeout            Duration     `json:"timeout,omitempty" validate:"gte=0"`
	EstimatedCostUSD   *exact.Money `json:"estimatedCostUSD,omitempty" validate:"omitnil,gte=0"`
	WebhookSecretName  string       `json:"webhookSecretName,omitempty" validate:"max=128"`
	Provider           string       `json:"provider,omitempty" validate:"max=128"`
	Required           bool         `json:"required,omitempty"` // without its answer a human decides
}

// Risk declares how often automatic decisions may be wrong, and how surely.
type Risk struct {
	MaxError   float64 `json:"maxError" validate:"gt=0,lt=1,gte=0.000000001,lte=0.999999999"`   // counted in billionths
	Confidence float64 `json:"confidence" validate:"gt=0,lt=1,gte=0.000000001,lte=0.999999999"` // likewise; 0.9 if absent
	Test       string  `json:"test,omitempty" validate:"omitempty,oneof=eProcess clopperPearson"`
	Familywise bool    `json:"familywise,omitempty"`
}

// defaultConfidence is that of a Risk that states none.
const defaultConfidence = 0.9

// A Mode says how the proposers of a round are asked.
type Mode string

// The modes of asking: everyone at once (the default), one proposer a step, or
// in waves, cheapest first.
const (
	All        Mode = "all"
	Eager      Mode = "eager"
	Sequential Mode = "sequential"
)

// Solicit says how specialists are asked. Zero members are absent: a state's
// value wins over the machine's, that over the defaults of [State.Solicit].
type Solicit struct {
	Mode         Mode         `json:"mode,omitempty" validate:"omitempty,oneof=all eager sequential"`
	Timeout      Duration     `json:"timeout,omitempty" validate:"gte=0"`
	RoundTimeout Duration     `json:"roundTimeout,omitempty" validate:"gte=0"`
	AsyncTimeout Duration     `json:"asyncTimeout,omitempty" validate:"gte=0"`
	MaxParallel  int          `json:"maxParallel,omitempty" validate:"gte=0,lte=10000"`
	Wave         int          `json:"wave,omitempty" validate:"gte=-1,lte=256"` // AutoWave for "auto"
	Champion     *bool        `json:"champion,omitempty"`
	HumanCost    *exact.Money `json:"humanCost,omitempty" validate:"omitnil,gte=0"` // of one human decision
}

// AutoWave is the Wave that is as large as could decide the round: "auto".
const AutoWave = -1

// A Duration is a time.Duration written as Go writes it, such as "30s".
type Duration time.Duration

// String returns d as Go writes it.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalJSON writes d as a string.
func (d Duration) MarshalJSON() ([]byte, error) { return []byte(strconv.Quote(d.String())), nil }

// UnmarshalJSON reads a string such as "30s".
func (d *Duration) UnmarshalJSON(data []byte) error {
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	v, err := time.ParseDuration(s)
	*d = Duration(v)
	return err
}

// A Threshold is a consensus threshold: as it was given, for texts, and in
// billionths, for comparisons.
type Threshold struct {
	Given  float64
	Weight exact.Billionths
}

// NewThreshold returns the threshold f. It refuses NaN and infinities; files
// accept 0 to 1 only. Beyond a thousand million, which no margin reaches, the
// weight is that of a thousand million.
func NewThreshold(f float64) (Threshold, error) {
	weighed := f
	if !math.IsInf(f, 0) { // what is NaN stays so
		weighed = min(max(f, -1e9), 1e9)
	}
	w, err := exact.FromFloat(weighed)
	if err != nil {
		return Threshold{}, fmt.Errorf("threshold %w", err)
	}
	return Threshold{f, w}, nil
}

// String returns the threshold as given, in its shortest form, with an exponent
// only below 1e-6.
func (t Threshold) String() string {
	switch {
	case math.IsNaN(t.Given) || math.IsInf(t.Given, 0): // never one of NewThreshold
		return fmt.Sprint(t.Given)
	case math.Abs(t.Given) >= 1e21: // where JSON begins to write exponents
		return strconv.FormatFloat(t.Given, 'f', -1, 64)
	}
	return jsontext.FormatFloat(t.Given)
}

// MarshalJSON writes the threshold as given.
func (t Threshold) MarshalJSON() ([]byte, error) { return jsontext.AppendFloat(nil, t.Given), nil }

// UnmarshalJSON reads a JSON number.
func (t *Threshold) UnmarshalJSON(data []byte) error {
	var f float64
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	v, err := NewThreshold(f)
	*t = v
	return err
}

// inUnit reports whether t lies in 0..1.
func (t Threshold) inUnit() bool { return t.Given >= 0 && t.Given <= 1 && !math.IsNaN(t.Given) }

// Off reports whether s is switched off, by either of its two fields.
func (s *Specialist) Off() bool {
	return s.Disabled != nil && *s.Disabled || s.Enabled != nil && !*s.Enabled
}

// Reference reports whether s, in the list of a state, only names a specialist
// declared elsewhere.
func (s *Specialist) Reference() bool {
	bare := Specialist{Role: s.Role, SpecialistID: s.SpecialistID, Enabled: s.Enabled, Disabled: s.Disabled, Required: s.Required}
	return *s == bare
}

// Local reports whether s is asked inside this process: a function, a built-in
// strategy or an expression.
func (s *Specialist) Local() bool { return s.StrategyFn != "" || s.StrategyFnName != "" }

// hasMode reports whether s says how it is to be asked.
func (s *Specialist) hasMode() bool {
	return s.Local() || s.StrategyWebhookURL != "" || s.ContextFn != "" || s.ContextWebhookURL != "" || s.ModelID != "" || s.Agent != ""
}

// LearnsFromRounds reports whether bayes learns from rounds without a human's word, too.
func (def *Definition) LearnsFromRounds() bool { return def.LearnFrom == "humansAndRounds" }
