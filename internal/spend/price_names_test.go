package spend_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
)

// TestSameModel: which names are those of one model. A name that merely contains
// another is that of another model.
func TestSameModel(t *testing.T) {
	for _, c := range []struct {
		a, b       string
		same, akin bool
	}{
		{"gpt-5", "gpt-5", true, false},
		{"openai/gpt-5", "gpt-5", true, false},
		{"openai/gpt-5", "OpenAI/GPT-5", true, false},
		{"google/gemini-2.5-flash", "models/gemini-2.5-flash", true, false},
		{"openai/gpt-4o-mini", "gpt-4o-mini-2024-07-18", true, false},
		{"anthropic/claude-sonnet-4-5", "claude-sonnet-4-5-20250929", true, false},
		{"claude-sonnet-4-5", "claude-sonnet-4-5@20250929", true, false},
		{"gpt-4", "gpt-4-0613", true, false},
		{"gemini-2.5-flash-preview", "gemini-2.5-flash-preview-05-20", true, false},
		{"gemini-2.0-flash", "gemini-2.0-flash-001", true, false},
		{"x/m:free", "x/m", true, false},
		{"m-latest", "m-2024-10-22", true, false},
		{"llama3", "llama3:latest", true, false},
		{"m-2024-10-22", "m-20241022", true, false},

		{"gpt-5", "gpt-5-pro", false, true},
		{"openai/gpt-5", "gpt-5-pro-2025-10-06", false, true},
		{"gpt-4o", "gpt-4o-mini", false, true},
		{"gpt-4", "gpt-4o", false, true},
		{"o1", "o1-pro", false, true},
		{"gpt-5", "gpt-5.4", false, true},
		{"m-2024-10-22", "m-2024-06-20", false, true},
		{"m:free", "m:online", false, true},
		{"m", "m-8192", false, true},
		{"openai/m", "azure/m", false, true},

		{"gpt-5", "claude-opus-5", false, false},
		{"gpt-4o-mini", "model.gguf", false, false},
		{"", "", false, false},
		{"gpt-5", "", false, false},
	} {
		for _, turned := range []bool{false, true} {
			a, b := c.a, c.b
			if turned {
				a, b = b, a
			}
			if same, akin := spend.SameModel(a, b), spend.AkinModels(a, b); same != c.same || akin != c.akin {
				t.Errorf("%q and %q: same %t, akin %t, want %t, %t", a, b, same, akin, c.same, c.akin)
			}
		}
	}
}

// TestPriceNames: a price is found for a version of a model, and for no other name
// that a model's name is part of.
func TestPriceNames(t *testing.T) {
	table := &spend.PriceTable{Prices: map[string]spend.Price{"gpt-5": {InputPer1M: 1}, "gpt-5-2025-01-01": {InputPer1M: 2}, "gpt-5-pro": {InputPer1M: 3}, "later": {InputPer1M: 4, Later: []spend.Price{{InputPer1M: 5, EffectiveFrom: time.UnixMilli(1)}}}}}
	for name, want := range map[string]exact.Money{
		"gpt-5": 1, "gpt-5-2025-01-01": 2, "gpt-5-2025-08-07": 1, "gpt-5-latest": 1, "gpt-5-20250807:free": 1, "gpt-5-pro": 3, "gpt-5-pro-2025-10-06": 3, "later": 5,
		"gpt-5-mini": 0, "gpt-5.4": 0, "my-gpt-5": 0, "gpt-5:online": 0, "gpt": 0, "": 0, "openai/gpt-5": 0, "gpt-5-2025-13-45": 0, "-latest": 0,
	} {
		if p, known := table.Find(name); known != (want != 0) || p.InputPer1M != want {
			t.Errorf("%q: %v, %t, want %v", name, p.InputPer1M, known, want)
		}
	}
	var none *spend.PriceTable
	if _, known := none.Find("gpt-5"); known {
		t.Error("no table has a price")
	}
	if got := spend.PriceNames("m-2024-07-18:free"); !slices.Equal(got, []string{"m-2024-07-18:free", "m-2024-07-18", "m"}) {
		t.Errorf("%q", got)
	}
}

// TestNoOtherPrice: whatever is put behind or before a model's name, its price holds
// only if that is one of the known ends.
func TestNoOtherPrice(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 1))
	table := &spend.PriceTable{Prices: map[string]spend.Price{"gpt-5": {InputPer1M: 1}}}
	letters := []rune("abcdefghijklmnopqrstuvwxyz.-:/")
	word := func() string {
		w := make([]rune, 1+rng.IntN(6))
		for i := range w {
			w[i] = letters[rng.IntN(len(letters))]
		}
		return string(w)
	}
	for range 20_000 {
		w := word()
		for _, name := range []string{"gpt-5" + w, "gpt-5-" + w, "gpt-5:" + w, w + "gpt-5", w + "-gpt-5"} {
			end, _ := strings.CutPrefix(name, "gpt-5")
			if strings.HasSuffix(end, "latest") || strings.HasSuffix(end, ":free") {
				continue
			}
			if _, known := table.Find(name); known {
				t.Fatalf("seed %d: %q has the price of gpt-5", seed, name)
			}
			if spend.SameModel("gpt-5", name) && !strings.HasSuffix(name, "/gpt-5") {
				t.Fatalf("seed %d: %q is taken for gpt-5", seed, name)
			}
		}
	}
}

// TestCalledOf: as which model an answer is charged, and how that is told.
func TestCalledOf(t *testing.T) {
	for _, c := range []struct{ asked, answered, model, text string }{
		{"openai/gpt-5", "", "openai/gpt-5", "openai/gpt-5"},
		{"openai/gpt-5", "gpt-5-2025-08-07", "openai/gpt-5", "openai/gpt-5"},
		{"openai/gpt-5", "gpt-5-pro", "gpt-5-pro", "gpt-5-pro (which answered for openai/gpt-5)"},
	} {
		if got := spend.CalledOf(c.asked, c.answered); got.Model != c.model || got.String() != c.text || got.Answered != c.answered {
			t.Errorf("%q answers for %q: %+v, %s", c.answered, c.asked, got, got)
		}
	}
}
