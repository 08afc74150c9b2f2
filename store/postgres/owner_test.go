package postgres

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestSilence: an owner is dead to its own process 20 s after it was last renewed, before it is to others,
// and stays so when it is heard of again; another one is not.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := owners{d: &database{}, names: map[string]bool{"one": true}, sent: time.Now()}
		time.Sleep(silentFor - time.Nanosecond)
		if !o.alive("one") || !o.alive("of another process") || len(o.living()) != 1 {
			t.Error("it is dead too early")
		}
		time.Sleep(time.Nanosecond)
		if o.alive("one") || !o.alive("of another process") || len(o.living()) != 0 {
			t.Error("it lives for too long")
		}
		o.sent = time.Now()
		o.names["two"] = true
		if o.alive("one") || !o.alive("two") {
			t.Error("one that was dead lives again, or one that is new does not")
		}
		o.lose()
		if o.alive("two") {
			t.Error("it lives, though the store is another one")
		}
	})
	if silentFor+renewEvery > lives {
		t.Error("others would take an owner for dead before it knows")
	}
}
