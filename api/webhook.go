package api

import (
	"encoding/json"

	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/specialist"
)

// A Webhook is an address that is told what happens, as it is shown: without its secret.
type Webhook struct {
	WebhookID string          `json:"webhookId"`
	Tenant    string          `json:"tenant"`
	URL       string          `json:"url"`
	Types     []string        `json:"types"`
	Machines  []string        `json:"machines"`
	Include   []string        `json:"include"`
	Status    string          `json:"status" doc:"active; disabled: somebody has switched it off; gone: it answered 410; failing: nothing has arrived for five days"`
	CreatedBy string          `json:"createdBy"`
	CreatedAt specialist.Time `json:"createdAt"`
	Cursor    int64           `json:"cursor" doc:"the place in the log up to which it was seen to"`
	Pending   int64           `json:"pending" doc:"deliveries that are still to be made"`

	NextAttempt    *specialist.Time `json:"nextAttempt,omitempty" doc:"of the first of them"`
	LastSuccess    *specialist.Time `json:"lastSuccess,omitempty"`
	FailingSince   *specialist.Time `json:"failingSince,omitempty" doc:"the first failure since the last success"`
	LastError      string           `json:"lastError,omitempty" doc:"of the newest failure"`
	OldSecretUntil *specialist.Time `json:"oldSecretUntil,omitempty" doc:"until when the secret before signs, too"`
}

// A MadeWebhook is a webhook with its secret, which is shown once.
type MadeWebhook struct {
	Webhook
	Secret string `json:"secret,omitempty" doc:"verifies what is sent (Standard Webhooks); shown this once"`
}

// A NewWebhook says who is to be told what.
type NewWebhook struct {
	URL      string   `json:"url" minLength:"1" maxLength:"2000" doc:"an address that is posted to, by https"`
	Types    []string `json:"types" minItems:"1" maxItems:"50" doc:"of what it is told, such as session.needs_human; * is all"`
	Machines []string `json:"machines,omitempty" maxItems:"100" doc:"names of machines, in which * stands for any characters; all without it"`
	Include  []string `json:"include,omitempty" maxItems:"2" doc:"metaJson, proposals: what is in it beside references"`
}

// A WebhookChange says what becomes different; what is left out stays.
type WebhookChange struct {
	URL      *string  `json:"url,omitempty" minLength:"1" maxLength:"2000"`
	Types    []string `json:"types,omitempty" minItems:"1" maxItems:"50"`
	Machines []string `json:"machines,omitempty" maxItems:"100"`
	Include  []string `json:"include,omitempty" maxItems:"2"`
	Enabled  *bool    `json:"enabled,omitempty" doc:"switched on it goes on where it has stopped"`
}

// A Replay says from where on a webhook is told again what has happened.
type Replay struct {
	After int64 `json:"after" minimum:"0" doc:"a place in the log: data.place of the last message that is not wanted again; 0 is the beginning"`
}

// A Delivery is something that a webhook is to be told.
type Delivery struct {
	DeliveryID  string           `json:"deliveryId" doc:"the webhook-id of the message"`
	WebhookID   string           `json:"webhookId"`
	Type        string           `json:"type"`
	Status      string           `json:"status" doc:"pending or dead: what has arrived is kept no longer"`
	Attempts    int              `json:"attempts"`
	CreatedAt   specialist.Time  `json:"createdAt"`
	NextAttempt *specialist.Time `json:"nextAttempt,omitempty"`
	DeadAt      *specialist.Time `json:"deadAt,omitempty" doc:"it is kept for 30 days"`
	LastStatus  int              `json:"lastStatus,omitempty" doc:"of HTTP, of the newest answer"`
	LastError   string           `json:"lastError,omitempty"`
}

// A Message is what a webhook is sent.
type Message struct {
	Type      string          `json:"type"`
	Timestamp specialist.Time `json:"timestamp" doc:"when it happened"`
	Data      MessageData     `json:"data"`
}

// MessageData says where something happened: references, by which the rest can be read.
type MessageData struct {
	Tenant         string            `json:"tenant"`
	MachineName    string            `json:"machineName,omitempty"`
	SessionID      string            `json:"sessionId,omitempty"`
	Seq            int64             `json:"seq,omitempty" doc:"of the event in the log of the session"`
	Place          int64             `json:"place,omitempty" doc:"of its record in the log of all sessions: messages may come in another order"`
	RosterPlace    int64             `json:"rosterPlace,omitempty" doc:"of trust.stage_changed, in place of seq and place: of its record in the log of all machine names"`
	RoundID        string            `json:"roundId,omitempty"`
	State          string            `json:"state,omitempty"`
	Status         string            `json:"status,omitempty" doc:"of the session then"`
	Stage          string            `json:"stage,omitempty" doc:"of trust.stage_changed: the one that the state has come to"`
	Code           string            `json:"code,omitempty"`
	TransitionName string            `json:"transitionName,omitempty"`
	IsHuman        *bool             `json:"isHuman,omitempty" doc:"whether a human has decided"`
	URL            string            `json:"url,omitempty" doc:"a page about it"`
	MetaJSON       json.RawMessage   `json:"metaJson,omitempty" doc:"where it is included"`
	Proposals      []json.RawMessage `json:"proposals,omitempty" doc:"where they are included: of a question, unless they are withheld"`
}

func given(t specialist.Time) *specialist.Time {
	if t == 0 {
		return nil
	}
	return &t
}

// WebhookOf returns a webhook as it is shown at a moment.
func WebhookOf(w control.Webhook, now specialist.Time) Webhook {
	shown := Webhook{
		WebhookID: w.ID, Tenant: w.Tenant, URL: w.URL, Types: append([]string{}, w.Types...), Machines: append([]string{}, w.Machines...), Include: append([]string{}, w.Include...),
		Status: w.Off, CreatedBy: w.CreatedBy, CreatedAt: w.CreatedAt, Cursor: w.Cursor, Pending: w.Pending,
		NextAttempt: given(w.NextAt), LastSuccess: given(w.LastSuccess), FailingSince: given(w.FailingSince), LastError: w.LastError,
	}
	if shown.Status == "" {
		shown.Status = "active"
	}
	if len(w.Types) == 0 {
		shown.Types = []string{"*"}
	}
	if now < w.OldUntil {
		shown.OldSecretUntil = &w.OldUntil
	}
	return shown
}

// DeliveryOf returns a delivery as it is shown.
func DeliveryOf(d control.Delivery) Delivery {
	shown := Delivery{DeliveryID: d.ID, WebhookID: d.WebhookID, Type: d.Type, Status: "pending", Attempts: d.Attempts, CreatedAt: d.CreatedAt, DeadAt: given(d.DeadAt), LastStatus: d.Status, LastError: d.Error}
	if d.DeadAt != 0 {
		shown.Status = "dead"
	} else {
		shown.NextAttempt = given(d.NextAt)
	}
	return shown
}
