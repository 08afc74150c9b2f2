package runner

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"strings"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A service that was asked outside this process may say that it will answer later. With
// its question it was given an address, which names the session and the ask, and a
// secret; the log keeps only the hash of the secret. Callback lets an answer in if the
// address names an ask that is open in the present round of a live session, and the
// secret is that ask's; then it goes the way of every answer (answers.go). The ask is
// closed by that, so that the secret is good for one answer.
//
// Whatever does not fit is refused with the same error, and the secret is compared in
// constant time: a stranger learns neither which sessions exist nor how near a guess
// was. Nothing of a refused call is recorded.

// callback gives a request a place where it may be answered later, and the
// secret that goes with it; only the secret's hash is stored.
func (r *Runner) callback(key specialist.RoundKey, req *request, a *session.Ask) error {
	if r.config.PublicURL == "" || req.member.Role != machine.Proposer {
		return nil
	}
	var secret [32]byte
	if _, err := io.ReadFull(r.config.Random, secret[:]); err != nil {
		return err
	}
	req.ask.CallbackToken = base64.RawURLEncoding.EncodeToString(secret[:])
	req.ask.CallbackURL = r.config.PublicURL + "/v1/callbacks/" + key.Session.String() + "." + req.ask.ID
	a.Remote.TokenHash = hashToken(req.ask.CallbackToken)
	return nil
}

func hashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// Callback takes the late answer of a specialist that was asked outside this
// process and said it would answer later. id is what followed "/v1/callbacks/"
// in the address it was given, token the secret that went with it. A token is
// good for one answer in its round. The error wraps ErrForbidden unless both fit
// an open ask.
func (r *Runner) Callback(ctx context.Context, id, token string, a specialist.Answer) (*specialist.Proposal, *session.Session, error) {
	refused := refuse(ErrForbidden, "bad_callback", "this callback is not valid, was used already, or its round is over")
	sessionID, askID, found := strings.Cut(id, ".")
	sid, err := session.ParseID(sessionID)
	if !found || err != nil {
		return nil, nil, refused
	}
	for range maxRaces {
		s, err := r.load(ctx, sid)
		if errors.Is(err, session.ErrNotFound) {
			return nil, nil, refused
		}
		if err != nil {
			return nil, nil, err
		}
		ask := s.OpenAsk(askID)
		if ask == nil || !s.Status.Live() || ask.Remote.TokenHash == "" ||
			subtle.ConstantTimeCompare([]byte(ask.Remote.TokenHash), []byte(hashToken(token))) != 1 {
			return nil, s, refused
		}
		p, after, err := r.answered(ctx, s, AskRef{s.Key(), ask.Index, ask.Remote.Repeat, ask.SpecialistID}, a, nil)
		if !errors.Is(err, session.ErrStale) {
			return p, after, err
		}
	}
	return nil, nil, session.ErrStale
}
