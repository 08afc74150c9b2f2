package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/internal/stats"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/internal/fold"
	"github.com/dialai/dialai/store/internal/pack"
	"github.com/dialai/dialai/store/internal/projection"
	"github.com/dialai/dialai/store/internal/snapshots"
)

// Verify holds a store against what it says of itself, all of it as of one moment, while others use it: the
// definitions against their digests, the logs of machine names and of sessions against their chains of
// hashes, and then every row that follows from them. What is found first of each kind is reported; a
// damaged log is passed over in what follows from it.
//
// Pages, indexes and the schema are the server's: pg_amcheck looks at those.

// The kinds of differences, those first that are worst.
const (
	inLog        store.Kind = "log"        // of a session
	inNewer      store.Kind = "newer"      // a newer version has written to it
	inRoster     store.Kind = "roster"     // the log of a machine name
	inDefinition store.Kind = "definition" // its text is not that of its digest
	inArchived   store.Kind = "archived"   // what is kept of sessions whose logs are in another file
	inAgentLog   store.Kind = "agent_log"  // of a session
	inAudit      store.Kind = "llm_audit"  // what was left of entries that were erased
	inRows       store.Kind = "rows"       // what follows from logs and definitions
)

var kinds = []store.Kind{inLog, inNewer, inRoster, inDefinition, inArchived, inAgentLog, inAudit, inRows}

// unknown is what no check of a store alone can know.
var unknown = []string{
	"whether it, or the end of a log, was set back to an earlier state, or somebody who can write the database wrote all of it anew, hashes included",
	"whether the audit of models is as it was written, but for what was erased: nothing follows from it",
	"whether what was recorded is what services, models and clocks said",
	"whether pages and indexes are whole: pg_amcheck does",
	"which is right where quotas have counted something else than logs say: calls are counted when they end, as expected if nobody says what they cost, and logs have also what was spent past the quota",
}

