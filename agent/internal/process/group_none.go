//go:build !unix

package process

import (
	"os"
	"os/exec"
)

// Without process groups, only the program itself can be ended.
func isolate(*exec.Cmd) {}

func signalOf(*os.ProcessState) string { return "" }

func terminateGroup(int) {}

func killGroup(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}
