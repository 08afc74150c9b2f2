package machines_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/dialai/dialai/internal/cassette"
	"github.com/dialai/dialai/llm"
	"github.com/dialai/dialai/llm/llmtest"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/webhook"
)

var record = flag.Bool("record", false, "record the cassettes of the samples with models anew, from a scripted server")

// A modelSample is a sample whose specialists are models, with what the scripted
// server says to each of them in turn.
type modelSample struct {
	meta    string
	says    map[string][]llmtest.Reply // by model
	rulings []string
	want    string
	calls   int
}

func call(text, tool, args string) llmtest.Reply {
	return llmtest.Reply{Text: text, Tools: []llmtest.Tool{{Name: tool, Args: args}}, Usage: llmtest.Usage{Input: 412, Output: 38}}
}

var modelSamples = map[string]modelSample{
	"claims-panel": {
		meta: `{"kind":"burst_pipe","amount":1800,"note":"The kitchen floor is swollen. The plumber's bill is attached."}`,
		says: map[string][]llmtest.Reply{
			"gpt-5.4-mini":     {call("Sudden damage by water is covered, and the bill supports it.", "pay", "{}")},
			"claude-haiku-4-5": {call("A burst pipe is sudden; the amount fits a kitchen floor.", "pay", "{}")},
			"gemini-2.5-flash": {call("The amount is high for one floor.", "inspect", "{}")},
		},
		want: "pay = completed goal in settled", calls: 3,
	},
	"contract-intake": {
		meta: `{"text":"Acme hires Bolt & Sons for 12,000 dollars a year. The contract renews each January unless one side gives notice."}`,
		says: map[string][]llmtest.Reply{
			"gpt-5.4-mini":     {call("", "take_down", `{"supplier":"Bolt & Sons","dollarsPerYear":"12,000"}`), call("The renewal clause is in the last sentence.", "take_down", `{"supplier":"Bolt & Sons","dollarsPerYear":12000,"renews":true}`)},
			"claude-haiku-4-5": {call("All three terms are as in the contract.", "confirm", "{}")},
		},
		rulings: []string{"lea sign", "farid sign"},
		want:    "take_down confirm sign = completed goal in filed", calls: 3,
	},
	"reply-loop": {
		meta: `{"question":"Where is my parcel? I ordered it two weeks ago.","known":"It left the warehouse yesterday."}`,
		says: map[string][]llmtest.Reply{
			"gemini-2.5-flash": {
				call("", "draft", `{"text":"Your parcel is on its way."}`),
				call("", "draft", `{"text":"We are sorry that it took so long: your parcel left our warehouse yesterday and should reach you within days."}`),
			},
			"claude-haiku-4-5": {
				call("It is friendly, but it says nothing about the delay.", "revise", `{"what":"Say that we are sorry for the delay, and when it left."}`),
				call("It answers the question and says what is known.", "approve", "{}"),
			},
		},
		want: "draft revise draft approve = completed goal in approved", calls: 4,
	},
}

// note is what the cassettes of the samples say about themselves.
const note = "Recorded from the scripted server in machines/models_test.go, not from models: it shows the format and the flow, and nothing of what any model would say."

// same is a source of bytes that are always alike, so that recording again changes
// nothing.
type same struct{}

func (same) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 0x5a
	}
	return len(b), nil
}

// play runs a sample on cassettes and returns what became of it.
func (s modelSample) play(t *testing.T, name string, tape webhook.Tape, c llm.Config) string {
	t.Helper()
	c.Tape = tape
	return run{meta: s.meta, rulings: s.rulings}.steps(t, load(t, name), runner.Config{Resolver: llm.New(c), Prices: llm.Prices()})
}

// server starts a server that says what a sample's models say.
func (s modelSample) server(t *testing.T) llm.Config {
	t.Helper()
	var mu sync.Mutex
	said := map[string]int{}
	server, err := llmtest.Start(func(_ int, c llmtest.Call) llmtest.Reply {
		mu.Lock()
		defer mu.Unlock()
		said[c.Model]++
		return s.says[c.Model][min(said[c.Model], len(s.says[c.Model]))-1]
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return llm.Config{
		Lookup:    func(name string) (string, bool) { return "a key of the tests", strings.HasSuffix(name, "_API_KEY") },
		Endpoints: map[string]string{"openai": server.URL, "anthropic": server.URL, "google": server.URL},
		Random:    same{},
	}
}

// TestModelSamples replays the samples with models on their cassettes, without
// keys and without anybody to ask; and it plays them against the scripted server,
// so that the cassettes are what would be recorded today.
func TestModelSamples(t *testing.T) {
	for name, s := range modelSamples {
		dir := filepath.Join("cassettes", name)
		fresh := filepath.Join(t.TempDir(), name)
		if *record {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			fresh = dir
		}
		m := load(t, name)
		deck, err := cassette.Record(fresh, cassette.Run{MachineName: m.Name(), MachineDigest: m.Digest(), Seed: "7", MetaJSON: []byte(s.meta), Note: note})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.play(t, name, deck, s.server(t)); got != s.want || deck.Err() != nil {
			t.Errorf("%s against the server: %s, %v, want %s", name, got, deck.Err(), s.want)
		}
		if deck, err = cassette.Play(dir); err != nil {
			t.Fatal(err)
		}
		if got := s.play(t, name, deck, llm.Config{}); got != s.want || deck.Err() != nil {
			t.Errorf("%s on its cassettes: %s, %v, want %s", name, got, deck.Err(), s.want)
		}
		if got, want := folder(t, dir), folder(t, fresh); got != want || deck.Run().Note != note {
			t.Errorf("the cassettes of %s are not what is recorded today; run go test ./machines -run TestModelSamples -record", name)
		}
		if files, _ := filepath.Glob(filepath.Join(dir, "*.json")); len(files) != s.calls+1 {
			t.Errorf("%s has the cassettes %q, want %d and run.json", name, files, s.calls)
		}
	}
}

// TestNoKeysOnCassettes: what was sent as a key is on none.
func TestNoKeysOnCassettes(t *testing.T) {
	for name := range modelSamples {
		if text := folder(t, filepath.Join("cassettes", name)); strings.Contains(text, "key of the tests") || strings.Contains(text, "Bearer") {
			t.Errorf("the cassettes of %s hold a key", name)
		}
	}
}

// folder returns the names and texts of a folder's files.
func folder(t *testing.T, dir string) string {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(f.Name() + "\n" + string(data))
	}
	return b.String()
}
