package llm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dialai/dialai/internal/packs"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/webhook"
)

// An AuditMode says how much of a call is audited. The key is never.
type AuditMode string

// The modes. The zero AuditMode is AuditRedacted.
const (
	AuditRedacted AuditMode = "redacted" // what looks like a secret is masked, bodies are cut at 32 KiB
	AuditFull     AuditMode = "full"     // bodies as they are
	AuditDigest   AuditMode = "digest"   // a hash and the length of each body
)

// parseAuditMode reads the value of DIALAI_AUDIT; "" is AuditRedacted.
func parseAuditMode(s string) (AuditMode, error) {
	switch m := AuditMode(s); m {
	case "":
		return AuditRedacted, nil
	case AuditRedacted, AuditFull, AuditDigest:
		return m, nil
	}
	return "", fmt.Errorf("DIALAI_AUDIT is %q; it may be redacted, full or digest", s)
}

// maxAuditBody is where redacted bodies are cut, in bytes.
const maxAuditBody = 32 << 10

// body returns a body as it is kept.
func (m AuditMode) body(body []byte, key *webhook.Concealer) string {
	switch m {
	case AuditDigest:
		sum := sha256.Sum256(body)
		return fmt.Sprintf("sha256:%s (%d bytes)", hex.EncodeToString(sum[:]), len(body))
	case AuditFull:
		return strings.ToValidUTF8(key.Hide(string(body)), "\uFFFD")
	}
	text := packs.Redact(strings.ToValidUTF8(key.Hide(string(body)), "\uFFFD"))
	if len(text) <= maxAuditBody {
		return text
	}
	return webhook.Clip(text, maxAuditBody) + fmt.Sprintf("… (%d bytes in all)", len(body))
}

// An exchange is one attempt.
type exchange struct {
	start   time.Time
	headers []webhook.Header
	body    []byte
	reply   webhook.Reply
	err     error
}

// AuditFailures returns how often the audit failed.
func (c *Client) AuditFailures() int64 { return c.auditFailures.Load() }

// audit tells the audit of one attempt. Whatever becomes of that, the call goes
// on.
func (a *asking) audit(ctx context.Context, x *exchange) {
	c := a.client
	defer func() {
		if recover() != nil {
			c.auditFailures.Add(1)
		}
	}()
	if c.config.Audit(context.WithoutCancel(ctx), a.entry(x)) != nil {
		c.auditFailures.Add(1)
	}
}

func (a *asking) entry(x *exchange) specialist.AuditEntry {
	c, key := a.client, a.secret
	e := specialist.AuditEntry{
		AuditEntryID: c.newID(), SessionID: a.r.Origin.SessionID, SpecialistID: a.r.Origin.SpecialistID,
		Timestamp: specialist.TimeOf(x.start), RequestURL: key.Hide(a.to.base + a.to.wire.path(a.to.model)), RequestHeaders: hidden(x.headers),
		RequestBody: c.config.AuditAs.body(x.body, key), ResponseStatus: x.reply.Status, ResponseBody: c.config.AuditAs.body(x.reply.Body, key),
		DurationMs: c.config.Now().Sub(x.start).Milliseconds(), Attempt: a.attempts, Purpose: string(a.r.Purpose), Round: a.r.Origin.Round,
	}
	if name := a.r.Origin.MachineName; name != "" {
		e.MachineName = &name
	}
	if x.err != nil {
		text := key.Hide(x.err.Error())
		e.Error = &text
	}
	if x.reply.Status >= 200 && x.reply.Status <= 299 {
		a.outcome(&e, x.reply.Body)
	}
	return e
}

// outcome adds what can be read of an answer.
func (a *asking) outcome(e *specialist.AuditEntry, body []byte) {
	var read Response
	if err := a.to.wire.decode(body, &read); err != nil && e.Error == nil {
		text := a.shown([]byte(err.Error()))
		e.Error = &text
	}
	read.scrub(a.echo())
	e.ResolvedModel, e.NumInputTokens, e.NumOutputTokens = read.Model, read.Usage.NumInputTokens, read.Usage.NumOutputTokens
	if read.Usage.Has(specialist.CostGiven) {
		cost := read.Usage.CostUSD
		e.CostUSD = &cost
	}
}

// hidden returns headers as they are kept.
func hidden(headers []webhook.Header) map[string]string {
	shown := make(map[string]string, len(headers)+1)
	shown["Content-Type"] = "application/json"
	for _, h := range headers {
		switch h.Name {
		case "Authorization", "X-Api-Key", "X-Goog-Api-Key":
			shown[h.Name] = "[REDACTED]"
		default:
			shown[h.Name] = h.Value
		}
	}
	return shown
}

// newID returns a random UUID (version 4).
func (c *Client) newID() string {
	var id specialist.SessionID // of the same form
	if _, err := io.ReadFull(c.config.Random, id[:]); err != nil {
		return ""
	}
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id.String()
}
