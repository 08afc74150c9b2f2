package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestVerifyPrintsNoDamageRaw: what stands in a damaged store may be anything, and what
// verify and rebuild say of it holds nothing that a terminal obeys.
func TestVerifyPrintsNoDamageRaw(t *testing.T) {
	h := newHome(t)
	h.file("m.json", crossroads)
	h.run(3, "run", "m.json", "--store", "s.db", "--quiet")
	path := filepath.Join(h.dir, "s.db")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out, _ := h.run(0, "sessions", "--store", "s.db", "--json")
	out, _ = h.run(0, "show", first(t, `"sessionId":"([^"]+)"`, out), "--store", "s.db", "--json")
	digest := first(t, `"machineDigest":"([0-9a-f]{64})"`, out)
	const hostile = "\x1b[2J\u009b31m\u202e"
	damaged := bytes.ReplaceAll(data, []byte(digest[:len(hostile)]), []byte(hostile))
	if bytes.Equal(damaged, data) {
		t.Fatalf("the file does not hold %s", digest)
	}
	if err := os.WriteFile(path, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"verify", "rebuild"} {
		for _, form := range []string{"--json=false", "--json"} {
			out, errs := h.run(1, "store", command, "--store", "s.db", form)
			if !strings.Contains(out+errs, digest[len(hostile):]) {
				t.Errorf("%s %s does not name what is damaged:\n%s%s", command, form, out, errs)
			}
			if strings.ContainsAny(out+errs, "\x1b\u009b\u202e") {
				t.Errorf("%s %s prints it raw: %q %q", command, form, out, errs)
			}
		}
	}
}
