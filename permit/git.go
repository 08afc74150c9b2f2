package permit

import (
	"slices"
	"strings"
)

// Git is many programs. Its options before the subcommand may change which one it is
// (-c alias.x=push), and a subcommand that is not one of its own may be an alias in a file
// that nobody here reads.

// gitPlain are options before the subcommand that change nothing that matters here, and
// gitValued those that take a value.
var (
	gitPlain  = set("--no-pager -P --no-optional-locks --literal-pathspecs --no-replace-objects --icase-pathspecs --no-lazy-fetch")
	gitValued = set("-C -c --git-dir --work-tree --namespace --exec-path --config-env --super-prefix --attr-source")
	// gitOwn are the subcommands that neither push nor hold credentials.
	gitOwn = set("add am apply archive bisect blame branch bundle cat-file checkout cherry cherry-pick clean clone column commit config count-objects describe diff diff-files diff-index diff-tree difftool fetch filter-branch for-each-ref format-patch fsck gc grep hash-object help init log ls-files ls-remote ls-tree maintenance merge merge-base mergetool mv notes pack-refs prune pull range-diff rebase reflog remote repack replace rerere reset restore rev-list rev-parse revert rm shortlog show show-branch show-ref sparse-checkout stash status submodule switch symbolic-ref tag update-index update-ref var verify-commit verify-tag version whatchanged worktree write-tree --version --help -h -v")
	// gitLocal are those that work on what lies here and run nothing that they are given.
	gitLocal = set("add blame branch checkout cherry-pick commit describe diff grep init log ls-files ls-tree merge-base mv reset restore revert rev-list rev-parse rm shortlog show status switch tag version --version")
	gitReads = set("status diff log show")
)

// gitSub returns the index of the subcommand of a git command, 0 if there is none, -1 if
// nobody knows, and whether all before it are gitPlain.
func gitSub(words []word) (at int, plain bool) {
	plain = true
	for i := 1; i < len(words); i++ {
		w := words[i]
		switch {
		case !w.known || w.glob:
			return -1, false
		case gitPlain[w.text]:
		case gitValued[w.text]:
			plain = false
			i++
		case strings.HasPrefix(w.text, "--") && strings.Contains(w.text, "="), w.text == "-p", w.text == "--paginate", w.text == "--bare":
			plain = false
		case strings.HasPrefix(w.text, "-") && !gitOwn[w.text]:
			return -1, false
		default:
			return i, plain
		}
	}
	return 0, plain
}

// asGit writes git-push as git push.
func asGit(words []word) []word {
	return slices.Concat([]word{{text: "git", known: true}, {text: strings.TrimPrefix(program(words[0]), "git-"), known: true}}, words[1:])
}

// gitDangerous judges a git command.
func (v *lines) gitDangerous(words []word) bool {
	at, _ := gitSub(words)
	if at < 0 || at > 0 && !gitOwn[words[at].text] {
		return true
	}
	for i, w := range words[1:max(at, 1)] {
		if strings.HasPrefix(w.text, "alias.") || strings.HasPrefix(w.text, "--config-env") || words[i].text == "-c" && v.gitSetting(w.text) {
			return true
		}
	}
	if at == 0 {
		return false
	}
	sub, args := words[at].text, words[at+1:]
	quiet := gitQuiet(sub)
	for _, w := range args {
		if strings.HasPrefix(w.text, "ext::") || !quiet && w.text == "push" || strings.HasPrefix(w.text, "alias.") {
			return true
		}
	}
	if sub == "rm" || sub == "clean" || sub == "worktree" && len(args) > 0 && args[0].text == "remove" {
		for _, w := range words[1:] {
			if !v.wordInside(w) && !(w.known && w.glob && v.paths.removable(w)) {
				return true
			}
		}
	}
	return !quiet && v.passesOn(words[at:])
}

// gitQuiet reports whether a subcommand runs nothing that is in its arguments, which may be
// texts of people.
func gitQuiet(sub string) bool {
	return gitLocal[sub] && sub != "grep" || sub == "merge" || sub == "notes" || sub == "stash"
}

// gitSetting reports whether a setting holds a command that is dangerous.
func (v *lines) gitSetting(text string) bool {
	_, value, _ := strings.Cut(text, "=")
	return mayBeCode(value) && v.holdsDanger(value)
}

// gitInside reports whether a git command only does what its paths say.
func gitInside(words []word) bool {
	at, _ := gitSub(words)
	if at <= 0 || !gitLocal[words[at].text] {
		return false
	}
	for _, w := range words[1:at] {
		if w.text == "-c" || strings.HasPrefix(w.text, "--exec-path") || strings.HasPrefix(w.text, "--git-dir") || strings.HasPrefix(w.text, "--config-env") || w.text == "-p" || w.text == "--paginate" {
			return false
		}
	}
	return !slices.ContainsFunc(words[at+1:], func(w word) bool {
		return words[at].text == "grep" && (strings.HasPrefix(w.text, "-O") || strings.HasPrefix(w.text, "--open")) || abbreviates(w.text, "--ext-diff", "--textconv", "--edit", "--template", "--separate-git-dir")
	})
}

// abbreviates reports whether a word is one of some long options, perhaps cut short.
func abbreviates(text string, options ...string) bool {
	option, _, _ := strings.Cut(text, "=")
	return len(option) > 2 && strings.HasPrefix(option, "--") && slices.ContainsFunc(options, func(o string) bool { return strings.HasPrefix(o, option) })
}

// gitReadsOnly reports whether a git command only reads: whatever runs what a file of
// settings names, besides what git does unasked, takes that away.
func gitReadsOnly(words []word) bool {
	at, plain := gitSub(words)
	if at <= 0 || !plain || !gitReads[words[at].text] {
		return false
	}
	for _, w := range words[at+1:] {
		if w.text == "--" {
			break
		}
		if abbreviates(w.text, "--output", "--ext-diff", "--textconv", "--show-signature", "--no-index", "--paginate", "--exec") || strings.Contains(w.text, "%G") || strings.HasPrefix(w.text, "-O") {
			return false
		}
	}
	return true
}
