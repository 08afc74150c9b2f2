package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/internal/lab/trial"
)

// setName names a set of data by its directory.
func setName(data string) string {
	if full, err := filepath.Abs(data); err == nil {
		data = full
	}
	return filepath.Base(data)
}

// writeCharts draws what was measured on a set into a directory, which is made if it is not
// there, and writes the page of all sets whose charts are there.
func writeCharts(dir, set string, r trial.Report, d *trial.Data) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("--svg: %w", err)
	}
	for _, c := range render.BenchCharts(set, r, d) {
		if err := os.WriteFile(filepath.Join(dir, c.File), c.SVG, 0o644); err != nil {
			return fmt.Errorf("--svg: %w", err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("--svg: %w", err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	page, err := render.BenchPage(names)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "index.html"), page, 0o644)
	}
	return err
}
