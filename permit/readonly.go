package permit

import (
	"maps"
	"slices"
	"strings"
)

// Some programs only read, with the options that are known to. Whatever else is in a line, a
// variable, a substitution, a redirection, takes that away.

// readOnlyChecks are the programs that only read, each with what its arguments must hold to.
var readOnlyChecks = map[string]func(words []word) bool{
	"ls": anyArguments, "cat": anyArguments, "head": anyArguments, "tail": anyArguments, "wc": anyArguments,
	"grep": anyArguments, "stat": anyArguments, "pwd": anyArguments, "echo": anyArguments,
	"rg": rgReadsOnly, "find": findReadsOnly, "git": gitReadsOnly,
}

func readers() []string { return slices.Collect(maps.Keys(readOnlyChecks)) }

func anyArguments([]word) bool { return true }

// rgReadsOnly refuses the options of rg that run a program.
func rgReadsOnly(words []word) bool {
	for _, w := range words[1:] {
		switch {
		case w.text == "--":
			return true
		case strings.HasPrefix(w.text, "--pre"), strings.HasPrefix(w.text, "--hostname"), strings.HasPrefix(w.text, "--search-zip"), abbreviates(w.text, "--pre", "--pre-glob", "--hostname-bin", "--search-zip"):
			return false
		case strings.HasPrefix(w.text, "-") && !strings.HasPrefix(w.text, "--") && strings.Contains(w.text, "z"):
			return false
		}
	}
	return true
}

// findPlain are the expressions of find that only look, and findValued those that take a
// value. All others run, write or remove something, or nobody knows.
var (
	findPlain  = set("-H -L -P -O1 -O2 -O3 -print -print0 -ls -prune -quit -o -or -a -and -not ! ( ) , -empty -true -false -depth -d -mount -xdev -follow -readable -writable -executable -daystart -nouser -nogroup -noleaf -warn -nowarn -ignore_readdir_race")
	findValued = set("-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -type -xtype -size -mtime -mmin -atime -amin -ctime -cmin -used -newer -anewer -cnewer -maxdepth -mindepth -perm -user -group -uid -gid -links -inum -samefile -fstype -printf -regextype -context")
)

func findReadsOnly(words []word) bool {
	for i := 1; i < len(words); i++ {
		switch t := words[i].text; {
		case words[i].glob && strings.HasPrefix(t, "-"):
			return false
		case findPlain[t]:
		case findValued[t], strings.HasPrefix(t, "-newer") && len(t) == len("-newerXY"):
			i++
		case strings.HasPrefix(t, "-"):
			return false
		}
	}
	return true
}

// onlyReads reports whether every command only reads.
func (v *lines) onlyReads() bool {
	if !v.plain || v.strange || v.danger || v.escalated || len(v.commands) == 0 {
		return false
	}
	return !slices.ContainsFunc(v.commands, func(c command) bool { return !v.reads(c) })
}

func (v *lines) reads(c command) bool {
	if len(c.words) == 0 || c.assigns || c.redirected || slices.ContainsFunc(c.words, func(w word) bool { return !w.known }) {
		return false
	}
	name := c.words[0].text
	base := name[strings.LastIndexByte(name, '/')+1:]
	check := readOnlyChecks[base]
	return check != nil && !c.words[0].glob && slices.Contains(v.ReadOnly, base) && v.paths.system(name) && check(c.words)
}
