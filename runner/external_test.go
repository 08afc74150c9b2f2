package runner_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// all leaves every ask to the caller of Advance.
func all(runner.ExternalAsk) bool { return true }

// electsFirst is the arbiter by whom who answered first wins.
const electsFirst = `{"role":"arbiter","specialistId":"first","strategyFnName":"firstProposal"}`

func (b *bench) advance(s *session.Session, by ...*runner.Runner) runner.Progress {
	b.Helper()
	p, err := append(by, b.r)[0].Advance(b.ctx, s.ID, runner.AdvanceOptions{External: all})
	b.ok(err)
	return p
}

// advanced is advance that comes to a status, with asks of those specialists out.
func (b *bench) advanced(s *session.Session, status string, who ...string) runner.Progress {
	b.Helper()
	p := b.advance(s)
	var out []string
	for _, a := range p.Asks {
		out = append(out, a.SpecialistID)
	}
	if p.Status != status || !slices.Equal(out, who) {
		b.Fatalf("Advance came to %s (%s), with %q out, want %s and %q", p.Status, p.Code, out, status, who)
	}
	return p
}

// told returns the events of a session without what differs between two runs: times, and who asked.
func (b *bench) told(s *session.Session) (lines []string) {
	b.Helper()
	for _, r := range b.raw(s) {
		var d any
		b.ok(json.Unmarshal(r.Data, &d))
		timeless(d)
		if of, _ := d.(map[string]any); r.Kind == session.KindAskFailed && of["code"] == session.CodeCancelled {
			for _, name := range []string{"costUSD", "estimated", "calls"} { // functions answer at once: whether the request went out before that is luck
				delete(of, name)
			}
		}
		text, err := json.Marshal(d)
		b.ok(err)
		lines = append(lines, r.Kind+" "+string(text))
		for i := len(lines) - 1; i > 0 && cancelled(lines[i]) && cancelled(lines[i-1]) && lines[i] < lines[i-1]; i-- {
			lines[i], lines[i-1] = lines[i-1], lines[i] // a step cancels all at once, and they come as they like
		}
	}
	return lines
}

func cancelled(line string) bool {
	return strings.HasPrefix(line, session.KindAskFailed+" ") && strings.Contains(line, `"code":"`+session.CodeCancelled+`"`)
}

func timeless(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range []string{"owner", "deadline", "createdAt", "latencyMsec"} {
			delete(v, name)
		}
		for _, in := range v {
			timeless(in)
		}
	case []any:
		for _, in := range v {
			timeless(in)
		}
	}
}

