package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/gofrs/flock"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/guardlog"
	"github.com/dialai/dialai/internal/packs"
	"github.com/dialai/dialai/verdict"
)

// The event log of guards, a record a line, on disk before anything else happens. A call is
// in it twice: reserved before the server is sent it, and as a check with what came of it. A
// process that is lost in between leaves the first alone; whoever goes on with the task
// counts that call as made, since it may have been.
//
// At a start the records of the task are read, so that limits, tools and loops go on from
// where they stood, and what was stopped stays stopped. The last line may be torn, and is cut
// off; any other that cannot be read is an error, since everything that is counted from it
// would be wrong. One process at a time writes a log.

// A Log is the event log of a proxy. It is for one Run at a time; nil writes and reads
// nothing.
type Log struct {
	file    *os.File
	lock    *flock.Flock
	section json.RawMessage
	seq     int64
	ordered int64 // the candidate that was reserved last
}

// OpenLog opens the log at a path, and makes it if there is none. Section is what the guards
// file says, for whoever judges the log again. Close ends it.
func OpenLog(path string, section json.RawMessage) (*Log, error) {
	lock := flock.New(path + ".lock")
	if ok, err := lock.TryLock(); err != nil {
		return nil, err
	} else if !ok {
		return nil, fmt.Errorf("%s is being written by another process", path)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		lock.Close()
		return nil, err
	}
	if at, err := file.Stat(); err != nil || !at.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is no regular file", path), err, file.Close(), lock.Close())
	}
	return &Log{file: file, lock: lock, section: section}, nil
}

// Close closes the file.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	return errors.Join(l.file.Close(), l.lock.Close())
}

// restore has a guard know what the log says of a task, and writes the guards that are in
// force. It returns why the task was stopped, "" if it was not.
func (l *Log) restore(g *guard.Guard, task string, config *guard.Config) (stopped string, err error) {
	if l == nil {
		return "", nil
	}
	sent := map[string]guard.LogRecord{} // reserved, and nobody knows what came of it
	err = l.each(func(rec guard.LogRecord) error {
		l.seq = max(l.seq, rec.Seq)
		if n, err := strconv.ParseInt(rec.CandidateID, 10, 64); err == nil {
			l.ordered = max(l.ordered, n)
		}
		if rec.Task() != task {
			return nil
		}
		switch rec.Type {
		case guard.LogReserve:
			sent[rec.CandidateID] = rec
		case guard.LogCleared:
			stopped = ""
		case guard.LogCheck:
			delete(sent, rec.CandidateID)
			if rec.Verdict == verdict.Abort.String() {
				stopped = "the task was stopped: " + rec.Message
			}
			return g.Take(rec)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	for _, id := range slices.Sorted(maps.Keys(sent)) {
		rec := sent[id]
		rec.Type, rec.Verdict = guard.LogCheck, verdict.OK.String()
		if err := g.Take(rec); err != nil {
			return "", err
		}
	}
	return stopped, l.write(&guard.LogRecord{TaskID: task, Type: guard.LogConfig, Meta: &guard.LogMeta{Profile: config.Profile, Guards: l.section}}, time.Now())
}

// each reads the records of the log, and cuts a torn last line off.
func (l *Log) each(f func(guard.LogRecord) error) error {
	size, err := l.file.Seek(0, io.SeekEnd)
	if err != nil || size == 0 {
		return err
	}
	whole, err := l.whole(size)
	if err != nil {
		return err
	}
	if whole == 0 {
		return fmt.Errorf("%s is no log of guards: it has no whole line", l.file.Name())
	}
	err = guardlog.EachLine(io.NewSectionReader(l.file, 0, whole), func(n int, line []byte, err error) error {
		var rec guard.LogRecord
		if err == nil {
			rec, err = guard.ParseLog(line)
		}
		if err == nil {
			err = f(rec)
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", l.file.Name(), n, err)
		}
		return nil
	})
	if err != nil || whole == size {
		return err
	}
	return l.file.Truncate(whole)
}

// whole returns where the last whole line of the first size bytes ends.
func (l *Log) whole(size int64) (int64, error) {
	buf := make([]byte, 1<<16)
	for size > 0 {
		n := min(size, int64(len(buf)))
		if _, err := l.file.ReadAt(buf[:n], size-n); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(buf[:n], '\n'); i >= 0 {
			return size - n + int64(i) + 1, nil
		}
		size -= n
	}
	return 0, nil
}

// begin writes that a call is about to be made.
func (l *Log) begin(task string, in guard.CheckInput, at time.Time) error {
	if l == nil {
		return nil
	}
	l.ordered++
	rec := &guard.LogRecord{TaskID: task, CandidateID: strconv.FormatInt(l.ordered, 10), Type: guard.LogReserve}
	fill(rec, in)
	return l.write(rec, at)
}

// end writes what came of a call, made or not.
func (l *Log) end(task string, in guard.CheckInput, v verdict.Verdict, executed bool, by string, at time.Time) error {
	if l == nil {
		return nil
	}
	if !executed {
		l.ordered++ // nothing was reserved
	}
	rec := &guard.LogRecord{TaskID: task, CandidateID: strconv.FormatInt(l.ordered, 10), Type: guard.LogCheck, Verdict: v.Status.String(), Meta: &guard.LogMeta{Actor: by, Executed: executed && !v.Passed()}}
	for i, r := range v.Reasons {
		if i == 0 {
			rec.Reason, rec.Message = r.Code, r.Message
		}
		rec.Meta.Reasons = append(rec.Meta.Reasons, guard.LogReason{Code: r.Code, Guard: r.Guard, Class: r.Class.String()})
	}
	if by == "" && len(v.Reasons) == 0 {
		rec.Meta = nil
	}
	fill(rec, in)
	return l.write(rec, at)
}

// fill puts a step into a record: as digests if there is something in it that looks like a
// secret or personal data.
func fill(rec *guard.LogRecord, in guard.CheckInput) {
	rec.Payload = guard.PayloadFull
	rec.Input = guard.LogInputOf(verdict.Step{ToolCalls: in.ToolCalls})
	for _, c := range in.ToolCalls {
		if packs.HoldsSecret(string(c.Args)) || packs.Redact(string(c.Args)) != string(c.Args) || packs.Redact(string(c.Result)) != string(c.Result) {
			rec.Payload, rec.Input = guard.PayloadDigest, rec.Input.Digested()
			return
		}
	}
}

// write appends a record. It is on disk when write returns nil.
func (l *Log) write(rec *guard.LogRecord, at time.Time) error {
	l.seq++
	rec.V, rec.Seq = 1, l.seq
	rec.TS, _ = json.Marshal(at.UTC().Format(time.RFC3339Nano)) // a text always can
	line, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	if _, err := l.file.Write(append(line, '\n')); err != nil {
		return err
	}
	return l.file.Sync()
}
