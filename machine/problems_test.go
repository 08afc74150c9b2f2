package machine_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/machine"
)

// TestProblems holds every code to its place, its text and its hint. The marks
// show where the problems are; the files hold text that is not ASCII before
// them, so columns are code points and not bytes.
func TestProblems(t *testing.T) {
	const states = `"states":{"a":{"transitions":{"t":"b"}},"b":{}}`
	const head = `{"machineName":"Prüfung 🔍","initialState":"a","goalState":"b",`
	in := func(member string) string { return head + states + `,` + member + `}` }
	promise := func(member string) string {
		return in(`"specialists":[{"role":"arbiter","specialistId":"r","strategyFnName":"bayes"}],` + member)
	}
	transition := func(member string) string {
		return head + `"states":{"a":{"transitions":{"t":{"target":"b",` + member + `}}},"b":{}}}`
	}
	list := func(entries string) string { return in(`"specialists":[` + entries + `]`) }
	proposer := func(rest string) string { return list(`{"role":"proposer","specialistId":"é",` + rest + `}`) }
	const rename = "choose a short name of printable characters"
	const quorum = `it may be "any", "majority", "all", or how many must answer, from 1`
	const sign = `where a human must agree, write "irreversible": true on the transition`
	const write = `write a number and a unit, such as "90s", "5m" or "24h"`
	const needsBayes = `let an arbiter with "strategyFnName": "bayes" decide it`
	const share = "say which share of automatic decisions may be wrong, such as 0.05"
	const anotherHuman = `declare another one ("role": "proposer", "isHuman": true), or write "when": "after"`
	const humans = `{"role":"proposer","specialistId":"alice","isHuman":true},{"role":"proposer","specialistId":"bob","isHuman":true},{"role":"proposer","specialistId":"rule","strategyFnName":"random"}`
	people := func(groups, state, transition string) string {
		return head + `"groups":{` + groups + `},"specialists":[` + humans + `],"states":{"a":{` + state + `"transitions":{"t":{"target":"b"` + transition + `}}},"b":{}}}`
	}
	const morePeople = "declare more humans, let more of them decide, or ask for fewer"
	const approvals = `say how many humans have to choose it, from 1, or {"count": 2, "from": ["group:finance"], "exclude": ["starter"]}`
	const onlyHumans = "for a state that only humans decide, list only humans in its specialists"
	due := func(due string) string {
		return head + `"states":{"a":{"transitions":{"t":"b"},"due":` + due + `},"b":{}}}`
	}
	for _, c := range []struct {
		text string
		want []string
	}{
		{people(`"g":▶[]`, ``, ``), []string{`[missing-field] group "g" names nobody | list the ids of humans`}},
		{people(`"g":["alice",▶"alcie"]`, ``, ``), []string{`[unknown-human] group "g" names "alcie", whom nobody declares | did you mean "alice"?`}},
		{people(`"g":[▶"rule"]`, ``, ``), []string{`[bad-role] group "g" names "rule", who is no human | only specialists with "isHuman": true rule`}},
		{people(`"g":["bob",▶"group:g"]`, ``, ``), []string{`[bad-value] group "g" names "group:g": a group names humans, and no groups | list the ids of its humans`}},
		{people(`"finance":["bob"]`, `"deciders":[▶"group:finanse"],`, ``), []string{`[unknown-group] deciders of state "a" names group "finanse", which does not exist | did you mean "finance"?`}},
		{people(`"finance":["bob"]`, `"deciders":[▶"finance"],`, ``), []string{`[unknown-human] deciders of state "a" names "finance", whom nobody declares | write "group:finance" for the group`}},
		{people(``, ``, `,"approvals":▶0`), []string{`[bad-value] approvals is no whole number from 1 to 256 | ` + approvals}},
		{people(``, ``, `,"approvals":▶{}`), []string{`[missing-field] approvals is {}, which says nothing | ` + approvals}},
		{people(``, ``, `,"approvals":▶3`), []string{`[too-few-humans] approvals of transition "t" takes 3, and only 2 humans may rule there | ` + morePeople}},
		{people(``, `"deciders":["bob"],`, `,"approvals":▶2`), []string{`[too-few-humans] approvals of transition "t" takes 2, and only "bob" may rule there | ` + morePeople}},
		{people(`"g":["alice"]`, `"deciders":["bob"],`, `,"approvals":{"each":[▶"group:g"]}`), []string{`[too-few-humans] approvals of transition "t" takes one of group:g, of whom nobody may rule there | let one of them decide in this state`}},
		{people(`"g":["bob"],"k":["bob"]`, `"deciders":["bob","alice"],`, `,"approvals":{"each":["group:g",▶"group:k"]}`), []string{`[too-few-humans] approvals of transition "t" takes one of group:k, and whoever may rule there of them stands for another group: each human stands for one | let one of them decide in this state`}},
		{people(`"g":["bob"],"k":["alice"]`, ``, `,"approvals":{"count":▶1,"each":["group:g","group:k"]}`), []string{`[bad-value] approvals of transition "t" takes 1 in all, and one of each of 2 groups: each human stands for one | write "count": 2, or more, or leave it out: then it takes as many as each has groups`}},
		{people(``, ``, `,"approvals":{"each":[▶"bob"]}`), []string{`[bad-value] approvals of transition "t" takes one of "bob", which is no group | name groups of the machine, such as "group:finance"`}},
		{people(``, ``, `,"approvals":{"count":1,"exclude":[▶"startr"]}`), []string{`[unknown-state] approvals of transition "t" excludes "startr", which is no state | did you mean "starter"?`}},
		{people(``, `"deciders":["bob"],"secondHuman":{"rate":1,"when":▶"before"},`, ``), []string{`[too-few-humans] secondHuman waits for a second human in state "a", and only "bob" may rule there | ` + anotherHuman}},
		{in(`▶"treshold":1`), []string{`[unknown-field] the machine has no field "treshold"`}},
		{in(`▶"specialist":[]`), []string{`[unknown-field] the machine has no field "specialist" | did you mean "specialists"?`}},
		{in(`▶"X-note":1`), []string{`[unknown-field] the machine has no field "X-note"`}},
		{head + `"states":{"a":{▶"transitons":{"t":"b"}},"b":{}}}`, []string{`[unknown-field] state "a" has no field "transitons" | did you mean "transitions"?`}},
		{head + `"states":{"a":{"transitions":{"t":{"target":"b",▶"$schema":""}}},"b":{}}}`, []string{`[unknown-field] transition "t" in state "a" has no field "$schema"`}},
		{list(`{"role":"proposer","specialistId":"s","strategyFn":"f",▶"timeOut":"5s"}`), []string{`[unknown-field] specialists[0] has no field "timeOut" | did you mean "timeout"?`}},
		{in(`"solicit":{▶"modes":"all"}`), []string{`[unknown-field] solicit has no field "modes" | did you mean "mode"?`}},
		{promise(`"risk":{"maxError":0.1,▶"maxErr":0.1}`), []string{`[unknown-field] risk has no field "maxErr" | did you mean "maxError"?`}},
		{in(`"guards":{"limits":{▶"max_step":1}}`), []string{`[unknown-field] limits has no field "max_step" | did you mean "max_steps"?`}},
		{in(`"guards":{"truth":▶{}}`), []string{`[missing-field] "model" is missing`}},
		{in(`"guards":{"truth":{"model":"m","when":["t",▶"tt"]}}`), []string{`[unknown-transition] there is no transition "tt", so the truth gate would never judge it | did you mean "t"?`}},
		{head + `"states":{"a":{"transitions":{"t":"b"},"guards":{"truth":▶{"when":["t"]}}},"b":{}}}`, []string{`[missing-field] "model" is missing, once the machine's guards are added`}},
		{head + `"guards":{"limits":{"output_max":3}},"states":{"a":{"transitions":{"t":"b"},"guards":{"limits":{"output_min":▶4}}},"b":{}}}`, []string{`[contradiction] output_min is 4, above output_max, which is 3, once the machine's guards are added`}},
		{in(`"guards":{"classifier":▶{"on_error":"open"}}`), []string{`[missing-field] there is nobody to ask: neither url nor function is given | name the url of a service, or a function of the program`}},

		{in(`▶"goalState":"b"`), []string{`[duplicate-key] "goalState" is already defined at line 1, column 47 | remove one of the two`}},
		// A problem of the first stays where it is.
		{head + `"states":{"a":{"transitions":{"t":"b","u":▶"c"}},"b":{},▶"a":{"transitions":{"v":▶"d"}}}}`, []string{
			`[unknown-target] transition "u" in state "a" points to non-existent state "c"`, `[duplicate-key] "a" is already defined at line 1, column 73 | remove one of the two`,
			`[unknown-target] transition "v" in state "a" points to non-existent state "d"`}},
		{head + `"states":{"ö":{},"a":{},"b":{},▶"ö":{}}}`, []string{`[duplicate-key] "ö" is already defined at line 1, column 73 | remove one of the two`}},
		{head + `"states":{"a":{"transitions":{"t":"b",▶"\u0074":"a"}},"b":{}}}`, []string{`[duplicate-key] "t" is already defined at line 1, column 93 | remove one of the two`}},
		{head + `"states":{"a":{"transitions":{"t":{"target":"b","parameters":{"type":"object",▶"type":"object"}}}},"b":{}}}`, []string{`[duplicate-key] "type" is already defined at line 1, column 125 | remove one of the two`}},
		{in(`"guards":{"limits":{"max_steps":1,▶"max_steps":1}}`), []string{`[duplicate-key] "max_steps" is already defined at line 1, column 131 | remove one of the two`}},

		{in(`"subject":▶"Invoice"`), []string{`[bad-expression] subject is "Invoice", which is no expression | begin it with "=", as in "= \"Invoice \" + data.number"`}},
		{in(`"subject":▶"= payload.x"`), []string{`[bad-expression] at character 1 of the expression: undeclared reference to 'payload': there are data, metaJson`}},
		{in(`"input":{"type":"object","properties":{"n":{"type":▶"numbr"}}}`), []string{`[bad-schema] input: type "numbr" at #/properties/n is none of null, boolean, object, array, number, string, integer | input is a JSON Schema (draft 2020-12) without remote references`}},
		{transition(`"when":▶"= visits + 1"`), []string{`[bad-expression] the expression yields int, not true or false`}},
		{transition(`"when":▶"= data.lines.sum() > 1"`), []string{`[bad-expression] at character 15 of the expression: undeclared reference to 'sum': CEL's standard library has no such function`}},
		{transition(`"when":▶"== true"`), []string{`[bad-expression] when is "== true", which is no expression | begin it with "=", as in "= data.amount > 1000"`}},
		{transition(`"when":▶true`), []string{`[wrong-type] when must be a string, not a boolean | put it in quotes`}},
		{transition(`"set":▶[]`), []string{`[wrong-type] set must be an object | name each member of the data and what is written into it: {"approved": true, "total": "= data.total + payload.amount"}`}},
		{transition(`"set":{"a":1,"b":▶"= last","c":"== last"}`), []string{`[bad-expression] at character 1 of the expression: undeclared reference to 'last' (did you mean 'list'?): there are data, metaJson, payload, by, human, state, to, visits, steps, now`}},
		{transition(`"set":{▶"__a":1}`), []string{`[bad-name] the name "__a" begins with "__", which is reserved | ` + rename}},
		{in(`"quorum":▶0`), []string{`[bad-value] quorum is 0 | ` + quorum}},
		{in(`"quorum":▶-1`), []string{`[bad-value] quorum is -1 | ` + quorum}},
		{in(`"quorum":▶1.5`), []string{`[bad-value] quorum is 1.5 | ` + quorum}},
		{in(`"quorum":▶3e9`), []string{`[bad-value] quorum is 3e9 | ` + quorum}},
		{in(`"quorum":▶""`), []string{`[bad-value] quorum is "" | ` + quorum}},
		{in(`"quorum":▶"most"`), []string{`[bad-value] quorum is "most" | ` + quorum}},
		{in(`"quorum":▶"majorty"`), []string{`[bad-value] quorum is "majorty" | did you mean "majority"?`}},
		{in(`"quorum":▶true`), []string{`[wrong-type] quorum must be a rule or a number, not a boolean`}},
		{head + `"states":{"a":{"quorum":▶0,"transitions":{"t":"b"}},"b":{"quorum":▶"2"}}}`, []string{`[bad-value] quorum is 0 | ` + quorum, `[bad-value] quorum is "2" | ` + quorum}},
		{list(`{"role":"proposer","specialistId":"é","isHuman":true,"required":▶true}`), []string{`[bad-role] human "é" cannot be required: nobody waits for a human's proposal | ` + sign}},
		{head + `"specialists":[{"role":"proposer","specialistId":"é","isHuman":true}],"states":{"a":{"specialists":[{"role":"proposer","specialistId":"é","required":▶true}],"transitions":{"t":"b"}},"b":{}}}`,
			[]string{`[bad-role] human "é" cannot be required: nobody waits for a human's proposal | ` + sign}},
		{list(`{"role":"arbiter","specialistId":"é","required":▶true}`), []string{`[bad-role] arbiter "é" cannot be required: only proposers are | remove required here`}},

		{in(`"learnFrom":▶true`), []string{`[wrong-type] learnFrom must be a string, not a boolean | it may be humans, humansAndRounds`}},
		{in(`"optionOrder":▶1`), []string{`[wrong-type] optionOrder must be a string, not a number | it may be random, declared`}},
		{in(`"stacking":▶false`), []string{`[wrong-type] stacking must be a string, not a boolean | it may be auto, off`}},
		{in(`"solicit":{"mode":▶2}`), []string{`[wrong-type] mode must be a string, not a number | it may be all, eager, sequential`}},
		{in(`"audit":{"mode":▶true}`), []string{`[wrong-type] mode must be a string, not a boolean | it may be before, after`}},
		{in(`"secondHuman":{"when":▶true}`), []string{`[wrong-type] when must be a string, not a boolean | it may be before, after`}},
		{in(`"requireTrust":▶"yes"`), []string{`[wrong-type] requireTrust must be true or false, not a string`}},
		{in(`"specialists":▶{}`), []string{`[wrong-type] specialists must be an array, not an object`}},
		{list(`▶"é"`), []string{`[wrong-type] specialists[0] must be an object, not a string`}},
		{list(`▶null`), []string{`[wrong-type] specialists[0] must be an object, not null`}},
		{list(`{"role":▶7,"specialistId":▶8,"strategyFn":"f"}`), []string{
			`[wrong-type] role must be a string, not a number | it may be proposer, arbiter`, `[wrong-type] specialistId must be a string, not a number | put it in quotes`}},
		{proposer(`"strategyFn":▶true`), []string{`[wrong-type] strategyFn must be a string, not a boolean | put it in quotes`}},
		{proposer(`"strategyFn":"f","isHuman":▶1`), []string{`[wrong-type] isHuman must be true or false, not a number`}},
		{proposer(`"strategyFn":"f","estimatedCostUSD":▶"1"`), []string{`[wrong-type] estimatedCostUSD must be a number of US dollars, not a string | write 1 without quotes in place of "1"`}},
		{proposer(`"strategyFn":"f","estimatedCostUSD":▶1e400`), []string{`[wrong-type] estimatedCostUSD must be a number of US dollars, not this: the number 1e400 is too large`}},
		{head + `"states":{"a":▶null,"b":{}}}`, []string{`[wrong-type] state "a" must be an object, not null`}},
		{head + `"states":{"a":{"transitions":▶[]},"b":{}}}`, []string{`[wrong-type] transitions must be an object, not an array`}},
		{head + `"states":{"a":{"transitions":{"t":▶null}},"b":{}}}`, []string{`[wrong-type] transition "t" in state "a" must be a target state or an object, not null`}},
		{head + `"states":{"a":{"transitions":{"t":▶3}},"b":{}}}`, []string{`[wrong-type] transition "t" in state "a" must be a target state or an object, not a number | put it in quotes`}},
		{head + `"states":{"a":{"transitions":{"t":▶1e400}},"b":{}}}`, []string{`[wrong-type] transition "t" in state "a" must be a target state or an object, not this: the number 1e400 is too large`}},
		{`{"machineName":"m","initialState":▶2,"goalState":▶true,"states":{"2":{},"true":{}}}`, []string{`[wrong-type] missing or invalid initialState | put it in quotes`, `[wrong-type] missing or invalid goalState | put it in quotes`}},
		{head + `"states":{"a":{"transitions":{"t":{"target":▶3}}},"b":{}}}`, []string{`[wrong-type] target must be a string, not a number | put it in quotes`}},
		{head + `"states":{"a":{"prompt":▶3},"b":{}}}`, []string{`[wrong-type] prompt must be a string, not a number | put it in quotes`}},
		{in(`"risk":▶0.1`), []string{`[wrong-type] risk must be an object, not a number`}},
		{promise(`"risk":{"maxError":▶"5%"}`), []string{`[wrong-type] maxError must be a number, not a string | write 0.05 without quotes in place of "5%"`}},
		{promise(`"risk":{"maxError":▶"0.1"}`), []string{`[wrong-type] maxError must be a number, not a string | write 0.1 without quotes in place of "0.1"`}},
		{in(`"solicit":▶1`), []string{`[wrong-type] solicit must be a mode or an object, not a number`}},
		{in(`"solicit":{"wave":▶"2"}`), []string{`[wrong-type] wave must be a whole number, not a string | write 2 without quotes in place of "2"`}},
		{in(`"guards":▶"guards.json"`), []string{`[bad-include] guards names a file, but there is nothing to read it with | write the section in its place`}},
		{in(`"guards":{"limits":{"max_steps":▶1e400}}`), []string{`[wrong-type] the number 1e400 is too large`}},
		{in(`"consensusThreshold":▶"0.5"`), []string{`[wrong-type] consensusThreshold must be a number from 0 to 1, not a string | write 0.5 without quotes in place of "0.5"`}},

		{in(`"consensusThreshold":▶1.5`), []string{`[bad-threshold] consensusThreshold is 1.5, not a number from 0 to 1 | ` + onlyHumans}},
		{in(`"consensusThreshold":▶60`), []string{`[bad-threshold] consensusThreshold is 60, not a number from 0 to 1 | it is a share: write 0.6 for 60 %`}},
		{head + `"states":{"a":{"transitions":{"t":▶{▶"to":"b"}}},"b":{}}}`, []string{
			`[unknown-target] transition "t" in state "a" has no target | name the state it leads to: {"target": "STATE"}, or just "STATE"`,
			`[unknown-field] transition "t" in state "a" has no field "to" | did you mean "target"?`}},
		{in(`"consensusThreshold":▶-0.1`), []string{`[bad-threshold] consensusThreshold is -0.1, not a number from 0 to 1 | ` + onlyHumans}},
		{in(`"consensusThreshold":▶1e400`), []string{`[bad-threshold] consensusThreshold is 1e400, not a number from 0 to 1 | ` + onlyHumans}},
		{head + `"states":{"a":{"consensusThreshold":▶2},"b":{}}}`, []string{`[bad-threshold] consensusThreshold is 2, not a number from 0 to 1 | ` + onlyHumans}},
		{proposer(`"strategyFn":"f","threshold":▶1.0000001`), []string{`[bad-threshold] threshold is 1.0000001, not a number from 0 to 1 | ` + onlyHumans}},

		{list(`{"role":▶"voter","specialistId":"s","strategyFn":"f"}`), []string{`[bad-role] role is "voter" | it may be proposer, arbiter`}},
		{list(`{"role":▶"propser","specialistId":"s","strategyFn":"f"}`), []string{`[bad-role] role is "propser" | did you mean "proposer"?`}},
		{list(`▶{"specialistId":"s","strategyFn":"f"}`), []string{`[bad-role] role is "" | it may be proposer, arbiter`}},
		{list(`{"role":"arbiter","specialistId":"s","isHuman":▶true}`), []string{`[bad-role] arbiter "s" cannot be human | declare the human as a proposer: a human may always decide`}},
		{head + `"specialists":[{"role":"proposer","specialistId":"s","strategyFn":"f"}],"states":{"a":{"specialists":[{"role":▶"arbiter","specialistId":"s"}]},"b":{}}}`,
			[]string{`[bad-role] specialist "s" is no arbiter, it is declared as proposer`}},

		{list(`▶{"role":"proposer","strategyFn":"f"}`), []string{`[duplicate-id] specialistId "" is empty | ` + rename}},
		{list(`{"role":"proposer","specialistId":▶"","strategyFn":"f"}`), []string{`[duplicate-id] specialistId "" is empty | ` + rename}},
		{list(`{"role":"proposer","specialistId":"s","strategyFn":"f"},{"role":"arbiter","specialistId":▶"s"}`),
			[]string{`[duplicate-id] specialist "s" is already in this list, as entry 0 | every specialist of a list needs an id of its own`}},
		{head + `"specialists":[{"role":"proposer","specialistId":"s","strategyFn":"f"}],"states":{"a":{"specialists":[{"role":"proposer","specialistId":▶"s","strategyFn":"g"}]},"b":{}}}`,
			[]string{`[duplicate-id] specialist "s" is declared twice with different content | give it another id, or name only role and specialistId here to refer to the first`}},

		{in(`"defaultState":▶"a"`), []string{`[contradiction] defaultState is "a", but goalState is "b" | remove defaultState, the old name of goalState`}},
		{proposer(`"strategyFn":"f","enabled":true,"disabled":▶true`), []string{`[contradiction] enabled and disabled are both true | keep one of the two`}},
		{proposer(`"strategyFn":"f","disabled":▶false,"enabled":false`), []string{`[contradiction] enabled and disabled are both false | keep one of the two`}},
		{proposer(`"strategyFn":"f","machineName":▶"Prufung"`), []string{`[wrong-machine] specialist "é" belongs to machine "Prufung", this is "Prüfung 🔍" | remove machineName here`}},

		{list(`▶{"role":"proposer","specialistId":"s","strategyFn":"f","strategyFnName":"random"}`),
			[]string{`[bad-mode] Provide either strategyFn (custom function) or strategyFnName (built-in strategy), not both.`}},
		{proposer(`"strategyFnName":▶"firstAvailabel"`), []string{`[unknown-strategy] Unknown proposer strategy: firstAvailabel | did you mean "firstAvailable"?`}},
		{proposer(`"strategyFnName":▶"alignmentMargin"`), []string{`[unknown-strategy] Unknown proposer strategy: alignmentMargin | built in are firstAvailable, lastAvailable, random; a Go function is named by strategyFn`}},
		{list(`{"role":"arbiter","specialistId":"s","strategyFnName":▶"firstAvailable"}`),
			[]string{`[unknown-strategy] Unknown arbiter strategy: firstAvailable | built in are alignmentMargin, firstProposal, bayes; a Go function is named by strategyFn`}},
		{proposer(`"strategyFn":▶"= \"x\""`), []string{`[bad-expression] the expression yields "x", which is no transition of a state it serves (t)`}},
		{head + `"states":{"a":{"transitions":{"t":"c"}},"c":{"transitions":{"u":"b","t":"a"}},"b":{}},"specialists":[{"role":"proposer","specialistId":"é","strategyFn":▶"= \"x\""}]}`, []string{`[bad-expression] the expression yields "x", which is no transition of a state it serves (t, u)`}},
		{proposer(`"strategyFn":▶"="`), []string{`[bad-expression] the expression is empty`}},

		{proposer(`"strategyWebhookUrl":▶"ftp://example.com","webhookTokenName":"T"`), []string{`[bad-url] strategyWebhookUrl "ftp://example.com" is not an http or https address | write the whole address, such as https://example.com/propose`}},
		{proposer(`"strategyWebhookUrl":▶"example.com/p","webhookTokenName":"T"`), []string{`[bad-url] strategyWebhookUrl "example.com/p" is not an http or https address | write the whole address, such as https://example.com/propose`}},
		{proposer(`"strategyWebhookUrl":▶"https://:80/p","webhookTokenName":"T"`), []string{`[bad-url] strategyWebhookUrl "https://:80/p" is not an http or https address | write the whole address, such as https://example.com/propose`}},
		{proposer(`"strategyWebhookUrl":▶"https://example.com:0/p","webhookTokenName":"T"`), []string{`[bad-url] strategyWebhookUrl "https://example.com:0/p" has a port that is not from 1 to 65535 | write the whole address, such as https://example.com/propose`}},
		{proposer(`"contextWebhookUrl":▶"https://me:pw@example.com","modelId":"m","webhookTokenName":"T"`), []string{`[bad-url] contextWebhookUrl "https://…@example.com" contains a user name or password | write "https://example.com"; where the service asks for a password, name the variable that holds its token (webhookTokenName, or a classifier's token_name)`}},
		{proposer(`"strategyWebhookUrl":▶"https://exa mple.com","webhookTokenName":"T"`), []string{`[bad-url] strategyWebhookUrl "https://exa mple.com" is not a URL | write the whole address, such as https://example.com/propose`}},
		{proposer(`"strategyWebhookUrl":▶"https://me:pw@exa mple.com","webhookTokenName":"T"`), []string{`[bad-url] strategyWebhookUrl "https://…@exa mple.com" is not a URL | write the whole address, such as https://example.com/propose`}},

		{head + `"states":{"a":{"transitions":{"t":{"target":"b","parameters":{"properties":{"n":{"pattern":▶"ok(?=later)"}}}}}},"b":{}}}`, []string{"[bad-schema] parameters of transition \"t\" in state \"a\": the pattern at #/properties/n/pattern does not compile: invalid or unsupported Perl syntax at offset 2: `(?=` | parameters is a JSON Schema (draft 2020-12) without remote references"}},
		{head + `"states":{"a":{"transitions":{"t":{"target":"b","parameters":▶true}}},"b":{}}}`, []string{`[bad-schema] parameters of transition "t" in state "a": a schema must be an object | parameters is a JSON Schema (draft 2020-12) without remote references`}},
		{head + `"states":{"a":{"transitions":{"t":{"target":"b","parameters":{"type":▶"objekt"}}}},"b":{}}}`, []string{`[bad-schema] parameters of transition "t" in state "a": type "objekt" at # is none of null, boolean, object, array, number, string, integer | parameters is a JSON Schema (draft 2020-12) without remote references`}},

		{in(`"solicit":{"timeout":▶30}`), []string{`[bad-duration] timeout must be a string such as "30s", not a number | ` + write}},
		{in(`"solicit":{"timeout":▶"30"}`), []string{`[bad-duration] timeout is "30", not a duration above 0 and up to 8760h0m0s | ` + write}},
		{in(`"solicit":{"roundTimeout":▶"0s"}`), []string{`[bad-duration] roundTimeout is "0s", not a duration above 0 and up to 8760h0m0s | ` + write}},
		{in(`"solicit":{"asyncTimeout":▶"-1h"}`), []string{`[bad-duration] asyncTimeout is "-1h", not a duration above 0 and up to 8760h0m0s | ` + write}},
		{proposer(`"strategyFn":"f","timeout":▶"8760h0m0.000000001s"`), []string{`[bad-duration] timeout is "8760h0m0.000000001s", not a duration above 0 and up to 8760h0m0s | ` + write}},

		{in(`"solicit":▶"parallel"`), []string{`[bad-value] mode is "parallel" | it may be all, eager, sequential`}},
		{in(`"solicit":{"mode":▶"eagre"}`), []string{`[bad-value] mode is "eagre" | did you mean "eager"?`}},
		{promise(`"risk":{"maxError":0.1,"test":▶"eprocess"}`), []string{`[bad-value] test is "eprocess" | did you mean "eProcess"?`}},
		{promise(`"risk":{"maxError":▶0}`), []string{`[out-of-range] maxError is 0, it must be above 0`}},
		{promise(`"risk":▶{}`), []string{`[missing-field] risk has no maxError | ` + share}},
		{promise(`"risk":▶{"confidence":0.9}`), []string{`[missing-field] risk has no maxError | ` + share}},
		{promise(`"risk":{"maxError":0.1,"confidence":▶1}`), []string{`[out-of-range] confidence is 1, it must be below 1`}},
		{promise(`"collapse":{"target":▶1}`), []string{`[out-of-range] target is 1, it must be below 1`}},
		{promise(`"collapse":{"requireBlind":▶1}`), []string{`[wrong-type] requireBlind must be true or false, not a number`}},
		{promise(`"collapse":{"coolDown":▶0}`), []string{`[out-of-range] coolDown is 0, not a whole number from 1`}},
		{promise(`"collapse":{"errorCost":▶-1}`), []string{`[out-of-range] errorCost is -1, not an amount of US dollars from 0`}},
		{promise(`"collapse":{▶"targets":1}`), []string{`[unknown-field] collapse has no field "targets" | did you mean "target"?`}},
		{in(`"audit":{"mode":▶"never"}`), []string{`[bad-value] mode is "never" | it may be before, after`}},
		{in(`"audit":{"rate":▶0}`), []string{`[out-of-range] rate is 0, it must be above 0`}},
		{in(`"audit":{"newcomerRate":▶1.5}`), []string{`[out-of-range] newcomerRate is 1.5, it must be at most 1`}},
		{in(`"secondHuman":{"irreversibleRate":▶-0.1}`), []string{`[out-of-range] irreversibleRate is -0.1, it must be at least 0`}},
		{in(`"secondHuman":{"when":▶"befor"}`), []string{`[bad-value] when is "befor" | did you mean "before"?`}},
		{in(`"secondHuman":{"when":▶"before"}`), []string{`[too-few-humans] secondHuman waits for a second human in state "a", and no human may rule there | ` + anotherHuman}},
		{in(`"secondHuman":{"when":▶"before"},"specialists":[{"role":"proposer","specialistId":"h","isHuman":true},{"role":"proposer","specialistId":"off","isHuman":true,"disabled":true}]`),
			[]string{`[too-few-humans] secondHuman waits for a second human in state "a", and only "h" may rule there | ` + anotherHuman}},
		{head + `"states":{"a":{"transitions":{"t":"b"},"secondHuman":{"when":▶"before"},"specialists":[{"role":"proposer","specialistId":"g","disabled":true},{"role":"proposer","specialistId":"k","isHuman":true}]},"b":{}},"secondHuman":{"when":"before"},"specialists":[{"role":"proposer","specialistId":"g","isHuman":true}]}`,
			[]string{`[too-few-humans] secondHuman waits for a second human in state "a", and only "k" may rule there | ` + anotherHuman}},
		{in(`"optionOrder":▶"shuffled"`), []string{`[bad-value] optionOrder is "shuffled" | it may be random, declared`}},
		{in(`"stacking":▶"on"`), []string{`[bad-value] stacking is "on" | it may be auto, off`}},
		{in(`"learnFrom":▶"rounds"`), []string{`[bad-value] learnFrom is "rounds" | it may be humans, humansAndRounds`}},
		{in(`"solicit":{"wave":▶"all"}`), []string{`[wrong-type] wave must be a whole number, not a string`}},
		{in(`▶"risk":{"maxError":0.1}`), []string{`[bad-strategy] risk needs the strategy bayes, and no arbiter is declared for state "a" | ` + needsBayes}},
		{in(`"specialists":[{"role":"arbiter","specialistId":"r"}],▶"risk":{"maxError":0.1}`), []string{`[bad-strategy] risk needs the strategy bayes, and state "a" is decided by "r", which has another | ` + needsBayes}},
		{head + `"states":{"a":{▶"collapse":{},"transitions":{"t":"b"},"specialists":[{"role":"arbiter","specialistId":"r"}]},"b":{}},"specialists":[{"role":"arbiter","specialistId":"r","strategyFn":"f"}]}`, []string{`[bad-strategy] collapse needs the strategy bayes, and state "a" is decided by "r", which has another | ` + needsBayes}},
		{in(`"solicit":{"wave":▶0}`), []string{`[out-of-range] wave is 0, not a whole number from 1`}},
		{in(`"solicit":{"wave":▶1.5}`), []string{`[out-of-range] wave is 1.5, not a whole number from 1`}},
		{in(`"solicit":{"wave":▶257}`), []string{`[out-of-range] wave is 257, it must be at most 256`}},
		{in(`"solicit":{"maxParallel":▶1e400}`), []string{`[wrong-type] maxParallel must be a whole number, not this: the number 1e400 is too large`}},
		{in(`"solicit":{"maxParallel":▶10001}`), []string{`[out-of-range] maxParallel is 10001, it must be at most 10000`}},
		{proposer(`"strategyFn":"f","estimatedCostUSD":▶-1`), []string{`[out-of-range] estimatedCostUSD is -1, not an amount of US dollars from 0`}},

		{`{"machineName":▶" m","initialState":"a","goalState":"b",` + states + `}`, []string{`[bad-name] machineName " m" begins or ends with a blank | ` + rename}},
		{`{"machineName":▶"__m","initialState":"a","goalState":"b",` + states + `}`, []string{`[bad-name] machineName "__m" begins with "__", which is reserved | ` + rename}},
		{`{"machineName":▶"a:b","initialState":"a","goalState":"b",` + states + `,"specialists":[
			{"role":"proposer","specialistId":"s","strategyWebhookUrl":"https://example.com","webhookTokenName":"T"},
			{"role":"proposer","specialistId":"u","strategyWebhookUrl":"https://example.com","webhookTokenName":"T"}]}`,
			[]string{`[bad-name] machineName "a:b" contains a colon, which Basic authentication of webhooks cannot carry | choose a name without a colon`}},
		{due(`▶5`), []string{`[wrong-type] due must be a duration or an object, not a number`}},
		{due(`▶"1 day"`), []string{`[bad-duration] due is "1 day", not a duration above 0 and up to 8760h0m0s | write a number and a unit, such as "90s", "5m" or "24h"`}},
		{due(`▶"8761h"`), []string{`[bad-duration] due is "8761h", not a duration above 0 and up to 8760h0m0s | write a number and a unit, such as "90s", "5m" or "24h"`}},
		{due(`▶{}`), []string{`[missing-field] due of state "a" says neither in nor at | write how long the state may take, such as "24h", or {"in": "24h", "remind": ["4h"], "then": "escalate"}`}},
		{due(`▶{"in":"1h","at":"= now"}`), []string{`[contradiction] due of state "a" says both in and at | remove one of the two`}},
		{due(`{"at":▶"24h"}`), []string{`[bad-expression] at is "24h", which is no expression | begin it with "=", as in "= data.deadline"; a duration that is the same for all belongs into "in"`}},
		{due(`{"at":▶"= 24"}`), []string{`[bad-expression] the expression yields int, not a text`}},
		{due(`{"in":"1h","remind":▶"1h"}`), []string{`[wrong-type] remind must be an array, not a string`}},
		{due(`{"in":"1h","remind":[▶"0s"]}`), []string{`[bad-duration] remind[0] is "0s", not a duration above 0 and up to 8760h0m0s | write a number and a unit, such as "90s", "5m" or "24h"`}},
		{due(`{"in":"1h","then":▶"u"}`), []string{`[unknown-transition] due of state "a" executes "u", which is no transition of the state | name one of its transitions`}},
		{due(`{"in":"1h",▶"than":"t"}`), []string{`[unknown-field] due has no field "than" | did you mean "then"?`}},
		{strings.Replace(due(`{"in":"1h","then":▶"t"}`), `"t":"b"`, `"t":{"target":"b","irreversible":true}`, 1), []string{`[bad-timer] due of state "a" executes "t", which cannot be undone | only humans execute what is irreversible: let the timer lead to a state where they are asked`}},
		{strings.Replace(due(`{"in":"1h","then":▶"t"},"irreversible":true`), `"t":"b"`, `"t":{"target":"b","irreversible":false}`, 1), []string{`[bad-timer] due of state "a" executes "t", which cannot be undone | only humans execute what is irreversible: let the timer lead to a state where they are asked`}},
		{strings.Replace(due(`{"in":"1h","then":▶"t"}`), `"t":"b"`, `"t":{"target":"b","parameters":{"type":"object","required":["n"]}}`, 1), []string{`[bad-timer] due of state "a" executes "t", which needs a payload | a timer has none: let the parameters be satisfied by {}, or name another transition`}},
		{strings.Replace(due(`{"in":"1h","then":▶"t"}`), `"t":"b"`, `"t":{"target":"b","approvals":▶1}`, 1), []string{`[too-few-humans] approvals of transition "t" takes 1, and no human may rule there | declare more humans, let more of them decide, or ask for fewer`, `[bad-timer] due of state "a" executes "t", which takes approvals | nobody has given them when the timer comes: let it lead to a state where others are asked`}},
		{head + `"states":{"a":{},"b":{},▶"c\u0007":{}}}`, []string{`[hidden-character] a name in states holds U+0007 as character 2, which cannot be seen | write it anew: it may have been pasted along`}},
		{head + `"states":{"a":{},"b":{},▶"":{}}}`, []string{`[bad-name] the name "" is empty | ` + rename}},
		{head + `"states":{"a":{"transitions":{▶"t ":"b"}},"b":{}}}`, []string{`[bad-name] the name "t " begins or ends with a blank | ` + rename}},
		{list(`{"role":"proposer","specialistId":▶"__s","strategyFn":"f"}`), []string{`[bad-name] specialistId "__s" begins with "__", which is reserved | ` + rename}},

		{strings.Replace(head, `"b"`, `▶"B"`, 1) + states + `}`, []string{`[unknown-state] goalState "B" does not exist in states`}},
		{strings.Replace(head, `"goalState":"b"`, `"defaultState":▶"bb"`, 1) + states + `}`, []string{`[unknown-state] goalState "bb" does not exist in states | did you mean "b"?`}},
		{strings.Replace(head, `"a"`, `▶"aa"`, 1) + states + `}`, []string{`[unknown-state] initialState "aa" does not exist in states | did you mean "a"?`}},
		{head + `"states":{"a":{"transitions":{"t":▶""}},"b":{}}}`, []string{`[unknown-target] transition "t" in state "a" has no target | name the state it leads to: {"target": "STATE"}, or just "STATE"`}},
		{head + `"states":{"a":{"transitions":{"t":{"description":"x","target":▶"c"}}},"b":{}}}`, []string{`[unknown-target] transition "t" in state "a" points to non-existent state "c"`}},
		{strings.Replace(head, `{`, `▶{`, 1) + `"x-y":1}`, []string{`[missing-field] missing or invalid states`}},
	} {
		expect(t, "m.json", c.text, slices.Clone(c.want)...)
		if strings.Contains(c.text, "\t") {
			continue // YAML has no tabs there
		}
		expect(t, "m.yaml", c.text, slices.Clone(c.want)...)
	}
}

