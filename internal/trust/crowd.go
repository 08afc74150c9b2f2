package trust

// The mean of a machine, mu, is a mean over those who propose, not over their answers: of
// a crowd of whom few answer most, it is about somebody who was seen little that mu says
// something. A worker of n answers, k of them right, enters with weight
//
//	u = 5 n / (n + 4)
//
// the inverse of the variance of k/n around the mean, where workers differ as the prior of
// trust says (a Beta distribution worth four answers): 1 for one answer, 5 for many. The
// sums are whole numbers, so an answer can be taken out of them again to the bit.

// A crowd sums the weights of workers, and these times their share of right answers, in
// millionths.
type crowd struct{ right, weight int64 }

const millionth = 1e6

// share returns what one worker adds to a crowd.
func share(t counts) crowd {
	if t.n <= 0 {
		return crowd{}
	}
	u := millionth * (perWorker + 1) / (float64(t.n) + perWorker)
	return crowd{int64(float64(t.k) * u), int64(float64(t.n) * u)}
}

func (c crowd) plus(d crowd) crowd { return crowd{c.right + d.right, c.weight + d.weight} }

func (c crowd) minus(d crowd) crowd { return crowd{c.right - d.right, c.weight - d.weight} }

// mean returns how often somebody of the crowd agrees.
func (c crowd) mean() float64 {
	return (float64(c.right)/millionth + pullMean*priorMean) / (float64(c.weight)/millionth + pullMean)
}

// ownOf returns what an outcome has added to the crowd, given all that came besides it.
func (m *pool) ownOf(o *past) (own crowd) {
	for i := range o.votes {
		if v := &o.votes[i]; v.member >= 0 {
			own = own.plus(m.added(v.member, v.option == o.truth))
		}
	}
	for _, s := range o.shadows {
		own = own.plus(m.added(s.member, s.right))
	}
	return own
}

// added returns what one answer has added to the crowd.
func (m *pool) added(member int32, right bool) crowd {
	t := m.list[member].tally
	return share(t).minus(share(t.minus(compared(right))))
}
