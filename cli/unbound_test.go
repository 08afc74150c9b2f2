package cli_test

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// unbound unpacks a store that the program of b228fb3 wrote, before parameters bound. In it
// a human and the engine have executed transitions whose parameters ask for a payload,
// without one, and a proposal without one waits for a human:
//
//	dialai refund.json; dialai decide ID pay; dialai decide ID approve --as carol; dialai decide ID book --as carol
//	dialai refund.json; dialai propose ID book --as ledger; dialai resume ID
func unbound(h *home) {
	h.Helper()
	in, err := os.Open("testdata/unbound.db.gz")
	if err != nil {
		h.Fatal(err)
	}
	defer in.Close()
	z, err := gzip.NewReader(in)
	if err != nil {
		h.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err == nil {
		err = os.WriteFile(filepath.Join(h.dir, "unbound.db"), data, 0o600)
	}
	if err != nil {
		h.Fatal(err)
	}
}

// TestRecordedBeforeParametersBound (C7.5): what was recorded before parameters bound is shown,
// explained, back-tested and verified as before; who rules now gives the payload.
func TestRecordedBeforeParametersBound(t *testing.T) {
	h := newHome(t)
	unbound(h)
	run := func(code int, args ...string) (out, err string) {
		t.Helper()
		return h.run(code, append(args, "--store", "unbound.db")...)
	}
	const done, open = "92ff6fad-c5f2-4afd-9369-01d2c3c908ba", "b19c72cd-043f-4e48-a43b-b40cb4a3d1fc"
	out, _ := run(0, "show", done)
	for _, want := range []string{"Status:        completed", "open → review  pay      __operator (human)", "review → last  approve  carol (human)", "last → done    book     carol (human)"} {
		if !strings.Contains(out, want) {
			t.Errorf("show does not say %q:\n%s", want, out)
		}
	}
	out, _ = run(0, "log", open, "--json")
	if strings.Contains(out, "parametersBind") || strings.Count(out, `"kind":"executed"`) != 2 {
		t.Errorf("the log is another one:\n%s", out)
	}
	for _, round := range []string{"1", "2"} {
		out, _ = run(0, "explain", open, round, "--json")
		if !strings.Contains(out, `"reproduced":true`) || !strings.Contains(out, `"code":"decided"`) {
			t.Errorf("round %s is not reproduced:\n%s", round, out)
		}
	}
	out, _ = run(0, "backtest", "refund", "--json")
	if !strings.Contains(out, `"flips":[0,0]`) || strings.Contains(out, `"kind":"flip"`) {
		t.Errorf("unchanged, rounds come out otherwise:\n%s", out)
	}
	out, _ = run(0, "backtest", "refund", "--arbiter", "firstProposal", "--json")
	if strings.Count(out, `"kind":"flip"`) != 2 || !strings.Contains(out, `"old":"(human)","new":"pay","human":"pay"`) {
		t.Errorf("under firstProposal the rounds of then are held to the rule of now:\n%s", out)
	}
	run(0, "store", "verify")
	out, _ = run(0, "show", open)
	question := first(t, `book --question (\S+) --data '\{"account":…\}'`, out)
	if _, err := run(1, "decide", open, "book", "--question", question); !strings.Contains(err, `transition "book" needs metaJson that satisfies its parameters`) {
		t.Errorf("a ruling without a payload: %s", err)
	}
	if _, err := run(1, "decide", open, "--accept", "ledger", "--question", question); !strings.Contains(err, "needs metaJson") {
		t.Errorf("what was proposed without a payload: %s", err)
	}
	run(0, "decide", open, "book", "--question", question, "--data", "account=17")
	if out, _ = run(0, "log", open, "--json"); !strings.Contains(out, `"metaJson":{"account":"17"}`) {
		t.Errorf("executed is something else:\n%s", out)
	}
	run(0, "store", "verify")
}
