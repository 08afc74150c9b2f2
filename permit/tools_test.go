package permit

import "testing"

// TestUnknownTools: a tool that nobody knows is dangerous where what it is given to run would be.
func TestUnknownTools(t *testing.T) {
	p := newPlace(t)
	for _, c := range []struct {
		tool  string
		input any
		want  string
	}{
		{"mcp__shell__exec", map[string]any{"command": "git push"}, kindDangerous},
		{"mcp__shell__exec", map[string]any{"Args": []string{"rm", "-rf", "/"}}, kindDangerous},
		{"bash", map[string]any{"cmd": "ls && cat ~/.ssh/id_rsa"}, kindDangerous},
		{"mcp__shell__exec", map[string]any{"command": "ls"}, kindOther},
		{"Task", map[string]any{"prompt": "do not git push"}, kindOther},
	} {
		if f := p.lookAt(t, c.tool, c.input); f.Kind != c.want || f.Inside {
			t.Errorf("%s of %v is %s, want %s", c.tool, c.input, shown(f), c.want)
		}
	}
}
