//go:build !unix

package scripted

import "os/exec"

// Where there are no process groups, only the command itself is ended.
func group(*exec.Cmd) {}

func endGroup(*exec.Cmd) {}
