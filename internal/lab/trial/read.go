package trial

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Reading a data set: comma-separated files, each with a header that names its columns,
// in any order. Truths come first and say which questions there are; then workers, if
// there is a file of them; then answers, of which those to other questions are counted
// and left out, and of a repeated pair the later one holds. At the end classes are put
// in byte order and answers in the order of workers, so that the order of rows decides
// nothing.
//
// What is wrong is reported with its file, line and column (ErrData). What is probably not
// meant, but can be measured, is a warning: how often it was found, and where first. Strings
// are cloned, since rows share their memory.

// ErrData is wrapped by every error about what a file says. The text names the
// file, the line and, in bytes from 1, the column.
var ErrData = errors.New("bad data")

// The files of a directory of data.
const (
	AnswerFile  = "answer.csv"  // question,worker,answer: a repeated pair counts as its later row
	TruthFile   = "truth.csv"   // question,truth[,state]
	WorkersFile = "workers.csv" // optional: worker,model,order,cost
	SplitsFile  = "splits.csv"  // optional: split,question
	CorrectFile = "correct.csv" // question,state and one column of 0 and 1 per model
)

const (
	maxRows = 50_000_000
	maxCost = 1e6 // of an answer; sums of many still are amounts of money
)

// A row is one line of a file, by column.
type row struct {
	file   string
	fields []string
	at     [][2]int // line and column of each field
}

// place returns where the i-th field stands.
func (r row) place(i int) string { return fmt.Sprintf("%s:%d:%d", r.file, r.at[i][0], r.at[i][1]) }

// bad is an error about the i-th field.
func (r row) bad(i int, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrData, r.place(i), fmt.Sprintf(format, args...))
}

// rows calls each with the lines of a file, in order. The header has to name the
// columns wanted, in any order; fields come in the order wanted, those of optional
// columns, after a "?", may be missing and are "" then.
func rows(dir fs.FS, file string, columns []string, each func(r row) error) error {
	f, err := dir.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	text := bufio.NewReader(f)
	if mark, _ := text.Peek(3); string(mark) == "\ufeff" {
		_, _ = text.Discard(3)
	}
	c := csv.NewReader(text)
	c.FieldsPerRecord, c.ReuseRecord = -1, true
	header, err := c.Read()
	if err == io.EOF {
		return fmt.Errorf("%w: %s:1:1: no header: the first line names the columns %s", ErrData, file, strings.ReplaceAll(strings.Join(columns, ","), "?", ""))
	}
	if err != nil {
		return unreadable(file, err)
	}
	for i, name := range header {
		if at := notUTF8(name); at >= 0 {
			line, column := c.FieldPos(i)
			return fmt.Errorf("%w: %s:%d:%d: %s", ErrData, file, line, column+at, isNotUTF8("the header", name[at]))
		}
	}
	place, err := columnsOf(file, header, columns)
	if err != nil {
		return err
	}
	r := row{file: file, fields: make([]string, len(columns)), at: make([][2]int, len(columns))}
	for range maxRows {
		record, err := c.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return unreadable(file, err)
		}
		if err := r.take(c, record, place, columns); err != nil {
			return err
		}
		if err := each(r); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: %s: more than %d rows", ErrData, file, maxRows)
}

// unreadable says where a file is no list of fields between commas, and what to do.
func unreadable(file string, err error) error {
	var bad *csv.ParseError
	switch {
	case !errors.As(err, &bad):
		return fmt.Errorf("%w: %s: %v", ErrData, file, err)
	case errors.Is(err, csv.ErrQuote):
		return fmt.Errorf(`%w: %s:%d:%d: a field in quotes does not end here as it should; its row begins in line %d: close the quotes, and write a quote inside of them twice`, ErrData, file, bad.Line, bad.Column, bad.StartLine)
	case errors.Is(err, csv.ErrBareQuote):
		return fmt.Errorf(`%w: %s:%d:%d: a quote inside of a field: put the field in quotes, and write the quote twice`, ErrData, file, bad.Line, bad.Column)
	}
	return fmt.Errorf("%w: %s:%d:%d: %v", ErrData, file, bad.Line, bad.Column, bad.Err)
}

func columnsOf(file string, header, columns []string) ([]int, error) {
	header = slices.Clone(header)
	for i := range header {
		header[i] = strings.TrimSpace(header[i])
	}
	place := make([]int, len(columns))
	for i, c := range columns {
		name := strings.TrimPrefix(c, "?")
		if place[i] = slices.Index(header, name); place[i] >= 0 || name != c {
			continue
		}
		for _, sep := range []string{";", "\t", "|"} {
			if len(header) == 1 && strings.Contains(header[0], sep) {
				return nil, fmt.Errorf("%w: %s:1:1: the header %q has no comma but %q: separate all fields of the file with commas", ErrData, file, header[0], sep)
			}
		}
		return nil, fmt.Errorf("%w: %s:1:1: no column %q in the header %q: the first line has to name it", ErrData, file, name, strings.Join(header, ","))
	}
	return place, nil
}

