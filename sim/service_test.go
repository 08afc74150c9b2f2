package sim_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/strategies"
)

// registry has the functions of the program.
func (w *world) registry() strategies.Registry {
	return strategies.Registry{}.WithProposer("fn", specialist.ProposerFunc(func(_ context.Context, q specialist.Question) (specialist.Answer, error) {
		if w.draw(6, "fails", q.Self, q.Key) == 0 {
			return specialist.Answer{}, errCannot
		}
		return w.answer(q, "fn"), nil
	}))
}

// answer is what somebody says in a round, whenever it is asked.
func (w *world) answer(q specialist.Question, id string) specialist.Answer {
	legal := q.Transitions()
	n := 0
	if w.draw(4, "differs", id, q.Key) == 0 { // mostly they agree
		n = 1
	}
	t := legal[(w.draw(len(legal), "answer", q.Key.Round)+n)%len(legal)]
	return q.Choose(t, fmt.Sprintf("%s says so in round %d", id, q.Key.Round))
}

// A service is a program far away that proposes or arbitrates for money. It knows an
// ask by its key and is paid for it once, unless it is a model, which is paid for
// each request.
type service struct {
	w        *world
	id       string
	model    bool
	silent   bool        // it names no cost, and takes what the machine thinks
	price    exact.Money // what it takes
	estimate exact.Money // what the machine thinks that is
	accounts map[string]*account
}

// An account is what a service counts for one key.
type account struct {
	requests int
	charged  exact.Money
}

// work does what a request asks for, and counts it.
func (s *service) work(ask string) exact.Money {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	a := s.accounts[ask]
	if a == nil {
		a = &account{}
		s.accounts[ask] = a
	}
	if a.requests++; a.requests == 1 || s.model || s.w.mutation.is("service forgets its keys") {
		a.charged += s.price
	}
	s.w.counts["requests"]++
	if a.requests > 1 {
		s.w.counts["repeated requests"]++
	}
	return s.price
}

// told is what an answer says of its cost.
func (s *service) told(u specialist.Usage) specialist.Usage {
	if s.silent {
		return specialist.Usage{}
	}
	return u
}

// outside is how a process reaches services and models.
type outside struct{ p *process }

// Proposer implements [strategies.Resolver].
func (o outside) Proposer(_ *machine.Machine, s *machine.Specialist, _ specialist.Context) (specialist.Proposer, error) {
	return caller{o.p, o.p.w.services[s.SpecialistID]}, nil
}

// Arbiter implements [strategies.Resolver].
func (o outside) Arbiter(_ *machine.Machine, s *machine.Specialist) (arbiter.Arbiter, error) {
	return caller{o.p, o.p.w.services[s.SpecialistID]}, nil
}

// Context implements [strategies.Resolver]: no contexts of services are simulated.
func (outside) Context(*machine.Machine, *machine.Specialist) (specialist.Context, error) {
	return nil, nil
}

// A caller asks one service from one process.
type caller struct {
	p *process
	s *service
}

// Ways of a request and of its answer.
const (
	arrives  = "arrives"
	refused  = "is refused, nothing is sent"
	reset    = "arrives, and the connection is reset"
	accepted = "is accepted, the answer comes later"
	answers  = "answers"
	fails    = "answers that it cannot"
	lost     = "the answer is lost"
	givesUp  = "nobody waits any more"
)

var (
	errCannot  = errors.New("no such key: score")
	errRefused = errors.New("injected: connection refused")
	errReset   = fmt.Errorf("injected: connection reset: %w", specialist.ErrUncounted)
)

// Propose implements [specialist.Proposer].
func (c caller) Propose(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
	a := c.p.w.answer(q, c.s.id)
	if c.s.model {
		a.Model = "sim/" + c.s.id
	}
	later := func() {
		_, id, _ := strings.Cut(q.Ask.CallbackURL, "/v1/callbacks/")
		c.p.w.later(&post{w: c.p.w, s: c.s, id: id, token: q.Ask.CallbackToken, ask: q.Ask.ID, key: q.Key, answer: a})
	}
	if q.Ask.CallbackURL == "" {
		later = nil
	}
	u, err := c.call(ctx, q.Key, q.Ask.ID, later)
	if a.Usage = u; err != nil {
		a = specialist.Answer{Usage: u, Model: a.Model}
	}
	return a, err
}

// Decide implements [arbiter.Arbiter].
func (c caller) Decide(ctx context.Context, r *arbiter.Round) (arbiter.Decision, error) {
	winner := c.p.w.draw(len(r.Votes)+1, "elects", c.s.id, r.Key, len(r.Votes)) - 1
	u, err := c.call(ctx, r.Key, r.Ask.ID, nil)
	d := arbiter.None("not sure")
	if winner >= 0 && err == nil {
		d = arbiter.Elect(winner, c.s.id+" elects")
	}
	if u != (specialist.Usage{}) {
		d.Expense = &arbiter.Expense{Usage: u}
	}
	return d, err
}

