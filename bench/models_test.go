package bench_test

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/llm"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/strategies"
)

const modelBody = `{"id":"chatcmpl-1","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"The bill supports it.",` +
	`"tool_calls":[{"id":"call_1","type":"function","function":{"name":"pay","arguments":"{}"}}]},"finish_reason":"tool_calls"}],` +
	`"usage":{"prompt_tokens":412,"completion_tokens":38,"total_tokens":450,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}`

var modelResponse = []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(modelBody)) + "\r\n\r\n" + modelBody)

// modelMachine has models that answer after so many milliseconds each, under an
// arbiter for whom one answer is enough, or none that is early.
func modelMachine(b testing.TB, arbiter string, n int) *machine.Machine {
	var who strings.Builder
	for i := range n {
		fmt.Fprintf(&who, `{"role":"proposer","specialistId":"p%d","contextFn":"sessionContext","modelId":"m"},`, i)
	}
	m, err := machine.Parse("models.json", []byte(`{"machineName":"models","initialState":"a","goalState":"z","solicit":{"maxParallel":10000},
		"states":{"a":{"prompt":"Should the claim be paid?","transitions":{"pay":"b","decline":"b"}},"b":{"prompt":"Should it be paid again?","transitions":{"pay":"a","decline":"a"}},"z":{}},
		"specialists":[`+who.String()+arbiter+`]}`), runner.Checks())
	if err != nil {
		b.Fatal(err)
	}
	return m
}

const everybody = `{"role":"arbiter","specialistId":"x","strategyFn":"= proposals > 0 ? \"pay\" : none"}`

// modelClient asks models that answer after so many milliseconds.
func modelClient(address string, ms int) *llm.Client {
	base := fmt.Sprintf("http://%s/models/%d", address, ms)
	return llm.New(llm.Config{Lookup: func(name string) (string, bool) { return base, name == "DIALAI_LLM_BASE_URL" }})
}

// noPast is a session at its beginning.
type noPast struct{ specialist.Past }

func (noPast) History() []specialist.TransitionRecord { return nil }
func (noPast) Exemplars() []specialist.Exemplar       { return nil }

// asker returns a function that asks a model once, with all that belongs to it:
// context, prompt, request, reading, usage.
func asker(b testing.TB, address string, ms int) func(context.Context) error {
	m := modelMachine(b, everybody, 1)
	p, err := modelClient(address, ms).Proposer(m, &m.Specialists()[0], strategies.SessionContext)
	if err != nil {
		b.Fatal(err)
	}
	q := specialist.Question{Key: specialist.RoundKey{Round: 1}, Machine: m, State: m.Initial(), Past: noPast{}, Self: "p0",
		Meta: []byte(`{"kind":"burst_pipe","amount":1800,"note":"The kitchen floor is swollen. The bill is attached."}`)}
	return func(ctx context.Context) error {
		a, err := p.Propose(ctx, q)
		if err == nil && a.TransitionName != "pay" {
			err = fmt.Errorf("the model said %q", a.TransitionName)
		}
		return err
	}
}

// BenchmarkModelAsk measures what asking a model costs besides waiting: CPU of this
// process, kernel included, and memory. The provider is another process and answers
// at once. Goals: 150 us and 64 KiB.
func BenchmarkModelAsk(b *testing.B) {
	ask := asker(b, service(b), 0)
	if err := ask(b.Context()); err != nil { // dials
		b.Fatal(err)
	}
	b.ReportAllocs()
	before, asks := cpu(), 0
	for b.Loop() {
		if err := ask(b.Context()); err != nil {
			b.Fatal(err)
		}
		asks++
	}
	b.ReportMetric(float64((cpu()-before).Microseconds())/float64(asks), "cpu-us/ask")
}

// TestModelAskMemory holds the goal for memory, which no busy machine blurs.
func TestModelAskMemory(t *testing.T) {
	ask := asker(t, service(t), 0)
	const asks = 100
	var before, after runtime.MemStats
	for i := range asks + 1 {
		if i == 1 { // the first dials
			runtime.ReadMemStats(&before)
		}
		if err := ask(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if per := (after.TotalAlloc - before.TotalAlloc) / asks; per > 64<<10 {
		t.Errorf("an ask takes %d bytes, more than 64 KiB", per)
	}
}

// BenchmarkModelsAtOnce asks 64 models that take 50 ms each at once. Goal: 1.3
// times that.
func BenchmarkModelsAtOnce(b *testing.B) {
	const n = 64
	ask := asker(b, service(b), 50)
	round := func() time.Duration {
		start := time.Now()
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				if err := ask(b.Context()); err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
		return time.Since(start)
	}
	round() // dials
	var took []float64
	for b.Loop() {
		took = append(took, float64(round())/float64(50*time.Millisecond))
	}
	b.ReportMetric(median(took), "x-50ms")
}

// BenchmarkEarlyDecision measures how long a round takes to be over once it is
// decided, with 15 models still out: they are cancelled. Goal: 5 ms.
func BenchmarkEarlyDecision(b *testing.B) {
	address := service(b)
	var answered time.Time
	quick := specialist.ProposerFunc(func(_ context.Context, q specialist.Question) (specialist.Answer, error) {
		time.Sleep(20 * time.Millisecond) // until the others are out
		answered = time.Now()
		return q.Choose(q.State.Transition("pay"), "sure"), nil
	})
	r, err := runner.New(runner.Config{Store: store.NewMemory(), Resolver: strategies.Resolvers{modelClient(address, 60_000), strategies.Registry{}.WithProposer("quick", quick)}})
	if err != nil {
		b.Fatal(err)
	}
	m := modelMachine(b, `{"role":"proposer","specialistId":"quick","strategyFn":"quick"},{"role":"arbiter","specialistId":"x","strategyFnName":"firstProposal"}`, 15)
	s, err := r.Start(b.Context(), m, runner.StartOptions{})
	if err != nil {
		b.Fatal(err)
	}
	var late []float64
	for b.Loop() {
		tick, err := r.Step(b.Context(), s.ID)
		if err != nil || tick.Status != runner.TickAdvanced {
			b.Fatal(tick.Status, err)
		}
		late = append(late, float64(time.Since(answered).Microseconds())/1000)
	}
	b.ReportMetric(median(late), "ms-late")
}
