package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/internal/scratch"
	"github.com/dialai/dialai/store/internal/snapshots"
)

// Verify holds a file against what it says of itself, in four layers, each of which
// catches what the one before cannot:
//
//   - the file: SQLite's own check of every page and index, the text of the schema, the
//     migrations that made it (verify_file.go);
//   - the sources: the chains of all logs, with every record's place, and definitions
//     under their digests (verify_logs.go);
//   - what follows from them: each column of each other table (verify_tables.go);
//   - what nothing follows from: the secret, the audit of models and the logs of agents,
//     which carry hashes of their own (verify_side.go).
//
// Nothing is read by an index, so that a damaged one hides nothing. What fits a head
// that was printed earlier (head.go) has not been set back or written anew since.

// A Report says what a check of a store found.
type Report struct {
	Sessions int `json:"sessions"`
	Records  int `json:"records"`
	Events   int `json:"events"`
	// Difference is the worst thing that is not as it should be, one that rebuild
	// cannot repair before one that it can; nil if all is well.
	Difference *Difference `json:"difference,omitempty"`
	// Differences are the first of each kind, Difference included, if there are more
	// kinds than one.
	Differences []*Difference `json:"differences,omitempty"`
	// Quotas are the windows of tenants of which quotas have counted something else than logs say; Postgres
	// only. That is no damage: see [QuotaCount].
	Quotas []QuotaCount `json:"quotas,omitempty"`
	// Unknown says what the check cannot know.
	Unknown []string `json:"unknown,omitempty"`
}

// A QuotaCount is what was counted in a window of a tenant's quota, up to now, and what the logs of its sessions
// say was spent in it. Quotas count when a call ends, by the clock of the database, and as expected if nobody says
// what it cost; logs say when an answer was recorded, and have also what programs without the quota spent. Logs of
// sessions that were archived are not read.
type QuotaCount struct {
	Tenant     string   `json:"tenant"`
	WindowMsec int64    `json:"windowMsec"`
	Counted    QuotaUse `json:"counted"`
	Logged     QuotaUse `json:"logged"`
}

// A QuotaUse is what was used of a quota.
type QuotaUse struct {
	Calls   int64       `json:"calls"`
	Tokens  int64       `json:"tokens"`
	CostUSD exact.Money `json:"costUSD"`
}

// A Kind says what is damaged.
type Kind string

// The kinds of differences, those first that rebuilding cannot repair.
const (
	inSchema     Kind = "schema"     // tables and migrations
	inLog        Kind = "log"        // of a session
	inNewer      Kind = "newer"      // a newer version has written to the log of a session
	inRoster     Kind = "roster"     // the log of a machine name
	inDefinition Kind = "definition" // its text is not that of its digest
	inArchived   Kind = "archived"   // what is kept of sessions whose logs are in another file
	inSecret     Kind = "secret"     // that audits are drawn by
	inAudit      Kind = "audit"      // of models
	inAgentLog   Kind = "agent_log"  // of a session
	inHead       Kind = "head"       // the store is not the one whose head was given
	inRows       Kind = "rows"       // what follows from logs and definitions
	inFile       Kind = "file"       // pages and indexes
)

// source reports whether rebuilding needs what is damaged.
func (k Kind) source() bool {
	return k == inSchema || k == inLog || k == inNewer || k == inRoster || k == inDefinition || k == inArchived
}

// derived reports whether rebuilding writes it anew.
func (k Kind) derived() bool { return k == inRows || k == inFile }

// A Difference names one thing that is not as it should be.
type Difference struct {
	Stream string `json:"stream"`        // a session id, a machine name or a table
	Seq    int64  `json:"seq,omitempty"` // of the event at which it shows; 0 for rows
	What   string `json:"what"`
	InLog  bool   `json:"inLog"` // a log or a definition is damaged
	Kind   Kind   `json:"kind"`
	// Repaired says that rebuilding repairs it: everything that it needs is whole.
	Repaired bool `json:"mended"`
}

