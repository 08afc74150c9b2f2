package postgres

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/internal/projection"
)

// A rebuild makes anew what follows from the logs, in one transaction, while nobody else writes: other
// connections read the logs of sessions and fold them, some at once (rebuild_fold.go); what they say is
// written in the order of the sessions' numbers, some at a time. So no more is held than a page of sessions, some rows,
// and how often each specialist agreed with humans.

// rebuiltAtOnce is how many sessions are written together.
const rebuiltAtOnce = 1000

// A rebuild is one run of it.
type rebuild struct {
	*copied
	programs *session.Programs
	told     func(done, of int64)
	again    bool         // it is of a store that was used, and may be: not of a copy that is not finished
	readers  []*logReader // other connections, one at least
	tx       pgx.Tx

	tallies   map[string]*trust.Book // by machine name
	learned   map[string]int64       // records that taught something, by machine name
	undriven  []int64                // sessions that nobody is to carry on, by sessions.id
	sessions  []sessionRow
	lessons   []lessonRow
	exemplars []exemplarRow
	beside    []besideRow
}

// A besideRow is what stands beside the events of a record, where that was not what they say.
type besideRow struct {
	place, session, at int64
	decides            *int
}

type lessonRow struct {
	place, session, at int64
	machine            string
	lesson             []byte
}

type exemplarRow struct {
	place int64
	projection.Exemplar
}

func (b *rebuild) run(ctx context.Context) error {
	b.tallies, b.learned = map[string]*trust.Book{}, map[string]int64{}
	return b.s.translate(b.write(ctx, func(tx pgx.Tx) error {
		if b.tx = tx; b.again {
			if err := b.lock(ctx); err != nil {
				return err
			}
		}
		err := b.all(ctx)
		if err == nil {
			err = b.spread(ctx) // for which nobody may read
		}
		return err
	}))
}

