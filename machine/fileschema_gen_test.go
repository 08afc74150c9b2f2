package machine_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dialai/dialai/machine"
)

// bases are valid documents; together they hold every field.
var bases = []string{
	minimal,
	`{"machineName":"m","initialState":"a","defaultState":"b","consensusThreshold":0.5,"requireTrust":true,
	  "states":{"a":{"prompt":"p","transitions":{"t":{"target":"b","description":"d","irreversible":true,"parameters":{"type":"object"}},"u":"a"},
	    "consensusThreshold":0,"requireTrust":false,"irreversible":true,"risk":{"maxError":0.1},"solicit":"eager",
	    "specialists":[{"role":"proposer","specialistId":"p","disabled":true},{"role":"arbiter","specialistId":"r"}],
	    "guards":{"limits":{"max_steps":3},"cost":{"max_dollars_per_task":1.5},"loop_detection":{"max_state_visits":0},"retry":{"max_attempts":2},
	      "packs":{"pii":false},"batch_loop":{"ladder":{"steer":2,"stop":4}},"truth":{"model":"m","when":["t"]},"classifier":false}},
	   "b":{"final":false},"x-c":{"final":true}},
	  "specialists":[{"role":"proposer","specialistId":"p","strategyFnName":"random","timeout":"5s"},{"role":"arbiter","specialistId":"r","strategyFnName":"bayes"}],
	  "x-note":{"anything":[null]}}`,
	`{"machineName":"m","initialState":"a","goalState":"a","states":{"a":{}},
	  "guards":{"profile":"strict","limits":{"max_steps":1,"max_tokens_per_step":2,"max_total_tokens":3,"cap_basis":"progress"},
	    "cost":{"version":"1","prices":{"x-model":{"input_per_1m":1,"output_per_1m":0.25,"cache_read_per_1m":0,"cache_write_5m_per_1m":0,"cache_write_1h_per_1m":0,
	      "reasoning_per_1m":0,"audio_in_per_1m":0,"audio_out_per_1m":0,"per_call":0,"input_includes_cached":false,"effective_from":"2026-01-31","aliases":["y"],
	      "tiers":[{"above_tokens":1,"input_per_1m":2}]}},"on_unknown_model":"abort","max_dollars_per_task":0},
	    "forbidden_patterns":["a b"],"schema":{"type":"object"},
	    "packs":{"secrets":{"action":"abort","on":["output","args","results"]},"pii":null,"prompt_injection":{}},
	    "tool_calls":{"allowed":["t"],"arg_schemas":{"t":{}},"mutex":[["t","u"]],"mutex_scope":"step","blast_radius":{"t":1},
	      "sequence":[{"tool":"t","requires_prev":"u"}],"tools":{"t":{"loop_key":["a"],"volatile":[],"poll":true,"exempt":false}}},
	    "loop_detection":{"mode":"off","cycle":{"max_period":2},"near":{"jaccard":0.5},"max_output_repeats":1},
	    "batch_loop":{"hardLimit":4,"warnThreshold":2,"windowSize":9,"onLoop":"error","warningMessage":"w","hardStopMessage":"h"},
	    "budget":{"hard_limit_tokens":5,"hard_limit_usd":1,"mode":"observe","debit_probes":false,"probe_share_max":0.5,"reserve_mode":"static"},"retry":{},"store":{"history_limit":1}},
	  "risk":{"maxError":0.05,"confidence":0.95,"test":"clopperPearson","familywise":true},
	  "solicit":{"mode":"sequential","timeout":"30s","roundTimeout":"1m","asyncTimeout":"1h","maxParallel":4,"wave":2,"champion":true},
	  "specialists":[
	    {"role":"proposer","specialistId":"fn","strategyFn":"mine","machineName":"m","threshold":0.5,"enabled":true},
	    {"role":"proposer","specialistId":"hook","strategyWebhookUrl":"https://example.com/p","webhookTokenName":"T","webhookSecretName":"S","estimatedCostUSD":0.01},
	    {"role":"proposer","specialistId":"llm","contextFn":"sessionContext","modelId":"a/b","provider":"openai"},
	    {"role":"proposer","specialistId":"ctx","contextWebhookUrl":"http://example.com","modelId":"a/b","webhookTokenName":"T"},
	    {"role":"proposer","specialistId":"person","isHuman":true},
	    {"role":"arbiter","specialistId":"judge","strategyWebhookUrl":"https://[::1]:80/a?b#c","webhookTokenName":"T"},
	    {"role":"arbiter","specialistId":"second","strategyFnName":"firstProposal","enabled":true,"disabled":false}]}`,
	`{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"transitions":{"t":"b"}},"b":{}},"guards":{
	    "classifier":{"url":"https://example.com/c","token_name":"T","on_error":"closed","model":"m","timeout_ms":9,"breaker":{"failures":2,"pause_ms":3},"cache":0,"context_turns":2},
	    "truth":{"model":"a/b","probe_model":"c/d","thresholds":{"tau_u":0.5,"tau_s":0,"tau_a":1},"estimator":"process_reward_verifier","strict":false,"short_circuit":true,"when":"all",
	      "prm_options":{"aggregator":"mean","max_steps":3,"max_step_chars":9,"parse_failure_score":0.5,"step_splitter":"x","critique_template":"{{step}}","merge_tail":false,"strict_score":true}}}}`,
	`{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"deciders":["group:g","s"],"specialists":[{"role":"proposer","specialistId":"s","isHuman":true},{"role":"arbiter","specialistId":"r"}],
	    "transitions":{"t":{"target":"b","when":"= data.n > 0","set":{"n":"= data.n - 1","text":"==","list":[1]},"approvals":{"count":2,"from":["h","group:g"],"each":["group:g"],"exclude":["starter","previous","a"]}},
	      "u":{"target":"b","approvals":1}}},"b":{}},"input":{"type":"object"},"subject":"= data.name","groups":{"g":["h","i"]},
	  "specialists":[{"role":"proposer","specialistId":"h","isHuman":true},{"role":"proposer","specialistId":"i","isHuman":true}]}`,
}

