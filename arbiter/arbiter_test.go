package arbiter_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

const seed = 20260501

func desk(t testing.TB) *machine.Machine {
	t.Helper()
	m, err := machine.Parse("desk.json", []byte(`{ "machineName": "desk \"one\"", "initialState": "open", "goalState": "done",
		"states": { "open": { "prompt": "Which way?", "transitions": { "a": "done", "b": "done", "c": "open" } }, "done": {} } }`), machine.Checks{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// round makes a round of votes "transition weight": "a 0.5".
func round(t testing.TB, votes ...string) *arbiter.Round {
	t.Helper()
	m := desk(t)
	r := &arbiter.Round{Key: specialist.RoundKey{Round: 1}, Machine: m, State: m.Initial()}
	for i, v := range votes {
		name, text, _ := strings.Cut(v, " ")
		var weight exact.Billionths
		if err := json.Unmarshal([]byte(text), &weight); err != nil || r.State.Transition(name) == nil {
			t.Fatalf("vote %q: %v", v, err)
		}
		r.Votes = append(r.Votes, arbiter.Vote{Weight: weight, Rank: int32(i), Proposal: &specialist.Proposal{
			SpecialistID: fmt.Sprintf("s%d", i), Transition: r.State.Transition(name), Arrival: int32(i + 1)}})
	}
	return r
}

func tallied(scores []arbiter.Score) string {
	var b strings.Builder
	for _, s := range scores {
		fmt.Fprintf(&b, "%s %s %d #%d; ", s.Transition.Name, s.Sum, s.Count, s.Best)
	}
	return b.String()
}

func TestTally(t *testing.T) {
	for _, c := range []struct {
		votes []string
		want  string
	}{
		{nil, ""},
		{[]string{"b 0"}, "b 0 1 #0; "},
		{[]string{"b 0.1", "a 0.2", "b 0.3"}, "b 0.4 2 #2; a 0.2 1 #1; "}, // in the order of the round
		{[]string{"a 0.5", "a 0.5", "a 0.4"}, "a 1.4 3 #0; "},             // the first of equals
		{[]string{"a 0", "a 0"}, "a 0 2 #0; "},
		{[]string{"a 9e8", "a 9e8", "a 9e8", "a 9e8", "a 9e8", "a 9e8", "a 9e8", "a 9e8", "a 9e8", "a 9e8", "a 9e8"}, "a 9223372036.854775807 11 #0; "}, // saturates
	} {
		if got := tallied(round(t, c.votes...).Tally(nil)); got != c.want {
			t.Errorf("%q: %s, want %s", c.votes, got, c.want)
		}
	}
	// Equal names count as one, whichever machine value they come from.
	r := round(t, "a 0.5", "a 0.25")
	r.Votes[1].Proposal.Transition = desk(t).Initial().Transition("a")
	if got := tallied(r.Tally(nil)); got != "a 0.75 2 #0; " {
		t.Errorf("two compiled forms of one machine: %s", got)
	}
}

// TestTallyDoesNotDependOnOrder: shuffled votes make the same sums and counts.
func TestTallyDoesNotDependOnOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 2000 {
		votes := make([]string, rng.IntN(9))
		for i := range votes {
			votes[i] = fmt.Sprintf("%s %v", []string{"a", "b", "c"}[rng.IntN(3)], exact.Billionths(rng.Int64N(1e9+1)))
		}
		sums := func() map[string]string {
			m := map[string]string{}
			for _, s := range round(t, votes...).Tally(nil) {
				m[s.Transition.Name] = fmt.Sprint(s.Sum, s.Count)
			}
			return m
		}
		want := sums()
		rng.Shuffle(len(votes), func(i, j int) { votes[i], votes[j] = votes[j], votes[i] })
		if got := sums(); !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: %q tallies as %v, want %v", seed, votes, got, want)
		}
	}
}

// TestLeadersAgainstSorting: a stable sort puts the same two first.
func TestLeadersAgainstSorting(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 2))
	by := func(s arbiter.Score) exact.Billionths { return s.Sum }
	for range 5000 {
		scores := make([]arbiter.Score, rng.IntN(6))
		index := make([]int, len(scores))
		for i := range scores {
			scores[i].Sum, index[i] = exact.Billionths(rng.IntN(4)), i
		}
		slices.SortStableFunc(index, func(i, j int) int { return cmp.Compare(scores[j].Sum, scores[i].Sum) })
		index = append(index, -1, -1)
		if leader, second := arbiter.Leaders(scores, by); leader != index[0] || second != index[1] {
			t.Fatalf("seed %d: Leaders(%v) = %d, %d, want %d, %d", seed, scores, leader, second, index[0], index[1])
		}
	}
}

