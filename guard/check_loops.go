package guard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/text"
	"github.com/dialai/dialai/verdict"
)

// Is the task going round in circles? Five questions, as far as the section asks them:
// does the output say what earlier ones said; does a tool call equal the one before it;
// is a tool called again and again with nearly the same arguments, or for the same
// result; was the state visited too often; do the newest states repeat as a cycle. Only
// if no cycle is found are the states looked at that the task never leaves (component).
//
// With progress_aware only what happened without news counts: who learns something and
// then does the same makes progress. Of a loop that only warns those who are asked next
// are told, since they can leave it.

// loops looks for a task that goes round in circles: outputs, tool calls, states.
func (k *checking) loops() {
	if says(k.step) {
		k.repeatedOutput()
	}
	if len(k.step.ToolCalls) > 0 {
		k.repeatedCalls()
		if k.c.Loop.Near != nil {
			k.nearCalls()
		}
	}
	if k.step.State != "" {
		k.visits()
		if before := len(k.reasons); k.c.Loop.Cycle != nil {
			if k.cycle(); len(k.reasons) == before {
				k.component()
			}
		}
	}
}

func (k *checking) loop(code string, class verdict.Status, message string, indices []int32) *verdict.Reason {
	k.addNotice(class, message)
	k.report(verdict.Reason{Code: code, Guard: "loop", Class: class, Message: message, Indices: indices})
	return &k.reasons[len(k.reasons)-1]
}

// addNotice tells those who are asked next of a loop that only warns: they are who can
// leave it.
func (k *checking) addNotice(class verdict.Status, message string) {
	if class == verdict.Warn {
		k.notices = append(k.notices, "Loop: "+message+"; do something else, or come to an end.")
	}
}

// repeatedOutput finds outputs that say what earlier ones said.
func (k *checking) repeatedOutput() {
	var found bool
	var earlier []int32
	switch k.c.Loop.Mode {
	case "any_ngram":
		found = k.anyNgram()
	case "overlap":
		earlier = k.overlapping()
		found = int64(len(earlier)) >= k.c.Loop.MaxRepeats && len(earlier) > 0
	}
	if found {
		r := k.loop("loop_repeat_output", verdict.Abort, "the output repeats earlier outputs", earlier)
		r.Limit = fmt.Sprint(k.c.Loop.MaxRepeats)
		return
	}
	if most := k.c.Loop.MaxOutputRepeats; most != nil {
		if n := k.streak(); n > *most {
			r := k.loop("loop_repeat_output", verdict.Abort, "the output is the same as the ones before it", nil)
			r.Limit, r.Seen = fmt.Sprint(*most), fmt.Sprint(n)
		}
	}
}

// anyNgram reports whether one n-gram of the output occurs more than max_repeats
// times in the outputs remembered and this one together.
func (k *checking) anyNgram() bool {
	if len(k.look.output.grams) == 0 {
		return false
	}
	counts := &k.look.counts
	counts.Reset(len(k.look.output.grams))
	for _, g := range k.look.output.grams {
		if counts.Add(g) > k.c.Loop.MaxRepeats {
			return true
		}
	}
	for _, earlier := range k.m.grams.items {
		if counts.More(earlier) > k.c.Loop.MaxRepeats {
			return true
		}
	}
	return false
}

// overlapping returns the earlier outputs that contain overlap_ratio of this
// one's print.
func (k *checking) overlapping() (earlier []int32) {
	p := &k.look.output.print
	if len(p.Marks) == 0 {
		return nil
	}
	need := share(len(p.Marks), k.c.Loop.OverlapRatio)
	most := len(p.Marks) - need // marks that may be missing
	for i := range k.m.prints.len() {
		if o := k.m.prints.at(i); k.noNews(o.context) && p.Lacking(&o.Print) <= most && p.Shared(&o.Print) >= need {
			earlier = append(earlier, int32(i))
		}
	}
	return earlier
}

// streak returns how many outputs in a row, this one included, are the same.
func (k *checking) streak() int64 {
	if k.m.streak == 0 || k.m.output != k.look.output.hash || !k.noNews(k.m.context) {
		return 1
	}
	return k.m.streak + 1
}

// noNews reports whether the task knew then what it knows now, as far as anybody
// can tell. What repeats although there is news is progress.
func (k *checking) noNews(then hash) bool {
	return !k.c.Loop.ProgressAware || then == k.look.output.context
}

