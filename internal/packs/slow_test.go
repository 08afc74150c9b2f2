package packs_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/packs"
	"github.com/dialai/dialai/verdict"
)

// TestPacksAreNeverSlow: no text takes the packs more than a few microseconds for
// each byte, however often it begins what it never finishes.
func TestPacksAreNeverSlow(t *testing.T) {
	c := packsOf(t, allPacks)
	units := []string{"a", "7", "@", "a@", "@a.", "-", "eyJ-", "eyJaaaaaaaaaaaaaaaaaa.eyJ", ".eyJ", "a://b:", "://a:", "secret=", "secret=a1B", "secret = ", "x:::", "bearer ", "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ",
		"+1 ", "+1", "4 ", "4111 ", "DE89 ", "DE", "4-", "ignore all ", "ignore of ", "you ", "\U000E0069", "\xf3", "<", "[", "send all of the your ", "\\u0041", "\u200b", "’", "1.", "a.", "é"}
	for _, p := range packs.PrefixRules() {
		units = append(units, p.Prefix, p.Prefix+strings.Repeat("a", p.Least))
	}
	const size, most = 1 << 16, 3 * time.Second // ten times what it takes; every pair of bytes would take longer
	for _, unit := range units {
		text := strings.Repeat(unit, size/len(unit))
		took := time.Hour
		for range 2 { // others may be using the processor
			if took > most {
				start := time.Now()
				c.Check(guard.State{}, verdict.Step{Output: text, HasOutput: true})
				took = min(took, time.Since(start))
			}
		}
		if took > most {
			t.Errorf("%d bytes of %q take %v", size, unit, took)
		}
	}
}
