package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/internal/files"
)

// The key by which the programs of a user of this computer are known to its server. The server
// writes it (dialai serve), commands read it, and nobody else may.

// ServerKeyPath returns where the key of this computer is.
func (a *App) ServerKeyPath() (string, error) {
	path, _, err := a.PlaceOf(a.Flags.Store)
	if err == nil && path == "" { // there is no file that it could be beside
		path, err = a.DefaultStore()
	}
	return filepath.Join(filepath.Dir(path), "server-key"), err
}

// ReadPrivate reads a file that nobody else may read.
func ReadPrivate(path string, k files.Kind) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, Hinted(fmt.Errorf("%s can be read by others", path), "chmod 600 %s", render.Quote(path))
	}
	return files.ReadRegular(path, k)
}

// ReadServerKey reads the key of this computer.
func ReadServerKey(path string) (string, error) {
	text, err := ReadPrivate(path, files.ServerKey)
	if err != nil {
		return "", err
	}
	key := strings.TrimSpace(string(text))
	if len(key) < 32 {
		return "", Hinted(fmt.Errorf("%s holds no key", path), "remove it: the next start writes another key")
	}
	return key, nil
}
