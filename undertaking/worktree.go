package undertaking

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// An undertaking may have a working tree of its own, beside the one that it was started in, on a
// branch of its own. The branch that it came from is written into the settings of the
// repository, under the new branch (branch.NAME.dialai-base). By that it is known later whether
// all of the work has got there. Nothing here merges; that is for people.
//
// What is there twice is made and removed under a lock file in the folder of the repository, so
// that undertakings which begin at once do not run into each other.

const (
	worktreeBranches = "dialai/" // and the id
	worktreeBase     = "dialai-base"
)

var worktreeID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// AddWorktree makes a working tree for an undertaking beside that of cwd, on the new branch
// dialai/ID, at the commit that is checked out in cwd. It returns where cwd is in the new tree.
// The error says what to do; nothing is left then. Submodules are not checked out.
func AddWorktree(ctx context.Context, cwd, id string) (path string, err error) {
	if !worktreeID.MatchString(id) {
		return "", fmt.Errorf("%q cannot name a working tree", id)
	}
	dir, err := resolve(cwd)
	if err != nil {
		return "", err
	}
	top, err := topOf(ctx, dir)
	if err != nil {
		return "", fmt.Errorf("a working tree beside %s: %w: go on without one, in the folder as it is", dir, err)
	}
	inside, err := filepath.Rel(top, dir)
	if err != nil {
		return "", err
	}
	unlock, err := lockRepository(ctx, top)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	w := worktree{filepath.Join(filepath.Dir(top), filepath.Base(top)+"-dialai-"+id), worktreeBranches + id}
	if err = w.add(ctx, top); err != nil {
		return "", fmt.Errorf("a working tree beside %s: %w", top, err)
	}
	path = filepath.Join(w.path, inside)
	return path, os.MkdirAll(path, 0o755) // git has no empty folders
}

// A worktree is where one is made, and its branch.
type worktree struct{ path, branch string }

func (w worktree) setting() string { return "branch." + w.branch + "." + worktreeBase }

// add makes the working tree beside another one.
func (w worktree) add(ctx context.Context, top string) error {
	head, err := headOf(ctx, top)
	if err != nil {
		return err
	}
	if head == "" {
		return errors.New("there is no commit yet that it could begin with: commit first, or go on without one")
	}
	base, err := checkedOut(ctx, top)
	if err != nil {
		return err
	}
	if base == "" {
		base = head
	}
	if err := w.isFree(ctx, top); err != nil {
		return err
	}
	if _, err := git(ctx, top, "worktree", "add", "--quiet", "-b", w.branch, w.path, head); err != nil {
		return errors.Join(fmt.Errorf("%w; go on without one, or mend that", err), w.forget(ctx, top, head))
	}
	if _, err := git(ctx, top, "config", w.setting(), base); err != nil {
		_, gone := git(context.WithoutCancel(ctx), top, "worktree", "remove", "--force", w.path) // nobody has seen it
		return errors.Join(err, gone, w.forget(ctx, top, head))
	}
	return nil
}

// isFree returns an error if something has the path or the branch.
func (w worktree) isFree(ctx context.Context, top string) error {
	if _, err := os.Lstat(w.path); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is there already: move it away", w.path)
	}
	taken, err := gitSays(ctx, top, "show-ref", "--verify", "--quiet", "refs/heads/"+w.branch)
	if taken {
		return fmt.Errorf("there is a branch %s already: rename it (git branch -m)", w.branch)
	}
	return err
}

// forget deletes the branch of a working tree that could not be made, if it has nothing but
// the commit that it began with.
func (w worktree) forget(ctx context.Context, top, head string) error {
	ctx = context.WithoutCancel(ctx)
	if made, err := gitSays(ctx, top, "show-ref", "--verify", "--quiet", "refs/heads/"+w.branch); err != nil || !made {
		return err
	}
	_, err := git(ctx, top, "update-ref", "-d", "refs/heads/"+w.branch, head)
	return err
}

