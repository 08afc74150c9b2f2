package permit

import (
	"fmt"
	"slices"
	"strings"
)

// Rules list what is always allowed and always denied. A denial goes before, and git stash is
// denied without a rule: there is one stash for all worktrees.
//
// A rule names a tool, or a tool and how what it is given begins. For a shell tool, all of
// which go by the name Bash, that is a command: a line is allowed if every command in it is,
// and denied if one is, also one that another command carries or may carry. An allow is
// compared only with what surely runs, a deny with whatever may.

// Rules are what somebody has listed. The zero Rules list nothing.
type Rules struct{ Allow, Deny []Pattern }

// A Pattern is one rule: Tool, Tool(text) or Tool(beginning*). The zero Pattern matches
// nothing.
type Pattern struct {
	tool, text string
	about      bool // only what is text
	prefix     bool // or begins with it
}

// String returns the pattern as it was written.
func (p Pattern) String() string {
	switch {
	case p.prefix:
		return p.tool + "(" + p.text + "*)"
	case p.about:
		return p.tool + "(" + p.text + ")"
	}
	return p.tool
}

// A patternError says what is wrong with a pattern, and what would be right.
type patternError struct{ message, hint string }

func (e *patternError) Error() string { return e.message + ": " + e.hint }

// ParsePattern reads a rule. The error names it and says how one is written.
func ParsePattern(text string) (Pattern, error) {
	wrong := func(what, hint string) (Pattern, error) {
		return Pattern{}, &patternError{fmt.Sprintf("the pattern %q %s", text, what), hint}
	}
	tool, rest, about := strings.Cut(text, "(")
	inner, closed := strings.CutSuffix(rest, ")")
	switch {
	case text == "":
		return wrong("is empty", "name a tool, such as Bash, or Bash(git status*)")
	case tool == "":
		return wrong("names no tool", "write the tool before the bracket, such as Bash"+text)
	case !legible(text) || strings.ContainsRune(text, '\n'):
		return wrong("holds characters that are not seen", "write it with plain characters, in one line")
	case strings.ContainsAny(tool, " \t*"):
		hint := "a tool is named in full, such as Bash or mcp__files__read; what it is given stands in brackets"
		if !about && strings.ContainsAny(strings.TrimSpace(tool), " \t") {
			hint = "for a command write Bash(" + text + ")"
		}
		return wrong("does not begin with the name of a tool", hint)
	case !about && strings.HasSuffix(text, ")"):
		return wrong("has a bracket that nothing opens", "write "+strings.TrimRight(text, ")")+" or Tool(text)")
	case !about:
		return Pattern{tool: tool}, nil
	case !closed:
		return wrong("has a bracket that is not closed", "write "+text+")")
	case inner == "":
		return wrong("has empty brackets", "for all that the tool is given write "+tool)
	case strings.HasSuffix(inner, ":*"):
		return wrong("ends in :*", "a beginning ends in * alone: "+tool+"("+strings.TrimSuffix(inner, ":*")+"*)")
	case inner == "*":
		return wrong("is about everything", "for all that the tool is given write "+tool)
	case strings.Contains(strings.TrimSuffix(inner, "*"), "*"):
		return wrong("has a * that is not at its end", "only how something begins can be given: "+tool+"("+inner[:strings.IndexByte(inner, '*')]+"*)")
	case strings.TrimSpace(inner) != inner:
		return wrong("has blanks at an end of what is in brackets", "write "+tool+"("+strings.TrimSpace(inner)+")")
	}
	beginning, prefix := strings.CutSuffix(inner, "*")
	return Pattern{tool: tool, text: beginning, about: true, prefix: prefix}, nil
}

// names reports whether a pattern is about a tool.
func (p Pattern) names(tool string) bool {
	return p.tool != "" && (p.tool == tool || tools[tool] == kindShell && (p.tool == "Bash" || tools[p.tool] == kindShell))
}

// fits compares a pattern with a text.
func (p Pattern) fits(text string) bool {
	return !p.about || text == p.text || p.prefix && strings.HasPrefix(text, p.text)
}

// within reports whether what a pattern is about stands anywhere in a text.
func (p Pattern) within(text string) bool { return !p.about || strings.Contains(text, p.text) }

// noStash is denied without a rule.
var noStash = []Pattern{{tool: "Bash", text: "git stash", about: true}, {tool: "Bash", text: "git stash ", about: true, prefix: true}}

// listed says what the rules say of the prompt.
func (l *look) listed() string {
	about := func(list []Pattern) (found []Pattern) {
		for _, p := range list {
			if p.names(l.prompt.Tool) {
				found = append(found, p)
			}
		}
		return found
	}
	deny, allow := about(slices.Concat(l.Rules.Deny, noStash)), about(l.Rules.Allow)
	switch {
	case slices.ContainsFunc(deny, l.deniedBy()):
		return "deny"
	case l.allowedBy(allow):
		return "allow"
	}
	return ""
}

// deniedBy returns what says whether a pattern denies the prompt. Of what cannot be read it
// is compared with every text, wherever in it.
func (l *look) deniedBy() func(p Pattern) bool {
	var texts, forms []string
	if l.unread || l.lines != nil && l.lines.danger {
		texts = append(texts, string(l.prompt.Input))
		eachText(l.prompt.Input, func(s string) { texts = append(texts, s, strings.Join(strings.Fields(s), " ")) })
	}
	for _, s := range l.subjects {
		forms = append(forms, s.forms...)
	}
	if l.lines != nil && !l.unread {
		l.budget = maxTexts
		forms = append(forms, l.lines.forms()...)
		if l.budget < 0 {
			return func(Pattern) bool { return true } // more than anybody reads
		}
	}
	return func(p Pattern) bool {
		return !p.about || slices.ContainsFunc(forms, p.fits) || slices.ContainsFunc(texts, p.within)
	}
}

