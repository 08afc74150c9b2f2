package cli

import (
	"cmp"
	"strings"
)

// A style is how results are shown, and how commands are written that go with them.
type style struct {
	json    bool   // as JSON, one value a line
	quiet   bool   // only how it ended
	verbose bool   // more, on stderr
	store   string // as --store names it, "" for the default
	program string // as people call it, "" for dialai
}

// programName returns what people call this program.
func (st style) programName() string { return cmp.Or(st.program, "dialai") }

// command returns a command line of this program that goes on with the present
// store.
func (st style) command(name string, args []string, words ...string) command {
	c := command{path: append([]string{st.programName()}, strings.Fields(name)...), args: args, words: words}
	if st.store != "" {
		c.words = append(c.words, "--store", st.store)
	}
	return c
}
