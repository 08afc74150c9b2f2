package truth_test

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/truth"
)

const none = -1 // no score

func TestParseScore(t *testing.T) {
	for _, c := range []struct {
		name, critique string
		compat, strict float64
	}{
		{"alone", "SCORE: 0.25", 0.25, 0.25},
		{"after text", "The sum is right.\n\nSCORE: 0.25\n", 0.25, 0.25},
		{"any case", "sCoRe:0.25", 0.25, 0.25},
		{"tabs and blanks", "\t SCORE:\t 0.25 \t", 0.25, 0.25},
		{"carriage returns", "ok\r\nSCORE: 0.25 \r\nbye\r\n", 0.25, 0.25},
		{"initial", "Initial SCORE: 0.25", 0.25, 0.25},
		{"final wins over initial", "Initial SCORE: 0.9\nHm.\n  final\tscore: 0.25", 0.25, 0.25},
		{"no blank after final", "FinalSCORE: 0.25", none, none},
		{"another word", "Overall SCORE: 0.25", none, none},
		{"both words", "Initial Final SCORE: 0.25", none, none},
		{"word on the line before", "Final\nSCORE: 0.25", 0.25, 0.25},
		{"blank before the colon", "SCORE : 0.25", none, none},
		{"bold", "**SCORE: 0.25**", none, none},
		{"quoted", "> SCORE: 0.25", none, none},
		{"long s", "ſCORE: 0.25", none, none},
		{"prose later", "SCORE: 0.25\nI gave SCORE: 1.0 before.", 0.25, 0.25},
		{"prose on the line", "SCORE: 0.25 out of 1", none, none},
		{"last wins", "SCORE: 1\nSCORE: 0.25", 0.25, 0.25},
		{"last wins though bad", "SCORE: 1\nSCORE: 85", none, none},
		{"a good one after a bad one", "SCORE: 85\nSCORE: 0.25", 0.25, 0.25},
		{"a broken line after a good one", "SCORE: 0.25\nSCORE: 0.9 (final)", 0.25, none},
		{"an empty line after a good one", "SCORE: 0.25\nFinal SCORE:", 0.25, none},
		{"a good one after a broken line", "SCORE: 0.9 or so\nSCORE: 0.25", 0.25, 0.25},
		{"token on the next line", "SCORE:\n0.25", none, none},
		{"empty", "", none, none},
		{"no-break space", "SCORE: 0.25\u00a0", none, none},
		{"form feed", "\fSCORE: 0.25", none, none},
		{"lone carriage return", "SCORE: 0.25\rmore", none, none},
		{"least", "SCORE: 0", 0, 0},
		{"most", "SCORE: 1.000", 1, 1},
		{"minus nothing", "SCORE: -0.0", 0, 0},
		{"plus", "SCORE: +.25", 0.25, 0.25},
		{"full stop", "SCORE: 1.", 1, 1},
		{"exponent", "SCORE: 2.5e-1", 0.25, 0.25},
		{"big exponent", "SCORE: 25E-2", 0.25, 0.25},
		{"huge exponent", "SCORE: 1e999", none, none},
		{"tiny", "SCORE: 1e-999", 0, 0},
		{"just above", "SCORE: 1.0000001", none, none},
		{"below", "SCORE: -0.5", none, none},
		{"per cent", "SCORE: 85%", none, none},
		{"fraction", "SCORE: 0.8/1", none, none},
		{"comma", "SCORE: 0,8", none, none},
		{"not a number", "SCORE: NaN", none, none},
		{"infinity", "SCORE: -Infinity", none, none},
		{"short infinity", "SCORE: inf", none, none},
		{"hexadecimal", "SCORE: 0x0p0", none, none},
		{"underscore", "SCORE: 0_0.5", none, none},
		{"only a dot", "SCORE: .", none, none},
		{"only an exponent", "SCORE: e1", none, none},
		{"unfinished exponent", "SCORE: 1e", none, none},
		{"full width digits", "SCORE: ０", none, none},
	} {
		t.Run(c.name, func(t *testing.T) {
			for strict, want := range map[bool]float64{false: c.compat, true: c.strict} {
				got, ok := truth.ParseScore(c.critique, strict)
				if !ok {
					got = none
				}
				if got != want || math.Signbit(got) != (want < 0) {
					t.Errorf("ParseScore(%q, %v) = %v, want %v", c.critique, strict, got, want)
				}
			}
		})
	}
}

var (
	oracleLine   = regexp.MustCompile(`^[ \t]*(?:(?:[Ii][Nn][Ii][Tt][Ii][Aa][Ll]|[Ff][Ii][Nn][Aa][Ll])[ \t]+)?[Ss][Cc][Oo][Rr][Ee]:[ \t]*([^ \t]+)[ \t]*$`)
	oracleBegins = regexp.MustCompile(`^[ \t]*(?:(?:[Ii][Nn][Ii][Tt][Ii][Aa][Ll]|[Ff][Ii][Nn][Aa][Ll])[ \t]+)?[Ss][Cc][Oo][Rr][Ee]:`)
	oracleNumber = regexp.MustCompile(`^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$`)
)

// oracleScore reads scores by regular expressions, from the last line upwards.
func oracleScore(critique string, strict bool) (float64, bool) {
	lines := strings.Split(critique, "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		line := strings.TrimSuffix(lines[i], "\r")
		m := oracleLine.FindStringSubmatch(line)
		if m == nil {
			if strict && oracleBegins.MatchString(line) {
				return 0, false
			}
			continue
		}
		f, err := strconv.ParseFloat(m[1], 64)
		ok := oracleNumber.MatchString(m[1]) && err == nil && f >= 0 && f <= 1
		if !ok {
			f = 0
		}
		return f, ok
	}
	return 0, false
}

func FuzzScore(f *testing.F) {
	for _, seed := range []string{
		"SCORE: 0.5", "initial score: 1\r\nFINAL\tSCORE:.5e-1 \r\n", "SCORE: 0.5\nSCORE: 1 2", "SCORE:\r", "SCORE: +1.E+0", "Final  SCORE: NaN",
		"SCORE: 0x1p-2", "ſCORE: 1", "SCORE: 1_0", "SCORE: 0.5 \r ", "final SCORE: 0.5\r\r", "SCORE: \u00a0", "\xffSCORE: 1", "SCORE: -0",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, critique string) {
		for _, strict := range []bool{false, true} {
			got, ok := truth.ParseScore(critique, strict)
			want, wantOK := oracleScore(critique, strict)
			if got != want || ok != wantOK {
				t.Fatalf("ParseScore(%q, %v) = %v, %v; want %v, %v", critique, strict, got, ok, want, wantOK)
			}
		}
	})
}
