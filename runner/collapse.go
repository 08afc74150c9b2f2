package runner

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"slices"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/trust"
)

// Progressive collapse: a state that declares it goes from humans to consensus to
// one champion as the evidence grows, and back at once when it fails. Package
// trust says when; here is what the engine does about it. Stages are events of the
// machine's log.

// A Collapse is how far one state of a machine has come. The zero Collapse is at
// the beginning: calibrating.
type Collapse struct {
	Stage       trust.Stage        `json:"stage"` // "" stands for calibrating
	Since       specialist.Time    `json:"since"`
	Place       int64              `json:"place"`                 // Lesson.Seq when the stage began
	Certificate *trust.Certificate `json:"certificate,omitempty"` // of the champion
	Archived    int64              `json:"archived,omitempty"`    // Lesson.Seq up to which evidence for champions is archived
	Trials      int64              `json:"trials,omitempty"`      // candidates tested on what is archived
	Failures    int64              `json:"failures,omitempty"`    // of the champion, in a row
	Frozen      bool               `json:"frozen,omitempty"`      // nobody is promoted
	Held        bool               `json:"held,omitempty"`        // a human sent it back: humans decide until the cool-down is over
	Reason      string             `json:"reason,omitempty"`      // of the last change
	By          string             `json:"by,omitempty"`          // the engine, or the human who made the last change
}

// StageOf returns the stage.
func (c Collapse) StageOf() trust.Stage { return cmp.Or(c.Stage, trust.Calibrating) }

// Engine is who acts where no human does.
const Engine = "engine"

// with returns c after an event of the machine's log.
func (c Collapse) with(e RosterEvent) Collapse {
	switch e.Kind {
	case KindStage:
		next := *e.Stage
		next.Since, next.Frozen = e.At, c.Frozen
		return next
	case KindFrozen:
		c.Frozen, c.By, c.Reason = true, e.By, e.Reason
	case KindReleased:
		c.Frozen, c.By, c.Reason = false, e.By, e.Reason
	case KindChampionFailed:
		c.Failures++
	case KindChampionAnswered:
		c.Failures = 0
	}
	return c
}

// whyHuman returns why a human has to decide. Where rulings are to be blind it
// does not say what was proposed.
func (t *tx) whyHuman(v *Judged) string {
	if t.now.State.Withheld() {
		return "Human input required: " + v.Decision.Short()
	}
	return v.Decision.Reasoning()
}

// collapse returns the standing of the present state, and whether it declares one
// that bayes can work with.
func (t *tx) collapse() (Collapse, bool) {
	if t.here.state.Collapse == nil || t.here.arbiter == nil || !t.here.arbiter.byBayes() {
		return Collapse{}, false
	}
	return t.plan.roster.Collapse[t.here.state.Name], true
}

// settle brings the present state to the stage that the evidence calls for, and
// finds who reigns in this round. It returns ErrStale if the stage has changed:
// then everything is read again.
func (w *work) settle(ctx context.Context) error {
	t := w.t
	c, declared := t.collapse()
	if !declared || t.reign.known {
		return nil
	}
	t.reign.known = true
	v, err := t.view(ctx, c)
	if err != nil {
		return err
	}
	if next, changed := v.next(); changed {
		return w.r.changeStage(ctx, t, next)
	}
	switch {
	case c.Held:
		t.reign.held = true
	case c.StageOf() == trust.Championed && c.Since < t.now.entered() && !t.failed(c.Certificate.SpecialistID) && t.mode() != machine.Eager:
		t.reign.champion, t.reign.alone, t.reign.seen = c.Certificate.SpecialistID, true, v.champion
		t.reign.shadow, err = v.shadow(ctx)
		return err
	case c.StageOf() == trust.Consensus && t.now.State.Collapse.Prune:
		t.reign.pruned = v.uninformative()
	}
	return nil
}

// changeStage writes a change of stage.
func (r *Runner) changeStage(ctx context.Context, t *tx, next Collapse) error {
	e := RosterEvent{At: t.at, Kind: KindStage, State: t.now.State.Name, Stage: &next, By: next.By, Reason: next.Reason}
	if next.Certificate != nil {
		e.ID = next.Certificate.SpecialistID
	}
	if err := r.store.Register(ctx, t.now.Machine().Name(), t.plan.roster.Sequence, e); err != nil {
		return err
	}
	return ErrStale
}

// A collapseView is all that the next stage of a state depends on.
type collapseView struct {
	t        *tx
	now      Collapse
	place    int64
	tau      bool
	lost     bool
	champion trust.Champion
	proven   *trust.Ledger // outcomes of the state that are not archived
	all      *trust.Ledger
	key      ed25519.PrivateKey
}