// TestAdvanceIsRun: whoever drives a session by Advance and Ask, from processes that come and
// go, gets the log of one that Run drives, but for times and who asked: in every mode, with
// functions and services, answers that fail, are not legal or too late, and rounds that are settled early.
func TestAdvanceIsRun(t *testing.T) {
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 18))
	settled, waited, unsaid := 0, 0, 0
	for i := range 150 {
		w := newDriven(rng)
		var want []string
		synctest.Test(t, func(t *testing.T) { want = w.run(newBench(t, inBubble)) })
		synctest.Test(t, func(t *testing.T) {
			got := w.drive(newBench(t, inBubble))
			for at := range min(len(got), len(want)) {
				if got[at] != want[at] {
					t.Logf("line %d is\n%s\nwant\n%s", at, got[at], want[at])
					break
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("case %d: %s\nby Advance and Ask the log is\n%s\nby Run\n%s", i, w.def.text(), strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
		if t.Failed() {
			return
		}
		waited, unsaid = waited+w.waited, unsaid+w.unsaid
		if strings.Contains(strings.Join(want, "\n"), session.CodeCancelled) {
			settled++
		}
	}
	if settled == 0 || waited <= unsaid {
		t.Errorf("%d rounds were settled while answers were out, Waits said %d times that there is nothing to do, and %d times did not", settled, waited, unsaid)
	}
}

// A driven is a machine and those who take part, to be driven in two ways.
type driven struct {
	def   def
	says  map[string][]string      // by the number of the round
	takes map[string]time.Duration // no two the same

	waited, unsaid int // how often Waits said that there is nothing to do, and did not though it was so
}

func newDriven(rng *rand.Rand) *driven {
	w := &driven{says: map[string][]string{}, takes: map[string]time.Duration{}}
	order := rng.Perm(5)
	for i := range 1 + rng.IntN(5) {
		id := fmt.Sprintf("s%d", i)
		entry := web(id, estimated("0.01"), fmt.Sprintf(`"timeout":"%ds"`, 10+i))
		if rng.IntN(4) == 0 {
			entry = fn(id)
		}
		w.def.who = append(w.def.who, entry)
		w.takes[id] = time.Duration(1+order[i]) * time.Second
		for range 8 {
			w.says[id] = append(w.says[id], []string{"again", "again", "park", "finish", "nowhere", "!", "late"}[rng.IntN(7)])
		}
	}
	w.def.who = append(w.def.who, []string{electsFirst, half, arb("alignmentMargin", threshold("0.9"))}[rng.IntN(3)])
	w.def.top = fmt.Sprintf(`"solicit":{"mode":%q,"wave":%d},"quorum":%d`, []string{"all", "eager", "sequential"}[rng.IntN(3)], 1+rng.IntN(3), 1+rng.IntN(2))
	w.def.states = `"open":{"prompt":"Which way?","transitions":{"finish":"done","again":"open","park":"parked"}},
		"parked":{"prompt":"And now?","transitions":{"again":"open","park":"parked","finish":"done"}},"done":{}`
	return w
}

func (w *driven) start(b *bench) *session.Session {
	for id, says := range w.says {
		b.cast.play(id, func(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
			said := says[int(q.Key.Round)%len(says)]
			takes := w.takes[id]
			if said == "late" {
				takes = time.Hour
			}
			if q.Ask == nil { // a function of this process answers at once
				takes = 0
			}
			if said == "!" {
				return after(takes, failing(errors.New("no answer")))(ctx, q)
			}
			return after(takes, answering(said, cost(dollar/100)))(ctx, q)
		})
	}
	return b.start(b.machine(w.def), runner.StartOptions{ID: specialist.SessionID{1, 8}})
}

func (w *driven) run(b *bench) []string {
	s := w.start(b)
	_, err := b.r.Run(b.ctx, s.ID, runner.RunOptions{MaxSteps: 6, Timeout: 100 * time.Hour})
	b.ok(err)
	return b.told(s)
}

// drive makes each call in a process of its own. Those who are asked together answer together.
func (w *driven) drive(b *bench) []string {
	s := w.start(b)
	for range 100 {
		by := b.runner(inBubble)
		p, err := by.Advance(b.ctx, s.ID, runner.AdvanceOptions{External: all, MaxSteps: 6})
		b.ok(err)
		if p.Status != runner.WaitingStatus {
			if len(p.Asks) > 0 {
				b.Errorf("%s with %v out", p.Status, p.Asks)
			}
			return b.told(s)
		}
		var wg sync.WaitGroup
		ctx, cancel := context.WithCancel(b.ctx)
		slices.SortFunc(p.Asks, func(x, y runner.ExternalAsk) int {
			return cmp.Compare(w.takes[x.SpecialistID], w.takes[y.SpecialistID])
		})
		changed := make(chan struct{}, len(p.Asks))
		for _, a := range p.Asks {
			process := b.runner(inBubble)
			wg.Go(func() {
				if err := process.Ask(ctx, a.AskRef); err != nil && ctx.Err() == nil {
					b.Errorf("Ask %s: %v", a.SpecialistID, err)
				}
				changed <- struct{}{}
			})
		}
		for range p.Asks { // after each answer, as whoever drives a session does
			<-changed
			waits, err := by.Waits(b.ctx, s.ID)
			b.ok(err)
			before := b.now(s).Sequence
			now, err := by.Advance(b.ctx, s.ID, runner.AdvanceOptions{External: all, MaxSteps: 6})
			b.ok(err)
			if waits && (now.Status != runner.WaitingStatus || now.Sequence != before) {
				b.Errorf("Waits says that nothing is to be done, and Advance comes to %s", now.Status)
			} else if !waits && now.Status == runner.WaitingStatus && now.Sequence == before && len(now.Asks) > 0 {
				w.unsaid++
			} else if waits {
				w.waited++
			}
			if now.Status != runner.WaitingStatus || !slices.ContainsFunc(now.Asks, func(a runner.ExternalAsk) bool { return slices.Contains(p.Asks, a) }) {
				break
			}
		}
		cancel()
		wg.Wait()
	}
	b.Fatal("the session does not end")
	return nil
}

// TestAskByAnotherProcess: the process that recorded the asks is gone, and others make them,
// each once, with the question, the key, the address and the room of Step.
func TestAskByAnotherProcess(t *testing.T) {
	b := newBench(t, func(c *runner.Config) { c.PublicURL = "https://here.example" })
	var asked specialist.Question
	b.cast.play("v", func(_ context.Context, q specialist.Question) (specialist.Answer, error) {
		asked = q
		return specialist.Answer{}, specialist.ErrAccepted
	})
	b.cast.say("w", "again")
	s := b.start(b.desk(web("v"), web("w"), electsFirst))
	p := b.advanced(s, runner.WaitingStatus, "v", "w")
	if again := b.advanced(s, runner.WaitingStatus, "v", "w"); fmt.Sprint(again) != fmt.Sprint(p) {
		t.Errorf("nothing has happened, and Advance says %+v, before %+v", again, p)
	}
	if p.WakeAt == 0 || p.WakeAt != p.Asks[0].Deadline || len(b.cast.who()) != 0 {
		t.Errorf("the progress is %+v", p)
	}
	b.ok(b.r.Close())
	other := b.runner(func(c *runner.Config) { c.PublicURL = "https://here.example" })
	b.ok(other.Ask(b.ctx, p.Asks[0].AskRef))
	if id := s.Key().AskID(1); asked.Ask == nil || asked.Ask.ID != id || asked.Self != "v" || asked.Encoded == nil || asked.Ask.CallbackURL != "https://here.example/v1/callbacks/"+s.ID.String()+"."+id {
		t.Errorf("v was asked %+v", asked.Ask)
	}
	b.ok(other.Ask(b.ctx, p.Asks[0].AskRef)) // the answer will come
	b.advanced(s, runner.WaitingStatus, "w")
	if _, _, err := b.r.Callback(b.ctx, s.ID.String()+"."+asked.Ask.ID, asked.Ask.CallbackToken, specialist.Answer{TransitionName: "park"}); err != nil {
		t.Errorf("the callback: %v", err)
	}
	b.advance(s)
	if now := b.now(s); now.Last() == nil || now.Last().Transition.Name != "park" || len(b.cast.who()) != 1 {
		t.Errorf("the session stands at %s", now.State.Name)
	}
}

// TestAskAgain: an ask that is answered is not sent again, and one that two processes send at
// once counts once; in one process the second call waits for the first.
func TestAskAgain(t *testing.T) {
	for _, processes := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d processes", processes), func(t *testing.T) {
			bubble(t, func(b *bench) {
				b.cast.play("v", after(time.Second, answering("again", cost(dollar))))
				b.cast.play("w", after(time.Second, answering("again", cost(dollar))))
				s := b.start(b.desk(web("v"), web("w"), half))
				p := b.advanced(s, runner.WaitingStatus, "v", "w")
				by := []*runner.Runner{b.r, b.r}
				if processes == 2 {
					by[1] = b.runner(inBubble)
				}
				var wg sync.WaitGroup
				for _, r := range by {
					wg.Go(func() {
						if err := r.Ask(b.ctx, p.Asks[0].AskRef); err != nil {
							t.Error(err)
						}
						if b.now(s).Open.Proposal("v") == nil {
							t.Error("Ask returned before the answer was recorded")
						}
					})
				}
				wg.Wait()
				b.ok(by[1].Ask(b.ctx, p.Asks[0].AskRef))
				if asked := b.cast.who(); len(asked) != processes {
					t.Errorf("asked were %q", asked)
				}
				if n := b.count(s, "discarded"); n != processes-1 || b.now(s).Spent().Money != dollar {
					t.Errorf("%d answers are discarded, spent are %s", n, b.now(s).Spent().Money)
				}
				for _, id := range b.cast.askIDs() {
					if id != s.Key().AskID(1) {
						t.Errorf("asked was under another key: %s", id)
					}
				}
			})
		})
	}
}

// TestExternalAskIsOutUntilItsDeadline: nobody repeats an ask that somebody may be sending;
// after its deadline whoever steps does, under its key, and who comes late sends nothing.
func TestExternalAskIsOutUntilItsDeadline(t *testing.T) {
	for _, by := range []string{"Advance", "Step"} {
		t.Run(by, func(t *testing.T) {
			bubble(t, func(b *bench) {
				b.cast.say("v", "again")
				s := b.start(b.desk(web("v", `"timeout":"10s"`), electsFirst))
				first := b.advanced(s, runner.WaitingStatus, "v").Asks[0]
				if left := time.Duration(first.Deadline-b.r.Now()) * time.Millisecond; first.Timeout != 10*time.Second || left != 15*time.Second {
					t.Errorf("it takes %s, and is out for %s", first.Timeout, left)
				}
				time.Sleep(15*time.Second - time.Millisecond)
				other := b.runner(inBubble)
				for range 2 {
					if tick, err := other.Step(b.ctx, s.ID); err != nil || tick.Status != runner.TickWaiting {
						t.Fatalf("before the deadline another process comes to %s, %v", tick.Status, err)
					}
				}
				time.Sleep(time.Millisecond)
				b.ok(other.Ask(b.ctx, first.AskRef))
				if asked := b.cast.who(); len(asked) != 0 {
					t.Fatalf("too late %q were asked", asked)
				}
				if by == "Step" {
					b.stepTo(s, runner.TickAdvanced)
				} else {
					again := b.advanced(s, runner.WaitingStatus, "v").Asks[0]
					if again.Index != first.Index || again.Repeat != 1 {
						t.Errorf("repeated is %+v", again)
					}
					b.ok(b.r.Ask(b.ctx, first.AskRef)) // taken over
					if asked := b.cast.who(); len(asked) != 0 {
						t.Errorf("by the former request %q were asked", asked)
					}
					b.ok(b.r.Ask(b.ctx, again.AskRef))
					b.advance(s)
				}
				if ids := b.cast.askIDs(); len(ids) != 1 || ids[0] != s.Key().AskID(1) || b.now(s).Executed != 1 {
					t.Errorf("asked were %q, executed %d", ids, b.now(s).Executed)
				}
			})
		})
	}
}

// TestAskAfterTheRound: what comes when the round is over is recorded with its cost, and what
// was not sent by then is not sent.
func TestAskAfterTheRound(t *testing.T) {
	bubble(t, func(b *bench) {
		b.cast.play("v", after(time.Minute/4, answering("again", cost(dollar))))
		s := b.start(b.desk(web("v"), web("w"), human("human"), half))
		p := b.advanced(s, runner.WaitingStatus, "v", "w")
		done := make(chan error)
		go func() { done <- b.r.Ask(b.ctx, p.Asks[0].AskRef) }()
		synctest.Wait()
		b.force(s, "park")
		b.ok(<-done)
		b.ok(b.r.Ask(b.ctx, p.Asks[1].AskRef))
		if asked := b.cast.who(); len(asked) != 1 || b.count(s, "discarded") != 1 || b.now(s).Spent().Money != dollar {
			t.Errorf("asked were %q, discarded %d, spent %s", asked, b.count(s, "discarded"), b.now(s).Spent().Money)
		}
	})
}

// TestAskEndsInTime: a failure is recorded, a limit of time before the deadline is one, and an
// Ask whose caller gives up leaves the ask out.
func TestAskEndsInTime(t *testing.T) {
	bubble(t, func(b *bench) {
		for _, id := range []string{"a", "b", "c"} {
			b.cast.play(id, after(time.Hour, saying("again")))
		}
		b.cast.play("c", failing(errors.New("down")))
		b.cast.play("d", func(context.Context, specialist.Question) (specialist.Answer, error) { panic("oops") })
		s := b.start(b.desk(web("a", `"timeout":"10s"`), web("b"), web("c"), web("d"), half))
		p := b.advanced(s, runner.WaitingStatus, "a", "b", "c", "d")
		given, cancel := context.WithTimeout(b.ctx, time.Second)
		defer cancel()
		if err := b.r.Ask(given, p.Asks[0].AskRef); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who gives up is told %v", err)
		}
		b.advanced(s, runner.WaitingStatus, "a", "b", "c", "d")
		for _, i := range []int{0, 3, 2, 1} {
			b.ok(b.r.Ask(b.ctx, p.Asks[i].AskRef))
		}
		again := b.advanced(s, runner.WaitingStatus, "b") // begun too late for all its time, and so not failed
		b.ok(b.r.Ask(b.ctx, again.Asks[0].AskRef))
		b.advanced(s, session.NeedsHuman.String())
		b.wantLog(s, p.Sequence, "ask_failed a timeout", "ask_failed d panic", "ask_failed c ask_error", "asked b#2", "ask_failed b timeout", "judged arb no_proposals", "needs_human no_proposals")
	})
}

