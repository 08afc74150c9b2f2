package erase

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/dialai/dialai/internal/stats"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/internal/fold"
	"github.com/dialai/dialai/store/internal/projection"
	"github.com/dialai/dialai/store/internal/snapshots"
)

// What is written of one session that is erased. Everything is read and proven before anything is
// written: a log whose hashes are wrong is damaged, and is not made to look whole; a log that would
// teach something else without its payloads, or stand elsewhere, is refused.

// Stored is what is stored of a session. What is read by one of its fields is read whole before another is.
type Stored struct {
	Status, Machine string
	Head            []byte // the hash of its last record, as its row has it
	Definition      func(digest string) ([]byte, error)
	Log             []Row // its records
	Agents, Audit   iter.Seq2[Row, error]
	AuditErased     []string // of a session that was archived: sums of what is left of its audit; nil means those that its log has
}

// A Row is a record, or an entry, as it is stored.
type Row struct {
	Place      int64        // its number in its table
	First      int64        // of its first event, or its number in its log of agents
	Body       []byte       // of a record unpacked
	Prev, Hash session.Hash // of the audit of models no Hash where that is no chain
}

// An Erasure is what is written of a session.
type Erasure struct {
	Family
	Machine                string
	Records, Agents, Audit []Replaced           // of records what is not packed
	Last                   session.StoredRecord // the event erased
	At                     specialist.Time
	Session                projection.Session // its row from now on
	Exemplars              []string           // how the texts of those begin that it has taught
}

// A Replaced is a row with what stands in it from now on.
type Replaced struct {
	Place int64
	Now   []byte
	Hash  session.Hash // that it keeps or, if it had none, is given
}

// Nothing reports whether the session has no payload left.
func (x *Erasure) Nothing() bool { return len(x.Records)+len(x.Agents)+len(x.Audit) == 0 }

// prepare reads a session and makes what is to be written of it.
func prepare(ctx context.Context, v View, f Family, o *Options) (*Erasure, error) {
	stored, err := v.Stored(ctx, f)
	if err != nil {
		return nil, err
	}
	if err := f.ended(stored.Status); err != nil {
		return nil, err
	}
	f.Status = stored.Status
	x := &Erasure{Family: f, Machine: stored.Machine, At: o.At}
	var key [32]byte
	rand.Read(key[:]) // never fails
	p := &pass{Erasure: x, stored: stored, eraser: session.NewEraser(key), damaged: func(format string, args ...any) error {
		return &session.CorruptError{What: "the log of session " + f.ID, Problem: fmt.Sprintf(format, args...) + "; run dialai store verify"}
	}}
	p.was, p.is = p.folder(o.Programs), p.folder(o.Programs)
	if err := p.log(); err != nil {
		return nil, err
	}
	if string(stored.Head) != string(p.head[:]) {
		return nil, p.damaged("it does not end where its row says")
	}
	if err := p.agentLog(); err != nil {
		return nil, err
	}
	if err := p.models(); err != nil || x.Nothing() {
		return x, err
	}
	return x, p.conclude(o)
}

// A pass goes through what is stored of a session.
type pass struct {
	*Erasure
	stored  *Stored
	eraser  *session.Eraser
	damaged func(format string, args ...any) error

	was, is   folding // with payloads, and without
	head      session.Hash
	sums      []session.ErasedRecord
	agentSums []session.ErasedRecord
	auditSums []string
	before    []*session.Erased // by former runs
}

// A folding is the folding of a log, and what it adds.
type folding struct {
	*session.Folder
	watch *stats.Watch
}

func (p *pass) folder(programs *session.Programs) folding {
	f := &session.Folder{Programs: programs, Definition: p.stored.Definition}
	return folding{f, stats.On(f)}
}

