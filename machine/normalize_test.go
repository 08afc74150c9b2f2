package machine_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/dialai/dialai/machine"
)

// TestDigest pins the canonical form and its digest: hex SHA-256 of compact
// JSON, fixed members in their order, states and transitions as written.
func TestDigest(t *testing.T) {
	const want = `{"machineName":"document-review","initialState":"pending","goalState":"approved","states":{` +
		`"pending":{"prompt":"Review the document. Approve or request changes?","transitions":{"approve":{"target":"approved"},"reject":{"target":"rejected"}}},` +
		`"approved":{},"rejected":{}},"specialists":[` +
		`{"role":"proposer","specialistId":"ai-proposer","strategyFnName":"firstAvailable"},` +
		`{"role":"arbiter","specialistId":"consensus-arbiter","strategyFnName":"alignmentMargin","threshold":0.5}]}`
	m := mustParse(t, "machine.json", review)
	if got := string(m.JSON()); got != want {
		t.Errorf("the canonical form is\n%s\nwant\n%s", got, want)
	}
	if m.Digest() != digestOf(want) || m.Digest() != "acf7321b7b1d4be3563c296c02264a857477817cef8320ee3000554ed71aaf0e" {
		t.Errorf("the digest is %s, want %s", m.Digest(), digestOf(want))
	}
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// normalForms are files and what their normal form is.
var normalForms = []struct{ what, text, want string }{
	{"defaultState is goalState", `{"machineName":"m","initialState":"a","defaultState":"b","states":{"a":{},"b":{}}}`,
		`{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{},"b":{}}}`},
	{"both, equal", `{"defaultState":"b","machineName":"m","goalState":"b","initialState":"a","states":{"a":{},"b":{}}}`,
		`{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{},"b":{}}}`},
	{"members of states in their order", `{"machineName":"m","initialState":"a","goalState":"a","states":{"a":{"final":true,"irreversible":true,"solicit":"all","risk":{"confidence":0.5,"maxError":1e-1},"guards":{"limits":{"max_steps":1.50e1}},"requireTrust":false,"specialists":[],"consensusThreshold":0.0,"transitions":{"2":"a","1":{"irreversible":true,"parameters":{"type":"object","const":1E2},"description":"d","target":"a"}},"prompt":"p"}}}`,
		`{"machineName":"m","initialState":"a","goalState":"a","states":{"a":{"prompt":"p","transitions":{"2":{"target":"a"},"1":{"target":"a","description":"d","parameters":{"type":"object","const":100},"irreversible":true}},"consensusThreshold":0,"specialists":[],"requireTrust":false,"guards":{"limits":{"max_steps":15}},"risk":{"maxError":0.1,"confidence":0.5},"solicit":{"mode":"all"},"irreversible":true,"final":true}}}`},
	{"members of specialists in their order", `{"machineName":"m","initialState":"a","goalState":"a","states":{"a":{}},"specialists":[{"provider":"o","webhookSecretName":"S","estimatedCostUSD":0.0000010,"timeout":"90s","threshold":0.50,"webhookTokenName":"T","strategyWebhookUrl":"https://example.com","isHuman":false,"machineName":"m","specialistId":"s","role":"proposer"},{"role":"proposer","specialistId":"h","isHuman":true},{"role":"proposer","specialistId":"c","modelId":"m","contextFn":"f"},{"role":"proposer","specialistId":"u","webhookTokenName":"T","modelId":"m","contextWebhookUrl":"https://example.com"}]}`,
		`{"machineName":"m","initialState":"a","goalState":"a","states":{"a":{}},"specialists":[{"role":"proposer","specialistId":"s","machineName":"m","strategyWebhookUrl":"https://example.com","webhookTokenName":"T","threshold":0.5,"timeout":"1m30s","estimatedCostUSD":0.000001,"webhookSecretName":"S","provider":"o"},{"role":"proposer","specialistId":"h","isHuman":true},{"role":"proposer","specialistId":"c","contextFn":"f","modelId":"m"},{"role":"proposer","specialistId":"u","contextWebhookUrl":"https://example.com","modelId":"m","webhookTokenName":"T"}]}`},
	{"switches become disabled", `{"machineName":"m","initialState":"a","goalState":"a","states":{"a":{"specialists":[{"role":"proposer","specialistId":"1","enabled":false}]}},"specialists":[{"role":"proposer","specialistId":"1","strategyFn":"f","enabled":true},{"role":"proposer","specialistId":"2","strategyFn":"f","enabled":false},{"role":"proposer","specialistId":"3","strategyFn":"f","disabled":false},{"role":"proposer","specialistId":"4","strategyFn":"f","disabled":true,"enabled":false}]}`,
		`{"machineName":"m","initialState":"a","goalState":"a","states":{"a":{"specialists":[{"role":"proposer","specialistId":"1","disabled":true}]}},"specialists":[{"role":"proposer","specialistId":"1","strategyFn":"f"},{"role":"proposer","specialistId":"2","disabled":true,"strategyFn":"f"},{"role":"proposer","specialistId":"3","strategyFn":"f"},{"role":"proposer","specialistId":"4","disabled":true,"strategyFn":"f"}]}`},
	{"the machine's arbiter without a mode", `{"machineName":"m","initialState":"a","goalState":"a","states":{"a":{"specialists":[{"role":"arbiter","specialistId":"r"}]}},"specialists":[{"role":"arbiter","specialistId":"r","strategyFnName":"","threshold":0.25},{"role":"arbiter","specialistId":"s","strategyFn":"f"}]}`,
		`{"machineName":"m","initialState":"a","goalState":"a","states":{"a":{"specialists":[{"role":"arbiter","specialistId":"r"}]}},"specialists":[{"role":"arbiter","specialistId":"r","strategyFnName":"alignmentMargin","threshold":0.25},{"role":"arbiter","specialistId":"s","strategyFn":"f"}]}`},
	{"machine members in their order", `{"solicit":{"champion":false,"wave":2.0,"maxParallel":1e1,"asyncTimeout":"48h","roundTimeout":"60s","timeout":"1500ms","mode":"eager"},"risk":{"maxError":0.05,"test":"eProcess","familywise":true},"guards":{},"requireTrust":true,"consensusThreshold":0.123456789012,"specialists":[],"states":{"a":{"transitions":{}}},"goalState":"a","initialState":"a","machineName":"m"}`,
		`{"machineName":"m","initialState":"a","goalState":"a","states":{"a":{"transitions":{}}},"specialists":[],"consensusThreshold":0.123456789012,"requireTrust":true,"guards":{},"risk":{"maxError":0.05,"confidence":0.9,"test":"eProcess","familywise":true},"solicit":{"mode":"eager","timeout":"1.5s","roundTimeout":"1m0s","asyncTimeout":"48h0m0s","maxParallel":10,"wave":2,"champion":false}}`},
	{"false and empty members are absent", `{"machineName":"m","initialState":"a","goalState":"a","states":{"a":{"prompt":"","final":false,"optionOrder":"","transitions":{"t":{"target":"a","description":""}}}}}`,
		`{"machineName":"m","initialState":"a","goalState":"a","states":{"a":{"transitions":{"t":{"target":"a"}}}}}`},
	{"what is said to be reversible stays so", `{"machineName":"m","initialState":"a","goalState":"a","states":{"a":{"irreversible":false,"transitions":{"t":{"irreversible":false,"target":"a"}}}}}`,
		`{"machineName":"m","initialState":"a","goalState":"a","states":{"a":{"transitions":{"t":{"target":"a","irreversible":false}},"irreversible":false}}}`},
	{"oversight with its defaults", `{"machineName":"m","initialState":"a","goalState":"a","learnFrom":"humansAndRounds","stacking":"off","optionOrder":"random","secondHuman":{},"audit":{},"collapse":{},"solicit":{"humanCost":0.50,"wave":"auto"},"states":{"a":{"optionOrder":"declared","secondHuman":{"when":"before","irreversibleRate":0,"rate":1},"audit":{"newcomer":1e1,"mode":"before"},"collapse":{"expires":"48h","coolDown":5,"errorCost":2,"prune":true,"requireBlind":false,"classTarget":0.6,"alpha":0.01,"target":0.8}}}}`,
		`{"machineName":"m","initialState":"a","goalState":"a","states":{"a":{"collapse":{"target":0.8,"alpha":0.01,"classTarget":0.6,"requireBlind":false,"prune":true,"errorCost":2,"coolDown":5,"expires":"48h0m0s"},"audit":{"mode":"before","rate":0.05,"newcomerRate":0.25,"newcomer":10},"secondHuman":{"rate":1,"irreversibleRate":0,"when":"before"},"optionOrder":"declared"}},"solicit":{"wave":"auto","humanCost":0.5},"collapse":{"target":0.9,"alpha":0.05,"classTarget":0.5,"requireBlind":true,"coolDown":20,"expires":"720h0m0s"},"audit":{"mode":"after","rate":0.05,"newcomerRate":0.25,"newcomer":40},"secondHuman":{"rate":0.05,"irreversibleRate":1,"when":"after"},"optionOrder":"random","stacking":"off","learnFrom":"humansAndRounds"}`},
	{"strings as RFC 8785 has them", `{"machineName":"\u00e9\/<","initialState":"\"","goalState":"\"","states":{"\"":{"prompt":"\t\n\\"}}}`,
		"{\"machineName\":\"é/<\",\"initialState\":\"\\\"\",\"goalState\":\"\\\"\",\"states\":{\"\\\"\":{\"prompt\":\"\\t\\n\\\\\"}}}"},
}

func TestNormalForm(t *testing.T) {
	for _, c := range normalForms {
		m := mustParse(t, "m.json", c.text)
		if got := string(m.JSON()); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.what, got, c.want)
		}
		if m.Digest() != digestOf(c.want) {
			t.Errorf("%s: the digest is not that of the normal form", c.what)
		}
		sameAgain(t, m)
	}
}

