package permit

import (
	"slices"
	"strings"
)

// What is dangerous is named by the spec of a prompt's kinds: to push, to publish, to remove
// what lies outside cwd, to touch credentials; and whatever may do so and cannot be read.

// isDangerous judges every command.
func (v *lines) isDangerous() bool {
	if v.danger || v.paths.lost || v.sendsOutside() {
		return true
	}
	for _, w := range v.others {
		if v.paths.secretWord(w) || isIndex(w) || w.known && mayBeCode(w.text) && v.holdsDanger(w.text) {
			return true
		}
	}
	return slices.ContainsFunc(v.commands, func(c command) bool {
		return len(c.words) > 0 && (v.dangerous(c.words, true) || slices.ContainsFunc(c.words, func(w word) bool { return v.paths.secretWord(w) || isIndex(w) }))
	})
}

// isIndex reports whether a word is one of an array whose index runs something: test, read
// and others evaluate it, whatever quotes it stands in.
func isIndex(w word) bool {
	return w.known && (strings.Contains(w.text, "[$(") || strings.Contains(w.text, "[`"))
}

// secretWord reports whether a word names credentials.
func (p *paths) secretWord(w word) bool {
	if len(w.text) > maxPath {
		return false
	}
	if p.credentials(w.text) {
		return true
	}
	return slices.ContainsFunc(strings.FieldsFunc(w.text, func(r rune) bool { return strings.ContainsRune("=:,@<>()'\"", r) }), func(s string) bool {
		return p.credentials(s) || strings.HasPrefix(s, "-") && len(s) > 2 && p.credentials(s[2:])
	})
}

