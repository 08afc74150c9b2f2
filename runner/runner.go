// Package runner carries a session through its rounds and commits each step
// once.
//
// [Runner.Step] is the one function that knows the order: load the session, ask
// the proposers, record their answers, let the arbiter decide, pass the gate, commit,
// announce. Every surface enters through [Runner.Start], [Runner.Propose],
// [Runner.Decide] and Step; [Runner.Run] only repeats Step. Programs with workers of their
// own take a step apart: [Runner.Asks], [Runner.Answer], and Step or Decide. A
// [session.Session] is a value; what changes it is an [session.Event], and a [session.Store] keeps the events.
package runner

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/lessons"
	"github.com/dialai/dialai/internal/lru"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/internal/stats"
	"github.com/dialai/dialai/internal/tenants"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/strategies"
)

// A Config says what a Runner is made of. Only Store is required.
type Config struct {
	Store session.Store
	// Resolver finds who is behind the names, addresses and models of a machine; a
	// [strategies.Registry] of the program's own functions, a webhook client and an llm
	// client are some, and [strategies.Resolvers] joins them. What is built in and
	// expressions are found without one. A session that names somebody whom nobody
	// finds does not start.
	Resolver strategies.Resolver
	// Agents says, before a session starts, whether this program drives the coding agent
	// that s names, and why not; nil drives none, and no session starts whose machine names
	// one. In a session that runs agents are asked in the log, by every Runner: their answers
	// come by [Runner.Propose] from whoever drives them, or [Runner.Withdraw] ends the ask.
	Agents func(m *machine.Machine, s *machine.Specialist) error
	// Prices are what models cost whose price the machine does not say; nil knows
	// none.
	Prices *spend.PriceTable
	// Quota says what a tenant may use at a time, over all its sessions; it is
	// asked once for each tenant, and nil limits nothing. A store that is a [session.QuotaStore]
	// counts it, once for all processes. With another, this Runner counts what the logs say that
	// was used when it first loaded the tenant, and then what it asks for itself: it does not
	// see what other processes ask for meanwhile.
	Quota func(tenant string) *spend.Quota
	// Tenant names whose sessions of a machine with that metaJson are; nil means
	// that all are of the tenant "". It must answer the same whenever it is asked.
	Tenant func(m *machine.Machine, meta json.RawMessage) string
	// Guards run after the checks that machine files configure.
	Guards []guard.Checker
	// Observer is told of every commit after it is durable, in the order of
	// each session's log. It must not block. It may be called concurrently for
	// different sessions. It sees what this Runner commits; [Runner.Watch] yields what
	// all do, and waits for a slow reader.
	Observer func(session.Change)
	// Panicked is told of every panic in the work on a session, for a log: the session
	// records it without its stack. It may be called concurrently; nil is told nothing.
	Panicked func(*PanicError)
	// Arrivals says in which order answers from outside are recorded; nil means in the
	// order in which they come.
	Arrivals Arrivals
	// Trace is told that a part of a step begins, and returns the context of that part and
	// what is called with its error when it ends. It must not block; nil is told nothing.
	Trace func(context.Context, Part) (context.Context, func(error))
	// PublicURL is where this process can be reached by webhooks that answer
	// later, without a slash at the end. Without it they cannot.
	PublicURL string
	// Now is the clock; nil means that of Store if it is a [session.Clock], and else time.Now.
	Now func() time.Time
	// NewID makes session ids; nil means random UUIDs (version 4).
	NewID func() specialist.SessionID
	// Random is where secrets come from; nil means crypto/rand.
	Random io.Reader
	// AllowOperator lets a ruling come from "__operator" where a machine
	// declares no human. Only a program at the operator's own terminal sets it.
	AllowOperator bool
}

