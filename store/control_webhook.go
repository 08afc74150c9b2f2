package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/session"
)

// Webhooks and what they are to be told, as rows. What is worked out of a webhook is worked
// out by the index of what is to be sent.

const (
	webhookColumns  = "id, webhook_id, tenant, url, types, machines, include, secret, old_secret, old_until, off, version, created_by, created_at, epoch, cursor, roster, failing_since, last_success, last_error"
	deliveryColumns = "d.id, d.delivery_id, w.webhook_id, d.type, d.created_at, d.next_at, d.dead_at, d.attempts, d.status, d.error"
)

type webhookStatements struct {
	insert, update, walk, off, succeeded, failed *sql.Stmt
	remove, removeAll, number                    *sql.Stmt
	store, done, retry, purge                    *sql.Stmt
}

func (st *webhookStatements) prepare(p *preparer) {
	p.prepare(&st.insert, insert("webhooks", strings.Split(webhookColumns, ", ")[1:17])+` ON CONFLICT DO NOTHING`)
	p.prepare(&st.update, `UPDATE webhooks SET url=?, types=?, machines=?, include=?, secret=?, old_secret=?, old_until=?,
		failing_since=CASE WHEN off<>'' AND ?8='' THEN 0 ELSE failing_since END, off=?8, version=?9 WHERE webhook_id=?10 AND version=?9-1`)
	p.prepare(&st.walk, `UPDATE webhooks SET cursor=?, roster=?, epoch=? WHERE webhook_id=? AND cursor=? AND roster=?`)
	p.prepare(&st.off, `UPDATE webhooks SET off=?, version=version+1 WHERE webhook_id=? AND off=''`)
	p.prepare(&st.succeeded, `UPDATE webhooks SET last_success=?, failing_since=0 WHERE webhook_id=?`)
	p.prepare(&st.failed, `UPDATE webhooks SET failing_since=CASE failing_since WHEN 0 THEN ?1 ELSE failing_since END, last_error=?2 WHERE webhook_id=?3`)
	p.prepare(&st.number, `SELECT id FROM webhooks WHERE webhook_id=?`)
	p.prepare(&st.removeAll, `DELETE FROM deliveries WHERE webhook=?`)
	p.prepare(&st.remove, `DELETE FROM webhooks WHERE id=?`)
	p.prepare(&st.store, insert("deliveries", []string{"delivery_id", "webhook", "type", "body", "created_at", "next_at"})+` ON CONFLICT (delivery_id) DO UPDATE SET next_at=excluded.next_at, dead_at=0, attempts=0`)
	const same = ` WHERE delivery_id=? AND dead_at=0 AND attempts=? AND webhook=(SELECT id FROM webhooks WHERE webhook_id=?)`
	p.prepare(&st.done, `DELETE FROM deliveries`+same)
	p.prepare(&st.retry, `UPDATE deliveries SET attempts=attempts+1, next_at=?, dead_at=?, status=?, error=?`+same)
	p.prepare(&st.purge, `DELETE FROM deliveries WHERE dead_at<>0 AND dead_at<=?`)
}

func (c *Control) writeWebhooks(ctx context.Context, changes *control.Changes) error {
	if id := changes.Unhook; id != "" {
		if err := c.unhook(ctx, id); err != nil {
			return err
		}
	}
	if changes.Webhook != nil {
		if err := c.putWebhook(ctx, changes.Webhook); err != nil {
			return err
		}
	}
	if w := changes.Walk; w != nil {
		if moved, err := changed(c.stmts.hooks.walk.ExecContext(ctx, w.To, w.ToRoster, w.Epoch, w.WebhookID, w.From, w.FromRoster)); err != nil {
			return err
		} else if !moved {
			return skip(fmt.Errorf("webhook %s: %w", w.WebhookID, control.ErrStale))
		}
	}
	for i := range changes.Deliveries {
		if err := c.storeDelivery(ctx, &changes.Deliveries[i]); err != nil {
			return err
		}
	}
	if changes.Attempt != nil {
		return c.writeAttempt(ctx, changes.Attempt)
	}
	return nil
}

