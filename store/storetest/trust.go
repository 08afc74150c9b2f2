package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// What human decisions taught: books, exemplars, lessons, rosters and their log.

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
		a, err := b.r.Decide(b.ctx, runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "again", Reasoning: fmt.Sprint("reason ", i)})
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
		s := []*session.Session{one, two}[i%3%2]
		want = append(want, b.load(s.ID).Key().ID()+" again")
		b.decide(s.ID, "again")
	}
	read := func(after int64) (got []string, places []int64) {
		for _, l := range all(b, b.store.Lessons(b.ctx, after)) {
			o := l.Outcome
			got, places = append(got, o.Round+" "+o.Truth), append(places, l.Seq)
			if o.Machine != "storetest" || o.State != "open" || len(o.Options) == 0 || len(o.Proposals) == 0 || l.At == 0 {
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

// testLedgerSnapshots: of what is kept the three with the highest places are left, the highest
// first, whoever reads them; a store that keeps none passes.
func testLedgerSnapshots(t *testing.T, m Maker) {
	b := newBench(t, m)
	keeper, ok := b.store.(session.LedgerKeeper)
	if !ok {
		t.Skip("the store keeps no snapshots of the ledger")
	}
	if none := all(b, keeper.LedgerSnapshots(b.ctx, "")); len(none) != 0 {
		t.Fatalf("a new store keeps %d", len(none))
	}
	body := []byte("body")
	for _, place := range []int64{2000, 4000, 1000, 5000, 3000, 4000} {
		body[0] = byte(place / 1000)
		for _, scope := range []string{"", "a scope"} {
			b.ok(keeper.KeepLedger(b.ctx, session.LedgerSnapshot{Scope: scope, Place: place + int64(len(scope)), Format: len(body) + int(place), Body: body}))
		}
		body[0] = 0 // the store keeps no reference to it
		body = append(body, "\x00 and more"...)
	}
	for range 2 {
		var got []string
		for _, scope := range []string{"", "a scope", "another"} {
			for _, l := range all(b, keeper.LedgerSnapshots(b.ctx, scope)) {
				got = append(got, fmt.Sprintf("%s%d %d %d %d", l.Scope, l.Place, l.Format-int(l.Place)+len(scope), len(l.Body), l.Body[0]))
				clear(l.Body) // it may be kept, and is the reader's
			}
		}
		want := []string{"5000 34 34 5", "4000 54 54 4", "3000 44 44 3", "a scope5007 34 34 5", "a scope4007 54 54 4", "a scope3007 44 44 3"}
		if !slices.Equal(got, want) {
			t.Fatalf("of six snapshots of each scope are kept %v, want %v", got, want)
		}
		b.open(m)
		keeper = b.store.(session.LedgerKeeper)
	}
	for range keeper.LedgerSnapshots(b.ctx, "") {
		break // a reader may stop at any time
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
	list, err := b.store.List(b.ctx, session.ListQuery{Reviews: true})
	if err != nil || len(list) != 1 || list[0].SessionID != s.ID || list[0].Reviews != 1 || list[0].Status != session.Completed {
		t.Fatalf("the sessions with reviews are %+v (%v)", list, err)
	}
	_, err = b.r.Review(b.ctx, runner.Reviewing{SessionID: s.ID, RoundID: s.Key().ID(), SpecialistID: "human", TransitionName: "again"})
	b.ok(err)
	b.open(m)
	if list, err = b.store.List(b.ctx, session.ListQuery{Reviews: true}); err != nil || len(list) != 0 {
		t.Errorf("after the review there are %+v (%v)", list, err)
	}
	lessons := all(b, b.store.Lessons(b.ctx, 0))
	for _, l := range lessons {
		if l.Outcome == nil || !l.Outcome.Automatic || l.Outcome.Truth != "again" || l.Outcome.Pick != "finish" {
			t.Errorf("the review taught %+v", l)
		}
	}
	if len(lessons) != 1 {
		t.Errorf("there are %d lessons", len(lessons))
	}
}

// testRetracted: what a ruling that is taken back has taught leaves the book and the
// exemplars, and a lesson says so.
func testRetracted(t *testing.T, m Maker) {
	b := newBench(t, m)
	s := b.start()
	first := b.load(s.ID).Key()
	b.decide(s.ID, "finish")
	s = b.start()
	b.decide(s.ID, "again")
	before := session.Summarize(b.load(s.ID))
	_, err := b.r.Retract(b.ctx, runner.Retracting{SessionID: first.Session, RoundID: first.ID(), SpecialistID: "human", Note: "wrong one"})
	b.ok(err)
	for range 2 {
		book, err := b.store.Book(b.ctx, "storetest")
		b.ok(err)
		got := ""
		for _, r := range book.Records("storetest") {
			got += fmt.Sprintf("%s %d/%d ", r.SpecialistID, r.MatchingChoices, r.TotalComparisons)
		}
		if got != "first 0/1 second 0/1 " {
			t.Errorf("the book is %q", got)
		}
		list, err := b.store.Exemplars(b.ctx, "storetest", "", 0)
		if b.ok(err); len(list) != 1 || list[0].SessionID != s.ID.String() {
			t.Errorf("the exemplars are %+v", list)
		}
		lessons := all(b, b.store.Lessons(b.ctx, 0))
		if n := len(lessons); n != 3 || lessons[2].Retracts == nil || lessons[2].Outcome != nil || lessons[2].Retracts.Round != lessons[0].Outcome.Round {
			t.Errorf("the lessons are %+v", lessons)
		}
		if b.load(first.Session).Status != session.Completed || session.Summarize(b.load(s.ID)) != before {
			t.Error("a session has moved")
		}
		b.open(m)
	}
	b.decide(s.ID, "again") // the store goes on
	if list, err := b.store.Exemplars(b.ctx, "storetest", "", 0); err != nil || len(list) != 2 {
		t.Errorf("then there are %d exemplars (%v)", len(list), err)
	}
}

func testAdoptions(t *testing.T, m Maker) {
	b := newBench(t, m)
	s := b.start()
	b.decide(s.ID, "again")
	trial := session.Trial{Policy: "tried", From: 1, To: 1}
	want := trust.Adoption{Machine: "storetest", Promise: trust.DefaultPromise(), PolicyDigest: "digest", Pairs: []trust.Pair{
		{P: 900_000_000, Right: true, Stops: []trust.PairAt{{Tau: 975_000_000, P: 980_000_000}}}, {P: 800_000_000}}}
	order := runner.Adopting{Adoption: want, Trial: trial, SpecialistID: "human", Reason: "it is good", ID: "once"}
	done, err := b.r.Adopt(b.ctx, order)
	b.ok(err)
	b.decide(s.ID, "again")
	want.Tried, want.ID = 1, order.ID
	for range 2 {
		var kinds []string
		var last int64
		for _, l := range all(b, b.store.Lessons(b.ctx, 0)) {
			switch {
			case l.Seq <= last:
				t.Errorf("lesson %d comes after %d", l.Seq, last)
			case l.Adoption != nil:
				kinds = append(kinds, "adoption")
				if !reflect.DeepEqual(*l.Adoption, want) || !reflect.DeepEqual(done, want) {
					t.Errorf("adopted was %+v, kept is %+v, want %+v", done, *l.Adoption, want)
				}
			default:
				kinds = append(kinds, l.Outcome.Truth)
			}
			last = l.Seq
		}
		if !slices.Equal(kinds, []string{"again", "adoption", "again"}) {
			t.Errorf("the lessons are %q", kinds)
		}
		roster, err := b.store.Roster(b.ctx, "storetest")
		b.ok(err)
		if !slices.Equal(roster.Trials, []session.Trial{trial}) {
			t.Errorf("the policies tried are %+v", roster.Trials)
		}
		b.open(m)
		again, err := b.r.Adopt(b.ctx, order)
		if b.ok(err); !reflect.DeepEqual(again, want) {
			t.Errorf("adopted again by the same request was %+v, want %+v", again, want)
		}
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
	if _, err := b.r.Register(b.ctx, "storetest", third, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := b.r.Register(b.ctx, "storetest", third, nil); !errors.Is(err, session.ErrExists) {
		t.Fatalf("registering twice = %v, want ErrExists", err)
	}
	b.ok(b.r.Disable(b.ctx, "storetest", "third"))
	if roster, err = b.store.Roster(b.ctx, "storetest"); err != nil || roster.Sequence != 2 || !roster.Off["third"] {
		t.Fatalf("the roster is %+v (%v)", roster, err)
	}
	stale := session.RosterEvent{Kind: session.KindEnabled, ID: "third"}
	if err := b.store.Register(b.ctx, "storetest", 1, stale); !errors.Is(err, session.ErrStale) {
		t.Fatalf("registering on an old roster = %v, want ErrStale", err)
	}
	var prev session.Hash
	records := all(b, b.store.RosterRecords(b.ctx, "storetest", 0))
	for i, rec := range records {
		if rec.Prev != prev || rec.Hash != session.Chain(prev, "storetest", rec.Events) || rec.First != int64(i)+1 {
			t.Fatalf("roster record %d does not chain", i+1)
		}
		prev = rec.Hash
	}
	for from := int64(0); from <= int64(len(records)); from++ {
		for rec, err := range b.store.RosterRecords(b.ctx, "storetest", from) {
			b.ok(err)
			if rec.First != max(from, 1) {
				t.Fatalf("the roster's records from %d on begin at %d", from, rec.First)
			}
			break
		}
	}
	if len(records) != 2 {
		t.Fatalf("there are %d roster records, want 2", len(records))
	}
}

// testCoherence: what one process has been taught, and whom it has registered, counts in another that
// had read both before, and commits nothing meanwhile.
func testCoherence(t *testing.T, m Maker) {
	b := newBench(t, m)
	s := b.start()
	mine := b.store
	b.open(m)
	third := machine.Specialist{Role: machine.Proposer, SpecialistID: "third", StrategyFnName: "random"}
	_, err := b.r.Register(b.ctx, "storetest", third, nil)
	b.ok(err)
	for i, choice := range []string{"again", "park", "back", "again", "park"} {
		b.decide(s.ID, choice)
		if i == 2 {
			b.ok(b.r.Disable(b.ctx, "storetest", "third"))
		}
		b.within(mine.Staleness(), func() string {
			read, err := mine.Book(b.ctx, "storetest")
			b.ok(err)
			written, err := b.store.Book(b.ctx, "storetest")
			b.ok(err)
			if got, want := read.Records("storetest"), written.Records("storetest"); len(want) == 0 || !reflect.DeepEqual(got, want) {
				return fmt.Sprintf("after ruling %d the book is %+v, want %+v", i, got, want)
			}
			roster, err := mine.Roster(b.ctx, "storetest")
			b.ok(err)
			if want := map[bool]int64{false: 1, true: 2}[i >= 2]; roster.Sequence != want || roster.Off["third"] != (i >= 2) {
				return fmt.Sprintf("after ruling %d the roster is %+v, want that of event %d", i, roster, want)
			}
			return ""
		})
		if got, want := all(b, mine.Lessons(b.ctx, 0)), all(b, b.store.Lessons(b.ctx, 0)); len(want) != i+1 || !reflect.DeepEqual(got, want) {
			t.Fatalf("after ruling %d the lessons are %+v, want %+v", i, got, want)
		}
		got, err := mine.Exemplars(b.ctx, "storetest", "", 0)
		b.ok(err)
		if want, err := b.store.Exemplars(b.ctx, "storetest", "", 0); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("after ruling %d the exemplars are %+v, want %+v (%v)", i, got, want, err)
		}
	}
}
