package trust_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/specialist"
)

const seed = 20260401

// TestPublishedScores are values that the documentation of the score names, and
// some that were computed by hand to 30 digits.
func TestPublishedScores(t *testing.T) {
	for _, c := range []struct {
		k, n int64
		want exact.Billionths
	}{
		{0, 0, 0}, {0, 1, 0}, {0, 5, 0}, {0, 1_000_000, 0},
		{1, 1, 206_543_291}, {15, 15, 796_110_734}, {16, 16, 806_386_582}, // sixteen straight matches make a champion
		{18, 20, 698_961_794}, {19, 20, 763_864_106},
		{-1, 5, 0}, {5, -1, 0}, {9, 5, 0}, // nonsense is nobody's trust
	} {
		if got := trust.Score(c.k, c.n); got != c.want {
			t.Errorf("Score(%d, %d) = %s, want %s", c.k, c.n, got, c.want)
		}
	}
	if trust.Score(15, 15) >= trust.Trusted || trust.Score(16, 16) < trust.Trusted {
		t.Error("it takes other than 16 straight matches to be trusted")
	}
}

const precision = 200 // bits

func number(f float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(f) }

// slowWilson is the lower bound as the smaller root of the quadratic that
// defines it, (p - x)^2 n = z^2 x (1 - x), in 200 bits.
func slowWilson(k, n int64, z float64) *big.Float {
	new := func() *big.Float { return new(big.Float).SetPrec(precision) }
	size, hits := number(float64(n)), number(float64(k))
	z2 := new().Mul(number(z), number(z))
	a := new().Add(size, z2)                        // x^2
	b := new().Add(new().Mul(number(2), hits), z2)  // -x
	c := new().Quo(new().Mul(hits, hits), size)     // 1
	d := new().Mul(b, b)                            // b^2 - 4ac
	d.Sub(d, new().Mul(number(4), new().Mul(a, c))) //
	root := new().Sub(b, new().Sqrt(d))             //
	return new().Quo(root, new().Mul(number(2), a)) //
}

func TestWilsonAgainstTheQuadratic(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for i := range 20_000 {
		n := 1 + rng.Int64N(60)
		if i%4 == 0 {
			n = 1 + rng.Int64N(1_000_000)
		}
		k, z := rng.Int64N(n+1), []float64{trust.Z, 1.2815515655446004, 1.6448536269514722, 2.5758293035489004}[rng.IntN(4)]
		want, _ := slowWilson(k, n, z).Float64()
		if got := trust.Wilson(k, n, z); math.Abs(got-want) > 1e-12 || got < 0 || got > 1 {
			t.Fatalf("seed %d: Wilson(%d, %d, %v) = %.17g, want %.17g", seed, k, n, z, got, want)
		}
	}
}

// TestScoresAreRoundedRight compares every score of small counts with the exact
// value, rounded: they decide who is trusted, so each must be right to the last
// digit.
func TestScoresAreRoundedRight(t *testing.T) {
	for n := int64(1); n <= 200; n++ {
		for k := int64(0); k <= n; k++ {
			x := slowWilson(k, n, trust.Z)
			x.Mul(x, number(1e9)).Add(x, number(0.5))
			want, _ := x.Int64() // cuts
			if got := trust.Score(k, n); got != exact.Billionths(want) {
				t.Errorf("Score(%d, %d) = %d, want %d", k, n, int64(got), want)
			}
		}
	}
}

// TestScoreProperties: more agreement is more trust, the same share of more
// comparisons is more trust, and the bound stays below the share.
func TestScoreProperties(t *testing.T) {
	for n := int64(1); n <= 150; n++ {
		for k := int64(0); k <= n; k++ {
			s := trust.Score(k, n)
			if k > 0 && s <= trust.Score(k-1, n) {
				t.Errorf("%d of %d counts no more than %d of %d", k, n, k-1, n)
			}
			if k > 0 && trust.Score(2*k, 2*n) <= s {
				t.Errorf("%d of %d counts no more than %d of %d", 2*k, 2*n, k, n)
			}
			if trust.Score(k+1, n+1) < s { // one more match
				t.Errorf("a match after %d of %d takes trust away", k, n)
			}
			if k > 0 && trust.Score(k, n+1) >= s { // one more miss
				t.Errorf("a miss after %d of %d takes no trust away", k, n)
			}
			if share := float64(k) / float64(n); s.Float() > share {
				t.Errorf("%d of %d counts %s, more than its share", k, n, s)
			}
		}
	}
}

