package undertaking_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/undertaking"
)

var dumped = specialist.SessionID{0xf8, 0x1d, 0x4f, 0xae, 0x7d, 0xec, 0x41, 0xd0, 0xa7, 0x65, 0, 0xa0, 0xc9, 0x1e, 0x6b, 0xf6}

// dumpOf returns a dump that takes many writes, and all of whose parts have the same number.
func dumpOf(seq int64, workers int) undertaking.Dump {
	d := undertaking.Dump{Task: "invoice export", Version: 1, Session: dumped, State: "weaving", Seq: seq, Cwd: "/tmp", GitHead: "abc", SavedAt: specialist.Time(seq)}
	d.Spent.USD, d.Spent.Tokens = 6*exact.Dollar+exact.Dollar/10, seq
	d.Workers = []undertaking.DumpWorker{}
	for i := range workers {
		d.Workers = append(d.Workers, undertaking.DumpWorker{ID: fmt.Sprint("orch-", i+1), AgentSession: fmt.Sprint(seq), Status: "active", Number: i + 1, Agent: "claude"})
	}
	return d
}

func dumpPath(dir string) string { return filepath.Join(dir, dumped.String()+".json") }

// TestDump holds the file to its format.
func TestDump(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "undertakings")
	d := dumpOf(412, 2)
	d.Workers[0].Status, d.Workers[0].Reason = "completed", "hard"
	d.Version = 0
	if err := undertaking.WriteDump(dir, d); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(dumpPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	json.Unmarshal([]byte(`{"task": "invoice export", "arbiter_session_id": "", "orchestrators": [
		{"id": "orch-1", "session_id": "412", "status": "completed", "number": 1, "agent": "claude", "reason": "hard"},
		{"id": "orch-2", "session_id": "412", "status": "active", "number": 2, "agent": "claude"}],
		"version": 1, "session": "f81d4fae-7dec-41d0-a765-00a0c91e6bf6", "state": "weaving", "seq": 412, "cwd": "/tmp", "git_head": "abc",
		"spent": {"usd": 6.10, "tokens": 412}, "saved_at": "1970-01-01T00:00:00.412Z"}`), &want)
	if err := json.Unmarshal(text, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n%v, want\n%v", err, got, want)
	}
	info, err := os.Stat(dumpPath(dir))
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	d.Version = 1
	if back, err := undertaking.ReadDump(dumpPath(dir)); err != nil || !reflect.DeepEqual(back, d) {
		t.Errorf("%v\n%+v, want\n%+v", err, back, d)
	}
	if err := undertaking.WriteDump(dir, undertaking.Dump{Session: dumped, State: "working"}); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(dumpPath(dir)); err != nil || !strings.Contains(string(text), `"orchestrators": [],`) {
		t.Errorf("without workers: %s, %v", text, err)
	}
	if err := undertaking.WriteDump(dir, undertaking.Dump{State: "working"}); err == nil {
		t.Error("a dump of no session is written")
	}
	onlyDump(t, dir)
}

// onlyDump fails the test if something else is in the folder than a dump.
func onlyDump(t *testing.T, dir string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
}

// TestReadDumpOfOthers: what is torn or foreign is told from what is not there.
func TestReadDumpOfOthers(t *testing.T) {
	dir := t.TempDir()
	if err := undertaking.WriteDump(dir, dumpOf(1, 3)); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(dumpPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := undertaking.ReadDump(filepath.Join(dir, "none.json")); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, undertaking.ErrNoDump) {
		t.Errorf("no file: %v", err)
	}
	for i := range len(whole) - 2 { // without the last brace
		wrongDump(t, dir, string(whole[:i]), "torn")
	}
	for _, text := range []string{string(whole) + "}", strings.Repeat("\x00", len(whole)), string(whole[:100]) + strings.Repeat("\x00", 100)} {
		wrongDump(t, dir, text, "torn")
	}
	for _, change := range [][2]string{{`"version": 1`, `"version": 2`}, {`"version": 1`, `"version": "secret"`}, {"f81d", "f82d"}, {"f81d", "g"}, {`"weaving"`, `""`}, {`"active"`, `"secret"`}, {`"orchestrators"`, `"x"`}} {
		wrongDump(t, dir, strings.Replace(string(whole), change[0], change[1], 1), "")
	}
	for _, text := range []string{`{}`, `[]`, `null`, `"secret"`} {
		wrongDump(t, dir, text, "foreign")
	}
	wrongDump(t, dir, string(whole)+strings.Repeat(" ", 1<<20), "too large")
	if _, err := undertaking.ReadDump(dir); !errors.Is(err, undertaking.ErrNoDump) {
		t.Errorf("a folder: %v", err)
	}
	later := strings.Replace(string(whole), `{`, `{"later": {"member": 1},`, 1)
	if err := os.WriteFile(dumpPath(dir), []byte(later), 0o600); err != nil {
		t.Fatal(err)
	}
	if d, err := undertaking.ReadDump(dumpPath(dir)); err != nil || d.Seq != 1 {
		t.Errorf("with members of a later program: %+v, %v", d, err)
	}
}

