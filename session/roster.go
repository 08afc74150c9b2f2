package session

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// A RosterEvent is one thing that happened to the specialists of a machine name.
type RosterEvent struct {
	At   specialist.Time
	Kind string
	// ID is the specialist's.
	ID string
	// Specialist is set if it was registered.
	Specialist *machine.Specialist
	// State is that of a champion; "" for the machine.
	State  string
	Reason string
	// Others are no longer asked once the champion is promoted, and are asked
	// again once it is demoted.
	Others []string
	// Stage is where a state of a collapse has come to.
	Stage *Collapse
	// By is who did it: the engine, or a human. "" where the kind says it.
	By string
	// Trial is a policy that was back-tested.
	Trial *Trial
	// Actor is who switched a specialist; nil if that was not said.
	Actor *Actor
}

// The kinds of roster events.
const (
	KindRegistered = "specialist_registered"
	KindEnabled    = "specialist_enabled"
	KindDisabled   = "specialist_disabled"
	KindPromoted   = "champion_promoted"
	KindDemoted    = "champion_demoted"

	KindStage            = "stage_changed"
	KindFrozen           = "collapse_frozen"
	KindReleased         = "collapse_released"
	KindChampionFailed   = "champion_failed"
	KindChampionAnswered = "champion_answered"
)

// storedRosterEvent is the stored form of a RosterEvent's data.
type storedRosterEvent struct {
	SpecialistID string              `json:"specialistId"`
	Specialist   *machine.Specialist `json:"specialist,omitempty"`
	State        string              `json:"state,omitempty"`
	Reason       string              `json:"reason,omitempty"`
	Others       []string            `json:"others,omitempty"`
	Stage        *Collapse           `json:"collapse,omitempty"`
	By           string              `json:"by,omitempty"`
	Trial        *Trial              `json:"trial,omitempty"`
	Actor        *Actor              `json:"actor,omitempty"`
}

// AppendRosterEvent appends the record of one event: a JSON array of it.
func AppendRosterEvent(dst []byte, seq int64, e RosterEvent) ([]byte, error) {
	data, err := json.Marshal(storedRosterEvent{e.ID, e.Specialist, e.State, e.Reason, e.Others, e.Stage, e.By, e.Trial, e.Actor})
	if err != nil {
		return nil, err
	}
	record, err := json.Marshal([]Raw{{Seq: seq, At: e.At, Kind: e.Kind, Data: data}})
	return append(dst, record...), err
}

// DecodeRosterEvents reads one record of a machine's log.
func DecodeRosterEvents(record []byte) ([]RosterEvent, error) {
	raw, err := DecodeRaw(record)
	if err != nil {
		return nil, err
	}
	events := make([]RosterEvent, len(raw))
	for i, r := range raw {
		var v storedRosterEvent
		if err := json.Unmarshal(r.Data, &v); err != nil {
			return nil, fmt.Errorf("event %d (%s): %w", r.Seq, r.Kind, err)
		}
		if r.Kind == KindStage && v.Stage == nil {
			return nil, fmt.Errorf("event %d (%s): the collapse is missing", r.Seq, r.Kind)
		}
		if r.Kind == KindTried && v.Trial == nil {
			return nil, fmt.Errorf("event %d (%s): the trial is missing", r.Seq, r.Kind)
		}
		events[i] = RosterEvent{r.At, r.Kind, v.SpecialistID, v.Specialist, v.State, v.Reason, v.Others, v.Stage, v.By, v.Trial, v.Actor}
	}
	return events, nil
}

// With returns the roster after an event.
func (r *Roster) With(e RosterEvent) *Roster {
	next := &Roster{Sequence: r.Sequence + 1, Specialists: r.Specialists, Trials: r.Trials, Off: map[string]bool{}, Champions: map[string]Champion{}, Collapse: map[string]Collapse{}}
	maps.Copy(next.Collapse, r.Collapse)
	maps.Copy(next.Off, r.Off)
	maps.Copy(next.Champions, r.Champions)
	switch e.Kind {
	case KindRegistered:
		next.Specialists = append(slices.Clip(r.Specialists), Registered{*e.Specialist, e.At})
	case KindEnabled:
		delete(next.Off, e.ID)
	case KindDisabled:
		next.Off[e.ID] = true
	case KindPromoted:
		next.Champions[e.State] = Champion{e.ID, e.Others, e.At}
	case KindDemoted: // asks the others again, but never whom a person switched off
		delete(next.Champions, e.State)
	case KindTried:
		next.Trials = append(slices.Clip(r.Trials), *e.Trial)
	case KindStage, KindFrozen, KindReleased, KindChampionFailed, KindChampionAnswered:
		next.Collapse[e.State] = r.Collapse[e.State].With(e)
	}
	return next
}

// Registered returns a registered specialist, or nil.
func (r *Roster) Registered(id string) *machine.Specialist {
	for i := range r.Specialists {
		if r.Specialists[i].SpecialistID == id {
			return &r.Specialists[i].Specialist
		}
	}
	return nil
}
