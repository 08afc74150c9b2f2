package server_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/internal/seal"
	"github.com/dialai/dialai/notify"
	"github.com/dialai/dialai/server"
	"github.com/dialai/dialai/webhook"
)

// TestWebhooks is the way of a webhook: made, tested, told, rotated, switched off and on, told
// again, forgotten.
func TestWebhooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := seal.NewKey()
		d := newDesk(t, deskOptions{config: server.Config{Webhooks: &notify.Maker{Seal: key}}})
		var mu sync.Mutex
		var got []api.Message
		var ids []string
		status := 204
		answers := func(with int) {
			mu.Lock()
			defer mu.Unlock()
			status = with
		}
		pause := func() { // who delivers looks once a second
			time.Sleep(2 * time.Second)
			synctest.Wait()
		}
		deliver := notify.New(notify.Config{Control: d.control, Seal: key, Post: func(_ context.Context, url string, headers []webhook.Header, body []byte) (webhook.Reply, error) {
			mu.Lock()
			defer mu.Unlock()
			var m api.Message
			(&reply{body: body}).into(t, &m)
			got, ids = append(got, m), append(ids, headers[0].Value)
			return webhook.Reply{Status: status}, nil
		}})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- deliver.Run(ctx, notify.Tenant{Name: "default", Runner: d.runner}) }()
		defer func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}()
		var before api.Settled
		d.want(201, "POST", "/v1/sessions", `{"machine":`+alone+`}`).into(t, &before) // of what was before nothing is told
		var made api.MadeWebhook
		r := d.want(201, "POST", "/v1/webhooks", `{"url":"https://example.com/hook","types":["session.started","webhook.test"],"machines":["cl*"]}`)
		r.into(t, &made)
		path := "/v1/webhooks/" + made.WebhookID
		if r.header.Get("Location") != path || !strings.HasPrefix(made.Secret, "whsec_") || made.Status != "active" || made.CreatedBy != "local" {
			t.Errorf("made is %s", r.body)
		}
		d.want(202, "POST", path+"/test", "")
		d.want(201, "POST", "/v1/sessions", `{"machine":`+reviewed+`}`)
		d.want(201, "POST", "/v1/sessions", `{"machine":`+alone+`}`)
		pause()
		if len(got) == 2 && got[1].Type == "webhook.test" { // they are told side by side
			slices.Reverse(got)
			slices.Reverse(ids)
		}
		if len(got) != 2 || got[0].Type != "webhook.test" || got[1].Type != "session.started" || got[1].Data.MachineName != "claims" {
			t.Fatalf("told is %+v", got)
		}
		if r := d.want(200, "GET", path, ""); bytes.Contains(r.body, []byte("whsec_")) || bytes.Contains(r.body, []byte("secret")) {
			t.Errorf("shown is %s", r.body)
		}
		var rotated api.MadeWebhook
		d.want(200, "POST", path+"/rotate", "").into(t, &rotated)
		if !strings.HasPrefix(rotated.Secret, "whsec_") || rotated.Secret == made.Secret || rotated.OldSecretUntil == nil {
			t.Errorf("rotated is %+v", rotated)
		}
		var shown api.Webhook
		d.want(200, "PATCH", path, `{"enabled":false,"types":["*"]}`).into(t, &shown)
		if shown.Status != "disabled" || !slices.Equal(shown.Types, []string{"*"}) || !slices.Equal(shown.Machines, []string{"cl*"}) {
			t.Errorf("switched off it is %+v", shown)
		}
		pause()
		if r := d.want(409, "POST", path+"/test", ""); r.code() != "webhook_off" {
			t.Errorf("a test of what is off: %s", r.body)
		}
		d.want(201, "POST", "/v1/sessions", `{"machine":`+reviewed+`}`)
		pause()
		answers(500)
		d.want(200, "PATCH", path, `{"enabled":true,"types":["session.started"]}`)
		pause()
		var list api.List[api.Delivery]
		if d.want(200, "GET", path+"/deliveries?status=pending", "").into(t, &list); len(got) != 3 || len(list.Items) != 1 || list.Items[0].LastStatus != 500 || list.Items[0].Attempts != 1 || list.Items[0].DeliveryID != ids[2] {
			t.Fatalf("told is %+v, still to be told %+v", got, list.Items)
		}
		if d.want(200, "GET", path+"/deliveries?status=dead", "").into(t, &list); len(list.Items) != 0 {
			t.Errorf("dead are %+v", list.Items)
		}
		answers(200)
		d.want(202, "POST", path+"/deliveries/"+ids[2]+"/redeliver", "")
		pause()
		d.want(404, "POST", path+"/deliveries/"+ids[2]+"/redeliver", "") // it has arrived
		d.want(200, "POST", path+"/replay", `{"after":0}`)
		pause()
		if len(ids) != 6 || ids[3] != ids[2] || !slices.Contains(ids[4:], ids[1]) || !slices.Contains(ids[4:], ids[2]) {
			t.Errorf("told are %v", ids)
		}
		d.want(204, "DELETE", path, "")
		for _, call := range [][2]string{{"GET", ""}, {"DELETE", ""}, {"POST", "/test"}, {"POST", "/rotate"}, {"GET", "/deliveries"}} {
			d.want(404, call[0], path+call[1], "")
		}
	})
}

