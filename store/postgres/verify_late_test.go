package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/postgres"
	"github.com/dialai/dialai/strategies"
)

// silent are services that do not answer.
type silent struct {
	strategies.Registry
	asked chan struct{}
}

func (r silent) Proposer(m *machine.Machine, s *machine.Specialist, c specialist.Context) (specialist.Proposer, error) {
	if s.StrategyWebhookURL == "" {
		return r.Registry.Proposer(m, s, c)
	}
	return specialist.ProposerFunc(func(ctx context.Context, _ specialist.Question) (specialist.Answer, error) {
		close(r.asked)
		<-ctx.Done()
		return specialist.Answer{}, ctx.Err()
	}), nil
}

// TestVerifyWorkRunning: of the sessions that run, one that somebody is to step has to be ready at once; one that waits for an
// answer that comes later, or for its timer alone, only when that is due.
func TestVerifyWorkRunning(t *testing.T) {
	address := pgtest.Database(t)
	s := open(t, address, postgres.Options{})
	services := silent{asked: make(chan struct{})}
	r, err := runner.New(runner.Config{Store: s, Resolver: services, Agents: func(*machine.Machine, *machine.Specialist) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	start := func(name, due, who string) specialist.SessionID {
		t.Helper()
		m, err := machine.Parse(name+".json", []byte(`{"machineName": "`+name+`", "initialState": "a", "goalState": "b", "states": {"a": {`+due+`"transitions": {"go": "b"}}, "b": {}},
			"solicit": {"timeout": "3h", "roundTimeout": "3h", "asyncTimeout": "3h"}, "specialists": [`+who+`{"role": "arbiter", "specialistId": "arbiter", "strategyFnName": "firstProposal"}]}`), runner.Checks())
		if err != nil {
			t.Fatal(err)
		}
		started, err := r.Start(t.Context(), m, runner.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return started.ID
	}
	step := func(ctx context.Context, id specialist.SessionID) {
		t.Helper()
		if _, err := r.Step(ctx, id); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	}
	later := start("later", "", `{"role": "proposer", "specialistId": "agent", "agent": "claude"}, `)
	step(t.Context(), later)
	timed := start("timed", `"due": {"in": "3h", "then": "go"}, `, "")
	step(t.Context(), timed)
	asked := start("asked", "", `{"role": "proposer", "specialistId": "service", "strategyWebhookUrl": "https://service.invalid", "webhookTokenName": "NONE"}, `)
	ctx, answered := context.WithCancel(t.Context())
	stepped := make(chan struct{})
	go func() {
		defer close(stepped)
		step(ctx, asked)
	}()
	<-services.asked
	defer func() { answered(); <-stepped }()

	for what, id := range map[string]specialist.SessionID{"for an answer that comes later": later, "for its timer": timed, "for a process": asked} {
		is, err := s.Load(t.Context(), session.NewPrograms(), id)
		if err != nil {
			t.Fatal(err)
		}
		if is.Status != session.Running || is.WakeAt() == 0 {
			t.Fatalf("the session that waits %s is %s, to be woken at %s", what, is.Status, is.WakeAt())
		}
		for _, c := range []struct{ readyAt, later, soon string }{
			{"now()", "", ""},
			{"now()+interval '50 minutes'", "", ""},
			{"now()+interval '2 hours'", "", "later than its log says"},
			{"now()+interval '5 hours'", "later than its log says", "later than its log says"},
			{"NULL", "never ready", "never ready"},
			{"now()", "", ""}, // as it was
		} {
			exec(t, address, fmt.Sprintf(`UPDATE dialai.work SET ready_at=%s WHERE session=(SELECT id FROM dialai.sessions WHERE session_id='%s')`, c.readyAt, id))
			want := c.later
			if id == asked {
				want = c.soon
			}
			if _, found := audited(t, s); (found == "") != (want == "") || !strings.Contains(found, want) {
				t.Errorf("the session that waits %s is ready at %s: found is %q, want %q", what, c.readyAt, found, want)
			}
		}
	}
}
