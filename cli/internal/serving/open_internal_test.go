package serving

import (
	"testing"

	"github.com/dialai/dialai/cli/internal/command"
)

// TestDeskAt: a browser is sent where it gets to the server: with a ticket to no other computer
// unless that is where the server is, and by TLS under a name of the certificate.
func TestDeskAt(t *testing.T) {
	const public = "https://desk.example.com/"
	type flags = serveFlags
	for _, c := range []struct {
		f      flags
		public string
		place  int
		base   string
	}{
		{flags{}, "", 0, ""},
		{flags{}, public, 0, ""},
		{flags{listen: []string{"unix:/s", "127.0.0.1:0"}}, public, 1, ""},
		{flags{listen: []string{"[::1]:0"}}, "", 0, ""},
		{flags{listen: []string{"unix:/s"}}, public, -1, "https://desk.example.com"},
		{flags{listen: []string{"127.0.0.1:0"}, proxies: []string{"10.0.0.0/8"}}, public, -1, "https://desk.example.com"},
		{flags{listen: []string{"192.0.2.1:0"}, cert: "c"}, public, -1, "https://desk.example.com"},
		{flags{listen: []string{"0.0.0.0:0", "192.0.2.1:0", "localhost:0"}, cert: "c"}, "", 1, ""},
	} {
		if place, base, err := c.f.deskAt(c.public); place != c.place || base != c.base || err != nil {
			t.Errorf("%q, %q: %d, %q, %v, want %d, %q", c.f.listen, c.public, place, base, err, c.place, c.base)
		}
	}
	for _, f := range []flags{
		{listen: []string{"unix:/s"}},
		{listen: []string{"127.0.0.1:0"}, proxies: []string{"10.0.0.0/8"}},
		{listen: []string{"0.0.0.0:0", ":0", "[::]:0"}, cert: "c"},
	} {
		if err := f.checkOpen(""); err != nil {
			t.Errorf("without --open %q is refused: %v", f.listen, err)
		}
		f.browse = true
		if err := f.checkOpen(""); command.ExitCode(t.Context(), err) != command.ExitUsage {
			t.Errorf("%q: %v", f.listen, err)
		}
		if err := f.checkOpen(public); err != nil {
			t.Errorf("%q at %s: %v", f.listen, public, err)
		}
	}
}
