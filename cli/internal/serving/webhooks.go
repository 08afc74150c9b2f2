package serving

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/client"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/internal/seal"
	"github.com/dialai/dialai/notify"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/postgres"
	"github.com/dialai/dialai/webhook"
)

// The webhooks of a server, in the file in which it remembers them, or at the server itself:
// the same operations, whoever does them.

// WebhooksCommand returns dialai webhooks. far returns the operations of the server that --server
// names.
func WebhooksCommand(call *command.App, far func(context.Context) (Hooks, error)) *cobra.Command {
	w := &webhooks{keys: &keys{app: &app{call}}, far: far}
	cmd := &cobra.Command{
		Use:   "webhooks",
		Short: "Send what happens in sessions to addresses",
		Long: `Have addresses told what happens in the sessions of a dialai server: that a human
must decide, say. Each message is signed, and sent again for more than a day until it
has arrived; docs/notifications.md says what is in it. Who is told is kept in a file
beside the store, of which --control names another (of a store in Postgres, in a schema
beside it), or by the server that --server names. A server sends messages while it runs.`,
		Example: `  dialai webhooks create https://example.com/hook --type session.needs_human
  dialai webhooks list
  dialai webhooks test wh_5d0c61f2a7b94e08c3d1`,
	}
	cmd.PersistentFlags().StringVar(&w.control, "control", "", "the `file` in which a server keeps what it must remember (default: that of the store, with .control behind its name; with a store in Postgres, a schema beside it)")
	cmd.AddCommand(w.createCommand(), w.listCommand(), w.showCommand(), w.switchCommand("enable", true), w.switchCommand("disable", false), w.deleteCommand(), w.rotateCommand(),
		w.testCommand(), w.replayCommand(), w.deliveriesCommand(), w.redeliverCommand())
	return cmd
}

// webhooks are the commands about webhooks.
type webhooks struct {
	*keys
	far func(context.Context) (Hooks, error)
}

// Hooks are the operations on webhooks: of a server, or of the file in which it keeps them.
type Hooks interface {
	Webhooks(ctx context.Context) iter.Seq2[api.Webhook, error]
	Webhook(ctx context.Context, id string) (api.Webhook, error)
	CreateWebhook(ctx context.Context, in api.NewWebhook, w client.Write) (api.MadeWebhook, error)
	ChangeWebhook(ctx context.Context, id string, to api.WebhookChange) (api.Webhook, error)
	DeleteWebhook(ctx context.Context, id string) error
	RotateWebhook(ctx context.Context, id string, w client.Write) (api.MadeWebhook, error)
	TestWebhook(ctx context.Context, id string, w client.Write) (api.Delivery, error)
	ReplayWebhook(ctx context.Context, id string, after int64, w client.Write) (api.Webhook, error)
	Deliveries(ctx context.Context, id, status string) iter.Seq2[api.Delivery, error]
	Redeliver(ctx context.Context, id, delivery string, w client.Write) (api.Delivery, error)
}

// at does something with the webhooks of the server that is named, or here.
func (w *webhooks) at(cmd *cobra.Command, does command.Access, do func(Hooks) error) error {
	ctx := cmd.Context()
	if w.Flags.Server != "" {
		far, err := w.far(ctx)
		if err != nil {
			return err
		}
		return do(far)
	}
	var missing error
	if does == command.Writes {
		missing = command.Hinted(errors.New("there are no webhooks here"), "dialai webhooks create makes one; --server URL names a server elsewhere")
	}
	err := w.with(ctx, does, missing, func(c control.Store) error { return do(&hooksHere{c, w}) })
	if refused, ok := errors.AsType[*webhook.PolicyError](err); ok {
		return command.Hinted(refused, "webhooks go to public addresses over https; DIALAI_WEBHOOK_ALLOW names hosts and networks that may be reached besides, here and where the server runs")
	}
	if invalid, ok := errors.AsType[*notify.InvalidError](err); ok {
		return command.Usage("%v", invalid)
	}
	return err
}

// hooksHere are those that are kept here.
type hooksHere struct {
	control.Store
	w *webhooks
}

// hookMaker returns what makes webhooks, with the key of a server.
func (a *app) hookMaker(key seal.Key) (*notify.Maker, error) {
	policy, err := a.hookPolicy()
	if err != nil {
		return nil, err
	}
	return &notify.Maker{Seal: key, Policy: policy}, nil
}

