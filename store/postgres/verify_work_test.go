package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/postgres"
)

// audited returns what a check of a store finds.
func audited(t testing.TB, s *postgres.Store) (store.Report, string) {
	t.Helper()
	report, err := s.Verify(t.Context(), session.NewPrograms(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if report.Difference == nil {
		return report, ""
	}
	return report, report.Difference.Error()
}

// TestVerifyWork: a row of work by which a session would be carried on by nobody is found, and made anew by a
// rebuild; one that costs a step in vain at most is no difference.
func TestVerifyWork(t *testing.T) {
	address := pgtest.Database(t)
	s, m := open(t, address, postgres.Options{}), parse(t)
	running, undriven, waiting := begin(t, m, s), (*session.Session)(nil), begin(t, m, s)
	r, err := runner.New(runner.Config{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if undriven, err = r.Start(t.Context(), m, runner.StartOptions{Driver: session.DriverNone}); err != nil {
		t.Fatal(err)
	}
	_, _, err = r.Propose(t.Context(), runner.Submission{SessionID: waiting.last.ID, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "again"})
	if err != nil {
		t.Fatal(err)
	}
	ended := begin(t, m, s)
	if err := ended.commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, found := audited(t, s); found != "" {
		t.Fatalf("in a store that nobody has touched there is %s", found)
	}
	row := func(id specialist.SessionID) string {
		return fmt.Sprintf(`WHERE session=(SELECT id FROM sessions WHERE session_id='%s')`, id)
	}
	for _, c := range []struct{ alter, want string }{
		{`UPDATE work SET ready_at=NULL ` + row(running.last.ID), "never ready"},
		{`UPDATE work SET ready_at=now()+interval '2 hours' ` + row(running.last.ID), "later than its log says"},
		{`UPDATE work SET lane=NULL ` + row(running.last.ID), "has no lane"},
		{`UPDATE work SET lane=lane+1 ` + row(running.last.ID), "not its machine"},
		{`UPDATE work SET failures=-1 ` + row(running.last.ID), "negative"},
		{`UPDATE work SET crashes=-1 ` + row(running.last.ID), "negative"},
		{`UPDATE work SET fence=-1 ` + row(running.last.ID), "negative"},
		{`INSERT INTO work (session, lane) SELECT id, machine FROM sessions WHERE session_id='` + ended.last.ID.String() + `'`, "1 rows are of sessions that have ended"},
		{`INSERT INTO work (session) VALUES (4711)`, "1 rows are of sessions"},
		{`UPDATE work SET owner=4711, ready_at=NULL ` + row(running.last.ID), ""},
		{`UPDATE work SET ready_at=now()-interval '1 year', failures=3, crashes=2`, ""},
		{`UPDATE work SET quarantined='because' ` + row(waiting.last.ID), ""},
		{`UPDATE work SET quarantined='x', ready_at=NULL ` + row(running.last.ID), ""},
		{`UPDATE work SET owner=1, quarantined='x' ` + row(running.last.ID), "leased and quarantined"},
		{`DELETE FROM work ` + row(running.last.ID), ""}, // for nobody carries sessions on: who does first makes it
	} {
		exec(t, address, `SET search_path=dialai; `+c.alter)
		_, found := audited(t, s)
		if (found == "") != (c.want == "") || !strings.Contains(found, c.want) || found != "" && !strings.HasSuffix(found, "dialai store rebuild repairs it") {
			t.Errorf("%s: found is %q, want %q", c.alter, found, c.want)
		}
		if _, err := s.Rebuild(t.Context(), session.NewPrograms(), nil); err != nil {
			t.Fatalf("%s: %v", c.alter, err)
		}
		if _, found := audited(t, s); found != "" {
			t.Errorf("%s: after a rebuild there is %s", c.alter, found)
		}
	}
	if reason := ask[string](t, address, `SELECT coalesce(convert_from(quarantined, 'UTF8'), '') FROM work `+row(waiting.last.ID)); reason != "because" {
		t.Errorf("after a rebuild what was quarantined is quarantined for %q", reason)
	}
	if lanes := ask[int](t, address, `SELECT count(lane) FROM work `+row(undriven.ID)); lanes != 0 {
		t.Error("a rebuild has a session carried on that nobody is to carry on")
	}
	join(t, s)
	exec(t, address, `SET search_path=dialai; DELETE FROM work `+row(running.last.ID))
	if _, found := audited(t, s); !strings.Contains(found, "has no row") {
		t.Errorf("while a process carries sessions on and one has no row, found is %q", found)
	}
}

// TestVerifyWorkTimer: a session that waits for a timer is to be ready when that comes, and one that waits for nothing but a
// human need not be ready at all.
func TestVerifyWorkTimer(t *testing.T) {
	address := pgtest.Database(t)
	s := open(t, address, postgres.Options{})
	r, err := runner.New(runner.Config{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	start := func(due string) specialist.SessionID {
		t.Helper()
		m, err := machine.Parse("waits.json", []byte(`{"machineName": "waits", "initialState": "a", "goalState": "b", "states": {"a": {`+due+`"transitions": {"go": "b"}}, "b": {}},
			"specialists": [{"role": "proposer", "specialistId": "human", "isHuman": true}, {"role": "arbiter", "specialistId": "arbiter", "strategyFnName": "firstProposal"}]}`), runner.Checks())
		if err != nil {
			t.Fatal(err)
		}
		started, err := r.Start(t.Context(), m, runner.StartOptions{})
		if err == nil {
			_, err = r.Step(t.Context(), started.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
		return started.ID
	}
	timed, human := start(`"due": {"in": "3h", "then": "go"}, `), start("")
	set := func(id specialist.SessionID, readyAt string) {
		t.Helper()
		exec(t, address, fmt.Sprintf(`UPDATE dialai.work SET ready_at=%s WHERE session=(SELECT id FROM dialai.sessions WHERE session_id='%s')`, readyAt, id))
	}
	for _, c := range []struct {
		id            specialist.SessionID
		readyAt, want string
	}{
		{timed, "ready_at", ""},
		{timed, "now()+interval '3 hours 50 minutes'", ""}, // a step before has failed
		{timed, "now()+interval '4 hours 10 minutes'", "later than its log says"},
		{timed, "NULL", "never ready"},
		{timed, "now()", ""},
		{human, "NULL", ""},
		{human, "now()+interval '1 year'", ""},
	} {
		set(c.id, c.readyAt)
		if _, found := audited(t, s); (found == "") != (c.want == "") || !strings.Contains(found, c.want) {
			t.Errorf("where it is ready at %s, found is %q, want %q", c.readyAt, found, c.want)
		}
	}
}