func TestDecisionTexts(t *testing.T) {
	half := machine.Threshold{Given: 0.5, Weight: exact.One / 2}
	long := strings.Repeat("é", 300)
	for _, c := range []struct {
		d                      arbiter.Decision
		code, short, reasoning string
		consensus              bool
	}{
		{arbiter.Decision{Winner: -1, Rule: arbiter.NoProposals}, "no_proposals", "no proposals", "No proposals", false},
		{arbiter.Decision{Winner: -1, Rule: arbiter.NothingReceived}, "no_proposals", "no proposals", "No proposals received", false},
		{arbiter.Decision{Winner: 0, Rule: arbiter.SingleProposal}, "decided", "single proposal, no competing proposals", "Single proposal with no competing proposals", true},
		{arbiter.Decision{Winner: -1, Rule: arbiter.Untrusted, Subject: "eve", Weight: 206_543_291}, "untrusted", "single proposal, not trusted",
			"Single proposal from eve is not trusted (alignment 0.21), human input required", false},
		{arbiter.Decision{Winner: -1, Rule: arbiter.ColdStart}, "cold_start", "cold start, human input required",
			"Cold start: no alignment data available, human input required", false},
		{arbiter.Decision{Winner: 2, Rule: arbiter.MarginReached, Margin: 125_000_000, Threshold: half, Subject: "approve"}, "decided",
			"alignment margin 0.13 >= threshold 0.5", "Alignment-weighted margin 0.13 >= threshold 0.5 (leader: approve)", true},
		{arbiter.Decision{Winner: -1, Rule: arbiter.MarginBelow, Margin: 4_999_999, Threshold: machine.Threshold{Given: 1e-7}}, "below_threshold",
			"alignment margin 0.00 below threshold 1e-7", "Alignment-weighted margin 0.00 below threshold 1e-7", false},
		{arbiter.Decision{Winner: 1, Rule: arbiter.FirstReceived, Subject: "ann"}, "decided", "first proposal received, from ann",
			"First proposal received wins (from ann)", true},
		{arbiter.Decision{Winner: -1, Rule: arbiter.Irreversible, Subject: "pay"}, "irreversible", `"pay" cannot be undone, human input required`,
			`Transition "pay" cannot be undone, human input required`, false},
		{arbiter.Decision{Winner: -1, Rule: arbiter.Held, Subject: "open"}, "calibrating", "sent back to humans", `State "open" was sent back to humans, human input required`, false},
		{arbiter.Decision{Winner: -1, Rule: arbiter.NoQuorum, Text: "1 of 3 answered, 2 needed"}, "no_quorum", "1 of 3 answered, 2 needed", "1 of 3 answered, 2 needed", false},
		{arbiter.Decision{Winner: -1, Rule: arbiter.NoPayload, Subject: "pay"}, "no_payload", `no payload for "pay"`,
			`Nobody who proposed "pay" gave the payload that it needs, human input required`, false},
		{arbiter.Elect(3, "because"), "decided", "because", "because", true},
		{arbiter.None("not yet\nsecond line"), "no_consensus", "not yet", "not yet\nsecond line", false},
		{arbiter.None(long), "no_consensus", long[:400], long, false}, // 200 characters, 400 bytes
		{arbiter.None(""), "no_consensus", "", "", false},
	} {
		if c.d.Code() != c.code || c.d.Short() != c.short || c.d.Reasoning() != c.reasoning || c.d.Consensus() != c.consensus {
			t.Errorf("%+v:\n%s | %s | %s | %t, want\n%s | %s | %s | %t", c.d, c.d.Code(), c.d.Short(), c.d.Reasoning(), c.d.Consensus(), c.code, c.short, c.reasoning, c.consensus)
		}
	}
}

