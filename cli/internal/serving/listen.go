package serving

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/internal/files"
)

// Where the server listens, and with which certificate. None of the addresses may be for others
// without keys and TLS; a certificate is read again when its files have changed.

// open listens at the addresses, none of which may be for others without keys and TLS.
func (f *serveFlags) open() (list []net.Listener, err error) {
	if err := f.checkAddresses(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			for _, l := range list {
				l.Close()
			}
		}
	}()
	for _, address := range f.addresses() {
		l, err := listenAt(address)
		if err != nil {
			return list, err
		}
		list = append(list, l)
	}
	return list, nil
}

// defaultListen is where a server listens that is told nothing.
const defaultListen = "127.0.0.1:8420"

func (f *serveFlags) addresses() []string {
	if len(f.listen) == 0 {
		return []string{defaultListen}
	}
	return f.listen
}

// checkAddresses returns what is wrong with the addresses, none of which may be for others
// without keys and TLS, by itself or by a proxy.
func (f *serveFlags) checkAddresses() error {
	for _, address := range f.addresses() {
		if strings.HasPrefix(address, "unix:") {
			continue
		}
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return command.Hinted(command.Usage("--listen is %q, not HOST:PORT or unix:PATH", address), "such as 127.0.0.1:8420")
		}
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) && (f.auth != authKeys || f.cert == "" && len(f.proxies) == 0) {
			return command.Hinted(command.Usage("--listen %s is for others, too, and needs keys and TLS", address), "make keys with dialai keys, add --tls-cert FILE --tls-key FILE, or --behind-proxy where a proxy does TLS, or listen at 127.0.0.1")
		}
	}
	return nil
}

// openMetrics listens where metrics are shown by themselves; nil if that is nowhere.
func (f *serveFlags) openMetrics() (net.Listener, error) {
	if f.metricsListen == "" {
		return nil, nil
	}
	return listenAt(f.metricsListen)
}

func listenAt(address string) (net.Listener, error) {
	path, ok := strings.CutPrefix(address, "unix:")
	if !ok {
		return net.Listen("tcp", address)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	return l, os.Chmod(path, 0o600)
}

// names are those under which the server may be called.
func (f *serveFlags) names(public string) []string {
	names := []string{"localhost", "127.0.0.1", "::1"}
	for _, address := range f.listen {
		if host, _, err := net.SplitHostPort(address); err == nil {
			names = append(names, host)
		}
	}
	if u, err := url.Parse(public); err == nil && u.Host != "" {
		names = append(names, u.Hostname())
	}
	for _, h := range f.hosts {
		names = append(names, strings.ToLower(h))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// checkCertificate returns what is wrong with the certificate, if one is named.
func (f *serveFlags) checkCertificate() error {
	if f.cert == "" {
		return nil
	}
	_, err := (&certificate{certFile: f.cert, keyFile: f.key}).load()
	if err != nil {
		return command.Fail(command.ExitUsage, err)
	}
	return nil
}

// A certificate is read again when its files have changed.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger // is told why files that have changed are not used

	mu     sync.Mutex
	read   time.Time // when it was looked at last
	loaded *tls.Certificate
	text   []byte // of both files
	failed string // why they could not be used when they were looked at last, "" if they could
}

// load returns the certificate. Files that cannot be used any more leave the old one, and the log
// says so once.
func (c *certificate) load() (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loaded != nil && time.Since(c.read) < 10*time.Second {
		return c.loaded, nil
	}
	cert, err := files.Read(c.certFile, files.Telemetry)
	if err == nil {
		var key []byte
		if key, err = files.Read(c.keyFile, files.Telemetry); err == nil {
			err = c.use(cert, key)
		}
	}
	if c.read = time.Now(); c.loaded == nil {
		return nil, err
	}
	failed := ""
	if err != nil {
		failed = err.Error()
	}
	if failed != "" && failed != c.failed {
		c.log.Warn("the certificate cannot be read again: that from before is used", "error", failed)
	}
	c.failed = failed
	return c.loaded, nil
}

// use takes up what the files say.
func (c *certificate) use(cert, key []byte) error {
	text := slices.Concat(cert, key)
	if c.loaded != nil && bytes.Equal(text, c.text) {
		return nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("--tls-cert %s and --tls-key %s: %w", c.certFile, c.keyFile, err)
	}
	c.loaded, c.text = &pair, text
	return nil
}

func urlOf(address net.Addr, secure bool) string {
	if address.Network() == "unix" {
		return "unix:" + address.String()
	}
	if secure {
		return "https://" + address.String()
	}
	return "http://" + address.String()
}
