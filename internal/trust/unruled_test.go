package trust_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/internal/wire"
)

// unruledOf is a question as a round that no human has decided.
func unruledOf(t *testing.T, round string, q trust.Question) trust.Unruled {
	t.Helper()
	o := outcome(q, 0)
	u := trust.UnruledOf(round, q.Machine, q.State, q.Options, o.Proposals)
	if u == nil {
		t.Fatalf("round %s says nothing", round)
	}
	return *u
}

// withRounds mixes rounds without a human's word among lessons, of the same machines and of one
// with voters, states and options that no outcome knows; of every other outcome's round, too.
func withRounds(t *testing.T, list []trust.Lesson) (all []trust.Lesson) {
	t.Helper()
	d := trust.NewDraw("rounds")
	for i, x := range list {
		for j := range i % 4 {
			q, _ := crowd(d, 3+j, 3)
			if i%5 == 4 {
				q.State, q.Options[2], q.Votes[0].SpecialistID, q.Votes[1].Version = "new", "other", "stranger", "next"
			}
			if i%3 == 1 {
				q.Machine = "office"
			}
			u := unruledOf(t, fmt.Sprint("unruled ", i, " ", j), q)
			if o := x.Outcome; o != nil && j == 2 {
				u.Round, u.Machine = o.Round, o.Machine
			}
			all = append(all, trust.Lesson{Unruled: &u})
		}
		all = append(all, x)
	}
	return all
}

func wholly(l *trust.Ledger) []byte {
	c := wire.NewWriter()
	l.Code(c)
	l.CodeUnruled(c)
	return c.Bytes()
}

func rounds(q trust.Question) trust.Question { q.Policy.Rounds = true; return q }

// TestUnruledTeachNothingElse: whatever is counted of rounds without a human's word, what is
// known of humans' has the same bytes, and a policy that does not learn from rounds judges the
// same. One that does has two more experts.
func TestUnruledTeachNothingElse(t *testing.T) {
	list := encodedLessons(120)
	with, without := trust.New(), trust.New()
	learn(t, without, list)
	learn(t, with, withRounds(t, list))
	if !bytes.Equal(encoded(with), encoded(without)) {
		t.Error("rounds without a human's word have changed what is known of humans")
	}
	if with.HasUnruled() == without.HasUnruled() {
		t.Error("they are not known")
	}
	d := trust.NewDraw("question")
	for range 40 {
		q, _ := crowd(d, 6, 3)
		if a, b := with.Judge(q), without.Judge(q); asText(t, a) != asText(t, b) || len(a.Experts) != 6 {
			t.Fatalf("it judges\n%s\nwithout rounds\n%s", asText(t, a), asText(t, b))
		}
		j := with.Judge(rounds(q))
		checkJudgement(t, j)
		if len(j.Experts) != 8 || j.Experts[6].Name != "O" || j.Experts[7].Name != "D" || j.Experts[6].Weight == 0 || j.Experts[7].Weight == 0 {
			t.Fatalf("the experts are %+v", j.Experts)
		}
		if a, b := without.Judge(rounds(q)), without.Judge(q); asText(t, a) != asText(t, b) {
			t.Fatalf("without rounds it judges %s, want %s", asText(t, a), asText(t, b))
		}
	}
	target := trust.Target{Share: exact.One / 2, Alpha: exact.One / 20}
	if a, b := with.Candidates("desk", "s0", target), without.Candidates("desk", "s0", target); len(a) == 0 || !reflect.DeepEqual(a, b) {
		t.Errorf("the candidates are %+v, without rounds %+v", a, b)
	}
}

