package storetest

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Lists of sessions: what a query selects, in pages, by cursors, and by time.

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
	waiting := session.Summarize(b.load(b.id(ids[2])))
	b.wantLive(map[session.Status]int{session.Running: 3, session.NeedsHuman: 1})
	live := session.LiveStatuses()
	here, nowhere := session.Place{MachineDigest: b.m.Digest(), State: waiting.CurrentState}, session.Place{MachineDigest: b.m.Digest(), State: "nowhere"}
	for _, c := range []struct {
		query session.ListQuery
		want  []string
	}{
		{session.ListQuery{}, ids},
		{session.ListQuery{Desc: true}, reversed(ids)},
		{session.ListQuery{UpdatedAfter: ended - 1}, ids[1:3]},
		{session.ListQuery{UpdatedAfter: ended}, []string{ids[2]}},
		{session.ListQuery{UpdatedAfter: ended, Statuses: []session.Status{session.Completed}}, []string{}},
		{session.ListQuery{UpdatedAfter: ended - 1, Statuses: []session.Status{session.Completed}}, []string{ids[1]}},
		{session.ListQuery{Limit: 2}, ids[:2]},
		{session.ListQuery{Limit: 2, Desc: true}, []string{ids[4], ids[3]}},
		{session.ListQuery{Statuses: live}, []string{ids[0], ids[2], ids[3], ids[4]}},
		{session.ListQuery{Statuses: live, Limit: 3, Desc: true}, []string{ids[4], ids[3], ids[2]}},
		{session.ListQuery{Statuses: []session.Status{session.Completed, session.NeedsHuman, session.Completed}}, []string{ids[1], ids[2]}},
		{session.ListQuery{Statuses: []session.Status{session.NeedsHuman}}, []string{ids[2]}},
		{session.ListQuery{Statuses: []session.Status{session.Failed}}, []string{}},
		{session.ListQuery{State: waiting.CurrentState}, []string{ids[0], ids[2], ids[3], ids[4]}},
		{session.ListQuery{State: waiting.CurrentState, Statuses: []session.Status{session.NeedsHuman}}, []string{ids[2]}},
		{session.ListQuery{State: waiting.CurrentState, Statuses: []session.Status{session.Completed}}, []string{}},
		{session.ListQuery{State: "nowhere"}, []string{}},
		{session.ListQuery{Code: waiting.Code}, []string{ids[2]}},
		{session.ListQuery{Code: waiting.Code[:2]}, []string{}},
		{session.ListQuery{Places: []session.Place{here}}, []string{ids[0], ids[2], ids[3], ids[4]}},
		{session.ListQuery{Places: []session.Place{nowhere, here}, Statuses: []session.Status{session.NeedsHuman}}, []string{ids[2]}},
		{session.ListQuery{Places: []session.Place{nowhere}}, []string{}},
		{session.ListQuery{Places: []session.Place{}}, []string{}},
		{session.ListQuery{ID: ids[3]}, ids[3:4]},
		{session.ListQuery{ID: ids[3], Statuses: []session.Status{session.Completed}}, []string{}},
		{session.ListQuery{ID: "zz"}, []string{}},
		{session.ListQuery{MachineName: "storetest"}, ids},
		{session.ListQuery{MachineName: "storetest", Statuses: live, Desc: true, Limit: 1}, ids[4:]},
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

// testListStarts: lists by who has started sessions, and when.
func testListStarts(t *testing.T, m Maker) {
	b := newBench(t, m)
	b.start()
	ours, err := b.r.Start(b.ctx, b.m, runner.StartOptions{Actor: &session.Actor{Subject: "key:\"ü", Method: "key"}})
	b.ok(err)
	theirs, err := b.r.Start(b.ctx, b.m, runner.StartOptions{Actor: &session.Actor{Subject: "local", Method: "local"}})
	b.ok(err)
	fork, err := b.r.Fork(b.ctx, ours.ID, runner.Forking{Actor: &session.Actor{Subject: "local", Method: "local"}})
	b.ok(err)
	for _, c := range []struct {
		query session.ListQuery
		want  []string
	}{
		{session.ListQuery{StartedBy: "key:\"ü"}, []string{ours.ID.String()}},
		{session.ListQuery{StartedBy: "local"}, []string{theirs.ID.String(), fork.ID.String()}},
		{session.ListQuery{StartedBy: "local", Limit: 1, Desc: true}, []string{fork.ID.String()}},
		{session.ListQuery{StartedBy: "local", Statuses: []session.Status{session.Completed}}, nil},
		{session.ListQuery{StartedBy: "key"}, nil},
		{session.ListQuery{CreatedAfter: ours.CreatedAt}, []string{theirs.ID.String(), fork.ID.String()}},
		{session.ListQuery{CreatedAfter: ours.CreatedAt, StartedBy: "key:\"ü"}, nil},
		{session.ListQuery{CreatedAfter: fork.CreatedAt}, nil},
	} {
		list, err := b.store.List(b.ctx, c.query)
		b.ok(err)
		var got []string
		for _, s := range list {
			got = append(got, s.SessionID.String())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("List(%+v) = %v, want %v", c.query, got, c.want)
		}
	}
}

// testListDrivers: lists say who carries each session on, from its start on, when that changes, and after steps.
func testListDrivers(t *testing.T, m Maker) {
	b := newBench(t, m)
	var ids []specialist.SessionID
	for _, d := range []session.Driver{session.DriverPool, session.DriverNone, session.DriverTemporal} {
		s, err := b.r.Start(b.ctx, b.m, runner.StartOptions{Driver: d})
		b.ok(err)
		ids = append(ids, s.ID)
	}
	check := func(want ...session.Driver) {
		t.Helper()
		for range 2 { // as it is known, and as it is read
			list, err := b.store.List(b.ctx, session.ListQuery{})
			b.ok(err)
			var got []session.Driver
			for _, s := range list {
				if got = append(got, s.Driver); s != session.Summarize(b.load(s.SessionID)) {
					t.Errorf("List shows %+v, the session is %+v", s, session.Summarize(b.load(s.SessionID)))
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("the list says %v, want %v", got, want)
			}
			b.open(m)
		}
	}
	check(session.DriverPool, session.DriverNone, session.DriverTemporal)
	for _, id := range ids {
		_, err := b.r.Step(b.ctx, id)
		b.ok(err)
	}
	check(session.DriverPool, session.DriverNone, session.DriverTemporal)
	for i, d := range []session.Driver{session.DriverTemporal, session.DriverPool, session.DriverNone} {
		_, err := b.r.SetDriver(b.ctx, ids[i], d, nil)
		b.ok(err)
	}
	check(session.DriverTemporal, session.DriverPool, session.DriverNone)
}

// testListPages reads all sessions page by page, in both directions, while more are
// created: every one that was there comes once, and new ones only where they belong.
func testListPages(t *testing.T, m Maker) {
	b := newBench(t, m)
	var ids []string
	for range 7 {
		ids = append(ids, b.start().ID.String())
	}
	all := func(q session.ListQuery, made int) (of []string) {
		for q.Limit = 3; ; {
			list, err := b.store.List(b.ctx, q)
			b.ok(err)
			for _, s := range list {
				of = append(of, s.SessionID.String())
			}
			if q.After = q.Next(list); q.After == "" {
				return of
			}
			for ; made > 0; made-- {
				b.start()
			}
		}
	}
	if back := all(session.ListQuery{Desc: true}, 2); !slices.Equal(reversed(back), ids) {
		t.Errorf("from the newest to the oldest, the pages are %v, want %v the other way round", back, ids)
	}
	if on := all(session.ListQuery{}, 2); len(on) != 11 || !slices.Equal(on[:7], ids) {
		t.Errorf("from the oldest to the newest, the pages are %v, want %v and four more", on, ids)
	}
	if on := all(session.ListQuery{Statuses: session.LiveStatuses(), MachineName: "storetest"}, 0); len(on) != 11 || !slices.Equal(on[:7], ids) {
		t.Errorf("of live sessions, the pages are %v, want %v and four more", on, ids)
	}
	unknown := session.ListQuery{}
	if unknown.After = unknown.CursorAfter(specialist.SessionID{1}, 0); !errors.Is(list(b, unknown), session.ErrNotFound) {
		t.Errorf("after a session that nobody knows: %v, want ErrNotFound", list(b, unknown))
	}
}

func list(b *bench, q session.ListQuery) error {
	_, err := b.store.List(b.ctx, q)
	return err
}

func reversed(ids []string) []string {
	ids = slices.Clone(ids)
	slices.Reverse(ids)
	return ids
}

// testCursors: a cursor is one of its query. One that was altered, or that another query
// is given, is refused; a page of another size goes on where it ended.
func testCursors(t *testing.T, m Maker) {
	b := newBench(t, m)
	first, second := b.start(), b.start()
	q := session.ListQuery{MachineName: "storetest", Limit: 1}
	page, err := b.store.List(b.ctx, q)
	b.ok(err)
	cursor := q.Next(page)
	q.After, q.Limit = cursor, 5
	rest, err := b.store.List(b.ctx, q)
	if b.ok(err); len(rest) != 1 || rest[0].SessionID != second.ID || q.Next(rest) != "" {
		t.Errorf("after %s come %v, want %s", first.ID, rest, second.ID)
	}
	for i := range len(cursor) {
		for _, c := range []byte("Az-") {
			altered := []byte(cursor)
			if altered[i] == c {
				continue
			}
			altered[i] = c
			if q.After = session.Cursor(altered); !errors.Is(list(b, q), session.ErrCursor) {
				t.Errorf("with character %d altered, the cursor is %v, want ErrCursor", i, list(b, q))
			}
		}
	}
	by := session.ListQuery{MachineName: "storetest", Limit: 1, Order: session.ByDue}
	for _, q := range []session.ListQuery{{MachineName: "storetest", Order: session.ByDue}, {MachineName: "storetest"}} {
		if q.After = by.CursorAfter(first.ID, 5); q.Order == session.ByCreation != errors.Is(list(b, q), session.ErrCursor) {
			t.Errorf("the cursor of a list by due is %v in %+v", list(b, q), q)
		}
	}
	for _, text := range []session.Cursor{"x", cursor + "A", cursor[1:], cursor + "\n", session.Cursor(first.ID.String())} {
		if q.After = text; !errors.Is(list(b, q), session.ErrCursor) {
			t.Errorf("the cursor %q is %v, want ErrCursor", text, list(b, q))
		}
	}
	for _, other := range []session.ListQuery{
		{}, {MachineName: "other"}, {MachineName: "storetest", Desc: true}, {MachineName: "storetest", Statuses: session.LiveStatuses()},
		{MachineName: "storetest", State: "a"}, {MachineName: "storetest", Code: "a"}, {MachineName: "storetest", Subject: "a"},
		{MachineName: "storetest", UpdatedAfter: 1}, {MachineName: "storetest", CreatedAfter: 1}, {MachineName: "storetest", StartedBy: "a"}, {MachineName: "storetest", Reviews: true}, {MachineName: "storetest", Decider: "a"}, {MachineName: "storetest", Order: session.BySince}, {MachineName: "storetest", WaitingAfter: 1}, {MachineName: "storetest", ID: "a"},
	} {
		if other.After = cursor; !errors.Is(list(b, other), session.ErrCursor) {
			t.Errorf("the cursor of another list is %v in %+v, want ErrCursor", list(b, other), other)
		}
	}
}

// testSubjects: a list says what sessions are about, as it is now, whatever else of them
// has changed.
func testSubjects(t *testing.T, m Maker) {
	b := newBench(t, m)
	b.start()
	def, err := machine.Parse("titled.json", []byte(titled), runner.Checks())
	b.ok(err)
	s, err := b.r.Start(b.ctx, def, runner.StartOptions{Meta: []byte(`{"title":"Ünïcode \"1\""}`)})
	b.ok(err)
	subjects := func() string {
		b.open(m)
		list, err := b.store.List(b.ctx, session.ListQuery{})
		b.ok(err)
		var of []string
		for _, sum := range list {
			of = append(of, sum.Subject)
		}
		return strings.Join(of, "|")
	}
	if got, want := subjects(), `|Ünïcode "1"`; got != want {
		t.Errorf("the subjects are %s, want %s", got, want)
	}
	for _, step := range []struct{ transition, payload, want string }{{"rename", `{"title":"two"}`, "|two"}, {"keep", "", "|two"}, {"finish", "", "|two"}} {
		_, err := b.r.Decide(b.ctx, runner.Ruling{SessionID: s.ID, RoundID: b.load(s.ID).Key().ID(), SpecialistID: "human", TransitionName: step.transition, MetaJSON: []byte(step.payload)})
		b.ok(err)
		if got := subjects(); got != step.want {
			t.Errorf("after %s the subjects are %s, want %s", step.transition, got, step.want)
		}
		for prefix, want := range map[string]int{"t": strings.Count(step.want, "two"), "two": 1, "twoo": 0, "Two": 0, "tx": 0} {
			list, err := b.store.List(b.ctx, session.ListQuery{Subject: prefix})
			if b.ok(err); len(list) != want {
				t.Errorf("after %s, %d subjects begin with %q, want %d", step.transition, len(list), prefix, want)
			}
		}
	}
}

// testListByTime: a list says who is due, whom to wake and who need not be stepped, as of
// any moment, also one that lies before another that was asked of.
func testListByTime(t *testing.T, m Maker) {
	b := newBench(t, m)
	ids := []specialist.SessionID{b.start().ID}
	for _, at := range []string{"2030-01-01T10:00:00Z", "2030-01-01T12:00:00Z", "2030-01-01T11:00:00Z"} {
		for _, state := range []string{"cooling", "asking"} {
			def, err := machine.Parse("timed.json", []byte(strings.Replace(timed, `"cooling"`, strconv.Quote(state), 1)), runner.Checks())
			b.ok(err)
			s, err := b.r.Start(b.ctx, def, runner.StartOptions{Meta: []byte(`{"at":"` + at + `"}`)})
			b.ok(err)
			ids = append(ids, s.ID)
		}
	}
	at := func(text string) (at specialist.Time) {
		b.ok(at.UnmarshalJSON([]byte(`"2030-01-01T` + text + `:00Z"`)))
		return at
	}
	live := session.LiveStatuses()
	check := func(cases map[string]session.ListQuery) {
		t.Helper()
		for range 2 { // as it is known, and as it is read
			for want, q := range cases {
				list, err := b.store.List(b.ctx, q)
				b.ok(err)
				got := []string{}
				for _, s := range list {
					got = append(got, strconv.Itoa(slices.Index(ids, s.SessionID)))
					if want := session.Summarize(b.load(s.SessionID)); s != want {
						t.Errorf("List shows %+v, the session is %+v", s, want)
					}
				}
				if want, _, _ = strings.Cut(want, ":"); strings.Join(got, "") != want {
					t.Errorf("List(%+v) = %v, want %s", q, got, want)
				}
			}
			b.open(m)
		}
	}
	check(map[string]session.ListQuery{
		"1":         {Statuses: live, Wake: at("09:30")},
		"135":       {Statuses: live, Wake: at("12:00")},
		":w":        {Statuses: live, Wake: at("09:29")},
		"1:l":       {Statuses: live, Wake: at("12:00"), Limit: 1},
		"5":         {Statuses: live, Wake: at("10:30"), After: (&session.ListQuery{Statuses: live, Wake: at("10:30")}).CursorAfter(ids[1], 0)},
		"0246":      {Statuses: live, Awake: at("09:29")},
		"01246":     {Statuses: live, Awake: at("09:30")},
		"0123456":   {Statuses: live, Awake: at("23:00")},
		"6420":      {Statuses: live, Awake: at("09:00"), Desc: true},
		"12":        {Statuses: live, Overdue: at("10:30")},
		"034":       {Statuses: live, Timely: at("11:00")},
		"135:c":     {Code: session.CodeTimer},
		"0123456:a": {},
	})
	b.force(ids[2], "go")
	if _, err := b.r.Stop(b.ctx, ids[1], runner.Stopping{Actor: session.LocalActor("x"), Note: "no"}); err != nil {
		t.Fatal(err)
	}
	check(map[string]session.ListQuery{
		"35":    {Statuses: live, Wake: at("23:00")},
		"03456": {Statuses: live, Awake: at("23:00")},
		"56":    {Statuses: live, Overdue: at("11:00")},
		"012":   {Timely: at("23:00")},
	})
}

// wantLive fails unless the store counts so many live sessions of its one machine.
func (b *bench) wantLive(want map[session.Status]int) {
	b.Helper()
	counts, err := b.store.Live(b.ctx)
	b.ok(err)
	for _, c := range counts {
		oldest := specialist.Time(0)
		for s, err := range session.Each(b.ctx, b.store.List, session.ListQuery{Statuses: []session.Status{c.Status}}) {
			if b.ok(err); oldest == 0 || s.UpdatedAt < oldest {
				oldest = s.UpdatedAt
			}
		}
		if c.MachineName != b.m.Name() || c.Sessions != want[c.Status] || c.Oldest != oldest {
			b.Errorf("Live has %+v, want %d of %s since %s", c, want[c.Status], b.m.Name(), oldest)
		}
		delete(want, c.Status)
	}
	if len(want) > 0 {
		b.Errorf("Live does not have %v", want)
	}
}
