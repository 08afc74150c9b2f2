package postgres_test

import (
	"testing"

	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/postgres"
)

// TestStatus: each number of a status is of what it says. One session is leased, two are ready, one is later, and
// one is quarantined and waits for a human, while somebody writes and does not commit.
func TestStatus(t *testing.T) {
	address := pgtest.Database(t)
	s, m := open(t, address, postgres.Options{}), parse(t)
	for range 5 {
		begin(t, m, s)
	}
	w := join(t, s)
	leased := claims(t, w)
	exec(t, address, `SET search_path=dialai;
		UPDATE work SET ready_at=now()-interval '1 h' WHERE owner IS NULL;
		UPDATE work SET ready_at=now()+interval '1 h' WHERE session=(SELECT min(session) FROM work WHERE owner IS NULL);
		UPDATE work SET quarantined='by hand' WHERE session=(SELECT max(session) FROM work WHERE owner IS NULL)`)
	exec(t, address, `SET search_path=dialai; UPDATE sessions SET status=1 WHERE id=(SELECT max(session) FROM work WHERE quarantined IS NOT NULL)`)
	conn := connect(t, address)
	tx, err := conn.Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), `UPDATE dialai.meta SET one=one`)
	}
	if err != nil {
		t.Fatal(err)
	}
	is, err := s.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	k := is.Work
	if is.Kind != "postgres" || is.Place < 5 || is.Schema < 6 || is.SizeBytes < 1<<15 || is.Epoch == "" || is.Running != 4 || is.NeedsHuman != 1 {
		t.Errorf("the store is %+v", is)
	}
	if k.Partitions != 1 || k.Workers != 1 || k.Leased != 1 || k.Ready != 2 || k.Lanes != 1 || k.Quarantined != 1 {
		t.Errorf("of its work it says %+v", *k)
	}
	if k.OldestReadySeconds < 3600 || k.OldestReadySeconds > 7200 || k.WritingSeconds <= 0 || k.WritingSeconds > 600 {
		t.Errorf("times are %+v", *k)
	}
	if err := w.Release(t.Context(), session.Release{Session: leased.Session, After: -1}); err != nil {
		t.Fatal(err)
	}
	if is, err = s.Status(t.Context()); err != nil || is.Work.Leased != 0 {
		t.Errorf("later it is %+v, %v", *is.Work, err)
	}
}
