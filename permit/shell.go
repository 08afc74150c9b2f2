package permit

import (
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// A line of shell is read into the commands that are in it, also those in substitutions,
// functions, loops. A word is known if the line alone says what a program is given for it;
// what a variable, a substitution or an escape in $'…' comes to is not. Braces are expanded,
// so {rm,-rf,/} is three words.
//
// What shells read differently is not read at all: control characters, blanks that are no
// ASCII, characters that have no width or turn the direction of text.

// maxLine is the longest line that is read, in bytes, and maxDepth how deep code is read that
// is in words of code. maxCommands is how many commands are looked at, maxAlternatives to how
// many words braces may come, of which a word opens at most maxBraces.
const (
	maxLine         = 32 << 10
	maxDepth        = 8
	maxCommands     = 1000
	maxAlternatives = 64
	maxBraces       = 20
	maxTexts        = 300
)

// A word is one argument.
type word struct {
	text  string // what a program is given, if known; else as written
	known bool
	glob  bool // text is a pattern of names: the shell puts those that it matches in its place
}

// A command is one simple command.
type command struct {
	words      []word
	code       int  // index of the word that is code, which has been read itself; 0 if none is
	assigns    bool // sets variables for it
	redirected bool // reads or writes a file, but /dev/null
}

// A script is what was read of one piece of shell.
type script struct {
	commands []command
	others   []word                // that are no arguments: targets, assigned values, items of loops
	assigned map[string]bool       // names of variables
	read     map[string]bool       // names of variables that are used
	strange  bool                  // has what is no list of commands: functions, arithmetic, tests
	plain    bool                  // is nothing but commands of words, joined by ; && || |
	loops    bool                  // something may happen more than once
	obscure  bool                  // has an escape in $'…' that hides what it says
	sent     bool                  // opens a connection
	away     []word                // that say what is sent away
	bodies   map[*syntax.Word]bool // of here-documents

	functions map[string]bool // names of those that are declared
}

var errUnread = errors.New("cannot be read")

// A reader reads shell.
type reader struct {
	home, cwd string // "" if nobody knows
	source    string
	s         *script
}

// readScript reads a piece of shell.
func (r reader) readScript(text string) (s *script, err error) {
	if len(text) > maxLine || !legible(text) {
		return nil, errUnread
	}
	defer func() {
		if recover() != nil {
			s, err = nil, errUnread
		}
	}()
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil, errUnread
	}
	r.source = text
	r.s = &script{assigned: map[string]bool{}, read: map[string]bool{}, plain: true, bodies: map[*syntax.Word]bool{}, functions: map[string]bool{}}
	r.names(file)
	if r.s.assigned["HOME"] || r.s.strange {
		r.home = ""
	}
	if r.s.assigned["PWD"] || r.s.strange {
		r.cwd = ""
	}
	r.collect(file)
	return r.s, nil
}

// legible reports whether all shells, and whoever is shown it, read a text alike.
func legible(text string) bool {
	if !utf8.ValidString(text) {
		return false
	}
	return !strings.ContainsFunc(text, func(r rune) bool {
		switch {
		case r == '\n' || r == '\t' || r == ' ':
			return false
		case r == unicode.ReplacementChar:
			return true
		}
		return unicode.IsControl(r) || unicode.IsSpace(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Variation_Selector) || strings.ContainsRune("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0", r)
	})
}