// sameAgain fails unless reading the normal form gives it again.
func sameAgain(t *testing.T, m *machine.Machine) {
	t.Helper()
	for _, name := range []string{"m.json", "m.yaml"} {
		again, err := machine.Parse(name, m.JSON(), checks())
		if err != nil {
			t.Errorf("the normal form %s is refused: %v", m.JSON(), err)
			return
		}
		if string(again.JSON()) != string(m.JSON()) || again.Digest() != m.Digest() {
			t.Errorf("%s: the normal form %s becomes %s", name, m.JSON(), again.JSON())
		}
	}
}

// TestNormalizationIsIdempotent takes whatever random documents are accepted.
func TestNormalizationIsIdempotent(t *testing.T) {
	t.Parallel()
	root := publishedSchema(t)
	const seed = 20260103
	rng := rand.New(rand.NewPCG(seed, 0))
	accepted := 0
	for range 4000 / stride {
		doc, done := randomly(rng, root, parseDoc(t, bases[rng.IntN(len(bases))]))
		data, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		m, err := machine.Parse("m.json", data, checks())
		if err != nil {
			continue
		}
		accepted++
		if sameAgain(t, m); t.Failed() {
			t.Fatalf("seed %d: %v", seed, done)
		}
	}
	if accepted < 100/stride {
		t.Errorf("only %d random documents were accepted", accepted)
	}
}

