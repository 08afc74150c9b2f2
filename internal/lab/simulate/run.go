// Package simulate plays sessions with the real engine and made-up voters: what a
// policy would come to, on a panel whose reliabilities, correlations, costs, drift
// and adversaries are known.
//
// What everybody says in a round is drawn before anyone is asked, from the seed and
// the number of the round alone: policies see the same rounds. The same panel and
// seed give the same report, byte for byte.
package simulate

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/strategies"
)

// A Config says what is simulated.
type Config struct {
	Panel    Panel
	Machine  *machine.Machine    // whose proposers the voters are; nil: one is made of the panel
	Registry strategies.Registry // for arbiters that are somebody's own code
	Rounds   int                 // of each run, above 0
	Runs     int                 // below 1 means 1
	Seed     uint64
	Meta     []byte // metaJson of every session: one JSON value, or nil

	// Example returns a payload that the parameters of a transition are likely to accept.
	// If it is nil, nobody gives a payload.
	Example func(parameters []byte) []byte

	// Progress, if set, is told after each round how many of how many were played, those
	// of all runs.
	Progress func(done, of int)
}

// What a simulation may be asked for.
const (
	MaxRounds = 1_000_000
	MaxRuns   = 10_000
)

// epoch is when a simulation begins: the first moment of 2026, in ms.
const epoch = 1_767_225_600_000

// maxSteps bounds how often a session is stepped for one round.
const maxSteps = 1000

// Run simulates. Errors wrap [ErrPanel] if panel and machine do not fit.
func Run(ctx context.Context, c Config) (*Report, error) {
	m, err := c.Machine, error(nil)
	if m == nil {
		m, err = MachineOf(&c.Panel)
	}
	if err == nil {
		m, err = adapt(m, &c.Panel, c.Registry)
	}
	if err != nil {
		return nil, err
	}
	r := &Report{Machine: m.Name(), config: &c, m: m}
	for i := range max(1, c.Runs) {
		p := &play{Config: &c, m: m, examples: c.examples(), seed: stream(c.Seed, "run", i).Uint64(), run: &run{voters: make([]counts, len(c.Panel.Voters))}, before: i * c.Rounds}
		if err := p.all(ctx); err != nil {
			return nil, err
		}
		r.runs = append(r.runs, p.run)
	}
	r.sum()
	return r, nil
}

// A play is one run under way.
type play struct {
	*Config
	m    *machine.Machine
	seed uint64

	examples map[string][]byte // payloads, by transition of a state
	ids      *rand.Rand
	r        *runner.Runner
	store    *store.Memory
	now      int64 // of the clock, in ms
	*run

	session *session.Session
	number  int // of the round, from 1
	before  int // rounds of earlier runs
	state   *State
	ballot  ballot
	round   Round
	truths  map[specialist.RoundKey]known
	risks   map[string]trust.RiskView
	kings   map[string]string // champions by scope
	stages  map[string]trust.Stage
}

// A known is a round whose truth is known.
type known struct {
	number, truth, classes int
	names                  []string
}

func (p *play) all(ctx context.Context) (err error) {
	var secret [32]byte
	binary.BigEndian.PutUint64(secret[:], p.seed)
	p.store = store.NewSeededMemory(secret)
	p.ids, p.truths = stream(p.seed, "ids"), map[specialist.RoundKey]known{}
	p.risks, p.kings, p.stages = map[string]trust.RiskView{}, map[string]string{}, map[string]trust.Stage{}
	p.r, err = runner.New(runner.Config{
		Store: p.store, Resolver: p.Registry.WithProposer(voterFn, specialist.ProposerFunc(p.vote)), Observer: p.observe, AllowOperator: true,
		NewID: p.newID, Now: func() time.Time { return time.UnixMilli(epoch + p.now).UTC() },
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.r.Close()) }()
	for p.number = 1; p.number <= p.Rounds; p.number++ {
		if err := p.play(ctx); err != nil {
			return fmt.Errorf("round %d: %w", p.number, err)
		}
		if p.Progress != nil {
			p.Progress(p.before+p.number, max(1, p.Runs)*p.Rounds)
		}
	}
	l, err := p.r.Ledger(ctx)
	p.run.ledger = l
	return err
}

// examples returns a payload for each transition of the machine that has parameters.
func (c *Config) examples() map[string][]byte {
	payloads := map[string][]byte{}
	if c.Machine == nil || c.Example == nil {
		return payloads
	}
	for _, s := range c.Machine.Definition().States {
		for _, t := range s.Transitions {
			if t.Parameters != nil {
				payloads[s.Name+"/"+t.Name] = c.Example(t.Parameters)
			}
		}
	}
	return payloads
}

func (p *play) newID() (id specialist.SessionID) {
	binary.BigEndian.PutUint64(id[:8], p.ids.Uint64())
	binary.BigEndian.PutUint64(id[8:], p.ids.Uint64())
	return id
}

// requester is as whom sessions are started: nobody who decides in them, for no name of a
// machine begins with a blank.
var requester = &session.Actor{Subject: "simulate", Method: "simulate", Humans: []string{" requester"}}

