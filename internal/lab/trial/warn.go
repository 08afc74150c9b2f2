package trial

import (
	"fmt"
	"strings"
)

// What is probably not meant in a set but can be measured: labels that differ by case only,
// answers that are given twice, answers to questions without a truth, questions that nobody
// answered, truths that nobody ever answers, workers who are listed and answer nothing. A kind
// of warning is told once, with the place where it was found first and how many more there are.

// A warning is one kind of what was found.
type warning struct {
	kind, first string
	more        int
}

// A label is a name as it was written first.
type label struct{ name, place string }

// found counts what was found at a place.
func (r *reader) found(kind, place, text string) {
	for i := range r.warnings {
		if r.warnings[i].kind == kind {
			r.warnings[i].more++
			return
		}
	}
	r.warnings = append(r.warnings, warning{kind: kind, first: place + ": " + text})
}

// compare warns if the i-th field of a row, a label of some kind, was written before with
// letters of another case.
func (r *reader) compare(l row, i int, kind string) {
	name := l.fields[i]
	places := r.classes
	switch kind {
	case "worker":
		places = r.workers
	case "state":
		places = r.states
	}
	if _, known := places[name]; known || name == "" {
		return
	}
	key := kind + " " + strings.ToLower(name)
	if before, twice := r.alike[key]; twice && before.name != name {
		r.found("case", l.place(i), fmt.Sprintf("%s %q differs only by case from %q (%s): they count as two; write them alike", kind, name, before.name, before.place))
		return
	}
	r.alike[strings.Clone(key)] = label{strings.Clone(name), l.place(i)}
}

// leaveOutSilent takes those out of the workers who answer nothing: they are in nobody's way,
// and would be counted as workers.
func (r *reader) leaveOutSilent() {
	answers := make([]int, len(r.data.Workers))
	for i := range r.data.Questions {
		for _, a := range r.data.Questions[i].Answers {
			answers[a.Worker]++
		}
	}
	var who []string
	for i, w := range r.data.Workers {
		if answers[i] > 0 {
			who = append(who, w.ID)
		} else if i < len(r.listed) {
			r.found("silent", fmt.Sprintf("%s:%d:%d", WorkersFile, r.listed[i][0], r.listed[i][1]), fmt.Sprintf("worker %q answers no question of %s and is left out: write the name as in %s", w.ID, TruthFile, AnswerFile))
		}
	}
	if len(who) < len(answers) {
		r.data, _, _ = r.data.Restrict(who)
	}
}

// warn puts the warnings into the data.
func (r *reader) warn() {
	d := r.data
	for i := range d.Questions {
		if q := &d.Questions[i]; len(q.Answers) == 0 {
			r.found("unanswered", fmt.Sprintf("%s:%d:%d", TruthFile, r.places[i][0], r.places[i][1]), fmt.Sprintf("nobody answers question %q: every strategy can only guess there; leave it out", q.ID))
		}
	}
	answered := make([]bool, len(d.Classes))
	for i := range d.Questions {
		for _, a := range d.Questions[i].Answers {
			answered[a.Class] = true
		}
	}
	for i := range d.Questions {
		if q := &d.Questions[i]; len(q.Answers) > 0 && !answered[q.Truth] {
			r.found("foreign", fmt.Sprintf("%s:%d:%d", TruthFile, r.places[i][0], r.places[i][1]), fmt.Sprintf("the truth of question %q is %q, which nobody ever answers: write it as in %s", q.ID, d.Classes[q.Truth], AnswerFile))
		}
	}
	for _, w := range r.warnings {
		if w.more > 0 {
			w.first += fmt.Sprintf(" (and %d more like it)", w.more)
		}
		d.Warnings = append(d.Warnings, w.first)
	}
}