const minimal = `{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"transitions":{"t":"b"}},"b":{}}}`

func parseDoc(t testing.TB, text string) any {
	var doc any
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// A place is one value of a document: doc as seen from above, by keys.
type place []string

func (p place) String() string {
	if len(p) == 0 {
		return "/"
	}
	return "/" + strings.Join(p, "/")
}

// get returns the value at p, or false.
func get(doc any, p place) (any, bool) {
	for _, key := range p {
		switch v := doc.(type) {
		case map[string]any:
			next, ok := v[key]
			if !ok {
				return nil, false
			}
			doc = next
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(v) {
				return nil, false
			}
			doc = v[i]
		default:
			return nil, false
		}
	}
	return doc, true
}

// removed as a value says that there is none.
type removed struct{}

// with returns a copy of doc in which the value at p is v.
func with(doc any, p place, v any) any {
	if len(p) == 0 {
		return v
	}
	switch d := doc.(type) {
	case map[string]any:
		d = maps.Clone(d)
		d[p[0]] = with(d[p[0]], p[1:], v)
		if d[p[0]] == any(removed{}) {
			delete(d, p[0])
		}
		return d
	case []any:
		i, _ := strconv.Atoi(p[0])
		d = slices.Clone(d)
		d[i] = with(d[i], p[1:], v)
		if d[i] == any(removed{}) {
			return slices.Delete(d, i, i+1)
		}
		return d
	}
	return doc
}

// places returns every value of a document but the root, in a fixed order.
func places(doc any, here place) []place {
	var all []place
	add := func(key string, v any) {
		p := append(slices.Clone(here), key)
		all = append(append(all, p), places(v, p)...)
	}
	switch v := doc.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			add(key, v[key])
		}
	case []any:
		for i, item := range v {
			add(strconv.Itoa(i), item)
		}
	}
	return all
}

// kinds says which object of the schema stands where; * is any key.
var kinds = map[string]string{
	"/": "", "/states/*/transitions/*/approvals": "approvals", "/states/*": "state", "/states/*/transitions/*": "transitionObject",
	"/specialists/*": "specialist", "/states/*/specialists/*": "specialist",
	"/risk": "risk", "/states/*/risk": "risk", "/solicit": "solicitObject", "/states/*/solicit": "solicitObject",
	"/guards": "guards", "/states/*/guards": "stateGuards",
	"/guards/limits": "limits", "/guards/cost": "cost", "/guards/loop_detection": "loopDetection",
	"/guards/retry": "retry", "/guards/store": "store", "/guards/cost/prices/*": "price", "/guards/cost/prices/*/tiers/*": "tier",
	"/guards/tool_calls": "toolCalls", "/guards/batch_loop": "batchLoop", "/guards/budget": "budget",
	"/guards/packs": "packs", "/states/*/guards/packs": "packs", "/guards/packs/*": "pack",
	"/guards/classifier": "classifier", "/guards/classifier/breaker": "breaker", "/guards/truth": "truth", "/states/*/guards/truth": "truth",
	"/guards/truth/thresholds": "thresholds", "/guards/truth/prm_options": "prmOptions",
}

