package permit

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// A path is inside if it lies in cwd whichever way it is read: with .. taken off the text, as
// cd does, and with .. followed where links lead, as the system does; from cwd and from every
// folder to which the line may have changed. What does not exist yet lies where the last
// parent that exists does.

// maxPath is the longest text, in bytes, that is looked at as a path, maxLinks how many links
// one leads through, and maxBases from how many folders it is read.
const (
	maxPath  = 4096
	maxLinks = 40
	maxBases = 32
)

type paths struct {
	cwd        string   // as given, absolute, clean; "" if it was not
	root       string   // cwd with its links resolved
	bases      []string // whence relative paths may be read
	been       map[[2]string]bool
	adrift     bool // nobody knows whence
	lost       bool // from too many folders to look at
	home       string
	secret     [][]string // patterns of credentials, by components
	protected  []string
	dirs, path []string // of the system, and of PATH
}

func newPaths(cwd string, s Settings) *paths {
	p := &paths{been: map[[2]string]bool{}, home: s.Home, protected: s.Protected, dirs: s.SystemDirs, path: filepath.SplitList(s.Path)}
	for _, c := range s.Credentials {
		p.secret = append(p.secret, strings.Split(strings.ToLower(c), "/"))
	}
	if filepath.IsAbs(cwd) && !strings.ContainsRune(cwd, 0) {
		p.cwd = filepath.Clean(cwd)
		p.root, _ = follow(p.cwd)
		p.bases, p.been[readings(p.cwd)] = []string{p.cwd}, true
	}
	return p
}

// moved takes up that the line changes to a folder. Again, only to one that there is: a loop
// would go down for ever.
func (p *paths) moved(to word, again bool) {
	if !to.known || to.glob || to.text == "-" {
		p.adrift = true
		return
	}
	for _, base := range slices.Clone(p.bases) {
		next := absolute(base, to.text)
		if p.lost = p.lost || len(p.bases) >= maxBases || len(next) > maxPath; p.lost {
			p.adrift = true
			return
		}
		if at := readings(next); !p.been[at] && !(again && !isFolder(next)) {
			p.been[at] = true
			p.bases = append(p.bases, next)
		}
	}
}

// readings are one for all texts that lead to the same folder, whichever way they are read.
func readings(full string) [2]string {
	real, _ := follow(full)
	return [2]string{filepath.Clean(full), real}
}

func isFolder(full string) bool {
	info, err := os.Stat(full)
	return err == nil && info.IsDir()
}

// absolute joins without reading .. off the text.
func absolute(base, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return base + "/" + name
}

// inside reports whether a path that a prompt names lies in cwd and is not protected.
func (p *paths) inside(name string) bool {
	switch {
	case p.root == "" || len(name) > maxPath || strings.ContainsRune(name, 0) || strings.Contains(name, "{}") || strings.HasPrefix(name, "~"):
		return false
	case p.adrift && !filepath.IsAbs(name):
		return false
	}
	for _, base := range p.bases {
		full := absolute(base, name)
		for _, reading := range []string{full, filepath.Clean(full)} {
			real, ok := follow(reading)
			if !ok || !p.within(real) {
				return false
			}
		}
	}
	return true
}

// within reports whether a path without links lies in cwd, and under nothing protected.
func (p *paths) within(real string) bool {
	rel, ok := below(p.root, real)
	return ok && !slices.ContainsFunc(strings.Split(strings.ToLower(rel), "/"), func(c string) bool { return slices.Contains(p.protected, c) })
}

// below returns what of a clean path lies under another; "" if they are one.
func below(root, full string) (rel string, ok bool) {
	if full == root {
		return "", true
	}
	return strings.CutPrefix(full, strings.TrimSuffix(root, "/")+"/")
}

// real returns where a path leads from cwd.
func (p *paths) real(name string) (string, bool) {
	if p.cwd == "" || len(name) > maxPath {
		return "", false
	}
	return follow(absolute(p.cwd, name))
}

// relative writes a path without links as seen from cwd, if it lies there.
func (p *paths) relative(real string) string {
	if rel, ok := below(p.root, real); ok && rel != "" && p.root != "" {
		return rel
	}
	return real
}

