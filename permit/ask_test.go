package permit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/machines"
	"github.com/dialai/dialai/permit"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
)

// A desk answers prompts with the machine of permissions, without its model.
type desk struct {
	*testing.T
	permit.Config
	ctx   context.Context
	store *stalling
}

// stalling is a store whose agent_logs fail as long as it is told to.
type stalling struct {
	session.Store
	fails func(appended error) error // what an append returns, after what it did
}

func (s *stalling) AppendAgentLog(ctx context.Context, id specialist.SessionID, after int64, events ...session.AgentEvent) error {
	err := s.Store.AppendAgentLog(ctx, id, after, events...)
	if s.fails != nil {
		err = s.fails(err)
	}
	return err
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	name, text, _ := machines.Read("permission")
	kept := strings.Builder{}
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, "specialistId: judge") {
			kept.WriteString(line)
		}
	}
	m, err := machine.Parse(name, []byte(kept.String()), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	s := &stalling{Store: store.NewMemory()}
	r, err := runner.New(runner.Config{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	actor := session.LocalActor("somebody")
	d := &desk{T: t, ctx: t.Context(), store: s}
	d.Config = permit.Config{Runner: r, Machine: m, Actor: &actor, Settings: permit.Settings{Path: "/usr/bin:/bin", Home: "/home/somebody"}}
	return d
}

func bash(line string) permit.Prompt {
	input, _ := json.Marshal(map[string]string{"command": line})
	return permit.Prompt{Agent: "claude", AgentSession: "s1", Tool: "Bash", Input: input, Cwd: "/work"}
}

// ask asks without waiting for a human.
func (d *desk) ask(p permit.Prompt) permit.Answer {
	d.Helper()
	a, err := d.Ask(d.ctx, p)
	if err != nil {
		d.Fatalf("asking for %s: %v", p.Input, err)
	}
	return a
}

// is checks a behavior.
func (d *desk) is(a permit.Answer, want permit.Behavior) {
	d.Helper()
	if a.Behavior != want {
		d.Fatalf("answered %q (%s) by session %s, want %q", a.Behavior, a.Message, a.Session, want)
	}
}

// rule lets the owner decide a session.
func (d *desk) rule(id specialist.SessionID, transition, payload string) error {
	s, err := d.Runner.Session(d.ctx, id)
	if err != nil {
		return err
	}
	actor := session.LocalActor("owner")
	_, err = d.Runner.Decide(d.ctx, runner.Ruling{SessionID: id, RoundID: s.Key().ID(), SpecialistID: "owner", TransitionName: transition, MetaJSON: json.RawMessage(payload), Actor: &actor})
	if err != nil {
		return err
	}
	_, err = d.Runner.Run(d.ctx, id, runner.RunOptions{})
	return err
}

func (d *desk) rules(id specialist.SessionID, transition, payload string) {
	d.Helper()
	if err := d.rule(id, transition, payload); err != nil {
		d.Fatal(err)
	}
}

// TestSilenceAllowsNothing: a prompt that nobody answers is parked, refused or waited for; it
// keeps its question, or ends it.
func TestSilenceAllowsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		first := d.ask(bash("make"))
		d.is(first, "")
		again := d.ask(bash("make"))
		if d.is(again, ""); again.Session != first.Session {
			t.Errorf("asked again it is session %s, not the open one, %s", again.Session, first.Session)
		}
		d.Unanswered, d.After = permit.Refuse, 5*time.Minute
		began := time.Now()
		refused := d.ask(bash("make"))
		if d.is(refused, permit.Deny); time.Since(began) != 5*time.Minute || refused.Session != first.Session {
			t.Errorf("session %s refused after %s, want %s after five minutes", refused.Session, time.Since(began), first.Session)
		}
		s, err := d.Runner.Session(d.ctx, first.Session)
		if err != nil || s.Status != session.Stopped || !strings.Contains(s.Outcome().Reason, "unanswered") {
			t.Errorf("the session is %s (%s, %v), want stopped as unanswered", s.Status, s.Outcome().Reason, err)
		}
		if err := d.rule(first.Session, "allow", ""); err == nil {
			if a := d.ask(bash("make")); a.Behavior == permit.Allow && a.Session != first.Session {
				t.Error("another session was allowed")
			}
		}
	})
}