// webhookNumber returns the row of a webhook.
func (c *Control) webhookNumber(ctx context.Context, id string) (n int64, err error) {
	err = c.stmts.hooks.number.QueryRowContext(ctx, id).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		err = skip(fmt.Errorf("webhook %s: %w", id, control.ErrNotFound))
	}
	return n, err
}

func (c *Control) unhook(ctx context.Context, id string) error {
	n, err := c.webhookNumber(ctx, id)
	if err == nil {
		_, err = c.stmts.hooks.removeAll.ExecContext(ctx, n)
	}
	if err == nil {
		_, err = c.stmts.hooks.remove.ExecContext(ctx, n)
	}
	return err
}

func (c *Control) putWebhook(ctx context.Context, w *control.Webhook) error {
	var lists [3]string
	for i, list := range [][]string{w.Types, w.Machines, w.Include} {
		text, err := json.Marshal(append([]string{}, list...))
		if err != nil {
			return err
		}
		lists[i] = string(text)
	}
	secret, old := append([]byte{}, w.Secret...), append([]byte{}, w.OldSecret...)
	why := control.ErrExists
	var put bool
	var err error
	if w.Version == 1 {
		put, err = changed(c.stmts.hooks.insert.ExecContext(ctx, w.ID, w.Tenant, w.URL, lists[0], lists[1], lists[2], secret, old, w.OldUntil, w.Off, w.Version, w.CreatedBy, w.CreatedAt, w.Epoch, w.Cursor, w.Roster))
	} else {
		why = control.ErrStale
		put, err = changed(c.stmts.hooks.update.ExecContext(ctx, w.URL, lists[0], lists[1], lists[2], secret, old, w.OldUntil, w.Off, w.Version, w.ID))
	}
	if err == nil && !put {
		err = skip(fmt.Errorf("webhook %s: %w", w.ID, why))
	}
	return err
}

func (c *Control) storeDelivery(ctx context.Context, d *control.Delivery) error {
	n, err := c.webhookNumber(ctx, d.WebhookID)
	if err == nil {
		_, err = c.stmts.hooks.store.ExecContext(ctx, d.ID, n, d.Type, text(d.Body), d.CreatedAt, d.NextAt)
	}
	return err
}

func (c *Control) writeAttempt(ctx context.Context, a *control.Attempt) error {
	st := &c.stmts.hooks
	var known bool
	var err error
	if a.Done {
		known, err = changed(st.done.ExecContext(ctx, a.DeliveryID, a.Before, a.WebhookID))
	} else {
		dead := a.At
		if a.NextAt != 0 {
			dead = 0
		}
		known, err = changed(st.retry.ExecContext(ctx, a.NextAt, dead, a.Status, a.Error, a.DeliveryID, a.Before, a.WebhookID))
	}
	switch {
	case err != nil:
		return err
	case !known:
		return skip(fmt.Errorf("delivery %s: %w", a.DeliveryID, control.ErrStale))
	case a.Done:
		_, err = st.succeeded.ExecContext(ctx, a.At, a.WebhookID)
	default:
		_, err = st.failed.ExecContext(ctx, a.At, a.Error, a.WebhookID)
	}
	if err == nil && !a.Done && a.NextAt == 0 {
		_, err = st.purge.ExecContext(ctx, a.At-control.DeadLifetime)
	}
	if err == nil && a.Off != "" {
		_, err = st.off.ExecContext(ctx, a.Off, a.WebhookID)
	}
	return err
}

// A webhookRow is a webhook as it is read.
type webhookRow struct {
	control.Webhook
	types, machines, include []byte
}

// shownWebhook are the columns of a webhook and what is worked out of it.
const shownWebhook = webhookColumns + `, (SELECT count(*) FROM deliveries d WHERE d.webhook=webhooks.id AND d.dead_at=0), coalesce((SELECT min(next_at) FROM deliveries d WHERE d.webhook=webhooks.id AND d.dead_at=0), 0)`