// hookPolicy returns which addresses webhooks may be at.
func (a *app) hookPolicy() (p webhook.Policy, err error) {
	if p, err = webhook.ParsePolicy(a.Env("DIALAI_WEBHOOK_ALLOW")); err != nil {
		return p, command.Usage("%v", err)
	}
	return p, nil
}

// maker returns what makes webhooks that are kept here.
func (h *hooksHere) maker(ctx context.Context) (*notify.Maker, error) {
	key, err := h.w.sealedWith(ctx, h.Store, h.w.control)
	if err != nil {
		return nil, err
	}
	return h.w.hookMaker(key)
}

// Webhooks yields all of them.
func (h *hooksHere) Webhooks(ctx context.Context) iter.Seq2[api.Webhook, error] {
	return func(yield func(api.Webhook, error) bool) {
		list, err := h.Store.Webhooks(ctx, control.Query{})
		for _, w := range list {
			if !yield(api.WebhookOf(w, command.Now()), nil) {
				return
			}
		}
		if err != nil {
			yield(api.Webhook{}, err)
		}
	}
}

func (h *hooksHere) of(ctx context.Context, id string) (control.Webhook, error) {
	w, err := h.Store.Webhook(ctx, id)
	if errors.Is(err, control.ErrNotFound) {
		err = command.Hinted(&session.NotFoundError{What: "Webhook", ID: id}, "dialai webhooks list lists them")
	}
	return w, err
}

// Webhook returns one.
func (h *hooksHere) Webhook(ctx context.Context, id string) (api.Webhook, error) {
	w, err := h.of(ctx, id)
	return api.WebhookOf(w, command.Now()), err
}

// commit makes changes of a webhook, and says so in the audit log.
func (h *hooksHere) commit(ctx context.Context, operation string, w *control.Webhook, c control.Changes) error {
	who := command.LocalActor()
	c.Entries = []control.Entry{{At: command.Now(), Tenant: w.Tenant, Subject: who.Subject, Method: who.Method, Operation: operation, Target: w.ID, Result: "ok"}}
	return h.Commit(ctx, c)
}

