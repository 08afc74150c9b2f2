package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/internal/stats"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/postgres"
)

// TestVerify: a store that was used is as it says, and whatever is altered in it is found, with its kind.
func TestVerify(t *testing.T) {
	address := pgtest.Database(t)
	s, m := open(t, address, postgres.Options{}), parse(t)
	r, err := runner.New(runner.Config{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var ids []specialist.SessionID
	for range 3 {
		started, err := r.Start(t.Context(), m, runner.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			_, _, err := r.Propose(t.Context(), runner.Submission{SessionID: started.ID, RoundID: runner.CurrentRound, SpecialistID: "first"})
			if err != nil {
				t.Fatal(err)
			}
			_, err = r.Decide(t.Context(), runner.Ruling{SessionID: started.ID, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "again", Reasoning: "because"})
			if err == nil {
				_, err = r.Step(t.Context(), started.ID)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		ids = append(ids, started.ID)
	}
	if _, err := r.Register(t.Context(), "looping", machine.Specialist{Role: machine.Proposer, SpecialistID: "late", StrategyFnName: "random"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.AppendAgentLog(t.Context(), ids[0], 0, session.AgentEvent{At: 1, Kind: "note", Data: []byte(`{}`)}); err != nil {
		t.Fatal(err)
	}
	tallies := stats.NewFollower(s, session.NewPrograms())
	if err := tallies.Keep(t.Context(), m.Name()); err != nil {
		t.Fatal(err)
	}
	verify := func() (found string) {
		t.Helper()
		report, err := s.Verify(t.Context(), session.NewPrograms(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if d := report.Difference; d != nil {
			return fmt.Sprintf("%s: %v", d.Kind, d)
		}
		if report.Sessions < 3 || report.Records < 20 || len(report.Unknown) == 0 {
			t.Errorf("checked was %+v", report)
		}
		return ""
	}
	if found := verify(); found != "" {
		t.Fatalf("in a store that nobody has touched there is %s", found)
	}
	save, restore := copied()
	exec(t, address, save)
	for _, c := range []struct{ alter, want string }{
		{`UPDATE log SET hash='\x00' WHERE place=(SELECT max(place) FROM log)`, "log: "},
		{`UPDATE log SET events=overlay(events PLACING '\xff' FROM 9) WHERE place=(SELECT min(place) FROM log)`, "log: "},
		{`DELETE FROM log WHERE place=(SELECT max(place) FROM log WHERE session=1)`, "its end was cut off"},
		{`DELETE FROM log WHERE session=2`, "its log is gone"},
		{`DELETE FROM sessions WHERE id=2`, "have no row"},
		{`UPDATE log SET at=at+1 WHERE place=(SELECT max(place) FROM log)`, "beside the record"},
		{`UPDATE log SET decides=NULL WHERE decides IS NOT NULL`, "beside the record"},
		{`UPDATE definitions SET definition='{}'`, "definition"},
		{`UPDATE roster_log SET events=events||' '`, "roster: "},
		{`UPDATE agent_log SET event=event||' '`, "agent_log: "},
		{`UPDATE lessons SET lesson='{}' WHERE place=(SELECT max(place) FROM lessons)`, "rows: lessons"},
		{`DELETE FROM lessons WHERE place=(SELECT max(place) FROM lessons)`, "rows: lessons"},
		{`UPDATE alignment SET total=total+1`, "alignment of"},
		{`DELETE FROM exemplars WHERE place=(SELECT max(place) FROM exemplars)`, "rows: exemplars"},
		{`UPDATE exemplars SET exemplar=''`, "rows: exemplars"},
		{`UPDATE machines SET trust_version=0`, "its versions"},
		{`UPDATE machines SET roster_version=0`, "its versions"},
		{`UPDATE ledger_snapshots SET format=format+1`, "not what its hash says"},
		{`UPDATE sessions SET head='\x00' WHERE id=3`, "its row in sessions"},
		{`UPDATE sessions SET ended_at=1 WHERE id=3`, "its row in sessions"},
		{`UPDATE sessions SET calls=calls+1 WHERE id=3`, "its row in sessions"},
		{`UPDATE sessions SET driver='temporal' WHERE id=3`, "its row in sessions"},
		{`UPDATE sessions SET since=1 WHERE id=3`, "its row in sessions"},
		{`UPDATE sessions SET status=1 WHERE id=3`, "its row in sessions"},
		{`UPDATE sessions SET definition=99 WHERE id=3`, "its row in sessions"},
		{`UPDATE sessions SET machine=99 WHERE id=3`, "its row in sessions"},
		{`UPDATE definitions SET machine=99`, "to which it belongs"},
		{`DELETE FROM definitions`, "it is not stored"},
		{`UPDATE machines SET machine_name='other'`, "roster: "},
		{`DELETE FROM machines`, "roster: "},
		{`UPDATE lessons SET machine=99 WHERE place=(SELECT max(place) FROM lessons)`, "rows: lessons"},
		{`UPDATE lessons SET session=99 WHERE place=(SELECT max(place) FROM lessons)`, "rows: lessons"},
		{`UPDATE lessons SET at=at+1 WHERE place=(SELECT max(place) FROM lessons)`, "rows: lessons"},
	} {
		exec(t, address, `SET search_path=dialai; `+c.alter)
		found := verify()
		if !strings.Contains(found, c.want) {
			t.Errorf("%s: found is %q, want %q", c.alter, found, c.want)
		}
		_, err := s.Rebuild(t.Context(), session.NewPrograms(), nil)
		if err != nil {
			t.Fatalf("%s: %v", c.alter, err)
		}
		switch after, mends := verify(), strings.HasSuffix(found, "dialai store rebuild repairs it"); {
		case mends != strings.HasPrefix(found, "rows: "):
			t.Errorf("%s: it says %q", c.alter, found)
		case mends && after != "":
			t.Errorf("%s: rebuilt, there is %q", c.alter, after)
		case !mends && after != found:
			t.Errorf("%s: rebuilt, it says %q, and before %q", c.alter, after, found)
		}
		exec(t, address, restore)
	}
	counted, err := tallies.Of(t.Context(), m.Name())
	if err != nil {
		t.Fatal(err)
	}
	place, err := s.Place(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wrong := counted.Clone()
	wrong.State("looping").Human++
	if err := s.KeepLedger(t.Context(), stats.Snapshot(m.Name(), place, wrong)); err != nil {
		t.Fatal(err)
	}
	if found := verify(); !strings.Contains(found, "not what the decisions up to there come to") {
		t.Errorf("with a snapshot of other decisions there is %q", found)
	}
	exec(t, address, restore)
	if found := verify(); found != "" {
		t.Errorf("in the end there is %s", found)
	}
	exec(t, address, `SET search_path=dialai; ALTER TABLE log DETACH PARTITION log_0; INSERT INTO log SELECT * FROM log_0`)
	if found := verify(); !strings.Contains(found, "default partition") {
		t.Errorf("with all records in the default partition there is %q", found)
	}
	exec(t, address, `SET search_path=dialai; DROP TABLE log_0`)
	worker, err := s.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Rebuild(t.Context(), session.NewPrograms(), nil); !errors.Is(err, store.ErrDriven) {
		t.Errorf("while a process carries sessions on, a rebuild says %v", err)
	}
	if err := worker.Release(); err != nil {
		t.Fatal(err)
	}
	var read int64
	report, err := s.Rebuild(t.Context(), session.NewPrograms(), func(_ string, done, _ int64) { read = max(read, done) })
	if found := verify(); err != nil || report.Difference != nil || found != "" || read == 0 {
		t.Errorf("rebuilt are %+v, %v, and there is %q", report, err, found)
	}
	if started, err := r.Start(t.Context(), m, runner.StartOptions{}); err != nil || verify() != "" {
		t.Errorf("after it, started is %v, %v, and there is %q", started, err, verify())
	}
}

// copied returns the statements that copy the tables of a store aside, and that put them back.
func copied() (save, restore string) {
	save, restore = `CREATE SCHEMA saved; `, ``
	for _, table := range []string{"machines", "definitions", "sessions", "log", "roster_log", "lessons", "alignment", "exemplars", "agent_log", "ledger_snapshots", "snapshots", "work"} {
		save += fmt.Sprintf(`CREATE TABLE saved.%[1]s AS TABLE dialai.%[1]s; `, table)
		restore += fmt.Sprintf(`TRUNCATE dialai.%[1]s; INSERT INTO dialai.%[1]s OVERRIDING SYSTEM VALUE SELECT * FROM saved.%[1]s; `, table)
	}
	return save, restore
}
