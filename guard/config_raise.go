package guard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/section"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/verdict"
)

// Limits that a human lifts for one task. Which limits those are stands in one table
// (limits): each with its name in a section, the code of what is refused because of it,
// and how it is read, shown, got and set. Raise checks what is wanted against what is
// in force, and a log keeps what it returns; Lift applies that, live and when a log is
// read back, so it must come to the same each time: a limit is set where it is the same
// as where the task stood, and never lowered.
//
// What was spent stays spent, and a tenant's quota cannot be raised here.

// A Raise is a limit that a human lifts for one task: not for others, and not in
// the file. What the task has spent stays spent.
type Raise struct {
	// Limit is where a guards section has the limit, such as "limits.max_steps" or
	// "tool_calls.blast_radius.write_file".
	Limit string `json:"limit"`
	// State is where the task stood. Other states with the same limit have it lifted
	// too; one with a limit of its own keeps that.
	State string `json:"state,omitempty"`
	// From is what applied, and To what applies now, as a section would say it:
	// dollars, or a whole number.
	From json.Number `json:"from"`
	To   json.Number `json:"to"`
}

// Raise checks the limits that somebody wants to lift, of which Limit and To count,
// against those in force, and returns them in full, with state as where the task
// stands. It changes nothing: see [Config.Lift]. The problems have JSON pointers
// relative to the section; there are none if every limit is in force, is named once
// and becomes higher. c may be nil: then nothing is limited.
func (c *Config) Raise(state string, asked []Raise) (raises []Raise, problems []machine.Problem) {
	r := &section.Reader{}
	lifted := &Config{}
	if c != nil {
		lifted = c.own()
	}
	for i, a := range asked {
		l, known := limitNamed(a.Limit)
		switch {
		case !known:
			r.Report("", "unknown-limit", fmt.Sprintf("%q is no limit that can be raised", a.Limit), likeLimit(a.Limit))
			continue
		case slices.ContainsFunc(asked[:i], func(b Raise) bool { return b.Limit == a.Limit }):
			r.Report(l.path(), "duplicate-member", fmt.Sprintf("%s is given twice", a.Limit), "keep one of them")
			continue
		}
		if from, to, ok := l.raise(r, c, a.To); ok {
			l.set(lifted, to)
			raises = append(raises, Raise{Limit: a.Limit, State: state, From: json.Number(l.text(from)), To: json.Number(l.text(to))})
		}
	}
	if lifted.Budget != nil {
		for _, p := range lifted.Budget.Contradictions() {
			r.Report("/budget"+p.Path, p.Code, p.Message, "raise both")
		}
	}
	if len(r.Problems) > 0 {
		return nil, r.Problems
	}
	return raises, nil
}

// raise returns the limit in force and the one wanted, unless that is no raise.
func (l *limit) raise(r *section.Reader, c *Config, wanted json.Number) (from, to int64, ok bool) {
	if c != nil {
		from, ok = l.get(c)
	}
	if !ok {
		r.Report(l.path(), "no-limit", fmt.Sprintf("%s limits nothing here, so there is nothing to raise", l.name), "")
		return 0, 0, false
	}
	if to, ok = l.parse(r, wanted); !ok {
		return 0, 0, false
	}
	if to <= from {
		r.Report(l.path(), "no-raise", fmt.Sprintf("%s is %s already, so %s is no raise", l.name, l.text(from), l.text(to)), fmt.Sprintf("give more than %s", l.text(from)))
		return 0, 0, false
	}
	return from, to, true
}

// parse reads a value as a section would, and reports what is none.
func (l *limit) parse(r *section.Reader, wanted json.Number) (to int64, ok bool) {
	value := []byte(wanted)
	if !json.Valid(value) || !bytes.ContainsAny(value[:1], "-0123456789") {
		value = strconv.AppendQuote(nil, section.Shorten(value)) // it is no number, and is shown as it was given
	}
	before := len(r.Problems)
	to = l.read(r, l.path(), value)
	return to, len(r.Problems) == before
}

