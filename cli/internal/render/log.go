package render

import (
	"fmt"
	"io"

	"github.com/dialai/dialai/session"
)

// LogLine is an event as log prints it.
type LogLine struct {
	V         int    `json:"v"`
	SessionID string `json:"sessionId,omitempty"`
	Machine   string `json:"machineName,omitempty"` // of an event of a machine's specialists
	session.Raw
	Hash     string `json:"hash"`
	Redacted bool   `json:"redacted,omitempty"`
	Withheld bool   `json:"withheld,omitempty"`
}

// LogLine prints one event of a log.
func (st Style) LogLine(out io.Writer, line LogLine) error {
	if st.JSON {
		return JSON(out, line)
	}
	_, err := fmt.Fprintf(out, "%5d  %s  %-15s %s%s\n", line.Seq, line.At, line.Kind, Clean(string(line.Data)), When(line.Withheld, " (the rest is withheld)"))
	return err
}
