package storetest

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/specialist"
)

// signIn returns the id of one whose secret is a text.
func signIn(secret string) *control.Hash {
	id := control.HashOf(secret)
	return &id
}

// testSignIns: one is there for every process until it is signed out or forgotten, and of many
// who sign the same out one does.
func testSignIns(b *controlBench) {
	one, two := b.open(), b.open()
	defer b.close(one)
	defer b.close(two)
	ctx := b.Context()
	if at, err := one.SignIn(ctx, *signIn("a")); !errors.Is(err, control.ErrNotFound) || at != (control.SignIn{}) {
		b.Errorf("what nobody has begun is %+v, %v", at, err)
	}
	first := control.SignIn{ID: *signIn("a"), Sealed: "sealed", SeenAt: 10, ExpiresAt: 100}
	b.commit(one, control.Changes{SignIn: &first})
	for _, by := range []control.Store{one, two} {
		b.is(by.Commit(ctx, control.Changes{SignIn: &control.SignIn{ID: first.ID, Sealed: "another", ExpiresAt: 200}}), control.ErrExists)
		b.is(by.Commit(ctx, control.Changes{SignOut: signIn("b"), SignIn: &control.SignIn{ID: *signIn("c"), ExpiresAt: 200}}), control.ErrNotFound)
		if _, err := by.SignIn(ctx, *signIn("c")); !errors.Is(err, control.ErrNotFound) {
			b.Errorf("what came with a change that was refused is there: %v", err)
		}
	}
	b.commit(two, control.Changes{Seen: &control.SignInTime{ID: first.ID, At: 50}})
	b.commit(one, control.Changes{Seen: &control.SignInTime{ID: first.ID, At: 40}})
	b.commit(one, control.Changes{Seen: &control.SignInTime{ID: *signIn("b"), At: 40}})
	first.SeenAt = 50
	for _, by := range []control.Store{one, two} {
		if at, err := by.SignIn(ctx, first.ID); err != nil || at != first {
			b.Errorf("it is %+v, %v, want %+v", at, err, first)
		}
	}
	var won atomic.Int64
	var all sync.WaitGroup
	for i := range 32 {
		by, id := []control.Store{one, two}[i%2], control.HashOf([]byte{byte(i)})
		all.Go(func() {
			switch err := by.Commit(ctx, control.Changes{SignOut: &first.ID, SignIn: &control.SignIn{ID: id, SeenAt: 51, ExpiresAt: 100}}); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, control.ErrNotFound):
				b.Error(err)
			}
		})
	}
	if all.Wait(); won.Load() != 1 {
		b.Errorf("%d have signed the same out", won.Load())
	}
	if _, err := two.SignIn(ctx, first.ID); !errors.Is(err, control.ErrNotFound) {
		b.Errorf("what was signed out is there: %v", err)
	}
}

// testSignInsForgotten: what is over is forgotten as soon as another begins, and not before.
func testSignInsForgotten(b *controlBench) {
	s := b.open()
	defer b.close(s)
	begin := func(secret string, at, until specialist.Time) {
		b.commit(s, control.Changes{SignIn: &control.SignIn{ID: *signIn(secret), SeenAt: at, ExpiresAt: until}})
	}
	begin("short", 1, 100)
	begin("long", 1, 101)
	for _, c := range []struct {
		next        string
		at          specialist.Time
		short, long bool
	}{{"a", 99, true, true}, {"b", 100, false, true}, {"c", 101, false, false}} {
		begin(c.next, c.at, 200)
		for secret, is := range map[string]bool{"short": c.short, "long": c.long, c.next: true} {
			if _, err := s.SignIn(b.Context(), *signIn(secret)); is && err != nil || !is && !errors.Is(err, control.ErrNotFound) {
				b.Errorf("at %d %s is there with %v, want %t", c.at, secret, err, is)
			}
		}
	}
}