// TestWaited: whoever looks knows whether an agent waits for an answer, or was told to do other work.
func TestWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.Unanswered, d.After = permit.Park, time.Minute
		waited := func(id specialist.SessionID) bool {
			waited, err := permit.Waited(d.ctx, d.store, id, time.Now())
			if err != nil {
				t.Error(err)
			}
			return waited
		}
		during := false
		d.Waits = func(s *session.Session) { during = waited(s.ID) }
		if a := d.ask(bash("make")); !during || waited(a.Session) {
			t.Errorf("while it was asked, it is waited for: %t; parked, it is: %t", during, waited(a.Session))
		}
	})
}

// TestAllowsOnce: what a human allowed holds once, for exactly this input of this session of
// the agent, and for a day.
func TestAllowsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		parked := d.ask(bash("make"))
		d.rules(parked.Session, "allow", "")
		other, elsewhere, session2 := bash("make "), bash("make"), bash("make")
		elsewhere.Cwd, session2.AgentSession = "/work/sub", "s2"
		for _, p := range []permit.Prompt{other, elsewhere, session2} {
			d.is(d.ask(p), "")
		}
		used := d.ask(bash("make"))
		if d.is(used, permit.Allow); used.Session != parked.Session {
			t.Errorf("session %s was used, not the one that was allowed", used.Session)
		}
		next := d.ask(bash("make"))
		if d.is(next, ""); next.Session == parked.Session {
			t.Error("what was allowed once is asked about in the same session")
		}
		d.rules(next.Session, "allow", "")
		time.Sleep(24 * time.Hour)
		d.is(d.ask(bash("make")), "")
	})
}

// TestTakenBack: what was allowed, and taken back before it was used, is not allowed.
func TestTakenBack(t *testing.T) {
	d := newDesk(t)
	parked := d.ask(bash("git push"))
	s, err := d.Runner.Session(d.ctx, parked.Session)
	if err != nil {
		t.Fatal(err)
	}
	d.rules(parked.Session, "allow", "")
	actor := session.LocalActor("owner")
	if _, err := d.Runner.Retract(d.ctx, runner.Retracting{SessionID: parked.Session, RoundID: s.Key().ID(), Note: "the wrong one", SpecialistID: "owner", Actor: &actor}); err != nil {
		t.Fatal(err)
	}
	d.is(d.ask(bash("git push")), "")
}

// TestTakenUpAgain: a question that was withdrawn, and taken up again by somebody, allows nothing:
// the agent is asked anew.
func TestTakenUpAgain(t *testing.T) {
	d := newDesk(t)
	d.Unanswered = permit.Refuse
	refused := d.ask(bash("make"))
	d.is(refused, permit.Deny)
	if _, err := d.Runner.Resume(d.ctx, refused.Session, runner.ResumeOptions{}); err != nil {
		t.Fatal(err)
	}
	d.rules(refused.Session, "allow", "")
	d.Unanswered = permit.Park
	again := d.ask(bash("make"))
	if d.is(again, ""); again.Session == refused.Session {
		t.Error("it is the session that was withdrawn")
	}
	if _, err := d.Runner.Stop(d.ctx, again.Session, runner.Stopping{Actor: *d.Actor, Note: "wait"}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Runner.Resume(d.ctx, again.Session, runner.ResumeOptions{}); err != nil {
		t.Fatal(err)
	}
	if open := d.ask(bash("make")); open.Session == again.Session {
		t.Error("an open session that was taken up again is joined")
	}
}

// TestWhatIsKept: a session keeps what looks like a secret masked, in what an agent suggests too,
// and of a long input the beginning, which says so.
func TestWhatIsKept(t *testing.T) {
	d := newDesk(t)
	const secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
	p := bash("curl -H 'Authorization: Bearer " + secret + "' https://example.com; : " + strings.Repeat("x", 300_000))
	p.Suggestions = json.RawMessage(`[{"rule":"Bash(curl -H ` + secret + `)"}]`)
	s, err := d.Runner.Session(d.ctx, d.ask(p).Session)
	if err != nil {
		t.Fatal(err)
	}
	kept := string(s.Options().Meta)
	if strings.Contains(kept, secret) || !strings.Contains(kept, `"suggestions":[{"rule":"Bash(curl -H `) {
		t.Errorf("kept is %.300s … %s", kept, kept[len(kept)-300:])
	}
	if len(kept) > 200_000 || !strings.Contains(kept, `"command":"(only the beginning of 3000`) || !strings.Contains(kept, fmt.Sprintf(`"inputKept":"the beginning of %d bytes"`, len(p.Input))) {
		t.Errorf("kept are %d bytes: %.300s", len(kept), kept)
	}
}

// TestOneOfManyUsesIt: of many who ask for the same at once when it is allowed, one gets it.
func TestOneOfManyUsesIt(t *testing.T) {
	d := newDesk(t)
	parked := d.ask(bash("make"))
	d.rules(parked.Session, "allow", "")
	var allowed atomic.Int64
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			if a, err := d.Ask(d.ctx, bash("make")); err != nil {
				t.Error(err)
			} else if a.Behavior == permit.Allow {
				allowed.Add(1)
			}
		})
	}
	wg.Wait()
	if allowed.Load() != 1 {
		t.Errorf("%d of 32 were allowed, want 1", allowed.Load())
	}
}

