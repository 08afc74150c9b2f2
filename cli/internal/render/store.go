package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/store"
)

// StoreStatus prints what a store is.
func (st Style) StoreStatus(w io.Writer, s api.Store) error {
	switch {
	case st.JSON:
		return JSON(w, s)
	case st.Quiet:
		return nil
	}
	return Table(w, [][]string{{"Kind:", s.Kind}, {"Tables:", fmt.Sprintf("version %d", s.Schema)}, {"Records:", fmt.Sprint(s.Place)}, {"Size:", Plural(int(s.SizeBytes), "byte")}})
}

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
