// Package collapse says at which stage a state stands that goes from humans to consensus to
// one champion as the evidence grows, and back at once when it fails.
//
// Package trust says when; here is what a machine file, a ledger and the machine's log make
// of it: the next stage, who would be certified, who is asked beside a champion. It changes
// nothing: stages are events of the machine's log, which the runner writes.
package collapse

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/lessons"
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// ByEngine is who acts where no human does.
const ByEngine = "engine"

// Sources are where a View reads.
type Sources struct {
	Store   session.Store
	Lessons *lessons.Follower
	Near    func(ctx context.Context, rounds []string) (bool, error) // whether they are among the latest automatic decisions of the state
}

// A View is all that the next stage of a state depends on.
type View struct {
	State    *planning.State
	Now      session.Collapse
	Tau      bool           // a probability that decides is established
	Champion trust.Champion // what was seen of it since it was promoted; zero if there is none
	Outcomes *trust.Ledger  // of the state, since evidence was last archived
	All      *trust.Ledger  // of the store

	at     specialist.Time
	place  int64
	lost   bool   // the promise, by the detector
	secret []byte // of the store
}

// New returns how the state stands at a moment, by the evidence of then.
func New(ctx context.Context, from Sources, here *planning.State, e *arbiter.Evidence, c session.Collapse, at specialist.Time) (v *View, err error) {
	q := &here.Question
	v = &View{State: here, at: at, Now: c, place: e.Place, All: e.Ledger}
	if q.Policy.Promise != nil {
		tau, d := e.Ledger.Risk(q.Machine, q.State, *q.Policy.Promise, q.PolicyDigest)
		v.Tau, v.lost = tau > 0, d.Alarm()
	} else {
		v.Tau = e.Ledger.N(q.Machine) >= trust.CalibratedFrom
	}
	var marks lessons.Marks
	if v.Outcomes, marks, err = from.Lessons.Since(ctx, from.Store, q.Machine, q.State, c.Archived, e.Place); err != nil {
		return nil, err
	}
	if v.secret, err = from.Store.Secret(ctx); err != nil {
		return nil, err
	}
	if c.Certificate != nil {
		v.Champion, err = from.champion(ctx, c, marks.After(c.Place))
	}
	return v, err
}

// key returns the key with which the store's engine signs certificates.
func (v *View) key() ed25519.PrivateKey { return certificateKey(v.secret) }

// certificateKey returns the key with which a store's engine signs certificates.
func certificateKey(secret []byte) ed25519.PrivateKey {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("certificate key"))
	return ed25519.NewKeyFromSeed(mac.Sum(nil))
}

// champion returns what was seen of the champion, by what humans thought since it was promoted.
func (from *Sources) champion(ctx context.Context, c session.Collapse, marks lessons.Marks) (trust.Champion, error) {
	ch := trust.Champion{Certificate: *c.Certificate, Failures: c.Failures}
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
	near, err := from.Near(ctx, overruled[len(overruled)-2:])
	if near {
		ch.Overrules = []int64{ch.Decisions, ch.Decisions}
	}
	return ch, err
}

