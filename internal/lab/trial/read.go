package trial

import (
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
)

// Reading a data set: comma-separated files, each with a header that names its columns,
// in any order. Truths come first and say which questions there are; then workers, if
// there is a file of them; then answers, of which those to other questions are counted
// and left out, and of a repeated pair the later one holds. At the end classes are put
// in byte order and answers in the order of workers, so that the order of rows decides
// nothing.
//
// What is wrong is reported with its file and line (ErrData); strings are cloned, since
// rows share their memory.

// ErrData is wrapped by every error about what a file says. The text names the
// file and the line.
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
	line   int
	fields []string
}

func (r row) bad(format string, args ...any) error {
	return fmt.Errorf("%w: %s:%d: %s", ErrData, r.file, r.line, fmt.Sprintf(format, args...))
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
	c := csv.NewReader(f)
	c.FieldsPerRecord, c.ReuseRecord, c.LazyQuotes = -1, true, true
	header, err := c.Read()
	if err != nil {
		return fmt.Errorf("%w: %s:1: no header: the first line names the columns %s", ErrData, file, strings.ReplaceAll(strings.Join(columns, ","), "?", ""))
	}
	place, err := columnsOf(file, header, columns)
	if err != nil {
		return err
	}
	r := row{file: file, fields: make([]string, len(columns))}
	for range maxRows {
		record, err := c.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %s: %v", ErrData, file, err)
		}
		r.line, _ = c.FieldPos(0)
		if err := r.take(record, place, columns); err != nil {
			return err
		}
		if err := each(r); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: %s: more than %d rows", ErrData, file, maxRows)
}

func columnsOf(file string, header, columns []string) ([]int, error) {
	header = slices.Clone(header)
	header[0] = strings.TrimPrefix(header[0], "\ufeff")
	for i := range header {
		header[i] = strings.TrimSpace(header[i])
	}
	place := make([]int, len(columns))
	for i, c := range columns {
		name := strings.TrimPrefix(c, "?")
		if place[i] = slices.Index(header, name); place[i] < 0 && name == c {
			return nil, fmt.Errorf("%w: %s:1: no column %q: the first line has to name it", ErrData, file, name)
		}
	}
	return place, nil
}

func (r row) take(record []string, place []int, columns []string) error {
	for i, p := range place {
		r.fields[i] = ""
		if p >= 0 && p < len(record) {
			r.fields[i] = strings.TrimSpace(record[p])
		}
		if r.fields[i] == "" && !strings.HasPrefix(columns[i], "?") {
			return r.bad("%s is missing", columns[i])
		}
	}
	return nil
}

// A reader builds a Data.
type reader struct {
	dir       fs.FS
	data      *Data
	questions map[string]int
	workers   map[string]int
	states    map[string]int
	classes   map[string]int
	raw       []string // class of each index in classes
}

// Read reads the files of a directory. A file that is missing gives the error of
// dir; what a file says wrongly gives an error wrapping [ErrData] that names the
// line.
func Read(dir fs.FS) (*Data, error) {
	r := &reader{dir: dir, data: &Data{}, questions: map[string]int{}, workers: map[string]int{}, states: map[string]int{}, classes: map[string]int{}}
	for _, read := range []func() error{r.truths, r.roster, r.answers} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	r.sortClasses()
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
			return l.bad("question %q has a truth already", id)
		}
		r.questions[strings.Clone(id)] = len(d.Questions)
		d.Questions = append(d.Questions, Question{
			ID: strings.Clone(id), Truth: r.class(l.fields[1]),
			State: index(r.states, &d.States, cmp.Or(l.fields[2], "all")),
		})
		return nil
	})
	if err == nil && len(d.Questions) == 0 {
		return fmt.Errorf("%w: %s:1: there is no question", ErrData, TruthFile)
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
			return l.bad("worker %q is listed twice", l.fields[0])
		}
		cost := 1.
		if l.fields[3] != "" {
			c, err := strconv.ParseFloat(l.fields[3], 64)
			if err != nil || !(c >= 0 && c <= maxCost) {
				return l.bad("cost %q is no number between 0 and a million", l.fields[3])
			}
			cost = c
		}
		r.worker(l.fields[0])
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
			return nil
		}
		a := Answer{r.worker(l.fields[1]), r.class(l.fields[2])}
		p := pair{q, a.Worker}
		if i, repeated := place[p]; repeated {
			d.Questions[q].Answers[i] = a
			return nil
		}
		place[p] = len(d.Questions[q].Answers)
		d.Questions[q].Answers = append(d.Questions[q].Answers, a)
		return nil
	})
	if err == nil && len(place) == 0 {
		return fmt.Errorf("%w: %s: none of its answers is to a question of %s", ErrData, AnswerFile, TruthFile)
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
			return l.bad("question %q is not in %s", l.fields[1], TruthFile)
		}
		s, known := places[l.fields[0]]
		if !known {
			if len(places) == MostRuns {
				return l.bad("more than %d splits: leave some out", MostRuns)
			}
			s = len(places)
			places[strings.Clone(l.fields[0])] = s
			list = append(list, nil)
		}
		if seen[[2]int{s, q}] {
			return l.bad("question %q is in split %q already", l.fields[1], l.fields[0])
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
