package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/dialai/dialai/internal/stats"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/internal/fold"
	"github.com/dialai/dialai/store/internal/pack"
	"github.com/dialai/dialai/store/internal/projection"
	"github.com/dialai/dialai/store/internal/snapshots"
)

// What is written of one session that is erased. Everything is read and proven before anything is
// written: a log whose hashes are wrong is damaged, and is not made to look whole; a log that would
// teach something else without its payloads, or stand elsewhere, is refused.

// An erasure is what is written of a session.
type erasure struct {
	family
	machine     int64
	machineName string

	records, agents, audit []replaced
	last                   session.StoredRecord // the event erased
	at                     specialist.Time
	session                projection.Session // its row from now on
	exemplars              []string           // how the texts of those begin that it has taught
	plain                  bool
}

// A replaced is a row with what stands in it from now on.
type replaced struct {
	id  int64
	now []byte
}

// nothing reports whether the session has no payload left.
func (x *erasure) nothing() bool { return len(x.records)+len(x.agents)+len(x.audit) == 0 }

// A row of the log with its number.
type loggedRecord struct {
	place int64
	session.StoredRecord
}

// prepare reads a session and makes what is to be written of it.
func (e *erasing) prepare(ctx context.Context, r reader, f family) (*erasure, error) {
	x := &erasure{family: f, plain: e.plain}
	var head []byte
	err := r.q.QueryRowContext(ctx, `SELECT s.status, s.machine, m.machine_name, s.head FROM sessions s JOIN machines m ON m.id=s.machine WHERE s.id=?`, f.row).
		Scan(&x.status, &x.machine, &x.machineName, &head)
	if errors.Is(err, sql.ErrNoRows) {
		err = r.elsewhere(ctx, e.o.Session)
	}
	if err != nil {
		return nil, translate(err)
	}
	var status session.Status
	if err := status.UnmarshalText([]byte(x.status)); err != nil || status.Live() {
		return nil, &EraseLiveError{f.id, x.status, f.from}
	}
	log, err := r.placed(ctx, f.row)
	if err != nil {
		return nil, err
	}
	var key [32]byte
	rand.Read(key[:]) // never fails
	p := &erasurePass{erasure: x, eraser: session.NewEraser(key), ctx: ctx, r: r, damaged: func(format string, args ...any) error {
		return &session.CorruptError{What: "the log of session " + f.id, Problem: fmt.Sprintf(format, args...) + "; run dialai store verify"}
	}}
	p.was, p.is = p.folder(e.o.Programs), p.folder(e.o.Programs)
	if err := p.logs(log); err != nil {
		return nil, err
	}
	if string(head) != string(p.head[:]) {
		return nil, p.damaged("it does not end where its row says")
	}
	if err := p.agentLog(); err != nil {
		return nil, err
	}
	if err := p.models(); err != nil || x.nothing() {
		return x, err
	}
	return x, p.conclude(e.o)
}

// placed returns the records of a session.
func (r reader) placed(ctx context.Context, row int64) (list []loggedRecord, err error) {
	var one loggedRecord
	var packed, hash []byte
	err = each(scan(r.q.QueryContext(ctx, `SELECT id, first, events, hash FROM log WHERE session=? ORDER BY first`, row)).into(&one.place, &one.First, &packed, &hash), func() (err error) {
		copy(one.Hash[:], hash)
		if one.Events, err = fold.Unpack(nil, packed, one.First); err == nil {
			list = append(list, one)
		}
		return err
	})
	return list, err
}

// An erasurePass goes through what is stored of a session.
type erasurePass struct {
	*erasure
	eraser  *session.Eraser
	ctx     context.Context //nolint:containedctx // of the one call it lives in
	r       reader
	damaged func(format string, args ...any) error

	was, is   erasedFold // with payloads, and without
	head      session.Hash
	sums      []session.ErasedRecord
	agentSums []session.ErasedRecord
	auditSums []string
	before    []*session.Erased // by former runs
}

// An erasedFold is the folding of a log, and what it adds.
type erasedFold struct {
	*session.Folder
	watch *stats.Watch
}

