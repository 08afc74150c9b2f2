// Package storetest is the one suite that every store passes: the contract of
// [runner.Store], line by line. It goes through the runner, so that what is
// stored is what real sessions store.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/strategies"
)

// A Maker makes stores for one test. Open returns a store over the same data
// each time it is called, as another process would see it; for stores that live
// in one process it returns the same store.
type Maker struct {
	Open func(t *testing.T) runner.Store
	// Durable says that Open makes a new store over old data.
	Durable bool
}

// Run runs the suite. make is called for every test.
func Run(t *testing.T, maker func(t *testing.T) Maker) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, m Maker)
	}{
		{"commit and load", testCommitLoad},
		{"compare and swap", testCompareAndSwap},
		{"create twice", testCreateTwice},
		{"not found", testNotFound},
		{"copies", testCopies},
		{"records chain and fold", testRecords},
		{"records from a sequence number", testRecordsFrom},
		{"list", testList},
		{"definitions", testDefinitions},
		{"book", testBook},
		{"exemplars newest N", testExemplars},
		{"lessons in commit order", testLessons},
		{"reviews", testReviews},
		{"decisions newest N", testDecisions},
		{"log in commit order", testLog},
		{"roster", testRoster},
		{"owners", testOwners},
		{"secret", testSecret},
		{"audit", testAudit},
		{"one winner of many", testOneWinner},
		{"many sessions at once", testManySessions},
		{"reopen", testReopen},
		{"unicode and large values", testValues},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, maker(t)) })
	}
}

const definition = `{
  "machineName": "storetest", "initialState": "open", "goalState": "done",
  "states": {
    "open": { "prompt": "Which way?", "transitions": { "finish": "done", "again": "open", "park": "parked" } },
    "parked": { "transitions": { "back": "open" }, "specialists": [ { "role": "proposer", "specialistId": "local", "strategyFnName": "firstAvailable" } ] },
    "done": {}
  },
  "specialists": [
    { "role": "proposer", "specialistId": "human", "isHuman": true },
    { "role": "proposer", "specialistId": "first", "strategyFnName": "firstAvailable" },
    { "role": "proposer", "specialistId": "second", "strategyFnName": "lastAvailable" },
    { "role": "arbiter", "specialistId": "arbiter", "strategyFnName": "alignmentMargin", "threshold": 0.5 }
  ]
}`

// A bench is a runner over a store under test.
type bench struct {
	*testing.T
	ctx   context.Context
	store runner.Store
	r     *runner.Runner
	m     *machine.Machine
	clock *clock
}

// clock is a clock that moves a second with each reading, so that every commit
// has a time of its own.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(time.Second)
	return c.now
}

func newBench(t *testing.T, m Maker) *bench {
	b := &bench{T: t, ctx: context.Background(), clock: &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}}
	b.open(m)
	b.m = b.parse(definition)
	return b
}

func (b *bench) parse(definition string) *machine.Machine {
	b.Helper()
	m, err := machine.Parse("storetest.json", []byte(definition), runner.Checks())
	b.ok(err)
	return m
}

// open opens the store as another process would.
func (b *bench) open(m Maker) {
	b.Helper()
	b.store = m.Open(b.T)
	r, err := runner.New(runner.Config{Store: b.store, Now: b.clock.read, Registry: strategies.Registry{}})
	b.ok(err)
	b.r = r
	b.Cleanup(func() { b.ok(r.Close()) })
}

func (b *bench) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) start() *runner.Session {
	b.Helper()
	s, err := b.r.Start(b.ctx, b.m, runner.StartOptions{})
	b.ok(err)
	return s
}

func (b *bench) load(id specialist.SessionID) *runner.Session {
	b.Helper()
	s, err := b.store.Load(b.ctx, runner.NewPrograms(), id)
	b.ok(err)
	return s
}

// decide has a human decide the current round of a session, after everybody has
// proposed.
func (b *bench) decide(id specialist.SessionID, transition string) runner.Arbitration {
	b.Helper()
	asked := []string{"first", "second"}
	if b.load(id).State.Name == "parked" {
		asked = []string{"local"}
	}
	for _, who := range asked {
		_, _, err := b.r.Propose(b.ctx, runner.Submission{SessionID: id, SpecialistID: who})
		b.ok(err)
	}
	return b.force(id, transition)
}

