package trust_test

import (
	"crypto/ed25519"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
)

// TestCandidates: only rulings made blind count, in rounds that are a random
// sample; each transition that humans chose often enough has to be found too.
func TestCandidates(t *testing.T) {
	l := trust.New()
	for i := range 60 {
		o := outcome(ask(yesNo, 0, 0), 0)
		o.Seq = int64(i + 1)
		o.Blind = i >= 10
		add(t, l, o)
	}
	unasked := outcome(ask(yesNo, 0, 0), 1)
	unasked.Unasked, unasked.Automatic = true, true
	add(t, l, unasked)
	list := l.Candidates("desk", "open", target)
	if len(list) != 2 || list[0].SpecialistID != "a" || list[0].M != 2 {
		t.Fatalf("the candidates are %+v", list)
	}
	c := list[0]
	if c.K != 50 || c.N != 50 || c.From != 1 || c.To != 60 || !near(c.E, trust.EValue(50, 50, .9), 1e-9) || c.Bar != 40 || c.Promotable != (c.E >= 40) {
		t.Errorf("a candidate is %+v", c)
	}
	easy := trust.Target{Share: 800_000_000, Alpha: 50_000_000, ClassShare: 500_000_000}
	if c := l.Candidates("desk", "open", easy)[0]; !c.Promotable || len(c.Classes) != 1 || c.LowerBound != trust.LowerBound(50, 50, .05) {
		t.Errorf("at a lower target it is %+v", c)
	}
	if c := l.Candidates("desk", "open", trust.Target{Share: easy.Share, Alpha: easy.Alpha, ClassShare: easy.ClassShare, AnyRuling: true})[0]; c.N != 60 {
		t.Errorf("with all rulings it is %+v", c)
	}
	for range 9 {
		add(t, l, outcome(ask(yesNo, 0, 0), 1)) // says yes whatever is right
	}
	if c := l.Candidates("desk", "open", easy)[0]; c.Classes[0].Transition != "no" || c.Classes[0].Counts || c.Classes[0].N != 9 {
		t.Errorf("nine rounds count already: %+v", c.Classes)
	}
	for range 60 {
		add(t, l, outcome(ask(yesNo, 0, 0), 0))
	}
	add(t, l, outcome(ask(yesNo, 0, 0), 1))
	if c := l.Candidates("desk", "open", easy)[0]; c.E < c.Bar || c.Promotable {
		t.Errorf("who never says no is promoted: %+v", c)
	}
}

// target is what has to be proven in these tests.
var target = trust.Target{Share: 900_000_000, Alpha: 50_000_000, ClassShare: 500_000_000}

func certificate(t *testing.T) (trust.Certificate, ed25519.PrivateKey) {
	t.Helper()
	l := trust.New()
	for range 60 {
		add(t, l, outcome(ask(yesNo, 0), 0))
	}
	c := l.Candidates("desk", "open", target)[0].Certify(target, 1000)
	c.ID, c.IssuedBy, c.AuditRate, c.DefinitionDigest = "c1", "engine", 50_000_000, "d"
	return c, ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
}

