// Package snapshots says how what logs were folded into is stored beside them, and proves it.
package snapshots

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/dialai/dialai/internal/lessons"
	"github.com/dialai/dialai/internal/stats"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/internal/wire"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/internal/pack"
)

// Lessons are folded into ledgers (internal/lessons) and decisions into tallies (internal/stats); each
// says when a snapshot is made, and what is in it. A row has the snapshot packed, and a hash by which
// one that damage has changed is not used. Nothing follows from them: rebuilding drops them.
//
// To prove them, a store hands a Proof all rows, then what each record adds, in any order of the
// sessions, then all lessons. Of a session that was archived it has kept what its records add.

// Row returns what is stored of a snapshot beside its scope, place and format.
func Row(s session.LedgerSnapshot) (body, hash []byte) {
	h := hashOf(s)
	return pack.Block(s.Body), h[:]
}

func hashOf(s session.LedgerSnapshot) session.Hash {
	return session.Chain(session.Hash{}, fmt.Sprintf("ledger %d of %q in format %d", s.Place, s.Scope, s.Format), s.Body)
}

// Read fills in the body of a snapshot from its row, or says what is wrong with that.
func Read(s *session.LedgerSnapshot, body, hash []byte) (err error) {
	if s.Body, err = pack.Unblock(body); err != nil {
		return fmt.Errorf("it cannot be read: %w", err)
	}
	if want := hashOf(*s); string(hash) != string(want[:]) {
		return fmt.Errorf("it is not what its hash says")
	}
	return nil
}

// Added returns what a record at a place adds, as it is kept of archived sessions.
func Added(place int64, r stats.Record) []byte {
	var t stats.Tally
	t.Add(place, r)
	c := wire.NewWriter()
	t.Code(c)
	return c.Bytes()
}

// ReadAdded reads what Added returned.
func ReadAdded(place int64, text []byte) (stats.Added, error) {
	a, c := stats.Added{Place: place}, wire.NewReader(text)
	if a.Tally.Code(c); c.Close() != nil {
		return a, &session.CorruptError{What: "what an archived record adds", Problem: c.Close().Error()}
	}
	return a, nil
}

// A Proof finds snapshots that are not what the logs say. The zero Proof is of none.
type Proof struct {
	ledgers []session.LedgerSnapshot
	tallies map[string][]*tally // by machine name
	humans  map[int64]bool      // places of records by which humans decided, and that taught something
	damaged string
}

// A tally is a snapshot of decisions, and what it should be.
type tally struct {
	session.LedgerSnapshot
	should stats.Tally
}

// Row takes a row that is to be proven.
func (p *Proof) Row(s session.LedgerSnapshot, body, hash []byte) {
	if err := Read(&s, body, hash); err != nil {
		p.damaged = fmt.Sprintf("the snapshot at place %d of scope %q: %v", s.Place, s.Scope, err)
		return
	}
	machineName, decisions := stats.MachineOf(s.Scope)
	switch {
	case !decisions:
		p.ledgers = append(p.ledgers, s)
	case s.Format == stats.Format:
		if p.tallies == nil {
			p.tallies, p.humans = map[string][]*tally{}, map[int64]bool{}
		}
		p.tallies[machineName] = append(p.tallies[machineName], &tally{LedgerSnapshot: s})
	}
}

// Counts reports whether it has to be told what records add.
func (p *Proof) Counts() bool { return p.tallies != nil }

// Record takes what the record at a place of a session of a machine adds. taught says that it has a lesson.
func (p *Proof) Record(machineName string, place int64, r stats.Record, taught bool) {
	p.add(machineName, place, r.Human() && taught, func(sum *stats.Tally) { sum.Add(place, r) })
}

// Archived takes what a record of an archived session adds.
func (p *Proof) Archived(machineName string, a *stats.Added, taught bool) {
	p.add(machineName, a.Place, a.Human() && taught, func(sum *stats.Tally) { sum.Plus(&a.Tally) })
}

func (p *Proof) add(machineName string, place int64, human bool, add func(*stats.Tally)) {
	for _, t := range p.tallies[machineName] {
		if place <= t.Place {
			add(&t.should)
		}
		if human {
			p.humans[place] = true
		}
	}
}

// Wrong says which snapshot is not what the logs say, given all lessons that they have, as they are
// stored, by their places and in the order of these, as often as it asks for them; "" if there is none. It takes as long as learning all lessons, and those of states
// with snapshots of their own once more.
func (p *Proof) Wrong(all iter.Seq2[int64, string]) (string, error) {
	if p.damaged != "" || len(p.ledgers) == 0 && p.tallies == nil {
		return p.damaged, nil
	}
	wrong, err := lessons.Disprove(p.ledgers, func(yield func(trust.Lesson, error) bool) {
		if len(p.ledgers) == 0 {
			return
		}
		for place, text := range all {
			x, err := trust.DecodeLesson([]byte(text))
			if x.Seq = place; !yield(x, err) || err != nil {
				return
			}
		}
	})
	if err != nil {
		return "", err
	}
	if wrong != nil {
		return fmt.Sprintf("the snapshot at place %d of scope %q is not what the lessons up to there come to", wrong.Place, wrong.Scope), nil
	}
	return p.wrongTally(all)
}

func (p *Proof) wrongTally(all iter.Seq2[int64, string]) (string, error) {
	if p.tallies == nil {
		return "", nil
	}
	for place, text := range all {
		x, err := trust.DecodeLesson([]byte(text))
		if err != nil {
			return "", err
		}
		for _, t := range p.tallies[stats.Taught(&x)] {
			if place <= t.Place {
				t.should.Learn(&x, p.humans[place])
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.tallies)) {
		for _, t := range p.tallies[name] {
			if !bytes.Equal(stats.Snapshot(name, t.Place, &t.should).Body, t.Body) {
				return fmt.Sprintf("the snapshot at place %d of scope %q is not what the decisions up to there come to", t.Place, t.Scope), nil
			}
		}
	}
	return "", nil
}
