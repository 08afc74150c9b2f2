package postgres

import (
	"context"
	"maps"
	"slices"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/internal/projection"
	"github.com/dialai/dialai/store/internal/scratch"
)

// What follows from logs, as it was collected when they were read (verify_session.go), is held against the
// tables that have it.

func (a *audit) checkLessons(ctx context.Context) error {
	var got scratch.Lesson
	var lesson []byte
	var archived bool
	n := 0
	err := a.each(ctx, `SELECT l.place, l.lesson, l.at, l.session, coalesce(m.machine_name, ''), EXISTS (SELECT FROM archived_records r WHERE r.agents=0 AND r.place=l.place)
		FROM lessons l LEFT JOIN machines m ON m.id=l.machine`, []any{&got.Place, &lesson, &got.At, &got.Of, &got.Machine, &archived}, func() {
		got.Text = string(lesson)
		want, ok := a.read.Lesson(got.Place)
		if want.At == 0 { // of a session that was archived when that was not kept
			want.At = got.At
		}
		switch {
		case a.broken || ok && got == want:
		case archived && (!ok || got.Text != want.Text): // what is kept of that says no more what it has taught
			a.differs(inArchived, "archived", 0, "the lesson at place %d is of a session that was archived, of which its row is gone or altered", got.Place)
		default:
			a.differs(inRows, "lessons", 0, "the lesson at place %d is not what the logs say", got.Place)
		}
		n++
	})
	a.count("lessons", n, a.read.CountLessons())
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
		if want, ok := a.read.Exemplar(place); !a.broken && (!ok || got != want) {
			a.differs(inRows, "exemplars", 0, "the one at place %d is not what the logs say", place)
		}
		n++
	})
	a.count("exemplars", n, a.read.CountExemplars())
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
	var of, row, next, seq int64 // of the session that is read
	var head session.Hash
	var id string
	var event, hash []byte
	return a.each(ctx, `SELECT a.session, coalesce(s.session_id::text, ''), a.seq, a.event, a.hash FROM agent_log a LEFT JOIN sessions s ON s.id=a.session ORDER BY a.session, a.seq`, []any{&row, &id, &seq, &event, &hash}, func() {
		if row != of {
			of, next, head = row, 0, session.Hash{}
		}
		next++
		stream, kept := session.AgentStream(id), session.Hash{}
		want := session.Chain(head, stream, event)
		if sum, listed := a.erasedAgents[row][seq]; listed {
			if copy(kept[:], hash); sum != session.ErasedSum(kept, stream, event) {
				a.differs(inAgentLog, id, seq, "it was erased, and is not what was left")
			}
			want = kept
		}
		switch e, err := session.DecodeAgentEvent(event); {
		case seq != next:
			a.differs(inAgentLog, id, next, "it does not follow from the entry before: one was removed")
		case string(hash) != string(want[:]):
			a.differs(inAgentLog, id, seq, "the hash of its entry is wrong: it was altered, or one before it removed")
		case err != nil:
			a.differs(inAgentLog, id, seq, "%v", err)
		case e.Seq != seq:
			a.differs(inAgentLog, id, seq, "it has the number %d", e.Seq)
		}
		copy(want[:], hash)
		head, next = want, seq
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
