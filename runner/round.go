package runner

import (
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A round is the open round of a session with those who take part in it: who they are,
// what is in, what is out, what is legal, what is still to come. It only looks: what it
// looks at is changed by a [commit], and its methods neither wait nor ask a store.
type round struct {
	now  *session.Session
	open *session.OpenRound // of now
	at   specialist.Time

	plan         *plan
	here         *statePlan // who takes part in the present round
	championship championship
	stop         trust.Stop // why nobody else is asked, "" if somebody is or all were
	unasked      []*member  // those of the present wave who are yet to be asked
}

// members returns who proposes in the present round.
func (t *round) members() []member {
	if t.now.Options().DefaultProposer && len(t.here.members) == 0 && t.here.state.Roster == nil {
		return []member{defaultProposer(t.now.ID)}
	}
	return t.here.members
}

// mode returns how the proposers of the present round are asked.
func (t *round) mode() machine.Mode {
	if o := t.now.Options(); o.Mode != "" {
		return o.Mode
	}
	return t.now.State.Solicit.Mode
}
