package trial

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestECEByChance: claims that are exactly as often right as they say have the calibration error that chance is said to make, however
// many they are; claims that say too much have a larger one.
func TestECEByChance(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, n := range []int{50, 300, 3000} {
		var own, chance, boasts float64
		for range 300 {
			var honest, boasting score
			for range n {
				p := .5 + rng.Float64()/2
				truth := 1
				if rng.Float64() < p {
					truth = 0
				}
				honest.add(Claim{P: []float64{p, 1 - p}}, truth)
				more := math.Sqrt(p)
				boasting.add(Claim{P: []float64{more, 1 - more}}, truth)
			}
			own, chance, boasts = own+honest.ece(), chance+honest.eceByChance(), boasts+boasting.ece()
		}
		if own < .95*chance || own > 1.05*chance || boasts < 1.2*chance {
			t.Errorf("seed %d, %d claims: the error is %.4f, of boasts %.4f, by chance %.4f", seed, n, own/300, boasts/300, chance/300)
		}
	}
}
