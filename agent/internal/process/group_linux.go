package process

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// isolate gives a program a process group of its own, and ends it with the thread that started
// it (see keepThread), so with this process, however that ends.
func isolate(cmd *exec.Cmd) {
	adopt()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// keepThread has the calling goroutine keep its thread until it ends.
func keepThread() { runtime.LockOSThread() }

// adopt makes this process the parent of processes whose own parent has ended, so that they can
// be reaped once they were killed.
var adopt = sync.OnceFunc(func() {
	const setChildSubreaper = 36
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0) // without it, they are init's
})

// killTree kills a program's group, and what has come from it, in whatever group that is.
func killTree(pid int) {
	family := descendants(pid)
	killGroup(pid)
	for _, p := range family {
		_ = syscall.Kill(p, syscall.SIGKILL)
	}
}

// descendants returns the children of a process, and theirs.
func descendants(of int) (found []int) {
	children := map[int][]int{}
	for _, pid := range processes() {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		rest := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // state, parent, …
		if len(rest) < 2 {
			continue
		}
		if parent, err := strconv.Atoi(string(rest[1])); err == nil {
			children[parent] = append(children[parent], pid)
		}
	}
	for next := children[of]; len(next) > 0; next = next[1:] {
		found = append(found, next[0])
		next = append(next, children[next[0]]...)
	}
	return found
}

// processes returns the ids of all processes but this one.
func processes() (pids []int) {
	entries, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well-formed
	for _, path := range entries {
		if pid, err := strconv.Atoi(filepath.Base(path)); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// End kills all processes of a session until there are none, and returns those that there still
// are after some time.
func End(session string, grace time.Duration) (left []int) {
	for until := time.Now().Add(grace); ; time.Sleep(pause) {
		if left = Leftovers(session); len(left) == 0 || time.Now().After(until) {
			return left
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		reap(left)
	}
}

const pause = 5 * time.Millisecond

// endAll ends what a program that has ended left running, in its group or with its marker.
func endAll(session string, group int, grace time.Duration) (left []int) {
	killGroup(group)
	return End(session, grace)
}

// reap takes note of the end of adopted processes, each by its own id: others belong to whoever
// started them.
func reap(pids []int) {
	for range 20 {
		pids = slices.DeleteFunc(slices.Clone(pids), func(pid int) bool {
			done, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
			return done == pid || err != nil // it is not ours
		})
		if len(pids) == 0 {
			return
		}
		time.Sleep(pause)
	}
}

// Leftovers returns the processes of a session that run, also of one that another run of the
// host opened.
func Leftovers(session string) (pids []int) { return Marked()[session] }

// Marked returns the processes that run of all sessions, by these.
func Marked() map[string][]int {
	found := map[string][]int{}
	for _, pid := range processes() {
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil { // dead, or somebody else's
			continue
		}
		if of, ok := markerIn(env); ok {
			found[of] = append(found[of], pid)
		}
	}
	return found
}

func markerIn(env []byte) (session string, ok bool) {
	for e := range bytes.SplitSeq(env, []byte{0}) {
		if rest, found := bytes.CutPrefix(e, fmt.Append(nil, marker, "=")); found {
			return string(rest), true
		}
	}
	return "", false
}
