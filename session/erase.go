package session

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/specialist"
)

// Taking payloads out of what is stored of a session that has ended. In the place of each text and
// each value stands a tag: an HMAC of it under a key that is thrown away, so that what was equal in the
// session is still seen to be equal, and nobody finds out by guessing what it was.
//
// What is not listed here as kept goes: a member that a later version adds is a payload until
// somebody says that it is none. Numbers stay, and true and false; a value (metaJson, data) goes whole.
// Ids, names of the machine, times, costs and what was learned stay, so the log folds as before and
// teaches the same.
//
// The record keeps the hash that it had, which the next one proves. What it says now is proven by the
// event Erased, behind it: for each record Chain of the hash that it keeps and of its new bytes.

// Erased records that payloads were taken out of earlier records of the session.
type Erased struct {
	First, Last int64  // the events out of whose records they were taken, from and to
	Note        string // why
	Records     []ErasedRecord
	Agents      []ErasedRecord // of its agent_log
	Audit       []string       // the sums of its entries in the audit of models, in their order
	Actor       *Actor         // who has done it; nil if that is not said
}

// An ErasedRecord says what a record is now.
type ErasedRecord struct {
	Seq int64  // of its first event
	Sum string // what ErasedSum returns, in hex
}

func (d *Erased) form(f *form) {
	number(f, "from", &d.First)
	number(f, "to", &d.Last)
	f.str("note", &d.Note)
	list(f, "records", &d.Records, (*ErasedRecord).form)
	if f.reading || len(d.Agents) > 0 {
		list(f, "agentLog", &d.Agents, (*ErasedRecord).form)
	}
	f.texts("audit", &d.Audit)
	f.actor("actor", &d.Actor)
}

func (r *ErasedRecord) form(f *form) {
	number(f, "seq", &r.Seq)
	f.str("sha256", &r.Sum)
}

// ErasedSum returns what proves the new bytes of a record of a stream that keeps its hash, in hex.
func ErasedSum(kept Hash, stream string, now []byte) string { return Chain(kept, stream, now).String() }

// Erased reports whether payloads were taken out of the session. It is not taken up again.
func (s *Session) Erased() bool { return s.erased }

// applyErased ends what cannot go on: nobody can look again at what is gone.
func applyErased(s *Session) { s.erased, s.reviews = true, nil }

// An Eraser takes payloads out of what is stored of one session. It is used by one goroutine.
type Eraser struct {
	key     []byte
	changed bool
}

// NewEraser returns an Eraser with a key, which has to be random, of the session alone, and kept nowhere.
func NewEraser(key [32]byte) *Eraser { return &Eraser{key: key[:]} }

// Record returns the events of a record without payloads; nil if there are none in it.
func (e *Eraser) Record(events []byte) ([]byte, error) {
	if !json.Valid(events) {
		return nil, notJSON(events)
	}
	e.changed = false
	now, err := e.events(events)
	if err != nil || !e.changed {
		return nil, err
	}
	return now, nil
}

// AgentEvent returns an entry of an agent_log without payload. ok is false if it has none.
func (e *Eraser) AgentEvent(a AgentEvent) (_ AgentEvent, ok bool) {
	if len(a.Data) == 0 || string(a.Data) == "{}" || string(a.Data) == "null" || IsErased(a.Data) {
		return a, false
	}
	a.Data = e.value(a.Data)
	return a, true
}

// Audit returns an entry of the audit of models without payload. ok is false if it has none.
func (e *Eraser) Audit(a specialist.AuditEntry) (_ specialist.AuditEntry, ok bool) {
	gone := false
	for _, text := range []*string{&a.RequestBody, &a.ResponseBody, a.Error} {
		if text != nil && *text != "" {
			*text, gone = e.tag([]byte(*text)), true
		}
	}
	if len(a.RequestHeaders) > 0 {
		a.RequestHeaders, gone = map[string]string{}, true
	}
	return a, gone
}

// erasedValue is how a value begins that stands in the place of another one.
const erasedValue = `{"erased":"`

// IsErased reports whether a value stands in the place of another one.
func IsErased(value []byte) bool { return bytes.HasPrefix(value, []byte(erasedValue)) }

