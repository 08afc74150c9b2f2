package desk_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// markup is what makes a text more than that: markup, script, or a style that the policy refuses.
var markup = regexp.MustCompile(`@html|innerHTML|outerHTML|insertAdjacentHTML|createContextualFragment|DOMParser|document\.write|\beval\(|new Function\b|\sstyle="|srcdoc|javascript:`)

// TestNoMarkup: no source of the page makes markup or script of a text, wherever it would be shown.
func TestNoMarkup(t *testing.T) {
	seen := 0
	err := filepath.WalkDir("web/src", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, ".d.ts") {
			return err
		}
		text, err := os.ReadFile(path)
		seen++
		for i, line := range strings.Split(string(text), "\n") {
			if found := markup.FindString(line); found != "" {
				t.Errorf("%s:%d has %q: a text stays one", path, i+1, strings.TrimSpace(found))
			}
		}
		return err
	})
	if err != nil || seen < 50 {
		t.Errorf("%d sources were looked at: %v", seen, err)
	}
}
