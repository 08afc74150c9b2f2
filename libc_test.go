package dialai_test

import (
	"os"
	"regexp"
	"testing"
)

// TestLibcFitsSQLite: modernc.org/sqlite works only with the very version of
// modernc.org/libc that it was made with; anything newer breaks at run time.
func TestLibcFitsSQLite(t *testing.T) {
	text, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for module, want := range map[string]string{"modernc.org/sqlite": "v1.60.1", "modernc.org/libc": "v1.77.1"} {
		m := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(module) + ` (\S+)`).FindSubmatch(text)
		if m == nil || string(m[1]) != want {
			t.Errorf("go.mod has %s %s, want %s: change both together, as sqlite's own go.mod says", module, m, want)
		}
	}
}