// tag returns what stands in the place of a text.
func (e *Eraser) tag(text []byte) string { return "[erased " + e.mac(text) + "]" }

func (e *Eraser) value(v []byte) []byte { return []byte(erasedValue + e.mac(v) + `"}`) }

func (e *Eraser) mac(v []byte) string {
	h := hmac.New(sha256.New, e.key)
	h.Write(v)
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// eventNames are the members that stay as they are, in whatever event they stand.
var eventNames = func() map[string]bool {
	kept := map[string]bool{}
	for _, name := range []string{
		"actor", "arbiterId", "arbitrationId", "askId", "askedModel", "asks", "authors", "before", "class", "code", "comparisons",
		"createdAt", "decision", "decisionId", "draws", "driver", "due", "evidence", "exemplarId", "explanation", "forkedFrom", "from", "fromState",
		"guard", "held", "humanToState", "humanTransitionName", "lesson", "machineDigest", "machineName", "missing", "mode", "model", "optionOrder",
		"order", "outcome", "part", "prices", "proposalId", "questionDigest", "quorum", "raised", "replaces", "review", "role", "roundId",
		"secondLook", "seed", "sessionId", "specialistId", "spent", "stage", "state", "states", "status", "strategy", "threshold", "to", "toState",
		"transitionName", "unruled", "wave", "weights", "winningProposalId",
	} {
		kept[name] = true
	}
	return kept
}()

// eventValues are the members that are values of somebody else, and go whole.
var eventValues = map[string]bool{"metaJson": true, "data": true, "args": true, "context": true, "proposals": true}

func (e *Eraser) events(events []byte) ([]byte, error) {
	raw, err := SplitRaw(nil, events)
	if err != nil {
		return nil, err
	}
	for i := range raw {
		if raw[i].Kind == KindErased {
			continue
		}
		if raw[i].Kind != KindCreated && newData(raw[i].Kind) == nil {
			return nil, unknownKind(&raw[i])
		}
		if raw[i].Data, err = e.object(raw[i].Kind, raw[i].Data); err != nil {
			return nil, fmt.Errorf("event %d: %w", raw[i].Seq, err)
		}
	}
	return plainJSON(raw), nil
}

// object returns an object of an event of a kind, or of a part of one, without payloads.
func (e *Eraser) object(of string, v []byte) ([]byte, error) {
	w := object(nil)
	c := jsontext.Cursor{B: v}
	var failed error
	c.Members(func(name []byte) {
		left, err := e.member(of, string(name), c.Raw())
		if w.raw(string(name), left); failed == nil {
			failed = err
		}
	})
	if c.Err != nil {
		failed = c.Err
	}
	return w.end(), failed
}

// member returns the value of a member without payloads.
func (e *Eraser) member(of, name string, v []byte) ([]byte, error) {
	switch v[0] {
	case '"', '[', '{':
	default:
		if !eventValues[name] || string(v) == "null" {
			return v, nil
		}
	}
	switch {
	case eventNames[name], name == "subject" && of == KindJudged: // there it is who leads, or which transition
		return v, nil
	case eventValues[name]:
		e.changed = true
		return e.value(v), nil
	case name == "events" && of == "snapshot":
		return e.events(v)
	case v[0] == '[':
		return e.list(of, name, v)
	case v[0] == '{':
		if name == "snapshot" {
			of = name
		}
		return e.object(of, v)
	case string(v) == `""`, (name == "limit" || name == "observed") && isNumber(v):
		return v, nil
	}
	e.changed = true
	return jsontext.AppendString(nil, e.tag(v)), nil
}

// isNumber reports whether a JSON string says a number, such as a limit of a guard.
func isNumber(v []byte) bool {
	_, err := strconv.ParseFloat(string(v[1:len(v)-1]), 64)
	return err == nil
}

func (e *Eraser) list(of, name string, v []byte) ([]byte, error) {
	dst := []byte{'['}
	c := jsontext.Cursor{B: v}
	var failed error
	c.Elements(func() {
		if len(dst) > 1 {
			dst = append(dst, ',')
		}
		left, err := e.member(of, name, c.Raw())
		if dst = append(dst, left...); failed == nil {
			failed = err
		}
	})
	if c.Err != nil {
		failed = c.Err
	}
	return append(dst, ']'), failed
}