// TestUnruledIsWrittenWhole: a ledger that is read is the one that was written, whatever was
// learned from when, and learns on as that would have, with clones in between.
func TestUnruledIsWrittenWhole(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 53))
	list := withRounds(t, encodedLessons(120))
	all := trust.New()
	learn(t, all, list)
	for range 5 {
		cut := rng.IntN(len(list) + 1)
		first := trust.New()
		learn(t, first, list[:cut])
		data := wholly(first)
		read, c := trust.New(), wire.NewReader(data)
		read.Code(c)
		read.CodeUnruled(c)
		if err := c.Close(); err != nil {
			t.Fatalf("seed %d: after %d lessons: %v", seed, cut, err)
		}
		if !reflect.DeepEqual(read, first) || !bytes.Equal(wholly(read), data) {
			t.Fatalf("seed %d: after %d lessons, what is read is not what was written", seed, cut)
		}
		for _, x := range list[cut:] {
			if rng.IntN(3) == 0 {
				earlier := read
				was := wholly(earlier)
				read = read.Clone()
				defer func() {
					if !bytes.Equal(wholly(earlier), was) {
						t.Errorf("seed %d: a clone has changed what it is of", seed)
					}
				}()
			}
			learn(t, read, []trust.Lesson{x})
		}
		if !bytes.Equal(wholly(read), wholly(all)) {
			t.Fatalf("seed %d: read after %d lessons, it learns otherwise", seed, cut)
		}
	}
}

// FuzzUnruled: whatever is read as rounds without a human's word is written in the same bytes,
// and can judge.
func FuzzUnruled(f *testing.F) {
	l := trust.New()
	for _, x := range encodedLessons(20) {
		_ = l.Learn(x)
	}
	d := trust.NewDraw("fuzz")
	for i := range 5 {
		q, _ := crowd(d, 4, 3)
		o := outcome(q, 0)
		_ = l.AddUnruled(*trust.UnruledOf(fmt.Sprint(i), q.Machine, q.State, q.Options, o.Proposals))
	}
	c := wire.NewWriter()
	l.CodeUnruled(c)
	f.Add(c.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		l, c := trust.New(), wire.NewReader(data)
		for _, x := range encodedLessons(20) {
			_ = l.Learn(x)
		}
		l.CodeUnruled(c)
		if c.Close() != nil {
			return
		}
		w := wire.NewWriter()
		if l.CodeUnruled(w); !bytes.Equal(w.Bytes(), data) {
			t.Errorf("%x is read, and written in another way", data)
		}
		q, _ := crowd(trust.NewDraw("question"), 6, 3)
		l.Judge(rounds(q))
	})
}

// TestUnruledWindow: a human's word takes the place of its round, a round that is judged again
// that of its earlier votes, and beyond the window the oldest is forgotten.
func TestUnruledWindow(t *testing.T) {
	l := add(t, trust.New(), crowdOutcomes("window", 12, 5, 3)...)
	q := ask(yesNo, 0, 1, 1)
	enter := func(round string) {
		if err := l.AddUnruled(unruledOf(t, round, q)); err != nil {
			t.Fatal(err)
		}
	}
	for _, round := range []string{"1", "2", "3", "2"} {
		enter(round)
	}
	if got := fmt.Sprint(l.UnruledRounds("desk")); got != "[1 3 2]" {
		t.Errorf("the rounds are %s", got)
	}
	o := outcome(q, 0)
	o.Round = "3"
	add(t, l, o)
	if got := fmt.Sprint(l.UnruledRounds("desk")); got != "[1 2]" {
		t.Errorf("after a human's word they are %s", got)
	}
	for i := range trust.UnruledWindow {
		enter(fmt.Sprint("later ", i))
	}
	if got := l.UnruledRounds("desk"); len(got) != trust.UnruledWindow || got[0] != "later 0" {
		t.Errorf("there are %d rounds, the oldest %q", len(got), got[0])
	}
}

