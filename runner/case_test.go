package runner_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/strategies"
	"github.com/dialai/dialai/verdict"
)

// cased is a machine of one state whose transitions have members of their own.
func (b *bench) cased(top, transitions string) *machine.Machine {
	b.Helper()
	return parse(b.TB, `{"machineName":"m","initialState":"open","goalState":"done",`+top+`"states":{"open":{"transitions":{`+transitions+`}},"done":{}},
	  "specialists":[{"role":"proposer","specialistId":"ann","isHuman":true},{"role":"proposer","specialistId":"rule","strategyFnName":"firstAvailable"},
	    {"role":"arbiter","specialistId":"judge","strategyFnName":"firstProposal"}]}`)
}

func withMeta(text string) runner.StartOptions { return runner.StartOptions{Meta: []byte(text)} }

// TestInput: a session starts with what its machine wants, and hears of all that is wrong
// at once (cases.md 1.1); the defaults are data, and not what it was started with.
func TestInput(t *testing.T) {
	b := newBench(t)
	m := b.cased(`"input":{"type":"object","required":["who","n"],"properties":{"who":{"type":"string"},"n":{"type":"integer"},"level":{"type":"integer","default":2}},"additionalProperties":false},"subject":"= data.who",`, `"go":"done"`)
	_, err := b.r.Start(b.ctx, m, withMeta(`{"n":"x","hwo":"zoe"}`))
	for _, part := range []string{"/n", "who", `did you mean "who"`} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error is %v, without %s", err, part)
		}
	}
	if list, err := b.r.Sessions(b.ctx, session.ListQuery{}); err != nil || len(list) != 0 {
		t.Errorf("there are %d sessions: %v", len(list), err)
	}
	s := b.start(m, withMeta(`{"who":"zoe","n":1}`))
	if got := string(s.Data().JSON()); got != `{"who":"zoe","n":1,"level":2}` || string(s.Options().Meta) != `{"who":"zoe","n":1}` || s.Subject() != "zoe" {
		t.Errorf("the data are %s, about %q", got, s.Subject())
	}
}

// TestSet: what a transition writes are values and what expressions make of the data as
// they were (cases.md 2.1, 2.3).
func TestSet(t *testing.T) {
	b := newBench(t)
	m := b.cased(`"subject":"= 'n ' + string(data.n)",`, `"go":{"target":"open","set":{"n":"= data.n + payload.by","was":"= data.n","who":"= by","human":"= human","text":"==x","list":[1]}},"end":"done"`)
	s := b.start(m, withMeta(`{"n":1}`))
	b.executed(s, "ann", "go", payload(`{"by":2}`))
	s = b.now(s)
	if got := string(s.Data().JSON()); got != `{"n":3,"was":1,"who":"ann","human":true,"text":"=x","list":[1]}` || s.Subject() != "n 3" {
		t.Errorf("the data are %s, about %q", got, s.Subject())
	}
	if got := string(s.Last().Data); got != `{"n":3,"was":1,"who":"ann","human":true,"text":"=x","list":[1]}` {
		t.Errorf("what was written is %s", got)
	}
}

// TestSetFails: a transition that cannot write executes nothing, whoever chose it
// (cases.md 2.2).
func TestSetFails(t *testing.T) {
	for name, c := range map[string]struct{ set, why string }{
		"a member that is missing": {`{"n":"= data.none + 1"}`, `cannot set "n": `},
		"more than fits":           {`{"a":1,"n":"= [data.long, data.long, data.long]"}`, `cannot set the data: the data would have 280166 bytes, more than 262144; 210010 of them in "n"`},
		"a whole number too large": {`{"n":"= 9007199254740993"}`, `cannot set "n": `},
		"one level too deep":       {`{"n":"= [data.deep]"}`, `cannot set the data: the data would be nested 65 deep in "n", more than 64`},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			deep := strings.Repeat("[", 63) + strings.Repeat("]", 63)
			s := b.start(b.cased("", `"go":{"target":"done","set":`+c.set+`},"other":"done"`), withMeta(fmt.Sprintf(`{"long":%q,"deep":%s}`, strings.Repeat("x", 70_000), deep)))
			if tick := b.stepTo(s, runner.TickHuman); tick.Code != session.CodeSetFailed || b.now(s).Executed != 0 || !strings.Contains(tick.Reasoning(), `transition "go" `+c.why) {
				t.Errorf("a consensus comes to %s: %s", tick.Code, tick.Reasoning())
			}
			before := b.now(s)
			_, err := b.word(s, "ann", "go")
			if !hasCode(err, session.CodeSetFailed) || b.now(s).Sequence != before.Sequence {
				t.Errorf("a ruling comes to %v", err)
			}
			b.executed(s, "ann", "other")
		})
	}
}