// names notes which variables a script sets and uses, and what it is made of.
func (r *reader) names(file *syntax.File) {
	s := r.s
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case nil, *syntax.File, *syntax.BinaryCmd, *syntax.Word, *syntax.Lit, *syntax.Comment:
		case *syntax.Stmt:
			s.plain = s.plain && !n.Background && !n.Coprocess && !n.Disown && len(n.Redirs) == 0
		case *syntax.SglQuoted:
			s.plain = s.plain && !n.Dollar
		case *syntax.DblQuoted:
			s.plain = s.plain && !n.Dollar
		case *syntax.CallExpr:
			for _, w := range n.Args {
				if movers[w.Lit()] {
					s.assigned["PWD"] = true
				}
			}
		case *syntax.ParamExp:
			s.plain = false
			if n.Param != nil {
				s.read[n.Param.Value] = true
				if n.Exp != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) {
					s.assigned[n.Param.Value] = true
				}
			}
			s.strange = s.strange || n.Excl || n.Index != nil || n.Slice != nil
		case *syntax.Assign:
			s.plain = false
			if n.Name != nil {
				s.assigned[n.Name.Value] = true
			}
		case *syntax.ForClause, *syntax.WhileClause:
			s.plain, s.loops = false, true
		case *syntax.WordIter:
			s.assigned[n.Name.Value] = true
		case *syntax.Block, *syntax.Subshell, *syntax.IfClause, *syntax.CaseClause, *syntax.CaseItem, *syntax.TimeClause, *syntax.CmdSubst, *syntax.ProcSubst, *syntax.Redirect:
			s.plain = false
		case *syntax.FuncDecl:
			s.plain, s.strange, s.loops = false, true, true
			if n.Name != nil {
				s.functions[n.Name.Value] = true
			}
		default:
			s.plain, s.strange = false, true
		}
		return true
	})
}

// collect takes up the commands and the other words.
func (r *reader) collect(file *syntax.File) {
	s := r.s
	args := map[*syntax.Word]bool{}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			r.statement(n, args)
		case *syntax.BinaryCmd:
			r.pipe(n)
		case *syntax.Word:
			if !args[n] && !s.bodies[n] {
				s.others = append(s.others, r.words(n)...)
			}
		}
		return true
	})
}

// statement takes up a statement.
func (r *reader) statement(n *syntax.Stmt, args map[*syntax.Word]bool) {
	c := command{}
	for _, to := range n.Redirs {
		r.redirect(to, &c, args)
	}
	r.redirected(n)
	switch cmd := n.Cmd.(type) {
	case *syntax.CallExpr:
		c.assigns = len(cmd.Assigns) > 0
		for _, w := range cmd.Args {
			args[w] = true
			c.words = append(c.words, r.words(w)...)
		}
	case *syntax.DeclClause:
		c.words = []word{{text: cmd.Variant.Value, known: true}}
		for _, a := range cmd.Args {
			if a.Naked && a.Value != nil {
				c.words = append(c.words, r.words(a.Value)...)
				continue
			}
			c.words = append(c.words, word{text: r.written(a), known: false})
		}
	default:
		if c.redirected {
			r.s.strange = true
		}
		return
	}
	r.s.commands = append(r.s.commands, c)
}

// redirect takes up where a command reads from or writes to.
func (r *reader) redirect(to *syntax.Redirect, c *command, args map[*syntax.Word]bool) {
	if to.Hdoc != nil {
		r.s.bodies[to.Hdoc] = true
	}
	switch to.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		args[to.Word] = true
		return
	case syntax.DplIn, syntax.DplOut:
		if w := r.words(to.Word); len(w) == 1 && w[0].known && strings.Trim(w[0].text, "0123456789-") == "" {
			args[to.Word] = true
			return
		}
	}
	if w := r.words(to.Word); len(w) == 1 && w[0].known && w[0].text == "/dev/null" {
		args[to.Word] = true
		return
	} else if len(w) == 1 && (strings.HasPrefix(w[0].text, "/dev/tcp/") || strings.HasPrefix(w[0].text, "/dev/udp/")) {
		r.s.sent = true
	}
	c.redirected = true
}

// written returns the text of a node.
func (r *reader) written(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(r.source) || from > to {
		return "?"
	}
	return r.source[from:to]
}

// words returns what a word comes to: several where there are braces.
func (r *reader) words(w *syntax.Word) (list []word) {
	if braces(w) > maxBraces {
		return []word{{text: r.written(w)}}
	}
	split := syntax.Word{Parts: slices.Clone(w.Parts)}
	alternatives := [][]syntax.WordPart{split.Parts}
	if syntax.SplitBraces(&split) {
		alternatives = unbraced(split.Parts)
	}
	for _, parts := range alternatives {
		made := r.word(parts)
		if !made.known {
			made.text = r.written(w)
		}
		list = append(list, made)
	}
	return list
}

// braces counts the braces that a word opens.
func braces(w *syntax.Word) (n int) {
	for _, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			n += strings.Count(lit.Value, "{")
		}
	}
	return n
}

