package trial

import "math"

// regression is a logistic regression on the votes, for two classes: votes count
// -1 and +1, and the weights are pulled toward those of a majority.
type regression struct {
	data *Data
	w    []float64 // by worker, then the bias
	pull float64   // what the weights are pulled to
}

const (
	pullWeight = 1.
	pullBias   = .1
)

func (s *regression) learn(d *Data, gold []int) {
	s.data = d
	votes := 0
	for i := range d.Questions {
		votes += len(d.Questions[i].Answers)
	}
	s.pull = 2 * float64(len(d.Questions)) / max(1, float64(votes))
	s.w = make([]float64, len(d.Workers)+1)
	for i := range d.Workers {
		s.w[i] = s.pull
	}
	for range 100 {
		if s.step(gold) < 1e-9 {
			return
		}
	}
}

func (s *regression) score(q *Question) float64 {
	sum := s.w[len(s.w)-1]
	for _, a := range q.Answers {
		sum += sign(a.Class) * s.w[a.Worker]
	}
	return sum
}

func sign(class int) float64 { return 2*float64(class) - 1 }

func (s *regression) ridge(i int) (strength, to float64) {
	if i == len(s.w)-1 {
		return pullBias, 0
	}
	return pullWeight, s.pull
}

// step makes one Newton step, by conjugate gradients, and returns its length.
func (s *regression) step(gold []int) float64 {
	grad := make([]float64, len(s.w))
	curve := make([]float64, len(gold))
	for i, w := range s.w {
		strength, to := s.ridge(i)
		grad[i] = -strength * (w - to)
	}
	for j, i := range gold {
		q := &s.data.Questions[i]
		p := 1 / (1 + math.Exp(-s.score(q)))
		curve[j] = p * (1 - p)
		s.spread(grad, q, float64(q.Truth)-p)
	}
	dir := s.solve(gold, curve, grad)
	size := 0.
	for i := range s.w {
		s.w[i] += dir[i]
		size += dir[i] * dir[i]
	}
	return math.Sqrt(size)
}

func (s *regression) spread(dst []float64, q *Question, v float64) {
	for _, a := range q.Answers {
		dst[a.Worker] += sign(a.Class) * v
	}
	dst[len(dst)-1] += v
}

func (s *regression) solve(gold []int, curve, grad []float64) []float64 {
	n := len(grad)
	x, r, d, h := make([]float64, n), append([]float64{}, grad...), append([]float64{}, grad...), make([]float64, n)
	rest := product(r, r)
	for range 2 * n {
		if rest < 1e-24 {
			break
		}
		for i := range h {
			strength, _ := s.ridge(i)
			h[i] = strength * d[i]
		}
		for j, i := range gold {
			q := &s.data.Questions[i]
			dot := d[n-1]
			for _, a := range q.Answers {
				dot += sign(a.Class) * d[a.Worker]
			}
			s.spread(h, q, curve[j]*dot)
		}
		step := rest / product(d, h)
		for i := range x {
			x[i] += step * d[i]
			r[i] -= step * h[i]
		}
		next := product(r, r)
		for i := range d {
			d[i] = r[i] + next/rest*d[i]
		}
		rest = next
	}
	return x
}

func product(a, b []float64) float64 {
	sum := 0.
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func (s *regression) judge(q *Question) Claim {
	p := 1 / (1 + math.Exp(-s.score(q)))
	return claim([]float64{1 - p, p})
}
