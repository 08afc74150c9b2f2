package seal_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/dialai/dialai/internal/seal"
)

// TestSealed: what is sealed is opened by the same key for the same purpose, and by nothing else.
func TestSealed(t *testing.T) {
	key, text := seal.NewKey(), "the text"
	sealed := key.Seal("a", []byte(text))
	if strings.Contains(sealed, text) || sealed == key.Seal("a", []byte(text)) {
		t.Errorf("%s tells what it is", sealed)
	}
	if got, err := key.Open("a", sealed); err != nil || string(got) != text {
		t.Errorf("Open = %q, %v", got, err)
	}
	for i := range len(sealed) {
		forged := []byte(sealed)
		forged[i] = map[bool]byte{true: 'B', false: 'A'}[forged[i] == 'A']
		if got, err := key.Open("a", string(forged)); !errors.Is(err, seal.ErrOpen) {
			t.Fatalf("with byte %d changed it is %q, %v", i, got, err)
		}
	}
	for name, open := range map[string]func() ([]byte, error){
		"another key":     func() ([]byte, error) { return seal.NewKey().Open("a", sealed) },
		"another purpose": func() ([]byte, error) { return key.Open("b", sealed) },
		"nothing":         func() ([]byte, error) { return key.Open("a", "") },
		"no base64":       func() ([]byte, error) { return key.Open("a", "?"+sealed) },
		"cut short":       func() ([]byte, error) { return key.Open("a", sealed[:8]) },
	} {
		if got, err := open(); !errors.Is(err, seal.ErrOpen) {
			t.Errorf("%s opens it: %q, %v", name, got, err)
		}
	}
}

// TestKeyFile: the first who needs the key makes the file, for its owner alone; all get the same.
func TestKeyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control.key")
	var keys [8]seal.Key
	var errs [8]error
	var work sync.WaitGroup
	for i := range keys {
		work.Go(func() { keys[i], errs[i] = seal.KeyFile(path) })
	}
	work.Wait()
	for i := range keys {
		if errs[i] != nil || keys[i] != keys[0] || keys[i] == (seal.Key{}) {
			t.Errorf("key %d is another: %v", i, errs[i])
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
	if left, _ := filepath.Glob(path + ".*"); len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := seal.KeyFile(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a key that others can read is %v", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("c2hvcnQ="), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := seal.KeyFile(path); err == nil || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "c2hvcnQ") {
		t.Errorf("a short key is %v", err)
	}
}

// TestParseKey: a key is 32 bytes in base64; what is none is not repeated.
func TestParseKey(t *testing.T) {
	if _, err := seal.ParseKey(" MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n"); err != nil {
		t.Error(err)
	}
	for _, text := range []string{"", "secret", "MDEyMw==", strings.Repeat("A", 100)} {
		if _, err := seal.ParseKey(text); err == nil || text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%q is %v", text, err)
		}
	}
}

// FuzzOpen: nothing is opened but what was sealed, for the same purpose.
func FuzzOpen(f *testing.F) {
	k := seal.NewKey()
	f.Add("", "")
	f.Add("x", k.Seal("a", []byte("x")))
	f.Add("x", seal.NewKey().Seal("b", []byte("x")))
	f.Fuzz(func(t *testing.T, text, sealed string) {
		if got, err := k.Open("b", sealed); err == nil {
			t.Fatalf("%q is opened as %q", sealed, got)
		}
		own := k.Seal("b", []byte(text))
		if got, err := k.Open("b", own); err != nil || string(got) != text {
			t.Fatalf("%q comes back as %q, %v", text, got, err)
		}
		for _, other := range []string{own + "A", own[1:], own[:len(own)-1], sealed + own} {
			if _, err := k.Open("b", other); err == nil && other != own {
				t.Fatalf("%q is opened, which is nearly what was sealed", other)
			}
		}
	})
}
