package runner

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/lessons"
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Progressive collapse: a state that declares it goes from humans to consensus to
// one champion as the evidence grows, and back at once when it fails. Package
// trust says when; here is what the engine does about it. Stages are events of the
// machine's log.

// byEngine is who acts where no human does.
const byEngine = "engine"

// whyHuman returns why a human has to decide. Where rulings are to be blind it
// does not say what was proposed.
func (t *round) whyHuman(v *session.Judged) string {
	hidden := t.now.State.Withheld()
	if (hidden || t.now.State.Audit.Mode == machine.Before) && v.Decision.Rule == arbiter.NoQuorum {
		return v.Decision.Short() // without a name
	}
	if hidden {
		return "Human input required: " + strings.TrimSuffix(v.Decision.Short(), ", human input required")
	}
	return v.Decision.Reasoning()
}

// collapse returns the standing of the present state, and whether it declares one
// that bayes can work with.
func (t *round) collapse() (session.Collapse, bool) {
	if t.here.State.Collapse == nil || t.here.Arbiter == nil || !t.here.Arbiter.ByBayes() {
		return session.Collapse{}, false
	}
	return t.plan.Roster.Collapse[t.here.State.Name], true
}

// reachStage brings the present state to the stage that the evidence calls for, or else
// finds who is champion in this round. It reports whether the roster has changed: then
// who takes part is to be read again.
func (w *engine) reachStage(ctx context.Context) (changed bool, err error) {
	c, declared := w.collapse()
	if !declared || w.championship.known {
		return false, nil
	}
	w.championship.known = true
	v, err := w.view(ctx, c)
	if err != nil {
		return false, err
	}
	if next, changed := v.next(); changed {
		return w.changeStage(ctx, next)
	}
	switch {
	case c.Held:
		w.championship.held = true
	case c.StageOf() == trust.Championed && c.Since < w.now.EnteredAt() && !w.failed(c.Certificate.SpecialistID) && w.mode() != machine.Eager:
		w.championship.champion, w.championship.alone, w.championship.seen = c.Certificate.SpecialistID, true, v.champion
		w.championship.shadow = v.shadow(w.now.Key(), w.assessment.asked())
	case c.StageOf() == trust.Consensus && w.now.State.Collapse.Prune:
		w.championship.pruned = v.uninformative()
	}
	return false, nil
}

// changeStage writes a change of stage. If somebody else has changed the roster, that is
// a change too.
func (w *engine) changeStage(ctx context.Context, next session.Collapse) (changed bool, err error) {
	e := session.RosterEvent{At: w.at, Kind: session.KindStage, State: w.now.State.Name, Stage: &next, By: next.By, Reason: next.Reason}
	if next.Certificate != nil {
		e.ID = next.Certificate.SpecialistID
	}
	err = w.r.store.Register(ctx, w.now.Machine().Name(), w.plan.Roster.Sequence, e)
	if err == nil || errors.Is(err, session.ErrStale) {
		return true, nil
	}
	return false, err
}

// view returns all that the next stage of the present state depends on.
func (t *assessment) view(ctx context.Context, c session.Collapse) (*collapseView, error) {
	e, err := t.evidence(ctx)
	if err != nil {
		return nil, err
	}
	near := func(ctx context.Context, rounds []string) (bool, error) {
		return t.r.amongLatest(ctx, t.here.Question.Machine, machine.StateName(t.here.State.Name), rounds)
	}
	return newCollapseView(ctx, collapseSources{t.r.store, t.r.lessons, near}, t.here, e, c, t.at)
}

// collapseSources are where a collapseView reads.
type collapseSources struct {
	store   session.Store
	lessons *lessons.Follower
	near    func(ctx context.Context, rounds []string) (bool, error) // whether they are among the latest automatic decisions of the state
}

// A collapseView is all that the next stage of a state depends on.
type collapseView struct {
	here     *planning.State
	at       specialist.Time
	now      session.Collapse
	place    int64
	tau      bool
	lost     bool
	champion trust.Champion
	proven   *trust.Ledger // outcomes of the state that are not archived
	all      *trust.Ledger
	secret   []byte // of the store
}

