// Package scratch keeps what a check of a store has read in logs, until it is held against the tables or written anew.
//
// That is as much as there are sessions and decisions of humans, so it is not kept in memory but in a database of SQLite
// without a name: some of its pages are in memory, the others in a file that nobody else sees and that goes with
// the process. Nothing of it is ever committed.
package scratch

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	_ "modernc.org/sqlite" // the driver

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/internal/projection"
)

// A Scratch has what logs say should be in tables. It is not for concurrent use. The first error of any of its methods is
// kept, and what they return from then on says nothing: see [Scratch.Err]. Close must be called.
type Scratch struct {
	db   *sql.DB
	conn *sql.Conn
	all  []*sql.Stmt
	err  error

	putSession, putLesson, putExemplar, retract *sql.Stmt
	session, lesson, exemplar                   *sql.Stmt

	last  Session // that was asked for last
	known bool
}

// A Session is what the log of a session says of its row.
type Session struct {
	Row    int64 // number of its row
	Began  int64 // place of its first record
	Folded bool  // the log is whole; without it nothing of what follows is known
	projection.Session
	Head  session.Hash
	Taken string // what was taken back and never charged
}

// A Lesson is what a record at a place taught, as it is stored.
type Lesson struct {
	Place int64
	Text  string
	At    int64 // when it was recorded, in ms since 1970
	// Of is the row of its session, Machine the name of its machine; a file has neither beside it.
	Of      int64
	Machine string
}

// sessionColumns are those of a session but for its numbers. A machine stands there by its name.
var sessionColumns = append([]string{"folded", "taken"}, projection.SessionColumns...)

