package store_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
)

// TestUnknownForm: of a record whose first byte is that of no known form a check says where it is, and that it is a newer
// version's or damaged, unless the hashes tell: where only that byte was altered, and where what is behind does not
// follow from it, there is damage. Where the session is loaded, that only its first byte was altered is told as well.
func TestUnknownForm(t *testing.T) {
	const newer = "newer: the record at place %d begins with the byte 0x07, which no form has that this version knows: a newer version has written it, or it is damaged; update the program"
	for name, c := range map[string]struct {
		alter func(a *aStore, place, behind int64)
		want  string // with the place of the record
	}{
		"only the byte": {func(a *aStore, place, _ int64) {
			a.alter(place, func(events, _ []byte) { events[0] = 7 })
		}, "log: the first byte of the record at place %d is 0x07 and was 0x01: it was altered"},
		"all of it": {func(a *aStore, place, _ int64) {
			a.alter(place, func(events, _ []byte) { events[0], events[9] = 7, events[9]^1 })
		}, newer},
		"all of it, and what is behind": {func(a *aStore, place, behind int64) {
			a.alter(place, func(events, _ []byte) { events[0], events[9] = 7, events[9]^1 })
			a.alter(behind, func(_, hash []byte) { hash[0] ^= 1 })
		}, "log: the hash of its record is wrong: the record was altered, or the one before it; " + newer},
		"it and one behind that cannot be unpacked": {func(a *aStore, place, behind int64) {
			a.alter(place, func(events, _ []byte) { events[0], events[9] = 7, events[9]^1 })
			a.alter(behind, func(events, _ []byte) { events[1], events[2], events[3] = 255, 255, 255 })
		}, "log: it cannot be read: the record was altered; " + newer},
		"its hash": {func(a *aStore, place, _ int64) {
			a.alter(place, func(events, hash []byte) { events[0], hash[0] = 7, hash[0]^1 })
		}, "log: the hash of its record is wrong: the record was altered, or the one before it; " + newer},
		"what is behind, before another that cannot be read": {func(a *aStore, place, behind int64) {
			a.alter(place, func(events, _ []byte) { events[0], events[9] = 7, events[9]^1 })
			a.alter(behind, func(_, hash []byte) { hash[0] ^= 1 })
			a.alter(behind+1, func(events, _ []byte) { events[0], events[9] = 7, events[9]^1 })
			a.alter(behind+2, func(events, _ []byte) { events[0], events[9] = 7, events[9]^1 })
		}, newer},
	} {
		t.Run(name, func(t *testing.T) {
			a := newStore(t)
			var place, behind int64
			a.query(`SELECT max(id) FROM (SELECT id FROM log WHERE session=1 ORDER BY id LIMIT 3)`, &place)
			a.query(fmt.Sprintf(`SELECT min(id) FROM log WHERE session=1 AND id>%d`, place), &behind)
			c.alter(a, place, behind)
			a.with(func(_ *runner.Runner, s *store.SQLite) {
				_, err := s.Load(a.ctx, session.NewPrograms(), a.ids[0])
				isNewer := errors.As(err, new(*session.NewerError))
				if altered := strings.HasPrefix(c.want, "log: the first byte"); isNewer == altered || !errors.As(err, new(*session.CorruptError)) || altered && !strings.Contains(err.Error(), "was 0x01 and was altered; run dialai store verify") {
					t.Errorf("loading it says %v", err)
				}
			})
			report := a.verify()
			all := report.Differences
			if len(all) == 0 {
				all = append(all, report.Difference)
			}
			var found []string
			for _, d := range all {
				if d.Kind != "log" && d.Kind != "newer" {
					continue // what follows from them
				}
				if d.Stream != a.ids[0].String() {
					t.Errorf("it is of %s: %v", d.Stream, d)
				}
				found = append(found, fmt.Sprintf("%s: %s", d.Kind, d.What))
			}
			if got, want := strings.Join(found, "; "), strings.ReplaceAll(c.want, "%d", fmt.Sprint(place)); got != want {
				t.Errorf("found is\n%s, want\n%s", got, want)
			}
		})
	}
}

// TestNewerRoster: what a newer version has recorded of the specialists of a machine is told as that, by whoever would
// decide by them and by a check.
func TestNewerRoster(t *testing.T) {
	a := newStore(t)
	var at int64
	a.with(func(_ *runner.Runner, s *store.SQLite) {
		roster, err := s.Roster(a.ctx, "small")
		a.ok(err)
		at = roster.Sequence + 1
		a.ok(s.Register(a.ctx, "small", roster.Sequence, session.RosterEvent{Kind: "specialist_praised", ID: "x"}))
	})
	want := fmt.Sprintf(`event %d is of the kind "specialist_praised", which a newer version of dialai has written; update the program`, at)
	a.with(func(r *runner.Runner, s *store.SQLite) {
		for what, err := range map[string]error{"the roster": second(s.Roster(a.ctx, "small")), "a step": second(r.Step(a.ctx, a.ids[0]))} {
			if newer, ok := errors.AsType[*session.NewerError](err); !ok || newer.Error() != "the log of machine small: "+want {
				t.Errorf("%s says %v, want %s", what, err, want)
			}
		}
	})
	if d := a.verify().Difference; d == nil || d.Kind != "newer" || d.Stream != "small" || d.Seq != at || d.What != want {
		t.Errorf("a check says %+v, want %s", d, want)
	}
}

func second[T any](_ T, err error) error { return err }

// query reads one value.
func (a *aStore) query(query string, into ...any) {
	a.Helper()
	db, err := sql.Open("sqlite", a.path)
	a.ok(err)
	defer db.Close()
	a.ok(db.QueryRow(query).Scan(into...))
}

// alter changes the bytes of a record and of its hash.
func (a *aStore) alter(place int64, f func(events, hash []byte)) {
	a.Helper()
	var events, hash []byte
	a.query(fmt.Sprintf(`SELECT events, hash FROM log WHERE id=%d`, place), &events, &hash)
	if len(hash) != len(session.Hash{}) || len(events) < 10 {
		a.Fatalf("the record at place %d is %x with hash %x", place, events, hash)
	}
	f(events, hash)
	a.exec(`UPDATE log SET events=?, hash=? WHERE id=?`, events, hash, place)
}
