package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// account returns the user and the group that run Postgres for root, who must not.
func account() (uid, gid int, err error) {
	u, err := user.Lookup("postgres")
	if err != nil {
		return 0, 0, fmt.Errorf("root cannot run Postgres: %w", err)
	}
	if uid, err = strconv.Atoi(u.Uid); err == nil {
		gid, err = strconv.Atoi(u.Gid)
	}
	return uid, gid, err
}

// own gives a file to whoever runs Postgres.
func own(path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	uid, gid, err := account()
	if err != nil {
		return err
	}
	return os.Chown(path, uid, gid)
}

// as has a program run as whoever runs Postgres, and end when this one does, however that comes about.
func as(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
	if uid, gid, err := account(); err == nil && os.Geteuid() == 0 {
		c.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
}

// begin starts a program that outlives the call. What the system ends it with is the end of the thread
// that has started it, so that stays.
func begin(c *exec.Cmd) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		started <- c.Start()
		select {}
	}()
	return <-started
}

// crash ends a server and all that it has started at once: nothing that was begun is ended.
func crash(p *os.Process) {
	list, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", p.Pid)) // where there is none they see that it is gone, and end, too
	p.Kill()
	for _, pid := range strings.Fields(string(list)) {
		if n, err := strconv.Atoi(pid); err == nil {
			syscall.Kill(n, syscall.SIGKILL)
		}
	}
}

// mount mounts a file system with room for so many bytes, and returns what ends that.
func mount(folder string, size int64) (unmount func() error, err error) {
	if err := syscall.Mount("dialai", folder, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		return nil, err
	}
	return func() error { return syscall.Unmount(folder, syscall.MNT_DETACH) }, nil
}
