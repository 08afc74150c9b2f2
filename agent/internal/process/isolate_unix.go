//go:build unix && !linux

package process

import (
	"os/exec"
	"syscall"
)

// isolate gives a program a process group of its own.
func isolate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
