package guard

import (
	"slices"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/packs"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// A log judged again under another section. History stays as it was: a step counts as
// executed if it was executed then, spending is what the log says, and a human's
// clearing and raising of limits hold from where they stand. So each new verdict
// answers what the section would have said at that point of the real course, not what
// would have become of it afterwards.
//
// Nothing is guessed. A step is undecidable, with the reason, where the log does not
// hold it, where a check would need the text and the log has its digest (also that of
// something earlier which it is compared with), or where a guard took part that asks
// somebody. What had no price then may have one now.

// A Replayer judges the steps of an event log again, by another configuration
// and without asking anybody. What happened stays as it was: a step counts as
// executed if it was executed then, so each verdict is the one the configuration
// would have given at that point of the real course.
type Replayer struct {
	config *Config
	states map[string]*Config
	tasks  map[string]*replayed
}

// A replayed is a task as far as its log was read.
type replayed struct {
	state   State
	blurred bool                // something it remembers is known by its digest only
	lifted  map[*Config]*Config // configurations of the Replayer with limits that a human raised; nil if none was
}

// under returns a configuration as it is for the task.
func (t *replayed) under(c *Config) *Config {
	if lifted, ok := t.lifted[c]; ok {
		return lifted
	}
	return c
}

// NewReplayer returns a Replayer that has read nothing yet. c may be nil: then
// every step is ok. states has the configurations of states with guards of their
// own, by the state that a step leaves; it may be nil.
func NewReplayer(c *Config, states map[string]*Config) *Replayer {
	return &Replayer{c, states, map[string]*replayed{}}
}

// of returns the configuration by which a step of a task that leaves a state is
// judged.
func (r *Replayer) of(t *replayed, from string) *Config {
	if own, ok := r.states[from]; ok {
		return t.under(own)
	}
	return t.under(r.config)
}

// raise lifts the limits that a human raised, where they are lower now. A raise that
// cannot be read lifts nothing.
func (r *Replayer) raise(t *replayed, rec *LogRecord) {
	if rec.Meta == nil || len(rec.Meta.Raised) == 0 {
		return
	}
	at, lifted := r.of(t, rec.Meta.Raised[0].State), map[*Config]*Config{}
	lift := func(c *Config) {
		if next, err := t.under(c).Lift(at, rec.Meta.Raised); err == nil {
			lifted[c] = next
		}
	}
	lift(r.config)
	for _, own := range r.states {
		lift(own)
	}
	t.lifted = lifted
}

// A ReplayResult is one step of a log, judged again.
type ReplayResult struct {
	Task        string
	Recorded    verdict.Status
	Codes       []string        // of the recorded reasons; nil if the log does not have them
	Verdict     verdict.Verdict // by the new configuration; the zero value if undecidable
	Differs     bool            // in the status, or in the codes where the log has them
	Undecidable string          // why nothing can be said of it; "" if something can
}

// Next reads the next record of a log. ok is false for records that are not
// about a step; what they say was spent is counted.
func (r *Replayer) Next(rec LogRecord) (result ReplayResult, ok bool) {
	name := rec.Task()
	t := r.tasks[name]
	if t == nil {
		t = &replayed{}
		r.tasks[name] = t
	}
	switch rec.Type {
	case LogSpend:
		spent := r.spent(&rec)
		if t.state.Spent = t.state.Spent.Plus(spent); spent.Unpriced > 0 && rec.Meta != nil {
			t.state.unpriced = spend.Called{Model: rec.Meta.Model, Asked: rec.Meta.Asked}.String()
		}
		return result, false
	case LogCleared:
		t.state = t.state.Clear()
	case LogRaised:
		r.raise(t, &rec)
	case LogCheck:
		return r.check(t, name, &rec), true
	}
	return result, false
}

// spent returns what a record of spending adds. What had no price then may have
// one now.
func (r *Replayer) spent(rec *LogRecord) spend.Book {
	b := spend.Book{Calls: 1}
	meta := rec.Meta
	if meta == nil {
		meta = &LogMeta{}
	}
	if meta.Calls != nil {
		b.Calls = *meta.Calls
	}
	b.Estimated, b.Unpriced = meta.Estimated, meta.Unpriced
	if rec.Tokens != nil {
		b.TokensIn, b.TokensOut = rec.Tokens.Input, rec.Tokens.Output
	}
	if rec.USD != nil {
		b.Money = *rec.USD
	}
	if meta.Model != "" && (rec.USD == nil || meta.Unpriced > 0) {
		u := r.config.Price(specialist.Usage{NumInputTokens: b.TokensIn, NumOutputTokens: b.TokensOut}.WithCalls(b.Calls, 0), meta.Model)
		b.Money, b.Unpriced = u.CostUSD, max(b.Unpriced, 1)
		if u.Has(specialist.CostGiven) {
			b.Unpriced = 0
		}
	}
	return b
}

func (r *Replayer) check(t *replayed, name string, rec *LogRecord) ReplayResult {
	result := ReplayResult{Task: name, Codes: rec.codes()}
	var known bool
	result.Recorded, known = verdict.StatusNamed(rec.Verdict)
	in := rec.Input
	if in == nil || rec.Payload == PayloadNone {
		in = &LogInput{Charged: true}
		result.Undecidable = "the log does not hold the step"
	}
	switch {
	case !known:
		result.Undecidable = "the log does not say how it was judged"
	case result.Undecidable != "":
	case rec.foreign() != "":
		result.Undecidable = "a guard of family " + rec.foreign() + " took part, which is not run again"
	default:
		result.Undecidable = r.of(t, in.FromState).unreadable(in, t.blurred)
	}
	config := r.of(t, in.FromState)
	step := in.step(config, name)
	if !in.Charged {
		t.state = t.state.Charge(usageOf(&step), step.Model)
	}
	if result.Undecidable == "" {
		result.Verdict = config.Check(t.state, step)
		result.Differs = result.Verdict.Status != result.Recorded || result.Codes != nil && !sameCodes(result.Codes, result.Verdict.Codes())
	}
	if known && rec.executed() {
		t.state = t.state.Advance(config, step)
		t.blurred = t.blurred || in.blurred() || rec.Input == nil
	} else if known {
		t.state = t.state.Refuse(config, step, rec.refusal(result.Recorded))
	}
	return result
}

// executed reports whether the step of a check was executed.
func (rec *LogRecord) executed() bool {
	status, known := verdict.StatusNamed(rec.Verdict)
	return known && status <= verdict.Warn || rec.Meta != nil && rec.Meta.Executed
}

// refusal returns the recorded verdict on a step that was not executed.
func (rec *LogRecord) refusal(status verdict.Status) verdict.Verdict {
	v := verdict.Verdict{Status: status}
	if rec.Meta == nil || len(rec.Meta.Reasons) == 0 {
		v.Reasons = []verdict.Reason{{Code: rec.Reason, Class: status}}
		return v
	}
	for _, r := range rec.Meta.Reasons {
		class, _ := verdict.StatusNamed(r.Class)
		v.Reasons = append(v.Reasons, verdict.Reason{Code: r.Code, Class: class})
	}
	return v
}

// codes returns the codes of the recorded reasons, nil if there is no list.
func (rec *LogRecord) codes() (codes []string) {
	switch {
	case rec.Meta != nil && len(rec.Meta.Reasons) > 0:
		for _, r := range rec.Meta.Reasons {
			codes = append(codes, r.Code)
		}
	case rec.Verdict == verdict.OK.String():
		return []string{}
	}
	return codes
}

// families are those of the reasons that [Config.Check] gives.
var families = []string{"", "limits", "forbidden", "packs", "schema", "tool-calls", "cost", "budget", "loop", "retry", "batch_loop", "internal"}

// foreign returns the family of a recorded reason that no Config gives, or "".
func (rec *LogRecord) foreign() string {
	if rec.Meta == nil {
		return ""
	}
	for _, r := range rec.Meta.Reasons {
		if !slices.Contains(families, r.Guard) {
			return r.Guard
		}
	}
	return ""
}

func sameCodes(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}

// blurred reports whether texts of the step are known by their digests only.
func (in *LogInput) blurred() bool {
	return in.OutputDigest != "" || slices.ContainsFunc(in.ToolCalls, func(c LogCall) bool { return c.ArgsDigest != "" })
}

// unreadable says which check would have to read a text that the log holds as a
// digest; "" if there is none. blurred says that the same is so of earlier steps.
func (c *Config) unreadable(in *LogInput, blurred bool) string {
	if c == nil {
		return ""
	}
	output := in.OutputDigest != ""
	has := output || in.Output != nil
	switch l := &c.Limits; {
	case c.Packs != (packs.Packs{}) && in.blurred():
		return "it is searched by packs, and the log holds a digest"
	case in.Human: // judged by budgets and tools alone
	case output && (l.OutputMin != nil || l.OutputMax != nil):
		return "its length is checked, and the log holds a digest"
	case output && len(c.Forbidden) > 0:
		return "its output is searched, and the log holds a digest"
	case c.Schema != nil && (output || in.blurred()):
		return "it is held to a schema, and the log holds a digest"
	case has && !in.Canned && c.Loop.Mode != "off" && (output || blurred):
		return "its output is compared with earlier ones, and the log holds digests"
	}
	for _, call := range in.ToolCalls {
		rule, ruled := c.Tools.PerTool[call.Name]
		_, checked := c.Tools.ArgSchemas[call.Name]
		digest := call.ArgsDigest != ""
		switch {
		case digest && checked:
			return "arguments are held to a schema, and the log holds a digest"
		case in.Human:
		case digest && ruled && (rule.LoopKey != nil || rule.Volatile != nil), c.Loop.Near != nil && (digest || blurred):
			return "arguments are compared with earlier ones, and the log holds digests"
		}
	}
	return ""
}

// Spent returns what all tasks have spent so far.
func (r *Replayer) Spent() (total spend.Book) {
	for _, t := range r.tasks {
		total = total.Plus(t.state.Spent)
	}
	return total
}

// Tasks returns how many tasks the log was about so far.
func (r *Replayer) Tasks() int { return len(r.tasks) }

// Executed returns how many steps were executed, in all tasks.
func (r *Replayer) Executed() (steps int64) {
	for _, t := range r.tasks {
		steps = exact.AddSat(steps, t.state.Steps)
	}
	return steps
}
