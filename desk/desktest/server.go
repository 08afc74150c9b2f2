// Package desktest opens the desk in a real browser, before a real server: for tests.
//
// [Main] runs a package's tests, and makes its test binary the program where a test starts a server;
// [Serve] starts one, [Open] shows a page of it to somebody. A page fails its test at anything that a
// browser complains of, and is waited for by what it says of itself (aria-busy, data-seq), not by time.
package desktest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/dialai/dialai/cli"
	"github.com/dialai/dialai/strategies"
)

// served is the variable under which the test binary is the program.
const served = "DIALAI_DESKTEST_SERVE"

// Main runs the tests of a package, and ends the process.
func Main(m *testing.M) {
	if os.Getenv(served) != "" {
		os.Exit(cli.Main(context.Background(), strategies.Registry{}, os.Args[1:]))
	}
	code := m.Run()
	one.end()
	os.Exit(code)
}

// A Server is dialai serve, a process of its own, on a store that lasts as long as the test.
type Server struct {
	testing.TB
	URL string

	dir  string
	args []string
	env  []string
	cmd  *exec.Cmd
	logs *lines

	mu   sync.Mutex
	keys map[string]string // by who has it
}

// lines are what a process has written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends.
func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

// String returns all.
func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// grants are who there is: carol, dave and erin rule, olga runs what others decide, vera reads no payloads, root may
// all, for carol and dave.
var grants = map[string]string{
	"carol": `{"role":"human","machines":["*"],"humans":["carol"]}`,
	"dave":  `{"role":"human","machines":["*"],"humans":["dave"]}`,
	"erin":  `{"role":"human","machines":["*"],"humans":["erin"]}`,
	"pair":  `{"role":"human","machines":["*"],"humans":["carol","dave"]}`,
	"olga":  `{"role":"operator","machines":["*"]}`,
	"vera":  `{"role":"viewer","machines":["*"]}`,
	"bots":  `{"role":"specialist","machines":["*"],"specialists":["bot","rob"]}`,
	"root":  `{"role":"admin","machines":["*"],"humans":["carol","dave"]}`,
}

// Serve starts a server on an empty store, and returns once it listens. An argument such as NAME=value is a
// variable of its environment.
func Serve(t testing.TB, args ...string) *Server {
	t.Helper()
	s := &Server{TB: t, dir: t.TempDir(), keys: map[string]string{}}
	for _, arg := range args {
		if name, _, is := strings.Cut(arg, "="); is && name == strings.ToUpper(name) {
			s.env = append(s.env, arg)
		} else {
			s.args = append(s.args, arg)
		}
	}
	s.start("127.0.0.1:0")
	t.Cleanup(s.Kill)
	first, err := os.ReadFile(filepath.Join(s.dir, "server-key"))
	if err != nil {
		t.Fatal(err)
	}
	s.keys[""] = strings.TrimSpace(string(first))
	for _, who := range []string{"root", "carol", "dave", "erin", "pair", "olga", "vera", "bots"} {
		var made struct{ Credential string }
		s.Call("", 201, "POST", "/v1/keys", `{"name":"`+who+`","grants":[`+grants[who]+`]}`, &made)
		s.keys[who] = made.Credential
	}
	return s
}

func (s *Server) start(listen string) {
	s.Helper()
	program, err := os.Executable()
	if err != nil {
		s.Fatal(err)
	}
	args := append([]string{"serve", "--listen", listen, "--json", "--store", s.StorePath(), "--rate-read", "0", "--rate-write", "0", "--log-level", "warn"}, s.args...)
	s.cmd, s.logs = exec.Command(program, args...), &lines{}
	s.cmd.Dir, s.cmd.Stderr = s.dir, s.logs
	s.cmd.Env = append([]string{served + "=1", "HOME=" + s.dir, "PATH=" + os.Getenv("PATH")}, s.env...)
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		s.Fatal(err)
	}
	var told struct{ URLs []string }
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&told); err != nil || len(told.URLs) == 0 {
		s.Kill()
		s.Fatalf("the server does not start: %v\n%s", err, s.logs)
	}
	if s.URL != told.URLs[0] { // after a restart it is the same, and pages read it
		s.URL = told.URLs[0]
	}
}

// Kill ends the server without a word (SIGKILL), and returns once it is gone.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill() // it may have gone
	_ = s.cmd.Wait()
}

