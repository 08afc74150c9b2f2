package llm

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestLaneRate: calls begin evenly spread, in no more than the rate.
func TestLaneRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, start := newLane(Limits{PerMinute: 60}), time.Now()
		var last time.Duration
		for i := range 5 {
			if err := l.enter(t.Context()); err != nil {
				t.Fatal(err)
			}
			last = time.Since(start)
			l.leave()
			if last != time.Duration(i)*time.Second {
				t.Errorf("call %d begins after %s", i, last)
			}
		}
		time.Sleep(time.Minute) // of a bubble: what was not used is not saved up
		start = time.Now()
		for range 3 {
			if err := l.enter(t.Context()); err != nil {
				t.Fatal(err)
			}
			l.leave()
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("three calls after a pause take %s", took)
		}
	})
}

// TestLaneConcurrency: no more at once than the limit, and whoever gives up while
// waiting takes no place.
func TestLaneConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, start := newLane(Limits{MaxConcurrent: 2}), time.Now()
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				if err := l.enter(t.Context()); err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Second) // of a bubble
				l.leave()
			})
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if err := l.enter(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a seventh enters: %v", err)
		}
		wg.Wait()
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("six calls, two at once, take %s", took)
		}
	})
}

// TestLaneRest: a provider that wants to be left alone is, by everybody, and who
// has no time for that learns it at once.
func TestLaneRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, start := newLane(Limits{}), time.Now()
		l.rest(20 * time.Second)
		l.rest(5 * time.Second) // a shorter one changes nothing
		l.rest(-time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		err := l.enter(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "takes no call for another 20s") || time.Since(start) != 0 {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		if err := l.enter(t.Context()); err != nil || time.Since(start) != 20*time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		stopped, stop := context.WithCancel(t.Context())
		stop()
		if err := l.enter(stopped); err == nil {
			t.Error("a call that nobody waits for begins")
		}
	})
}

// TestLaneTurnGivenUp: a call that is given up before its turn, or that has no time for
// it, takes the turn of nobody else.
func TestLaneTurnGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, start := newLane(Limits{PerMinute: 1}), time.Now()
		if err := l.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.leave()
		for range 5 { // as those of a round that has no time
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
			if err := l.enter(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 0 {
				t.Errorf("%v after %s", err, time.Since(start))
			}
			cancel()
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 5 { // as those of a round that is decided
			wg.Go(func() {
				if err := l.enter(ctx); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		cancel()
		wg.Wait()
		if err := l.enter(t.Context()); err != nil || time.Since(start) != time.Minute {
			t.Errorf("the next call begins after %s: %v", time.Since(start), err)
		}
		l.leave()
	})
}

// TestLaneRateAfterRest: calls that waited while the provider wanted to be left alone do
// not begin all at once, and one that is told to wait longer does.
func TestLaneRateAfterRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, start := newLane(Limits{PerMinute: 60}), time.Now()
		l.rest(10 * time.Second)
		var mu sync.Mutex
		begun := map[time.Duration]int{}
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if err := l.enter(t.Context()); err != nil {
					t.Error(err)
					return
				}
				defer l.leave()
				mu.Lock()
				defer mu.Unlock()
				begun[time.Since(start)]++
			})
		}
		time.Sleep(5 * time.Second) // of a bubble
		l.rest(15 * time.Second)
		wg.Wait()
		if begun[20*time.Second] != 1 || begun[21*time.Second] != 1 || begun[22*time.Second] != 1 {
			t.Errorf("three calls begin after %v", begun)
		}
	})
}

// TestOllamaBase: what people write into OLLAMA_HOST.
func TestOllamaBase(t *testing.T) {
	for host, want := range map[string]string{
		"": "", "127.0.0.1": "http://127.0.0.1:11434/v1", "0.0.0.0:8080": "http://127.0.0.1:8080/v1", "gpu.local": "http://gpu.local:11434/v1",
		"https://gpu.example.com": "https://gpu.example.com/v1", "http://gpu:1/v1/": "http://gpu:1/v1", "[::1]:5": "http://[::1]:5/v1", " host:7 ": "http://host:7/v1",
	} {
		if got := ollamaBase(host); got != want {
			t.Errorf("OLLAMA_HOST=%q is %q, want %q", host, got, want)
		}
	}
}

// FuzzDecode: no body makes a wire panic, count less than nothing, or believe a
// cost that is none or a log probability of nothing.
func FuzzDecode(f *testing.F) {
	for _, body := range []string{
		`{}`, `[]`, `null`, `{"choices":[{"message":{"content":[{"text":"a"}],"tool_calls":[{"function":{"name":"x","arguments":{}}}]}}],"usage":{"prompt_tokens":-1,"cost":-5}}`,
		`{"content":[{"type":"tool_use","name":"x","input":null}],"usage":{"input_tokens":9223372036854775807,"cache_read_input_tokens":9223372036854775807}}`,
		`{"candidates":[{"content":{"parts":[{"functionCall":{}}]}}],"usageMetadata":{"promptTokenCount":-3,"thoughtsTokenCount":9223372036854775807,"candidatesTokenCount":9}}`,
		`{"error":{"code":"429"}}`, `{"error":[1]}`, `{"usage":{"cost":1e400}}`,
		`{"id":1,"model":[],"choices":[{"message":{"content":3},"logprobs":{"content":[{"token":"a","logprob":"x"},{"logprob":-1}]}}],"usage":{"prompt_tokens":"1e1","completion_tokens":-1,"cost":"x"}}`,
		"\uFEFF" + `{"content":[{"type":"text","text":5}],"usage":{"input_tokens":1.0,"cache_creation":[1],"output_tokens":9007199254740993}}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, w := range []wire{chat{}, messages{}, generate{}} {
			var r Response
			err := w.decode(body, &r)
			u := r.Usage
			if u.NumInputTokens < 0 || u.NumOutputTokens < 0 || u.CostUSD < 0 {
				t.Errorf("%T counts %+v", w, u)
			}
			if d := u.Detail; d != nil && min(d.CacheReadTokens, d.CacheWrite5mTokens, d.CacheWrite1hTokens, d.ReasoningTokens, d.AudioInputTokens, d.AudioOutputTokens) < 0 {
				t.Errorf("%T counts %+v", w, *d)
			}
			if r.LogProbs != nil && len(r.LogProbs) != len(r.LogTokens) {
				t.Errorf("%T has %d log probabilities of %d tokens", w, len(r.LogProbs), len(r.LogTokens))
			}
			if err != nil && err.Error() == "" {
				t.Errorf("%T says nothing of its error", w)
			}
		}
	})
}
