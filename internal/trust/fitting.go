package trust

import "sync"

// When fits are made. A fit is a function of the ledger as it was after the lesson at which the
// schedule asked for it, so it need not be made then. A lesson leaves a fitting, which holds what
// the fit is made of, and whoever judges by it first makes the fit while others wait for it. A
// fit in whose place the next one comes before anybody has judged by it is never made.
//
// So learning takes no longer where a fit is due, whoever judges one machine waits for the fits
// of no other, and whoever is idle can make fits before they are needed ([Ledger.Prepare]). Who
// makes a fit, and when, changes no bit of it.

// A fitting is a fit that is due, or made. Clones of a ledger share it. It may be used
// concurrently.
type fitting struct {
	n    int64 // outcomes of the machine at its lesson; -1 if it is of none
	seen int64 // rounds without a human's word, ever, at its lesson; 0 if O and D go by none

	mu     sync.Mutex
	from   *basis // nil once the fit is made
	made   fit
	wanted bool // somebody has judged by it, or by the one in whose place it came
}

// A basis is what a fit is made of. It never changes.
type basis struct {
	ledger   *Ledger  // units and humans
	pool     *pool    // without fits
	outcomes *fitting // to which O and D are added; nil if the temperatures of all others are to be fitted
}

// fitted returns the fitting of a fit.
func fitted(f fit) *fitting {
	x := &fitting{n: f.n, made: f}
	if f.unruled != nil {
		x.seen = f.unruled.seen
	}
	return x
}

// judge returns the fit for somebody who judges by it. It must not be changed.
func (x *fitting) judge() *fit {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.wanted = true
	return x.make()
}

// read returns the fit. It must not be changed.
func (x *fitting) read() *fit {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.make()
}

// make makes the fit unless it is made. x.mu is held.
func (x *fitting) make() *fit {
	if x.from != nil {
		x.made = x.from.fit()
		x.from = nil // here, so that one that panics is no fit of zeros for those who come next
	}
	return &x.made
}

func (b *basis) fit() fit {
	if b.outcomes == nil {
		return b.pool.fitOutcomes(b.ledger)
	}
	f := *b.outcomes.read()
	f.fitUnruled(b.ledger, b.pool)
	return f
}

// isWanted reports whether somebody has judged by a fit.
func (x *fitting) isWanted() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.wanted
}

// prepare makes a fit that somebody will want.
func (x *fitting) prepare() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.wanted {
		x.make()
	}
}

// Prepare makes those fits that are due of machines of which somebody has judged a round, by l or
// by what it was before: the next judgement need not. It changes nothing that can be seen, and may
// run while l is read.
func (l *Ledger) Prepare() {
	for _, m := range l.pools {
		m.fit.prepare()
	}
}

// basis returns what a fit is made of now. Whatever of it changes from here on is copied before.
func (m *pool) basis(l *Ledger) basis {
	now := *m
	now.fit, now.outcomes = nil, nil
	b := basis{ledger: &Ledger{units: l.units, humans: l.humans}, pool: &now}
	l.own = new(owner) // it owns neither m nor units nor humans any more
	return b
}

// refit has temperatures be fitted anew, and the stacking expert where there is enough to learn
// from, and what O and D go by.
func (m *pool) refit(l *Ledger) {
	b, wanted := m.basis(l), m.fit.isWanted()
	m.outcomes = &fitting{n: m.n, from: &b}
	if m.fit = m.outcomes; m.hasUnruled() {
		m.fit = m.addUnruled(b)
	}
	m.fit.wanted = wanted
}

// refitUnruled has what O and D go by be fitted anew.
func (m *pool) refitUnruled(l *Ledger) {
	wanted := m.fit.isWanted()
	m.fit = m.addUnruled(m.basis(l))
	m.fit.wanted = wanted
}

// addUnruled returns the newest fit of outcomes with O and D fitted anew.
func (m *pool) addUnruled(b basis) *fitting {
	b.outcomes = m.outcomes
	x := &fitting{n: m.outcomes.n, from: &b}
	if m.hasUnruled() {
		x.seen = m.unruled.seen
	}
	return x
}

// hasUnruled reports whether there is anything that O and D can be fitted to.
func (m *pool) hasUnruled() bool { return len(m.unruled.rounds) > 0 && len(m.window) > 0 }