func TestCertificates(t *testing.T) {
	c, key := certificate(t)
	text, err := c.Canonical()
	if err != nil || !strings.HasPrefix(string(text), `{"E":`) || strings.Contains(string(text), "signature") || strings.ContainsAny(string(text), " \n") {
		t.Fatalf("the canonical text is %s (%v)", text, err)
	}
	var names []string
	for part := range strings.SplitSeq(string(text[1:len(text)-1]), ",") {
		names = append(names, strings.SplitN(part, ":", 2)[0])
	}
	if !slices.IsSorted(names) || len(names) != 19 {
		t.Errorf("its members are %q", names)
	}
	signed, err := c.Sign(key)
	if err != nil || signed.Verify(key.Public().(ed25519.PublicKey)) != nil {
		t.Fatalf("a signed certificate does not verify: %v", err)
	}
	if c.ExpiresAt-c.IssuedAt != trust.Lifetime || c.N != 60 || c.K != 60 {
		t.Errorf("it is %+v", c)
	}
	other := ed25519.NewKeyFromSeed(append(make([]byte, ed25519.SeedSize-1), 1)).Public().(ed25519.PublicKey)
	changed := signed
	changed.ExpiresAt++
	for what, err := range map[string]error{
		"another key": signed.Verify(other), "no key": signed.Verify(nil), "a change": changed.Verify(key.Public().(ed25519.PublicKey)),
		"no signature": c.Verify(key.Public().(ed25519.PublicKey)),
	} {
		if !errors.Is(err, trust.ErrSignature) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := c.Sign(nil); err == nil {
		t.Error("it is signed without a key")
	}
}

func TestChampionIsDemoted(t *testing.T) {
	cert, _ := certificate(t)
	fresh := trust.Champion{Certificate: cert}
	demotion := func(c trust.Champion) trust.Demotion { return c.Demotion(2000, cert.Version, "d") }
	repeat := func(c trust.Champion, n int, do func(trust.Champion) trust.Champion) trust.Champion {
		for range n {
			c = do(c)
		}
		return c
	}
	decided := func(c trust.Champion) trust.Champion {
		c.Decisions, c.Failures = c.Decisions+1, 0
		return c
	}
	failed := func(c trust.Champion) trust.Champion {
		c.Failures++
		return c
	}
	overruled := func(c trust.Champion) trust.Champion {
		c = c.Audited(false)
		c.Overrules = append([]int64{c.Decisions}, c.Overrules[:min(len(c.Overrules), 1)]...)
		return c
	}
	twice := overruled(repeat(fresh, 5, decided))
	for name, c := range map[string]struct {
		got, want trust.Demotion
	}{
		"fresh":                    {demotion(fresh), trust.NotDemoted},
		"wrong audits":             {demotion(repeat(fresh, 9, func(c trust.Champion) trust.Champion { return c.Audited(false) })), trust.DemotedAlarm},
		"right audits":             {demotion(repeat(fresh, 99, func(c trust.Champion) trust.Champion { return c.Audited(true) })), trust.NotDemoted},
		"overruled once":           {demotion(twice), trust.NotDemoted},
		"twice within 20":          {demotion(overruled(repeat(twice, 19, decided))), trust.DemotedOverruled},
		"twice, 20 apart":          {demotion(overruled(repeat(twice, 20, decided))), trust.NotDemoted},
		"two failures":             {demotion(repeat(fresh, 2, failed)), trust.NotDemoted},
		"three failures":           {demotion(repeat(fresh, 3, failed)), trust.DemotedFailures},
		"failures with an answer":  {demotion(repeat(decided(repeat(fresh, 2, failed)), 2, failed)), trust.NotDemoted},
		"expired":                  {fresh.Demotion(cert.ExpiresAt, cert.Version, "d"), trust.DemotedExpired},
		"another version":          {fresh.Demotion(2000, "2", "d"), trust.DemotedVersion},
		"another definition":       {fresh.Demotion(2000, cert.Version, "e"), trust.DemotedDefinition},
		"a clock that jumped back": {fresh.Demotion(-1, cert.Version, "d"), trust.NotDemoted},
	} {
		if c.got != c.want {
			t.Errorf("%s: demoted because %q, want %q", name, c.got, c.want)
		}
	}
	if len(fresh.Overrules) != 0 || fresh.Decisions != 0 {
		t.Error("a champion was changed")
	}
}

func TestStages(t *testing.T) {
	for _, c := range []struct {
		from trust.Stage
		now  trust.Situation
		to   trust.Stage
	}{
		{trust.Calibrating, trust.Situation{}, trust.Calibrating},
		{"", trust.Situation{}, trust.Calibrating},
		{trust.Calibrating, trust.Situation{Certified: true}, trust.Calibrating},
		{trust.Calibrating, trust.Situation{Tau: true}, trust.Consensus},
		{trust.Consensus, trust.Situation{Tau: true}, trust.Consensus},
		{trust.Consensus, trust.Situation{}, trust.Calibrating},
		{trust.Consensus, trust.Situation{Tau: true, LostPromise: true}, trust.Calibrating},
		{trust.Consensus, trust.Situation{Tau: true, Certified: true}, trust.Championed},
		{trust.Consensus, trust.Situation{Tau: true, Certified: true, Frozen: true}, trust.Consensus},
		{trust.Championed, trust.Situation{Certified: true}, trust.Championed},
		{trust.Championed, trust.Situation{Certified: true, Demoted: true}, trust.Demoted},
		{trust.Championed, trust.Situation{Tau: true}, trust.Demoted},
		{trust.Championed, trust.Situation{Certified: true, ForcedBack: true}, trust.Demoted},
		{trust.Consensus, trust.Situation{Tau: true, ForcedBack: true}, trust.Calibrating},
		{trust.Demoted, trust.Situation{Tau: true, Outcomes: 19, Certified: true}, trust.Demoted},
		{trust.Demoted, trust.Situation{Tau: true, Outcomes: 20}, trust.Consensus},
		{trust.Demoted, trust.Situation{Outcomes: 20}, trust.Calibrating},
		{trust.Demoted, trust.Situation{Tau: true, Outcomes: 20, CoolDown: 30}, trust.Demoted},
	} {
		if got := c.from.Next(c.now); got != c.to {
			t.Errorf("from %q in %+v to %q, want %q", c.from, c.now, got, c.to)
		}
	}
}

func TestElect(t *testing.T) {
	list := []trust.Contender{
		{SpecialistID: "dear", Cost: 1e12, LowerBound: 950_000_000},
		{SpecialistID: "b", Cost: 1e9, LowerBound: 900_000_000},
		{SpecialistID: "a", Cost: 1e9, LowerBound: 900_000_000},
		{SpecialistID: "risky", LowerBound: 800_000_000},
	}
	human := exact.Money(1e12)
	if got := trust.Elect(list, human, trust.ErrorCost(human, 100_000_000)); got != 2 {
		t.Errorf("contender %d is elected", got)
	}
	if got := trust.Elect(list, human, 0); got != 3 {
		t.Errorf("where errors cost nothing, contender %d is elected", got)
	}
	if trust.Elect(nil, 1, 1) != -1 || trust.ErrorCost(1, 0) != math.MaxInt64 || trust.ErrorCost(math.MaxInt64, 1) != math.MaxInt64 || trust.ErrorCost(1e12, 50_000_000) != 20e12 {
		t.Error("an edge is wrong")
	}
}

func look(first, second, settled string) trust.SecondLook {
	return trust.SecondLook{Machine: "desk", State: "open", Options: 2, FirstHuman: "carol", SecondHuman: "dave", First: first, Second: second, Settled: settled}
}

func TestSecondHumans(t *testing.T) {
	l := trust.New()
	if e, n := l.HumanError("desk"); e != 0 || n != 0 {
		t.Errorf("before any second look the error is %s of %d", e, n)
	}
	for i := range 100 {
		s := look("yes", "yes", "")
		if i < 5 {
			s.Second = "no"
		}
		if err := l.AddSecondLook(s); err != nil {
			t.Fatal(err)
		}
	}
	if e, n := l.HumanError("desk"); !near(e.Float(), .0257, 5e-5) || n != 100 {
		t.Errorf("5 disagreements of 100 show an error of %s of %d", e, n)
	}
	if k, n := l.Human("carol"); k != 95 || n != 95 {
		t.Errorf("before they are settled carol has %d of %d", k, n)
	}
	before := l.Clone()
	for range 5 {
		if err := l.Settle(look("yes", "no", "no")); err != nil {
			t.Fatal(err)
		}
	}
	carol, n := l.Human("carol")
	dave, _ := l.Human("dave")
	if carol != 95 || dave != 100 || n != 100 {
		t.Errorf("carol has %d, dave %d of %d", carol, dave, n)
	}
	if k, n := before.Human("carol"); k != 95 || n != 95 {
		t.Errorf("settling changed a snapshot: %d of %d", k, n)
	}
	q := ask(yesNo, 0, 1)
	q.Votes[0].SpecialistID, q.Votes[1].SpecialistID, q.Votes[0].Human, q.Votes[1].Human = "carol", "dave", true, true
	if j := l.Judge(q); j.Pick != "no" || j.Votes[0].Trust != exact.Billionths(math.Round((95+19.4)/120*1e9)) || j.Votes[0].Level != trust.LevelHuman {
		t.Errorf("dave is not believed more than carol: %+v", j.Votes)
	}
	for _, s := range []trust.SecondLook{{}, look("", "no", ""), look("yes", "", ""), {Machine: "m", FirstHuman: "a", SecondHuman: "a", Options: 2, First: "x", Second: "x"}, {Machine: "m", FirstHuman: "a", SecondHuman: "b", Options: 1, First: "x", Second: "x"}} {
		if err := l.AddSecondLook(s); !errors.Is(err, trust.ErrSecondLook) {
			t.Errorf("%+v is counted: %v", s, err)
		}
	}
	for _, s := range []trust.SecondLook{look("yes", "no", ""), look("yes", "yes", "yes"), {}} {
		if err := l.Settle(s); !errors.Is(err, trust.ErrSecondLook) {
			t.Errorf("%+v is settled: %v", s, err)
		}
	}
	all := trust.New() // who always disagree: no better than the coin
	for range 9 {
		_ = all.AddSecondLook(look("yes", "no", ""))
	}
	if e, _ := all.HumanError("desk"); e != 500_000_000 {
		t.Errorf("humans who always disagree err in %s", e)
	}
}

func TestDiversity(t *testing.T) {
	l := trust.New()
	d := trust.NewDraw("diversity")
	for i := range 200 {
		lead := i % 2
		if d.Float() < .3 {
			lead = 1 - lead
		}
		add(t, l, outcome(ask(yesNo, lead, lead, lead, 1-i%2, d.Perm(2)[0]), i%2))
	}
	panel := trust.Panel{Machine: "desk", State: "open", Options: yesNo, Bayes: true}
	for _, id := range []string{"a", "b", "c"} {
		panel.Roster = append(panel.Roster, trust.Open{SpecialistID: id, Model: "m", Cost: 1})
	}
	codes := func(p trust.Panel) (list []string) {
		for _, f := range l.Lint(p) {
			list = append(list, strings.TrimSpace(f.Code+" "+f.Subject))
			if f.Message == "" {
				t.Errorf("%s says nothing", f.Code)
			}
		}
		return list
	}
	if got := codes(panel); !slices.Equal(got, []string{trust.FewVoters, trust.OneModel}) {
		t.Errorf("three copies give %q", got)
	}
	if n := l.Effective(panel); n < exact.One || n > 1_300_000_000 {
		t.Errorf("three copies count as %s", n)
	}
	panel.FixedOrder = true
	panel.Roster = append(panel.Roster, trust.Open{SpecialistID: "d", Model: "n"}, trust.Open{SpecialistID: "e", Cost: 1})
	if got := codes(panel); !slices.Contains(got, trust.FixedOrder) || !slices.Contains(got, trust.BelowChance+" d") || !slices.Contains(got, trust.TellsNothing+" e") || slices.Contains(got, trust.OneModel) {
		t.Errorf("a fixed order, a contrarian and a coin give %q", got)
	}
	if got := l.Uninformative(panel); !slices.Equal(got, []int{4}) {
		t.Errorf("those who tell nothing are %v", got)
	}
	empty := trust.Panel{Machine: "desk", State: "open", Options: yesNo, Bayes: true, Policy: trust.Policy{Threshold: new(exact.Billionths(exact.One))}}
	if got := codes(empty); !slices.Equal(got, []string{trust.NoPromise}) {
		t.Errorf("a threshold alone gives %q", got)
	}
	empty.Policy.Promise = &trust.Promise{MaxError: 2_000_000, Confidence: 900_000_000}
	_ = l.AddSecondLook(look("yes", "no", ""))
	if got := codes(empty); !slices.Equal(got, []string{trust.BelowHumanFloor, trust.TooManyNeeded}) {
		t.Errorf("a promise nobody can keep gives %q", got)
	}
	if n := l.Effective(trust.Panel{}); n != 0 {
		t.Errorf("nobody counts as %s", n)
	}
}
