package runner_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
)

// TestManyDefinitionsAreForgotten: a runner that has met many definitions holds no more
// than 512 plans, and goes on with a session whose definition it has forgotten as with
// any other.
func TestManyDefinitionsAreForgotten(t *testing.T) {
	r, err := runner.New(runner.Config{Store: store.NewMemory()})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var sessions []*session.Session
	for i := range 600 {
		m, err := machine.Parse("m.json", fmt.Appendf(nil, `{"machineName":"m","initialState":"a","goalState":"c","states":{"a":{"prompt":"%d","transitions":{"go":"b"}},"b":{"transitions":{"go":"c"}},"c":{}},
			"guards":{"limits":{"max_steps":1}}}`, i), runner.Checks())
		if err != nil {
			t.Fatal(err)
		}
		s, err := r.Start(t.Context(), m, runner.StartOptions{Defaults: true})
		if err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, s)
		if n := runner.Plans(r); n > 512 {
			t.Fatalf("%d plans are held after %d definitions", n, i+1)
		}
	}
	var want string
	for _, s := range []*session.Session{sessions[599], sessions[0], sessions[300], sessions[0]} {
		result, err := r.Run(t.Context(), s.ID, runner.RunOptions{})
		if err != nil {
			t.Fatal(err)
		}
		end := result.Session.Outcome()
		got := fmt.Sprint(result.Session.Status, result.Session.State.Name, end.Code, end.Reason, result.Session.Executed)
		if want == "" {
			want = got
		}
		if got != want {
			t.Errorf("of a definition that was forgotten: %s, want %s", got, want)
		}
	}
	if !strings.Contains(want, "max_steps") {
		t.Errorf("the sessions came to %s, and were to be stopped by their guards", want)
	}
}
