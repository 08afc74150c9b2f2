package expression_test

import (
	"fmt"
	"testing"

	"github.com/dialai/dialai/internal/expression"
)

// TestReads: what an expression looks at can be told before it runs.
func TestReads(t *testing.T) {
	for source, want := range map[string]string{
		`= data.amount > metaJson.limit`:                              "[{data amount} {metaJson limit}]",
		`= has(data.receipt) && data.receipt.total > 1.0`:             "[{data receipt}]",
		`= data["first name"] == data[data.key]`:                      "[{data first name} {data key}]",
		`= data.lines.exists(l, l.sku == data.sku)`:                   "[{data lines} {data sku}]",
		`= data.lines.exists(data, data.sku == "a")`:                  "[{data lines}]",
		`= [1].exists(data, data == 1) && data.after == 1`:            "[{data after}]",
		`= {"a": data.x, "b": [data.y]}.size() > 0 || data.z.t("a")`:  "[]", // no such function
		`= {"a": data.x, data.k: [data.y]}.size() > 0`:                "[{data x} {data k} {data y}]",
		`= data.name.startsWith(metaJson.prefix) ? true : data.other`: "[{data name} {metaJson prefix} {data other}]",
		`= size(data) > 0 && visits < 2`:                              "[]",
		`= data`:                                                      "[]",
		`= data.`:                                                     "[]",
	} {
		if got := fmt.Sprint(expression.Reads(expression.When, source)); got != want {
			t.Errorf("%s reads %s, want %s", source, got, want)
		}
	}
}
