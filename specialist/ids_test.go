package specialist_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"regexp"
	"testing"

	"github.com/dialai/dialai/specialist"
)

const seed = 20260701

// session is f81d4fae-7dec-41d0-a765-00a0c91e6bf6.
var session = specialist.SessionID{0xf8, 0x1d, 0x4f, 0xae, 0x7d, 0xec, 0x41, 0xd0, 0xa7, 0x65, 0x00, 0xa0, 0xc9, 0x1e, 0x6b, 0xf6}

// TestGoldenIDs: ids are never stored, only derived, so they must stay what they
// are for as long as there are logs. The values were computed by another program.
func TestGoldenIDs(t *testing.T) {
	if got := session.String(); got != "f81d4fae-7dec-41d0-a765-00a0c91e6bf6" {
		t.Errorf("the session is %s", got)
	}
	for _, c := range []struct {
		key                                                                 specialist.RoundKey
		round, proposal1, proposal2, ask1, arbitration1, decision, exemplar string
	}{
		{specialist.RoundKey{Session: session, Round: 1}, "42dd4eeb-9e0f-8127-91b9-d8a3e9364a8e", "3989f99a-43ef-8450-b29c-941a1309fed9", "4b02de56-9df2-8aa4-b02e-2bbb6e818dc6",
			"db659ee0-f66b-827f-a456-74d654adc13f", "e9b05e95-a208-85d7-94d3-7fea14694c8e", "e3d3bf5c-71b4-8a26-ba55-75c928a052b8", "2c2491f1-7bcb-8f76-a378-0342bc6e4411"},
		{specialist.RoundKey{Session: session, Round: 12, Attempt: 3}, "8c754a99-d5f9-84a0-af62-b388c3de7928", "46183551-bc75-8d50-8900-7079f3480ba2", "51a1f815-d6a9-857b-adc0-6b1da0d7ffca",
			"8129d4a8-11f5-8648-bf7a-08087ae7abc2", "009ddf0c-cb90-8c72-a385-1258fdb9f02e", "b0f963d7-cfbf-8406-bc4b-086d63c165e8", "94199425-1619-8b26-9c94-1a7f1c19b172"},
	} {
		k := c.key
		got := [...]string{k.ID(), k.ProposalID(1), k.ProposalID(2), k.AskID(1), k.ArbitrationID(1), k.DecisionID(), k.ExemplarID()}
		want := [...]string{c.round, c.proposal1, c.proposal2, c.ask1, c.arbitration1, c.decision, c.exemplar}
		if got != want {
			t.Errorf("the ids of round %d, attempt %d are\n%q, want\n%q", k.Round, k.Attempt, got, want)
		}
	}
}

var uuid8 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

// TestIDsAreUnique: of every kind, index, round, attempt and session, and each is
// a UUID of version 8.
func TestIDsAreUnique(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 1))
	seen := map[string]string{}
	for s := range 20 {
		id := session
		if s > 0 {
			binary.BigEndian.PutUint64(id[rng.IntN(9):], rng.Uint64())
		}
		for round := range int32(10) {
			for attempt := range int32(4) {
				k := specialist.RoundKey{Session: id, Round: round, Attempt: attempt}
				ids := map[string]string{"round": k.ID(), "decision": k.DecisionID(), "exemplar": k.ExemplarID()}
				for i := range int32(10) {
					ids[fmt.Sprint("proposal", i)], ids[fmt.Sprint("ask", i)], ids[fmt.Sprint("arbitration", i)] = k.ProposalID(i), k.AskID(i), k.ArbitrationID(i)
				}
				for kind, text := range ids {
					what := fmt.Sprint(k, kind)
					if other, taken := seen[text]; taken || !uuid8.MatchString(text) {
						t.Fatalf("seed %d: %s of %s is no UUID of its own: also %s", seed, text, what, other)
					}
					seen[text] = what
				}
			}
		}
	}
}

// TestStreams: every purpose of every ask draws its own numbers, the same each
// time. One is pinned: recorded sessions are replayed with it.
func TestStreams(t *testing.T) {
	q := specialist.Question{Key: specialist.RoundKey{Session: session, Round: 1}, Self: "ann"}
	if hi, lo := q.Stream("random"); hi != 17465885596783814558 || lo != 3605663596960294228 {
		t.Errorf("the stream without a seed is %d, %d", hi, lo)
	}
	q.Seed = 42
	if hi, lo := q.Stream("random"); hi != 6155570278681144399 || lo != 7225277290826419434 {
		t.Errorf("the stream of seed 42 is %d, %d", hi, lo)
	}
	sum := sha256.Sum256([]byte("\x00\x00\x00\x00\x00\x00\x00\x2a\x00\x00\x00\x01\x00\x00\x00\x00ann\x00random"))
	if hi, lo := q.Stream("random"); hi != binary.BigEndian.Uint64(sum[:8]) || lo != binary.BigEndian.Uint64(sum[8:]) {
		t.Errorf("the stream of seed 42 is %d, %d, not what it is said to be", hi, lo)
	}
	seen := map[[2]uint64]string{}
	for _, seed := range []uint64{0, 1, 42} {
		for round := range int32(3) {
			for attempt := range int32(3) {
				for _, self := range []string{"", "a", "ab"} {
					for _, purpose := range []string{"", "b", "random"} {
						q := specialist.Question{Key: specialist.RoundKey{Session: session, Round: round, Attempt: attempt}, Self: self, Seed: seed}
						hi, lo := q.Stream(purpose)
						what := fmt.Sprint(seed, round, attempt, self, "/", purpose)
						if other, taken := seen[[2]uint64{hi, lo}]; taken {
							t.Fatalf("%s draws what %s draws", what, other)
						}
						seen[[2]uint64{hi, lo}] = what
					}
				}
			}
		}
	}
}
