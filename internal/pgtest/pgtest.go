// Package pgtest gives tests a Postgres: a cluster of their own in a temporary directory, and for each
// test a database of its own in it.
//
// Its programs are looked for in the folder that DIALAI_PG_BIN names, in PATH, and where Debian puts
// them. DIALAI_TEST_POSTGRES names a server that is there already, on which databases may be made.
// Without any a test is skipped, or fails where DIALAI_REQUIRE_POSTGRES=1 says that there has to be one.
package pgtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// A cluster is made by initdb and run as a child of the test, which knows its process id and ends that
// and nothing else. Postgres refuses to run as root, so for root it runs as the user postgres. It
// listens at a socket in its directory, where everybody is trusted, and at a port of the loopback
// interface, where the password is asked for, so that a test of what becomes of passwords has one.
// Databases are copies of template1.
//
// One cluster is shared by all tests of a package, for making one takes longer than most tests: Main
// ends it. It does not sync, for nobody needs it after a crash; a test of crashes starts one that does.

// Missing is why tests are skipped where there is no Postgres.
const Missing = "no Postgres here: apt-get install postgresql, or set DIALAI_TEST_POSTGRES=postgres://…"

// startWithin is how long a cluster may take until it answers, also after a crash.
const startWithin = time.Minute

// A Server is a Postgres that tests may use. Its methods may be called concurrently, but for Kill and
// Restart.
type Server struct {
	address *url.URL // of its database postgres
	options []string // of the program
	bin     string   // folder of its programs; empty if the server is not ours
	dir     string
	process *exec.Cmd
	ended   chan struct{} // closed when the process has
	output  *bytes.Buffer // what it has said; to be read once it has ended
}

var (
	sharing sync.Mutex
	shared  *Server // by the tests of this program; nil until one needs it
)

// Main runs the tests of a package, and ends the cluster that they have shared. It is for TestMain, and
// returns the exit code of the program.
func Main(m *testing.M) int {
	defer func() {
		sharing.Lock()
		defer sharing.Unlock()
		if shared != nil {
			shared.end()
		}
	}()
	return m.Run()
}

// Database makes a database for a test in the cluster that all tests of the program share, and returns
// its address. It is dropped when the test ends. The test's package has to call [Main].
func Database(t testing.TB) string {
	t.Helper()
	sharing.Lock()
	defer sharing.Unlock()
	if shared == nil {
		if shared = named(t); shared == nil {
			shared = start(t, programs(debian), false)
		}
	}
	return shared.Database(t)
}

// Start starts a cluster for one test, which ends with it. With durable set a commit survives that the
// server is killed.
func Start(t testing.TB, durable bool) *Server {
	t.Helper()
	s := start(t, programs(debian), durable)
	t.Cleanup(s.end)
	return s
}

// StartSmallLog is [Start] of a durable server whose log of what it writes (pg_wal) is on a file system of its own with room for so
// many bytes, in segments of 1 MiB, and returns the folder where that is mounted. Where it is full the server ends itself: see
// [Server.Wait]. The test is skipped where no file system can be mounted.
func StartSmallLog(t testing.TB, size int64) (s *Server, folder string) {
	t.Helper()
	s = &Server{bin: found(t, programs(debian))}
	t.Cleanup(s.end)
	if err := s.folder(); err != nil {
		t.Fatal(err)
	}
	folder = s.small(t, size)
	if err := s.create(true, "--waldir="+filepath.Join(folder, "wal"), "--wal-segsize=1"); err != nil {
		t.Fatal(err)
	}
	if err := s.do(t.Context(), "ALTER SYSTEM SET max_wal_size='4MB'", "ALTER SYSTEM SET min_wal_size='2MB'", "SELECT pg_reload_conf()"); err != nil {
		t.Fatal(err)
	}
	return s, folder
}

// named returns the server that the environment names, nil if it names none.
func named(t testing.TB) *Server {
	t.Helper()
	name := os.Getenv("DIALAI_TEST_POSTGRES")
	if name == "" {
		return nil
	}
	address, err := url.Parse(name)
	if err != nil {
		t.Fatal("DIALAI_TEST_POSTGRES is no address of the form postgres://USER:PASSWORD@HOST:PORT/DATABASE")
	}
	return &Server{address: address}
}

// found returns the folder of the programs of Postgres, and ends the test where there is none.
func found(t testing.TB, bin string) string {
	t.Helper()
	if bin == "" {
		if os.Getenv("DIALAI_REQUIRE_POSTGRES") == "1" {
			t.Fatal(Missing)
		}
		t.Skip(Missing)
	}
	return bin
}

// start makes a cluster and runs it, with the programs in a folder.
func start(t testing.TB, bin string, durable bool) *Server {
	t.Helper()
	s := &Server{bin: found(t, bin)}
	err := s.folder()
	if err == nil {
		err = s.create(durable)
	}
	if err != nil {
		s.end()
		t.Fatal(err)
	}
	return s
}

