package storetest

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

func testRecords(t *testing.T, m Maker) {
	b := newBench(t, m)
	s := b.start()
	for _, transition := range []string{"again", "park", "back", "again", "finish"} {
		b.decide(s.ID, transition)
	}
	var prev session.Hash
	next := int64(1)
	f := &session.Folder{Programs: session.NewPrograms(), Definition: func(string) ([]byte, error) { return b.m.JSON(), nil }}
	for _, rec := range all(b, b.store.Records(b.ctx, s.ID, 0)) {
		if rec.First != next || rec.Prev != prev {
			t.Fatalf("record at %d follows %x, want %d and %x", rec.First, rec.Prev, next, prev)
		}
		if want := session.Chain(prev, s.ID.String(), rec.Events); rec.Hash != want {
			t.Fatalf("hash of the record at %d = %s, want %s", rec.First, rec.Hash, want)
		}
		events, err := f.Add(rec.Events)
		b.ok(err)
		prev, next = rec.Hash, next+int64(len(events))
	}
	if got, want := session.Summarize(f.Session()), session.Summarize(b.load(s.ID)); got != want {
		t.Fatalf("the folded log is %+v, the session %+v", got, want)
	}
}

func testRecordsFrom(t *testing.T, m Maker) {
	b := newBench(t, m)
	s := b.start()
	b.decide(s.ID, "again")
	b.decide(s.ID, "again")
	records := all(b, b.store.Records(b.ctx, s.ID, 0))
	for from := int64(0); from <= b.load(s.ID).Sequence+1; from++ {
		want := slices.IndexFunc(records, func(r session.StoredRecord) bool {
			raw, err := session.DecodeRaw(r.Events)
			b.ok(err)
			return r.First+int64(len(raw))-1 >= from
		})
		got := all(b, b.store.Records(b.ctx, s.ID, from))
		if want < 0 && len(got) > 1 || want >= 0 && (len(got) != len(records)-want || got[0].First != records[want].First) {
			t.Fatalf("Records from %d begin at %v, want the record at index %d of %d", from, got, want, len(records))
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
		query session.ListQuery
		want  []string
	}{
		{session.ListQuery{}, ids},
		{session.ListQuery{Since: ended}, ids},
		{session.ListQuery{Since: ended + 1}, []string{ids[0], ids[2], ids[3], ids[4]}},
		{session.ListQuery{Since: ended + 1, Limit: 1}, ids[4:]},
		{session.ListQuery{Limit: 2}, ids[3:]},
		{session.ListQuery{Live: true}, []string{ids[0], ids[2], ids[3], ids[4]}},
		{session.ListQuery{Live: true, Limit: 3}, []string{ids[2], ids[3], ids[4]}},
		{session.ListQuery{Waiting: true}, []string{ids[2]}},
		{session.ListQuery{MachineName: "storetest"}, ids},
		{session.ListQuery{Limit: 2, Oldest: true}, ids[:2]},
		{session.ListQuery{Before: b.id(ids[3]), Limit: 2}, ids[1:3]},
		{session.ListQuery{Before: b.id(ids[1])}, ids[:1]},
		{session.ListQuery{Before: b.id(ids[0])}, []string{}},
		{session.ListQuery{After: b.id(ids[1]), Limit: 2, Oldest: true}, ids[2:4]},
		{session.ListQuery{After: b.id(ids[1]), Limit: 2}, ids[3:]},
		{session.ListQuery{After: b.id(ids[4])}, []string{}},
		{session.ListQuery{After: b.id(ids[0]), Before: b.id(ids[4]), Live: true}, ids[2:4]},
		{session.ListQuery{After: b.id(ids[3]), Before: b.id(ids[1])}, []string{}},
		{session.ListQuery{MachineName: "other"}, []string{}},
	} {
		list, err := b.store.List(b.ctx, c.query)
		b.ok(err)
		got := []string{}
		for _, s := range list {
			got = append(got, s.SessionID.String())
			if want := session.Summarize(b.load(s.SessionID)); s != want {
				t.Errorf("List shows %+v, the session is %+v", s, want)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("List(%+v) = %v, want %v", c.query, got, c.want)
		}
	}
}

// testListPages reads all sessions page by page, in both directions, while more are
// created: every one that was there comes once, and new ones only where they belong.
func testListPages(t *testing.T, m Maker) {
	b := newBench(t, m)
	var ids []string
	for range 7 {
		ids = append(ids, b.start().ID.String())
	}
	page := func(q session.ListQuery) (of []string) {
		list, err := b.store.List(b.ctx, q)
		b.ok(err)
		for _, s := range list {
			of = append(of, s.SessionID.String())
		}
		return of
	}
	back := page(session.ListQuery{Limit: 3})
	for range 2 {
		b.start()
		back = append(page(session.ListQuery{Limit: 3, Before: b.id(back[0])}), back...)
	}
	if !slices.Equal(back, ids) {
		t.Errorf("from the newest to the oldest, the pages are %v, want %v", back, ids)
	}
	on := page(session.ListQuery{Limit: 3, Oldest: true})
	for len(on) < 9 {
		next := page(session.ListQuery{Limit: 3, Oldest: true, After: b.id(on[len(on)-1])})
		if len(next) == 0 {
			t.Fatalf("after %d of 9 sessions there are none", len(on))
		}
		on = append(on, next...)
	}
	if !slices.Equal(on[:7], ids) || len(on) != 9 {
		t.Errorf("from the oldest to the newest, the pages are %v, want %v and two more", on, ids)
	}
	for _, q := range []session.ListQuery{{Before: specialist.SessionID{1}}, {After: specialist.SessionID{1}}} {
		if _, err := b.store.List(b.ctx, q); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("List(%+v) = %v, want ErrNotFound", q, err)
		}
	}
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

// testLog checks that the log of a machine holds every record of its sessions, in
// commit order and at the places of their lessons.
func testLog(t *testing.T, m Maker) {
	b := newBench(t, m)
	mine := b.m
	sessions := []*session.Session{b.start(), nil, b.start()}
	b.m = b.parse(strings.Replace(definition, "storetest", "other", 1))
	sessions[1] = b.start()
	b.m = mine
	for range 3 {
		for _, s := range sessions {
			b.force(s.ID, "again")
		}
	}
	placed := map[int64]bool{}
	for _, l := range all(b, b.store.Lessons(b.ctx, 0)) {
		placed[l.Seq] = true
	}
	for _, c := range []struct {
		machine  string
		sessions []*session.Session
		learned  int
	}{{"storetest", []*session.Session{sessions[0], sessions[2]}, 6}, {"other", sessions[1:2], 3}, {"", sessions, 9}, {"nobody", nil, 0}} {
		got, want := map[string]string{}, map[string]string{}
		last, learned := int64(0), 0
		for e, err := range b.store.Log(b.ctx, c.machine, 0) {
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
			for _, r := range all(b, b.store.Records(b.ctx, s.ID, 0)) {
				want[s.ID.String()] += fmt.Sprintln(r.First, string(r.Events))
			}
		}
		b.logAfter(c.machine)
		if !maps.Equal(got, want) || learned != c.learned {
			t.Errorf("the log of %q has %d sessions and %d outcomes:\n%v\nwant\n%v", c.machine, len(got), learned, got, want)
		}
	}
}

// logAfter checks that what comes after each place of a log is the rest of it.
func (b *bench) logAfter(machineName string) {
	b.Helper()
	places := b.places(machineName, 0)
	for i, place := range places {
		rest := b.places(machineName, place)
		if !slices.Equal(rest, places[i+1:]) {
			b.Fatalf("after %d come %v, want %v", place, rest, places[i+1:])
		}
	}
}

// places returns the places of the log after one.
func (b *bench) places(machineName string, after int64) (places []int64) {
	b.Helper()
	for _, e := range all(b, b.store.Log(b.ctx, machineName, after)) {
		places = append(places, e.Place)
	}
	return places
}

// testLogHasNoGap reads the log from place to place while sessions are written: nothing
// is left out and nothing comes twice.
func testLogHasNoGap(t *testing.T, m Maker) {
	b := newBench(t, m)
	var sessions []*session.Session
	for range 4 {
		sessions = append(sessions, b.start())
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		var wg sync.WaitGroup
		for _, s := range sessions {
			wg.Go(func() {
				for range 25 {
					if _, err := b.r.Step(b.ctx, s.ID); err != nil { // nobody is asked: it waits for a human
						t.Error(err)
					}
					if _, err := b.r.Decide(b.ctx, runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "again"}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	}()
	var seen []int64
	last, ended := int64(0), false
	for !ended {
		select {
		case <-done:
			ended = true // and once more
		default:
		}
		for _, place := range b.places("", last) {
			seen, last = append(seen, place), place
		}
	}
	if all := b.places("", 0); !slices.Equal(seen, all) {
		t.Fatalf("read from place to place there are %d records %v, in all there are %d %v", len(seen), seen, len(all), all)
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
	if got := all(b, b.store.Audit(b.ctx, s.ID)); !reflect.DeepEqual(got, list) {
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
	if n := len(all(b, b.store.Audit(b.ctx, s.ID))); n != 22 {
		t.Errorf("%d entries, want 22", n)
	}
}