// TestWebhookAddresses: what may not be called is refused, and how that is allowed is said.
func TestWebhookAddresses(t *testing.T) {
	d := newDesk(t, deskOptions{})
	body := func(url string) string { return fmt.Sprintf(`{"url":%q,"types":["*"]}`, url) }
	for _, url := range []string{"https://127.0.0.1:9/x", "https://10.0.0.7/", "http://example.com/", "https://a:b@example.com/", "https://[::1]/", "https://2130706433/"} {
		r := d.want(422, "POST", "/v1/webhooks", body(url))
		if r.code() != "address_not_allowed" || !bytes.Contains(r.body, []byte("DIALAI_WEBHOOK_ALLOW")) || bytes.Contains(r.body, []byte("a:b")) {
			t.Errorf("%s: %s", url, r.body)
		}
	}
	var made api.MadeWebhook
	d.want(201, "POST", "/v1/webhooks", body("https://example.com")).into(t, &made)
	if r := d.want(422, "PATCH", "/v1/webhooks/"+made.WebhookID, `{"url":"http://10.1.1.1"}`); r.code() != "address_not_allowed" {
		t.Errorf("changed to another: %s", r.body)
	}
	for _, bad := range []string{`{"url":"https://example.com"}`, `{"url":"https://example.com","types":["session.startet"]}`, `{"url":"https://example.com","types":[]}`, `{"url":"mailto:x","types":["*"]}`,
		`{"url":"https://example.com","types":["*"],"include":["payload"]}`, `{"url":"https://example.com","types":["*"],"machines":[""]}`, `{"url":"https://example.com","types":["*"],"secret":"mine"}`} {
		d.want(400, "POST", "/v1/webhooks", bad)
	}
	d.want(404, "GET", "/v1/webhooks/none", "")
}