// Arrivals are told in which order those who are asked at the same time answer, and may
// hold answers back, as whoever plays a recorded round does. They may be used
// concurrently.
//
// Together is told who is asked at the same time, in which order. The function it returns
// is called once for each of them, by its place in that list and concurrently, when its
// answer is there or it was given up. It must call record exactly once before it returns,
// and at once when ctx is done; answers are recorded in the order in which the calls of record
// begin, as long as no two run at the same time. record does not block.
type Arrivals interface {
	Together(asked []specialist.Caller) func(ctx context.Context, place int, record func())
}

// A Runner runs sessions. It may be used concurrently, and any number of Runners,
// in any number of processes, may share a store: they meet at its
// compare-and-swap. It starts no goroutine that outlives a call.
type Runner struct {
	config   Config
	store    session.Store
	programs *session.Programs
	engines  sync.Pool       // of *engine
	quota    *tenants.Quotas // nil if nothing is limited
	lessons  *lessons.Follower
	past     lessons.History
	tallies  *stats.Follower

	mu       sync.Mutex
	plans    *lru.Cache[*session.Program, *plan]
	inflight map[askKey]bool          // asks this runner is waiting for
	sending  map[askKey]chan struct{} // external asks that are being sent; closed when that is over
	askers   *lru.Cache[guard.ClassifierConfig, *guard.Asker]
	outputs  *lru.Cache[string, *spend.Outputs] // of models that guards asked
	owner    session.Owner                      // nil until the first ask outside this process
	watchers map[chan struct{}]bool             // told of every commit; each has room for one word
}

// remembered is how many definitions a Runner remembers at least as it needs them, and
// half of how many at most. It makes ready again what it has forgotten, and has then
// forgotten, too, how a classifier that nobody else names has failed.
const remembered = 256

// askKey names an ask among those of all sessions.
type askKey struct {
	round specialist.RoundKey
	index int32
}

// New returns a Runner. It copies c.
func New(c Config) (*Runner, error) {
	if c.Store == nil {
		return nil, &ConfigError{Field: "Store", Problem: "is required"}
	}
	if c.Now == nil {
		c.Now = time.Now
		if clock, ok := c.Store.(session.Clock); ok {
			c.Now = clock.Now
		}
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	if c.NewID == nil {
		c.NewID = func() specialist.SessionID { return specialist.SessionID(uuid.New()) }
	}
	c.Resolver = strategies.Resolvers{c.Resolver, strategies.Registry{}}
	r := &Runner{
		config: c, store: c.Store, programs: session.NewPrograms(), lessons: lessons.New(),
		plans: lru.New[*session.Program, *plan](remembered), inflight: map[askKey]bool{}, sending: map[askKey]chan struct{}{}, watchers: map[chan struct{}]bool{},
		askers: lru.New[guard.ClassifierConfig, *guard.Asker](remembered), outputs: lru.New[string, *spend.Outputs](remembered),
	}
	r.tallies = stats.NewFollower(c.Store, r.programs)
	shared, _ := r.store.(session.QuotaStore)
	var err error
	if r.quota, err = tenants.NewQuotas(tenants.Source{Quota: c.Quota, Scope: r.scope, Clock: c.Now, List: r.store.List, Load: r.load, Fold: r.Fold, Shared: shared}); err != nil {
		return nil, err
	}
	return r, nil
}

// Store returns where the Runner keeps its sessions, for whoever only reads.
func (r *Runner) Store() session.Store { return r.store }

// Close gives up what the Runner holds in the store: asks it never finished are
// from now on repeated by others. It does not close the store.
func (r *Runner) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.owner == nil {
		return nil
	}
	o := r.owner
	r.owner = nil
	return o.Release()
}

// Now returns what time it is to r.
func (r *Runner) Now() specialist.Time { return r.now() }

func (r *Runner) now() specialist.Time { return specialist.TimeOf(r.config.Now()) }

// load reads a session.
func (r *Runner) load(ctx context.Context, id specialist.SessionID) (s *session.Session, err error) {
	err = r.contain(id, func() (err error) {
		s, err = r.store.Load(ctx, r.programs, id)
		return err
	})
	return s, err
}
