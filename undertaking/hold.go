package undertaking

import "context"

// Hold has all turns end and all asks with them, so that nothing goes on until a human says so: by
// a word, a ruling, or by resuming the session. The agent sessions stay open, and remember. It
// returns at once, and may be called while Run runs, by whomever.
func (l *Loop) Hold() { l.in.put(held{}) }

type held struct{}

func (held) handle(ctx context.Context, l *Loop) bool {
	for _, v := range l.live {
		if v.turn && !v.closing {
			l.drop(ctx, v)
		}
	}
	for _, ask := range l.s.OpenAsks() {
		if _, err := l.withdraw(ctx, ask.SpecialistID, "held", "a human has the work held"); err != nil {
			l.fail(err)
		}
	}
	return true
}
