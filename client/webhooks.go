package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"github.com/dialai/dialai/api"
)

// webhookAt returns the path of a webhook, or below it.
func webhookAt(id, below string) string { return "/v1/webhooks/" + url.PathEscape(id) + below }

// Webhooks yields who is told what happens. An error is the last it yields.
func (c *Client) Webhooks(ctx context.Context) iter.Seq2[api.Webhook, error] {
	return pages[api.Webhook](ctx, c, "/v1/webhooks", url.Values{})
}

// Webhook returns a webhook, and how it goes with it.
func (c *Client) Webhook(ctx context.Context, id string) (api.Webhook, error) {
	return do[api.Webhook](ctx, c, get(webhookAt(id, ""), nil))
}

// CreateWebhook has an address told what happens. Its Secret is shown this once: where the
// answer was lost and the call is made again it is "", and rotating makes another.
func (c *Client) CreateWebhook(ctx context.Context, in api.NewWebhook, w Write) (api.MadeWebhook, error) {
	return do[api.MadeWebhook](ctx, c, post("/v1/webhooks", in, Write{Key: w.Key}))
}

// ChangeWebhook changes a webhook, or switches it on or off.
func (c *Client) ChangeWebhook(ctx context.Context, id string, to api.WebhookChange) (api.Webhook, error) {
	return do[api.Webhook](ctx, c, call{method: http.MethodPatch, path: webhookAt(id, ""), body: to})
}

// DeleteWebhook forgets a webhook, and what it was still to be told.
func (c *Client) DeleteWebhook(ctx context.Context, id string) error {
	_, err := do[[]byte](ctx, c, call{method: http.MethodDelete, path: webhookAt(id, "")})
	return err
}

// RotateWebhook gives a webhook another secret, which is shown as by [Client.CreateWebhook]. For
// a day the one before signs, too.
func (c *Client) RotateWebhook(ctx context.Context, id string, w Write) (api.MadeWebhook, error) {
	return do[api.MadeWebhook](ctx, c, post(webhookAt(id, "/rotate"), nil, Write{Key: w.Key}))
}

// TestWebhook sends a webhook a message that says nothing.
func (c *Client) TestWebhook(ctx context.Context, id string, w Write) (api.Delivery, error) {
	return do[api.Delivery](ctx, c, post(webhookAt(id, "/test"), nil, Write{Key: w.Key}))
}

// ReplayWebhook tells a webhook again what happened after a place.
func (c *Client) ReplayWebhook(ctx context.Context, id string, after int64, w Write) (api.Webhook, error) {
	return do[api.Webhook](ctx, c, post(webhookAt(id, "/replay"), api.Replay{After: after}, Write{Key: w.Key}))
}

// Deliveries yields what a webhook is still to be told; status is pending, dead or "" for both.
// An error is the last it yields.
func (c *Client) Deliveries(ctx context.Context, id, status string) iter.Seq2[api.Delivery, error] {
	return pages[api.Delivery](ctx, c, webhookAt(id, "/deliveries"), values("status", status))
}

// Redeliver makes a delivery at once, from the first attempt on.
func (c *Client) Redeliver(ctx context.Context, id, delivery string, w Write) (api.Delivery, error) {
	return do[api.Delivery](ctx, c, post(webhookAt(id, "/deliveries/"+url.PathEscape(delivery)+"/redeliver"), nil, Write{Key: w.Key}))
}