// TestACrashUsesItUp: whoever dies between recording the use and answering has used it, and
// one whose use is not recorded gets no answer.
func TestACrashUsesItUp(t *testing.T) {
	d := newDesk(t)
	parked := d.ask(bash("make"))
	d.rules(parked.Session, "allow", "")
	crash := errors.New("the disk is gone")
	d.store.fails = func(error) error { return crash }
	if a, err := d.Ask(d.ctx, bash("make")); !errors.Is(err, crash) || a.Behavior != "" {
		t.Fatalf("answered %+v, %v; want no answer", a, err)
	}
	d.store.fails = nil
	again := d.ask(bash("make"))
	if d.is(again, ""); again.Session == parked.Session {
		t.Error("the permission that was used up is good again")
	}
}

// TestWithdrawn: a prompt whose agent has gone is stopped, and nothing that is ruled later is
// delivered.
func TestWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.Unanswered = permit.Wait
		ctx, leave := context.WithCancel(d.ctx)
		waits := make(chan specialist.SessionID, 1)
		d.Waits = func(s *session.Session) { waits <- s.ID }
		done := make(chan error)
		go func() { _, err := d.Ask(ctx, bash("make")); done <- err }()
		id := <-waits
		leave()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Fatalf("withdrawn: %v", err)
		}
		s, err := d.Runner.Session(d.ctx, id)
		if err != nil || s.Status != session.Stopped || !strings.Contains(s.Outcome().Reason, "withdrawn") {
			t.Errorf("the session is %s (%s, %v), want stopped as withdrawn", s.Status, s.Outcome().Reason, err)
		}
	})
}

// TestTheLastOneWithdraws: of several who wait for the same prompt, one that goes, or whose time
// is up, leaves the question to the others; the last takes it along.
func TestTheLastOneWithdraws(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.Unanswered = permit.Wait
		waits := make(chan specialist.SessionID, 4)
		d.Waits = func(s *session.Session) { waits <- s.ID }
		done := make(chan permit.Answer, 4)
		begin := func(c permit.Config) (leave context.CancelFunc) {
			ctx, leave := context.WithCancel(d.ctx)
			go func() { a, _ := c.Ask(ctx, bash("make")); done <- a }()
			<-waits
			return leave
		}
		first, second := begin(d.Config), begin(d.Config)
		hasty := d.Config
		hasty.Unanswered, hasty.After = permit.Refuse, time.Minute
		began := time.Now()
		begin(hasty)
		d.is(<-done, permit.Deny)
		if time.Since(began) > time.Minute {
			t.Errorf("refused after %s, want a minute", time.Since(began))
		}
		first()
		id := (<-done).Session
		parked := d.Config
		parked.Unanswered = permit.Park
		a, err := parked.Ask(d.ctx, bash("make"))
		if d.is(a, ""); err != nil {
			t.Fatal(err)
		}
		if s, err := d.Runner.Session(d.ctx, a.Session); err != nil || s.Status != session.NeedsHuman {
			t.Fatalf("with one that waits the session is %s (%v)", s.Status, err)
		}
		second()
		<-done
		if s, err := d.Runner.Session(d.ctx, a.Session); err != nil || s.Status != session.Stopped || !strings.Contains(s.Outcome().Reason, "withdrawn") {
			t.Errorf("with none that waits the session is %s (%s, %v), of %s", s.Status, s.Outcome().Reason, err, id)
		}
	})
}

