package trust_test

import (
	"fmt"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
)

// A few lucky agreements are not yet trust.
func ExampleScore() {
	for _, n := range []int64{1, 3, 10, 16, 100} {
		fmt.Printf("%3d of %3d: %s\n", n, n, trust.Score(n, n).Text2())
	}
	fmt.Println("trusted from", trust.Trusted)
	// Output:
	//   1 of   1: 0.21
	//   3 of   3: 0.44
	//  10 of  10: 0.72
	//  16 of  16: 0.81
	// 100 of 100: 0.96
	// trusted from 0.8
}

// Each human decision is compared with what the specialists had proposed.
func ExampleBook_With() {
	var book *trust.Book // empty
	for range 3 {
		book = book.With(
			trust.Comparison{Key: trust.Key{SpecialistID: "reviewer"}, Match: true},
			trust.Comparison{Key: trust.Key{SpecialistID: "optimist"}, Match: false})
	}
	for _, r := range book.Records("code-review") {
		fmt.Println(r.SpecialistID, "in", r.MachineName, r.MatchingChoices, "of", r.TotalComparisons, r.AlignmentScore)
	}
	// Output:
	// optimist in code-review 0 of 3 0
	// reviewer in code-review 3 of 3 0.43849392
}

// After twenty rounds in which ann was right and bob was not, ann outweighs bob.
func ExampleLedger_Judge() {
	ledger := trust.New()
	for i := range 20 {
		truth, other := "approve", "reject"
		if i%2 == 1 {
			truth, other = other, truth
		}
		err := ledger.Add(trust.Outcome{
			Machine: "review", State: "pending", Options: []string{"approve", "reject"}, Truth: truth, Source: trust.Forced,
			Proposals: []trust.OutcomeProposal{{SpecialistID: "ann", Transition: truth}, {SpecialistID: "bob", Transition: other}},
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	threshold := exact.Billionths(700_000_000)
	j := ledger.Judge(trust.Question{
		Machine: "review", State: "pending", Options: []string{"approve", "reject"},
		Votes:  []trust.Vote{{SpecialistID: "bob", Option: 0}, {SpecialistID: "ann", Option: 1}},
		Policy: trust.Policy{Threshold: &threshold},
	})
	fmt.Println(j.Code, j.Pick, j.P[j.Best].Text2())
	for _, v := range j.Votes {
		fmt.Printf("%s proposes %s: %d of %d, trusted %s\n", v.SpecialistID, v.Transition, v.K, v.N, v.Trust.Text2())
	}
	// Output:
	// decided reject 0.97
	// ann proposes reject: 20 of 20, trusted 0.94
	// bob proposes approve: 0 of 20, trusted 0.11
}
