package permit

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// What a line sends away cannot be brought back. That it sends something is for the network;
// it is dangerous where what is sent lies outside, or nobody knows what it is: a pipe into a
// program that sends, a file that such a program reads, a source that is copied to another
// machine. And whoever goes through all of a home reads the credentials in it.

// senders send what they are sent, and copiers what they are given by name.
var (
	senders = set("nc ncat netcat socat curl wget ssh sftp ftp tftp telnet s_client mail mailx mutt sendmail")
	copiers = set("scp rsync")
	// combers go through folders and read all that is in them.
	combers = set("tar bsdtar zip 7z 7za cp rsync scp grep egrep fgrep zgrep rg ag ack ugrep")
)

// pipe takes up what one side of a pipe, or a file, has for a program that sends.
func (r *reader) pipe(n *syntax.BinaryCmd) {
	switch {
	case n.Op != syntax.Pipe && n.Op != syntax.PipeAll || !r.sends(n.Y):
	case len(r.s.away) > maxCommands: // more than anybody looks at
		r.s.away = append(r.s.away, word{text: "…"})
	default:
		r.sent(n.X)
	}
}

// redirected takes up what redirections have a statement send.
func (r *reader) redirected(n *syntax.Stmt) {
	if n.Cmd == nil || len(n.Redirs) == 0 {
		return
	}
	sends := r.sends(n.Cmd)
	for _, to := range n.Redirs {
		if sends {
			r.read(to)
		}
		if r.sends(to) { // cat x > >(nc host 80)
			r.sent(n.Cmd)
		}
	}
}

// sends reports whether something in a statement is a program that sends.
func (r *reader) sends(n syntax.Node) (found bool) {
	syntax.Walk(n, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 {
			return !found
		}
		var words []word
		for _, w := range call.Args {
			words = append(words, r.words(w)...)
		}
		name := program(words[0])
		found = found || r.s.functions[words[0].text]
		if _, carries := carriers[name]; !carries && !shells[name] && name != "openssl" && name != "" {
			words = words[:1]
		}
		for _, w := range words {
			for one := range strings.FieldsSeq(w.text) {
				found = found || senders[program(word{text: one, known: true})]
			}
		}
		return !found
	})
	return found
}

// sent takes up the arguments of all commands in a statement, and the files that they read.
func (r *reader) sent(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			for _, w := range n.Args[min(1, len(n.Args)):] {
				r.s.away = append(r.s.away, r.words(w)...)
			}
		case *syntax.Redirect:
			r.read(n)
		}
		return true
	})
}

// read takes up the file that a redirection reads, or a text of which nobody knows what it
// comes to.
func (r *reader) read(n *syntax.Redirect) {
	from := n.Word
	switch n.Op {
	case syntax.RdrIn, syntax.RdrInOut:
		r.s.away = append(r.s.away, r.words(from)...)
		return
	case syntax.Hdoc, syntax.DashHdoc:
		from = n.Hdoc
	case syntax.WordHdoc:
	default:
		return
	}
	if from == nil {
		return
	}
	for _, w := range r.words(from) {
		if !w.known {
			r.s.away = append(r.s.away, w)
		}
	}
}

// sendsOutside reports whether what is sent away may lie outside.
func (v *lines) sendsOutside() bool {
	away := v.away
	for _, c := range v.commands {
		if len(c.words) == 0 {
			continue
		}
		if v.sent {
			away = append(slices.Clip(away), c.words[1:]...)
		}
		if name := program(c.words[0]); copiers[name] && isRemote(c.words[len(c.words)-1]) {
			away = append(slices.Clip(away), c.words[1:len(c.words)-1]...)
		}
	}
	return slices.ContainsFunc(away, func(w word) bool {
		switch {
		case !w.known:
			return true
		case strings.HasPrefix(w.text, "/dev/tcp/") || strings.HasPrefix(w.text, "/dev/udp/") || isRemote(w):
			return false
		}
		w.glob = false // what it matches lies where it does
		return !v.wordInside(w)
	})
}

// isRemote reports whether a word names a file on another machine.
func isRemote(w word) bool {
	host, _, ok := strings.Cut(w.text, ":")
	return !w.known || ok && host != "" && !strings.Contains(host, "/") && !strings.HasPrefix(host, "-")
}

// combs reports whether a command goes through all of a home: a program that reads folders is
// given one, or find is, whose finds are read by others.
func (v *lines) combs(words []word) bool {
	name := program(words[0])
	if name == "find" || name == "fd" {
		reads := v.passes || slices.ContainsFunc(words, func(w word) bool {
			return slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"}, w.text)
		})
		return reads && slices.ContainsFunc(words[1:], func(w word) bool { return v.paths.homely(w, true) })
	}
	return combers[name] && slices.ContainsFunc(words[1:], func(w word) bool { return v.paths.homely(w, false) })
}

// homely reports whether a word names a home, or a folder that homes are in; or, if within is
// set, a folder in the home. What lies in cwd does not count.
func (p *paths) homely(w word, within bool) bool {
	if !w.known { // where HOME may have been set
		text := strings.TrimLeft(w.text, `"'`)
		return strings.HasPrefix(text, "~") || strings.HasPrefix(text, "$HOME") || strings.HasPrefix(text, "${HOME}")
	}
	if w.text == "" || strings.HasPrefix(w.text, "-") || p.inside(w.text) || len(w.text) > maxPath {
		return false
	}
	for _, base := range p.bases {
		real, _ := follow(absolute(base, strings.TrimRight(w.text, "*")))
		homes := []string{"/root", "/home/x", "/Users/x"}
		if p.home != "" {
			home, _ := follow(p.home)
			homes = append(homes, home)
		}
		for _, home := range homes {
			_, holds := below(real, home)
			_, in := below(home, real)
			if holds || in && within || real == path.Dir(home) {
				return true
			}
		}
	}
	return false
}

// mirrors reports whether rsync removes something outside: from where it copies to, or what it
// has copied.
func (v *lines) mirrors(words []word) bool {
	removes, all := false, false
	var operands []word
	for _, w := range words[1:] {
		switch {
		case !w.known:
			return true
		case strings.HasPrefix(w.text, "--del"):
			removes = true
		case strings.HasPrefix(w.text, "--remove-s"):
			removes, all = true, true
		case !strings.HasPrefix(w.text, "-"):
			operands = append(operands, w)
		}
	}
	if removes && !all && len(operands) > 0 {
		operands = operands[len(operands)-1:]
	}
	return removes && slices.ContainsFunc(operands, func(w word) bool { return isRemote(w) || !v.wordInside(w) })
}

// overwritesDevice reports whether dd or a like program writes to a disk.
func overwritesDevice(words []word) bool {
	return slices.ContainsFunc(words[1:], func(w word) bool {
		to, ok := strings.CutPrefix(w.text, "of=")
		return ok && strings.HasPrefix(to, "/dev/") && !slices.Contains([]string{"/dev/null", "/dev/stdout", "/dev/stderr"}, to)
	})
}
