package storetest

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// fold returns the session that the records of a log come to.
func (b *bench) fold(id specialist.SessionID) *session.Session {
	b.Helper()
	f := &session.Folder{Programs: session.NewPrograms(), Definition: func(string) ([]byte, error) { return b.m.JSON(), nil }}
	for rec, err := range b.store.Records(b.ctx, id, 0) {
		b.ok(err)
		_, err := f.Add(rec.Events)
		b.ok(err)
	}
	return f.Session()
}

// testSessionSnapshots: the log of a long session is folded from a snapshot, which another process sees
// soon, and comes to what the whole log comes to after each commit, also of a fork, of which the snapshot of
// the other session says nothing.
func testSessionSnapshots(t *testing.T, m Maker) {
	b := newBench(t, m)
	if m.Snapshot == nil {
		t.Skip("this store folds no log to load a session, so it needs no snapshots")
	}
	rng := rand.New(rand.NewPCG(16, 1))
	t.Log("seed 16, 1")
	s := b.start()
	steps := func(id specialist.SessionID, n int) {
		for range n {
			choices := map[string][]string{"open": {"again", "park"}, "parked": {"back"}}[b.load(id).State.Name]
			choice := choices[rng.IntN(len(choices))]
			if rng.IntN(3) == 0 {
				b.decide(id, choice)
			} else {
				b.force(id, choice)
			}
			if rng.IntN(4) == 0 && b.load(id).State.Name == "open" { // something is open then
				_, _, err := b.r.Propose(b.ctx, runner.Submission{SessionID: id, RoundID: runner.CurrentRound, SpecialistID: "first"})
				b.ok(err)
			}
		}
	}
	same := func(what string, id specialist.SessionID) {
		t.Helper()
		got, want := b.load(id), b.fold(id)
		if got.Head == nil || !reflect.DeepEqual(got.View(), want.View()) || len(got.History()) != len(want.History()) || !reflect.DeepEqual(openOf(got), openOf(want)) {
			t.Fatalf("%s: the session is\n%+v\nfolded from the beginning it is\n%+v", what, got.View(), want.View())
		}
		for i, e := range want.History() {
			if g := got.History()[i]; g.Key(id) != e.Key(id) || g.Reasoning != e.Reasoning || g.Transition.Name != e.Transition.Name || g.Visits != e.Visits {
				t.Fatalf("%s: transition %d is %+v instead of %+v", what, i, g, e)
			}
		}
	}
	steps(s.ID, 20)
	if at := m.Snapshot(t, b.store, s.ID); at != 0 {
		t.Errorf("a session at event %d has a snapshot at %d", b.load(s.ID).Sequence, at)
	}
	steps(s.ID, 90)
	at := m.Snapshot(t, b.store, s.ID)
	if now := b.load(s.ID); at == 0 || at < now.Sequence-300 || at > now.Sequence {
		t.Fatalf("a session at event %d has its newest snapshot at %d", now.Sequence, at)
	}
	for range 12 {
		b.open(m) // which has folded nothing
		same("loaded anew", s.ID)
		steps(s.ID, 1)
	}
	fork, err := b.r.Fork(b.ctx, s.ID, runner.Forking{At: 40})
	for at := int64(41); err != nil && at < 60; at++ { // 40 may be inside of a record
		fork, err = b.r.Fork(b.ctx, s.ID, runner.Forking{At: at})
	}
	b.ok(err)
	if at := m.Snapshot(t, b.store, fork.ID); at != 0 {
		t.Errorf("a fork has a snapshot at %d", at)
	}
	b.open(m)
	same("forked", fork.ID)
	if fork = b.load(fork.ID); fork.Executed >= b.load(s.ID).Executed {
		t.Errorf("a fork from before has %d transitions, the other session %d", fork.Executed, b.load(s.ID).Executed)
	}
	steps(fork.ID, 2)
	b.open(m)
	same("forked, and gone on", fork.ID)
	same("the other one", s.ID)
	b.open(m)
	b.batch(s.ID, fork.ID, b.start().ID)
}

// batch fails unless sessions that are loaded together, twice, are those that are loaded one by one, if the store does that. One
// that nobody knows is left out.
func (b *bench) batch(ids ...specialist.SessionID) {
	b.Helper()
	s, ok := b.store.(session.BatchLoader)
	if !ok {
		return
	}
	for range 2 {
		all, err := s.LoadBatch(b.ctx, session.NewPrograms(), append([]specialist.SessionID{{1}}, ids...))
		if b.ok(err); len(all) != len(ids) {
			b.Fatalf("%d sessions of %d are loaded together", len(all), len(ids))
		}
		for _, id := range ids {
			is, want := all[id], b.load(id)
			if session.Summarize(is) != session.Summarize(want) || *is.Head != *want.Head || !reflect.DeepEqual(openOf(is), openOf(want)) || string(is.Snapshot()) != string(want.Snapshot()) {
				b.Errorf("loaded with others, session %s is %+v, want %+v", id, is, want)
			}
		}
	}
}

// openOf returns what is open in a session, without what says only how it came about.
func openOf(s *session.Session) []any {
	var open []any
	for _, p := range s.Proposals() {
		open = append(open, *p)
	}
	for _, a := range s.OpenAsks() {
		open = append(open, a)
	}
	return append(open, s.Notices())
}

// Long starts a session in a store, has a human rule in so many rounds that it goes on, and returns it.
func Long(t testing.TB, s session.Store, n int) specialist.SessionID {
	t.Helper()
	r, err := runner.New(runner.Config{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	m, err := machine.Parse("storetest.json", []byte(definition), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	is, err := r.Start(t.Context(), m, runner.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	Rule(t, s, is.ID, n)
	return is.ID
}

// Rule has a human rule in so many rounds of such a session that it goes on.
func Rule(t testing.TB, s session.Store, id specialist.SessionID, n int) {
	t.Helper()
	r, err := runner.New(runner.Config{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for range n {
		if _, _, err := r.Propose(t.Context(), runner.Submission{SessionID: id, RoundID: runner.CurrentRound, SpecialistID: "first"}); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Decide(t.Context(), runner.Ruling{SessionID: id, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "again", Reasoning: "because"}); err != nil {
			t.Fatal(err)
		}
	}
}
