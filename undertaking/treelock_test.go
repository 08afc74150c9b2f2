package undertaking_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dialai/dialai/undertaking"
)

func lockTree(t *testing.T, dir, cwd, session string) (unlock func() error) {
	t.Helper()
	unlock, err := undertaking.LockTree(dir, cwd, session)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unlock() })
	return unlock
}

// refusesTree fails the test unless a lock is refused, with an error that has all of the words.
func refusesTree(t *testing.T, dir, cwd string, words ...string) {
	t.Helper()
	unlock, err := undertaking.LockTree(dir, cwd, "later")
	if err == nil {
		unlock()
		t.Errorf("two undertakings are in %s", cwd)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v, want %q", cwd, err, word)
		}
	}
}

// TestLockTree: a tree is locked whichever way it is named, with git or without; other
// trees are not.
func TestLockTree(t *testing.T) {
	r := newRepo(t)
	locks := filepath.Join(t.TempDir(), "cache", "trees")
	beside := addWorktree(t, r.dir, "w")
	inner := r.in(r.path("inner"))
	nested(inner, "1")
	link := filepath.Join(realTemp(t), "link")
	r.must(os.Symlink(r.dir, link))
	r.must(os.MkdirAll(r.path("other"), 0o755))
	for _, path := range []string{os.Getenv("PATH"), ""} {
		t.Setenv("PATH", path)
		unlock := lockTree(t, locks, r.path("sub"), "session-1")
		for _, cwd := range []string{r.dir, r.path("sub"), r.path("other"), link, filepath.Join(link, "sub"), r.dir + "/../project/."} {
			refusesTree(t, locks, cwd, `"session-1"`, r.dir)
		}
		refusesTree(t, locks, filepath.Dir(r.dir), "below")
		other := lockTree(t, locks, filepath.Join(beside, "sub"), "session-2")
		r.must(os.MkdirAll(filepath.Join(beside, "other"), 0o755))
		refusesTree(t, locks, filepath.Join(beside, "other"), `"session-2"`)
		r.must(other())
		lockTree(t, locks, inner.dir, "session-3")()
		r.must(unlock())
		next := lockTree(t, locks, link, "session-4")
		r.must(unlock()) // once more: it is not its own any more
		refusesTree(t, locks, r.dir, `"session-4"`)
		r.must(next())
	}
	if _, err := os.Stat(r.path("cache")); err == nil || treeOf(t, r.path("sub")).Dirty {
		t.Error("locks are inside of the tree")
	}
}

// TestLockTreeOutsideOfGit: a tree is all that is below a folder.
func TestLockTreeOutsideOfGit(t *testing.T) {
	r := newRepo(t).in(realTemp(t))
	locks := t.TempDir()
	r.write("a/b/c/file", "")
	r.write("d/file", "")
	unlock := lockTree(t, locks, r.path("a/b"), "session-1")
	refusesTree(t, locks, r.path("a/b"), `"session-1"`)
	refusesTree(t, locks, r.path("a/b/c"), `"session-1"`)
	refusesTree(t, locks, r.path("a"), "below "+r.path("a"))
	refusesTree(t, locks, r.dir, "below")
	lockTree(t, locks, r.path("d"), "session-2")()
	r.must(unlock())
	lockTree(t, locks, r.dir, "session-3")
	refusesTree(t, locks, r.path("a/b"), `"session-3"`)
}

// TestLockTreeEndsWithItsProcess: however a process ends, its lock goes, and its name.
func TestLockTreeEndsWithItsProcess(t *testing.T) {
	locks, tree := t.TempDir(), realTemp(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestLockTreeHolder$", "-test.v")
	cmd.Env = append(os.Environ(), "DIALAI_TEST_LOCKS="+locks, "DIALAI_TEST_TREE="+tree)
	stdin, _ := cmd.StdinPipe() // which it waits for
	defer stdin.Close()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "locked" {
	}
	refusesTree(t, locks, tree, `"session-1"`)
	cmd.Process.Kill()
	cmd.Wait()
	unlock := lockTree(t, locks, tree, "session-2")
	refusesTree(t, locks, tree, `"session-2"`)
	unlock()
	lockTree(t, locks, tree, "")
	refusesTree(t, locks, tree, "another undertaking works in "+tree)
}

// TestLockTreeHolder is the process of the test above.
func TestLockTreeHolder(t *testing.T) {
	if os.Getenv("DIALAI_TEST_LOCKS") == "" {
		t.Skip("only as a process of TestLockTreeEndsWithItsProcess")
	}
	if _, err := undertaking.LockTree(os.Getenv("DIALAI_TEST_LOCKS"), os.Getenv("DIALAI_TEST_TREE"), "session-1"); err != nil {
		t.Fatal(err)
	}
	fmt.Println("locked")
	os.Stdin.Read(make([]byte, 1))
}