func (r row) take(c *csv.Reader, record []string, place []int, columns []string) error {
	for i, p := range place {
		r.fields[i] = ""
		r.at[i][0], r.at[i][1] = c.FieldPos(max(0, min(p, len(record)-1)))
		if p >= 0 && p < len(record) {
			if lines := strings.Count(record[p], "\n"); lines > 0 {
				return fmt.Errorf("%w: %s:%d:%d: %s runs over %d lines: close its quotes in the line in which they begin", ErrData, r.file, r.at[i][0], r.at[i][1], strings.TrimPrefix(columns[i], "?"), lines+1)
			}
			if at := notUTF8(record[p]); at >= 0 {
				r.at[i][1] += at
				return r.bad(i, "%s", isNotUTF8(strings.TrimPrefix(columns[i], "?"), record[p][at]))
			}
			r.fields[i] = strings.TrimSpace(record[p])
		}
		if r.fields[i] == "" && !strings.HasPrefix(columns[i], "?") {
			return r.bad(i, "%s is missing in a row of %d fields: write it, or leave the row out", columns[i], len(record))
		}
	}
	return nil
}

// notUTF8 returns where the first byte of a text stands that is not UTF-8, -1 if all is. Such
// texts are of another encoding, in which a name may be that of nobody in another file.
func notUTF8(text string) int {
	if utf8.ValidString(text) {
		return -1
	}
	for i, c := range text {
		if c != utf8.RuneError {
			continue
		}
		if _, size := utf8.DecodeRuneInString(text[i:]); size == 1 {
			return i
		}
	}
	return -1
}

// isNotUTF8 says so of a byte of a text, and what to do.
func isNotUTF8(what string, b byte) string {
	return fmt.Sprintf("%s is not UTF-8, by its byte 0x%x: save all files as UTF-8 (iconv -f latin1 -t utf-8, if it is Latin-1)", what, b)
}

// A reader builds a Data.
type reader struct {
	dir       fs.FS
	data      *Data
	questions map[string]int
	workers   map[string]int
	states    map[string]int
	classes   map[string]int
	raw       []string         // class of each index in classes
	places    [][2]int         // line and column of each question
	listed    [][2]int         // line and column of each worker in the file of workers
	alike     map[string]label // by kind and folded name
	warnings  []warning
}