func (t *tx) view(ctx context.Context, c Collapse) (*collapseView, error) {
	e, err := t.evidence(ctx)
	if err != nil {
		return nil, err
	}
	q := &t.here.question
	v := &collapseView{t: t, now: c, place: e.Place, all: e.Ledger}
	if q.Policy.Promise != nil {
		tau, d := e.Ledger.Risk(q.Machine, q.State, *q.Policy.Promise, q.PolicyDigest)
		v.tau, v.lost = tau > 0, d.Alarm()
	} else {
		v.tau = e.Ledger.N(q.Machine) >= trust.CalibratedFrom
	}
	if v.proven, err = t.r.ledger.since(ctx, t.r.store, q.Machine, q.State, c.Archived, e.Place); err != nil {
		return nil, err
	}
	secret, err := t.r.store.Secret(ctx)
	if err != nil {
		return nil, err
	}
	v.key = certificateKey(secret)
	if c.Certificate != nil {
		v.champion, err = t.champion(ctx, c)
	}
	return v, err
}

// certificateKey returns the key with which a store's engine signs certificates.
func certificateKey(secret []byte) ed25519.PrivateKey {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("certificate key"))
	return ed25519.NewKeyFromSeed(mac.Sum(nil))
}

// champion returns what was seen of the champion since it was promoted.
func (t *tx) champion(ctx context.Context, c Collapse) (trust.Champion, error) {
	ch := trust.Champion{Certificate: *c.Certificate, Failures: c.Failures}
	marks := t.r.ledger.marksOf(t.here.question.Machine, t.here.state.Name, c.Place)
	var overruled []string
	var seen float64
	for _, m := range marks {
		switch {
		case m.unasked && !m.right:
			overruled = append(overruled, m.round)
			ch = ch.Audited(false)
		case !m.unasked:
			ch = ch.Audited(m.right)
			seen += 1 / m.prob.Float()
		}
	}
	ch.Decisions = int64(seen)
	if len(overruled) < 2 {
		return ch, nil
	}
	near, err := t.r.amongLatest(ctx, t.here.question.Machine, t.here.state.Name, overruled[len(overruled)-2:])
	if near {
		ch.Overrules = []int64{ch.Decisions, ch.Decisions}
	}
	return ch, err
}

// overruleWindow is the number of automatic decisions within which two overrulings
// end a champion's reign.
const overruleWindow = 20

// amongLatest reports whether all of these rounds are among the latest automatic
// decisions of a state.
func (r *Runner) amongLatest(ctx context.Context, machineName, state string, rounds []string) (bool, error) {
	decisions, err := r.Decisions(ctx, machineName, state, 0)
	if err != nil {
		return false, err
	}
	found, looked := 0, 0
	for i := len(decisions) - 1; i >= 0 && looked < overruleWindow; i-- {
		if d := decisions[i]; !d.IsHuman {
			looked++
			if slices.Contains(rounds, d.RoundID) {
				found++
			}
		}
	}
	return found == len(rounds), nil
}

