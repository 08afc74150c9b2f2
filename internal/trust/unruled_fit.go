package trust

import "math"

// The experts O and D, which learn from rounds without a human's word (unruled.go) by
// expectation and maximisation (Dempster, Laird, Rubin 1977): which options are right in these
// is guessed from what is believed of the voters, what is believed of them follows from the
// guesses, and so on. What humans said is not guessed at.
//
//	O    one coin for each voter: L4 with p = (k + e + 4 p') / (n + m + 4), of k
//	     agreements in n outcomes of the machine and e expected ones in m rounds
//	D    a matrix for each voter and state (Dawid, Skene 1979): C, with the expected
//	     answers added to those that were counted, and so the prior of the options
//
// A guess is as sure as the same scores have deserved so far: it is made with the temperature
// of L4 or C, and votes are discounted in it as anywhere, so that those who err together do not
// outvote what is known of them. It begins with what outcomes say alone.
//
// Both are weighed as every expert is, by their losses on outcomes, each fifth of which is
// judged by a fit that was not told what humans said there; they share half of the prior,
// O a tenth of that, and are charged a whole standard error of what they differ from V by. A crowd that agrees on
// what humans do not say is so given no weight. Whatever they weigh, they make other picks only, and none surer (judge.go).
const (
	emRounds      = 10
	emFolds       = 5
	unruledPrior  = .5
	oneCoinPart   = .1
	unruledCharge = 1.
	mostMatrix    = 16 // options of a state beyond which D keeps no expected answers of it
)

// An unruledFit is what rounds without a human's word are expected to say. It never changes.
type unruledFit struct {
	seen   int64 // rounds ever when it was made
	voters map[unitKey]*softVoter
	states map[string]*softState
}

// A softVoter is what one version of a specialist is expected to have done.
type softVoter struct {
	k, n  float64              // agreements, and rounds
	cells map[string][]float64 // by state, [right*width + proposed]; nil beyond mostMatrix
}

// A softState counts how often each option is expected to have been right.
type softState struct {
	classes []string
	truths  []float64
}

// An em is a fit in the making.
type em struct {
	voters  []emVoter
	cells   []emCell
	states  []emState
	voterOf map[unitKey]int
	cellOf  map[[2]int]int // by voter and state
	stateOf map[string]int
	rounds  []emRow // without a human's word
	held    []emRow // outcomes of the window
	plain   []float64
	fit     *fit // whose temperatures of L4 and C are those of guesses, of O and of D
	most    int  // options of a row
}

type emVoter struct {
	unitKey
	k, n, outer  float64 // counted in outcomes; trust elsewhere
	softK, softN float64
	trust        float64 // O's
}

type emCell struct {
	voter, state int
	counted      []float64 // of outcomes; nil beyond mostMatrix, as the others
	soft         []float64
	log          []float64
	hit, miss    float64 // logs where there is no matrix
}

type emState struct {
	name          string
	classes       []string
	counted, soft []float64 // by class, how often it was right
}

// An emRow is a round: truth is -1 where no human has spoken.
type emRow struct {
	state, truth int
	size         int // number of votes
	classes      []int
	votes        []emVote
	guess        []float64
}

type emVote struct {
	voter, cell, option int
	d                   float64
}

// fitUnruled fits O and D to what the pool knows now.
func (f *fit) fitUnruled(l *Ledger, m *pool) {
	f.unruled, f.g[iO], f.g[iD], f.loss[iO], f.loss[iD], f.bySize[iO], f.bySize[iD] = nil, 0, 0, 0, 0, false, false
	if !m.hasUnruled() {
		return
	}
	x := newEM(l, m, f)
	var each, bySize [2][][len(grid)]float64
	for e := range each {
		each[e], bySize[e] = make([][len(grid)]float64, len(x.held)), make([][len(grid)]float64, len(x.held))
	}
	_, differ := m.sizes()
	for fold := range min(emFolds, len(x.held)) {
		x.hold(fold, -1)
		x.run()
		for j := fold; j < len(x.held); j += emFolds {
			r := &x.held[j]
			scores := make([]float64, len(r.classes))
			for e := range each {
				x.score(e, r, scores)
				for i, g := range grid {
					each[e][j][i] = logLoss(scores, g, int32(r.truth))
					if differ {
						bySize[e][j][i] = logLoss(scores, temperature(g, r.size, f.panel), int32(r.truth))
					}
				}
			}
		}
		x.hold(fold, 1)
	}
	for e := range each {
		own := f.cool(iO+e, len(x.held), func(j int) *[len(grid)]float64 { return &each[e][j] }, differ, func(j int) *[len(grid)]float64 { return &bySize[e][j] })
		f.loss[iO+e] = charged(own, x.plain, unruledCharge)
	}
	x.run()
	f.unruled = x.result(m.unruled.seen)
}

