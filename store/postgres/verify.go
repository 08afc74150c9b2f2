package postgres

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/internal/scratch"
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
	"whether it, or the end of a log, was set back to an earlier state, or a session removed with its log, or somebody who can write the database wrote all of it anew, hashes included",
	"whether the audit of models is as it was written, but for what was erased: nothing follows from it",
	"whether its epoch, and the secret by which audits are drawn, are those of before, and what is kept of archived sessions that had taught nothing",
	"whether what was recorded is what services, models and clocks said",
	"whether pages and indexes are whole: pg_amcheck does",
	"which is right where quotas have counted something else than logs say: calls are counted when they end, as expected if nobody says what they cost, and logs have also what was spent past the quota",
}

// Verify checks all that is stored, and changes nothing. told is told now and then how many of how many
// records were read; nil is told nothing. The report may be used; the error says why there is none.
func (s *Store) Verify(ctx context.Context, programs *session.Programs, told func(done, of int64)) (store.Report, error) {
	conn, err := s.connection(ctx)
	if err != nil {
		return store.Report{}, s.translate(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	a := &audit{programs: programs, told: told, found: map[store.Kind]*store.Difference{}, machines: map[int]string{}, definitions: map[string][]byte{},
		tallies: map[string]*trust.Book{}, learned: map[string]int64{}, rosters: map[int]int64{},
		erasedAgents: map[int64]map[int64]string{}, erasedAudit: map[string][]string{}, work: map[int64]workRow{}}
	if told == nil {
		a.told = func(int64, int64) {}
	}
	if a.read, err = scratch.New(ctx); err != nil {
		return store.Report{}, err
	}
	defer a.read.Close()
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		a.tx = tx
		for _, check := range []func(context.Context) error{a.checkDefinitions, a.checkRosters, a.readSnapshots, a.readSessionSnapshots, a.countWorkers, a.readQuotas, a.checkSessions, a.checkStrayWork, a.checkArchived, a.checkStray, a.checkLessons, a.checkExemplars, a.checkAlignment, a.checkMachines, a.checkAgentLogs, a.checkAudit, a.checkSnapshots, a.checkSessionSnapshots, a.checkQuotas} {
			if err := cmp.Or(check(ctx), a.read.Err()); err != nil {
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

	machines    map[int]string         // names
	definitions map[string][]byte      // by digest
	broken      bool                   // a log is damaged, so nobody knows all that should follow
	read        *scratch.Scratch       // lessons and exemplars as they should be
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
	var id, machine int
	var name, digest string
	var text []byte
	if err := a.each(ctx, `SELECT id, machine_name FROM machines`, []any{&id, &name}, func() { a.machines[id] = name }); err != nil {
		return err
	}
	return a.each(ctx, `SELECT machine_digest, machine, definition FROM definitions`, []any{&digest, &machine, &text}, func() {
		if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != digest {
			a.differs(inDefinition, "definition "+digest, 0, "its content has digest %x", sum)
		} else if is, known := a.machines[machine]; !known || is != nameIn(text) {
			a.differs(inDefinition, "definition "+digest, 0, "it is of the machine %q, and row %d of machines, to which it belongs, has the name %q", nameIn(text), machine, is)
		}
		a.definitions[digest] = text
	})
}

// nameIn returns the name of the machine that a definition is of.
func nameIn(definition []byte) string {
	var head struct {
		MachineName string `json:"machineName"`
	}
	_ = json.Unmarshal(definition, &head) // its digest covers it
	return head.MachineName
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
		case errors.As(err, new(*session.NewerError)):
			a.differs(inNewer, name, first, "%v", err)
		case err != nil:
			a.differs(inRoster, name, first, "%v", err)
		}
		copy(want[:], hash)
		heads[machine], a.rosters[machine] = want, first
		a.report.Records++
		a.report.Events += len(decoded)
	})
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
