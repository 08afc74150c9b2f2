package e2e_test

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestTenThousandConnections: a server takes ten thousand connections and answers on each of
// them; one more is answered once another has ended.
func TestTenThousandConnections(t *testing.T) {
	const most = 10_000
	if testing.Short() {
		t.Skip("ten thousand connections take some seconds")
	}
	var may syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &may); err != nil || may.Max < most+200 {
		t.Skipf("a process may have %d files open here, and the test needs %d (ulimit -Hn): %v", may.Max, most+200, err)
	}
	s := newDesk(t).serve()
	address := strings.TrimPrefix(s.url, "http://")
	ask := func(c net.Conn, within time.Duration) error {
		_ = c.SetDeadline(time.Now().Add(within))
		if _, err := fmt.Fprint(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			return err
		}
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err == nil && r.StatusCode != http.StatusOK {
			err = errors.New(r.Status)
		}
		return err
	}
	began := time.Now()
	conns := make([]net.Conn, most)
	var work sync.WaitGroup
	for part := range 8 {
		work.Go(func() {
			for i := part; i < most; i += 8 {
				c, err := net.Dial("tcp", address)
				if err == nil {
					conns[i] = c
					err = ask(c, time.Minute)
				}
				if err != nil {
					t.Errorf("connection %d: %v", i+1, err)
					return
				}
			}
		})
	}
	work.Wait()
	defer func() {
		for _, c := range conns {
			if c != nil {
				c.Close()
			}
		}
	}()
	if t.Failed() {
		return
	}
	more, err := net.Dial("tcp", address)
	s.must(err)
	defer more.Close()
	var late net.Error
	if err := ask(more, 300*time.Millisecond); !errors.As(err, &late) || !late.Timeout() {
		if time.Since(began) > 90*time.Second {
			t.Skip("opening ten thousand took longer than 90 s here, and the server closes connections that are idle for two minutes: room for one more proves nothing")
		}
		t.Errorf("one more is answered with %v, though there is no room", err)
	}
	conns[0].Close()
	_ = more.SetDeadline(time.Now().Add(30 * time.Second))
	if r, err := http.ReadResponse(bufio.NewReader(more), nil); err != nil || r.StatusCode != http.StatusOK {
		t.Errorf("where there is room again it is answered %+v %v", r, err)
	}
	for i := 1; i < most && time.Since(began) < 90*time.Second; i += 997 {
		if err := ask(conns[i], 30*time.Second); err != nil {
			t.Errorf("connection %d goes on with %v", i+1, err)
		}
	}
}

// certify writes a certificate of this computer and its key.
func (d *desk) certify(serial int64) (cert, key string) {
	d.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	d.must(err)
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"}}
	made, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	d.must(err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	d.must(err)
	cert, key = filepath.Join(d.dir, "cert.pem"), filepath.Join(d.dir, "key.pem")
	d.must(os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made}), 0o600))
	d.must(os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	return cert, key
}

