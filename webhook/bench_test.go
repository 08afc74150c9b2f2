package webhook_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/dialai/dialai/webhook"
)

func BenchmarkSign(b *testing.B) {
	k, body, at := []byte(token), bytes.Repeat([]byte("x"), 2<<10), time.Unix(1767323045, 0)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		webhook.Sign(k, "0f8e2c1a-0000-8000-8000-000000000000", at, body)
	}
}

// BenchmarkCall is one ask of a server that answers at once: what a call costs
// beside the waiting.
func BenchmarkCall(b *testing.B) {
	s := answering(b, 200, good)
	m := parse(b, machineText)
	p, err := client(b).Proposer(m, hook(s.URL), nil)
	if err != nil {
		b.Fatal(err)
	}
	q := question(m)
	q.Encoded = q.AppendContext(nil, true)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Propose(context.Background(), q); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadAnswer(b *testing.B) {
	for name, body := range map[string]string{
		"small": `{"transitionName":"approve","toState":"approved","reasoning":"looks right to me","metaJson":{"amount":12.50},"costUSD":0.0021,"latencyMsec":812,"numInputTokens":900,"numOutputTokens":41}`,
		"1MiB":  padded(webhook.MaxAnswer),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := webhook.ReadAnswer([]byte(body)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