// TestUnruledIsChecked refuses what cannot be counted, and changes nothing.
func TestUnruledIsChecked(t *testing.T) {
	for what, spoil := range map[string]func(u *trust.Unruled){
		"round":    func(u *trust.Unruled) { u.Round = "" },
		"machine":  func(u *trust.Unruled) { u.Machine = "" },
		"state":    func(u *trust.Unruled) { u.State = "" },
		"options":  func(u *trust.Unruled) { u.Options = u.Options[:1] },
		"option":   func(u *trust.Unruled) { u.Proposals[0].Transition = "maybe" },
		"twice":    func(u *trust.Unruled) { u.Proposals[1].SpecialistID = u.Proposals[0].SpecialistID },
		"nobody":   func(u *trust.Unruled) { u.Proposals = nil },
		"nameless": func(u *trust.Unruled) { u.Proposals[0].SpecialistID = "" },
	} {
		u := unruledOf(t, "1", ask(yesNo, 0, 1))
		spoil(&u)
		l := trust.New()
		if err := l.Learn(trust.Lesson{Unruled: &u}); !errors.Is(err, trust.ErrOutcome) || l.HasUnruled() {
			t.Errorf("%s: the error is %v", what, err)
		}
	}
	u := unruledOf(t, "1", ask(yesNo, 0, 1))
	x := trust.Lesson{Unruled: &u}
	text, err := x.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := trust.DecodeLesson(text); err != nil || !reflect.DeepEqual(again, x) {
		t.Errorf("%s is read as %+v, %v", text, again, err)
	}
	if _, err := trust.DecodeUnruled([]byte(`{"round":"1","truth":"yes"}`)); !errors.Is(err, trust.ErrOutcome) {
		t.Errorf("a member that is not known is read: %v", err)
	}
	o := outcome(ask(yesNo, 0, 1), 0)
	if x.Outcome = &o; !errors.Is(x.Check(), trust.ErrOutcome) {
		t.Error("a round without a human's word stands beside an outcome")
	}
	human := outcome(ask(yesNo, 0, 1, 1), 0)
	human.Proposals[2].Human = true
	lone := outcome(ask(yesNo, 0, 1, 1), 0)
	lone.Proposals[0].Shadow, lone.Proposals[1].Failed = true, true
	for what, o := range map[string]trust.Outcome{"a human proposed": human, "one vote": lone} {
		if u := trust.UnruledOf("1", "desk", "open", o.Options, o.Proposals); u != nil {
			t.Errorf("%s: it says %+v", what, u)
		}
	}
}

// A scene are five who collude and four who do not: in a share of all rounds the five say the
// same and are wrong; else they are right where the others are in four of five.
type scene struct {
	d      *trust.Draw
	attack float64
}

func (s scene) round() (trust.Question, int) {
	truth := int(s.d.Float() * 2)
	q := trust.Question{Machine: "desk", State: "open", Options: yesNo}
	theirs := truth
	if s.d.Float() < s.attack {
		theirs = 1 - truth
	}
	for i := range 9 {
		v := trust.Vote{SpecialistID: fmt.Sprint("colludes ", i), Version: "1", Option: theirs}
		if i >= 5 {
			v.SpecialistID, v.Option = fmt.Sprint("honest ", i), truth
			if s.d.Float() > .8 {
				v.Option = 1 - truth
			}
		}
		q.Votes = append(q.Votes, v)
	}
	return q, truth
}

