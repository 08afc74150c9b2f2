package webhook

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"
)

// Where outbound calls may go. The address that counts is the one that is really
// dialled, so it is checked twice: CheckURL refuses what is plain from the URL (scheme,
// user, an address as the host, a number that some resolvers take for one), and the
// dialer checks every address that a name resolves to, each time, so a name that
// changes its mind gets nowhere. Without an entry of the operator only public addresses
// over https may be called. No proxy variable leads elsewhere, and redirects stay
// within the origin (redirect.go).
//
// Addresses are compared in one form: without a zone, a mapped IPv4 address as IPv4.

// A Policy says which addresses outbound calls may reach. The zero Policy
// refuses everything that is not a public address reached over https. It never
// changes and may be used concurrently.
type Policy struct {
	hosts    map[string]bool // "host" or "host:port"
	prefixes []netip.Prefix
}

// ParsePolicy reads the entries of DIALAI_WEBHOOK_ALLOW, separated by commas or
// blanks: hosts, host:port pairs and CIDR prefixes. A host entry allows http and
// whatever the host resolves to. A prefix allows addresses, and http only where
// the URL itself names one: what a name resolves to is not known beforehand.
func ParsePolicy(list string) (Policy, error) {
	p := Policy{hosts: map[string]bool{}}
	for _, entry := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
		if strings.Contains(entry, "/") {
			prefix, err := netip.ParsePrefix(entry)
			if err != nil {
				return Policy{}, badEntry(entry)
			}
			p.prefixes = append(p.prefixes, plainPrefix(prefix))
			continue
		}
		host, port, ok := parseHost(entry)
		if !ok {
			return Policy{}, badEntry(entry)
		}
		p.hosts[joinHost(host, port)] = true
	}
	return p, nil
}

func badEntry(entry string) error {
	return fmt.Errorf("DIALAI_WEBHOOK_ALLOW: %q is neither a host, nor host:port, nor a CIDR prefix such as 10.0.0.0/8", entry)
}

// plainPrefix returns a prefix of mapped IPv4 addresses as one of IPv4 addresses,
// which is what they are compared as.
func plainPrefix(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked()
}

// parseHost reads "host" or "host:port".
func parseHost(entry string) (host, port string, ok bool) {
	host = entry
	if h, number, err := net.SplitHostPort(entry); err == nil {
		n, err := strconv.ParseUint(number, 10, 16)
		if err != nil || n == 0 {
			return "", "", false
		}
		host, port = h, strconv.FormatUint(n, 10)
	} else if strings.HasPrefix(entry, "[") && strings.HasSuffix(entry, "]") {
		host = entry[1 : len(entry)-1]
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return host, port, true
	}
	bad := entry[0] == '[' || strings.Trim(host, ".") == "" || strings.ContainsAny(host, `*?@:%#[]\"'`) || endsInNumber(host)
	return host, port, !bad
}

// joinHost returns the one form in which hosts are compared.
func joinHost(host, port string) string {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if addr, err := netip.ParseAddr(host); err == nil {
		host = addr.Unmap().String()
	}
	if port == "" {
		return host
	}
	return net.JoinHostPort(host, port)
}

// endsInNumber reports whether the last label of a host is a number. No name
// ends so, but some resolvers take 2130706433, 0x7f.1 and 127.0.0.1. for
// addresses.
func endsInNumber(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	last := host[strings.LastIndexByte(host, '.')+1:]
	if digits, hex := strings.CutPrefix(last, "0x"); hex {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

// allowsHost reports whether a host is allowed by name, whatever it resolves to.
func (p Policy) allowsHost(host, port string) bool {
	return p.hosts[joinHost(host, "")] || p.hosts[joinHost(host, port)]
}

// A PolicyError says why an address may not be called.
type PolicyError struct {
	Address string
	Kind    string // loopback, private, …, or what is wrong with the URL
}

func (e *PolicyError) Error() string {
	return fmt.Sprintf("webhook address %s is not allowed (%s); see DIALAI_WEBHOOK_ALLOW", e.Address, e.Kind)
}

// CheckURL returns a *PolicyError if it is plain that the URL may not be called:
// by its scheme or, where the host is an address, by that. Names are checked
// when they are dialled, each time.
func (p Policy) CheckURL(u *url.URL) error {
	host, port := u.Hostname(), portOf(u)
	if port == "" || host == "" {
		return &PolicyError{u.Host, "not the URL of a host, by http or https"}
	}
	if u.User != nil {
		return &PolicyError{u.Host, "user information in the URL; the token is named by webhookTokenName"}
	}
	if p.allowsHost(host, port) {
		return nil
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		if err := p.checkAddr(addr); err != nil || p.allowsAddr(addr) {
			return err
		}
	} else if endsInNumber(host) {
		return &PolicyError{host, "an address in an unusual form"}
	}
	if u.Scheme != "https" {
		return &PolicyError{u.Host, "http; only https, and http to allowed hosts"}
	}
	return nil
}

// portOf returns the port that a URL is called at, "" if it is none of http or
// https.
func portOf(u *url.URL) string {
	port := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	if port != "" && u.Port() != "" {
		return u.Port()
	}
	return port
}

// checkAddr returns a *PolicyError unless an address is public or allowed.
func (p Policy) checkAddr(a netip.Addr) error {
	a = bare(a)
	if kind := kindOf(a); kind != "" && !p.allowsAddr(a) {
		return &PolicyError{a.String(), kind}
	}
	return nil
}

// allowsAddr reports whether an address is in one of the prefixes.
func (p Policy) allowsAddr(a netip.Addr) bool { return within(p.prefixes, bare(a)) }

// bare returns the one form in which addresses are compared: without a zone, and
// a mapped IPv4 address as what it is.
func bare(a netip.Addr) netip.Addr { return a.WithZone("").Unmap() }

// NewTransport returns the one transport that every outbound call of the program
// goes through. It looks at the address that is really dialled, so neither a
// name that resolves inward nor a proxy variable gets around the policy.
func NewTransport(p Policy) *http.Transport {
	plain := net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	checked := plain
	checked.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(address)
		if err != nil {
			return &PolicyError{address, "not an address"}
		}
		return p.checkAddr(ap.Addr())
	}
	return &http.Transport{
		Proxy: nil, // variables of the environment must not decide where secrets go
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if host, port, err := net.SplitHostPort(address); err == nil && p.allowsHost(host, port) {
				return plain.DialContext(ctx, network, address)
			}
			return checked.DialContext(ctx, network, address)
		},
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    1024, // a round may fan out to one host
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		// Of each connection. Longer answers are read past it. The one for writing
		// stays at its default of 4 KiB: a question should fit in, headers and
		// all, or it takes a second system call.
		ReadBufferSize:     1 << 10,
		DisableCompression: true, // answers are small, and size limits stay simple
	}
}
