package trust_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/dialai/dialai/internal/trust"
)

// fitLessons are outcomes, rounds without a human's word, adoptions, and an outcome that is taken
// back now and then.
func fitLessons(t *testing.T, n int) (all []trust.Lesson) {
	t.Helper()
	for i, x := range withRounds(t, encodedLessons(n)) {
		if all = append(all, x); x.Outcome != nil && i%40 == 7 {
			all = append(all, trust.Lesson{Retracts: x.Outcome})
		}
	}
	return all
}

// TestFitsAreThoseOfTheirPlace: whoever makes a fit, and however much later, judges by what was known
// at its lesson: as somebody does who has every fit made at once.
func TestFitsAreThoseOfTheirPlace(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 54))
	list := fitLessons(t, 90)
	atOnce, late := trust.New(), trust.New()
	d := trust.NewDraw("place")
	var check []func()
	for i, x := range list {
		learn(t, atOnce, []trust.Lesson{x})
		learn(t, late, []trust.Lesson{x})
		atOnce.MakeFits()
		if rng.IntN(8) > 0 {
			continue
		}
		q, _ := crowd(d, 6, 3)
		q.Machine = []string{"desk", "office"}[i%2]
		then, judged, bytesOf := late.Clone(), asText(t, atOnce.Judge(rounds(q))), wholly(atOnce)
		check = append(check, func() {
			if got := asText(t, then.Judge(rounds(q))); got != judged {
				t.Errorf("seed %d: after %d lessons it judges\n%s\nwant\n%s", seed, i+1, got, judged)
			}
			if !bytes.Equal(wholly(then), bytesOf) {
				t.Errorf("seed %d: after %d lessons it has other bytes", seed, i+1)
			}
		})
	}
	rng.Shuffle(len(check), func(i, j int) { check[i], check[j] = check[j], check[i] })
	for _, one := range check {
		one()
	}
	if len(check) < 20 || !bytes.Equal(wholly(late), wholly(atOnce)) {
		t.Errorf("seed %d: of %d ledgers, the last has other bytes", seed, len(check))
	}
}

// TestFitsAreMadeWhenNeeded: learning makes none, a judgement makes that of its machine for all clones,
// and Prepare makes those of machines that were judged.
func TestFitsAreMadeWhenNeeded(t *testing.T) {
	l, list := trust.New(), fitLessons(t, 60)
	judge := func(l *trust.Ledger) { q, _ := crowd(trust.NewDraw("question"), 6, 3); l.Judge(rounds(q)) }
	due := func(l *trust.Ledger, want ...string) {
		t.Helper()
		if got := fmt.Sprint(l.DueFits()); got != fmt.Sprint(want) {
			t.Errorf("fits are due of %s, want %s", got, want)
		}
	}
	learn(t, l, list)
	due(l, "desk", "office")
	l.Prepare() // nobody has judged either
	due(l, "desk", "office")
	c := l.Clone()
	judge(c)
	due(c, "office")
	due(l, "office")
	l.Refit("desk") // whatever it is that makes one due
	due(l, "desk", "office")
	due(c, "office")
	c = l.Clone()
	c.Refit("desk") // another one comes in the place of one that nobody needed
	c.Prepare()
	due(c, "office")
	due(l, "desk", "office")
	l.Prepare()
	due(l, "office")
	if !bytes.Equal(wholly(l), wholly(c)) {
		t.Error("the same fits, made by two, have other bytes")
	}
	due(l)
	c = l.Clone()
	for i := range trust.UnruledWindow { // several fits of rounds are due, one after the other
		if i == trust.UnruledWindow/2 {
			c = l.Clone()
		}
		if q, _ := crowd(trust.NewDraw("more", fmt.Sprint(i)), 5, 3); l.AddUnruled(unruledOf(t, fmt.Sprint("more ", i), q)) != nil {
			t.Fatal("a round is not counted")
		}
	}
	due(c, "desk")
	judge(l)
	due(c, "desk") // the earlier ones were not needed for the newest
}

// TestFitsAreShared: many judge by clones while one learns and one prepares, and each judgement is that
// of its place.
func TestFitsAreShared(t *testing.T) {
	list := fitLessons(t, 50)
	q, _ := crowd(trust.NewDraw("question"), 6, 3)
	alone, want := trust.New(), make([]string, len(list))
	for i, x := range list {
		learn(t, alone, []trust.Lesson{x})
		want[i] = asText(t, alone.Judge(rounds(q)))
	}
	l := trust.New()
	var wg sync.WaitGroup
	for i, x := range list {
		learn(t, l, []trust.Lesson{x})
		if i%6 > 0 && i != len(list)-1 {
			continue
		}
		read := l
		l = l.Clone()
		wg.Go(read.Prepare)
		for range 2 {
			wg.Go(func() {
				if got := asText(t, read.Judge(rounds(q))); got != want[i] {
					t.Errorf("after %d lessons it judges\n%s\nwant\n%s", i+1, got, want[i])
				}
			})
		}
	}
	wg.Wait()
}