// Verify checks all that is stored, and changes nothing. told is told now and then how many of how many
// records were read; nil is told nothing. The report may be used; the error says why there is none.
func (s *Store) Verify(ctx context.Context, programs *session.Programs, told func(done, of int64)) (store.Report, error) {
	config := s.config.Copy()
	config.RuntimeParams["statement_timeout"] = "0" // it takes as long as it takes
	config.RuntimeParams["idle_in_transaction_session_timeout"] = "0"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return store.Report{}, s.translate(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	a := &audit{programs: programs, told: told, found: map[store.Kind]*store.Difference{}, machines: map[int]string{}, definitions: map[string][]byte{},
		ids: map[int64]string{}, lessons: map[int64]string{}, exemplars: map[int64]projection.Exemplar{}, tallies: map[string]*trust.Book{}, learned: map[string]int64{}, rosters: map[int]int64{},
		erasedAgents: map[int64]map[int64]string{}, erasedAudit: map[string][]string{}, work: map[int64]workRow{}}
	if told == nil {
		a.told = func(int64, int64) {}
	}
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		a.tx = tx
		for _, check := range []func(context.Context) error{a.checkDefinitions, a.checkRosters, a.readSnapshots, a.readSessionSnapshots, a.countWorkers, a.readQuotas, a.checkSessions, a.checkStrayWork, a.checkArchived, a.checkStray, a.checkLessons, a.checkExemplars, a.checkAlignment, a.checkMachines, a.checkAgentLogs, a.checkAudit, a.checkSnapshots, a.checkSessionSnapshots, a.checkQuotas} {
			if err := check(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return store.Report{}, s.translate(err)
	}
	return a.conclude(), nil
}

// An audit is what the logs say, and how what is stored differs.
type audit struct {
	tx       pgx.Tx
	programs *session.Programs
	told     func(done, of int64)
	report   store.Report
	found    map[store.Kind]*store.Difference // the first of each

	machines    map[int]string    // names
	definitions map[string][]byte // by digest
	ids         map[int64]string  // of sessions, by their rows
	broken      bool              // a log is damaged, so nobody knows all that should follow
	lessons     map[int64]string  // as they should be, by place
	exemplars   map[int64]projection.Exemplar
	tallies     map[string]*trust.Book // by machine name
	learned     map[string]int64       // records that taught something, by machine name
	rosters     map[int]int64          // the last sequence number of each
	proof       snapshots.Proof
	kept        map[int64]int64 // at which events snapshots are of sessions whose logs have not come to them yet, by sessions.id

	work    map[int64]workRow // of the sessions that are being read, by sessions.id
	workers int               // processes that carry sessions on
	quotas  quotaAudit

	erasedAgents map[int64]map[int64]string // sums of entries that were erased by seq, by sessions.id
	erasedAudit  map[string][]string        // sums of entries of the audit of models in their order, by session
}

// differs keeps a difference if it is the first of its kind.
func (a *audit) differs(kind store.Kind, of string, seq int64, format string, args ...any) {
	if kind == inLog || kind == inNewer {
		a.broken = true
	}
	if a.found[kind] == nil {
		a.found[kind] = &store.Difference{Stream: of, Seq: seq, Kind: kind, What: fmt.Sprintf(format, args...), InLog: kind == inLog || kind == inRoster || kind == inDefinition}
	}
}

// conclude returns the report.
func (a *audit) conclude() store.Report {
	var all []*store.Difference
	for _, kind := range kinds {
		if d := a.found[kind]; d != nil {
			d.Repaired = kind == inRows && !slices.ContainsFunc(all, func(d *store.Difference) bool { return d.Kind != inAgentLog && d.Kind != inAudit })
			all = append(all, d)
		}
	}
	if len(all) > 0 {
		a.report.Difference = all[0]
	}
	if len(all) > 1 {
		a.report.Differences = all
	}
	a.report.Unknown = unknown
	return a.report
}

// each calls do for each row of a query, when its columns are in the fields.
func (a *audit) each(ctx context.Context, text string, fields []any, do func(), args ...any) error {
	rows, _ := a.tx.Query(ctx, text, args...) // the error comes with the rows
	_, err := pgx.ForEachRow(rows, fields, func() error { do(); return nil })
	return err
}

func (a *audit) checkDefinitions(ctx context.Context) error {
	var id int
	var name, digest string
	var text []byte
	if err := a.each(ctx, `SELECT id, machine_name FROM machines`, []any{&id, &name}, func() { a.machines[id] = name }); err != nil {
		return err
	}
	return a.each(ctx, `SELECT machine_digest, definition FROM definitions`, []any{&digest, &text}, func() {
		if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != digest {
			a.differs(inDefinition, "definition "+digest, 0, "its content has digest %x", sum)
		}
		a.definitions[digest] = text
	})
}

func (a *audit) checkRosters(ctx context.Context) error {
	heads := map[int]session.Hash{}
	var machine int
	var first int64
	var events, hash []byte
	return a.each(ctx, `SELECT machine, first, events, hash FROM roster_log ORDER BY machine, first`, []any{&machine, &first, &events, &hash}, func() {
		name := a.machines[machine]
		want := session.Chain(heads[machine], name, events)
		decoded, err := session.DecodeRosterEvents(events)
		switch {
		case first != a.rosters[machine]+1:
			a.differs(inRoster, name, first, "it does not follow from the record before: one was removed")
		case string(hash) != string(want[:]):
			a.differs(inRoster, name, first, "the hash of its record is wrong: the record, or one before it, was altered")
		case err != nil:
			a.differs(inRoster, name, first, "%v", err)
		}
		copy(want[:], hash)
		heads[machine], a.rosters[machine] = want, first
		a.report.Records++
		a.report.Events += len(decoded)
	})
}

// A sessionRow is a row of sessions.
type sessionRow struct {
	projection.Session
	id    int64
	ended *int64
	head  []byte
}

// checkSessions folds the log of each session, and compares its row.
func (a *audit) checkSessions(ctx context.Context) error {
	var all, read int64
	if err := a.tx.QueryRow(ctx, `SELECT count(*) FROM log`).Scan(&all); err != nil {
		return err
	}
	for last := int64(0); ; {
		rows, err := a.page(ctx, last)
		if err != nil {
			return err
		}
		if err := a.readWork(ctx, rows); err != nil {
			return err
		}
		for i := range rows {
			records, err := a.checkSession(ctx, &rows[i])
			if err != nil {
				return err
			}
			if read += int64(records); i%64 == 0 {
				a.told(read, all)
			}
			last = rows[i].id
		}
		if len(rows) < page {
			a.told(all, all)
			return nil
		}
	}
}

// page reads the rows of sessions that come after one.
func (a *audit) page(ctx context.Context, after int64) (list []sessionRow, err error) {
	var r sessionRow
	var id [16]byte
	var status int16
	var startedBy, reason, subject []byte
	is := &r.Session
	err = a.each(ctx, `SELECT s.id, s.session_id, m.machine_name, d.machine_digest, s.created_at, s.started_by, s.status, s.code, s.reason, s.reviews, s.subject, s.due_at, s.timer_at, s.ended_at,
		s.current_state, s.round, s.attempt, s.sequence, s.transitions, s.updated_at, s.calls, s.input_tokens, s.output_tokens, s.cost_pico_usd, s.head
		FROM sessions s JOIN machines m ON m.id=s.machine JOIN definitions d ON d.id=s.definition WHERE s.id>$1 ORDER BY s.id LIMIT $2`,
		[]any{&r.id, &id, &is.Machine, &is.Digest, &is.CreatedAt, &startedBy, &status, &is.Code, &reason, &is.Reviews, &subject, &is.DueAt, &is.TimerAt, &r.ended,
			&is.State, &is.Round, &is.Attempt, &is.Sequence, &is.Executed, &is.UpdatedAt, &is.Calls, &is.TokensIn, &is.TokensOut, &is.PicoUSD, &r.head}, func() {
			is.ID, is.StartedBy, is.Reason, is.Subject, is.Status = specialist.SessionID(id).String(), string(startedBy), string(reason), string(subject), ""
			if status >= int16(session.Running) && status <= int16(session.Failed) {
				is.Status = session.Status(status).String()
			}
			list = append(list, r)
			r.ended, r.head = nil, nil
		}, after, page)
	return list, err
}

// A logRow is a record as it is stored, with what stands beside its events.
type logRow struct {
	place, first, at int64
	decides          *int
	events, hash     []byte
}

// checkSession folds the log of a session and compares its row. It returns how many records there are.
func (a *audit) checkSession(ctx context.Context, row *sessionRow) (records int, err error) {
	f := &session.Folder{Programs: a.programs, Definition: func(digest string) ([]byte, error) {
		if text := a.definitions[digest]; text != nil {
			return text, nil
		}
		return nil, &session.CorruptError{What: "definition " + digest, Problem: "it is not stored"}
	}}
	var watch *stats.Watch
	if a.proof.Counts() {
		watch = stats.On(f)
	}
	a.quotas.account(row, f)
	a.ids[row.id] = row.ID
	var head session.Hash
	var sequence, place int64
	whole := true
	kept, err := a.readKept(ctx, row)
	if err != nil {
		return 0, err
	}
	erased := a.erased(ctx, row)
	for r, err := range a.log(ctx, row.id) {
		if err != nil {
			return records, err
		}
		if records++; !whole {
			continue
		}
		events, problem := a.fold(f, &erased, head, &r)
		switch {
		case r.first != sequence+1:
			problem = errors.New("it does not follow from the record before: one was removed or altered")
		case problem == nil && r.place <= place:
			problem = errors.New("its place is not above that of the record before")
		}
		if problem != nil {
			kind := inLog
			if errors.As(problem, new(*session.NewerError)) {
				kind = inNewer
			}
			a.differs(kind, row.ID, sequence+1, "%v", problem)
			whole = false
			continue
		}
		copy(head[:], r.hash)
		sequence, place = sequence+int64(len(events)), r.place
		a.holdSnapshot(kept, row.id, sequence, f, head)
		machine := f.Session().Machine().Name()
		a.follow(machine, row, &r, events)
		if watch != nil {
			a.proof.Record(machine, r.place, watch.Take(), a.lessons[r.place] != "")
		}
	}
	if !whole {
		return records, nil
	}
	a.report.Sessions++
	switch {
	case records == 0:
		a.differs(inLog, row.ID, 1, "its log is gone")
	case sequence < row.Sequence:
		a.differs(inLog, row.ID, sequence+1, "the log ends before it, but the session was at event %d: its end was cut off", row.Sequence)
	default:
		folded := f.Session()
		want := projection.SessionOf(folded)
		ended := !folded.Status.Live() && row.ended != nil && *row.ended == want.UpdatedAt || folded.Status.Live() && row.ended == nil
		if row.Session != want || string(row.head) != string(head[:]) || !ended {
			a.differs(inRows, row.ID, 0, "its row in sessions is not what its log says")
		}
		a.checkWork(row.id, folded)
	}
	return records, nil
}

// log yields the records of a session, some at a time: in between the connection is free.
func (a *audit) log(ctx context.Context, row int64) iter.Seq2[logRow, error] {
	return func(yield func(logRow, error) bool) {
		for next, n := int64(0), page; n == page; {
			rows, _ := a.tx.Query(ctx, `SELECT place, first, decides, at, events, hash FROM log WHERE session=$1 AND first>=$2 ORDER BY first LIMIT $3`, row, next, page) // the error comes with the rows
			list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r logRow, err error) {
				return r, row.Scan(&r.place, &r.first, &r.decides, &r.at, &r.events, &r.hash)
			})
			if err != nil {
				yield(logRow{}, err)
				return
			}
			for i := range list {
				if next = list[i].first + 1; !yield(list[i], nil) {
					return
				}
			}
			n = len(list)
		}
	}
}

