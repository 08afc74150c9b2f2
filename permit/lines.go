package permit

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/dialai/dialai/internal/jsontext"
)

// A shell tool is judged in two passes. The first reads its line into commands, and what these
// carry into more: sudo git push is the command sudo and the command git, sh -c '…' whatever
// is in the quotes. The second judges each. Of a program that is not known every rest of its
// arguments is looked at as a command too, and every argument that holds blanks as a line:
// it may run them.

// lines are the lines of one prompt, or a text that may be one.
type lines struct {
	*look
	commands  []command
	others    []word
	plain     bool
	strange   bool
	loops     bool
	sent      bool
	away      []word
	passes    bool // gives what one command says to others
	danger    bool // something that runs cannot be read
	unclear   bool // nobody knows which command a carrier carries: no rule allows it
	escalated bool // asks for more than to run this
	maybe     bool // it may be no shell at all
	links     bool // it may make links
	loads     bool // sets a variable that says what programs run or load
	depth     int
}

// shell looks at a shell tool.
func (l *look) shell() string {
	v := &lines{look: l, plain: true}
	l.lines = v
	if !v.take() || l.unread || v.tooMuch() {
		l.unread = true
		return kindDangerous
	}
	v.movedAbout()
	kind := kindShell
	switch {
	case v.isDangerous():
		kind = kindDangerous
	case v.isNetwork():
		kind = kindNetwork
	}
	l.inside = kind == kindShell && v.isInside()
	l.readOnly = kind == kindShell && v.onlyReads()
	return kind
}

func (v *lines) tooMuch() bool {
	return len(v.commands) > maxCommands || slices.ContainsFunc(v.commands, func(c command) bool { return len(c.words) > maxCommands })
}

// take reads the input of a shell tool. ok is false if that cannot be read.
func (v *lines) take() (ok bool) {
	var given []json.RawMessage
	for _, m := range v.input.Members() {
		switch name := strings.ToLower(m.Name); name {
		case "command", "cmd", "script":
			if given = append(given, m.Value); name != m.Name {
				return false
			}
		case "cwd", "workdir", "working_directory":
			dir, isText := v.text(m.Name)
			if !isText && string(m.Value) != "null" {
				return false
			}
			if isText && dir != "" && dir != v.prompt.Cwd {
				v.others = append(v.others, word{text: dir, known: true})
				v.paths.moved(word{text: dir, known: true}, false)
			}
		case "chars", "environment", "env":
			return false // code for a shell that runs, or what changes what names mean
		case "dangerouslydisablesandbox", "with_escalated_permissions", "sandbox_permissions", "additionalpermissions":
			v.escalated = v.escalated || string(m.Value) != "false" && string(m.Value) != "null"
		}
	}
	if len(given) != 1 || v.prompt.Tool == "PowerShell" {
		return false
	}
	var argv []string
	if json.Unmarshal(given[0], &argv) == nil && argv != nil {
		return v.takeWords(argv)
	}
	var line string
	return jsontext.Unmarshal(given[0], &line) == nil && given[0][0] == '"' && v.takeLine(line)
}

// takeWords reads a command that no shell has read.
func (v *lines) takeWords(argv []string) bool {
	c := command{}
	for _, a := range argv {
		if len(a) > maxLine || !legible(a) {
			return false
		}
		c.words = append(c.words, word{text: a, known: true})
	}
	v.add(c)
	return len(argv) > 0
}

// takeLine reads a line.
func (v *lines) takeLine(line string) bool {
	s, err := reader{home: v.Home, cwd: v.paths.cwd}.readScript(line)
	if err != nil {
		return false
	}
	v.plain, v.strange, v.loops, v.sent = v.plain && s.plain, v.strange || s.strange, v.loops || s.loops, v.sent || s.sent
	v.others, v.away = append(v.others, s.others...), append(v.away, s.away...)
	for name := range s.assigned {
		if name == "CDPATH" || name == "OLDPWD" {
			v.paths.adrift = true
		}
		v.loads = v.loads || loader(name)
	}
	v.danger = v.danger || s.obscure
	for name := range s.read {
		v.danger = v.danger || secretName(name)
	}
	for _, c := range s.commands {
		v.add(c)
	}
	return true
}