// TestDataLimit: data of exactly the limit are kept, whether a session starts with them or a
// transition writes them, and of a byte more not (cases.md 2.2).
func TestDataLimit(t *testing.T) {
	const limit, frame, written = 256 << 10, len(`{"s":""}`), len(`,"t":true`)
	b := newBench(t)
	m := b.cased("", `"go":{"target":"open","set":{"t":true}},"end":"done"`)
	of := func(bytes int) runner.StartOptions {
		return withMeta(`{"s":"` + strings.Repeat("x", bytes-frame) + `"}`)
	}
	b.start(m, of(limit))
	if _, err := b.r.Start(b.ctx, m, of(limit+1)); err == nil {
		t.Error("a session starts with a byte more")
	}
	b.executed(b.start(m, of(limit-written)), "ann", "go")
	if _, err := b.word(b.start(m, of(limit-written+1)), "ann", "go"); !hasCode(err, session.CodeSetFailed) {
		t.Errorf("a transition that writes a byte more comes to %v", err)
	}
}

// TestSetGrows: data that a cycle of states makes larger, or nests deeper, with each step
// grow until the limit, and what would go beyond it leaves the session as it was
// (cases.md 2.2).
func TestSetGrows(t *testing.T) {
	for set, steps := range map[string]int32{
		`{"s":"= data.s + data.s"}`: 13, // 16 bytes, doubled until 131,072
		`{"s":"= [data.s]"}`:        63, // in data, which are one level themselves
	} {
		b := newBench(t)
		s := b.start(b.cased("", `"go":{"target":"open","set":`+set+`}`), withMeta(`{"s":"0123456789abcdef"}`))
		tick := b.step(s)
		for tick.Status == runner.TickAdvanced {
			tick = b.step(s)
		}
		if tick.Code != session.CodeSetFailed || b.now(s).Executed != steps {
			t.Errorf("%s comes to %s after %d steps: %s", set, tick.Code, b.now(s).Executed, tick.Reasoning())
		}
		last := b.now(s)
		if tick := b.step(s); tick.Code != session.CodeSetFailed || b.now(s).Sequence != last.Sequence {
			t.Errorf("%s is tried again in the same round: %s", set, tick.Reasoning())
		}
	}
}

// TestClosed: a transition whose condition does not hold is legal for nobody, what was
// closed is recorded, and a round with one way left teaches nothing (cases.md 3.1 to 3.3).
func TestClosed(t *testing.T) {
	b := newBench(t)
	s := b.start(b.cased("", `"big":{"target":"done","when":"= data.n > 10"},"bad":{"target":"done","when":"= data.none"},"again":{"target":"open","set":{"n":11}}`), withMeta(`{"n":1}`))
	if closed := s.Closed(); len(closed) != 2 || closed[0].TransitionName != "big" || closed[0].Error != "" || closed[1].Error == "" {
		t.Errorf("closed are %+v", closed)
	}
	_, err := b.word(s, "ann", "big")
	b.refused(err, runner.ErrIllegal, `transition "big" is closed in this round: its condition does not hold: = data.n > 10`)
	if p := b.step(s); p.Status != runner.TickAdvanced || b.now(s).Last().Transition.Name != "again" {
		t.Errorf("the first that is open is not proposed: %s, %s", p.Status, p.Reasoning())
	}
	if closed := b.now(s).Closed(); len(closed) != 1 || closed[0].TransitionName != "bad" {
		t.Errorf("in the next round closed are %+v", closed)
	}
	other := b.start(b.cased("", `"big":{"target":"done","when":"= data.n > 10"},"end":"done"`), withMeta(`{"n":1}`))
	b.executed(other, "ann", "end")
	if l := b.lessons(); len(l) != 0 {
		t.Errorf("where one way was left it teaches %+v", l)
	}
	none := b.start(b.cased("", `"big":{"target":"done","when":"= data.n > 10"}`), withMeta(`{"n":1}`))
	if tick := b.step(none); tick.Code != session.CodeDeadEnd || !strings.Contains(b.now(none).Outcome().Reason, "= data.n > 10") {
		t.Errorf("where everything is closed it comes to %s: %s", tick.Code, b.now(none).Outcome().Reason)
	}
}

