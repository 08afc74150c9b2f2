package storetest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// testListWaiting plays sessions at random, by a clock that goes back as well, and holds what is listed by since when
// they wait, or by when they are due, against all of them: whatever the query, in pages of any size, there and back.
func testListWaiting(t *testing.T, m Maker) {
	b := newBench(t, m)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	w := &waitingPlay{bench: b, rng: rand.New(rand.NewPCG(seed, 1)), asking: b.parse(strings.Replace(timed, `"cooling"`, `"asking"`, 1))}
	for round := range 3 {
		for range 15 {
			w.move()
		}
		w.check()
		w.batch(w.ids...)
		if round == 0 {
			b.open(m)
			w.batch(w.ids...)
		}
	}
	if !w.waited {
		t.Error("no session waited")
	}
}

type waitingPlay struct {
	*bench
	rng    *rand.Rand
	asking *machine.Machine // its sessions are due some time
	ids    []specialist.SessionID
	waited bool
}

// move starts a session, or has one go on.
func (w *waitingPlay) move() {
	w.Helper()
	if w.rng.IntN(3) == 0 { // so that moments are equal, and those of later ones lower
		w.clock.now = w.clock.now.Add(-time.Duration(w.rng.IntN(20)) * time.Second)
	}
	if len(w.ids) == 0 || w.rng.IntN(2) == 0 {
		of, at := w.m, fmt.Sprintf(`{"at":"2026-01-02T03:0%d:00Z"}`, w.rng.IntN(9))
		if w.rng.IntN(2) == 0 {
			of = w.asking
		}
		s, err := w.r.Start(w.ctx, of, runner.StartOptions{Meta: []byte(at)})
		w.ok(err)
		w.ids = append(w.ids, s.ID)
		return
	}
	switch s := w.load(w.ids[w.rng.IntN(len(w.ids))]); {
	case s.Status == session.Running:
		_, err := w.r.Step(w.ctx, s.ID)
		w.ok(err)
	case s.Status == session.NeedsHuman && w.rng.IntN(2) == 0:
		w.force(s.ID, s.State.Transitions[w.rng.IntN(len(s.State.Transitions))].Name)
	case s.Status == session.NeedsHuman:
		_, err := w.r.Stop(w.ctx, s.ID, runner.Stopping{Actor: session.LocalActor("x"), Note: "no"})
		w.ok(err)
	}
}

// check compares lists with all sessions, as they are loaded.
func (w *waitingPlay) check() {
	w.Helper()
	all := make([]*session.Session, len(w.ids))
	for i, id := range w.ids {
		all[i] = w.load(id)
		waits := all[i].Status == session.NeedsHuman
		w.waited = w.waited || waits
		if since := session.Summarize(all[i]).Since; since != all[i].WaitingSince() || since != 0 != waits {
			w.Errorf("session %s (%s) waits since %s", id, all[i].Status, since)
		}
	}
	for range 60 {
		q := w.query(all)
		var want []session.Summary
		for _, s := range all {
			if q.Matches(s) {
				want = append(want, session.Summarize(s))
			}
		}
		slices.SortStableFunc(want, func(a, b session.Summary) int {
			return cmp.Compare(q.Order.Moment(a.Since, a.DueAt), q.Order.Moment(b.Since, b.DueAt))
		})
		if q.Desc {
			slices.Reverse(want)
		}
		var got []session.Summary
		for page := q; ; {
			list, err := w.store.List(w.ctx, page)
			w.ok(err)
			got = append(got, list...)
			if page.After = page.Next(list); page.After == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			w.Fatalf("List(%+v) =\n%+v\nwant\n%+v", q, got, want)
		}
	}
}

// query returns any query of one of the orders.
func (w *waitingPlay) query(all []*session.Session) (q session.ListQuery) {
	some := func() bool { return w.rng.IntN(4) == 0 }
	one := all[w.rng.IntN(len(all))]
	q = session.ListQuery{Order: session.Order(w.rng.IntN(3)), Desc: some(), Limit: w.rng.IntN(5)}
	if some() {
		q.MachineName = one.Machine().Name()
	}
	if some() {
		q.State = one.State.Name
	}
	if some() {
		q.WaitingAfter = one.WaitingSince()
	}
	if some() {
		q.Statuses = [][]session.Status{{session.NeedsHuman}, session.LiveStatuses(), {session.Running}}[w.rng.IntN(3)]
	}
	if some() {
		q.Overdue = one.DueAt()
	} else if some() {
		q.Timely = one.DueAt()
	}
	if some() {
		q.Code = one.Standing().Code
	}
	if some() {
		q.Places = []session.Place{}
		for range w.rng.IntN(4) {
			s := all[w.rng.IntN(len(all))]
			q.Places = append(q.Places, session.Place{MachineDigest: s.Machine().Digest(), State: s.State.Name})
		}
	}
	return q
}
