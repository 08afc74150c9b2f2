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
	need := first(t)
	for name, n := range sizes {
		most := 25 * kb
		if editor(name) {
			most = 140 * kb
		}
		if !need[name] && n > most {
			t.Errorf("%s is %d B, more than %d", name, n, most)
		}
	}
	// A page is what is loaded to show it that the inbox has not: its own file, and what that imports.
	found := 0
	for name := range sizes {
		page, _, _ := strings.Cut(name, "-")
		if _, err := os.Stat("web/src/pages/" + page + ".svelte"); err != nil || filepath.Ext(name) != ".js" {
			continue
		}
		found++
		n := 0
		for part := range imported(t, name) {
			if !need[part] && !editor(part) {
				n += sizes[part]
			}
		}
		t.Logf("%s: %d B", page, n)
		most := 25 * kb
		if is := over[page]; is > 0 {
			most = is * kb
		}
		if n > most {
			t.Errorf("the page %s takes %d B of script beside what the inbox has loaded, more than %d", page, n, most)
		}
	}
	if pages, err := filepath.Glob("web/src/pages/*.svelte"); err != nil || found != len(pages)-1 { // the inbox is loaded at first
		t.Errorf("the test sees %d pages of %d: %v", found, len(pages), err)
	}
	if total > 300*kb {
		t.Errorf("all is %d B, more than 300 KB", total)
	}
}

// over are pages that are larger than the 25 KB that one may be, in KB: none may become larger than it is, and
// no other one may come to be here.
var over = map[string]int{"Session": 36}

// editor says whether a file is of the text field of the editor, which has a budget of its own.
func editor(name string) bool { return strings.HasPrefix(name, "Code-") }

// first are the files that the page itself names, and what those import at once.
func first(t *testing.T) map[string]bool {
	t.Helper()
	var named []string
	for _, m := range regexp.MustCompile(`/desk/assets/([^"]+)"`).FindAllStringSubmatch(page(t), -1) {
		named = append(named, m[1])
	}
	return imported(t, named...)
}

// imported are files, and what those import at once.
func imported(t *testing.T, named ...string) map[string]bool {
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
	for _, name := range named {
		add(name)
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
