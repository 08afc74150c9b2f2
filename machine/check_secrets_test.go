package machine_test

import (
	"strings"
	"testing"

	"github.com/dialai/dialai/machine"
)

// TestSecrets: what looks like a secret is refused where a name or a prompt stands,
// at every level, and shown in no problem. Without a check nothing is.
func TestSecrets(t *testing.T) {
	text := `{"machineName":"m","initialState":"a","goalState":"b","states":{
		"a":{"prompt":"KEY","transitions":{"x":"b"},"specialists":[{"role":"proposer","specialistId":"s","strategyWebhookUrl":"https://x.example/?KEY","webhookTokenName":"W","webhookSecretName":"KEY"}]},
		"b":{}},
		"specialists":[{"role":"proposer","specialistId":"p","strategyFn":"KEY"},{"role":"proposer","specialistId":"q","contextFn":"KEY","modelId":"m"},
			{"role":"arbiter","specialistId":"r","strategyFnName":"KEY"}]}`
	holds := func(s string) bool { return strings.Contains(s, "KEY") }
	strategies := func(machine.Role) []string { return []string{"first"} }
	_, err := machine.Parse("m.json", []byte(text), machine.Checks{Secret: holds, Strategies: strategies})
	if err == nil {
		t.Fatal("nothing is found")
	}
	said := err.Error()
	for _, want := range []string{"webhookSecretName holds", `the prompt of state "a" holds`, "strategyFn holds", "contextFn holds", "strategyFnName holds"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is missing in\n%s", want, said)
		}
	}
	if holds(said) || strings.Contains(said, "strategyWebhookUrl") {
		t.Errorf("it says\n%s", said)
	}
	if _, err := machine.Parse("m.json", []byte(text), machine.Checks{}); err != nil {
		t.Errorf("without a check: %v", err)
	}
}
