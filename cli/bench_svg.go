package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/internal/files"
	"github.com/dialai/dialai/internal/lab/trial"
)

// A chartIndex says of which directory of data each set in a directory of charts was drawn,
// by its name there. It is kept beside the charts, so that two directories of the same name
// are two sets.
type chartIndex map[string]string

// chartIndexFile is the file of the index in a directory of charts.
const chartIndexFile = "sets.json"

// readChartIndex reads the index of a directory, which has none before anything is drawn.
func readChartIndex(dir string) (chartIndex, error) {
	path := filepath.Join(dir, chartIndexFile)
	text, err := files.ReadRegular(path, files.Data)
	if errors.Is(err, fs.ErrNotExist) {
		return chartIndex{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("--svg: %w", err)
	}
	var x chartIndex
	if err := json.Unmarshal(text, &x); err != nil || x == nil {
		return nil, command.Hinted(command.Usage("--svg: %s does not say of which data the charts are", path), "remove it, and draw the sets again")
	}
	return x, nil
}

// name returns the name of the set of a directory: what it has, or else as many of the last
// parts of its path as no other set is called by. A directory of which all parts are taken
// is numbered.
func (x chartIndex) name(data string) string {
	if full, err := filepath.Abs(data); err == nil {
		data = full
	}
	for name, of := range x {
		if of == data {
			return name
		}
	}
	name, parent := filepath.Base(data), filepath.Dir(data)
	for x.taken(name) && parent != filepath.Dir(parent) {
		name, parent = filepath.Base(parent)+"-"+name, filepath.Dir(parent)
	}
	for n, of := 2, name; x.taken(name); n++ {
		name = fmt.Sprintf("%s-%d", of, n)
	}
	x[name] = data
	return name
}

// taken says whether a set has a name, in whatever case: file systems may not tell cases
// apart.
func (x chartIndex) taken(name string) bool {
	for other := range x {
		if strings.EqualFold(other, name) {
			return true
		}
	}
	return false
}

// writeCharts draws what was measured on a set into a directory, which is made if it is not
// there, and writes the page of all sets whose charts are there.
func writeCharts(dir, data string, r trial.Report, d *trial.Data) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("--svg: %w", err)
	}
	index, err := readChartIndex(dir)
	if err != nil {
		return err
	}
	set := index.name(data)
	text, err := json.MarshalIndent(index, "", "  ")
	if err == nil { // before the charts: they are never there without their set
		err = os.WriteFile(filepath.Join(dir, chartIndexFile), append(text, '\n'), 0o644)
	}
	if err != nil {
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
