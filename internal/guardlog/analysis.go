package guardlog

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/verdict"
)

// Sums of a log of guards: how many records of each kind, how often each verdict and
// each reason, how scores are spread, and what was spent on what led to each verdict.
// Spending is collected for each candidate (a task and its round, or the id of an
// answer) until its verdict comes, which takes it over; what is left at the end is
// reported as open.
//
// A log may be as long as it likes, so memory is bounded: scores are counted in steps
// of 1/10,000, names beyond 1,000 are "other", candidates beyond 100,000 share one sum.
// Lines that cannot be read are counted and the first ten named. Lines that dialai
// check has printed are taken as well.

type lineProblem struct {
	Line    int    `json:"line"`
	Problem string `json:"problem"`
}

type typeCount struct {
	Type  string `json:"type"`
	Count int    `json:"count"`
}

// SpentCount is what calls have spent.
type SpentCount struct {
	InputTokens  int64       `json:"inputTokens"`
	OutputTokens int64       `json:"outputTokens"`
	USD          exact.Money `json:"usd"`
}

func (s *SpentCount) add(in, out int64, usd exact.Money) {
	s.InputTokens, s.OutputTokens = exact.AddSat(s.InputTokens, in), exact.AddSat(s.OutputTokens, out)
	s.USD = s.USD.Add(usd)
}

type verdictCount struct {
	Verdict string `json:"verdict"`
	Count   int    `json:"count"`
	SpentCount
	TokensEach int64 `json:"tokensEach"` // on average, rounded down
}

type reasonCount struct {
	Code  string `json:"code"`
	Count int    `json:"count"`
}

