package runner

import (
	"context"
	"crypto/hmac"
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
// address names an ask that has not been answered, and the secret is that ask's; then it
// goes the way of every answer (answers.go). The ask, or its account, is closed by that, so
// that the secret is good for one answer. Where a human was faster, or the time is up, the
// answer is late: it changes no decision, and what it says of its cost corrects what the
// ask was charged, as with a proposal for a round that is over.
//
// Whatever does not fit is refused with the same error, and the secret is compared in
// constant time: a stranger learns neither which sessions exist nor how near a guess
// was. Nothing of such a call is recorded.

// callback gives a request a place where it may be answered later, and the
// secret that goes with it; only the secret's hash is stored.
func (r *Runner) callback(ctx context.Context, key specialist.RoundKey, req *request, a *session.Ask) error {
	if r.config.PublicURL == "" || req.member.Role != machine.Proposer {
		return nil
	}
	secret, err := r.callbackSecret(ctx, req.ask.ID, a.External())
	if err != nil {
		return err
	}
	r.address(key.Session, req, secret)
	a.Remote.TokenHash = hashToken(secret)
	return nil
}

// callbackSecret makes the secret of an ask: a random one, or of an external ask one that any
// process can make again that has the store, since another one sends it.
func (r *Runner) callbackSecret(ctx context.Context, askID string, external bool) (string, error) {
	secret := make([]byte, 32)
	if !external {
		if _, err := io.ReadFull(r.config.Random, secret); err != nil {
			return "", err
		}
		return base64.RawURLEncoding.EncodeToString(secret), nil
	}
	key, err := r.store.Secret(ctx)
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("callback " + askID))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(secret[:0])), nil
}

// address tells a request where it may be answered later.
func (r *Runner) address(id specialist.SessionID, req *request, secret string) {
	req.ask.CallbackToken = secret
	req.ask.CallbackURL = r.config.PublicURL + "/v1/callbacks/" + id.String() + "." + req.ask.ID
}

func hashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// Callback takes the late answer of a specialist that was asked outside this
// process and said it would answer later. id is what followed "/v1/callbacks/"
// in the address it was given, token the secret that went with it. A token is
// good for one answer. The error wraps ErrForbidden unless both fit an ask that was not
// answered yet, and ErrStaleRound, with the codes of Answer, if nobody waits for that any
// more: then the cost that the answer names is recorded, and nothing of one that names
// none.
func (r *Runner) Callback(ctx context.Context, id, token string, a specialist.Answer) (*specialist.Proposal, *session.Session, error) {
	refused := refuse(ErrForbidden, "bad_callback", "this callback is not valid, or was used already")
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
		key, ask := s.CalledBack(askID)
		if ask == nil || ask.Remote.TokenHash == "" ||
			subtle.ConstantTimeCompare([]byte(ask.Remote.TokenHash), []byte(hashToken(token))) != 1 {
			return nil, s, refused
		}
		if code := s.Refuses(s.Open, key, ask.Index, ask.Remote.Repeat); code != "" && a.Usage.Given == 0 {
			return nil, s, refuse(ErrStaleRound, code, "the answer of %s counts for nothing (%s), and names no cost", ask.SpecialistID, code)
		}
		p, after, err := r.answered(ctx, s, AskRef{key, ask.Index, ask.Remote.Repeat, ask.SpecialistID}, a, nil)
		if !errors.Is(err, session.ErrStale) {
			return p, after, err
		}
	}
	return nil, nil, session.ErrStale
}
