package session

import (
	"encoding/json"

	"github.com/dialai/dialai/internal/wire"
	"github.com/dialai/dialai/specialist"
)

// The parts of a snapshot that only some sessions have (snapshot.go).

// debts codes what asks of closed rounds may still cost, the newest first.
func (k *snapshotCoder) debts() {
	var list []*debt
	for d := k.s.owing; d != nil; d = d.next {
		list = append(list, d)
	}
	wire.Slice(k.Coder, &list, func(d **debt) {
		if k.Reading() {
			*d = &debt{ask: &Ask{}, account: &account{}}
		}
		wire.Int(k.Coder, &(*d).round)
		wire.Int(k.Coder, &(*d).attempt)
		k.ask((*d).ask)
		k.payment(&(*d).account.now)
		wire.Slice(k.Coder, &(*d).account.former, k.payment)
	})
	if k.Reading() && k.Err() == nil {
		for i := len(list) - 1; i >= 0; i-- {
			list[i].next, k.s.owing = k.s.owing, list[i]
		}
	}
}

func (k *snapshotCoder) ask(a *Ask) {
	wire.Text(k.Coder, &a.SpecialistID)
	wire.Int(k.Coder, &a.Index)
	wire.Text(k.Coder, &a.Role)
	wire.Bits(k.Coder, &a.Source)
	k.Bool(&a.Shadow)
	wire.Pointer(k.Coder, &a.Remote, func(r *RemoteAsk) {
		wire.Text(k.Coder, &r.Owner)
		wire.Int(k.Coder, &r.Deadline)
		wire.Int(k.Coder, &r.Estimate)
		wire.Text(k.Coder, &r.TokenHash)
		wire.Int(k.Coder, &r.Repeat)
		wire.Int(k.Coder, &r.Spare.Money)
		for _, n := range []*int64{&r.TokensIn, &r.TokensOut, &r.Spare.Calls, &r.Spare.Billed, &r.Spare.TokensIn, &r.Spare.TokensOut} {
			wire.Int(k.Coder, n)
		}
		k.Bool(&r.Accepted)
		k.Bool(&r.Lost)
	})
}

func (k *snapshotCoder) payment(p *payment) {
	wire.Bits(k.Coder, &p.state)
	k.Check(int(p.state) < len(payStateNames), "a payment is in a state that is not known")
	wire.Int(k.Coder, &p.first)
	wire.Int(k.Coder, &p.last)
	wire.Bits(k.Coder, &p.none)
	u := &p.charged
	wire.Int(k.Coder, &u.CostUSD)
	wire.Bits(k.Coder, &u.Given)
	k.Bool(&u.Estimated)
	for _, n := range []*int64{&u.LatencyMsec, &u.NumInputTokens, &u.NumOutputTokens, &u.Calls, &u.Unbilled} {
		wire.Int(k.Coder, n)
	}
	wire.Pointer(k.Coder, &u.Detail, func(d *specialist.UsageDetail) {
		for _, n := range []*int64{&d.CacheReadTokens, &d.CacheWrite5mTokens, &d.CacheWrite1hTokens, &d.ReasoningTokens, &d.AudioInputTokens, &d.AudioOutputTokens} {
			wire.Int(k.Coder, n)
		}
	})
	wire.Text(k.Coder, &p.model)
}

func (k *snapshotCoder) review(p **Review) {
	if k.Reading() {
		*p = &Review{Key: specialist.RoundKey{Session: k.s.ID}}
	}
	v := *p
	wire.Text(k.Coder, &v.Kind)
	wire.Int(k.Coder, &v.Key.Round)
	wire.Int(k.Coder, &v.Key.Attempt)
	wire.Int(k.Coder, &v.Since)
	jsonMember(k, &v.Outcome)
	hasSecond := v.second != nil
	if k.Bool(&hasSecond); hasSecond {
		jsonMember(k, &v.second)
	}
	k.texts(&v.revealed)
	k.offered(&v.State)
}

// jsonMember codes as JSON what has a form of its own there.
func jsonMember[T any](k *snapshotCoder, v **T) {
	var text json.RawMessage
	if !k.Reading() {
		text = plainJSON(*v)
	}
	if k.raw(&text); k.Reading() && k.goesOn() {
		*v = new(T)
		k.err = json.Unmarshal(text, *v)
	}
}