func TestCheck(t *testing.T) {
	r := round(t, "a 1", "b 1")
	for winner, want := range map[int]string{
		-1: "", 0: "", 1: "", 2: "Winning proposal not found: #2", -2: "Winning proposal not found: #-2", math.MaxInt: "Winning proposal not found: #9223372036854775807",
	} {
		err := arbiter.Elect(winner, "").Check(r)
		if got := fmt.Sprint(err); want == "" && err != nil || want != "" && got != want {
			t.Errorf("electing %d: %v, want %q", winner, err, want)
		}
		if (err != nil) != errors.Is(err, arbiter.ErrUnknownWinner) {
			t.Errorf("electing %d: %v is not ErrUnknownWinner", winner, err)
		}
	}
	if err := (arbiter.Decision{}).Check(r); !errors.Is(err, arbiter.ErrNoDecision) {
		t.Errorf("the zero decision: %v, want ErrNoDecision", err)
	}
	if err := (arbiter.Decision{Winner: arbiter.NoWinner}).Check(&arbiter.Round{}); err != nil {
		t.Errorf("no winner of no votes: %v", err)
	}
}

func TestFind(t *testing.T) {
	r := round(t, "a 1", "b 1")
	r.Votes[0].Arrival, r.Votes[1].Arrival = 7, 3 // the order of a round is not that of arrival
	for i, arrival := range []int32{7, 3} {
		if got, err := r.Find(r.Key.ProposalID(arrival)); got != i || err != nil {
			t.Errorf("the proposal that arrived as %d is vote %d (%v), want %d", arrival, got, err, i)
		}
	}
	for _, id := range []string{"", "7", r.Key.ProposalID(1), specialist.RoundKey{Round: 2}.ProposalID(7)} {
		got, err := r.Find(id)
		var unknown *arbiter.UnknownWinnerError
		if got != arbiter.NoWinner || !errors.As(err, &unknown) || unknown.ProposalID != id || !errors.Is(err, arbiter.ErrUnknownWinner) || err.Error() != "Winning proposal not found: "+id {
			t.Errorf("Find(%q) = %d, %v", id, got, err)
		}
	}
}

// past is what a session of these tests remembers.
type past struct{ specialist.Past }

func (past) History() []specialist.TransitionRecord {
	return []specialist.TransitionRecord{{TransitionName: "c", Reasoning: "wait", ExecutionTimestamp: 1767225600000, MetaJSON: json.RawMessage(`{"n":1}`)}}
}

type nothing struct{ specialist.Past }

func (nothing) History() []specialist.TransitionRecord { return nil }

