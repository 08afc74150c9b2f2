package guard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
)

// A Config is a guards section, checked. A nil *Config checks nothing. It never
// changes and may be used concurrently.
type Config struct {
	Profile   Profile
	Limits    Limits
	Forbidden []Forbidden
	Packs     Packs
	Schema    *machine.Schema // of outputs; nil if there is none
	Tools     Tools
	Cost      Cost
	Loop      LoopDetection
	Retry     RetryLimit
	Store     Store
	Batch     *BatchLoop // nil if there is none
	Budget    *Budget    // likewise
	// Classifier is asked by a Guard, outside of machines; nil if there is none.
	Classifier *ClassifierConfig
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
	pattern *pattern
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
	Prices         map[string]Price
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
	DefaultTTL            = 10 * time.Minute
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
		Store: Store{HistoryLimit: DefaultHistoryLimit, TTL: DefaultTTL},
	}
	if p == Strict {
		three := int64(3)
		c.Limits.CapBasis, c.Cost.OnUnknownModel = Spend, "warn"
		c.Loop.Mode, c.Loop.VisitCounting, c.Loop.ProgressAware, c.Loop.MaxOutputRepeats = "overlap", "transitions", true, &three
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

// later are the members of the published formats that this version does not
// check yet. They are refused: a guard that is silently not there is worse than
// none.
var later = map[string][]string{
	"": {"truth", "classifier"},
}

// Parse reads one guards section of a machine, a JSON object; state says that it
// is a state's own. The profile is strict unless the section says otherwise. The
// problems have JSON pointers relative to the section.
func Parse(section []byte, state bool) (*Config, []machine.Problem) {
	return parse(section, Strict, state, true)
}

// ParseAs reads a section for a [Guard], outside of machines, with the default
// profile given. It may have a classifier.
func ParseAs(section []byte, profile Profile) (*Config, []machine.Problem) {
	return parse(section, profile, false, false)
}

func parse(section []byte, profile Profile, state, inMachine bool) (*Config, []machine.Problem) {
	tidy, err := exact.Tidy(section)
	if err != nil {
		return nil, []machine.Problem{{Code: "bad-json", Message: "guards is not one JSON value: " + err.Error()}}
	}
	var named struct{ Profile json.RawMessage }
	if json.Unmarshal(tidy, &named) == nil && named.Profile != nil {
		(&reader{}).oneOf((*string)(&profile), string(Strict), string(Compat))("", named.Profile)
	}
	r, c := &reader{}, Defaults(profile)
	var alias *machine.Schema
	members := []member{
		{"limits", r.limits(&c.Limits)},
		{"forbidden_patterns", r.patterns(&c.Forbidden)},
		{"packs", r.packs(&c.Packs)},
		{"schema", r.schema(&c.Schema)},
		{"output_schema", r.schema(&alias)},
		{"tool_calls", r.tools(&c.Tools)},
		{"cost", r.cost(&c.Cost)},
		{"loop_detection", r.loops(&c.Loop)},
		{"batch_loop", r.batchLoop(&c.Batch)},
		{"retry", r.object("retry", []member{{"max_attempts", r.optionalCount(&c.Retry.MaxAttempts)}})},
	}
	if !state { // these are the machine's alone
		members = append(members,
			member{"budget", r.budgetSection(&c.Budget)},
			member{"profile", r.oneOf((*string)(&c.Profile), string(Strict), string(Compat))},
			member{"store", r.store(&c.Store)})
	}
	if !inMachine { // engines do not ask one
		members = append(members, member{"classifier", r.classifier(&c.Classifier)})
	}
	r.object("", members)("", tidy)
	if c.Schema != nil && alias != nil {
		r.report("/output_schema", "contradiction", "both schema and output_schema are given, and they are one thing", "keep one of them")
	}
	if c.Schema == nil {
		c.Schema = alias
	}
	r.check(c)
	if len(r.problems) > 0 {
		return nil, r.problems
	}
	c.Tools.compile()
	if c.Batch != nil && c.Profile == Strict {
		c.Batch = c.Batch.Strict(c.Tools.volatile())
	}
	return c, nil
}

// check finds what no member shows by itself.
func (r *reader) check(c *Config) {
	if low, high := c.Limits.OutputMin, c.Limits.OutputMax; low != nil && high != nil && *low > *high {
		r.report("/limits/output_min", "contradiction", fmt.Sprintf("output_min is %d, above output_max, which is %d", *low, *high), "")
	}
	group := map[string]int{}
	for i, tools := range c.Tools.Mutex {
		for _, tool := range tools {
			if other, seen := group[tool]; seen {
				r.report(fmt.Sprintf("/tool_calls/mutex/%d", i), "duplicate-member", fmt.Sprintf("%q is in group %d already", tool, other), "a tool belongs to one group; join the groups")
			}
			group[tool] = i
		}
	}
}

// volatile returns the members that do not count, of the tools that say so.
func (t *Tools) volatile() map[string][]string {
	names := map[string][]string{}
	for tool, rule := range t.PerTool {
		if rule.Volatile != nil {
			names[tool] = rule.Volatile
		}
	}
	return names
}

// compile prepares what the checks look up.
func (t *Tools) compile() {
	for i, group := range t.Mutex {
		for _, tool := range group {
			if t.groupsByTool == nil {
				t.groupsByTool = map[string][]int{}
			}
			t.groupsByTool[tool] = append(t.groupsByTool[tool], i)
		}
	}
}

// Check is [machine.Checks].Guards.
func Check(section []byte, state bool) []machine.Problem {
	_, problems := Parse(section, state)
	return problems
}

// Merge returns the section of a state laid over the machine's, member by
// member: limits.max_steps of the state wins over that of the machine, the rest
// of limits stays. Lists and maps are replaced whole. Both may be nil.
func Merge(machineSection, stateSection []byte) ([]byte, error) {
	if stateSection == nil {
		return machineSection, nil
	}
	if machineSection == nil {
		return stateSection, nil
	}
	base, over := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if err := json.Unmarshal(machineSection, &base); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(stateSection, &over); err != nil {
		return nil, err
	}
	for name, section := range over {
		members := map[string]json.RawMessage{}
		if json.Unmarshal(base[name], &members) != nil || members == nil {
			base[name] = section
			continue
		}
		own := map[string]json.RawMessage{}
		if json.Unmarshal(section, &own) != nil {
			base[name] = section
			continue
		}
		for k, v := range own {
			members[k] = v
		}
		merged, err := json.Marshal(members)
		if err != nil {
			return nil, err
		}
		base[name] = merged
	}
	return json.Marshal(base)
}

// A reader reads a section and collects what is wrong with it.
type reader struct{ problems []machine.Problem }

type member struct {
	name string
	read func(path string, value []byte)
}

func (r *reader) report(path, code, message, hint string) {
	r.problems = append(r.problems, machine.Problem{Path: path, Code: code, Message: message, Hint: hint})
}

// object reads an object with fixed members; section is its name in later.
func (r *reader) object(section string, members []member) func(path string, value []byte) {
	return func(path string, value []byte) {
		fields := map[string]json.RawMessage{}
		if !bytes.HasPrefix(value, []byte("{")) || json.Unmarshal(value, &fields) != nil {
			r.report(path, "wrong-type", fmt.Sprintf("%s must be an object", nameOf(path)), "")
			return
		}
		known := make([]string, len(members))
		for i, m := range members {
			known[i] = m.name
			if v, ok := fields[m.name]; ok {
				m.read(path+"/"+m.name, v)
			}
		}
		for _, name := range sortedKeys(fields) {
			switch {
			case slices.Contains(known, name) || len(name) > 2 && name[:2] == "x-":
			case slices.Contains(later[section], name):
				r.report(path+"/"+name, "unsupported", fmt.Sprintf("guards member %q is not supported yet", name), "remove it: it would not be checked")
			default:
				r.report(path+"/"+name, "unknown-field", fmt.Sprintf("%s has no field %q", nameOf(path), name), machine.DidYouMean(name, append(known, later[section]...)))
			}
		}
	}
}

func sortedKeys[T any](m map[string]T) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

func nameOf(path string) string {
	if path == "" {
		return "guards"
	}
	return path[bytes.LastIndexByte([]byte(path), '/')+1:]
}

func (r *reader) limits(l *Limits) func(path string, value []byte) {
	return r.object("limits", []member{
		{"max_steps", r.optionalCount(&l.MaxSteps)},
		{"max_tokens_per_step", r.optionalCount(&l.MaxTokensPerStep)},
		{"max_total_tokens", r.optionalCount(&l.MaxTotalTokens)},
		{"output_min", r.optionalCount(&l.OutputMin)},
		{"output_max", r.optionalCount(&l.OutputMax)},
		{"cap_basis", r.oneOf((*string)(&l.CapBasis), string(Spend), string(Progress))},
	})
}

// budgetSection reads a budget. What bounds a task otherwise is filled in later.
func (r *reader) budgetSection(into **Budget) func(path string, value []byte) {
	return func(path string, value []byte) {
		b, problems := ParseBudget(value)
		for _, p := range problems {
			p.Path = path + p.Path
			r.problems = append(r.problems, p)
		}
		*into = b
	}
}

func (r *reader) store(s *Store) func(path string, value []byte) {
	ttl := s.TTL.Milliseconds()
	read := r.object("store", []member{
		{"ttl_ms", r.count(&ttl, 0)},
		{"history_limit", r.countWithin(&s.HistoryLimit, 1, maxHistory)},
	})
	return func(path string, value []byte) {
		read(path, value)
		s.TTL = time.Duration(min(ttl, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
	}
}

func (r *reader) loops(l *LoopDetection) func(path string, value []byte) {
	cycle, near := &Cycle{8, 3}, &Near{800_000_000, 8}
	return r.object("loop_detection", []member{
		{"ngram_size", r.countWithin(&l.NgramSize, 1, 1000)},
		{"max_repeats", r.count(&l.MaxRepeats, 0)},
		{"mode", r.oneOf(&l.Mode, "any_ngram", "overlap", "off")},
		{"overlap_ratio", r.ratio(&l.OverlapRatio)},
		{"detect_identical_tool_calls", r.bool(&l.IdenticalCalls)},
		{"max_state_visits", r.count(&l.MaxStateVisits, 0)},
		{"visit_counting", r.oneOf(&l.VisitCounting, "steps", "entries", "transitions")},
		{"progress_aware", r.bool(&l.ProgressAware)},
		{"max_output_repeats", r.orOff(r.optionalCount(&l.MaxOutputRepeats), func() { l.MaxOutputRepeats = nil })},
		{"cycle", r.orOff(func(path string, value []byte) {
			l.Cycle = cycle
			r.object("cycle", []member{{"max_period", r.countWithin(&cycle.MaxPeriod, 1, 8)}, {"repeats", r.countWithin(&cycle.Repeats, 2, 100)}})(path, value)
		}, func() { l.Cycle = nil })},
		{"near", r.orOff(func(path string, value []byte) {
			l.Near = near
			r.object("near", []member{{"jaccard", r.ratio(&near.Jaccard)}, {"repeats", r.count(&near.Repeats, 1)}})(path, value)
		}, func() { l.Near = nil })},
	})
}

func (r *reader) tools(t *Tools) func(path string, value []byte) {
	return r.object("tool_calls", []member{
		{"allowed", r.names(&t.Allowed)},
		{"arg_schemas", readMap(r, &t.ArgSchemas, func(path string, value []byte) (s *machine.Schema) {
			r.schema(&s)(path, value)
			return s
		})},
		{"mutex", readList(r, &t.Mutex, func(path string, value []byte) (group []string) {
			r.names(&group)(path, value)
			return group
		})},
		{"mutex_scope", r.oneOf(&t.MutexScope, "task", "step")},
		{"blast_radius", readMap(r, &t.BlastRadius, func(path string, value []byte) (n int64) {
			r.count(&n, 0)(path, value)
			return n
		})},
		{"sequence", readList(r, &t.Sequence, func(path string, value []byte) (s Sequence) {
			r.object("sequence", []member{{"tool", r.name(&s.Tool)}, {"requires_prev", r.name(&s.RequiresPrev)}})(path, value)
			r.require(path, value, "tool", "requires_prev")
			return s
		})},
		{"tools", readMap(r, &t.PerTool, func(path string, value []byte) (rule ToolRule) {
			r.object("tools", []member{
				{"loop_key", r.names(&rule.LoopKey)}, {"volatile", r.names(&rule.Volatile)},
				{"poll", r.bool(&rule.Poll)}, {"exempt", r.bool(&rule.Exempt)},
			})(path, value)
			return rule
		})},
	})
}

func (r *reader) patterns(into *[]Forbidden) func(path string, value []byte) {
	return readList(r, into, func(path string, value []byte) (f Forbidden) {
		if json.Unmarshal(value, &f.Source) != nil || !bytes.HasPrefix(value, []byte(`"`)) {
			r.report(path, "wrong-type", "a pattern must be a string", "")
			return f
		}
		var err error
		if f.pattern, err = compilePattern(f.Source); err != nil {
			r.report(path, "bad-pattern", "the pattern does not compile: "+err.Error(), "patterns are RE2: no look-around, no back-references")
		}
		return f
	})
}

func (r *reader) schema(into **machine.Schema) func(path string, value []byte) {
	return func(path string, value []byte) {
		s, err := machine.NewSchema(value)
		if err != nil {
			r.report(path, "bad-schema", fmt.Sprintf("%s is no schema: %v", nameOf(path), err), "")
			return
		}
		*into = s
	}
}

func (r *reader) cost(c *Cost) func(path string, value []byte) {
	return r.object("cost", []member{
		{"version", r.text(&c.Version)},
		{"prices", r.prices(&c.Prices)},
		{"max_dollars_per_task", func(path string, value []byte) {
			c.MaxDollars = new(exact.Money)
			r.money(c.MaxDollars)(path, value)
		}},
		{"on_unknown_model", r.onUnknownModel(&c.OnUnknownModel)},
	})
}

func (r *reader) money(into *exact.Money) func(path string, value []byte) {
	return func(path string, value []byte) {
		m, err := exact.ParseMoney(string(value))
		if err != nil || m < 0 {
			r.report(path, "out-of-range", fmt.Sprintf("%s is %s, not an amount of US dollars from 0", nameOf(path), value), "")
			return
		}
		*into = m
	}
}

func (r *reader) bool(into *bool) func(path string, value []byte) {
	return func(path string, value []byte) {
		if string(value) != "true" && string(value) != "false" {
			r.report(path, "wrong-type", fmt.Sprintf("%s is %s, not true or false", nameOf(path), value), "")
			return
		}
		*into = string(value) == "true"
	}
}

// orOff also takes false and null, which switch something off.
func (r *reader) orOff(read func(path string, value []byte), off func()) func(path string, value []byte) {
	return func(path string, value []byte) {
		if string(value) == "false" || string(value) == "null" {
			off()
			return
		}
		read(path, value)
	}
}

// ratio reads a number above 0, at most 1.
func (r *reader) ratio(into *exact.Billionths) func(path string, value []byte) {
	return func(path string, value []byte) {
		var b exact.Billionths
		if err := b.UnmarshalJSON(value); err != nil || b <= 0 || b > 1e9 {
			r.report(path, "out-of-range", fmt.Sprintf("%s is %s, not a number above 0 and at most 1", nameOf(path), value), "")
			return
		}
		*into = b
	}
}

// name reads a text that is not empty.
func (r *reader) name(into *string) func(path string, value []byte) {
	return func(path string, value []byte) {
		if !bytes.HasPrefix(value, []byte(`"`)) || json.Unmarshal(value, into) != nil || *into == "" {
			r.report(path, "bad-value", fmt.Sprintf("%s is %s, not a name", nameOf(path), value), "")
		}
	}
}

// names reads a list of names; an empty list is not nil.
func (r *reader) names(into *[]string) func(path string, value []byte) {
	read := readList(r, into, func(path string, value []byte) (name string) {
		r.name(&name)(path, value)
		return name
	})
	return func(path string, value []byte) {
		if read(path, value); *into == nil {
			*into = []string{}
		}
	}
}

// require reports members that an object lacks.
func (r *reader) require(path string, value []byte, names ...string) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(value, &fields) != nil {
		return // reported already
	}
	for _, name := range names {
		if _, ok := fields[name]; !ok {
			r.report(path, "missing-field", fmt.Sprintf("%q is missing", name), "")
		}
	}
}

// readList reads an array.
func readList[T any](r *reader, into *[]T, read func(path string, value []byte) T) func(path string, value []byte) {
	return func(path string, value []byte) {
		var items []json.RawMessage
		if !bytes.HasPrefix(value, []byte("[")) || json.Unmarshal(value, &items) != nil {
			r.report(path, "wrong-type", nameOf(path)+" must be a list", "")
			return
		}
		*into = make([]T, len(items))
		for i, item := range items {
			(*into)[i] = read(fmt.Sprintf("%s/%d", path, i), item)
		}
	}
}

// readMap reads an object whose members are named freely.
func readMap[T any](r *reader, into *map[string]T, read func(path string, value []byte) T) func(path string, value []byte) {
	return func(path string, value []byte) {
		fields := map[string]json.RawMessage{}
		if !bytes.HasPrefix(value, []byte("{")) || json.Unmarshal(value, &fields) != nil {
			r.report(path, "wrong-type", nameOf(path)+" must be an object", "")
			return
		}
		*into = make(map[string]T, len(fields))
		for _, name := range sortedKeys(fields) {
			(*into)[name] = read(path+"/"+machine.EscapePointer(name), fields[name])
		}
	}
}

func (r *reader) countWithin(into *int64, least, most int64) func(path string, value []byte) {
	return func(path string, value []byte) {
		before := len(r.problems)
		if r.count(into, least)(path, value); len(r.problems) == before && *into > most {
			r.report(path, "out-of-range", fmt.Sprintf("%s is %s, more than %d", nameOf(path), value, most), "")
		}
	}
}

func (r *reader) count(into *int64, least int64) func(path string, value []byte) {
	return func(path string, value []byte) {
		f, err := strconv.ParseFloat(string(value), 64)
		if err != nil || f != math.Trunc(f) || f < float64(least) || f > 1<<53 {
			r.report(path, "out-of-range", fmt.Sprintf("%s is %s, not a whole number from %d", nameOf(path), value, least), "")
			return
		}
		*into = int64(f)
	}
}

func (r *reader) optionalCount(into **int64) func(path string, value []byte) {
	return func(path string, value []byte) {
		v := new(int64)
		before := len(r.problems)
		if r.count(v, 0)(path, value); len(r.problems) == before {
			*into = v
		}
	}
}

func (r *reader) oneOf(into *string, choices ...string) func(path string, value []byte) {
	return func(path string, value []byte) {
		var s string
		if json.Unmarshal(value, &s) != nil || !slices.Contains(choices, s) {
			r.report(path, "bad-value", fmt.Sprintf("%s is %s", nameOf(path), value), fmt.Sprintf("it may be %q", choices))
			return
		}
		*into = s
	}
}
