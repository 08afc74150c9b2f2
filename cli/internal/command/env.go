package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/postgres"
)

// The environment is read in this file only, and what the store is that --store names. Who only
// looks may do with a store that cannot be written, and never makes one; only commands that
// begin sessions do.
//
// The address of a store that this version does not know may hold a password, so nothing
// but its scheme is shown.

// environment lists the variables that are read. Help and docs are made from it.
var environment = []struct{ name, text string }{
	{"XDG_DATA_HOME", "where the default store lies: dialai/dialai.db in it; without it, in ~/.local/share"},
	{"DATABASE_URL", "a store, for --store env and dialai migrate: sqlite:PATH, memory:, or postgres://USER:PASSWORD@HOST/DATABASE"},
	{"DIALAI_WEBHOOK_ALLOW", "hosts, host:port pairs and CIDR prefixes that webhooks may be at though they are private or use http"},
	{"DIALAI_WEBHOOK_TOKEN_NAMES", "globs of the variables that machine files may name as tokens or secrets (default: *WEBHOOK*)"},
	{"DIALAI_LLM_BASE_URL", "the address of an API like OpenAI's that every model is asked at, for example http://localhost:1234/v1; it may be private"},
	{"OPENROUTER_API_TOKEN", "the key of OpenRouter, or of the API at DIALAI_LLM_BASE_URL; with it every modelId goes there unchanged"},
	{"OPENAI_API_KEY", "the key for models whose id begins with openai/"},
	{"ANTHROPIC_API_KEY", "the key for models whose id begins with anthropic/"},
	{"GEMINI_API_KEY", "the key for models whose id begins with google/"},
	{"OLLAMA_HOST", "the Ollama server of models whose id begins with ollama/, for example 127.0.0.1:11434; it may be private"},
	{"DIALAI_PUBLIC_URL", "an http or https address that webhooks are told to send late answers to; without it none may answer later. It is where dialai serve is reached on this store, or else nobody listens: then hand the answers in with dialai propose"},
	{"DIALAI_API_TOKEN", "the key of an administrator of dialai serve, at least 16 characters; with it nobody rules but with a key that names the human. With --server the key that is sent"},
	{"DIALAI_TOKENS_FILE", "a file with further keys of dialai serve, by their SHA-256: a JSON or YAML list of id, hash, expiresAt and grants"},
	{"DIALAI_CORS_ORIGINS", "the origins of pages elsewhere that may call dialai serve, separated by commas, as --cors-origin"},
	{"DIALAI_SERVER_KEY", "the key with which a server seals what it takes back from others and the secrets of webhooks: 32 bytes in base64; without it a file beside what the server remembers"},
	{"DIALAI_OIDC_CLIENT_SECRET", "the secret of --oidc-client of dialai serve at its issuer, if it has one"},
	{"DIALAI_BASE_URL", "the server at which dialai run and resume --remote work, as --server names it, and to which dialai --mcp passes everything on"},
	{"DIALAI_TENANT", "the tenant that commands with --server mean, for who administers all of a server's; the name of one in its settings"},
	{"DIALAI_PORT", "the port of 127.0.0.1 at which dialai serve listens without --listen (default: 8420)"},
	{"OTEL_EXPORTER_OTLP_ENDPOINT", "where traces and metrics of calls of models are sent, and traces of the requests and steps of a server, as OpenTelemetry's; without this or one for a signal none are. The other standard variables hold too, such as OTEL_EXPORTER_OTLP_HEADERS, OTEL_TRACES_EXPORTER=none and OTEL_SDK_DISABLED=true; OTEL_EXPORTER_OTLP_PROTOCOL is http/protobuf or http/json, and not grpc"},
	{"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true puts what models are asked and say into traces"},
	{"DIALAI_LLM_CONCURRENT", "how many calls of one provider are made at the same time (default: 64)"},
	{"DIALAI_LLM_PER_MINUTE", "how many calls of one provider are begun in a minute; without it as many as it takes"},
	{"DIALAI_AUDIT", "how much of what models are asked and say is kept for dialai audit: redacted (the default), full or digest"},
	{"NO_COLOR", "if it is set and not empty, no colours"},
	{"TERM", "dumb means no colours and no progress line"},
}

