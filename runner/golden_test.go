package runner_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/dialai/dialai/session"
)

// Golden logs are logs of sessions and of machines as the program wrote them once; no
// program may ever read them otherwise, or write them otherwise again. They are made of
// the logs of the tests of this package: testdata/golden/README.md says how.

var collect = flag.String("collect", "", "write the log of every session of every test into this `folder`")

var digests = regexp.MustCompile(`\b[0-9a-f]{64}\b`)

// A collectedLog is one log, on one line.
type collectedLog struct {
	Test       string            `json:"test"`
	Session    string            `json:"session,omitempty"` // "" for the log of a machine
	Definition string            `json:"definition,omitempty"`
	Former     map[string]string `json:"former,omitempty"` // definitions from which it was moved, by their digests
	Records    []json.RawMessage `json:"records"`
	View       string            `json:"view,omitempty"` // SHA-256 of the session as it is shown in the end
}

// collect adds the logs of a test to those that golden ones are made of.
func (b *bench) collect() {
	if *collect == "" {
		return
	}
	f, err := os.OpenFile(filepath.Join(*collect, "logs.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	b.ok(err)
	defer f.Close()
	list, err := b.store.List(b.ctx, session.ListQuery{})
	b.ok(err)
	machines := map[string]bool{}
	write := func(g collectedLog) {
		var line bytes.Buffer
		e := json.NewEncoder(&line)
		e.SetEscapeHTML(false) // records are kept as they are
		b.ok(e.Encode(g))
		_, err = f.Write(line.Bytes()) // at once, so that no two tests share a line
		b.ok(err)
	}
	for _, sum := range list {
		s, err := b.r.Session(b.ctx, sum.SessionID)
		b.ok(err)
		machines[sum.MachineName] = true
		g := collectedLog{Test: b.Name(), Session: sum.SessionID.String(), Definition: string(s.Machine().JSON()), Former: map[string]string{}, View: viewOf(b, s)}
		for rec, err := range b.store.Records(b.ctx, s.ID, 0) {
			b.ok(err)
			g.Records = append(g.Records, rec.Events)
			for _, digest := range digests.FindAllString(string(rec.Events), -1) {
				if former := s.Definition(digest); former != nil && digest != s.Machine().Digest() {
					g.Former[digest] = string(former)
				}
			}
		}
		write(g)
	}
	for name := range machines {
		g := collectedLog{Test: b.Name()}
		for rec, err := range b.store.RosterRecords(b.ctx, name, 0) {
			b.ok(err)
			g.Records = append(g.Records, rec.Events)
		}
		if len(g.Records) > 0 {
			write(g)
		}
	}
}

func viewOf(t testing.TB, s *session.Session) string {
	t.Helper()
	view, err := json.Marshal(s.View())
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(view)
	return hex.EncodeToString(sum[:])
}