func comparison(id, state string, match bool, at specialist.Time) trust.Comparison {
	return trust.Comparison{Key: trust.Key{SpecialistID: id, State: state}, Match: match, At: at}
}

func TestBook(t *testing.T) {
	var empty *trust.Book
	first := empty.With(comparison("a", "", true, 5), comparison("b", "", false, 5), comparison("a", "open", false, 6))
	second := first.With(comparison("a", "", true, 3))
	for _, c := range []struct {
		book            *trust.Book
		id, state       string
		matching, total int64
		updated         specialist.Time
	}{
		{empty, "a", "", 0, 0, 0}, {&trust.Book{}, "a", "", 0, 0, 0},
		{first, "a", "", 1, 1, 5}, {first, "b", "", 0, 1, 5}, {first, "a", "open", 0, 1, 6}, {first, "b", "open", 0, 0, 0}, {first, "", "", 0, 0, 0},
		{second, "a", "", 2, 2, 5}, // a late record does not turn the clock back
		{second, "a", "open", 0, 1, 6},
	} {
		want := trust.Tally{Matching: c.matching, Total: c.total, Updated: c.updated}
		if got := c.book.Tally(trust.Key{SpecialistID: c.id, State: c.state}); got != want {
			t.Errorf("the tally of %q in %q is %+v, want %+v", c.id, c.state, got, want)
		}
		if got, want := c.book.Score(c.id, c.state), trust.Score(c.matching, c.total); got != want || want != (trust.Tally{Matching: c.matching, Total: c.total}).Score() {
			t.Errorf("%q in %q scores %s, want %s", c.id, c.state, got, want)
		}
	}
	if empty.Records("m") != nil || len((&trust.Book{}).Records("m")) != 0 {
		t.Error("an empty book has records")
	}
}

// TestBookDoesNotDependOnOrder: shuffled or split, the same outcomes make the
// same book, and no earlier book changes.
func TestBookDoesNotDependOnOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 2))
	for range 200 {
		list := make([]trust.Comparison, rng.IntN(40))
		for i := range list {
			list[i] = comparison(fmt.Sprint(rng.IntN(4)), []string{"", "open"}[rng.IntN(2)], rng.IntN(2) == 0, specialist.Time(rng.IntN(9)))
		}
		want := new(trust.Book).With(list...)
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		cut := rng.IntN(len(list) + 1)
		part := new(trust.Book).With(list[:cut]...)
		before := part.Records("m")
		got := part.With(list[cut:]...)
		if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(part.Records("m"), before) {
			t.Fatalf("seed %d: %v, want %v", seed, got.Records("m"), want.Records("m"))
		}
		copied := map[trust.Key]trust.Tally{}
		for _, c := range list {
			copied[c.Key] = want.Tally(c.Key)
		}
		again := trust.NewBook(copied)
		clear(copied)
		if len(list) > 0 && !reflect.DeepEqual(again, want) {
			t.Fatalf("seed %d: a book made of tallies is %v", seed, again.Records("m"))
		}
	}
}

func TestRecords(t *testing.T) {
	book := new(trust.Book).With(comparison("b", "", true, 1), comparison("a", "open", true, 1767225600123), comparison("a", "", false, 2), comparison("a", "closed", true, 3))
	var keys []string
	for _, r := range book.Records("desk") {
		keys = append(keys, r.SpecialistID+":"+r.MachineName+":"+r.State)
	}
	if want := []string{"a:desk:", "a:desk:closed", "a:desk:open", "b:desk:"}; !reflect.DeepEqual(keys, want) {
		t.Errorf("the records are %q, want %q", keys, want)
	}
	text, err := json.Marshal(book.Records("desk")[2])
	if want := `{"specialistId":"a","machineName":"desk","state":"open","matchingChoices":1,"totalComparisons":1,"alignmentScore":0.206543291,"lastUpdated":"2026-01-01T00:00:00.123Z"}`; string(text) != want || err != nil {
		t.Errorf("a record is %s (%v), want %s", text, err, want)
	}
	if text, _ := json.Marshal(book.Records("desk")[0]); string(text) != `{"specialistId":"a","machineName":"desk","matchingChoices":0,"totalComparisons":1,"alignmentScore":0,"lastUpdated":"1970-01-01T00:00:00.002Z"}` {
		t.Errorf("a machine's record is %s", text)
	}
}
