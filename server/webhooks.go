package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/notify"
	"github.com/dialai/dialai/server/internal/params"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/webhook"
)

// Webhooks: who is told what happens. Whoever configures machines makes them, for these
// machines; package notify delivers. A secret is in the one answer that makes it, as a
// credential is.

func (s *Server) registerWebhooks() {
	const one = "/v1/webhooks/{webhook}"
	add(s, operation{id: "list-webhooks", method: http.MethodGet, path: "/v1/webhooks", summary: "Who is told what happens", needs: mayConfigure}, s.webhooks)
	add(s, operation{id: "create-webhook", method: http.MethodPost, path: "/v1/webhooks", summary: "Have an address told what happens, signed with a secret that is shown once", needs: mayConfigure, status: 201, errors: []int{409, 422, 501}}, s.createWebhook)
	add(s, operation{id: "get-webhook", method: http.MethodGet, path: one, summary: "A webhook, and how it goes with it", needs: mayConfigure}, s.webhook)
	add(s, operation{id: "change-webhook", method: http.MethodPatch, path: one, summary: "Change a webhook, or switch it on or off", needs: mayConfigure, errors: []int{409, 422, 501}}, s.changeWebhook)
	add(s, operation{id: "delete-webhook", method: http.MethodDelete, path: one, summary: "Forget a webhook, and what it was still to be told", needs: mayConfigure, status: http.StatusNoContent}, s.deleteWebhook)
	add(s, operation{id: "rotate-webhook", method: http.MethodPost, path: one + "/rotate", summary: "Give a webhook another secret; for a day the one before signs, too", needs: mayConfigure, errors: []int{409, 422, 501}}, s.rotateWebhook)
	add(s, operation{id: "test-webhook", method: http.MethodPost, path: one + "/test", summary: "Send a webhook a message that says nothing", needs: mayConfigure, status: http.StatusAccepted, errors: []int{409, 422}}, s.testWebhook)
	add(s, operation{id: "replay-webhook", method: http.MethodPost, path: one + "/replay", summary: "Tell a webhook again what happened after a place, under the same ids", needs: mayConfigure, errors: []int{409, 422}}, s.replayWebhook)
	add(s, operation{id: "list-deliveries", method: http.MethodGet, path: one + "/deliveries", summary: "What a webhook is still to be told, and what it could not be", needs: mayConfigure}, s.deliveries)
	add(s, operation{id: "redeliver", method: http.MethodPost, path: one + "/deliveries/{delivery}/redeliver", summary: "Make a delivery at once, from the first attempt on", needs: mayConfigure, status: http.StatusAccepted, errors: []int{409, 422}}, s.redeliver)
	s.describeMessages()
}

// describeMessages says in the document what webhooks are sent.
func (s *Server) describeMessages() {
	doc := s.api.OpenAPI()
	doc.Webhooks = map[string]*huma.PathItem{}
	body := &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: doc.Components.Schemas.Schema(typeOf[api.Message](), true, "Message")}}}
	text := &huma.Schema{Type: huma.TypeString}
	headers := []*huma.Param{
		{Name: "webhook-id", In: "header", Required: true, Schema: text, Description: "the same whenever the message is sent"},
		{Name: "webhook-timestamp", In: "header", Required: true, Schema: text, Description: "when it was signed, in seconds since 1970"},
		{Name: "webhook-signature", In: "header", Required: true, Schema: text, Description: "signatures, with blanks between (Standard Webhooks)"},
	}
	for _, k := range notify.Kinds() {
		doc.Webhooks[k.Name] = &huma.PathItem{Post: &huma.Operation{OperationID: k.Name, Summary: k.When, Parameters: headers, RequestBody: body,
			Responses: map[string]*huma.Response{"2XX": {Description: "it has arrived"}, "410": {Description: "send no more: the webhook is switched off"}, "default": {Description: "it is sent again; Retry-After is minded up to an hour"}}}}
	}
}

// mayHook refuses who may not configure all machines that a webhook is told of, or may not see
// what it includes.
func mayHook(p *Principal, w *control.Webhook) error {
	needs := []permission{mayConfigure}
	if len(w.Include) > 0 {
		needs = append(needs, mayPayload)
	}
	for _, do := range needs {
		if len(w.Machines) == 0 {
			if err := mayEverywhere(p, do); err != nil {
				return err
			}
		}
		for _, name := range w.Machines {
			if !p.may(do, name) {
				return mayNot(p, do, name)
			}
		}
	}
	return nil
}

type webhooksOut struct{ Body api.List[api.Webhook] }

func (s *Server) webhooks(ctx context.Context, p *Principal, in *params.Page) (*webhooksOut, error) {
	l, err := listing("webhooks", p, in, false)
	if err != nil {
		return nil, err
	}
	page, err := s.config.Control.Webhooks(ctx, l.Query)
	if err != nil {
		return nil, err
	}
	out := &webhooksOut{api.List[api.Webhook]{Items: []api.Webhook{}}}
	for _, w := range page {
		out.Body.NextCursor = l.next(len(page), w.Place)
		if mayHook(p, &w) == nil {
			out.Body.Items = append(out.Body.Items, api.WebhookOf(w, s.now()))
		}
	}
	return out, nil
}

