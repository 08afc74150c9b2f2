package render

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/llm"
)

// modelCheck is a check as --json shows it.
type modelCheck struct {
	Model     string       `json:"model"`
	Provider  string       `json:"provider,omitempty"`
	Address   string       `json:"address,omitempty"`
	Reachable bool         `json:"reachable"`
	Form      string       `json:"form"`
	Usable    bool         `json:"usable"`
	Answered  string       `json:"answeredBy,omitempty"`
	LatencyMs int64        `json:"latencyMsec"`
	Priced    bool         `json:"priced"`
	CostUSD   *exact.Money `json:"costUSD,omitempty"`
	Error     string       `json:"error,omitempty"`
}

// Checks prints what came of asking models, and returns whether one cannot be used.
func (st Style) Checks(out io.Writer, checks []llm.Check, price func(model string) (spend.Price, bool)) (failed bool, err error) {
	rows := [][]string{{"MODEL", "PROVIDER", "ANSWER", "LATENCY", "PRICE"}}
	for _, k := range checks {
		p, known := price(k.Model)
		c := modelCheck{Model: k.Model, Provider: k.Provider, Address: k.Address, Reachable: k.Err == nil, Form: k.Form, Usable: k.Usable,
			Answered: k.Answered, LatencyMs: k.Latency.Milliseconds(), Priced: known}
		answer, cost := "ok ("+k.Form+")", "not known"
		switch {
		case k.Err != nil:
			c.Error, answer = k.Err.Error(), k.Err.Error()
		case !k.Usable:
			answer = "answered, but not by " + k.Form
		}
		if known {
			spent := p.Cost(k.Usage)
			c.CostUSD, cost = &spent, fmt.Sprintf("$%s, $%s per 1M", p.InputPer1M, p.OutputPer1M)
		}
		failed = failed || !k.Usable
		if st.JSON {
			if err := JSON(out, c); err != nil {
				return failed, err
			}
		}
		rows = append(rows, []string{k.Model, k.Provider, answer, k.Latency.Round(time.Millisecond).String(), cost})
	}
	if len(checks) == 0 && !st.JSON {
		fmt.Fprintln(out, "The machine names no model.")
	} else if !st.JSON {
		err = Table(out, rows)
	}
	return failed, err
}

// aPrice is a price as --json shows it.
type aPrice struct {
	Model   string      `json:"model"`
	Input   exact.Money `json:"inputPer1M"`
	Output  exact.Money `json:"outputPer1M"`
	Checked string      `json:"checked,omitempty"`
	Version string      `json:"version"`
}

// Prices prints what models cost.
func (st Style) Prices(out io.Writer, t *spend.PriceTable) error {
	rows := [][]string{{"MODEL", "INPUT", "OUTPUT", "CHECKED"}}
	for _, model := range slices.Sorted(maps.Keys(t.Prices)) {
		p, known := t.Price(model, time.Time{})
		if !known {
			continue
		}
		shown := aPrice{model, p.InputPer1M, p.OutputPer1M, "", t.Version}
		if own, builtin := llm.Prices().Price(model, time.Time{}); builtin && own.InputPer1M == p.InputPer1M && own.OutputPer1M == p.OutputPer1M {
			shown.Checked = llm.Checked(model)
		}
		if st.JSON {
			if err := JSON(out, shown); err != nil {
				return err
			}
		}
		rows = append(rows, []string{model, "$" + p.InputPer1M.String(), "$" + p.OutputPer1M.String(), shown.Checked})
	}
	if st.JSON {
		return nil
	}
	fmt.Fprintf(out, "Version %s, US dollars for a million tokens\n", Clean(t.Version))
	return Table(out, rows)
}
