package undertaking

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/dialai/dialai/internal/files"
)

// The digest of a working tree says whether anybody has changed anything: a worker that claims
// to have worked, a verifier that should only have looked. It is over HEAD and the files that
// differ from it, so that it costs as much as there is to commit. Outside of git it is over all
// files.
//
// Files are told by path, mode and content, symbolic links by what they point to. What git was
// told to take for unchanged is looked at like what is changed. A repository inside the tree
// counts by its own digest. Whatever cannot be read is an error: a digest that leaves files out
// would stay the same when those change.

// A Tree is a working tree as it was when [TreeOf] looked at it.
type Tree struct {
	Top    string // of the git repository that it is in, absolute, links resolved; "" if it is in none
	Head   string // the commit that is checked out; "" if there is none
	Dirty  bool   // files are changed or untracked, those aside that git ignores; false outside of git
	Digest string // SHA-256 over all of that, hexadecimal
}

// TreeOf looks at the working tree that a folder is in: all of its git repository, or, if it is
// in none or there is no git here, the folder and what is below it, folders named .git aside.
// The error names the files that cannot be read, at most ten of them.
func TreeOf(ctx context.Context, cwd string) (t Tree, err error) {
	dir, err := resolve(cwd)
	if err != nil {
		return t, err
	}
	t.Top, err = topOf(ctx, dir)
	if errors.Is(err, errNoGit) || errors.Is(err, errNoRepository) {
		t.Digest, err = digestFolder(ctx, dir)
		return t, err
	}
	if err != nil {
		return t, err
	}
	if t.Head, err = headOf(ctx, t.Top); err != nil {
		return t, err
	}
	paths, err := changedFiles(ctx, t.Top)
	if err != nil {
		return t, err
	}
	d := newDigester(t.Top, t.Head)
	for _, path := range paths {
		if err := d.add(ctx, path); err != nil {
			return t, err
		}
	}
	t.Dirty = len(paths) > 0
	t.Digest, err = d.sum()
	return t, err
}

// changedFiles returns the paths of what differs from HEAD or is untracked, in order.
func changedFiles(ctx context.Context, top string) (paths []string, err error) {
	out, warning, err := gitWarning(ctx, top, "status", "--porcelain", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=none")
	if err == nil && strings.Contains(warning, "could not open directory") { // and what is in it is left out
		err = &gitError{"status", warning, fs.ErrPermission}
	}
	if err != nil {
		return nil, err
	}
	for entry := range strings.SplitSeq(out, "\x00") {
		if len(entry) > 3 {
			paths = append(paths, filepath.FromSlash(strings.TrimSuffix(entry[3:], "/"))) // a repository ends with a slash
		}
	}
	hidden, err := hiddenFiles(ctx, top)
	paths = append(paths, hidden...)
	slices.Sort(paths)
	return slices.Compact(paths), err
}

// hiddenFiles returns the paths of files that are there and that git takes for unchanged because
// somebody told it so (update-index --assume-unchanged, --skip-worktree).
func hiddenFiles(ctx context.Context, top string) (paths []string, err error) {
	out, err := git(ctx, top, "ls-files", "-v", "-z")
	for entry := range strings.SplitSeq(out, "\x00") {
		if len(entry) < 3 || !strings.ContainsAny(entry[:1], "Shsmrck") {
			continue
		}
		path := filepath.FromSlash(entry[2:])
		if _, err := os.Lstat(filepath.Join(top, path)); err == nil {
			paths = append(paths, path)
		}
	}
	return paths, err
}

// digestFolder is the digest outside of git.
func digestFolder(ctx context.Context, dir string) (string, error) {
	d := newDigester(dir, "")
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return d.unreadable(err)
		case e.Name() == ".git" && path != dir && e.IsDir():
			return fs.SkipDir
		case e.IsDir():
			return ctx.Err()
		}
		path, err = filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return d.add(ctx, path)
	})
	if err != nil {
		return "", err
	}
	return d.sum()
}

// A digester makes the digest of a tree, file by file.
type digester struct {
	root   string
	all    hash.Hash
	errors []error // of files that cannot be read
}

func newDigester(root, head string) *digester {
	d := &digester{root: root, all: sha256.New()}
	fmt.Fprintf(d.all, "HEAD %s\n", head)
	return d
}

