package runner_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
)

// remoteCourt are services of equal cost, so that waves have to be planned.
var remoteCourt = []juror{{"a", .9, "0.1"}, {"b", .8, "0.1"}, {"c", .8, "0.1"}, {"d", .75, "0.1"}}

// trained returns a jury of services that may decide from now on.
func (b *bench) trained(solicit, limit string) *jury {
	b.Helper()
	j := b.juryOf(web, solicit, arb("bayes", threshold(limit)), "", remoteCourt...)
	j.rounds(30)
	b.cast.who()
	return j
}

// TestRemoteWaves asks services in waves: those of a wave at once, the next when
// all have answered. However long each takes, the same are asked, and the same
// comes out.
func TestRemoteWaves(t *testing.T) {
	bubble(t, func(b *bench) {
		j := b.trained(`,"wave":2`, "0.96")
		rng := rand.New(rand.NewPCG(seed, 12))
		compared, waves := 0, 0
		for answers := range 16 {
			var usual *heardRound
			for range 4 {
				takes := map[string]time.Duration{}
				for i, v := range remoteCourt {
					takes[v.id] = time.Duration(1+rng.IntN(900)) * time.Millisecond
					b.cast.play(v.id, after(takes[v.id], saying([]string{"yes", "no"}[answers>>i&1])))
				}
				s := b.start(j.s.Machine())
				start := time.Now()
				b.step(s)
				round := b.storyOf(s)[0]
				if took, want := time.Since(start), round.lasts(takes); took != want {
					t.Errorf("seed %d: %d waves took %s, want %s", seed, len(round.Waves), took, want)
				}
				waves = max(waves, len(round.Waves))
				if round.Waves[0].Explore {
					continue // in another order
				}
				slices.Sort(round.Asked)
				if usual == nil {
					usual = &round
				}
				if compared++; !reflect.DeepEqual(round, *usual) {
					t.Errorf("seed %d: arrival changed\n%+v\ninto\n%+v", seed, *usual, round)
				}
			}
		}
		if compared < 40 || waves < 2 {
			t.Errorf("only %d rounds were compared, of at most %d waves", compared, waves)
		}
		b.forget()
	})
}

// lasts returns how long the waves of a round last.
func (r heardRound) lasts(takes map[string]time.Duration) (sum time.Duration) {
	for _, w := range r.Waves {
		longest := time.Duration(0)
		for _, id := range w.Specialists {
			longest = max(longest, takes[id])
		}
		sum += longest
	}
	return sum
}

// TestWaveIsWaitedFor asks nobody else while one of a wave has only accepted, and
// goes on when its answer is there.
func TestWaveIsWaitedFor(t *testing.T) {
	b := newBench(t, public)
	j := b.trained(`,"wave":1`, "0.97")
	for _, v := range remoteCourt {
		b.cast.play(v.id, accepting)
	}
	s := b.start(j.s.Machine())
	for n := 1; ; n++ {
		tick := b.step(s)
		who := b.cast.who()
		if tick.Status != runner.TickWaiting {
			if n < 2 || len(who) != 0 {
				t.Errorf("after %d answers the step came to %s, asked were %v", n-1, tick.Status, who)
			}
			break
		}
		if len(who) != 1 {
			t.Fatalf("asked at once were %v", who)
		}
		b.stepTo(s, runner.TickWaiting)
		if again := b.cast.who(); len(again) != 0 {
			t.Fatalf("%v were asked while %v had not answered", again, who)
		}
		ask := b.cast.lastAsk()
		_, err := b.callback(ask, ask.CallbackToken, specialist.Answer{TransitionName: []string{"yes", "no"}[n%2]})
		b.ok(err)
	}
}

// TestWaveSurvives has the process die while one of a wave is still thinking: the
// next process asks that one again under its key, nobody else twice, and goes on
// with the wave after.
func TestWaveSurvives(t *testing.T) {
	b := newBench(t)
	j := b.trained(`,"wave":2`, "0.985")
	says := map[string]string{"a": "yes", "b": "yes", "c": "yes", "d": "yes"}
	deaths := 0
	for _, dies := range []string{"a", "b", "c", "d"} {
		b.said(says)
		ctx, cancel := context.WithCancel(b.ctx)
		b.cast.play(dies, func(context.Context, specialist.Question) (specialist.Answer, error) {
			cancel()
			return hanging(ctx, specialist.Question{})
		})
		s := b.start(j.s.Machine())
		b.cast.who()
		before := len(slices.Compact(b.cast.askIDs()))
		first := b.runner()
		_, err := first.Step(ctx, s.ID)
		cancel()
		b.ok(first.Close())
		if err == nil {
			continue // it was not needed
		}
		deaths++
		b.said(says)
		b.step(s)
		asked := b.cast.who()
		count := map[string]int{}
		for _, id := range asked {
			count[id]++
		}
		for id, n := range count {
			if want := map[bool]int{true: 2, false: 1}[id == dies]; n != want {
				t.Errorf("%s died: %s was asked %d times, of %v", dies, id, n, asked)
			}
		}
		keys := slices.Compact(b.cast.askIDs())
		if got := len(keys) - before; got != len(count) {
			t.Errorf("%s died: %d asks went under %d keys", dies, len(asked), got)
		}
		if round := b.storyOf(s)[0]; len(round.Waves) == 0 || round.Judge.Partial != (len(count) < len(says)) {
			t.Errorf("%s died: the log tells of %+v, asked were %s", dies, round, fmt.Sprint(asked))
		}
	}
	if deaths < 2 {
		t.Errorf("only %d died", deaths)
	}
}