// freeNames are the objects whose keys are names of the user's own, with a value
// that one of them may have.
var freeNames = map[string]any{"/groups": []any{"h"}, "/states/*/transitions/*/set": 1.0, "/input": "", "/states": map[string]any{}, "/states/*/transitions": "a", "/guards/cost/prices": map[string]any{},
	"/guards/tool_calls/arg_schemas": map[string]any{}, "/guards/tool_calls/blast_radius": 1.0, "/guards/tool_calls/tools": map[string]any{}}

// pattern returns p with * for every key that is a name of the user's own.
func (p place) pattern() string {
	p = slices.Clone(p)
	for i := 1; i < len(p); i++ {
		switch p[i-1] {
		case "states", "groups", "set", "specialists", "transitions", "prices", "tiers", "arg_schemas", "blast_radius", "tools", "packs":
			p[i] = "*"
		}
	}
	return p.String()
}

// types are put in the place of every value.
var types = []any{nil, true, false, 0.0, 1.0, -1.0, 0.5, "", "x", []any{}, []any{nil}, map[string]any{}, map[string]any{"x-a": nil, "x-": nil}}

// Boundaries of the kinds of values that fields hold.
var (
	names = []any{"a", "b", "m", "m:1", "__a", "_", "_a", "__", " a", "a ", "a b", "a\u0000", "\u007f", "a\u0085", "\u00a0a", "a\u3000", "ä\u2028ö", "\ufeffa", "ä",
		strings.Repeat("é", 128), strings.Repeat("é", 129)}
	longTexts  = []any{strings.Repeat("é", 128), strings.Repeat("é", 129), strings.Repeat("n", 256), strings.Repeat("n", 257), strings.Repeat("p", 4096), strings.Repeat("p", 4097)}
	numbers    = []any{-0.25, 4e-10, 5e-10, 8.0, 9.0, 50.0, 51.0, 100.0, 101.0, 1000.0, 1001.0, 1.5, 2.0, 256.0, 257.0, 10000.0, 10001.0, 1e300, 9007199254740992.0, 9007199254740994.0, 9223372.036854774, 9223372.036854776}
	durations  = []any{"30s", "1h30m", "+1.5h", ".5s", "1.s", "0s", "-5s", "5", "5 s", "1d", "s", "8760h", "8760h1ns", "0.0000000001s", "99999999999h", "1µs", "1μs"}
	addresses  = []any{"https://example.com", "HTTP://example.com:80/x?y=@#@", "ftp://example.com", "https://u@example.com", "https://:80", "https://h:65535", "https://h:65536", "https://", "https:x", "//x", "https://[]", "https://[::1", "https://exa mple.com", "https://%zz"}
	strategyFn = []any{"f", "=", "=\"t\"", "= \"t\" " + strings.Repeat(" ", 1018), "= \"t\" " + strings.Repeat(" ", 1019)}
	builtIn    = []any{"firstAvailable", "lastAvailable", "random", "alignmentMargin", "firstProposal", "Random"}
	choices    = []any{"proposer", "arbiter", "Proposer", "all", "eager", "sequential", "ALL", "eProcess", "clopperPearson", "strict", "compat", "spend", "progress", "skip", "warn", "estimate_max", "abort", "any_ngram", "overlap", "off", "task", "step", "steps", "entries", "transitions", "continue", "end", "error", "hard_kill", "observe", "static", "adaptive", "escalate", "output", "args", "results"}
)

// boundaries says which values are tried in which fields, beside types; a key of
// states, transitions or prices is "*".
var boundaries = func() map[string][]any {
	all := map[string][]any{"strategyFn": strategyFn, "strategyFnName": builtIn, "*": {"a", "b", map[string]any{"target": "b"}}}
	for _, g := range []struct {
		values []any
		fields string
	}{
		{names, "machineName initialState goalState defaultState specialistId target"},
		{longTexts, "description prompt modelId webhookTokenName webhookSecretName provider contextFn"},
		{numbers, "consensusThreshold threshold maxError confidence maxParallel wave estimatedCostUSD max_steps max_tokens_per_step max_total_tokens input_per_1m output_per_1m cache_read_per_1m per_call above_tokens max_dollars_per_task max_state_visits max_attempts history_limit output_min output_max ngram_size max_repeats max_output_repeats ttl_ms max_period repeats overlap_ratio jaccard hardLimit warnThreshold windowSize hard_limit_tokens hard_limit_usd soft_limit_usd no_progress_ms probe_share_max reserve_ttl_ms tau_u tau_s tau_a parse_failure_score max_step_chars timeout_ms failures pause_ms cache context_turns"},
		{durations, "timeout roundTimeout asyncTimeout"},
		{addresses, "strategyWebhookUrl contextWebhookUrl"},
		{choices, "role mode test solicit profile cap_basis on_unknown_model mutex_scope visit_counting onLoop reserve_mode action on"},
	} {
		for _, f := range strings.Fields(g.fields) {
			all[f] = g.values
		}
	}
	return all
}()

