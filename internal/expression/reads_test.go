package expression_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/expression"
)

// TestReads: what an expression looks at can be told before it runs.
func TestReads(t *testing.T) {
	// = what it is compared with, ! what is yielded, ? what it is asked whether it is there
	for source, want := range map[string]string{
		`= data.amount > metaJson.limit`:                               "data.amount metaJson.limit",
		`= has(data.receipt) && data.receipt.total > 1.0`:              "data.receipt? data.receipt.total",
		`= data["first name"] == data[data.key]`:                       "data.first name data.key",
		`= data.lines.exists(l, l.sku == data.sku)`:                    "data.lines data.lines[].sku data.sku",
		`= data.lines.exists(data, data.sku == "a")`:                   `data.lines data.lines[].sku=["a"]`,
		`= [1].exists(data, data == 1) && data.after == 1`:             "data.after=[1]",
		`= data.a.filter(x, x.n > 1).all(y, y.m == "a")`:               `data.a data.a[].n data.a[] data.a[].m=["a"]`,
		`= data.a.filter(x, x.n > 1).filter(x, x.k).exists(y, y.m)`:    "data.a data.a[].n data.a[] data.a[].k data.a[].m",
		`= data.a.map(x, x.n > 1, x.l).all(y, y.m)`:                    "data.a data.a[].n data.a[].l",
		`= {"a": data.x, "b": [data.y]}.size() > 0 || data.z.t("a")`:   "", // no such function
		`= {"a": data.x, data.k: [data.y]}.size() > 0`:                 "data.x data.k data.y",
		`= data.name.startsWith(metaJson.prefix) ? true : data.other`:  "data.name metaJson.prefix data.other",
		`= size(data) > 0 && visits < 2`:                               "",
		`= data`:                                                       "",
		`= data.`:                                                      "",
		`= data.buyer["name"].first == "Ann"`:                          `data.buyer.name.first=["Ann"]`,
		`= data.lines[0].n > 1 && data["x"].y[data.i].z`:               "data.lines[].n data.x.y data.i",
		`= "key" in data && "first" in data.buyer && data.k in data`:   "data.key? data.buyer data.buyer.first? data.k",
		`= data.kind in ["a", data.b, "c"] || 1 != data.kind`:          `data.kind=["a" "c" 1] data.b`,
		`= data.paid == true && null == data.note`:                     "data.paid=[true] data.note",
		`= data.buyer.paid`:                                            "data.buyer.paid!",
		`= has(data.buyer.paid)`:                                       "data.buyer.paid?",
		`= data.a.all(x, x.b.all(y, has(y.c) && x.n > y.n))`:           "data.a data.a[].b data.a[].b[].c? data.a[].n data.a[].b[].n",
		`= data.a.all(x, x.b.all(x, x.n) && x.m) && x.n`:               "", // no such variable
		`= data.a.all(x, x.b.all(x, x.n) && x.m)`:                      "data.a data.a[].b data.a[].b[].n data.a[].m",
		`= data.a.map(x, x.n)[0] && data.a.filter(x, x.ok).size() > 0`: "data.a data.a[].n data.a[].ok data.a[]",
		`= data["paid"]`:                                               "data.paid!",
	} {
		var all []string
		for _, r := range expression.Reads(expression.When, source) {
			text := r.String()
			if r.Compared != nil {
				text += fmt.Sprintf("=%#v", r.Compared)
			}
			if r.Yielded {
				text += "!"
			}
			if r.Tested {
				text += "?"
			}
			all = append(all, strings.NewReplacer("[]interface {}{", "[", "}", "]", ", ", " ").Replace(text))
		}
		if got := strings.Join(all, " "); got != want {
			t.Errorf("%s reads %s, want %s", source, got, want)
		}
	}
}

// TestConstant: a condition that reads nothing always holds, or never.
func TestConstant(t *testing.T) {
	for source, want := range map[string]string{
		`= true`: "always", `= false`: "never", `= 1 > 2 || "a" == "a"`: "always", `= [1, 2].all(n, n > 1)`: "never", `= type(1) == int`: "always",
		`= 1 / 0 > 0`:  "never", // it fails
		`= visits > 0`: "", `= data == data`: "", `= [1].all(n, n < steps)`: "", `= has(metaJson.x)`: "", `= last == ""`: "", `= tru`: "",
	} {
		holds, constant := expression.Constant(source)
		if got := map[[2]bool]string{{true, true}: "always", {false, true}: "never"}[[2]bool{holds, constant}]; got != want {
			t.Errorf("%s holds %q, want %q", source, got, want)
		}
	}
}
