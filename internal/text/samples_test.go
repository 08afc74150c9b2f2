package text

import (
	"math/rand/v2"
	"strings"
)

func lettersFrom(r *rand.Rand, n int, alphabet string) string {
	letters := []rune(alphabet)
	var b strings.Builder
	for range n {
		b.WriteRune(letters[r.IntN(len(letters))])
	}
	return b.String()
}

func sampleText(n int) string {
	r := rand.New(rand.NewPCG(7, 7))
	list := strings.Fields("the of and to in is that it was for on are as with his they at be this have from or one had by word but not what all were we when your can said there use an each which she do how their if will up other about out many then them these so some her would make like him into time has look two more write go see number no way could people my than first water been call who oil its now find long down day did get come made may part")
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(list[r.IntN(len(list))])
		b.WriteByte(" \n"[min(r.IntN(12)/11, 1)])
	}
	return b.String()[:n]
}
