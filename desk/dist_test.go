package desk_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDistIsFresh: the built files are those of the sources that lie beside them.
func TestDistIsFresh(t *testing.T) {
	text, err := os.ReadFile("dist/build.json")
	if err != nil {
		t.Fatal(err)
	}
	built := map[string]string{}
	if err := json.Unmarshal(text, &built); err != nil {
		t.Fatal(err)
	}
	now := map[string]string{"openapi.json": sumOf(t, "../docs/openapi.json")}
	err = filepath.WalkDir("web", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == "node_modules":
			return filepath.SkipDir
		case d.IsDir(), strings.HasPrefix(d.Name(), "."), strings.HasSuffix(path, ".test.ts"), d.Name() == "schema.d.ts": // written from openapi.json
			return nil
		}
		now[filepath.ToSlash(strings.TrimPrefix(path, "web"+string(filepath.Separator)))] = sumOf(t, path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	samples, err := filepath.Glob("../machines/*.[jy]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range samples {
		now["machines/"+filepath.Base(path)] = sumOf(t, path)
	}
	if len(now) < 20 {
		t.Fatalf("there are only %d sources: the test does not see them", len(now))
	}
	for path, sum := range now {
		if built[path] != sum {
			t.Errorf("%s is not what desk/dist was built of: npm run build in desk/web", path)
		}
	}
	for path := range built {
		if now[path] == "" {
			t.Errorf("desk/dist was built of %s, which is gone", path)
		}
	}
}

func sumOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// TestBudget: the page is small, as it goes over the wire: what the inbox needs, each other part, the
// editor, and all of it.
func TestBudget(t *testing.T) {
	const kb = 1024
	sizes := map[string]int{}
	total := 0
	names, err := filepath.Glob("dist/assets/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		n := zipped(t, name)
		sizes[filepath.Base(name)], total = n, total+n
	}
	js, css := 0, 0
	for name := range first(t) {
		switch filepath.Ext(name) {
		case ".js":
			js += sizes[name]
		case ".css":
			css += sizes[name]
		}
	}
	t.Logf("first %d B of script, %d B of style; all %d B", js, css, total)
	if js == 0 || js > 45*kb || css == 0 || css > 10*kb {
		t.Errorf("what the inbox needs is %d B of script and %d B of style, more than 45 and 10 KB", js, css)
	}
	for name, n := range sizes {
		most := 25 * kb
		if strings.HasPrefix(name, "editor") || strings.HasPrefix(name, "Code") {
			most = 140 * kb
		}
		if !first(t)[name] && n > most {
			t.Errorf("%s is %d B, more than %d", name, n, most)
		}
	}
	if total > 300*kb {
		t.Errorf("all is %d B, more than 300 KB", total)
	}
}

// first are the files that the page itself names, and what those import at once.
func first(t *testing.T) map[string]bool {
	t.Helper()
	need := map[string]bool{}
	imports := regexp.MustCompile(`(?:import|from)\s*["']\./([^"']+)["']`) // a function is what import( calls
	var add func(name string)
	add = func(name string) {
		if need[name] {
			return
		}
		need[name] = true
		text, err := os.ReadFile("dist/assets/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".js") {
			for _, m := range imports.FindAllStringSubmatch(string(text), -1) {
				add(m[1])
			}
		}
	}
	for _, m := range regexp.MustCompile(`/desk/assets/([^"]+)"`).FindAllStringSubmatch(page(t), -1) {
		add(m[1])
	}
	return need
}

func zipped(t *testing.T, path string) int {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	w.Write(text)
	w.Close()
	return b.Len()
}