// Read reads the files of a directory. A file that is missing gives the error of
// dir; what a file says wrongly gives an error wrapping [ErrData] that names the
// line.
func Read(dir fs.FS) (*Data, error) {
	r := &reader{dir: dir, data: &Data{}, questions: map[string]int{}, workers: map[string]int{}, states: map[string]int{}, classes: map[string]int{}, alike: map[string]label{}}
	for _, read := range []func() error{r.truths, r.roster, r.answers} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	r.sortClasses()
	r.leaveOutSilent()
	r.warn()
	if err := r.data.ReadSplits(dir, SplitsFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return r.data, nil
}

func (r *reader) truths() error {
	d := r.data
	err := rows(r.dir, TruthFile, []string{"question", "truth", "?state"}, func(l row) error {
		id := l.fields[0]
		if _, twice := r.questions[id]; twice {
			return l.bad(0, "question %q has a truth already: leave one of the two rows out", id)
		}
		r.questions[strings.Clone(id)] = len(d.Questions)
		r.places = append(r.places, [2]int{l.at[0][0], l.at[0][1]})
		r.compare(l, 1, "option")
		r.compare(l, 2, "state")
		d.Questions = append(d.Questions, Question{
			ID: strings.Clone(id), Truth: r.class(l.fields[1]),
			State: index(r.states, &d.States, cmp.Or(l.fields[2], "all")),
		})
		return nil
	})
	if err == nil && len(d.Questions) == 0 {
		return fmt.Errorf("%w: %s:1:1: there is no question after the header: write one a line", ErrData, TruthFile)
	}
	return err
}

// index returns the place of a name in a list, to which it is added if it is new.
func index(places map[string]int, list *[]string, name string) int {
	i, known := places[name]
	if !known {
		i = len(*list)
		name = strings.Clone(name)
		places[name] = i
		*list = append(*list, name)
	}
	return i
}

func (r *reader) class(name string) int { return index(r.classes, &r.raw, name) }

func (r *reader) roster() error {
	err := rows(r.dir, WorkersFile, []string{"worker", "?model", "?order", "?cost"}, func(l row) error {
		if _, twice := r.workers[l.fields[0]]; twice {
			return l.bad(0, "worker %q is listed twice: leave one of the two rows out", l.fields[0])
		}
		cost := 1.
		if l.fields[3] != "" {
			c, err := strconv.ParseFloat(l.fields[3], 64)
			if err != nil || !(c >= 0 && c <= maxCost) {
				return l.bad(3, "cost %q is no number between 0 and a million", l.fields[3])
			}
			cost = c
		}
		r.worker(l.fields[0])
		r.listed = append(r.listed, l.at[0])
		w := &r.data.Workers[len(r.data.Workers)-1]
		w.Model, w.Order, w.Cost = strings.Clone(l.fields[1]), strings.Clone(l.fields[2]), cost
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (r *reader) worker(id string) int {
	i, known := r.workers[id]
	if !known {
		i = len(r.data.Workers)
		id = strings.Clone(id)
		r.workers[id] = i
		r.data.Workers = append(r.data.Workers, Worker{ID: id, Cost: 1})
	}
	return i
}

func (r *reader) answers() error {
	d := r.data
	type pair struct{ question, worker int }
	place := map[pair]int{}
	err := rows(r.dir, AnswerFile, []string{"question", "worker", "answer"}, func(l row) error {
		q, known := r.questions[l.fields[0]]
		if !known {
			d.Ignored++
			r.found("no truth", l.place(0), fmt.Sprintf("question %q is not in %s: its answers are left out; add its truth there", l.fields[0], TruthFile))
			return nil
		}
		r.compare(l, 1, "worker")
		r.compare(l, 2, "option")
		a := Answer{r.worker(l.fields[1]), r.class(l.fields[2])}
		p := pair{q, a.Worker}
		if i, repeated := place[p]; repeated {
			d.Questions[q].Answers[i] = a
			r.found("repeated", l.place(0), fmt.Sprintf("worker %q answers question %q again: the later row counts; leave the earlier one out", l.fields[1], l.fields[0]))
			return nil
		}
		place[p] = len(d.Questions[q].Answers)
		d.Questions[q].Answers = append(d.Questions[q].Answers, a)
		return nil
	})
	if err == nil && len(place) == 0 {
		return fmt.Errorf("%w: %s: none of its answers is to a question of %s: both files have to name questions alike", ErrData, AnswerFile, TruthFile)
	}
	return err
}

// ReadSplits replaces the splits by those of a file: split,question. Errors are
// those of [Read].
func (d *Data) ReadSplits(dir fs.FS, file string) error {
	questions, places, seen := map[string]int{}, map[string]int{}, map[[2]int]bool{}
	for i := range d.Questions {
		questions[d.Questions[i].ID] = i
	}
	var list [][]int
	err := rows(dir, file, []string{"split", "question"}, func(l row) error {
		q, known := questions[l.fields[1]]
		if !known {
			return l.bad(1, "question %q is not in %s: add its truth there, or leave the row out", l.fields[1], TruthFile)
		}
		s, known := places[l.fields[0]]
		if !known {
			if len(places) == MostRuns {
				return l.bad(0, "more than %d splits: leave some out", MostRuns)
			}
			s = len(places)
			places[strings.Clone(l.fields[0])] = s
			list = append(list, nil)
		}
		if seen[[2]int{s, q}] {
			return l.bad(1, "question %q is in split %q already: leave one of the two rows out", l.fields[1], l.fields[0])
		}
		seen[[2]int{s, q}] = true
		list[s] = append(list[s], q)
		return nil
	})
	if err == nil {
		d.Splits = list
	}
	return err
}

// sortClasses puts the classes in byte order, so that the order of rows does not
// matter, and the answers of each question in the order of workers.
func (r *reader) sortClasses() {
	d := r.data
	d.Classes = slices.Sorted(maps.Keys(r.classes))
	place := make([]int, len(r.raw))
	for i, name := range r.raw {
		place[i], _ = slices.BinarySearch(d.Classes, name)
	}
	for i := range d.Questions {
		q := &d.Questions[i]
		q.Truth = place[q.Truth]
		for k := range q.Answers {
			q.Answers[k].Class = place[q.Answers[k].Class]
		}
		slices.SortFunc(q.Answers, func(a, b Answer) int { return cmp.Compare(a.Worker, b.Worker) })
	}
}

func itoa(i int) string { return strconv.Itoa(i) }
