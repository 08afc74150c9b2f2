package e2e_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestOthersStartNoServer: a command that serves nothing opens nothing of a server, and what
// there is of one in the program costs it next to nothing: what packages of the server and
// those that only it needs do before main is bounded, in bytes.
func TestOthersStartNoServer(t *testing.T) {
	d := newDesk(t)
	cmd := d.command("run", "question.json")
	cmd.Env = append(d.env, "GODEBUG=inittrace=1")
	var traced bytes.Buffer
	cmd.Stderr = &traced
	d.exits(cmd.Run(), 3, &traced)
	own, libraries := 0, 0
	for _, m := range regexp.MustCompile(`(?m)^init (\S+) @.* (\d+) bytes, `).FindAllStringSubmatch(traced.String(), -1) {
		n, err := strconv.Atoi(m[2])
		d.must(err)
		switch path, ours := strings.CutPrefix(m[1], "github.com/dialai/dialai/"); {
		case ours && regexp.MustCompile(`^(server|control|driver|client|notify|api|internal/(issuer|seal|proxy|telemetry/.*)|cli/internal/(serving|remote))\b`).MatchString(path):
			own += n
		case regexp.MustCompile(`danielgtaylor/huma|/prometheus/|modelcontextprotocol|coreos/go-oidc|go-jose|golang.org/x/oauth2`).MatchString(m[1]):
			libraries += n
		}
	}
	t.Logf("before main: %d bytes of ours, %d of libraries", own, libraries)
	if own == 0 || own > 40<<10 || libraries == 0 || libraries > 600<<10 {
		t.Errorf("before main the server's packages allocate %d bytes, and its libraries %d:\n%s", own, libraries, traced.String())
	}
	files, err := os.ReadDir(filepath.Dir(d.store))
	d.must(err)
	for _, f := range files {
		if strings.Contains(f.Name(), "control") || strings.Contains(f.Name(), "key") || strings.Contains(f.Name(), "driv") {
			t.Errorf("a run has made %s", f.Name())
		}
	}
}
