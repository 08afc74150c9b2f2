package session_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// accountSeed is where the random events of accounts begin.
const accountSeed = 1

// A slowAccount is what an ask costs, worked out anew from everything that was ever
// said of it: for each thing that is paid for, the dearest that anybody said, or, if
// nobody said anything, what is expected as soon as nobody waits for it.
type slowAccount struct {
	model    bool
	expected exact.Money
	requests int32
	over     bool                    // nobody waits for the present request
	said     map[int32][]exact.Money // by request
	none     map[int32]bool
}

func (a *slowAccount) total() (sum exact.Money, calls int64) {
	groups := [][]int32{{}}
	for r := range a.requests {
		if a.model {
			groups = append(groups, []int32{r})
		} else {
			groups[0] = append(groups[0], r)
		}
	}
	for _, g := range groups {
		cost, told, out, sent := exact.Money(0), false, false, false
		for _, r := range g {
			for _, m := range a.said[r] {
				told, cost = true, max(cost, m)
			}
			sent = sent || !a.none[r]
			out = out || r == a.requests-1 && !a.over
		}
		switch {
		case told:
			sum, calls = sum+cost, calls+1
		case !out && sent:
			sum, calls = sum+a.expected, calls+1
		}
	}
	return sum, calls
}

// TestAccountsAgainstASlowModel lets anything happen to the asks of a session, in any
// order and as often as it likes: requests are repeated by other processes, answer in
// time, late, twice, say that nothing was sent, rounds end while they are out. After
// each event the session has spent the sum of what a slow model says of each ask.
func TestAccountsAgainstASlowModel(t *testing.T) {
	for n := range uint64(400) {
		rnd := rand.New(rand.NewPCG(accountSeed, n))
		l := session.NewLedgerTest(started(t))
		var asks []*slowAccount
		var events []string
		for range 40 {
			if len(asks) == 0 || rnd.IntN(6) == 0 {
				a := &slowAccount{model: rnd.IntN(3) == 0, expected: exact.Money(rnd.IntN(3)) * exact.Dollar, requests: 1, said: map[int32][]exact.Money{}, none: map[int32]bool{}}
				asks = append(asks, a)
				l.Ask(a.model, a.expected)
				events = append(events, fmt.Sprintf("ask %d: model %t, expected %s", len(asks), a.model, a.expected))
			}
			i := rnd.IntN(len(asks))
			a, r := asks[i], rnd.Int32N(asks[i].requests)
			money := exact.Money(rnd.IntN(4)) * exact.Dollar
			if len(a.said[r]) > 0 {
				money = a.said[r][0] // who answers twice says the same
			}
			what := rnd.IntN(6)
			if what == 5 && len(a.said[r]) > 0 || what == 4 && a.none[r] {
				continue // nobody both sent nothing and was answered
			}
			events = append(events, fmt.Sprintf("%d, request %d of ask %d, %s", what, r, i+1, money))
			switch present := r == a.requests-1; {
			case what == 0 && !a.over && a.requests < 5:
				l.TakeOver(i)
				a.requests++
			case what == 1:
				l.CloseRound()
				for _, a := range asks {
					a.over = true
				}
			case what == 2 && present && !a.over:
				l.Answer(i, money)
				a.over, a.said[r] = true, append(a.said[r], money)
			case what == 3 && present && !a.over:
				l.Fail(i)
				a.over = true
			case what == 4:
				l.Late(i, r, money)
				a.said[r] = append(a.said[r], money)
			case what == 5:
				l.Unsent(i, r, present && !a.over)
				a.none[r] = true
				a.over = a.over || present
			}
			want := spend.Book{}
			for _, a := range asks {
				sum, calls := a.total()
				want.Money, want.Calls = want.Money+sum, want.Calls+calls
			}
			got, err := l.Spent()
			if got.Estimated = 0; got != want || err != nil {
				t.Fatalf("seed %d.%d: spent %+v (%v), the slow model says %+v after\n%s", accountSeed, n, got, err, want, strings.Join(events, "\n"))
			}
		}
	}
}

// started returns the session of a machine that asks one service.
func started(t *testing.T) *session.Session {
	t.Helper()
	m, err := machine.Parse("m.json", []byte(`{"machineName": "m", "initialState": "open", "goalState": "done",
		"specialists": [{"specialistId": "w", "role": "proposer", "strategyWebhookUrl": "https://example.com/w", "webhookTokenName": "TOKEN"},
			{"specialistId": "arbiter", "role": "arbiter", "strategyFnName": "alignmentMargin", "threshold": 0.5}],
		"states": {"open": {"prompt": "?", "transitions": {"finish": "done"}}, "done": {}}}`), machine.Checks{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := session.NewProgram(m)
	if err != nil {
		t.Fatal(err)
	}
	o := session.NewOpening(session.New(specialist.SessionID{1}, p, session.Options{}, 1))
	defer o.Release()
	return o.Change.After
}