// erased proves the records of a session out of which payloads were taken.
func (a *audit) erased(ctx context.Context, row *sessionRow) fold.Erased {
	return fold.Erased{Stream: row.ID, Records: func() iter.Seq2[session.StoredRecord, error] {
		return func(yield func(session.StoredRecord, error) bool) {
			for r, err := range a.log(ctx, row.id) {
				record := r.record()
				if err == nil {
					record.Events, err = pack.Unpack(nil, r.events)
				}
				if !yield(record, err) {
					return
				}
			}
		}
	}}
}

// record returns a row as a record, with the events as they are stored.
func (r *logRow) record() session.StoredRecord {
	record := session.StoredRecord{First: r.first, Events: r.events}
	copy(record.Hash[:], r.hash)
	return record
}

// fold adds a record to a session, and returns what is wrong with it.
func (a *audit) fold(f *session.Folder, erased *fold.Erased, head session.Hash, r *logRow) (events []session.Event, problem error) {
	text, problem := proven(erased, head, r)
	if problem != nil {
		return nil, problem
	}
	events, err := f.Add(text)
	if err != nil {
		return nil, err
	}
	for i := range events {
		if d, ok := events[i].Data.(*session.Erased); ok {
			if seq := erased.PutBack(d); seq != 0 {
				return nil, fmt.Errorf("the record at event %d was erased, and is as it was before: it was put back", seq)
			}
		}
	}
	return events, nil
}

