package expression_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/internal/expression"
	"github.com/dialai/dialai/internal/jsontext"
)

// caseOf returns a case whose data are the given object.
func caseOf(data string) *expression.Case {
	return &expression.Case{
		Data: jsontext.ReadObject([]byte(data)), MetaJSON: json.RawMessage(data), Visits: 2, Steps: 5, Last: "ask",
		Payload: json.RawMessage(`{"amount":12.5,"why":"é\n"}`), By: "alice", Human: true, State: "open", To: "paid", Now: time.Date(2026, 11, 23, 9, 0, 0, 0, time.FixedZone("", 3600)),
	}
}

const purchase = `{"amount":1200,"lines":[{"sku":"a","n":2},{"sku":"b","n":1}],"buyer":{"name":"Ann","limits":{"eur":5}},"paid":false,"note":null,"a\"b":"quoted","big":1e300,"edges":[9007199254740992,9007199254740993,-9007199254740993]}`

// TestValuesOfSet: what an expression may write, as JSON.
func TestValuesOfSet(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{`= payload.amount + data.amount`, "1212.5"}, {`= data.amount * 2.0`, "2400"}, {`= visits + 1`, "3"}, {`= 7u`, "7"}, {`= 0.1 + 0.2`, "0.30000000000000004"},
		{`= by + " of " + state + " to " + to + " at " + now`, `"alice of open to paid at 2026-11-23T08:00:00.000Z"`}, {`= human`, "true"}, {`= null`, "null"},
		{`= data.lines`, `[{"n":2,"sku":"a"},{"n":1,"sku":"b"}]`}, {`= data.buyer`, `{"limits":{"eur":5},"name":"Ann"}`}, {`= payload`, `{"amount":12.5,"why":"é\n"}`},
		{`= data.lines.map(l, l.n)`, "[2,1]"}, {`= data.lines.filter(l, l.n > 1).map(l, l.sku)`, `["a"]`}, {`= {"who": by, "n": [1, 2.5, "x"]}`, `{"n":[1,2.5,"x"],"who":"alice"}`},
		{`= data["a\"b"]`, `"quoted"`}, {`= data.buyer.limits.eur`, "5"}, {`= has(data.buyer.limits.usd) ? 1.0 : 2.0`, "2"}, {`= "amount" in data`, "true"}, {`= size(data)`, "8"}, {`= data.edges[0]`, "9007199254740992"},
		{`= data == metaJson`, "true"}, {`= data.buyer == {"name": "Ann", "limits": {"eur": 5}}`, "true"}, {`= data.note == null`, "true"},
		{`= data.exists(k, k == "paid")`, "true"}, {`= [] == data.lines`, "false"}, {`= steps`, "5"}, {`= 9007199254740992`, "9007199254740992"},
		// What JSON has no word for, and what is not there.
		{`= data.total`, `expression "data.total": nothing is called total: let the session start with it or a transition set it, or test for it with has()`},
		{`= data.big`, `expression "data.big" yields a whole number beyond 2^53, which JSON does not keep exactly: yield a text`},
		{`= data.edges[1]`, `expression "data.edges[1]" yields a whole number beyond 2^53, which JSON does not keep exactly: yield a text`},
		{`= data.edges[2]`, `expression "data.edges[2]" yields a whole number beyond 2^53, which JSON does not keep exactly: yield a text`},
		{`= 9007199254740993`, `expression "9007199254740993" yields a whole number beyond 2^53, which JSON does not keep exactly: yield a text`},
		{`= dyn(b"x")`, `expression "dyn(b\"x\")" yields bytes, which is no JSON`}, {`= dyn({1: 2})`, `expression "dyn({1: 2})" yields an object whose names are no texts`},
		{`= dyn(timestamp(now))`, `expression "dyn(timestamp(now))" yields google.protobuf.Timestamp, which is no JSON`}, {`= 1.0 / 0.0`, `expression "1.0 / 0.0" yields +Inf, which is no JSON`},
		{`= 0.0 / 0.0`, `expression "0.0 / 0.0" yields NaN, which is no JSON`}, {`= data.amount + data.buyer.name`, `expression "data.amount + data.buyer.name": no such overload: values of kinds that do not go together (beside a text, write string() of a number)`},
	} {
		e, err := expression.New(expression.Set, c.source)
		if err != nil {
			t.Errorf("%s: %v", c.source, err)
			continue
		}
		text, err := e.JSON(t.Context(), caseOf(purchase))
		got := string(text)
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.source, got, c.want)
		}
		if err == nil && !json.Valid(text) {
			t.Errorf("%s yields %s, which is no JSON", c.source, text)
		}
	}
}