type scoreSpread struct {
	Stage string  `json:"stage"`
	Count int     `json:"count"`
	Min   float64 `json:"min"`
	P10   float64 `json:"p10"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// An Analysis sums up a log.
type Analysis struct {
	lines, records, malformed int
	problems                  []lineProblem
	types                     map[string]int
	verdicts                  map[string]*verdictCount
	reasons                   map[string]int
	scores                    map[string]*histogram
	open                      map[candidate]*SpentCount // spent since the last verdict
	rest                      SpentCount                // of candidates that were too many
}

// A candidate is what a verdict is about.
type candidate struct {
	task  string
	round int64
	id    string
}

// A histogram counts scores.
type histogram struct {
	counts   map[int]int // by scoreSteps
	n        int
	min, max float64
}

// NewAnalysis returns an analysis of a log of which no line was read yet.
func NewAnalysis() *Analysis {
	return &Analysis{
		types: map[string]int{}, verdicts: map[string]*verdictCount{}, reasons: map[string]int{},
		scores: map[string]*histogram{}, open: map[candidate]*SpentCount{},
	}
}

// Line takes in one line of the log.
func (an *Analysis) Line(n int, line []byte, err error) error {
	an.lines++
	var rec guard.LogRecord
	if err == nil {
		if result, ok := resultLineOf(line); ok {
			an.result(result)
			return nil
		}
		rec, err = guard.ParseLog(line)
	}
	if err != nil {
		an.malformed++
		if len(an.problems) < shownMalformed {
			an.problems = append(an.problems, lineProblem{n, err.Error()})
		}
		return nil
	}
	an.records++
	an.types[string(rec.Type)]++
	an.record(&rec)
	return nil
}

func (an *Analysis) record(rec *guard.LogRecord) {
	c := candidate{rec.Task(), rec.Round, rec.CandidateID}
	if rec.Round != 0 { // all calls of a round lead to its verdict
		c.id = ""
	}
	var codes []string
	if rec.Meta != nil {
		for _, r := range rec.Meta.Reasons {
			codes = append(codes, r.Code)
		}
	}
	if len(codes) == 0 && rec.Reason != "" {
		codes = []string{rec.Reason}
	}
	switch rec.Type {
	case guard.LogSpend:
		an.spend(c, rec)
	case guard.LogProbe:
		if rec.Value != nil {
			an.score(rec.Stage, *rec.Value)
		}
	case guard.LogCheck:
		if in := rec.Input; in != nil && !in.Charged {
			var usd exact.Money
			if in.USD != nil {
				usd = *in.USD
			}
			an.spent(c).add(in.TokensIn, in.TokensOut, usd)
		}
		if rec.Verdict != "" {
			an.verdict(c, rec.Verdict, codes)
		}
	case guard.LogVerdict:
		an.verdict(c, rec.Verdict, codes)
	}
}

func (an *Analysis) spend(c candidate, rec *guard.LogRecord) {
	var usd exact.Money
	if rec.USD != nil {
		usd = *rec.USD
	}
	if rec.Tokens != nil {
		an.spent(c).add(rec.Tokens.Input, rec.Tokens.Output, usd)
	} else if usd != 0 {
		an.spent(c).add(0, 0, usd)
	}
}

// spent returns what was spent on a candidate since its last verdict.
func (an *Analysis) spent(c candidate) *SpentCount {
	s := an.open[c]
	if s == nil {
		if len(an.open) >= mostOpen {
			return &an.rest
		}
		s = &SpentCount{}
		an.open[c] = s
	}
	return s
}

func (an *Analysis) verdict(c candidate, name string, codes []string) {
	v := an.verdicts[name]
	if v == nil {
		v = &verdictCount{Verdict: name}
		an.verdicts[name] = v
	}
	v.Count++
	if s := an.open[c]; s != nil {
		v.add(s.InputTokens, s.OutputTokens, s.USD)
		delete(an.open, c)
	}
	for _, code := range codes {
		count(an.reasons, code)
	}
}

// count counts a name that comes from outside.
func count(names map[string]int, name string) {
	if _, known := names[name]; !known && len(names) >= mostNames {
		name = "other"
	}
	names[name]++
}

func (an *Analysis) score(stage string, value float64) {
	h := an.scores[stage]
	if h == nil {
		if len(an.scores) >= mostNames {
			stage = "other"
		}
		if h = an.scores[stage]; h == nil {
			h = &histogram{counts: map[int]int{}, min: value, max: value}
			an.scores[stage] = h
		}
	}
	h.counts[int(value*scoreSteps+0.5)]++
	h.n++
	h.min, h.max = min(h.min, value), max(h.max, value)
}

// quantile returns the score that a share q of all scores does not exceed, to
// four decimals.
func (h *histogram) quantile(q float64) float64 {
	need := max(int(q*float64(h.n)+0.999999), 1)
	for step := range scoreSteps + 1 {
		if need -= h.counts[step]; need <= 0 {
			return min(max(float64(step)/scoreSteps, h.min), h.max)
		}
	}
	return h.max
}

// Bounds of what an analysis remembers, however long the log is.
const (
	shownMalformed = 10      // lines that are named
	mostNames      = 1000    // distinct reasons or stages; the rest is "other"
	mostOpen       = 100_000 // candidates without a verdict yet
	scoreSteps     = 10_000  // scores are counted by their first four decimals
)

// AnalysisLine is what analyze finds as --json shows it.
type AnalysisLine struct {
	Lines     int            `json:"lines"`
	Records   int            `json:"records"`
	Malformed int            `json:"malformed"`
	Problems  []lineProblem  `json:"problems"`
	Types     []typeCount    `json:"types"`
	Verdicts  []verdictCount `json:"verdicts"`
	Reasons   []reasonCount  `json:"reasons"`
	Scores    []scoreSpread  `json:"scores"`
	Open      SpentCount     `json:"open"`
}

// A checkResult is a line that dialai check prints.
type checkResult struct {
	Status  string `json:"status"`
	Reasons []struct {
		Code string `json:"code"`
	} `json:"reasons"`
}

// resultLineOf returns what dialai check printed; ok is false if the line is
// something else.
func resultLineOf(line []byte) (r checkResult, ok bool) {
	var probe struct {
		Type   json.RawMessage `json:"type"`
		Status json.RawMessage `json:"status"`
	}
	if json.Unmarshal(line, &probe) != nil || probe.Type != nil || probe.Status == nil || json.Unmarshal(line, &r) != nil {
		return r, false
	}
	_, known := verdict.StatusNamed(r.Status)
	return r, known || r.Status == "done" || r.Status == "error"
}

func (an *Analysis) result(r checkResult) {
	an.records++
	if _, known := verdict.StatusNamed(r.Status); !known {
		an.types[r.Status]++
		return
	}
	an.types["result"]++
	var codes []string
	for _, reason := range r.Reasons {
		codes = append(codes, reason.Code)
	}
	an.verdict(candidate{}, r.Status, codes)
}

// Report returns what was found, in an order that does not depend on chance.
func (an *Analysis) Report() AnalysisLine {
	r := AnalysisLine{
		Lines: an.lines, Records: an.records, Malformed: an.malformed, Problems: append([]lineProblem{}, an.problems...),
		Types: []typeCount{}, Verdicts: []verdictCount{}, Reasons: []reasonCount{}, Scores: []scoreSpread{}, Open: an.rest,
	}
	for name, n := range an.types {
		r.Types = append(r.Types, typeCount{name, n})
	}
	for _, v := range an.verdicts {
		v.TokensEach = exact.AddSat(v.InputTokens, v.OutputTokens) / int64(v.Count)
		r.Verdicts = append(r.Verdicts, *v)
	}
	for code, n := range an.reasons {
		r.Reasons = append(r.Reasons, reasonCount{code, n})
	}
	for stage, h := range an.scores {
		r.Scores = append(r.Scores, scoreSpread{stage, h.n, h.min, h.quantile(0.1), h.quantile(0.5), h.quantile(0.9), h.quantile(0.99), h.max})
	}
	for _, s := range an.open {
		r.Open.add(s.InputTokens, s.OutputTokens, s.USD)
	}
	slices.SortFunc(r.Types, func(a, b typeCount) int { return cmp.Or(b.Count-a.Count, cmp.Compare(a.Type, b.Type)) })
	slices.SortFunc(r.Verdicts, func(a, b verdictCount) int {
		return cmp.Or(b.Count-a.Count, cmp.Compare(a.Verdict, b.Verdict))
	})
	slices.SortFunc(r.Reasons, func(a, b reasonCount) int { return cmp.Or(b.Count-a.Count, cmp.Compare(a.Code, b.Code)) })
	slices.SortFunc(r.Scores, func(a, b scoreSpread) int { return cmp.Compare(a.Stage, b.Stage) })
	return r
}