// TestAskIsLate: an ask whose requests are all begun too late is not repeated for ever. Each was sent, and has failed by
// nothing but that.
func TestAskIsLate(t *testing.T) {
	bubble(t, func(b *bench) {
		b.cast.play("v", after(time.Hour, saying("again")))
		s := b.start(b.desk(web("v", `"timeout":"10s"`), half))
		for repeat := range 20 {
			p := b.advance(s)
			if p.Status != runner.WaitingStatus {
				if repeat != 4 || p.Status != session.NeedsHuman.String() {
					t.Errorf("after %d requests it is %s", repeat, p.Status)
				}
				b.wantLog(s, p.Sequence-3, "ask_failed v timeout", "judged arb no_proposals", "needs_human no_proposals")
				return
			}
			time.Sleep(time.Duration(p.Asks[0].Deadline-b.r.Now()-1000) * time.Millisecond)
			b.ok(b.r.Ask(b.ctx, p.Asks[0].AskRef))
		}
		t.Error("it is repeated for ever")
	})
}

// TestAskGivenUp: what a request had cost whose caller gives it up once the round is over is in the log; while the round is
// open nothing of it is, since the ask is out.
func TestAskGivenUp(t *testing.T) {
	for _, over := range []bool{true, false} {
		t.Run(fmt.Sprintf("over %t", over), func(t *testing.T) {
			bubble(t, func(b *bench) {
				b.cast.play("v", func(ctx context.Context, _ specialist.Question) (specialist.Answer, error) {
					<-ctx.Done()
					return specialist.Answer{Usage: cost(dollar)}, ctx.Err()
				})
				s := b.start(b.desk(web("v"), human("human"), half))
				p := b.advanced(s, runner.WaitingStatus, "v")
				ctx, cancel := context.WithCancel(b.ctx)
				done := make(chan error)
				go func() { done <- b.r.Ask(ctx, p.Asks[0].AskRef) }()
				synctest.Wait()
				if over {
					b.force(s, "park")
				}
				before := b.now(s).Sequence
				cancel()
				if err := <-done; !errors.Is(err, context.Canceled) {
					t.Errorf("who gives up is told %v", err)
				}
				if want := map[bool]int{true: 1}[over]; b.count(s, "discarded") != want || b.now(s).Sequence != before+int64(want) || b.now(s).Spent().Money != dollar*exact.Money(want) {
					t.Errorf("discarded are %d, spent %s", b.count(s, "discarded"), b.now(s).Spent().Money)
				}
			})
		})
	}
}

