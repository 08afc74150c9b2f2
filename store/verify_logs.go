package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/internal/fold"
	"github.com/dialai/dialai/store/internal/pack"
	"github.com/dialai/dialai/store/internal/projection"
	"github.com/dialai/dialai/store/internal/snapshots"
)

// The second layer of Verify: what everything else follows from. Definitions are held
// to their digests, and give machine names their rows, for a digest covers the name and
// a row does not. The logs of machine names and of sessions are read in order, each
// record held to the hash of the one before, and folded with the same code that runs
// live; what stands beside a record in its row (first, at, decides) must be what its
// events say.
//
// A chain cannot show that its end was cut off, or that a whole session was removed. So
// the row of a session must not know of later events than its log, rows must be in the
// order in which sessions began, and places of the log may be empty only where a gap is
// recorded.
//
// From the folds it keeps what the other tables should hold, for verify_tables.go.

// sources returns the checks of that from which everything else follows.
func (a *audit) sources() []check {
	return []check{
		{inRows, "machines", a.readMachines},
		{inDefinition, "definitions", a.readDefinitions},
		{inRoster, "roster_log", a.readRosters},
		{inLog, "log", a.readLogs},
		{inArchived, "archived", a.readArchived},
		{inLog, "log", a.checkOrder},
	}
}

func (a *audit) readMachines(ctx context.Context) error {
	var id int64
	var name string
	return each(a.all(ctx, "machines", []string{"machine_name"}, []any{&id, &name}), func() error {
		a.machines[id], a.rows[name] = name, id
		return nil
	})
}

// A storedDefinition is a definition with the row of its machine.
type storedDefinition struct {
	id, machine int64
	text        string
	name        string // of its machine
}

// readDefinitions holds each definition against its digest, and gives machines the
// names that their definitions say.
func (a *audit) readDefinitions(ctx context.Context) error {
	var digest string
	var d storedDefinition
	n := int64(0)
	return each(a.all(ctx, "definitions", projection.DefinitionColumns, []any{&d.id, &digest, &d.machine, &d.text}), func() error {
		n++
		sum := sha256.Sum256([]byte(d.text))
		var head struct {
			MachineName string `json:"machineName"`
		}
		if got := hex.EncodeToString(sum[:]); got != digest {
			a.find(differs(inDefinition, "definition "+digest, "its content has digest %s", got))
		} else if err := json.Unmarshal([]byte(d.text), &head); err != nil {
			a.find(differs(inDefinition, "definition "+digest, "%v", err))
		} else if head.MachineName == "" {
			a.find(differs(inDefinition, "definition "+digest, "it names no machine"))
		} else if d.id != n {
			a.find(differs(inDefinition, "definitions", "row %d follows row %d: one was removed or renumbered", d.id, n-1))
		}
		d.name = head.MachineName
		d.machine = a.nameMachine(d.name, d.machine)
		a.definitions[digest] = d
		return nil
	})
}

// nameMachine returns the row of a definition's machine. Where the two do not fit, the
// name in the definition is right, since its digest covers it.
func (a *audit) nameMachine(name string, row int64) int64 {
	if a.machines[row] == name || name == "" {
		return row
	}
	if right, ok := a.rows[name]; ok {
		a.find(differs(inRows, "definitions", "a definition of %s belongs to row %d of machines instead of %d", name, row, right))
		return right
	}
	a.find(differs(inRows, "machines", "row %d has the name %q instead of %q", row, a.machines[row], name))
	delete(a.rows, a.machines[row])
	a.machines[row], a.rows[name] = name, row
	return row
}

// readRosters checks the logs of the machine names.
func (a *audit) readRosters(ctx context.Context) error {
	heads, next := map[int64]session.Hash{}, map[int64]int64{}
	var id, machine, first, n int64
	var events, prev, hash []byte
	return each(a.all(ctx, "roster_log", projection.RosterColumns, []any{&id, &machine, &first, &events, &prev, &hash}), func() error {
		n++
		before, name := heads[machine], a.machines[machine]
		decoded, err := session.DecodeRosterEvents(events)
		bad := &Difference{Stream: cmp.Or(name, fmt.Sprintf("machine row %d", machine)), Seq: first, Kind: inRoster}
		want := session.Chain(before, name, events)
		switch {
		case id != n, first != next[machine]+1, string(prev) != string(before[:]):
			bad.What = "it does not follow from the record before: one was removed or altered"
		case string(hash) != string(want[:]):
			bad.What = "the hash of its record is wrong: the record was altered"
		case errors.As(err, new(*session.NewerError)):
			bad.Kind, bad.What = inNewer, err.Error()
		case err != nil:
			bad.What = err.Error()
		}
		if bad.What != "" {
			return bad
		}
		heads[machine] = want
		next[machine] += int64(len(decoded))
		a.report.Records++
		a.report.Events += len(decoded)
		return nil
	})
}

// A logRow is a row of the log as it is stored.
type logRow struct {
	place, session, first, at int64
	decides                   *int64
	stored, hash              []byte
	events                    []byte // of stored
}

// record returns a row as a record, with the events as they are stored.
func (r *logRow) record() session.StoredRecord {
	record := session.StoredRecord{First: r.first, Events: r.stored}
	copy(record.Hash[:], r.hash)
	return record
}

// unpacked returns a row as a record, or why it cannot be unpacked.
func (r *logRow) unpacked() (*session.StoredRecord, error) {
	record := r.record()
	var err error
	record.Events, err = pack.Unpack(nil, r.stored)
	return &record, err
}

// beside is what should stand beside the events of a record.
type beside struct {
	first, at int64
	decides   *int64
}

