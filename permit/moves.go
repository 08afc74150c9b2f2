package permit

import (
	"slices"
	"strings"
)

// A line may change to other folders, and what it names is then read from there. Every folder to
// which it may have changed counts, since nobody knows which of its commands run.

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