// TestAskNeverSent: an ask that a step has left to others, and repeats itself since it took too long, is not charged as
// one that was lost: nobody could have sent it before the step had ended.
func TestAskNeverSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := modelBench(t, inBubble)
		b.cast.say("m", "again")
		b.cast.play("f", func(context.Context, specialist.Question) (specialist.Answer, error) {
			time.Sleep(time.Hour) // and does not look at its limit
			return specialist.Answer{TransitionName: "park"}, nil
		})
		s := b.start(b.desk(llm("m", "free"), fn("f"), arb("alignmentMargin", threshold("0.99"))))
		p := b.advance(s)
		log := strings.Join(b.told(b.now(s)), "\n")
		if len(p.Asks) != 1 || p.Asks[0].Repeat != 1 || strings.Contains(log, `"lost":true`) || b.now(s).Spent().Calls != 0 {
			t.Errorf("out are %+v, and the log is\n%s", p.Asks, log)
		}
		time.Sleep(time.Hour)
		if b.advance(s); !strings.Contains(strings.Join(b.told(b.now(s)), "\n"), `"lost":true`) {
			t.Errorf("one that somebody may have sent is not charged:\n%s", strings.Join(b.told(b.now(s)), "\n"))
		}
	})
}

// TestAskIsRefused: what was never asked, and what another process sends.
func TestAskIsRefused(t *testing.T) {
	bubble(t, func(b *bench) {
		b.cast.play("v", after(time.Second, saying("again")))
		s := b.start(b.desk(web("v"), electsFirst))
		ref := runner.AskRef{Round: s.Key(), Index: 1, SpecialistID: "v"}
		if err := b.r.Ask(b.ctx, ref); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("what was never asked: %v", err)
		}
		done := make(chan error)
		go func() { _, err := b.r.Step(b.ctx, s.ID); done <- err }()
		synctest.Wait()
		b.refused(b.runner(inBubble).Ask(b.ctx, ref), runner.ErrIllegal, "the ask of v is sent by another process: Advance returns those that are to be sent")
		b.ok(<-done)
	})
}

