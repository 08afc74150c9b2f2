package guard

import (
	"crypto/sha256"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dialai/dialai/internal/text"
	"github.com/dialai/dialai/verdict"
)

// BenchmarkCheck measures a whole check on the published inputs. Percentiles are
// of single checks, by the wall clock; x-base is how many times what the baseline
// takes on the same outputs in the same run.
func BenchmarkCheck(b *testing.B) {
	prose, single, long := benchSteps(200, 2048), benchStepsOf(200, singleToken), benchSteps(60, 64<<10)
	if *inputsFile != "" {
		writeInputs(b, *inputsFile, prose)
	}
	for _, c := range []struct {
		name     string
		profile  Profile
		patterns string
		more     string
		steps    []CheckInput
	}{
		{"b strict", Strict, twoPatterns, "", prose},
		{"b strict, mode off", Strict, twoPatterns, `,"mode":"off"`, prose},
		{"b compat", Compat, twoPatterns, "", prose},
		{"b compat, mode off", Compat, twoPatterns, `,"mode":"off"`, prose},
		{"c strict", Strict, twoPatterns, "", single},
		{"d strict", Strict, twoPatterns, "", long},
		{"e strict", Strict, twentyPatterns, "", prose},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := newRig(b, benchGuard(b, c.profile, c.patterns, c.more), c.steps)
			r.run(100)
			measure(b, r)
		})
	}
	for _, profile := range []Profile{Strict, Compat} {
		b.Run(fmt.Sprintf("g %s, mode off, arg_schemas", profile), func(b *testing.B) {
			r := newRig(b, schemaGuard(b, profile, `,"mode":"off"`), prose)
			r.run(100)
			measure(b, r)
		})
	}
	b.Run("a strict", func(b *testing.B) {
		r := newRig(b, benchGuard(b, Strict, twoPatterns, ""), prose)
		r.fresh = true
		measure(b, r)
	})
}

// A rig checks steps one after the other, round and round.
type rig struct {
	tb    testing.TB
	guard *Guard
	steps []CheckInput
	next  int

	fresh     bool // each step is the first of a task
	collected int  // the step before which tasks were collected
}

func newRig(tb testing.TB, g *Guard, steps []CheckInput) *rig {
	return &rig{tb: tb, guard: g, steps: steps}
}

func (r *rig) step() {
	in := r.steps[r.next%len(r.steps)]
	if r.fresh {
		in.TaskID = in.ToolCalls[r.next%3].Name + in.State // has been collected since
	}
	r.next++
	if v, _, err := r.guard.Check(in); err != nil || !v.Passed() {
		r.tb.Fatal(v.Codes(), err)
	}
}

// collect makes room for new tasks.
func (r *rig) collect() {
	if r.fresh && r.next-r.collected >= 50 {
		r.guard.GC(0)
		r.collected = r.next
	}
}

func (r *rig) run(n int) {
	for range n {
		r.step()
	}
}

// measure reports the percentiles of single steps and the ratio to the baseline.
func measure(b *testing.B, r *rig) {
	b.ReportAllocs()
	var room [1 << 16]time.Duration
	n := 0
	for b.Loop() {
		r.collect()
		start := time.Now()
		r.step()
		room[n%len(room)] = time.Since(start)
		n++
	}
	took := room[:min(n, len(room))]
	slices.Sort(took)
	for _, p := range []int{50, 95, 99} {
		b.ReportMetric(float64(took[len(took)*p/100]), fmt.Sprintf("p%d-ns", p))
	}
	ratio, least := r.ratio()
	b.ReportMetric(ratio, "x-base")
	b.ReportMetric(least, "least-ns")
}

// ratio returns how many times the baseline a check takes, and how many nanoseconds:
// the shortest of many short runs of each, taken in turns, so that what else the
// machine does counts for little.
func (r *rig) ratio() (times, least float64) {
	const rounds, steps = 40, 50
	check, base := time.Duration(1<<62), time.Duration(1<<62)
	for range rounds {
		r.collect()
		start := time.Now()
		r.run(steps)
		middle := time.Now()
		r.baseline(steps)
		check, base = min(check, middle.Sub(start)), min(base, time.Since(middle))
	}
	return float64(check) / float64(base), float64(check) / steps
}

// baseline lower-cases the next n outputs in a single pass and hashes them with
// SHA-256.
func (r *rig) baseline(n int) {
	var t text.Text
	for i := range n {
		t.Read(*r.steps[(r.next+i)%len(r.steps)].Output, false)
		sink ^= sha256.Sum256(t.Lower)[0]
	}
}

var sink byte