// EnvironmentTopic is shown by dialai help environment.
func EnvironmentTopic() *cobra.Command {
	var b strings.Builder
	b.WriteString("Variables that dialai reads:\n\n")
	for _, v := range environment {
		fmt.Fprintf(&b, "  %s\n      %s\n", v.name, v.text)
	}
	b.WriteString("\nA machine file names further ones, for the tokens of its webhooks.")
	return &cobra.Command{Use: "environment", Short: "The variables that dialai reads", Long: strings.TrimRight(b.String(), "\n")}
}

// Env returns a variable of the environment, "" if it is not set.
func (a *App) Env(name string) string {
	v, _ := a.Lookup(name)
	return v
}

// DefaultStore returns the path of the store that is used when none is named.
func (a *App) DefaultStore() (string, error) {
	dir := a.Env("XDG_DATA_HOME")
	if dir == "" || !filepath.IsAbs(dir) {
		home := a.Env("HOME")
		if home == "" {
			var err error
			if home, err = os.UserHomeDir(); err != nil {
				return "", errors.New("neither XDG_DATA_HOME nor HOME is set, so there is no default store; name one with --store")
			}
		}
		dir = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(dir, "dialai", "dialai.db"), nil
}

// StorePath returns the path of the SQLite file that --store names, "" for the
// memory store. A store in Postgres is a usage error, for who calls it needs a file.
func (a *App) StorePath() (string, error) { return a.PathOf(a.Flags.Store) }

// PathOf returns the path of the SQLite file that a text names as --store does, "" for the memory
// store. A store in Postgres is a usage error.
func (a *App) PathOf(name string) (string, error) {
	path, address, err := a.PlaceOf(name)
	if err == nil && address != "" {
		err = Hinted(Usage("this needs a store in a file, and the one named is in Postgres"), "name the file with --store PATH")
	}
	return path, err
}

// PlaceOf returns where the store is that a text names as --store does: the path of a SQLite file, or the
// address of a database of Postgres, which may hold a password; neither for the memory store.
func (a *App) PlaceOf(name string) (path, address string, err error) {
	if name != "env" {
		return a.parseStore(name)
	}
	if name = a.Env("DATABASE_URL"); name == "" {
		return "", "", Usage("--store env, but the DATABASE_URL environment variable is not set")
	}
	return a.ParseDatabase(name)
}

// ParseDatabase reads DATABASE_URL, where a bare path is probably a mistake. It returns the path of a
// SQLite file, or the address of a database of Postgres; neither for the memory store.
func (a *App) ParseDatabase(name string) (path, address string, err error) {
	if slices.ContainsFunc([]string{"sqlite:", "memory:", "postgres:", "postgresql:"}, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
		return a.parseStore(name)
	}
	return "", "", Hinted(Usage("DATABASE_URL does not name a database"), "it may be sqlite:PATH, memory: or postgres://USER:PASSWORD@HOST/DATABASE")
}

// NamesFile returns an error where what is given is the address of a store, in place of the path of a file. It does not repeat
// it: it may have a password.
func NamesFile(what, given string) error {
	if addressed.MatchString(given) {
		return Hinted(Usage("%s has to be a file, and is the address of a store", what), "give a path, such as /backup/2026.db")
	}
	return nil
}

var addressed = regexp.MustCompile(`^(env$|memory:|sqlite:|[A-Za-z][A-Za-z0-9+.-]*://)`)

func (a *App) parseStore(name string) (path, address string, err error) {
	switch {
	case name == "":
		path, err = a.DefaultStore()
		return path, "", err
	case name == "memory:":
		return "", "", nil
	case strings.HasPrefix(name, "postgres://"), strings.HasPrefix(name, "postgresql://"):
		return "", name, nil
	case strings.HasPrefix(name, "sqlite:"):
		name = strings.TrimPrefix(strings.TrimPrefix(name, "sqlite:"), "//")
		name, a.plain = strings.CutSuffix(name, "?pack=off")
		if name == "" {
			return "", "", Usage("--store sqlite: needs a path behind it")
		}
	}
	if scheme := otherStore.FindStringSubmatch(name); scheme != nil {
		kind := strings.ToLower(scheme[1] + scheme[2])
		if strings.HasPrefix(kind, "postgres") {
			return "", "", Usage("a store in Postgres is named as postgres://USER:PASSWORD@HOST/DATABASE")
		}
		return "", "", Hinted(Usage("%s:// names no store of this version", kind), "use a SQLite file: --store PATH")
	}
	return name, "", nil
}

// otherStore matches the address of a store that this version does not know. It may hold
// a password, so nothing of it but its scheme is ever shown, nor is a file of that name
// made; ./NAME is a path whatever it looks like.
var otherStore = regexp.MustCompile(`(?i)^(?:([a-z][a-z0-9+.-]+)://|(postgres(?:ql)?):)`)

// Keeps reports whether the store outlives this program.
func (a *App) Keeps() bool {
	if a.Flags.Server != "" {
		return true
	}
	path, address, err := a.PlaceOf(a.Flags.Store)
	return err == nil && path+address != ""
}

// A closableStore is any of the stores.
type closableStore interface {
	session.Store
	io.Closer
}

// What a command does with a store.
type Access int

const (
	Reads  Access = iota // looks only: a store that cannot be written will do
	Writes               // changes what is there
	Starts               // begins sessions: a store that does not exist is made
)

// Access returns x: it is what a command says that always does the same.
func (x Access) Access() Access { return x }

// AccessFor is writes for what changes something, and else reads.
func AccessFor(changes bool) Access {
	if changes {
		return Writes
	}
	return Reads
}

// openStore opens the store of a name. Nobody who does not start sessions makes one.
func (a *App) openStore(ctx context.Context, name string, does Access) (closableStore, error) {
	path, address, err := a.PlaceOf(name)
	switch {
	case err != nil:
		return nil, err
	case address != "":
		s, err := a.OpenPostgres(ctx, address, does)
		if err != nil {
			return nil, err // not a nil *postgres.Store
		}
		return s, nil
	case path == "":
		return store.NewMemory(), nil
	}
	if err := a.Present(path); err != nil && does != Starts {
		if name == "" {
			return store.NewMemory(), nil // nothing was ever run here
		}
		return nil, err
	}
	s, err := a.OpenSQLite(ctx, path, does)
	if err != nil {
		return nil, err // not a nil *store.SQLite
	}
	return s, nil
}

// OpenSQLite opens a file that is there. Where it cannot be written, it can still
// be looked at.
func (a *App) OpenSQLite(ctx context.Context, path string, does Access) (*store.SQLite, error) {
	s, err := store.OpenSQLite(ctx, path, store.SQLiteOptions{Observe: a.Watch.Transaction, Plain: a.plain, Migrating: a.Migrating()})
	if does == Reads && errors.Is(err, store.ErrReadOnly) {
		return store.OpenSQLite(ctx, path, store.SQLiteOptions{ReadOnly: true})
	}
	return s, err
}

// PostgresAddress returns the address of the database of Postgres that --store names, "" for any other store.
func (a *App) PostgresAddress() string {
	_, address, err := a.PlaceOf(a.Flags.Store)
	if err != nil {
		return ""
	}
	return address
}

// OpenPostgres opens the store in a database of Postgres. Who starts sessions makes one if there is none.
func (a *App) OpenPostgres(ctx context.Context, address string, does Access) (*postgres.Store, error) {
	return postgres.Open(ctx, address, postgres.Options{Observe: a.Watch.Transaction, Migrating: a.Migrating(), Existing: does != Starts, Standby: does == Reads, TooOld: a.TooOld})
}

// TooOld ends the command since a store that it uses is for newer versions only. It does not block.
func (a *App) TooOld(err error) {
	if a.End != nil {
		a.End(Fail(ExitTooOld, err))
	}
}

// Present returns an error if there is no store at a path.
func (a *App) Present(path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return Hinted(fmt.Errorf("there is no store %s", path), "running a machine file makes one")
	}
	return nil
}

// Migrating returns what shows how far a store is that is brought up to date.
func (a *App) Migrating() func(part string, done, of int64) {
	var show func(done, of int64)
	var stop func()
	return func(part string, done, of int64) {
		if show == nil {
			m := render.NewMeter(a.Screen(), part, "rows")
			show, stop = m.At, m.Stop
		}
		if show(done, of); done == of { // this part is over
			stop()
			show = nil
		}
	}
}

// Screen returns where it is shown how far work is: stderr, nil where nobody would see it.
func (a *App) Screen() io.Writer {
	if !render.IsTerminal(a.Err) || a.Env("TERM") == "dumb" || a.Flags.Quiet || a.Flags.JSON {
		return nil
	}
	return a.Err
}
