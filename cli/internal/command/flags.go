package command

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/machine"
)

// What several commands need for their flags.

// Complete lets a flag complete to one of these values.
func Complete(cmd *cobra.Command, flag string, values ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag is misspelt
	}
}

// OneOf refuses a value of a flag that is none of those it may have.
func OneOf(flag, value string, known ...string) error {
	names := known[:0:0]
	for _, k := range known {
		if k == value {
			return nil
		}
		if k != "" {
			names = append(names, k)
		}
	}
	last := len(names) - 1
	return Hinted(Usage("--%s is %q, it may be %s or %s", flag, value, strings.Join(names[:last], ", "), names[last]), "%s", machine.DidYouMean(value, names))
}

// Needed marks a flag that a command does nothing without.
const Needed = "needed"

// SuggestCommand helps those who meant a command.
func (a *App) SuggestCommand(word string) string {
	var names []string
	for _, c := range a.Commands.Commands() {
		if !c.Hidden && (len(word) > 4 || word != "" && c.Name()[0] == word[0]) { // two of four letters wrong is another word
			names = append(names, c.Name())
		}
	}
	if hint := machine.DidYouMean(word, names); hint != "" && !strings.ContainsAny(word, "./") {
		return hint + " (a command)"
	}
	return ""
}
