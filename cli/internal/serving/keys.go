package serving

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/internal/text"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/postgres"
)

// defaultTenant is whose a key is where a server has no tenants.
const defaultTenant = "default"

// KeysCommand returns dialai keys. With --server its keys are those of the server that distant
// returns.
func KeysCommand(call *command.App, distant Distant) *cobra.Command {
	k := &keys{app: &app{call}, distant: distant}
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Make, list and revoke the keys of a server",
		Long: `Make, list, revoke and rotate the keys by which people and programs are known to a
dialai server. They are kept in a file beside the store, of which --control names another;
of a store in Postgres, in a schema beside it. A server that has a key asks everybody for
one. What is done here is recorded in the audit log that is kept there, too. With --server
they are those of a server that runs.`,
		Example: `  dialai keys create carol --role human --human carol --machine 'claims-*'
  dialai keys list
  dialai keys revoke 4f0w2m9x8k1t`,
	}
	cmd.PersistentFlags().StringVar(&k.control, "control", "", "the `file` in which a server keeps what it must remember (default: that of the store, with .control behind its name; with a store in Postgres, a schema beside it)")
	cmd.AddCommand(k.createCommand(), k.listCommand(), k.revokeCommand(), k.rotateCommand())
	return cmd
}

// keys are the commands about keys.
type keys struct {
	*app
	control string // the path, "" for the default
	distant Distant
}

