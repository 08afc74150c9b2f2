package session_test

import (
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A goldenLog is one log, on one line.
type goldenLog struct {
	Test       string            `json:"test"`
	Session    string            `json:"session,omitempty"` // "" for the log of a machine
	Definition string            `json:"definition,omitempty"`
	Former     map[string]string `json:"former,omitempty"` // definitions from which it was moved, by their digests
	Records    []json.RawMessage `json:"records"`
	View       string            `json:"view,omitempty"` // SHA-256 of the session as it is shown in the end
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
		session.KindAdopted, session.KindNeedsHuman, session.KindReminded, session.KindRevealed, session.KindResumed, session.KindEnded, session.KindRetracted, session.KindMoved,
		session.KindRegistered, session.KindEnabled, session.KindDisabled, session.KindPromoted, session.KindDemoted, session.KindStage, session.KindFrozen,
		session.KindReleased, session.KindChampionFailed, session.KindChampionAnswered, session.KindTried,
	} {
		if kinds[kind] == 0 {
			t.Errorf("no golden log holds %s", kind)
		}
	}
	t.Logf("%v", kinds)
}

func eachGolden(t testing.TB, file string, do func(*goldenLog)) {
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
	f := g.folder(session.NewPrograms())
	id, err := session.ParseID(g.Session)
	if err != nil {
		t.Fatal(err)
	}
	seq := int64(1)
	for _, record := range g.Records {
		key := f.Session().Key()
		key.Session = id
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
	if view := digestOfView(t, f.Session()); view != g.View {
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

func digestOfView(t testing.TB, s *session.Session) string {
	t.Helper()
	view, err := json.Marshal(s.View())
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(view)
	return hex.EncodeToString(sum[:])
}

// goldenRecords returns the records of all golden logs of sessions.
func goldenRecords(b *testing.B) (logs []*goldenLog, bytes int64) {
	b.Helper()
	files, _ := filepath.Glob("testdata/golden/*.jsonl.gz")
	for _, file := range files {
		eachGolden(b, file, func(g *goldenLog) {
			if g.Session == "" {
				return
			}
			logs = append(logs, g)
			for _, r := range g.Records {
				bytes += int64(len(r))
			}
		})
	}
	return logs, bytes
}

func (g *goldenLog) folder(p *session.Programs) *session.Folder {
	return &session.Folder{Programs: p, Definition: func(digest string) ([]byte, error) {
		if former := g.Former[digest]; former != "" {
			return []byte(former), nil
		}
		return []byte(g.Definition), nil
	}}
}

// BenchmarkFold reads the golden logs.
func BenchmarkFold(b *testing.B) {
	logs, size := goldenRecords(b)
	programs := session.NewPrograms()
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		for _, g := range logs {
			f := g.folder(programs)
			for _, r := range g.Records {
				if _, err := f.Add(r); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
}

// BenchmarkAppendEvents writes them again.
func BenchmarkAppendEvents(b *testing.B) {
	logs, size := goldenRecords(b)
	programs := session.NewPrograms()
	type written struct {
		key    specialist.RoundKey
		events []session.Event
	}
	var all []written
	for _, g := range logs {
		f := g.folder(programs)
		id, _ := session.ParseID(g.Session)
		for _, r := range g.Records {
			key := f.Session().Key()
			key.Session = id
			events, err := f.Add(r)
			if err != nil {
				b.Fatal(err)
			}
			all = append(all, written{key, events})
		}
	}
	var dst []byte
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		for _, w := range all {
			dst = session.AppendEvents(dst[:0], w.key, 1, w.events)
		}
	}
}
