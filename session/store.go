package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"time"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// What the engine asks of a store. The log is the truth: one record for each commit, chained
// by hashes. All else (sessions as last committed, trust, exemplars, rosters, lists) follows
// from the records and is written in the same transaction, so that no reader sees one without
// the other. A commit names the session that it replaces; if that is not the stored one any
// more, it is stale and nothing has happened. This compare-and-swap is all the locking there
// is between processes.

// A Store keeps sessions: for each an append-only log of records, and what
// follows from the logs (trust, exemplars, rosters). Package store/storetest
// tests this contract line by line. All methods may be called concurrently, also
// from several processes where the store is shared between them.
type Store interface {
	SessionStore
	TrustStore
	RosterStore
	OwnerStore
	HistoryStore
	AuditStore
	AgentStore
}

// A SessionStore keeps the logs of sessions.
type SessionStore interface {
	// Commit appends the events of c as one record and makes c.After the stored
	// session, all or nothing, with everything else that follows from the
	// events. When it returns nil, a crash loses none of it.
	//
	// It returns ErrStale, and changes nothing, if the stored session is not
	// c.Before, by sequence number; with c.Before nil it returns ErrExists if
	// there is a session of that id. The store may set c.After.Head; it keeps no
	// reference to c or to the slice c.Events.
	Commit(ctx context.Context, c *Change) error
	// Load returns the session as last committed, or ErrNotFound. The programs
	// give stored definitions their compiled form.
	Load(ctx context.Context, programs *Programs, id specialist.SessionID) (*Session, error)
	// Recent returns the session as this process saw it last, or nil. It is
	// cheaper than Load and may be out of date: Commit will tell.
	Recent(id specialist.SessionID) *Session
	// List returns sessions in the order in which they were created, or the other way
	// round. It returns ErrCursor for a cursor that is not one of the query, and
	// ErrNotFound for one after a session that the store does not know. What it costs
	// grows with what it returns; where a query has several filters, with what the
	// narrowest of them leaves.
	List(ctx context.Context, q ListQuery) ([]Summary, error)
	// Live counts the live sessions, by machine and status; the counts are in no order. What it
	// costs grows with how many live.
	Live(ctx context.Context) ([]LiveCount, error)
	// Records yields the records of a session from the first whose last event
	// has at least the sequence number from. It yields ErrNotFound for an unknown
	// session.
	Records(ctx context.Context, id specialist.SessionID, from int64) iter.Seq2[StoredRecord, error]
	// Definitions returns every definition ever run under a machine's name, the
	// newest first, as canonical JSON; with machineName "" those of all machines, in no order.
	Definitions(ctx context.Context, machineName string) ([][]byte, error)
}

// A BatchLoader is a store that reads many sessions with a few questions, where each question takes its time: one
// in a database.
type BatchLoader interface {
	// LoadBatch returns sessions as [SessionStore] Load does, by their ids. Those that it cannot read, or that are too
	// long to be read with others, are left out: Load says what is the matter with them.
	LoadBatch(ctx context.Context, programs *Programs, ids []specialist.SessionID) (map[specialist.SessionID]*Session, error)
}

// What human decisions taught, as a [TrustStore] keeps it.
type (
	// A Book is the alignment of a machine's specialists.
	Book = trust.Book
	// A Lesson is what one outcome teaches.
	Lesson = trust.Lesson
)

// A TrustStore keeps what human decisions taught.
type TrustStore interface {
	// Book returns the alignment of a machine's specialists. It includes every
	// outcome whose commit returned before the call; if another process has made it,
	// longer than Staleness before.
	Book(ctx context.Context, machineName string) (*Book, error)
	// Staleness returns how old what Book and Roster return may be at most, where
	// another process has changed it; 0 if they are never older than the call.
	Staleness() time.Duration
	// Exemplars returns the newest exemplars of a state in commit order, the
	// oldest first; limit 0 means [MaxExemplars]. With state "" it returns those
	// of all states, and limit 0 means all of them.
	Exemplars(ctx context.Context, machineName string, state machine.StateName, limit int) ([]specialist.Exemplar, error)
	// Lessons yields what the ledger is folded from, of all machines, in commit
	// order: what comes after a place in it. Lesson.Seq is the place: it is above
	// 0, only grows, and stays what it is when the store is rebuilt. The sequence
	// includes every lesson whose commit returned before the call. Lesson.At is when the last
	// event of its record happened.
	Lessons(ctx context.Context, after int64) iter.Seq2[Lesson, error]
	// DecidedSince returns how many decisions of a machine were recorded at or
	// after a moment, but no more than limit.
	DecidedSince(ctx context.Context, machineName string, since specialist.Time, limit int) (int, error)
	// Decided yields the sessions that hold the newest decisions of a machine,
	// as (session, sequence number of the record), the newest first.
	Decided(ctx context.Context, machineName string) iter.Seq2[DecisionRef, error]
}

