package guard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
)

// A Config is a guards section, checked. A nil *Config checks nothing. It never
// changes and may be used concurrently.
type Config struct {
	Profile Profile
	Limits  Limits
	Cost    Cost
	Loop    LoopDetection
	Retry   RetryLimit
	Store   Store
}

// A Profile names the defaults of a Config.
type Profile string

// The profiles: strict is the default inside machines.
const (
	Strict Profile = "strict"
	Compat Profile = "compat"
)

// Limits bound steps and tokens. Nil means no limit; every limit is the largest
// permitted value.
type Limits struct {
	MaxSteps         *int64
	MaxTokensPerStep *int64
	MaxTotalTokens   *int64
	CapBasis         CapBasis
}

// A CapBasis says which book token and dollar caps read.
type CapBasis string

// The books: everything that was spent, or only what executed steps cost.
const (
	Spend    CapBasis = "spend"
	Progress CapBasis = "progress"
)

// Cost bounds money.
type Cost struct {
	Version        string // of the prices; may be ""
	Prices         map[string]Price
	MaxDollars     *exact.Money // per task
	OnUnknownModel string       // skip, warn, estimate_max, abort
}

// LoopDetection finds tasks that go round in circles.
type LoopDetection struct {
	MaxStateVisits int64
}

// RetryLimit bounds attempts.
type RetryLimit struct{ MaxAttempts *int64 }

// Store bounds what a task remembers.
type Store struct{ HistoryLimit int64 }

// Defaults of a section's members.
const (
	DefaultMaxStateVisits = 3
	DefaultHistoryLimit   = 50
)

// later are the members of the published formats that this version does not
// check yet. They are refused: a guard that is silently not there is worse than
// none.
var later = map[string][]string{
	"":               {"forbidden_patterns", "schema", "output_schema", "tool_calls", "batch_loop", "budget", "truth", "packs", "classifier"},
	"limits":         {"output_min", "output_max"},
	"loop_detection": {"ngram_size", "max_repeats", "detect_identical_tool_calls", "mode", "visit_counting", "progress_aware", "max_output_repeats", "cycle", "near"},
	"store":          {"ttl_ms"},
}

// Parse reads one guards section, a JSON object. state says that it is a
// state's own. The problems have JSON pointers relative to the section.
func Parse(section []byte, state bool) (*Config, []machine.Problem) {
	r := &reader{}
	c := &Config{
		Profile: Strict,
		Limits:  Limits{CapBasis: Spend},
		Cost:    Cost{OnUnknownModel: "warn"},
		Loop:    LoopDetection{MaxStateVisits: DefaultMaxStateVisits},
		Store:   Store{HistoryLimit: DefaultHistoryLimit},
	}
	members := []member{
		{"limits", r.limits(&c.Limits)},
		{"cost", r.cost(&c.Cost)},
		{"loop_detection", r.object("loop_detection", []member{{"max_state_visits", r.count(&c.Loop.MaxStateVisits, 0)}})},
		{"retry", r.object("retry", []member{{"max_attempts", r.optionalCount(&c.Retry.MaxAttempts)}})},
	}
	if !state { // profile and store are the machine's alone
		members = append(members,
			member{"profile", r.oneOf((*string)(&c.Profile), string(Strict), string(Compat))},
			member{"store", r.object("store", []member{{"history_limit", r.count(&c.Store.HistoryLimit, 1)}})})
	}
	tidy, err := exact.Tidy(section)
	if err != nil {
		r.report("", "bad-json", "guards is not one JSON value: "+err.Error(), "")
		return nil, r.problems
	}
	r.object("", members)("", tidy)
	if c.Profile == Compat {
		r.report("/profile", "unsupported", "the profile compat is not supported yet", "remove it: machines use strict")
	}
	if len(r.problems) > 0 {
		return nil, r.problems
	}
	return c, nil
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
		{"cap_basis", r.oneOf((*string)(&l.CapBasis), string(Spend), string(Progress))},
	})
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