// loader reports whether a variable says what programs run or load.
func loader(name string) bool {
	return slices.Contains([]string{"PATH", "ENV", "BASH_ENV", "IFS", "SHELL", "PAGER", "EDITOR", "VISUAL", "LESSOPEN", "LESSCLOSE", "NODE_OPTIONS", "PERL5OPT", "RUBYOPT"}, name) ||
		slices.ContainsFunc([]string{"GIT_", "LD_", "DYLD_", "PYTHON", "BASH_FUNC"}, func(begin string) bool { return strings.HasPrefix(name, begin) }) ||
		slices.ContainsFunc([]string{"_COMMAND", "_PAGER", "_EDITOR", "_WRAPPER"}, func(end string) bool { return strings.HasSuffix(name, end) })
}

// add takes up a command, and what it carries.
func (v *lines) add(c command) {
	if len(c.words) > 0 {
		v.carried(&c)
	}
	v.commands = append(v.commands, c)
}

// program returns what a word names as a program, without its folder, in lower case: there
// are file systems to which RM is rm. It is "" if nobody knows.
func program(w word) string {
	if !w.known || w.glob || strings.HasPrefix(w.text, "=") || strings.ContainsFunc(w.text, func(r rune) bool { return r >= 0x80 }) {
		return "" // of letters that are no ASCII some look like others
	}
	return strings.TrimSuffix(strings.ToLower(path.Base(w.text)), ".exe")
}

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

// movedAbout takes up every folder to which a command changes, whenever it runs: a function
// changes to one where it is called, and a loop again and again.
func (v *lines) movedAbout() {
	v.movedOnce(false)
	for before := 0; v.loops && before < len(v.paths.bases); {
		before = len(v.paths.bases)
		v.movedOnce(true)
	}
}

// movedOnce takes them up in the order in which they are written.
func (v *lines) movedOnce(again bool) {
	for _, c := range v.commands {
		if len(c.words) == 0 {
			continue
		}
		name := program(c.words[0])
		v.links = v.links || linkers[name]
		v.passes = v.passes || v.loops || name == "xargs" || name == "gxargs" || name == "parallel" || name == "cpio"
		if movers[name] {
			v.movedBy(name, c.words[1:], again)
			continue
		}
		for i, w := range c.words[1:] {
			value, option := "", false
			for _, o := range []string{"-C", "-D", "-R", "--chdir", "--directory", "--cwd", "--prefix", "--git-dir", "--work-tree"} {
				if rest, ok := strings.CutPrefix(w.text, o); ok {
					value, option = strings.TrimPrefix(rest, "="), true
				}
			}
			switch {
			case option && value != "":
				v.paths.moved(word{text: value, known: w.known, glob: w.glob}, again)
			case option && i+2 < len(c.words):
				v.paths.moved(c.words[i+2], again)
			}
		}
	}
}

func (v *lines) movedBy(name string, args []word, again bool) {
	for len(args) > 0 && args[0].known && len(args[0].text) > 1 && strings.HasPrefix(args[0].text, "-") {
		args = args[1:]
	}
	v.paths.adrift = v.paths.adrift || v.loops
	switch {
	case name == "popd" || len(args) > 0 && strings.HasPrefix(args[0].text, "+") || len(args) > 1 || len(args) == 0 && name == "pushd":
		v.paths.adrift = true
	case len(args) == 0:
		v.paths.moved(word{text: v.Home, known: v.Home != ""}, again)
	default:
		if v.paths.moved(args[0], again); !args[0].known {
			v.movedToAny(again)
		}
	}
}

// movedToAny takes up that the line may change to any folder that it names: d=/etc; cd $d.
func (v *lines) movedToAny(again bool) {
	named := v.others
	for _, c := range v.commands {
		named = append(slices.Clip(named), c.words[min(1, len(c.words)):]...)
	}
	for _, w := range named {
		for _, part := range strings.Split(w.text, "=") {
			if strings.HasPrefix(part, "/") && w.known && !v.paths.lost && isFolder(part) {
				v.paths.moved(word{text: part, known: true}, again)
			}
		}
	}
}

