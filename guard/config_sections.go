package guard

import (
	"bytes"
	"encoding/json"
	"math"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
)

func readLimits(r *reader, l *Limits) func(path string, value []byte) {
	return r.object([]member{
		{"max_steps", r.optionalCount(&l.MaxSteps)},
		{"max_tokens_per_step", r.optionalCount(&l.MaxTokensPerStep)},
		{"max_total_tokens", r.optionalCount(&l.MaxTotalTokens)},
		{"output_min", r.optionalCount(&l.OutputMin)},
		{"output_max", r.optionalCount(&l.OutputMax)},
		{"cap_basis", r.oneOf((*string)(&l.CapBasis), string(Spend), string(Progress))},
	})
}

// readBudget reads a budget. What bounds a task otherwise is filled in later.
func readBudget(r *reader, into **Budget) func(path string, value []byte) {
	return func(path string, value []byte) {
		b, problems := ParseBudget(value)
		for _, p := range problems {
			p.Path = path + p.Path
			r.problems = append(r.problems, p)
		}
		*into = b
	}
}

func readStore(r *reader, s *Store) func(path string, value []byte) {
	ttl := s.TTL.Milliseconds()
	read := r.object([]member{
		{"ttl_ms", r.count(&ttl, 0)},
		{"history_limit", r.countWithin(&s.HistoryLimit, 1, maxHistory)},
	})
	return func(path string, value []byte) {
		read(path, value)
		s.TTL = time.Duration(min(ttl, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
	}
}

func readLoops(r *reader, l *LoopDetection) func(path string, value []byte) {
	cycle, near := &Cycle{8, 3}, &Near{800_000_000, 8}
	return r.object([]member{
		{"ngram_size", r.countWithin(&l.NgramSize, 1, 1000)},
		{"max_repeats", r.count(&l.MaxRepeats, 0)},
		{"mode", r.oneOf(&l.Mode, "any_ngram", "overlap", "off")},
		{"overlap_ratio", r.ratio(&l.OverlapRatio)},
		{"detect_identical_tool_calls", r.bool(&l.IdenticalCalls)},
		{"max_state_visits", r.count(&l.MaxStateVisits, 0)},
		{"visit_counting", r.oneOf(&l.VisitCounting, "steps", "entries", "transitions")},
		{"progress_aware", r.bool(&l.ProgressAware)},
		{"normalize", r.bool(&l.Normalize)},
		{"max_output_repeats", r.orOff(r.optionalCount(&l.MaxOutputRepeats), func() { l.MaxOutputRepeats = nil })},
		{"cycle", r.orOff(func(path string, value []byte) {
			l.Cycle = cycle
			r.object([]member{{"max_period", r.countWithin(&cycle.MaxPeriod, 1, maxPeriod)}, {"repeats", r.countWithin(&cycle.Repeats, 2, 100)}})(path, value)
		}, func() { l.Cycle = nil })},
		{"near", r.orOff(func(path string, value []byte) {
			l.Near = near
			r.object([]member{{"jaccard", r.ratio(&near.Jaccard)}, {"repeats", r.count(&near.Repeats, 1)}})(path, value)
		}, func() { l.Near = nil })},
	})
}

func readTools(r *reader, t *Tools) func(path string, value []byte) {
	return r.object([]member{
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
			r.object([]member{{"tool", r.name(&s.Tool)}, {"requires_prev", r.name(&s.RequiresPrev)}})(path, value)
			r.require(path, value, "tool", "requires_prev")
			return s
		})},
		{"tools", readMap(r, &t.PerTool, func(path string, value []byte) (rule ToolRule) {
			r.object([]member{
				{"loop_key", r.names(&rule.LoopKey)}, {"volatile", r.names(&rule.Volatile)},
				{"poll", r.bool(&rule.Poll)}, {"exempt", r.bool(&rule.Exempt)},
			})(path, value)
			return rule
		})},
	})
}

func readPatterns(r *reader, into *[]Forbidden) func(path string, value []byte) {
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

func readCost(r *reader, c *Cost) func(path string, value []byte) {
	return r.object([]member{
		{"version", r.text(&c.Version)},
		{"prices", readPrices(r, &c.Prices)},
		{"max_dollars_per_task", func(path string, value []byte) {
			c.MaxDollars = new(exact.Money)
			r.money(c.MaxDollars)(path, value)
		}},
		{"on_unknown_model", readOnUnknownModel(r, &c.OnUnknownModel)},
	})
}
