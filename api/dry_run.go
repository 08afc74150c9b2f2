package api

import (
	"encoding/json"
)

// A DryRunning has a definition run once, with everybody outside the server played by a script.
type DryRunning struct {
	Definition json.RawMessage `json:"definition" doc:"a definition, as machine files have it, or {name, text}: a machine file as it is written, JSON or YAML by its name"`
	MetaJSON   json.RawMessage `json:"metaJson,omitempty" doc:"of the session"`
	Answers    []DryAnswer     `json:"answers,omitempty" maxItems:"1000"`
	Seed       uint64          `json:"seed,omitempty" doc:"of random choices: with the same everything comes out the same"`
}

// A DryAnswer is what somebody says whenever they are asked, or if they have several answers for a
// state, the first time; the last of them is for ever after. Those for a state come before those
// for every state.
type DryAnswer struct {
	SpecialistID   string          `json:"specialistId" minLength:"1" maxLength:"255" doc:"a service, a model or an agent that proposes or arbitrates, or a human, who then rules"`
	State          string          `json:"state,omitempty" maxLength:"255" doc:"in which; without it in every one"`
	TransitionName string          `json:"transitionName,omitempty" maxLength:"255" doc:"of an arbiter without it: that there is no consensus"`
	Reasoning      string          `json:"reasoning,omitempty"`
	MetaJSON       json.RawMessage `json:"metaJson,omitempty" doc:"the payload"`
	Error          string          `json:"error,omitempty" doc:"they fail, in place of an answer"`
}

// A DryRun is how a session went that was never stored.
type DryRun struct {
	MachineName   string          `json:"machineName"`
	MachineDigest string          `json:"machineDigest"`
	Rounds        []DryRound      `json:"rounds"`
	Steps         int             `json:"steps" doc:"of the engine, rulings included"`
	CurrentState  string          `json:"currentState"`
	Data          json.RawMessage `json:"data,omitempty" doc:"of the session, as it is in the end"`
	Status        string          `json:"status" doc:"how it ended: completed, failed, stopped, needs_human (nobody has scripted a human who may rule), waiting (for what never comes) or limit"`
	Code          string          `json:"code" doc:"why, for programs; of limit step_limit, time_limit or size_limit"`
	Reason        string          `json:"reason"`
	Unused        []int           `json:"unused" doc:"the answers that nobody was asked for, by their places from 0"`
}

// A DryRound is a round, or a further attempt at one.
type DryRound struct {
	Round     int32         `json:"round"`
	Attempt   int32         `json:"attempt"`
	State     string        `json:"state"`
	Closed    []string      `json:"closed,omitempty" doc:"the transitions that their conditions close"`
	Proposals []DryProposal `json:"proposals"`
	Failures  []DryFailure  `json:"failures,omitempty" doc:"those who gave no answer that counts"`
	Verdicts  []DryVerdict  `json:"verdicts,omitempty" doc:"of the arbiter, the last of which holds"`
	Gates     []DryGate     `json:"gates,omitempty" doc:"what the guards said of steps"`
	Human     *DryHuman     `json:"human,omitempty" doc:"why a human is asked, if one is"`
	Rulings   []DryProposal `json:"rulings,omitempty" doc:"of humans that wait for others"`
	Executed  *DryExecuted  `json:"executed,omitempty"`
}

// A DryProposal is what somebody said.
type DryProposal struct {
	SpecialistID   string          `json:"specialistId"`
	TransitionName string          `json:"transitionName"`
	Reasoning      string          `json:"reasoning,omitempty"`
	MetaJSON       json.RawMessage `json:"metaJson,omitempty"`
}

// A DryFailure is an ask that came to nothing.
type DryFailure struct {
	SpecialistID string `json:"specialistId"`
	Code         string `json:"code" doc:"no_answer: nothing is scripted for them there"`
	Message      string `json:"message"`
}

// A DryVerdict is one of the arbiter.
type DryVerdict struct {
	ArbiterID        string `json:"arbiterId"`
	ConsensusReached bool   `json:"consensusReached"`
	TransitionName   string `json:"transitionName,omitempty" doc:"that won"`
	Code             string `json:"code"`
	Reasoning        string `json:"reasoning" doc:"why"`
}

// A DryGate is a verdict of the guards.
type DryGate struct {
	TransitionName string   `json:"transitionName"`
	Status         string   `json:"status"`
	Reasons        []string `json:"reasons"`
}

// A DryHuman is a human who is asked.
type DryHuman struct {
	Code   string   `json:"code"`
	Reason string   `json:"reason"`
	Humans []string `json:"humans" doc:"who may rule"`
}

// A DryExecuted is what was executed.
type DryExecuted struct {
	TransitionName string `json:"transitionName"`
	ToState        string `json:"toState"`
	Decision       string `json:"decision" doc:"consensus, forced (by a human) or timer"`
	SpecialistID   string `json:"specialistId,omitempty" doc:"who won, or the human"`
}
