package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/vectors"
	"github.com/dialai/dialai/internal/files"
)

// vectorsCommand runs a file of test vectors and prints the actual results. It never
// looks at what the file expects.
func (a *app) vectorsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "vectors <file>", Hidden: true, Args: cobra.ExactArgs(1),
		Short: "Run test vectors and print the actual results",
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := a.ReadKind(args[0], files.Vectors)
			if err == nil {
				err = vectors.Run(cmd.Context(), a.Out, data, a.again)
			}
			if err != nil {
				return command.Usage("%s: %w", args[0], err)
			}
			return nil
		},
	}
}

// again runs this program's own commands, each as if it were a process of its own.
func (a *app) again(argv []string, in io.Reader, out, err io.Writer) int {
	return (&app{App: &command.App{Registry: a.Registry, In: in, Out: out, Err: err, Lookup: a.Lookup}}).main(context.Background(), argv)
}
