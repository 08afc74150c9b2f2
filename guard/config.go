package guard

import (
	"fmt"
	"strings"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/batch"
	"github.com/dialai/dialai/internal/packs"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/internal/text"
	"github.com/dialai/dialai/internal/truth"
	"github.com/dialai/dialai/machine"
)

// A guards section as it is used. The profile decides which of two systems' rules hold where
// they differ, and the defaults (Defaults); the section's members are laid over them. It is
// checked once, when the machine is loaded: a Config that exists has no contradictions, so
// that the checks themselves never look for any.

// A Config is a guards section, checked. A nil *Config checks nothing. It never
// changes and may be used concurrently.
type Config struct {
	Profile   Profile
	Limits    Limits
	Forbidden []Forbidden
	Packs     packs.Packs
	Schema    *machine.Schema // of outputs; nil if there is none
	Tools     Tools
	Cost      Cost
	Loop      LoopDetection
	Retry     RetryLimit
	Store     Store
	Batch     *batch.Loop   // nil if there is none
	Budget    *spend.Budget // likewise
	// Classifier and Truth judge what the other checks let pass, by asking
	// somebody: Check does not ask. Nil if there is none.
	Classifier *ClassifierConfig
	Truth      *truth.Section // of machines
}

// Asks reports whether somebody has to be asked about a step that takes a
// transition of this name, once the other checks have let it pass. c may be nil.
func (c *Config) Asks(transition string) bool {
	return c != nil && (c.Classifier != nil || c.Truth != nil && c.Truth.Needs(transition))
}

// DebitsProbes reports whether the guards' own questions are paid from the
// budget of the task.
func (c *Config) DebitsProbes() bool {
	if c.Budget != nil {
		return c.Budget.DebitProbes
	}
	return c.Profile == Strict
}

// Adapts reports whether what is reserved for a call follows what calls have
// needed before.
func (c *Config) Adapts() bool {
	if c.Budget != nil {
		return c.Budget.ReserveMode == spend.ReserveAdaptive
	}
	return c.Profile == Strict
}

// A Profile names the defaults of a Config.
type Profile string

// The profiles: strict is the default inside machines, compat does what the
// published step guard does.
const (
	Strict Profile = "strict"
	Compat Profile = "compat"
)

// Limits bound steps, tokens and the length of outputs. Nil means no limit;
// every limit is the largest permitted value.
type Limits struct {
	MaxSteps         *int64
	MaxTokensPerStep *int64
	MaxTotalTokens   *int64
	OutputMin        *int64 // in code points
	OutputMax        *int64
	CapBasis         CapBasis
}

// A CapBasis says which book token and dollar caps read.
type CapBasis string

// The books: everything that was spent, or only what executed steps cost.
const (
	Spend    CapBasis = "spend"
	Progress CapBasis = "progress"
)

// Forbidden is a pattern that no output may match.
type Forbidden struct {
	Source  string
	pattern *text.Pattern
}

// Tools are the rules for tool calls.
type Tools struct {
	Allowed      []string // nil allows every tool, an empty list none
	ArgSchemas   map[string]*machine.Schema
	Mutex        [][]string // of each group a task may use one tool
	MutexScope   string     // task or step
	BlastRadius  map[string]int64
	Sequence     []Sequence
	PerTool      map[string]ToolRule
	groupsByTool map[string][]int // indices of Mutex
}

// Sequence says that a tool needs another one to have been called in an earlier
// step.
type Sequence struct{ Tool, RequiresPrev string }

// A ToolRule tells loop detection about one tool.
type ToolRule struct {
	LoopKey  []string // only these members of the arguments count; nil means all
	Volatile []string // these do not count
	Poll     bool     // repeating a call is what it is for, as long as results change
	Exempt   bool     // never part of a loop
}

// Cost bounds money.
type Cost struct {
	Version        string // of the prices; may be ""
	Prices         map[string]spend.Price
	MaxDollars     *exact.Money // per task
	OnUnknownModel string       // skip, warn, estimate_max, abort
}

// LoopDetection finds tasks that go round in circles.
type LoopDetection struct {
	NgramSize        int64
	MaxRepeats       int64
	Mode             string // any_ngram, overlap, off
	OverlapRatio     exact.Billionths
	IdenticalCalls   bool
	MaxStateVisits   int64
	VisitCounting    string // steps, entries, transitions
	ProgressAware    bool
	Normalize        bool   // compare without nonces and what nobody sees
	MaxOutputRepeats *int64 // nil means any number
	Cycle            *Cycle
	Near             *Near
}

// A Cycle finds states that repeat in the same order.
type Cycle struct{ MaxPeriod, Repeats int64 }

// Near finds calls of one tool that are almost alike.
type Near struct {
	Jaccard exact.Billionths // of the sets of words in the arguments, estimated
	Repeats int64
}

// RetryLimit bounds attempts.
type RetryLimit struct{ MaxAttempts *int64 }

// Store bounds what a task remembers, and for how long.
type Store struct {
	HistoryLimit int64
	TTL          time.Duration
}

// Defaults of a section's members.
const (
	DefaultMaxStateVisits = 3
	DefaultHistoryLimit   = 50
	defaultTTL            = 10 * time.Minute
)

// maxHistory bounds history_limit: what a task remembers is kept in memory.
const maxHistory = 10_000

// Defaults returns the Config of an empty section.
func Defaults(p Profile) *Config {
	c := &Config{
		Profile: p,
		Limits:  Limits{CapBasis: Progress},
		Tools:   Tools{MutexScope: "task"},
		Cost:    Cost{OnUnknownModel: "skip"},
		Loop: LoopDetection{
			NgramSize: 5, MaxRepeats: 2, Mode: "any_ngram", OverlapRatio: 800_000_000, IdenticalCalls: true,
			MaxStateVisits: DefaultMaxStateVisits, VisitCounting: "steps",
		},
		Store: Store{HistoryLimit: DefaultHistoryLimit, TTL: defaultTTL},
	}
	if p == Strict {
		c.Limits.CapBasis, c.Cost.OnUnknownModel = Spend, "warn"
		c.Loop.Mode, c.Loop.VisitCounting, c.Loop.ProgressAware, c.Loop.MaxOutputRepeats = "overlap", "transitions", true, new(int64(3))
		c.Loop.Normalize = true
		c.Loop.Cycle, c.Loop.Near = &Cycle{8, 3}, &Near{800_000_000, 8}
	}
	return c
}

// A ConfigError is a configuration that was refused.
type ConfigError struct {
	Path     string
	Problems []machine.Problem
}

// Error lists every problem on a line of its own.
func (e *ConfigError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: invalid guards", e.Path)
	for _, p := range e.Problems {
		b.WriteString("\n" + p.String())
	}
	return b.String()
}