// debian is where Debian puts the programs of each version.
const debian = "/usr/lib/postgresql/*/bin"

// programs returns the folder of the programs of Postgres, "" if there is none: of several versions in
// the folders of a pattern, the newest.
func programs(pattern string) string {
	if bin := os.Getenv("DIALAI_PG_BIN"); bin != "" {
		return bin
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(real)
		}
	}
	found, _ := filepath.Glob(filepath.Join(pattern, "initdb"))
	if len(found) == 0 {
		return ""
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
		return n
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) }))
}

// folder makes the directory of a cluster.
func (s *Server) folder() (err error) {
	in := "/tmp" // the path of a socket has 107 bytes at most
	if _, err := os.Stat(in); err != nil {
		in = os.TempDir()
	}
	if s.dir, err = os.MkdirTemp(in, "dialai-pg-"); err != nil {
		return err
	}
	return own(s.dir)
}

// create makes the cluster in its directory and runs it. args are more of initdb.
func (s *Server) create(durable bool, args ...string) (err error) {
	password := rand.Text()
	known, err := verifier(password)
	if err != nil {
		return err
	}
	secret := filepath.Join(s.dir, "password")
	if err := errors.Join(os.WriteFile(secret, []byte(known), 0o600), own(secret)); err != nil {
		return err
	}
	args = append([]string{"-D", s.data(), "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync", "--auth-local=trust", "--auth-host=scram-sha-256", "--pwfile=" + secret}, args...)
	made, err := s.program("initdb", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, made)
	}
	return s.listen(password, durable)
}

// listen runs the cluster at a port of its own.
func (s *Server) listen(password string, durable bool) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	s.address = &url.URL{Scheme: "postgres", User: url.UserPassword("postgres", password), Host: net.JoinHostPort("127.0.0.1", port), Path: "/postgres", RawQuery: "sslmode=disable"}
	s.options = []string{"-D", s.data(), "-p", port, "-k", s.dir, "-c", "listen_addresses=127.0.0.1", "-c", "max_connections=300"}
	if !durable {
		s.options = append(s.options, "-c", "fsync=off", "-c", "full_page_writes=off")
	}
	return s.run()
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// freePort returns a port at which nobody listens.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

// program returns one of the programs of Postgres, to be run as who may run it.
func (s *Server) program(name string, args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(s.bin, name), args...)
	c.Dir = s.dir // the folder of the test may be closed to who runs it
	as(c)
	return c
}

// run runs the cluster and waits until it answers.
func (s *Server) run() error {
	s.process, s.output, s.ended = s.program("postgres", s.options...), &bytes.Buffer{}, make(chan struct{})
	s.process.Stdout, s.process.Stderr = s.output, s.output
	if err := begin(s.process); err != nil {
		s.process = nil
		return err
	}
	go func() {
		defer close(s.ended)
		s.process.Wait()
	}()
	for until := time.Now().Add(startWithin); ; time.Sleep(10 * time.Millisecond) {
		err := s.do(context.Background(), "SELECT 1")
		select {
		case <-s.ended:
			return fmt.Errorf("postgres has ended:\n%s", s.output)
		default:
		}
		if err == nil || time.Now().After(until) {
			return err
		}
	}
}

// end ends the cluster, by its process id, and removes it.
func (s *Server) end() {
	if s.bin == "" {
		return // it is not ours
	}
	s.Kill()
	if s.dir != "" {
		os.RemoveAll(s.dir)
	}
}

// Kill ends the server at once, as a crash does. It must not be one that DIALAI_TEST_POSTGRES names.
func (s *Server) Kill() {
	if s.process != nil {
		crash(s.process.Process)
		<-s.ended
		s.process = nil
	}
}

// Stop ends the server as an operator does who restarts it (pg_ctl -m fast): what is underway is rolled back, and
// connections are ended. It must not be one that DIALAI_TEST_POSTGRES names.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	if err := s.process.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.ended:
		s.process = nil
	case <-time.After(startWithin):
		t.Fatalf("the server does not end:\n%s", s.output)
	}
}

// Wait has meanwhile called again and again until a server has ended by itself, and returns what it has said. It must not be one
// that DIALAI_TEST_POSTGRES names.
func (s *Server) Wait(t testing.TB, meanwhile func()) (said string) {
	t.Helper()
	for until := time.Now().Add(startWithin); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		select {
		case <-s.ended:
			s.process = nil
			return s.output.String()
		default:
			meanwhile()
		}
	}
	t.Fatal("the server does not end by itself")
	return ""
}

// Restart starts a server again that was ended, at the same address.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	for until := time.Now().Add(startWithin); ; time.Sleep(10 * time.Millisecond) {
		err := s.run()
		if err == nil {
			return
		}
		if time.Now().After(until) { // until then what the one before has started may not have ended yet
			t.Fatal(err)
		}
	}
}

