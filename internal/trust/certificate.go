package trust

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/specialist"
)

// A Certificate says that a version of a specialist has proven that it may decide
// a state alone, until when, and on what evidence. Its JSON members are in byte
// order, so that its text is canonical.
type Certificate struct {
	E                float64          `json:"E"`
	M                int64            `json:"M"` // candidates ever tested in the state
	Alpha            exact.Billionths `json:"alpha"`
	AuditRate        exact.Billionths `json:"auditRate"`
	DefinitionDigest string           `json:"definitionDigest"`
	EvidenceFrom     int64            `json:"evidenceFrom"` // Outcome.Seq
	EvidenceTo       int64            `json:"evidenceTo"`
	ExpiresAt        specialist.Time  `json:"expiresAt"`
	ID               string           `json:"id"`
	IssuedAt         specialist.Time  `json:"issuedAt"`
	IssuedBy         string           `json:"issuedBy"` // the engine, or a human
	K                int64            `json:"k"`
	LowerBound       exact.Billionths `json:"lowerBound"` // valid whenever one looks
	Machine          string           `json:"machine"`
	N                int64            `json:"n"`
	Target           exact.Billionths `json:"p0"`
	Signature        []byte           `json:"signature,omitempty"` // Ed25519 of the canonical text, which is without this member
	SpecialistID     string           `json:"specialist"`
	State            string           `json:"state"`
	Version          string           `json:"version"`
}

// Lifetime is how long a certificate lasts unless a machine says otherwise, in
// milliseconds: 30 days.
const Lifetime = 30 * 24 * 3600 * 1000

// Certify returns the certificate of a candidate, unsigned; the caller fills in
// ID, IssuedBy, AuditRate and DefinitionDigest. It expires after a [Lifetime].
func (c Candidate) Certify(t Target, now specialist.Time) Certificate {
	return Certificate{
		SpecialistID: c.SpecialistID, Version: c.Version, Machine: c.Machine, State: c.State,
		Target: t.Share, Alpha: t.Alpha, M: c.M, N: c.N, K: c.K, E: c.E, LowerBound: c.LowerBound,
		EvidenceFrom: c.From, EvidenceTo: c.To, IssuedAt: now, ExpiresAt: now + Lifetime,
	}
}

// Canonical returns what is signed: c as JSON without blanks, members in byte
// order, without the signature.
func (c Certificate) Canonical() ([]byte, error) {
	c.Signature = nil
	text, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("write certificate %q: %w", c.ID, err)
	}
	return jsontext.Compact(text)
}

// Sign returns c signed with key.
func (c Certificate) Sign(key ed25519.PrivateKey) (Certificate, error) {
	if len(key) != ed25519.PrivateKeySize {
		return Certificate{}, fmt.Errorf("sign certificate %q: a private key has %d bytes, not %d", c.ID, ed25519.PrivateKeySize, len(key))
	}
	text, err := c.Canonical()
	if err != nil {
		return Certificate{}, err
	}
	c.Signature = ed25519.Sign(key, text)
	return c, nil
}

// ErrSignature is wrapped if a certificate was not signed with the key.
var ErrSignature = errors.New("bad signature")

// Verify returns an error wrapping [ErrSignature] unless c was signed with the key
// that belongs to public, and not changed since.
func (c Certificate) Verify(public ed25519.PublicKey) error {
	text, err := c.Canonical()
	if err != nil {
		return err
	}
	if len(public) != ed25519.PublicKeySize || !ed25519.Verify(public, text, c.Signature) {
		return fmt.Errorf("certificate %q of %q: %w", c.ID, c.SpecialistID, ErrSignature)
	}
	return nil
}
