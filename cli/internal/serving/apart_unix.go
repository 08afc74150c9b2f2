//go:build unix

package serving

import (
	"os/exec"
	"syscall"
)

// apart has Ctrl-C at the server's terminal not end a program, too.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