// newCollapseView returns how the state stands at a moment, by the evidence of then.
func newCollapseView(ctx context.Context, from collapseSources, here *planning.State, e *arbiter.Evidence, c session.Collapse, at specialist.Time) (v *collapseView, err error) {
	q := &here.Question
	v = &collapseView{here: here, at: at, now: c, place: e.Place, all: e.Ledger}
	if q.Policy.Promise != nil {
		tau, d := e.Ledger.Risk(q.Machine, q.State, *q.Policy.Promise, q.PolicyDigest)
		v.tau, v.lost = tau > 0, d.Alarm()
	} else {
		v.tau = e.Ledger.N(q.Machine) >= trust.CalibratedFrom
	}
	if v.proven, err = from.lessons.Since(ctx, from.store, q.Machine, q.State, c.Archived, e.Place); err != nil {
		return nil, err
	}
	if v.secret, err = from.store.Secret(ctx); err != nil {
		return nil, err
	}
	if c.Certificate != nil {
		v.champion, err = from.champion(ctx, here, c)
	}
	return v, err
}

// key returns the key with which the store's engine signs certificates.
func (v *collapseView) key() ed25519.PrivateKey { return certificateKey(v.secret) }

// certificateKey returns the key with which a store's engine signs certificates.
func certificateKey(secret []byte) ed25519.PrivateKey {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("certificate key"))
	return ed25519.NewKeyFromSeed(mac.Sum(nil))
}

// champion returns what was seen of the champion since it was promoted.
func (from *collapseSources) champion(ctx context.Context, here *planning.State, c session.Collapse) (trust.Champion, error) {
	ch := trust.Champion{Certificate: *c.Certificate, Failures: c.Failures}
	marks := from.lessons.Marks(here.Question.Machine, here.State.Name, c.Place)
	var overruled []string
	var seen float64
	for _, m := range marks {
		switch {
		case m.Unasked && !m.Right:
			overruled = append(overruled, m.Round)
			ch = ch.Audited(false)
		case !m.Unasked:
			ch = ch.Audited(m.Right)
			seen += 1 / m.Prob.Float()
		}
	}
	ch.Decisions = int64(seen)
	if len(overruled) < 2 {
		return ch, nil
	}
	near, err := from.near(ctx, overruled[len(overruled)-2:])
	if near {
		ch.Overrules = []int64{ch.Decisions, ch.Decisions}
	}
	return ch, err
}

// overruleWindow is the number of automatic decisions within which two overrulings
// demote a champion.
const overruleWindow = 20

// amongLatest reports whether all of these rounds are among the latest automatic
// decisions of a state.
func (r *Runner) amongLatest(ctx context.Context, machineName string, state machine.StateName, rounds []string) (bool, error) {
	decisions, err := r.Decisions(ctx, machineName, state, 0)
	if err != nil {
		return false, err
	}
	found, looked := 0, 0
	for i := len(decisions) - 1; i >= 0 && looked < overruleWindow; i-- {
		if d := decisions[i]; !d.IsHuman && !d.Timed() {
			looked++
			if slices.Contains(rounds, d.RoundID) {
				found++
			}
		}
	}
	return found == len(rounds), nil
}

// next returns the stage that follows, and whether it is another one.
func (v *collapseView) next() (session.Collapse, bool) {
	stage := v.now.StageOf()
	cool := int64(v.here.State.Collapse.CoolDown)
	if v.now.Held && v.proven.N(v.here.Question.Machine) < cool {
		return v.now, false
	}
	s := trust.Situation{Tau: v.tau, Frozen: v.now.Frozen, LostPromise: v.lost, CoolDown: cool, Outcomes: v.proven.N(v.here.Question.Machine)}
	reason := ""
	var certificate *trust.Certificate
	switch stage {
	case trust.Championed:
		reason = v.demotion()
		s.Certified, s.Demoted = reason == "", reason != ""
	case trust.Consensus:
		if !v.now.Frozen {
			certificate = v.certify()
			s.Certified = certificate != nil
		}
	}
	to := stage.Next(s)
	if to == stage && !v.now.Held {
		return v.now, false
	}
	return v.enter(to, cmp.Or(reason, reasonOf(stage, to)), byEngine, certificate), true
}

