package expression_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/expression"
)

// TestReads: what an expression looks at can be told before it runs.
func TestReads(t *testing.T) {
	for source, want := range map[string]string{
		`= data.amount > metaJson.limit`:                              "data.amount metaJson.limit",
		`= has(data.receipt) && data.receipt.total > 1.0`:             "data.receipt data.receipt.total",
		`= data["first name"] == data[data.key]`:                      "data.first name data.key",
		`= data.lines.exists(l, l.sku == data.sku)`:                   "data.lines data.sku",
		`= data.lines.exists(data, data.sku == "a")`:                  "data.lines",
		`= [1].exists(data, data == 1) && data.after == 1`:            "data.after=[1]",
		`= {"a": data.x, "b": [data.y]}.size() > 0 || data.z.t("a")`:  "", // no such function
		`= {"a": data.x, data.k: [data.y]}.size() > 0`:                "data.x data.k data.y",
		`= data.name.startsWith(metaJson.prefix) ? true : data.other`: "data.name metaJson.prefix data.other",
		`= size(data) > 0 && visits < 2`:                              "",
		`= data`:                                                      "",
		`= data.`:                                                     "",
		`= data.buyer["name"].first == "Ann"`:                         `data.buyer.name.first=["Ann"]`,
		`= data.lines[0].n > 1 && data["x"].y[data.i].z`:              "data.lines data.x.y data.i",
		`= "key" in data && "first" in data.buyer && data.k in data`:  "data.key data.buyer data.buyer.first data.k",
		`= data.kind in ["a", data.b, "c"] || 1 != data.kind`:         `data.kind=["a" "c" 1] data.b`,
		`= data.paid == true && null == data.note`:                    "data.paid=[true] data.note",
		`= data.buyer.paid`:                                           "data.buyer.paid!",
		`= has(data.buyer.paid)`:                                      "data.buyer.paid",
		`= data["paid"]`:                                              "data.paid!",
	} {
		var all []string
		for _, r := range expression.Reads(expression.When, source) {
			text := r.Variable + "." + strings.Join(r.Path, ".")
			if r.Compared != nil {
				text += fmt.Sprintf("=%#v", r.Compared)
			}
			if r.Yielded {
				text += "!"
			}
			all = append(all, strings.NewReplacer("[]interface {}{", "[", "}", "]", ", ", " ").Replace(text))
		}
		if got := strings.Join(all, " "); got != want {
			t.Errorf("%s reads %s, want %s", source, got, want)
		}
	}
}