// RemoveWorktree removes a working tree that [AddWorktree] has made, by the path of any folder
// in it, unless it holds work: files that are changed or untracked, or commits that are not in
// the branch that it came from. If it is not removed, why says so. Its branch stays, and files
// that git ignores go.
func RemoveWorktree(ctx context.Context, path string) (removed bool, why string, err error) {
	dir, err := resolve(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, "it is not there any more", nil
	}
	if err != nil {
		return false, "", err
	}
	top, err := topOf(ctx, dir)
	if err != nil {
		return false, "", fmt.Errorf("%s: %w", path, err)
	}
	repository, err := commonFolder(ctx, top)
	if err != nil {
		return false, "", err
	}
	unlock, err := lockRepository(ctx, top)
	if err != nil {
		return false, "", err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if why, err = heldBack(ctx, top); err != nil || why != "" {
		return false, why, err
	}
	_, err = git(ctx, repository, "worktree", "remove", top) // which looks for changes once more
	return err == nil, "", err
}

// heldBack says why a working tree is not removed, "" if nothing in it would be lost.
func heldBack(ctx context.Context, top string) (why string, err error) {
	paths, err := changedFiles(ctx, top)
	if err != nil {
		return "", err
	}
	if len(paths) > 0 {
		return fmt.Sprintf("it holds %d files that are not committed (%s)", len(paths), strings.Join(paths[:min(3, len(paths))], ", ")), nil
	}
	branch, err := checkedOut(ctx, top)
	if err != nil {
		return "", err
	}
	name, ours := strings.CutPrefix(branch, "refs/heads/"+worktreeBranches)
	if !ours {
		return "its branch was not made for an undertaking", nil
	}
	w := worktree{top, worktreeBranches + name}
	if set, err := gitSays(ctx, top, "config", "--get", w.setting()); err != nil || !set {
		return "nobody knows which branch it came from", err
	}
	base, err := gitLine(ctx, top, "config", "--get", w.setting())
	if err != nil {
		return "", err
	}
	return w.unmerged(ctx, base)
}

// unmerged says which branch does not have all commits of a working tree, "" if it has.
func (w worktree) unmerged(ctx context.Context, base string) (why string, err error) {
	there, err := gitSays(ctx, w.path, "rev-parse", "--verify", "--quiet", "--end-of-options", base+"^{commit}")
	if err != nil {
		return "", err
	}
	base = strings.TrimPrefix(base, "refs/heads/")
	if !there {
		return fmt.Sprintf("%s, which it came from, is not there any more", base), nil
	}
	merged, err := gitSays(ctx, w.path, "merge-base", "--is-ancestor", "HEAD", base)
	if err != nil || merged {
		return "", err
	}
	return fmt.Sprintf("%s has commits that are not in %s", w.branch, base), nil
}

// checkedOut returns the branch that is checked out (refs/heads/…), "" if it is a commit.
func checkedOut(ctx context.Context, top string) (string, error) {
	if on, err := gitSays(ctx, top, "symbolic-ref", "--quiet", "HEAD"); err != nil || !on {
		return "", err
	}
	return gitLine(ctx, top, "symbolic-ref", "HEAD")
}

// commonFolder returns the folder that all working trees of a repository have in common.
func commonFolder(ctx context.Context, top string) (string, error) {
	dir, err := gitLine(ctx, top, "rev-parse", "--git-common-dir")
	if dir = filepath.FromSlash(dir); !filepath.IsAbs(dir) {
		dir = filepath.Join(top, dir)
	}
	return dir, err
}

// lockRepository waits until nobody else adds or removes working trees.
func lockRepository(ctx context.Context, top string) (unlock func() error, err error) {
	dir, err := commonFolder(ctx, top)
	if err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(dir, "dialai.lock")) // it stays: to remove it would let two in
	if _, err := lock.TryLockContext(ctx, 20*time.Millisecond); err != nil {
		return nil, fmt.Errorf("locking %s: %w", lock.Path(), err)
	}
	return lock.Unlock, nil
}