// BenchmarkCheckParallel is input f: 16 goroutines on one task, and on one each.
func BenchmarkCheckParallel(b *testing.B) {
	steps := benchSteps(200, 2048)
	for _, tasks := range []int{1, 16} {
		b.Run(fmt.Sprintf("f strict, %d tasks", tasks), func(b *testing.B) {
			g := benchGuard(b, Strict, twoPatterns, "")
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			next := make([]atomic.Int64, tasks)
			for w := range 16 {
				name := fmt.Sprint("t", w%tasks)
				wg.Go(func() {
					for range b.N/16 + 1 {
						in := steps[int(next[w%tasks].Add(1))%len(steps)]
						in.TaskID = name
						v, _, err := g.Check(in)
						if late := tasks < 16; err != nil || !v.Passed() && !late { // then a step may come a whole turn late, and repeat
							b.Error(v.Codes(), err)
							return
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

// TestCheckAllocatesNothing holds a check that is ok to what it promises.
func TestCheckAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes pools forget, so that they allocate")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection empties the pools
	prose, single, long := benchSteps(120, 2048), benchStepsOf(120, singleToken), benchSteps(60, 64<<10)
	for _, c := range []struct {
		name     string
		profile  Profile
		patterns string
		more     string
		steps    []CheckInput
		schemas  bool // which the library checks, in maps that it allocates: at most 150 for each call
	}{
		{"strict", Strict, twoPatterns, "", prose, false},
		{"strict, mode off", Strict, twoPatterns, `,"mode":"off"`, prose, false},
		{"compat", Compat, twoPatterns, "", prose, false},
		{"compat, mode overlap", Compat, twoPatterns, `,"mode":"overlap"`, prose, false},
		{"one token", Strict, twoPatterns, "", single, false},
		{"64 KB", Strict, twoPatterns, "", long, false},
		{"twenty patterns", Strict, twentyPatterns, "", prose, false},
		{"arg_schemas", Strict, twoPatterns, "", prose, true},
		{"in disguise", Strict, twoPatterns, "", disguised(prose), false},
		{"arg_schemas, compat, mode off", Compat, twoPatterns, `,"mode":"off"`, prose, true},
	} {
		g := benchGuard(t, c.profile, c.patterns, c.more)
		if c.schemas {
			g = schemaGuard(t, c.profile, c.more)
		}
		r := newRig(t, g, c.steps)
		r.run(110) // until the history is full
		most := 0.0
		if c.schemas {
			most = 3 * 150
		}
		least := math.Inf(1) // of three: whatever else runs in this process allocates, too
		for range 3 {
			least = min(least, testing.AllocsPerRun(50, r.step))
		}
		if least > most {
			t.Errorf("%s: %.1f allocations a check", c.name, least)
		}
	}
}

// disguised returns steps that differ from each other in what can be seen, and hold
// what cannot; each calls one tool.
func disguised(steps []CheckInput) []CheckInput {
	steps = slices.Clone(steps)
	for i := range steps {
		output := strings.ReplaceAll(*steps[i].Output, "e", "e\u200b")
		args := fmt.Appendf(nil, `{"path":"handler\u200b_%d.go","request_id":"%08x","q":"\\u200b"}`, i, i*77)
		steps[i].Output, steps[i].ToolCalls = &output, []verdict.ToolCall{{Name: "search", Args: args, Result: fmt.Appendf(nil, `"no\u200bthing %d"`, i)}}
	}
	return steps
}

// BenchmarkPacks measures what the packs add to a check of 2 KB of prose and a
// few arguments in which there is nothing to find.
func BenchmarkPacks(b *testing.B) {
	steps := benchSteps(200, 2048)
	for _, packs := range []string{`{}`, `{"packs":{"secrets":{}}}`, `{"packs":{"pii":{}}}`, `{"packs":{"prompt_injection":{}}}`} {
		b.Run(packs, func(b *testing.B) {
			c, problems := ParseAs([]byte(packs), Compat)
			if len(problems) > 0 {
				b.Fatal(problems)
			}
			c.Loop.Mode = "off"
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if v := c.Check(State{}, steps[i%len(steps)].step(c)); !v.Passed() || len(v.Reasons) > 0 {
					b.Fatal(v.Reasons)
				}
				i++
			}
		})
	}
}

// BenchmarkStream measures 2 KB in chunks of four bytes.
func BenchmarkStream(b *testing.B) {
	g := benchGuard(b, Strict, twoPatterns, "")
	output := proseFrom(1, 2048)
	b.ReportAllocs()
	for b.Loop() {
		s := g.Stream("t")
		for at := 0; at < len(output); at += 4 {
			if v := s.Add(output[at:min(at+4, len(output))]); !v.Passed() {
				b.Fatal(v.Reasons)
			}
		}
	}
}
