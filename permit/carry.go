package permit

import (
	"slices"
	"strings"
)

// Some programs run the command, or the code, in their arguments. What they carry is judged as
// what stands in the line itself.

// A carrier is a program that runs the command in its arguments.
type carrier struct {
	values   string // short options that take a value
	operands int    // arguments before the command
	assigns  bool   // NAME=value may come before it
	more     bool   // it gives the command more arguments
}

var carriers = map[string]carrier{
	"sudo": {values: "ugpCrtTUDRh", assigns: true}, "doas": {values: "uC"}, "env": {values: "uC", assigns: true},
	"nohup": {}, "setsid": {}, "nice": {values: "n"}, "ionice": {values: "cn"}, "timeout": {values: "ks", operands: 1},
	"time": {values: "fo"}, "stdbuf": {values: "ioe"}, "xargs": {values: "IndPLaEs", more: true}, "gxargs": {values: "IndPLaEs", more: true},
	"command": {}, "builtin": {}, "exec": {values: "a"}, "busybox": {}, "toybox": {}, "coproc": {}, "noglob": {}, "nocorrect": {}, "-": {},
}

var shells = set("sh bash dash ash ksh mksh zsh rbash fish csh tcsh pwsh powershell")

// posix are the shells that are read.
var posix = set("sh bash dash ash ksh mksh zsh rbash")

var movers = set("cd pushd popd chdir")

func set(names string) map[string]bool {
	s := map[string]bool{}
	for n := range strings.FieldsSeq(names) {
		s[n] = true
	}
	return s
}

// carried takes up the commands and the code in the arguments of a command.
func (v *lines) carried(c *command) {
	name := program(c.words[0])
	switch k, ok := carriers[name]; {
	case ok:
		v.carriedBy(k, name, c.words)
	case shells[name]:
		code, at := shellCode(c.words)
		if at < 0 || at > 0 && !(posix[name] && v.nested(code)) {
			v.danger = true
		}
		c.code = max(at, 0)
	case name == "eval":
		if code, known := joined(c.words[1:]); !known || !v.nested(code) {
			v.danger = true
		}
		c.code = 1
	case name == "trap" && len(c.words) > 2:
		if w := c.words[1]; w.text != "-" && (!w.known || !v.nested(w.text)) {
			v.danger = true
		}
		c.code = 1
	case name == "find":
		for i, w := range c.words {
			if slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir"}, w.text) {
				v.inner(untilEnd(c.words[i+1:]))
			}
		}
	}
}

// untilEnd returns the command of find -exec.
func untilEnd(words []word) []word {
	if end := slices.IndexFunc(words, func(w word) bool { return w.text == ";" || w.text == "+" }); end >= 0 {
		words = words[:end]
	}
	words = slices.Clone(words)
	for i, w := range words {
		if strings.Contains(w.text, "{}") {
			words[i].known = false
		}
	}
	return words
}

// inner takes up a command that another one runs.
func (v *lines) inner(words []word) {
	if v.plain = false; len(words) > 0 && len(v.commands) <= maxCommands {
		v.add(command{words: words})
	}
}

// nested takes up code in a word.
func (v *lines) nested(code string) bool {
	if v.depth++; v.depth > maxDepth {
		return false
	}
	ok := v.takeLine(code)
	v.depth--
	v.plain = false
	return ok
}

// joined returns words as one text.
func joined(words []word) (text string, known bool) {
	known = true
	var list []string
	for _, w := range words {
		known = known && w.known && !w.glob
		list = append(list, w.text)
	}
	return strings.Join(list, " "), known
}

// carriedBy finds the command that a carrier runs, and adds a word of which nobody knows
// what it is, where the carrier adds words.
func (v *lines) carriedBy(k carrier, name string, words []word) {
	i, operands, replaces := 1, k.operands, false
	for ; i < len(words); i++ {
		w := words[i]
		switch {
		case !w.known:
			v.unclear, v.danger = true, true
			return
		case w.text == "--":
		case strings.HasPrefix(w.text, "--"):
			replaces = replaces || strings.HasPrefix(w.text, "--r")
			if strings.HasPrefix(w.text, "--split") {
				v.danger = true
			}
			if !strings.Contains(w.text, "=") {
				v.unclear = true
				return
			}
		case strings.HasPrefix(w.text, "-") && len(w.text) > 1:
			if name == "command" && strings.ContainsAny(w.text, "vV") {
				return
			}
			replaces = replaces || strings.ContainsAny(w.text, "IiJ")
			if name == "env" && strings.Contains(w.text, "S") {
				v.danger = true
			}
			if at := strings.IndexAny(w.text[1:], k.values); at >= 0 && k.values != "" && at+2 == len(w.text) {
				i++
			}
		case k.assigns && strings.Contains(w.text, "="):
		case operands > 0:
			operands--
		default:
			inner := slices.Clone(words[i:])
			if k.more {
				inner = append(inner, word{text: "…"})
				for at := 1; at < len(inner) && replaces; at++ {
					inner[at].known = false
				}
			}
			v.inner(inner)
			return
		}
	}
	if name == "env" {
		v.danger = true // prints the environment
	}
}

// shellCode returns the code that a shell is given, and the index of that word: 0 if it reads
// a file instead, -1 if nobody knows what it runs.
func shellCode(words []word) (code string, at int) {
	for i := 1; i < len(words); i++ {
		w := words[i]
		switch {
		case !w.known || w.glob:
			return "", -1
		case w.text == "--version" || w.text == "--help":
			return "", 0
		case w.text == "-" || w.text == "--":
			return "", -1
		case slices.Contains([]string{"--login", "--norc", "--noprofile", "--posix", "--restricted"}, w.text):
		case strings.HasPrefix(w.text, "--"), strings.HasPrefix(w.text, "+"):
			return "", -1
		case strings.HasPrefix(w.text, "-"):
			flags := w.text[1:]
			if strings.Trim(flags, "abcefhiklmnptuvxBCEHPTo") != "" {
				return "", -1
			}
			takes := strings.Count(flags, "o")
			if !strings.Contains(flags, "c") {
				i += takes
				continue
			}
			if i += 1 + takes; i >= len(words) || !words[i].known || words[i].glob || takes > 0 || strings.HasPrefix(words[i].text, "-") || strings.HasPrefix(words[i].text, "+") {
				return "", -1
			}
			return words[i].text, i
		case isStream(w.text):
			return "", -1
		default:
			return "", 0
		}
	}
	return "", -1 // what it is sent
}

// isStream reports whether a file is what a program is sent.
func isStream(path string) bool {
	return strings.HasPrefix(path, "/dev/") || strings.HasPrefix(path, "/proc/")
}
