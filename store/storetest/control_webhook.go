package storetest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/specialist"
)

// What a store promises of webhooks and of what they are to be told.

func hook(id, tenant string) *control.Webhook {
	return &control.Webhook{ID: id, Tenant: tenant, URL: "https://example.com/ü?\x00", Types: []string{"session.completed"}, Machines: []string{"claims-*"}, Include: []string{"metaJson"},
		Secret: []byte{0, 1, 255}, OldSecret: []byte("old"), OldUntil: 9, Off: "", Version: 1, CreatedBy: "key:abc", CreatedAt: 7, Epoch: "e1", Cursor: 5, Roster: -1}
}

// message is a delivery that a webhook is to be told at a moment.
func message(id, webhook string, at specialist.Time) control.Delivery {
	return control.Delivery{ID: id, WebhookID: webhook, Type: "session.completed", Body: []byte(`{"is":"` + id + `"}`), CreatedAt: at, NextAt: at}
}

func (b *controlBench) webhook(s control.Store, id string) control.Webhook {
	b.Helper()
	w, err := s.Webhook(b.Context(), id)
	b.ok(err)
	return w
}

// told returns what a webhook is to be told, each as "id attempts status error".
func (b *controlBench) told(s control.Store, q control.DeliveryQuery) string {
	b.Helper()
	list, err := s.Deliveries(b.Context(), q)
	b.ok(err)
	var texts []string
	for _, d := range list {
		if (d.Body != nil) != (q.Due != 0) {
			b.Errorf("of %s the body is %q", d.ID, d.Body)
		}
		texts = append(texts, strings.TrimSpace(fmt.Sprintf("%s %d %d %s", d.ID, d.Attempts, d.Status, d.Error)))
	}
	return strings.Join(texts, ", ")
}

func testWebhooks(b *controlBench) {
	one, two := b.open(), b.open()
	defer b.close(one)
	defer b.close(two)
	ctx := b.Context()
	_, err := one.Webhook(ctx, "a")
	b.is(err, control.ErrNotFound)
	want := hook("a", "acme")
	b.commit(one, control.Changes{Webhook: want})
	b.commit(one, control.Changes{Webhook: hook("b", "other")})
	b.is(two.Commit(ctx, control.Changes{Webhook: hook("a", "acme")}), control.ErrExists)
	kept := *want
	kept.Place = 1
	if got := b.webhook(two, "a"); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", kept) {
		b.Errorf("the webhook is\n%+v, want\n%+v", got, kept)
	}
	next := control.Webhook{ID: "a", URL: "https://example.com/2", Off: "disabled", Version: 2, Epoch: "e9", Cursor: 99, Roster: 99}
	b.commit(two, control.Changes{Webhook: &next})
	b.is(one.Commit(ctx, control.Changes{Webhook: &next}), control.ErrStale)
	got := b.webhook(one, "a")
	if got.URL != next.URL || got.Off != "disabled" || len(got.Types)+len(got.Machines)+len(got.Secret) != 0 || got.Cursor != 5 || got.Roster != -1 || got.Epoch != "e1" || got.Tenant != "acme" || got.CreatedBy != "key:abc" {
		b.Errorf("the second version is %+v", got)
	}
	unknown := hook("c", "acme")
	unknown.Version = 2
	b.is(one.Commit(ctx, control.Changes{Webhook: unknown}), control.ErrStale)
	for tenant, want := range map[string]int{"acme": 1, "": 2, "nobody": 0} {
		if list, err := two.Webhooks(ctx, control.Query{Tenant: tenant}); err != nil || len(list) != want {
			b.Errorf("%q has %d webhooks (%v), want %d", tenant, len(list), err, want)
		}
	}
	b.commit(one, control.Changes{Deliveries: []control.Delivery{message("m", "a", 1), message("n", "b", 1)}})
	b.commit(two, control.Changes{Unhook: "a"})
	b.is(two.Commit(ctx, control.Changes{Unhook: "a"}), control.ErrNotFound)
	_, err = one.Delivery(ctx, "m")
	b.is(err, control.ErrNotFound)
	if d, err := one.Delivery(ctx, "n"); err != nil || d.WebhookID != "b" || string(d.Body) != `{"is":"n"}` {
		b.Errorf("of another webhook there is %+v (%v)", d, err)
	}
}