func (p *erasurePass) folder(programs *session.Programs) erasedFold {
	f := &session.Folder{Programs: programs, Definition: func(digest string) ([]byte, error) { return p.r.definition(p.ctx, digest) }}
	return erasedFold{f, stats.On(f)}
}

// follows returns all that follows from a record, but for texts of exemplars.
func (f *erasedFold) follows(place int64, events []byte) (text []byte, exemplar string, err error) {
	decoded, err := f.Add(events)
	if err != nil {
		return nil, "", err
	}
	t, _ := projection.TaughtBy(place, decoded)
	if l := projection.Follow(decoded).Learned; l != nil && l.Exemplar != nil {
		exemplar = projection.ExemplarPrefix(l.Exemplar.ExemplarID)
	}
	t.Exemplar = ""
	if added := f.watch.Take(); !added.Empty() {
		t.Stats = snapshots.Added(place, added)
	}
	text, err = json.Marshal(t)
	return text, exemplar, err
}

// logs goes through the log.
func (p *erasurePass) logs(log []loggedRecord) error {
	records := func() iter.Seq2[session.StoredRecord, error] {
		return func(yield func(session.StoredRecord, error) bool) {
			for i := range log {
				if !yield(log[i].StoredRecord, nil) {
					return
				}
			}
		}
	}
	erased := fold.Erased{Stream: p.id, Records: records}
	for i := range log {
		r := &log[i]
		covered := r.Hash != session.Chain(p.head, p.id, r.Events)
		if covered && !erased.Proves(&r.StoredRecord) {
			return p.damaged("the hash of the record at event %d is wrong", r.First)
		}
		p.before = append(p.before, fold.ErasedIn(r.Events)...)
		var now []byte
		var err error
		if !covered {
			if now, err = p.eraser.Record(r.Events); err != nil {
				return p.damaged("%v", err)
			}
		}
		if now != nil {
			p.records = append(p.records, replaced{r.place, p.packed(now)})
			p.sums = append(p.sums, session.ErasedRecord{Seq: r.First, Sum: session.ErasedSum(r.Hash, p.id, now)})
		} else {
			now = r.Events
		}
		was, exemplar, err := p.was.follows(r.place, r.Events)
		if err != nil {
			return p.damaged("%v", err)
		}
		is, _, err := p.is.follows(r.place, now)
		switch {
		case err != nil:
			return fmt.Errorf("session %s cannot be erased: without payloads the record at event %d could not be read any more: %w", p.id, r.First, err)
		case string(was) != string(is):
			return fmt.Errorf("session %s cannot be erased: without payloads the record at event %d would teach something else", p.id, r.First)
		case exemplar != "" && !covered:
			p.exemplars = append(p.exemplars, exemplar)
		}
		p.head = r.Hash
	}
	return nil
}

// packed returns events as they are stored.
func (x *erasure) packed(events []byte) []byte {
	if x.plain {
		return events
	}
	return pack.Append(nil, events)
}

// agentLog goes through the agent_log.
func (p *erasurePass) agentLog() error {
	listed := map[int64]string{}
	for _, d := range p.before {
		for _, one := range d.Agents {
			listed[one.Seq] = one.Sum
		}
	}
	stream := session.AgentStream(p.id)
	var prev session.Hash
	var id, seq int64
	var event, hash []byte
	return each(scan(p.r.q.QueryContext(p.ctx, `SELECT id, seq, event, hash FROM agent_log WHERE session=? ORDER BY seq`, p.row)).into(&id, &seq, &event, &hash), func() error {
		want := session.Chain(prev, stream, event)
		copy(prev[:], hash)
		switch {
		case listed[seq] != "" && listed[seq] == session.ErasedSum(prev, stream, event):
			return nil
		case want != prev:
			return p.damaged("the hash of entry %d of its agent_log is wrong", seq)
		}
		entry, err := session.DecodeAgentEvent(event)
		if err != nil {
			return p.damaged("entry %d of its agent_log: %v", seq, err)
		}
		entry, some := p.eraser.AgentEvent(entry)
		if !some {
			return nil
		}
		now, err := session.AppendAgentEvent(nil, entry)
		p.agents = append(p.agents, replaced{id, now})
		p.agentSums = append(p.agentSums, session.ErasedRecord{Seq: seq, Sum: session.ErasedSum(prev, stream, now)})
		return err
	})
}