// follows returns all that follows from a record, but for texts of exemplars.
func (f *folding) follows(place int64, events []byte) (text []byte, exemplar string, err error) {
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

// log goes through the log.
func (p *pass) log() error {
	log := p.stored.Log
	erased := fold.Erased{Stream: p.ID, Records: func() iter.Seq2[session.StoredRecord, error] {
		return func(yield func(session.StoredRecord, error) bool) {
			for i := range log {
				if !yield(log[i].record(), nil) {
					return
				}
			}
		}
	}}
	for i := range log {
		r := &log[i]
		covered := r.Hash != session.Chain(p.head, p.ID, r.Body)
		if record := r.record(); covered && !erased.Proves(&record) {
			return p.damaged("the hash of the record at event %d is wrong", r.First)
		}
		p.before = append(p.before, fold.ErasedIn(r.Body)...)
		var now []byte
		var err error
		if !covered {
			if now, err = p.eraser.Record(r.Body); err != nil {
				return p.damaged("%v", err)
			}
		}
		if now != nil {
			p.Records = append(p.Records, Replaced{r.Place, now, r.Hash})
			p.sums = append(p.sums, session.ErasedRecord{Seq: r.First, Sum: session.ErasedSum(r.Hash, p.ID, now)})
		} else {
			now = r.Body
		}
		was, exemplar, err := p.was.follows(r.Place, r.Body)
		if err != nil {
			return p.damaged("%v", err)
		}
		is, _, err := p.is.follows(r.Place, now)
		switch {
		case err != nil:
			return fmt.Errorf("session %s cannot be erased: without payloads the record at event %d could not be read any more: %w", p.ID, r.First, err)
		case string(was) != string(is):
			return fmt.Errorf("session %s cannot be erased: without payloads the record at event %d would teach something else", p.ID, r.First)
		case exemplar != "" && !covered:
			p.Exemplars = append(p.Exemplars, exemplar)
		}
		p.head = r.Hash
	}
	return nil
}

// record returns a row of the log as a record.
func (r *Row) record() session.StoredRecord {
	return session.StoredRecord{First: r.First, Events: r.Body, Hash: r.Hash}
}

// agentLog goes through the agent_log.
func (p *pass) agentLog() error {
	listed := map[int64]string{}
	for _, d := range p.before {
		for _, one := range d.Agents {
			listed[one.Seq] = one.Sum
		}
	}
	stream := session.AgentStream(p.ID)
	var prev session.Hash
	for r, err := range p.stored.Agents {
		if err != nil {
			return err
		}
		want := session.Chain(prev, stream, r.Body)
		prev = r.Hash
		switch {
		case listed[r.First] != "" && listed[r.First] == session.ErasedSum(prev, stream, r.Body):
			continue
		case want != prev:
			return p.damaged("the hash of entry %d of its agent_log is wrong", r.First)
		}
		entry, err := session.DecodeAgentEvent(r.Body)
		if err != nil {
			return p.damaged("entry %d of its agent_log: %v", r.First, err)
		}
		entry, some := p.eraser.AgentEvent(entry)
		if !some {
			continue
		}
		now, err := session.AppendAgentEvent(nil, entry)
		if err != nil {
			return err
		}
		p.Agents = append(p.Agents, Replaced{r.Place, now, r.Hash})
		p.agentSums = append(p.agentSums, session.ErasedRecord{Seq: r.First, Sum: session.ErasedSum(prev, stream, now)})
	}
	return nil
}

// models goes through the audit of models.
func (p *pass) models() error {
	listed := p.stored.AuditErased
	for _, d := range p.before {
		if p.stored.AuditErased == nil {
			listed = append(listed, d.Audit...)
		}
	}
	for r, err := range p.stored.Audit {
		if err != nil {
			return err
		}
		switch {
		case r.Hash == session.Hash{}:
			rand.Read(r.Hash[:]) // anything: it only has to prove what is left
		case len(listed) > 0 && listed[0] == session.ErasedSum(r.Hash, p.ID, r.Body):
			listed = listed[1:]
			continue
		case r.Hash != session.Chain(r.Prev, p.ID, r.Body):
			return p.damaged("the hash of entry %d of the audit of models is wrong", r.Place)
		}
		var a specialist.AuditEntry
		if err := json.Unmarshal(r.Body, &a); err != nil {
			return p.damaged("entry %d of the audit of models: %v", r.Place, err)
		}
		a, some := p.eraser.Audit(a)
		if !some {
			continue
		}
		now, err := json.Marshal(a)
		if err != nil {
			return err
		}
		p.Audit = append(p.Audit, Replaced{r.Place, now, r.Hash})
		p.auditSums = append(p.auditSums, session.ErasedSum(r.Hash, p.ID, now))
	}
	return nil
}

// conclude makes the event erased, and the row of the session after it.
func (p *pass) conclude(o *Options) error {
	was, is := projection.SessionOf(p.was.Session()), p.is.Session()
	same := projection.SessionOf(is)
	was.Subject, was.Reason, same.Subject, same.Reason = "", "", "", ""
	if was != same {
		return fmt.Errorf("session %s cannot be erased: without payloads it would stand elsewhere", p.ID)
	}
	p.At = max(o.At, is.UpdatedAt)
	first := is.Sequence + 1
	p.Last = session.StoredRecord{First: first, Events: session.AppendEvents(nil, is.Key(), first, []session.Event{{At: p.At, Data: &session.Erased{
		First: 1, Last: is.Sequence, Note: o.Note, Records: p.sums, Agents: p.agentSums, Audit: p.auditSums, Actor: o.Actor}}})}
	p.Last.Hash = session.Chain(p.head, p.ID, p.Last.Events)
	if _, err := p.is.Add(p.Last.Events); err != nil {
		return err
	}
	p.Session = projection.SessionOf(p.is.Session())
	return nil
}
