package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// TestReadOnly runs the program where it may not write. Root may write anywhere,
// so the program runs as another user then.
func TestReadOnly(t *testing.T) {
	if os.Getuid() == 0 {
		cmd := exec.Command(program, "version")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		os.Chmod(filepath.Dir(program), 0o755)
		if err := cmd.Run(); err != nil {
			t.Skipf("the test runs as root, who may write anywhere, and cannot run the program as another user: %v", err)
		}
	}
	hint := "    hint: name a store that can be written with --store PATH, or run with --store memory: and keep nothing"
	t.Run("no store", func(t *testing.T) {
		d := newDesk(t)
		d.asNobody()
		d.must(os.Chmod(d.dir, 0o555))
		_, stderr := d.run(1, "question.json")
		d.complains(stderr, `store \S+/dialai\.db: mkdir \S+/store: permission denied`, hint)
		if _, err := os.Stat(filepath.Dir(d.store)); err == nil {
			t.Error("there is a store all the same")
		}
	})
	t.Run("a store", func(t *testing.T) {
		d := newDesk(t)
		out, _ := d.run(3, "question.json")
		id := d.id(out)
		d.asNobody()
		for _, path := range []string{d.store, filepath.Dir(d.store)} {
			d.must(os.Chmod(path, 0o555))
		}
		_, stderr := d.run(1, "decide", id, "on")
		d.complains(stderr, `.*the store cannot be written.*`, hint)
		d.as = nil
		d.must(os.Chmod(filepath.Dir(d.store), 0o755))
		d.must(os.Chmod(d.store, 0o644))
		d.run(0, "decide", id, "on") // nothing is lost
	})
	t.Run("looking", func(t *testing.T) {
		d := newDesk(t)
		out, _ := d.run(3, "question.json")
		id := d.id(out)
		looks := d.looks(id)
		d.asNobody()
		for _, path := range []string{d.store, filepath.Dir(d.store)} {
			d.must(os.Chmod(path, 0o555))
		}
		if got := d.looks(id); got != looks {
			t.Errorf("it prints\n%swant\n%s", got, looks)
		}
		for _, args := range [][]string{{"specialists", "disable", "question", "judge"}, {"tick"}, {"store", "rebuild"}, {"propose", id, "on"}, {"resume", id}} {
			_, stderr := d.run(1, args...)
			d.complains(stderr, `.*the store cannot be written.*`, hint)
		}
		if files, _ := os.ReadDir(filepath.Dir(d.store)); len(files) != 2 {
			t.Errorf("the directory has %v", files)
		}
	})
	t.Run("looking through a link at what is being written", func(t *testing.T) {
		d := newDesk(t)
		out, _ := d.run(3, "question.json")
		db := d.open()
		d.must(db.Ping())
		_, err := db.Exec(`SELECT count(*) FROM log`) // which keeps the write-ahead log
		d.must(err)
		d.run(0, "decide", d.id(out), "on")
		if info, err := os.Stat(d.store + "-wal"); err != nil || info.Size() == 0 {
			t.Fatalf("there is no write-ahead log: %v, %v", info, err)
		}
		dir := filepath.Dir(d.store)
		d.must(os.Symlink(d.store, filepath.Join(d.dir, "link.db")))
		d.store = filepath.Join(d.dir, "link.db")
		d.must(os.Chmod(dir, 0o555))
		for _, name := range []string{"dialai.db", "dialai.db-wal", "dialai.db-shm"} {
			d.must(os.Chmod(filepath.Join(dir, name), 0o444))
		}
		d.asNobody()
		if out, _ := d.run(0, "show", d.id(out), "--quiet"); out != "completed b\n" {
			t.Errorf("it prints %q", out)
		}
		d.must(os.Chmod(filepath.Join(dir, "dialai.db-shm"), 0)) // as if only two of the three had been copied
		_, stderr := d.run(1, "show", d.id(out))
		d.complains(stderr, `store \S+: the store cannot be written \(.*\), and what is in its write-ahead log cannot be read without that`,
			`    hint: copy the store and the files beside it to where you may write, and name the copy with --store PATH`)
		runtime.KeepAlive(db)
	})
}

// ages are those of sessions in a list.
var ages = regexp.MustCompile(`  \d+[smh] +`)

// looks returns what the commands print that only look at a store, but for what the time does
// to it.
func (d *desk) looks(id string) string {
	d.Helper()
	var all strings.Builder
	for _, args := range [][]string{{"sessions"}, {"show", id}, {"log", id}, {"log", id, "--json"}, {"inbox"}, {"metrics", "question"}, {"specialists", "question"},
		{"graph", "--session", id}, {"store", "verify"}, {"__complete", "show", ""}} {
		out, _ := d.run(0, args...)
		all.WriteString(ages.ReplaceAllString(out, "  AGE"))
	}
	return all.String()
}