// all writes everything.
func (b *rebuild) all(ctx context.Context) (err error) {
	if b.machines, err = machineRows(ctx, b.tx); err != nil {
		return err
	}
	defer b.hangUp(ctx)
	if err := b.connect(ctx); err != nil {
		return err
	}
	tables := []string{"lessons", "exemplars", "alignment", "ledger_snapshots", "snapshots"}
	for _, table := range append(tables, quotaTables...) {
		if _, err := b.tx.Exec(ctx, `DELETE FROM `+table); err != nil {
			return err
		}
	}
	for _, step := range []func(context.Context) error{b.logs, b.archived, b.flush, b.trust, b.work, b.sequences} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// logs folds the log of each session.
func (b *rebuild) logs(ctx context.Context) error {
	var all, read int64
	if err := b.readers[0].tx.QueryRow(ctx, `SELECT count(*) FROM log`).Scan(&all); err != nil {
		return err
	}
	for last := int64(0); ; {
		rows, err := b.readers[0].page(ctx, last)
		if err != nil {
			return err
		}
		for i, f := range b.fold(ctx, rows) {
			if f.err != nil {
				return f.err
			}
			last = rows[i].id
			b.take(&f)
			if read += f.records; i%64 == 0 {
				b.told(read, all)
			}
			if len(b.sessions) >= rebuiltAtOnce {
				if err := b.flush(ctx); err != nil {
					return err
				}
			}
		}
		if len(rows) < page {
			b.told(all, all)
			return nil
		}
	}
}

// take keeps what the log of a session came to.
func (b *rebuild) take(f *folded) {
	b.sessions = append(b.sessions, f.row)
	if f.undriven {
		b.undriven = append(b.undriven, f.row.id)
	}
	b.beside = append(b.beside, f.beside...)
	b.teach(f.row.Machine, f.row.id, f.taught)
}

// teach keeps what the records of one session of a machine teach. A ruling that is taken back has taught
// the same session.
func (b *rebuild) teach(machine string, row int64, list []projection.Taught) {
	first := len(b.exemplars)
	for i := range list {
		t := &list[i]
		if t.Lesson != nil {
			b.lessons = append(b.lessons, lessonRow{t.Place, row, int64(t.At), machine, t.Lesson})
		}
		if t.Counts {
			b.learned[machine]++
			b.tallies[machine] = b.tallies[machine].With(t.Comparisons...)
		}
		if t.State != "" { // its text is empty if it was erased
			b.exemplars = append(b.exemplars, exemplarRow{t.Place, projection.Exemplar{Machine: machine, State: t.State, Text: t.Exemplar}})
		}
		if t.Retracted != "" {
			for j := range b.exemplars[first:] {
				if e := &b.exemplars[first+j]; strings.HasPrefix(e.Text, t.Retracted) {
					e.Text = ""
				}
			}
		}
	}
}

// flush writes what was folded.
func (b *rebuild) flush(ctx context.Context) error {
	ids := make([]int64, len(b.sessions))
	for i := range b.sessions {
		ids[i] = b.sessions[i].id
	}
	_, err := b.tx.Exec(ctx, `DELETE FROM sessions WHERE id=ANY($1)`, ids)
	if err == nil {
		err = b.loadSessions(ctx, b.tx, b.sessions)
	}
	if err == nil {
		err = load(ctx, b.tx, "lessons", []string{"place", "machine", "session", "at", "lesson"}, b.lessons, func(r *lessonRow) []any {
			return []any{r.place, b.machines[r.machine], r.session, r.at, r.lesson}
		})
	}
	if err == nil {
		err = load(ctx, b.tx, "exemplars", []string{"place", "machine", "state", "exemplar"}, b.exemplars, func(r *exemplarRow) []any {
			return []any{r.place, b.machines[r.Machine], r.State, []byte(r.Text)}
		})
	}
	if err == nil {
		err = send(ctx, b.tx, b.beside, `UPDATE log SET decides=$1, at=$2 WHERE place=$3 AND session=$4`, func(r *besideRow) []any { return []any{r.decides, r.at, r.place, r.session} })
	}
	b.sessions, b.lessons, b.exemplars, b.beside = b.sessions[:0], b.lessons[:0], b.exemplars[:0], b.beside[:0]
	return err
}

// archived takes what followed from the logs of sessions that are in another file.
func (b *rebuild) archived(ctx context.Context) error {
	for last := ""; ; {
		n := 0
		failed, err := b.readers[0].archivedAfter(ctx, last, func(id, machine string, row int64, list []projection.Taught) {
			n, last = n+1, id
			b.teach(machine, row, list)
		})
		if err == nil && failed != nil {
			err = &session.CorruptError{What: "what is kept of archived session " + failed.Stream, Problem: failed.What}
		}
		if err == nil {
			err = b.flush(ctx)
		}
		if err != nil || n == 0 {
			return err
		}
	}
}

// trust writes how often specialists agreed with humans, and versions that are other ones than before.
func (b *rebuild) trust(ctx context.Context) error {
	var rows []projection.Alignment
	for _, name := range slices.Sorted(maps.Keys(b.tallies)) {
		rows = append(rows, projection.AlignmentOf(name, b.tallies[name])...)
	}
	err := load(ctx, b.tx, "alignment", []string{"machine", "specialist_id", "state", "matching", "total", "updated_at"}, rows, func(r *projection.Alignment) []any {
		return []any{b.machines[r.Machine], r.Specialist, r.State, r.Matching, r.Total, r.Updated}
	})
	for _, name := range slices.Sorted(maps.Keys(b.machines)) {
		if err == nil {
			_, err = b.tx.Exec(ctx, `UPDATE machines SET trust_version=greatest(trust_version, $2)+1, roster_version=coalesce((SELECT max(first) FROM roster_log WHERE machine=$1), 0) WHERE id=$1`, b.machines[name], b.learned[name])
		}
	}
	return err
}

// work says of each session when it is to be carried on. A copy that is not finished has no such rows.
func (b *rebuild) work(ctx context.Context) error {
	if !b.again {
		return nil
	}
	return rebuildWork(ctx, b.tx, b.undriven)
}

// sequences sets what numbers are drawn from behind those that were given, and never back: some may be
// left out on purpose.
func (b *rebuild) sequences(ctx context.Context) error {
	for sequence, newest := range map[string]string{
		"'place'":       `SELECT max(n) FROM (SELECT max(place) FROM log UNION ALL SELECT max(place) FROM roster_log UNION ALL SELECT max(place) FROM archived_records WHERE agents=0) places (n)`,
		"'agent_place'": `SELECT max(n) FROM (SELECT max(place) FROM agent_log UNION ALL SELECT max(place) FROM archived_records WHERE agents=1) places (n)`,
		"pg_get_serial_sequence('sessions', 'id')":  `SELECT max(n) FROM (SELECT max(id) FROM sessions UNION ALL SELECT max(row) FROM archived) ids (n)`,
		"pg_get_serial_sequence('llm_audit', 'id')": `SELECT max(id) FROM llm_audit`,
	} {
		if _, err := b.tx.Exec(ctx, `SELECT setval(`+sequence+`, greatest(n, pg_sequence_last_value(`+sequence+`::regclass))) FROM (`+newest+`) newest (n) WHERE n IS NOT NULL`); err != nil {
			return err
		}
	}
	return nil
}
