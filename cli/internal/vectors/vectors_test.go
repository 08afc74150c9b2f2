package vectors_test

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
)

// A vectorResult is what a case about arbiters or Wilson scores comes to.
type vectorResult struct {
	ConsensusReached bool    `json:"consensusReached"`
	Winner           *string `json:"winner"`
	Reasoning        string  `json:"reasoning"`
	Score            float64 `json:"score"`
	Billionths       int64   `json:"billionths"`
}

// The expectations of testdata/vectors.json were computed with rational numbers
// and 60 decimal digits by a program that shares nothing with this one. Among the
// cases are thresholds just at, below and above the margin, beyond 1 and beyond
// what billionths can hold, equal times, and names that look alike.
func TestVectors(t *testing.T) {
	text, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name   string
		Expect vectorResult
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	out, err := runVectors(t, string(text))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) != len(cases) || len(cases) < 200 {
		t.Fatalf("%d lines for %d cases", len(lines), len(cases))
	}
	for i, c := range cases {
		var got struct {
			Name   string
			Result vectorResult
		}
		if err := json.Unmarshal([]byte(lines[i]), &got); err != nil {
			t.Fatal(err)
		}
		if got.Name != c.Name || !got.Result.equal(c.Expect) {
			t.Errorf("%s: got %s, want %+v", c.Name, lines[i], c.Expect)
		}
	}
}

func (r vectorResult) equal(want vectorResult) bool {
	if (r.Winner == nil) != (want.Winner == nil) || r.Winner != nil && *r.Winner != *want.Winner {
		return false
	}
	return r.ConsensusReached == want.ConsensusReached && r.Reasoning == want.Reasoning &&
		r.Billionths == want.Billionths && math.Abs(r.Score-want.Score) <= 1e-12
}

// What cannot be run takes no other case with it.
func TestVectorsThatCannotBeRun(t *testing.T) {
	out, err := runVectors(t, `[{"name":"a","strategy":"coin"},{"name":"b"},7,{"name":"c","suite":"coin","steps":[{"input":{}},{"input":{}}]},
		{"name":"d","matches":1,"total":1},{"name":"e","matches":7,"total":5,"z":1.96},{"name":"f","strategy":"firstProposal","proposals":[{"createdAt":"x"}]}]`)
	if err == nil {
		t.Error("it is no error")
	}
	for i, want := range []string{
		`{"name":"a","result":{"error":"unknown strategy \"coin\""}}`,
		`{"name":"b","result":{"error":"it has neither a strategy nor matches"}}`,
		`{"name":"","result":{"error":"json: `, `{"name":"c","step":0,"result":{"error":`, `{"name":"c","step":1,"result":{"error":`,
		`{"name":"d","result":{"score":0.20654329147389294,"billionths":206543291}}`,
		`{"name":"e","result":{"score":0,"billionths":0}}`,
		`{"name":"f","result":{"error":"json: `,
	} {
		line, rest, _ := bytes.Cut([]byte(out), []byte("\n"))
		if !strings.HasPrefix(string(line), want) {
			t.Errorf("line %d is %s, want %s", i, line, want)
		}
		out = string(rest)
	}
}
