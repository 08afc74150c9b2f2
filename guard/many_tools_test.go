package guard_test

import (
	"fmt"
	"testing"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/verdict"
)

// TestManyTools has a task call hundreds of tools, which are then found by an index: what
// was called how often is known as with few, after a human let the task go on and after
// a restart, too.
func TestManyTools(t *testing.T) {
	const tools = 300
	config := configOf(t, `{"tool_calls":{"blast_radius":{"t7":2,"t150":2,"t299":2,"twice":1},"mutex":[["t3","t298"],["t4","other"]],"mutex_scope":"task","sequence":[{"tool":"late","requires_prev":"t200"}]},
		"loop_detection":{"detect_identical_tool_calls":false}}`)
	g, err := guard.New(config)
	if err != nil {
		t.Fatal(err)
	}
	all := guard.CheckInput{TaskID: "a"}
	for i := range tools {
		all.ToolCalls = append(all.ToolCalls, verdict.ToolCall{Name: fmt.Sprint("t", i)})
	}
	codes := func(g *guard.Guard, in guard.CheckInput) string {
		t.Helper()
		v, _, err := g.Check(in)
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, r := range v.Reasons {
			text += r.Code + " " + r.Subject + " " + r.Seen + ", "
		}
		return text
	}
	one := func(tool string) guard.CheckInput {
		return guard.CheckInput{TaskID: "a", ToolCalls: []verdict.ToolCall{{Name: tool}}}
	}
	const rivals = "tool_mutex t298 , "
	if got := codes(g, all); got != rivals {
		t.Errorf("the first step: %s", got)
	}
	all.ToolCalls[298].Name = "t297" // called twice, and no rival any more
	if got := codes(g, all); got != "" {
		t.Errorf("the second step: %s", got)
	}
	again := func(when string, g *guard.Guard) {
		t.Helper()
		for tool, want := range map[string]string{
			"t7": "", "t150": "", "t299": "", "t8": "", "late": "", "other": "tool_mutex other , ", "t298": rivals,
		} {
			if got := codes(g, one(tool)); got != want {
				t.Errorf("%s, %s: %q, want %q", when, tool, got, want)
			}
		}
		for _, tool := range []string{"t7", "t150", "t299"} {
			if got := codes(g, one(tool)); got != "tool_blast_radius "+tool+" 3, " {
				t.Errorf("%s, %s once more: %q", when, tool, got)
			}
		}
	}
	other := guard.CheckInput{TaskID: "b", ToolCalls: append(all.ToolCalls[:100:100], verdict.ToolCall{Name: "twice"}, verdict.ToolCall{Name: "twice"})}
	if got := codes(g, other); got != "tool_blast_radius twice 2, " {
		t.Errorf("a rule broken twice: %s", got)
	}
	snapshot := g.Snapshot()
	again("on", g)
	next, err := guard.New(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Restore(snapshot); err != nil {
		t.Fatal(err)
	}
	if err := next.Clear("a", "tool_blast_radius", "carol", "seen"); err != nil {
		t.Fatal(err)
	}
	again("restored and cleared", next)
}
