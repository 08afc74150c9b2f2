package notify

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/internal/seal"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/webhook"
)

// How webhooks are made and changed. Nothing here is stored: whoever calls commits what comes
// of it, together with what the audit log says of it.

// A Maker makes webhooks: it seals their secrets, and lets them go where the policy allows.
type Maker struct {
	Seal   seal.Key
	Policy webhook.Policy
}

// What may be in a message beside references.
const (
	includeMeta      = "metaJson"
	includeProposals = "proposals"
)

// purpose is that for which secrets are sealed, with the id of their webhook behind it.
const purpose = "webhook "

// everything stands for all kinds of messages.
const everything = "*"

// rotationFor is how long the secret before signs, too, in milliseconds.
const rotationFor specialist.Time = 24 * 60 * 60 * 1000

// An InvalidError says what of a webhook cannot be.
type InvalidError struct{ Member, Problem string }

func (e *InvalidError) Error() string { return e.Member + ": " + e.Problem }

// New returns a webhook that is told what happens after a place, and its secret. The errors
// are an *InvalidError and a *webhook.PolicyError.
func (m *Maker) New(in api.NewWebhook, w control.Webhook) (control.Webhook, string, error) {
	var id [12]byte
	rand.Read(id[:]) // never fails
	w.ID, w.Version = "wh_"+hex.EncodeToString(id[:]), 1
	w.URL, w.Types, w.Machines, w.Include = in.URL, in.Types, in.Machines, in.Include
	if err := m.check(&w); err != nil {
		return w, "", err
	}
	var secret string
	w.Secret, secret = m.secret(w.ID)
	return w, secret, nil
}

// secret makes a secret, as it is kept and as it is shown.
func (m *Maker) secret(id string) (sealed []byte, shown string) {
	var key [24]byte
	rand.Read(key[:]) // never fails
	return []byte(m.Seal.Seal(purpose+id, key[:])), "whsec_" + base64.StdEncoding.EncodeToString(key[:])
}

// Changed returns the next version of a webhook. The errors are those of New.
func (m *Maker) Changed(w control.Webhook, to api.WebhookChange) (control.Webhook, error) {
	w.Version++
	if to.URL != nil {
		w.URL = *to.URL
	}
	for into, list := range map[*[]string][]string{&w.Types: to.Types, &w.Machines: to.Machines, &w.Include: to.Include} {
		if list != nil {
			*into = list
		}
	}
	if to.Enabled != nil {
		if w.Off = ""; !*to.Enabled {
			w.Off = control.OffDisabled
		}
	}
	return w, m.check(&w)
}

// Rotated returns the next version of a webhook, with another secret. The one before signs,
// too, for a day.
func (m *Maker) Rotated(w control.Webhook, at specialist.Time) (control.Webhook, string) {
	w.Version++
	w.OldSecret, w.OldUntil = w.Secret, at+rotationFor
	var secret string
	w.Secret, secret = m.secret(w.ID)
	return w, secret
}

// check returns what is wrong with a webhook.
func (m *Maker) check(w *control.Webhook) error {
	u, err := url.Parse(w.URL)
	if err != nil || u.Host == "" {
		return &InvalidError{"url", "it is not the address of a host, such as https://example.com/hooks"}
	}
	if u.User != nil {
		return &webhook.PolicyError{Address: u.Host, Kind: "user information in the URL: what is sent is signed in place of it"}
	}
	if err := m.Policy.CheckURL(u); err != nil {
		return err
	}
	if slices.Contains(w.Types, everything) {
		w.Types = nil
	}
	for _, t := range w.Types {
		if !slices.ContainsFunc(kinds, func(k Kind) bool { return k.Name == t }) {
			return &InvalidError{"types", fmt.Sprintf("there is no %q; there are %s, and * for all", t, names())}
		}
	}
	if slices.Contains(w.Machines, "") {
		return &InvalidError{"machines", `none of them is ""`}
	}
	for _, i := range w.Include {
		if i != includeMeta && i != includeProposals {
			return &InvalidError{"include", fmt.Sprintf("%q cannot be included; %s and %s can", i, includeMeta, includeProposals)}
		}
	}
	return nil
}

func names() string {
	var list []string
	for _, k := range kinds {
		list = append(list, k.Name)
	}
	return strings.Join(list, ", ")
}

// Test returns a message that says nothing, for a webhook to show that it arrives.
func Test(w *control.Webhook, at specialist.Time) (control.Delivery, error) {
	m := api.Message{Type: testKind, Timestamp: at, Data: api.MessageData{Tenant: w.Tenant}}
	return deliveryOf(w, messageID(w.ID, testKind, rand.Text()), &m, at)
}

// Again returns a delivery as it is stored to be made at once.
func Again(d control.Delivery, at specialist.Time) control.Delivery {
	d.NextAt = at
	return d
}

// FromNow has a webhook that is made be told what happens in a store from now on.
func FromNow(ctx context.Context, from session.Store, w *control.Webhook) error {
	at, err := standing(ctx, from)
	w.Cursor, w.Roster = at.log, at.roster
	return err
}

// Back returns the walk that has a webhook told again what happened after a place in the log of the
// sessions of a store, and what happened to machine names since then. One behind its cursor is where
// the cursor is.
func Back(ctx context.Context, from session.Store, w *control.Webhook, after int64) (*control.Walk, error) {
	to := placesOf(w)
	if after >= to.log {
		return walkTo(w, to), nil
	}
	since := specialist.Time(0)
	for e, err := range from.Log(ctx, "", after) {
		if err != nil {
			return nil, err
		}
		if after > 0 { // else from the beginning
			since = startOf(e.Events)
		}
		break
	}
	for e, err := range from.RosterLog(ctx, "", 0) {
		if err != nil {
			return nil, err
		}
		if startOf(e.Events) >= since {
			to.roster = min(to.roster, e.Place-1)
			break
		}
	}
	to.log = after
	return walkTo(w, to), nil
}

// startOf returns when the first event of a record happened; 0 if it cannot be read.
func startOf(record []byte) specialist.Time {
	raw, err := session.DecodeRaw(record)
	if err != nil || len(raw) == 0 {
		return 0
	}
	return raw[0].At
}
