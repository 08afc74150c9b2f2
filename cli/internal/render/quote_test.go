package render

import (
	"os/exec"
	"testing"
)

// TestQuoteKeepsTheLastLineFeed: what is printed for a shell gives the name back, to its
// last character. Names of old stores may end in line feeds, which $(…) would drop.
func TestQuoteKeepsTheLastLineFeed(t *testing.T) {
	bash, _ := exec.LookPath("bash")
	for name, want := range map[string]string{
		"plain":             `plain`,
		"a b":               `'a b'`,
		"a\nb":              `"$(printf 'a\012b')"`,
		"a\x1b%":            `"$(printf 'a\033%%')"`,
		"a\n":               `$'a\012'`,
		"\n":                `$'\012'`,
		"it's\\ 100%!é\n\n": `$'it\047s\\ 100%\041é\012\012'`,
		"-a\u200b\r\n":      `$'\055a\342\200\213\015\012'`,
	} {
		got := Quote(name)
		if got != want {
			t.Errorf("%q is printed as %s, want %s", name, got, want)
		}
		if bash == "" {
			continue // the forms are compared all the same
		}
		if said, err := exec.Command(bash, "-c", "printf '%s.' "+got).Output(); err != nil || string(said) != name+"." {
			t.Errorf("bash reads %s as %q, %v, want %q", got, said, err, name)
		}
	}
}
