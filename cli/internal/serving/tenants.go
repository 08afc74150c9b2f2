package serving

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/internal/section"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/store/postgres"
	"github.com/dialai/dialai/webhook"
)

// What only the file of settings has: the tenants of a server, each with a store of its own, and
// the hosts to which variables with tokens may be sent, whoever's machine names them.

// A tenantSettings is what the file says of a tenant.
type tenantSettings struct {
	store      string // as --store names it; "" of "default" means what that does
	workers    int64  // 0 means all
	tokenNames []string
	quota      *spend.Quota
}

// mostTenantName bounds the name of a tenant, in characters.
const mostTenantName = 63

// tenantNames are those that can stand in an address, whatever their length.
var tenantNames = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)

// readTenants reads the member tenants.
func (a *app) readTenants(r *section.Reader, into *map[string]tenantSettings) func(path string, value []byte) {
	return func(path string, value []byte) {
		section.Map(r, into, func(path string, value []byte) (t tenantSettings) {
			t.tokenNames = []string{}
			r.Object([]section.Member{
				{"store", r.Name(&t.store)},
				{"workers", r.Count(&t.workers, 1)},
				{"tokenNames", r.Names(&t.tokenNames)},
				{"quota", readQuota(r, &t.quota)},
			})(path, value)
			return t
		})(path, value)
		seen := map[string]string{}
		for _, name := range slices.Sorted(maps.Keys(*into)) {
			t, at := (*into)[name], path+"/"+machine.EscapePointer(name)
			if len(name) > mostTenantName || !tenantNames.MatchString(name) {
				r.Report(at, "bad-name", fmt.Sprintf("%q cannot be the name of a tenant", name), "write up to 63 small letters, digits and hyphens")
			}
			if t.store == "" && name != defaultTenant {
				r.Report(at, "missing-field", fmt.Sprintf("tenant %q has no store", name), "each tenant has one of its own, such as store: "+name+".db")
				continue
			}
			place, err := a.placeOfTenant(cmp.Or(t.store, a.Flags.Store))
			if err != nil {
				r.Report(at+"/store", "bad-value", err.Error(), "")
				continue
			}
			if place != "" && seen[place] != "" {
				hint := "what one learns and may spend would be the other's"
				if strings.HasPrefix(place, "postgres://") {
					hint += "; in one database each has a schema of its own, such as ?schema=" + strings.ReplaceAll(name, "-", "_")
				}
				r.Report(at, "same-store", fmt.Sprintf("tenants %q and %q have the same store", seen[place], name), hint)
			}
			seen[place] = name
		}
		if len(*into) == 0 && len(r.Problems) == 0 {
			r.Report(path, "missing-field", "tenants has none", "leave it out for one, default")
		}
	}
}

