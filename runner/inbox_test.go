package runner_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
)

// TestQuestionsAreReadFromASession: the inbox can be read on from any session, in any
// number of pages, also from one that waits no longer.
func TestQuestionsAreReadFromASession(t *testing.T) {
	b := newBench(t)
	b.said(map[string]string{"f": "finish", "g": "again"})
	var waiting []*session.Session
	for range 300 { // more than are looked up at a time
		s := b.start(b.desk(fn("f"), fn("g"), human("ann"), half))
		b.stepTo(s, runner.TickHuman)
		waiting = append(waiting, s)
	}
	b.ok(func() error {
		_, err := b.r.Decide(b.ctx, runner.Ruling{SessionID: waiting[9].ID, RoundID: runner.CurrentRound, SpecialistID: "ann", TransitionName: "finish"})
		return err
	}())
	for after, first := range map[int]int{-1: 0, 8: 10, 9: 10, 299: 300} {
		q := session.ListQuery{Statuses: []session.Status{session.NeedsHuman}, Limit: 70}
		if after >= 0 {
			q.After = q.CursorAfter(waiting[after].ID, 0)
		}
		n := first
		for more := true; more; more = q.After != "" {
			page, next, err := b.r.Inbox(b.ctx, q, "")
			b.ok(err)
			for _, question := range page {
				if n == 9 {
					n++
				}
				if question.SessionID != waiting[n].ID.String() {
					t.Fatalf("after session %d, question %d is of %s, want %s", after, n, question.SessionID, waiting[n].ID)
				}
				n++
			}
			q.After = next
		}
		if n != 300 {
			t.Errorf("after session %d, the questions end before %d of 300", after, n)
		}
	}
	q := session.ListQuery{Statuses: []session.Status{session.NeedsHuman}}
	if q.After = q.CursorAfter(specialist.SessionID{1}, 0); !errors.Is(inboxErr(b, q), session.ErrNotFound) {
		t.Errorf("after a session that nobody knows: %v", inboxErr(b, q))
	}
	if q.After = "x"; !errors.Is(inboxErr(b, q), session.ErrCursor) {
		t.Errorf("after what is no cursor: %v", inboxErr(b, q))
	}
	page, next, err := b.r.Inbox(b.ctx, session.ListQuery{ID: waiting[20].ID.String(), Limit: 50}, "")
	if b.ok(err); len(page) != 1 || next != "" || page[0].SessionID != waiting[20].ID.String() {
		t.Errorf("by id the questions are %v, want that of %s alone", page, waiting[20].ID)
	}
}

func inboxErr(b *bench, q session.ListQuery) error {
	_, _, err := b.r.Inbox(b.ctx, q, "")
	return err
}

// TestDecider: a list of what a human may decide has the sessions in whose state that human
// is one who rules, by the definition and the roster as it is now, whatever approvals
// exclude or somebody has ruled already.
func TestDecider(t *testing.T) {
	b := newBench(t)
	legal := b.start(b.approved(`"deciders":["group:legal"],`, `{"count":1,"exclude":["previous"]}`))
	desk := b.start(b.desk(human("ann"), human("carol")))
	two := b.start(b.approved(`"deciders":["group:finance"],`, `2`))
	want := func(id string, ids ...specialist.SessionID) {
		t.Helper()
		var got []specialist.SessionID
		for q := (session.ListQuery{Decider: machine.SpecialistID(id), Limit: 1}); ; {
			page, err := b.r.Sessions(b.ctx, q)
			b.ok(err)
			for _, sum := range page {
				got = append(got, sum.SessionID)
			}
			if q.After = q.Next(page); q.After == "" {
				break
			}
		}
		if !slices.Equal(got, ids) {
			t.Errorf("%s decides in %v, want %v", id, got, ids)
		}
	}
	want("carol", legal.ID, desk.ID, two.ID)
	want("lea", legal.ID)
	want("alice", two.ID)
	want("ann", desk.ID)
	want("nobody")
	b.stepTo(two, runner.TickHuman)
	b.recorded(two, "alice", "pay", session.CodeApprovals)
	want("alice", two.ID)
	b.register(machine.Specialist{Role: machine.Proposer, SpecialistID: "dora", IsHuman: true})
	want("dora", desk.ID)
	b.ok(b.r.Disable(b.ctx, "desk", "carol"))
	want("carol", legal.ID, two.ID)
	q := session.ListQuery{Decider: "ann"}
	page, _, err := b.r.Inbox(b.ctx, q, "")
	if b.ok(err); len(page) != 0 {
		t.Errorf("a session that runs is a question: %v", page)
	}
}

