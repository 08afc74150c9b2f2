package trial

import "math"

// emRounds is how often guesses and counts follow each other in semi and oneCoin.
const emRounds = 40

// confusion believes a confusion matrix of each worker in each state. With rounds
// it learns from questions without truth too, by expectation-maximisation (Dawid,
// Skene 1979), those of the gold held to it.
type confusion struct {
	rounds int
	data   *Data
	p      []float64   // reliability by worker
	counts [][]float64 // by state: [worker][truth][answer], flat
	prior  [][]float64 // by state: counts of truths
	log    [][]float64 // of the likelihoods, like counts
}

func (s *confusion) learn(d *Data, gold []int) {
	s.data, s.p = d, reliability(d, gold)
	s.clear()
	known := make([]bool, len(d.Questions))
	for _, i := range gold {
		known[i] = true
		s.count(&d.Questions[i], certainty(len(d.Classes), d.Questions[i].Truth))
	}
	s.settle()
	for range s.rounds {
		beliefs := make([][]float64, len(d.Questions))
		for i := range d.Questions {
			if q := &d.Questions[i]; known[i] {
				beliefs[i] = certainty(len(d.Classes), q.Truth)
			} else {
				beliefs[i] = s.believe(q)
			}
		}
		s.clear()
		for i := range d.Questions {
			s.count(&d.Questions[i], beliefs[i])
		}
		s.settle()
	}
}

func certainty(k, truth int) []float64 {
	p := make([]float64, k)
	p[truth] = 1
	return p
}

func (s *confusion) clear() {
	k := len(s.data.Classes)
	s.counts, s.prior, s.log = nil, nil, nil
	for range s.data.States {
		s.counts = append(s.counts, make([]float64, len(s.data.Workers)*k*k))
		s.log = append(s.log, make([]float64, len(s.data.Workers)*k*k))
		s.prior = append(s.prior, make([]float64, k))
	}
}

func (s *confusion) count(q *Question, belief []float64) {
	k := len(belief)
	for y, b := range belief {
		if b == 0 {
			continue
		}
		s.prior[q.State][y] += b
		for _, a := range q.Answers {
			s.counts[q.State][(a.Worker*k+y)*k+a.Class] += b
		}
	}
}

// settle turns counts into log-likelihoods.
func (s *confusion) settle() {
	k := len(s.data.Classes)
	for state, c := range s.counts {
		for w, p := range s.p {
			for y := range k {
				row := c[(w*k+y)*k : (w*k+y+1)*k]
				sum := 0.
				for _, v := range row {
					sum += v
				}
				for l, v := range row {
					th0 := p
					if l != y {
						th0 = (1 - p) / float64(k-1)
					}
					s.log[state][(w*k+y)*k+l] = math.Log((v + 4*th0) / (sum + 4))
				}
			}
		}
	}
}

func (s *confusion) believe(q *Question) []float64 {
	k := len(s.data.Classes)
	p := make([]float64, k)
	n := 0.
	for _, v := range s.prior[q.State] {
		n += v
	}
	for y := range p {
		p[y] = math.Log((s.prior[q.State][y] + 1) / (n + float64(k)))
		for _, a := range q.Answers {
			p[y] += s.log[q.State][(a.Worker*k+y)*k+a.Class]
		}
	}
	return normalise(p)
}

func (s *confusion) judge(q *Question) Claim { return claim(s.believe(q)) }

// oneCoin believes one reliability of each worker, and learns it from questions without
// truth too, those of the gold held to it: what logodds believes, made again with the
// answers that are expected to be right.
type oneCoin struct {
	rounds int
	logodds
}

func (s *oneCoin) learn(d *Data, gold []int) {
	s.logodds.learn(d, gold)
	known := make([]bool, len(d.Questions))
	for _, i := range gold {
		known[i] = true
	}
	for range s.rounds {
		right, n := make([]float64, len(d.Workers)), make([]float64, len(d.Workers))
		for i := range d.Questions {
			q := &d.Questions[i]
			belief := certainty(s.k, q.Truth)
			if !known[i] {
				belief = s.judge(q).P
			}
			for _, a := range q.Answers {
				right[a.Worker], n[a.Worker] = right[a.Worker]+belief[a.Class], n[a.Worker]+1
			}
		}
		s.believe(right, n)
	}
}
