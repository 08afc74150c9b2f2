package cli

import (
	"github.com/spf13/cobra"

	"github.com/dialai/dialai/machine"
)

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of machine files",
		Long: `Print the JSON Schema (draft 2020-12) of machine files. Editors that know it
complete and check machine files as they are written.`,
		Example: `  dialai schema > machine.schema.json`,
		RunE: func(*cobra.Command, []string) error {
			_, err := a.Out.Write(machine.FileSchema())
			return err
		},
	}
}