// secretName reports whether a variable is of credentials by its name.
func secretName(name string) bool {
	if name != strings.ToUpper(name) {
		return false
	}
	for part := range strings.SplitSeq(name, "_") {
		if slices.Contains([]string{"TOKEN", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS", "APIKEY", "PAT"}, part) {
			return true
		}
	}
	return strings.HasSuffix(name, "API_KEY") || strings.HasSuffix(name, "ACCESS_KEY") || strings.HasSuffix(name, "PRIVATE_KEY")
}

var (
	removers = set("rm rmdir unlink shred srm wipe")
	// inert programs run nothing that they are given and send nothing.
	inert = set("echo printf cat ls head tail wc grep egrep fgrep rg stat pwd mkdir touch test [ true false : sleep date basename dirname realpath readlink uniq cut tr comm diff cmp file which type whoami id uname hostname df du tree seq cp ln chmod chown tee dd cd pushd popd unset local read return exit break continue shift wait jobs umask nl od hexdump xxd md5sum sha1sum sha256sum jq column fold rev tac paste gofmt kill let")
	// unreadable programs run what they are given, in a language or at a time of their own.
	unreadables = set("at batch crontab expect gdb lldb vi vim nvim ex view emacs ed screen tmux osascript sqlite3 psql mysql irb su chroot ssh-add ssh-keygen security secret-tool keyctl pass op vault")
	// hubs talk to a place where code is published.
	hubs = set("gh glab hub")
	// keepers give out credentials, or change what lies elsewhere and is not brought back; and this
	// program rules on what an agent asks.
	keepers = set("dialai gpg gpg2 goreleaser semantic-release np svn aws gcloud az kubectl helm terraform tofu pulumi gsutil s3cmd rclone vercel surge wipefs dropdb ssh-copy-id")
)

// interpreters run code of other languages, by the short options that hold it.
var interpreters = map[string]string{"python": "c", "pypy": "c", "ipython": "c", "perl": "eEnp", "ruby": "e", "node": "epr", "nodejs": "epr", "deno": "", "bun": "ep", "php": "rBRE", "lua": "e", "luajit": "e", "rscript": "e", "julia": "eE", "elixir": "e", "tclsh": "", "guile": "c", "groovy": "e", "scala": "e", "jshell": "", "swift": "e"}

// dangerous judges one command. If it is not whole it may be no command, but arguments of
// another one.
func (v *lines) dangerous(words []word, whole bool) bool {
	name := program(words[0])
	switch {
	case name == "":
		return whole && !v.maybe
	case removers[name]:
		return !v.removes(words[1:], whole)
	case name == "mv": // takes away what it moves
		return !v.removes(moved(words[1:]), whole)
	case name == "rsync" && v.mirrors(words), name == "dd" && overwritesDevice(words), strings.HasPrefix(name, "mkfs"), whole && v.combs(words):
		return true
	case inert[name]:
		return false
	case unreadables[name]:
		return whole
	case keepers[name]:
		return true
	case name == "git":
		return v.gitDangerous(words)
	case strings.HasPrefix(name, "git-"):
		return v.gitDangerous(asGit(words))
	case shells[name]:
		code, at := shellCode(words)
		return at < 0 && whole || at > 0 && v.holdsDanger(code)
	case name == "awk" || name == "gawk" || name == "mawk" || name == "nawk":
		return v.awkDangerous(words)
	case name == "sed" || name == "gsed":
		_, ok := sedScripts(words)
		return !ok
	case name == "curl" || name == "wget":
		return sendsData(words) || whole && v.passesOn(words)
	case hubs[name]:
		return !looksOnly(words)
	case name == "find" && v.findDeletes(words):
		return true
	case !whole:
		return false
	case name == "alias":
		return len(words) > 1
	case name == "printenv":
		return true
	case name == "export" || name == "declare" || name == "typeset" || name == "readonly" || name == "set":
		return len(words) == 1 || words[1].text == "-p" || words[1].text == "-x" || words[1].text == "-px"
	case name == "source" || name == ".":
		return len(words) < 2 || !words[1].known || words[1].glob || isStream(words[1].text)
	}
	base := strings.TrimRight(name, "0123456789.")
	if flags, ok := interpreters[base]; ok && givenCode(words, flags) {
		return true
	}
	return v.passesOn(words)
}

// passesOn reports whether a program that is not known may do something dangerous with its
// arguments: a word says that it publishes or is about credentials, or what follows, or what
// is in a word, would be dangerous as a command.
func (v *lines) passesOn(words []word) bool {
	for i, w := range words[1:] {
		if !w.known {
			continue
		}
		if v.publishes(w.text) || v.dangerous(words[i+1:], false) {
			return true
		}
		for text := w.text; ; {
			if mayBeCode(text) && v.holdsDanger(text) {
				return true
			}
			_, after, ok := strings.Cut(text, "=")
			if !ok {
				break
			}
			if text = after; text != "" && v.dangerous([]word{{text: text, known: true}}, false) {
				return true
			}
		}
	}
	return false
}

// publishes reports whether an argument is a word that publishes, or one about credentials.
func (v *lines) publishes(text string) bool {
	text = strings.ToLower(text)
	if option, ok := strings.CutPrefix(text, "--"); ok {
		return option == "push"
	}
	if strings.ContainsAny(text, "/ \t\n") {
		return false
	}
	text = text[strings.LastIndexByte(text, '.')+1:]
	return slices.ContainsFunc(strings.FieldsFunc(text, func(r rune) bool { return r == ':' || r == '-' }), func(part string) bool {
		return slices.Contains(v.Publishes, part) || slices.Contains([]string{"login", "token", "credential", "credentials", "password"}, part)
	}) || text == "print-access-token"
}

// mayBeCode reports whether a word could be a line of shell of more than one word.
func mayBeCode(text string) bool { return strings.ContainsAny(text, " \t\n;|&$`(!{") }

// holdsDanger reports whether a text would be dangerous as a line, as far as it is one.
func (v *lines) holdsDanger(text string) bool {
	if v.budget--; v.budget < 0 || v.depth >= maxDepth {
		v.unread = true
		return true
	}
	sub := &lines{look: v.look, maybe: true, depth: v.depth + 1, links: v.links}
	if !sub.takeLine(strings.TrimLeft(text, "|! ")) || sub.tooMuch() {
		return false
	}
	sub.movedAbout()
	return sub.isDangerous()
}

// removes reports whether all that rm is to remove may be removed.
func (v *lines) removes(args []word, whole bool) bool {
	some, options := false, true
	for _, w := range args {
		if w.known && options && strings.HasPrefix(w.text, "-") {
			options = w.text != "--"
			continue
		}
		if some = true; !v.paths.removable(w) || v.links && (strings.Contains(w.text, "/") || len(v.paths.bases) > 1) {
			return false
		}
	}
	return some || whole
}

// moved returns the arguments of mv without the one to which it moves. Where that comes first
// (-t), none is left out.
func moved(args []word) []word {
	for _, w := range args {
		if !w.known || strings.HasPrefix(w.text, "-t") || strings.HasPrefix(w.text, "--t") {
			return args
		}
	}
	if len(args) > 1 {
		return args[:len(args)-1]
	}
	return args
}

// givenCode reports whether an interpreter is given code, and not a file or a module. What
// follows some options may be their value, and is then no file.
func givenCode(words []word, flags string) bool {
	perhaps, value := false, false
	for _, w := range words[1:] {
		switch {
		case !w.known || w.text == "-" || w.text == "eval" || isStream(w.text):
			return true
		case len(words) == 2 && slices.Contains([]string{"-V", "-v", "-h", "--version", "--help"}, w.text), flags == "c" && strings.HasPrefix(w.text, "-m"):
			return false
		case strings.HasPrefix(w.text, "--"):
			if strings.HasPrefix(w.text, "--e") || strings.HasPrefix(w.text, "--p") || strings.HasPrefix(w.text, "--c") {
				return true
			}
			perhaps = !strings.Contains(w.text, "=")
			value = perhaps
		case strings.HasPrefix(w.text, "-"):
			if strings.ContainsAny(w.text, flags) && flags != "" {
				return true
			}
			perhaps, value = false, len(w.text) == 2 && strings.ContainsAny(w.text, "WXIrCdlzt")
		case value:
			value = false
		default:
			return false
		}
	}
	return !perhaps // what it is sent
}

// awkDangerous reports whether a program of awk may run others: it can only with system, a
// pipe, or a call through @.
func (v *lines) awkDangerous(words []word) bool {
	for _, w := range words[1:] {
		if !w.known && strings.ContainsAny(w.text, "`$(") || strings.Contains(w.text, "system") || strings.ContainsAny(w.text, "|@") {
			return true
		}
	}
	return false
}

// sedFlags are options of sed that take no value.
var sedFlags = set("-n -E -r -s -i -u -z -nE -nr -En -i.bak --quiet --silent --sandbox --regexp-extended --in-place")

// sedScripts returns which words are scripts of sed. ok is false if one may run or write
// something, or nobody knows.
func sedScripts(words []word) (at []int, ok bool) {
	for i := 1; i < len(words); i++ {
		w := words[i]
		switch {
		case w.known && sedFlags[w.text]:
			continue
		case w.known && (w.text == "-e" || w.text == "--expression"):
			i++
		case !w.known || strings.HasPrefix(w.text, "-"):
			return nil, false
		case len(at) > 0: // an operand after scripts
			continue
		}
		if i >= len(words) || !words[i].known || !harmlessSed(words[i].text) {
			return nil, false
		}
		at = append(at, i)
	}
	return at, len(at) > 0
}

// harmlessSed reports whether a script of sed only prints, deletes and substitutes.
func harmlessSed(s string) bool {
	for s != "" {
		s = strings.TrimLeft(s, " \t\n;0123456789,$!~+{}")
		switch {
		case s == "":
		case strings.IndexByte("pdqDPNnGgHhx=l", s[0]) >= 0:
			s = s[1:]
		case s[0] == 's' || s[0] == 'y':
			var ok bool
			if s, ok = afterSubstitution(s); !ok {
				return false
			}
		case s[0] == '/':
			_, after, ok := cutDelimited(s[1:], '/')
			if !ok {
				return false
			}
			s = strings.TrimPrefix(after, "I")
		default:
			return false
		}
	}
	return true
}

// afterSubstitution returns what follows s/…/…/flags, if no flag runs or writes something.
func afterSubstitution(s string) (rest string, ok bool) {
	if len(s) < 2 || s[1] >= 0x80 || s[1] == '\\' || s[1] == '\n' {
		return "", false
	}
	_, rest, ok = cutDelimited(s[2:], s[1])
	if ok {
		_, rest, ok = cutDelimited(rest, s[1])
	}
	rest = strings.TrimLeft(rest, "gpIi0123456789")
	return rest, ok && (rest == "" || strings.IndexByte(" \t\n;}", rest[0]) >= 0)
}

// cutDelimited cuts a text after the first delimiter that is not escaped. A list of
// characters in brackets is not read: the delimiter in one ends too early, and what follows
// is then hardly harmless.
func cutDelimited(s string, end byte) (before, after string, ok bool) {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '[', '\n':
			return "", "", false
		case end:
			return s[:i], s[i+1:], true
		}
	}
	return "", "", false
}