func (b *bench) force(id specialist.SessionID, transition string) runner.Arbitration {
	b.Helper()
	a, err := b.r.Decide(b.ctx, runner.Ruling{SessionID: id, SpecialistID: "human", TransitionName: transition, Reasoning: "because"})
	b.ok(err)
	if !a.Executed {
		b.Fatalf("the ruling %q was refused: %s", transition, a.GuardReason)
	}
	return a
}

// change returns a change that ends the session, for commits by hand.
func (b *bench) change(s *runner.Session) *runner.Change {
	b.Helper()
	f := &runner.Folder{Programs: runner.NewPrograms(), Definition: func(string) ([]byte, error) { return b.m.JSON(), nil }}
	for rec, err := range b.store.Records(b.ctx, s.ID, 0) {
		b.ok(err)
		_, err := f.Add(rec.Events)
		b.ok(err)
	}
	events := []runner.Event{{At: specialist.TimeOf(b.clock.read()), Data: &runner.Ended{Status: runner.Stopped, Code: "test", Reason: "by hand"}}}
	raw := runner.AppendEvents(nil, s.Key(), s.Sequence+1, events)
	_, err := f.Add(raw)
	b.ok(err)
	return &runner.Change{Before: s, After: f.Session(), First: s.Sequence + 1, Events: events}
}

func testCommitLoad(t *testing.T, m Maker) {
	b := newBench(t, m)
	s := b.start()
	if got := b.load(s.ID); runner.Summarize(got) != runner.Summarize(s) {
		t.Fatalf("Load = %+v, want %+v", runner.Summarize(got), runner.Summarize(s))
	}
	c := b.change(b.load(s.ID))
	b.ok(b.store.Commit(b.ctx, c))
	got := b.load(s.ID)
	if got.Status != runner.Stopped || got.Sequence != s.Sequence+1 || got.Outcome().Reason != "by hand" {
		t.Fatalf("after Commit, Load = %+v", runner.Summarize(got))
	}
}

func testCompareAndSwap(t *testing.T, m Maker) {
	b := newBench(t, m)
	s := b.load(b.start().ID)
	first, second := b.change(s), b.change(s)
	b.ok(b.store.Commit(b.ctx, first))
	if err := b.store.Commit(b.ctx, second); !errors.Is(err, runner.ErrStale) {
		t.Fatalf("a commit on an old session = %v, want ErrStale", err)
	}
	if got := b.load(s.ID); got.Sequence != first.After.Sequence {
		t.Fatalf("the lost commit left sequence %d, want %d", got.Sequence, first.After.Sequence)
	}
	n := 0
	for _, err := range b.store.Records(b.ctx, s.ID, 0) {
		b.ok(err)
		n++
	}
	if n != 2 {
		t.Fatalf("the lost commit left %d records, want 2", n)
	}
}

func testCreateTwice(t *testing.T, m Maker) {
	b := newBench(t, m)
	s := b.start()
	r, err := runner.New(runner.Config{Store: b.store, NewID: func() specialist.SessionID { return s.ID }})
	b.ok(err)
	if _, err := r.Start(b.ctx, b.m, runner.StartOptions{}); !errors.Is(err, runner.ErrExists) {
		t.Fatalf("a second session of the same id = %v, want ErrExists", err)
	}
}

func testNotFound(t *testing.T, m Maker) {
	b := newBench(t, m)
	unknown := specialist.SessionID{1, 2, 3}
	if _, err := b.store.Load(b.ctx, runner.NewPrograms(), unknown); !errors.Is(err, runner.ErrNotFound) {
		t.Errorf("Load of an unknown session = %v, want ErrNotFound", err)
	}
	for _, err := range b.store.Records(b.ctx, unknown, 0) {
		if !errors.Is(err, runner.ErrNotFound) {
			t.Errorf("Records of an unknown session = %v, want ErrNotFound", err)
		}
	}
	s := b.load(b.start().ID)
	c := b.change(s)
	c.After.ID = unknown
	if err := b.store.Commit(b.ctx, c); !errors.Is(err, runner.ErrNotFound) && !errors.Is(err, runner.ErrStale) {
		t.Errorf("Commit to an unknown session = %v, want ErrNotFound", err)
	}
	book, err := b.store.Book(b.ctx, "nobody")
	b.ok(err)
	if n := len(book.Records("nobody")); n != 0 {
		t.Errorf("an unknown machine has %d alignment records", n)
	}
}

