package dialai_test

import (
	"go/ast"
	"strconv"
	"strings"
	"testing"
)

// Whatever the program reads goes through package files, which bounds it and keeps to
// what may be read. So nobody else may open a file to read it.

// filesHome is the folder that may.
const filesHome = "internal/files"

// fileOpeners are the other places that open files, by the name of the function, and why
// they may.
var fileOpeners = map[string]string{
	"agent/internal/process/process.go: os/exec.Command":        "starts the program of an agent",
	"agent/internal/process/group_linux.go: os.ReadFile":        "reads of processes which session is theirs, and what came from what",
	"agent/internal/process/group_linux.go: path/filepath.Glob": "lists the ids of processes",
	"agent/scripted/bash.go: os/exec.CommandContext":            "runs the command of a script, once it was permitted",
	"agent/scripted/perform.go: os.OpenRoot":                    "reads and writes in the working folder what a script says, once it was permitted",
	"desk/desktest/server.go: os/exec.Command":                  "starts the server of a test",
	"desk/desktest/server.go: os.ReadFile":                      "reads the key that the server of a test has made",
	"internal/cassette/cassette.go: os.ReadDir":                 "lists the names in a folder, and reads nothing of the files",
	"internal/cassette/order.go: os.OpenFile":                   "only writes",
	"cli/internal/command/files.go: os.ReadDir":                 "lists names for a hint",
	"cli/bench_svg.go: os.ReadDir":                              "lists the names of charts in a folder, and reads nothing of them",
	"cli/init.go: os.OpenFile":                                  "only writes",
	"cli/proxy.go: os/exec.CommandContext":                      "starts the server that the caller names",
	"cli/internal/serving/open.go: os/exec.Command":             "has the system show an address in a browser",
	"cli/lint.go: path/filepath.WalkDir":                        "lists the names of machine files in a folder, and reads nothing of them",
	"cli/internal/serving/callers.go: os.OpenFile":              "writes the key of the computer, where there is none",
	"internal/pgtest/pgtest.go: os/exec.Command":                "runs the programs of Postgres for tests",
	"internal/pgtest/pgtest.go: path/filepath.Glob":             "lists the folders of the programs of Postgres",
	"internal/pgtest/pooler.go: os/exec.Command":                "runs the pooler for tests",
	"internal/pgtest/process_linux.go: os.ReadFile":             "says which processes a server of a test has started, to kill them with it",
	"internal/proxy/log.go: os.OpenFile":                        "appends to a log, and reads at a start what it has written itself",
	"store/file.go: os.OpenFile":                                "makes the file of a store, which SQLite reads",
	"undertaking/dump.go: os.Open":                              "opens a folder to sync the names in it, and reads nothing",
	"agent/agenttest/documented.go: os.ReadFile":                "reads our own documentation in tests",
	"undertaking/checks.go: os/exec.CommandContext":             "runs the check command",
	"undertaking/git.go: os/exec.CommandContext":                "starts git",
	"undertaking/tree.go: path/filepath.WalkDir":                "lists the names of files, each of which package files opens",
	"store/backup.go: os.Open":                                  "opens a folder to sync the names in it, and reads nothing",
	"store/testdata/stores/make.go: os.ReadFile":                "makes test data, and is no part of the program",
}

// opening are the functions of os and io/ioutil that open a file or list a folder.
var opening = []string{"Open", "OpenFile", "OpenRoot", "OpenInRoot", "ReadFile", "ReadDir", "DirFS", "NewFile", "Pipe"}

// otherOpening are the functions of other packages that do.
var otherOpening = map[string][]string{
	"path/filepath": {"Walk", "WalkDir", "Glob"},
	"syscall":       {"Open", "Openat"},
	"os/exec":       {"Command", "CommandContext"},
}

// TestFilesAreOpenedInOnePlace lists every place that opens a file.
func TestFilesAreOpenedInOnePlace(t *testing.T) {
	met := map[string]bool{}
	for _, s := range sources(t) {
		if s.pkg == filesHome || strings.HasPrefix(s.pkg, "examples") {
			continue
		}
		for _, use := range openers(s.file) {
			at := s.path + ": " + use
			met[at] = true
			if fileOpeners[at] == "" {
				t.Errorf("%s: files are read by package %s; if it only writes, list it here with the reason", at, filesHome)
			}
		}
	}
	for at := range fileOpeners {
		if !met[at] && !strings.Contains(at, "testdata") {
			t.Errorf("%s is listed, and does not open a file any more", at)
		}
	}
}

// openers returns the functions of a file's imports that open files.
func openers(f *ast.File) (uses []string) {
	names := map[string]string{}
	for _, i := range f.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		if _, known := otherOpening[path]; !known && path != "os" && path != "io/ioutil" {
			continue
		}
		name := path[strings.LastIndexByte(path, '/')+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		names[name] = path
	}
	ast.Inspect(f, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && names[x.Name] != "" {
			for _, name := range openingOf(names[x.Name]) {
				if sel.Sel.Name == name {
					uses = append(uses, names[x.Name]+"."+name)
				}
			}
		}
		return true
	})
	return uses
}

// openingOf returns the functions of a package that open files.
func openingOf(path string) []string {
	if names, other := otherOpening[path]; other {
		return names
	}
	return opening
}