// linkers are programs with which a line may make a link and then go through it.
var linkers = set("ln cp mv tar bsdtar unzip cpio rsync install link git 7z")

// isNetwork reports whether a command is for the network.
func (v *lines) isNetwork() bool {
	return v.sent || slices.ContainsFunc(v.commands, func(c command) bool {
		if len(c.words) == 0 {
			return false
		}
		name := program(c.words[0])
		return slices.Contains(v.Network, name) || hubs[name]
	})
}

// isInside reports whether every path that the lines name is inside.
func (v *lines) isInside() bool {
	if v.strange || v.danger || v.loads || v.escalated || v.paths.root == "" {
		return false
	}
	for _, w := range v.others {
		if !v.wordInside(w) {
			return false
		}
	}
	return !slices.ContainsFunc(v.commands, func(c command) bool { return !v.commandInside(c) })
}

// outsiders are programs that are never inside: what they work on is named elsewhere or is no
// file, they run as somebody else, or they change what names mean.
var outsiders = set("xargs gxargs parallel awk gawk mawk nawk alias unalias sudo doas su chroot systemd-run docker podman kubectl helm terraform tofu pulumi ansible ansible-playbook skopeo crane svn pip pip3 pipx npx bunx uvx dig nslookup ping openssl aws gcloud gsutil az heroku fly flyctl vercel netlify wrangler firebase doctl systemctl service kill pkill killall reboot shutdown mount umount apt apt-get dnf yum pacman brew snap env printenv enable hash bind complete set shopt")

// fetches are subcommands by which programs fetch others and run them.
var fetches = set("install dlx exec i ci")

func (v *lines) commandInside(c command) bool {
	if len(c.words) == 0 {
		return true
	}
	name := program(c.words[0])
	if name == "" || outsiders[name] && !(name == "env" && len(c.words) > 1) || name == "git" && !gitInside(c.words) {
		return false
	}
	if at := c.words[0].text; strings.Contains(at, "/") && !v.paths.inside(at) && !v.paths.system(at) {
		return false
	}
	var scripts []int
	if name == "sed" || name == "gsed" {
		scripts, _ = sedScripts(c.words)
	}
	for i, w := range c.words[1:] {
		if i+1 == c.code || slices.Contains(scripts, i+1) {
			continue
		}
		if !v.wordInside(w) || runsSomething(w.text) || fetches[w.text] && name != "git" && !inert[name] {
			return false
		}
	}
	return true
}

// runsSomething reports whether a word is an option whose name says that it runs a program.
func runsSomething(text string) bool {
	option, ok := strings.CutPrefix(text, "--")
	if !ok {
		return false
	}
	option, _, _ = strings.Cut(option, "=")
	return !strings.HasPrefix(option, "no-") && slices.ContainsFunc([]string{"command", "exec", "program", "script", "cmd", "hook", "shell", "upload-pack", "receive-pack", "checkpoint", "pager", "editor"}, func(s string) bool { return strings.Contains(option, s) })
}

func (v *lines) wordInside(w word) bool {
	if !w.known || w.glob {
		return false
	}
	return !slices.ContainsFunc(pieces(w.text), func(p string) bool { return !v.paths.inside(p) })
}

// pieces returns what of a word may be a path: all of it, what stands between signs, and of
// an option what may be its value.
func pieces(text string) []string {
	const most = 200
	list := []string{text}
	list = append(list, strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n=:,;@<>|()[]\"'`&!", r) })...)
	for _, s := range slices.Clone(list) {
		if !strings.HasPrefix(s, "-") {
			continue
		}
		for i := 1; i < len(s) && s[i-1] != '/' && i < 40; i++ {
			list = append(list, s[i:])
		}
	}
	if len(list) > most {
		return []string{"/"} // too many to look at
	}
	return list
}