// Lift returns c with limits lifted that [Config.Raise] has returned, or that a log
// says were. at is the configuration under which the task stood: a limit is lifted
// in c if it is the same there, and never lowered. So for every state of a machine c
// is its own configuration, and at that of the state of the task; both as they were
// before. c and at may be nil. The error names a raise that cannot be read.
func (c *Config) Lift(at *Config, raises []Raise) (*Config, error) {
	lifted := c
	for _, raise := range raises {
		l, known := limitNamed(raise.Limit)
		if !known {
			return nil, fmt.Errorf("%w: %q is no limit that can be raised", verdict.ErrInput, raise.Limit)
		}
		r := &section.Reader{}
		to, ok := l.parse(r, raise.To)
		if !ok {
			return nil, fmt.Errorf("%w: %s", verdict.ErrInput, r.Problems[0].Message)
		}
		if c == nil || at == nil {
			continue
		}
		stood, limited := l.get(at)
		if own, ownLimited := l.get(c); limited && ownLimited && own == stood && own < to {
			if lifted == c {
				lifted = c.own()
			}
			l.set(lifted, to)
		}
	}
	return lifted, nil
}

// LimitsOf returns the limits in force that a step or a call breaks which is refused
// with a code, as a [Raise] whose To is missing; none for codes of other checks. c
// may be nil.
func (c *Config) LimitsOf(code string) (list []Raise) {
	if c == nil {
		return nil
	}
	all := limits()
	for _, tool := range slices.Sorted(maps.Keys(c.Tools.BlastRadius)) {
		all = append(all, blastRadius(tool))
	}
	for _, l := range all {
		if n, ok := l.get(c); ok && l.code == code {
			list = append(list, Raise{Limit: l.name, From: json.Number(l.text(n))})
		}
	}
	return list
}

// own returns a copy of c whose limits can be set.
func (c *Config) own() *Config {
	next := *c
	if c.Budget != nil {
		next.Budget = new(*c.Budget)
	}
	next.Tools.BlastRadius = maps.Clone(c.Tools.BlastRadius)
	return &next
}

// A limit is a number of a Config that a human may raise. get and set count as the
// field does; get says whether it limits anything.
type limit struct {
	name string
	code string // of what is refused because of it; "" if nothing is
	read func(r *section.Reader, path string, value []byte) int64
	text func(int64) string
	get  func(*Config) (int64, bool)
	set  func(*Config, int64)
}

// path returns the JSON pointer to the limit in a section.
func (l *limit) path() string {
	if tool, ok := strings.CutPrefix(l.name, blastRadiusOf); ok {
		return "/tool_calls/blast_radius/" + machine.EscapePointer(tool)
	}
	return "/" + strings.ReplaceAll(l.name, ".", "/")
}

// limits returns every limit that can be raised, but for the blast radius of tools.
func limits() []limit {
	return []limit{
		limitAt("limits.max_steps", "max_steps", func(c *Config) **int64 { return &c.Limits.MaxSteps }),
		limitAt("limits.max_tokens_per_step", "max_tokens_step", func(c *Config) **int64 { return &c.Limits.MaxTokensPerStep }),
		limitAt("limits.max_total_tokens", "max_tokens_total", func(c *Config) **int64 { return &c.Limits.MaxTotalTokens }),
		limitAt("limits.output_max", "length_max", func(c *Config) **int64 { return &c.Limits.OutputMax }),
		limitAt("cost.max_dollars_per_task", "cost_cap", func(c *Config) **exact.Money { return &c.Cost.MaxDollars }),
		limitAt("retry.max_attempts", "retry_exhausted", func(c *Config) **int64 { return &c.Retry.MaxAttempts }),
		limitIn("loop_detection.max_state_visits", "loop_state_cycle", func(c *Config) *int64 { return &c.Loop.MaxStateVisits }),
		limitIn("loop_detection.max_repeats", "loop_repeat_output", func(c *Config) *int64 { return &c.Loop.MaxRepeats }),
		limitAt("loop_detection.max_output_repeats", "loop_repeat_output", func(c *Config) **int64 { return &c.Loop.MaxOutputRepeats }),
		budgetAt("hard_limit_tokens", spend.CodeTokens, func(b *spend.Budget) **int64 { return &b.HardTokens }),
		budgetAt("hard_limit_calls", spend.CodeCalls, func(b *spend.Budget) **int64 { return &b.HardCalls }),
		budgetAt("hard_limit_usd", spend.CodeUSD, func(b *spend.Budget) **exact.Money { return &b.HardUSD }),
		budgetAt("hard_limit_wall_ms", spend.CodeWall, func(b *spend.Budget) **int64 { return &b.WallMsec }),
		budgetAt("round_limit_wall_ms", spend.CodeWall, func(b *spend.Budget) **int64 { return &b.RoundWallMsec }),
		budgetAt("no_progress_ms", spend.CodeNoProgress, func(b *spend.Budget) **int64 { return &b.NoProgressMsec }),
		budgetAt("probe_share_max", spend.CodeProbeShare, func(b *spend.Budget) **exact.Billionths { return &b.ProbeShareMax }),
		budgetAt("soft_limit_tokens", "", func(b *spend.Budget) **int64 { return &b.SoftTokens }),
		budgetAt("soft_limit_usd", "", func(b *spend.Budget) **exact.Money { return &b.SoftUSD }),
	}
}