// Next returns the stage that follows, and whether it is another one.
func (v *View) Next() (session.Collapse, bool) {
	stage := v.Now.StageOf()
	cool := int64(v.State.State.Collapse.CoolDown)
	if v.Now.Held && v.Outcomes.N(v.State.Question.Machine) < cool {
		return v.Now, false
	}
	s := trust.Situation{Tau: v.Tau, Frozen: v.Now.Frozen, LostPromise: v.lost, CoolDown: cool, Outcomes: v.Outcomes.N(v.State.Question.Machine)}
	reason := ""
	var certificate *trust.Certificate
	switch stage {
	case trust.Championed:
		reason = v.demotion()
		s.Certified, s.Demoted = reason == "", reason != ""
	case trust.Consensus:
		if !v.Now.Frozen {
			certificate = v.certify()
			s.Certified = certificate != nil
		}
	}
	to := stage.Next(s)
	if to == stage && !v.Now.Held {
		return v.Now, false
	}
	return v.Enter(to, cmp.Or(reason, reasonOf(stage, to)), ByEngine, certificate), true
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

// Enter returns the standing after a change to another stage. What sends a state
// back archives the evidence for champions.
func (v *View) Enter(to trust.Stage, reason, by string, certificate *trust.Certificate) session.Collapse {
	next := session.Collapse{Stage: to, Place: v.place, Archived: v.Now.Archived, Trials: v.Now.Trials, Reason: reason, By: by}
	if to == trust.Championed {
		next.Certificate = certificate
		return next
	}
	if v.Now.StageOf() == trust.Championed || by != ByEngine {
		next.Archived = v.place
		next.Trials += int64(len(v.Candidates()))
	}
	return next
}

// demotion returns why the champion may not go on, "" if it may.
func (v *View) demotion() string {
	id := v.Now.Certificate.SpecialistID
	m := v.State.Find(id)
	switch {
	case m == nil || m.Off || m.IsHuman:
		return "gone"
	case v.Now.Certificate.Verify(v.key().Public().(ed25519.PublicKey)) != nil:
		return "bad_signature"
	case !v.Tau:
		return "tau_lost"
	}
	return string(v.Champion.Demotion(v.at, m.Version, v.State.Definition))
}

func (v *View) target() trust.Target {
	c := v.State.State.Collapse
	return trust.Target{Share: planning.Billionths(c.Target), Alpha: planning.Billionths(c.Alpha), ClassShare: planning.Billionths(c.ClassTarget),
		AnyRuling: c.RequireBlind != nil && !*c.RequireBlind, MoreTrials: v.Now.Trials}
}

// Candidates are those who could be certified, and how far each is.
func (v *View) Candidates() []trust.Candidate {
	q := &v.State.Question
	return v.Outcomes.Candidates(q.Machine, q.State, v.target())
}

// certify returns the signed certificate of whoever is elected champion, nil if
// nobody has proven enough.
func (v *View) certify() *trust.Certificate {
	var list []trust.Contender
	for _, c := range v.Candidates() {
		m := v.State.Find(c.SpecialistID)
		if !c.Promotable || m == nil || m.Off || m.IsHuman || m.Version != c.Version {
			continue
		}
		list = append(list, trust.Contender{SpecialistID: c.SpecialistID, Certificate: v.Certificate(c, ByEngine), Cost: m.Estimate, LowerBound: c.LowerBound})
	}
	i := trust.Elect(list, v.humanCost(), v.errorCost())
	if i < 0 {
		return nil
	}
	return v.Sign(list[i].Certificate)
}

// Certificate returns the certificate that a candidate would have, not signed.
func (v *View) Certificate(c trust.Candidate, by string) trust.Certificate {
	made := c.Certify(v.target(), v.at)
	made.IssuedBy, made.DefinitionDigest = by, v.State.Definition
	made.AuditRate = planning.Billionths(v.State.State.Audit.Rate)
	made.ExpiresAt = v.at + specialist.Time(int64(v.State.State.Collapse.Expires)/1e6)
	made.ID = planning.DigestOf([]any{made.Machine, made.State, made.SpecialistID, made.Version, made.IssuedAt})
	return made
}

// Sign returns the certificate signed; nil if that fails, and then there is none.
func (v *View) Sign(c trust.Certificate) *trust.Certificate {
	signed, err := c.Sign(v.key())
	if err != nil {
		return nil
	}
	return &signed
}

func (v *View) humanCost() exact.Money {
	if c := v.State.State.Solicit.HumanCost; c != nil {
		return *c
	}
	return exact.Dollar
}

func (v *View) errorCost() exact.Money {
	if c := v.State.State.Collapse.ErrorCost; c != nil {
		return *c
	}
	promise := trust.DefaultPromise()
	if p := v.State.Question.Policy.Promise; p != nil {
		promise = *p
	}
	return trust.ErrorCost(v.humanCost(), promise.MaxError)
}

// Uninformative returns the ids of those who cost money and tell next to nothing.
func (v *View) Uninformative() map[string]bool {
	p := v.State.Panel()
	pruned := map[string]bool{}
	for _, i := range v.All.Uninformative(p) {
		pruned[p.Roster[i].SpecialistID] = true
	}
	return pruned
}

// shadowRate is the share of a champion's rounds in which one of those who are no
// longer asked is asked all the same, so that what is known of it does not go stale.
const shadowRate exact.Billionths = 20_000_000

// Shadow returns who is asked beside the champion in a round that puts q to the ledger,
// "" for nobody.
func (v *View) Shadow(round specialist.RoundKey, q trust.Question) string {
	draw := trust.NewSecretDraw(v.secret, round.Session.String(), round.ID(), "shadow")
	if !draw.Happens(shadowRate) {
		return ""
	}
	var open []trust.Open
	for _, o := range v.State.Panel().Roster {
		if o.Cost > 0 && o.SpecialistID != v.Now.Certificate.SpecialistID {
			open = append(open, o)
		}
	}
	w := v.All.Wave(q, open, trust.Asking{Explore: draw.Seed(), Patient: true})
	if len(w.Ask) == 0 {
		return ""
	}
	return open[w.Ask[0]].SpecialistID
}

// Contested reports whether a champion must not decide a round alone: it has not
// answered, and p is nil; it proposes what only a human may decide; or somebody
// trusted sees it differently, as j, the judgement of the round, says.
func Contested(p *specialist.Proposal, j *trust.Judgement) bool {
	if p == nil || p.Transition.OnlyHumans() {
		return true
	}
	for _, v := range j.Votes {
		if v.Transition != p.Transition.Name && (v.Human || v.Trust >= trusted) {
			return true
		}
	}
	return false
}

// trusted is the trust from which a sentinel's disagreement counts.
const trusted exact.Billionths = 800_000_000
