package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Pooled has PgBouncer stand before a database, in a pool_mode and with further lines of its settings, and returns the
// address there. Where there is none the test is skipped, or fails with DIALAI_REQUIRE_POSTGRES=1.
func Pooled(t testing.TB, address, mode string, settings ...string) string {
	t.Helper()
	bin, err := exec.LookPath("pgbouncer")
	if err != nil {
		bin = "/usr/sbin/pgbouncer" // which only root has in its path
	}
	if _, err := os.Stat(bin); err != nil {
		const missing = "no pooler here: apt-get install pgbouncer"
		if os.Getenv("DIALAI_REQUIRE_POSTGRES") == "1" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	free.Close()
	password, _ := u.User.Password()
	name := strings.TrimPrefix(u.Path, "/")
	dir, err := os.MkdirTemp("", "dialai-pool") // not t.TempDir: who runs Postgres must reach it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	config := filepath.Join(dir, "pgbouncer.ini")
	text := fmt.Sprintf("[databases]\n%s = host=%s port=%s user=%s password=%s\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\nauth_type = any\nunix_socket_dir =\npool_mode = %s\n%s\n",
		name, u.Hostname(), u.Port(), u.User.Username(), password, port, mode, strings.Join(settings, "\n"))
	if err := errors.Join(os.WriteFile(config, []byte(text), 0o600), own(dir), own(config)); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd := exec.Command(bin, config)
	cmd.Stderr = &said
	as(cmd) // it refuses to run as root, too
	if err := begin(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	u.Host = fmt.Sprintf("127.0.0.1:%d", port)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := pgx.Connect(context.Background(), u.String())
		if err == nil {
			conn.Close(context.Background())
			return u.String()
		}
		if time.Now().After(deadline) {
			t.Fatalf("the pooler does not begin: %v\n%s", err, said.String())
		}
	}
}
