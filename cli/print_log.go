package cli

import (
	"fmt"
	"io"

	"github.com/dialai/dialai/session"
)

// logLine is an event as log prints it.
type logLine struct {
	V         int    `json:"v"`
	SessionID string `json:"sessionId,omitempty"`
	Machine   string `json:"machineName,omitempty"` // of an event of a machine's specialists
	session.Raw
	Hash     string `json:"hash"`
	Redacted bool   `json:"redacted,omitempty"`
	Withheld bool   `json:"withheld,omitempty"`
}

func (st style) printLogLine(out io.Writer, line logLine) error {
	if st.json {
		return printJSON(out, line)
	}
	note := ""
	if line.Withheld {
		note = " (the rest is withheld)"
	}
	_, err := fmt.Fprintf(out, "%5d  %s  %-15s %s%s\n", line.Seq, line.At, line.Kind, clean(string(line.Data)), note)
	return err
}
