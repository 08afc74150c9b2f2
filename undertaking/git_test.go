package undertaking_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A repo is a real repository in a folder of its own, with a commit of README and sub/file.
type repo struct {
	t   *testing.T
	dir string
}

func newRepo(t *testing.T) repo {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git binary")
	}
	for name, value := range map[string]string{
		"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.com",
		"GIT_COMMITTER_NAME": "C", "GIT_COMMITTER_EMAIL": "c@example.com", "GIT_TERMINAL_PROMPT": "0", "HOME": t.TempDir(),
	} {
		t.Setenv(name, value)
	}
	r := repo{t, filepath.Join(realTemp(t), "project")}
	r.write("README", "one\n")
	r.write("sub/file", "two\n")
	r.write(".gitignore", "*.o\n")
	r.git("init", "-q", "-b", "main")
	r.commit("Begin")
	return r
}

// realTemp is a folder by the path that it has without links.
func realTemp(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func (r repo) in(dir string) repo { return repo{r.t, dir} }

func (r repo) path(name string) string { return filepath.Join(r.dir, name) }

func (r repo) git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = r.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r repo) commit(subject string) {
	r.t.Helper()
	r.git("add", "-A")
	r.git("commit", "-q", "--allow-empty", "-m", subject)
}

func (r repo) write(name, text string) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Dir(r.path(name)), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(r.path(name), []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r repo) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}
