//go:build !linux

package pgtest

import (
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
