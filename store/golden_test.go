package store_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
)

// rewordedVerdicts are the stores whose verdicts of `bayes` are read as they were meant,
// but are no longer written so: weights were whole billionths, the cold start had other
// words. Of one that was erased the words are those of its code again.
var rewordedVerdicts = []string{"000c35c", "33e2563", "109bc3c", "109bc3c-3efedc0", "5c022bc", "erased"}

// TestGoldenLogs reads the events of every store that was ever written, and of one in which payloads were erased, and writes them
// again: the bytes are those that stand in the log.
func TestGoldenLogs(t *testing.T) {
	kinds := map[string]int{}
	for _, file := range append(oldStores(t), "testdata/erased.db.gz") {
		name := strings.TrimSuffix(filepath.Base(file), ".db.gz")
		t.Run(name, func(t *testing.T) {
			a := &aStore{T: t, ctx: t.Context(), path: unpack(t, file)}
			_, err := store.Migrate(a.ctx, a.path, store.SQLiteOptions{})
			a.ok(err)
			a.with(func(_ *runner.Runner, s *store.SQLite) {
				list, err := s.List(a.ctx, session.ListQuery{})
				a.ok(err)
				machines := map[string]bool{}
				for _, sum := range list {
					machines[sum.MachineName] = true
					a.writeSessionAgain(s, sum.SessionID.String(), slices.Contains(rewordedVerdicts, name), kinds)
				}
				for name := range machines {
					a.writeRosterAgain(s, name)
				}
			})
			if r := a.verify(); r.Difference != nil {
				t.Error(r.Difference)
			}
		})
	}
	for _, kind := range []string{session.KindRuled, session.KindReminded, session.KindMoved, session.KindRetracted, session.KindErased, "fork"} {
		if kinds[kind] == 0 {
			t.Errorf("no store holds %s: %v", kind, kinds)
		}
	}
}

func (a *aStore) writeSessionAgain(s *store.SQLite, sessionID string, reworded bool, kinds map[string]int) {
	a.Helper()
	db := openRaw(a.T, a.path)
	defer db.Close()
	id, err := session.ParseID(sessionID)
	a.ok(err)
	f := &session.Folder{Programs: session.NewPrograms(), Definition: func(digest string) (text []byte, err error) {
		return text, db.QueryRow(`SELECT definition FROM definitions WHERE machine_digest=?`, digest).Scan(&text)
	}}
	for r, err := range s.Records(a.ctx, id, 0) {
		a.ok(err)
		key := f.Session().Key()
		key.Session = id
		events, err := f.Add(r.Events)
		a.ok(err)
		for _, e := range events {
			if kinds[e.Data.Kind()]++; e.Data.Kind() == session.KindCreated && f.Session().Options().ForkedFrom != nil {
				kinds["fork"]++
			}
		}
		again := session.AppendEvents(nil, key, r.First, events)
		if bytes.Equal(again, r.Events) {
			continue
		}
		stored, err := session.DecodeRaw(r.Events)
		a.ok(err)
		written, err := session.DecodeRaw(again)
		a.ok(err)
		differ := false
		for i := range stored {
			if string(stored[i].Data) != string(written[i].Data) {
				differ = true
				if !reworded || stored[i].Kind != session.KindJudged {
					a.Errorf("session %s, event %d (%s): %s", id, stored[i].Seq, stored[i].Kind, differingBytes(stored[i].Data, written[i].Data))
				}
			}
		}
		if !differ {
			a.Errorf("session %s, event %d: %s", id, r.First, differingBytes(r.Events, again))
		}
	}
}

func (a *aStore) writeRosterAgain(s *store.SQLite, machineName string) {
	a.Helper()
	for r, err := range s.RosterRecords(a.ctx, machineName, 0) {
		a.ok(err)
		events, err := session.DecodeRosterEvents(r.Events)
		a.ok(err)
		again, err := session.AppendRosterEvent(nil, r.First, events[0])
		if a.ok(err); len(events) != 1 || string(again) != string(r.Events) {
			a.Errorf("machine %s, event %d: %s", machineName, r.First, differingBytes(r.Events, again))
		}
	}
}

// differingBytes returns where two texts part.
func differingBytes(a, b []byte) string {
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	from := max(0, at-60)
	return fmt.Sprintf("byte %d: %s, and then %s", at, a[from:min(len(a), at+60)], b[from:min(len(b), at+60)])
}
