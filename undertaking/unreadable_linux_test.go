package undertaking_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/dialai/dialai/undertaking"
)

// asNobody has the rest of a test, and the programs that it starts, read files like somebody who
// may read only what everybody may.
func asNobody(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		return // the files of the test are closed to ourselves
	}
	runtime.LockOSThread() // the thread ends with the test
	if err := syscall.Setfsuid(65534); err != nil {
		t.Fatal(err)
	}
}

// TestTreeUnreadable: whatever cannot be read is named, and there is no digest.
func TestTreeUnreadable(t *testing.T) {
	r := newRepo(t)
	r.write("secret", "")
	r.write("folder/file", "")
	outside := r.in(realTemp(t))
	outside.write("secret", "")
	outside.write("folder/file", "")
	for _, dir := range []string{r.dir, outside.dir} {
		r.must(os.Chmod(dir+"/secret", 0))
		r.must(os.Chmod(dir+"/folder", 0))
		for above := filepath.Dir(dir); above != filepath.Clean(os.TempDir()); above = filepath.Dir(above) {
			r.must(os.Chmod(above, 0o755))
		}
		t.Cleanup(func() { os.Chmod(dir+"/folder", 0o755) })
	}
	done := make(chan struct{})
	go func() { // whose thread nobody uses again
		defer close(done)
		asNobody(t)
		for _, dir := range []string{r.dir, outside.dir} {
			tree, err := undertaking.TreeOf(t.Context(), dir)
			if err == nil || tree.Digest != "" {
				t.Errorf("%s: %+v, %v", dir, tree, err)
				continue
			}
			if !strings.Contains(err.Error(), "folder") || dir == outside.dir && !strings.Contains(err.Error(), dir+"/secret") {
				t.Errorf("%s: the error does not name it: %v", dir, err)
			}
		}
	}()
	<-done
}

// TestTreeWarning: what git leaves out with a warning is an error.
func TestTreeWarning(t *testing.T) {
	r := newRepo(t)
	git, err := exec.LookPath("git")
	r.must(err)
	bin := r.in(t.TempDir())
	bin.write("git", "#!/bin/sh\ncase \"$*\" in *status*) echo \"warning: could not open directory 'folder/': Permission denied\" >&2;; esac\nexec "+git+" \"$@\"\n")
	r.must(os.Chmod(bin.path("git"), 0o755))
	t.Setenv("PATH", bin.dir+":"+os.Getenv("PATH"))
	if tree, err := undertaking.TreeOf(t.Context(), r.dir); err == nil || tree.Digest != "" || !strings.Contains(err.Error(), "'folder/'") {
		t.Errorf("%+v, %v", tree, err)
	}
}