// TestAdvanceSendsWhatIsNotExternal waits for those that the caller does not send.
func TestAdvanceSendsWhatIsNotExternal(t *testing.T) {
	bubble(t, func(b *bench) {
		for _, id := range []string{"slow", "quick", "fn"} {
			b.cast.say(id, "again")
		}
		s := b.start(b.desk(web("slow", `"timeout":"20m"`), web("quick", `"timeout":"5s"`), fn("fn"), arb("alignmentMargin", threshold("0.99"))))
		p, err := b.r.Advance(b.ctx, s.ID, runner.AdvanceOptions{External: func(a runner.ExternalAsk) bool { return a.Timeout > 30*time.Second && a.Source == specialist.Webhook }})
		b.ok(err)
		if asked := b.cast.who(); len(p.Asks) != 1 || p.Asks[0].SpecialistID != "slow" || len(asked) != 2 || slices.Contains(asked, "slow") {
			t.Errorf("left are %+v, asked were %q", p.Asks, asked)
		}
	})
}

// TestAskOfNobody: a round does not wait for an ask that nobody has sent, of somebody who is not asked any more; one that
// may still be answered it waits for.
func TestAskOfNobody(t *testing.T) {
	bubble(t, func(b *bench) {
		b.cast.say("here", "again")
		s := b.start(b.desk(web("gone", `"timeout":"10s"`), web("here", `"timeout":"20s"`), `{"role":"proposer","specialistId":"carol","isHuman":true}`, half))
		p := b.advanced(s, runner.WaitingStatus, "gone", "here")
		b.ok(b.r.Disable(b.ctx, "desk", "gone"))
		b.ok(b.r.Ask(b.ctx, p.Asks[1].AskRef))
		if now := b.advance(s); now.Status != runner.WaitingStatus {
			t.Fatalf("before its deadline the round is %s", now.Status)
		}
		time.Sleep(15 * time.Second)
		if now := b.advance(s); now.Status == runner.WaitingStatus && now.WakeAt <= b.r.Now() {
			t.Errorf("after its deadline Advance comes to %+v", now)
		}
		if log := strings.Join(b.told(b.now(s)), "\n"); !strings.Contains(log, "it is not asked any more") || strings.Contains(strings.Join(b.cast.who(), " "), "gone") {
			t.Errorf("asked were %q, and the log is\n%s", b.cast.who(), log)
		}
	})
}

