package report

import (
	"context"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
)

// Trusted is what one specialist's word counts for in one state.
type Trusted struct {
	MachineName  string             `json:"machineName"`
	State        string             `json:"state"`
	SpecialistID string             `json:"specialist"`
	Version      string             `json:"version"`
	Off          bool               `json:"off,omitempty"`
	Human        bool               `json:"human,omitempty"`
	Trust        exact.Billionths   `json:"trust"`            // probability of agreeing with a human
	K            int64              `json:"k"`                // agreements at Level
	N            int64              `json:"n"`                // comparisons at Level
	Level        string             `json:"level"`            // where the nearest record is
	Pooled       []trust.LevelCount `json:"pooled,omitempty"` // all levels with comparisons
	Champion     bool               `json:"champion,omitempty"`
	Evidence     *trust.Candidate   `json:"evidence,omitempty"` // for deciding alone, where the state declares a collapse
}

// TrustOf returns what the word of everybody who takes part in a machine counts for,
// by state of its newest definition and in roster order; in one state if state is not "".
// It returns ErrNotFound for a machine or a state that is not there.
func TrustOf(ctx context.Context, r *runner.Runner, machineName string, state machine.StateName) ([]Trusted, error) {
	d, err := deciding(ctx, r, machineName)
	if err == nil {
		err = known(d.Machine, state)
	}
	if err != nil {
		return nil, err
	}
	list := []Trusted{}
	for i := range d.States {
		s := &d.States[i]
		if len(s.State.Transitions) == 0 || state != "" && s.State.Name != string(state) {
			continue
		}
		c, declared, err := s.Collapse(ctx)
		if err != nil {
			return nil, err
		}
		for _, participants := range [][]planning.Participant{s.Proposers, s.Humans} {
			for j := range participants {
				t := wordOf(d.Ledger, s, &participants[j])
				if declared {
					t.collapsed(&c)
				}
				list = append(list, t)
			}
		}
	}
	return list, nil
}

// wordOf returns what a participant's word counts for.
func wordOf(l *trust.Ledger, s *runner.StateDeciding, m *planning.Participant) Trusted {
	q := s.Question
	q.Votes = []trust.Vote{{SpecialistID: m.SpecialistID, Version: m.Version, Model: m.ModelID, Human: m.IsHuman}}
	v := l.Word(q)
	return Trusted{MachineName: q.Machine, State: q.State, SpecialistID: m.SpecialistID, Version: m.Version, Off: m.Off, Human: m.IsHuman,
		Trust: v.Trust, K: v.K, N: v.N, Level: v.Level, Pooled: v.Pooled}
}

// collapsed adds what is known of deciding alone.
func (t *Trusted) collapsed(c *runner.StateCollapse) {
	t.Champion = c.Stage == trust.Championed && c.Certificate.SpecialistID == t.SpecialistID
	for i := range c.Candidates {
		if e := &c.Candidates[i]; e.SpecialistID == t.SpecialistID && e.Version == t.Version {
			t.Evidence = e
		}
	}
}