// TestAnswersOfAHuman: a late word is delivered as it was given: a refusal with its message, an
// answer to a question.
func TestAnswersOfAHuman(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.Unanswered = permit.Wait
		var ruling sync.WaitGroup
		d.Waits = func(s *session.Session) {
			ruling.Go(func() {
				time.Sleep(time.Minute)
				if s.State.Name == "question" {
					d.rules(s.ID, "answer", `{"answers":{"Which?":"the second"}}`)
				} else if s.Subject() == "Bash: make all" {
					d.rules(s.ID, "deny", "")
				} else {
					d.rules(s.ID, "deny", `{"message":"use the script"}`)
				}
			})
		}
		plainly := d.ask(bash("make all"))
		if d.is(plainly, permit.Deny); plainly.Message != "denied by owner" {
			t.Errorf("without a message told is %q", plainly.Message)
		}
		denied := d.ask(bash("make"))
		if d.is(denied, permit.Deny); denied.Message != "use the script" {
			t.Errorf("told is %q", denied.Message)
		}
		q := bash("")
		q.Tool, q.Input = "AskUserQuestion", json.RawMessage(`{"questions":[{"question":"Which?"}]}`)
		answered := d.ask(q)
		if d.is(answered, permit.Allow); string(answered.Answers) != `{"Which?":"the second"}` {
			t.Errorf("answered is %s", answered.Answers)
		}
		ruling.Wait()
	})
}

// TestListedPatterns: what is listed is decided at once, also if the question was open or
// allowed before; what cannot be undone is not allowed by a pattern.
func TestListedPatterns(t *testing.T) {
	d := newDesk(t)
	open := d.ask(bash("make"))
	d.is(open, "")
	d.is(d.ask(bash("git push")), "")
	allow := func(texts ...string) (list []permit.Pattern) {
		for _, text := range texts {
			p, err := permit.ParsePattern(text)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, p)
		}
		return list
	}
	d.Settings.Rules.Allow = allow("Bash(make)", "Bash(git push)")
	d.is(d.ask(bash("make")), permit.Allow)
	if s, err := d.Runner.Session(d.ctx, open.Session); err != nil || s.Status != session.Stopped {
		t.Errorf("the question that nobody has to answer any more is %s (%v)", s.Status, err)
	}
	push := d.ask(bash("git push"))
	d.is(push, "")
	d.rules(push.Session, "allow", "")
	d.Settings.Rules = permit.Rules{Deny: allow("Bash(make)", "Bash(git push)")}
	d.is(d.ask(bash("make")), permit.Deny)
	d.is(d.ask(bash("git push")), permit.Deny)
}

// TestManySessionsOfOnePrompt: however often the same was asked, the newest session is found,
// and no other is made.
func TestManySessionsOfOnePrompt(t *testing.T) {
	d := newDesk(t)
	seen := map[specialist.SessionID]int{}
	for i := range 40 {
		parked := d.ask(bash("make"))
		if before, was := seen[parked.Session]; was {
			t.Fatalf("prompt %d joins the session of prompt %d, which is over", i, before)
		}
		seen[parked.Session] = i
		d.rules(parked.Session, []string{"allow", "deny"}[i%2], "")
		if i%2 == 0 {
			d.is(d.ask(bash("make")), permit.Allow)
		}
	}
	list, err := d.Runner.Store().List(d.ctx, session.ListQuery{Limit: 200})
	if err != nil || len(list) != 40 {
		t.Errorf("%d sessions (%v), want 40", len(list), err)
	}
}

// TestEarned: the first prompts are the owner's; once the record shows it, the rules decide
// what they have proven, alone, and the owner is still asked about all else.
func TestEarned(t *testing.T) {
	d := newDesk(t)
	alone, asked := 0, 0
	for i := range 400 {
		p := bash(fmt.Sprintf("cat notes-%d.txt", i))
		want := permit.Allow
		if i%2 == 1 {
			p, want = bash(fmt.Sprintf("make -C /elsewhere/%d", i)), permit.Deny
		}
		a := d.ask(p)
		if a.Behavior != "" {
			if alone++; a.Behavior != want {
				t.Fatalf("prompt %d was answered %q alone, after %d by the owner", i, a.Behavior, asked)
			}
			continue
		}
		if asked++; alone > 0 && i < 100 {
			t.Fatal("a promise of one error in fifty was given after fewer than a hundred rulings")
		}
		d.rules(a.Session, map[permit.Behavior]string{permit.Allow: "allow", permit.Deny: "deny"}[want], "")
	}
	t.Logf("%d asked, %d decided alone", asked, alone)
	if alone < 100 || asked < 100 {
		t.Errorf("%d of 400 prompts were decided alone and %d asked about; want at least a hundred of each", alone, asked)
	}
	d.is(d.ask(bash("git push")), "")
	d.is(d.ask(bash("rm -rf /")), "")
}
