package e2e_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver of the store, to damage one
)

// What a machine of the world around the program can do to it: each test says
// what the program prints, what its exit code is, and that nothing is lost.

const question = `{"machineName":"question","initialState":"a","goalState":"b","states":{"a":{"transitions":{"on":"b"}},"b":{}},"specialists":[
	{"role":"proposer","specialistId":"carol","isHuman":true},{"role":"arbiter","specialistId":"judge"}]}`

// A desk is a directory with a machine file and a store in it.
type desk struct {
	*testing.T
	dir, store string
	program    string              // "" is the one of these sources
	as         *syscall.Credential // who runs the program; nil is who runs the test
	env        []string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	dir, err := os.MkdirTemp("", "dialai-desk") // not t.TempDir: another user must reach it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	d := &desk{T: t, dir: dir, store: filepath.Join(dir, "store", "dialai.db"), env: os.Environ()}
	d.must(os.Chmod(dir, 0o755))
	d.must(os.WriteFile(filepath.Join(dir, "question.json"), []byte(question), 0o644))
	return d
}

func (d *desk) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

func (d *desk) command(args ...string) *exec.Cmd {
	cmd := exec.Command(cmp.Or(d.program, program), append(args, "--store", d.store)...)
	cmd.Dir, cmd.Env = d.dir, d.env
	if d.as != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: d.as}
	}
	return cmd
}

// run runs the program to its end and returns what it printed.
func (d *desk) run(want int, args ...string) (stdout, stderr string) {
	d.Helper()
	cmd := d.command(args...)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	d.exits(cmd.Run(), want, &out, &problems)
	return out.String(), problems.String()
}

func (d *desk) exits(err error, want int, out ...*bytes.Buffer) {
	d.Helper()
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		d.must(err)
	}
	if got != want {
		d.Fatalf("exit code %d, want %d\n%s", got, want, out)
	}
}

// complains checks what is printed on stderr, whose lines patterns match in turn.
func (d *desk) complains(stderr string, patterns ...string) {
	d.Helper()
	lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
	if len(lines) != len(patterns) {
		d.Errorf("it prints %d lines, want %d:\n%s", len(lines), len(patterns), stderr)
		return
	}
	for i, p := range patterns {
		if !regexp.MustCompile("^" + p + "$").MatchString(lines[i]) {
			d.Errorf("line %d is %q, want %s", i+1, lines[i], p)
		}
	}
}

// id returns the session that a run printed.
func (d *desk) id(stdout string) string {
	d.Helper()
	m := regexp.MustCompile(`(?m)^Session ID:    (\S+)$`).FindStringSubmatch(stdout)
	if m == nil {
		d.Fatalf("no session in\n%s", stdout)
	}
	return m[1]
}

