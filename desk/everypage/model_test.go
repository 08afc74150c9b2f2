package everypage_test

import (
	"testing"

	"github.com/dialai/dialai/desk/desktest"
	"github.com/dialai/dialai/llm/llmtest"
)

// reader is a voter who is a model, in a machine of [modelled].
const reader = `{"role":"proposer","specialistId":"reader","contextFn":"sessionContext","modelId":"acme/<b>reader</b>"},`

// modelled starts a server whose models answer as a test says.
func modelled(t *testing.T, reply func(c llmtest.Call) llmtest.Reply) *desktest.Server {
	t.Helper()
	models, err := llmtest.Start(func(_ int, c llmtest.Call) llmtest.Reply { return reply(c) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = models.Close() })
	return desktest.Serve(t, "DIALAI_LLM_BASE_URL="+models.URL)
}

// proposes is a model that proposes the first that it may, with what it says.
func proposes(says string) func(c llmtest.Call) llmtest.Reply {
	return func(c llmtest.Call) llmtest.Reply {
		if len(c.Tools) == 0 {
			return llmtest.Reply{Text: says}
		}
		return llmtest.Reply{Text: says, Tools: []llmtest.Tool{{Name: c.Tools[0], Args: "{}"}}}
	}
}
