package rpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/agent/internal/rpc"
)

// program returns a peer, what is sent to it, and how it ends.
func program(version string) (p *rpc.Peer, sent chan string, end func()) {
	gone := make(chan struct{})
	sent = make(chan string, 8)
	return &rpc.Peer{Version: version, Gone: gone, Send: func(line []byte) error {
		sent <- string(line)
		return nil
	}}, sent, func() { close(gone) }
}

// Each answer reaches who asked, whatever their order, and once; others reach nobody.
func TestAnswersReachWhoAsked(t *testing.T) {
	p, sent, _ := program("2.0")
	got := map[string]string{}
	for _, method := range []string{"one", "two"} {
		p.Ask(method, nil, func(r rpc.Reply) { got[method] += string(r.Result) })
	}
	for _, want := range []string{`{"id":1,"jsonrpc":"2.0","method":"one","params":null}`, `{"id":2,"jsonrpc":"2.0","method":"two","params":null}`} {
		if line := <-sent; line != want {
			t.Errorf("sent %s, want %s", line, want)
		}
	}
	for _, id := range []string{"2", "7", `"x"`, "1", "2"} {
		p.Answered(json.RawMessage(id), json.RawMessage(`"to `+id[:1]+`"`), nil)
	}
	if got["one"] != `"to 1"` || got["two"] != `"to 2"` {
		t.Errorf("answered %v", got)
	}
}

// Whoever waits learns what became of the request: its answer, a refusal, the end of the program,
// or that they no longer wait.
func TestWait(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for name, test := range map[string]struct {
		result, failure string
		end, leave      bool
		is              error
		text            string
	}{
		"answer":     {result: `{"a":5}`},
		"null error": {result: `{"a":5}`, failure: `null`},
		"refusal":    {failure: `{"code":-3,"message":"no"}`, text: "do: the program says: no"},
		"other type": {result: `[]`, text: "do: the answer cannot be read: json: cannot unmarshal array into Go value of type struct { A int }"},
		"gone":       {end: true, is: agent.ErrClosed},
		"left":       {leave: true, is: context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			p, sent, end := program("")
			ctx := context.Background()
			if test.leave {
				ctx = ended
			}
			go func() {
				<-sent
				switch {
				case test.end:
					end()
				case !test.leave:
					p.Answered(json.RawMessage("1"), json.RawMessage(test.result), json.RawMessage(test.failure))
				}
			}()
			var out struct{ A int }
			err := p.Wait(ctx, "do", nil, &out)
			switch {
			case test.is != nil:
				if !errors.Is(err, test.is) {
					t.Errorf("error %v, want %v", err, test.is)
				}
			case test.text != "":
				if err == nil || err.Error() != test.text {
					t.Errorf("error %v, want %s", err, test.text)
				}
				if r := (*rpc.Refusal)(nil); errors.As(err, &r) != (test.failure != "") {
					t.Errorf("%v is a refusal, or is none", err)
				}
			case err != nil || out.A != 5:
				t.Errorf("answer %+v, %v", out, err)
			}
		})
	}
}
