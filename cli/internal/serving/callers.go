package serving

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/internal/files"
	"github.com/dialai/dialai/internal/issuer"
	"github.com/dialai/dialai/internal/seal"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/server"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/postgres"
	"github.com/dialai/dialai/webhook"
)

// Who may call: whoever has a key, of dialai keys, of the file of tokens or of the environment,
// else whoever can read the key of this computer.

// A closableControl is any of the stores of what a server remembers.
type closableControl interface {
	control.Store
	io.Closer
}

// controlAt returns where it is kept what a server must remember: what --control names, or else beside the
// store. That is the path of a file, or the address of a database of Postgres; neither for what is kept nowhere.
func (a *app) controlAt(named string) (path, address string, err error) {
	if strings.HasPrefix(named, "postgres://") || strings.HasPrefix(named, "postgresql://") {
		return "", named, nil
	}
	if named != "" {
		return named, "", nil
	}
	if path, address, err = a.PlaceOf(a.Flags.Store); path != "" {
		path = store.ControlPath(path)
	}
	return path, address, err
}

// openControl opens what the server remembers.
func (a *app) openControl(ctx context.Context, named string) (closableControl, error) {
	path, address, err := a.controlAt(named)
	switch {
	case err != nil:
		return nil, err
	case address != "":
		c, err := postgres.OpenControl(ctx, address, postgres.Options{TooOld: a.TooOld})
		if err != nil {
			return nil, err // not a nil *postgres.Control
		}
		return c, nil
	case path == "":
		return control.NewMemory(), nil
	}
	c, err := store.OpenControl(ctx, path, store.SQLiteOptions{})
	if err != nil {
		return nil, err // not a nil *store.Control
	}
	return c, nil
}

// tokensFile is the variable that names a file of tokens.
const tokensFile = "DIALAI_TOKENS_FILE"

// minToken is how long the key of an administrator has to be, in bytes.
const minToken = 16

// callers finds out who may call: whoever has a key, where there are any, else who has that
// of this computer.
func (a *app) callers(ctx context.Context, f *serveFlags, remembers control.Store, again *reloading) (server.Authenticator, error) {
	if f.auth == authNone {
		return server.Local(""), nil
	}
	list := []server.Authenticator{server.Keys(remembers, command.Clock)}
	if token := a.Env("DIALAI_API_TOKEN"); token != "" {
		if len(token) < minToken {
			return nil, command.Usage("DIALAI_API_TOKEN has fewer than %d characters", minToken)
		}
		list = append(list, server.Administrator("token", token))
		f.auth = authKeys
	}
	if path := a.Env(tokensFile); path != "" {
		keys, err := a.readTokens(path)
		if err != nil {
			return nil, command.Fail(command.ExitUsage, err)
		}
		again.tokens = server.NewTokens(keys, command.Clock)
		list = append(list, again.tokens)
		f.auth = authKeys
	}
	if o := &f.oidc; o.Issuer != "" || o.Audience != "" || o.Client != "" || len(o.Roles) > 0 || o.HumanClaim != "" {
		if err := o.Check(); err != nil {
			return nil, command.Fail(command.ExitUsage, err)
		}
		f.auth = authKeys
	}
	if o := f.oidc; o.Audience != "" {
		tokens, err := server.Issued(o, issuer.New(o.Issuer, o.Audience, webhook.OperatorOutbound(nil, o.Issuer).Client(), command.Clock))
		if err != nil {
			return nil, command.Fail(command.ExitUsage, err)
		}
		list = append(list, tokens)
	}
	stored, err := remembers.Keys(ctx, control.Query{Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(stored) > 0 {
		f.auth = authKeys
	}
	if f.auth == "" {
		f.auth = authLocal
	}
	key, err := a.serverKey()
	if err != nil {
		return nil, err
	}
	if f.auth == authLocal {
		return server.Any(append(list, server.Local(key))...), nil
	}
	return server.Any(append(list, server.Administrator("local", key))...), nil
}

// clientSecret is the variable with that of this server at the issuer.
const clientSecret = "DIALAI_OIDC_CLIENT_SECRET"

// login returns what has people log in at the issuer; nil has nobody. key seals what their browsers
// keep.
func (a *app) login(f *serveFlags, key seal.Key) *server.Login {
	if f.oidc.Client == "" {
		return nil
	}
	outbound := webhook.OperatorOutbound(nil, f.oidc.Issuer).Client()
	return &server.Login{OIDC: f.oidc, Issuer: issuer.NewLogin(f.oidc.Issuer, f.oidc.Client, a.Env(clientSecret), outbound, command.Clock), Key: key}
}

// serverKey returns the key of this computer, and makes it if there is none.
func (a *app) serverKey() (string, error) {
	path, err := a.ServerKeyPath()
	if err != nil {
		return "", err
	}
	var random [32]byte
	rand.Read(random[:]) // never fails
	fresh := base64.RawURLEncoding.EncodeToString(random[:])
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return command.ReadServerKey(path)
	}
	if err != nil {
		return "", err
	}
	_, err = file.WriteString(fresh + "\n")
	return fresh, errors.Join(err, file.Sync(), file.Close())
}

// A storedToken is an entry of the file of tokens: a key that is kept as its hash, and one grant.
type storedToken struct {
	ID        string           `json:"id"`
	Hash      string           `json:"hash"`
	Tenant    string           `json:"tenant"`
	ExpiresAt *specialist.Time `json:"expiresAt"`
	control.Grant
}

// readTokens reads the file that DIALAI_TOKENS_FILE names.
func (a *app) readTokens(path string) (keys []control.Key, err error) {
	data, err := command.ReadPrivate(path, files.Tokens)
	if err != nil {
		return nil, err
	}
	return keys, machine.ParseSection(path, data, nil, func(section []byte) (problems []machine.Problem) {
		var list []json.RawMessage
		if json.Unmarshal(section, &list) != nil {
			return []machine.Problem{{Code: "bad-type", Message: "a file of tokens is a list", Hint: "of {id, hash: \"sha256:…\", role, machines}"}}
		}
		seen := map[string]bool{}
		for i, raw := range list {
			key, member, err := tokenOf(raw, seen)
			if err != nil {
				problems = append(problems, machine.Problem{Path: fmt.Sprintf("/%d%s", i, member), Code: "bad-token", Message: err.Error()})
				continue
			}
			keys = append(keys, key)
		}
		return problems
	})
}

// tokenOf reads one entry. member is the pointer to what is wrong in it.
func tokenOf(raw []byte, seen map[string]bool) (k control.Key, member string, err error) {
	var t storedToken
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&t); err != nil {
		return k, "", fmt.Errorf("not a token: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	switch {
	case t.ID == "":
		return k, "", fmt.Errorf("id is missing")
	case seen[t.ID]:
		return k, "/id", fmt.Errorf("id %q is there twice", t.ID)
	}
	seen[t.ID] = true
	k = control.Key{ID: t.ID, Tenant: t.Tenant, Grants: []control.Grant{t.Grant}}
	if t.ExpiresAt != nil {
		k.ExpiresAt = *t.ExpiresAt
	}
	if err := k.Hash.UnmarshalText([]byte(t.Hash)); err != nil {
		return k, "/hash", fmt.Errorf("hash of token %q is not sha256: and 64 hex digits", t.ID)
	}
	if err := t.Grant.Check(); err != nil {
		return k, "", err
	}
	return k, "", nil
}