// asNobody lets another user run the program, one who may not do everything.
func (d *desk) asNobody() {
	if os.Getuid() == 0 {
		const nobody = 65534
		d.must(os.Chmod(filepath.Dir(program), 0o755))
		d.as = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
}

// open opens the store as another program does.
func (d *desk) open() *sql.DB {
	d.Helper()
	db, err := sql.Open("sqlite", d.store)
	d.must(err)
	d.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	return db
}

// TestLocked runs the program while another process holds the store: it waits,
// and then says so; looking goes on.
func TestLocked(t *testing.T) {
	d := newDesk(t)
	out, _ := d.run(3, "question.json")
	id := d.id(out)
	db := d.open()
	_, err := db.Exec(`BEGIN IMMEDIATE`)
	d.must(err)
	if out, _ := d.run(0, "sessions", "--quiet"); out != id+"\n" {
		t.Errorf("sessions prints %q", out)
	}
	_, stderr := d.run(1, "decide", id, "on")
	d.complains(stderr, `.*the store is busy: another process holds it`, "    hint: try again when the other process is done, or use another --store")
	_, err = db.Exec(`ROLLBACK`)
	d.must(err)
	d.run(0, "decide", id, "on")
}

// TestDamaged runs the program with files that are no stores, or no longer.
func TestDamaged(t *testing.T) {
	hint := "    hint: nothing was changed; restore a copy of the file, or use another --store"
	t.Run("no database", func(t *testing.T) {
		d := newDesk(t)
		d.store = filepath.Join(d.dir, "question.json")
		_, stderr := d.run(1, "question.json")
		d.complains(stderr, `store \S+question\.json: the file is damaged: it is not a SQLite database`, hint)
		if text, _ := os.ReadFile(d.store); string(text) != question {
			t.Error("the file was changed")
		}
	})
	t.Run("of another program", func(t *testing.T) {
		d := newDesk(t)
		d.must(os.Mkdir(filepath.Dir(d.store), 0o755))
		_, err := d.open().Exec(`CREATE TABLE notes (text TEXT)`)
		d.must(err)
		_, stderr := d.run(1, "question.json")
		if !strings.Contains(stderr, "it is a SQLite database of another program\n") {
			t.Errorf("it prints %q", stderr)
		}
	})
	t.Run("pages", func(t *testing.T) {
		d := newDesk(t)
		d.run(3, "question.json")
		db := d.open()
		_, err := db.Exec(`PRAGMA wal_checkpoint(TRUNCATE)`) // all of it into the one file
		d.must(err)
		d.must(db.Close())
		data, err := os.ReadFile(d.store)
		d.must(err)
		for i := 4096; i < len(data); i++ {
			data[i] = byte(i)
		}
		d.must(os.WriteFile(d.store, data, 0o600))
		for _, args := range [][]string{{"sessions"}, {"question.json"}, {"store", "verify"}, {"store", "rebuild"}} {
			_, stderr := d.run(1, args...)
			d.complains(stderr, `.*the file is damaged: .*`, hint)
		}
	})
	t.Run("an event", func(t *testing.T) {
		d := newDesk(t)
		path := d.store
		d.store = "sqlite:" + path + "?pack=off" // what is damaged is the text
		out, _ := d.run(3, "question.json")
		d.store = path
		id := d.id(out)
		d.run(0, "store", "verify")
		result, err := d.open().Exec(`UPDATE log SET events=CAST(replace(CAST(events AS TEXT), 'question', 'quesTion') AS BLOB)`)
		d.must(err)
		if n, _ := result.RowsAffected(); n == 0 {
			t.Fatal("nothing was damaged")
		}
		_, stderr := d.run(1, "store", "verify")
		d.complains(stderr, id+`: event 1: .*`)
		_, stderr = d.run(1, "store", "rebuild")
		d.complains(stderr, id+`: event 1: .*`)
		if out, _ := d.run(1, "store", "verify", "--json"); !strings.Contains(out, `"difference":{"stream":"`+id+`","seq":1,`) {
			t.Errorf("--json prints %s", out)
		}
	})
	t.Run("a packed event", func(t *testing.T) {
		d := newDesk(t)
		out, _ := d.run(3, "question.json")
		db := d.open()
		var events []byte
		d.must(db.QueryRow(`SELECT events FROM log WHERE first=1`).Scan(&events))
		events[len(events)-1] ^= 1
		_, err := db.Exec(`UPDATE log SET events=? WHERE first=1`, events)
		d.must(err)
		_, stderr := d.run(1, "store", "verify")
		d.complains(stderr, d.id(out)+`: event 1: .*`)
	})
	t.Run("a row", func(t *testing.T) {
		d := newDesk(t)
		out, _ := d.run(3, "question.json")
		_, err := d.open().Exec(`UPDATE sessions SET current_state = 'b'`)
		d.must(err)
		d.run(1, "store", "verify")
		d.run(0, "store", "rebuild")
		d.run(0, "store", "verify")
		d.run(0, "decide", d.id(out), "on")
	})
	t.Run("newer", func(t *testing.T) {
		d := newDesk(t)
		d.run(3, "question.json")
		_, err := d.open().Exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999999999999, 1)`)
		d.must(err)
		for _, args := range [][]string{{"question.json"}, {"sessions"}, {"store", "verify"}} {
			_, stderr := d.run(75, args...)
			d.complains(stderr, `store \S+: it was written by a newer version of dialai \(schema 99999999999999, this program knows \d+\); update the program or use another store`)
		}
	})
	t.Run("a directory", func(t *testing.T) {
		d := newDesk(t)
		d.store = d.dir
		_, stderr := d.run(1, "sessions")
		if !strings.Contains(stderr, "hint: ") || !strings.HasPrefix(stderr, "store ") {
			t.Errorf("it prints %q", stderr)
		}
	})
}

// TestFull runs the program where files may not grow any more. What was recorded
// before stays, and the session goes on once there is room.
func TestFull(t *testing.T) {
	d := newDesk(t)
	out, _ := d.run(3, "question.json")
	id := d.id(out)
	limit := int64(64<<10) / 512 // what is said takes more in the write-ahead log; 512 is the unit of ulimit -f in POSIX shells
	var long strings.Builder     // that cannot be packed
	for i := range 990 {
		fmt.Fprintf(&long, "%x ", sha256.Sum256([]byte{byte(i), byte(i >> 8)}))
	}
	var problems bytes.Buffer
	cmd := exec.Command("sh", "-c", `ulimit -f "$1" && shift && exec "$@"`, "sh", strconv.FormatInt(limit, 10), program, "decide", id, "on", "--reasoning", long.String(), "--store", d.store)
	cmd.Stderr = &problems
	d.exits(cmd.Run(), 1, &problems)
	if !regexp.MustCompile(`disk I/O error|the disk is full`).MatchString(problems.String()) {
		t.Errorf("it prints %s", &problems)
	}
	d.run(0, "store", "verify")
	d.run(0, "decide", id, "on")
}

// TestFullOutput: what cannot be printed is an error, not silence.
func TestFullOutput(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("there is no /dev/full here: %v", err)
	}
	defer full.Close()
	d := newDesk(t)
	out, _ := d.run(3, "question.json")
	id := d.id(out)
	for _, args := range [][]string{
		{"question.json"}, {"question.json", "--json"}, {"question.json", "--store", "memory:"}, {"resume", id}, {"sessions"}, {"show", id}, {"show", id, "--json"}, {"log", id}, {"inbox"}, {"tick"},
		{"metrics", "question"}, {"specialists", "question"}, {"lint", "question.json"}, {"graph", "question.json"}, {"init", "--list"}, {"init", "-"}, {"schema"},
		{"store", "verify"}, {"version"}, {"completion", "bash"},
	} {
		cmd := d.command(args...)
		var problems bytes.Buffer
		cmd.Stdout, cmd.Stderr = full, &problems
		err := cmd.Run()
		if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(problems.String(), "no space left on device") {
			t.Errorf("%q: %v, and it prints %q", args, err, &problems)
		}
		if strings.Contains(problems.String(), "memory:") {
			t.Errorf("%q: it prints %q, but nothing can go on from a store that is gone", args, &problems)
		}
	}
}

// TestFullOutputOfGuards: where 1 is a verdict, or a difference, what cannot be printed
// is not that.
func TestFullOutputOfGuards(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("there is no /dev/full here: %v", err)
	}
	defer full.Close()
	d := newDesk(t)
	for name, text := range map[string]string{
		"guards.json": `{}`, "budget.json": `{"config":{"hard_limit_calls":1},"trace":[{},{}]}`,
		"log.jsonl": `{"v":1,"type":"check","task_id":"t","verdict":"ok","payload":"full","input":{"output":"x"}}`,
	} {
		d.must(os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600))
	}
	for _, args := range [][]string{
		{"check", "--guards", "guards.json"}, {"check", "--guards", "guards.json", "--stateful"}, {"analyze", "log.jsonl"}, {"analyze", "log.jsonl", "--json"},
		{"budget", "budget.json"}, {"budget", "budget.json", "--json"}, {"replay", "log.jsonl", "--guards", "guards.json"}, {"replay", "log.jsonl", "--guards", "guards.json", "--json"},
		{"guard", "demo"},
	} {
		cmd := d.command(args...)
		var problems bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(`{"task_id":"t"}`+"\n"), full, &problems
		if err := cmd.Run(); cmd.ProcessState.ExitCode() != 3 || !strings.Contains(problems.String(), "no space left on device") {
			t.Errorf("%q: %v, and it prints %q", args, err, &problems)
		}
	}
}

// TestInterrupted interrupts a run while a service is asked: exit code 130, and
// resume repeats the ask under its key and ends the session.
func TestInterrupted(t *testing.T) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP) // under nohup it is ignored, by programs that are started here too
	defer signal.Stop(hangup)
	for name, signal := range map[string]os.Signal{"SIGINT": os.Interrupt, "SIGTERM": syscall.SIGTERM, "SIGHUP": syscall.SIGHUP} {
		t.Run(name, func(t *testing.T) {
			asked, released := make(chan string, 10), make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				asked <- req.Header.Get("Idempotency-Key")
				select {
				case <-released:
					w.Write([]byte(`{"transitionName":"on","reasoning":"at last"}`))
				case <-req.Context().Done():
				}
			}))
			defer server.Close()
			d := newDesk(t)
			d.env = append(d.env, "A_WEBHOOK_TOKEN=token", "DIALAI_WEBHOOK_ALLOW=127.0.0.1")
			d.must(os.WriteFile(filepath.Join(d.dir, "slow.json"), []byte(`{"machineName":"slow","initialState":"a","goalState":"b","states":{"a":{"transitions":{"on":"b"}},"b":{}},"specialists":[
				{"role":"proposer","specialistId":"service","strategyWebhookUrl":"`+server.URL+`","webhookTokenName":"A_WEBHOOK_TOKEN"}]}`), 0o644))
			cmd := d.command("slow.json")
			var out, problems bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &problems
			d.must(cmd.Start())
			key := d.receive(asked)
			d.must(cmd.Process.Signal(signal))
			d.exits(cmd.Wait(), 130, &out, &problems)
			id := d.id(out.String())
			d.complains(problems.String(), `interrupted; what was recorded stays\. Go on with:`, `  dialai resume `+id+` --store \S+`)
			close(released)
			if out, _ := d.run(0, "resume", id, "--quiet"); out != "Session complete: b\n" {
				t.Errorf("resume prints %q", out)
			}
			if again := d.receive(asked); again != key {
				t.Errorf("the ask was repeated under %q, not %q", again, key)
			}
			d.run(0, "store", "verify")
		})
	}
}

// TestHangupIgnored starts a run as nohup does, with SIGHUP ignored: the signal does not end
// it.
func TestHangupIgnored(t *testing.T) {
	asked, released := make(chan string, 10), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		asked <- req.Header.Get("Idempotency-Key")
		select {
		case <-released:
			w.Write([]byte(`{"transitionName":"on","reasoning":"at last"}`))
		case <-req.Context().Done():
		}
	}))
	defer server.Close()
	d := newDesk(t)
	d.env = append(d.env, "A_WEBHOOK_TOKEN=token", "DIALAI_WEBHOOK_ALLOW=127.0.0.1")
	d.must(os.WriteFile(filepath.Join(d.dir, "slow.json"), []byte(`{"machineName":"slow","initialState":"a","goalState":"b","states":{"a":{"transitions":{"on":"b"}},"b":{}},"specialists":[
		{"role":"proposer","specialistId":"service","strategyWebhookUrl":"`+server.URL+`","webhookTokenName":"A_WEBHOOK_TOKEN"}]}`), 0o644))
	cmd := d.command("slow.json", "--quiet")
	cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", `trap "" HUP; exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	d.must(cmd.Start())
	d.receive(asked)
	if status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid)); err == nil { // on Linux: it would be told late
		if mask := regexp.MustCompile(`SigIgn:\s+[0-9a-f]*([0-9a-f])\n`).FindSubmatch(status); len(mask) != 2 || !strings.Contains("13579bdf", string(mask[1])) {
			t.Errorf("SIGHUP is not ignored any more: %s", mask)
		}
	}
	d.must(cmd.Process.Signal(syscall.SIGHUP))
	close(released)
	d.exits(cmd.Wait(), 0, &out, &problems)
	if out.String() != "Session complete: b\n" {
		t.Errorf("it prints %q", &out)
	}
}

func (d *desk) receive(c <-chan string) string {
	d.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	select {
	case s := <-c:
		return s
	case <-ctx.Done():
		d.Fatal("the service is not asked")
		return ""
	}
}
