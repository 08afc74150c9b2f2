package control

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// Webhooks in memory: lists in the order in which they were added.

// hooks are the webhooks of a [Memory], and what they are to be told.
type hooks struct {
	webhooks   []Webhook
	deliveries []Delivery
	added      [2]int64 // how many of both there have been
}

func (h *hooks) webhook(id string) *Webhook {
	i := slices.IndexFunc(h.webhooks, func(w Webhook) bool { return w.ID == id })
	if i < 0 {
		return nil
	}
	return &h.webhooks[i]
}

func (h *hooks) delivery(id string) *Delivery {
	i := slices.IndexFunc(h.deliveries, func(d Delivery) bool { return d.ID == id })
	if i < 0 {
		return nil
	}
	return &h.deliveries[i]
}

// refuse returns why changes of webhooks cannot be made.
func (h *hooks) refuse(c *Changes) error {
	known := func(id string) bool {
		return h.webhook(id) != nil && c.Unhook != id || c.Webhook != nil && c.Webhook.ID == id
	}
	if p := c.Webhook; p != nil {
		switch old := h.webhook(p.ID); {
		case p.Version == 1 && old != nil:
			return fmt.Errorf("webhook %s: %w", p.ID, ErrExists)
		case p.Version != 1 && (old == nil || old.Version != p.Version-1):
			return fmt.Errorf("webhook %s: %w", p.ID, ErrStale)
		}
	}
	if c.Unhook != "" && h.webhook(c.Unhook) == nil {
		return fmt.Errorf("webhook %s: %w", c.Unhook, ErrNotFound)
	}
	if w := c.Walk; w != nil && (!known(w.WebhookID) || h.webhook(w.WebhookID) == nil || h.webhook(w.WebhookID).Cursor != w.From || h.webhook(w.WebhookID).Roster != w.FromRoster) {
		return fmt.Errorf("webhook %s: %w", w.WebhookID, ErrStale)
	}
	for i := range c.Deliveries {
		if id := c.Deliveries[i].WebhookID; !known(id) {
			return fmt.Errorf("webhook %s: %w", id, ErrNotFound)
		}
	}
	if a := c.Attempt; a != nil {
		if d := h.delivery(a.DeliveryID); d == nil || d.DeadAt != 0 || d.Attempts != a.Before || d.WebhookID != a.WebhookID {
			return fmt.Errorf("delivery %s: %w", a.DeliveryID, ErrStale)
		}
	}
	return nil
}

// change makes changes that were not refused.
func (h *hooks) change(c *Changes) {
	if c.Unhook != "" {
		h.webhooks = slices.DeleteFunc(h.webhooks, func(w Webhook) bool { return w.ID == c.Unhook })
		h.deliveries = slices.DeleteFunc(h.deliveries, func(d Delivery) bool { return d.WebhookID == c.Unhook })
	}
	if c.Webhook != nil {
		h.put(c.Webhook.clone())
	}
	if w := c.Walk; w != nil {
		of := h.webhook(w.WebhookID)
		of.Cursor, of.Roster, of.Epoch = w.To, w.ToRoster, w.Epoch
	}
	for _, d := range c.Deliveries {
		d.Body = slices.Clone(d.Body)
		h.store(d)
	}
	if c.Attempt != nil {
		h.attempt(c.Attempt)
	}
}

func (h *hooks) put(w Webhook) {
	old := h.webhook(w.ID)
	if old == nil {
		h.added[0]++
		w.Place = h.added[0]
		h.webhooks = append(h.webhooks, w)
		return
	}
	w.Epoch, w.Cursor, w.Roster, w.LastSuccess, w.LastError, w.Place = old.Epoch, old.Cursor, old.Roster, old.LastSuccess, old.LastError, old.Place
	w.Tenant, w.CreatedBy, w.CreatedAt = old.Tenant, old.CreatedBy, old.CreatedAt
	if w.FailingSince = old.FailingSince; old.Off != "" && w.Off == "" {
		w.FailingSince = 0
	}
	*old = w
}

