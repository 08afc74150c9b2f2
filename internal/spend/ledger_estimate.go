package spend

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// What a call is expected to need, before it is made. Its input is counted by the
// caller, or estimated from its text. Its output is the most that the request allows;
// where a budget reserves adaptively, it is 1.25 times the 95th percentile of the
// model's last 64 outputs, as soon as there are 8, and never more than that most. The
// percentile is kept ready (Outputs.likely), so that reserving takes no lock for it.
//
// An estimate decides what is reserved. What is charged is what was used, or the
// estimate where nobody says.

// An Estimate is what one call is expected to need. The zero value is a call
// that costs nothing but itself.
type Estimate struct {
	ID        string // finds the handle again after a restart; may be ""
	Model     string // "" for a call of no model, which then has no output by default
	Input     int64  // tokens of the request
	MaxOutput int64  // the most output the request allows; 0: DefaultMaxOutput
	Ceiling   int64  // the most output the model can give; 0: not known
	Cost      exact.Money
	CostGiven bool // Cost is known, so no price is needed
	Probe     bool // a call of the guards' own
}

// DefaultMaxOutput is the output reserved for a model's call that names no limit.
const DefaultMaxOutput = 16_384

// check refuses estimates that would give something back.
func (e Estimate) check() error {
	if e.Input < 0 || e.MaxOutput < 0 || e.Ceiling < 0 || e.Cost < 0 {
		return fmt.Errorf("%w: an estimate is negative", verdict.ErrInput)
	}
	return nil
}

// output returns the tokens of output to reserve. likely is what the model's
// last calls make likely, or 0 if that is not known or not wanted.
func (e Estimate) output(likely int64) int64 {
	out := e.MaxOutput
	if out == 0 && e.Model != "" {
		out = DefaultMaxOutput
	}
	if e.Ceiling > 0 {
		out = min(out, e.Ceiling)
	}
	if likely > 0 {
		out = min(out, likely)
	}
	return out
}

// EstimateTokens returns an upper estimate of the tokens of some messages, for
// providers that give no count: for each message 4, a third of its ASCII bytes
// rounded up, and 2 for every other code point. A byte that is no UTF-8 counts
// as a code point.
func EstimateTokens(messages ...string) (tokens int64) {
	for _, m := range messages {
		ascii, others := int64(0), int64(0)
		for _, c := range m {
			if c < utf8.RuneSelf {
				ascii++
			} else {
				others++
			}
		}
		tokens += (ascii+2)/3 + 2*others + 4
	}
	return tokens
}

// Sizes of what is remembered of a model's outputs.
const (
	outputsKept   = 64
	outputsNeeded = 8
)

// A model is what a ledger knows of one model. Its name and price never change.
type model struct {
	name  string
	price *Price // and its successors; nil if it has none
	Outputs
}

// named returns the name; m may be nil.
func (m *model) named() string {
	if m == nil {
		return ""
	}
	return m.name
}

// priceAt returns the price that is in force, or nil. m may be nil.
func (m *model) priceAt(at time.Time) *Price {
	if m == nil || m.price == nil {
		return nil
	}
	return m.price.at(at)
}

// Outputs are the lengths of a model's last outputs, for callers that reserve what
// a call is likely to need without a [Ledger]. The zero Outputs are none. They may be
// used concurrently.
type Outputs struct {
	likely atomic.Int64 // 1.25 times the 95th percentile; 0 until there are enough

	mu     sync.Mutex
	n      int                // how many there are
	next   int                // where the next one goes
	recent [outputsKept]int64 // in the order they came, as a ring
	sorted [outputsKept]int64 // the same, rising
}

// Likely returns how much output to reserve where at most that much can come: 1.25
// times the 95th percentile of the last outputs once there are 8, never more than
// most.
func (o *Outputs) Likely(most int64) int64 {
	if likely := o.likely.Load(); likely > 0 {
		return min(most, likely)
	}
	return most
}

// Add remembers one output, in tokens.
func (o *Outputs) Add(tokens int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n == outputsKept { // the oldest goes
		i, _ := slices.BinarySearch(o.sorted[:o.n], o.recent[o.next])
		copy(o.sorted[i:o.n-1], o.sorted[i+1:o.n])
		o.n--
	}
	i, _ := slices.BinarySearch(o.sorted[:o.n], tokens)
	copy(o.sorted[i+1:o.n+1], o.sorted[i:o.n])
	o.sorted[i] = tokens
	o.n++
	o.recent[o.next] = tokens
	o.next = (o.next + 1) % outputsKept
	if o.n >= outputsNeeded {
		o.likely.Store(stretched(o.sorted[(95*o.n+99)/100-1]))
	}
}

// stretched returns five quarters of n, rounded up, and at least 1.
func stretched(n int64) int64 { return max(exact.AddSat(n, n/4+(n%4+3)/4), 1) }

// list returns the outputs, the oldest first.
func (o *Outputs) list() []int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n < outputsKept {
		return slices.Clone(o.recent[:o.n])
	}
	return slices.Concat(o.recent[o.next:], o.recent[:o.next])
}

// An amount is what limits count: tokens, calls and pico-dollars.
type amount struct {
	tokens, calls int64
	usd           exact.Money
}

// limited is what is limited, in the order of the members of an amount.
var limited = [...]struct {
	code string
	unit Unit
}{{CodeTokens, UnitTokens}, {CodeCalls, UnitCalls}, {CodeUSD, UnitUSD}}

func (a amount) list() [len(limited)]int64 { return [...]int64{a.tokens, a.calls, int64(a.usd)} }

func (a amount) plus(b amount) amount {
	return amount{exact.AddSat(a.tokens, b.tokens), exact.AddSat(a.calls, b.calls), a.usd.Add(b.usd)}
}

func (a amount) minus(b amount) amount {
	return amount{a.tokens - b.tokens, a.calls - b.calls, a.usd - b.usd}
}

// A Usage is what one call turned out to need.
type Usage struct {
	specialist.Usage        // counts that are not given are those of the estimate
	ID               string // of the message at its provider; "" if it has none
	Model            string // that answered; "" is the model of the estimate
}
