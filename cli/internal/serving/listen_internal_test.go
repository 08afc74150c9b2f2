package serving

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestCertificateThatIsNone: a certificate that cannot be read again leaves the one from before, and
// the log says so once for each time that it goes wrong.
func TestCertificateThatIsNone(t *testing.T) {
	from := httptest.NewTLSServer(nil)
	from.Close()
	pair := from.TLS.Certificates[0]
	secret, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, text []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	right := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})
	var log bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		c := &certificate{certFile: write("cert.pem", right), keyFile: write("key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})), log: slog.New(slog.NewTextHandler(&log, nil))}
		for i, change := range []func(){
			func() {},
			func() { write("cert.pem", []byte("none")) },
			func() {},
			func() { os.Remove(c.certFile) },
			func() {},
			func() { write("cert.pem", right) },
			func() { write("cert.pem", []byte("none")) },
			func() {},
		} {
			change()
			time.Sleep(11 * time.Second)
			if got, err := c.load(); err != nil || got == nil || !bytes.Equal(got.Certificate[0], pair.Certificate[0]) {
				t.Errorf("look %d comes to %v (%v)", i, got, err)
			}
		}
	})
	if n := strings.Count(log.String(), "level=WARN"); n != 3 || !strings.Contains(log.String(), "cert.pem") {
		t.Errorf("of three certificates that are none it is said:\n%s", &log)
	}
}
