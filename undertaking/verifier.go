package undertaking

import (
	"context"
	"fmt"
	"strings"
)

// Nobody certifies their own work. Each verdict is that of an agent session of its own, which sees
// the plan, the record, the check and the working tree, and nothing of what was said while the
// work was done. They look one after the other, so that a tree that has changed has been changed
// by the one who was at it; that one's verdict does not count.

// isVerifier reports whether a specialist is a verifier.
func isVerifier(as string) bool { return strings.HasPrefix(as, "verifier-") }

// serveVerifier has a verifier judge.
func (l *Loop) serveVerifier(ctx context.Context, as string) (bool, error) {
	for _, v := range l.live {
		if v.who.As != manager && v.who.As != as || v.closing {
			return false, nil // its turn comes
		}
	}
	w := l.state.newest(as)
	if w == nil || w.Since != l.s.Key().Round || l.live[w.who()] == nil && l.candidate(w) == nil {
		return l.openVerifier(ctx, as)
	}
	if l.candidate(w) != nil {
		if l.tree(ctx).Digest != w.TreeBefore {
			l.note(w.who(), kindRefused, map[string]string{"reason": "it has changed what it was to judge"})
			return l.withdraw(ctx, as, "changed_tree", w.id()+" has changed what it was to judge")
		}
	}
	return l.attend(ctx, w)
}

// openVerifier opens a verifier that has seen nothing yet.
func (l *Loop) openVerifier(ctx context.Context, as string) (bool, error) {
	gone, list := 0, l.state.Others[as]
	for i := range list {
		if list[i].Since == l.s.Key().Round {
			gone += list[i].Failures
		}
	}
	if gone > l.set.Wakes {
		return l.withdraw(ctx, as, "crashed", fmt.Sprintf("the process of %s has gone %d times", as, gone))
	}
	of := who{as, len(list) + 1}
	if stopped, err := l.openNew(ctx, of, opening{TreeBefore: l.tree(ctx).Digest}); stopped || err != nil {
		return stopped, err
	}
	return false, l.promptOpened(ctx, of)
}

// dismissVerifiers ends verifiers whose verdict is there, or is not asked for any more.
func (l *Loop) dismissVerifiers(ctx context.Context) error {
	asked := map[string]bool{}
	for _, ask := range l.s.OpenAsks() {
		asked[ask.SpecialistID] = true
	}
	for of, v := range l.live {
		if !isVerifier(of.As) || v.closing || asked[of.As] && l.s.State.Name == "verifying" {
			continue
		}
		if err := l.commit(ctx, of, kindReleased, released{Reason: complete}); err != nil {
			return err
		}
		v.dismissed = true
		l.end(ctx, v)
	}
	return nil
}
