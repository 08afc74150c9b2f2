package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/render"
)

// version is set by the linker for releases.
var version = ""

// A build is what is known of this program.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"` // "" if it was not built from a checkout
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func buildInfo() build {
	b := build{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if b.Version == "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Commit = s.Value
		}
	}
	return b
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		Long:    "Print the version of this program, the commit it was built from, and what built it.",
		Example: "  dialai version\n  dialai version --json",
		RunE:    func(*cobra.Command, []string) error { return a.version() },
	}
}

func (a *app) version() error {
	b := buildInfo()
	if a.Flags.JSON {
		return render.JSON(a.Out, b)
	}
	commit := render.When(b.Commit != "", fmt.Sprintf(" (%.12s)", b.Commit))
	_, err := fmt.Fprintf(a.Out, "dialai %s%s %s %s\n", b.Version, commit, b.Go, b.Platform)
	return err
}