// TestCodesGoByTheRoster: a list shows, and selects by, what sessions wait for as the roster is
// now, as the question does, page by page; it loads none in whose state the roster makes no
// difference (cases.md 4.4, 8.6).
func TestCodesGoByTheRoster(t *testing.T) {
	loads := &countedLoads{Store: store.NewMemory()}
	b := newBench(t, func(c *runner.Config) { c.Store = loads })
	m := parse(t, `{"machineName":"m","initialState":"open","goalState":"paid","states":{"open":{"deciders":["alice","bob","carol"],"transitions":{"pay":{"target":"paid","approvals":2}}},"paid":{}},
	  "specialists":[`+human("alice")+","+human("bob")+","+human("carol")+","+half+`]}`)
	var all, given, bare []specialist.SessionID
	for n := range 7 {
		s := b.start(m)
		b.stepTo(s, runner.TickHuman)
		if all = append(all, s.ID); n%2 == 0 {
			b.recorded(s, "alice", "pay", session.CodeApprovals)
			given = append(given, s.ID)
		} else {
			bare = append(bare, s.ID)
		}
	}
	other := b.start(b.desk(human("ann"), human("carol"), human("dave"), half))
	b.stepTo(other, runner.TickHuman)
	plain := b.now(other).Outcome().Code
	want := func(q session.ListQuery, ids ...specialist.SessionID) {
		t.Helper()
		for q.Limit = 1; q.Limit < 5; q.Limit++ {
			var got []specialist.SessionID
			for q.After = ""; ; {
				page, err := b.r.Sessions(b.ctx, q)
				b.ok(err)
				for _, sum := range page {
					got = append(got, sum.SessionID)
					o, err := b.r.Outcome(b.ctx, b.now(&session.Session{ID: sum.SessionID}), "")
					if b.ok(err); sum.Code != o.Code || sum.Reason != o.Reason {
						t.Errorf("the list says %s (%s), the session %s (%s)", sum.Code, sum.Reason, o.Code, o.Reason)
					}
				}
				if q.After = q.Next(page); q.After == "" {
					break
				}
			}
			if !slices.Equal(got, ids) {
				t.Errorf("%+v lists %v, want %v", q, got, ids)
			}
		}
	}
	few, approvals := session.ListQuery{Code: session.CodeTooFew}, session.ListQuery{Code: session.CodeApprovals}
	want(few)
	want(approvals, given...)
	want(session.ListQuery{Code: b.now(&session.Session{ID: bare[0]}).Outcome().Code, MachineName: "m"}, bare...)
	for _, id := range []machine.SpecialistID{"bob", "carol"} {
		b.ok(b.r.Disable(b.ctx, "m", id))
	}
	want(few, all...)
	want(approvals)
	want(session.ListQuery{Code: plain}, other.ID) // the sessions of m have it no more
	want(session.ListQuery{Code: session.CodeTooFew, Desc: true}, backwards(all)...)
	want(session.ListQuery{Code: session.CodeTooFew, Decider: "alice"}, all...)
	want(session.ListQuery{Code: session.CodeTooFew, Decider: "ann"})
	want(session.ListQuery{Code: session.CodeTooFew, Statuses: []session.Status{session.Running}})
	want(session.ListQuery{Code: session.CodeTooFew, MachineName: "desk"})
	want(session.ListQuery{}, append(slices.Clip(all), other.ID)...)
	page, _, err := b.r.Inbox(b.ctx, few, "")
	if b.ok(err); len(page) != len(all) || page[0].Code != session.CodeTooFew {
		t.Errorf("the inbox has %d questions where nobody can rule", len(page))
	}
	for range 5 {
		b.stepTo(b.start(other.Machine()), runner.TickHuman)
	}
	loads.n = 0
	if page, err := b.r.Sessions(b.ctx, session.ListQuery{MachineName: "desk"}); err != nil || len(page) != 6 || loads.n > 1 {
		t.Errorf("%d sessions that the roster makes no difference to are listed with %d loads: %v", len(page), loads.n, err)
	}
	b.ok(b.r.Enable(b.ctx, "m", "carol"))
	want(few)
	want(approvals, given...)
}