// testWalks: a cursor moves together with what is to be told, from where it is seen to be.
func testWalks(b *controlBench) {
	one, two := b.open(), b.open()
	defer b.close(one)
	defer b.close(two)
	ctx := b.Context()
	b.commit(one, control.Changes{Webhook: hook("a", "acme")})
	walk := func(s control.Store, from, to int64, tell ...control.Delivery) error {
		return s.Commit(ctx, control.Changes{Walk: &control.Walk{WebhookID: "a", From: from, To: to, FromRoster: -1, ToRoster: -1, Epoch: "e2"}, Deliveries: tell})
	}
	b.ok(walk(one, 5, 8, message("m8", "a", 3), message("m7", "a", 2)))
	b.is(walk(two, 5, 9, message("m9", "a", 1)), control.ErrStale)
	b.is(walk(two, 8, 9, message("m9", "b", 1)), control.ErrNotFound)
	if w := b.webhook(two, "a"); w.Cursor != 8 || w.Epoch != "e2" || w.Pending != 2 || w.NextAt != 2 || w.Version != 1 {
		b.Errorf("after a walk the webhook is %+v", w)
	}
	b.ok(walk(two, 8, 3)) // back
	b.ok(walk(two, 3, 8, message("m8", "a", 4)))
	b.want(b.told(one, control.DeliveryQuery{WebhookID: "a"}), "m8 0 0, m7 0 0")
	b.want(b.told(one, control.DeliveryQuery{WebhookID: "a", Due: 3}), "m7 0 0")
	b.want(b.told(one, control.DeliveryQuery{WebhookID: "a", Due: 4}), "m7 0 0, m8 0 0")
	b.want(b.told(one, control.DeliveryQuery{WebhookID: "a", Due: 4, Query: control.Query{Limit: 1}}), "m7 0 0")
	b.want(b.told(one, control.DeliveryQuery{WebhookID: "b", Due: 4}), "")
	b.is(one.Commit(ctx, control.Changes{Walk: &control.Walk{WebhookID: "none"}}), control.ErrStale)
	roster := control.Changes{Walk: &control.Walk{WebhookID: "a", From: 8, To: 8, FromRoster: -1, ToRoster: 4, Epoch: "e2"}}
	b.ok(two.Commit(ctx, roster))
	b.is(one.Commit(ctx, roster), control.ErrStale)
	if w := b.webhook(one, "a"); w.Cursor != 8 || w.Roster != 4 {
		b.Errorf("after a walk over the logs of machine names the webhook is %+v", w)
	}
}

