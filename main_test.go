package dialai_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMainJob runs README's first command and compares what it prints, byte for
// byte but for the session's id, with testdata/round-log.txt. Then it looks for
// the session in the store.
func TestMainJob(t *testing.T) {
	want, err := os.ReadFile("testdata/round-log.txt")
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "XDG_DATA_HOME="+filepath.Join(t.TempDir(), "data"), "NO_COLOR=1")
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("go", append([]string{"run", "./cmd/dialai"}, args...)...)
		cmd.Env = env
		var out, message bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &message
		if err := cmd.Run(); err != nil || message.Len() > 0 {
			t.Fatalf("dialai %v: %v\n%s", args, err, message.String())
		}
		return out.String()
	}
	printed := run("machines/document-review.json")
	id := idPattern.FindString(printed)
	if got := strings.Replace(printed, id, "<id>", 1); got != string(want) {
		t.Errorf("it prints\n%s\nwant\n%s", got, want)
	}
	for _, args := range [][]string{{"sessions"}, {"show", id}, {"log", id, "--json"}} {
		if out := run(args...); !strings.Contains(out, id[:8]) {
			t.Errorf("dialai %s does not show the session:\n%s", strings.Join(args, " "), out)
		}
	}
}