func backwards(ids []specialist.SessionID) []specialist.SessionID {
	ids = slices.Clone(ids)
	slices.Reverse(ids)
	return ids
}

// A countedLoads is a store that counts how many sessions are loaded.
type countedLoads struct {
	session.Store
	n int
}

func (c *countedLoads) Load(ctx context.Context, p *session.Programs, id specialist.SessionID) (*session.Session, error) {
	c.n++
	return c.Store.Load(ctx, p, id)
}

// batched is a store in which sessions are read at once, beside a process whose sessions others have taken further.
type batched struct {
	countedLoads
	old    map[specialist.SessionID]*session.Session // as this process knows them
	lacks  specialist.SessionID                      // that is left out
	fails  error
	panics bool
	asked  []int // of how many at a time
}

func (s *batched) Recent(id specialist.SessionID) *session.Session { return s.old[id] }

func (s *batched) LoadBatch(ctx context.Context, p *session.Programs, ids []specialist.SessionID) (map[specialist.SessionID]*session.Session, error) {
	s.asked = append(s.asked, len(ids))
	if s.panics {
		panic("one of them is sick")
	}
	all := map[specialist.SessionID]*session.Session{}
	for _, id := range ids {
		if one, err := s.Store.Load(ctx, p, id); err == nil && id != s.lacks {
			all[id] = one
		}
	}
	return all, s.fails
}

// TestInboxReadsAtOnce: of a page only those are read that are not known as they are listed, and all of these at once;
// which the store leaves out is read by itself. Where the store fails there is no page, and not a part of one.
func TestInboxReadsAtOnce(t *testing.T) {
	s := &batched{countedLoads: countedLoads{Store: store.NewMemory()}, old: map[specialist.SessionID]*session.Session{}}
	b := newBench(t, func(c *runner.Config) { c.Store = s })
	m := b.desk(human("ann"), half)
	var started []*session.Session
	for range 5 {
		one := b.start(m)
		b.stepTo(one, runner.TickHuman)
		started = append(started, b.now(one))
	}
	s.old[started[0].ID] = started[0]
	s.old[started[1].ID] = started[1]
	_, err := b.r.Decide(b.ctx, runner.Ruling{SessionID: started[1].ID, RoundID: runner.CurrentRound, SpecialistID: "ann", TransitionName: "again"})
	b.ok(err)
	b.stepTo(started[1], runner.TickHuman) // in another round, which this process does not know
	page := func() []runner.Question {
		t.Helper()
		s.asked, s.n = nil, 0
		items, _, err := b.r.Inbox(b.ctx, session.ListQuery{}, "")
		b.ok(err)
		if len(items) != 5 || items[0].SessionID != started[0].ID.String() || items[4].SessionID != started[1].ID.String() {
			t.Fatalf("the page is %+v", items)
		}
		return items
	}
	if last := page()[4]; last.RoundID != b.now(started[1]).Key().ID() || !slices.Equal(s.asked, []int{4}) || s.n != 1 { // n is that of b.now
		t.Errorf("the question is that of round %s; %v were read at once, %d by themselves", last.RoundID, s.asked, s.n)
	}
	s.lacks = started[2].ID
	if page(); !slices.Equal(s.asked, []int{4}) || s.n != 1 {
		t.Errorf("with one left out %v were read at once, %d by themselves", s.asked, s.n)
	}
	s.panics = true
	if page(); s.n != 4 {
		t.Errorf("with one that is sick %d were read by themselves", s.n)
	}
	s.panics, s.fails = false, errors.New("no database")
	items, next, err := b.r.Inbox(b.ctx, session.ListQuery{Limit: 3}, "")
	if !errors.Is(err, s.fails) || len(items) != 0 || next != "" {
		t.Errorf("where the store fails there are %d questions, the cursor %q, and the error %v", len(items), next, err)
	}
}
