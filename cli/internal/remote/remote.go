// Package remote has what commands do at a server that --server names, in the place of the
// engine here.
package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/client"
	"github.com/dialai/dialai/internal/files"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// Commands at a distance: with --server the operations on sessions are those of a server
// (Server), and what it tells is shown as what is found here. What a session has that no
// command shows it does not have; who may see what, the server has decided.

// Commands are those that work at a server, and whether they do in this version.
// All others work here, whatever --server says, but for what nobody does at a server.
var Commands = map[string]bool{
	"dialai": true, "run": true, "resume": true, "decide": true, "propose": true, "inbox": true, "sessions": true, "show": true, "log": true, "cancel": true, "fork": true, "proxy": true, "webhooks": true,
	"tick": true, "move": true, "retract": true, "audit": true, "explain": true, "trust": true, "collapse": true, "risk": true, "calibration": true, "spend": true, "metrics": true, "specialists": true,
	"backtest": true, "store": true, "check": true, "keys": true, "serve": false, "migrate": false, "undertake": false, "status": false, "say": false, "watch": false, "permit": false, "workers": false,
}

// localFlags make no sense at a server, and why.
var localFlags = []struct{ name, why string }{
	{"store", "sessions are kept where the server keeps them"},
	{"control", "the server knows what it remembers in"},
	{"prices", "the server knows what models cost"},
	{"record", "services and models are asked by the server"},
	{"replay", "services and models are asked by the server"},
	{"shadow", "steps are judged by the server"},
	{"guards", "steps are judged by the server"},
	{"interactive", "it asks at the terminal of the server only: rule with dialai decide"},
	{"tenant", "a key is of the tenant of whoever makes it"},
	{"quarantined", "it is seen where the store is"},
	{"timeout", "sessions go on at the server: Ctrl-C stops to watch"},
	{"wait", "sessions go on at the server, whether somebody waits or not"},
}

// Check checks what a command is to do at a server.
func Check(a *command.App, cmd *cobra.Command) error {
	f := &a.Flags
	if at := cmd.Flags().Lookup("remote"); at != nil && at.Changed {
		if f.Server == "" {
			f.Server = a.Env("DIALAI_BASE_URL")
		}
		if f.Server == "" {
			return command.Hinted(command.Usage("--remote, but the DIALAI_BASE_URL environment variable is not set"), "set it, or name the server with --server URL")
		}
	}
	if f.Server == "" {
		if f.KeyFile != "" {
			return command.Usage("--key-file without --server")
		}
		return nil
	}
	top := cmd
	for top.HasParent() && top.Parent().HasParent() {
		top = top.Parent()
	}
	served, distant := Commands[top.Name()]
	if !top.HasParent() {
		served, distant = true, true
	}
	if !distant {
		f.Server = ""
		return nil
	}
	if !served || cmd.CommandPath() == "dialai store head" {
		return command.Hinted(command.Usage("%s does not work at a server in this version", cmd.CommandPath()), "leave out --server, and run it where the store is")
	}
	for _, l := range localFlags {
		if flag := cmd.Flags().Lookup(l.name); flag != nil && flag.Changed && (l.name != "guards" || top.Name() != "backtest") {
			return command.Hinted(command.Usage("--%s with --server: %s", l.name, l.why), "leave out one of them")
		}
	}
	return nil
}

// Shows is how a command shows what happens to a session.
type Shows interface {
	// Follow takes up a session where it stands.
	Follow(s *session.Session)
	// Text shows the events of a record, and Line one line of its round, for people.
	Text(c session.Change)
	Line(format string, args ...any)
	// Event shows an event as the server told it, as JSON.
	Event(e api.Event)
	Flush()
}

// A Server is a server in the place of a Runner and its store.
type Server struct {
	*client.Client
	a         *command.App
	shows     Shows // what happens to the session that is followed; nil for commands that only look
	programs  *session.Programs
	sent      *machine.Machine               // whose definition the server was sent last
	shown     api.Session                    // the session that was read last, as it was told
	reader    *session.Session               // as of the event that was told last, for what names in the next one mean
	after     int64                          // the number of that event
	withdraws bool                           // the ruling that is told takes another one back
	record    []api.Event                    // that are read, and may have others of their record behind them
	pull      func() (api.Item, error, bool) // the inbox behind the last page
	missing   []string                       // without whom the session was started, if that is to be told
	ahead     *runner.Question               // that was read of it

	reviews     func() (runner.ReviewItem, error, bool) // those that wait behind the last page
	reviewAhead *runner.ReviewItem                      // that was read of them
}