// Restart starts the server again where it was, after [Server.Kill].
func (s *Server) Restart() {
	s.Helper()
	s.start(strings.TrimPrefix(s.URL, "http://"))
}

// StorePath is where the file of the store is, which another process may open, too.
func (s *Server) StorePath() string { return filepath.Join(s.dir, "dialai.db") }

// Stored is what the store has written and what the server keeps beside it (machines, claims, jobs,
// answers kept, webhooks), as one text that is another one after each change of it. Left out is what
// says that somebody was there: when a key was last used, who has signed in, who has read what.
func (s *Server) Stored() string {
	s.Helper()
	var all []string
	for _, name := range []string{"dialai.db", "dialai.db-wal"} {
		text, err := os.ReadFile(filepath.Join(s.dir, name))
		if err != nil {
			s.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s %x", name, sha256.Sum256(text)))
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(s.dir, "dialai.db.control")+"?mode=ro")
	if err != nil {
		s.Fatal(err)
	}
	defer db.Close()
	for _, table := range []string{"receipts", "machines", "versions", "claims", "webhooks", "deliveries", "step_times", "jobs", "results", "bindings"} {
		rows, err := db.Query("SELECT * FROM " + table)
		if err != nil {
			s.Fatal(err)
		}
		names, err := rows.Columns()
		if err != nil {
			s.Fatal(err)
		}
		row := make([]any, len(names))
		for i := range row {
			row[i] = new(any)
		}
		sum := sha256.New()
		for rows.Next() {
			if err := rows.Scan(row...); err != nil {
				s.Fatal(err)
			}
			for _, v := range row {
				fmt.Fprintf(sum, "%v ", *v.(*any))
			}
		}
		if err := rows.Err(); err != nil {
			s.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s %x", table, sum.Sum(nil)))
	}
	return strings.Join(all, ", ")
}

// Key is the key of somebody: carol, dave, erin, pair (who speaks for carol and dave), olga, root.
func (s *Server) Key(who string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys[who]
}

// Call sends a request as somebody; v, unless nil, is what the answer is read into.
func (s *Server) Call(who string, want int, method, path, body string, v any) {
	s.Helper()
	req, err := http.NewRequestWithContext(s.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.Key(who))
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		s.Fatal(err)
	}
	if resp.StatusCode != want {
		s.Fatalf("%s %s as %q: %d, want %d: %s\n%s", method, path, who, resp.StatusCode, want, answer, s.logs)
	}
	if v != nil {
		if err := json.Unmarshal(answer, v); err != nil {
			s.Fatalf("%s %s: %v", method, path, err)
		}
	}
}

// A Session is what a test looks at of one.
type Session struct {
	SessionID, Status, CurrentState, Subject string
	Question                                 struct{ QuestionID, RoundID, Digest string }
	History                                  []struct {
		TransitionName, Reasoning, ToState string
		MetaJSON                           json.RawMessage
	}
}

// Path is where its question is shown.
func (v Session) Path() string { return "/desk/q/" + v.Question.QuestionID }

// Start starts a session of a definition, up to where it waits, or has ended. Of what proposers say
// beforehand each is a proposal as the API takes it.
func (s *Server) Start(machine, meta string, proposals ...string) Session {
	s.Helper()
	var begun struct{ Session Session }
	s.Call("root", 201, "POST", "/v1/sessions", fmt.Sprintf(`{"machine":%s,"metaJson":%s,"drive":%v}`, machine, meta, len(proposals) == 0), &begun)
	path := "/v1/sessions/" + begun.Session.SessionID
	for _, p := range proposals {
		s.Call("bots", 201, "POST", path+"/proposals", p, nil)
	}
	if len(proposals) > 0 {
		s.Call("root", 200, "POST", path+"/run", "", nil)
	}
	s.Call("root", 200, "GET", path+"/settled?wait=20s", "", nil)
	return s.Session(begun.Session.SessionID)
}

// Session returns a session as it is.
func (s *Server) Session(id string) Session {
	s.Helper()
	var v Session
	s.Call("root", 200, "GET", "/v1/sessions/"+id, "", &v)
	return v
}

// Decide gives somebody's word on the question of a session, as of now.
func (s *Server) Decide(who, id, transition string) {
	s.Helper()
	q := s.Session(id).Question
	s.Call(who, 200, "POST", "/v1/sessions/"+id+"/decisions", fmt.Sprintf(`{"transitionName":%q,"roundId":%q,"questionDigest":%q}`, transition, q.RoundID, q.Digest), nil)
}
