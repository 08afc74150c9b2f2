package backtest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/strategies"
)

// seed is that of every random choice in these tests.
const seed = 20261121

// A history makes the past of a store: sessions of many machines at once, with
// voters who are right with a known probability, and restarts in between.
type history struct {
	testing.TB
	ctx   context.Context
	path  string
	store *store.SQLite
	r     *runner.Runner
	calls atomic.Int64 // of anybody's code

	mu        sync.Mutex
	now       time.Time
	players   map[specialist.SessionID]*player
	regrets   bool // some rulings are taken back
	retracted int  // how many were
}

// A player plays the sessions of one machine: it knows the truth, and what the
// voters see of it.
type player struct {
	*history
	rng      *rand.Rand
	sessions []specialist.SessionID
	truth    map[specialist.SessionID]string
	decided  map[specialist.RoundKey]string
}

func newHistory(t testing.TB) *history {
	h := &history{TB: t, ctx: context.Background(), path: filepath.Join(t.TempDir(), "past.db"),
		players: map[specialist.SessionID]*player{}, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	t.Logf("seed %d", seed)
	h.open()
	t.Cleanup(h.close)
	return h
}

func (h *history) ok(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// open opens the store, as a new process would.
func (h *history) open() {
	h.Helper()
	var err error
	h.store, err = store.OpenSQLite(h.ctx, h.path, store.SQLiteOptions{})
	h.ok(err)
	h.r, err = runner.New(runner.Config{Store: h.store, Resolver: h.registry(), AllowOperator: true, Now: func() time.Time {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.now = h.now.Add(time.Second)
		return h.now
	}})
	h.ok(err)
}

func (h *history) close() {
	h.Helper()
	h.ok(errors.Join(h.r.Close(), h.store.Close()))
}

func (h *history) restart() {
	h.close()
	h.open()
}

// registry has voters by name: v90 proposes the truth with probability .9, and so
// on. The voter "lost" never answers. The arbiter "judge" is somebody's own code.
func (h *history) registry() strategies.Registry {
	r := strategies.Registry{}
	for _, p := range []int{95, 90, 80, 70, 60, 30} {
		r = r.WithProposer(fmt.Sprint("v", p), specialist.ProposerFunc(func(_ context.Context, q specialist.Question) (specialist.Answer, error) {
			h.calls.Add(1)
			cost := specialist.Usage{}.WithCost(2_000_000_000)
			return specialist.Answer{TransitionName: h.players[q.Key.Session].vote(q, p), Reasoning: "I think so", Usage: cost}, nil
		}))
	}
	r = r.WithProposer("lost", specialist.ProposerFunc(func(context.Context, specialist.Question) (specialist.Answer, error) {
		h.calls.Add(1)
		return specialist.Answer{}, errors.New("no idea")
	}))
	return r.WithArbiter("judge", arbiter.Func(func(_ context.Context, round *arbiter.Round) (arbiter.Decision, error) {
		h.calls.Add(1)
		if len(round.Votes) < 2 || round.Votes[0].Transition != round.Votes[1].Transition {
			return arbiter.None("they differ"), nil
		}
		return arbiter.Elect(1, "the first two agree"), nil
	}))
}

func (h *player) vote(q specialist.Question, p int) string {
	truth := h.truth[q.Key.Session]
	if h.rng.IntN(100) < p || len(q.Transitions()) < 2 {
		return truth
	}
	for {
		if t := q.Transitions()[h.rng.IntN(len(q.Transitions()))].Name; t != truth {
			return t
		}
	}
}

// A plot says which machine has a history.
type plot struct {
	name, arbiter, top string
	voters             string // names of voters, by blank; one with ! is required
}

func (p plot) machine(t testing.TB) *machine.Machine {
	t.Helper()
	var who []string
	for i, v := range strings.Fields(p.voters) {
		name, required := strings.CutSuffix(v, "!")
		who = append(who, fmt.Sprintf(`{"role":"proposer","specialistId":"%s-%d","strategyFn":"%s","estimatedCostUSD":0.002,"required":%t}`, name, i, name, required))
	}
	for _, human := range []string{"carol", "dave", "erin"} {
		who = append(who, fmt.Sprintf(`{"role":"proposer","specialistId":"%s","isHuman":true}`, human))
	}
	who = append(who, p.arbiter)
	top := p.top
	if top != "" {
		top += ","
	}
	text := fmt.Sprintf(`{"machineName":"%s","initialState":"open","goalState":"done",%s
		"states":{"open":{"transitions":{"left":"open","right":"open","aside":"second","finish":"done"}},
		"second":{"transitions":{"back":"open","on":"second","irrevocable":{"target":"second","irreversible":true}}},"done":{}},
		"specialists":[%s]}`, p.name, top, strings.Join(who, ","))
	m, err := machine.Parse(p.name+".json", []byte(text), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func arb(strategy string, more ...string) string {
	text := fmt.Sprintf(`{"role":"arbiter","specialistId":"arbiter",%s`, strategy)
	for _, m := range more {
		text += "," + m
	}
	return text + "}"
}

// start has somebody play so many sessions of a machine.
func (h *history) start(m *machine.Machine, n int) *player {
	h.Helper()
	p := &player{h, rand.New(rand.NewPCG(seed, uint64(len(h.players)))), nil, map[specialist.SessionID]string{}, map[specialist.RoundKey]string{}}
	for range n {
		s, err := h.r.Start(h.ctx, m, runner.StartOptions{})
		h.ok(err)
		p.sessions = append(p.sessions, s.ID)
		h.players[s.ID] = p
	}
	return p
}

// play takes sessions so many steps on, in turns; the human always knows the
// truth.
func (h *player) play(steps int) error {
	for range steps {
		if err := h.step(h.sessions[h.rng.IntN(len(h.sessions))]); err != nil {
			return err
		}
	}
	return nil
}

// together has all play at once.
func (h *history) together(players []*player, steps int) {
	h.Helper()
	errs := make([]error, len(players))
	var wg sync.WaitGroup
	for i, p := range players {
		wg.Go(func() { errs[i] = p.play(steps) })
	}
	wg.Wait()
	h.ok(errors.Join(errs...))
}

func (h *player) step(id specialist.SessionID) error {
	s, err := h.r.Session(h.ctx, id)
	if err != nil {
		return err
	}
	if !s.Status.Live() {
		return h.review(s)
	}
	if h.rng.IntN(4) == 0 {
		if err := h.review(s); err != nil {
			return err
		}
	}
	options := s.State.Transitions
	if h.truth[id] == "" {
		h.truth[id] = options[h.rng.IntN(len(options)-1)].Name // the last ends a session, or cannot be undone
		if s.Executed > 40 {
			h.truth[id] = options[len(options)-1].Name
		}
	}
	if h.rng.IntN(40) == 0 { // a human rules before anybody was asked
		return h.rule(s)
	}
	tick, err := h.r.Step(h.ctx, id)
	if err != nil {
		return err
	}
	switch tick.Status {
	case runner.TickAdvanced, runner.TickCompleted:
		h.decided[s.Key()] = h.truth[id]
		h.truth[id] = ""
	case runner.TickHuman:
		if h.rng.IntN(8) == 0 { // a human has a vote, too
			now, err := h.r.Session(h.ctx, id)
			h.ok(err)
			_, _, err = h.r.Propose(h.ctx, runner.Submission{SessionID: id, RoundID: now.Key().ID(), SpecialistID: "carol", TransitionName: h.truth[id]})
			return err
		}
		return h.rule(tick.Session)
	}
	return nil
}

func (h *player) rule(s *session.Session) error {
	id := s.ID
	in := runner.Ruling{SessionID: id, RoundID: s.Key().ID(), SpecialistID: "carol", TransitionName: h.truth[id], Blind: true}
	h.second(s, &in)
	a, err := h.r.Decide(h.ctx, in)
	if a.Executed {
		h.truth[id] = ""
		if h.regrets && err == nil && h.rng.IntN(4) == 0 {
			return h.regret(s, in.SpecialistID)
		}
	}
	return err
}

// regret takes back what has just been ruled on, unless somebody has reviewed it.
func (h *player) regret(s *session.Session, who machine.SpecialistID) error {
	_, err := h.r.Retract(h.ctx, runner.Retracting{SessionID: s.ID, RoundID: s.Key().ID(), SpecialistID: who, Note: "a mistake"})
	if errors.Is(err, runner.ErrReviewed) {
		return nil
	}
	h.retracted++
	return err
}

// second has another human rule where rulings wait for one: often otherwise, and
// sometimes the one that waits is taken back.
func (h *player) second(s *session.Session, in *runner.Ruling) {
	waiting, concealed := s.PendingRulings()
	switch {
	case len(waiting) == 1 && h.rng.IntN(5) == 0:
		in.Withdraw, in.TransitionName = true, ""
	case len(waiting) > 0 && concealed:
		in.SpecialistID = []machine.SpecialistID{"carol", "dave", "erin"}[len(waiting)]
		in.TransitionName = s.State.Transitions[h.rng.IntN(len(s.State.Transitions))].Name
	}
}

// review has a human look at the closed rounds that were drawn for it; every sixth
// answer is that another transition would have been right.
func (h *player) review(s *session.Session) error {
	for _, v := range s.Reviews() {
		said := h.decided[v.Key]
		if options := v.State.Transitions; said == "" || h.rng.IntN(6) == 0 {
			said = options[h.rng.IntN(len(options))].Name
		}
		who := []string{"carol", "dave", "erin"}[h.rng.IntN(3)]
		in := runner.Reviewing{SessionID: s.ID, RoundID: v.Key.ID(), SpecialistID: machine.SpecialistID(who), TransitionName: said, Blind: true}
		if _, err := h.r.Review(h.ctx, in); err != nil && !errors.Is(err, runner.ErrForbidden) {
			return err
		}
	}
	return nil
}
