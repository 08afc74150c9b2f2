package truth

import (
	"math"
	"strconv"
	"strings"
)

// ParseScore reads the score, from 0 to 1, that a critique ends in. A score line
// is a whole line: blanks, perhaps Initial or Final and at least one blank,
// "SCORE:", blanks, one token, blanks; letter case does not matter, blanks are
// spaces and tabs, and the line may end in a carriage return. The last score line
// decides. ok is false if there is none or its token is no decimal number from 0
// to 1. With strict, ok is also false if a line after it begins like a score line
// without being one.
func ParseScore(critique string, strict bool) (score float64, ok bool) {
	for line := range strings.SplitSeq(critique, "\n") {
		rest, begins := scoreLabel(line)
		if !begins {
			continue
		}
		token := strings.Trim(strings.TrimSuffix(rest, "\r"), " \t")
		switch whole := token != "" && !strings.ContainsAny(token, " \t"); {
		case whole:
			score, ok = scoreToken(token)
		case strict:
			score, ok = 0, false
		}
	}
	return score, ok
}

// scoreLabel returns what follows the label of a line that begins like a score
// line.
func scoreLabel(line string) (rest string, begins bool) {
	line = strings.TrimLeft(line, " \t")
	for _, word := range []string{"initial", "final"} {
		if after, found := cutFold(line, word); found {
			if line = strings.TrimLeft(after, " \t"); line == after {
				return "", false
			}
			break
		}
	}
	return cutFold(line, "score:")
}

// cutFold is strings.CutPrefix without regard to the case of ASCII letters.
func cutFold(s, prefix string) (rest string, found bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) { // as many bytes: no other letter folds to one of them
		return "", false
	}
	return s[len(prefix):], true
}

// scoreToken reads a decimal number from 0 to 1. ParseFloat alone would take more:
// NaN, infinities, hexadecimal digits, underscores.
func scoreToken(token string) (score float64, ok bool) {
	if strings.Trim(token, "0123456789+-.eE") != "" || !strings.ContainsAny(token, "0123456789") {
		return 0, false
	}
	score, err := strconv.ParseFloat(token, 64)
	if err != nil || !(score >= 0 && score <= 1) {
		return 0, false
	}
	return math.Abs(score), true // -0 is 0
}