// TestProblemsInOnePass: everything that is wrong is said at once, by position.
func TestProblemsInOnePass(t *testing.T) {
	const none = "[bad-mode] No execution mode specified. Specialist must specify one of: strategyFn, strategyFnName, strategyWebhookUrl, contextFn + modelId, or contextWebhookUrl + modelId."
	expect(t, "m.json", `▶{
  "machineName": ▶"", ▶"colour": "red",
  "consensusThreshold": ▶7,
  "goalState": "b",
  "states": { "a": { "transitions": { "ü": ▶"x", "v": ▶null } }, "b": ▶5 },
  "specialists": [ ▶{ "role": "proposer", "specialistId": "s" },
    ▶{ "role": "proposer", "specialistId": ▶"s", "timeout": ▶5 } ]
}`,
		`[missing-field] missing or invalid initialState`,
		`[wrong-type] missing or invalid machineName | it must be a string that is not empty`,
		`[unknown-field] the machine has no field "colour"`,
		`[bad-threshold] consensusThreshold is 7, not a number from 0 to 1 | for a state that only humans decide, list only humans in its specialists`,
		`[unknown-target] transition "ü" in state "a" points to non-existent state "x"`,
		`[wrong-type] transition "v" in state "a" must be a target state or an object, not null`,
		`[wrong-type] state "b" must be an object, not a number`,
		none, none,
		`[duplicate-id] specialist "s" is already in this list, as entry 0 | every specialist of a list needs an id of its own`,
		`[bad-duration] timeout must be a string such as "30s", not a number | write a number and a unit, such as "90s", "5m" or "24h"`,
	)
}

