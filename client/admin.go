package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"github.com/dialai/dialai/api"
)

// keyAt returns the path of a key, or below it.
func keyAt(id, below string) string { return "/v1/keys/" + url.PathEscape(id) + below }

// Keys yields the keys of the server that are good, in the order in which they were made; all
// yields those that have expired or are revoked, too. An error is the last it yields.
func (c *Client) Keys(ctx context.Context, all bool) iter.Seq2[api.Key, error] {
	return pages[api.Key](ctx, c, "/v1/keys", values("all", yes(all)))
}

// Key returns a key, without what is shown once.
func (c *Client) Key(ctx context.Context, id string) (api.Key, error) {
	return do[api.Key](ctx, c, get(keyAt(id, ""), nil))
}

// CreateKey makes a key. Its Credential is shown this once: where the answer was lost and the
// call is made again it is "", and the key is of no use to anybody.
func (c *Client) CreateKey(ctx context.Context, in api.NewKey, w Write) (api.MadeKey, error) {
	return do[api.MadeKey](ctx, c, post("/v1/keys", in, Write{Key: w.Key}))
}

// RevokeKey has a key refused from now on.
func (c *Client) RevokeKey(ctx context.Context, id string) (api.Key, error) {
	return do[api.Key](ctx, c, call{method: http.MethodDelete, path: keyAt(id, "")})
}

// RotateKey makes a key in the place of another, as [Client.CreateKey] does.
func (c *Client) RotateKey(ctx context.Context, id string, in api.Rotation, w Write) (api.MadeKey, error) {
	return do[api.MadeKey](ctx, c, post(keyAt(id, "/rotate"), in, Write{Key: w.Key}))
}

// Ticket makes a ticket, with which a browser signs in once. It is shown this once, as the
// Credential of a key is.
func (c *Client) Ticket(ctx context.Context, in api.NewTicket, w Write) (api.Ticket, error) {
	return do[api.Ticket](ctx, c, post("/v1/tickets", in, Write{Key: w.Key}))
}

// Audit yields who did what, the oldest first unless newestFirst; subject is "" for everybody. An
// error is the last it yields.
func (c *Client) Audit(ctx context.Context, subject string, newestFirst bool) iter.Seq2[api.AuditRecord, error] {
	v := values("subject", subject)
	if newestFirst {
		v.Set("order", "desc")
	}
	return pages[api.AuditRecord](ctx, c, "/v1/audit", v)
}

// Store says what the server keeps its sessions in.
func (c *Client) Store(ctx context.Context) (api.Store, error) {
	return do[api.Store](ctx, c, get("/v1/store", nil))
}