// store adds a delivery, or has it sent as if it were new.
func (h *hooks) store(d Delivery) {
	if old := h.delivery(d.ID); old != nil {
		old.NextAt, old.DeadAt, old.Attempts = d.NextAt, 0, 0
		return
	}
	h.added[1]++
	d.Place, d.Attempts, d.DeadAt, d.Status, d.Error = h.added[1], 0, 0, 0, ""
	h.deliveries = append(h.deliveries, d)
}

func (h *hooks) attempt(a *Attempt) {
	d, w := h.delivery(a.DeliveryID), h.webhook(a.WebhookID)
	d.Attempts, d.NextAt, d.Status, d.Error = d.Attempts+1, a.NextAt, a.Status, a.Error
	switch {
	case a.Done:
		w.LastSuccess, w.FailingSince = a.At, 0
		h.deliveries = slices.DeleteFunc(h.deliveries, func(d Delivery) bool { return d.ID == a.DeliveryID })
	default:
		w.FailingSince, w.LastError = cmp.Or(w.FailingSince, a.At), a.Error
		if a.NextAt == 0 {
			d.DeadAt = a.At
			h.deliveries = slices.DeleteFunc(h.deliveries, func(d Delivery) bool { return d.DeadAt != 0 && d.DeadAt <= a.At-DeadLifetime })
		}
	}
	if a.Off != "" && w.Off == "" {
		w.Off = a.Off
		w.Version++
	}
}

// shown returns a webhook with what is worked out.
func (h *hooks) shown(w Webhook) Webhook {
	w = w.clone()
	w.Pending, w.NextAt = 0, 0
	for i := range h.deliveries {
		if d := &h.deliveries[i]; d.WebhookID == w.ID && d.DeadAt == 0 {
			if w.Pending++; w.Pending == 1 || d.NextAt < w.NextAt {
				w.NextAt = d.NextAt
			}
		}
	}
	return w
}

// Webhook implements [Store].
func (m *Memory) Webhook(_ context.Context, id string) (Webhook, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w := m.hooks.webhook(id); w != nil {
		return m.hooks.shown(*w), nil
	}
	return Webhook{}, fmt.Errorf("webhook %s: %w", id, ErrNotFound)
}

// Webhooks implements [Store].
func (m *Memory) Webhooks(_ context.Context, q Query) ([]Webhook, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := page(m.hooks.webhooks, q, func(w *Webhook) (string, int64) { return w.Tenant, w.Place })
	for i := range list {
		list[i] = m.hooks.shown(list[i])
	}
	return list, nil
}

// Delivery implements [Store].
func (m *Memory) Delivery(_ context.Context, id string) (Delivery, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.hooks.delivery(id)
	if d == nil {
		return Delivery{}, fmt.Errorf("delivery %s: %w", id, ErrNotFound)
	}
	found := *d
	found.Body = slices.Clone(d.Body)
	return found, nil
}

// Deliveries implements [Store].
func (m *Memory) Deliveries(_ context.Context, q DeliveryQuery) ([]Delivery, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	wanted := func(d *Delivery) bool {
		return d.WebhookID == q.WebhookID && (q.Dead == nil || *q.Dead == (d.DeadAt != 0))
	}
	if q.Due != 0 {
		wanted = func(d *Delivery) bool { return d.WebhookID == q.WebhookID && d.DeadAt == 0 && d.NextAt <= q.Due }
	}
	var list []Delivery
	for i := range m.hooks.deliveries {
		if d := m.hooks.deliveries[i]; wanted(&d) {
			list = append(list, d)
		}
	}
	if q.Tenant = ""; q.Due == 0 {
		list = page(list, q.Query, func(d *Delivery) (string, int64) { return "", d.Place })
	} else {
		slices.SortStableFunc(list, func(a, b Delivery) int { return cmp.Compare(a.NextAt, b.NextAt) })
		list = list[:min(cmp.Or(q.Limit, len(list)), len(list))]
	}
	for i := range list {
		if list[i].Body = slices.Clone(list[i].Body); q.Due == 0 {
			list[i].Body = nil
		}
	}
	return list, nil
}
