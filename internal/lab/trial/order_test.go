package trial_test

import (
	"math"
	"reflect"
	"testing"

	"github.com/dialai/dialai/internal/lab/trial"
	"github.com/dialai/dialai/internal/trust"
)

// ordered returns data of two models with four prompts in two orders of options,
// each of which misleads all who see it, of both models, in its own questions.
func ordered() *trial.Data {
	d := &trial.Data{Classes: []string{"a", "b"}, States: []string{"s"}}
	for _, model := range []string{"one", "two"} {
		for _, order := range []string{"AB", "BA"} {
			for _, prompt := range []string{"1", "2", "3", "4"} {
				d.Workers = append(d.Workers, trial.Worker{ID: model + prompt + order, Model: model, Order: order, Cost: 1})
			}
		}
	}
	draw := trust.NewDraw("ordered")
	for i := range 400 {
		q := trial.Question{ID: string(rune('a' + i)), Truth: i % 2}
		misled := []string{"AB", "BA", "", ""}[int(draw.Float()*4)]
		for w := range d.Workers {
			right := .9
			if d.Workers[w].Order == misled {
				right = .2
			}
			class := q.Truth
			if draw.Float() > right {
				class = 1 - class
			}
			q.Answers = append(q.Answers, trial.Answer{Worker: w, Class: class})
		}
		d.Questions = append(d.Questions, q)
	}
	return d
}

// TestCorrelations: who is misled by one order errs with others who see it, and not
// with those who see the other.
func TestCorrelations(t *testing.T) {
	list := trial.Correlations(ordered())
	if len(list) != 4 {
		t.Fatalf("there are %+v", list)
	}
	for i, want := range []struct {
		model, order bool
		pairs        int
		low, high    float64
	}{{true, true, 24, .4, .65}, {true, false, 32, -.4, -.05}, {false, true, 32, .4, .65}, {false, false, 32, -.4, -.05}} {
		c := list[i]
		if c.SameModel != want.model || c.SameOrder != want.order || c.Pairs != want.pairs || c.Phi < want.low || c.Phi > want.high {
			t.Errorf("%d: %+v, want %+v", i, c, want)
		}
	}
	plain := ordered()
	for i := range plain.Workers {
		plain.Workers[i].Order = ""
	}
	if list := trial.Correlations(plain); len(list) != 0 {
		t.Errorf("without orders there are %+v", list)
	}
}

// TestOrders: a panel that sees both orders is misled less often than one that sees
// one of them.
func TestOrders(t *testing.T) {
	d := ordered()
	o := trial.Options{Gold: []int{50}, Splits: 4, Seed: "1", Parallel: 2}
	list := trial.Orders(d, o)
	if len(list) != 2 || list[0].Strategy != "majority" || list[1].Strategy != "confusion" {
		t.Fatalf("there are %+v", list)
	}
	for _, r := range list {
		if r.Votes != 4 || r.N != 50 || r.Models != 2 || r.Alternating < r.One+.01 || math.IsNaN(r.One) || r.Alternating > 1 {
			t.Errorf("%+v", r)
		}
	}
	if again := trial.Orders(d, o); !reflect.DeepEqual(list, again) {
		t.Errorf("another time it is %+v", again)
	}
}