// New returns an empty Scratch. It keeps at most some 4 MiB in memory.
func New(ctx context.Context) (*Scratch, error) {
	db, err := sql.Open("sqlite", "") // each connection has a database of its own
	if err != nil {
		return nil, err
	}
	s := &Scratch{db: db}
	if s.conn, err = db.Conn(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	for _, query := range []string{
		`PRAGMA cache_size=-4096`, `PRAGMA journal_mode=OFF`, `PRAGMA synchronous=OFF`,
		`BEGIN`,
		`CREATE TABLE sessions (id INTEGER PRIMARY KEY, began INTEGER, ` + strings.Join(sessionColumns, ", ") + `)`,
		`CREATE TABLE lessons (place INTEGER PRIMARY KEY, lesson TEXT, at INTEGER, of INTEGER, machine TEXT)`,
		`CREATE TABLE exemplars (place INTEGER PRIMARY KEY, of TEXT, machine TEXT, state TEXT, exemplar TEXT)`,
		`CREATE INDEX exemplars_of ON exemplars (of)`,
	} {
		if _, err := s.conn.ExecContext(ctx, query); err != nil {
			s.err = failed(err)
			return nil, errors.Join(s.err, s.Close())
		}
	}
	s.prepare(ctx, &s.putSession, `INSERT OR REPLACE INTO sessions (id, began, `+strings.Join(sessionColumns, ", ")+`) VALUES (?, ?`+strings.Repeat(", ?", len(sessionColumns))+`)`)
	s.prepare(ctx, &s.putLesson, `INSERT OR REPLACE INTO lessons (place, lesson, at, of, machine) VALUES (?, ?, ?, ?, ?)`)
	s.prepare(ctx, &s.putExemplar, `INSERT OR REPLACE INTO exemplars (place, of, machine, state, exemplar) VALUES (?, ?, ?, ?, ?)`)
	s.prepare(ctx, &s.retract, `UPDATE exemplars SET exemplar='' WHERE of=? AND substr(exemplar, 1, ?)=?`)
	s.prepare(ctx, &s.session, selectSession+` WHERE id=?`)
	s.prepare(ctx, &s.lesson, selectLesson+` WHERE place=?`)
	s.prepare(ctx, &s.exemplar, selectExemplar+` WHERE place=?`)
	if s.err != nil {
		return nil, errors.Join(s.err, s.Close())
	}
	return s, nil
}

var (
	selectSession  = `SELECT id, began, ` + strings.Join(sessionColumns, ", ") + ` FROM sessions`
	selectLesson   = `SELECT place, lesson, at, of, machine FROM lessons`
	selectExemplar = `SELECT place, machine, state, exemplar FROM exemplars`
)

func (s *Scratch) prepare(ctx context.Context, into **sql.Stmt, query string) {
	if s.err != nil {
		return
	}
	var err error
	if *into, err = s.conn.PrepareContext(ctx, query); err != nil {
		s.err = failed(err)
		return
	}
	s.all = append(s.all, *into)
}

// failed says of an error where it was.
func failed(err error) error {
	return fmt.Errorf("what was read of the logs cannot be kept in a temporary file: %w", err)
}

// Close forgets everything, and gives back its room.
func (s *Scratch) Close() (err error) {
	for _, st := range s.all {
		err = errors.Join(err, st.Close())
	}
	return errors.Join(err, s.conn.Close(), s.db.Close())
}

// Err returns the first error of any method.
func (s *Scratch) Err() error { return s.err }

func (s *Scratch) keep(err error) {
	if s.err == nil && err != nil {
		s.err = failed(err)
	}
}

func (s *Scratch) exec(st *sql.Stmt, args ...any) {
	if s.err == nil {
		_, err := st.Exec(args...)
		s.keep(err)
	}
}

// found reports whether there is a row, which it puts into fields.
func (s *Scratch) found(st *sql.Stmt, key int64, fields ...any) bool {
	if s.err != nil {
		return false
	}
	err := st.QueryRow(key).Scan(fields...)
	if errors.Is(err, sql.ErrNoRows) {
		return false
	}
	s.keep(err)
	return err == nil
}

// rows calls do for each row of a query, which it has put into fields, until do returns false.
func (s *Scratch) rows(query string, fields []any, do func() bool) {
	if s.err != nil {
		return
	}
	rows, err := s.conn.QueryContext(context.Background(), query)
	if err != nil {
		s.keep(err)
		return
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(fields...); err != nil {
			s.keep(err)
			return
		}
		if !do() {
			return
		}
	}
	s.keep(rows.Err())
}

// count returns how many rows a query is of.
func (s *Scratch) count(from string) (n int) {
	if s.err == nil {
		s.keep(s.conn.QueryRowContext(context.Background(), `SELECT count(*) FROM `+from).Scan(&n))
	}
	return n
}

// fields are where the columns of selectSession are.
func (v *Session) fields(head *[]byte) []any {
	var row int64 // of the machine in the tables; here its name stands there
	list := v.Fields([]any{&v.Row, &v.Began, &v.Folded, &v.Taken}, &row, head)
	list[slices.Index(list, any(&row))] = &v.Machine
	return list
}

// PutSession keeps what the log of a session says, in the place of what was kept of the same row.
func (s *Scratch) PutSession(v *Session) {
	head := v.Head[:]
	s.known = false
	s.exec(s.putSession, projection.Values(v.fields(&head))...)
}

// Session returns what is kept of a row, false if nothing is.
func (s *Scratch) Session(row int64) (v Session, there bool) {
	if s.known && s.last.Row == row {
		return s.last, true
	}
	var head []byte
	if !s.found(s.session, row, v.fields(&head)...) {
		return Session{}, false
	}
	copy(v.Head[:], head)
	s.last, s.known = v, true
	return v, true
}

// Sessions yields all sessions in the order of their rows. A session is valid until the next one.
func (s *Scratch) Sessions() iter.Seq[*Session] {
	return func(yield func(*Session) bool) {
		var v Session
		var head []byte
		s.rows(selectSession+` ORDER BY id`, v.fields(&head), func() bool {
			copy(v.Head[:], head)
			return yield(&v)
		})
	}
}

// Folded returns of how many sessions the log is whole.
func (s *Scratch) Folded() int { return s.count(`sessions WHERE folded`) }

func (l *Lesson) fields() []any { return []any{&l.Place, &l.Text, &l.At, &l.Of, &l.Machine} }

// PutLesson keeps a lesson.
func (s *Scratch) PutLesson(l Lesson) { s.exec(s.putLesson, l.Place, l.Text, l.At, l.Of, l.Machine) }

// Lesson returns the lesson of a place, false if there is none.
func (s *Scratch) Lesson(place int64) (l Lesson, there bool) {
	there = s.found(s.lesson, place, l.fields()...)
	return l, there
}

// Lessons yields all lessons in the order of their places.
func (s *Scratch) Lessons() iter.Seq[Lesson] {
	return func(yield func(Lesson) bool) {
		var l Lesson
		s.rows(selectLesson+` ORDER BY place`, l.fields(), func() bool { return yield(l) })
	}
}

// Texts yields the lessons as they are stored, by their places, in the order of these.
func (s *Scratch) Texts() iter.Seq2[int64, string] {
	return func(yield func(int64, string) bool) {
		for l := range s.Lessons() {
			if !yield(l.Place, l.Text) {
				return
			}
		}
	}
}

// CountLessons returns how many lessons there are.
func (s *Scratch) CountLessons() int { return s.count("lessons") }

// PutExemplar keeps the exemplar of a place, of a session.
func (s *Scratch) PutExemplar(place int64, of string, e projection.Exemplar) {
	s.exec(s.putExemplar, place, of, e.Machine, e.State, e.Text)
}

// Retract empties the exemplars of a session whose texts begin with a prefix: their rulings were taken back.
func (s *Scratch) Retract(of, prefix string) { s.exec(s.retract, of, len([]rune(prefix)), prefix) }

// Exemplar returns the exemplar of a place, false if there is none.
func (s *Scratch) Exemplar(place int64) (e projection.Exemplar, there bool) {
	there = s.found(s.exemplar, place, &place, &e.Machine, &e.State, &e.Text)
	return e, there
}

// Exemplars yields all exemplars in the order of their places.
func (s *Scratch) Exemplars() iter.Seq[projection.Exemplar] {
	return func(yield func(projection.Exemplar) bool) {
		var place int64
		var e projection.Exemplar
		s.rows(selectExemplar+` ORDER BY place`, []any{&place, &e.Machine, &e.State, &e.Text}, func() bool { return yield(e) })
	}
}

// CountExemplars returns how many exemplars there are.
func (s *Scratch) CountExemplars() int { return s.count("exemplars") }
