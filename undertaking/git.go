package undertaking

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Git is run as the program that people have. It asks nobody, since nobody sits there; it starts
// no hook and no monitor that the repository names; it writes nothing when it only looks; and
// variables that would lead it to another repository are taken away.

// Errors that callers tell apart.
var (
	errNoGit        = errors.New("there is no program git in PATH")
	errNoRepository = errors.New("it is not in a git repository")
)

// A gitError is what git said when it failed.
type gitError struct {
	command, said string
	err           error
}

func (e *gitError) Error() string { return fmt.Sprintf("git %s: %s", e.command, e.said) }
func (e *gitError) Unwrap() error { return e.err }

// git runs a command of git in a folder and returns what it writes.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	out, _, err := gitWarning(ctx, dir, args...)
	return out, err
}

// gitFlags come before every command.
var gitFlags = []string{"--no-pager", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.quotePath=true", "-c", "i18n.logOutputEncoding=UTF-8"}

// gitWarning is git for commands whose warnings count.
func gitWarning(ctx context.Context, dir string, args ...string) (out, warning string, err error) {
	cmd := exec.CommandContext(ctx, "git", slices.Concat(gitFlags, args)...)
	cmd.Dir = dir
	cmd.Env = gitEnv(cmd.Environ())
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it takes back what it has half done
	cmd.WaitDelay = 10 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	said := strings.ToValidUTF8(strings.TrimSpace(stderr.String()), "?")
	if err != nil {
		err = gitProblem(ctx, args[0], said, err)
	}
	return stdout.String(), said, err
}

// gitProblem says why a command of git has failed.
func gitProblem(ctx context.Context, command, said string, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, exec.ErrNotFound):
		return errNoGit
	case strings.Contains(said, "not a git repository (or any"):
		return errNoRepository
	case said == "":
		said = err.Error()
	}
	return &gitError{command, said, err}
}

// gitEnv returns an environment for git: no prompt, messages in English, and of git's own
// variables only those that say where its settings are.
func gitEnv(env []string) []string {
	env = slices.DeleteFunc(env, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		keep := slices.Contains([]string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH"}, name)
		return strings.HasPrefix(name, "GIT_") && !keep
	})
	return append(env, "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=false", "SSH_ASKPASS=false", "SSH_ASKPASS_REQUIRE=force", "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C")
}

// gitLine returns the one line that a command of git writes.
func gitLine(ctx context.Context, dir string, args ...string) (string, error) {
	out, err := git(ctx, dir, args...)
	return strings.TrimSuffix(out, "\n"), err
}

// gitSays runs a command of git that answers by its exit status: 0 is yes, 1 is no.
func gitSays(ctx context.Context, dir string, args ...string) (bool, error) {
	_, err := git(ctx, dir, args...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 {
		return false, nil
	}
	return err == nil, err
}

// topOf returns the top of the repository that a folder is in. The error is errNoGit or
// errNoRepository if there is none.
func topOf(ctx context.Context, dir string) (string, error) {
	top, err := gitLine(ctx, dir, "rev-parse", "--show-toplevel")
	return filepath.FromSlash(top), err
}

// headOf returns the commit that is checked out, "" if there is none yet.
func headOf(ctx context.Context, top string) (string, error) {
	if born, err := gitSays(ctx, top, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"); err != nil || !born {
		return "", err
	}
	return gitLine(ctx, top, "rev-parse", "--verify", "HEAD^{commit}")
}

// resolve returns the absolute path of a folder, links resolved.
func resolve(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}
