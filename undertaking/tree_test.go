package undertaking_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/undertaking"
)

func treeOf(t *testing.T, dir string) undertaking.Tree {
	t.Helper()
	tree, err := undertaking.TreeOf(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestTreeOf(t *testing.T) {
	r := newRepo(t)
	clean := treeOf(t, r.dir)
	if want := (undertaking.Tree{Top: r.dir, Head: r.git("rev-parse", "HEAD"), Digest: clean.Digest}); clean != want || len(clean.Digest) != 64 {
		t.Fatalf("%+v, want %+v", clean, want)
	}
	link := filepath.Join(realTemp(t), "link")
	r.must(os.Symlink(r.dir, link))
	for _, dir := range []string{r.path("sub"), link, filepath.Join(link, "sub")} {
		if got := treeOf(t, dir); got != clean {
			t.Errorf("%s: %+v, want %+v", dir, got, clean)
		}
	}
	r.write("ignored.o", "x")
	if got := treeOf(t, r.dir); got != clean {
		t.Errorf("an ignored file counts: %+v", got)
	}
	t.Setenv("GIT_DIR", filepath.Join(t.TempDir(), "elsewhere"))
	t.Setenv("GIT_INDEX_FILE", filepath.Join(t.TempDir(), "index"))
	if got := treeOf(t, r.dir); got != clean {
		t.Errorf("a variable leads elsewhere: %+v", got)
	}
}

// TestTreeDigest: each change of what there is to commit gives another digest, and to undo it
// gives the first again.
func TestTreeDigest(t *testing.T) {
	r := newRepo(t)
	r.must(os.Symlink("README", r.path("link")))
	r.write("odd \"name\n\xff", "odd")
	r.write("hidden", "h")
	r.commit("Add")
	r.git("config", "status.showUntrackedFiles", "no")
	r.write(".git/monitor", "#!/bin/sh\ntouch "+r.path(".git/monitored")+"\n")
	r.must(os.Chmod(r.path(".git/monitor"), 0o755))
	r.git("config", "core.fsmonitor", r.path(".git/monitor"))
	r.git("status") // which starts it
	r.must(os.Remove(r.path(".git/monitored")))
	clean := treeOf(t, r.dir)
	if _, err := os.Stat(r.path(".git/monitored")); err == nil {
		t.Error("a program of the repository's settings ran")
	}
	met := map[string]string{clean.Digest: "clean"}
	for _, c := range []struct {
		name string
		do   func()
	}{
		{"content", func() { r.write("README", "ONE\n") }},
		{"other content", func() { r.write("README", "0ne\n") }},
		{"staged", func() { r.write("sub/file", "x"); r.git("add", "-A") }},
		{"untracked", func() { r.write("new", "") }},
		{"untracked elsewhere", func() { r.write("sub/new", "") }},
		{"untracked, more in it", func() { r.write("new", "n") }},
		{"two untracked", func() { r.write("new", "n"); r.write("new2", "") }},
		{"mode", func() { r.must(os.Chmod(r.path("README"), 0o755)) }},
		{"content and mode", func() { r.write("README", "ONE\n"); r.must(os.Chmod(r.path("README"), 0o755)) }},
		{"deleted", func() { r.must(os.Remove(r.path("README"))) }},
		{"renamed", func() { r.git("mv", "README", "readme") }},
		{"link", func() { r.must(os.Remove(r.path("link"))); r.must(os.Symlink("sub", r.path("link"))) }},
		{"link to nowhere", func() { r.must(os.Remove(r.path("link"))); r.must(os.Symlink("nowhere", r.path("link"))) }},
		{"link to a file", func() { r.must(os.Remove(r.path("link"))); r.write("link", "README") }},
		{"folder to a file", func() { r.must(os.RemoveAll(r.path("sub"))); r.write("sub", "") }},
		{"folder to a link", func() { r.must(os.RemoveAll(r.path("sub"))); r.must(os.Symlink(os.TempDir(), r.path("sub"))) }},
		{"odd name", func() { r.write("odd \"name\n\xff", "even") }},
		{"what git was told not to see", func() { r.git("update-index", "--assume-unchanged", "hidden"); r.write("hidden", "i") }},
		{"what git was told to skip", func() { r.git("update-index", "--skip-worktree", "hidden"); r.write("hidden", "j") }},
		{"a repository inside", func() { nested(r.in(r.path("inner")), "1") }},
		{"a repository inside, at another commit", func() { nested(r.in(r.path("inner")), "1", "2") }},
		{"a file in a repository inside", func() { nested(r.in(r.path("inner")), "1"); r.write("inner/file", "changed") }},
	} {
		c.do()
		got := treeOf(t, r.dir)
		if !got.Dirty || got.Head != clean.Head {
			t.Errorf("%s: %+v", c.name, got)
		}
		if other := met[got.Digest]; other != "" {
			t.Errorf("%s: the digest is that of %q", c.name, other)
		}
		met[got.Digest] = c.name
		if again := treeOf(t, r.dir); again != got {
			t.Errorf("%s: looking again, %+v, want %+v", c.name, again, got)
		}
		r.git("update-index", "--no-assume-unchanged", "hidden")
		r.git("update-index", "--no-skip-worktree", "hidden")
		r.git("reset", "-q", "--hard")
		r.git("clean", "-q", "-ffd")
		if got := treeOf(t, r.dir); got != clean {
			t.Fatalf("%s, undone: %+v, want %+v", c.name, got, clean)
		}
	}
	r.commit("Nothing")
	if got := treeOf(t, r.dir); got.Digest == clean.Digest || got.Head == clean.Head || got.Dirty {
		t.Errorf("after a commit: %+v, before: %+v", got, clean)
	}
}

// TestTreeStaysInside: what lies behind a link to elsewhere is no part of the tree.
func TestTreeStaysInside(t *testing.T) {
	r := newRepo(t)
	outside := r.in(realTemp(t))
	outside.write("file", "1")
	r.must(os.RemoveAll(r.path("sub")))
	r.must(os.Symlink(outside.dir, r.path("sub")))
	before := treeOf(t, r.dir)
	outside.write("file", "2")
	if after := treeOf(t, r.dir); after != before || !before.Dirty {
		t.Errorf("%+v, before %+v", after, before)
	}
}

// nested makes a repository inside another one, with a commit for each subject, whose ids do not
// depend on when.
func nested(r repo, subjects ...string) {
	r.write("file", "same")
	r.t.Setenv("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z")
	r.t.Setenv("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z")
	r.git("init", "-q")
	for _, s := range subjects {
		r.commit(s)
	}
}

func TestTreeBeforeTheFirstCommit(t *testing.T) {
	r := newRepo(t).in(realTemp(t))
	r.git("init", "-q")
	empty := treeOf(t, r.dir)
	if empty.Head != "" || empty.Dirty || empty.Top != r.dir {
		t.Errorf("%+v", empty)
	}
	r.write("file", "x")
	if got := treeOf(t, r.dir); !got.Dirty || got.Digest == empty.Digest {
		t.Errorf("%+v", got)
	}
	commits, stat, err := empty.Since(t.Context(), "")
	if err != nil || len(commits) != 0 || stat != "" {
		t.Errorf("%q %q %v", commits, stat, err)
	}
	r.commit("First")
	commits, stat, err = treeOf(t, r.dir).Since(t.Context(), "")
	if err != nil || !slices.Equal(commits, []string{"First"}) || !strings.Contains(stat, "file | 1 +") {
		t.Errorf("%q %q %v", commits, stat, err)
	}
}

// TestTreeWithoutGit: where there is no program git, or no repository, all files count.
func TestTreeWithoutGit(t *testing.T) {
	r := newRepo(t)
	inside, outside := r.dir, r.in(realTemp(t))
	outside.write("a/b", "1")
	plain := treeOf(t, outside.dir)
	t.Setenv("PATH", "")
	if got := treeOf(t, outside.dir); got != plain {
		t.Errorf("without git %+v, with it %+v", got, plain)
	}
	for _, r := range []repo{r.in(inside), outside} {
		before := treeOf(t, r.dir)
		if before.Top != "" || before.Head != "" || before.Dirty || len(before.Digest) != 64 {
			t.Errorf("%+v", before)
		}
		r.write("sub/deeper/new", "")
		after := treeOf(t, r.dir)
		r.write("sub/deeper/new", "1")
		if more := treeOf(t, r.dir); before.Digest == after.Digest || after.Digest == more.Digest {
			t.Errorf("the digest stays the same: %q %q %q", before.Digest, after.Digest, more.Digest)
		}
		if commits, stat, err := before.Since(t.Context(), ""); commits != nil || stat != "" || err != nil {
			t.Errorf("%q %q %v", commits, stat, err)
		}
	}
	before := treeOf(t, inside)
	r.write(".git/index", "as programs do that only look")
	if after := treeOf(t, inside); after != before {
		t.Errorf("what git keeps for itself counts: %+v, %+v", before, after)
	}
}

func TestTreeProblems(t *testing.T) {
	r := newRepo(t)
	if _, err := undertaking.TreeOf(t.Context(), r.path("none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	if _, err := undertaking.TreeOf(t.Context(), r.path(".git")); err == nil || !strings.Contains(err.Error(), "work tree") {
		t.Errorf("the folder of a repository: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, dir := range []string{r.dir, t.TempDir()} {
		if _, err := undertaking.TreeOf(ctx, dir); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, cancelled: %v", dir, err)
		}
	}
}

func TestTreeBrokenWorktree(t *testing.T) {
	dir := newRepo(t).in(realTemp(t))
	dir.write(".git", "gitdir: /nowhere/.git/worktrees/gone\n")
	if got, err := undertaking.TreeOf(t.Context(), dir.dir); err == nil || !strings.Contains(err.Error(), "/nowhere") {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestTreeSince(t *testing.T) {
	r := newRepo(t)
	first := treeOf(t, r.dir)
	if commits, stat, err := first.Since(t.Context(), first.Head); len(commits) != 0 || stat != "" || err != nil {
		t.Errorf("nothing happened: %q %q %v", commits, stat, err)
	}
	r.git("config", "color.ui", "always")
	r.git("config", "log.showSignature", "true")
	r.git("config", "diff.external", "false")
	r.git("config", "i18n.logOutputEncoding", "ISO-8859-1")
	r.write("README", "1\n2\n")
	r.commit("Write ä; $(touch x)")
	r.commit("Write\n\nmore")
	r.write("sub/file", "not committed\n")
	tree := treeOf(t, r.dir)
	commits, stat, err := tree.Since(t.Context(), first.Head)
	if err != nil || !slices.Equal(commits, []string{"Write", "Write ä; $(touch x)"}) {
		t.Errorf("%q %v", commits, err)
	}
	for _, want := range []string{" README   | 3 ++-\n", " sub/file | 2 +-\n", " 2 files changed, 3 insertions(+), 2 deletions(-)\n"} {
		if !strings.Contains(stat, want) {
			t.Errorf("the stat is %q, without %q", stat, want)
		}
	}
	all, _, err := tree.Since(t.Context(), "")
	if want := append(slices.Clone(commits), "Begin"); err != nil || !reflect.DeepEqual(all, want) {
		t.Errorf("%q %v, want %q", all, err, want)
	}
	for _, head := range []string{"--output=x", "main", strings.Repeat("0", 40)} {
		if _, _, err := tree.Since(t.Context(), head); err == nil {
			t.Errorf("%q is taken for a commit", head)
		}
	}
}

func TestTreeSinceIsBounded(t *testing.T) {
	r := newRepo(t)
	head := treeOf(t, r.dir).Head
	for i := range 300 {
		r.write(fmt.Sprintf("%s/%03d-ä", strings.Repeat("long", 20), i), "x\n")
	}
	for i := range 60 {
		r.commit(fmt.Sprint(i))
	}
	commits, stat, err := treeOf(t, r.dir).Since(t.Context(), head)
	if err != nil || len(commits) != 50 || commits[0] != "59" || commits[49] != "10" {
		t.Errorf("%q %v", commits, err)
	}
	if len(stat) > 4<<10 || !strings.HasSuffix(stat, "300 files changed, 300 insertions(+)\n") {
		t.Errorf("%d bytes: %s", len(stat), stat)
	}
}
