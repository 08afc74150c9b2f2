package trust

import (
	"math"
	"slices"
)

// The expert S: a conditional logit (McFadden 1974), fitted to what the others leave over.
// The score of option t of a round is
//
//	g L4(t) + bias(state, t) + sum of z(v), over the v that vote for t
//
// and z and bias maximise the logarithm of the likelihood of what humans chose, less
// 2 |z|^2 + 1 |bias|^2, which draws both to zero: without data S says what L4 says. It is
// judged by its losses on fifths of the outcomes that it was not fitted to, and takes part
// from StackingFrom outcomes on. The likelihood is concave: Newton's method finds its one
// maximum, each step solved by conjugate gradients without ever making the matrix.

// StackingFrom is the number of outcomes of a machine from which the stacking
// expert takes part.
const StackingFrom = 20

// Strengths of the ridge penalties of stacking.
const (
	ridgeVoter = 2.
	ridgeBias  = 1.
	folds      = 5
)

// A stack is a fitted conditional logit (McFadden 1974): the score of an option
// is g times its L4 score, a bias of the option in its state, and the z of
// everyone who voted for it.
type stack struct {
	g    float64
	z    []float64   // by member
	bias [][]float64 // by state and class
}

// score writes the score of each option.
func (s *stack) score(b *ballot, state int32, dst []float64) {
	for t := range dst {
		dst[t] = float64(s.g * b.scores[iL4][t])
		if c := b.classes[t]; state >= 0 && int(state) < len(s.bias) && c >= 0 && int(c) < len(s.bias[state]) {
			dst[t] += s.bias[state][c]
		}
	}
	for i := range b.voters {
		if v := &b.voters[i]; v.member >= 0 && int(v.member) < len(s.z) {
			dst[v.option] += float64(v.whole * s.z[v.member])
		}
	}
}

// A stackRow is an outcome as stacking sees it.
type stackRow struct {
	base  []float64 // L4 scores, leave-one-out
	votes []stackVote
	bias  []int32 // by option, index of its parameter once placed
	state int32
	truth int32
}

type stackVote struct {
	member, option int32
	whole          float64 // as in voter
}

func newStackRow(b *ballot, o *past) stackRow {
	r := stackRow{base: slices.Clone(b.scores[iL4]), bias: slices.Clone(o.classes), state: o.state, truth: o.truth}
	for i := range b.voters {
		if v := &b.voters[i]; v.member >= 0 {
			r.votes = append(r.votes, stackVote{v.member, v.option, v.whole})
		}
	}
	return r
}

// fitStack fits the model to all rows, and returns it with its loss on each row left
// out, judged by a fit to the other four fifths.
func fitStack(m *pool, rows []stackRow, g float64) (*stack, []float64) {
	first := make([]int32, len(m.states)+1) // parameter of each state's first class
	first[0] = int32(len(m.list))
	for i, s := range m.states {
		first[i+1] = first[i] + int32(len(s.classes))
	}
	for i := range rows {
		for t := range rows[i].bias {
			rows[i].bias[t] += first[rows[i].state]
			rows[i].base[t] = float64(g * rows[i].base[t])
		}
	}
	l := newLogit(rows, len(m.list), int(first[len(m.states)]))
	full := l.solve(make([]float64, l.size), -1)
	loss := make([]float64, len(rows))
	for f := range folds {
		l.losses(loss, l.solve(slices.Clone(full), f), f)
	}
	s := &stack{g: g, z: full[:len(m.list)]}
	for i := range m.states {
		s.bias = append(s.bias, full[first[i]:first[i+1]])
	}
	return s, loss
}

// A logit is the penalised likelihood that stacking maximises: concave, so
// Newton's method with conjugate gradients finds its one maximum.
type logit struct {
	rows   []stackRow
	voters int // parameters below are z, the others biases
	size   int
	p      [][]float64 // by row, probabilities of the options
	room   []float64
	grad   []float64
	dir    []float64
	res    []float64
	conj   []float64
	prod   []float64
}

func newLogit(rows []stackRow, voters, size int) *logit {
	l := &logit{rows: rows, voters: voters, size: size, p: make([][]float64, len(rows))}
	total := 0
	for i := range rows {
		total += len(rows[i].base)
	}
	flat := make([]float64, total)
	for i := range rows {
		k := len(rows[i].base)
		l.p[i], flat = flat[:k:k], flat[k:]
	}
	l.room = make([]float64, 64)
	for _, v := range []*[]float64{&l.grad, &l.dir, &l.res, &l.conj, &l.prod} {
		*v = make([]float64, size)
	}
	return l
}

func (l *logit) ridge(i int) float64 {
	if i < l.voters {
		return ridgeVoter
	}
	return ridgeBias
}

// inFold reports whether row j is left out when fold f is (-1: none is).
func inFold(j, f int) bool { return f >= 0 && j%folds == f }

