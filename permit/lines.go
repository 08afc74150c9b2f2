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
