package webhook_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dialai/dialai/webhook"
)

// addresses are one or more of every block that is not public, by the reason why
// they are refused.
var addresses = map[string][]string{
	"unspecified":               {"0.0.0.0", "0.1.2.3", "0.255.255.255", "::"},
	"loopback":                  {"127.0.0.1", "127.1.2.3", "127.255.255.255", "::1"},
	"private":                   {"10.0.0.0", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.0", "192.168.255.255"},
	"link-local":                {"169.254.0.1", "169.254.169.254", "169.254.255.255", "fe80::1", "febf::1"},
	"unique-local":              {"fc00::1", "fd00:ec2::254", "fdff::1"},
	"site-local":                {"fec0::1", "feff::1"},
	"shared, carrier-grade NAT": {"100.64.0.0", "100.100.100.200", "100.127.255.255"},
	"multicast":                 {"224.0.0.1", "239.255.255.250", "ff00::", "ff02::1", "ff0e::1"},
	"documentation":             {"192.0.2.1", "198.51.100.1", "203.0.113.255", "2001:db8::1", "2001:db8:ffff::1", "3fff::1", "3fff:fff::1"},
	"benchmarking":              {"198.18.0.1", "198.19.255.255", "2001:2::1"},
	"discard":                   {"100::1"},
	"local NAT64":               {"64:ff9b:1::a00:1", "64:ff9b:1::808:808"},
	"reserved": {
		"192.0.0.1", "192.0.0.170", "192.88.99.1", "240.0.0.1", "255.255.255.254", "255.255.255.255",
		"2001::1", "2001:0:7f00:1::", "2001:0:4136:e378:8000:63bf:80ff:fffe", // Teredo
		"2001:10::1", "2001:20::1", "2001:1ff::1", // ORCHID, other protocols
		"::127.0.0.1", "::10.0.0.1", "::8.8.8.8", "::2", // IPv4-compatible
		"::ffff:0:7f00:1", "::ffff:0:808:808", // IPv4-translated
		"64:ff9b:0:1::1", "64:ff9c::1", "100:0:0:1::1", "1fff::1", "200::1", "4000::1", "5f00::1", "8000::1", "e000::1", "f000::1", "fe00::1",
	},
}

// public are addresses that are fine, many of them right beside a block.
var public = []string{
	"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
	"169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.0.3.0", "192.31.196.1", "192.88.98.255", "192.88.100.0",
	"192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "198.51.99.255", "198.51.101.0", "203.0.112.255", "203.0.114.0", "223.255.255.255",
	"2000::1", "2001:200::1", "2001:4860:4860::8888", "2001:db7:ffff::1", "2001:db9::1", "2606:4700::1111", "2a00::1", "3ffe::1", "3fff:1000::1",
	"64:ff9b::808:808", "2002:808:808::1", "::ffff:8.8.8.8",
}

func check(t *testing.T, p webhook.Policy, address string) error {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return p.CheckURL(u)
}

func bracket(address string) string {
	if strings.Contains(address, ":") {
		return "[" + address + "]"
	}
	return address
}

// ipv6Forms returns the IPv6 forms of an IPv4 address that are refused for the
// same reason.
func ipv6Forms(address string) []string {
	ip := net.ParseIP(address).To4()
	if ip == nil || strings.Contains(address, ":") {
		return nil
	}
	at := func(offset int, prefix ...byte) string {
		b := make(net.IP, 16)
		copy(b, prefix)
		copy(b[offset:], ip)
		return b.String()
	}
	return []string{"::ffff:" + address, at(12, 0, 0x64, 0xff, 0x9b), at(2, 0x20, 0x02), strings.ToUpper(at(2, 0x20, 0x02))}
}

func TestSpecialAddresses(t *testing.T) {
	for kind, list := range addresses {
		for _, address := range list {
			for _, form := range append([]string{address}, ipv6Forms(address)...) {
				for _, url := range []string{"https://" + bracket(form) + "/", "https://" + bracket(form) + ":8443/", "http://" + bracket(form) + "/"} {
					wantKind(t, check(t, webhook.Policy{}, url), kind)
				}
			}
			if strings.Contains(address, ":") {
				wantKind(t, check(t, webhook.Policy{}, "https://["+address+"%25eth0]/"), kind)
			}
		}
	}
	for _, address := range public {
		if err := check(t, webhook.Policy{}, "https://"+bracket(address)+"/"); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// Zone ids get nobody past the lists.
func TestZones(t *testing.T) {
	p := config(t, "fe80::/10").Policy
	if err := check(t, p, "https://[fe80::1%25eth0]/"); err != nil {
		t.Error(err)
	}
	wantKind(t, check(t, p, "https://[fd00::1%25eth0]/"), "unique-local")
	wantKind(t, check(t, p, "https://[::ffff:127.0.0.1]/"), "loopback")
}

func TestPolicyErrorText(t *testing.T) {
	for address, want := range map[string]string{
		"https://127.0.0.1/":             "webhook address 127.0.0.1 is not allowed (loopback); see DIALAI_WEBHOOK_ALLOW",
		"https://[::ffff:127.0.0.1]/":    "webhook address 127.0.0.1 is not allowed (loopback); see DIALAI_WEBHOOK_ALLOW",
		"https://[::FFFF:7F00:1]:8443/":  "webhook address 127.0.0.1 is not allowed (loopback); see DIALAI_WEBHOOK_ALLOW",
		"https://[64:ff9b::7f00:1]/":     "webhook address 64:ff9b::7f00:1 is not allowed (loopback); see DIALAI_WEBHOOK_ALLOW",
		"https://169.254.169.254/latest": "webhook address 169.254.169.254 is not allowed (link-local); see DIALAI_WEBHOOK_ALLOW",
		"http://a.example:81/?key=x":     "webhook address a.example:81 is not allowed (http; only https, and http to allowed hosts); see DIALAI_WEBHOOK_ALLOW",
	} {
		wantError(t, check(t, webhook.Policy{}, address), want)
	}
}

// unusual are spellings that some resolvers take for 127.0.0.1 or another
// address.
var unusual = []string{"2130706433", "0x7f000001", "0x7f.1", "0X7F.1", "017700000001", "0177.0.0.1", "127.1", "127.0.1", "127.0.0.1.", "0x7f.0x0.0x0.0x1", "0", "0x", "1.2.3.4.5", "256.0.0.1", "127.0.0.01", "00000127.0.0.1", "a.0x1", "１２７.0.0.1"}

func TestUnusualSpellings(t *testing.T) {
	for _, host := range unusual {
		for _, scheme := range []string{"https", "http"} {
			wantKind(t, check(t, webhook.Policy{}, scheme+"://"+host+":8443/"), "an address in an unusual form")
		}
	}
	for _, host := range []string{"a1.example", "1.example", "0x7f.example", "127.0.0.1.example", "x0", "1e"} {
		if err := check(t, webhook.Policy{}, "https://"+host+"/"); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestParsePolicy(t *testing.T) {
	for _, list := range []string{"", " ", ",, ,", "localhost", "a.example,b.example:8080 10.0.0.0/8\n[::1]:80\t::1,[::1]", "10.1.2.3/8", "fc00::/7", "bücher.example", "A.Example.:1", "h:00080", "::ffff:10.0.0.0/104"} {
		if _, err := webhook.ParsePolicy(list); err != nil {
			t.Errorf("%q: %v", list, err)
		}
	}
	for _, entry := range []string{"*", "*.example", "http://a.example", "a.example/", "10.0.0.0/33", "10.0.0/8", "a.example:", "a.example:0", "a.example:65536", "a.example:http", "a.example:-1",
		"a:b:c", "user@a.example", ":80", ".", "..", "[::1", "::1]", "[a.example]", "[]", "[]:80", "2130706433", "0x7f.1", "127.1:80", "a?b", "a%b", `a"b`} {
		_, err := webhook.ParsePolicy("good.example, " + entry)
		if want := `DIALAI_WEBHOOK_ALLOW: `; err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "is neither a host, nor host:port, nor a CIDR prefix such as 10.0.0.0/8") {
			t.Errorf("%q: %v", entry, err)
		}
	}
}

func TestAllowList(t *testing.T) {
	const http = "http; only https, and http to allowed hosts"
	for _, c := range []struct{ allow, url, kind string }{
		// A host allows http, any port, and whatever it is.
		{"a.example", "http://a.example/", ""},
		{"a.example", "http://a.example:8080/", ""},
		{"a.example", "https://a.example/", ""},
		{"a.example", "http://A.EXAMPLE./", ""},
		{"A.Example.", "http://a.example/", ""},
		{"a.example", "http://b.a.example/", http},
		{"a.example", "http://aa.example/", http},
		{"localhost", "http://localhost:99/", ""},
		{"127.0.0.1", "http://127.0.0.1/", ""},
		{"127.0.0.1", "http://[::ffff:127.0.0.1]/", ""},
		{"::ffff:127.0.0.1", "http://127.0.0.1/", ""},
		{"127.0.0.1", "http://127.0.0.2/", "loopback"},
		{"127.0.0.1", "http://127.0.0.1./", ""},
		{"::1", "http://[::1]/", ""},
		{"[::1]", "http://[0:0:0:0:0:0:0:1]:5/", ""},
		// host:port allows that port only, the scheme's own included.
		{"a.example:8080", "http://a.example:8080/", ""},
		{"a.example:8080", "https://a.example:8080/", ""},
		{"a.example:8080", "http://a.example/", http},
		{"a.example:8080", "http://a.example:8081/", http},
		{"a.example:80", "http://a.example/", ""},
		{"a.example:80", "http://a.example:443/", http},
		{"127.0.0.1:443", "https://127.0.0.1/", ""},
		{"127.0.0.1:443", "https://127.0.0.1:80/", "loopback"},
		{"[::1]:8080", "http://[::1]:8080/", ""},
		{"[::1]:8080", "http://[::1]:8081/", "loopback"},
		// A prefix allows addresses, and http to them where they are named.
		{"10.0.0.0/8", "https://10.1.2.3/", ""},
		{"10.9.9.9/8", "https://10.1.2.3/", ""},
		{"10.0.0.0/8", "https://[::ffff:10.1.2.3]/", ""},
		{"::ffff:10.0.0.0/104", "https://10.1.2.3/", ""},
		{"10.0.0.0/8", "https://[64:ff9b::a01:203]/", "private"},
		{"64:ff9b::/96", "https://[64:ff9b::a01:203]/", ""},
		{"10.0.0.0/8", "https://11.1.2.3/", ""},
		{"10.0.0.0/9", "https://10.128.0.0/", "private"},
		{"10.0.0.0/8", "https://192.168.0.1/", "private"},
		{"10.0.0.0/8", "http://10.1.2.3:8080/", ""},
		{"10.0.0.0/8", "http://[::ffff:10.1.2.3]/", ""},
		{"10.0.0.0/8", "http://11.1.2.3/", http},
		{"10.0.0.0/8", "http://a.example/", http},
		{"127.0.0.0/8", "http://localhost/", http},
		{"fe80::/10", "http://[fe80::1%25eth0]/", ""},
		{"0.0.0.0/0", "https://127.0.0.1/", ""},
		{"0.0.0.0/0", "https://[::1]/", "loopback"},
		{"::/0", "https://[::1]/", ""},
		{"::/0", "https://[::ffff:127.0.0.1]/", "loopback"},
		{"fc00::/7", "https://[fd00::1]/", ""},
		{"a.example 10.0.0.0/8", "https://127.0.0.1/", "loopback"},
		{"", "https://a.example/", ""},
		{"", "http://a.example/", http},
	} {
		err := check(t, config(t, c.allow).Policy, c.url)
		switch {
		case c.kind != "":
			wantKind(t, err, c.kind)
		case err != nil:
			t.Errorf("%q: %s: %v", c.allow, c.url, err)
		}
	}
}

// secure starts a TLS server and returns it with the number of connections it
// accepted, and a client that trusts it under any name.
func secure(t *testing.T, allow string, handle http.HandlerFunc) (*httptest.Server, *atomic.Int32, *webhook.Client) {
	t.Helper()
	var accepted atomic.Int32
	s := httptest.NewUnstartedServer(handle)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			accepted.Add(1)
		}
	}
	s.Config.ErrorLog = quiet
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	c := config(t, allow)
	transport := trusting(s, c.Policy)
	c.Transport = transport
	t.Cleanup(transport.CloseIdleConnections)
	return s, &accepted, webhook.New(c)
}

func trusting(s *httptest.Server, p webhook.Policy) *http.Transport {
	transport := webhook.NewTransport(p)
	transport.TLSClientConfig = &tls.Config{RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com"}
	return transport
}

func answer(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, good) }

func portOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Port()
}

// What is dialled decides, whatever the name: localhost, a name of the service's
// owner, numbers that a resolver takes for an address.
func TestNamesThatResolveInward(t *testing.T) {
	hosts := map[string]string{"localhost": "loopback", "LOCALHOST.": "loopback", "127。0。0。1": "loopback"}
	names.set("localhost", "127.0.0.1")
	for kind, list := range addresses {
		for i, address := range list {
			if ip := net.ParseIP(address); ip.To4() == nil && (ip.IsLinkLocalUnicast() || ip.IsMulticast()) {
				continue // needs a zone, so it cannot be dialled here at all
			}
			name := strings.ReplaceAll(strings.Fields(kind)[0], ",", "") + "-" + strconv.Itoa(i) + ".test"
			names.set(name, address)
			hosts[name] = kind
		}
	}
	names.set("mapped.test", "::ffff:127.0.0.1")
	names.set("both.test", "127.0.0.1", "::1")
	names.set("many.test", "169.254.169.254", "127.0.0.1", "10.0.0.1")
	hosts["mapped.test"], hosts["both.test"], hosts["many.test"] = "loopback", "loopback", "link-local"
	s, accepted, c := secure(t, "", answer)
	for host, kind := range hosts {
		_, err := propose(t, c, "https://"+host+":"+portOf(t, s.URL)+"/")
		refused, ok := errors.AsType[*webhook.PolicyError](err)
		if !ok || refused.Kind != kind && host != "many.test" {
			t.Errorf("%s: error %v, want a refusal because of %q", host, err, kind)
		}
	}
	if n := accepted.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
}

// Even where the resolver makes an address of it, no spelling of one gets past
// the transport.
func TestSpellingsAreCheckedWhenDialled(t *testing.T) {
	s, accepted, _ := secure(t, "", answer)
	transport := trusting(s, webhook.Policy{})
	for _, host := range unusual {
		names.set(strings.ToLower(strings.TrimSuffix(host, ".")), "127.0.0.1")
		req, err := http.NewRequest(http.MethodPost, "https://"+host+":"+portOf(t, s.URL)+"/", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := transport.RoundTrip(req)
		if err == nil {
			resp.Body.Close()
			t.Errorf("%s: reached", host)
		}
	}
	if n := accepted.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
}

// A name is judged each time it is dialled: what was fine once may not be later.
func TestRebinding(t *testing.T) {
	names.set("rebind.test", "127.0.0.1")
	// Loopback, which is allowed here, stands for the public internet.
	s, accepted, _ := secure(t, "", answer)
	c := config(t, "127.0.0.0/8")
	transport := trusting(s, c.Policy)
	c.Transport = transport
	hooks := webhook.New(c)
	address := "https://rebind.test:" + portOf(t, s.URL) + "/"
	if _, err := propose(t, hooks, address); err != nil {
		t.Fatal(err)
	}
	m := parse(t, machineText)
	p, err := hooks.Proposer(m, hook(address), nil) // checked while the name is fine
	if err != nil {
		t.Fatal(err)
	}
	transport.CloseIdleConnections()
	names.set("rebind.test", "10.0.0.1")
	_, err = p.Propose(bounded(t), question(m))
	wantError(t, err, "webhook address 10.0.0.1 is not allowed (private); see DIALAI_WEBHOOK_ALLOW")
	names.set("rebind.test", "169.254.169.254")
	_, err = p.Propose(bounded(t), question(m))
	wantError(t, err, "webhook address 169.254.169.254 is not allowed (link-local); see DIALAI_WEBHOOK_ALLOW")
	names.set("rebind.test", "127.0.0.1")
	if _, err = p.Propose(bounded(t), question(m)); err != nil || accepted.Load() != 2 {
		t.Errorf("%d connections, error %v", accepted.Load(), err)
	}
}

// The entries of the list are kept when dialling as well.
func TestAllowListWhenDialled(t *testing.T) {
	names.set("inner.test", "127.0.0.1")
	s, _, _ := secure(t, "", answer)
	port := portOf(t, s.URL)
	plain := answering(t, 200, good)
	plainPort := portOf(t, plain.URL)
	for _, c := range []struct{ allow, url, kind string }{
		{"inner.test", "https://inner.test:" + port, ""},
		{"INNER.TEST.", "https://inner.test:" + port, ""},
		{"inner.test", "https://Inner.Test.:" + port, ""},
		{"inner.test", "http://inner.test:" + plainPort, ""},
		{"inner.test:" + plainPort, "http://inner.test:" + plainPort, ""},
		{"inner.test:" + port, "https://inner.test:" + port, ""},
		{"inner.test:1", "https://inner.test:" + port, "loopback"},
		{"other.test", "https://inner.test:" + port, "loopback"},
		{"127.0.0.1", "https://inner.test:" + port, "loopback"}, // a name is not the address that it resolves to
		{"127.0.0.0/8", "https://inner.test:" + port, ""},
		{"127.0.0.1/32", "https://inner.test:" + port, ""},
		{"::ffff:127.0.0.1/128", "https://inner.test:" + port, ""},
		{"127.0.0.2/32", "https://inner.test:" + port, "loopback"},
		{"10.0.0.0/8", "https://inner.test:" + port, "loopback"},
		{"127.0.0.1", "http://127.0.0.1:" + plainPort, ""},
		{"127.0.0.0/8", "http://127.0.0.1:" + plainPort, ""},
		{"127.0.0.1:" + plainPort, "http://127.0.0.1:" + plainPort, ""},
		{"127.0.0.1:" + plainPort, "http://[::ffff:127.0.0.1]:" + plainPort, ""},
	} {
		conf := config(t, c.allow)
		conf.Transport = trusting(s, conf.Policy)
		_, err := propose(t, webhook.New(conf), c.url)
		switch {
		case c.kind != "":
			wantKind(t, err, c.kind)
		case err != nil:
			t.Errorf("%q: %s: %v", c.allow, c.url, err)
		}
	}
}

// A refusal is final: nobody dials three times.
func TestRefusalIsFinal(t *testing.T) {
	names.set("inner.test", "127.0.0.1")
	c := config(t, "")
	dials := countDials(&c)
	_, err := propose(t, webhook.New(c), "https://inner.test/")
	wantError(t, err, "webhook address 127.0.0.1 is not allowed (loopback); see DIALAI_WEBHOOK_ALLOW")
	if *dials != 1 {
		t.Errorf("%d attempts", *dials)
	}
}

// A certificate that does not fit is not going to in half a second.
func TestUntrustedServerIsFinal(t *testing.T) {
	s, accepted, _ := secure(t, "", answer)
	c := config(t, "127.0.0.1")
	_, err := propose(t, webhook.New(c), s.URL)
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); !ok || accepted.Load() != 1 {
		t.Errorf("%d connections, error %v", accepted.Load(), err)
	}
}

// Proxies of the environment (TestMain sets them all) are not used, neither for
// https nor for http.
func TestProxyVariablesAreIgnored(t *testing.T) {
	names.set("inner.test", "127.0.0.1")
	s, accepted, c := secure(t, "inner.test", answer)
	if _, err := propose(t, c, "https://inner.test:"+portOf(t, s.URL)); err != nil || accepted.Load() != 1 {
		t.Errorf("https: %d connections, error %v", accepted.Load(), err)
	}
	plain := answering(t, 200, good)
	conf := config(t, "inner.test")
	if _, err := propose(t, webhook.New(conf), "http://inner.test:"+portOf(t, plain.URL)); err != nil {
		t.Errorf("http: %v", err)
	}
	if n := proxy.n(); n != 0 {
		t.Errorf("the proxy was called %d times", n)
	}
}

// HTTP/2 is spoken with whoever can.
func TestHTTP2(t *testing.T) {
	var proto atomic.Value
	s, _, c := secure(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		proto.Store(r.Proto)
		answer(w, r)
	})
	if _, err := propose(t, c, s.URL); err != nil || proto.Load() != "HTTP/2.0" {
		t.Errorf("%v, error %v", proto.Load(), err)
	}
}
