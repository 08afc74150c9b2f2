// Package issuer verifies the tokens (JWT) that an issuer of OpenID Connect gives people, and has
// people log in there.
package issuer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// A token is good if it is signed with a key that the issuer publishes, by one of the algorithms
// below, is of that issuer and for this audience, says whose it is, and is good now, give or
// take a minute. The issuer is asked for its keys when the first token comes, and again for a
// key that is not known. While it cannot be asked no token is good.

// What is wrong with a token.
var (
	// ErrToken: it is none, or not a good one.
	ErrToken = errors.New("not a token that is good here")
	// ErrUnavailable: the issuer cannot be asked.
	ErrUnavailable = errors.New("the issuer of tokens cannot be asked for its keys")
)

// algorithms are those by which tokens may be signed: none without a key, and none by which a
// public key could be taken for a secret.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.EdDSA}

const (
	skew     = time.Minute
	again    = 5 * time.Second // after the issuer could not be asked
	maxToken = 16 << 10
)

// A Verifier verifies the tokens of one issuer. It may be used concurrently.
type Verifier struct {
	issuer, audience string
	client           *http.Client
	now              func() time.Time

	mu       sync.Mutex
	provider *oidc.Provider        // nil until the issuer was asked
	verifier *oidc.IDTokenVerifier // of the provider
	failed   time.Time             // when it could not be
	why      error
}

// New returns a Verifier of the tokens that an issuer makes out to an audience. It asks the
// issuer through client. now is the clock; nil means time.Now.
func New(issuer, audience string, client *http.Client, now func() time.Time) *Verifier {
	if now == nil {
		now = time.Now
	}
	return &Verifier{issuer: issuer, audience: audience, client: client, now: now}
}

// Verify returns whose a token is (sub) and all that it says. The error is ErrToken, or wraps
// ErrUnavailable.
func (v *Verifier) Verify(ctx context.Context, token string) (subject string, claims map[string]any, err error) {
	if strings.Count(token, ".") != 2 || len(token) > maxToken {
		return "", nil, ErrToken
	}
	if _, err := v.asked(); err != nil {
		return "", nil, err
	}
	good, err := v.verifier.Verify(ctx, token)
	if err != nil || good.Claims(&claims) != nil || !v.good(good, claims) {
		return "", nil, ErrToken
	}
	return good.Subject, claims, nil
}

// asked returns what the issuer says of itself, and asks it if nobody has; v.verifier is set then.
// The error wraps ErrUnavailable.
func (v *Verifier) asked() (*oidc.Provider, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.now()
	if v.provider != nil {
		return v.provider, nil
	}
	if v.why != nil && now.Sub(v.failed) < again && now.After(v.failed.Add(-again)) {
		return nil, v.why
	}
	provider, err := oidc.NewProvider(oidc.ClientContext(context.Background(), v.client), v.issuer) // not of one request: others go by it
	if err != nil {
		v.failed, v.why = now, fmt.Errorf("%w: %w", ErrUnavailable, err)
		return nil, v.why
	}
	v.provider, v.verifier = provider, provider.Verifier(&oidc.Config{ClientID: v.audience, SupportedSigningAlgs: algorithms, SkipExpiryCheck: true}) // good looks at that
	return provider, nil
}

// good reports whether a token whose signature is right is good now and says whose it is.
func (v *Verifier) good(token *oidc.IDToken, claims map[string]any) bool {
	now := v.now()
	from, ok := claims["nbf"].(float64)
	early := ok && now.Add(skew).Before(time.Unix(int64(from), 0))
	return token.Subject != "" && len(token.Subject) <= 255 && !token.Expiry.IsZero() && now.Before(token.Expiry.Add(skew)) &&
		!early && !now.Add(skew).Before(token.IssuedAt)
}
