package cassette_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/internal/cassette"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/webhook"
)

func label(kind, who string, round int32) webhook.Label {
	return webhook.Label{Kind: kind, Specialist: who, State: "open", Round: round}
}

func says(status int, body string, err error) func() webhook.Taped {
	return func() webhook.Taped { return webhook.Taped{Status: status, Body: []byte(body), Err: err} }
}

func record(t *testing.T) (string, *cassette.Deck) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tapes")
	d, err := cassette.Record(dir, cassette.Run{MachineName: "desk", MachineDigest: "abc", Seed: "18446744073709551615", MetaJSON: []byte(`{"a":1}`)})
	if err != nil {
		t.Fatal(err)
	}
	return dir, d
}

func play(t *testing.T, dir string) *cassette.Deck {
	t.Helper()
	d, err := cassette.Play(dir)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestRoundTrip: what was recorded is played, whatever it was, call by call.
func TestRoundTrip(t *testing.T) {
	dir, d := record(t)
	calls := []struct {
		label webhook.Label
		said  func() webhook.Taped
	}{
		{label("proposer", "a", 1), says(200, `{"transitionName":"x"}`, nil)},
		{label("proposer", "a", 1), says(200, `{"transitionName":"y"}`, nil)}, // asked again
		{label("proposer", "A", 1), says(200, `[1,2]`, nil)},
		{label("proposer", "a b", 1), says(200, `"a string"`, nil)},
		{label("proposer", "a/b", 1), says(200, "no JSON: \u202e{", nil)},
		{label("proposer", "../../etc", 1), says(202, ``, nil)},
		{label("arbiter", "a", 1), says(0, ``, errors.New("webhook https://x: refused"))},
		{label("ask", strings.Repeat("long", 30), 2), says(200, `{"text":"<&>"}`, errors.New("and yet"))},
		{label("ask", strings.Repeat("long", 30)+"er", 2), says(200, `{}`, nil)},
		{webhook.Label{}, says(200, `null`, nil)},
		{label("proposer", "unsent", 1), func() webhook.Taped { return webhook.Taped{Err: errors.New("10.0.0.1 is private"), Unsent: true} }},
	}
	for _, c := range calls {
		d.Exchange(t.Context(), c.label, []byte(`{"q":1}`), c.said)
	}
	if d.Err() != nil || d.Playing() {
		t.Fatal(d.Err())
	}
	p := play(t, dir)
	if run := p.Run(); run.SeedNumber() != 1<<64-1 || run.MachineDigest != "abc" || !p.Playing() {
		t.Errorf("the run is %+v", run)
	}
	for _, c := range calls {
		got, want := p.Exchange(t.Context(), c.label, nil, func() webhook.Taped { t.Error("somebody is asked"); return webhook.Taped{} }), c.said()
		tight := strings.Join(strings.Fields(string(got.Body)), "")
		if got.Status != want.Status || got.Unsent != want.Unsent || tight != strings.Join(strings.Fields(string(want.Body)), "") || fmt.Sprint(got.Err) != fmt.Sprint(want.Err) {
			t.Errorf("%+v: %d %s %v, want %d %s %v", c.label, got.Status, got.Body, got.Err, want.Status, want.Body, want.Err)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != len(calls)+1 {
		t.Errorf("%d files of %d calls: %v", len(files), len(calls), err)
	}
	if p.Err() != nil {
		t.Error(p.Err())
	}
}

// TestMissing: a call without a cassette is an error that names it, at once and at
// the end.
func TestMissing(t *testing.T) {
	dir, d := record(t)
	d.Exchange(t.Context(), label("ask", "m", 1), nil, says(200, `{}`, nil))
	p := play(t, dir)
	p.Exchange(t.Context(), label("ask", "m", 1), nil, nil)
	got := p.Exchange(t.Context(), label("ask", "m", 1), nil, nil)
	want := `no cassette in ` + dir + ` for call 2 of kind ask of "m" in round 1, attempt 0, state "open"`
	if missing, ok := errors.AsType[*cassette.MissingError](got.Err); !ok || missing.Error() != want {
		t.Errorf("%v, want %s", got.Err, want)
	}
	if p.Err() == nil || p.Err().Error() != want {
		t.Errorf("at the end: %v", p.Err())
	}
}

// TestGivenUp: a call that was given up is given up again: one of a round that was
// decided when that is so again, with what came too late, and one whose time was over
// at once.
func TestGivenUp(t *testing.T) {
	dir, d := record(t)
	decided := func() (context.Context, func()) {
		ctx, cancel := context.WithCancelCause(t.Context())
		return ctx, func() { cancel(specialist.ErrDecided) }
	}
	ctx, decide := decided()
	d.Exchange(ctx, label("ask", "cancelled", 1), nil, func() webhook.Taped { decide(); return webhook.Taped{Body: []byte(`{"a":1}`), Err: ctx.Err()} })
	ctx, decide = decided()
	d.Exchange(ctx, label("ask", "late", 1), nil, func() webhook.Taped { decide(); return webhook.Taped{Body: []byte(`{"a":2}`)} })
	over, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	d.Exchange(over, label("ask", "timeout", 1), nil, func() webhook.Taped { return webhook.Taped{Body: []byte(`{"a":3}`), Err: errors.New("no")} })
	p := play(t, dir)
	for who, want := range map[string]error{"cancelled": context.Canceled, "late": nil} {
		ctx, decide := decided()
		done := make(chan webhook.Taped)
		go func() { done <- p.Exchange(ctx, label("ask", who, 1), nil, nil) }()
		select {
		case said := <-done:
			t.Errorf("%s: %+v before the round is decided", who, said)
		case <-time.After(10 * time.Millisecond):
			decide()
			if said := <-done; said.Err != want || len(said.Body) == 0 {
				t.Errorf("%s: %+v", who, said)
			}
		}
	}
	if said := p.Exchange(t.Context(), label("ask", "timeout", 1), nil, nil); !errors.Is(said.Err, context.DeadlineExceeded) || len(said.Body) == 0 {
		t.Errorf("%+v", said)
	}
	if d.Err() != nil || p.Err() != nil {
		t.Error(d.Err(), p.Err())
	}
}

// TestInterruptedIsNotKept: what a person broke off says nothing of the run.
func TestInterruptedIsNotKept(t *testing.T) {
	dir, d := record(t)
	ctx, cancel := context.WithCancel(t.Context())
	d.Exchange(ctx, label("ask", "m", 1), nil, func() webhook.Taped { cancel(); return webhook.Taped{Err: ctx.Err()} })
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("%d files", len(files))
	}
}

// TestBadFolders: what cannot be recorded into or played says why.
func TestBadFolders(t *testing.T) {
	dir, d := record(t)
	if _, err := cassette.Record(dir, cassette.Run{}); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Error(err)
	}
	if _, err := cassette.Play(t.TempDir()); err == nil || !strings.Contains(err.Error(), "there are no cassettes in") {
		t.Error(err)
	}
	for text, want := range map[string]string{`{`: "unexpected end", `{"version":2}`: "have version 2, and this program plays version 1", `[]`: "cannot unmarshal"} {
		bad := t.TempDir()
		if err := os.WriteFile(filepath.Join(bad, "run.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := cassette.Play(bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	d.Exchange(t.Context(), label("ask", "m", 1), nil, says(200, `{}`, nil))
	if err := os.WriteFile(filepath.Join(dir, "r001.0-open-m-ask-1.json"), []byte(`{`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := play(t, dir).Exchange(t.Context(), label("ask", "m", 1), nil, nil); got.Err == nil || !strings.Contains(got.Err.Error(), "cassette r001.0-open-m-ask-1.json: ") {
		t.Errorf("a cassette that is broken: %+v", got)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	d.Exchange(t.Context(), label("ask", "m", 2), nil, says(200, `{}`, nil))
	if d.Err() == nil {
		t.Error("a cassette that could not be written is no error")
	}
}

// TestAtOnce: calls that are made at once do not disturb each other.
func TestAtOnce(t *testing.T) {
	dir, d := record(t)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			d.Exchange(t.Context(), label("ask", fmt.Sprint("m", i%5), 1), nil, says(200, `{}`, nil))
		})
	}
	wg.Wait()
	if files, _ := os.ReadDir(dir); len(files) != 51 || d.Err() != nil {
		t.Errorf("%d files, %v", len(files), d.Err())
	}
}

// TestContinue: a run is recorded on and played on by further processes of it, and
// by those of no other run.
func TestContinue(t *testing.T) {
	run := cassette.Run{MachineName: "desk", MachineDigest: "abc", Seed: "18446744073709551615", MetaJSON: []byte(`{ "a": 1 }`)}
	dir, first := record(t)
	first.Exchange(t.Context(), label("ask", "m", 1), nil, says(200, `{"n":1}`, nil))
	again := label("ask", "m", 1)
	again.Ask = 1
	second, err := cassette.Continue(dir, run)
	if err != nil || second.Playing() {
		t.Fatal(err)
	}
	second.Exchange(t.Context(), again, nil, says(200, `{"n":2}`, nil))
	third, err := cassette.Resume(dir, run)
	if err != nil || !third.Playing() {
		t.Fatal(err)
	}
	for _, c := range []struct {
		label webhook.Label
		want  string
	}{{again, `{"n":2}`}, {label("ask", "m", 1), `{"n":1}`}} {
		if got := third.Exchange(t.Context(), c.label, nil, nil); strings.Join(strings.Fields(string(got.Body)), "") != c.want {
			t.Errorf("%+v: %s, %v, want %s", c.label, got.Body, got.Err, c.want)
		}
	}
	if fresh, err := cassette.Continue(filepath.Join(t.TempDir(), "new"), run); err != nil || fresh.Run().MachineDigest != "abc" {
		t.Errorf("a new folder: %v", err)
	}
	for want, change := range map[string]func(*cassette.Run){
		`of machine "desk" with digest abc, and not of "desk" with digest x`: func(r *cassette.Run) { r.MachineDigest = "x" },
		`with seed 18446744073709551615, and not 7`:                          func(r *cassette.Run) { r.Seed = "7" },
		`in mode "", and not "eager"`:                                        func(r *cassette.Run) { r.Mode = "eager" },
		`with metaJson {"a":1}, and not {}`:                                  func(r *cassette.Run) { r.MetaJSON = nil },
	} {
		other := run
		change(&other)
		for _, open := range []func(string, cassette.Run) (*cassette.Deck, error){cassette.Continue, cassette.Resume} {
			_, err := open(dir, other)
			if _, ok := errors.AsType[*cassette.OtherRunError](err); !ok || !strings.HasSuffix(err.Error(), "are of another run: "+want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
	}
}

// TestHiddenNames: a name that holds what cannot be seen is refused with its place,
// wherever a folder says it, and is not shown.
func TestHiddenNames(t *testing.T) {
	file := "r001.0-open-a-proposer-1.json"
	for _, c := range []struct{ file, text, want string }{
		{"run.json", `{"version":1,"machineName":"desk\u202e","machineDigest":"abc","seed":"1"}`, "run.json: machineName holds U+202E as character 5"},
		{"run.json", `{"version":1,"machineName":"desk","machineDigest":"abc","seed":"1","mode":"\u0007"}`, "run.json: mode holds U+0007 as character 1"},
		{"order.jsonl", `{"specialist":"a\u200b","state":"open","round":1}` + "\n", "order.jsonl: line 1: specialist holds U+200B as character 2"},
		{"order.jsonl", `{"specialist":"a","state":"o\u001bpen","round":1}` + "\n", "order.jsonl: line 1: state holds U+001B as character 2"},
		{file, `{"kind":"proposer","specialist":"a\ufeff","round":1,"number":1,"status":200,"answer":{}}`, file + ": specialist holds U+FEFF as character 2"},
	} {
		dir, d := record(t)
		d.Exchange(t.Context(), label("proposer", "a", 1), nil, says(200, `{}`, nil))
		if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		player, err := cassette.Play(dir)
		if err == nil {
			err = player.Exchange(t.Context(), label("proposer", "a", 1), nil, nil).Err
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.ContainsAny(err.Error(), "\u202e\u200b\ufeff\x07\x1b") {
			t.Errorf("%s: %q, want %q", c.file, err, c.want)
		}
	}
}