// TestRoundsMakeNothingSurer: rounds without a human's word may make another pick, which is no more probable than by
// humans' words alone, but for as much as keeps it the pick. Of a pick that stands they change nothing.
func TestRoundsMakeNothingSurer(t *testing.T) {
	l, d, stand, others := trust.New(), trust.NewDraw("surer"), 0, 0
	options := []string{"a", "b", "c"}
	for range 10 {
		add(t, l, outcome(unlike(d, options)))
	}
	for i := range 400 {
		q, _ := unlike(d, options)
		if err := l.AddUnruled(unruledOf(t, fmt.Sprint(i), q)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2000 {
		q, _ := unlike(d, options)
		slack := exact.Billionths(2)
		if i%3 == 0 {
			slack = 1000 // what is left of a whole is scaled up, and its rounding with it
			q.Removed = []bool{false, i%2 == 0, i%2 != 0}
		}
		with, without := l.Judge(rounds(q)), l.Judge(q)
		sum, next := exact.Billionths(0), exact.Billionths(0)
		for i, p := range with.P {
			if sum += p; i != with.Best {
				next = max(next, p)
			}
		}
		if sum < exact.One-3 || sum > exact.One+3 {
			t.Fatalf("the probabilities %v add up to %s", with.P, sum)
		}
		if with.Best != without.Best {
			if others++; with.P[with.Best] > max(without.P[with.Best], next+2000)+slack {
				t.Fatalf("%v of option %d with rounds, %v without", with.P, with.Best, without.P)
			}
			continue
		}
		stand++
		for i, p := range with.P {
			if p > without.P[i]+slack || p < without.P[i]-slack {
				t.Fatalf("%v of option %d with rounds, %v without", with.P, with.Best, without.P)
			}
		}
	}
	if t.Logf("%d picks stand, %d are other ones", stand, others); stand < 20 || others < 20 {
		t.Errorf("%d picks stand, %d are other ones: too few to test one of the two", stand, others)
	}
}

// TestColludersGainNothing plays a majority that colludes. However many rounds they fill with
// each other's agreement, what their word counts for and what promotes them stays as humans have
// taught it, to the bit; the experts that learn from rounds get no more than their prior; and
// under a promise no more is decided alone, and no more of it wrongly, than without rounds.
func TestColludersGainNothing(t *testing.T) {
	target := trust.Target{Share: exact.One * 7 / 10, Alpha: exact.One / 20}
	for _, attack := range []float64{.12, .3} {
		for _, n := range []int{10, 30, 100} {
			s := scene{trust.NewDraw("collusion", fmt.Sprint(attack, n)), attack}
			l := trust.New()
			for range n {
				add(t, l, outcome(s.round()))
			}
			before := l.Clone()
			flood := scene{s.d, 1}
			for i := range 600 {
				q, _ := flood.round()
				if err := l.AddUnruled(unruledOf(t, fmt.Sprint(i), q)); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(encoded(l), encoded(before)) || !reflect.DeepEqual(l.Candidates("desk", "open", target), before.Candidates("desk", "open", target)) {
				t.Errorf("attack %v, n = %d: trust or promotion is another one after the flood", attack, n)
			}
			q, _ := flood.round()
			j := l.Judge(rounds(q))
			if bought := j.Experts[len(j.Experts)-1].Weight + j.Experts[len(j.Experts)-2].Weight; bought > exact.One/2 || n >= 100 && bought > exact.One/100 {
				t.Errorf("attack %v, n = %d: the experts of rounds weigh %s", attack, n, bought)
			}
		}
		auto, wrong, above := [2]int{}, [2]int{}, [2]int{}
		for run := range 10 {
			for k := range 2 {
				a, w := stream(t, scene{trust.NewDraw("stream", fmt.Sprint(attack, run)), attack}, k == 1)
				auto[k], wrong[k] = auto[k]+a, wrong[k]+w
				if trust.ErrorBelow(int64(w), int64(a), .95) > .1 {
					above[k]++
				}
			}
		}
		t.Logf("attack %v: decided alone %v, wrongly %v, runs above %v, without and with rounds", attack, auto, wrong, above)
		if auto[1] > auto[0] || wrong[1] > wrong[0]+auto[1]/50 || above[1] > max(1, above[0]) {
			t.Errorf("attack %v: decided alone %v, wrongly %v, runs above %v, without and with rounds", attack, auto, wrong, above)
		}
	}
}

// stream plays a stream of 500 rounds under a promise of a tenth, an audit in twenty, and returns
// how many were decided alone, and wrongly.
func stream(t *testing.T, s scene, rounds bool) (auto, wrong int) {
	l, p, audits := trust.New(), promise(.1), trust.NewDraw("audits")
	for i := range 500 {
		q, truth := s.round()
		q.PolicyDigest, q.Policy.Promise, q.Policy.Rounds = "p", &p, rounds
		j := l.Judge(q)
		alone := j.Code == trust.Decided
		audited := audits.Float() < .05
		if rounds {
			if err := l.AddUnruled(unruledOf(t, fmt.Sprint(i), q)); err != nil {
				t.Fatal(err)
			}
		}
		if alone {
			if auto++; j.Best != truth {
				wrong++
			}
		}
		if alone && !audited {
			continue
		}
		o := outcome(q, truth)
		o.Round, o.PolicyDigest, o.Promise, o.Pick, o.P, o.N = fmt.Sprint(i), "p", &p, j.Pick, j.P[j.Best], j.N
		if o.Automatic = alone; alone {
			o.Source, o.SamplingProb = trust.Audited, exact.One/20
		}
		add(t, l, o)
	}
	return auto, wrong
}

// unlike returns a question that seven of thirty voters answer, of whom every other one is right in nine of ten, and the
// others in half, and what is right.
func unlike(d *trust.Draw, options []string) (trust.Question, int) {
	truth := int(d.Float() * float64(len(options)))
	q := trust.Question{Machine: "desk", State: "open", Options: options}
	for _, i := range d.Perm(30)[:7] {
		v := trust.Vote{SpecialistID: fmt.Sprint(i), Option: truth}
		if d.Float() > map[bool]float64{true: .9, false: .5}[i%2 == 0] {
			v.Option = (truth + 1 + int(d.Float()*float64(len(options)-1))) % len(options)
		}
		q.Votes = append(q.Votes, v)
	}
	return q, truth
}

// TestRoundsHelp: where a crowd differs much and few rounds have a human's word, the others tell
// who is good; it is right more often for it.
func TestRoundsHelp(t *testing.T) {
	right := [2]int{}
	for run := range 10 {
		d, l := trust.NewDraw("help", fmt.Sprint(run)), trust.New()
		for range 10 {
			add(t, l, outcome(unlike(d, yesNo)))
		}
		for i := range 400 {
			q, _ := unlike(d, yesNo)
			if err := l.AddUnruled(unruledOf(t, fmt.Sprint(i), q)); err != nil {
				t.Fatal(err)
			}
		}
		for range 400 {
			q, truth := unlike(d, yesNo)
			for k, q := range []trust.Question{q, rounds(q)} {
				if l.Judge(q).Best == truth {
					right[k]++
				}
			}
		}
	}
	t.Logf("right in %d of 4000 without rounds, in %d with them", right[0], right[1])
	if right[1] < right[0]+40 {
		t.Errorf("right in %d of 4000 without rounds, in %d with them", right[0], right[1])
	}
}

// TestLearning: that learning from rounds would help is said only of a machine of which few
// decisions are known, and never to voters who err together; to them it is a warning if they do.
func TestLearning(t *testing.T) {
	l := trust.New()
	check := func(alike, rounds bool, want string) {
		t.Helper()
		p := trust.Panel{Machine: "desk", State: "open", Options: yesNo, Bayes: true, Policy: trust.Policy{Rounds: rounds}}
		for i := range 3 {
			o := trust.Open{SpecialistID: fmt.Sprint("v", i), Model: "m"}
			if !alike {
				o.Model += o.SpecialistID
			}
			p.Roster = append(p.Roster, o)
		}
		if f, together, any := l.Learning("desk", []trust.Panel{p}); f.Code != want || together != alike || any != (want != "") {
			t.Errorf("of voters alike %t, rounds %t, is said %q (%t), together %t; want %q", alike, rounds, f.Code, any, together, want)
		}
	}
	check(false, false, "")
	for range trust.EligibleFrom + 2 {
		add(t, l, outcome(ask(yesNo, 0), 0))
	}
	check(false, false, trust.LearnsLate)
	check(true, false, "")
	check(false, true, trust.TeachesItself)
	check(true, true, trust.TeachesItself)
	for range 100 {
		add(t, l, outcome(ask(yesNo, 0), 0))
	}
	check(false, false, "")
}