// Open returns the server that --server names.
func Open(ctx context.Context, a *command.App, shows Shows) (*Server, error) {
	config := client.Config{BaseURL: a.Flags.Server, Tenant: a.Env("DIALAI_TENANT")}
	if _, err := client.New(config); err != nil {
		return nil, command.Hinted(command.Usage("--server: %v", err), "such as http://127.0.0.1:8420, as dialai serve prints it")
	}
	key, err := keyFor(a)
	if err != nil {
		return nil, err
	}
	config.Key = key
	c, err := client.New(config)
	if err != nil {
		return nil, err
	}
	r := &Server{Client: c, a: a, shows: shows, programs: session.NewPrograms()}
	a.Shorten(ctx, r.Sessions)
	return r, nil
}

// keyFor returns the key that the server is sent: the one in the file that is named, that
// of the environment, or, for a server of this computer, that of this computer.
func keyFor(a *command.App) (string, error) {
	if path := a.Flags.KeyFile; path != "" {
		text, err := files.ReadRegular(path, files.ServerKey)
		if err != nil {
			return "", command.Fail(command.ExitFailure, fmt.Errorf("--key-file: %w", err))
		}
		if key := strings.TrimSpace(string(text)); key != "" {
			return key, nil
		}
		return "", fmt.Errorf("--key-file: %s holds no key", path)
	}
	if key := a.Env("DIALAI_API_TOKEN"); key != "" {
		return key, nil
	}
	if !nearby(a.Flags.Server) {
		return "", command.Hinted(fmt.Errorf("there is no key for %s: tried --key-file and DIALAI_API_TOKEN; that of this computer is sent to this computer only", a.Flags.Server),
			"whoever runs the server makes one with dialai keys create")
	}
	path, err := a.ServerKeyPath()
	if err != nil {
		return "", err
	}
	key, err := command.ReadServerKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil // it may let everybody in
	}
	return key, err
}

// nearby reports whether a server is of this computer, by its address.
func nearby(server string) bool {
	if strings.HasPrefix(server, "unix:") {
		return true
	}
	u, err := url.Parse(server)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// Told turns what the client says into what the engine would have said.
func (r *Server) Told(err error) error {
	if err == nil {
		return nil
	}
	var p *client.Problem
	if !errors.As(err, &p) {
		return r.unreached(err)
	}
	var details []string
	for _, d := range p.Problems {
		details = append(details, strings.TrimPrefix(d.Pointer+": "+d.Message, ": "))
	}
	refused := &runner.Error{Code: p.Code, Message: p.Detail, Hint: p.Hint, Details: details}
	for _, k := range []struct{ is, kind error }{
		{client.ErrNotRunning, runner.ErrNotRunning}, {client.ErrForbidden, runner.ErrForbidden}, {client.ErrNotFound, session.ErrNotFound}, {client.ErrIllegal, runner.ErrIllegal},
	} {
		if errors.Is(p, k.is) {
			refused.Kind = k.kind
		}
	}
	if p.Question != nil {
		return &runner.StaleError{Refusal: refused, Question: *p.Question, Changed: p.Reasons}
	}
	switch {
	case p.Code == "cannot_start":
		return r.placed(p.Problems)
	case errors.Is(p, client.ErrUnauthenticated):
		return command.Hinted(fmt.Errorf("%s does not know the key that it was sent", r.a.Flags.Server), "%s", r.keysTried())
	case p.ExitCode != 0 && p.ExitCode != command.ExitFailure:
		return command.Fail(p.ExitCode, refused)
	}
	return refused
}

// placed returns what keeps a session from its start, at its place in the definition that the
// server was sent.
func (r *Server) placed(problems []api.Problem) error {
	var reasons []error
	for _, d := range problems {
		if d.Pointer == "" || r.sent == nil {
			reasons = append(reasons, errors.New(d.Message))
			continue
		}
		reasons = append(reasons, &runner.DanglingError{Problem: r.sent.Locate(machine.Problem{Path: d.Pointer, Code: d.Code, Message: d.Message, Hint: d.Hint})})
	}
	return errors.Join(reasons...)
}

// keysTried says where a key may be.
func (r *Server) keysTried() string {
	return "a key is that of --key-file FILE, else DIALAI_API_TOKEN, else, at this computer, that in the file server-key which dialai serve prints; dialai keys create makes one"
}

// unreached says that the server was not reached, and what to do.
func (r *Server) unreached(err error) error {
	var untrusted *tls.CertificateVerificationError
	var asked *url.Error
	switch server := r.a.Flags.Server; {
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &untrusted):
		return command.Hinted(fmt.Errorf("the certificate of %s is not to be trusted: %w", server, untrusted.Err), "SSL_CERT_FILE names a file with the authority that has signed it, if that is yours")
	case errors.As(err, &asked):
		return command.Hinted(fmt.Errorf("%s was not reached: %w", server, asked.Err), "is dialai serve running there? --server names another; without it the store of this computer is used")
	}
	return fmt.Errorf("%s: %w", r.a.Flags.Server, err)
}
