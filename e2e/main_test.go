package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	_ "github.com/dialai/dialai/cli" // so that a change of the program has no result of its tests kept
)

// program is the path of the built program, clocked that of one whose clock
// DIALAI_TEST_CLOCK sets wrong.
var program, clocked string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if signal.Ignored(syscall.SIGHUP) { // by nohup, say; programs that are started would ignore it too
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	dir, err := os.MkdirTemp("", "dialai-e2e")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program, clocked = filepath.Join(dir, "dialai"), filepath.Join(dir, "dialai-clock")
	for path, tags := range map[string]string{program: "", clocked: "dialai_test_clock"} {
		build := exec.Command("go", "build", "-tags", tags, "-o", path, "github.com/dialai/dialai/cmd/dialai")
		build.Stdout, build.Stderr = os.Stderr, os.Stderr
		if err := build.Run(); err != nil {
			fmt.Fprintln(os.Stderr, "building the program:", err)
			return 1
		}
	}
	return m.Run()
}