// TestClosedForAllAttempts: who is asked, the first time and again, is offered what the
// round left open and nothing else, and a log tells it without an expression (cases.md 3.1, 3.2).
func TestClosedForAllAttempts(t *testing.T) {
	b := newBench(t, func(c *runner.Config) {
		c.Guards = []guard.Checker{reject("go", verdict.Retry, "house", "not on Sundays")}
	})
	var offered []string
	b.cast.play("a", func(_ context.Context, q specialist.Question) (specialist.Answer, error) {
		seen := string(q.AppendContext(nil, false))
		for _, name := range []string{"go", "big", "bad"} {
			if strings.Contains(seen, `"`+name+`":{`) {
				offered = append(offered, name)
			}
		}
		return specialist.Answer{TransitionName: "go"}, nil
	})
	m := parse(t, `{"machineName":"m","initialState":"open","goalState":"done","states":{"open":{"transitions":{"go":"done","big":{"target":"done","when":"= data.n > 10"},"bad":{"target":"done","when":"= data.none"}}},"done":{}},
	  "specialists":[{"role":"proposer","specialistId":"ann","isHuman":true},`+fn("a")+`,{"role":"arbiter","specialistId":"judge","strategyFnName":"firstProposal"}]}`)
	s := b.start(m, withMeta(`{"n":1}`))
	b.stepTo(s, runner.TickRejected)
	b.forget() // another process reads the log
	b.stepTo(s, runner.TickRejected)
	if now := b.now(s); now.Attempt != 2 || len(now.Closed()) != 2 || now.Closed()[1].Error == "" {
		t.Errorf("in attempt %d closed are %+v", now.Attempt, now.Closed())
	}
	if want := []string{"go", "go"}; !slices.Equal(offered, want) {
		t.Errorf("offered were %q, want %q", offered, want)
	}
}

func hasCode(err error, code string) bool {
	e, is := errors.AsType[*runner.Error](err)
	return is && e.Code == code
}

