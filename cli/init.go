package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/machines"
)

func (a *app) initCommand() *cobra.Command {
	var sample string
	var list, force bool
	cmd := &cobra.Command{
		Use:   "init [<file>]",
		Short: "Write a machine file to start from",
		Long: `Write a commented starter file, or one of the samples. "-" writes to stdout. An
existing file is not touched unless --force.

Samples:
` + sampleHelp(),
		Example: `  dialai init
  dialai init review.json --sample document-review
  dialai init --list`,
		RunE: func(_ *cobra.Command, args []string) error {
			if list {
				return a.listSamples()
			}
			return a.init(args, sample, force)
		},
	}
	cmd.Flags().StringVar(&sample, "sample", "", "the `sample` to write (default: the commented starter)")
	command.Complete(cmd, "sample", sampleNames()...)
	cmd.Flags().BoolVar(&list, "list", false, "list the samples")
	cmd.Flags().BoolVar(&force, "force", false, "overwrite an existing file")
	return cmd
}

func sampleNames() []string {
	var names []string
	for _, s := range machines.List() {
		names = append(names, s.Name)
	}
	return names
}

func sampleHelp() string {
	var b strings.Builder
	for _, s := range machines.List() {
		fmt.Fprintf(&b, "  %-19s %s\n", s.Name, s.About)
	}
	return strings.TrimRight(b.String(), "\n")
}

// sampleLine is a sample as --json shows it.
type sampleLine struct {
	Name  string `json:"name"`
	File  string `json:"file"`
	About string `json:"about"`
}

// writtenLine is a file that init wrote as --json shows it.
type writtenLine struct {
	Written string `json:"written"`
	Sample  string `json:"sample"`
}

func (a *app) listSamples() error {
	if !a.Flags.JSON {
		_, err := fmt.Fprintln(a.Out, sampleHelp())
		return err
	}
	for _, s := range machines.List() {
		if err := render.JSON(a.Out, sampleLine{s.Name, s.File, s.About}); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) init(args []string, sample string, force bool) error {
	name := cmp.Or(sample, machines.Starter)
	file, text, ok := machines.Read(name)
	if !ok {
		names := sampleNames()
		return command.Hinted(command.Usage("there is no sample %q", sample), "%s", cmp.Or(machine.DidYouMean(sample, names), "there are "+strings.Join(names, ", ")))
	}
	target := append(args, file)[0]
	if target == "-" {
		_, err := io.Copy(a.Out, bytes.NewReader(text))
		return err
	}
	if wrong := otherLanguage(file, target); wrong != "" {
		return command.Usage("%s is written in %s; choose a name that ends so", file, wrong)
	}
	if err := writeNew(target, text, force); err != nil {
		return err
	}
	switch {
	case a.Flags.JSON:
		return render.JSON(a.Out, writtenLine{target, name})
	case a.Flags.Quiet:
		return nil
	}
	next := func(words ...string) render.Command {
		return render.Command{Path: append([]string{"dialai"}, words...), Args: []string{target}}
	}
	_, err := fmt.Fprintf(a.Out, "Wrote %s. Run it, check what you change in it, and look at it:\n  %s\n  %s\n  %s\n", render.Clean(target), next(), next("lint"), next("graph"))
	return err
}

// otherLanguage returns the extension a copy of file must have if target has
// another, "" if all is well.
func otherLanguage(file, target string) string {
	ext := func(name string) string {
		e := strings.ToLower(filepath.Ext(name))
		if e == ".yml" {
			return ".yaml"
		}
		return e
	}
	if ext(file) != ext(target) {
		return ext(file)
	}
	return ""
}

func writeNew(path string, text []byte, force bool) error {
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(path, flags, 0o644) //nolint:gosec // a machine file holds no secrets
	if errors.Is(err, fs.ErrExist) {
		return command.Usage("%s exists already; choose another name or use --force", path)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