// newEM prepares a fit: rounds, and what outcomes say of those who voted in them.
func newEM(l *Ledger, m *pool, f *fit) *em {
	x := &em{voterOf: map[unitKey]int{}, cellOf: map[[2]int]int{}, stateOf: map[string]int{}, fit: f}
	b := &ballot{pool: m, bar: m.pairs.bar()}
	for _, o := range m.window {
		b.reopen(l, o)
		b.score()
		s := m.states[o.state]
		names := make([]string, len(o.classes))
		for t, c := range o.classes {
			names[t] = s.classes[c]
		}
		x.held = append(x.held, x.row(b, m, s.name, names, int(o.truth)))
		x.plain = append(x.plain, logLoss(b.scores[iV], f.at(iV, len(o.votes)), o.truth))
	}
	for _, r := range m.unruled.rounds {
		b := l.openIn(m, nil, &Question{State: r.state, Options: r.options, Votes: r.votes})
		b.score()
		x.rounds = append(x.rounds, x.row(b, m, r.state, r.options, -1))
	}
	for i := range x.states {
		s := &x.states[i]
		s.counted, s.soft = make([]float64, len(s.classes)), make([]float64, len(s.classes))
		if known := m.state(s.name); known != nil {
			for t, n := range known.truths {
				s.counted[t] = float64(n)
			}
		}
	}
	for i := range x.cells {
		x.fill(&x.cells[i], l, m)
	}
	return x
}

// fill makes the matrix of a cell.
func (x *em) fill(c *emCell, l *Ledger, m *pool) {
	s := &x.states[c.state]
	w := len(s.classes)
	if w > mostMatrix {
		return
	}
	c.counted, c.soft, c.log = make([]float64, w*w), make([]float64, w*w), make([]float64, w*w)
	u, known := l.units.index[x.voters[c.voter].unitKey]
	if !known {
		return
	}
	if i, member := m.members[u]; member {
		cell := m.state(s.name).cell(i)
		for y := range w {
			for a := range w {
				c.counted[y*w+a] = float64(cell.at(int32(y), int32(a)))
			}
		}
	}
}

// row makes a row of a ballot that was scored, whose options have these names.
func (x *em) row(b *ballot, m *pool, state string, names []string, truth int) emRow {
	r := emRow{state: x.state(m, state), truth: truth, size: len(b.voters), guess: make([]float64, len(names))}
	x.most = max(x.most, len(names))
	for _, name := range names {
		r.classes = append(r.classes, x.states[r.state].class(name))
	}
	for i := range b.voters {
		v := &b.voters[i]
		if v.human > 0 {
			continue
		}
		voter, known := x.voterOf[v.unitKey()]
		if !known {
			voter = len(x.voters)
			x.voterOf[v.unitKey()] = voter
			k, n, outer := b.inMachine(v.levels)
			x.voters = append(x.voters, emVoter{unitKey: v.unitKey(), k: k, n: n, outer: outer})
		}
		cell, known := x.cellOf[[2]int{voter, r.state}]
		if !known {
			cell = len(x.cells)
			x.cellOf[[2]int{voter, r.state}] = cell
			x.cells = append(x.cells, emCell{voter: voter, state: r.state})
		}
		r.votes = append(r.votes, emVote{voter, cell, int(v.option), v.d})
	}
	return r
}

// state returns the place of a state, whose first classes are those of the pool.
func (x *em) state(m *pool, name string) int {
	i, known := x.stateOf[name]
	if !known {
		i = len(x.states)
		x.stateOf[name] = i
		s := emState{name: name}
		if p := m.state(name); p != nil {
			s.classes = append(s.classes, p.classes...)
		}
		x.states = append(x.states, s)
	}
	return i
}

// class returns the place of an option, which is entered when it is new.
func (s *emState) class(name string) int {
	for i, c := range s.classes {
		if c == name {
			return i
		}
	}
	s.classes = append(s.classes, name)
	return len(s.classes) - 1
}

// hold takes what humans said in a fifth of the outcomes out of what is counted, by a sign of
// -1, or puts it back.
func (x *em) hold(fold int, sign float64) {
	for j := fold; j < len(x.held); j += emFolds {
		r := &x.held[j]
		y, w := r.classes[r.truth], len(x.states[r.state].classes)
		x.states[r.state].counted[y] += sign
		for _, v := range r.votes {
			o := &x.voters[v.voter]
			o.n += sign
			if v.option == r.truth {
				o.k += sign
			}
			if c := &x.cells[v.cell]; c.counted != nil {
				c.counted[y*w+r.classes[v.option]] += sign
			}
		}
	}
}