// play plays one round.
func (p *play) play(ctx context.Context) (err error) {
	if err := p.enter(ctx); err != nil {
		return err
	}
	if p.state = p.Panel.state(p.session.State.Name); p.state == nil {
		return unfit("state %q leads nowhere", p.session.State.Name)
	}
	if p.state = p.state.open(p.session.Offered()); len(p.state.Classes) == 0 {
		return unfit("no class of state %q can be chosen: %s", p.state.Name, p.session.DeadEnd())
	}
	p.ballot = p.Panel.draw(p.seed, p.number, p.state)
	p.round = Round{}
	key := p.session.Key()
	p.truths[key] = known{p.number, p.ballot.truth, len(p.state.Classes), p.state.Classes}
	if err := p.decide(ctx); err != nil {
		return err
	}
	if err := p.noteChampions(ctx); err != nil {
		return err
	}
	p.rounds = append(p.rounds, p.round)
	return p.review(ctx)
}

// enter takes the session to a round that somebody decides; where there is none any more,
// to that of a new session. The clock goes on by a minute, but nobody is later than a timer:
// it executes something only in waits, and where a state is due as soon as it is entered.
func (p *play) enter(ctx context.Context) (err error) {
	last := p.now
	p.now += 60_000
	for range maxSteps {
		if s := p.session; s == nil || !s.Status.Live() || len(s.State.Transitions) == 0 { // or it leads nowhere
			if p.session, err = p.r.Start(ctx, p.m, runner.StartOptions{Meta: p.Meta, Actor: requester}); err != nil {
				return err
			}
			last = p.now
		}
		due := int64(p.session.DueAt()) - epoch
		switch {
		case p.session.Timer() == nil || due > p.now && !p.session.Waits():
			return nil
		case due > last && !p.session.Waits():
			p.now = due - 1
			return nil
		}
		p.now = max(p.now, due)
		tick, err := p.r.Step(ctx, p.session.ID)
		if err != nil {
			return err
		}
		p.session, last = tick.Session, p.now
	}
	return unfit("timers alone take the session on for more than %d steps", maxSteps)
}

// decide has the engine decide the round, or the human.
func (p *play) decide(ctx context.Context) error {
	truth := p.state.Classes[p.ballot.truth]
	for range maxSteps {
		tick, err := p.r.Step(ctx, p.session.ID)
		if err != nil {
			return err
		}
		p.session = tick.Session
		switch tick.Status {
		case runner.TickAdvanced:
			p.round.Automatic, p.round.Right = true, tick.Transition.Name == truth
			return nil
		case runner.TickHuman:
			return p.rule(ctx, truth)
		case runner.TickWaiting: // for a timer that a condition has closed
			p.now = max(p.now, int64(p.session.DueAt())-epoch)
		case runner.TickStopped, runner.TickFailed, runner.TickCompleted:
			p.round.Human = true // nothing came of it
			return nil
		}
	}
	return unfit("the round takes more than %d steps", maxSteps)
}

// rule has a human decide; where another has to rule before anything is executed, that
// one too. Humans who contradict each other agree about what one of them then thinks.
func (p *play) rule(ctx context.Context, truth string) error {
	ids, _, err := p.r.Humans(ctx, p.session)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		ids = []string{runner.Operator}
	}
	for look := 0; look <= len(ids); look++ {
		said := p.state.Classes[p.Panel.human(p.seed, p.number, look, p.ballot.truth, len(p.state.Classes))]
		who := ids // shown everything
		if look < len(ids) {
			who = ids[look : look+1]
		}
		for _, id := range who {
			if done, err := p.ruled(ctx, id, said, truth); done || err != nil {
				return err
			}
		}
	}
	if p.session.State.Transition(truth).Approvals == nil {
		return unfit("the humans do not agree")
	}
	p.round.Human, p.round.Right, p.session = true, false, nil // who may still approve does not suffice: nothing came of it
	return nil
}

// ruled has one human rule; done says whether that was executed. Who may not choose what
// they would says nothing.
func (p *play) ruled(ctx context.Context, who, said, truth string) (done bool, err error) {
	a, err := p.r.Decide(ctx, runner.Ruling{
		SessionID: p.session.ID, RoundID: p.session.Key().ID(), SpecialistID: machine.SpecialistID(who), Blind: true,
		TransitionName: said, MetaJSON: p.examples[p.state.Name+"/"+said],
	})
	refused, _ := errors.AsType[*runner.Error](err)
	switch {
	case refused != nil && refused.Code == session.CodeNotEligible:
		return false, nil
	case refused != nil && refused.Code == session.CodeSetFailed:
		return false, unfit("%s", refused.Message)
	case err != nil:
		return false, err
	case !a.Executed && !a.Recorded:
		return false, unfit("the human's %q was refused: %s", said, a.GuardReason)
	}
	p.session = a.Session
	p.round.Human, p.round.Right = true, said == truth
	return a.Executed, nil
}

