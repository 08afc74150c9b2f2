// Package files reads files: as much as belongs to their kind, from where they belong.
//
// Every file that the program reads comes through here. There are three ways:
//
//   - [Read] and [Open] are for files that a person names, on the command line or in a
//     variable. Pipes and devices are read too, since a shell makes such of what a command
//     prints (/dev/stdin, <(…)), but no more of them than of files.
//   - [ReadRegular] and [Dir] are for files that the program finds by itself, in a folder that a
//     person named: regular files only.
//   - [ReadInside] is for files that another file names: regular ones, below the folder of
//     that file, whatever links say.
//
// No error shows what is in a file.
package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// A Kind is what a file is read as. It says how much of it is read.
type Kind struct {
	Name string
	Max  int64 // bytes
}

// The kinds of files that are read whole. Logs are read a line at a time ([Open]), and
// whoever reads them bounds a line.
var (
	Machine   = Kind{"machine file", 1 << 20}
	Guards    = Kind{"guards file", 1 << 20}
	Prices    = Kind{"prices file", 1 << 20}
	PriceList = Kind{"list of prices of others", 64 << 20}
	Input     = Kind{"session input", 256 << 10}
	Cassette  = Kind{"cassette", 64 << 20}
	Order     = Kind{"order of cassettes", 64 << 20}
	Data      = Kind{"data file", 1 << 30}
	Workers   = Kind{"list of workers", 16 << 20}
	Vectors   = Kind{"file of vectors", 64 << 20}
	Telemetry = Kind{"certificate or key", 1 << 20}
	ServerKey = Kind{"key of a server", 4 << 10}
	// ServerConfig and Tokens are what a server is told.
	ServerConfig = Kind{"settings of a server", 1 << 20}
	Tokens       = Kind{"tokens of a server", 1 << 20}
	// Permissions lists what agents may do.
	Permissions = Kind{"permissions file", 1 << 20}
	// Dump says where an undertaking stands.
	Dump = Kind{"dump of an undertaking", 1 << 20}
	// Specification says what an undertaking is to do; Script what a scripted agent does.
	Specification = Kind{"specification", 128 << 10}
	Script        = Kind{"script of an agent", 16 << 20}
)

// Kinds returns all kinds, for the documentation.
func Kinds() []Kind {
	return []Kind{Machine, Guards, Prices, PriceList, Input, Cassette, Order, Data, Workers, Vectors, Telemetry, ServerKey, ServerConfig, Tokens, Permissions, Dump, Specification, Script}
}

// ErrTooLarge is wrapped if a file has more bytes than its kind.
var ErrTooLarge = errors.New("too large")

// ErrNotRegular is wrapped if what a path names cannot be read as a file.
var ErrNotRegular = errors.New("not a regular file")

// Read reads a file that a person named. The error wraps [ErrTooLarge], [ErrNotRegular] for
// directories and sockets, or is that of the system.
func Read(path string, k Kind) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return k.Read(path, f)
}

// Open opens a file of any length that a person named, to be read a piece at a time.
func Open(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Mode()&(fs.ModeDir|fs.ModeSocket) != 0 {
		err = wrong("open", path, info.Mode())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// ReadRegular reads a file that the program found by itself.
func ReadRegular(path string, k Kind) ([]byte, error) {
	info, err := os.Stat(path) // a pipe would be waited for
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, wrong("open", path, info.Mode())
	}
	return Read(path, k)
}

// ReadInside reads a file by its name in a folder. The name is relative and neither it nor a
// link leads out of the folder; the error says so without saying what is there.
func ReadInside(dir, name string, k Kind) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, wrong("open", name, info.Mode())
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return k.Read(name, f)
}

// Read reads all of f, if that is no more than a file of the kind may have. The error wraps
// [ErrTooLarge] otherwise; path is for messages.
func (k Kind) Read(path string, f io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(f, k.Max+1))
	if err == nil && int64(len(data)) > k.Max {
		err = &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w: a %s has at most %d bytes", ErrTooLarge, k.Name, k.Max)}
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

func wrong(op, path string, mode fs.FileMode) error {
	what := "it is " + map[fs.FileMode]string{fs.ModeDir: "a directory", fs.ModeSocket: "a socket", fs.ModeNamedPipe: "a pipe"}[mode.Type()]
	if mode&fs.ModeDevice != 0 {
		what = "it is a device"
	}
	return &fs.PathError{Op: op, Path: path, Err: fmt.Errorf("%w: %s", ErrNotRegular, what)}
}

// Dir returns the regular files and folders below a folder that a person named, each file of
// one kind.
func Dir(dir string, k Kind) fs.FS { return &folder{os.DirFS(dir), k} }

type folder struct {
	fs.FS
	kind Kind
}

// Open implements [fs.FS].
func (d *folder) Open(name string) (fs.File, error) {
	info, err := fs.Stat(d.FS, name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return nil, wrong("open", name, info.Mode())
	}
	f, err := d.FS.Open(name)
	if err != nil || info.IsDir() {
		return f, err
	}
	return &bounded{File: f, name: name, kind: d.kind, left: d.kind.Max}, nil
}

// A bounded file ends with an error where its kind ends.
type bounded struct {
	fs.File
	name string
	kind Kind
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.File.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, &fs.PathError{Op: "read", Path: b.name, Err: fmt.Errorf("%w: a %s has at most %d bytes", ErrTooLarge, b.kind.Name, b.kind.Max)}
	}
	return n, err
}