// sendsData reports whether curl or wget sends more than a question, or takes options or
// credentials from elsewhere.
func sendsData(words []word) bool {
	for i, w := range words[1:] {
		option, long := strings.CutPrefix(w.text, "--")
		switch {
		case !w.known || strings.HasPrefix(w.text, "@"):
			return true // nobody knows what it sends
		case long:
			option, _, _ = strings.Cut(option, "=")
			for _, sends := range []string{"data", "form", "upload-file", "json", "request", "config", "netrc", "user", "cert", "key", "post", "method", "body", "use-askpass", "execute", "load-cookies", "cookie", "proxy-user", "variable", "expand"} {
				if option != "" && option != "user-agent" && (strings.HasPrefix(option, sends) || strings.HasPrefix(sends, option)) {
					return true
				}
			}
		case strings.HasPrefix(w.text, "-"):
			for _, letter := range w.text[1:] {
				if strings.ContainsRune("dFTKnuEeb", letter) && !(letter == 'n' && program(words[0]) == "wget") {
					return true
				}
				if letter == 'X' {
					return !slices.Contains([]string{"-XGET", "-XHEAD"}, w.text) && (i+2 >= len(words) || !slices.Contains([]string{"GET", "HEAD"}, words[i+2].text))
				}
				if strings.ContainsRune("oAHcmwrxyYzCDtPQ", letter) {
					break
				}
			}
		}
	}
	return false
}

// looksOnly reports whether a command of gh is one that looks.
func looksOnly(words []word) bool {
	if len(words) < 3 {
		return false
	}
	return slices.Contains([]string{"pr", "mr", "issue", "run", "release", "repo", "workflow", "ci"}, words[1].text) && slices.Contains([]string{"view", "list", "status", "diff", "checks", "watch"}, words[2].text)
}

// findDeletes reports whether find removes something outside.
func (v *lines) findDeletes(words []word) bool {
	if !slices.ContainsFunc(words, func(w word) bool { return w.text == "-delete" }) {
		return false
	}
	for _, w := range words[1:] {
		if !w.known || w.text == "-L" || w.text == "-follow" || w.text == "-files0-from" {
			return true
		}
	}
	for _, w := range words[1:] {
		switch {
		case w.text == "-H" || w.text == "-P":
		case strings.HasPrefix(w.text, "-") || w.text == "(" || w.text == "!":
			return false
		case w.glob || v.links || !v.paths.inside(w.text):
			return true
		}
	}
	return false
}
