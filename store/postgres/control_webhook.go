package postgres

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/session"
)

// Webhooks and what they are to be told, as rows. What is worked out of a webhook is worked out by the index
// of what is to be sent.

const (
	webhookColumns = `w.id, w.webhook_id, w.tenant, w.url, w.types, w.machines, w.include, w.secret, w.old_secret, w.old_until, w.off, w.version, w.created_by, w.created_at, w.epoch, w.cursor, w.roster,
		w.failing_since, w.last_success, w.last_error, (SELECT count(*) FROM deliveries d WHERE d.webhook=w.id AND d.dead_at=0), coalesce((SELECT min(next_at) FROM deliveries d WHERE d.webhook=w.id AND d.dead_at=0), 0)`
	deliveryColumns = `d.id, d.delivery_id, w.webhook_id, d.type, d.created_at, d.next_at, d.dead_at, d.attempts, d.status, d.error`
	deliveryTables  = ` FROM webhooks w JOIN deliveries d ON d.webhook=w.id`
)

func (c *Control) writeWebhooks(ctx context.Context, tx pgx.Tx, changes *control.Changes) error {
	if id := changes.Unhook; id != "" {
		if err := unhook(ctx, tx, id); err != nil {
			return err
		}
	}
	if changes.Webhook != nil {
		if err := putWebhook(ctx, tx, changes.Webhook); err != nil {
			return err
		}
	}
	if w := changes.Walk; w != nil {
		moved, err := changed(ctx, tx, `UPDATE webhooks SET cursor=$1, roster=$2, epoch=$3 WHERE webhook_id=$4 AND cursor=$5 AND roster=$6`, w.To, w.ToRoster, outside(w.Epoch), outside(w.WebhookID), w.From, w.FromRoster)
		if !moved {
			err = refuse(err, "webhook %s: %w", w.WebhookID, control.ErrStale)
		}
		if err != nil {
			return err
		}
	}
	for i := range changes.Deliveries {
		if err := storeDelivery(ctx, tx, &changes.Deliveries[i]); err != nil {
			return err
		}
	}
	if changes.Attempt != nil {
		return writeAttempt(ctx, tx, changes.Attempt)
	}
	return nil
}

// webhookNumber returns the row of a webhook.
func webhookNumber(ctx context.Context, tx pgx.Tx, id string) (n int64, err error) {
	err = tx.QueryRow(ctx, `SELECT id FROM webhooks WHERE webhook_id=$1`, outside(id)).Scan(&n)
	if errors.Is(err, pgx.ErrNoRows) {
		err = refuse(nil, "webhook %s: %w", id, control.ErrNotFound)
	}
	return n, err
}

func unhook(ctx context.Context, tx pgx.Tx, id string) error {
	n, err := webhookNumber(ctx, tx, id)
	if err == nil {
		_, err = tx.Exec(ctx, `DELETE FROM deliveries WHERE webhook=$1`, n)
	}
	if err == nil {
		_, err = tx.Exec(ctx, `DELETE FROM webhooks WHERE id=$1`, n)
	}
	return err
}

func putWebhook(ctx context.Context, tx pgx.Tx, w *control.Webhook) error {
	var lists [3][]byte
	for i, list := range [][]string{w.Types, w.Machines, w.Include} {
		var err error
		if lists[i], err = json.Marshal(append([]string{}, list...)); err != nil {
			return err
		}
	}
	secret, old := append([]byte{}, w.Secret...), append([]byte{}, w.OldSecret...)
	why := control.ErrExists
	var put bool
	var err error
	if w.Version == 1 {
		put, err = changed(ctx, tx, `INSERT INTO webhooks (webhook_id, tenant, url, types, machines, include, secret, old_secret, old_until, off, version, created_by, created_at, epoch, cursor, roster)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) ON CONFLICT DO NOTHING`,
			outside(w.ID), outside(w.Tenant), outside(w.URL), lists[0], lists[1], lists[2], secret, old, int64(w.OldUntil), outside(w.Off), w.Version, outside(w.CreatedBy), int64(w.CreatedAt), outside(w.Epoch), w.Cursor, w.Roster)
	} else {
		why = control.ErrStale
		put, err = changed(ctx, tx, `UPDATE webhooks SET url=$1, types=$2, machines=$3, include=$4, secret=$5, old_secret=$6, old_until=$7, failing_since=CASE WHEN off<>'' AND $8::bytea='' THEN 0 ELSE failing_since END, off=$8, version=$9
			WHERE webhook_id=$10 AND version=$9-1`,
			outside(w.URL), lists[0], lists[1], lists[2], secret, old, int64(w.OldUntil), outside(w.Off), w.Version, outside(w.ID))
	}
	if !put {
		err = refuse(err, "webhook %s: %w", w.ID, why)
	}
	return err
}

func storeDelivery(ctx context.Context, tx pgx.Tx, d *control.Delivery) error {
	n, err := webhookNumber(ctx, tx, d.WebhookID)
	if err == nil {
		_, err = tx.Exec(ctx, `INSERT INTO deliveries (delivery_id, webhook, type, body, created_at, next_at) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (delivery_id) DO UPDATE SET next_at=excluded.next_at, dead_at=0, attempts=0`,
			outside(d.ID), n, outside(d.Type), append([]byte{}, d.Body...), int64(d.CreatedAt), int64(d.NextAt))
	}
	return err
}

