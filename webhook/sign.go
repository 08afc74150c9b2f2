package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Sign returns the webhook-signature header of the Standard Webhooks
// specification (https://www.standardwebhooks.com): "v1," and the base64 of the
// HMAC-SHA256 of "id.timestamp.body".
func Sign(key []byte, id string, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// tolerance is how old or early a signed request may be for [Verify].
const tolerance = 5 * time.Minute

// Verify reports whether a request was signed with the key, for servers that
// receive webhooks. signature is the webhook-signature header, which may hold
// several signatures, timestamp the webhook-timestamp header.
func Verify(key []byte, id, timestamp, signature string, body []byte, now time.Time) error {
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || strconv.FormatInt(seconds, 10) != timestamp { // only what was signed is accepted
		return fmt.Errorf("webhook-timestamp %q is not a number", timestamp)
	}
	at := time.Unix(seconds, 0)
	if d := now.Sub(at); d > tolerance || d < -tolerance {
		return fmt.Errorf("webhook-timestamp is %s away from now", d.Round(time.Second))
	}
	want := []byte(Sign(key, id, at, body))
	if slices.ContainsFunc(strings.Fields(signature), func(s string) bool { return hmac.Equal([]byte(s), want) }) {
		return nil
	}
	return errors.New("webhook-signature does not fit")
}

const secretPrefix = "whsec_"

// Key decodes a signing secret: base64, with or without "whsec_" before it. A
// token that signs for want of a secret is no such secret: its bytes are the key.
func Key(secret string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
	if err != nil || len(key) == 0 {
		return nil, errors.New("a webhook secret is base64, optionally with whsec_ before it")
	}
	return key, nil
}