func reasonOf(from, to trust.Stage) string {
	switch {
	case to == trust.Championed:
		return "certified"
	case to == trust.Consensus && from == trust.Demoted:
		return "cool_down"
	case to == trust.Consensus:
		return "tau_established"
	case to == trust.Calibrating:
		return "tau_lost"
	}
	return "demoted"
}

// enter returns the standing after a change to another stage. What sends a state
// back archives the evidence for champions.
func (v *collapseView) enter(to trust.Stage, reason, by string, certificate *trust.Certificate) session.Collapse {
	next := session.Collapse{Stage: to, Place: v.place, Archived: v.now.Archived, Trials: v.now.Trials, Reason: reason, By: by}
	if to == trust.Championed {
		next.Certificate = certificate
		return next
	}
	if v.now.StageOf() == trust.Championed || by != byEngine {
		next.Archived = v.place
		next.Trials += int64(len(v.candidates()))
	}
	return next
}

// demotion returns why the champion may not go on, "" if it may.
func (v *collapseView) demotion() string {
	id := v.now.Certificate.SpecialistID
	m := v.here.Find(id)
	switch {
	case m == nil || m.Off || m.IsHuman:
		return "gone"
	case v.now.Certificate.Verify(v.key().Public().(ed25519.PublicKey)) != nil:
		return "bad_signature"
	case !v.tau:
		return "tau_lost"
	}
	return string(v.champion.Demotion(v.at, m.Version, v.here.Definition))
}

func (v *collapseView) target() trust.Target {
	c := v.here.State.Collapse
	return trust.Target{Share: planning.Billionths(c.Target), Alpha: planning.Billionths(c.Alpha), ClassShare: planning.Billionths(c.ClassTarget),
		AnyRuling: c.RequireBlind != nil && !*c.RequireBlind, MoreTrials: v.now.Trials}
}

func (v *collapseView) candidates() []trust.Candidate {
	q := &v.here.Question
	return v.proven.Candidates(q.Machine, q.State, v.target())
}

// certify returns the signed certificate of whoever is elected champion, nil if
// nobody has proven enough.
func (v *collapseView) certify() *trust.Certificate {
	var list []trust.Contender
	for _, c := range v.candidates() {
		m := v.here.Find(c.SpecialistID)
		if !c.Promotable || m == nil || m.Off || m.IsHuman || m.Version != c.Version {
			continue
		}
		list = append(list, trust.Contender{SpecialistID: c.SpecialistID, Certificate: v.certificate(c, byEngine), Cost: m.Estimate, LowerBound: c.LowerBound})
	}
	i := trust.Elect(list, v.humanCost(), v.errorCost())
	if i < 0 {
		return nil
	}
	return v.sign(list[i].Certificate)
}

func (v *collapseView) certificate(c trust.Candidate, by string) trust.Certificate {
	made := c.Certify(v.target(), v.at)
	made.IssuedBy, made.DefinitionDigest = by, v.here.Definition
	made.AuditRate = planning.Billionths(v.here.State.Audit.Rate)
	made.ExpiresAt = v.at + specialist.Time(int64(v.here.State.Collapse.Expires)/1e6)
	made.ID = planning.DigestOf([]any{made.Machine, made.State, made.SpecialistID, made.Version, made.IssuedAt})
	return made
}

// sign returns the certificate signed; nil if that fails, and then there is none.
func (v *collapseView) sign(c trust.Certificate) *trust.Certificate {
	signed, err := c.Sign(v.key())
	if err != nil {
		return nil
	}
	return &signed
}

func (v *collapseView) humanCost() exact.Money {
	if c := v.here.State.Solicit.HumanCost; c != nil {
		return *c
	}
	return exact.Dollar
}

func (v *collapseView) errorCost() exact.Money {
	if c := v.here.State.Collapse.ErrorCost; c != nil {
		return *c
	}
	promise := trust.DefaultPromise()
	if p := v.here.Question.Policy.Promise; p != nil {
		promise = *p
	}
	return trust.ErrorCost(v.humanCost(), promise.MaxError)
}

// uninformative returns the ids of those who cost money and tell next to nothing.
func (v *collapseView) uninformative() map[string]bool {
	p := v.here.Panel()
	pruned := map[string]bool{}
	for _, i := range v.all.Uninformative(p) {
		pruned[p.Roster[i].SpecialistID] = true
	}
	return pruned
}