// TestCertificate: TLS is 1.2 or later, with HTTP/2; a certificate that changes is taken up
// without a restart, and connections go on; one that is none leaves the old one.
func TestCertificate(t *testing.T) {
	if testing.Short() {
		t.Skip("certificates are looked at each ten seconds")
	}
	d := newDesk(t)
	cert, key := d.certify(1)
	s := d.serve("--tls-cert", cert, "--tls-key", key)
	address := strings.TrimPrefix(s.url, "https://")
	shown := func(c *tls.Config) (serial int64, err error) {
		c.InsecureSkipVerify = true // whose it is, the serial number says
		conn, err := tls.Dial("tcp", address, c)
		if err != nil {
			return 0, err
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64(), nil
	}
	serves := func(want int64) {
		t.Helper()
		for end := time.Now().Add(40 * time.Second); ; time.Sleep(100 * time.Millisecond) {
			got, err := shown(&tls.Config{})
			if err == nil && got == want {
				return
			}
			if err != nil || time.Now().After(end) {
				t.Fatalf("the certificate is %d, want %d: %v\n%s", got, want, err, s.logs)
			}
		}
	}
	serves(1)
	if _, err := shown(&tls.Config{MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
	client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	health := func() {
		t.Helper()
		resp, err := client.Get(s.url + "/healthz")
		s.must(err)
		resp.Body.Close()
		if resp.ProtoMajor != 2 || resp.StatusCode != 200 || resp.TLS.PeerCertificates[0].SerialNumber.Int64() != 1 {
			t.Errorf("%s %d by a connection with certificate %v", resp.Proto, resp.StatusCode, resp.TLS.PeerCertificates[0].SerialNumber)
		}
	}
	health()
	d.certify(2)
	serves(2)
	health() // over the connection that there was
	d.must(os.WriteFile(cert, []byte("no certificate"), 0o600))
	for end := time.Now().Add(12 * time.Second); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		serves(2)
	}
	s.end(syscall.SIGTERM, 0)
}

// TestStoreGoneWhileServing: a server whose store is removed, or has another put in its place,
// changes nothing more and says so; it is not ready.
func TestStoreGoneWhileServing(t *testing.T) {
	for name, c := range map[string]struct {
		of   string
		then func(path string) error
	}{
		"removed":           {"", os.Remove},
		"replaced":          {"", func(path string) error { return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600)) }},
		"what it remembers": {".control", os.Remove},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			s := d.serve()
			q := s.waits("first")
			d.must(c.then(d.store + c.of))
			for _, again := range []string{"", "again"} {
				var p struct{ Code, Detail string }
				if s.rules(503, q, &p, "Idempotency-Key", "k"+again); p.Code != "store_gone" || strings.Contains(p.Detail, d.dir) {
					t.Errorf("a ruling is refused with %+v", p)
				}
			}
			var ready struct{ Status string }
			if s.call(503, "GET", "/readyz", nil, &ready); ready.Status != "not ready" {
				t.Errorf("it is %+v", ready)
			}
			s.call(200, "GET", "/healthz", nil, nil)
			_ = s.cmd.Process.Signal(syscall.SIGTERM)
			_ = s.cmd.Wait() // with whichever code: it has said what is wrong
			if !bytes.Contains([]byte(s.logs.String()), []byte("removed or replaced")) {
				t.Errorf("the log does not say what is wrong:\n%s", s.logs)
			}
		})
	}
}

// TestClockThatJumps: between two runs of a server its clock goes back by days, or on. Requests
// that were made are known again, questions are ruled on, streams go on behind what they had.
func TestClockThatJumps(t *testing.T) {
	for _, wrong := range []string{"72h", "-72h"} {
		t.Run(wrong, func(t *testing.T) {
			d := newDesk(t)
			right := program
			defer func() { program = right }()
			program = clocked
			d.env = append(d.env, "DIALAI_TEST_CLOCK="+wrong)
			s := d.serve()
			q := s.waits("first")
			var before struct{ Items []json.RawMessage }
			s.call(200, "GET", "/v1/sessions/"+q.Session.SessionID+"/events", nil, &before)
			s.end(syscall.SIGKILL, 0)
			d.env = append(d.env, "DIALAI_TEST_CLOCK=0s")
			s = d.serve()
			if wrong == "72h" { // the other way a day has passed, and the request is another
				if again := s.waits("first"); again.Session.SessionID != q.Session.SessionID {
					t.Errorf("sent again, the request started %s beside %s", again.Session.SessionID, q.Session.SessionID)
				}
			}
			var after shown
			if s.rules(200, q, &after); after.Session.Status != "completed" {
				t.Errorf("after the ruling: %+v", after)
			}
			var events struct{ Items []struct{ Seq int64 } }
			s.call(200, "GET", "/v1/sessions/"+q.Session.SessionID+"/events", nil, &events)
			for i, e := range events.Items {
				if e.Seq != int64(i)+1 {
					t.Errorf("event %d is %d", i+1, e.Seq)
				}
			}
			if len(events.Items) <= len(before.Items) {
				t.Errorf("%d events, after %d", len(events.Items), len(before.Items))
			}
			s.waits("second")
			s.end(syscall.SIGTERM, 0)
			d.run(0, "store", "verify")
		})
	}
}
