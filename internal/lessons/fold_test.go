package lessons_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/lessons"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/session"
)

// A kept is a store of lessons that keeps snapshots, and counts the lessons that are read.
type kept struct {
	session.TrustStore
	lessons   []trust.Lesson
	snapshots []session.LedgerSnapshot // of all lessons, the newest first
	states    []session.LedgerSnapshot // of states; likewise
	read      int
	fail      int64 // the lesson that cannot be read; 0 for none
}

var errUnread = errors.New("cannot be read")

func (k *kept) Lessons(_ context.Context, after int64) iter.Seq2[trust.Lesson, error] {
	return func(yield func(trust.Lesson, error) bool) {
		for _, x := range k.lessons {
			if x.Seq <= after {
				continue
			}
			if x.Seq == k.fail {
				yield(trust.Lesson{}, errUnread)
				return
			}
			if k.read++; !yield(x, nil) {
				return
			}
		}
	}
}

func (k *kept) KeepLedger(_ context.Context, s session.LedgerSnapshot) error {
	list := &k.snapshots
	if s.Scope != "" {
		list = &k.states
	}
	*list = append([]session.LedgerSnapshot{s}, *list...)
	return nil
}

func (k *kept) LedgerSnapshots(_ context.Context, scope string) iter.Seq2[session.LedgerSnapshot, error] {
	return func(yield func(session.LedgerSnapshot, error) bool) {
		for _, s := range slices.Concat(k.snapshots, k.states) {
			if s.Scope == scope && !yield(s, nil) {
				return
			}
		}
	}
}

// some returns lessons of two machines at every second place, some of them of automatic decisions.
func some(n int) *kept {
	k := &kept{}
	d := trust.NewDraw("lessons")
	for i := range n {
		o := &trust.Outcome{Machine: fmt.Sprint("m", i%3%2), State: fmt.Sprint("s", i%5), Options: []string{"a", "b"}, Truth: "a", Pick: "a", P: exact.One * 9 / 10,
			Source: trust.Forced, HumanID: "h", Round: fmt.Sprint("round ", i), Automatic: i%4 == 0}
		for v := range 3 {
			p := trust.OutcomeProposal{SpecialistID: fmt.Sprint("voter ", v), Version: "1", Transition: "a"}
			if d.Float() < .3 {
				p.Transition = "b"
			}
			o.Proposals = append(o.Proposals, p)
		}
		x := trust.Lesson{Seq: int64(2*i + 1), Outcome: o}
		if i%400 == 399 {
			x = trust.Lesson{Seq: x.Seq, Retracts: k.lessons[i-1].Outcome}
		}
		k.lessons = append(k.lessons, x)
	}
	return k
}

func folded(t *testing.T, list []trust.Lesson) []byte {
	t.Helper()
	f := lessons.NewFold()
	for _, x := range list {
		if err := f.Learn(x); err != nil {
			t.Fatal(err)
		}
	}
	return f.Snapshot().Body
}