// next returns the stage that follows, and whether it is another one.
func (v *collapseView) next() (Collapse, bool) {
	stage := v.now.StageOf()
	cool := int64(v.t.here.state.Collapse.CoolDown)
	if v.now.Held && v.proven.N(v.t.here.question.Machine) < cool {
		return v.now, false
	}
	s := trust.Situation{Tau: v.tau, Frozen: v.now.Frozen, LostPromise: v.lost, CoolDown: cool, Outcomes: v.proven.N(v.t.here.question.Machine)}
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
	return v.enter(to, cmp.Or(reason, reasonOf(stage, to)), Engine, certificate), true
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
func (v *collapseView) enter(to trust.Stage, reason, by string, certificate *trust.Certificate) Collapse {
	next := Collapse{Stage: to, Place: v.place, Archived: v.now.Archived, Trials: v.now.Trials, Reason: reason, By: by}
	if to == trust.Championed {
		next.Certificate = certificate
		return next
	}
	if v.now.StageOf() == trust.Championed || by != Engine {
		next.Archived = v.place
		next.Trials += int64(len(v.candidates()))
	}
	return next
}

// demotion returns why the champion may not go on, "" if it may.
func (v *collapseView) demotion() string {
	id := v.now.Certificate.SpecialistID
	m := v.t.here.find(id)
	switch {
	case m == nil || m.off || m.IsHuman:
		return "gone"
	case v.now.Certificate.Verify(v.key.Public().(ed25519.PublicKey)) != nil:
		return "bad_signature"
	case !v.tau:
		return "tau_lost"
	}
	return string(v.champion.Demotion(v.t.at, m.version, v.t.here.definition))
}

func (v *collapseView) target() trust.Target {
	c := v.t.here.state.Collapse
	return trust.Target{Share: billionths(c.Target), Alpha: billionths(c.Alpha), ClassShare: billionths(c.ClassTarget),
		AnyRuling: c.RequireBlind != nil && !*c.RequireBlind, MoreTrials: v.now.Trials}
}

func (v *collapseView) candidates() []trust.Candidate {
	q := &v.t.here.question
	return v.proven.Candidates(q.Machine, q.State, v.target())
}

// certify returns the signed certificate of whoever is elected champion, nil if
// nobody has proven enough.
func (v *collapseView) certify() *trust.Certificate {
	var list []trust.Contender
	for _, c := range v.candidates() {
		m := v.t.here.find(c.SpecialistID)
		if !c.Promotable || m == nil || m.off || m.IsHuman || m.version != c.Version {
			continue
		}
		list = append(list, trust.Contender{SpecialistID: c.SpecialistID, Certificate: v.certificate(c, Engine), Cost: m.estimate, LowerBound: c.LowerBound})
	}
	i := trust.Elect(list, v.humanCost(), v.errorCost())
	if i < 0 {
		return nil
	}
	return v.sign(list[i].Certificate)
}

func (v *collapseView) certificate(c trust.Candidate, by string) trust.Certificate {
	made := c.Certify(v.target(), v.t.at)
	made.IssuedBy, made.DefinitionDigest = by, v.t.here.definition
	made.AuditRate = billionths(v.t.here.state.Audit.Rate)
	made.ExpiresAt = v.t.at + specialist.Time(int64(v.t.here.state.Collapse.Expires)/1e6)
	made.ID = digestOf([]any{made.Machine, made.State, made.SpecialistID, made.Version, made.IssuedAt})
	return made
}

// sign returns the certificate signed; nil if that fails, and then there is none.
func (v *collapseView) sign(c trust.Certificate) *trust.Certificate {
	signed, err := c.Sign(v.key)
	if err != nil {
		return nil
	}
	return &signed
}

func (v *collapseView) humanCost() exact.Money {
	if c := v.t.here.state.Solicit.HumanCost; c != nil {
		return *c
	}
	return exact.Dollar
}

func (v *collapseView) errorCost() exact.Money {
	if c := v.t.here.state.Collapse.ErrorCost; c != nil {
		return *c
	}
	promise := trust.DefaultPromise()
	if p := v.t.here.question.Policy.Promise; p != nil {
		promise = *p
	}
	return trust.ErrorCost(v.humanCost(), promise.MaxError)
}

// uninformative returns the ids of those who cost money and tell next to nothing.
func (v *collapseView) uninformative() map[string]bool {
	p := v.panel()
	pruned := map[string]bool{}
	for _, i := range v.all.Uninformative(p) {
		pruned[p.Roster[i].SpecialistID] = true
	}
	return pruned
}

// panel returns who can be asked in the state.
func (v *collapseView) panel() trust.Panel {
	q := &v.t.here.question
	p := trust.Panel{Machine: q.Machine, State: q.State, Options: q.Options, Policy: q.Policy, Bayes: true, FixedOrder: v.t.here.state.OptionOrder == machine.DeclaredOrder}
	for i := range v.t.here.members {
		if m := &v.t.here.members[i]; !m.off && !m.IsHuman {
			p.Roster = append(p.Roster, trust.Open{SpecialistID: m.SpecialistID, Version: m.version, Model: m.ModelID, Cost: m.estimate})
		}
	}
	return p
}

// shadowRate is the share of a champion's rounds in which one of those who are no
// longer asked is asked all the same, so that what is known of it does not go stale.
const shadowRate exact.Billionths = 20_000_000

// shadow returns who is asked beside the champion in this round, "" for nobody.
func (v *collapseView) shadow(ctx context.Context) (string, error) {
	secret, err := v.t.r.store.Secret(ctx)
	if err != nil {
		return "", err
	}
	draw := trust.NewSecretDraw(secret, v.t.now.ID.String(), v.t.now.Key().ID(), "shadow")
	if !draw.Happens(shadowRate) {
		return "", nil
	}
	var open []trust.Open
	for _, o := range v.panel().Roster {
		if o.Cost > 0 && o.SpecialistID != v.t.reign.champion {
			open = append(open, o)
		}
	}
	w := v.all.Wave(v.t.here.question, open, trust.Asking{Explore: draw.Seed(), Patient: true})
	if len(w.Ask) == 0 {
		return "", nil
	}
	return open[w.Ask[0]].SpecialistID, nil
}

// shadows reports whether somebody is asked in this round only to learn from.
func (t *tx) shadows(id string) bool {
	return t.reign.alone && t.reign.shadow != "" && t.reign.shadow == id
}

// contested reports whether the champion must not decide this round alone.
func (t *tx) contested(j *trust.Judgement) bool {
	return Contested(t.round.proposal(t.reign.champion), j)
}

// Contested reports whether a champion must not decide a round alone: it has not
// answered, and p is nil; it proposes what only a human may decide; or somebody
// trusted sees it differently, as j, the judgement of the round, says.
func Contested(p *specialist.Proposal, j *trust.Judgement) bool {
	if p == nil || p.Transition.Irreversible {
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

// alone returns the champion's decision of the present round; ok is false, and the
// champion reigns no more in this round, if it must not decide alone.
func (w *work) alone(ctx context.Context) (d arbiter.Decision, round *arbiter.Round, ok bool, err error) {
	t := w.t
	votes, err := t.standings(ctx, w.by)
	if err != nil {
		return d, nil, false, err
	}
	if round, err = t.arbiterRound(ctx, votes, w.by); err != nil {
		return d, nil, false, err
	}
	j := round.Evidence.Ledger.Judge(round.Evidence.Ask(round))
	if t.contested(&j) {
		t.reign.champion, t.reign.alone, t.reign.shadow = "", false, ""
		return d, round, false, nil
	}
	i := slices.IndexFunc(votes, func(v arbiter.Vote) bool { return v.SpecialistID == t.reign.champion })
	return arbiter.Decision{Winner: i, Rule: arbiter.ByChampion, Subject: t.reign.champion, Judgement: &j}, round, true, nil
}

// noteChampion has the champion's failures written with this commit, and that it
// answered again.
func (t *tx) noteChampion() {
	c, declared := t.collapse0()
	if !declared || c.Certificate == nil || c.StageOf() != trust.Championed {
		return
	}
	id := c.Certificate.SpecialistID
	for i := range t.events {
		switch d := t.events[i].Data.(type) {
		case *AskFailed:
			if d.SpecialistID == id && d.Role == machine.Proposer && d.Code != CodeCancelled {
				t.roster = append(t.roster, RosterEvent{At: t.at, Kind: KindChampionFailed, State: t.before.State.Name, ID: id, Reason: d.Code})
			}
		case *Proposed:
			if d.SpecialistID == id && c.Failures > 0 {
				t.roster = append(t.roster, RosterEvent{At: t.at, Kind: KindChampionAnswered, State: t.before.State.Name, ID: id})
			}
		}
	}
}

// collapse0 is collapse of the state in which the tx began.
func (t *tx) collapse0() (Collapse, bool) {
	if t.before == nil || t.before.State.Collapse == nil {
		return Collapse{}, false
	}
	c, known := t.plan.roster.Collapse[t.before.State.Name]
	return c, known
}

// since returns a ledger of the outcomes of one state after a place, up to another.
func (l *ledger) since(ctx context.Context, s TrustStore, machineName, state string, after, upTo int64) (*trust.Ledger, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := stateKey{machineName, state}
	p := l.proven[key]
	if p == nil || p.after != after || p.place > upTo {
		p = &proven{after: after, place: after, now: trust.New()}
	}
	next := &proven{after, p.place, p.now}
	for x, err := range s.Lessons(ctx, p.place) {
		if err != nil {
			return nil, err
		}
		if x.Seq > upTo {
			break
		}
		next.place = x.Seq
		if o := x.Outcome; o == nil || o.Machine != machineName || o.State != state {
			continue
		}
		if next.now == p.now {
			next.now = p.now.Clone() // others may be reading
		}
		if err := next.now.Learn(x); err != nil {
			return nil, &CorruptError{"a lesson of state " + state, err.Error()}
		}
	}
	l.proven[key] = next
	return next.now, nil
}

// A stateKey names a state of a machine.
type stateKey struct{ machine, state string }

// proven is the evidence for champions of one state.
type proven struct {
	after, place int64
	now          *trust.Ledger
}

// A mark is what a human thought of one automatic decision.
type mark struct {
	seq            int64
	round          string
	right, unasked bool
	prob           exact.Billionths
}

// note enters what a lesson says of an automatic decision.
func (l *ledger) note(x trust.Lesson) {
	o := x.Outcome
	if o == nil || !o.Automatic {
		return
	}
	key := stateKey{o.Machine, o.State}
	l.marks[key] = append(slices.Clip(l.marks[key]), mark{x.Seq, o.Round, o.Pick == o.Truth, o.Unasked, cmp.Or(o.SamplingProb, exact.One)})
}

// marksOf returns the marks of a state after a place.
func (l *ledger) marksOf(machineName, state string, after int64) []mark {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.marks[stateKey{machineName, state}]
	i, _ := slices.BinarySearchFunc(all, after+1, func(m mark, seq int64) int { return cmp.Compare(m.seq, seq) })
	return all[i:]
}
