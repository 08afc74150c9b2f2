package runner_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/dialai/dialai/session"
)

// Golden logs are logs of sessions and of machines as the program wrote them once; no
// program may ever read them otherwise, or write them otherwise again. They are made of
// the logs of the tests of this package: testdata/golden/README.md says how.

var collect = flag.String("collect", "", "write the log of every session of every test into this `folder`")

// A goldenLog is one log, on one line.
type goldenLog struct {
	Test       string            `json:"test"`
	Session    string            `json:"session,omitempty"` // "" for the log of a machine
	Definition string            `json:"definition,omitempty"`
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
	write := func(g goldenLog) {
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
		g := goldenLog{Test: b.Name(), Session: sum.SessionID, Definition: string(s.Machine().JSON()), View: viewOf(b, s)}
		for rec, err := range b.store.Records(b.ctx, s.ID, 0) {
			b.ok(err)
			g.Records = append(g.Records, rec.Events)
		}
		write(g)
	}
	for name := range machines {
		g := goldenLog{Test: b.Name()}
		for rec, err := range b.store.RosterRecords(b.ctx, name) {
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

// TestGoldenLogs reads golden logs, writes them again, and shows what they come to: all
// is as it was.
func TestGoldenLogs(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*.jsonl.gz")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no golden logs: %v", err)
	}
	kinds := map[string]int{}
	for _, file := range files {
		eachGolden(t, file, func(g *goldenLog) {
			if g.Session == "" {
				g.roster(t, kinds)
			} else {
				g.fold(t, kinds)
			}
		})
	}
	for _, kind := range []string{
		session.KindCreated, session.KindRoundOpened, session.KindAsked, session.KindProposed, session.KindAskFailed, session.KindDiscarded,
		session.KindProbed, session.KindJudged, session.KindGated, session.KindRuled, session.KindExecuted, session.KindLearned, session.KindReviewed,
		session.KindAdopted, session.KindNeedsHuman, session.KindRevealed, session.KindResumed, session.KindEnded,
		session.KindRegistered, session.KindEnabled, session.KindDisabled, session.KindPromoted, session.KindDemoted, session.KindStage, session.KindFrozen,
		session.KindReleased, session.KindChampionFailed, session.KindChampionAnswered, session.KindTried,
	} {
		if kinds[kind] == 0 {
			t.Errorf("no golden log holds %s", kind)
		}
	}
	t.Logf("%v", kinds)
}

func eachGolden(t *testing.T, file string, do func(*goldenLog)) {
	t.Helper()
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	z, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var g goldenLog
		if err := json.Unmarshal(lines.Bytes(), &g); err != nil {
			t.Fatal(err)
		}
		do(&g)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

func (g *goldenLog) fold(t *testing.T, kinds map[string]int) {
	f := &session.Folder{Programs: session.NewPrograms(), Definition: func(string) ([]byte, error) { return []byte(g.Definition), nil }}
	id, err := session.ParseID(g.Session)
	if err != nil {
		t.Fatal(err)
	}
	seq := int64(1)
	for _, record := range g.Records {
		key := keyBefore(f.Session().Key(), id)
		events, err := f.Add(record)
		if err != nil {
			t.Errorf("%s: %v", g.Test, err)
			return
		}
		if again := session.AppendEvents(nil, key, seq, events); string(again) != string(record) {
			t.Errorf("%s: read and written again, a record is\n%s\nit was\n%s", g.Test, again, record)
		}
		for _, e := range events {
			kinds[e.Data.Kind()]++
		}
		seq += int64(len(events))
	}
	if view := viewOf(t, f.Session()); view != g.View {
		t.Errorf("%s: session %s is shown otherwise", g.Test, g.Session)
	}
}

func (g *goldenLog) roster(t *testing.T, kinds map[string]int) {
	for i, record := range g.Records {
		events, err := session.DecodeRosterEvents(record)
		if err != nil || len(events) != 1 {
			t.Errorf("%s: %d events, %v", g.Test, len(events), err)
			return
		}
		again, err := session.AppendRosterEvent(nil, int64(i)+1, events[0])
		if err != nil || string(again) != string(record) {
			t.Errorf("%s: read and written again, a record is\n%s\nit was\n%s", g.Test, again, record)
		}
		kinds[events[0].Kind]++
	}
}