// repeatedCalls finds a call that equals the one before it.
func (k *checking) repeatedCalls() {
	if !k.c.Loop.IdenticalCalls {
		return
	}
	for i := range k.step.ToolCalls {
		call := &k.step.ToolCalls[i]
		rule := k.c.Tools.PerTool[call.Name]
		if rule.Exempt || !k.repeats(i) {
			continue
		}
		then, now := k.before(i), &k.look.calls[i]
		known := k.c.Loop.ProgressAware && then.Result != 0 && now.Result != 0
		switch {
		case known && then.Result != now.Result: // a new result is progress
		case known:
			k.loop("loop_no_progress", verdict.Abort, fmt.Sprintf("tool %q was called with the same arguments and gave the same result", call.Name), nil).Subject = call.Name
			return
		case rule.Poll:
		case !k.c.Loop.ProgressAware || then.Context == uint32(k.look.output.context):
			k.loop("loop_repeat_tool", verdict.Abort, fmt.Sprintf("tool %q is called with the same arguments as just before", call.Name), nil).Subject = call.Name
			return
		}
	}
}

// before returns what is remembered of the call before the i-th; it exists.
func (k *checking) before(i int) *callMark {
	if i > 0 {
		return &k.look.calls[i-1]
	}
	return k.m.calls.at(k.m.calls.len() - 1)
}

// repeats reports whether the i-th call of the step equals the call before it.
// Calls of one step are one decision, so the strict profile does not compare
// them with each other.
func (k *checking) repeats(i int) bool {
	calls := k.step.ToolCalls
	switch {
	case i > 0:
		return !k.c.Loop.ProgressAware && k.c.sameTool(calls[i].Name, calls[i-1].Name) &&
			k.sameArgs(calls[i].Name, calls[i].Args, calls[i-1].Args)
	case k.m.calls.len() == 0:
		return false
	}
	last := k.m.calls.at(k.m.calls.len() - 1)
	return k.c.sameTool(k.m.tools[last.Tool].Name, calls[0].Name) && k.sameArgs(calls[0].Name, calls[0].Args, k.m.last)
}

// sameArgs reports whether arguments mean the same. Where their bytes differ, most
// that do not are told apart by a hash.
func (k *checking) sameArgs(tool string, a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	a, errA := counted(k.c, tool, a)
	b, errB := counted(k.c, tool, b)
	normal := k.c.normalizes(tool)
	return errA == nil && errB == nil && k.look.hashArgs(a, normal) == k.look.hashArgs(b, normal) && text.SameJSON(a, b, normal)
}

