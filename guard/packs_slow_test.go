package guard_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/guard"
)

// TestPacksAreNeverSlow: no text makes the packs take more than a few hundred
// nanoseconds for each byte, however its parts begin what is never finished.
func TestPacksAreNeverSlow(t *testing.T) {
	c := parse(t, allPacks)
	units := []string{"a", "7", "@", "a@", "@a.", "-", "eyJ-", "eyJaaaaaaaaaaaaaaaaaa.eyJ", ".eyJ", "a://b:", "://a:", "secret=", "secret=a1B", "secret = ", "x:::", "bearer ", "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ",
		"+1 ", "+1", "4 ", "4111 ", "DE89 ", "DE", "4-", "ignore all ", "ignore of ", "you ", "\U000E0069", "\xf3", "<", "[", "send all of the your ", "\\u0041", "\u200b", "’", "1.", "a.", "é"}
	for _, p := range guard.PrefixRules() {
		units = append(units, p.Prefix, p.Prefix+"a1B", p.Prefix+strings.Repeat("a", p.Least))
	}
	const size = 1 << 15
	for _, unit := range units {
		text := strings.Repeat(unit, size/len(unit))
		start := time.Now()
		c.Check(guard.State{}, guard.Step{Output: text, HasOutput: true, MetaJSON: []byte(text)})
		guard.Redact(text)
		if took := time.Since(start); took > time.Second/2 {
			t.Errorf("%d bytes of %q take %v", size, unit, took)
		}
	}
}
