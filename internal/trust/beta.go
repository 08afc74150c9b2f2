package trust

import "math"

// Bounds of an error probability from counted errors, and the Beta distribution behind them: the
// upper bound after w errors in n trials is the quantile of Beta(w+1, n-w) at the confidence, the
// lower one that of Beta(w, n-w+1) at its complement (Clopper and Pearson 1934).

// ErrorAbove returns the one-sided Clopper-Pearson upper bound of an error
// probability, given wrong errors in n trials: the true one lies below with the
// given confidence or more (Clopper, Pearson 1934). It is 1 for n = 0 or if all
// were wrong.
func ErrorAbove(wrong, n int64, confidence float64) float64 {
	if wrong >= n || n <= 0 {
		return 1
	}
	return betaQuantile(confidence, float64(max(0, wrong))+1, float64(n-max(0, wrong)))
}

// ErrorBelow returns the one-sided Clopper-Pearson lower bound: the true error
// probability lies above with the given confidence or more. It is 0 for n = 0 or
// without errors.
func ErrorBelow(wrong, n int64, confidence float64) float64 {
	if wrong <= 0 || n <= 0 {
		return 0
	}
	wrong = min(wrong, n)
	return betaQuantile(1-confidence, float64(wrong), float64(n-wrong)+1)
}

// ClopperPearson returns the two-sided interval of a probability, given right of n trials, at a
// confidence in (0, 1): each bound is one-sided at half of what that leaves. Neither number need
// be whole, as where looks are weighted. It is 0 and 1 for n = 0.
func ClopperPearson(right, n, confidence float64) (low, high float64) {
	const nothing = 1e-9 // below this is rounding
	tail := (1 - confidence) / 2
	high = 1
	if right > nothing && n > 0 {
		low = betaQuantile(tail, right, max(0, n-right)+1)
	}
	if n-right > nothing && n > 0 {
		high = betaQuantile(1-tail, max(0, right)+1, n-right)
	}
	return low, high
}

// binomialCDF returns the probability of at most k successes in n trials.
func binomialCDF(k, n int64, p float64) float64 {
	switch {
	case k < 0:
		return 0
	case k >= n:
		return 1
	}
	return 1 - betaCDF(p, float64(k)+1, float64(n-k))
}

// betaQuantile inverts betaCDF by bisection to full precision.
func betaQuantile(q, a, b float64) float64 {
	low, high := 0., 1.
	for range 100 {
		mid := (low + high) / 2
		if mid <= low || mid >= high {
			break
		}
		if betaCDF(mid, a, b) < q {
			low = mid
		} else {
			high = mid
		}
	}
	return (low + high) / 2
}

// betaCDF returns the regularised incomplete beta function I_x(a, b), by the
// continued fraction of Abramowitz and Stegun 26.5.8.
func betaCDF(x, a, b float64) float64 {
	switch {
	case x <= 0:
		return 0
	case x >= 1:
		return 1
	}
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	front := math.Exp(lab - la - lb + float64(a*math.Log(x)) + float64(b*math.Log1p(-x)))
	if x < (a+1)/(a+b+2) {
		return front * betaFraction(x, a, b) / a
	}
	return 1 - front*betaFraction(1-x, b, a)/b
}

// betaFraction evaluates the continued fraction by Lentz's method.
func betaFraction(x, a, b float64) float64 {
	const tiny = 1e-300
	c, d := 1., 1/nonzero(1-float64((a+b)*x)/(a+1), tiny)
	h := d
	for i := 1; i < 10_000; i++ {
		m := float64(i)
		even := float64(m*(b-m)) * x / (float64(a+2*m-1) * (a + 2*m))
		d = 1 / nonzero(1+float64(even*d), tiny)
		c = nonzero(1+even/c, tiny)
		h *= d * c
		odd := -float64((a+m)*(a+b+m)) * x / (float64(a+2*m) * (a + 2*m + 1))
		d = 1 / nonzero(1+float64(odd*d), tiny)
		c = nonzero(1+odd/c, tiny)
		h *= d * c
		if math.Abs(d*c-1) < 1e-15 {
			break
		}
	}
	return h
}

func nonzero(x, tiny float64) float64 {
	if math.Abs(x) < tiny {
		return tiny
	}
	return x
}