// sum returns the digest.
func (d *digester) sum() (string, error) {
	if len(d.errors) > 0 {
		return "", fmt.Errorf("the state of the working tree is not known, because of what cannot be read: %w", errors.Join(d.errors...))
	}
	return hex.EncodeToString(d.all.Sum(nil)), nil
}

// maxUnreadable is how many files an error names.
const maxUnreadable = 10

// unreadable notes a file that cannot be read; it returns an error once there are too many.
func (d *digester) unreadable(err error) error {
	if d.errors = append(d.errors, err); len(d.errors) < maxUnreadable {
		return nil
	}
	_, err = d.sum()
	return err
}

// add takes a file into the digest, by its path from the root.
func (d *digester) add(ctx context.Context, path string) error {
	mode, content, err := d.look(ctx, path)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return d.unreadable(err)
	}
	fmt.Fprintf(d.all, "%q %s %q\n", filepath.ToSlash(path), mode, content)
	return nil
}

// look returns the mode of a file, and what stands for its content.
func (d *digester) look(ctx context.Context, path string) (mode, content string, err error) {
	path = filepath.Join(d.root, path)
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	var info fs.FileInfo
	if err == nil {
		info, err = os.Lstat(path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), err == nil && dir != filepath.Dir(path):
		return "gone", "", nil // behind a link it is another file, which git does not follow either
	case err != nil:
		return "", "", err
	case info.IsDir():
		content, err = digestInside(ctx, path)
	case info.Mode()&fs.ModeSymlink != 0:
		content, err = os.Readlink(path)
	case info.Mode().IsRegular():
		content, err = digestFile(ctx, path)
	}
	return info.Mode().String(), content, err
}

// digestInside is the digest of a repository inside the tree.
func digestInside(ctx context.Context, dir string) (string, error) {
	if top, err := topOf(ctx, dir); err == nil && top != dir {
		return digestFolder(ctx, dir) // it is in the repository around it
	}
	t, err := TreeOf(ctx, dir)
	return t.Digest, err
}

// digestFile reads a file a piece at a time.
func digestFile(ctx context.Context, path string) (string, error) {
	f, err := files.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h, piece := sha256.New(), make([]byte, 64<<10)
	for ctx.Err() == nil {
		n, err := f.Read(piece)
		h.Write(piece[:n])
		if err == io.EOF {
			return string(h.Sum(nil)), nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", ctx.Err()
}

// Bounds of what a hand-over says of a tree.
const (
	maxCommits = 50
	maxStat    = 4 << 10 // bytes
)

var commitID = regexp.MustCompile(`^[0-9a-f]{40,64}$`)

// Since returns what has come of the tree since a commit was checked out, "" for none: the
// subjects of commits, newest first, at most 50; and a diff stat from that commit to the files
// as they are now, untracked ones aside, at most 4 KiB. Outside of git both are empty.
func (t Tree) Since(ctx context.Context, head string) (commits []string, stat string, err error) {
	if t.Top == "" {
		return nil, "", nil
	}
	if head != "" && !commitID.MatchString(head) {
		return nil, "", fmt.Errorf("%q is not the id of a commit", head)
	}
	if t.Head != "" {
		if commits, err = t.subjects(ctx, head); err != nil {
			return nil, "", err
		}
	}
	if head == "" { // everything is new to an empty tree
		if head, err = gitLine(ctx, t.Top, "hash-object", "-t", "tree", os.DevNull); err != nil {
			return nil, "", err
		}
	}
	stat, err = git(ctx, t.Top, "diff", "--stat=72,,40", "--no-color", "--no-ext-diff", "--no-textconv", head, "--")
	if len(stat) > maxStat {
		stat = strings.ToValidUTF8(stat[:maxStat], "")
	}
	return commits, stat, err
}

// subjects returns those of the commits that head does not have.
func (t Tree) subjects(ctx context.Context, head string) ([]string, error) {
	args := []string{"log", "--format=%s", "-n", fmt.Sprint(maxCommits), "--no-color", "--no-show-signature", t.Head}
	if head != "" {
		args = append(args, "^"+head)
	}
	out, err := git(ctx, t.Top, append(args, "--")...)
	if err != nil || out == "" {
		return nil, err
	}
	return strings.Split(strings.ToValidUTF8(strings.TrimSuffix(out, "\n"), "?"), "\n"), nil
}
