package expression_test

import (
	"fmt"
	"testing"

	"github.com/dialai/dialai/internal/expression"
)

// TestNumbersBecomeText: people read numbers as JSON has them, not with an exponent.
func TestNumbersBecomeText(t *testing.T) {
	for number, want := range map[string]string{
		"0": "0", "-0": "0", "0.1": "0.1", "12.5": "12.5", "1000000": "1000000", "25000000": "25000000", "2.5e7": "25000000", "-1234567.25": "-1234567.25",
		"9007199254740992": "9007199254740992", "123456789012345680000": "123456789012345680000", "0.00001": "0.00001", "1e-7": "1e-7", "1e21": "1e+21", "-1e300": "-1e+300",
	} {
		for _, source := range []string{"= string(data.n)", "= string(data.n + 0)", "= string(1.0 * data.n)", "= [data.n].map(n, string(n))[0]"} {
			e, err := expression.New(expression.Subject, source)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := e.Text(t.Context(), caseOf(`{"n":`+number+`}`)); got != want || err != nil {
				t.Errorf("%s of %s is %q (%v), want %q", source, number, got, err, want)
			}
		}
	}
	for source, want := range map[string]string{"= string(1.0 / 0.0)": "+Inf", "= string(5)": "5", "= string(7u)": "7", "= string(double(visits))": "2", "= string(dyn(9007199254740993))": "9007199254740993"} {
		e, err := expression.New(expression.Set, source)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := e.JSON(t.Context(), caseOf("{}")); string(got) != `"`+want+`"` || err != nil {
			t.Errorf("%s is %s (%v), want %q", source, got, err, want)
		}
	}
}

// TestMixedNumbers: who calculates with data need not know that numbers of JSON are doubles
// and literals are not. What both sides were before, they still are.
func TestMixedNumbers(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{"data.n + 1", "8"}, {"1 + data.n", "8"}, {"data.n - 1", "6"}, {"1 - data.n", "-6"}, {"data.n * 2", "14"}, {"2 * data.n", "14"},
		{"data.n / 2", "3.5"}, {"7 / data.h", "14"}, {"data.n % 4", "3"}, {"-7 % data.n", "0"}, {"15 % data.n", "1"}, {"-data.n % 4", "-3"}, {"data.n % data.h", "0"}, {"5.5 % 2.0", "1.5"},
		{"data.n + 7u", "14"}, {"7u - data.n", "0"}, {"data.n + visits", "9"}, {"steps * data.h", "2.5"}, {"size(data.l) / data.h", "6"}, {"1.5 + 1", "2.5"}, {"visits * 1.1", "2.2"},
		{"(data.n + 1) * 1.5", "12"}, {"1 + 2 + data.n", "10"}, {"data.l.map(x, x + 1)", "[2,3,4]"}, {"has(data.gone) ? data.gone + 1 : 1", "1"}, {"data.l[data.l[0] + 1]", "3"},
		{"data.n + 1 == 8 && data.n + 1 > 7 && data.n * 2 <= 14 && 15 >= data.n + 1 && data.n + 1 != 7 && data.n - 1 < 6.5", "true"},
		{"data.n in [1, 7]", "true"}, {`{7: "seven"}[data.n]`, `"seven"`}, {"data.n == 7", "true"}, {"7u == data.n", "true"},
		// Two whole numbers stay whole, two doubles stay doubles.
		{"7 / 2", "3"}, {"dyn(7) / 2", "3"}, {"-7 % 4", "-3"}, {"7.0 / 2.0", "3.5"}, {"visits / 2", "1"}, {"7u % 4u", "3"}, {`"a" + "b"`, `"ab"`}, {"[1] + [2]", "[1,2]"},
		{`string(timestamp(now) + duration("1h"))`, `"2026-11-23T09:00:00Z"`}, {`string(timestamp(now) - timestamp(now))`, `"0s"`},
		{"data.n % 0", `expression "data.n % 0": modulus by zero`}, {"7 % 0", `expression "7 % 0": modulus by zero`}, {"7 / 0", `expression "7 / 0": division by zero`},
		{"data.n / 0", `expression "data.n / 0" yields +Inf, which is no JSON`}, {"9223372036854775807 + 1", `expression "9223372036854775807 + 1": integer overflow`},
		{"data.n + data.t", `expression "data.n + data.t": no such overload: values of kinds that do not go together (beside a text, write string() of a number)`},
		{"data.n % data.t", `expression "data.n % data.t": no such overload: values of kinds that do not go together (beside a text, write string() of a number)`},
		{"data.b - 1", `expression "data.b - 1": no such overload: values of kinds that do not go together (beside a text, write string() of a number)`},
		{"data.t % 2", `expression "data.t % 2": no such overload: values of kinds that do not go together (beside a text, write string() of a number)`},
	} {
		e, err := expression.New(expression.Set, "= "+c.source)
		if err != nil {
			t.Errorf("%s: %v", c.source, err)
			continue
		}
		text, err := e.JSON(t.Context(), caseOf(`{"n":7,"h":0.5,"l":[1,2,3],"t":"x","b":true}`))
		got := string(text)
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.source, got, c.want)
		}
	}
}

// TestSumsAreNumbers: what must be a number, whatever data are, is refused where none fits
// when the machine is loaded.
func TestSumsAreNumbers(t *testing.T) {
	for _, c := range []struct {
		use          expression.Use
		source, want string
	}{
		{expression.Subject, "data.n + 1", "the expression yields a number, not a text"}, {expression.When, "2 * data.n", "the expression yields a number, not true or false"},
		{expression.Subject, `"Total " + (data.n + 1)`, "at character 10 of the expression: _+_ takes no number beside string"},
		{expression.Subject, `(data.n * 1.5 - data.m) + " EUR"`, "at character 25 of the expression: found no matching overload for '_+_' applied to '(double, string)'"},
		{expression.Subject, `(data.n * 2 - data.m) + " EUR"`, "at character 23 of the expression: _+_ takes no number beside string"},
		{expression.When, `data.n % 2 == "0"`, "at character 12 of the expression: _==_ takes no number beside string"}, {expression.When, `data.l.exists(x, x + 1 > "3")`, "at character 24 of the expression: _>_ takes no number beside string"},
		{expression.When, "data.n + 1 == data.m", "<nil>"}, {expression.When, "data.n + 1 == 2 || data.n + 1 == 2.5", "<nil>"}, {expression.Subject, `data.t + data.u + ""`, "<nil>"},
		{expression.Propose, `data.n + 1 > 2 ? "a" : "b"`, "<nil>"},
	} {
		if got := fmt.Sprint(expression.Check(c.use, "= "+c.source, []string{"a", "b"})); got != c.want {
			t.Errorf("%s: %s, want %s", c.source, got, c.want)
		}
	}
}
