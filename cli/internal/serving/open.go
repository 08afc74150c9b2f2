package serving

import (
	"context"
	"log/slog"
	"net"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/server"
)

// --open: the desk in a browser of this computer, signed in as who has its key. What signs in is a
// ticket, which is good once and for a minute, since the command line of a browser is no secret.

// deskAt returns where a browser of this computer finds the desk: without TLS at an address of its
// own, which a ticket never leaves; else at DIALAI_PUBLIC_URL; else at a host that --listen names.
// It is the place of that among the addresses, or base.
func (f *serveFlags) deskAt(public string) (place int, base string, err error) {
	place = slices.IndexFunc(f.addresses(), func(address string) bool {
		host, _, err := net.SplitHostPort(address)
		return err == nil && !strings.HasPrefix(address, "unix:") && len(f.proxies) == 0 && host != "" && !net.ParseIP(host).IsUnspecified()
	})
	switch {
	case public != "" && (place < 0 || f.cert != ""):
		return -1, strings.TrimRight(public, "/"), nil
	case place < 0:
		err = command.Hinted(command.Usage("--open: a browser of this computer finds the server at none of its addresses"), "name that of browsers with DIALAI_PUBLIC_URL, or listen at 127.0.0.1, too")
	}
	return place, "", err
}

// checkOpen returns why the desk cannot be opened, if it is to be.
func (f *serveFlags) checkOpen(public string) error {
	if !f.browse {
		return nil
	}
	_, _, err := f.deskAt(public)
	return err
}

// deskTicket returns the address of the desk with a ticket for who has the key of this computer.
func (a *app) deskTicket(ctx context.Context, f *serveFlags, web *server.Server, listeners []net.Listener) (string, error) {
	place, base, err := f.deskAt(a.Env("DIALAI_PUBLIC_URL"))
	if err != nil {
		return "", err
	}
	if place >= 0 {
		at := urlOf(listeners[place].Addr(), f.cert != "")
		scheme, bound, _ := strings.Cut(at, "://")
		host, _, _ := net.SplitHostPort(f.addresses()[place]) // as it is written: a certificate may name it
		_, port, _ := net.SplitHostPort(bound)
		base = scheme + "://" + net.JoinHostPort(host, port)
	}
	credential := ""
	if f.auth != authNone {
		if credential, err = a.serverKey(); err != nil {
			return "", err
		}
	}
	ticket, err := web.Ticket(ctx, credential)
	if err != nil {
		return "", err
	}
	return base + "/desk/#t=" + ticket, nil
}

// opened opens the desk, if it is to be, and returns its address. What goes wrong with that is
// logged, and is no reason not to serve.
func (a *app) opened(ctx context.Context, f *serveFlags, web *server.Server, listeners []net.Listener, log *slog.Logger) string {
	if !f.browse {
		return ""
	}
	address, err := a.deskTicket(ctx, f, web, listeners)
	if err != nil {
		log.Warn("the desk is not opened", "error", err)
		return ""
	}
	if err := a.browse(address); err != nil {
		log.Warn("no browser opens the desk", "error", err)
	}
	return address
}

// browse has the default browser show an address, where there is one. Nobody waits for it.
func (a *app) browse(address string) error {
	argv := []string{"xdg-open"}
	switch runtime.GOOS {
	case "darwin":
		argv = []string{"open"}
	case "windows":
		argv = []string{"rundll32", "url.dll,FileProtocolHandler"}
	default:
		if a.Env("DISPLAY") == "" && a.Env("WAYLAND_DISPLAY") == "" {
			return nil
		}
	}
	cmd := exec.Command(argv[0], append(argv[1:], address)...)
	apart(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // how it ends is its own affair; that it leaves no zombie is ours
	return nil
}
