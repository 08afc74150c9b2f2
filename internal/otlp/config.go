package otlp

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/dialai/dialai/webhook"
)

// The exporter is set up by the standard variables alone. Each may be given for a signal
// (OTEL_EXPORTER_OTLP_TRACES_…) or for all (OTEL_EXPORTER_OTLP_…), the former wins; the address
// for all gets the path of the signal, one for a signal is taken as it is. Every variable that
// is wrong is named, with the others, when the program starts.

// An Env is where the standard variables are read from, which are those of the
// specification "OpenTelemetry Protocol Exporter". Both fields are required.
type Env struct {
	// Lookup returns a variable, "" if it is not set.
	Lookup func(name string) string
	// ReadFile returns a file that a variable names.
	ReadFile func(name string) ([]byte, error)
}

// defaultTimeout is how long an export may take, with all its attempts.
const defaultTimeout = 10 * time.Second

// first returns the variable that holds for a signal: its own, or else that for all.
// Blanks around a value mean nothing.
func (e Env) first(s signal, what string) (name, value string) {
	for _, name = range []string{"OTEL_EXPORTER_OTLP_" + s.name + "_" + what, "OTEL_EXPORTER_OTLP_" + what} {
		if value = strings.TrimSpace(e.Lookup(name)); value != "" {
			break
		}
	}
	return name, value
}

func (e Env) lower(name string) string { return strings.ToLower(strings.TrimSpace(e.Lookup(name))) }

// sender returns what sends a signal.
func (e Env) sender(s signal) (*sender, error) {
	to := &sender{signal: s, retry: webhook.Retry{Attempts: 8, Base: time.Second, Cap: 5 * time.Second}}
	address, err := e.endpoint(s)
	if err == nil {
		err = errors.Join(e.protocol(to), e.compression(to), e.headers(to), e.timeout(to))
	}
	if err != nil {
		return nil, err
	}
	certificates, err := e.certificates(s)
	if err != nil {
		return nil, err
	}
	if certificates != nil && address.Scheme != "https" {
		name, _ := e.first(s, "ENDPOINT")
		return nil, fmt.Errorf("%s is not an https address, so the certificates of OTEL_EXPORTER_OTLP_CERTIFICATE or OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE cannot be used", name)
	}
	to.secrets = append(to.secrets, address.RawQuery)
	to.target, err = webhook.OperatorOutbound(certificates, address.String()).Target(address.String())
	return to, err
}

// endpoint returns where a signal is sent: to its own address as it is, or below the
// address for all. An address may hold a secret, so that no error shows it.
func (e Env) endpoint(s signal) (*url.URL, error) {
	name, value := e.first(s, "ENDPOINT")
	if value == "" {
		value = "http://localhost:4318"
	}
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, fmt.Errorf("%s is not an http or https address such as http://localhost:4318", name)
	}
	if u.User != nil {
		return nil, fmt.Errorf("%s holds a user name; put it into OTEL_EXPORTER_OTLP_HEADERS, for example Authorization=Basic%%20CREDENTIALS", name)
	}
	if strings.Contains(name, s.name) {
		return u, nil
	}
	return u.JoinPath(s.path), nil
}

// protocol reads the form of what is sent.
func (e Env) protocol(to *sender) error {
	name, value := e.first(to.signal, "PROTOCOL")
	switch value {
	case "", "http/protobuf":
	case "http/json":
		to.json = true
	case "grpc":
		return fmt.Errorf(`%s is "grpc", which dialai does not speak; set it to http/protobuf, and the endpoint to where the collector listens for that, usually port 4318`, name)
	default:
		return wrong(name, value, "http/protobuf", "http/json")
	}
	return nil
}

func (e Env) compression(to *sender) error {
	name, value := e.first(to.signal, "COMPRESSION")
	if to.gzip = value == "gzip"; !to.gzip && value != "" && value != "none" {
		return wrong(name, value, "gzip", "none")
	}
	return nil
}

// timeout reads for how long an export may take; 0 is for as long as its caller lets
// it.
func (e Env) timeout(to *sender) error {
	to.timeout = defaultTimeout
	name, value := e.first(to.signal, "TIMEOUT")
	if value == "" {
		return nil
	}
	ms, err := strconv.ParseUint(value, 10, 32)
	if err != nil {
		return fmt.Errorf("%s is %q, it must be a whole number of milliseconds; 0 is no limit", name, value)
	}
	to.timeout = time.Duration(ms) * time.Millisecond
	return nil
}

// headers reads headers, which are secrets: errors say which one is meant by its
// place only.
func (e Env) headers(to *sender) error {
	name, value := e.first(to.signal, "HEADERS")
	place := 0
	for pair := range strings.SplitSeq(value, ",") {
		place++
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, escaped, ok := strings.Cut(pair, "=")
		key = strings.TrimSpace(key)
		if !ok || !isToken(key) {
			return fmt.Errorf("%s: entry %d is not of the form name=value", name, place)
		}
		text, err := url.PathUnescape(strings.TrimSpace(escaped))
		if err != nil || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return fmt.Errorf("%s: the value of entry %d is not a header's, or not percent-encoded", name, place)
		}
		to.headers = append(to.headers, webhook.Header{Name: textproto.CanonicalMIMEHeaderKey(key), Value: text})
		to.secrets = append(to.secrets, text)
		if _, credentials, ok := strings.Cut(text, " "); ok {
			to.secrets = append(to.secrets, credentials)
		}
	}
	return nil
}

// isToken reports whether s can be the name of a header.
func isToken(s string) bool {
	const allowed = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return s != "" && strings.Trim(s, allowed) == ""
}

// certificates returns how the collector is known and who we are, nil if no variable
// says so.
func (e Env) certificates(s signal) (*tls.Config, error) {
	caName, ca := e.first(s, "CERTIFICATE")
	certName, cert := e.first(s, "CLIENT_CERTIFICATE")
	keyName, key := e.first(s, "CLIENT_KEY")
	if ca == "" && cert == "" && key == "" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := e.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", caName, err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: %q holds no certificate in PEM form", caName, ca)
		}
	}
	if (cert == "") != (key == "") {
		return nil, fmt.Errorf("%s and %s belong together, and only one of them is set", certName, keyName)
	}
	if cert == "" {
		return c, nil
	}
	own, err := e.pair(certName, cert, keyName, key)
	c.Certificates = []tls.Certificate{own}
	return c, err
}

// pair reads a certificate and its key.
func (e Env) pair(certName, cert, keyName, key string) (tls.Certificate, error) {
	first, err := e.ReadFile(cert)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("%s: %w", certName, err)
	}
	second, err := e.ReadFile(key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("%s: %w", keyName, err)
	}
	own, err := tls.X509KeyPair(first, second)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("%s and %s: %q and %q are not a certificate and its key in PEM form: %w", certName, keyName, cert, key, err)
	}
	return own, nil
}