func testCopies(t *testing.T, m Maker) {
	b := newBench(t, m)
	s := b.load(b.start().ID)
	c := b.change(s)
	b.ok(b.store.Commit(b.ctx, c))
	c.Events[0] = runner.Event{} // the store keeps no reference to the slice
	for rec, err := range b.store.Records(b.ctx, s.ID, c.First) {
		b.ok(err)
		if raw, err := runner.DecodeRaw(rec.Events); err != nil || raw[0].Kind != runner.KindEnded {
			t.Fatalf("the record changed with the caller's slice: %s (%v)", rec.Events, err)
		}
	}
}

func testRecords(t *testing.T, m Maker) {
	b := newBench(t, m)
	s := b.start()
	for _, transition := range []string{"again", "park", "back", "again", "finish"} {
		b.decide(s.ID, transition)
	}
	var prev runner.Hash
	next := int64(1)
	f := &runner.Folder{Programs: runner.NewPrograms(), Definition: func(string) ([]byte, error) { return b.m.JSON(), nil }}
	for rec, err := range b.store.Records(b.ctx, s.ID, 0) {
		b.ok(err)
		if rec.First != next || rec.Prev != prev {
			t.Fatalf("record at %d follows %x, want %d and %x", rec.First, rec.Prev, next, prev)
		}
		if want := runner.Chain(prev, s.ID.String(), rec.Events); rec.Hash != want {
			t.Fatalf("hash of the record at %d = %s, want %s", rec.First, rec.Hash, want)
		}
		events, err := f.Add(rec.Events)
		b.ok(err)
		prev, next = rec.Hash, next+int64(len(events))
	}
	if got, want := runner.Summarize(f.Session()), runner.Summarize(b.load(s.ID)); got != want {
		t.Fatalf("the folded log is %+v, the session %+v", got, want)
	}
}

func testRecordsFrom(t *testing.T, m Maker) {
	b := newBench(t, m)
	s := b.start()
	b.decide(s.ID, "again")
	b.decide(s.ID, "again")
	var all []runner.StoredRecord
	for rec, err := range b.store.Records(b.ctx, s.ID, 0) {
		b.ok(err)
		all = append(all, rec)
	}
	for from := int64(0); from <= b.load(s.ID).Sequence+1; from++ {
		want := slices.IndexFunc(all, func(r runner.StoredRecord) bool {
			raw, err := runner.DecodeRaw(r.Events)
			b.ok(err)
			return r.First+int64(len(raw))-1 >= from
		})
		var got []int64
		for rec, err := range b.store.Records(b.ctx, s.ID, from) {
			b.ok(err)
			got = append(got, rec.First)
		}
		if want < 0 && len(got) > 1 || want >= 0 && (len(got) != len(all)-want || got[0] != all[want].First) {
			t.Fatalf("Records from %d begin at %v, want the record at index %d of %d", from, got, want, len(all))
		}
	}
}

