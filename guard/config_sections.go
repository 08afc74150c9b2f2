package guard

import (
	"bytes"
	"encoding/json"
	"math"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/section"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/internal/text"
	"github.com/dialai/dialai/machine"
)

func readLimits(r *section.Reader, l *Limits) func(path string, value []byte) {
	return r.Object([]section.Member{
		{Name: "max_steps", Read: r.OptionalCount(&l.MaxSteps)},
		{Name: "max_tokens_per_step", Read: r.OptionalCount(&l.MaxTokensPerStep)},
		{Name: "max_total_tokens", Read: r.OptionalCount(&l.MaxTotalTokens)},
		{Name: "output_min", Read: r.OptionalCount(&l.OutputMin)},
		{Name: "output_max", Read: r.OptionalCount(&l.OutputMax)},
		{Name: "cap_basis", Read: r.OneOf((*string)(&l.CapBasis), string(Spend), string(Progress))},
	})
}

// readBudget reads a budget. What bounds a task otherwise is filled in later.
func readBudget(r *section.Reader, into **spend.Budget) func(path string, value []byte) {
	return func(path string, value []byte) {
		b, problems := spend.ParseBudget(value)
		for _, p := range problems {
			p.Path = path + p.Path
			r.Problems = append(r.Problems, p)
		}
		*into = b
	}
}

func readStore(r *section.Reader, s *Store) func(path string, value []byte) {
	ttl := s.TTL.Milliseconds()
	read := r.Object([]section.Member{
		{Name: "ttl_ms", Read: r.Count(&ttl, 0)},
		{Name: "history_limit", Read: r.CountWithin(&s.HistoryLimit, 1, maxHistory)},
	})
	return func(path string, value []byte) {
		read(path, value)
		s.TTL = time.Duration(min(ttl, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
	}
}

func readLoops(r *section.Reader, l *LoopDetection) func(path string, value []byte) {
	cycle, near := &Cycle{8, 3}, &Near{800_000_000, 8}
	return r.Object([]section.Member{
		{Name: "ngram_size", Read: r.CountWithin(&l.NgramSize, 1, 1000)},
		{Name: "max_repeats", Read: r.Count(&l.MaxRepeats, 0)},
		{Name: "mode", Read: r.OneOf(&l.Mode, "any_ngram", "overlap", "off")},
		{Name: "overlap_ratio", Read: r.Ratio(&l.OverlapRatio)},
		{Name: "detect_identical_tool_calls", Read: r.Bool(&l.IdenticalCalls)},
		{Name: "max_state_visits", Read: r.Count(&l.MaxStateVisits, 0)},
		{Name: "visit_counting", Read: r.OneOf(&l.VisitCounting, "steps", "entries", "transitions")},
		{Name: "progress_aware", Read: r.Bool(&l.ProgressAware)},
		{Name: "normalize", Read: r.Bool(&l.Normalize)},
		{Name: "max_output_repeats", Read: r.OrOff(r.OptionalCount(&l.MaxOutputRepeats), func() { l.MaxOutputRepeats = nil })},
		{Name: "cycle", Read: r.OrOff(func(path string, value []byte) {
			l.Cycle = cycle
			r.Object([]section.Member{{Name: "max_period", Read: r.CountWithin(&cycle.MaxPeriod, 1, maxPeriod)}, {Name: "repeats", Read: r.CountWithin(&cycle.Repeats, 2, 100)}})(path, value)
		}, func() { l.Cycle = nil })},
		{Name: "near", Read: r.OrOff(func(path string, value []byte) {
			l.Near = near
			r.Object([]section.Member{{Name: "jaccard", Read: r.Ratio(&near.Jaccard)}, {Name: "repeats", Read: r.Count(&near.Repeats, 1)}})(path, value)
		}, func() { l.Near = nil })},
	})
}

func readTools(r *section.Reader, t *Tools) func(path string, value []byte) {
	return r.Object([]section.Member{
		{Name: "allowed", Read: r.Names(&t.Allowed)},
		{Name: "arg_schemas", Read: section.Map(r, &t.ArgSchemas, func(path string, value []byte) (s *machine.Schema) {
			r.Schema(&s)(path, value)
			return s
		})},
		{Name: "mutex", Read: section.List(r, &t.Mutex, func(path string, value []byte) (group []string) {
			r.Names(&group)(path, value)
			return group
		})},
		{Name: "mutex_scope", Read: r.OneOf(&t.MutexScope, "task", "step")},
		{Name: "blast_radius", Read: section.Map(r, &t.BlastRadius, func(path string, value []byte) (n int64) {
			r.Count(&n, 0)(path, value)
			return n
		})},
		{Name: "sequence", Read: section.List(r, &t.Sequence, func(path string, value []byte) (s Sequence) {
			r.Object([]section.Member{{Name: "tool", Read: r.Name(&s.Tool)}, {Name: "requires_prev", Read: r.Name(&s.RequiresPrev)}})(path, value)
			r.Require(path, value, "tool", "requires_prev")
			return s
		})},
		{Name: "tools", Read: section.Map(r, &t.PerTool, func(path string, value []byte) (rule ToolRule) {
			r.Object([]section.Member{
				{Name: "loop_key", Read: r.Names(&rule.LoopKey)}, {Name: "volatile", Read: r.Names(&rule.Volatile)},
				{Name: "poll", Read: r.Bool(&rule.Poll)}, {Name: "exempt", Read: r.Bool(&rule.Exempt)},
			})(path, value)
			return rule
		})},
	})
}

func readPatterns(r *section.Reader, into *[]Forbidden) func(path string, value []byte) {
	return section.List(r, into, func(path string, value []byte) (f Forbidden) {
		if json.Unmarshal(value, &f.Source) != nil || !bytes.HasPrefix(value, []byte(`"`)) {
			r.Report(path, "wrong-type", "a pattern must be a string", "")
			return f
		}
		var err error
		if f.pattern, err = text.CompilePattern(f.Source); err != nil {
			r.Report(path, "bad-pattern", "the pattern does not compile: "+err.Error(), "patterns are RE2: no look-around, no back-references")
		}
		return f
	})
}

func readCost(r *section.Reader, c *Cost) func(path string, value []byte) {
	return r.Object([]section.Member{
		{Name: "version", Read: r.Text(&c.Version)},
		{Name: "prices", Read: spend.Prices(r, &c.Prices)},
		{Name: "max_dollars_per_task", Read: func(path string, value []byte) {
			c.MaxDollars = new(exact.Money)
			r.Money(c.MaxDollars)(path, value)
		}},
		{Name: "on_unknown_model", Read: spend.OnUnknownModel(r, &c.OnUnknownModel)},
	})
}