// call makes one request and waits for what comes of it.
func (c caller) call(ctx context.Context, round specialist.RoundKey, ask string, later func()) (specialist.Usage, error) {
	w := c.p.w
	name := fmt.Sprintf("%s asks %s for %s", c.p.name, c.s.id, w.short(round, ask))
	how := w.park(c.p, name, func() []way {
		ways := []way{{arrives, 30, false}, {refused, 1, true}, {reset, 2, true}}
		if later != nil {
			ways = append(ways, way{accepted, 12, false})
		}
		return ways
	})
	if how == gone {
		return specialist.Usage{}, errDead
	}
	if how == refused {
		return specialist.Usage{}.WithCalls(0, 0), errRefused
	}
	if c.s.accounts[ask] == nil {
		w.count("sent by " + c.p.incarnation()) // what is repeated under its key is on its way already
	}
	if !w.logged(ask) {
		w.fail(askedFirst, "%s is asked for %s, and the log does not have that", c.s.id, w.short(round, ask))
	}
	u := specialist.Usage{}.WithCost(c.s.work(ask))
	switch how {
	case reset:
		return specialist.Usage{}, errReset
	case accepted:
		later()
		return specialist.Usage{}, specialist.ErrAccepted
	}
	how = w.park(c.p, name+", and it", func() []way {
		ways := []way{{answers, 20, false}, {fails, 3, false}, {lost, 1, true}}
		if c.s.id == truthID {
			ways[0].weight = 100 // one that fails ends the gate
		}
		if ctx.Err() != nil {
			ways = append(ways, way{givesUp, 20, false})
		}
		return ways
	})
	switch how {
	case gone:
		return specialist.Usage{}, errDead
	case givesUp:
		return specialist.Usage{}, ctx.Err()
	case fails:
		return u, errCannot
	case lost:
		return specialist.Usage{}, errReset
	}
	return c.s.told(u), nil
}

// logged reports whether some session's log has the ask.
func (w *world) logged(ask string) bool {
	return slices.ContainsFunc(w.sessions, func(s *observed) bool { return s.asks[ask] != nil })
}

// short is how a trace calls an ask.
func (w *world) short(k specialist.RoundKey, ask string) string {
	n := int32(1)
	for n < 100 && k.AskID(n) != ask {
		n++
	}
	return fmt.Sprintf("%s round %d.%d ask %d", w.named(k.Session), k.Round, k.Attempt, n)
}

// arrivals lets the scheduler choose when an answer is heard: between the answer and
// the hearing a process may crash, and others be faster.
type arrivals struct{ p *process }

// Together implements [runner.Arrivals].
func (a arrivals) Together(asked []specialist.Caller) func(context.Context, int, func()) {
	a.p.w.mu.Lock()
	a.p.flying += len(asked)
	a.p.w.mu.Unlock()
	return func(_ context.Context, place int, hear func()) {
		c := asked[place]
		a.p.w.park(a.p, fmt.Sprintf("%s hears %s in %s round %d.%d", a.p.name, c.SpecialistID, a.p.w.namedText(c.SessionID), c.Round, c.Attempt),
			func() []way { return []way{{done, 30, false}} })
		a.p.w.mu.Lock()
		a.p.flying--
		a.p.w.mu.Unlock()
		hear()
	}
}

// A post is an answer that comes later, perhaps twice.
type post struct {
	w         *world
	s         *service
	id, token string
	ask       string
	key       specialist.RoundKey
	answer    specialist.Answer
	times     int
}

func (w *world) later(c *post) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.answer.Usage = c.s.told(specialist.Usage{}.WithCost(c.s.price))
	w.posts = append(w.posts, c)
}

func (c *post) choices() (list []choice) {
	for _, p := range c.w.procs {
		if p.dead || p.paused {
			continue
		}
		label, weight := "the later answer", 6
		if c.times > 0 {
			label, weight = "the later answer again", 1
		}
		list = append(list, choice{fmt.Sprintf("%s gets %s of %s for %s", p.name, label, c.s.id, c.w.short(c.key, c.ask)), weight, c.times > 0, func() {
			c.times++
			p.run("callback", c.w.find(c.key.Session), func(ctx context.Context, _ *observed) error {
				_, _, err := p.r.Callback(ctx, c.id, c.token, c.answer)
				return err
			})
		}})
	}
	return list
}

var _ strategies.Resolver = outside{}
