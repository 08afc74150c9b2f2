package runner

import (
	"cmp"
	"encoding/json"
)

// A TickView is a TickResult as it is shown: DIAL's TickResult.
type TickView struct {
	SessionID      string   `json:"sessionId"`
	MachineName    string   `json:"machineName"`
	Subject        string   `json:"subject,omitempty"` // what the session is about; "" if the machine does not say
	Status         string   `json:"status"`
	CurrentState   string   `json:"currentState"`
	SpecialistID   string   `json:"specialistId,omitempty"` // if exactly one was asked
	SpecialistIDs  []string `json:"specialistIds,omitempty"`
	PreviousState  string   `json:"previousState,omitempty"`
	TransitionName string   `json:"transitionName,omitempty"`
	Reasoning      string   `json:"reasoning,omitempty"`
	Code           string   `json:"code,omitempty"`
	Error          string   `json:"error,omitempty"`
}

// View returns the step as it is shown.
func (t Tick) View() TickView {
	if t.Session == nil {
		return TickView{Status: string(t.Status), Code: t.Code}
	}
	v := TickView{
		SessionID: t.Session.ID.String(), MachineName: t.Session.Machine().Name(), Subject: t.Session.Subject(),
		Status: string(t.Status), CurrentState: t.Session.State.Name, Reasoning: t.Reasoning(), Code: t.Code,
	}
	o := cmp.Or(t.outcome, t.Session.Outcome())
	if t.verdict == nil && t.Transition == nil && o.Code != "" && t.Code == o.Code && t.Session.Withheld("") != "" { // as far as anybody may know
		o = t.Session.Conceal(o)
		v.Reasoning, v.Code = o.Reason, o.Code
	}
	if v.SpecialistIDs = t.Asked(); len(v.SpecialistIDs) == 1 {
		v.SpecialistID = v.SpecialistIDs[0]
	}
	if t.Transition != nil {
		v.PreviousState, v.TransitionName = t.Previous.Name, t.Transition.Name
	}
	return v
}

// MarshalJSON writes the View.
func (t Tick) MarshalJSON() ([]byte, error) { return json.Marshal(t.View()) }

// View returns the result as it is shown; a step that failed has the status failed, but where
// one before it, in the same tick, has executed a transition: that is shown, with the error.
func (r TickResult) View() TickView {
	switch {
	case r.Err == nil:
		return r.Tick.View()
	case r.Tick.Transition != nil: // the step after that failed
		v := r.Tick.View()
		v.Error = r.Err.Error()
		return v
	}
	return TickView{
		SessionID: r.Summary.SessionID.String(), MachineName: r.Summary.MachineName, Subject: r.Summary.Subject, CurrentState: r.Summary.CurrentState,
		Status: string(TickFailed), Error: r.Err.Error(),
	}
}

// MarshalJSON writes the View.
func (r TickResult) MarshalJSON() ([]byte, error) { return json.Marshal(r.View()) }
