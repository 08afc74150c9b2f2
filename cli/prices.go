package cli

import (
	"bufio"
	"cmp"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/files"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/llm"
	"github.com/dialai/dialai/machine"
)

func (a *app) pricesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "prices",
		Short: "Show what models cost, or make a table of prices",
		Long: `What a model costs is looked up in the machine's guards.cost.prices, then in the file
that --prices names, then in the table that this program comes with. A cost that the
provider itself reports wins over all of them.

A file of prices is {"version": …, "prices": {"model": {"input_per_1m": 2.5,
"output_per_1m": 10}}}, JSON or YAML; with "replace": true the built-in table is left
out.`,
		Example: "  dialai prices list\n  dialai prices import model_prices.json > prices.json",
	}
	cmd.AddCommand(
		&cobra.Command{
			Use: "list", Short: "List the prices in force",
			Long:    "List what models cost, in US dollars for a million tokens, and on which day the\nprices that this program comes with were last compared with their providers' pages.",
			Example: "  dialai prices list\n  dialai prices list --prices prices.json --json",
			RunE:    func(*cobra.Command, []string) error { return a.listPrices() },
		},
		&cobra.Command{
			Use: "import <file>", Short: "Convert LiteLLM's table of prices",
			Long:    "Read LiteLLM's model_prices_and_context_window.json and print a table for --prices.",
			Example: "  dialai prices import model_prices_and_context_window.json > prices.json",
			RunE:    func(_ *cobra.Command, args []string) error { return a.importPrices(args[0]) },
		})
	return cmd
}

// pricedBy returns the price of a model in a machine: its own, or the table's.
func pricedBy(m *machine.Machine, t *spend.PriceTable) func(model string) (spend.Price, bool) {
	c, _ := guard.Parse(m.Definition().Guards, false) // it was checked when the file was loaded
	return func(model string) (spend.Price, bool) {
		model = llm.BaseModel(model)
		if c != nil {
			if p, ok := c.Cost.Table().Find(model); ok {
				return p, true
			}
		}
		return t.Find(model)
	}
}

// priced tells lint which models have a price.
func (a *app) priced(m *machine.Machine) (func(string) bool, error) {
	t, err := a.PriceTable()
	if err != nil {
		return nil, err
	}
	price := pricedBy(m, t)
	return func(model string) bool { _, known := price(model); return known }, nil
}

func (a *app) listPrices() error {
	t, err := a.PriceTable()
	if err != nil {
		return err
	}
	out := bufio.NewWriter(a.Out)
	return cmp.Or(a.Prices(out, t), out.Flush())
}

func (a *app) importPrices(path string) error {
	data, err := a.ReadFile(path, files.PriceList)
	if err != nil {
		return err
	}
	made, err := llm.ImportPrices(data, "imported from "+filepath.Base(path))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	_, err = a.Out.Write(made)
	return err
}