// unreadable is a part of a word of which nobody knows what it comes to.
var unreadable = &syntax.CmdSubst{}

// unbraced returns the alternatives of parts that hold expressions in braces.
func unbraced(parts []syntax.WordPart) [][]syntax.WordPart {
	list := [][]syntax.WordPart{nil}
	for _, p := range parts {
		braces, ok := p.(*syntax.BraceExp)
		choices := [][]syntax.WordPart{{p}}
		switch {
		case ok && braces.Sequence:
			choices = [][]syntax.WordPart{{unreadable}}
		case ok:
			choices = nil
			for _, e := range braces.Elems {
				choices = append(choices, unbraced(e.Parts)...)
			}
		}
		if len(list)*len(choices) > maxAlternatives {
			return [][]syntax.WordPart{{unreadable}}
		}
		var next [][]syntax.WordPart
		for _, begin := range list {
			for _, c := range choices {
				next = append(next, slices.Concat(begin, c))
			}
		}
		list = next
	}
	return list
}

// word puts the parts of a word together.
func (r *reader) word(parts []syntax.WordPart) word {
	w := word{known: true}
	var b strings.Builder
	for i, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			r.literal(&b, &w, p.Value, i == 0, len(parts) == 1)
		case *syntax.SglQuoted:
			value := p.Value
			if p.Dollar {
				value = plainEscapes.Replace(value)
				if strings.Contains(strings.ReplaceAll(p.Value, `\\`, ""), `\`) && strings.Contains(value, `\`) {
					w.known, r.s.obscure = false, true
				}
			}
			b.WriteString(value)
		case *syntax.DblQuoted:
			w.known = w.known && !p.Dollar
			for _, q := range p.Parts {
				r.quoted(&b, &w, q)
			}
		case *syntax.ParamExp:
			r.variable(&b, &w, p, false)
		default:
			w.known = false
		}
	}
	w.text = b.String()
	w.glob = w.glob && w.text != "["
	return w
}

// plainEscapes are those of $'…' that hide nothing.
var plainEscapes = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\'`, "'", `\"`, `"`, `\\`, `\`)

// literal takes up what is not quoted.
func (r *reader) literal(b *strings.Builder, w *word, s string, first, alone bool) {
	if rest, ok := strings.CutPrefix(s, "~"); ok && first {
		user, _, _ := strings.Cut(rest, "/")
		if user != "" || r.home == "" || !alone && rest == "" {
			w.known = false
			return
		}
		b.WriteString(r.home)
		s = rest
	}
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			if i++; i == len(s) {
				w.known = false
				return
			}
		case '*', '?', '[':
			w.glob = true
		}
		b.WriteByte(s[i])
	}
}

// quoted takes up a part of what is in double quotes.
func (r *reader) quoted(b *strings.Builder, w *word, p syntax.WordPart) {
	switch p := p.(type) {
	case *syntax.Lit:
		for i := 0; i < len(p.Value); i++ {
			if p.Value[i] == '\\' && i+1 < len(p.Value) && strings.IndexByte("$`\"\\", p.Value[i+1]) >= 0 {
				i++
			}
			b.WriteByte(p.Value[i])
		}
	case *syntax.ParamExp:
		r.variable(b, w, p, true)
	default:
		w.known = false
	}
}

// variable takes up $HOME and $PWD, the only ones that are known.
func (r *reader) variable(b *strings.Builder, w *word, p *syntax.ParamExp, quoted bool) {
	value := ""
	if p.Param != nil {
		value = map[string]string{"HOME": r.home, "PWD": r.cwd}[p.Param.Value]
	}
	if value == "" || !isBare(p) || !quoted && strings.ContainsAny(value, " \t\n*?[\\") {
		w.known = false
		return
	}
	b.WriteString(value)
}

// isBare reports whether nothing is done with the value of a variable.
func isBare(p *syntax.ParamExp) bool {
	return p.Flags == nil && !p.Excl && !p.Length && !p.Width && !p.IsSet && p.NestedParam == nil && p.Index == nil && len(p.Modifiers) == 0 && p.Slice == nil && p.Repl == nil && p.Exp == nil && p.Names == 0
}