// placeOfTenant returns where a store is that is named as --store does, the same for all names of it: the path
// of a file, or what is shown of the address of a database; "" for one in memory.
func (a *app) placeOfTenant(name string) (string, error) {
	path, address, err := a.PlaceOf(name)
	switch {
	case err != nil || path+address == "":
		return "", err
	case address != "":
		return postgres.Place(address)
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return path, nil
}

// readQuota reads what a tenant may use.
func readQuota(r *section.Reader, into **spend.Quota) func(path string, value []byte) {
	return func(path string, value []byte) {
		q := &spend.Quota{}
		r.Object([]section.Member{
			{"windows", section.List(r, &q.Windows, func(path string, value []byte) (w spend.Window) {
				r.Object([]section.Member{
					{"length", readLength(r, &w.Msec)},
					{"sliding", r.Bool(&w.Sliding)},
					{"tokens", r.OptionalCount(&w.Tokens)},
					{"calls", r.OptionalCount(&w.Calls)},
					{"usd", r.OptionalMoney(&w.USD)},
				})(path, value)
				r.Require(path, value, "length")
				return w
			})},
			{"usdPerMinute", r.OptionalMoney(&q.USDPerMinute)},
			{"maxSessions", r.OptionalCount(&q.MaxSessions)},
			{"maxFanOut", r.OptionalCount(&q.MaxFanOut)},
			{"maxDepth", r.OptionalCount(&q.MaxDepth)},
		})(path, value)
		*into = q
	}
}

// readLength reads a time of at least a second, such as 24h, as milliseconds.
func readLength(r *section.Reader, into *int64) func(path string, value []byte) {
	return func(path string, value []byte) {
		var text string
		r.Text(&text)(path, value)
		if d, err := time.ParseDuration(text); err == nil && d >= time.Second {
			*into = d.Milliseconds()
		} else if text != "" {
			r.Report(path, "bad-value", fmt.Sprintf("%s is %q, not a time from 1s on, such as 24h", section.NameOf(path), text), "")
		}
	}
}

// readBindings reads the member tokens: the hosts of each variable.
func readBindings(r *section.Reader, into *map[string][]string) func(path string, value []byte) {
	*into = map[string][]string{}
	return r.Each("tokens", func(path string, value []byte) {
		var name string
		var hosts []string
		r.Object([]section.Member{{"name", r.Name(&name)}, {"hosts", r.Names(&hosts)}})(path, value)
		r.Require(path, value, "name", "hosts")
		for i := range hosts {
			host, err := webhook.Host(hosts[i])
			if err != nil {
				r.Report(fmt.Sprintf("%s/hosts/%d", path, i), "bad-value", err.Error(), "such as api.example.com, or api.example.com:8443")
			}
			hosts[i] = host
		}
		if _, twice := (*into)[name]; twice && name != "" {
			r.Report(path+"/name", "bad-value", fmt.Sprintf("variable %s is there twice", name), "list all its hosts in one place")
		}
		(*into)[name] = hosts
	})
}

// own are the members that only the file has.
func (a *app) own(f *serveFlags) map[string]func(*section.Reader) func(path string, value []byte) {
	return map[string]func(*section.Reader) func(path string, value []byte){
		"tenants": func(r *section.Reader) func(string, []byte) { return a.readTenants(r, &f.tenants) },
		"tokens":  func(r *section.Reader) func(string, []byte) { return readBindings(r, &f.tokens) },
	}
}

// tenancy returns the tenants in the order of their names: those of the file, or one.
func (f *serveFlags) tenancy() (names []string) {
	if f.tenants == nil {
		return []string{defaultTenant}
	}
	return slices.Sorted(maps.Keys(f.tenants))
}

// engineOf says what sets the engine of a tenant apart.
func (f *serveFlags) engineOf(name string, bound func(variable, host string) error) command.EngineOf {
	of := command.EngineOf{Hooks: func(c *webhook.Config) { c.Bound = bound }}
	t, several := f.tenants[name]
	if !several {
		return of
	}
	of.Store, of.Tenant, of.Quota, of.Path = t.store, name, t.quota, "/t/"+name
	of.Hooks = func(c *webhook.Config) {
		c.Bound, c.TokenNames, c.TokenSetting = bound, t.tokenNames, "tokenNames of tenant "+name
	}
	return of
}

// A bindings says to which hosts variables with tokens may be sent: to those in the settings. Where
// nobody but the user of this computer calls, a variable that the settings do not name is bound to
// the first host to which it is to be sent, and the log says so.
type bindings struct {
	settings map[string][]string
	first    bool // the first host is right
	kept     control.Store
	log      *slog.Logger
}

// bound returns why a variable may not be sent to a host, nil if it may, and is about to be.
func (b *bindings) bound(variable, host string) error {
	free, err := b.look(variable, host)
	if err != nil || !free {
		return err
	}
	if err = b.bind(variable, host); errors.Is(err, control.ErrExists) { // somebody else was faster
		err = b.maySend(variable, host)
	}
	return err
}

// maySend returns why a variable could not be sent to a host, and binds nothing.
func (b *bindings) maySend(variable, host string) error {
	_, err := b.look(variable, host)
	return err
}

// look reports whether a variable is bound to no host yet; the error says why it may not be sent
// to this one.
func (b *bindings) look(variable, host string) (free bool, err error) {
	hosts, known := b.settings[variable]
	switch {
	case slices.Contains(hosts, host):
		return false, nil
	case known || !b.first:
		return false, &webhook.BoundError{Variable: variable, Host: host, Bound: hosts}
	}
	before, err := b.kept.Binding(context.Background(), variable)
	switch {
	case errors.Is(err, control.ErrNotFound):
		return true, nil
	case err == nil && before.Host != host:
		return false, &webhook.BoundError{Variable: variable, Host: host, Bound: []string{before.Host}}
	}
	return false, err
}

// bind has a variable sent to a host from now on.
func (b *bindings) bind(variable, host string) error {
	now := control.Binding{Variable: variable, Host: host, At: command.Now()}
	err := b.kept.Commit(context.Background(), control.Changes{Bind: &now, Entries: []control.Entry{{
		At: now.At, Tenant: defaultTenant, Subject: "dialai", Method: "none", Operation: "bindToken", Target: variable + " " + host, Result: "ok",
	}}})
	if err == nil {
		b.log.Warn("a variable is sent to this host from now on, and to no other", "variable", variable, "host", host)
	}
	return err
}
