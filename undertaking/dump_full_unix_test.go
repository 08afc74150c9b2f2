//go:build unix

package undertaking_test

import (
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/dialai/dialai/undertaking"
)

// TestDumpFullDisk: where a file cannot be written to its end, the old one stays, and nothing
// beside it.
func TestDumpFullDisk(t *testing.T) {
	dir, old := t.TempDir(), dumpOf(1, 2000)
	if err := undertaking.WriteDump(dir, old); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestDumpFullWriter$", "-test.v")
	cmd.Env = append(os.Environ(), "DIALAI_TEST_FULL="+dir)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "refused") {
		t.Fatalf("%v\n%s", err, out)
	}
	if d, err := undertaking.ReadDump(dumpPath(dir)); err != nil || !reflect.DeepEqual(d, old) {
		t.Errorf("the old one is gone: %v", err)
	}
	onlyDump(t, dir)
}

// TestDumpFullWriter is the process of the test above: its files may have 10,000 bytes.
func TestDumpFullWriter(t *testing.T) {
	dir := os.Getenv("DIALAI_TEST_FULL")
	if dir == "" {
		t.Skip("only as a process of TestDumpFullDisk")
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 10_000, Max: 10_000}); err != nil {
		t.Fatal(err)
	}
	if err := undertaking.WriteDump(dir, dumpOf(2, 2000)); err == nil {
		t.Fatal("it is written")
	}
	fmt.Println("refused")
}

// TestDumpNoPlace: where the file cannot take its name, nothing is left beside it.
func TestDumpNoPlace(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(dumpPath(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := undertaking.WriteDump(dir, dumpOf(1, 1)); err == nil {
		t.Error("it is written")
	}
	onlyDump(t, dir)
}
