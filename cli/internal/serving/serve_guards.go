package serving

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/guards"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/files"
)

// namedGuards are the files of guards that a server knows, by the names of the guards, as a flag and
// a setting.
type namedGuards map[string]string

// Set takes an object as JSON.
func (n *namedGuards) Set(text string) error {
	var named map[string]string
	if err := json.Unmarshal([]byte(text), &named); err != nil {
		return errors.New("not an object of names, each with a file")
	}
	for name, path := range named {
		if name == "" || path == "" {
			return errors.New("a name, or a file, is empty")
		}
	}
	*n = named
	return nil
}

// String returns the object as JSON.
func (n *namedGuards) String() string {
	if len(*n) == 0 {
		return ""
	}
	text, _ := json.Marshal(*n) // texts always can
	return string(text)
}

// Type names what it takes.
func (n *namedGuards) Type() string { return "guards" }

// knownGuards reads the guards that a server knows.
func (a *app) knownGuards(named namedGuards) (map[string]*guard.Config, error) {
	known := map[string]*guard.Config{}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		data, err := a.ReadFile(named[name], files.Guards)
		if err != nil {
			return nil, err
		}
		c, err := guards.ParseGuards(named[name], data)
		if err != nil {
			return nil, command.Fail(command.ExitUsage, err)
		}
		if c.Classifier != nil {
			return nil, command.Fail(command.ExitUsage, fmt.Errorf("--guards %s: the guards have a classifier, which is not asked where steps are judged alone", name))
		}
		known[name] = c
	}
	return known, nil
}
