package files_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dialai/dialai/internal/files"
)

var small = files.Kind{Name: "small file", Max: 4}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLimits: each way reads as much as the kind has, and no byte more.
func TestLimits(t *testing.T) {
	dir := t.TempDir()
	fits, more := write(t, filepath.Join(dir, "fits"), "1234"), write(t, filepath.Join(dir, "more"), "12345")
	for name, read := range map[string]func(path string) ([]byte, error){
		"Read":        func(path string) ([]byte, error) { return files.Read(path, small) },
		"ReadRegular": func(path string) ([]byte, error) { return files.ReadRegular(path, small) },
		"ReadInside":  func(path string) ([]byte, error) { return files.ReadInside(dir, filepath.Base(path), small) },
		"Dir":         func(path string) ([]byte, error) { return fs.ReadFile(files.Dir(dir, small), filepath.Base(path)) },
	} {
		if data, err := read(fits); err != nil || string(data) != "1234" {
			t.Errorf("%s: %q, %v", name, data, err)
		}
		if data, err := read(more); !errors.Is(err, files.ErrTooLarge) || len(data) > 4 || !strings.Contains(err.Error(), "a small file has at most 4 bytes") {
			t.Errorf("%s: %q, %v", name, data, err)
		}
		if _, err := read(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDevices: a device without an end is read to the limit where a person named it, and
// not at all where a file did. A pipe is not waited for.
func TestDevices(t *testing.T) {
	if _, err := files.Read("/dev/zero", small); !errors.Is(err, files.ErrTooLarge) {
		t.Errorf("Read: %v", err)
	}
	if _, err := files.ReadRegular("/dev/zero", small); !errors.Is(err, files.ErrNotRegular) {
		t.Errorf("ReadRegular: %v", err)
	}
	if _, err := files.ReadInside("/dev", "zero", small); !errors.Is(err, files.ErrNotRegular) {
		t.Errorf("ReadInside: %v", err)
	}
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pipe", "."} {
		if _, err := files.ReadInside(dir, name, small); !errors.Is(err, files.ErrNotRegular) {
			t.Errorf("ReadInside %s: %v", name, err)
		}
		if _, err := files.ReadRegular(filepath.Join(dir, name), small); !errors.Is(err, files.ErrNotRegular) {
			t.Errorf("ReadRegular %s: %v", name, err)
		}
	}
	if _, err := files.Read(dir, small); !errors.Is(err, files.ErrNotRegular) {
		t.Errorf("Read of a folder: %v", err)
	}
}

// TestInside: no path and no link leads out of the folder.
func TestInside(t *testing.T) {
	dir := t.TempDir()
	home := filepath.Join(dir, "home")
	write(t, filepath.Join(home, "sub", "in"), "in")
	secret := write(t, filepath.Join(dir, "out"), "out")
	for link, to := range map[string]string{"in": "sub/in", "up": "../out", "abs": secret, "folder": ".."} {
		if err := os.Symlink(to, filepath.Join(home, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"sub/in", "in", "sub/../in", "./in"} {
		if data, err := files.ReadInside(home, name, small); err != nil || string(data) != "in" {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	for _, name := range []string{"../out", secret, "up", "abs", "folder/out", "sub/../../out"} {
		if data, err := files.ReadInside(home, name, small); err == nil || data != nil {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
}

// TestKindsAreDocumented holds the table of docs/machine-file.md to the kinds.
func TestKindsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/machine-file.md")
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[int64]string{4 << 10: "4 KiB", 128 << 10: "128 KiB", 256 << 10: "256 KiB", 1 << 20: "1 MiB", 16 << 20: "16 MiB", 64 << 20: "64 MiB", 1 << 30: "1 GiB"}
	for _, k := range files.Kinds() {
		found := false
		for line := range strings.Lines(string(text)) {
			found = found || strings.HasPrefix(line, "| ") && strings.Contains(line, k.Name) && strings.Contains(line, "| "+sizes[k.Max]+" |")
		}
		if !found {
			t.Errorf("docs/machine-file.md does not say that a %s has at most %d bytes", k.Name, k.Max)
		}
	}
}
