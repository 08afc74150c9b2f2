package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Logs: what was committed is read again, from any place, in order, and once.

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

const titled = `{"machineName":"titled","initialState":"open","goalState":"closed","subject":"= data.title",
	"states":{"open":{"transitions":{"rename":{"target":"open","set":{"title":"= payload.title"}},"keep":"open","finish":"closed"}},"closed":{}},
	"specialists":[{"role":"proposer","specialistId":"human","isHuman":true}]}`

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
		if place, err := b.store.Place(b.ctx); err != nil || c.machine == "" && place != last || place < last {
			t.Errorf("the newest record is at %d (%v), and the last of machine %q at %d", place, err, c.machine, last)
		}
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

// testAgentLog: entries are appended after the newest, or not at all; they are kept in order,
// each session's on its own; of many who append at once after the same entry one does.
func testAgentLog(t *testing.T, m Maker) {
	b := newBench(t, m)
	s, other := b.start(), b.start()
	data := func(text string) json.RawMessage { return json.RawMessage(`{"text":"` + text + `"}`) }
	b.ok(b.store.AppendAgentLog(b.ctx, s.ID, 0, session.AgentEvent{At: 1, Kind: "opened", Data: data("<&>")}))
	b.ok(b.store.AppendAgentLog(b.ctx, other.ID, 0, session.AgentEvent{At: 1, Kind: "opened", Data: data("other")}))
	b.ok(b.store.AppendAgentLog(b.ctx, s.ID, 1, session.AgentEvent{At: 2, Kind: "note", Data: data("two")}, session.AgentEvent{At: 2, Kind: "note", Data: data("three")}))
	b.open(m)
	for _, after := range []int64{0, 1, 2, 4} {
		if err := b.store.AppendAgentLog(b.ctx, s.ID, after, session.AgentEvent{At: 3, Kind: "late", Data: data("no")}); !errors.Is(err, session.ErrStale) {
			t.Errorf("appending after entry %d of 3: %v, want ErrStale", after, err)
		}
	}
	if err := b.store.AppendAgentLog(b.ctx, specialist.SessionID{1}, 0, session.AgentEvent{Kind: "opened", Data: data("")}); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("appending to an unknown session: %v, want ErrNotFound", err)
	}
	want := []session.AgentEvent{{Seq: 1, At: 1, Kind: "opened", Data: data("<&>")}, {Seq: 2, At: 2, Kind: "note", Data: data("two")}, {Seq: 3, At: 2, Kind: "note", Data: data("three")}}
	var hash session.Hash
	for i := range want {
		stored, err := session.AppendAgentEvent(nil, want[i])
		b.ok(err)
		hash = session.Chain(hash, session.AgentStream(s.ID.String()), stored)
		want[i].Hash = hash
	}
	if got := all(b, b.store.AgentLog(b.ctx, s.ID, 0)); !reflect.DeepEqual(got, want) {
		t.Errorf("kept is %+v, want %+v", got, want)
	}
	if got := all(b, b.store.AgentLog(b.ctx, s.ID, 2)); !reflect.DeepEqual(got, want[2:]) {
		t.Errorf("after entry 2 there is %+v, want %+v", got, want[2:])
	}
	if got := all(b, b.store.AgentLog(b.ctx, specialist.SessionID{1}, 0)); len(got) != 0 {
		t.Errorf("an unknown session has %+v", got)
	}
	var wg sync.WaitGroup
	var won atomic.Int64
	for range 20 {
		wg.Go(func() {
			switch err := b.store.AppendAgentLog(b.ctx, s.ID, 3, session.AgentEvent{At: 4, Kind: "permission_used", Data: data("once")}); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, session.ErrStale):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := len(all(b, b.store.AgentLog(b.ctx, s.ID, 0))); n != 4 || won.Load() != 1 {
		t.Errorf("%d of 20 appended after the same entry, and there are %d entries; want 1 and 4", won.Load(), n)
	}
}

const timed = `{"machineName": "timed", "initialState": "cooling", "goalState": "done",
	"specialists": [{"role": "arbiter", "specialistId": "judge", "strategyFnName": "firstProposal"}],
	"states": {"cooling": {"due": {"at": "= metaJson.at", "remind": ["30m"], "then": "go"}, "specialists": [], "transitions": {"go": "done"}},
		"asking": {"due": {"at": "= metaJson.at"}, "specialists": [{"role": "proposer", "specialistId": "human", "isHuman": true}], "transitions": {"go": "done"}},
		"done": {}}}`

// testRosterLog checks that the log of all machine names holds every record of each in the
// order in which they were committed, from any place.
func testRosterLog(t *testing.T, m Maker) {
	b := newBench(t, m)
	if place, err := b.store.RosterPlace(b.ctx); err != nil || place != 0 {
		t.Fatalf("the newest record of an empty store is at %d (%v)", place, err)
	}
	var want []string
	for i := range 3 {
		for _, name := range []string{"storetest", "other"} {
			id := fmt.Sprint("s", i)
			_, err := b.r.Register(b.ctx, name, machine.Specialist{Role: machine.Proposer, SpecialistID: id, StrategyFnName: "random"}, nil)
			b.ok(err)
			want = append(want, name+" "+id)
		}
	}
	for _, c := range []struct {
		name string
		want []string
	}{{"", want}, {"storetest", []string{want[0], want[2], want[4]}}, {"nobody", nil}} {
		entries := all(b, b.store.RosterLog(b.ctx, c.name, 0))
		var got []string
		last := int64(0)
		for i, e := range entries {
			events, err := session.DecodeRosterEvents(e.Events)
			b.ok(err)
			if e.Place <= last || e.Hash != session.Chain(e.Prev, e.MachineName, e.Events) {
				t.Fatalf("the record at place %d follows %d, with the hash %s", e.Place, last, e.Hash)
			}
			if rest := all(b, b.store.RosterLog(b.ctx, c.name, e.Place)); len(rest) != len(entries)-i-1 || len(rest) > 0 && rest[0].Place != entries[i+1].Place {
				t.Errorf("after place %d come %d records, want %d", e.Place, len(rest), len(entries)-i-1)
			}
			got, last = append(got, e.MachineName+" "+events[0].ID), e.Place
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("the log of %q is %q, want %q", c.name, got, c.want)
		}
		if place, err := b.store.RosterPlace(b.ctx); err != nil || c.name == "" && place != last {
			t.Errorf("the newest record is at %d (%v), the last at %d", place, err, last)
		}
	}
}
