package guardlog

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestEachLine reads lines of any kind: blank ones are counted and left out, one
// that is too long is an error of its own, the last needs no end.
func TestEachLine(t *testing.T) {
	long := io.LimitReader(endless{}, MaxStep+10)
	in := io.MultiReader(strings.NewReader("a\n\n  \nb\n"), long, strings.NewReader("\nc"))
	var got []string
	err := EachLine(in, func(n int, line []byte, err error) error {
		got = append(got, fmt.Sprintf("%d %q %v", n, strings.TrimSpace(string(line)), errors.Is(err, errLongLine)))
		return nil
	})
	want := []string{`1 "a" false`, `4 "b" false`, `5 "" true`, `6 "c" false`}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %q, want %q", err, got, want)
	}
	stop := errors.New("enough")
	if err := EachLine(strings.NewReader("a\nb\n"), func(n int, _ []byte, _ error) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("%v, want the error of the function", err)
	}
	if err := EachLine(io.MultiReader(strings.NewReader("a"), broken{}), func(int, []byte, error) error { return nil }); err == nil {
		t.Error("a line that cannot be read to its end is no error")
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("the disk is gone") }

// TestQuantiles compares the quantiles of a histogram with those of the sorted
// scores.
func TestQuantiles(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		an := NewAnalysis()
		scores := make([]float64, 1+rng.IntN(300))
		for i := range scores {
			scores[i] = float64(rng.IntN(scoreSteps+1)) / scoreSteps
			an.score("s", scores[i])
		}
		slices.Sort(scores)
		for _, q := range []float64{0.1, 0.5, 0.9, 0.99} {
			want := scores[int(math.Ceil(q*float64(len(scores))-1e-6))-1]
			if got := an.scores["s"].quantile(q); got != want {
				t.Fatalf("seed %d: quantile %v of %d scores is %v, want %v", seed, q, len(scores), got, want)
			}
		}
	}
}

// TestAnalysisIsBounded: names that come from outside cannot fill the memory.
func TestAnalysisIsBounded(t *testing.T) {
	an := NewAnalysis()
	for i := range 3 * mostNames {
		line := fmt.Sprintf(`{"type":"verdict","verdict":"abort","reason":"r%d"}`, i)
		if err := an.Line(i, []byte(line), nil); err != nil {
			t.Fatal(err)
		}
		an.score(fmt.Sprint("s", i), 0.5)
	}
	if len(an.reasons) > mostNames+1 || len(an.scores) > mostNames+1 || an.reasons["other"] != 2*mostNames {
		t.Errorf("%d reasons and %d stages are remembered, %d are other", len(an.reasons), len(an.scores), an.reasons["other"])
	}
}