// A LedgerKeeper is a store that also keeps what lessons were folded into, so that not every
// process folds them from the beginning. Nothing follows from it: a store without is slower, and
// whoever reads a snapshot ignores it unless its format and its place fit.
type LedgerKeeper interface {
	// KeepLedger keeps a snapshot, in the place of another of its scope at its place, and of all
	// of its scope only the [LedgerSnapshots] with the highest places. It keeps no reference to it.
	KeepLedger(ctx context.Context, s LedgerSnapshot) error
	// LedgerSnapshots yields the snapshots of a scope that are kept, the highest place first, but
	// none whose bytes are not those that were kept. They may be kept.
	LedgerSnapshots(ctx context.Context, scope string) iter.Seq2[LedgerSnapshot, error]
}

// Replaceable is a store of which an older copy can take the place while it is used: a standby that took
// over and lacks the last commits, or a backup. What somebody has folded of it may be of what is gone then.
type Replaceable interface {
	// Replaced returns how often this process has come upon another copy. It costs nothing. What was read
	// before it grew has to be read again.
	Replaced() int64
}

// Replaced returns how often a copy has taken the place of a store; 0 of a store that is not [Replaceable].
func Replaced(s any) int64 {
	if r, ok := s.(Replaceable); ok {
		return r.Replaced()
	}
	return 0
}

// LedgerSnapshots is how many snapshots of a scope a store keeps.
const LedgerSnapshots = 3

// A LedgerSnapshot is what lessons up to a place were folded into.
type LedgerSnapshot struct {
	Scope  string // which lessons: "" for all of them; else whoever keeps it knows
	Place  int64  // Lesson.Seq of the newest lesson that was looked at; above 0
	Format int    // of Body
	Body   []byte
}

// A HistoryStore lets the past of many sessions be read as one.
type HistoryStore interface {
	// Log yields the records of all sessions of a machine in commit order, those
	// after a place; with machineName "" those of all machines. Hashes are neither
	// yielded nor checked. What is committed while it yields may be left out, but
	// then with all that is committed later: whoever goes on after the last place
	// misses nothing and sees nothing twice.
	Log(ctx context.Context, machineName string, after int64) iter.Seq2[LogEntry, error]
	// Place returns the place of the newest record, 0 if there is none: whoever lists
	// sessions after it and then goes on with the log from there misses nothing.
	Place(ctx context.Context) (int64, error)
	// RosterLog is Log for the logs of machine names, with places of their own.
	RosterLog(ctx context.Context, machineName string, after int64) iter.Seq2[RosterEntry, error]
	// RosterPlace is Place for the logs of machine names.
	RosterPlace(ctx context.Context) (int64, error)
	// Epoch returns what tells the places of this store from those of another: it stays the
	// same as long as there is the store, in every process, and says nothing else.
	Epoch(ctx context.Context) (string, error)
}

// A LogEntry is one record of a session's log and its place among those of all
// sessions.
type LogEntry struct {
	// Place only grows, and is the Lesson.Seq of a lesson in the record.
	Place       int64
	Session     specialist.SessionID
	MachineName string
	First       int64  // sequence number of its first event
	Events      []byte // a JSON array; valid until the next entry is yielded
	// Hash is that of the record, where the store knows it: of one out of which payloads were erased its
	// bytes do not give it. It is zero where it follows from the bytes.
	Hash Hash
}

// A RosterEntry is one record of the log of a machine name, and its place among those of all
// machine names. The record may be kept.
type RosterEntry struct {
	Place       int64 // only grows
	MachineName string
	StoredRecord
}

// MaxExemplars is how many exemplars of a state are shown at most.
const MaxExemplars = 1000

// A DecisionRef says where a decision was recorded.
type DecisionRef struct {
	Session specialist.SessionID
	Seq     int64 // of the first event of its record
}

// A RosterStore keeps the specialists that were registered for machines, in a
// log for each machine name.
type RosterStore interface {
	// Roster returns what is registered for a machine; never nil. How old it may be is that
	// of a Book.
	Roster(ctx context.Context, machineName string) (*Roster, error)
	// Register appends one event to the log of a machine. It returns ErrStale,
	// and changes nothing, unless the stored roster has the sequence number
	// before.
	Register(ctx context.Context, machineName string, before int64, e RosterEvent) error
	// RosterRecords yields the records of a machine's log from the first whose last
	// event has at least the sequence number from.
	RosterRecords(ctx context.Context, machineName string, from int64) iter.Seq2[StoredRecord, error]
	// Secret returns the 32 random bytes that the store was made with. They
	// never leave the process.
	Secret(ctx context.Context) ([]byte, error)
}