// proven returns the events of a record behind the one with the hash head, or what is wrong with it.
func proven(erased *fold.Erased, head session.Hash, r *logRow) (text []byte, problem error) {
	text, err := pack.Unpack(nil, r.events)
	if err != nil {
		return nil, fmt.Errorf("it cannot be read: %v", err) // which may be a newer form or a flipped byte: no hash tells
	}
	record := r.record()
	if record.Events = text; record.Hash != session.Chain(head, erased.Stream, text) && !erased.Proves(&record) {
		return nil, errors.New("the hash of its record is wrong: the record was altered")
	}
	return text, nil
}

// follow keeps what follows from the events of a record, and compares what stands beside them.
func (a *audit) follow(machine string, row *sessionRow, r *logRow, events []session.Event) {
	a.report.Records++
	a.report.Events += len(events)
	follows := projection.Follow(events)
	if decides := r.decides != nil && a.machines[*r.decides] == machine; decides != follows.Decides || r.decides != nil && !decides || r.at != int64(events[len(events)-1].At) {
		a.differs(inRows, row.ID, 0, "what stands beside the record at place %d (decides, at) is not what its events say", r.place)
	}
	if t, ok := projection.TaughtBy(r.place, events); ok {
		a.teach(machine, &t)
		a.erasedAudit[row.ID] = append(a.erasedAudit[row.ID], t.Erased...)
	}
	for i := range events {
		if d, ok := events[i].Data.(*session.Erased); ok {
			for _, one := range d.Agents {
				if a.erasedAgents[row.id] == nil {
					a.erasedAgents[row.id] = map[int64]string{}
				}
				a.erasedAgents[row.id][one.Seq] = one.Sum
			}
		}
	}
}

// checkStray finds records of sessions that are not there, and those that are in no partition of theirs.
func (a *audit) checkStray(ctx context.Context) error {
	var stray, apart int
	err := a.tx.QueryRow(ctx, `SELECT (SELECT count(*) FROM log l WHERE NOT EXISTS (SELECT FROM sessions s WHERE s.id=l.session)), (SELECT count(*) FROM log_default)`).Scan(&stray, &apart)
	if stray > 0 {
		a.differs(inLog, "log", 0, "%d records are of sessions that have no row", stray)
	}
	if apart > 0 {
		a.differs(inRows, "log_default", 0, "%d records are in the default partition, for none was made in time for theirs", apart)
	}
	return err
}

func (a *audit) checkLessons(ctx context.Context) error {
	var place int64
	var lesson []byte
	n := 0
	err := a.each(ctx, `SELECT place, lesson FROM lessons`, []any{&place, &lesson}, func() {
		if want, ok := a.lessons[place]; !a.broken && (!ok || string(lesson) != want) {
			a.differs(inRows, "lessons", 0, "the lesson at place %d is not what the logs say", place)
		}
		n++
	})
	a.count("lessons", n, len(a.lessons))
	return err
}

// count compares how many rows there are with how many there should be.
func (a *audit) count(table string, n, want int) {
	if n != want && !a.broken {
		a.differs(inRows, table, 0, "there are %d rows, the logs have %d", n, want)
	}
}

