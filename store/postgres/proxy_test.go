package postgres_test

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A proxy stands between a store and its server, and cuts connections.
type proxy struct {
	net.Listener

	mu     sync.Mutex
	target string // host and port of the server
	rng    *rand.Rand
	cut    [2]int // a connection is cut after so many bytes at least, and at most; 0 if never

	cuts   atomic.Int64
	silent atomic.Bool  // what the server says is lost, and whatever it says then over the same connection
	deaf   atomic.Bool  // so is what it is told
	over   atomic.Bool  // nobody can connect any more
	done   atomic.Int64 // so many more commits are done, and their connections cut before anybody is told

	slow    atomic.Int64 // how long each answer takes, in nanoseconds
	answers atomic.Int64 // that were passed on
}

// between returns a proxy before the server of an address, and the address of the server through it.
func between(t testing.TB, address string, seed uint64) (*proxy, string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l, target: u.Host, rng: rand.New(rand.NewPCG(seed, seed))}
	t.Cleanup(func() { l.Close() })
	go p.serve()
	u.Host = l.Addr().String()
	return p, u.String()
}

// leads has new connections lead to the server of another address.
func (p *proxy) leads(t testing.TB, address string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = u.Host
}

func (p *proxy) serve() {
	defer p.over.Store(true)
	for {
		client, err := p.Accept()
		if err != nil {
			return
		}
		go p.pass(client)
	}
}

// pass passes the bytes of a connection on, both ways, until it is to be cut.
func (p *proxy) pass(client net.Conn) {
	defer client.Close()
	if p.silent.Load() || p.deaf.Load() { // it never comes to a connection
		for (p.silent.Load() || p.deaf.Load()) && !p.over.Load() {
			time.Sleep(5 * time.Millisecond)
		}
		return
	}
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer server.Close()
	p.mu.Lock()
	left := int64(1) << 62
	if p.cut[1] > 0 {
		left = int64(p.cut[0] + p.rng.IntN(p.cut[1]-p.cut[0]))
	}
	p.mu.Unlock()
	var bytes atomic.Int64
	bytes.Store(left)
	ended := make(chan bool, 2)
	copyTo := func(to, from net.Conn, held *atomic.Bool) {
		buffer, lost := make([]byte, 512), false
		for {
			n, err := from.Read(buffer)
			if lost = lost || held.Load(); lost { // an end is lost, too, but whoever waits in vain ends some day
				for err != nil && !errors.Is(err, net.ErrClosed) && held.Load() && !p.over.Load() {
					time.Sleep(5 * time.Millisecond)
				}
				n = 0
			}
			now := bytes.Add(-int64(n))
			if now < 0 { // the cut is in the midst of these
				to.Write(buffer[:max(0, int64(n)+now)])
				ended <- true
				return
			}
			if held == &p.silent && strings.Contains(string(buffer[:max(0, n)]), "COMMIT\x00") && p.done.Add(-1) >= 0 {
				ended <- true
				return
			}
			if held == &p.silent && strings.Contains(string(buffer[:max(0, n)]), "Z\x00\x00\x00\x05I") { // ready for the next query
				time.Sleep(time.Duration(p.slow.Load()))
				p.answers.Add(1)
			}
			if n > 0 {
				_, werr := to.Write(buffer[:n])
				if err == nil {
					err = werr
				}
			}
			if err != nil {
				ended <- err != io.EOF && now < 0
				return
			}
		}
	}
	go copyTo(server, client, &p.deaf)
	go copyTo(client, server, &p.silent)
	if <-ended {
		p.cuts.Add(1)
	}
}