// scores writes the scores of a row's options under parameters x.
func (r *stackRow) scores(x, dst []float64) {
	for t := range dst {
		dst[t] = r.base[t] + x[r.bias[t]]
	}
	for _, v := range r.votes {
		dst[v.option] += float64(v.whole * x[v.member])
	}
}

// Limits of the solver; the gradient is far below them when it converges.
const (
	smallGradient = 1e-7
	mostNewton    = 50
	mostConjugate = 200
	mostHalvings  = 30
)

// solve returns the maximum, starting at x, with fold f left out.
func (l *logit) solve(x []float64, f int) []float64 {
	value := l.evaluate(x, f)
	trial := make([]float64, l.size)
	for range mostNewton {
		norm := length(l.grad)
		if norm < smallGradient {
			break
		}
		l.direction(f, min(.1, norm)*norm)
		step, better := 1., false
		for range mostHalvings {
			for i := range x {
				trial[i] = x[i] + float64(step*l.dir[i])
			}
			if v := l.value(trial, f); v >= value-1e-12*math.Abs(value) {
				better = true
				break
			}
			step /= 2
		}
		if !better {
			break
		}
		copy(x, trial)
		value = l.evaluate(x, f)
	}
	return x
}

// value returns the penalised log-likelihood at x.
func (l *logit) value(x []float64, f int) float64 {
	sum := 0.
	for i, v := range x {
		sum -= float64(l.ridge(i) * float64(v*v))
	}
	for j := range l.rows {
		if !inFold(j, f) {
			sum -= l.lossOf(j, x)
		}
	}
	return sum
}

func (l *logit) lossOf(j int, x []float64) float64 {
	r := &l.rows[j]
	s := l.scratch(len(r.base))
	r.scores(x, s)
	return lossAt(s, 1, r.truth)
}

func (l *logit) scratch(k int) []float64 {
	if len(l.room) < k {
		l.room = make([]float64, k)
	}
	return l.room[:k]
}

// losses writes the log-loss of each row of fold f.
func (l *logit) losses(dst, x []float64, f int) {
	for j := range l.rows {
		if inFold(j, f) {
			dst[j] = min(mostLoss, l.lossOf(j, x))
		}
	}
}

// evaluate fills in probabilities and gradient at x and returns the value.
func (l *logit) evaluate(x []float64, f int) float64 {
	sum := 0.
	for i, v := range x {
		r := l.ridge(i)
		l.grad[i] = -2 * float64(r*v)
		sum -= float64(r * float64(v*v))
	}
	for j := range l.rows {
		if inFold(j, f) {
			continue
		}
		r, p := &l.rows[j], l.p[j]
		r.scores(x, p)
		sum -= lossAt(p, 1, r.truth)
		softmax(p, p, 1)
		for t := range p {
			l.grad[r.bias[t]] -= p[t]
		}
		l.grad[r.bias[r.truth]]++
		for _, v := range r.votes {
			l.grad[v.member] -= float64(v.whole * p[v.option])
			if v.option == r.truth {
				l.grad[v.member] += v.whole
			}
		}
	}
	return sum
}

// curve writes minus the Hessian times d.
func (l *logit) curve(dst, d []float64, f int) {
	for i, v := range d {
		dst[i] = 2 * float64(l.ridge(i)*v)
	}
	for j := range l.rows {
		if inFold(j, f) {
			continue
		}
		r, p := &l.rows[j], l.p[j]
		s := l.scratch(len(p))
		for t := range s {
			s[t] = d[r.bias[t]]
		}
		for _, v := range r.votes {
			s[v.option] += float64(v.whole * d[v.member])
		}
		mean := 0.
		for t := range s {
			mean += float64(p[t] * s[t])
		}
		for t := range s {
			s[t] = float64(p[t] * (s[t] - mean))
			dst[r.bias[t]] += s[t]
		}
		for _, v := range r.votes {
			dst[v.member] += float64(v.whole * s[v.option])
		}
	}
}

// direction solves for the Newton step by conjugate gradients, until what is left
// of the gradient is below tolerance.
func (l *logit) direction(f int, tolerance float64) {
	clear(l.dir)
	copy(l.res, l.grad)
	copy(l.conj, l.grad)
	rest := dot(l.res, l.res)
	for range mostConjugate {
		if math.Sqrt(rest) <= tolerance {
			return
		}
		l.curve(l.prod, l.conj, f)
		step := rest / dot(l.conj, l.prod)
		for i := range l.dir {
			l.dir[i] += float64(step * l.conj[i])
			l.res[i] -= float64(step * l.prod[i])
		}
		next := dot(l.res, l.res)
		for i := range l.conj {
			l.conj[i] = l.res[i] + float64(next/rest*l.conj[i])
		}
		rest = next
	}
}

func dot(a, b []float64) float64 {
	sum := 0.
	for i := range a {
		sum += float64(a[i] * b[i])
	}
	return sum
}

func length(a []float64) float64 { return math.Sqrt(dot(a, a)) }
