package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/dialai/dialai/store"
)

// Report prints a report but for its difference, which is the error. What stands in
// a damaged store may be anything.
func Report(w io.Writer, r store.Report, done string) error {
	var b strings.Builder
	if r.Difference == nil {
		left := "no difference" + When(done == "rebuilt", " is left") // there may have been one
		fmt.Fprintf(&b, "%s %s: %s, %s, %s.\n", Plural(r.Sessions, "session"), done, Plural(r.Records, "record"), Plural(r.Events, "event"), left)
	}
	for _, d := range r.Differences {
		if d != r.Difference {
			fmt.Fprintf(&b, "Also: %s\n", Clean(d.Error()))
		}
	}
	if len(r.Unknown) > 0 {
		b.WriteString("It cannot know:\n")
	}
	for _, unknown := range r.Unknown {
		fmt.Fprintf(&b, "- %s\n", Clean(unknown))
	}
	_, err := w.Write([]byte(b.String()))
	return err
}