// valuesFor returns what is tried at p.
func valuesFor(p place) []any {
	if len(p) == 0 {
		return types
	}
	own := boundaries[p[len(p)-1]]
	if len(p) > 1 && slices.Contains([]string{"states", "transitions", "prices"}, p[len(p)-2]) {
		own = boundaries["*"]
	}
	return slices.Concat(types, own)
}

// A mutation is one change to a document, and its name for messages.
type mutation struct {
	at    place
	value any
}

func (m mutation) String() string {
	if m.value == any(removed{}) {
		return "without " + m.at.String()
	}
	data, _ := json.Marshal(m.value)
	if len(data) > 80 {
		data = fmt.Appendf(data[:80], "… (%d bytes)", len(data))
	}
	return fmt.Sprintf("%s = %s", m.at, data)
}

// mutations returns every single change that the tests make to a document: each
// value removed and replaced, each field that an object could have added, names
// of every form added to what has free names, and unknown fields everywhere.
func mutations(root schemaNode, doc any) []mutation {
	var all []mutation
	each := func(p place) {
		for _, v := range valuesFor(p) {
			all = append(all, mutation{p, v})
		}
	}
	for _, p := range append(places(doc, nil), place{}) {
		if len(p) > 0 {
			all = append(all, mutation{p, removed{}})
		}
		each(p)
		here, _ := get(doc, p)
		members, isObject := here.(map[string]any)
		if !isObject {
			continue
		}
		for _, name := range []string{"zzz", "x-", "x-zzz", "x-\n", "X-zzz", "$schema", "name", "truth", "", "__proto__"} {
			all = append(all, mutation{append(slices.Clone(p), name), true})
		}
		if free := freeNames[p.pattern()]; free != nil {
			for _, name := range names {
				all = append(all, mutation{append(slices.Clone(p), name.(string)), free})
			}
		}
		if kind, known := kinds[p.pattern()]; known {
			for _, name := range propertyNames(root, kind) {
				if _, has := members[name]; !has {
					each(append(slices.Clone(p), name))
				}
			}
		}
	}
	return all
}

// randomly applies a few random mutations, biased to the switches and modes of
// specialists, whose rules depend on one another.
func randomly(rng *rand.Rand, root schemaNode, doc any) (any, []mutation) {
	var done []mutation
	for range 1 + rng.IntN(1+rng.IntN(5)) { // one is often too many already
		at := append(places(doc, nil), place{})
		p := at[rng.IntN(len(at))]
		m := mutation{at: p}
		kind, known := kinds[p.pattern()]
		if v, _ := get(doc, p); known && rng.IntN(4) > 0 && isObject(v) {
			names := propertyNames(root, kind)
			m.at = append(slices.Clone(p), names[rng.IntN(len(names))])
		}
		values := valuesFor(m.at)
		if m.value = values[rng.IntN(len(values))]; rng.IntN(6) == 0 && len(m.at) > 0 {
			m.value = removed{}
		}
		if kind == "specialist" && rng.IntN(4) > 0 {
			m = specialistMutation(rng, p)
		}
		doc = with(doc, m.at, m.value)
		done = append(done, m)
	}
	return doc, done
}

func isObject(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

// specialistMutation gives one of the fields that rules combine a value that is
// valid by itself.
func specialistMutation(rng *rand.Rand, p place) mutation {
	fields := []struct {
		name   string
		values []any
	}{
		{"role", []any{"proposer", "arbiter"}}, {"isHuman", []any{true, false}},
		{"enabled", []any{true, false}}, {"disabled", []any{true, false}},
		{"strategyFn", []any{"f", ""}}, {"strategyFnName", []any{"random", "firstProposal", ""}},
		{"strategyWebhookUrl", []any{"https://a.example", ""}}, {"contextWebhookUrl", []any{"https://a.example", ""}},
		{"contextFn", []any{"f", ""}}, {"modelId", []any{"a/b", ""}}, {"agent", []any{"claude", ""}}, {"webhookTokenName", []any{"T", ""}},
		{"threshold", []any{0.5}}, {"timeout", []any{"1s"}}, {"machineName", []any{"m", ""}},
	}
	f := fields[rng.IntN(len(fields))]
	return mutation{append(slices.Clone(p), f.name), f.values[rng.IntN(len(f.values))]}
}

func mustParse(t testing.TB, name, text string) *machine.Machine {
	t.Helper()
	m, err := machine.Parse(name, []byte(text), checks())
	if err != nil {
		t.Fatal(err)
	}
	return m
}