func (d *Difference) Error() string {
	advice := "rebuilding cannot repair it: restore a copy"
	switch {
	case d.Repaired:
		advice = "dialai store rebuild repairs it"
	case d.Kind.derived():
		advice = "rebuilding could repair it, but for the other damage"
	case d.Kind == inNewer:
		advice = "then look again"
	case d.Kind == inHead:
		advice = "look for who wrote to the file, or restore a copy"
	}
	if d.Seq > 0 {
		return fmt.Sprintf("%s: event %d: %s; %s", d.Stream, d.Seq, d.What, advice)
	}
	return fmt.Sprintf("%s: %s; %s", d.Stream, d.What, advice)
}

// What no check of a file alone can know.
const (
	unknownRollback = "whether it, or the end of its log of specialists, of its audit of models or of the log of an agent, was set back to an earlier state: keep what dialai store head prints elsewhere, and give it as --head"
	unknownForgery  = "whether somebody who can write the file wrote all of it anew, hashes included"
	unknownSince    = "whether what came after the head was set back or written anew"
	unknownCounts   = "when migrations ran, and how often trust was rebuilt: two notes that nothing is decided by"
	unknownTruth    = "whether what was recorded is what services, models and clocks said"
)

// Verify checks everything that can be checked, and changes nothing. With heads that
// [SQLite.Head] returned earlier, it also proves that every record up to them is still
// there as it was.
func (s *SQLite) Verify(ctx context.Context, programs *session.Programs, head ...Head) (Report, error) {
	conn, err := s.read.Conn(ctx)
	if err != nil {
		return Report{}, translate(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, `BEGIN`); err != nil { // one snapshot for everything
		return Report{}, translate(err)
	}
	defer conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`)
	a, err := newAudit(ctx, reader{conn}, programs, true)
	if err != nil {
		return Report{}, translate(err)
	}
	defer a.read.Close()
	a.progress = s.told()
	if err := a.everything(ctx); err != nil {
		return Report{}, err
	}
	for _, h := range head {
		if err := a.run(inHead, "head", func() error { return a.compareHead(ctx, h) }); err != nil {
			return Report{}, err
		}
	}
	a.conclude()
	a.report.Unknown = []string{unknownRollback, unknownForgery, unknownCounts, unknownTruth}
	if len(head) > 0 {
		a.report.Unknown = []string{unknownSince, unknownCounts, unknownTruth}
	}
	return a.report, nil
}

// OnProgress has f told now and then, in [SQLite.Verify] and [SQLite.Rebuild], how many
// of how many records were read. It must return soon. nil tells nobody.
func (s *SQLite) OnProgress(f func(done, of int64)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress = f
}

// told returns whom to tell of progress; never nil.
func (s *SQLite) told() func(done, of int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.progress == nil {
		return func(int64, int64) {}
	}
	return s.progress
}

// An audit is what the logs say, and how what is stored differs.
type audit struct {
	reader
	programs *session.Programs
	tails    bool // a log that ends early counts as damaged
	progress func(done, of int64)
	report   Report
	found    map[Kind]*Difference // the first of each
	begun    bool                 // sessions were archived to it, which was interrupted before what follows from them was written

	definitions map[string]storedDefinition // by digest
	machines    map[int64]string            // names as they should be
	rows        map[string]int64            // machines.id by name
	tallies     map[string]*trust.Book      // by machine name
	learned     map[string]int64            // records that taught something, by machine name
	read        *scratch.Scratch            // sessions, lessons and exemplars as they should be
	// What the logs say of entries out of which payloads were taken.
	erasedAudit  map[string][]string        // sums in their order, by session
	erasedAgents map[int64]map[int64]string // sums by seq, by sessions.id
	beside       map[int64]beside           // what stands beside events and is wrong, by log row

	proof snapshots.Proof
	kept  map[int64]int64 // at which events snapshots are of sessions whose logs have not come to them yet, by sessions.id
}

// newAudit returns an audit that has read nothing yet. Its read must be closed.
func newAudit(ctx context.Context, r reader, programs *session.Programs, tails bool) (*audit, error) {
	read, err := scratch.New(ctx)
	return &audit{
		reader: r, programs: programs, tails: tails, found: map[Kind]*Difference{}, definitions: map[string]storedDefinition{},
		machines: map[int64]string{}, rows: map[string]int64{}, read: read,
		tallies: map[string]*trust.Book{}, learned: map[string]int64{}, beside: map[int64]beside{},
		erasedAudit: map[string][]string{}, erasedAgents: map[int64]map[int64]string{},
		progress: func(int64, int64) {},
	}, err
}

// everything runs every check. It ends early where the schema is damaged, since
// nothing can then be read.
func (a *audit) everything(ctx context.Context) error {
	for _, check := range a.file() {
		if err := a.run(check.kind, check.of, func() error { return check.do(ctx) }); err != nil || a.found[inSchema] != nil {
			return err
		}
	}
	return a.contents(ctx)
}

// contents checks what is in the tables.
func (a *audit) contents(ctx context.Context) error {
	if a.q.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM secrets WHERE name=?)`, secretBegun).Scan(&a.begun) != nil {
		a.begun = false // what cannot be read is found below
	}
	for _, check := range slices.Concat(a.sources(), a.following(), a.side()) {
		if err := a.run(check.kind, check.of, func() error { return check.do(ctx) }); err != nil {
			return err
		}
	}
	return nil
}