// models goes through the audit of models.
func (p *erasurePass) models() error {
	var listed []string
	for _, d := range p.before {
		listed = append(listed, d.Audit...)
	}
	var id int64
	var entry, before, hash []byte
	return each(scan(p.r.q.QueryContext(p.ctx, `SELECT a.id, a.entry, (SELECT hash FROM llm_audit p WHERE p.id<a.id ORDER BY p.id DESC LIMIT 1), a.hash
		FROM llm_audit a WHERE a.session_id=? ORDER BY a.id`, p.id)).into(&id, &entry, &before, &hash), func() error {
		var prev, kept session.Hash
		copy(prev[:], before)
		copy(kept[:], hash)
		switch want := session.Chain(prev, p.id, entry); {
		case want == kept:
		case len(listed) > 0 && listed[0] == session.ErasedSum(kept, p.id, entry):
			listed = listed[1:]
			return nil
		default:
			return p.damaged("the hash of entry %d of the audit of models is wrong", id)
		}
		var a specialist.AuditEntry
		if err := json.Unmarshal(entry, &a); err != nil {
			return p.damaged("entry %d of the audit of models: %v", id, err)
		}
		a, some := p.eraser.Audit(a)
		if !some {
			return nil
		}
		now, err := json.Marshal(a)
		p.audit = append(p.audit, replaced{id, now})
		p.auditSums = append(p.auditSums, session.ErasedSum(kept, p.id, now))
		return err
	})
}

// conclude makes the event erased, and the row of the session after it.
func (p *erasurePass) conclude(o EraseOptions) error {
	was, is := projection.SessionOf(p.was.Session()), p.is.Session()
	same := projection.SessionOf(is)
	was.Subject, was.Reason, same.Subject, same.Reason = "", "", "", ""
	if was != same {
		return fmt.Errorf("session %s cannot be erased: without payloads it would stand elsewhere", p.id)
	}
	p.at = max(o.At, is.UpdatedAt)
	first := is.Sequence + 1
	p.last = session.StoredRecord{First: first, Events: session.AppendEvents(nil, is.Key(), first, []session.Event{{At: p.at, Data: &session.Erased{
		First: 1, Last: is.Sequence, Note: o.Note, Records: p.sums, Agents: p.agentSums, Audit: p.auditSums, Actor: o.Actor}}})}
	p.last.Hash = session.Chain(p.head, p.id, p.last.Events)
	if _, err := p.is.Add(p.last.Events); err != nil {
		return err
	}
	p.session = projection.SessionOf(p.is.Session())
	return nil
}

// write writes all of it, in a transaction.
func (x *erasure) write(ctx context.Context, conn *sql.Conn) (err error) {
	exec := func(query string, args ...any) {
		if err == nil {
			_, err = conn.ExecContext(ctx, query, args...)
		}
	}
	for _, r := range x.records {
		exec(`UPDATE log SET events=? WHERE id=?`, r.now, r.id)
	}
	for _, r := range x.agents {
		exec(`UPDATE agent_log SET event=? WHERE id=?`, string(r.now), r.id)
	}
	for _, r := range x.audit {
		exec(`UPDATE llm_audit SET entry=? WHERE id=?`, string(r.now), r.id)
	}
	exec(insert("log", projection.LogColumns), x.row, x.last.First, nil, int64(x.at), x.packed(x.last.Events), x.last.Hash[:])
	head := x.last.Hash[:]
	fields := projection.Values(x.session.Fields(nil, &x.machine, &head))
	exec(`UPDATE sessions SET `+strings.Join(projection.SessionColumns, "=?, ")+`=? WHERE id=?`, append(fields, x.row)...)
	for _, prefix := range x.exemplars {
		exec(`UPDATE exemplars SET exemplar='' WHERE machine=? AND instr(exemplar, ?)=1`, x.machine, prefix)
	}
	exec(`UPDATE machines SET trust_version=trust_version+1 WHERE id=?`, x.machine)
	exec(`INSERT OR REPLACE INTO erasing (one, at) VALUES (1, ?)`, int64(x.at))
	return err
}