// testAttempts is the way of deliveries: sent again, arrived, dead, and stored again.
func testAttempts(b *controlBench) {
	one, two := b.open(), b.open()
	defer b.close(one)
	defer b.close(two)
	ctx := b.Context()
	b.commit(one, control.Changes{Webhook: hook("a", "acme"), Deliveries: []control.Delivery{message("m", "a", 1), message("n", "a", 1)}})
	attempt := func(s control.Store, a control.Attempt) error {
		a.WebhookID = "a"
		return s.Commit(ctx, control.Changes{Attempt: &a})
	}
	yes, no := true, false
	b.ok(attempt(one, control.Attempt{DeliveryID: "m", At: 10, NextAt: 50, Status: 500, Error: "no"}))
	b.is(attempt(two, control.Attempt{DeliveryID: "m", At: 10, NextAt: 60}), control.ErrStale)
	b.ok(attempt(two, control.Attempt{DeliveryID: "m", Before: 1, At: 20, NextAt: 60, Error: "nobody"}))
	b.want(b.told(one, control.DeliveryQuery{WebhookID: "a"}), "m 2 0 nobody, n 0 0")
	if w := b.webhook(one, "a"); w.FailingSince != 10 || w.LastError != "nobody" || w.LastSuccess != 0 || w.NextAt != 1 || w.Off != "" {
		b.Errorf("after failures the webhook is %+v", w)
	}
	b.ok(attempt(one, control.Attempt{DeliveryID: "n", At: 30, Done: true, Status: 204}))
	b.is(attempt(one, control.Attempt{DeliveryID: "n", At: 30, Done: true}), control.ErrStale)
	if w := b.webhook(one, "a"); w.FailingSince != 0 || w.LastSuccess != 30 || w.Pending != 1 || w.NextAt != 60 {
		b.Errorf("after a success the webhook is %+v", w)
	}
	b.ok(attempt(one, control.Attempt{DeliveryID: "m", Before: 2, At: 40, Status: 410, Error: "gone", Off: "gone"}))
	b.is(attempt(one, control.Attempt{DeliveryID: "m", Before: 3, At: 41}), control.ErrStale)
	if w := b.webhook(one, "a"); w.Off != "gone" || w.Version != 2 || w.FailingSince != 40 || w.Pending != 0 || w.NextAt != 0 {
		b.Errorf("of what is gone the webhook is %+v", w)
	}
	b.want(b.told(one, control.DeliveryQuery{WebhookID: "a", Dead: &yes}), "m 3 410 gone")
	b.want(b.told(one, control.DeliveryQuery{WebhookID: "a", Dead: &no}), "")
	b.want(b.told(one, control.DeliveryQuery{WebhookID: "a", Due: 1 << 40}), "")
	b.commit(two, control.Changes{Deliveries: []control.Delivery{message("m", "a", 70)}})
	b.want(b.told(one, control.DeliveryQuery{WebhookID: "a", Dead: &no}), "m 0 410 gone")
	on := b.webhook(one, "a")
	on.Off, on.Version = "", 3
	b.commit(one, control.Changes{Webhook: &on})
	if w := b.webhook(two, "a"); w.Off != "" || w.FailingSince != 0 || w.LastSuccess != 30 {
		b.Errorf("switched on again the webhook is %+v", w)
	}
	b.ok(attempt(one, control.Attempt{DeliveryID: "m", At: 80, Error: "dead"}))
	b.commit(one, control.Changes{Deliveries: []control.Delivery{message("o", "a", 80)}})
	b.ok(attempt(one, control.Attempt{DeliveryID: "o", At: 79 + control.DeadLifetime}))
	b.want(b.told(one, control.DeliveryQuery{WebhookID: "a"}), "m 1 0 dead, o 1 0")
	b.commit(one, control.Changes{Deliveries: []control.Delivery{message("p", "a", 80)}})
	b.ok(attempt(one, control.Attempt{DeliveryID: "p", At: 80 + control.DeadLifetime}))
	b.want(b.told(one, control.DeliveryQuery{WebhookID: "a"}), "o 1 0, p 1 0")
}

// testWebhookPages: deliveries come in pages, both ways, and what is refused leaves nothing.
func testWebhookPages(b *controlBench) {
	s := b.open()
	defer b.close(s)
	b.commit(s, control.Changes{Webhook: hook("a", "acme")})
	for i := range 9 {
		b.commit(s, control.Changes{Deliveries: []control.Delivery{message(fmt.Sprint("m", i), "a", 5)}})
	}
	for _, desc := range []bool{false, true} {
		var got []string
		for q := (control.DeliveryQuery{WebhookID: "a", Query: control.Query{Limit: 4, Desc: desc, Tenant: "ignored"}}); ; {
			list, err := s.Deliveries(b.Context(), q)
			b.ok(err)
			for _, d := range list {
				got, q.After = append(got, d.ID), d.Place
			}
			if len(list) < 4 {
				break
			}
		}
		want := "m0 m1 m2 m3 m4 m5 m6 m7 m8"
		if desc {
			want = "m8 m7 m6 m5 m4 m3 m2 m1 m0"
		}
		b.want(strings.Join(got, " "), want)
	}
	for name, c := range map[string]control.Changes{
		"a webhook that there is": {Webhook: hook("a", "acme")}, "a walk from elsewhere": {Walk: &control.Walk{WebhookID: "a", From: 1}},
		"an attempt at nothing": {Attempt: &control.Attempt{DeliveryID: "none", WebhookID: "a"}}, "one of another": {Attempt: &control.Attempt{DeliveryID: "m1", WebhookID: "b"}},
	} {
		c.Keys, c.Entries = []control.Key{{ID: "new"}}, []control.Entry{{RequestID: "r"}}
		if c.Attempt != nil || c.Walk != nil {
			c.Deliveries = []control.Delivery{message("late", "a", 1)}
		}
		if err := s.Commit(b.Context(), c); err == nil {
			b.Errorf("%s is not refused", name)
		}
		_, key := s.Key(b.Context(), "new")
		_, late := s.Delivery(b.Context(), "late")
		if !errors.Is(key, control.ErrNotFound) || !errors.Is(late, control.ErrNotFound) || len(b.entries(s, control.Query{})) != 0 {
			b.Errorf("%s leaves something", name)
		}
	}
}