func TestAppendContext(t *testing.T) {
	r := round(t, "a 1", "b 0.206543291")
	r.Past = past{}
	threshold, _ := machine.NewThreshold(0.5)
	r.Threshold, r.Meta = &threshold, json.RawMessage(`{"amount":80}`)
	r.Votes[0].IsHuman, r.Votes[0].Reasoning = true, "I \"know\""
	r.Votes[1].MetaJSON, r.Votes[1].Usage = json.RawMessage(`[1]`), specialist.Usage{}.WithCost(exact.Dollar/4)
	want := `{"sessionId":"00000000-0000-0000-0000-000000000000","roundId":"` + r.Key.ID() + `","currentState":"open","prompt":"Which way?","machineName":"desk \"one\"",` +
		`"proposals":[{"proposalId":"` + r.Key.ProposalID(1) + `","sessionId":"00000000-0000-0000-0000-000000000000","roundId":"` + r.Key.ID() + `","specialistId":"s0","isHuman":true,` +
		`"transitionName":"a","toState":"done","reasoning":"I \"know\"","createdAt":"1970-01-01T00:00:00.000Z","arrival":1,"mode":"submitted"},` +
		`{"proposalId":"` + r.Key.ProposalID(2) + `","sessionId":"00000000-0000-0000-0000-000000000000","roundId":"` + r.Key.ID() + `","specialistId":"s1","isHuman":false,` +
		`"transitionName":"b","toState":"done","reasoning":"","metaJson":[1],"costUSD":0.25,"createdAt":"1970-01-01T00:00:00.000Z","arrival":2,"mode":"submitted"}],` +
		`"alignmentScores":{"s0":1,"s1":0.206543291},"history":[{"transitionName":"c","reasoning":"wait","executionTimestamp":"2026-01-01T00:00:00.000Z","metaJson":{"n":1}}],` +
		`"threshold":0.5,"metaJson":{"amount":80}}`
	if got := string(r.AppendContext([]byte("x"))); got != "x"+want {
		t.Errorf("the context is\n%s, want\n%s", got[1:], want)
	}
	bare := round(t)
	bare.Past = nothing{}
	want = `{"sessionId":"00000000-0000-0000-0000-000000000000","roundId":"` + bare.Key.ID() + `","currentState":"open","prompt":"Which way?","machineName":"desk \"one\"","proposals":[],"alignmentScores":{},"history":[]}`
	if got := string(bare.AppendContext(nil)); got != want {
		t.Errorf("the context of an empty round is\n%s, want\n%s", got, want)
	}
}

type long struct {
	specialist.Past
	history []specialist.TransitionRecord
}

func (l long) History() []specialist.TransitionRecord { return l.history }

// TestContextIsBounded: of a long history the newest is shown; proposals never fall
// out.
func TestContextIsBounded(t *testing.T) {
	r := round(t, "a 1", "b 1")
	r.Votes[0].Reasoning = strings.Repeat("y", 64<<10)
	var p long
	for i := range 2000 {
		p.history = append(p.history, specialist.TransitionRecord{TransitionName: strconv.Itoa(i), Reasoning: strings.Repeat("z", 1000)})
	}
	r.Past = p
	got := r.AppendContext([]byte("x"))[1:]
	var shown struct {
		Proposals []struct{ Reasoning string }
		History   []struct{ TransitionName string }
	}
	if err := json.Unmarshal(got, &shown); err != nil {
		t.Fatal(err)
	}
	one := len(specialist.AppendHistory(nil, p.history[:1]))
	if len(got) > specialist.MaxContext || len(got)+2*one < specialist.MaxContext || len(shown.History) == 0 || shown.History[len(shown.History)-1].TransitionName != "1999" {
		t.Errorf("%d bytes, %d transitions", len(got), len(shown.History))
	}
	if len(shown.Proposals) != 2 || shown.Proposals[0].Reasoning != r.Votes[0].Reasoning {
		t.Error("a proposal was cut")
	}
}

func TestFunc(t *testing.T) {
	want := errors.New("not today")
	var a arbiter.Arbiter = arbiter.Func(func(_ context.Context, r *arbiter.Round) (arbiter.Decision, error) {
		return arbiter.Elect(len(r.Votes)-1, "the last"), want
	})
	if d, err := a.Decide(t.Context(), round(t, "a 1", "b 1")); err != want || d.Winner != 1 || d.Text != "the last" || d.Rule != arbiter.Custom {
		t.Errorf("the function said %+v, %v", d, err)
	}
	if _, stops := a.(arbiter.Stopper); stops {
		t.Error("a plain function claims to know when a round is decided")
	}
}
