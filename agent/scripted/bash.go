package scripted

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// bash runs a command in the working folder. What it leaves running ends with it.
func (t *turn) bash(command string) (string, error) {
	if command == "" {
		return "", errors.New("command is missing")
	}
	out, err := os.CreateTemp("", "scripted-*") // a file, since what is left running would hold a pipe open
	if err != nil {
		return "", err
	}
	defer func() { _, _ = out.Close(), os.Remove(out.Name()) }()
	cmd := exec.CommandContext(t.ctx, "sh", "-c", command)
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.spec.Cwd, out, out
	cmd.Env = append(append(os.Environ(), t.spec.Env...), "DIALAI_SESSION="+t.spec.ID)
	group(cmd)
	err = cmd.Run()
	endGroup(cmd)
	printed, readErr := start(out)
	switch {
	case t.ctx.Err() != nil:
		return "", errStopped
	case readErr != nil:
		return "", readErr
	case err != nil:
		return "", fmt.Errorf("%w: %s", err, printed)
	}
	return printed, nil
}

// start returns what a file begins with.
func start(f *os.File) (string, error) {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, mostTold))
	return beginning(string(text)), err
}