func (a *audit) checkExemplars(ctx context.Context) error {
	var place int64
	var machine int
	var text []byte
	var got projection.Exemplar
	n := 0
	err := a.each(ctx, `SELECT place, machine, state, exemplar FROM exemplars`, []any{&place, &machine, &got.State, &text}, func() {
		got.Machine, got.Text = a.machines[machine], string(text)
		if want, ok := a.exemplars[place]; !a.broken && (!ok || got != want) {
			a.differs(inRows, "exemplars", 0, "the one at place %d is not what the logs say", place)
		}
		n++
	})
	a.count("exemplars", n, len(a.exemplars))
	return err
}

func (a *audit) checkAlignment(ctx context.Context) error {
	want := map[projection.Alignment]bool{}
	for name := range maps.Keys(a.tallies) {
		for _, r := range projection.AlignmentOf(name, a.tallies[name]) {
			want[r] = true
		}
	}
	var machine, n int
	var r projection.Alignment
	err := a.each(ctx, `SELECT machine, specialist_id, state, matching, total, updated_at FROM alignment`, []any{&machine, &r.Specialist, &r.State, &r.Matching, &r.Total, &r.Updated}, func() {
		if r.Machine = a.machines[machine]; !want[r] && !a.broken {
			a.differs(inRows, r.Machine, 0, "alignment of %s is not what the logs say", r.Specialist)
		}
		n++
	})
	a.count("alignment", n, len(want))
	return err
}

// checkMachines finds versions that are lower than what was committed: caches would take what is old for new.
func (a *audit) checkMachines(ctx context.Context) error {
	var id int
	var trusted, roster int64
	return a.each(ctx, `SELECT id, trust_version, roster_version FROM machines`, []any{&id, &trusted, &roster}, func() {
		if trusted < a.learned[a.machines[id]] || roster != a.rosters[id] {
			a.differs(inRows, a.machines[id], 0, "its versions are %d and %d, and %d records taught something and its roster is at event %d", trusted, roster, a.learned[a.machines[id]], a.rosters[id])
		}
	})
}

func (a *audit) checkAgentLogs(ctx context.Context) error {
	heads, next := map[int64]session.Hash{}, map[int64]int64{}
	var row, seq int64
	var event, hash []byte
	return a.each(ctx, `SELECT session, seq, event, hash FROM agent_log ORDER BY session, seq`, []any{&row, &seq, &event, &hash}, func() {
		next[row]++
		stream, kept := session.AgentStream(a.ids[row]), session.Hash{}
		want := session.Chain(heads[row], stream, event)
		if sum, listed := a.erasedAgents[row][seq]; listed {
			if copy(kept[:], hash); sum != session.ErasedSum(kept, stream, event) {
				a.differs(inAgentLog, a.ids[row], seq, "it was erased, and is not what was left")
			}
			want = kept
		}
		switch e, err := session.DecodeAgentEvent(event); {
		case seq != next[row]:
			a.differs(inAgentLog, a.ids[row], next[row], "it does not follow from the entry before: one was removed")
		case string(hash) != string(want[:]):
			a.differs(inAgentLog, a.ids[row], seq, "the hash of its entry is wrong: it was altered, or one before it removed")
		case err != nil:
			a.differs(inAgentLog, a.ids[row], seq, "%v", err)
		case e.Seq != seq:
			a.differs(inAgentLog, a.ids[row], seq, "it has the number %d", e.Seq)
		}
		copy(want[:], hash)
		heads[row], next[row] = want, seq
	})
}

// checkAudit holds what was left of erased entries of the audit of models to what events erased say.
func (a *audit) checkAudit(ctx context.Context) error {
	sums := maps.Clone(a.erasedAudit)
	var id int64
	var of string
	var entry, hash []byte
	err := a.each(ctx, `SELECT id, session_id, entry, hash FROM llm_audit WHERE hash IS NOT NULL ORDER BY id`, []any{&id, &of, &entry, &hash}, func() {
		var kept session.Hash
		copy(kept[:], hash)
		if list := sums[of]; len(list) > 0 && list[0] == session.ErasedSum(kept, of, entry) {
			sums[of] = list[1:]
		} else {
			a.differs(inAudit, "llm_audit", 0, "entry %d was erased, and is not what was left", id)
		}
	})
	if err != nil || a.broken { // else a log that could not be read says what was erased
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(sums)) {
		if len(sums[id]) > 0 {
			a.differs(inAudit, "llm_audit", 0, "an entry of session %s was erased, and is as it was before, or gone", id)
		}
	}
	return nil
}
