package trust

import (
	"encoding/json"
	"slices"
)

// Rounds without a human's word. Where a machine learns from these too, each round that the
// engine decided alone, or that waits for a human, is recorded with who voted for what. Two
// experts learn from them (unruled_fit.go), and nothing else does: no tally, no test of a
// promise and no evidence for promotion counts them, and nobody enters the ledger by one.
// Once a human has spoken of such a round its outcome takes its place.
//
// A pool keeps the latest [UnruledWindow] of them and forgets the others, and fits anew as
// their number grows: what a round costs does not grow with the store.

// UnruledWindow is the number of rounds without a human's word of a machine that are learned
// from: the latest.
const UnruledWindow = 1000

// An Unruled is a round of which no human has said what is right. It is plain data; nothing
// in it may change once it was added to a [Ledger].
type Unruled struct {
	Round     string            `json:"round"`
	Machine   string            `json:"machine"`
	State     string            `json:"state"`
	Options   []string          `json:"options"` // the legal transitions, in definition order: two or more
	Proposals []UnruledProposal `json:"proposals"`
}

// An UnruledProposal is a vote of an [Unruled].
type UnruledProposal struct {
	SpecialistID string `json:"specialist"`
	Version      string `json:"version,omitempty"`
	Model        string `json:"model,omitempty"` // "" if unknown
	OptionOrder  string `json:"optionOrder,omitempty"`
	Transition   string `json:"transition"`
}

// UnruledOf returns what the votes of a round say without a human's word; nil where that is
// nothing: there were fewer than two options or votes, or a human has proposed.
func UnruledOf(round, machine, state string, options []string, proposals []OutcomeProposal) *Unruled {
	u := &Unruled{Round: round, Machine: machine, State: state, Options: options}
	for i := range proposals {
		switch p := &proposals[i]; {
		case !p.Live():
		case p.Human:
			return nil
		default:
			u.Proposals = append(u.Proposals, UnruledProposal{p.SpecialistID, p.Version, p.Model, p.OptionOrder, p.Transition})
		}
	}
	if len(options) < 2 || len(u.Proposals) < 2 {
		return nil
	}
	return u
}

// Check returns an error wrapping [ErrOutcome] unless u can be added to a ledger.
func (u *Unruled) Check() error {
	switch {
	case u.Round == "":
		return badOutcome("round is empty: name the round that no human decided")
	case len(u.Options) < 2:
		return badOutcome("options are %q: where there is nothing to choose, nothing is learned", u.Options)
	case len(u.Proposals) == 0:
		return badOutcome("proposals is empty: a round without votes says nothing")
	}
	o := Outcome{Machine: u.Machine, State: u.State, Options: u.Options, Truth: u.Options[0], Source: Forced}
	for _, p := range u.Proposals {
		o.Proposals = append(o.Proposals, OutcomeProposal{SpecialistID: p.SpecialistID, Version: p.Version, Transition: p.Transition})
	}
	return o.Check()
}

// Encode returns u as one line of JSON without blanks.
func (u *Unruled) Encode() ([]byte, error) {
	if err := u.Check(); err != nil {
		return nil, err
	}
	return json.Marshal(u)
}

// DecodeUnruled reads what [Unruled.Encode] wrote, as strictly as [DecodeOutcome].
func DecodeUnruled(data []byte) (Unruled, error) {
	var u Unruled
	if err := decode(data, &u, "round"); err != nil {
		return Unruled{}, err
	}
	return u, u.Check()
}

// unruled are the rounds of a machine without a human's word.
type unruled struct {
	rounds []*unruledRound // the latest, in their order
	seen   int64           // ever
}

// An unruledRound never changes: ledgers share it.
type unruledRound struct {
	round, state string
	options      []string
	votes        []Vote
}

// AddUnruled counts a round of which no human has said what is right, in the place of what
// was known of it. It returns an error wrapping [ErrOutcome], and changes nothing, if
// [Unruled.Check] refuses it. The experts that learn from it are fitted again whenever the
// number of such rounds has grown by a fifth, or by a fifth of [UnruledWindow].
func (l *Ledger) AddUnruled(u Unruled) error {
	if err := l.EnterUnruled(u); err != nil {
		return err
	}
	if m := l.pools[u.Machine]; m.dueForUnruled() {
		m.refitUnruled(l)
	}
	return nil
}

// EnterUnruled is [Ledger.AddUnruled] without fits, for many rounds before [Ledger.Refit].
func (l *Ledger) EnterUnruled(u Unruled) error {
	if err := u.Check(); err != nil {
		return err
	}
	m := l.pool(u.Machine)
	m.unruled.drop(u.Round)
	r := &unruledRound{round: u.Round, state: u.State, options: u.Options}
	for _, p := range u.Proposals {
		r.votes = append(r.votes, Vote{p.SpecialistID, p.Version, p.Model, p.OptionOrder, slices.Index(u.Options, p.Transition), false})
	}
	w := &m.unruled
	w.seen++
	if w.rounds = append(w.rounds, r); len(w.rounds) > UnruledWindow {
		w.rounds = w.rounds[1:]
	}
	return nil
}

// drop takes a round out of the window.
func (w *unruled) drop(round string) {
	if round != "" && len(w.rounds) > 0 {
		w.rounds = slices.DeleteFunc(w.rounds, func(r *unruledRound) bool { return r.round == round })
		if len(w.rounds) == 0 {
			w.rounds = nil
		}
	}
}

// dueForUnruled reports whether so many rounds have come since the fit that it is to be made
// again. Without an outcome there is nothing to weigh experts by.
func (m *pool) dueForUnruled() bool {
	last := m.fit.seen
	return m.n > 0 && (m.unruled.seen*5 >= last*6 || m.unruled.seen-last >= UnruledWindow/5)
}