// TestWhoMayHook: whoever configures machines has them told of, sees no webhook of others, and
// includes what they may read.
func TestWhoMayHook(t *testing.T) {
	d := newDesk(t, deskOptions{})
	own := d.key(control.Grant{Role: control.Operator, Machines: []string{"claims-*"}})
	everywhere := d.key(control.Grant{Role: control.Operator})
	body := `{"url":"https://example.com","types":["*"],"machines":["%s"],"include":["metaJson"]}`
	var made api.MadeWebhook
	d.wantAs(own, 201, "POST", "/v1/webhooks", fmt.Sprintf(body, "claims-eu-*")).into(t, &made)
	d.wantAs(own, 403, "POST", "/v1/webhooks", fmt.Sprintf(body, "claims*"))
	d.wantAs(own, 403, "POST", "/v1/webhooks", `{"url":"https://example.com","types":["*"]}`)
	d.wantAs(own, 403, "PATCH", "/v1/webhooks/"+made.WebhookID, `{"machines":[]}`)
	var all api.MadeWebhook
	d.wantAs(everywhere, 201, "POST", "/v1/webhooks", `{"url":"https://example.com","types":["*"]}`).into(t, &all)
	d.wantAs(own, 404, "GET", "/v1/webhooks/"+all.WebhookID, "")
	d.wantAs(own, 404, "DELETE", "/v1/webhooks/"+all.WebhookID, "")
	var list api.List[api.Webhook]
	if d.wantAs(own, 200, "GET", "/v1/webhooks", "").into(t, &list); len(list.Items) != 1 || list.Items[0].WebhookID != made.WebhookID {
		t.Errorf("whoever has some machines sees %+v", list.Items)
	}
	if d.wantAs(everywhere, 200, "GET", "/v1/webhooks", "").into(t, &list); len(list.Items) != 2 {
		t.Errorf("whoever has all sees %+v", list.Items)
	}
	for _, role := range []control.Role{control.Viewer, control.Human, control.Auditor} {
		d.wantAs(d.key(control.Grant{Role: role, Humans: humansOf(role)}), http.StatusForbidden, "GET", "/v1/webhooks", "")
	}
}

func humansOf(role control.Role) []string {
	if role == control.Human {
		return []string{"carol"}
	}
	return nil
}

// TestWebhookShownOnce: a request that is sent again makes no second webhook, and is not shown
// the secret again; nor does a server without a key make any.
func TestWebhookShownOnce(t *testing.T) {
	d := newDesk(t, deskOptions{})
	body := `{"url":"https://example.com","types":["*"]}`
	var first, again api.MadeWebhook
	d.want(201, "POST", "/v1/webhooks", body, "Idempotency-Key", "k").into(t, &first)
	d.want(201, "POST", "/v1/webhooks", body, "Idempotency-Key", "k").into(t, &again)
	if first.Secret == "" || again.Secret != "" || again.WebhookID != first.WebhookID {
		t.Errorf("made are %+v and %+v", first, again)
	}
	kept, err := d.control.Webhook(t.Context(), first.WebhookID)
	if err != nil || bytes.Contains(kept.Secret, []byte(first.Secret)) {
		t.Errorf("kept is %q (%v)", kept.Secret, err)
	}
	for range notify.MaxWebhooks - 1 {
		d.want(201, "POST", "/v1/webhooks", body)
	}
	if r := d.want(409, "POST", "/v1/webhooks", body); r.code() != "too_many_webhooks" {
		t.Errorf("one too many: %s", r.body)
	}
}

// TestMessagesDescribed: the document has each kind of message that webhooks are sent.
func TestMessagesDescribed(t *testing.T) {
	d := newDesk(t, deskOptions{})
	var doc struct {
		OpenAPI  string
		Webhooks map[string]struct {
			Post struct {
				Summary     string
				RequestBody struct {
					Content map[string]struct{ Schema schema }
				}
			}
		}
	}
	d.do("", "GET", "/openapi.json", "").into(t, &doc)
	if !strings.HasPrefix(doc.OpenAPI, "3.1") || len(doc.Webhooks) != len(notify.Kinds()) {
		t.Errorf("version %s has %d webhooks", doc.OpenAPI, len(doc.Webhooks))
	}
	for _, k := range notify.Kinds() {
		if w := doc.Webhooks[k.Name].Post; w.Summary != k.When || w.RequestBody.Content["application/json"].Schema.Ref != "#/components/schemas/Message" {
			t.Errorf("%s is described as %+v", k.Name, w)
		}
	}
}
