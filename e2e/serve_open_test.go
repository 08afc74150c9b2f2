package e2e_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// opener puts a program in the place of what opens addresses in a browser; it writes down what.
func (d *desk) opener(script string) (opened string) {
	d.Helper()
	bin := d.TempDir()
	opened = filepath.Join(bin, "opened")
	d.must(os.WriteFile(filepath.Join(bin, "xdg-open"), []byte("#!/bin/sh\n"+strings.ReplaceAll(script, "OPENED", opened)+"\n"), 0o755)) //nolint:gosec // it is run
	d.env = append(d.env, "PATH="+bin+":"+os.Getenv("PATH"), "DISPLAY=:0")
	return opened
}

// told starts the server, and returns what it prints.
func (d *desk) told(args ...string) (s *served, desk string, text func() string) {
	d.Helper()
	out := &lines{}
	s = &served{desk: d, cmd: d.command(append([]string{"serve", "--listen", "127.0.0.1:0", "--open"}, args...)...), logs: &lines{}}
	s.cmd.Stdout, s.cmd.Stderr = out, s.logs
	d.must(s.cmd.Start())
	d.Cleanup(func() { s.cmd.Process.Kill() })
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		said := out.String()
		_, after, _ := strings.Cut(said, "http://")
		if _, ticket, ok := strings.Cut(said, "/desk/#t="); ok && strings.Contains(ticket, "\n") { // it is printed in parts
			s.url = "http://" + strings.FieldsFunc(after, func(c rune) bool { return strings.ContainsRune(" ,/\"", c) })[0]
			return s, strings.FieldsFunc(ticket, func(c rune) bool { return strings.ContainsRune(" \n\"", c) })[0], out.String
		}
		if time.Now().After(until) {
			d.Fatalf("the server does not say where it is: %s%s", out, s.logs)
		}
	}
}

// signsIn says with which status a ticket signs in, and as whom.
func (s *served) signsIn(ticket string) (status int, subject string) {
	s.Helper()
	body, err := json.Marshal(map[string]string{"ticket": ticket})
	s.must(err)
	resp, err := http.Post(s.url+"/desk/session", "application/json", bytes.NewReader(body))
	s.must(err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	s.must(err)
	var who struct{ Subject string }
	s.must(json.Unmarshal(text, &who))
	return resp.StatusCode, who.Subject
}

// TestServeOpens: a browser is shown the desk at an address that signs in once, as who has the key of
// this computer, whoever that is in each mode; the audit log has it, and the log has no ticket.
func TestServeOpens(t *testing.T) {
	for _, c := range []struct{ args, subject string }{{"", "local"}, {"--auth keys", "local"}, {"--auth none", "anybody"}, {"--json", "local"}, {"--quiet", "local"}} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			opened := d.opener(`echo "$1" > OPENED.part; mv OPENED.part OPENED`)
			s, ticket, text := d.told(strings.Fields(c.args)...)
			want := s.url + "/desk/#t=" + ticket
			for until := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
				if got, err := os.ReadFile(opened); err == nil {
					if strings.TrimSpace(string(got)) != want {
						t.Errorf("a browser is shown %s, and it is said:\n%s", got, text())
					}
					break
				}
				if time.Now().After(until) {
					t.Fatalf("no browser is shown %s: %s", want, s.logs)
				}
			}
			if status, subject := s.signsIn(ticket); status != 200 || subject != c.subject {
				t.Errorf("the ticket signs in %q (%d)", subject, status)
			}
			if status, _ := s.signsIn(ticket); status != 401 {
				t.Errorf("a second time it comes to %d", status)
			}
			if strings.Contains(s.logs.String(), ticket) {
				t.Errorf("the log has the ticket: %s", s.logs)
			}
			s.end(syscall.SIGTERM, 0)
		})
	}
}

// TestServeOpensNothing: where no browser can be shown anything, or it fails, the address is
// printed all the same, and the server serves.
func TestServeOpensNothing(t *testing.T) {
	for name, prepare := range map[string]func(*desk){
		"no display": func(d *desk) { d.opener("touch OPENED"); d.env = append(d.env, "DISPLAY=", "WAYLAND_DISPLAY=") },
		"no program": func(d *desk) { d.env = append(d.env, "PATH="+d.TempDir(), "DISPLAY=:0") },
		"it fails":   func(d *desk) { d.opener("exit 3") },
		"it hangs":   func(d *desk) { d.opener("exec sleep 2") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			prepare(d)
			s, ticket, _ := d.told()
			if status, _ := s.signsIn(ticket); status != 200 {
				t.Errorf("the ticket comes to %d", status)
			}
			if said := strings.Contains(s.logs.String(), "no browser opens the desk"); said != (name == "no program") {
				t.Errorf("the log says %s", s.logs)
			}
			s.end(os.Interrupt, 0)
		})
	}
}