// ofWebhook returns a webhook that the caller may configure.
func (s *Server) ofWebhook(ctx context.Context, p *Principal, id string) (control.Webhook, error) {
	w, err := s.config.Control.Webhook(ctx, id)
	if errors.Is(err, control.ErrNotFound) || err == nil && (w.Tenant != p.Tenant || mayHook(p, &w) != nil) {
		err = &session.NotFoundError{What: "Webhook", ID: id}
	}
	return w, err
}

type webhookOut struct{ Body api.Webhook }

func (s *Server) webhook(ctx context.Context, p *Principal, in *params.Webhook) (*webhookOut, error) {
	w, err := s.ofWebhook(ctx, p, in.ID)
	return &webhookOut{api.WebhookOf(w, s.now())}, err
}

// maker returns what makes webhooks here.
func (s *Server) maker() (*notify.Maker, error) {
	if s.config.Webhooks == nil {
		return nil, &api.Error{Status: http.StatusNotImplemented, Code: "not_implemented", Detail: "this server has no key to seal the secrets of webhooks with", ExitCode: 2}
	}
	return s.config.Webhooks, nil
}

// refusedWebhook says what is wrong with a webhook.
func refusedWebhook(err error) error {
	if invalid, ok := errors.AsType[*notify.InvalidError](err); ok {
		return &api.Error{Status: http.StatusBadRequest, Code: "bad_request", Detail: err.Error(), ExitCode: 2, Problems: []api.Problem{{Pointer: "/" + invalid.Member, Message: invalid.Problem}}}
	}
	if refused, ok := errors.AsType[*webhook.PolicyError](err); ok {
		return &api.Error{Status: http.StatusUnprocessableEntity, Code: "address_not_allowed", Detail: refused.Error(), ExitCode: 1,
			Hint: "webhooks go to public addresses over https; where the server runs, DIALAI_WEBHOOK_ALLOW names hosts and networks that may be reached besides"}
	}
	return err
}

type createWebhookIn struct{ Body api.NewWebhook }

type madeWebhookOut struct {
	Location string `header:"Location"`
	Body     api.MadeWebhook
}

func (s *Server) createWebhook(ctx context.Context, p *Principal, in *createWebhookIn) (*madeWebhookOut, error) {
	maker, err := s.maker()
	if err != nil {
		return nil, err
	}
	begun := control.Webhook{Tenant: p.Tenant, CreatedBy: p.Subject, CreatedAt: s.now()}
	if err := notify.FromNow(ctx, tenantOf(ctx).Runner.Store(), &begun); err != nil {
		return nil, err
	}
	w, secret, err := maker.New(in.Body, begun)
	if err != nil {
		return nil, refusedWebhook(err)
	}
	if err := mayHook(p, &w); err != nil {
		return nil, err
	}
	if all, err := s.config.Control.Webhooks(ctx, control.Query{Tenant: p.Tenant, Limit: notify.MaxWebhooks}); err != nil {
		return nil, err
	} else if len(all) == notify.MaxWebhooks {
		return nil, &api.Error{Status: http.StatusConflict, Code: "too_many_webhooks", Detail: fmt.Sprintf("there are %d webhooks, and may be no more", len(all)), Hint: "delete one", ExitCode: 1}
	}
	out := &madeWebhookOut{"/v1/webhooks/" + w.ID, api.MadeWebhook{Webhook: api.WebhookOf(w, s.now())}}
	if err := s.shownOnce(ctx, control.Changes{Webhook: &w}, http.StatusCreated, out.Location, out.Body); err != nil {
		return nil, err
	}
	out.Body.Secret = secret
	return out, nil
}

// onWebhook makes changes of a webhook, anew if it has changed meanwhile.
func (s *Server) onWebhook(ctx context.Context, p *Principal, id string, change func(w control.Webhook) error) (*webhookOut, error) {
	for tries := 0; ; tries++ {
		w, err := s.ofWebhook(ctx, p, id)
		if err == nil {
			err = change(w)
		}
		switch {
		case errors.Is(err, control.ErrStale) && tries < 5:
		case errors.Is(err, control.ErrStale):
			return nil, session.ErrStale
		case err != nil:
			return nil, refusedWebhook(err)
		default:
			return s.webhook(ctx, p, &params.Webhook{ID: id})
		}
	}
}

type changeWebhookIn struct {
	params.Webhook
	Body api.WebhookChange
}