func writeAttempt(ctx context.Context, tx pgx.Tx, a *control.Attempt) error {
	const same = ` WHERE delivery_id=$1 AND dead_at=0 AND attempts=$2 AND webhook=(SELECT id FROM webhooks WHERE webhook_id=$3)`
	hook := outside(a.WebhookID)
	var known bool
	var err error
	if a.Done {
		known, err = changed(ctx, tx, `DELETE FROM deliveries`+same, outside(a.DeliveryID), a.Before, hook)
	} else {
		dead := a.At
		if a.NextAt != 0 {
			dead = 0
		}
		known, err = changed(ctx, tx, `UPDATE deliveries SET attempts=attempts+1, next_at=$4, dead_at=$5, status=$6, error=$7`+same, outside(a.DeliveryID), a.Before, hook, int64(a.NextAt), int64(dead), a.Status, outside(a.Error))
	}
	switch {
	case !known:
		return refuse(err, "delivery %s: %w", a.DeliveryID, control.ErrStale)
	case a.Done:
		_, err = tx.Exec(ctx, `UPDATE webhooks SET last_success=$1, failing_since=0 WHERE webhook_id=$2`, int64(a.At), hook)
	default:
		_, err = tx.Exec(ctx, `UPDATE webhooks SET failing_since=CASE failing_since WHEN 0 THEN $1 ELSE failing_since END, last_error=$2 WHERE webhook_id=$3`, int64(a.At), outside(a.Error), hook)
	}
	if err == nil && !a.Done && a.NextAt == 0 {
		_, err = tx.Exec(ctx, `DELETE FROM deliveries WHERE dead_at<>0 AND dead_at<=$1`, int64(a.At-control.DeadLifetime))
	}
	if err == nil && a.Off != "" {
		_, err = tx.Exec(ctx, `UPDATE webhooks SET off=$1, version=version+1 WHERE webhook_id=$2 AND off=''`, outside(a.Off), hook)
	}
	return err
}

// readWebhook reads a row with the webhookColumns.
func readWebhook(row pgx.CollectableRow) (w control.Webhook, err error) {
	var types, machines, include []byte
	err = row.Scan(&w.Place, (*outside)(&w.ID), (*outside)(&w.Tenant), (*outside)(&w.URL), &types, &machines, &include, &w.Secret, &w.OldSecret, &w.OldUntil, (*outside)(&w.Off), &w.Version, (*outside)(&w.CreatedBy), &w.CreatedAt,
		(*outside)(&w.Epoch), &w.Cursor, &w.Roster, &w.FailingSince, &w.LastSuccess, (*outside)(&w.LastError), &w.Pending, &w.NextAt)
	for list, text := range map[*[]string][]byte{&w.Types: types, &w.Machines: machines, &w.Include: include} {
		if err != nil {
			return w, err
		}
		if json.Unmarshal(text, list) != nil {
			err = &session.CorruptError{What: "webhook " + w.ID, Problem: "a list of it cannot be read"}
		}
	}
	return w, err
}

// Webhook implements [control.Store].
func (c *Control) Webhook(ctx context.Context, id string) (control.Webhook, error) {
	return only(ctx, c, readWebhook, "webhook "+id, `SELECT `+webhookColumns+` FROM webhooks w WHERE w.webhook_id=$1`, outside(id))
}

// Webhooks implements [control.Store].
func (c *Control) Webhooks(ctx context.Context, q control.Query) ([]control.Webhook, error) {
	var l listing
	return listed(ctx, c, &l, readWebhook, l.part(`SELECT `+webhookColumns+` FROM webhooks w`, q, "w.tenant", "w.id"))
}

// readDelivery reads a row with the deliveryColumns and the body.
func readDelivery(row pgx.CollectableRow) (d control.Delivery, err error) {
	err = row.Scan(&d.Place, (*outside)(&d.ID), (*outside)(&d.WebhookID), (*outside)(&d.Type), &d.CreatedAt, &d.NextAt, &d.DeadAt, &d.Attempts, &d.Status, (*outside)(&d.Error), &d.Body)
	return d, err
}

// Delivery implements [control.Store].
func (c *Control) Delivery(ctx context.Context, id string) (control.Delivery, error) {
	return only(ctx, c, readDelivery, "delivery "+id, `SELECT `+deliveryColumns+`, d.body`+deliveryTables+` WHERE d.delivery_id=$1`, outside(id))
}

// Deliveries implements [control.Store].
func (c *Control) Deliveries(ctx context.Context, q control.DeliveryQuery) ([]control.Delivery, error) {
	body, order, wanted := "NULL", "d.id", control.Query{After: q.After, Limit: q.Limit, Desc: q.Desc}
	var l listing
	l.and("w.webhook_id=?", outside(q.WebhookID))
	switch {
	case q.Due != 0:
		l.and("d.dead_at=0 AND d.next_at<=?", int64(q.Due))
		body, order, wanted = "d.body", "d.next_at", control.Query{Limit: q.Limit}
	case q.Dead != nil && *q.Dead:
		l.and("d.dead_at<>0")
	case q.Dead != nil:
		l.and("d.dead_at=0")
	}
	return listed(ctx, c, &l, readDelivery, l.part(`SELECT `+deliveryColumns+`, `+body+deliveryTables, wanted, "", order))
}