// with opens what a server remembers for a while. Only who adds keys makes it; where there is none, nothing
// is done, and missing is returned.
func (k *keys) with(ctx context.Context, does command.Access, missing error, do func(control.Store) error) (err error) {
	path, address, err := k.controlAt(k.control)
	switch {
	case err != nil:
		return err
	case address != "":
		c, err := postgres.OpenControl(ctx, address, postgres.Options{Existing: does != command.Starts, Standby: does == command.Reads})
		if errors.Is(err, postgres.ErrNone) {
			return missing
		}
		if err != nil {
			return err
		}
		return errors.Join(do(c), c.Close())
	case path == "":
		return command.Usage("the memory store has no keys or webhooks; name a file with --control")
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && does != command.Starts {
		return missing
	}
	c, err := store.OpenControl(ctx, path, store.SQLiteOptions{})
	if does == command.Reads && errors.Is(err, store.ErrReadOnly) {
		c, err = store.OpenControl(ctx, path, store.SQLiteOptions{ReadOnly: true})
	}
	if errors.As(err, new(*store.OpenError)) {
		return command.Hinted(err, "nothing was changed; name the file with --control PATH")
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return do(c)
}

// entry is what the audit log is told of a command that has done something with a key.
func entry(operation string, key *control.Key, at specialist.Time) control.Entry {
	who := command.LocalActor()
	return control.Entry{At: at, Tenant: key.Tenant, Subject: who.Subject, Method: who.Method, Operation: operation, Target: key.ID, Result: "ok"}
}

// grantFlags are those of what a key may do.
type grantFlags struct {
	elicit                               string
	roles, machines, humans, specialists []string
	tenant                               string
}

func (k *keys) createCommand() *cobra.Command {
	var f grantFlags
	var expires string
	cmd := &cobra.Command{
		Use:   "create <name>",
		Short: "Make a key, and show it once",
		Long: `Make a key for somebody: a name that says who. It is printed once, and only a hash of it
is kept. With --quiet nothing else is printed, for scripts.

  viewer      reads where sessions stand, not what is in them
  operator    starts and drives sessions and publishes machines, and reads all of them
  human       rules as the ids of --human
  specialist  proposes as the ids of --specialist
  auditor     reads, and the audit log
  admin       all of an operator, and keys; rules as the ids of --human

Several roles make a key that may do what each of them may.`,
		Example: `  dialai keys create carol --role human --human carol --machine 'claims-*'
  dialai keys create ci --role operator --expires 90d
  dialai keys create ops --role admin --quiet > admin-key`,
		RunE: func(cmd *cobra.Command, args []string) error {
			at := command.Now()
			grants, err := f.grants()
			if err != nil {
				return err
			}
			key := control.Key{Name: args[0], Tenant: f.tenant, Grants: grants}
			if expires != "" {
				if key.ExpiresAt, err = expiry(expires, at); err != nil {
					return err
				}
			}
			if k.Flags.Server != "" {
				return k.createAt(cmd.Context(), key)
			}
			return k.with(cmd.Context(), command.Starts, nil, func(c control.Store) error {
				line, err := add(cmd.Context(), c, "createKey", key, at, control.Changes{})
				if err != nil {
					return err
				}
				return k.MadeKey(k.Out, line)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&f.roles, "role", nil, "what it may do: `viewer`, operator, human, specialist, auditor or admin (may be repeated)")
	flags.StringSliceVar(&f.machines, "machine", []string{"*"}, "`names` of the machines it is for; * stands for any characters (may be repeated)")
	flags.StringSliceVar(&f.humans, "human", nil, "`ids` of the humans it may rule as (may be repeated)")
	flags.StringSliceVar(&f.specialists, "specialist", nil, "`ids` of the specialists it may propose as (may be repeated)")
	flags.StringVar(&f.elicit, "elicit", "", "form: whoever fills in a `form` of the MCP client that has the key is the human")
	flags.StringVar(&f.tenant, "tenant", defaultTenant, "the `name` of the tenant it belongs to")
	flags.StringVar(&expires, "expires", "", "after which `time` it is refused, such as 90d or 12h (default: never)")
	_ = flags.SetAnnotation("role", command.Needed, []string{})
	return cmd
}

// grants returns a grant for each role, each with the ids that it may have.
func (f *grantFlags) grants() (list []control.Grant, err error) {
	if len(f.roles) == 0 {
		return nil, command.Hinted(command.Usage("dialai keys create needs a --role"), "what the key may do: --role viewer, operator, human, specialist, auditor or admin")
	}
	humans, specialists := f.humans, f.specialists
	for _, r := range f.roles {
		g := control.Grant{Role: control.Role(r), Machines: f.machines}
		switch {
		case slices.ContainsFunc(list, func(other control.Grant) bool { return other.Role == g.Role }):
			return nil, command.Usage("--role %s is there twice", r)
		case g.Role == control.Human || g.Role == control.Admin && !slices.Contains(f.roles, string(control.Human)):
			g.Humans, g.Elicit, humans = f.humans, f.elicit, nil
		case g.Role == control.Specialist:
			g.Specialists, specialists = f.specialists, nil
		}
		if err := g.Check(); err != nil {
			return nil, command.Usage("%v", err)
		}
		list = append(list, g)
	}
	switch {
	case f.elicit != "" && len(f.humans) == 0:
		return nil, command.Hinted(command.Usage("--elicit is of no use without --human"), "it says of whoever fills in a form of their MCP client that they are that human")
	case len(humans) > 0:
		return nil, command.Hinted(command.Usage("--human is of no use to the roles %s", strings.Join(f.roles, ", ")), "only the roles human and admin may rule")
	case len(specialists) > 0:
		return nil, command.Hinted(command.Usage("--specialist is of no use to the roles %s", strings.Join(f.roles, ", ")), "only the role specialist may propose")
	}
	return list, nil
}

// expiry returns when something is over that is told as a time from a moment on.
func expiry(expires string, from specialist.Time) (specialist.Time, error) {
	d, err := text.ParseDays(expires)
	if err != nil || d < time.Millisecond {
		return 0, command.Usage("--expires is %q: it must be a number and a unit, such as 90d or 12h", expires)
	}
	return from + specialist.Time(d.Milliseconds()), nil
}

// add adds a key, whose id and hash are made here, with what is changed beside it.
func add(ctx context.Context, c control.Store, operation string, key control.Key, at specialist.Time, changes control.Changes) (api.MadeKey, error) {
	var credential string
	key.ID, credential = control.NewCredential(rand.Reader)
	key.Hash, key.CreatedAt, key.CreatedBy = control.HashOf(credential), at, command.LocalActor().Subject
	changes.Keys = []control.Key{key}
	changes.Entries = append(changes.Entries, entry(operation, &key, at))
	err := c.Commit(ctx, changes)
	return api.MadeKey{Key: api.KeyOf(key, at), Credential: credential}, err
}

func (k *keys) listCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the keys",
		Long: `List the keys that are good, in the order in which they were made: for whom, what they
may do, until when, and how long ago they were used, by the hour.`,
		Example: `  dialai keys list
  dialai keys list --all --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if k.Flags.Server != "" {
				return k.listAt(cmd.Context(), all)
			}
			at := command.Now()
			shown := []api.Key{}
			var missing error
			if k.control != "" {
				missing = fmt.Errorf("there is no file %s", k.control)
			}
			err := k.with(cmd.Context(), command.Reads, missing, func(c control.Store) error {
				list, err := c.Keys(cmd.Context(), control.Query{})
				for _, key := range list {
					if line := api.KeyOf(key, at); all || line.Status == "active" {
						shown = append(shown, line)
					}
				}
				return err
			})
			if err != nil {
				return err
			}
			return k.Keys(k.Out, shown, at)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "those that have expired or are revoked, too")
	return cmd
}

// of opens the file for what is done with a key that is there.
func (k *keys) of(cmd *cobra.Command, id string, do func(control.Store, control.Key) error) error {
	missing := command.Hinted(&session.NotFoundError{What: "Key", ID: id}, "dialai keys list --all lists them")
	return k.with(cmd.Context(), command.Writes, missing, func(c control.Store) error {
		key, err := c.Key(cmd.Context(), id)
		if errors.Is(err, control.ErrNotFound) {
			err = unknown(id, missing)
		}
		if err != nil {
			return err
		}
		return do(c, key)
	})
}

func (k *keys) revokeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke <key-id>",
		Short: "Revoke a key",
		Long: `Have a key refused from now on, for ever. A server that runs ends what it streams to
whoever has it.`,
		Example: "  dialai keys revoke 4f0w2m9x8k1t",
		RunE: func(cmd *cobra.Command, args []string) error {
			if k.Flags.Server != "" {
				return k.revokeAt(cmd.Context(), args[0])
			}
			at := command.Now()
			return k.of(cmd, args[0], func(c control.Store, key control.Key) error {
				err := c.Commit(cmd.Context(), control.Changes{Revoked: []control.KeyTime{{ID: key.ID, At: at}}, Entries: []control.Entry{entry("revokeKey", &key, at)}})
				if err == nil {
					key, err = c.Key(cmd.Context(), key.ID)
				}
				if err != nil {
					return err
				}
				return k.Revoked(k.Out, api.KeyOf(key, at), at)
			})
		},
	}
}

func (k *keys) rotateCommand() *cobra.Command {
	var overlap, expires string
	cmd := &cobra.Command{
		Use:   "rotate <key-id>",
		Short: "Replace a key",
		Long: `Make a key that may do what another may, and have that one refused: at once, or after
--overlap. The new one is good for as long as the old one was when it was made.`,
		Example: `  dialai keys rotate 4f0w2m9x8k1t --overlap 24h
  dialai keys rotate 4f0w2m9x8k1t --quiet > key`,
		RunE: func(cmd *cobra.Command, args []string) error {
			at := command.Now()
			var d time.Duration
			var until specialist.Time
			var err error
			if overlap != "" {
				if d, err = text.ParseDays(overlap); err != nil || d < 0 {
					return command.Usage("--overlap is %q: it must be a number and a unit, such as 90d or 12h", overlap)
				}
			}
			if expires != "" {
				if until, err = expiry(expires, at); err != nil {
					return err
				}
			}
			if k.Flags.Server != "" {
				return k.rotateAt(cmd.Context(), args[0], d, until)
			}
			return k.of(cmd, args[0], func(c control.Store, old control.Key) error {
				if status := api.KeyOf(old, at).Status; status != "active" {
					return command.Hinted(fmt.Errorf("key %s is %s", old.ID, status), "dialai keys create makes another")
				}
				key := old.Successor(at)
				if until != 0 {
					key.ExpiresAt = until
				}
				line, err := add(cmd.Context(), c, "rotateKey", key, at, control.Changes{Revoked: []control.KeyTime{{ID: old.ID, At: at + specialist.Time(d.Milliseconds())}}, Entries: []control.Entry{entry("revokeKey", &old, at)}})
				if err != nil {
					return err
				}
				line.Replaces = old.ID
				return k.MadeKey(k.Out, line)
			})
		},
	}
	cmd.Flags().StringVar(&overlap, "overlap", "", "for how much `time` the old one is still good, such as 24h (default: none)")
	cmd.Flags().StringVar(&expires, "expires", "", "after which `time` the new one is refused, such as 90d or 12h (default: as the old one)")
	return cmd
}
