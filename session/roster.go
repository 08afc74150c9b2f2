package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// A RosterEvent is one thing that happened to the specialists of a machine name.
// Its members, but for when and what, are stored as they are here.
type RosterEvent struct {
	At   specialist.Time `json:"-"`
	Kind string          `json:"-"`
	// ID is the specialist's.
	ID string `json:"specialistId"`
	// Specialist is set if it was registered.
	Specialist *machine.Specialist `json:"specialist,omitempty"`
	// State is that of a champion; "" for the machine.
	State  string `json:"state,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Others are no longer asked once the champion is promoted, and are asked
	// again once it is demoted.
	Others []string `json:"others,omitempty"`
	// Stage is where a state of a collapse has come to.
	Stage *Collapse `json:"collapse,omitempty"`
	// By is who did it: the engine, or a human. "" where the kind says it.
	By string `json:"by,omitempty"`
	// Trial is a policy that was back-tested.
	Trial *Trial `json:"trial,omitempty"`
	// Actor is who switched a specialist; nil if that was not said.
	Actor *Actor `json:"actor,omitempty"`
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

// rosterKinds are the kinds that this version knows.
var rosterKinds = []string{KindRegistered, KindEnabled, KindDisabled, KindPromoted, KindDemoted, KindStage, KindFrozen, KindReleased, KindChampionFailed, KindChampionAnswered, KindTried}

// AppendRosterEvent appends the record of one event: a JSON array of it.
func AppendRosterEvent(dst []byte, seq int64, e RosterEvent) ([]byte, error) {
	data, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	record, err := json.Marshal([]Raw{{Seq: seq, At: e.At, Kind: e.Kind, Data: data}})
	return append(dst, record...), err
}

// DecodeRosterEvents reads one record of a machine's log. It returns a [NewerError] for an event of a kind that this
// version does not know: who takes part would be told wrongly without it.
func DecodeRosterEvents(record []byte) ([]RosterEvent, error) {
	raw, err := DecodeRaw(record)
	if err != nil {
		return nil, err
	}
	events := make([]RosterEvent, len(raw))
	for i, r := range raw {
		if !slices.Contains(rosterKinds, r.Kind) {
			return nil, &NewerError{Has: fmt.Sprintf("event %d is of the kind %q", r.Seq, r.Kind)}
		}
		e := &events[i]
		err := json.Unmarshal(r.Data, e)
		switch e.At, e.Kind = r.At, r.Kind; {
		case err != nil:
		case r.Kind == KindStage && e.Stage == nil:
			err = errors.New("the collapse is missing")
		case r.Kind == KindTried && e.Trial == nil:
			err = errors.New("the trial is missing")
		}
		if err != nil {
			return nil, fmt.Errorf("event %d (%s): %w", r.Seq, r.Kind, err)
		}
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