// TestAskHasAllItsTime: an external ask has as long as it may take, however long Advance was busy with the others of its
// wave before anybody knew of it.
func TestAskHasAllItsTime(t *testing.T) {
	bubble(t, func(b *bench) {
		b.cast.play("slow", after(55*time.Second, saying("again")))
		b.cast.play("quick", after(19*time.Second, saying("again")))
		s := b.start(b.desk(web("slow", `"timeout":"60s"`), web("quick", `"timeout":"20s"`), half))
		p, err := b.r.Advance(b.ctx, s.ID, runner.AdvanceOptions{External: func(a runner.ExternalAsk) bool { return a.SpecialistID == "slow" }})
		b.ok(err)
		if len(p.Asks) != 1 {
			t.Fatalf("left are %+v", p.Asks)
		}
		b.ok(b.r.Ask(b.ctx, p.Asks[0].AskRef))
		if log := b.told(b.now(s)); !slices.ContainsFunc(log, func(l string) bool {
			return strings.HasPrefix(l, session.KindProposed+" ") && strings.Contains(l, `"specialistId":"slow"`)
		}) {
			t.Errorf("the answer of slow does not count:\n%s", strings.Join(log, "\n"))
		}
	})
}

// TestAdvanceLimits: a session that does not end is stopped, as by Run; one Advance ends in time.
func TestAdvanceLimits(t *testing.T) {
	b := newBench(t)
	b.cast.say("f", "again")
	s := b.start(b.desk(fn("f"), electsFirst))
	p, err := b.r.Advance(b.ctx, s.ID, runner.AdvanceOptions{MaxSteps: 5, MaxTime: time.Nanosecond})
	if b.ok(err); p.Status != session.Running.String() || b.now(s).Executed != 1 {
		t.Errorf("in no time Advance came to %s after %d transitions", p.Status, b.now(s).Executed)
	}
	p, err = b.r.Advance(b.ctx, s.ID, runner.AdvanceOptions{MaxSteps: 5})
	if b.ok(err); p.Status != "stopped" || p.Code != session.CodeStepLimit || b.now(s).Executed != 5 || p.Sequence != b.now(s).Sequence {
		t.Errorf("Advance came to %+v after %d transitions", p, b.now(s).Executed)
	}
}

// TestRunLeavesExternalAsks: Run does not wait for what other processes send, unless it is told
// to; then it goes on when the answer comes, or takes the ask over at its deadline.
func TestRunLeavesExternalAsks(t *testing.T) {
	bubble(t, func(b *bench) {
		b.cast.say("v", "finish")
		s := b.start(b.desk(web("v", `"timeout":"10s"`), electsFirst))
		b.advanced(s, runner.WaitingStatus, "v")
		result, err := b.r.Run(b.ctx, s.ID, runner.RunOptions{})
		if b.ok(err); result.Status != runner.WaitingStatus || len(b.cast.who()) != 0 {
			t.Errorf("Run comes to %s", result.Status)
		}
		began := time.Now()
		result, err = b.r.Run(b.ctx, s.ID, runner.RunOptions{Wait: true})
		if took := time.Since(began); err != nil || result.Status != "completed" || took < 15*time.Second || took > 18*time.Second {
			t.Errorf("Run comes to %s after %s, %v", result.Status, took, err)
		}
		if ids := b.cast.askIDs(); len(ids) != 1 || ids[0] != s.Key().AskID(1) {
			t.Errorf("asked were %q", ids)
		}
	})
}
