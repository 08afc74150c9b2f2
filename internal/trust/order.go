package trust

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"math/bits"
	"slices"
	"strings"
)

// OrderKey returns the OptionOrder of a proposal from the options in the order in
// which its author saw them: equal for equal orders, "" for none, which stands
// for the order of the definition. Orders that differ have keys that differ, whatever is
// in a name: of those with control characters, which no definition may have any more,
// what would be taken for the end of a name is written otherwise.
func OrderKey(options []string) string {
	for i, o := range options {
		if o == "" || strings.ContainsAny(o, "\x00\x01") {
			options = slices.Clone(options)
			for j := i; j < len(options); j++ {
				options[j] = orderName(options[j])
			}
			break
		}
	}
	return strings.Join(options, "\x00")
}

var orderNames = strings.NewReplacer("\x00", "\x01\x02", "\x01", "\x01\x01")

// orderName returns a name without the character that ends names; no two are the same, and
// none is empty.
func orderName(name string) string {
	if name == "" {
		return "\x01\x03"
	}
	return orderNames.Replace(name)
}

// OptionOrder returns the order in which a proposer sees the options of a round,
// as indices into the options in definition order: a permutation drawn from
// session, round and salt, rotated by the proposer's rank within its model group,
// so that with two options the order alternates within a model, and every option
// takes every place. It is the same for the same arguments. count is the number
// of options, rank is 0 or more.
func OptionOrder(session, round, salt string, count, rank int) []int {
	order := NewDraw(session, round, salt, "optionOrder").Perm(count)
	if len(order) > 0 {
		rank = max(0, rank) % len(order)
		order = append(order[rank:len(order):len(order)], order[:rank]...)
	}
	return order
}

// A Draw is a stream of random numbers that is a function of its seed: PCG-DXSM
// (O'Neill 2014, DXSM output by Cormack), seeded by SHA-256 of named strings. It
// is for draws that a proposer cannot exploit; others are made where the secret
// is. A Draw must not be used concurrently.
type Draw struct{ high, low uint64 }

// NewDraw returns the stream of a seed. Each part counts with its length, so that
// ("ab", "c") and ("a", "bc") are different seeds.
func NewDraw(parts ...string) *Draw { return drawFrom(sha256.New(), parts) }

// drawFrom seeds a stream with the first 16 bytes of a hash of the parts.
func drawFrom(h hash.Hash, parts []string) *Draw {
	for _, p := range parts {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(p)))
		h.Write(size[:])
		h.Write([]byte(p))
	}
	sum := h.Sum(nil)
	return &Draw{binary.BigEndian.Uint64(sum), binary.BigEndian.Uint64(sum[8:])}
}

// Uint64 returns the next 64 random bits.
func (d *Draw) Uint64() uint64 {
	const (
		mulHigh, mulLow = 2549297995355413924, 4865540595714422341
		incHigh, incLow = 6364136223846793005, 1442695040888963407
		cheap           = 0xda942042e4dd58b5
	)
	high, low := bits.Mul64(d.low, mulLow)
	high += d.high*mulLow + d.low*mulHigh
	low, carry := bits.Add64(low, incLow, 0)
	high, _ = bits.Add64(high, incHigh, carry)
	d.high, d.low = high, low
	high ^= high >> 32
	high *= cheap
	high ^= high >> 48
	return high * (low | 1)
}

// Seed returns the next 128 random bits as text, to seed other draws with.
func (d *Draw) Seed() string { return fmt.Sprintf("%016x%016x", d.Uint64(), d.Uint64()) }

// Float returns a number in [0, 1).
func (d *Draw) Float() float64 { return float64(d.Uint64()>>11) / (1 << 53) }

// below returns a number in [0, n), without bias.
func (d *Draw) below(n uint64) uint64 {
	for {
		high, low := bits.Mul64(d.Uint64(), n)
		if low >= n || low >= -n%n {
			return high
		}
	}
}

// Perm returns a random order of the numbers below n.
func (d *Draw) Perm(n int) []int {
	order := make([]int, max(0, n))
	for i := range order {
		order[i] = i
	}
	for i := len(order) - 1; i > 0; i-- {
		j := int(d.below(uint64(i + 1)))
		order[i], order[j] = order[j], order[i]
	}
	return order
}