// reading calls f with the store, an empty one if there is none.
func (h *hooksHere) reading(ctx context.Context, f func(session.Store) error) (err error) {
	path, address, err := h.w.PlaceOf(h.w.Flags.Store)
	if err != nil {
		return err
	}
	if address != "" {
		s, err := h.w.OpenPostgres(ctx, address, command.Reads)
		if errors.Is(err, postgres.ErrNone) {
			return f(store.NewMemory())
		}
		if err != nil {
			return err
		}
		return errors.Join(f(s), s.Close())
	}
	if _, err := os.Stat(path); path == "" || errors.Is(err, fs.ErrNotExist) {
		return f(store.NewMemory())
	}
	s, err := store.OpenSQLite(ctx, path, store.SQLiteOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return f(s)
}

// CreateWebhook makes one that is told what happens from now on.
func (h *hooksHere) CreateWebhook(ctx context.Context, in api.NewWebhook, _ client.Write) (api.MadeWebhook, error) {
	maker, err := h.maker(ctx)
	if err != nil {
		return api.MadeWebhook{}, err
	}
	begun := control.Webhook{Tenant: defaultTenant, CreatedBy: command.LocalActor().Subject, CreatedAt: command.Now()}
	if err := h.reading(ctx, func(s session.Store) error { return notify.FromNow(ctx, s, &begun) }); err != nil {
		return api.MadeWebhook{}, err
	}
	w, secret, err := maker.New(in, begun)
	if err != nil {
		return api.MadeWebhook{}, err
	}
	all, err := h.Store.Webhooks(ctx, control.Query{Tenant: w.Tenant, Limit: notify.MaxWebhooks})
	if err == nil && len(all) == notify.MaxWebhooks {
		err = fmt.Errorf("there are %d webhooks, and may be no more", len(all))
	}
	if err == nil {
		err = h.commit(ctx, "createWebhook", &w, control.Changes{Webhook: &w})
	}
	return api.MadeWebhook{Webhook: api.WebhookOf(w, command.Now()), Secret: secret}, err
}

// ChangeWebhook makes its next version.
func (h *hooksHere) ChangeWebhook(ctx context.Context, id string, to api.WebhookChange) (api.Webhook, error) {
	w, err := h.of(ctx, id)
	if err != nil {
		return api.Webhook{}, err
	}
	maker, err := h.maker(ctx)
	if err == nil {
		w, err = maker.Changed(w, to)
	}
	if err == nil {
		err = h.commit(ctx, "changeWebhook", &w, control.Changes{Webhook: &w})
	}
	return api.WebhookOf(w, command.Now()), err
}

// DeleteWebhook forgets one.
func (h *hooksHere) DeleteWebhook(ctx context.Context, id string) error {
	w, err := h.of(ctx, id)
	if err != nil {
		return err
	}
	return h.commit(ctx, "deleteWebhook", &w, control.Changes{Unhook: id})
}

// RotateWebhook gives it another secret.
func (h *hooksHere) RotateWebhook(ctx context.Context, id string, _ client.Write) (made api.MadeWebhook, err error) {
	w, err := h.of(ctx, id)
	if err != nil {
		return made, err
	}
	maker, err := h.maker(ctx)
	if err == nil {
		w, made.Secret = maker.Rotated(w, command.Now())
		err = h.commit(ctx, "rotateWebhook", &w, control.Changes{Webhook: &w})
	}
	made.Webhook = api.WebhookOf(w, command.Now())
	return made, err
}

// deliver stores what a webhook is to be told at once.
func (h *hooksHere) deliver(ctx context.Context, operation, id string, make func(w *control.Webhook, at specialist.Time) (control.Delivery, error)) (api.Delivery, error) {
	w, err := h.of(ctx, id)
	if err == nil && w.Off != "" {
		err = command.Hinted(fmt.Errorf("nothing is sent to webhook %s: it is %s", w.ID, w.Off), "dialai webhooks enable %s", w.ID)
	}
	if err != nil {
		return api.Delivery{}, err
	}
	d, err := make(&w, command.Now())
	if err == nil {
		err = h.commit(ctx, operation, &w, control.Changes{Deliveries: []control.Delivery{d}})
	}
	return api.DeliveryOf(d), err
}

// TestWebhook stores a message that says nothing.
func (h *hooksHere) TestWebhook(ctx context.Context, id string, _ client.Write) (api.Delivery, error) {
	return h.deliver(ctx, "testWebhook", id, notify.Test)
}

// Redeliver stores a delivery anew.
func (h *hooksHere) Redeliver(ctx context.Context, id, delivery string, _ client.Write) (api.Delivery, error) {
	return h.deliver(ctx, "redeliver", id, func(w *control.Webhook, at specialist.Time) (control.Delivery, error) {
		d, err := h.Delivery(ctx, delivery)
		if errors.Is(err, control.ErrNotFound) || err == nil && d.WebhookID != w.ID {
			err = command.Hinted(&session.NotFoundError{What: "Delivery", ID: delivery}, "dialai webhooks deliveries %s lists them; what has arrived is kept no longer", w.ID)
		}
		return notify.Again(d, at), err
	})
}

// ReplayWebhook moves its cursor back.
func (h *hooksHere) ReplayWebhook(ctx context.Context, id string, after int64, _ client.Write) (api.Webhook, error) {
	w, err := h.of(ctx, id)
	if err != nil {
		return api.Webhook{}, err
	}
	var back *control.Walk
	if err := h.reading(ctx, func(s session.Store) (err error) { back, err = notify.Back(ctx, s, &w, after); return err }); err != nil {
		return api.Webhook{}, err
	}
	if err := h.commit(ctx, "replayWebhook", &w, control.Changes{Walk: back}); err != nil {
		return api.Webhook{}, err
	}
	return h.Webhook(ctx, id)
}

// deliveriesAtOnce is how many are read at a time.
const deliveriesAtOnce = 200

// Deliveries yields what a webhook is still to be told.
func (h *hooksHere) Deliveries(ctx context.Context, id, status string) iter.Seq2[api.Delivery, error] {
	return func(yield func(api.Delivery, error) bool) {
		q := control.DeliveryQuery{WebhookID: id, Query: control.Query{Limit: deliveriesAtOnce}}
		if dead := status == "dead"; status != "" {
			q.Dead = &dead
		}
		_, err := h.of(ctx, id)
		for err == nil {
			var page []control.Delivery
			page, err = h.Store.Deliveries(ctx, q)
			for _, d := range page {
				if q.After = d.Place; !yield(api.DeliveryOf(d), nil) {
					return
				}
			}
			if len(page) < deliveriesAtOnce {
				break
			}
		}
		if err != nil {
			yield(api.Delivery{}, err)
		}
	}
}
