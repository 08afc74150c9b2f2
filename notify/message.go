package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/webhook"
)

// A message is signed as Standard Webhooks says. Its id says what it is about: of which webhook,
// which log, which record and what of it. So it is the same on every attempt, when the log is
// walked again, and after a crash; whoever receives one twice knows it by that.

// messageID returns the id of what a webhook is told: a UUID version 8 (RFC 9562) of a hash.
func messageID(about ...string) string {
	h := sum(append([]string{"dialai message"}, about...)...)
	id := specialist.SessionID(h[:16])
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return "msg_" + id.String()
}

// delivery returns what a webhook is told of something that has happened.
func (n *Notifier) delivery(hook *control.Webhook, h *happening) (control.Delivery, error) {
	m := api.Message{Type: h.kind, Timestamp: h.at, Data: api.MessageData{
		Tenant: hook.Tenant, MachineName: h.machine, Seq: h.seq, Place: h.place, RoundID: h.round,
		RosterPlace: h.roster, State: h.state, Status: h.status, Stage: h.stage, Code: h.code, TransitionName: h.transition, IsHuman: h.isHuman, URL: n.pageOf(h),
	}}
	about := fmt.Sprint(h.place)
	if h.roster != 0 {
		about = fmt.Sprint("roster ", h.roster)
	}
	if h.session != (specialist.SessionID{}) {
		m.Data.SessionID = h.session.String()
	}
	if slices.Contains(hook.Include, includeMeta) {
		m.Data.MetaJSON = h.meta
	}
	if slices.Contains(hook.Include, includeProposals) {
		m.Data.Proposals = h.proposals
	}
	return deliveryOf(hook, messageID(hook.ID, hook.Epoch, about, fmt.Sprint(h.index)), &m, now())
}

func deliveryOf(hook *control.Webhook, id string, m *api.Message, at specialist.Time) (control.Delivery, error) {
	body, err := json.Marshal(m)
	return control.Delivery{ID: id, WebhookID: hook.ID, Type: m.Type, Body: body, CreatedAt: at, NextAt: at}, err
}

// pageOf returns the address of a page about something that has happened.
func (n *Notifier) pageOf(h *happening) string {
	base := strings.TrimSuffix(n.config.PublicURL, "/")
	if base == "" || h.session == (specialist.SessionID{}) {
		return ""
	}
	switch h.kind {
	case needsHuman, changed, reminder:
		return base + "/desk/q/" + h.session.String() + "." + h.round
	case reviewOpened:
		return base + "/desk/reviews"
	}
	return base + "/desk/sessions/" + h.session.String()
}

// schedule is how long after each attempt the next one is made; after the last the delivery is
// dead.
var schedule = []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 10 * time.Hour}

// longestAsked is how long an address may ask to be left alone.
const longestAsked = time.Hour

// after returns how long to wait after so many attempts, a fifth more or less, but at least
// as long as was asked for; 0 if there is no other attempt.
func after(attempts int, asked time.Duration) time.Duration {
	if attempts > len(schedule) {
		return 0
	}
	wait := schedule[attempts-1]
	return max(wait-wait/5+rand.N(2*wait/5+1), min(asked, longestAsked)) //nolint:gosec // spreads load, keeps no secret
}

// gone is the status of an address that wants to be told nothing any more.
const gone = 410

// attempt sends a delivery once, and says what came of it.
func (n *Notifier) attempt(ctx context.Context, hook *control.Webhook, d *control.Delivery, traceparent string) control.Attempt {
	a := control.Attempt{DeliveryID: d.ID, WebhookID: hook.ID, Before: d.Attempts, At: now()}
	headers, err := n.headers(hook, d)
	if traceparent != "" {
		headers = append(headers, webhook.Header{Name: "Traceparent", Value: traceparent})
	}
	var reply webhook.Reply
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, attemptFor)
		reply, err = n.post(ctx, hook.URL, headers, d.Body)
		cancel()
	}
	a.At, a.Status = now(), reply.Status
	if reply.Status >= 200 && reply.Status < 300 {
		a.Done = true // whatever became of the rest of the answer
		return a
	}
	switch {
	case err != nil:
		a.Error = webhook.Clip(err.Error(), maxError)
	default:
		a.Error = fmt.Sprint("it answered ", reply.Status)
	}
	if reply.Status == gone {
		a.Off = control.OffGone
		return a
	}
	if wait := after(d.Attempts+1, reply.RetryAfter); wait > 0 {
		a.NextAt = a.At + specialist.Time(wait.Milliseconds())
	}
	return a
}

// maxError is how much is kept of why an attempt failed, in bytes.
const maxError = 500

// headers are those by which a message is known and verified. While a secret takes the place
// of another both sign.
func (n *Notifier) headers(hook *control.Webhook, d *control.Delivery) ([]webhook.Header, error) {
	at := time.Now()
	sealed := [][]byte{hook.Secret}
	if specialist.TimeOf(at) < hook.OldUntil {
		sealed = append(sealed, hook.OldSecret)
	}
	var signatures []string
	for _, s := range sealed {
		key, err := n.config.Seal.Open(purpose+hook.ID, string(s))
		if err != nil {
			return nil, fmt.Errorf("its secret cannot be read: %w; the key of the server is another now: rotate the secret", err)
		}
		signatures = append(signatures, webhook.Sign(key, d.ID, at, d.Body))
	}
	return []webhook.Header{{Name: "Webhook-Id", Value: d.ID}, {Name: "Webhook-Timestamp", Value: fmt.Sprint(at.Unix())}, {Name: "Webhook-Signature", Value: strings.Join(signatures, " ")}}, nil
}

// outbound returns what sends a body under a policy.
func outbound(p webhook.Policy) poster {
	out := webhook.NewOutbound(p, nil)
	return func(ctx context.Context, address string, headers []webhook.Header, body []byte) (webhook.Reply, error) {
		target, err := out.Target(address)
		if err != nil {
			return webhook.Reply{}, err
		}
		return target.Post(ctx, headers, body)
	}
}