// state is all that a follower says of what it has read.
func state(t *testing.T, f *lessons.Follower, k *kept) string {
	t.Helper()
	l, place, err := f.Read(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprint(place)
	for _, name := range l.Machines() {
		q := trust.Question{Machine: name, State: "s1", Options: []string{"a", "b"}, Votes: []trust.Vote{{SpecialistID: "voter 1", Version: "1"}, {SpecialistID: "voter 2", Version: "1", Option: 1}}}
		q.Policy.Rounds = true // where there are any
		s, n := f.Savings(&q, exact.One*8/10)
		said, err := json.Marshal(l.Judge(q))
		if err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf("\n%s: %s\n%v %d %t\n%d looks", name, said, s, n, f.Worth(&q, exact.One*8/10), f.Calibration(name, "").Report().Looks)
	}
	return text
}

// TestSnapshots: a snapshot is kept at the newest thousandth lesson that was folded past, whoever
// begins after it reads only what comes then, and both say the same.
func TestSnapshots(t *testing.T) {
	k := some(2210)
	first := state(t, lessons.New(), k)
	if len(k.snapshots) != 1 || k.snapshots[0].Place != k.lessons[1999].Seq || !bytes.Equal(k.snapshots[0].Body, folded(t, k.lessons[:2000])) {
		t.Fatalf("%d snapshots are kept, want one of the first 2,000 lessons", len(k.snapshots))
	}
	k.read = 0
	f := lessons.New()
	if got := state(t, f, k); got != first || k.read != 211 { // the last of the snapshot, to see that it is there
		t.Errorf("after the snapshot %d lessons were read, want 211:\n%s\nwant\n%s", k.read, got, first)
	}
	if len(k.snapshots) != 1 {
		t.Errorf("who folds past nothing keeps another: %d", len(k.snapshots))
	}
	k.lessons = some(3001).lessons
	got := state(t, f, k)
	alone := &kept{TrustStore: k.TrustStore, lessons: k.lessons}
	if want := state(t, lessons.New(), alone); got != want {
		t.Errorf("gone on from a snapshot:\n%s\nwant\n%s", got, want)
	}
	if len(k.snapshots) != 2 || !bytes.Equal(k.snapshots[0].Body, alone.snapshots[0].Body) {
		t.Error("gone on from a snapshot, the next one has other bytes")
	}
}

// TestSnapshotsThatDoNotFit: one of another format, place or store, and one that is damaged, is
// passed over for one before, or for none.
func TestSnapshotsThatDoNotFit(t *testing.T) {
	k := some(2100)
	want := state(t, lessons.New(), k)
	good := k.snapshots[0]
	older := session.LedgerSnapshot{Place: k.lessons[999].Seq, Format: lessons.Format, Body: folded(t, k.lessons[:1000])}
	for _, c := range []struct {
		what string
		bad  session.LedgerSnapshot
	}{
		{"another format", session.LedgerSnapshot{Place: good.Place, Format: good.Format + 1, Body: good.Body}},
		{"another place", session.LedgerSnapshot{Place: good.Place + 2, Format: good.Format, Body: good.Body}},
		{"an end", session.LedgerSnapshot{Place: good.Place, Format: good.Format, Body: good.Body[:len(good.Body)-1]}},
		{"no body", session.LedgerSnapshot{Place: good.Place, Format: good.Format}},
		{"no thousandth", session.LedgerSnapshot{Place: k.lessons[1500].Seq, Format: good.Format, Body: folded(t, k.lessons[:1501])}},
	} {
		k.snapshots, k.read = []session.LedgerSnapshot{c.bad, older}, 0
		if got := state(t, lessons.New(), k); got != want || k.read != 1101 {
			t.Errorf("%s: %d lessons were read, want those after the one before:\n%s\nwant\n%s", c.what, k.read, got, want)
		}
	}
	gone := &kept{lessons: slices.Concat(k.lessons[:1998], k.lessons[2000:]), snapshots: []session.LedgerSnapshot{good}}
	if got := state(t, lessons.New(), gone); got == want {
		t.Error("a snapshot of a place at which there is no lesson is taken")
	}
}

// withRounds puts a round without a human's word before every second lesson.
func withRounds(k *kept) *kept {
	list := k.lessons
	k.lessons = nil
	for i, x := range list {
		if o := x.Outcome; o != nil && i%2 == 1 {
			u := trust.UnruledOf(fmt.Sprint("unruled ", i), o.Machine, o.State, o.Options, o.Proposals)
			k.lessons = append(k.lessons, trust.Lesson{Seq: x.Seq - 1, Unruled: u})
		}
		k.lessons = append(k.lessons, x)
	}
	return k
}

// TestSnapshotsWithRounds: where rounds without a human's word are learned from, snapshots have
// these, in a format of their own, and who goes on from one says what who reads all says. A snapshot
// from which a round was left out is found.
func TestSnapshotsWithRounds(t *testing.T) {
	k := withRounds(some(800))
	k.lessons = k.lessons[:1130]
	first := state(t, lessons.New(), k)
	if len(k.snapshots) != 1 || k.snapshots[0].Format != lessons.FormatUnruled || k.snapshots[0].Place != k.lessons[999].Seq {
		t.Fatalf("%d snapshots are kept, want one of the first 1,000 lessons, with rounds", len(k.snapshots))
	}
	k.read = 0
	if got := state(t, lessons.New(), k); got != first || k.read != 131 {
		t.Errorf("after the snapshot %d lessons were read, want 131:\n%s\nwant\n%s", k.read, got, first)
	}
	humans := &kept{}
	for _, x := range k.lessons {
		if x.Unruled == nil {
			humans.lessons = append(humans.lessons, x)
		}
	}
	if state(t, lessons.New(), humans) == first {
		t.Error("the rounds say nothing")
	}
	right := k.snapshots
	all := (&kept{lessons: k.lessons}).Lessons(t.Context(), 0)
	if wrong, err := lessons.Disprove(right, all); wrong != nil || err != nil {
		t.Fatalf("a snapshot is said to be wrong (%v)", err)
	}
	for i, x := range k.lessons {
		if i > 500 && x.Unruled != nil { // within the window, and with as many lessons
			u := *x.Unruled
			u.Proposals = u.Proposals[1:]
			k.lessons = slices.Clone(k.lessons)
			k.lessons[i].Unruled = &u
			break
		}
	}
	if wrong, err := lessons.Disprove(right, (&kept{lessons: k.lessons}).Lessons(t.Context(), 0)); wrong == nil || err != nil {
		t.Errorf("with another round, the snapshot is said to be right (%v)", err)
	}
}

// TestReadGoesOn: a lesson that cannot be read is an error, and what came before is learned once.
func TestReadGoesOn(t *testing.T) {
	k := some(60)
	want := state(t, lessons.New(), k)
	f := lessons.New()
	k.fail = k.lessons[30].Seq
	for range 2 {
		if _, _, err := f.Read(t.Context(), k); !errors.Is(err, errUnread) {
			t.Fatalf("reading says %v", err)
		}
	}
	k.fail = 0
	if got := state(t, f, k); got != want {
		t.Errorf("after an error:\n%s\nwant\n%s", got, want)
	}
}

// TestReadersKeepTheirLedger: what is learned later does not change what was handed out.
func TestReadersKeepTheirLedger(t *testing.T) {
	k, f := some(40), lessons.New()
	later := k.lessons[20:]
	k.lessons = k.lessons[:20]
	first, _, err := f.Read(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	n := first.N("m0")
	since := func() *trust.Ledger {
		l, _, err := f.Since(t.Context(), k, "m0", "s0", 0, k.lessons[len(k.lessons)-1].Seq)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	evidence := since()
	known := evidence.N("m0")
	k.lessons = append(k.lessons, later...)
	if next, _, err := f.Read(t.Context(), k); err != nil || next.N("m0") <= n || first.N("m0") != n {
		t.Errorf("there were %d outcomes, now there are %d, and whoever read before has %d (%v)", n, next.N("m0"), first.N("m0"), err)
	}
	if now := since(); now.N("m0") <= known || evidence.N("m0") != known {
		t.Errorf("there were %d outcomes of the state, now there are %d, and whoever read before has %d", known, now.N("m0"), evidence.N("m0"))
	}
}

// TestEvidence: the outcomes of a state between two places and what humans thought of its
// automatic decisions are those that the lessons tell, from a snapshot or from the beginning.
func TestEvidence(t *testing.T) {
	k := some(2600)
	for i := range k.lessons {
		if o := k.lessons[i].Outcome; o != nil && i%20 == 0 {
			o.Unasked, o.Truth = true, "b"
		}
	}
	after, place := k.lessons[40].Seq, k.lessons[100].Seq
	look := func(f *lessons.Follower, upTo int64) (said string) {
		t.Helper()
		l, marks, err := f.Since(t.Context(), k, "m0", "s0", after, upTo)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(l.Candidates("m0", "s0", trust.Target{Share: exact.One / 2, Alpha: exact.One / 20, ClassShare: exact.One / 2, AnyRuling: true}))
		if err != nil {
			t.Fatal(err)
		}
		said = fmt.Sprintf("%d outcomes, %s:", l.N("m0"), text)
		for _, m := range marks.After(place) {
			said += fmt.Sprintf(" %s %t %t %s", m.Round, m.Right, m.Unasked, m.Prob)
		}
		return said
	}
	slow := func(upTo int64) string {
		l, marks := trust.New(), ""
		for _, x := range k.lessons {
			o := x.Outcome
			if o == nil || o.Machine != "m0" || o.State != "s0" || x.Seq <= after || x.Seq > upTo {
				continue
			}
			if err := l.Learn(x); err != nil {
				t.Fatal(err)
			}
			if o.Automatic && x.Seq > place {
				round := ""
				if o.Unasked && o.Truth != o.Pick {
					round = o.Round
				}
				marks += fmt.Sprintf(" %s %t %t %s", round, o.Truth == o.Pick, o.Unasked, exact.One)
			}
		}
		text, err := json.Marshal(l.Candidates("m0", "s0", trust.Target{Share: exact.One / 2, Alpha: exact.One / 20, ClassShare: exact.One / 2, AnyRuling: true}))
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%d outcomes, %s:%s", l.N("m0"), text, marks)
	}
	f := lessons.New()
	for _, i := range []int{900, 900, 1500, 2100, 1600, 2599} { // once it goes back
		upTo := k.lessons[i].Seq
		if got, want := look(f, upTo), slow(upTo); got != want {
			t.Fatalf("up to lesson %d:\n%s\nwant\n%s", i, got, want)
		}
	}
	if len(k.states) == 0 {
		t.Fatal("no snapshot is kept")
	}
	k.read = 0
	upTo := k.lessons[2599].Seq
	if got, want := look(lessons.New(), upTo), slow(upTo); got != want || k.read > 1001 {
		t.Errorf("from a snapshot, and %d lessons:\n%s\nwant\n%s", k.read, got, want)
	}
	if got, want := look(lessons.New(), k.lessons[500].Seq), slow(k.lessons[500].Seq); got != want {
		t.Errorf("up to a place before the snapshot:\n%s\nwant\n%s", got, want)
	}
	after = k.lessons[60].Seq // evidence was archived: what is kept does not fit
	if got, want := look(lessons.New(), upTo), slow(upTo); got != want {
		t.Errorf("after another place:\n%s\nwant\n%s", got, want)
	}
}

// TestDisprove: snapshots that the lessons do not come to are found, of all lessons and of states.
func TestDisprove(t *testing.T) {
	k := some(2100)
	state(t, lessons.New(), k)
	for _, name := range []string{"s0", "s1"} {
		if _, _, err := lessons.New().Since(t.Context(), k, "m0", name, 7, k.lessons[1700].Seq); err != nil {
			t.Fatal(err)
		}
	}
	all := func(list []trust.Lesson) iter.Seq2[trust.Lesson, error] {
		return (&kept{lessons: list}).Lessons(t.Context(), 0)
	}
	right := slices.Concat(k.snapshots, k.states)
	if wrong, err := lessons.Disprove(right, all(k.lessons)); wrong != nil || err != nil || len(right) != 3 {
		t.Fatalf("of %d snapshots is said to be wrong: %+v (%v)", len(right), wrong, err)
	}
	other := slices.Clone(k.lessons)
	o := *other[1005].Outcome // of m0, s0
	if o.Truth, o.HumanID = "b", "somebody else"; o.Machine != "m0" || o.State != "s0" {
		t.Fatal("it is of another state")
	}
	other[1005].Outcome = &o
	for i := range right {
		one := right[i]
		wrong, err := lessons.Disprove([]session.LedgerSnapshot{one}, all(other))
		if concerns := one.Scope != `"m0" "s1"`; (wrong != nil) != concerns || err != nil {
			t.Errorf("with another lesson, snapshot %d of scope %q is said to be %v (%v)", i, one.Scope, wrong != nil, err)
		}
		one.Place++
		if wrong, err := lessons.Disprove([]session.LedgerSnapshot{one}, all(k.lessons)); wrong == nil || err != nil {
			t.Errorf("at another place, snapshot %d is said to be right (%v)", i, err)
		}
		one = right[i]
		one.Scope = `"m1" "s0"`
		if wrong, err := lessons.Disprove([]session.LedgerSnapshot{one}, all(k.lessons)); wrong == nil || err != nil {
			t.Errorf("of another scope, snapshot %d is said to be right (%v)", i, err)
		}
		one.Format++
		if wrong, err := lessons.Disprove([]session.LedgerSnapshot{one}, all(k.lessons)); wrong != nil || err != nil {
			t.Errorf("of another format, snapshot %d is not passed over (%v)", i, err)
		}
	}
}

// TestFormat holds the bytes of a snapshot: if they change, lessons.Format has to rise, or
// trust.LedgerFormat, and the sum below with it.
func TestFormat(t *testing.T) {
	const format, sum = 1025, "7112707186fcd572f534d9a7f6e9e6bb435b5c776d0c0340802ce3347df420d6"
	if got := fmt.Sprintf("%x", sha256.Sum256(folded(t, some(120).lessons))); got != sum || lessons.Format != format {
		t.Errorf("format %d has the bytes %s, format %d had %s", lessons.Format, got, format, sum)
	}
}

// FuzzSnapshot: whatever is kept as a snapshot, reading does not panic, and what is said of the
// lessons is what they say or what a snapshot of their end says.
func FuzzSnapshot(f *testing.F) {
	k := some(1000)
	fold := lessons.NewFold()
	for _, x := range k.lessons {
		if err := fold.Learn(x); err != nil {
			f.Fatal(err)
		}
	}
	body := fold.Snapshot().Body
	if _, _, err := lessons.New().Since(f.Context(), k, "m0", "s0", 0, k.lessons[999].Seq); err != nil {
		f.Fatal(err)
	}
	f.Add(k.states[0].Body)
	f.Add(body)
	f.Add(body[:len(body)/2])
	f.Add([]byte{})
	last := k.lessons[999].Seq
	f.Fuzz(func(t *testing.T, data []byte) {
		k := &kept{lessons: k.lessons[999:], snapshots: []session.LedgerSnapshot{{Place: last, Format: lessons.Format, Body: data}}}
		if _, place, err := lessons.New().Read(t.Context(), k); err == nil && place != last {
			t.Errorf("the newest lesson is said to be %d, and not %d", place, last)
		}
		k.states = []session.LedgerSnapshot{{Scope: `"m0" "s0"`, Place: last, Format: lessons.Format, Body: data}}
		if l, marks, err := lessons.New().Since(t.Context(), k, "m0", "s0", 0, last); err == nil {
			l.N("m0")
			marks.After(last / 2)
		}
	})
}

// BenchmarkSnapshot writes and reads what 2,000 lessons have come to, a full window.
func BenchmarkSnapshot(b *testing.B) {
	k := some(3000)
	f := lessons.NewFold()
	for _, x := range k.lessons {
		for v := range 13 {
			if o := x.Outcome; o != nil {
				o.Proposals = append(o.Proposals, trust.OutcomeProposal{SpecialistID: fmt.Sprint("other ", v), Version: "1", Transition: o.Options[v%2]})
			}
		}
		if err := f.Learn(x); err != nil {
			b.Fatal(err)
		}
	}
	s := f.Snapshot()
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			f.Snapshot()
		}
		b.ReportMetric(float64(len(s.Body)), "bytes")
	})
	b.Run("read", func(b *testing.B) {
		end := &kept{lessons: k.lessons[2999:], snapshots: []session.LedgerSnapshot{s}}
		for b.Loop() {
			if _, place, err := lessons.New().Read(b.Context(), end); err != nil || place != s.Place {
				b.Fatal(place, err)
			}
		}
	})
}
