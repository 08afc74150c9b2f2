package scripted

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// mostRead is how long a file may be that a tool looks at; mostTold is how much of it, or of what
// a command prints, an event tells.
const (
	mostRead = 16 << 20
	mostTold = 2 << 10
)

// perform does what a tool does. Files outside the working folder are out of reach; other
// tools than these four do nothing.
func (t *turn) perform(u use) (string, error) {
	var in struct {
		Path    string `json:"file_path"`
		Content string `json:"content"`
		Old     string `json:"old_string"`
		New     string `json:"new_string"`
		Command string `json:"command"`
	}
	if err := json.Unmarshal(u.Input, &in); err != nil {
		return "", fmt.Errorf("input of %s: %w", u.Tool, err)
	}
	if !filepath.IsAbs(t.spec.Cwd) {
		return "", fmt.Errorf("the working folder %q is not absolute", t.spec.Cwd)
	}
	if u.Tool == "Bash" {
		return t.bash(in.Command)
	}
	folder, err := os.OpenRoot(t.spec.Cwd)
	if err != nil {
		return "", err
	}
	defer func() { _ = folder.Close() }()
	path, err := t.within(in.Path)
	if err != nil && (u.Tool == "Read" || u.Tool == "Write" || u.Tool == "Edit") {
		return "", err
	}
	switch u.Tool {
	case "Read":
		text, err := read(folder, path)
		return beginning(text), err
	case "Write":
		return "", write(folder, path, in.Content)
	case "Edit":
		return "", edit(folder, path, in.Old, in.New)
	}
	return "", nil
}

// within returns a path as one in the working folder.
func (t *turn) within(path string) (string, error) {
	if path == "" {
		return "", errors.New("file_path is missing")
	}
	if filepath.IsAbs(path) {
		return filepath.Rel(t.spec.Cwd, path)
	}
	return path, nil
}

func read(folder *os.Root, path string) (string, error) {
	if is, err := folder.Stat(path); err != nil {
		return "", err
	} else if !is.Mode().IsRegular() {
		return "", fmt.Errorf("%s: not a file that can be read", path)
	}
	f, err := folder.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, mostRead+1))
	if err == nil && len(text) > mostRead {
		return "", fmt.Errorf("%s: longer than %d bytes", path, mostRead)
	}
	return string(text), err
}

func write(folder *os.Root, path, content string) error {
	if err := folder.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return folder.WriteFile(path, []byte(content), 0o666)
}

func edit(folder *os.Root, path, old, new string) error {
	text, err := read(folder, path)
	if err != nil {
		return err
	}
	if n := strings.Count(text, old); old == "" || n != 1 {
		return fmt.Errorf("%s: old_string is there %d times, not once", path, n)
	}
	return folder.WriteFile(path, []byte(strings.Replace(text, old, new, 1)), 0o666)
}

func beginning(text string) string {
	if len(text) > mostTold {
		text = text[:mostTold]
	}
	return strings.ToValidUTF8(text, "")
}
