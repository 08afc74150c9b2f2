package prom

import (
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// A family is a counter by machine, and by one more thing.
type family struct{ name, help, label string }

var families = []family{
	{"sessions_ended_total", "Sessions that completed, stopped or failed.", "code"},
	{"steps_total", "Steps of the driver.", "status"},
	{"decisions_total", "Transitions that were executed.", "kind"},
	{"rulings_total", "Rulings of humans.", "method"},
	{"spent_usd_total", "What answers have cost.", ""},
	{"tokens_total", "Tokens of models.", "direction"},
}

// maxMachines is how many machines are counted by themselves, maxCodes how many codes.
const (
	maxMachines = 200
	maxCodes    = 60
)

// A point is one number of a family.
type point struct{ family, machine, value string }

// series are the counters by machine. What a machine has counted that loses its place is
// counted among the others from then on, so that sums over all machines only grow.
type series struct {
	mu       sync.Mutex
	machines busiest
	codes    map[string]bool
	values   map[point]float64
	owed     map[point]float64 // what came off a number, which cannot fall
	labels   map[string]string
}

func newSeries() *series {
	s := &series{machines: newBusiest(maxMachines), codes: map[string]bool{}, values: map[point]float64{}, owed: map[point]float64{}, labels: map[string]string{}}
	for _, f := range families {
		s.labels[f.name] = f.label
	}
	return s
}

// machine returns the label of a machine with which n things happen.
func (s *series) machine(name string, n int64) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.place(name, n)
}

func (s *series) place(name string, n int64) string {
	label, out := s.machines.take(name, n)
	if out != "" {
		s.fold(s.values, out)
		s.fold(s.owed, out)
	}
	return label
}

// fold counts the numbers of a machine among the others.
func (s *series) fold(of map[point]float64, machine string) {
	for p, v := range of {
		if p.machine == machine {
			delete(of, p)
			p.machine = other
			of[p] += v
		}
	}
}

// add adds to a number, for a label that machine has returned. What would make it fall is
// taken from what is added next.
func (s *series) add(p point, v float64) {
	if v += s.owed[p]; v < 0 {
		s.owed[p] = v
		return
	}
	delete(s.owed, p)
	s.values[p] += v
}

// code returns the label of a code, which guards of a program may make up.
func (s *series) code(c string) string {
	if c == "" || s.codes[c] {
		return c
	}
	if len(s.codes) >= maxCodes {
		return other
	}
	s.codes[c] = true
	return c
}

// observe reports the numbers of a family.
func (s *series) observe(family string, o metric.Float64Observer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, v := range s.values {
		if p.family != family {
			continue
		}
		set := []attribute.KeyValue{attribute.String("machine", p.machine)}
		if label := s.labels[family]; label != "" {
			set = append(set, attribute.String(label, p.value))
		}
		o.Observe(v, metric.WithAttributeSet(attribute.NewSet(set...)))
	}
}
