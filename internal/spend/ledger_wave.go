package spend

import "context"

// ReserveAll is Reserve for calls that are made together in s: it holds what all of them need or, if
// a limit does not allow one of them beside those before it, nothing.
func (l *Ledger) ReserveAll(ctx context.Context, s Scope, wave []Estimate) ([]*Handle, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for i := range wave {
		if err := wave[i].check(); err != nil {
			return nil, err
		}
	}
	now := l.config.Now()
	for {
		leaf, _, err := l.find(&s, "", now)
		if err != nil {
			return nil, err
		}
		calls := make([]call, len(wave))
		for i := range wave {
			calls[i] = l.call(leaf, l.modelNamed(wave[i].Model), &wave[i], now)
		}
		handles, open, err := l.holdAll(leaf, calls, now.UnixMilli())
		if open || err != nil {
			return handles, err
		}
	}
}

// holdAll makes the reservations of a wave, or none. open is false if their scope was closed in the
// meantime.
func (l *Ledger) holdAll(leaf *node, wave []call, now int64) (handles []*Handle, open bool, err error) {
	root := leaf.path[0]
	root.mu.Lock()
	root.sweep(now)
	leaf.lockBelow()
	defer leaf.unlock()
	if leaf.closed {
		return nil, false, nil
	}
	for i := range wave {
		if err := l.refusal(leaf, &wave[i]); err != nil {
			for _, h := range handles {
				root.calls.of(h).unhold()
				root.calls.drop(h.slot)
			}
			return nil, true, err
		}
		h := &Handle{ledger: l, leaf: leaf}
		leaf.hold(&wave[i])
		h.slot, h.call = root.calls.take(&wave[i])
		handles = append(handles, h)
	}
	return handles, true, nil
}
