//go:build !unix

package undertaking

import "os/exec"

// inGroup has a command end when it is cancelled; its children may stay.
func inGroup(*exec.Cmd) {}