// counted returns what counts of a call's arguments: all, unless the tool has
// rules of its own. Of a single member nothing is taken away, since it is all
// there is to tell calls apart.
func counted(c *Config, tool string, args []byte) ([]byte, error) {
	if len(c.Tools.PerTool) == 0 {
		return args, nil
	}
	rule, ok := c.Tools.PerTool[tool]
	if !ok || rule.LoopKey == nil && rule.Volatile == nil {
		return args, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(args, &members); err != nil || len(members) < 2 {
		return args, nil // not an object; the hash says whether it is JSON
	}
	for name := range members {
		if rule.LoopKey != nil && !slices.Contains(rule.LoopKey, name) || slices.Contains(rule.Volatile, name) {
			delete(members, name)
		}
	}
	return json.Marshal(members)
}

// nearCalls warns of a tool that is called again and again with almost the same
// arguments, or gives the same result whatever they are.
func (k *checking) nearCalls() {
	near := k.c.Loop.Near
	for i := range k.step.ToolCalls {
		name := k.step.ToolCalls[i].Name
		if rule := k.c.Tools.PerTool[name]; k.m.calls.len() == 0 || rule.Exempt || rule.Poll || !k.first(i) {
			continue
		}
		alike, same := k.m.near(k.m.tool(k.look.tools[i]), &k.look.calls[i], k.c.Loop.ProgressAware, near.Jaccard)
		alike = max(alike, k.m.alike(k.c, k.step, k.look))
		if alike >= near.Repeats {
			k.near("loop_near_repeat", name, fmt.Sprintf("tool %q was called %d times with almost the same arguments", name, alike), alike)
		}
		if same >= near.Repeats {
			k.near("loop_same_result", name, fmt.Sprintf("tool %q gave the same result %d times", name, same), same)
		}
	}
}

// near counts the calls of a tool, the present one included, whose arguments are
// similar to those of now, and those that gave the same result. Where progress counts,
// only calls since the last news do.
func (m *memory) near(tool int32, now *callMark, aware bool, jaccard exact.Billionths) (alike, same int64) {
	alike, same = 1, 1
	most := text.MostDiffering(jaccard)
	for i := range m.calls.items {
		then := &m.calls.items[i]
		if then.Tool != tool || aware && then.Context != now.Context {
			continue
		}
		if text.Differing(uint64(then.Words), uint64(now.Words)) <= most && text.Similar(uint64(then.Words), uint64(now.Words), jaccard) {
			alike++
		}
		if now.Result != 0 && then.Result == now.Result {
			same++
		}
	}
	return alike, same
}

func (k *checking) near(code, tool, message string, seen int64) {
	r := k.loop(code, verdict.Warn, message, nil)
	r.Subject, r.Limit, r.Seen = tool, fmt.Sprint(k.c.Loop.Near.Repeats), fmt.Sprint(seen)
}

// visits counts earlier visits of the state that knew no more than this one. The
// stay the session is in at the start counts as executed by nobody, so it is not
// among them.
func (k *checking) visits() {
	if !k.c.countsVisit(k.m, k.look.state) {
		return
	}
	now := visit{k.look.state, k.look.output.context}
	if seen := k.m.seen(now, k.c.Loop.ProgressAware) + 1; seen > k.c.Loop.MaxStateVisits {
		k.tooManyVisits(now, seen)
	}
}

// seen counts the visits that equal now, or, unless aware is set, those of its
// state.
func (m *memory) seen(now visit, aware bool) (times int64) {
	for _, v := range m.visits.items {
		if v.State == now.State && (!aware || v.Context == now.Context) {
			times++
		}
	}
	return times
}

func (k *checking) tooManyVisits(now visit, seen int64) {
	var indices []int32
	for i := range k.m.visits.len() {
		if v := k.m.visits.at(i); v.State == now.State && (!k.c.Loop.ProgressAware || v.Context == now.Context) {
			indices = append(indices, int32(i))
		}
	}
	r := k.over("loop_state_cycle", "loop", fmt.Sprintf("the number of visits of state %q without news", k.step.State), k.c.Loop.MaxStateVisits, seen)
	r.Class, r.Indices, r.Subject = k.certainty(), indices, k.step.State
	k.addNotice(r.Class, r.Message)
}

// certainty is Warn where nothing is known of what the task has learnt: then
// nothing says that there was no progress.
func (k *checking) certainty() verdict.Status {
	if k.c.Loop.ProgressAware && k.look.output.context == 0 {
		return verdict.Warn
	}
	return verdict.Abort
}

// cycle finds the shortest run of states that the newest visits, this one
// included, repeat often enough.
func (k *checking) cycle() {
	c := k.c.Loop.Cycle
	n := int64(k.m.visits.len()) + 1
	for period := int64(1); period <= c.MaxPeriod; period++ {
		length := period * c.Repeats
		if length > n {
			return
		}
		if c.Repeats > 1 && k.m.visits.at(int(n-1-period)).State != k.look.state {
			continue // as almost always
		}
		if !k.periodic(n, length, period, func(a, b visit) bool { return a.State == b.State }) {
			continue
		}
		if period == 1 {
			return // one state again and again is a matter of visits
		}
		class := verdict.Warn
		if k.look.output.context != 0 && k.periodic(n, length, period, func(a, b visit) bool { return a == b }) {
			class = verdict.Abort
		}
		r := k.loop("loop_cycle", class, fmt.Sprintf("the last %d states repeat with period %d", length, period), nil)
		r.Limit, r.Seen = fmt.Sprint(c.Repeats), fmt.Sprint(c.Repeats)
		return
	}
}

// periodic reports whether the last length of n visits equal those one period
// before them.
func (k *checking) periodic(n, length, period int64, equal func(a, b visit) bool) bool {
	now := visit{k.look.state, k.look.output.context}
	at := func(i int64) visit {
		if i == n-1 {
			return now
		}
		return *k.m.visits.at(int(i))
	}
	for i := n - length + period; i < n; i++ {
		if !equal(at(i), at(i-period)) {
			return false
		}
	}
	return true
}

// share returns the share of n that ratio asks for, rounded up.
func share(n int, ratio exact.Billionths) int {
	return int((int64(n)*int64(ratio) + 999_999_999) / 1e9)
}