// run guesses and counts until what is expected hardly moves.
func (x *em) run() {
	for i := range x.voters {
		x.voters[i].softK, x.voters[i].softN = 0, 0
	}
	for i := range x.cells {
		clear(x.cells[i].soft)
	}
	for i := range x.states {
		clear(x.states[i].soft)
	}
	x.believe()
	x.settle()
	for range emRounds {
		x.guess(0)
		for i := range x.voters {
			x.voters[i].softK, x.voters[i].softN = 0, 0
		}
		for i := range x.rounds {
			r := &x.rounds[i]
			for _, v := range r.votes {
				x.voters[v.voter].softK += r.guess[v.option]
				x.voters[v.voter].softN++
			}
		}
		x.believe()
	}
	for range emRounds {
		x.guess(1)
		for i := range x.cells {
			clear(x.cells[i].soft)
		}
		for i := range x.states {
			clear(x.states[i].soft)
		}
		for i := range x.rounds {
			x.expect(&x.rounds[i])
		}
		x.settle()
	}
}

// guess sets which option is right in each round, by O or by D.
func (x *em) guess(e int) {
	scores := make([]float64, x.most)
	for i := range x.rounds {
		r := &x.rounds[i]
		s := scores[:len(r.classes)]
		x.score(e, r, s)
		softmax(r.guess, s, x.fit.at([2]int{iL4, iC}[e], r.size))
	}
}

// expect adds the guess of a round to what is expected of cells and states.
func (x *em) expect(r *emRow) {
	s := &x.states[r.state]
	for t, c := range r.classes {
		s.soft[c] += r.guess[t]
		for _, v := range r.votes {
			if soft := x.cells[v.cell].soft; soft != nil {
				soft[c*len(s.classes)+r.classes[v.option]] += r.guess[t]
			}
		}
	}
}

// believe makes O's trust.
func (x *em) believe() {
	for i := range x.voters {
		o := &x.voters[i]
		o.trust = clampTrust((o.k + o.softK + float64(pull4*o.outer)) / (o.n + o.softN + pull4))
	}
}

// settle makes the logarithms of D's matrices.
func (x *em) settle() {
	for i := range x.cells {
		c := &x.cells[i]
		w := len(x.states[c.state].classes)
		p := x.trustIn(c, w)
		wrong := (1 - p) / float64(max(1, w-1))
		if c.counted == nil {
			c.hit, c.miss = math.Log(p), math.Log(wrong)
			continue
		}
		for y := range w {
			row := pullCell
			for a := range w {
				row += c.counted[y*w+a] + c.soft[y*w+a]
			}
			for a := range w {
				th := wrong
				if a == y {
					th = p
				}
				c.log[y*w+a] = math.Log((c.counted[y*w+a] + c.soft[y*w+a] + float64(pullCell*th)) / row)
			}
		}
	}
}

// trustIn returns what outcomes alone say of a voter in a state.
func (x *em) trustIn(c *emCell, w int) float64 {
	o := &x.voters[c.voter]
	k, n := 0., 0.
	for i, v := range c.counted {
		if n += v; i%(w+1) == 0 { // on the diagonal
			k += v
		}
	}
	p := (o.k - k + float64(pull4*o.outer)) / (o.n - n + pull4)
	return clampTrust((k + float64(pull4*p)) / (n + pull4))
}

// score writes what O, or D, says of each option of a row.
func (x *em) score(e int, r *emRow, dst []float64) {
	clear(dst)
	if e == 0 {
		for _, v := range r.votes {
			dst[v.option] += float64(v.d * logOdds(x.voters[v.voter].trust, len(dst)))
		}
		return
	}
	s := &x.states[r.state]
	sum := 0.
	for _, c := range r.classes {
		sum += s.counted[c] + s.soft[c] + 1
	}
	for t, c := range r.classes {
		dst[t] = math.Log((s.counted[c] + s.soft[c] + 1) / sum)
		for _, v := range r.votes {
			dst[t] += float64(v.d * x.cells[v.cell].said(c, r.classes[v.option], len(s.classes)))
		}
	}
}

// said returns the logarithm of how likely a voter says a class if another is right.
func (c *emCell) said(right, said, width int) float64 {
	switch {
	case c.log != nil:
		return c.log[right*width+said]
	case right == said:
		return c.hit
	}
	return c.miss
}

// result returns what is kept of a fit.
func (x *em) result(seen int64) *unruledFit {
	u := &unruledFit{seen: seen, voters: map[unitKey]*softVoter{}, states: map[string]*softState{}}
	for i := range x.voters {
		v := &x.voters[i]
		u.voters[v.unitKey] = &softVoter{v.softK, v.softN, map[string][]float64{}}
	}
	for i := range x.cells {
		if c := &x.cells[i]; c.soft != nil {
			u.voters[x.voters[c.voter].unitKey].cells[x.states[c.state].name] = c.soft
		}
	}
	for i := range x.states {
		s := &x.states[i]
		u.states[s.name] = &softState{s.classes, s.soft}
	}
	return u
}