func testList(t *testing.T, m Maker) {
	b := newBench(t, m)
	var ids []string
	for range 5 {
		ids = append(ids, b.start().ID.String())
	}
	b.force(b.id(ids[1]), "finish")
	_, err := b.r.Step(b.ctx, b.id(ids[2])) // no consensus: waits for a human
	b.ok(err)
	ended := b.load(b.id(ids[1])).UpdatedAt
	for _, c := range []struct {
		query runner.ListQuery
		want  []string
	}{
		{runner.ListQuery{}, ids},
		{runner.ListQuery{Since: ended}, ids},
		{runner.ListQuery{Since: ended + 1}, []string{ids[0], ids[2], ids[3], ids[4]}},
		{runner.ListQuery{Since: ended + 1, Limit: 1}, ids[4:]},
		{runner.ListQuery{Limit: 2}, ids[3:]},
		{runner.ListQuery{Live: true}, []string{ids[0], ids[2], ids[3], ids[4]}},
		{runner.ListQuery{Live: true, Limit: 3}, []string{ids[2], ids[3], ids[4]}},
		{runner.ListQuery{Waiting: true}, []string{ids[2]}},
		{runner.ListQuery{MachineName: "storetest"}, ids},
		{runner.ListQuery{MachineName: "other"}, []string{}},
	} {
		list, err := b.store.List(b.ctx, c.query)
		b.ok(err)
		got := []string{}
		for _, s := range list {
			got = append(got, s.SessionID)
			if want := runner.Summarize(b.load(b.id(s.SessionID))); s != want {
				t.Errorf("List shows %+v, the session is %+v", s, want)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("List(%+v) = %v, want %v", c.query, got, c.want)
		}
	}
}

func (b *bench) id(s string) specialist.SessionID {
	b.Helper()
	id, err := runner.ParseID(s)
	b.ok(err)
	return id
}

func testDefinitions(t *testing.T, m Maker) {
	b := newBench(t, m)
	b.start()
	b.start()
	changed := *b.m.Definition()
	changed.ConsensusThreshold = &machine.Threshold{Given: 0.25, Weight: 250_000_000}
	other, err := machine.Compile(&changed, runner.Checks())
	b.ok(err)
	_, err = b.r.Start(b.ctx, other, runner.StartOptions{})
	b.ok(err)
	got, err := b.store.Definitions(b.ctx, "storetest")
	b.ok(err)
	if len(got) != 2 || string(got[0]) != string(other.JSON()) || string(got[1]) != string(b.m.JSON()) {
		t.Fatalf("Definitions = %d entries %s, want both, the newest first", len(got), got)
	}
}

func testBook(t *testing.T, m Maker) {
	b := newBench(t, m)
	s := b.start()
	b.decide(s.ID, "again")
	b.decide(s.ID, "park")
	b.decide(s.ID, "back")
	b.decide(s.ID, "finish")
	book, err := b.store.Book(b.ctx, "storetest")
	b.ok(err)
	got := fmt.Sprint()
	for _, r := range book.Records("storetest") {
		got += fmt.Sprintf("%s %q %d/%d\n", r.SpecialistID, r.State, r.MatchingChoices, r.TotalComparisons)
	}
	// first always proposes finish and second park; local proposes back, and is
	// counted in its own state.
	want := "first \"\" 1/3\nlocal \"parked\" 1/1\nsecond \"\" 1/3\n"
	if got != want {
		t.Fatalf("the book is\n%swant\n%s", got, want)
	}
}

func testExemplars(t *testing.T, m Maker) {
	b := newBench(t, m)
	s := b.start()
	var want []string
	for i := range 30 {
		a, err := b.r.Decide(b.ctx, runner.Ruling{SessionID: s.ID, SpecialistID: "human", TransitionName: "again", Reasoning: fmt.Sprint("reason ", i)})
		b.ok(err)
		if !a.Executed {
			t.Fatal(a.GuardReason)
		}
		want = append(want, fmt.Sprint("reason ", i))
	}
	got, err := b.store.Exemplars(b.ctx, "storetest", "open", 10)
	b.ok(err)
	reasons := []string{}
	for _, e := range got {
		reasons = append(reasons, e.Reasoning)
	}
	if !slices.Equal(reasons, want[20:]) {
		t.Fatalf("Exemplars(10) = %v, want the newest ten, the oldest first", reasons)
	}
	if all, err := b.store.Exemplars(b.ctx, "storetest", "", 0); err != nil || len(all) != 30 {
		t.Fatalf("of all states there are %d exemplars (%v), want 30", len(all), err)
	}
	if none, err := b.store.Exemplars(b.ctx, "storetest", "parked", 0); err != nil || len(none) != 0 {
		t.Fatalf("a state without decisions has %d exemplars (%v)", len(none), err)
	}
}

func testLessons(t *testing.T, m Maker) {
	b := newBench(t, m)
	one, two := b.start(), b.start()
	var want []string
	for i := range 12 {
		s := []*runner.Session{one, two}[i%3%2]
		want = append(want, b.load(s.ID).Key().ID()+" again")
		b.decide(s.ID, "again")
	}
	read := func(after int64) (got []string, places []int64) {
		for l, err := range b.store.Lessons(b.ctx, after) {
			b.ok(err)
			o := l.Outcome
			got, places = append(got, o.Round+" "+o.Truth), append(places, l.Seq)
			if o.Machine != "storetest" || o.State != "open" || len(o.Options) == 0 || len(o.Proposals) == 0 {
				t.Errorf("an outcome is %+v", o)
			}
		}
		return got, places
	}
	got, places := read(0)
	if !slices.Equal(got, want) || places[0] <= 0 || !slices.IsSorted(places) || len(slices.Compact(slices.Clone(places))) != len(want) {
		t.Fatalf("the lessons are %v at %v, want %v", got, places, want)
	}
	if rest, _ := read(places[4]); !slices.Equal(rest, want[5:]) {
		t.Errorf("after the fifth come %v, want %v", rest, want[5:])
	}
	if rest, _ := read(places[11]); len(rest) != 0 {
		t.Errorf("after the last come %v", rest)
	}
	for range b.store.Lessons(b.ctx, 0) {
		break // a reader may stop at any time
	}
	b.open(m)
	if again, at := read(0); !slices.Equal(again, want) || !slices.Equal(at, places) {
		t.Errorf("reopened, the lessons are %v at %v, they were %v at %v", again, at, want, places)
	}
}

// reviewed is a machine whose every automatic decision is audited.
const reviewed = `{"machineName":"reviewed","initialState":"open","goalState":"done","states":{"open":{"transitions":{"finish":"done","again":"open"}},"done":{}},
	"specialists":[{"role":"proposer","specialistId":"human","isHuman":true},{"role":"proposer","specialistId":"p","strategyFnName":"firstAvailable"},
	{"role":"arbiter","specialistId":"arbiter","strategyFnName":"firstProposal"}],"audit":{"rate":1}}`

func testReviews(t *testing.T, m Maker) {
	b := newBench(t, m)
	b.start()
	def, err := machine.Parse("reviewed.json", []byte(reviewed), runner.Checks())
	b.ok(err)
	s, err := b.r.Start(b.ctx, def, runner.StartOptions{})
	b.ok(err)
	_, err = b.r.Step(b.ctx, s.ID)
	b.ok(err)
	b.open(m)
	list, err := b.store.List(b.ctx, runner.ListQuery{Reviews: true})
	if err != nil || len(list) != 1 || list[0].SessionID != s.ID.String() || list[0].Reviews != 1 || list[0].Status != runner.Completed {
		t.Fatalf("the sessions with reviews are %+v (%v)", list, err)
	}
	_, err = b.r.Review(b.ctx, runner.Reviewing{SessionID: s.ID, RoundID: s.Key().ID(), SpecialistID: "human", TransitionName: "again"})
	b.ok(err)
	b.open(m)
	if list, err = b.store.List(b.ctx, runner.ListQuery{Reviews: true}); err != nil || len(list) != 0 {
		t.Errorf("after the review there are %+v (%v)", list, err)
	}
	n := 0
	for l, err := range b.store.Lessons(b.ctx, 0) {
		b.ok(err)
		if n++; l.Outcome == nil || !l.Outcome.Automatic || l.Outcome.Truth != "again" || l.Outcome.Pick != "finish" {
			t.Errorf("the review taught %+v", l)
		}
	}
	if n != 1 {
		t.Errorf("there are %d lessons", n)
	}
}

// testLog checks that the log of a machine holds every record of its sessions, in
// commit order and at the places of their lessons.
func testLog(t *testing.T, m Maker) {
	b := newBench(t, m)
	mine := b.m
	sessions := []*runner.Session{b.start(), nil, b.start()}
	b.m = b.parse(strings.Replace(definition, "storetest", "other", 1))
	sessions[1] = b.start()
	b.m = mine
	for range 3 {
		for _, s := range sessions {
			b.force(s.ID, "again")
		}
	}
	placed := map[int64]bool{}
	for l, err := range b.store.Lessons(b.ctx, 0) {
		b.ok(err)
		placed[l.Seq] = true
	}
	for _, c := range []struct {
		machine  string
		sessions []*runner.Session
		learned  int
	}{{"storetest", []*runner.Session{sessions[0], sessions[2]}, 6}, {"other", sessions[1:2], 3}, {"", sessions, 9}, {"nobody", nil, 0}} {
		got, want := map[string]string{}, map[string]string{}
		last, learned := int64(0), 0
		for e, err := range b.store.Log(b.ctx, c.machine) {
			b.ok(err)
			if e.Place <= last || c.machine != "" && e.MachineName != c.machine {
				t.Fatalf("entry %d of machine %q follows %d", e.Place, e.MachineName, last)
			}
			last = e.Place
			got[e.Session.String()] += fmt.Sprintln(e.First, string(e.Events))
			if placed[e.Place] {
				learned++
			}
		}
		for _, s := range c.sessions {
			for r, err := range b.store.Records(b.ctx, s.ID, 0) {
				b.ok(err)
				want[s.ID.String()] += fmt.Sprintln(r.First, string(r.Events))
			}
		}
		if !maps.Equal(got, want) || learned != c.learned {
			t.Errorf("the log of %q has %d sessions and %d outcomes:\n%v\nwant\n%v", c.machine, len(got), learned, got, want)
		}
	}
}

func testDecisions(t *testing.T, m Maker) {
	b := newBench(t, m)
	s, other := b.start(), b.start()
	for i := range 30 {
		id := s.ID
		if i%3 == 0 {
			id = other.ID
		}
		b.decide(id, "again")
	}
	all, err := b.r.Decisions(b.ctx, "storetest", "", 0)
	b.ok(err)
	newest, err := b.r.Decisions(b.ctx, "storetest", "", 10)
	b.ok(err)
	if len(all) != 30 || len(newest) != 10 {
		t.Fatalf("there are %d decisions, %d of the newest 10", len(all), len(newest))
	}
	for i, d := range newest {
		if d.DecisionID != all[20+i].DecisionID {
			t.Fatalf("newest[%d] is %s, want %s", i, d.DecisionID, all[20+i].DecisionID)
		}
		if i > 0 && d.Timestamp < newest[i-1].Timestamp {
			t.Fatalf("newest[%d] is older than the one before it", i)
		}
		if len(d.Proposals) != 2 || !d.IsHuman || d.ConsensusMargin != nil || d.Kind != "forced" {
			t.Fatalf("decision %+v, want a forced one with two proposals and no margin", d)
		}
	}
	n, err := b.store.DecidedSince(b.ctx, "storetest", all[25].Timestamp, 100)
	b.ok(err)
	if n != 5 {
		t.Fatalf("DecidedSince the 26th of 30 = %d, want 5", n)
	}
	if n, err = b.store.DecidedSince(b.ctx, "storetest", 0, 7); err != nil || n != 7 {
		t.Fatalf("DecidedSince with limit 7 = %d (%v)", n, err)
	}
}

func testRoster(t *testing.T, m Maker) {
	b := newBench(t, m)
	roster, err := b.store.Roster(b.ctx, "storetest")
	b.ok(err)
	if roster.Sequence != 0 {
		t.Fatalf("a fresh roster has sequence %d", roster.Sequence)
	}
	third := machine.Specialist{Role: machine.Proposer, SpecialistID: "third", StrategyFnName: "random"}
	if _, err := b.r.Register(b.ctx, "storetest", third); err != nil {
		t.Fatal(err)
	}
	if _, err := b.r.Register(b.ctx, "storetest", third); !errors.Is(err, runner.ErrExists) {
		t.Fatalf("registering twice = %v, want ErrExists", err)
	}
	b.ok(b.r.Disable(b.ctx, "storetest", "third"))
	if roster, err = b.store.Roster(b.ctx, "storetest"); err != nil || roster.Sequence != 2 || !roster.Off["third"] {
		t.Fatalf("the roster is %+v (%v)", roster, err)
	}
	stale := runner.RosterEvent{Kind: runner.KindEnabled, ID: "third"}
	if err := b.store.Register(b.ctx, "storetest", 1, stale); !errors.Is(err, runner.ErrStale) {
		t.Fatalf("registering on an old roster = %v, want ErrStale", err)
	}
	var prev runner.Hash
	n := 0
	for rec, err := range b.store.RosterRecords(b.ctx, "storetest") {
		b.ok(err)
		n++
		if rec.Prev != prev || rec.Hash != runner.Chain(prev, "storetest", rec.Events) || rec.First != int64(n) {
			t.Fatalf("roster record %d does not chain", n)
		}
		prev = rec.Hash
	}
	if n != 2 {
		t.Fatalf("there are %d roster records, want 2", n)
	}
}

func testOwners(t *testing.T, m Maker) {
	b := newBench(t, m)
	one, err := b.store.Claim(b.ctx)
	b.ok(err)
	two, err := b.store.Claim(b.ctx)
	b.ok(err)
	if one.Name() == two.Name() || one.Name() == "" {
		t.Fatalf("owners are called %q and %q", one.Name(), two.Name())
	}
	b.ok(one.Release())
	for name, want := range map[string]bool{one.Name(): false, two.Name(): true, "": false, "nobody": false, "../../etc/passwd": false} {
		if alive, err := b.store.Alive(b.ctx, name); err != nil || alive != want {
			t.Errorf("Alive(%q) = %t (%v), want %t", name, alive, err, want)
		}
	}
	b.ok(two.Release())
}

func testSecret(t *testing.T, m Maker) {
	b := newBench(t, m)
	one, err := b.store.Secret(b.ctx)
	b.ok(err)
	b.open(m)
	two, err := b.store.Secret(b.ctx)
	b.ok(err)
	if len(one) != 32 || string(one) != string(two) || string(one) == string(make([]byte, 32)) {
		t.Fatalf("the secret is %x and then %x", one, two)
	}
}

// testAudit: entries are kept as they are, each with its session, in order.
func testAudit(t *testing.T, m Maker) {
	b := newBench(t, m)
	s, other := b.start(), b.start()
	fault, name := "no: \u202e\x00", "storetest"
	list := []specialist.AuditEntry{
		{AuditEntryID: "1", SessionID: s.ID.String(), SpecialistID: "m", MachineName: &name, Timestamp: 1, RequestHeaders: map[string]string{"A": "b"}, RequestBody: "{}", Attempt: 1, Purpose: "ask"},
		{AuditEntryID: "2", SessionID: s.ID.String(), SpecialistID: "m", Timestamp: 2, RequestHeaders: map[string]string{}, ResponseStatus: 429, ResponseBody: "slow\n", Error: &fault, Attempt: 2, Purpose: "repair"},
	}
	for _, e := range []specialist.AuditEntry{list[0], {SessionID: other.ID.String(), AuditEntryID: "x"}, {AuditEntryID: "of no session"}, list[1]} {
		b.ok(b.store.AppendAudit(b.ctx, e))
	}
	b.open(m)
	var got []specialist.AuditEntry
	for e, err := range b.store.Audit(b.ctx, s.ID) {
		b.ok(err)
		got = append(got, e)
	}
	if !reflect.DeepEqual(got, list) {
		t.Errorf("kept is %+v, want %+v", got, list)
	}
	for e := range b.store.Audit(b.ctx, specialist.SessionID{1}) {
		t.Errorf("an unknown session has %+v", e)
	}
	for range b.store.Audit(b.ctx, s.ID) {
		break
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if err := b.store.AppendAudit(b.ctx, list[0]); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	n := 0
	for range b.store.Audit(b.ctx, s.ID) {
		n++
	}
	if n != 22 {
		t.Errorf("%d entries, want 22", n)
	}
}

// testOneWinner lets many goroutines force and step the same rounds: each round
// has one winner, and nobody's decision is lost without being told.
func testOneWinner(t *testing.T, m Maker) {
	b := newBench(t, m)
	s := b.start()
	const workers, each = 32, 5
	var wg sync.WaitGroup
	executed := make([]int, workers)
	for w := range workers {
		wg.Go(func() {
			for range each {
				if w%4 == 0 {
					if _, err := b.r.Step(b.ctx, s.ID); err != nil {
						t.Error(err)
					}
					continue
				}
				now, err := b.r.Session(b.ctx, s.ID.String())
				if err != nil {
					t.Error(err)
					return
				}
				a, err := b.r.Decide(b.ctx, runner.Ruling{SessionID: s.ID, SpecialistID: "human", RoundID: now.Key().ID(), TransitionName: "again"})
				if err != nil {
					t.Error(err)
				} else if a.Executed {
					executed[w]++
				} else if !a.Stale {
					t.Errorf("refused: %s", a.GuardReason)
				}
			}
		})
	}
	wg.Wait()
	total := 0
	for _, n := range executed {
		total += n
	}
	last := b.load(s.ID)
	if int(last.Executed) != total || int(last.Round) != total+1 {
		t.Fatalf("%d rulings were executed, the session has %d transitions and is in round %d", total, last.Executed, last.Round)
	}
}

func testManySessions(t *testing.T, m Maker) {
	b := newBench(t, m)
	const sessions, rounds = 16, 5
	var wg sync.WaitGroup
	ids := make([]specialist.SessionID, sessions)
	for i := range ids {
		ids[i] = b.start().ID
	}
	for _, id := range ids {
		wg.Go(func() {
			for range rounds {
				if a, err := b.r.Decide(b.ctx, runner.Ruling{SessionID: id, SpecialistID: "human", TransitionName: "again"}); err != nil || !a.Executed {
					t.Errorf("%v %s", err, a.GuardReason)
				}
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		if s := b.load(id); s.Executed != rounds {
			t.Errorf("session %s has %d transitions, want %d", id, s.Executed, rounds)
		}
	}
}

func testReopen(t *testing.T, m Maker) {
	if !m.Durable {
		t.Log("this store lives in one process: reopening gives the same one")
	}
	b := newBench(t, m)
	s := b.start()
	rng := rand.New(rand.NewPCG(1, 2))
	choices := map[string][]string{"open": {"again", "park"}, "parked": {"back"}}
	for range 20 {
		before := b.load(s.ID)
		b.open(m)
		after := b.load(s.ID)
		if runner.Summarize(before) != runner.Summarize(after) || len(before.Proposals()) != len(after.Proposals()) || before.Spent() != after.Spent() {
			t.Fatalf("reopened, the session is %+v, it was %+v", runner.Summarize(after), runner.Summarize(before))
		}
		legal := choices[after.State.Name]
		if rng.IntN(2) == 0 {
			_, err := b.r.Step(b.ctx, s.ID)
			b.ok(err)
			continue
		}
		b.force(s.ID, legal[rng.IntN(len(legal))])
	}
}

func testValues(t *testing.T, m Maker) {
	b := newBench(t, m)
	meta := `{"text":"añ\u0000b \ud83d\ude00 ' \" % _ \\ </script>","n":12345678901234567890.5,"deep":[[[[1]]]],"big":"` + string(make([]byte, 0)) + `"}`
	s, err := b.r.Start(b.ctx, b.m, runner.StartOptions{Meta: []byte(meta), Seed: 1<<64 - 1})
	b.ok(err)
	reasoning := "line\nline\ttab \x00 \u2028 'quoted' 世界"
	a, err := b.r.Decide(b.ctx, runner.Ruling{SessionID: s.ID, SpecialistID: "human", TransitionName: "again", Reasoning: reasoning, MetaJSON: []byte(`{"k":[1.10,2e3]}`)})
	b.ok(err)
	if !a.Executed {
		t.Fatal(a.GuardReason)
	}
	b.open(m)
	got := b.load(s.ID)
	if got.Options().Seed != 1<<64-1 || string(got.Options().Meta) != string(s.Options().Meta) {
		t.Errorf("metaJson is %s, want %s", got.Options().Meta, s.Options().Meta)
	}
	if e := got.Last(); e.Reasoning != reasoning || string(e.MetaJSON) != `{"k":[1.10,2e3]}` {
		t.Errorf("the record holds %q and %s", e.Reasoning, e.MetaJSON)
	}
}
