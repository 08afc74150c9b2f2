package trust

import (
	"math"

	"github.com/dialai/dialai/exact"
)

// How it is tested, after each round, whether a specialist is good enough to decide alone, and
// whether one that does has become worse. For promotion an e-process: a bet against "agrees at
// most p0 of the time" that is fair if this is true,
//
// 	E = sum over i of stake[i] * (q[i]/p0)^k * ((1-q[i])/(1-p0))^(n-k),  q[i] = p0 + (1-p0) f[i]
//
// so that it reaches 1/alpha with probability alpha at most, however often one looks (Ville
// 1939). For demotion an e-detector: M = (M+1) * ratio at each observation, summed over tilts,
// with an alarm at 100: at least 100 observations on average before a false one (Shin, Ramdas,
// Rinaldo 2022).

// Parameters of the e-process of promotion and of the e-detector of demotion.
const bets = 5

// They are tables, and never change.
var (
	bettingPlaces = [bets]float64{.2, .4, .6, .8, .95} // between the target and 1
	evenStakes    = [bets]float64{.2, .2, .2, .2, .2}
	detectorTilts = [4]float64{.95, .85, .7, .5} // of the target
)

// AlarmAt is the value of a [Detector] at which it raises the alarm: as many
// audits pass on average before a false one.
const AlarmAt = 100

// EValue returns the evidence that somebody agrees more often than p0, given k
// agreements in n rounds: a mixture of bets, each a test martingale if it agrees
// no more often. If the share is at most p0, the probability that the value ever
// reaches x is at most 1/x (Ville 1939), however often one looks. p0 lies in
// (0, 1); for k outside 0..n the value is 0.
func EValue(k, n int64, p0 float64) float64 { return math.Exp(logEValue(k, n, p0, &evenStakes)) }

// logEValue returns the logarithm of the value with stakes that add up to 1.
func logEValue(k, n int64, p0 float64, stakes *[bets]float64) float64 {
	if k < 0 || n < k || !(p0 > 0 && p0 < 1) {
		return math.Inf(-1)
	}
	var logs [bets]float64
	top := math.Inf(-1)
	for i, f := range bettingPlaces {
		q := p0 + float64((1-p0)*f)
		logs[i] = math.Log(stakes[i]) + float64(float64(k)*math.Log(q/p0)) + float64(float64(n-k)*math.Log((1-q)/(1-p0)))
		top = max(top, logs[i])
	}
	sum := 0.
	for _, v := range logs {
		sum += math.Exp(v - top)
	}
	return top + math.Log(sum)
}

// LowerBound returns the largest share p0 that k agreements in n rounds refute at
// level alpha, whenever one looks: the anytime-valid lower confidence bound. It is
// 0 if there is none.
func LowerBound(k, n int64, alpha float64) exact.Billionths {
	bar := -math.Log(alpha)
	low, high := 0., 1.
	for range 60 {
		mid := (low + high) / 2
		if logEValue(k, n, mid, &evenStakes) >= bar {
			low = mid
		} else {
			high = mid
		}
	}
	return billionths(low)
}

// betaStakes returns stakes half of which are even, half in proportion to the
// density of a Beta distribution at the alternatives to p0.
func betaStakes(a, b, p0 float64) (h [bets]float64) {
	var logs [bets]float64
	top := math.Inf(-1)
	for i, f := range bettingPlaces {
		q := p0 + float64((1-p0)*f)
		logs[i] = float64((a-1)*math.Log(q)) + float64((b-1)*math.Log(1-q))
		top = max(top, logs[i])
	}
	sum := 0.
	for i := range logs {
		logs[i] = math.Exp(logs[i] - top)
		sum += logs[i]
	}
	for i := range h {
		h[i] = .5*evenStakes[i] + .5*logs[i]/sum
	}
	return h
}

// A Detector watches a share that was found to be at least p0 for falling below
// it: an e-detector (Shin, Ramdas, Rinaldo 2022). The zero Detector has seen
// nothing. It is a value; [Detector.Add] returns the next.
type Detector struct {
	M [len(detectorTilts)]float64 `json:"m"`
	// N counts the observations, and Since those after the estimated change point:
	// the last time the value was 1 or less.
	N     int64 `json:"n"`
	Since int64 `json:"since"`
}

// Add returns d after one more observation, right or wrong, of a share that is
// p0 or more. p0 lies in (0, 1).
func (d Detector) Add(right bool, p0 float64) Detector {
	for i, f := range detectorTilts {
		q := float64(p0 * f)
		ratio := (1 - q) / (1 - p0)
		if right {
			ratio = q / p0
		}
		d.M[i] = float64((d.M[i] + 1) * ratio)
	}
	d.N, d.Since = d.N+1, d.Since+1
	if d.Value() <= 1 {
		d.Since = 0
	}
	return d
}

// Value returns the evidence of a change.
func (d Detector) Value() float64 {
	sum := 0.
	for _, m := range d.M {
		sum += m
	}
	return sum / float64(len(d.M))
}

// Alarm reports whether the share has fallen.
func (d Detector) Alarm() bool { return d.Value() >= AlarmAt }
