package scratch_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/internal/projection"
	"github.com/dialai/dialai/store/internal/scratch"
)

func open(t *testing.T) *scratch.Scratch {
	t.Helper()
	s, err := scratch.New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Err(); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// of returns what a log might say of the session of a row.
func of(row int64) scratch.Session {
	return scratch.Session{Row: row, Began: 10 * row, Folded: row%5 != 0, Head: session.Hash{byte(row), 1}, Taken: fmt.Sprint("taken of ", row),
		Session: projection.Session{ID: fmt.Sprint("id ", row), Machine: "m\x00é", Digest: "d", Status: "completed", Reason: "be\x00cause", Subject: strings.Repeat("x", int(row%700)), Sequence: row, PicoUSD: 1 << 60}}
}

// TestScratch: what is kept comes back as it was, by its number and in the order of numbers, whatever the order it came in; the last of a
// number counts.
func TestScratch(t *testing.T) {
	s := open(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	const n = 2000
	for _, i := range r.Perm(n) {
		row := int64(i + 1)
		first := of(row + 1)
		first.Row = row
		if s.PutSession(&first); r.IntN(2) == 0 { // read before it is put again
			if got, there := s.Session(row); !there || got != first {
				t.Fatalf("session %d is %+v", row, got)
			}
		}
		now := of(row)
		s.PutSession(&now)
		s.PutLesson(scratch.Lesson{Place: row, Text: fmt.Sprint("lesson\x00 ", row), At: -row, Of: 2 * row, Machine: "m"})
		s.PutExemplar(row, fmt.Sprint("session ", row%7), projection.Exemplar{Machine: "m", State: "s", Text: fmt.Sprintf(`{"exemplarId":"%d",…`, row)})
	}
	next := int64(1)
	for got := range s.Sessions() {
		if *got != of(next) {
			t.Fatalf("session %d is %+v", next, *got)
		}
		if again, there := s.Session(next); !there || again != *got { // while others are read
			t.Fatalf("session %d is %+v", next, again)
		}
		next++
	}
	if next != n+1 || s.Folded() != n-n/5 {
		t.Errorf("there are %d sessions, %d of them whole", next-1, s.Folded())
	}
	if got, there := s.Session(n + 1); there || got != (scratch.Session{}) {
		t.Errorf("a session that was not put is %+v", got)
	}
	s.Retract("session 3", `{"exemplarId":"10",`)
	s.Retract("session 4", `{"exemplarId":"10",`) // it has none of that
	if e, there := s.Exemplar(10); !there || e != (projection.Exemplar{Machine: "m", State: "s"}) {
		t.Errorf("taken back it is %+v", e)
	}
	texts := slices.Collect(func(yield func(string) bool) {
		for e := range s.Exemplars() {
			if !yield(e.Text) {
				return
			}
		}
	})
	if len(texts) != n || texts[9] != "" || texts[10] != `{"exemplarId":"11",…` || slices.Index(texts[10:], "") >= 0 || s.CountExemplars() != n {
		t.Errorf("the exemplars are %q and others", texts[8:12])
	}
	next = 1
	for place, text := range s.Texts() {
		l, there := s.Lesson(place)
		if want := fmt.Sprint("lesson\x00 ", next); place != next || text != want || !there || l != (scratch.Lesson{Place: place, Text: want, At: -place, Of: 2 * place, Machine: "m"}) {
			t.Fatalf("lesson %d is %q, %+v", place, text, l)
		}
		next++
	}
	if _, there := s.Lesson(n + 1); there || next != n+1 || s.CountLessons() != n {
		t.Errorf("there are %d lessons", s.CountLessons())
	}
	for range s.Sessions() {
		break // what is not read further gives the connection back
	}
}

// TestScratchSpills: what does not fit into the pages that are kept in memory is in a file without a name, and none is left.
func TestScratchSpills(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what files a process has open is read from /proc")
	}
	spilled := func() (list []string) {
		fds, _ := filepath.Glob("/proc/self/fd/*")
		for _, fd := range fds {
			if to, err := os.Readlink(fd); err == nil && strings.Contains(to, "etilqs_") {
				list = append(list, to)
			}
		}
		return list
	}
	s, err := scratch.New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.PutLesson(scratch.Lesson{Place: 1, Text: "x"})
	if list := spilled(); len(list) > 0 {
		t.Errorf("little is in %q", list)
	}
	for place := range int64(2000) {
		s.PutLesson(scratch.Lesson{Place: place, Text: strings.Repeat("x", 8000)})
	}
	if list := spilled(); len(list) != 1 || !strings.HasSuffix(list[0], "(deleted)") {
		t.Errorf("16 MB are in %q", list)
	}
	if s.CountLessons() != 2000 {
		t.Errorf("there are %d lessons", s.CountLessons())
	}
	if err := s.Err(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if list := spilled(); len(list) > 0 {
		t.Errorf("closed it has left %q", list)
	}
}

// TestScratchFails: after an error nothing is said, and the error is kept.
func TestScratchFails(t *testing.T) {
	s, err := scratch.New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	now := of(1)
	s.PutSession(&now)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s.PutSession(&now)
	if _, there := s.Session(1); there || s.CountLessons() != 0 || s.Err() == nil || !strings.Contains(s.Err().Error(), "temporary file") {
		t.Errorf("closed it says %v", s.Err())
	}
}
