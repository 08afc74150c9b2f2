package report

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// Spent is what the sessions of a machine have spent, all of it or a part: Day, SpecialistID and
// Model are set where the sums are apart by them.
type Spent struct {
	MachineName  string `json:"machineName"`
	Day          string `json:"day,omitempty"` // in UTC, such as 2026-01-31: when it was charged; what is corrected later, when it was
	SpecialistID string `json:"specialist,omitempty"`
	Model        string `json:"model,omitempty"` // that was charged for; "" if it was none, or nobody has said
	session.SpentView
	// Guards is the part of it that guards have spent on questions of their own; nil if they have
	// spent nothing.
	Guards *session.SpentView `json:"guards,omitempty"`
}

// A SpendQuery says what is wanted of what was spent.
type SpendQuery struct {
	Since, Until string // days in UTC, such as 2026-01-31, both included; "" is all
	By           string // specialist, model and day, with commas between, or total; "" is specialist
}

const dayForm = "2006-01-02"

// Check returns an error that names the member unless q can be answered.
func (q SpendQuery) Check() error {
	for name, day := range map[string]string{"since": q.Since, "until": q.Until} {
		if _, err := time.Parse(dayForm, day); day != "" && err != nil {
			return fmt.Errorf("%s %q is no day such as 2026-01-31", name, day)
		}
	}
	parts := strings.Split(q.by(), ",")
	for i, by := range parts {
		if !slices.Contains([]string{"specialist", "model", "day", "total"}, by) || slices.Contains(parts[:i], by) || by == "total" && len(parts) > 1 {
			return fmt.Errorf("by %q: there are specialist, model and day, with commas between, and total alone", q.By)
		}
	}
	return nil
}

func (q SpendQuery) by() string { return cmp.Or(q.By, "specialist") }

// SpentOf returns what the sessions of a machine have spent, in the order of days, specialists
// and models; by total it is one. The sums are exact. Whatever q.Check refuses is refused, and a
// machine that is not there is ErrNotFound.
func SpentOf(ctx context.Context, r *runner.Runner, machineName string, q SpendQuery) ([]Spent, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	if _, err := r.Newest(ctx, machineName); err != nil {
		return nil, err
	}
	tally, err := r.Tally(ctx, machineName)
	if err != nil {
		return nil, err
	}
	parts := strings.Split(q.by(), ",")
	list, index := []Spent{}, map[Spent]int{}
	if q.by() == "total" {
		list, index[Spent{MachineName: machineName}] = append(list, Spent{MachineName: machineName}), 0
	}
	for s, book := range tally.Spent {
		day := s.Day.Time().Format(dayForm)
		if day < q.Since || q.Until != "" && day > q.Until {
			continue
		}
		key := Spent{MachineName: machineName}
		for _, by := range parts {
			switch by {
			case "day":
				key.Day = day
			case "specialist":
				key.SpecialistID = s.SpecialistID
			case "model":
				key.Model = s.Model
			}
		}
		i, known := index[key]
		if !known {
			i = len(list)
			list, index[key] = append(list, key), i
		}
		list[i].add(s.Guards, book)
	}
	slices.SortFunc(list, func(a, b Spent) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.SpecialistID, b.SpecialistID), cmp.Compare(a.Model, b.Model))
	})
	return list, nil
}

// add counts a spending.
func (s *Spent) add(guards bool, b spend.Book) {
	s.SpentView = s.Plus(b)
	if guards {
		if s.Guards == nil {
			s.Guards = &session.SpentView{}
		}
		*s.Guards = s.Guards.Plus(b)
	}
}