// TestDigestTellsMachinesApart: order is meaning, layout is not.
func TestDigestTellsMachinesApart(t *testing.T) {
	digest := func(text string) string { return mustParse(t, "m.json", text).Digest() }
	base := digest(`{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"transitions":{"t":"b","u":"a"}},"b":{}}}`)
	for _, same := range []string{
		"{\"states\":\n{\"a\":{\"transitions\":{\"\\u0074\":{\"target\":\"b\"},\"u\":\"a\"}},\"b\":{}},\"machineName\":\"m\",\"goalState\":\"b\",\"initialState\":\"a\"}",
		`{"machineName":"m","initialState":"a","defaultState":"b","x-a":1,"states":{"a":{"x-b":2,"transitions":{"t":"b","u":"a"}},"b":{"final":false}}}`,
	} {
		if digest(same) != base {
			t.Errorf("%s is another machine", same)
		}
	}
	for _, other := range []string{
		`{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"transitions":{"u":"a","t":"b"}},"b":{}}}`,
		`{"machineName":"m","initialState":"a","goalState":"b","states":{"b":{},"a":{"transitions":{"t":"b","u":"a"}}}}`,
		`{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"transitions":{"t":"b","u":"a"}},"b":{}},"specialists":[]}`,
		`{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"transitions":{"t":"b","u":"a"}},"b":{"transitions":{}}}}`,
		`{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"transitions":{"t":"b","u":"a"}},"b":{}},"guards":{}}`,
	} {
		if digest(other) == base {
			t.Errorf("%s is the same machine", other)
		}
	}
}

// TestCanonicalText: the canonical form escapes what RFC 8785 does and nothing else, in
// texts and sections alike, and has no -0.
func TestCanonicalText(t *testing.T) {
	const text = `\u2028 \\u2028 \\\u2029 <>& \u007f \ufffd \"wave\":-1,\"states\":null`
	const canonical = "\u2028 \\\\u2028 \\\\\u2029 <>& \x7f \uFFFD \\\"wave\\\":-1,\\\"states\\\":null"
	m, err := machine.Parse("m.json", []byte(`{"states":{"a":{"transitions":{"t":{"target":"b"}},"prompt":"`+text+`"},"b":{}},"secondHuman":{"irreversibleRate":-0},
		"guards":{"x":"`+text+`"},"solicit":{"wave":"auto"},"goalState":"b","initialState":"a","machineName":"m"}`), machine.Checks{Stored: true})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"prompt":"` + canonical + `","transitions":{"t":{"target":"b"}}},"b":{}},"guards":{"x":"` + canonical +
		`"},"solicit":{"wave":"auto"},"secondHuman":{"rate":0.05,"irreversibleRate":0,"when":"after"}}`
	if string(m.JSON()) != want {
		t.Errorf("it is\n%s, want\n%s", m.JSON(), want)
	}
}