// TestDataInContexts: an expression that proposes sees the data as the round finds them, whatever
// the machine says of a case. Models are shown them in the place of what the session was started
// with, and services and exemplars beside it, where the machine has an input or sets
// something; elsewhere contexts are as they were. Decision records keep them (cases.md 2.3, 2.4).
func TestDataInContexts(t *testing.T) {
	for name, c := range map[string]struct {
		head, on string
		rule     string // what who goes by an expression finds
		shown    string // to a model
		context  string // of a service and of an exemplar; "" if it has no data
		data     []string
	}{
		"data that are set":    {``, `{"target":"open","set":{"n":2}}`, `steps == 0 || data.n == 2`, `data: {"n":2}`, `"metaJson":{"n":1},"data":{"n":2}`, []string{`{"n":1}`, `{"n":2}`, `{"n":2}`}},
		"an input":             {`"input":{"properties":{"m":{"default":3}}},`, `"open"`, `data.m == 3 && data.n == 1`, `data: {"n":1,"m":3}`, `"metaJson":{"n":1},"data":{"n":1,"m":3}`, []string{`{"n":1,"m":3}`, `{"n":1,"m":3}`, `{"n":1,"m":3}`}},
		"only conditions":      {``, `{"target":"open","when":"= data.n == 1"}`, `data.n == 1`, `metaJson: {"n":1}`, "", []string{`{"n":1}`, `{"n":1}`, `{"n":1}`}},
		"only a subject":       {`"subject":"= 'n'",`, `"open"`, `data.n == 1`, `metaJson: {"n":1}`, "", []string{`{"n":1}`, `{"n":1}`, `{"n":1}`}},
		"nothing about a case": {``, `"open"`, `data.n == 1`, `metaJson: {"n":1}`, "", []string{``, ``, ``}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			m := parse(t, `{"machineName":"m","initialState":"open","goalState":"done",`+c.head+`"quorum":"all","states":{"open":{"transitions":{"on":`+c.on+`,"end":{"target":"done"`+ends(c.on)+`}}},"done":{}},
			  "specialists":[{"role":"proposer","specialistId":"ann","isHuman":true},{"role":"proposer","specialistId":"rule","strategyFn":"= `+c.rule+` ? 'on' : 'end'"},`+fn("a")+`,{"role":"arbiter","specialistId":"judge","strategyFnName":"firstProposal"}]}`)
			var shown, sent string
			b.cast.play("a", func(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
				var err error
				shown, err = strategies.SessionContext.Gather(ctx, q)
				sent = string(q.AppendContext(nil, false)) // what a service gets
				return specialist.Answer{TransitionName: "on"}, err
			})
			s := b.start(m, withMeta(`{"n":1}`))
			for range 2 {
				tick := b.stepTo(s, runner.TickAdvanced)
				if tick.Transition.Name != "on" {
					t.Errorf("where the data say on, the rule says %s", tick.Transition.Name)
				}
			}
			if failed := b.count(s, session.KindAskFailed); failed > 0 {
				t.Errorf("the rule failed %d times", failed)
			}
			if !strings.HasPrefix(shown, c.shown+"\n") {
				t.Errorf("a model is shown %q", shown)
			}
			b.executed(s, "ann", "end")
			exemplars, err := b.store.Exemplars(b.ctx, "m", "open", 0)
			b.ok(err)
			for what, got := range map[string]string{"a service": sent, "an exemplar": string(exemplars[0].Context)} {
				if strings.Contains(got, `"data"`) != (c.context != "") || !strings.Contains(got, c.context) {
					t.Errorf("%s has the context %s", what, got)
				}
			}
			decisions, err := b.r.Decisions(b.ctx, "m", "", 0)
			b.ok(err)
			var data []string
			for _, d := range decisions {
				data = append(data, string(d.Data))
			}
			if slices.Sort(data); !slices.Equal(data, c.data) {
				t.Errorf("the records have the data %q, want %q", data, c.data)
			}
		})
	}
}

// ends is what the last transition sets, where a machine sets anything: no round before has it.
func ends(on string) string {
	if strings.Contains(on, "set") {
		return `,"set":{"n":7}`
	}
	return ""
}

// TestCaseDigests: what a transition asks of data and sets is part of the policy digest,
// a condition also of what a certificate is for (cases.md 3.3).
func TestCaseDigests(t *testing.T) {
	digests := func(members string) string {
		m := parse(t, `{"machineName":"m","initialState":"open","goalState":"done","states":{"open":{"transitions":{"on":{"target":"done"`+members+`},"off":"done"}},"done":{}},
		  "specialists":[{"role":"proposer","specialistId":"a","strategyFnName":"random"},{"role":"arbiter","specialistId":"judge","strategyFnName":"bayes"}]}`)
		casts, err := planning.Cast(m, &session.Roster{})
		if err != nil {
			t.Fatal(err)
		}
		return casts[0].Question.PolicyDigest
	}
	seen := map[string]string{}
	for _, members := range []string{"", `,"when":"= data.n > 1"`, `,"when":"= data.n > 2"`, `,"set":{"n":1}`, `,"set":{"n":"= 1"}`} {
		d := digests(members)
		if was, twice := seen[d]; twice {
			t.Errorf("%q has the digest of %q", members, was)
		}
		seen[d] = members
	}
}