func (r *webhookRow) fields() []any {
	w := &r.Webhook
	return []any{&w.Place, &w.ID, &w.Tenant, &w.URL, &r.types, &r.machines, &r.include, &w.Secret, &w.OldSecret, &w.OldUntil, &w.Off, &w.Version, &w.CreatedBy, &w.CreatedAt,
		&w.Epoch, &w.Cursor, &w.Roster, &w.FailingSince, &w.LastSuccess, &w.LastError, &w.Pending, &w.NextAt}
}

func (r *webhookRow) read() (control.Webhook, error) {
	w := r.Webhook
	for list, text := range map[*[]string][]byte{&w.Types: r.types, &w.Machines: r.machines, &w.Include: r.include} {
		*list = nil
		if err := json.Unmarshal(text, list); err != nil {
			return control.Webhook{}, &session.CorruptError{What: "webhook " + w.ID, Problem: err.Error()}
		}
	}
	return w, nil
}

// Webhook implements [control.Store].
func (c *Control) Webhook(ctx context.Context, id string) (control.Webhook, error) {
	var r webhookRow
	err := c.read.QueryRowContext(ctx, `SELECT `+shownWebhook+` FROM webhooks WHERE webhook_id=?`, id).Scan(r.fields()...)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return control.Webhook{}, fmt.Errorf("webhook %s: %w", id, control.ErrNotFound)
	case err != nil:
		return control.Webhook{}, translate(err)
	}
	return r.read()
}

// Webhooks implements [control.Store].
func (c *Control) Webhooks(ctx context.Context, q control.Query) (list []control.Webhook, err error) {
	part, args := paged(q, "tenant", "id")
	var r webhookRow
	err = each(scan(c.read.QueryContext(ctx, `SELECT `+shownWebhook+` FROM webhooks`+part, args...)).into(r.fields()...), func() error {
		w, err := r.read()
		list = append(list, w)
		return err
	})
	return list, err
}

const deliveryTables = ` FROM webhooks w JOIN deliveries d ON d.webhook=w.id`

func deliveryFields(d *control.Delivery) []any {
	return []any{&d.Place, &d.ID, &d.WebhookID, &d.Type, &d.CreatedAt, &d.NextAt, &d.DeadAt, &d.Attempts, &d.Status, &d.Error}
}

// Delivery implements [control.Store].
func (c *Control) Delivery(ctx context.Context, id string) (d control.Delivery, err error) {
	err = c.read.QueryRowContext(ctx, `SELECT `+deliveryColumns+`, d.body`+deliveryTables+` WHERE d.delivery_id=?`, id).Scan(append(deliveryFields(&d), &d.Body)...)
	if errors.Is(err, sql.ErrNoRows) {
		return control.Delivery{}, fmt.Errorf("delivery %s: %w", id, control.ErrNotFound)
	}
	return d, translate(err)
}

// Deliveries implements [control.Store].
func (c *Control) Deliveries(ctx context.Context, q control.DeliveryQuery) (list []control.Delivery, err error) {
	query, args := deliveries(q)
	var d control.Delivery
	err = each(scan(c.read.QueryContext(ctx, query, args...)).into(append(deliveryFields(&d), &d.Body)...), func() error {
		list = append(list, d)
		return nil
	})
	return list, err
}

// deliveries returns the statement that a query asks for, and its arguments.
func deliveries(q control.DeliveryQuery) (query string, args []any) {
	where, body, order, wanted := []string{"w.webhook_id=?"}, "NULL", "d.id", control.Query{After: q.After, Limit: q.Limit, Desc: q.Desc}
	switch {
	case q.Due != 0:
		where, body, order, wanted = append(where, "d.dead_at=0", fmt.Sprint("d.next_at<=", int64(q.Due))), "d.body", "d.next_at", control.Query{Limit: q.Limit}
	case q.Dead != nil && *q.Dead:
		where = append(where, "d.dead_at<>0")
	case q.Dead != nil:
		where = append(where, "d.dead_at=0")
	}
	part, args := paged(wanted, "", order, where...)
	return `SELECT ` + deliveryColumns + `, ` + body + deliveryTables + part, append([]any{q.WebhookID}, args...)
}