func (s *Server) changeWebhook(ctx context.Context, p *Principal, in *changeWebhookIn) (*webhookOut, error) {
	maker, err := s.maker()
	if err != nil {
		return nil, err
	}
	return s.onWebhook(ctx, p, in.ID, func(w control.Webhook) error {
		next, err := maker.Changed(w, in.Body)
		if err == nil {
			err = mayHook(p, &next)
		}
		if err != nil {
			return err
		}
		return s.config.Control.Commit(ctx, control.Changes{Webhook: &next})
	})
}

func (s *Server) deleteWebhook(ctx context.Context, p *Principal, in *params.Webhook) (*unclaimOut, error) {
	w, err := s.ofWebhook(ctx, p, in.ID)
	if err == nil {
		err = s.config.Control.Commit(ctx, control.Changes{Unhook: w.ID})
	}
	if errors.Is(err, control.ErrNotFound) {
		err = &session.NotFoundError{What: "Webhook", ID: in.ID}
	}
	return nil, err
}

func (s *Server) rotateWebhook(ctx context.Context, p *Principal, in *params.Webhook) (*madeWebhookOut, error) {
	maker, err := s.maker()
	if err != nil {
		return nil, err
	}
	var secret string
	out, err := s.onWebhook(ctx, p, in.ID, func(w control.Webhook) error {
		var next control.Webhook
		next, secret = maker.Rotated(w, s.now())
		return s.shownOnce(ctx, control.Changes{Webhook: &next}, http.StatusOK, "", api.MadeWebhook{Webhook: api.WebhookOf(next, s.now())})
	})
	if err != nil {
		return nil, err
	}
	return &madeWebhookOut{Body: api.MadeWebhook{Webhook: out.Body, Secret: secret}}, nil
}

type deliveryOut struct{ Body api.Delivery }

// deliver stores a delivery that is to be made at once.
func (s *Server) deliver(ctx context.Context, w *control.Webhook, d control.Delivery) (*deliveryOut, error) {
	if w.Off != "" {
		return nil, &api.Error{Status: http.StatusConflict, Code: "webhook_off", Detail: fmt.Sprintf("nothing is sent to webhook %s: it is %s", w.ID, w.Off), Hint: `PATCH it with {"enabled": true} first`, ExitCode: 1}
	}
	err := s.config.Control.Commit(ctx, control.Changes{Deliveries: []control.Delivery{d}})
	return &deliveryOut{api.DeliveryOf(d)}, err
}

func (s *Server) testWebhook(ctx context.Context, p *Principal, in *params.Webhook) (*deliveryOut, error) {
	w, err := s.ofWebhook(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	d, err := notify.Test(&w, s.now())
	if err != nil {
		return nil, err
	}
	return s.deliver(ctx, &w, d)
}

type replayIn struct {
	params.Webhook
	Body api.Replay
}

func (s *Server) replayWebhook(ctx context.Context, p *Principal, in *replayIn) (*webhookOut, error) {
	return s.onWebhook(ctx, p, in.ID, func(w control.Webhook) error {
		back, err := notify.Back(ctx, tenantOf(ctx).Runner.Store(), &w, in.Body.After)
		if err != nil {
			return err
		}
		return s.config.Control.Commit(ctx, control.Changes{Walk: back})
	})
}

type deliveriesIn struct {
	params.Webhook
	params.Page
	Status string `query:"status" enum:"pending,dead" doc:"only those that are; both without it"`
}

type deliveriesOut struct{ Body api.List[api.Delivery] }

func (s *Server) deliveries(ctx context.Context, p *Principal, in *deliveriesIn) (*deliveriesOut, error) {
	w, err := s.ofWebhook(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	l, err := listing("deliveries "+w.ID+in.Status, p, &in.Page, false)
	if err != nil {
		return nil, err
	}
	q := control.DeliveryQuery{Query: l.Query, WebhookID: w.ID}
	if dead := in.Status == "dead"; in.Status != "" {
		q.Dead = &dead
	}
	page, err := s.config.Control.Deliveries(ctx, q)
	if err != nil {
		return nil, err
	}
	out := &deliveriesOut{api.List[api.Delivery]{Items: []api.Delivery{}}}
	for _, d := range page {
		out.Body.NextCursor = l.next(len(page), d.Place)
		out.Body.Items = append(out.Body.Items, api.DeliveryOf(d))
	}
	return out, nil
}

type redeliverIn struct {
	params.Webhook
	Delivery string `path:"delivery" doc:"the id of the delivery" maxLength:"100"`
}

func (s *Server) redeliver(ctx context.Context, p *Principal, in *redeliverIn) (*deliveryOut, error) {
	w, err := s.ofWebhook(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	d, err := s.config.Control.Delivery(ctx, in.Delivery)
	if errors.Is(err, control.ErrNotFound) || err == nil && d.WebhookID != w.ID {
		err = &session.NotFoundError{What: "Delivery", ID: in.Delivery}
	}
	if err != nil {
		return nil, err
	}
	return s.deliver(ctx, &w, notify.Again(d, s.now()))
}