// blastRadiusOf begins the names of the limits of tools.
const blastRadiusOf = "tool_calls.blast_radius."

func blastRadius(tool string) limit {
	read, text := kindOf[int64]()
	return limit{
		name: blastRadiusOf + tool, code: "tool_blast_radius", read: read, text: text,
		get: func(c *Config) (int64, bool) { n, ok := c.Tools.BlastRadius[tool]; return n, ok },
		set: func(c *Config, n int64) { c.Tools.BlastRadius[tool] = n },
	}
}

// limitNamed returns the limit of a name.
func limitNamed(name string) (l limit, known bool) {
	if tool, ok := strings.CutPrefix(name, blastRadiusOf); ok && tool != "" {
		return blastRadius(tool), true
	}
	for _, l = range limits() {
		if l.name == name {
			return l, true
		}
	}
	return limit{}, false
}

// likeLimit says which limit may have been meant, or which there are.
func likeLimit(name string) string {
	if strings.HasPrefix(name, "quota") {
		return "what a tenant may use is the operator's to say, and is not raised for one session"
	}
	names := []string{blastRadiusOf + "TOOL"}
	for _, l := range limits() {
		names = append(names, l.name)
		if short := l.name[strings.LastIndexByte(l.name, '.')+1:]; short == name[strings.LastIndexByte(name, '.')+1:] {
			return fmt.Sprintf("did you mean %q?", l.name)
		}
	}
	if near := machine.DidYouMean(name, names); near != "" {
		return near
	}
	slices.Sort(names)
	return "there are " + strings.Join(names, ", ")
}

// limitAt is a limit that a Config may do without; at returns nil where there is no place for it.
func limitAt[T ~int64](name, code string, at func(*Config) **T) limit {
	read, text := kindOf[T]()
	return limit{
		name: name, code: code, read: read, text: text,
		get: func(c *Config) (int64, bool) {
			if n := at(c); n != nil && *n != nil {
				return int64(**n), true
			}
			return 0, false
		},
		set: func(c *Config, n int64) { *at(c) = new(T(n)) },
	}
}

// limitIn is a limit that every Config has.
func limitIn(name, code string, at func(*Config) *int64) limit {
	read, text := kindOf[int64]()
	return limit{
		name: name, code: code, read: read, text: text,
		get: func(c *Config) (int64, bool) { return *at(c), true },
		set: func(c *Config, n int64) { *at(c) = n },
	}
}

// budgetAt is a limit of a budget, if there is one.
func budgetAt[T ~int64](name, code string, at func(*spend.Budget) **T) limit {
	return limitAt("budget."+name, code, func(c *Config) **T {
		if c.Budget == nil {
			return nil
		}
		return at(c.Budget)
	})
}

// kindOf returns how a limit of a type is read and written.
func kindOf[T ~int64]() (read func(r *section.Reader, path string, value []byte) int64, text func(int64) string) {
	switch any(T(0)).(type) {
	case exact.Money:
		return func(r *section.Reader, path string, value []byte) int64 {
			var m exact.Money
			r.Money(&m)(path, value)
			return int64(m)
		}, func(n int64) string { return exact.Money(n).String() }
	case exact.Billionths:
		return func(r *section.Reader, path string, value []byte) int64 {
			share := new(exact.Billionths)
			r.OptionalShare(&share)(path, value)
			return int64(*share)
		}, func(n int64) string { return exact.Billionths(n).String() }
	}
	return func(r *section.Reader, path string, value []byte) (n int64) {
		r.Count(&n, 0)(path, value)
		return n
	}, func(n int64) string { return strconv.FormatInt(n, 10) }
}
