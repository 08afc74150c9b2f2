//go:build !linux

package pgtest

import (
	"errors"
	"os"
	"os/exec"
)

// own gives a file to whoever runs Postgres, which is who runs the tests.
func own(string) error { return nil }

// as has a program run as whoever runs Postgres.
func as(*exec.Cmd) {}

// begin starts a program that outlives the call.
func begin(c *exec.Cmd) error { return c.Start() }

// crash ends a server and all that it has started. Its children see that it is gone, and end, too.
func crash(p *os.Process) { p.Kill() }

// mount would mount a file system with room for so many bytes.
func mount(string, int64) (unmount func() error, err error) { return nil, errors.ErrUnsupported }