// review has humans look at the closed rounds that were drawn for it.
func (p *play) review(ctx context.Context) (err error) {
	for look := 1; p.session != nil && look < 4; look++ {
		waiting := p.session.Reviews()
		if len(waiting) == 0 {
			return nil
		}
		for _, v := range waiting {
			if err := p.look(ctx, v, look); err != nil {
				return err
			}
		}
		if p.session, err = p.r.Session(ctx, p.session.ID); err != nil {
			return err
		}
	}
	return nil
}

// look has whichever human may answer one review.
func (p *play) look(ctx context.Context, v *session.Review, look int) error {
	k := p.truths[v.Key]
	said := k.names[p.Panel.human(p.seed, k.number, look, k.truth, k.classes)]
	ids, _, err := p.r.Humans(ctx, p.session)
	if err != nil {
		return err
	}
	for _, who := range append([]string{runner.Operator, human, second}, ids...) { // a third settles what two disagree about
		_, err := p.r.Review(ctx, runner.Reviewing{SessionID: p.session.ID, RoundID: v.Key.ID(), SpecialistID: machine.SpecialistID(who), TransitionName: said, Blind: true})
		if err == nil {
			p.rounds[k.number-1].Looks++
			return nil
		}
		if !errors.Is(err, runner.ErrForbidden) {
			return err
		}
	}
	return nil // nobody else may: it waits
}

// vote is the answer of a made-up voter.
func (p *play) vote(_ context.Context, q specialist.Question) (specialist.Answer, error) {
	for i := range p.Panel.Voters {
		v := &p.Panel.Voters[i]
		if v.ID != q.Self {
			continue
		}
		p.round.Asked++
		n := &p.voters[i]
		n.asked++
		u := specialist.Usage{LatencyMsec: v.Latency, Given: specialist.LatencyGiven}.WithCost(v.Cost)
		if p.ballot.votes[i] < 0 {
			return specialist.Answer{Usage: u}, errors.New("no answer")
		}
		said := p.state.Classes[p.ballot.votes[i]]
		if n.answers++; p.ballot.votes[i] == p.ballot.truth {
			n.rights++
		}
		return specialist.Answer{TransitionName: said, Reasoning: "it is " + said, MetaJSON: p.examples[p.state.Name+"/"+said], Usage: u, Model: v.Group}, nil
	}
	return specialist.Answer{}, fmt.Errorf("%s is not in the panel", q.Self)
}

// observe takes from each commit what it cost and how sure the arbiter was.
func (p *play) observe(rec session.Change) {
	for i := range rec.Events {
		switch d := rec.Events[i].Data.(type) {
		case *session.Proposed:
			p.round.Cost = p.round.Cost.Add(d.Usage.CostUSD)
		case *session.AskFailed:
			p.round.Cost = p.round.Cost.Add(d.Usage.CostUSD)
		case *session.Judged:
			p.judged(&d.Decision)
		}
	}
}

// judged notes what a verdict says of the promise.
func (p *play) judged(d *arbiter.Decision) {
	j := d.Judgement
	if j == nil {
		return
	}
	p.round.NEff = j.NEff
	if j.Risk == nil {
		return
	}
	scope := ""
	if j.Risk.Promise.PerState {
		scope = p.state.Name
	}
	was, seen := p.risks[scope]
	p.risks[scope] = *j.Risk
	if !seen {
		p.promise = &j.Risk.Promise
		return
	}
	if was.State != j.Risk.State || was.Tau != j.Risk.Tau {
		p.events = append(p.events, Event{Round: p.number, What: "risk." + string(j.Risk.State), State: scope, Tau: j.Risk.Tau})
	}
}

// noteChampions notes who became champion, and who is none any more.
func (p *play) noteChampions(ctx context.Context) error {
	roster, err := p.store.Roster(ctx, p.m.Name())
	if err != nil {
		return err
	}
	scopes := append([]string{""}, p.Panel.names()...)
	for _, scope := range scopes {
		stage := roster.Collapse[scope].StageOf()
		if was, seen := p.stages[scope]; seen && was != stage {
			p.events = append(p.events, Event{Round: p.number, What: "stage." + string(stage), State: scope, Why: roster.Collapse[scope].Reason})
		}
		p.stages[scope] = stage
		was, now := p.kings[scope], champion(roster, scope)
		if was == now {
			continue
		}
		if was != "" {
			p.promote("champion.demoted", scope, was)
		}
		if now != "" {
			p.promote("champion.promoted", scope, now)
		}
		p.kings[scope] = now
	}
	return nil
}

// champion returns who decides a scope alone, by either rule; "" if nobody does.
func champion(roster *session.Roster, scope string) string {
	if c := roster.Collapse[scope].Certificate; c != nil {
		return c.SpecialistID
	}
	return roster.Champions[scope].ID
}

// promote notes a promotion or a demotion with how good the voter really is.
func (p *play) promote(what, scope, id string) {
	v := p.Panel.voter(id)
	if v == nil {
		return
	}
	s := p.Panel.state(scope)
	if s == nil {
		s = p.state
	}
	p.events = append(p.events, Event{Round: p.number, What: what, State: scope, Specialist: id, TrueP: v.right(s, p.Panel.drifted(id, p.number))})
}
