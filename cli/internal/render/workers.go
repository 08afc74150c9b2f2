package render

import (
	"fmt"
	"io"
	"time"

	"github.com/dialai/dialai/session"
)

// Workers prints the processes that carry sessions on.
func (st Style) Workers(out io.Writer, workers []session.WorkerInfo) error {
	return list(st, out, workers, "No process carries sessions on.", []string{"WORKER", "ABOUT", "UNTIL", "LEASES", "CLOCK"}, func(w session.WorkerInfo) []string {
		return []string{st.ID(w.Name), w.About, w.Until.String(), fmt.Sprint(w.Leases), skew(w.SkewMsec)}
	})
}

// skew says how far a clock is ahead, where an operator is to know.
func skew(msec int64) string {
	switch off := time.Duration(msec) * time.Millisecond; {
	case off > session.MaxSkew:
		return off.String() + " ahead"
	case off < -session.MaxSkew:
		return (-off).String() + " behind"
	}
	return "right"
}

// Quarantined prints the sessions that are handed out to nobody.
func (st Style) Quarantined(out io.Writer, sessions []session.Quarantined) error {
	return list(st, out, sessions, "No session is quarantined.", []string{"SESSION", "MACHINE", "FAILURES", "CRASHES", "WHY"}, func(q session.Quarantined) []string {
		return []string{st.ID(q.Session.String()), q.MachineName, fmt.Sprint(q.Failures), fmt.Sprint(q.Crashes), q.Reason}
	})
}
