package session_test

import (
	"crypto/rand"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dialai/dialai/session"
)

// payloads collects the texts of members that are payloads wherever they stand.
func payloads(v any, inside bool, texts map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, x := range v {
			switch name {
			case "explanation", "lesson", "outcome", "held", "sessionId", "specialistId", "states", "transitionName", "currentState", "machineName", "createdAt": // what was learned, and names
				continue
			case "metaJson", "reasoning", "note", "reason", "message", "reply", "notices", "toolCalls", "context", "dueError":
				payloads(x, true, texts)
			default:
				payloads(x, inside, texts)
			}
		}
	case []any:
		for _, x := range v {
			payloads(x, inside, texts)
		}
	case string:
		if inside && len(v) > 8 && !(len(v) == 24 && v[10] == 'T') { // a time is elsewhere as well
			texts[v] = true
		}
	}
}

// TestEraseGolden: whatever is in a log, without payloads it folds to a session that stands where it
// stood and has cost the same, and taught the same; nothing that was said is left.
func TestEraseGolden(t *testing.T) {
	files, _ := filepath.Glob("testdata/golden/*.jsonl.gz")
	sessions := 0
	for _, file := range files {
		eachGolden(t, file, func(g *goldenLog) {
			if g.Session == "" {
				return
			}
			sessions++
			was, is := g.folder(session.NewPrograms()), g.folder(session.NewPrograms())
			e := session.NewEraser(newKey())
			for _, record := range g.Records {
				left, err := e.Record(record)
				if err != nil {
					t.Fatalf("%s: %v", g.Test, err)
				}
				if left == nil {
					left = record
				}
				var list []struct {
					Data any `json:"data"`
				}
				if err := json.Unmarshal(record, &list); err != nil {
					t.Fatal(err)
				}
				texts := map[string]bool{}
				for _, one := range list {
					payloads(one.Data, false, texts)
				}
				for text := range texts {
					if quoted, _ := json.Marshal(text); strings.Contains(string(left), strings.Trim(string(quoted), `"`)) {
						t.Errorf("%s: %q is left in\n%s", g.Test, text, left)
					}
				}
				a, err := was.Add(record)
				if err != nil {
					t.Fatal(err)
				}
				b, err := is.Add(left)
				if err != nil {
					t.Fatalf("%s: without payloads: %v\n%s", g.Test, err, left)
				}
				for i := range a {
					x, ok := a[i].Data.(*session.Learned)
					if !ok {
						continue
					}
					y := b[i].Data.(*session.Learned)
					one, _ := json.Marshal([]any{x.Comparisons, x.Outcome, x.Held, x.Second})
					other, _ := json.Marshal([]any{y.Comparisons, y.Outcome, y.Held, y.Second})
					if string(one) != string(other) || (x.Exemplar == nil) != (y.Exemplar == nil) {
						t.Errorf("%s: it teaches %s instead of %s", g.Test, other, one)
					}
				}
			}
			a, b := was.Session(), is.Session()
			if a.State.Name != b.State.Name || a.Status != b.Status || a.Standing().Code != b.Standing().Code || a.Spent() != b.Spent() || a.Executed != b.Executed || a.Sequence != b.Sequence {
				t.Errorf("%s: it stands elsewhere: %v %v %v, was %v %v %v", g.Test, b.State.Name, b.Status, b.Spent(), a.State.Name, a.Status, a.Spent())
			}
		})
	}
	if sessions < 100 {
		t.Errorf("only %d logs were read", sessions)
	}
}

// TestEraseTags: equal texts of a session stay equal, those of two do not; an unknown kind is refused.
func TestEraseTags(t *testing.T) {
	record := []byte(`[{"seq":1,"at":"2026-01-02T03:04:05.001Z","kind":"resumed","data":{"note":"a secret","later":"a secret"}}]`)
	e := session.NewEraser(newKey())
	left, err := e.Record(record)
	if err != nil {
		t.Fatal(err)
	}
	var v []struct{ Data struct{ Note, Later string } }
	if err := json.Unmarshal(left, &v); err != nil || v[0].Data.Note != v[0].Data.Later || !strings.HasPrefix(v[0].Data.Note, "[erased ") {
		t.Errorf("left is %s: %v", left, err)
	}
	if other, _ := session.NewEraser(newKey()).Record(record); string(other) == string(left) {
		t.Error("two sessions have the same key")
	}
	if none, err := e.Record([]byte(`[{"seq":1,"at":"2026-01-02T03:04:05.001Z","kind":"revealed","data":{"roundId":"r"}}]`)); none != nil || err != nil {
		t.Errorf("of nothing is left %s: %v", none, err)
	}
	if _, err := e.Record([]byte(`[{"seq":1,"at":"2026-01-02T03:04:05.001Z","kind":"sung","data":{"words":"la"}}]`)); err == nil {
		t.Error("a kind that nobody knows was read")
	}
}

// newKey returns a key that nobody else has.
func newKey() (key [32]byte) {
	rand.Read(key[:]) // never fails
	return key
}
