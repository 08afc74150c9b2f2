package undertaking_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/dialai/dialai/undertaking"
)

func addWorktree(t *testing.T, cwd, id string) string {
	t.Helper()
	path, err := undertaking.AddWorktree(t.Context(), cwd, id)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAddWorktree(t *testing.T) {
	r := newRepo(t)
	r.write(".git/hooks/post-checkout", "#!/bin/sh\ntouch "+r.path("hooked")+"\n")
	r.must(os.Chmod(r.path(".git/hooks/post-checkout"), 0o755))
	r.must(os.MkdirAll(r.path("empty/folder"), 0o755))
	r.git("config", "branch.autoSetupMerge", "always")
	want := r.dir + "-dialai-a1"
	if got := addWorktree(t, r.path("empty/folder"), "a1"); got != want+"/empty/folder" {
		t.Errorf("%s, want below %s", got, want)
	}
	if _, err := os.Stat(want + "/empty/folder"); err != nil {
		t.Error(err)
	}
	made, from := treeOf(t, want), treeOf(t, r.dir)
	if made.Top != want || made.Head != from.Head || made.Digest != from.Digest || made.Dirty {
		t.Errorf("%+v, beside %+v", made, from)
	}
	if branch := r.in(want).git("branch", "--show-current"); branch != "dialai/a1" {
		t.Errorf("the branch is %q", branch)
	}
	if base := r.git("config", "branch.dialai/a1.dialai-base"); base != "refs/heads/main" {
		t.Errorf("it came from %q", base)
	}
	if _, err := os.Stat(r.path("hooked")); err == nil {
		t.Error("a hook ran")
	}
	if got := r.git("config", "--get-regexp", `branch\.dialai/a1\..*`); strings.Contains(got, "merge") {
		t.Errorf("a push would go to the branch that it came from: %s", got)
	}
}

// TestAddWorktreeAtOnce: undertakings that begin at once all get a tree.
func TestAddWorktreeAtOnce(t *testing.T) {
	r := newRepo(t)
	errs := make([]error, 8)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { _, errs[i] = undertaking.AddWorktree(t.Context(), r.dir, fmt.Sprint("u", i)) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	if n := strings.Count(r.git("worktree", "list"), "\n"); n != len(errs) {
		t.Errorf("there are %d working trees", n)
	}
}

func TestAddWorktreeProblems(t *testing.T) {
	r := newRepo(t)
	unborn := r.in(realTemp(t))
	unborn.git("init", "-q")
	r.git("branch", "dialai/taken")
	r.write("../project-dialai-there/file", "")
	for _, c := range []struct{ dir, id, want string }{
		{r.dir, "taken", "there is a branch dialai/taken already: rename it"},
		{r.dir, "there", "project-dialai-there is there already: move it away"},
		{r.dir, "../x", "cannot name a working tree"},
		{r.dir, "-b", "cannot name a working tree"},
		{r.dir, "", "cannot name a working tree"},
		{r.dir, "a..b", "not a valid branch name"},
		{unborn.dir, "a", "there is no commit yet that it could begin with: commit first"},
		{t.TempDir(), "a", "it is not in a git repository: go on without one"},
		{r.path("none"), "a", "no such file"},
	} {
		if _, err := undertaking.AddWorktree(t.Context(), c.dir, c.id); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: %v, want %q", c.dir, c.id, err, c.want)
		}
	}
	t.Setenv("PATH", "")
	if _, err := undertaking.AddWorktree(t.Context(), r.dir, "a"); err == nil || !strings.Contains(err.Error(), "there is no program git in PATH") {
		t.Errorf("without git: %v", err)
	}
}

// TestAddWorktreeLeavesNothing: when files cannot be written, neither folder nor branch stays.
func TestAddWorktreeLeavesNothing(t *testing.T) {
	r := newRepo(t)
	r.write(".gitattributes", "README filter=broken\n")
	r.commit("Filter")
	r.git("config", "filter.broken.smudge", "false")
	r.git("config", "filter.broken.required", "true")
	_, err := undertaking.AddWorktree(t.Context(), r.dir, "a")
	if err == nil || !strings.Contains(err.Error(), "smudge filter broken failed") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := undertaking.AddWorktree(ctx, r.dir, "b"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if got := r.git("branch", "--list", "dialai/*"); got != "" {
		t.Errorf("branches stay: %s", got)
	}
	if got := r.git("worktree", "list"); strings.Contains(got, "\n") {
		t.Errorf("working trees stay: %s", got)
	}
	if left, _ := filepath.Glob(r.dir + "-*"); len(left) > 0 {
		t.Errorf("%q stay", left)
	}
}

// TestRemoveWorktreeKeepsWork: a working tree is never removed while it holds work.
func TestRemoveWorktreeKeepsWork(t *testing.T) {
	for _, c := range []struct {
		name, want string
		do         func(main, r repo)
	}{
		{"changed", "1 files that are not committed (README)", func(_, r repo) { r.write("README", "x") }},
		{"staged", "not committed (README)", func(_, r repo) { r.write("README", "x"); r.git("add", "-A") }},
		{"renamed", "2 files that are not committed (README, readme)", func(_, r repo) { r.git("mv", "README", "readme") }},
		{"untracked", "not committed (sub/new)", func(_, r repo) { r.write("sub/new", "") }},
		{"untracked, and git told not to show it", "not committed (new)", func(_, r repo) { r.git("config", "status.showUntrackedFiles", "no"); r.write("new", "") }},
		{"hidden from git", "not committed (README)", func(_, r repo) {
			r.git("update-index", "--assume-unchanged", "README")
			r.write("README", "x")
		}},
		{"a repository inside", "not committed (inner)", func(_, r repo) { nested(r.in(r.path("inner")), "1") }},
		{"not merged", "dialai/w has commits that are not in main", func(_, r repo) { r.commit("Work") }},
		{"merged in part", "dialai/w has commits that are not in main", func(main, r repo) {
			r.commit("Work")
			main.git("merge", "-q", "dialai/w")
			r.commit("More")
		}},
		{"not merged, and where it came from is gone", "main, which it came from, is not there any more", func(main, r repo) {
			r.commit("Work")
			main.git("checkout", "-q", "-b", "other")
			main.git("branch", "-D", "main")
		}},
		{"a commit on no branch", "its branch was not made for an undertaking", func(_, r repo) { r.git("checkout", "-q", "--detach"); r.commit("Work") }},
		{"another branch", "its branch was not made for an undertaking", func(_, r repo) { r.git("checkout", "-q", "-b", "mine"); r.commit("Work") }},
		{"nobody knows", "nobody knows which branch it came from", func(_, r repo) { r.git("config", "--unset", "branch.dialai/w.dialai-base") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRepo(t)
			w := r.in(addWorktree(t, r.dir, "w"))
			c.do(r, w)
			removed, why, err := undertaking.RemoveWorktree(t.Context(), w.dir)
			if removed || err != nil || !strings.Contains(why, c.want) {
				t.Errorf("removed %t, %q, %v; want %q", removed, why, err, c.want)
			}
			if _, err := os.Stat(w.path(".git")); err != nil {
				t.Errorf("it is gone: %v", err)
			}
		})
	}
}

func TestRemoveWorktree(t *testing.T) {
	r := newRepo(t)
	w := r.in(addWorktree(t, r.dir, "w"))
	w.commit("Work")
	head := w.git("rev-parse", "HEAD")
	w.write("ignored.o", "")
	r.git("merge", "-q", "--no-ff", "-m", "Merge", "dialai/w")
	if removed, why, err := undertaking.RemoveWorktree(t.Context(), w.path("sub")); !removed || why != "" || err != nil {
		t.Errorf("%t %q %v", removed, why, err)
	}
	if _, err := os.Stat(w.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is there: %v", err)
	}
	if got := r.git("rev-parse", "dialai/w"); got != head {
		t.Errorf("the branch is at %s, not %s", got, head)
	}
	if removed, why, err := undertaking.RemoveWorktree(t.Context(), w.dir); removed || why != "it is not there any more" || err != nil {
		t.Errorf("again: %t %q %v", removed, why, err)
	}
}

// TestRemoveWorktreeOfACommit: one that came from no branch is removed only if it has no commits.
func TestRemoveWorktreeOfACommit(t *testing.T) {
	r := newRepo(t)
	r.git("checkout", "-q", "--detach")
	w := r.in(addWorktree(t, r.dir, "w"))
	w.commit("Work")
	if removed, why, err := undertaking.RemoveWorktree(t.Context(), w.dir); removed || !strings.Contains(why, "dialai/w has commits that are not in ") || err != nil {
		t.Errorf("%t %q %v", removed, why, err)
	}
	w.git("reset", "-q", "--hard", "HEAD^")
	if removed, why, err := undertaking.RemoveWorktree(t.Context(), w.dir); !removed || err != nil {
		t.Errorf("%t %q %v", removed, why, err)
	}
}

// TestRemoveWorktreeOfOthers: the tree that people work in is not removed, nor what is none.
func TestRemoveWorktreeOfOthers(t *testing.T) {
	r := newRepo(t)
	if removed, why, err := undertaking.RemoveWorktree(t.Context(), r.dir); removed || why == "" || err != nil {
		t.Errorf("%t %q %v", removed, why, err)
	}
	r.git("checkout", "-q", "-b", "dialai/x")
	r.git("config", "branch.dialai/x.dialai-base", "refs/heads/main")
	if removed, _, err := undertaking.RemoveWorktree(t.Context(), r.dir); removed || err == nil || !strings.Contains(err.Error(), "main working tree") {
		t.Errorf("%t %v", removed, err)
	}
	if removed, _, err := undertaking.RemoveWorktree(t.Context(), t.TempDir()); removed || err == nil {
		t.Errorf("%t %v", removed, err)
	}
}