// readLogs folds every session's log. The inner query sorts places only; it has a
// limit, or SQLite would think that its order does not matter.
func (a *audit) readLogs(ctx context.Context) error {
	var all, read int64
	if err := a.q.QueryRowContext(ctx, `SELECT count(*) FROM log`).Scan(&all); err != nil {
		return err
	}
	if err := a.readSnapshots(ctx); err != nil {
		return err
	}
	if err := a.readSessionSnapshots(ctx); err != nil {
		return err
	}
	var f *folding
	var r logRow
	for err := range scan(a.q.QueryContext(ctx, `SELECT l.id, l.session, l.first, l.decides, l.at, l.events, l.hash
		FROM (SELECT id AS place FROM log NOT INDEXED ORDER BY session, id LIMIT -1) CROSS JOIN log l ON l.id=place`)).
		into(&r.place, &r.session, &r.first, &r.decides, &r.at, &r.stored, &r.hash) {
		if err != nil {
			return err
		}
		if f == nil || f.row != r.session {
			a.close(f)
			f = a.open(r.session, r.place)
		}
		if f.bad != nil {
			f.behind.Add(r.unpacked())
		} else if f.bad = f.add(&r); f.bad != nil && f.bad.Kind == inNewer {
			f.behind = &fold.Behind{Stream: f.stream, Head: r.record().Hash}
		}
		if read++; read%64 == 0 {
			a.progress(read, all)
		}
	}
	a.close(f)
	a.progress(read, all)
	return nil
}

// checkOrder holds the places of records against each other: sessions have the order
// in which they began, and no place is empty but those that were given up.
func (a *audit) checkOrder(ctx context.Context) error {
	var last int64
	for s := range a.read.Sessions() {
		if s.Began < last {
			return differs(inLog, fmt.Sprintf("session row %d", s.Row), "it began before the one of the row before: rows were renumbered")
		}
		last = s.Began
	}
	if err := a.checkTails(ctx); err != nil || !a.tails {
		return err
	}
	return a.checkGaps(ctx)
}

// readArchived takes from the rows of sessions whose logs are in another file what followed from them.
func (a *audit) readArchived(ctx context.Context) error {
	var id string
	var row, machine, twice int64
	var packed []byte
	err := a.q.QueryRowContext(ctx, `SELECT coalesce((SELECT l.id FROM log l JOIN archived_records r ON r.agents=0 AND r.place=l.id LIMIT 1),
		(SELECT l.id FROM agent_log l JOIN archived_records r ON r.agents=1 AND r.place=l.id LIMIT 1), 0)`).Scan(&twice)
	if err == nil && twice != 0 {
		err = differs(inArchived, "archived_records", "the record at place %d was archived, and another one is here", twice)
	}
	if err != nil {
		return err
	}
	return each(scan(a.q.QueryContext(ctx, `SELECT session_id, row, machine, taught FROM archived ORDER BY session_id`)).into(&id, &row, &machine, &packed), func() error {
		if _, begun := a.read.Session(row); begun {
			return differs(inArchived, id, "it was archived, and its log is here")
		}
		list, err := projection.UnpackTaught(packed)
		switch {
		case err != nil:
			return differs(inArchived, id, "what followed from its log cannot be read: %v", err)
		case a.machines[machine] == "":
			return differs(inArchived, id, "its machine is row %d of machines, which is not there", machine)
		}
		for i := range list {
			t := &list[i]
			a.teach(a.machines[machine], id, t)
			if t.Stats == nil {
				continue
			}
			added, err := snapshots.ReadAdded(t.Place, t.Stats)
			if err != nil {
				return differs(inArchived, id, "%v", err)
			}
			a.proof.Archived(a.machines[machine], &added, t.Lesson != nil)
		}
		return nil
	})
}

// checkTails finds logs that were cut off: the session's row knows how far its log
// went.
func (a *audit) checkTails(ctx context.Context) error {
	var id, sequence int64
	var session string
	for err := range a.all(ctx, "sessions", []string{"session_id", "sequence"}, []any{&id, &session, &sequence}) {
		if err != nil {
			return nil //nolint:nilerr // the comparison of sessions says so
		}
		want, begun := a.read.Session(id)
		if !begun {
			d := differs(inLog, session, "its log is gone")
			d.Seq = 1
			return d
		}
		if a.tails && want.Folded && sequence > want.Sequence {
			d := differs(inLog, want.ID, "the log ends before it, but the session was at event %d: its end was cut off", sequence)
			d.Seq = want.Sequence + 1
			return d
		}
	}
	return nil
}

// The places of logs that hold a record, here or in an archive.
const (
	logPlaces   = `(SELECT id FROM log NOT INDEXED UNION ALL SELECT place FROM archived_records WHERE agents=0)`
	agentPlaces = `(SELECT id FROM agent_log NOT INDEXED UNION ALL SELECT place FROM archived_records WHERE agents=1)`
)

// emptyPlaces are those places up to the newest one that are not among some, which are rows of id.
func emptyPlaces(places string) string {
	return `SELECT before + 1 AS place, id - 1 AS last FROM (SELECT id, lag(id, 1, 0) OVER (ORDER BY id) AS before FROM ` + places + `) WHERE id > before + 1`
}

func (a *audit) checkGaps(ctx context.Context) error {
	var place, last int64
	return each(scan(a.q.QueryContext(ctx, `SELECT e.place, e.last FROM (`+emptyPlaces(logPlaces)+`) e LEFT JOIN gaps g ON g.place=e.place AND g.last=e.last
		WHERE g.place IS NULL`)).into(&place, &last), func() error {
		if a.begun {
			return differs(inRows, "gaps", "that the places %d to %d are elsewhere is not written", place, last)
		}
		return differs(inLog, "log", "the places %d to %d hold no record any more: a session or the end of one was removed", place, last)
	})
}
