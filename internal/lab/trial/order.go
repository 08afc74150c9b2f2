package trial

import (
	"cmp"
	"math"
	"slices"
)

// Do workers of one model err together because of the order in which they see the
// options? Two measurements: the correlation (phi) of the errors of pairs, by whether
// model and order are the same, over at least 20 common questions; and the accuracy of
// panels of one model, all in one order against half in each.

// A Correlation says how far workers err together, by whether they are of one model
// and see the options in one order.
type Correlation struct {
	Kind      string  `json:"kind"` // "correlation"
	SameModel bool    `json:"sameModel"`
	SameOrder bool    `json:"sameOrder"`
	Pairs     int     `json:"pairs"`
	Phi       float64 `json:"phi"` // mean correlation of their errors, over pairs
}

// leastCommon is the number of common questions from which a pair says something.
const leastCommon = 20

// Correlations measures pairs of workers whose model and order are known, of one
// model first. Pairs one of whom never errs, or always, say nothing.
func Correlations(d *Data) []Correlation {
	errs := d.errors()
	var sums [4]Correlation
	for i := range d.Workers {
		for j := range i {
			a, b := &d.Workers[i], &d.Workers[j]
			phi, ok := phi(errs[i], errs[j])
			if !ok || a.Model == "" || b.Model == "" || a.Order == "" || b.Order == "" {
				continue
			}
			k := 2*one(a.Model != b.Model) + one(a.Order != b.Order)
			sums[k].Pairs, sums[k].Phi = sums[k].Pairs+1, sums[k].Phi+phi
		}
	}
	var list []Correlation
	for k, s := range sums {
		if s.Pairs > 0 {
			list = append(list, Correlation{"correlation", k < 2, k%2 == 0, s.Pairs, s.Phi / float64(s.Pairs)})
		}
	}
	return list
}

// errors returns by worker and question whether the worker was wrong: 1 or 0, or -1
// where it said nothing.
func (d *Data) errors() [][]int8 {
	list := make([][]int8, len(d.Workers))
	for i := range list {
		list[i] = slices.Repeat([]int8{-1}, len(d.Questions))
	}
	for i := range d.Questions {
		q := &d.Questions[i]
		for _, a := range q.Answers {
			list[a.Worker][i] = int8(one(a.Class != q.Truth))
		}
	}
	return list
}

// phi returns the correlation of two rows of errors in their common questions.
func phi(a, b []int8) (float64, bool) {
	var n, x, y, xy float64
	for i := range a {
		if a[i] >= 0 && b[i] >= 0 {
			n, x, y, xy = n+1, x+float64(a[i]), y+float64(b[i]), xy+float64(a[i]*b[i])
		}
	}
	if n < leastCommon || x == 0 || y == 0 || x == n || y == n {
		return 0, false
	}
	x, y, xy = x/n, y/n, xy/n
	return (xy - x*y) / math.Sqrt(x*(1-x)*y*(1-y)), true
}

// An Order compares panels of one model whose members all see the options in one
// order with panels of the same prompts whose members see them in two, in turns.
type Order struct {
	Kind        string  `json:"kind"` // "order"
	Strategy    string  `json:"strategy"`
	N           int     `json:"n"`
	Votes       int     `json:"votes"`  // size of the panels
	Models      int     `json:"models"` // with so many prompts in two orders
	One         float64 `json:"one"`    // accuracy, mean over models, both orders and splits
	Alternating float64 `json:"alternating"`
}

// orderSizes are those of the panels.
var orderSizes = []int{4, 8, 12}

// Orders compares panels of 4, 8 and 12 prompts of each model that has them in two
// orders, by majority and by confusion matrices after o.Gold decisions. Prompts are
// matched by their place among the ids of their model and order.
func Orders(d *Data, o Options) []Order {
	o.Strategies = []string{"majority", "confusion"}
	var list []Order
	for _, size := range orderSizes {
		byJob := map[job]*Order{}
		for _, two := range d.twoOrders(size) {
			for i := range two {
				mixed := make([]string, size)
				for k := range mixed {
					mixed[k] = two[(i+k)%2][k]
				}
				for at, ids := range [][]string{two[i], mixed} {
					c, _, _ := d.Restrict(ids)
					for _, a := range Accuracies(c, o) {
						r := byJob[job{a.Strategy, a.N}]
						if r == nil {
							r = &Order{Kind: "order", Strategy: a.Strategy, N: a.N, Votes: size}
							byJob[job{a.Strategy, a.N}] = r
						}
						r.add(at, a.Accuracy)
					}
				}
			}
		}
		for _, r := range byJob {
			n := float64(r.Models)
			r.One, r.Alternating, r.Models = r.One/n, r.Alternating/n, r.Models/2
			list = append(list, *r)
		}
	}
	slices.SortFunc(list, func(a, b Order) int {
		return cmp.Or(cmp.Compare(a.N, b.N), cmp.Compare(b.Strategy, a.Strategy), cmp.Compare(a.Votes, b.Votes))
	})
	return list
}

// add adds an accuracy of a panel of one order, at 0, or of both.
func (r *Order) add(at int, accuracy float64) {
	if at == 0 {
		r.Models++
		r.One += accuracy
		return
	}
	r.Alternating += accuracy
}

// twoOrders returns, of each model with two orders or more, the ids of its first
// workers in the first two.
func (d *Data) twoOrders(size int) (list [][2][]string) {
	type key struct{ model, order string }
	ids := map[key][]string{}
	var keys []key
	for _, w := range d.Workers {
		if k := (key{w.Model, w.Order}); w.Model != "" && w.Order != "" {
			if ids[k] == nil {
				keys = append(keys, k)
			}
			ids[k] = append(ids[k], w.ID)
		}
	}
	slices.SortFunc(keys, func(a, b key) int { return cmp.Or(cmp.Compare(a.model, b.model), cmp.Compare(a.order, b.order)) })
	for i := 1; i < len(keys); i++ {
		a, b := ids[keys[i-1]], ids[keys[i]]
		second := i < 2 || keys[i-2].model != keys[i].model
		if keys[i-1].model == keys[i].model && second && len(a) >= size && len(b) >= size {
			slices.Sort(a)
			slices.Sort(b)
			list = append(list, [2][]string{a[:size], b[:size]})
		}
	}
	return list
}
