package runner

import (
	"github.com/dialai/dialai/internal/planning"
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
	here         *planning.State // who takes part in the present round
	championship championship
	stop         trust.Stop         // why nobody else is asked, "" if somebody is or all were
	unasked      []*planning.Member // those of the present wave who are yet to be asked
}

// members returns who proposes in the present round.
func (t *round) members() []planning.Member {
	if t.now.Options().DefaultProposer && len(t.here.Members) == 0 && t.here.State.Roster == nil {
		return []planning.Member{planning.DefaultProposer(t.now.ID)}
	}
	return t.here.Members
}

// mode returns how the proposers of the present round are asked.
func (t *round) mode() machine.Mode {
	if o := t.now.Options(); o.Mode != "" {
		return o.Mode
	}
	return t.now.State.Solicit.Mode
}