// A check compares one thing. It returns a Difference, or another error if it could
// not compare.
type check struct {
	kind Kind
	of   string
	do   func(context.Context) error
}

// run keeps what a check found. What cannot be read is damaged.
func (a *audit) run(kind Kind, of string, do func() error) error {
	err := translate(do())
	if failed := a.read.Err(); failed != nil { // what was found may be wrong
		return translate(failed)
	}
	if d, ok := errors.AsType[*Difference](err); ok {
		a.find(d)
		return nil
	}
	if damaged, ok := errors.AsType[*session.CorruptError](err); ok {
		a.find(&Difference{Stream: of, Kind: kind, What: "it cannot be read: " + damaged.Problem})
		return nil
	}
	return err
}

// find keeps a difference if it is the first of its kind.
func (a *audit) find(d *Difference) {
	d.InLog = d.Kind == inLog || d.Kind == inRoster || d.Kind == inDefinition
	if a.found[d.Kind] == nil {
		a.found[d.Kind] = d
	}
}

// damaged reports whether something is damaged that rebuilding needs.
func (a *audit) damaged() bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(a.found)), Kind.source)
}

// conclude writes what was found into the report.
func (a *audit) conclude() {
	var all []*Difference
	if d := a.found[inRows]; d != nil && a.begun {
		d.Stream, d.Seq, d.What = "sessions", 0, "archiving to this file was interrupted, and dialai store archive finishes it when it is run again with the same --to"
	}
	for _, d := range a.found {
		d.Repaired = d.Kind.derived() && !a.damaged()
		all = append(all, d)
	}
	order := []Kind{inLog, inNewer, inRoster, inDefinition, inArchived, inSchema, inSecret, inAudit, inAgentLog, inHead, inRows, inFile}
	slices.SortFunc(all, func(x, y *Difference) int {
		return cmp.Compare(slices.Index(order, x.Kind), slices.Index(order, y.Kind))
	})
	if len(all) > 0 {
		a.report.Difference = all[0]
	}
	if len(all) > 1 {
		a.report.Differences = all
	}
}

// differs returns a Difference.
func differs(kind Kind, of string, format string, args ...any) *Difference {
	return &Difference{Stream: of, Kind: kind, What: fmt.Sprintf(format, args...)}
}
