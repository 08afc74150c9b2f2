package render

import (
	"fmt"
	"io"
	"strings"
	"time"

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
	rows := [][]string{{"Kind:", s.Kind}, {"Tables:", fmt.Sprintf("version %d", s.Schema)}, {"Newest record:", fmt.Sprintf("place %d, epoch %s", s.Place, s.Epoch)}, {"Size:", Plural(int(s.SizeBytes), "byte")},
		{"Sessions:", fmt.Sprintf("%d running, %d waiting for a human", s.Running, s.NeedsHuman)}}
	if k := s.Work; k != nil {
		ready := fmt.Sprint(k.Ready) + When(k.Ready > 0, fmt.Sprintf(" of %s, the first for %s", Plural(k.Lanes, "machine"), seconds(k.OldestReadySeconds)))
		rows = append(rows, []string{"Workers:", fmt.Sprintf("%d, which have %s", k.Workers, Plural(k.Leased, "session"))},
			[]string{"Ready for one:", ready}, []string{"Quarantined:", fmt.Sprint(k.Quarantined) + When(k.Quarantined > 0, " (dialai sessions --quarantined)")},
			[]string{"Log:", Plural(k.Partitions, "partition")}, []string{"Writing longest:", seconds(k.WritingSeconds)})
	}
	return Table(w, rows)
}

// seconds is a time as people read it.
func seconds(s float64) string {
	return (time.Duration(s*1000) * time.Millisecond).Round(time.Second).String()
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
	for _, q := range r.Quotas {
		fmt.Fprintf(&b, "Quota of tenant %q, window of %s: counted are %s, and logs say %s.\n", q.Tenant, time.Duration(q.WindowMsec)*time.Millisecond, quotaUse(q.Counted), quotaUse(q.Logged))
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

// quotaUse is what was used of a quota as people read it.
func quotaUse(u store.QuotaUse) string {
	return fmt.Sprintf("%s, %s and $%s", Plural(int(u.Calls), "call"), Plural(int(u.Tokens), "token"), u.CostUSD)
}
