package machine_test

import (
	"slices"
	"testing"

	"github.com/dialai/dialai/machine"
)

// TestLintOfCases: members of data that nothing provides, wherever an expression reads
// them, and states that data could close.
func TestLintOfCases(t *testing.T) {
	const head = `{"machineName":"m","initialState":"a","goalState":"b","input":`
	const amount = `{"type":"object","properties":{"amount":{"type":"number"},"buyer":{"type":"object"}},"required":["amount","number","buyer"]}`
	const deep = `{"type":"object","properties":{"amount":{"type":"number"},"kind":{"enum":["private","trade"]},"urgent":{"type":"boolean"},"asked":{"type":"string"},"note":{"type":["string","null"]},"free":{"type":"object"},"one":true,"extra":true,"level":{"default":1},"buyer":{"type":"object","properties":{"age":{"type":"number"},"name":{"type":"string"},"tags":{"type":"array"}},"required":["name","tags"]}},"required":["amount","kind","urgent","asked","note","free","one","buyer"]}`
	const states = `,"states":{"a":{"transitions":{"t":"b"}},"b":{}}` + someone
	const optional = `{"type":"object","properties":{"n":{"type":"number"},"level":{"type":"number","default":2},"by":{"type":"string"},"buyer":{"properties":{"name":{"type":"string"},"age":{"type":"number"}},"required":["age"]},"mixed":{"type":"array","prefixItems":[true],"items":{"properties":{"x":true}}},"open":{"type":"array"},"object":{"type":"object","items":{"type":"number"}},` +
		`"lines":{"type":"array","items":{"type":"object","required":["sku","parts","free"],"properties":{"sku":{"type":"string"},"n":{"type":"number"},"free":{},"parts":{"items":{"properties":{"n":true}}}}}}},"required":["lines","mixed","open","object"]}`
	setting := func(parameters, expression string) string {
		if parameters != "" {
			parameters = `"parameters":` + parameters + `,`
		}
		return `{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"transitions":{"t":{"target":"b",` + parameters + `"set":{"x":` + expression + `}}}},"b":{}}` + someone
	}
	reading := func(input, expression string) string {
		return head + input + `,"states":{"a":{"transitions":{"t":"b","u":{"target":"b","when":` + expression + `,"set":{"asked":true}}}},"b":{}}` + someone
	}
	for _, c := range []struct {
		text string
		want []string
	}{
		{reading(amount, `▶"= data.amuont > 1.0"`), []string{`[INPUT001] the expression reads "amuont" of data, and input does not declare it and no transition sets it`}},
		{reading(amount, `▶"= data.asekd"`), []string{`[INPUT001] the expression reads "asekd" of data, and input does not declare it and no transition sets it`}},
		{reading(amount, `▶"= has(metaJson.asked)"`), []string{`[INPUT001] the expression reads "asked" of metaJson, and input does not declare it`}},
		{reading(amount, `"= data.amount > 1.0 && data.buyer.nobody && data.number == metaJson[\"number\"] && has(data.asked)"`), nil},
		{head + amount + `,"subject":▶"= data.title"` + states, []string{`[INPUT001] the expression reads "title" of data, and input does not declare it and no transition sets it`}},
		{head + amount + `,"states":{"a":{"transitions":{"t":{"target":"b","set":{"x":▶"= data.y","z":"= has(payload.y) ? payload.y + data.x : 0"}}}},"b":{}}` + someone,
			[]string{`[INPUT001] the expression reads "y" of data, and input does not declare it and no transition sets it`}},
		{head + amount + `,"states":{"a":{"transitions":{"t":"b"},"specialists":[{"role":"proposer","specialistId":"r","strategyFn":▶"= metaJson.amout > 1.0 ? \"t\" : \"t\""}]},"b":{}}}`,
			[]string{`[INPUT001] the expression reads "amout" of metaJson, and input does not declare it`}},
		{head + amount + `,"states":{"a":{"transitions":{"t":"b"}},"b":{}},"specialists":[{"role":"proposer","specialistId":"r","strategyFn":▶"= data.amout > 1.0 ? \"t\" : \"t\""}]}`,
			[]string{`[INPUT001] the expression reads "amout" of data, and input does not declare it and no transition sets it`}},

		// What is inside, and what the input never lets a member be.
		{reading(deep, `▶"= data.buyer.nmae == \"Ann\""`), []string{`[INPUT001] the expression reads "nmae" of data.buyer, and input does not declare it`}},
		{reading(deep, `▶"= metaJson[\"buyer\"][\"nmae\"] == \"Ann\""`), []string{`[INPUT001] the expression reads "nmae" of metaJson.buyer, and input does not declare it`}},
		{reading(deep, `▶"= \"amuont\" in data"`), []string{`[INPUT001] the expression reads "amuont" of data, and input does not declare it and no transition sets it`}},
		{reading(deep, `▶"= data.amount.total > 1"`), []string{`[INPUT001] the expression reads "total" of data.amount, and input says that this is a number`}},
		{reading(deep, `▶"= data.kind == \"prviate\""`), []string{`[INPUT001] the expression compares data.kind with "prviate", which is none of the values that input allows it`}},
		{reading(deep, `▶"= data.kind in [\"private\", \"z\"]"`), []string{`[INPUT001] the expression compares data.kind with "z", which is none of the values that input allows it`}},
		{reading(deep, `▶"= data.amount == \"5\""`), []string{`[INPUT001] the expression compares data.amount with a text, and input says that it is a number`}},
		{reading(deep, `▶"= data.amount"`), []string{`[INPUT001] the expression yields data.amount, and input says that it is a number, not true or false`}},
		{head + deep + `,"subject":▶"= data.amount"` + states, []string{`[INPUT001] the expression yields data.amount, and input says that it is a number, not a text`}},
		{reading(deep, `"= data.buyer.name == \"Ann\" && data.buyer.tags.all(t, t == \"x\") && data.free.anything && data.one.any && data.kind != \"private\" && data.kind in [\"trade\"] && data.amount == 5 && data.urgent && has(data.buyer.name) && data.asked == 5 && data.note == null"`), nil},
		{reading(deep, `"= data.urgent"`), nil},

		// Words of schemas that check nothing, and defaults that do nothing, or do harm.
		{head + `{"type":"object",▶"requird":["n"],"properties":{"n":{"type":"number",▶"minimun":0},"requird":{"x-mine":{},"const":{"typo":1}}}}` + states,
			[]string{`[unknown-keyword] JSON Schema has no keyword "requird", so it checks nothing`, `[unknown-keyword] JSON Schema has no keyword "minimun", so it checks nothing`}},
		{setting(`{"type":"object","anyOf":[{▶"requird":["amount"]}],"properties":{"amount":{"items":{"properties":{"a/b":{▶"typ":1}}}}}}`, `1`),
			[]string{`[unknown-keyword] JSON Schema has no keyword "requird", so it checks nothing`, `[unknown-keyword] JSON Schema has no keyword "typ", so it checks nothing`}},
		{head + `{"type":"object","required":["n"],"$defs":{"few":{"maximum":9}},"properties":{"n":{"type":"number",▶"default":1},"x":{"type":"number",▶"default":"x"},"y":{"$ref":"#/$defs/few",▶"default":10},"z":{"type":"integer","default":3}}}` + states,
			[]string{`[INPUT003] the default of "n" is never used: a session must be started with that member`, `[INPUT003] the default of "x" is not what its own schema wants: must be a number, not a text`,
				`[INPUT003] the default of "y" is not what its own schema wants: maximum: 10 is greater than 9`}},

		// What need not be there.
		{reading(optional, `▶"= data.n > 1"`), []string{`[INPUT002] the expression reads data.n without has(), and input does not require it: where it is missing the transition is closed`}},
		{reading(optional, `▶"= has(data.buyer.name) || data.buyer.age > 1"`), []string{`[INPUT002] the expression reads data.buyer without has(), and input does not require it: where it is missing the transition is closed`}},
		{reading(optional, `▶"= has(data.buyer) && data.buyer.name == data.buyer.age"`), []string{`[INPUT002] the expression reads data.buyer.name without has(), and input does not require it: where it is missing the transition is closed`}},
		{reading(optional, `▶"= metaJson.level > 1"`), []string{`[INPUT002] the expression reads metaJson.level without has(), and input does not require it: where it is missing the transition is closed`}},
		{reading(optional, `▶"= data.lines.all(l, l.n > 0 && l.sku != \"\")"`), []string{`[INPUT002] the expression reads data.lines[].n without has(), and input does not require it: where it is missing the transition is closed`}},
		{reading(optional, `"= has(data.n) && data.n > 1 && \"buyer\" in data && has(data.buyer.name) && data.buyer.name == \"\" && data.level > 1 && data.asked && data.lines.exists(l, has(l.n) && l.n > 0)"`), nil},
		{head + optional + `,"states":{"a":{"due":{"at":▶"= data.by"},"transitions":{"t":{"target":"b","when":"= has(data.n)","set":{"x":"= data.n","y":▶"= data.by + data.by"}},"u":"b"}},"b":{}}` + someone,
			[]string{`[INPUT002] the expression reads data.by without has(), and input does not require it: where it is missing no moment is known`, `[INPUT002] the expression reads data.by without has(), and input does not require it: where it is missing nothing is executed (set_failed)`}},
		{head + optional + `,"subject":"= data.by"` + states, nil}, // is empty then

		// Elements of lists.
		{reading(optional, `▶"= data.lines.exists(l, l.skU == \"a\")"`), []string{`[INPUT001] the expression reads "skU" of data.lines[], and input does not declare it`}},
		{reading(optional, `▶"= data.lines[0].skU == \"a\""`), []string{`[INPUT001] the expression reads "skU" of data.lines[], and input does not declare it`}},
		{reading(optional, `▶"= data.lines.exists(l, l.parts.all(p, p.x == l.sku))"`), []string{`[INPUT001] the expression reads "x" of data.lines[].parts[], and input does not declare it`}},
		{reading(optional, `▶"= data.lines.all(l, l.sku == 1)"`), []string{`[INPUT001] the expression compares data.lines[].sku with a number, and input says that it is a text`}},
		{reading(optional, `▶"= data.lines.all(l, l.sku.all(c, c == \"a\"))"`), []string{`[INPUT001] the expression reads elements of data.lines[].sku, and input says that this is a text`}},
		{reading(optional, `"= data.lines.all(l, l.free.any == 1) && data.mixed[0].any == 1 && data.open.all(o, o.any == 1) && data.object.all(name, name != \"\") && data.object[\"any\"].all(l, l.any)"`), nil},

		// What set reads of a payload.
		{setting(`{"type":"object","required":["amount"],"properties":{"amount":{"type":"number"},"note":{"type":"string"}}}`, `▶"= payload.amuont"`), []string{`[PARAM002] the expression reads "amuont" of payload, and parameters do not declare it`}},
		{setting(`{"type":"object","required":["amount"],"properties":{"amount":{"type":"number"},"note":{"type":"string"}}}`, `▶"= payload.note"`), []string{`[PARAM002] the expression reads payload.note without has(), and parameters do not require it: where it is missing nothing is executed (set_failed)`}},
		{setting(`{"type":"object","required":["amount"],"properties":{"amount":{"type":"number"},"note":{"type":"string"}}}`, `▶"= payload.amount == \"a\""`), []string{`[PARAM002] the expression compares payload.amount with a text, and parameters say that it is a number`}},
		{setting(`{"type":"object","required":["amount"],"properties":{"amount":{"type":"number"},"note":{"type":"string"}}}`, `"= has(payload.note) ? [payload.amount, payload.note] : payload"`), nil},
		{setting(``, `▶"= payload.amount"`), []string{`[PARAM002] the expression reads payload.amount without has(), and no parameters require it: where it is missing nothing is executed (set_failed)`}},
		{setting(``, `"= has(payload.amount) && \"x\" in payload ? payload.amount.more : payload"`), nil},

		// A forgotten sign in front.
		{setting(``, `▶"payload.amount"`), []string{`[SET001] transition "t" writes the text "payload.amount" into "x", and not what that reads`}},
		{setting(``, `▶" = data.total"`), []string{`[SET001] transition "t" writes the text " = data.total" into "x", and not what that reads`}},
		{setting(``, `▶[1,"a b",{"y":"= data.total"}]`), []string{`[SET001] transition "t" writes the text "= data.total" into "x", and not what that reads`}},
		{setting(``, `["a","= b c",{"y":"1 + 1"}]`), nil},
		{setting(``, `▶"data.total + 1"`), []string{`[SET001] transition "t" writes the text "data.total + 1" into "x", and not what that reads`}},
		{setting(``, `"Payment data. See payload.amount"`), nil},
		{setting(``, `"by"`), nil},
		{setting(``, `"==data.total"`), nil},
		{setting(``, `{"of":"data.total"}`), nil},

		// Names in every part of a schema count, and so does what it leaves open.
		{reading(`{"allOf":[{"$ref":"#/$defs/c"}],"anyOf":[{"required":["d"]}],"$defs":{"c":{"properties":{"c":true}}}}`, `"= has(data.c) && data.d"`), nil},
		{reading(`{"allOf":[{"$ref":"#/$defs/c"}],"$defs":{"c":{"properties":{"c":true}},"e":{"properties":{"e":true}}}}`, `▶"= data.e"`), []string{`[INPUT001] the expression reads "e" of data, and input does not declare it and no transition sets it`}},
		{reading(`{"patternProperties":{"^n_":{"type":"number"}}}`, `"= data.n_1 > 0.0"`), nil},
		{reading(`{"patternProperties":{"^n_":{"type":"number"}}}`, `▶"= data.m_1 > 0.0"`), []string{`[INPUT001] the expression reads "m_1" of data, and input does not declare it and no transition sets it`}},
		{reading(`{"additionalProperties":{"type":"number"}}`, `"= data.whatever > 0.0"`), nil},
		{reading(`{"if":{"properties":{"a":true}},"then":{"properties":{"b":true}},"else":{"required":["c"]}}`, `"= has(data.a) && has(data.b) && data.c"`), nil},
		{reading(`{"$ref":"#/$defs/n","$defs":{"n":{"properties":{"next":{"$ref":"#/$defs/n"}}}}}`, `"= has(data.next)"`), nil},
		{reading(`{"dependentRequired":{"a":["b"]},"dependentSchemas":{"a":{"required":["c"]}},"properties":{"a":true}}`, `"= has(data.a) && data.b && data.c"`), nil},
		{head + `{"type":"object"},"subject":▶"= data.title"` + states, []string{`[INPUT001] the expression reads "title" of data, and input does not declare it and no transition sets it`}},
		{`{"machineName":"m","initialState":"a","goalState":"b","subject":"= data.title"` + states, nil}, // nothing is declared at all

		{`{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{▶"transitions":{"t":{"target":"b","when":"= data.x"},"u":{"target":"b","when":"= !data.x"}}},"b":{}}` + someone,
			[]string{`[WHEN001] state "a" has only transitions with conditions: a session in which none holds fails (dead_end)`}},
		{`{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"transitions":{"t":{"target":"b","when":"= visits > 1"},"u":{"target":"b","when":▶"= 1 < 2"}}},"b":{}}` + someone,
			[]string{`[WHEN002] transition "u" is always open: its condition reads nothing`}},
		{`{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"transitions":{"t":{"target":"b","when":"= data.x"},"u":"c"}},"b":{},"c":{"final":true}}` + someone, nil},
		{`{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"due":{"in":"1h","remind":["30m",▶"1h"],"then":"t"},"transitions":{"t":{"target":"b","when":▶"= false"},"u":"b"}},"b":{▶"due":"1h"}}` + someone,
			[]string{`[DUE001] the reminder 1h0m0s before state "a" is due never comes: that is not after the entry, with 1h0m0s in all`,
				`[WHEN002] transition "t" is never open: its condition reads nothing, and does not hold`, `[DUE001] the due of state "b" never comes: sessions end there`}},
		{`{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"transitions":{"t":"b","u":{"target":"c","when":▶"= false"}}},"b":{},▶"c":{"transitions":{"t":"b"}},▶▶"d":{▶"transitions":{"t":{"target":"b","when":▶"= 1 > 2"}}}}` + someone,
			[]string{`[WHEN002] transition "u" is never open: its condition reads nothing, and does not hold`, `[unreachable-state] state "c" cannot be reached from the initial state "a"`,
				`[unreachable-state] state "d" cannot be reached from the initial state "a"`, `[no-path-to-goal] no path leads from state "d" to the goal "b" or to a final state`,
				`[WHEN001] state "d" has only transitions with conditions: a session in which none holds fails (dead_end)`, `[WHEN002] transition "t" is never open: its condition reads nothing, and does not hold`}},
		{head + amount + `,"states":{"a":{"due":{"at":▶"= data.deadlin"},"transitions":{"t":{"target":"b","set":{"deadline":1}}}},"b":{}}` + someone,
			[]string{`[INPUT001] the expression reads "deadlin" of data, and input does not declare it and no transition sets it`}},
	} {
		lint(t, "m.json", c.text, machine.LintOptions{Priced: all}, slices.Clone(c.want)...)
	}
	for expression, want := range map[string]string{`"= data.buyer.nmae"`: `did you mean "name"?`, `"= data.kind == \"prviate\""`: `did you mean "private"?`,
		`"= data.buyer.age > 1"`: "test for it with has(), or require it in input", `"= data.extra"`: "test for it with has(), require it in input, or give it a default there", `"= metaJson.level > 1"`: "read data.level, which has the default"} {
		if found := mustParse(t, "m.json", reading(deep, expression)).Lint(machine.LintOptions{}); len(found) != 1 || found[0].Hint != want {
			t.Errorf("%s: %+v, want the hint %s", expression, found, want)
		}
	}
	for expression, want := range map[string]string{`"= data.amuont > 1.0"`: `did you mean "amount"?`, `"= data.asekd"`: `did you mean "asked"?`,
		`"= metaJson.asked"`: "what transitions set is in data: data.asked", `"= data.zebra"`: "declare it in the properties of input"} {
		if found := mustParse(t, "m.json", reading(amount, expression)).Lint(machine.LintOptions{}); len(found) != 1 || found[0].Hint != want {
			t.Errorf("%s: %+v, want the hint %s", expression, found, want)
		}
	}
}