// Standby makes a standby of a server and starts it: it has what the server has, and follows it until it is
// promoted. With synchronous set the server answers a commit from then on only when the standby has it. It
// ends with the test.
func (s *Server) Standby(t testing.TB, synchronous bool) *Server {
	t.Helper()
	b := &Server{bin: s.bin}
	t.Cleanup(b.end)
	if err := b.follow(s); err != nil {
		t.Fatal(err)
	}
	state := "streaming"
	if synchronous {
		if err := s.do(t.Context(), "ALTER SYSTEM SET synchronous_standby_names='*'", "SELECT pg_reload_conf()"); err != nil {
			t.Fatal(err)
		}
		state = "sync"
	}
	s.until(t, "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE '"+state+"' IN (state, sync_state))")
	return b
}

// follow makes the cluster of a standby of another server, and runs it.
func (s *Server) follow(of *Server) (err error) {
	if err := s.folder(); err != nil {
		return err
	}
	if made, err := s.program("pg_basebackup", "-D", s.data(), "-d", of.address.String(), "-c", "fast", "-R", "-X", "stream").CombinedOutput(); err != nil {
		return fmt.Errorf("pg_basebackup: %w\n%s", err, made)
	}
	password, _ := of.address.User.Password()
	return s.listen(password, true)
}

// Leave has a standby follow its server no longer.
func (s *Server) Leave(t testing.TB) {
	t.Helper()
	if err := s.do(t.Context(), "ALTER SYSTEM SET primary_conninfo=''", "SELECT pg_reload_conf()"); err != nil {
		t.Fatal(err)
	}
	s.until(t, "SELECT NOT EXISTS (SELECT FROM pg_stat_wal_receiver)")
}

// Promote makes a standby a server of its own, which may be written to when it returns.
func (s *Server) Promote(t testing.TB) {
	t.Helper()
	if err := s.do(t.Context(), "ALTER SYSTEM SET synchronous_standby_names=''", "SELECT pg_reload_conf()", "SELECT pg_promote()"); err != nil {
		t.Fatal(err)
	}
	s.until(t, "SELECT NOT pg_is_in_recovery()")
}

// Of returns the address that a server has for a database of the server that it follows or has followed.
func (s *Server) Of(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		panic(err) // it comes from Database
	}
	u.Host = s.address.Host
	return u.String()
}

// until waits until a query says so.
func (s *Server) until(t testing.TB, query string) {
	t.Helper()
	for until := time.Now().Add(startWithin); ; time.Sleep(10 * time.Millisecond) {
		var is bool
		conn, err := pgx.Connect(t.Context(), s.address.String())
		if err == nil {
			err = conn.QueryRow(t.Context(), query).Scan(&is)
			conn.Close(t.Context())
		}
		if is {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("waited for %s for %s (%v)", query, startWithin, err)
		}
	}
}

// do runs statements in the database postgres.
func (s *Server) do(ctx context.Context, statements ...string) error {
	conn, err := pgx.Connect(ctx, s.address.String())
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// SmallDatabase is [Server.Database] on a file system of its own with room for so many bytes, and returns the folder where that
// is mounted. What Postgres logs before it writes is elsewhere. The test is skipped where no file system can be mounted.
func (s *Server) SmallDatabase(t testing.TB, size int64) (address, folder string) {
	t.Helper()
	folder = s.small(t, size)
	space := filepath.Join(folder, "space")
	if err := errors.Join(os.Mkdir(space, 0o700), own(space)); err != nil {
		t.Fatal(err)
	}
	if err := s.do(t.Context(), "CREATE TABLESPACE small LOCATION '"+space+"'"); err != nil {
		t.Fatal(err)
	}
	return s.database(t, " TABLESPACE small"), folder
}

// small mounts a file system with room for so many bytes in the directory of the cluster, and returns where.
func (s *Server) small(t testing.TB, size int64) (folder string) {
	t.Helper()
	folder = filepath.Join(s.dir, "small")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	unmount, err := mount(folder, size)
	if err != nil {
		t.Skipf("no file system can be mounted here, which takes root on Linux: %v", err)
	}
	t.Cleanup(func() {
		if err := unmount(); err != nil {
			t.Error(err)
		}
	})
	if err := own(folder); err != nil {
		t.Fatal(err)
	}
	return folder
}

// Database makes a database for a test, and returns its address. It is dropped when the test ends,
// whoever is still connected to it.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	return s.database(t, "")
}

func (s *Server) database(t testing.TB, where string) string {
	t.Helper()
	name := "dialai_test_" + strings.ToLower(rand.Text())
	if err := s.do(context.Background(), "CREATE DATABASE "+name+where); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s.bin == "" || s.process != nil {
			if err := s.do(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
				t.Error(err)
			}
		}
	})
	address := *s.address
	address.Path = "/" + name
	return address.String()
}
