package runner

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// The compatible champion rule (solicit.champion, off by default): a specialist
// whose alignment reaches trust.Trusted is asked alone, but for audits. It is
// demoted, and everybody is asked again, when it falls below the bar, answers
// what is not legal, or an audit goes against it.

// A championship says who is asked in a round because of a champion.
type championship struct {
	known    bool
	champion string // "" if there is none, or everybody is asked
	subject  string // the champion that an audit or a failure is about

	shadow string          // who is asked beside the champion, to learn from only
	alone  bool            // the champion decides alone, as a certificate allows
	seen   trust.Champion  // what was seen of it since it was promoted
	held   bool            // a human sent the state back: humans decide
	pruned map[string]bool // who is not asked, because it tells next to nothing
}

// asks reports whether a member is to be asked in this round.
func (t *round) asks(m *planning.Member) bool {
	switch {
	case m.Off || m.IsHuman:
		return false
	case m.Required:
		return true
	case t.championship.pruned[m.SpecialistID]:
		return false
	case t.championship.champion == "" || t.championship.champion == m.SpecialistID || t.shadows(m.SpecialistID):
		return true
	}
	return t.championship.alone && m.Estimate == 0 // a sentinel that costs nothing
}

// applyChampion finds, once for each commit, whether the round belongs to a champion. It
// promotes and demotes as alignment says.
func (w *engine) applyChampion(ctx context.Context) error {
	if w.championship.known || w.now.State.Solicit.Champion == nil || !*w.now.State.Solicit.Champion {
		return nil
	}
	members := w.members()
	weights, err := w.weigh(ctx, members)
	if err != nil {
		return err
	}
	w.championship.known = true
	best := planning.Favourite(members, weights, trust.Trusted)
	c, appointed := w.plan.Roster.Champions[w.here.Scope]
	if appointed && !planning.Able(members, weights, c.ID) {
		w.demote(c.ID, "its alignment fell below the bar, or it is gone")
		return nil // this round asks everybody
	}
	if !appointed {
		if best == nil {
			return nil
		}
		if c, err = w.promote(ctx, members, best); err != nil {
			return err
		}
	}
	w.championship.subject = c.ID
	if c.Since >= w.now.EnteredAt() {
		return nil // it is asked alone from the next round on: the one after a demotion asks everybody
	}
	if w.failed(c.ID) {
		return nil // it was asked and failed: everybody else is asked
	}
	audit, err := w.audited(ctx, c)
	if err == nil && !audit {
		w.championship.champion = c.ID
	}
	return err
}

// failed reports whether the newest ask of a proposer has failed.
func (t *round) failed(id string) bool {
	a := t.open.Ask(id, machine.Proposer)
	return a != nil && a.Status.Failed()
}

// favourite returns whom mode eager asks first: a champion if one is due, else
// the first in the roster.
func (w *engine) favourite(ctx context.Context, due []*planning.Member) (*planning.Member, error) {
	members := w.members()
	weights, err := w.weigh(ctx, members)
	if err != nil {
		return nil, err
	}
	if best := planning.Favourite(members, weights, trust.Trusted); slices.Contains(due, best) {
		return best, nil
	}
	return due[0], nil
}

func (w *engine) promote(ctx context.Context, members []planning.Member, best *planning.Member) (session.Champion, error) {
	c := session.Champion{ID: best.SpecialistID, Since: w.at}
	for i := range members {
		if m := &members[i]; !m.Off && !m.IsHuman && m.SpecialistID != best.SpecialistID {
			c.Others = append(c.Others, m.SpecialistID)
		}
	}
	e := session.RosterEvent{At: w.at, Kind: session.KindPromoted, ID: c.ID, State: w.here.Scope, Others: c.Others}
	err := w.r.store.Register(ctx, w.now.Machine().Name(), w.plan.Roster.Sequence, e)
	if errors.Is(err, session.ErrStale) {
		return c, session.ErrStale // read everything again
	}
	return c, err
}

// demote has the champion's demotion written with this commit.
func (w *engine) demote(id, reason string) {
	w.roster = append(w.roster, session.RosterEvent{At: w.at, Kind: session.KindDemoted, ID: id, State: w.here.Scope, Reason: reason})
}

// demoteOnMismatch demotes the champion if this round shows that it should not have been
// one: it failed to answer legally, or proposed something else than what was
// decided in a round that asked everybody.
func (w *engine) demoteOnMismatch(decided *machine.Transition) {
	id := w.championship.subject
	if id == "" {
		return
	}
	if p := w.open.Proposal(id); p != nil {
		if p.Transition != decided {
			w.demote(id, fmt.Sprintf("audit: it proposed %q, %q was decided", p.Transition.Name, decided.Name))
		}
		return
	}
	w.demote(id, "it gave no legal answer")
}

// demoteBelowBar demotes the champion if what a human just decided brings it below
// the bar.
func (w *engine) demoteBelowBar(ctx context.Context, outcomes []trust.Comparison) error {
	c, appointed := w.plan.Roster.Champions[w.here.Scope]
	if !appointed {
		return nil
	}
	b, err := w.r.store.Book(ctx, w.now.Machine().Name())
	if err != nil {
		return err
	}
	if b.With(outcomes...).Score(c.ID, w.here.Scope) < trust.Trusted {
		w.demote(c.ID, "its alignment fell below the bar")
	}
	return nil
}

// Audit rates of the decisions specification, 4.4.
const (
	newcomerAudits = 40
	newcomerRate   = 0.25
	auditRate      = 0.05
)

// audited draws whether everybody is asked beside the champion. The draw depends
// on a secret, the session and the round alone, so no answer can influence it
// and a restart draws the same.
func (w *engine) audited(ctx context.Context, c session.Champion) (bool, error) {
	secret, err := w.r.store.Secret(ctx)
	if err != nil {
		return false, err
	}
	n, err := w.r.store.DecidedSince(ctx, w.now.Machine().Name(), c.Since, newcomerAudits)
	if err != nil {
		return false, err
	}
	rate := auditRate
	if n < newcomerAudits {
		rate = newcomerRate
	}
	return draw(secret, w.now.Key(), "audit") < rate, nil
}

// draw returns a number in [0,1) that nobody without the secret can foresee.
func draw(secret []byte, key specialist.RoundKey, purpose string) float64 {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(key.ID() + "\x00" + purpose))
	return float64(binary.BigEndian.Uint64(mac.Sum(nil))>>11) / (1 << 53)
}
