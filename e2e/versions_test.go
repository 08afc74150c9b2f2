package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// former is the commit whose program counts as the version before, the one that works beside this one while servers
// are brought up to date one after the other. It is raised with each release.
const former = "ee6ef657e3e318a3d2b745a9321ff03e3655d47f"

// formerProgram builds the program of the version before from the history of these sources.
func formerProgram(t *testing.T) string {
	t.Helper()
	if err := exec.Command("git", "cat-file", "-e", former+"^{commit}").Run(); err != nil {
		t.Skipf("the version before cannot be built: these sources come without the commit %s (git fetch --unshallow)", former)
	}
	dir := t.TempDir()
	for _, args := range [][]string{{"git", "-C", "..", "archive", "-o", filepath.Join(dir, "former.tar"), former}, {"tar", "-x", "-C", dir, "-f", filepath.Join(dir, "former.tar")}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v: %s", args, err, out)
		}
	}
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "dialai"), "./cmd/dialai")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the version before: %v: %s", err, out)
	}
	return filepath.Join(dir, "dialai")
}

// TestVersionsSideBySide is a server of the version before that goes on beside one of this version, which has migrated
// their database: either carries on and is told what the other has begun, also what the former writes after the
// migration, and once the former has ended nothing is left of it that verify names.
func TestVersionsSideBySide(t *testing.T) {
	if os.Getenv("DIALAI_FAULTS") == "" {
		t.Skip("building the version before takes minutes: DIALAI_FAULTS=1 go test ./e2e -run TestVersionsSideBySide does")
	}
	d, _ := newDatabase(t)
	was := *d
	was.program = formerProgram(t)
	before := was.serve()
	before.drives("driving", 20*time.Second)
	one := before.waits("one")

	now := d.serve()
	now.drives("driving", 20*time.Second)
	var done shown
	rules := func(by *served, q shown) {
		t.Helper()
		if by.rules(200, q, &done); done.Session.Status != "completed" {
			t.Errorf("ruled, the session is %+v", done)
		}
	}
	two, three, four := before.waits("two"), now.waits("three"), before.waits("four")
	rules(before, one)
	rules(now, two)
	rules(before, three)
	for _, s := range []*served{before, now} {
		var inbox struct{ Items []struct{ SessionID string } }
		if s.call(200, "GET", "/v1/inbox", nil, &inbox); len(inbox.Items) != 1 || inbox.Items[0].SessionID != four.Session.SessionID {
			t.Errorf("an inbox has %+v, want the session that the former version has left", inbox)
		}
	}
	before.end(syscall.SIGTERM, 0)
	rules(now, four)
	now.end(syscall.SIGTERM, 0)
	d.run(0, "store", "rebuild")
	if out, _ := d.run(0, "store", "verify"); !strings.Contains(out, "4 sessions") {
		t.Errorf("verify says\n%s", out)
	}
}