// allowedBy reports whether patterns allow all there is to the prompt.
func (l *look) allowedBy(allow []Pattern) bool {
	every := slices.ContainsFunc(allow, func(p Pattern) bool { return !p.about })
	switch {
	case l.unread || len(allow) == 0:
		return false
	case l.lines != nil:
		return l.lines.allowedBy(allow, every)
	case every:
		return true
	}
	return len(l.subjects) > 0 && !slices.ContainsFunc(l.subjects, func(s subject) bool {
		return s.certain == "" || !slices.ContainsFunc(allow, func(p Pattern) bool { return p.fits(s.certain) })
	})
}

// allowedBy reports whether patterns allow every command.
func (v *lines) allowedBy(allow []Pattern, every bool) bool {
	switch {
	case v.danger || v.escalated || len(v.commands) == 0:
		return false
	case every:
		return true
	case v.strange || v.unclear || v.sent:
		return false
	}
	for _, c := range v.commands {
		if wraps(c) {
			continue // what it wraps is a command of its own here
		}
		if len(c.words) == 0 || c.assigns || c.redirected || !slices.ContainsFunc(allow, func(p Pattern) bool { return p.allows(c) }) {
			return false
		}
	}
	return slices.ContainsFunc(v.commands, func(c command) bool { return !wraps(c) })
}

// wrappers are the system's own shells; one that the path finds may be another.
var wrappers = set("/bin/sh /bin/bash /bin/zsh /usr/bin/sh /usr/bin/bash /usr/bin/zsh")

// wraps reports whether a command is a shell of the system that runs one literal line, which was
// read, and nothing else: Codex has each of its lines run so.
func wraps(c command) bool {
	return len(c.words) == 3 && c.code == 2 && !c.assigns && !c.redirected && wrappers[c.words[0].text] && (c.words[1].text == "-c" || c.words[1].text == "-lc") && c.words[2].known
}

// allows reports whether a pattern allows a command: what it says must be in the words before
// the first that is not known.
func (p Pattern) allows(c command) bool {
	end := slices.IndexFunc(c.words, func(w word) bool { return !w.known })
	if end < 0 {
		end = len(c.words)
	}
	if end == 0 || c.words[0].glob || end < len(c.words) && !p.prefix {
		return false
	}
	return p.fits(written(c.words[:end]))
}

// written joins words so that one with blanks is not taken for two.
func written(words []word) string {
	var list []string
	for _, w := range words {
		if w.text == "" || strings.ContainsAny(w.text, " \t\n'\"") {
			list = append(list, "'"+strings.ReplaceAll(w.text, "'", `'\''`)+"'")
			continue
		}
		list = append(list, w.text)
	}
	return strings.Join(list, " ")
}

// forms returns all texts by which a command may be denied: each rest of its words, as
// written and with the program's name alone, git without its options, and the same of what
// may be a line in a word.
func (v *lines) forms() (forms []string) {
	for _, c := range v.commands {
		if len(c.words) == 0 {
			continue
		}
		forms = append(forms, formsOf(c.words)...)
		if runsNothing(c.words) {
			continue
		}
		for i, w := range c.words[1:] {
			forms = append(forms, formsOf(c.words[i+1:])...)
			forms = append(forms, v.formsIn(w)...)
		}
	}
	for _, w := range v.others {
		forms = append(forms, v.formsIn(w)...)
	}
	return forms
}

// runsNothing reports whether a command runs nothing that is in its arguments.
func runsNothing(words []word) bool {
	name := program(words[0])
	at, _ := gitSub(words)
	return inert[name] || name == "git" && at > 0 && gitQuiet(words[at].text)
}

// formsIn are those of a word that may be a line.
func (v *lines) formsIn(w word) (forms []string) {
	for text := w.text; w.known && text != ""; {
		if mayBeCode(text) && v.depth < maxDepth {
			if v.budget--; v.budget < 0 {
				return forms
			}
			sub := &lines{look: v.look, maybe: true, depth: v.depth + 1}
			if sub.takeLine(strings.TrimLeft(text, "|! ")) && !sub.tooMuch() {
				forms = append(forms, sub.forms()...)
			}
		}
		_, text, _ = strings.Cut(text, "=")
	}
	return forms
}

// formsOf are those of one command.
func formsOf(words []word) []string {
	const most = 30 // words; what comes after them begins nothing
	words = words[:min(len(words), most)]
	rest, _ := joined(words[1:])
	forms := []string{written(words)}
	join := func(name, rest string) { forms = append(forms, strings.TrimSpace(name+" "+rest)) }
	join(words[0].text, rest)
	name := program(words[0])
	join(name, rest)
	if strings.HasPrefix(name, "git-") {
		return append(forms, formsOf(asGit(words))...)
	}
	if name != "git" {
		return forms
	}
	at, _ := gitSub(words)
	if at > 0 {
		rest, _ := joined(words[at:])
		join(name, rest)
	}
	for i, w := range words[1:] {
		if at < 0 && w.text == "stash" {
			rest, _ := joined(words[i+1:])
			join(name, rest)
		}
	}
	return forms
}