// removable reports whether what a word names lies in cwd and is not cwd itself. Its last
// part may be a pattern of names: a link that it matches is removed itself, not what it
// leads to.
func (p *paths) removable(w word) bool {
	name := w.text
	if !w.known || name == "" {
		return false
	}
	if w.glob {
		dir, last := path.Split(name)
		if strings.ContainsAny(dir, "*?[") || last == "" || strings.ContainsRune(".[?", rune(last[0])) {
			return false
		}
		name = dir + "any"
	}
	if !p.inside(name) {
		return false
	}
	for _, base := range p.bases {
		if real, ok := follow(absolute(base, name)); !ok || real == p.root {
			return false
		}
	}
	return true
}

// follow returns an absolute path without links and without .. as the system reads it. Where
// a part does not exist the rest is taken as written. ok is false if nobody can tell.
func follow(name string) (real string, ok bool) {
	rest := strings.Split(name, "/")
	real, links, gone := "/", 0, false
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			real = path.Dir(real)
			gone = false
			continue
		}
		next := path.Join(real, part)
		if gone {
			real = next
			continue
		}
		info, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			real, gone = next, true
		case err != nil:
			return "", false
		case info.Mode()&fs.ModeSymlink == 0:
			real = next
		default:
			to, err := os.Readlink(next)
			if links++; err != nil || links > maxLinks {
				return "", false
			}
			if path.IsAbs(to) {
				real = "/"
			}
			rest = append(strings.Split(to, "/"), rest...)
		}
	}
	return real, true
}

// credentials reports whether a path is one of credentials, as written or where it leads.
func (p *paths) credentials(name string) bool {
	if p.looksSecret(name) {
		return true
	}
	for _, base := range p.bases {
		if real, ok := follow(absolute(base, name)); ok && len(name) <= maxPath && p.looksSecret(p.relative(real)) {
			return true
		}
	}
	return false
}

func (p *paths) looksSecret(name string) bool {
	parts := strings.Split(strings.ToLower(name), "/")
	for i := range parts {
		for _, pattern := range p.secret {
			if len(parts)-i >= len(pattern) && slices.EqualFunc(pattern, parts[i:i+len(pattern)], mayMeet) {
				return true
			}
		}
	}
	return false
}

// mayMeet reports whether a pattern and a name, which may hold wildcards itself, can stand
// for one file. A name of * alone names everything, and nothing in particular.
func mayMeet(pattern, name string) bool {
	if strings.Trim(name, "*") == "" || strings.HasPrefix(pattern, ".") && !strings.HasPrefix(name, ".") {
		return false
	}
	return meet(pattern, name, new(int))
}

func meet(a, b string, steps *int) bool {
	if *steps++; *steps > 10000 {
		return true
	}
	switch {
	case a == "" && b == "":
		return true
	case strings.HasPrefix(a, "*"):
		return meet(a[1:], b, steps) || b != "" && meet(a, b[1:], steps)
	case strings.HasPrefix(b, "*"):
		return meet(a, b[1:], steps) || a != "" && meet(a[1:], b, steps)
	case a == "" || b == "":
		return false
	case strings.HasPrefix(b, "["): // any one character
		_, after, closed := strings.Cut(b[1:], "]")
		return closed && meet(a[1:], after, steps) || a[0] == b[0] && meet(a[1:], b[1:], steps)
	}
	return (a[0] == b[0] || a[0] == '?' || b[0] == '?') && meet(a[1:], b[1:], steps)
}

// system reports whether a name that a shell looks up stands for a program of the system.
func (p *paths) system(name string) bool {
	if strings.Contains(name, "/") {
		return path.Clean(name) == name && slices.Contains(p.dirs, path.Dir(name)) && executable(name)
	}
	for _, dir := range p.path {
		if !filepath.IsAbs(dir) {
			return false // found from wherever the agent is
		}
		full := filepath.Join(dir, name)
		if !executable(full) {
			continue
		}
		_, in := below(p.root, full)
		return slices.Contains(p.dirs, filepath.Clean(dir)) && (p.root == "/" || !in)
	}
	return false
}

func executable(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
