package bridge

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestRules: what a prefix allows is one command of plain words, and what is denied is not
// allowed in another way of writing it.
func TestRules(t *testing.T) {
	named := map[ruling]string{ask: "ask", allow: "allow", deny: "deny"}
	for _, c := range []struct{ allow, deny, command, want string }{
		{"Bash(git status*)", "", "git status", "allow"},
		{"Bash(git status*)", "", "git   status --short", "allow"},
		{"Bash(git status *)", "", "git statusx", "ask"},
		{"Bash(git status *)", "", "git status", "allow"},
		{"Bash(git status*)", "", "git status; rm -rf /", "ask"},
		{"Bash(git status*)", "", "git status && rm -rf /", "ask"},
		{"Bash(git status*)", "", "git status | sh", "ask"},
		{"Bash(git status*)", "", "git status & rm x", "ask"},
		{"Bash(git status*)", "", "git status\nrm -rf /", "ask"},
		{"Bash(git status*)", "", "git status\rrm", "ask"},
		{"Bash(git status*)", "", "git status $(rm -rf /)", "ask"},
		{"Bash(git status*)", "", "git status `rm`", "ask"},
		{"Bash(git status*)", "", "git status > ~/.profile", "ask"},
		{"Bash(git status*)", "", "git status < /dev/null", "ask"},
		{"Bash(git status*)", "", "git status $HOME", "ask"},
		{"Bash(git status*)", "", "git status \"a\"", "ask"},
		{"Bash(git status*)", "", "git status é", "ask"},
		{"Bash(git status*)", "", "PATH=. git status", "ask"},
		{"Bash(git status*)", "", "sudo git status", "ask"},
		{"Bash(git status*)", "", "", "ask"},
		{"Bash(git status*)", "", strings.Repeat("git status ", 10_000), "ask"},
		{"Bash(git status*)", "Bash", "git status", "deny"},
		{"Bash", "Bash(rm*)", "ls", "allow"},
		{"Bash", "Bash(rm*)", "rm -rf /", "deny"},
		{"Bash", "Bash(rm*)", "ls; rm -rf /", "deny"},
		{"Bash", "Bash(rm*)", "ls && (rm x)", "deny"},
		{"Bash", "Bash(rm*)", "echo $(rm x)", "deny"},
		{"Bash", "Bash(rm*)", "env rm x", "ask"},
		{"Bash", "Bash(rm*)", "/bin/rm x", "ask"},
		{"Bash", "Bash(rm*)", "r''m x", "ask"},
		{"Bash", "Bash(rm*)", "\\rm x", "ask"},
		{"Bash", "Bash(git push*)", "git  push origin", "deny"},
		{"Bash", "Bash(git push*)", "git\tpush", "deny"},
		{"Bash", "Bash(/bin/rm*)", "env /bin/rm x", "ask"},
		{"Bash", "", "anything; at all", "allow"},
		{"Read", "", "ls", "ask"},
		{"bash", "", "ls", "ask"},
	} {
		m := members{reading: &reading{}, of: map[string]json.RawMessage{}}
		for name, text := range map[string]string{"allow": c.allow, "deny": c.deny} {
			if text != "" {
				m.of[name], _ = json.Marshal([]string{text})
			}
		}
		r := rules{allow: m.patterns("allow"), deny: m.patterns("deny")}
		if m.wrong != nil {
			t.Fatal(m.wrong.message)
		}
		input, _ := json.Marshal(map[string]string{"command": c.command})
		if got := named[r.judge("Bash", input)]; got != c.want {
			t.Errorf("allow %q, deny %q: %.60q is judged %s, want %s", c.allow, c.deny, c.command, got, c.want)
		}
	}
	r := rules{allow: []pattern{{tool: "Write"}, {tool: "Edit"}, {tool: "Read", prefix: "a"}}, deny: []pattern{{tool: "Edit", prefix: "/etc"}}}
	for tool, want := range map[string]ruling{"Write": allow, "Edit": ask, "Read": ask} { // what has no command has no prefix
		if got := r.judge(tool, json.RawMessage(`{"file_path":"a"}`)); got != want {
			t.Errorf("%s is judged %s", tool, named[got])
		}
	}
}

// TestLines: lines are told apart wherever they are split; one that is too long is skipped.
func TestLines(t *testing.T) {
	long := strings.Repeat("x", longestLine)
	var got []string
	lines(strings.NewReader("one\r\n\n  \ntwo\n"+long+"x\n"+long+"\nhalf"), func(line []byte, long bool) {
		got = append(got, fmt.Sprintf("%d %v", len(line), long))
	})
	if fmt.Sprint(got) != fmt.Sprintf("[3 false 3 false 0 true %d false 4 false]", longestLine) {
		t.Errorf("%v", got)
	}
}

// FuzzParse: every line is a command or has a fault with a code; what is given back is short.
func FuzzParse(f *testing.F) {
	for _, line := range []string{
		`{"cmd":"spawn","id":"a","req":1,"config":{"system_prompt":"x","mcp_tools":["spawn_orchestrator","look"],"hooks":{"context_thresholds":[70,85]},"tools":[{"name":"look","input_schema":{}}],"permission":{"allow":["Bash(git status*)"],"deny":["Bash"],"default":"deny"},"env":{"A":"b"},"budget_usd":1,"output_schema":{}}}`,
		`{"cmd":"message","id":"a","content":"x","deliver":"after","msg_id":"5f0c2a3e-0000-4000-8000-000000000001"}`,
		`{"cmd":"tool_result","id":"a","call":"c","content":"","is_error":true}`, `{"cmd":"approve","id":"a","ask":"q","allow":false,"reason":"no"}`,
		`{"cmd":"kill","id":"a"}`, `{"cmd":"list","req":1e5}`, `{"cmd":"shutdown"}`, `{"cmd":null,"req":"1"}`, `[`, "\xff", `{"cmd":"\ud800"}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		c := parse(line)
		if (c.fault == nil) == (c.do == nil) {
			t.Fatalf("%q: fault %v, action %v", line, c.fault, c.do != nil)
		}
		if len(c.req) > longestReq || len(c.id) > 128 || c.req != nil && !json.Valid(c.req) {
			t.Fatalf("%q: req %q, id %q", line, c.req, c.id)
		}
		if c.fault != nil {
			text := encode(head{Event: "error", Seq: 1, ID: c.id}, errorEvent{Message: c.fault.message, Code: c.fault.code, Req: c.req})
			if !json.Valid(text) {
				t.Fatalf("%q: %s", line, text)
			}
		}
	})
}