// TestManyProblems: a hundred are listed, and the first line still names the
// one that DIAL would name.
func TestManyProblems(t *testing.T) {
	var b strings.Builder
	for i := range 150 {
		fmt.Fprintf(&b, "  \"field%d\": %d,\n", i, i)
	}
	text := "{\n" + b.String() + `"machineName":"m","initialState":"nowhere","goalState":"a","states":{"a":{}}}`
	invalid := problems(t, "m.json", text)
	if got, want := invalid.Summary(), `Invalid machine definition: initialState "nowhere" does not exist in states`; got != want {
		t.Errorf("Summary = %q, want %q", got, want)
	}
	n := len(invalid.Problems)
	if n != 101 || invalid.Problems[99].Code != "unknown-state" || invalid.Problems[98].Message != `the machine has no field "field98"` {
		t.Fatalf("%d problems, the last %v", n, invalid.Problems[n-2:])
	}
	if p := invalid.Problems[100]; p.Code != "too-many" || p.Message != "51 more problems are not listed" || p.Line != 152 {
		t.Errorf("the last problem is %v", p)
	}
}

// TestHints are the distances up to which a name is taken for a slip.
func TestHints(t *testing.T) {
	for _, c := range []struct{ target, state, hint string }{
		{"aproved", "approved", `did you mean "approved"?`}, {"aprovd", "approved", `did you mean "approved"?`}, {"aprvd", "approved", ""},
		{"Approved", "approved", `did you mean "approved"?`}, {"genehmigt", "approved", ""}, {"übergabe", "ubergabe", `did you mean "ubergabe"?`},
		{"審査中", "審査", `did you mean "審査"?`}, {"c", "b", ""}, {"png", "svg", ""}, {"dto", "dot", `did you mean "dot"?`}, {"bos", "bob", `did you mean "bob"?`}, {"xy", "ab", ""}, {"toolong", "x", ""},
	} {
		text := fmt.Sprintf(`{"machineName":"m","initialState":"__start","goalState":%q,"states":{%q:{"transitions":{"t":%q}}}}`, c.state, c.state, c.target)
		for _, p := range problems(t, "m.json", text).Problems {
			if p.Code == "unknown-target" && p.Hint != c.hint {
				t.Errorf("%q among %q: hint %q, want %q", c.target, c.state, p.Hint, c.hint)
			}
		}
		if got := machine.DidYouMean(c.target, []string{c.state}); got != c.hint {
			t.Errorf("DidYouMean(%q, %q) = %q, want %q", c.target, c.state, got, c.hint)
		}
	}
	if got, want := machine.DidYouMean("stat", []string{"static", "state", "start"}), `did you mean "state"?`; got != want {
		t.Errorf("of several the nearest: %q, want %q", got, want)
	}
}

// TestFirstProblem: what is wrong with a machine that a program made is one line.
func TestFirstProblem(t *testing.T) {
	def := &machine.Definition{MachineName: "m", InitialState: "a", GoalState: "b", States: []machine.StateDefinition{{Name: "a"}, {Name: "b"}}, Risk: &machine.Risk{MaxError: 2, Confidence: .9}}
	_, err := machine.Compile(def, machine.Checks{})
	if got := machine.FirstProblem(fmt.Errorf("compiling: %w", err)); got != "maxError is 2, it must be below 1" {
		t.Errorf("it says %q", got)
	}
	def.Risk, def.MachineName = nil, " m"
	_, err = machine.Compile(def, machine.Checks{})
	if got, want := machine.FirstProblem(err), `machineName " m" begins or ends with a blank (choose a short name of printable characters)`; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	if got := machine.FirstProblem(errors.New("another")); got != "another" {
		t.Errorf("of another error it says %q", got)
	}
}
