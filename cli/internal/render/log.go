package render

import (
	"fmt"
	"io"

	"github.com/dialai/dialai/api"
)

// LogLine prints one event of a log.
func (st Style) LogLine(out io.Writer, line api.Event) error {
	if st.JSON {
		return JSON(out, line)
	}
	_, err := fmt.Fprintf(out, "%5d  %s  %-15s %s%s\n", line.Seq, line.At, line.Kind, Clean(string(line.Data)), When(line.Withheld, " (the rest is withheld)"))
	return err
}