// TestConditions: what holds, what does not, and what fails.
func TestConditions(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{`= data.amount > 1000`, "true"}, {`= data.amount > 1000 && last == "pay"`, "false"}, {`= !data.paid`, "true"}, {`= data.paid`, "false"},
		{`= visits == 2 && steps == 5`, "true"}, {`= metaJson.lines.all(l, l.n > 0)`, "true"},
		{`= data.amount`, `expression "data.amount" yields double, not true or false`}, {`= data.gone > 1`, `expression "data.gone > 1": nothing is called gone: let the session start with it or a transition set it, or test for it with has()`},
	} {
		e, err := expression.New(expression.When, c.source)
		if err != nil {
			t.Errorf("%s: %v", c.source, err)
			continue
		}
		holds, err := e.Holds(t.Context(), caseOf(purchase))
		got := map[bool]string{true: "true", false: "false"}[holds]
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.source, got, c.want)
		}
	}
}

// TestUsesAreChecked: variables that a use does not have, and results of the wrong type,
// are found when the machine is loaded.
func TestUsesAreChecked(t *testing.T) {
	for _, c := range []struct {
		use          expression.Use
		source, want string
	}{
		{expression.When, `= data.x`, ""}, {expression.When, `= visits`, "the expression yields int, not true or false"}, {expression.When, `= payload.x`, "at character 1 of the expression: undeclared reference to 'payload'"},
		{expression.When, `= now > ""`, "at character 1 of the expression: undeclared reference to 'now'"},
		{expression.Set, `= b"x"`, "the expression yields bytes, not JSON"}, {expression.Set, `= timestamp(now)`, "the expression yields google.protobuf.Timestamp, not JSON"}, {expression.Set, `= {1: 2}`, "the expression yields map(int, int), not JSON"},
		{expression.Set, `= last`, "at character 1 of the expression: undeclared reference to 'last'"},
		{expression.Subject, `= "Invoice " + data.number`, ""}, {expression.Subject, `= 5`, "the expression yields int, not a text"}, {expression.Subject, `= visits`, "at character 1 of the expression: undeclared reference to 'visits'"},
		{expression.Due, `= data.by`, ""}, {expression.Due, `= visits > 1 ? "1h" : now`, ""}, {expression.Due, `= duration("1h")`, "the expression yields google.protobuf.Duration, not a text"},
	} {
		err := expression.Check(c.use, c.source, nil)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.source, err)
		case c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)):
			t.Errorf("%s: %v, want %s", c.source, err, c.want)
		}
	}
}

// TestCasesAreBounded: what runs long is stopped, with loops and without.
func TestCasesAreBounded(t *testing.T) {
	big := `{"s":"` + strings.Repeat("x", 200_000) + `","l":[` + strings.Repeat("1,", 20_000) + `1]}`
	for _, source := range []string{"= " + strings.Repeat("(data.s+data.s)+", 30) + `"" == ""`, `= data.l.all(a, data.l.all(b, a == b))`} {
		e, err := expression.New(expression.When, source)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Holds(t.Context(), caseOf(big)); err == nil || !strings.HasSuffix(err.Error(), "actual cost limit exceeded") {
			t.Errorf("%.40s came to %v", source, err)
		}
	}
	deep, err := expression.New(expression.Set, "= "+strings.Repeat("[", 70)+strings.Repeat("]", 70))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := deep.JSON(t.Context(), caseOf("{}")); err == nil || !strings.HasSuffix(err.Error(), "more than 64 levels of lists and objects") {
		t.Errorf("70 levels came to %v", err)
	}
}

// BenchmarkRound is what two conditions and two values cost a round.
func BenchmarkRound(b *testing.B) {
	var all []*expression.Expression
	for _, x := range []struct {
		use    expression.Use
		source string
	}{{expression.When, "= data.amount > 1000"}, {expression.When, "= !data.paid && visits < 5"}, {expression.Set, "= data.amount + payload.amount"}, {expression.Set, "= by"}} {
		e, err := expression.New(x.use, x.source)
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, e)
	}
	c := *caseOf(purchase)
	b.ReportAllocs()
	for b.Loop() {
		round := c
		for _, e := range all[:2] {
			if _, err := e.Holds(b.Context(), &round); err != nil {
				b.Fatal(err)
			}
		}
		for _, e := range all[2:] {
			if _, err := e.JSON(b.Context(), &round); err != nil {
				b.Fatal(err)
			}
		}
	}
}
