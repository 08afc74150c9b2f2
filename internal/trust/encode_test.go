package trust_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/internal/wire"
)

// encodedLessons are lessons of all kinds, of two machines, under promises of both kinds.
func encodedLessons(n int) (list []trust.Lesson) {
	promises := []*trust.Promise{nil, {MaxError: exact.One / 10, Confidence: exact.One * 9 / 10}, {MaxError: exact.One / 10, Confidence: exact.One * 9 / 10, PerState: true, ClopperPearson: true}}
	for i, x := range pastLessons(n) {
		if o := x.Outcome; o != nil {
			if i%3 == 1 {
				o.Machine = "office"
			}
			o.Promise, o.PolicyDigest, o.P, o.Pick = promises[i%5%3], "p", exact.One*99/100, o.Truth
			o.Automatic, o.Blind = i%4 == 1, i%2 == 0
			last := &o.Proposals[len(o.Proposals)-1] // has a new version now and then, which inherits
			last.Version = fmt.Sprint(1 + min(2, i/40))
		}
		list = append(list, x)
		if i%30 == 29 {
			a := &trust.Adoption{Machine: "desk", Promise: promise(.1), PolicyDigest: fmt.Sprint("next ", i%60), Pairs: rightPairs(3), Tried: 2}
			list = append(list, trust.Lesson{Adoption: a})
		}
	}
	for i := range list {
		list[i].Seq = int64(i + 1)
	}
	return list
}

func encoded(l *trust.Ledger) []byte {
	c := wire.NewWriter()
	l.Code(c)
	return c.Bytes()
}

func decoded(data []byte) (*trust.Ledger, error) {
	l, c := trust.New(), wire.NewReader(data)
	l.Code(c)
	return l, c.Close()
}

func learn(t *testing.T, l *trust.Ledger, list []trust.Lesson) {
	t.Helper()
	for _, x := range list {
		if err := l.Learn(x); err != nil {
			t.Fatalf("lesson %d: %v", x.Seq, err)
		}
	}
}

// TestLedgerIsWrittenWhole: a ledger that is read is the one that was written, learns on as that
// would have, and has the same bytes however it was come to.
func TestLedgerIsWrittenWhole(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 52))
	list := encodedLessons(150)
	whole := trust.New()
	learn(t, whole, list)
	for range 12 {
		cut := rng.IntN(len(list) + 1)
		first := trust.New()
		learn(t, first, list[:cut])
		data := encoded(first)
		read, err := decoded(data)
		if err != nil {
			t.Fatalf("seed %d: after %d lessons: %v", seed, cut, err)
		}
		if !reflect.DeepEqual(read, first) || !bytes.Equal(encoded(read), data) {
			t.Fatalf("seed %d: after %d lessons, what is read is not what was written", seed, cut)
		}
		for _, x := range list[cut:] { // with clones in between, as readers have them
			if rng.IntN(3) == 0 {
				read = read.Clone()
			}
			learn(t, read, []trust.Lesson{x})
		}
		if !bytes.Equal(encoded(read), encoded(whole)) {
			t.Fatalf("seed %d: read after %d lessons, it learns otherwise", seed, cut)
		}
	}
	if len(whole.Machines()) != 2 || len(whole.Candidates("desk", "s0", trust.Target{Share: exact.One / 2, Alpha: exact.One / 20})) == 0 {
		t.Error("the ledger does not hold what it should be tested with")
	}
}

// TestManyMembersAreWritten: beyond PairLimit members there are groups in place of pairs.
func TestManyMembersAreWritten(t *testing.T) {
	l := add(t, trust.New(), crowdOutcomes("many", 3, trust.PairLimit+10, 3)...)
	if read, err := decoded(encoded(l)); err != nil || !reflect.DeepEqual(read, l) {
		t.Errorf("a ledger of many is not read as it was written: %v", err)
	}
}

// TestLedgerOf: what one machine is judged by does not depend on the others being there.
func TestLedgerOf(t *testing.T) {
	l := trust.New()
	learn(t, l, encodedLessons(60))
	q, _ := crowd(trust.NewDraw("question"), 6, 3)
	if got := l.Of("desk"); asText(t, got.Judge(q)) != asText(t, l.Judge(q)) || len(got.Machines()) != 1 ||
		got.Savings("desk", q.Policy, exact.One/2) != l.Savings("desk", q.Policy, exact.One/2) || l.Of("nobody").N("nobody") != 0 {
		t.Errorf("of %v is left %v", l.Machines(), got.Machines())
	}
}

// TestSharedOutcomesAreWrittenOnce: a ledger and what it was a while ago take little more than one.
func TestSharedOutcomesAreWrittenOnce(t *testing.T) {
	list := encodedLessons(400)
	now := trust.New()
	learn(t, now, list[:len(list)-10])
	then := now.Clone()
	learn(t, now, list[len(list)-10:])
	c := wire.NewWriter()
	now.Code(c)
	alone := len(c.Bytes())
	then.Code(c)
	if both := len(c.Bytes()); both > alone+alone/3 {
		t.Errorf("one takes %d bytes, both take %d", alone, both)
	}
}

// TestLedgerFormat holds the bytes of a ledger: if they change, because a ledger is written or
// lessons are learned in another way, trust.LedgerFormat has to rise and the sum below with it.
func TestLedgerFormat(t *testing.T) {
	const format, sum = 4, "edcddcd2920850bcab05df427109e694828528f76855253f11aba247c0421895"
	l := trust.New()
	learn(t, l, encodedLessons(120))
	if got := fmt.Sprintf("%x", sha256.Sum256(encoded(l))); got != sum || trust.LedgerFormat != format {
		t.Errorf("format %d has the bytes %s, format %d had %s", trust.LedgerFormat, got, format, sum)
	}
}

// FuzzLedger: whatever is read as a ledger is written in the same bytes, and can judge.
func FuzzLedger(f *testing.F) {
	for _, n := range []int{0, 3, 12} {
		l := trust.New()
		for _, x := range encodedLessons(n) {
			_ = l.Learn(x)
		}
		f.Add(encoded(l))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := decoded(data)
		if err != nil {
			return
		}
		if !bytes.Equal(encoded(l), data) {
			t.Errorf("%x is read, and written in another way", data)
		}
		q, _ := crowd(trust.NewDraw("question"), 6, 3)
		q.Policy.Threshold = new(exact.Billionths(800_000_000))
		for _, name := range append(l.Machines(), "desk") {
			q.Machine = name
			l.Judge(q)
		}
	})
}
