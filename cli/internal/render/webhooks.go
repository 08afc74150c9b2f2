package render

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/dialai/dialai/api"
)

// MadeWebhook prints a webhook that was made, or has another secret.
func (st Style) MadeWebhook(out io.Writer, w api.MadeWebhook) error {
	switch {
	case st.JSON:
		return JSON(out, w)
	case st.Quiet:
		_, err := fmt.Fprintln(out, w.Secret)
		return err
	}
	until := ""
	if w.OldSecretUntil != nil {
		until = "\nUntil " + w.OldSecretUntil.String() + " the secret before signs, too."
	}
	_, err := fmt.Fprintf(out, "%s\n\nThis is the secret of webhook %s. It is shown this once.%s\n  to   %s\n  told of %s\n", w.Secret, w.WebhookID, until, Clean(w.URL), Clean(toldOf(w.Webhook)))
	return err
}

// toldOf says of what a webhook is told.
func toldOf(w api.Webhook) string {
	text := strings.Join(w.Types, ", ")
	if len(w.Machines) > 0 {
		text += " of " + strings.Join(w.Machines, ", ")
	}
	if len(w.Include) > 0 {
		text += ", with " + strings.Join(w.Include, ", ")
	}
	return text
}

// Webhooks prints a list of webhooks.
func (st Style) Webhooks(out io.Writer, webhooks []api.Webhook) error {
	return list(st, out, webhooks, "No webhooks.", []string{"WEBHOOK", "STATUS", "PENDING", "URL", "TOLD OF"}, func(w api.Webhook) []string {
		return []string{w.WebhookID, w.Status, strconv.FormatInt(w.Pending, 10), w.URL, toldOf(w)}
	})
}

// Webhook prints how it goes with a webhook.
func (st Style) Webhook(out io.Writer, w api.Webhook) error {
	switch {
	case st.JSON:
		return JSON(out, w)
	case st.Quiet:
		return nil
	}
	lines := []string{"Webhook:  " + w.WebhookID, "Status:   " + w.Status, "To:       " + Clean(w.URL), "Told of:  " + Clean(toldOf(w)), fmt.Sprintf("Seen to:  place %d of the log", w.Cursor), fmt.Sprintf("Pending:  %d", w.Pending)}
	if w.NextAttempt != nil {
		lines[len(lines)-1] += ", the next at " + w.NextAttempt.String()
	}
	if w.LastSuccess != nil {
		lines = append(lines, "Arrived:  last at "+w.LastSuccess.String())
	}
	if w.FailingSince != nil {
		lines = append(lines, "Failing:  since "+w.FailingSince.String()+", "+Clean(w.LastError))
	}
	_, err := fmt.Fprintln(out, strings.Join(lines, "\n"))
	return err
}

// Unhooked says that a webhook was forgotten.
func (st Style) Unhooked(out io.Writer, id string) error {
	if st.JSON || st.Quiet {
		return nil
	}
	_, err := fmt.Fprintf(out, "Webhook %s is forgotten.\n", Clean(id))
	return err
}

// Deliveries prints what a webhook is still to be told.
func (st Style) Deliveries(out io.Writer, deliveries []api.Delivery) error {
	return list(st, out, deliveries, "Nothing is left to be told.", []string{"DELIVERY", "TYPE", "STATUS", "ATTEMPTS", "NEXT", "ERROR"}, func(d api.Delivery) []string {
		next := ""
		if d.NextAttempt != nil {
			next = d.NextAttempt.String()
		}
		return []string{d.DeliveryID, d.Type, d.Status, strconv.Itoa(d.Attempts), next, d.LastError}
	})
}
