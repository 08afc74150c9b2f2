package pgtest

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
)

// verifier returns what Postgres stores of a password (RFC 5803), with its hash iterated once: 4096 times, as
// Postgres does it, take a tenth of all that the tests of a store compute, for each connection anew.
func verifier(password string) (string, error) {
	salt := []byte(rand.Text())
	salted, err := pbkdf2.Key(sha256.New, password, salt, 1, sha256.Size)
	if err != nil {
		return "", err
	}
	key := func(name string) []byte {
		mac := hmac.New(sha256.New, salted)
		mac.Write([]byte(name))
		return mac.Sum(nil)
	}
	stored := sha256.Sum256(key("Client Key"))
	text := base64.StdEncoding.EncodeToString
	return "SCRAM-SHA-256$1:" + text(salt) + "$" + text(stored[:]) + ":" + text(key("Server Key")), nil
}
