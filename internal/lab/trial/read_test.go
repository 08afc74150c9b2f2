package trial_test

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/dialai/dialai/internal/lab/trial"
)

// files makes a directory of name, text pairs.
func files(pairs ...string) fstest.MapFS {
	dir := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		dir[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return dir
}

const (
	truths  = "question,truth,state\nq1,yes,a\nq2,no,b\n"
	answers = "question,worker,answer\nq1,w1,yes\nq1,w2,no\nq2,w1,no\nq9,w1,no\nq1,w2,yes\n"
)

func TestRead(t *testing.T) {
	d, err := trial.Read(files("truth.csv", "\ufeff"+strings.ReplaceAll(truths, "\n", "\r\n"), "answer.csv", answers, "workers.csv", "worker,model,order,cost\nw2,m,AB,0.5\nw3,,,\n", "splits.csv", "split,question\n0,q2\n0,q1\n1,q1\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := &trial.Data{
		Classes: []string{"no", "yes"}, States: []string{"a", "b"},
		Workers: []trial.Worker{{ID: "w2", Model: "m", Order: "AB", Cost: .5}, {ID: "w1", Cost: 1}}, // w3 answers nothing
		Questions: []trial.Question{
			{ID: "q1", Truth: 1, Answers: []trial.Answer{{Worker: 0, Class: 1}, {Worker: 1, Class: 1}}}, // the later row counts
			{ID: "q2", State: 1, Answers: []trial.Answer{{Worker: 1, Class: 0}}},
		},
		Splits: [][]int{{1, 0}, {0}}, Ignored: 1, Warnings: []string{
			`answer.csv:5:1: question "q9" is not in truth.csv: its answers are left out; add its truth there`,
			`answer.csv:6:1: worker "w2" answers question "q1" again: the later row counts; leave the earlier one out`,
			`workers.csv:3:1: worker "w3" answers no question of truth.csv and is left out: write the name as in answer.csv`,
		},
	}
	if !reflect.DeepEqual(d, want) {
		t.Errorf("read\n%+v\nwant\n%+v", d, want)
	}
	part, _, ok := d.Restrict([]string{"w1"})
	if !ok || len(part.Workers) != 1 || part.Questions[0].Answers[0] != (trial.Answer{Worker: 0, Class: 1}) || len(d.Questions[0].Answers) != 2 {
		t.Errorf("restricted to w1: %+v", part)
	}
	if _, who, ok := d.Restrict([]string{"w1", "nobody"}); ok || who != "nobody" {
		t.Errorf("restricted to nobody: %q, %v", who, ok)
	}
}

func TestReadRefuses(t *testing.T) {
	for _, c := range []struct {
		says string
		dir  fstest.MapFS
	}{
		{"truth.csv:1:1: no header: the first line names the columns question,truth,state", files("truth.csv", "")},
		{`truth.csv:1:1: no column "truth" in the header "question,answer"`, files("truth.csv", "question,answer\n")},
		{"truth.csv:1:1: there is no question", files("truth.csv", "question,truth\n")},
		{"truth.csv:3:4: truth is missing", files("truth.csv", "question,truth\nq1,a\nq2,\n")},
		{"truth.csv:2:1: question is missing", files("truth.csv", "question,truth\n,a\n")},
		{`truth.csv:3:1: question "q1" has a truth already`, files("truth.csv", "question,truth\nq1,a\nq1,a\n")},
		{"answer.csv:3:4: answer is missing", files("truth.csv", truths, "answer.csv", "question,worker,answer\nq1,w1,yes\nq1,w2\n")},
		{`truth.csv:1:1: the header "question;truth" has no comma but ";": separate all fields`, files("truth.csv", "question;truth\nq1;a\n")},
		{`truth.csv:1:1: the header "question\ttruth" has no comma but "\t"`, files("truth.csv", "\ufeffquestion\ttruth\r\nq1\ta\r\n")},
		{"its row begins in line 3: close the quotes", files("truth.csv", "question,truth\nq1,a\nq2,\"b\nq3,a\n")},
		{"answer.csv:3:4: worker runs over 3 lines: close its quotes in the line in which they begin", files("truth.csv", truths, "answer.csv", "question,worker,answer\nq1,w1,yes\nq1,\"w2,yes\nq1,w3,yes\nq2,w1\",no\n")},
		{"truth.csv:2:6: a quote inside of a field: put the field in quotes", files("truth.csv", "question,truth\nq1,\u00e0\"x\n")},
		{"truth.csv:3:8: truth is not UTF-8, by its byte 0xe9: save all files as UTF-8", files("truth.csv", "question,truth\nq1,\u00e9t\u00e9\nq2,\ufffdt\xe9\n")},
		{"truth.csv:1:1: the header is not UTF-8, by its byte 0xff", files("truth.csv", "\xff\xfeq\x00u\x00")},
		{"truth.csv:1:21: the header is not UTF-8, by its byte 0xe9", files("truth.csv", "question,truth,quali\xe9\n")},
		{"answer.csv:2:5: worker is not UTF-8, by its byte 0xfc", files("truth.csv", truths, "answer.csv", "question,worker,answer\nq1,M\xfcller,yes\n")},
		{"answer.csv: none of its answers", files("truth.csv", truths, "answer.csv", "question,worker,answer\nq7,w1,yes\n")},
		{`workers.csv:3:1: worker "w" is listed twice`, files("truth.csv", truths, "answer.csv", answers, "workers.csv", "worker\nw\nw\n")},
		{`workers.csv:2:3: cost "dear"`, files("truth.csv", truths, "answer.csv", answers, "workers.csv", "worker,cost\nw,dear\n")},
		{`workers.csv:2:3: cost "-1"`, files("truth.csv", truths, "answer.csv", answers, "workers.csv", "worker,cost\nw,-1\n")},
		{`workers.csv:2:4: cost "1e10" is no number between 0 and a million`, files("truth.csv", truths, "answer.csv", answers, "workers.csv", "worker,cost\nw1,1e10\n")},
		{`cost "NaN"`, files("truth.csv", truths, "answer.csv", answers, "workers.csv", "worker,cost\nw,NaN\n")},
		{`splits.csv:2:3: question "q9" is not in truth.csv`, files("truth.csv", truths, "answer.csv", answers, "splits.csv", "split,question\n0,q9\n")},
		{`splits.csv:1002:1: more than 1000 splits: leave some out`, files("truth.csv", truths, "answer.csv", answers, "splits.csv", manySplits())},
		{`splits.csv:3:3: question "q1" is in split "0" already`, files("truth.csv", truths, "answer.csv", answers, "splits.csv", "split,question\n0,q1\n0,q1\n")},
	} {
		_, err := trial.Read(c.dir)
		if !errors.Is(err, trial.ErrData) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("want an error that says %q, got %v", c.says, err)
		}
	}
	for _, dir := range []fstest.MapFS{files(), files("truth.csv", truths)} {
		if _, err := trial.Read(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("with a file missing: %v", err)
		}
	}
}

func TestReadWarns(t *testing.T) {
	d, err := trial.Read(files("truth.csv", "\ufeff\"question\",truth\r\nq1,yes\r\nq2,Yes\r\nq3,no\r\nq4,no\r\n", "answer.csv", "question,worker,answer\nq1,Ann,yes\nq2,ann,YES\nq1,Ann,no\nq1,Ann,no\n"))
	want := []string{
		`truth.csv:3:4: option "Yes" differs only by case from "yes" (truth.csv:2:4): they count as two; write them alike (and 2 more like it)`,
		`answer.csv:4:1: worker "Ann" answers question "q1" again: the later row counts; leave the earlier one out (and 1 more like it)`,
		`truth.csv:4:1: nobody answers question "q3": every strategy can only guess there; leave it out (and 1 more like it)`,
		`truth.csv:2:1: the truth of question "q1" is "yes", which nobody ever answers: write it as in answer.csv (and 1 more like it)`,
	}
	if err != nil || !slices.Equal(d.Warnings, want) {
		t.Errorf("%v, %s", err, strings.Join(d.Warnings, "\n"))
	}
}

const marks = "question,state,cheap,dear\n1,a,1,1\n2,a,0,1\n3,b,1,1\n"

func TestReadMarks(t *testing.T) {
	m, err := trial.ReadMarks(files("correct.csv", marks), []string{"b"})
	if err != nil || len(m.Questions) != 2 || !reflect.DeepEqual(m.Models, []string{"cheap", "dear"}) || !reflect.DeepEqual(m.Questions[1].Right, []bool{false, true}) {
		t.Errorf("read %+v, %v", m, err)
	}
	if !trial.HasMarks(files("correct.csv", marks)) || trial.HasMarks(files("truth.csv", truths)) {
		t.Error("directories are mistaken")
	}
	for _, c := range []struct{ says, text, without string }{
		{"correct.csv:1:1: no column of a model", "question,state\n1,a\n", ""},
		{`correct.csv:2:5: cheap is "2"`, "question,state,cheap\n1,a,2\n", ""},
		{"correct.csv:2:3: cheap is missing", "question,state,cheap\n1,a\n", ""},
		{`correct.csv:3:1: question "1" is listed twice`, "question,state,cheap\n1,a,1\n1,a,1\n", ""},
		{"correct.csv:1:1: there is no question", "question,state,cheap\n", ""},
		{"correct.csv:2:4: state is not UTF-8, by its byte 0xe9", "question,state,cheap\n1,b\xe9,1\n", ""},
		{"correct.csv:1:16: the header is not UTF-8, by its byte 0xe9", "question,state,\xe9\n1,a,1\n", ""},
		{`there is no state "z"`, marks, "z"},
	} {
		var without []string
		if c.without != "" {
			without = []string{c.without}
		}
		if _, err := trial.ReadMarks(files("correct.csv", c.text), without); !errors.Is(err, trial.ErrData) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("want an error that says %q, got %v", c.says, err)
		}
	}
}

// FuzzRead: any text is read or refused with a clear error.
func FuzzRead(f *testing.F) {
	f.Add(truths, answers)
	f.Add("question,truth\nq1,a\nq2,a\n", "question,worker,answer\nq1,w,a\n") // one class
	f.Add("question,truth\n\"q\n,x", "worker,question,answer\n")
	f.Fuzz(func(t *testing.T, truth, answer string) {
		d, err := trial.Read(files("truth.csv", truth, "answer.csv", answer))
		if err != nil {
			if !errors.Is(err, trial.ErrData) {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		if len(d.Questions) > 50 || len(d.Classes) > 20 {
			return
		}
		trial.Measure(d, trial.Options{Gold: []int{0, 1}, Splits: 1, Strategies: trial.Strategies(), Orders: 1, MaxError: .1})
	})
}

// manySplits is a file of one split more than there may be.
func manySplits() string {
	text := "split,question\n"
	for i := range trial.MostRuns + 1 {
		text += fmt.Sprintf("%d,q1\n", i)
	}
	return text
}
