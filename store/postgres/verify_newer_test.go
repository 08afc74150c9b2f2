package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/postgres"
)

// TestVerifyUnknownForm: as of a store in a file, of a record whose first byte is that of no known form a check says where
// it is, and that it is a newer version's or damaged, unless the hashes tell.
func TestVerifyUnknownForm(t *testing.T) {
	const newer = "the record at place %d begins with the byte 0x07, which no form has that this version knows: a newer version has written it, or it is damaged; update the program"
	const altered = `events=set_byte(set_byte(events, 0, 7), 9, 255-get_byte(events, 9))`
	for _, c := range []struct {
		alter string // $1 is the place of the second of four records
		want  []string
	}{
		{`UPDATE log SET events=set_byte(events, 0, 7) WHERE place=$1`, []string{"log: the first byte of the record at place %d is 0x07 and was 0x01: it was altered"}},
		{`UPDATE log SET ` + altered + ` WHERE place=$1`, []string{"newer: " + newer}},
		{`UPDATE log SET ` + altered + ` WHERE place=$1; UPDATE log SET hash=set_byte(hash, 0, 255-get_byte(hash, 0)) WHERE place=$1+1`,
			[]string{"log: the hash of its record is wrong: the record was altered, or the one before it", "newer: " + newer}},
		{`UPDATE log SET ` + altered + ` WHERE place IN ($1, $1+2); UPDATE log SET hash=set_byte(hash, 0, 255-get_byte(hash, 0)) WHERE place=$1+1`,
			[]string{"newer: " + newer}},
	} {
		address := pgtest.Database(t)
		s := open(t, address, postgres.Options{})
		w := begin(t, parse(t), s)
		for range 3 {
			if err := w.commit(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		place := fmt.Sprint(ask[int64](t, address, `SELECT min(place)+1 FROM log`))
		exec(t, address, `SET search_path=dialai; `+strings.ReplaceAll(c.alter, "$1", place))
		_, err := open(t, address, postgres.Options{}).Load(t.Context(), session.NewPrograms(), w.last.ID)
		isNewer := errors.As(err, new(*session.NewerError))
		if altered := strings.Contains(c.want[0], "the first byte"); isNewer == altered || !errors.As(err, new(*session.CorruptError)) || altered && !strings.Contains(err.Error(), "was 0x01 and was altered; run dialai store verify") {
			t.Errorf("%s: loading it says %v", c.alter, err)
		}
		report, err := s.Verify(t.Context(), session.NewPrograms(), nil)
		if err != nil {
			t.Fatal(err)
		}
		all := report.Differences
		if len(all) == 0 {
			all = append(all, report.Difference)
		}
		var found []string
		for _, d := range all {
			found = append(found, fmt.Sprintf("%s: %s", d.Kind, d.What))
		}
		if got, want := strings.Join(found, "\n"), strings.ReplaceAll(strings.Join(c.want, "\n"), "%d", place); got != want {
			t.Errorf("%s: found is\n%s, want\n%s", c.alter, got, want)
		}
	}
}

// TestVerifyNewerRoster: as of a store in a file, what a newer version has recorded of specialists is told as that.
func TestVerifyNewerRoster(t *testing.T) {
	address := pgtest.Database(t)
	s := open(t, address, postgres.Options{})
	begin(t, parse(t), s)
	if err := s.Register(t.Context(), "looping", 0, session.RosterEvent{Kind: "specialist_praised", ID: "x"}); err != nil {
		t.Fatal(err)
	}
	const want = `event 1 is of the kind "specialist_praised", which a newer version of dialai has written; update the program`
	_, err := open(t, address, postgres.Options{}).Roster(t.Context(), "looping")
	if newer, ok := errors.AsType[*session.NewerError](err); !ok || newer.Error() != "the log of machine looping: "+want {
		t.Errorf("the roster says %v", err)
	}
	report, err := s.Verify(t.Context(), session.NewPrograms(), nil)
	if d := report.Difference; err != nil || d == nil || d.Kind != "newer" || d.Stream != "looping" || d.Seq != 1 || d.What != want {
		t.Errorf("a check says %+v (%v)", d, err)
	}
}