func wrongDump(t *testing.T, dir, text, want string) {
	t.Helper()
	if err := os.WriteFile(dumpPath(dir), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := undertaking.ReadDump(dumpPath(dir))
	if !errors.Is(err, undertaking.ErrNoDump) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") || d.Session != (specialist.SessionID{}) {
		t.Errorf("%.60q is read as %+v, %v; want %q", text, d, err, want)
	}
}

func FuzzReadDump(f *testing.F) {
	text, _ := json.Marshal(dumpOf(1, 2))
	f.Add(text)
	f.Add(text[:len(text)-1])
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(dumpPath(dir), text, 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := undertaking.ReadDump(dumpPath(dir))
		if err != nil {
			if !errors.Is(err, undertaking.ErrNoDump) {
				t.Fatal(err)
			}
			return
		}
		if err := undertaking.WriteDump(dir, d); err != nil {
			t.Fatal(err)
		}
		if again, err := undertaking.ReadDump(dumpPath(dir)); err != nil || !reflect.DeepEqual(again, d) {
			t.Fatalf("%v\n%+v, want\n%+v", err, again, d)
		}
	})
}

// TestDumpTorn kills a process that writes dumps, at many moments of its writing. What is found,
// meanwhile and after, is the dump that was written last, or the one after it, whole.
func TestDumpTorn(t *testing.T) {
	dir, moments := t.TempDir(), 60
	if testing.Short() {
		moments = 20
	}
	if err := undertaking.WriteDump(dir, dumpOf(0, 2000)); err != nil {
		t.Fatal(err)
	}
	last := int64(0)
	for i := range moments {
		acked := killedWriter(t, dir, last+1, i)
		if last = wholeDump(t, dir); last < acked || last > acked+1 {
			t.Fatalf("killed after %d, the dump is that of %d", acked, last)
		}
	}
}

// wholeDump returns the number of the dump that is there.
func wholeDump(t *testing.T, dir string) int64 {
	t.Helper()
	d, err := undertaking.ReadDump(dumpPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(d, dumpOf(d.Seq, 2000)) {
		t.Fatalf("the dump of %d is one of several", d.Seq)
	}
	return d.Seq
}

// killedWriter starts a process that writes dumps with rising numbers, and kills it once a write
// has begun, a little later each time. It returns the number of the last that the process says
// it has written.
func killedWriter(t *testing.T, dir string, first int64, later int) (acked int64) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestDumpWriter$", "-test.v")
	cmd.Env = append(os.Environ(), "DIALAI_TEST_DUMPS="+dir, "DIALAI_TEST_FIRST="+strconv.FormatInt(first, 10))
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill() // for a test that has failed
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "begins" {
	}
	before := inFolder(t, dir)
	for range later / 3 {
		wholeDump(t, dir) // while it writes
	}
	for looks := 1 + later%3*20; looks > 0; looks-- {
		for tries := 0; inFolder(t, dir) == before && tries < 100_000; tries++ { // more than it takes, unless it has failed
		}
	}
	cmd.Process.Kill()
	for acked = first - 1; lines.Scan(); { // what it wrote until then
		if n, err := strconv.ParseInt(strings.TrimPrefix(lines.Text(), "wrote "), 10, 64); err == nil {
			acked = n
		}
	}
	return acked
}

// inFolder returns the names and sizes of what is in a folder.
func inFolder(t *testing.T, dir string) (all string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if info, err := e.Info(); err == nil { // it may have got another name
			all += fmt.Sprintln(e.Name(), info.Size())
		}
	}
	return all
}

// TestDumpWriter is the process of the test above.
func TestDumpWriter(t *testing.T) {
	dir := os.Getenv("DIALAI_TEST_DUMPS")
	if dir == "" {
		t.Skip("only as a process of TestDumpTorn")
	}
	first, err := strconv.ParseInt(os.Getenv("DIALAI_TEST_FIRST"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("begins")
	for n := first; ; n++ {
		if err := undertaking.WriteDump(dir, dumpOf(n, 2000)); err != nil {
			t.Fatal(err)
		}
		fmt.Println("wrote", n)
	}
}