// An AuditStore keeps how models were asked. Nothing follows from it.
type AuditStore interface {
	// AppendAudit adds an entry, which is never changed afterwards.
	AppendAudit(ctx context.Context, e specialist.AuditEntry) error
	// Audit yields the entries of a session, the oldest first; none for a session
	// that is not known. They are whole: what a viewer may see of them is for
	// the caller to say.
	Audit(ctx context.Context, id specialist.SessionID) iter.Seq2[specialist.AuditEntry, error]
}

// An AgentStore keeps what agents did about sessions, in a log for each beside its own.
type AgentStore interface {
	// AppendAgentLog appends events to the agent_log of a session, all or nothing, and numbers
	// them from after+1; their Seq and Hash are not read. It returns ErrStale, and changes nothing,
	// unless the newest entry has the sequence number after, 0 if there is none, and
	// ErrNotFound for an unknown session. When it returns nil, a crash loses none of it.
	AppendAgentLog(ctx context.Context, id specialist.SessionID, after int64, events ...AgentEvent) error
	// AgentLog yields the entries of a session's agent_log after a sequence number, the
	// oldest first; none for a session that is not known. They may be kept.
	AgentLog(ctx context.Context, id specialist.SessionID, after int64) iter.Seq2[AgentEvent, error]
}

// An OwnerStore tells living processes from lost ones.
type OwnerStore interface {
	// Claim makes a new owner, which lives until it is released or its process
	// ends, however that comes about.
	Claim(ctx context.Context) (Owner, error)
	// Alive reports whether the owner of that name lives.
	Alive(ctx context.Context, name string) (bool, error)
}

// An Owner is a process as others see it.
type Owner interface {
	Name() string
	Release() error
}

// A Change is everything that one step writes, and what observers are told when it is
// durable. It is never changed afterwards.
type Change struct {
	Before *Session // nil for a new session
	After  *Session
	First  int64 // sequence number of the first event
	Events []Event
	// Roster is appended to the log of the session's machine in the same
	// commit, whatever that log's sequence number is.
	Roster []RosterEvent
}

// Key returns the key of the round in which the change begins.
func (c *Change) Key() specialist.RoundKey {
	if c.Before == nil {
		return specialist.RoundKey{Session: c.After.ID}
	}
	return c.Before.Key()
}

// AppendEvent appends the i-th event of the change as {seq, at, kind, data}.
func (c *Change) AppendEvent(dst []byte, i int) []byte {
	key := c.Key()
	for j := range i {
		if o, ok := c.Events[j].Data.(*RoundOpened); ok {
			key.Round, key.Attempt = o.Round, o.Attempt
		}
	}
	dst, _ = appendEvent(dst, &c.Events[i], c.First+int64(i), key)
	return dst
}

// A StoredRecord is one record of a log as it is stored.
type StoredRecord struct {
	First  int64  // sequence number of its first event
	Events []byte // a JSON array
	Prev   Hash   // of the record before; zero for the first
	Hash   Hash
}

// A Hash is a SHA-256.
type Hash [sha256.Size]byte

// String returns the hash in hex.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Chain returns the hash of a record: SHA-256 over the hash before it in hex, a
// line feed, the id of the stream, a line feed, and the bytes of the events.
func Chain(prev Hash, stream string, events []byte) (h Hash) {
	sum := sha256.New()
	var hexed [2 * sha256.Size]byte
	hex.Encode(hexed[:], prev[:])
	sum.Write(hexed[:])
	sum.Write([]byte("\n" + stream + "\n"))
	sum.Write(events)
	sum.Sum(h[:0])
	return h
}

// A Roster is what was registered for one machine name. It never changes.
type Roster struct {
	Sequence    int64 // of the last event; 0 if there is none
	Specialists []Registered
	Off         map[string]bool     // those a person switched off, by id
	Champions   map[string]Champion // by state, "" for the machine
	Collapse    map[string]Collapse // by state
	Trials      []Trial             // of policies, the oldest first
}

// A Champion is asked alone where it is trusted.
type Champion struct {
	ID     string
	Others []string // who is not asked because of it
	Since  specialist.Time
}

// A Registered specialist belongs to a machine name, not to a definition.
type Registered struct {
	machine.Specialist
	At specialist.Time
}
