package notify_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/internal/seal"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/notify"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/webhook"
)

// claims is a machine in which two disagree and a human decides.
const claims = `{"machineName":"claims","initialState":"review","goalState":"paid",
	"states":{"review":{"prompt":"Pay?","transitions":{"pay":"paid","refuse":"refused"}},"paid":{},"refused":{"final":true}},
	"specialists":[{"role":"proposer","specialistId":"bot","strategyFnName":"firstAvailable"},{"role":"proposer","specialistId":"rob","strategyFnName":"lastAvailable"},
		{"role":"proposer","specialistId":"carol","isHuman":true},{"role":"arbiter","specialistId":"x","strategyFnName":"alignmentMargin"}]}`

// byHand is claims in which nobody but the human proposes.
var byHand = strings.NewReplacer(`{"role":"proposer","specialistId":"bot","strategyFnName":"firstAvailable"},{"role":"proposer","specialistId":"rob","strategyFnName":"lastAvailable"},`, "").Replace(claims)

// withheld is claims with one proposer, whose proposal is withheld until the ruling.
var withheld = strings.NewReplacer(`"prompt":"Pay?",`, `"prompt":"Pay?","audit":{"mode":"before","rate":1,"newcomerRate":1},`, `{"role":"proposer","specialistId":"rob","strategyFnName":"lastAvailable"},`, "", `"claims"`, `"withheld"`).Replace(claims)

// reminding is claims with a question that is due, and somebody to be reminded before.
var reminding = strings.NewReplacer(`"prompt":"Pay?",`, `"prompt":"Pay?","due":{"in":"2h","remind":["1h"],"then":"refuse"},`, `"claims"`, `"reminding"`).Replace(claims)

// A world is a store with a runner, what a server remembers, and the services that are told.
type world struct {
	*testing.T
	runner  *runner.Runner
	control control.Store
	maker   notify.Maker
	secrets map[string]string

	mu     sync.Mutex
	answer func(r request) webhook.Reply // nil is 204
	got    []request
	open   map[string]int // by address
	most   map[string]int // that were open at once
}

// A request is what a service was sent.
type request struct {
	ctx     context.Context
	url     string
	headers map[string]string
	body    []byte
	at      time.Time
	message api.Message
}

func newWorld(t *testing.T) *world {
	t.Helper()
	r, err := runner.New(runner.Config{Store: store.NewMemory()})
	if err != nil {
		t.Fatal(err)
	}
	return &world{T: t, runner: r, control: control.NewMemory(), maker: notify.Maker{Seal: seal.NewKey()}, secrets: map[string]string{}, open: map[string]int{}, most: map[string]int{}}
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// hook makes a webhook that is told of everything from the beginning on.
func (w *world) hook(change ...func(*api.NewWebhook)) string {
	w.Helper()
	in := api.NewWebhook{URL: "https://example.com/hook", Types: []string{"*"}}
	for _, c := range change {
		c(&in)
	}
	hook, secret, err := w.maker.New(in, control.Webhook{Tenant: "default", CreatedBy: "test", CreatedAt: 1})
	w.ok(err)
	w.ok(w.control.Commit(w.Context(), control.Changes{Webhook: &hook}))
	w.secrets[hook.ID] = secret
	return hook.ID
}

func (w *world) webhook(id string) control.Webhook {
	w.Helper()
	hook, err := w.control.Webhook(w.Context(), id)
	w.ok(err)
	return hook
}

// back has a webhook told again what happened after a place.
func (w *world) back(id string, after int64) {
	w.Helper()
	hook := w.webhook(id)
	walk, err := notify.Back(w.Context(), w.runner.Store(), &hook, after)
	w.ok(err)
	w.ok(w.control.Commit(w.Context(), control.Changes{Walk: walk}))
}

func (w *world) deliveries(id string) []control.Delivery {
	w.Helper()
	list, err := w.control.Deliveries(w.Context(), control.DeliveryQuery{WebhookID: id})
	w.ok(err)
	return list
}

// post is what services answer.
func (w *world) post(ctx context.Context, url string, headers []webhook.Header, body []byte) (webhook.Reply, error) {
	r := request{ctx: ctx, url: url, headers: map[string]string{}, body: bytes.Clone(body), at: time.Now()}
	for _, h := range headers {
		r.headers[h.Name] = h.Value
	}
	if err := json.Unmarshal(body, &r.message); err != nil {
		w.Error(err)
	}
	w.mu.Lock()
	w.got = append(w.got, r)
	w.open[url]++
	w.most[url] = max(w.most[url], w.open[url])
	answer := w.answer
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.open[url]--
	}()
	if answer == nil {
		return webhook.Reply{Status: http.StatusNoContent}, nil
	}
	reply := answer(r)
	if reply.Status == 0 {
		return reply, errors.New("https://example.com: nobody is there")
	}
	return reply, nil
}

// deliver delivers for a while.
func (w *world) deliver(d time.Duration, change ...func(*notify.Config)) {
	w.Helper()
	c := notify.Config{Control: w.control, Seal: w.maker.Seal, PublicURL: "https://desk.example/", Post: w.post}
	for _, f := range change {
		f(&c)
	}
	ctx, cancel := context.WithTimeout(w.Context(), d)
	defer cancel()
	w.ok(notify.New(c).Run(ctx, notify.Tenant{Name: "default", Runner: w.runner}))
}

// start starts a session and has it come to where it stands.
func (w *world) start(definition string) *session.Session {
	w.Helper()
	m, err := machine.Parse("test", []byte(definition), runner.Checks())
	w.ok(err)
	s, err := w.runner.Start(w.Context(), m, runner.StartOptions{Meta: []byte(`{"amount":120}`)})
	w.ok(err)
	_, err = w.runner.Run(w.Context(), s.ID, runner.RunOptions{})
	w.ok(err)
	return w.session(s.ID)
}

func (w *world) session(id specialist.SessionID) *session.Session {
	w.Helper()
	s, err := w.runner.Session(w.Context(), id)
	w.ok(err)
	return s
}

func (w *world) rule(s *session.Session, transition string) {
	w.Helper()
	_, err := w.runner.Decide(w.Context(), runner.Ruling{SessionID: s.ID, RoundID: s.Key().ID(), SpecialistID: "carol", TransitionName: transition, Reasoning: "because"})
	w.ok(err)
}

// told returns what was sent so far, each as "type state status code transition", by place.
func (w *world) told() (list []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.SortStableFunc(w.got, func(a, b request) int {
		return cmp.Or(cmp.Compare(a.message.Data.Seq, b.message.Data.Seq), cmp.Compare(a.message.Type, b.message.Type))
	})
	for _, r := range w.got {
		d := r.message.Data
		list = append(list, strings.Join(strings.Fields(fmt.Sprint(r.message.Type, " ", d.State, " ", d.Status, " ", d.Code, " ", d.TransitionName)), " "))
	}
	return list
}

// ids returns the ids that were sent, sorted, each once.
func (w *world) ids() (list []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.got {
		list = append(list, r.headers["Webhook-Id"])
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (w *world) want(got, want []string) {
	w.Helper()
	if !slices.Equal(got, want) {
		w.Errorf("it is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestTold: a webhook is told what happens in a session, by references alone, each signed, and
// with a link to the page that it is about.
func TestTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.hook()
		s := w.start(claims)
		question := s.Key().ID()
		w.rule(s, "pay")
		w.deliver(time.Second)
		w.want(w.told(), []string{"session.started review running", "session.needs_human review needs_human cold_start", "decision.executed paid running pay", "session.completed paid completed goal"})
		key, err := webhook.Key(w.secrets[id])
		w.ok(err)
		for _, r := range w.got {
			if err := webhook.Verify(key, r.headers["Webhook-Id"], r.headers["Webhook-Timestamp"], r.headers["Webhook-Signature"], r.body, time.Now()); err != nil {
				t.Errorf("%s: %v", r.message.Type, err)
			}
			d := r.message.Data
			if bytes.Contains(r.body, []byte("amount")) || bytes.Contains(r.body, []byte("because")) || d.SessionID != s.ID.String() || d.Place == 0 || d.MachineName != "claims" || d.Tenant != "default" {
				t.Errorf("%s is told as %s", r.message.Type, r.body)
			}
			page := "https://desk.example/desk/sessions/" + s.ID.String()
			if r.message.Type == "session.needs_human" {
				page = "https://desk.example/desk/q/" + s.ID.String() + "." + question
			}
			if d.URL != page {
				t.Errorf("the page of %s is %s, want %s", r.message.Type, d.URL, page)
			}
			if human := r.message.Type == "decision.executed"; human != (d.IsHuman != nil) || human && (!*d.IsHuman || d.RoundID != question) {
				t.Errorf("%s is told as %s", r.message.Type, r.body)
			}
		}
		if hook := w.webhook(id); hook.Pending != 0 || hook.LastSuccess == 0 || hook.Cursor == 0 || hook.LastError != "" {
			t.Errorf("afterwards the webhook is %+v", hook)
		}
		w.deliver(10 * time.Second)
		if len(w.got) != 4 {
			t.Errorf("the next process tells %v again", w.told()[4:])
		}
	})
}

// TestFilters: a webhook is told only of its types and machines, and of more than references
// only what it includes.
func TestFilters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.hook(func(in *api.NewWebhook) {
			in.Types, in.Machines, in.Include = []string{"session.needs_human", "session.failed"}, []string{"cl*"}, []string{"metaJson", "proposals"}
		})
		w.start(claims)
		w.start(withheld)
		w.deliver(time.Second)
		w.want(w.told(), []string{"session.needs_human review needs_human cold_start"})
		if d := w.got[0].message.Data; string(d.MetaJSON) != `{"amount":120}` || len(d.Proposals) != 2 {
			t.Errorf("included is %s", w.got[0].body)
		}
	})
}

// TestNothingWithheld: of a round in which what was proposed is withheld nothing is told that
// would say it, not even to who includes proposals.
func TestNothingWithheld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.hook(func(in *api.NewWebhook) { in.Include = []string{"metaJson", "proposals"} })
		s := w.start(withheld)
		w.deliver(time.Second)
		w.want(w.told(), []string{"session.started review running", "session.needs_human review needs_human audit"})
		for _, r := range w.got {
			if bytes.Contains(r.body, []byte(`pay`)) || bytes.Contains(r.body, []byte("bot")) || r.message.Data.Proposals != nil {
				t.Errorf("told is %s", r.body)
			}
		}
		w.rule(s, "refuse")
		w.deliver(time.Second)
		if got := w.told(); !slices.Contains(got, "decision.executed refused running refuse") {
			t.Errorf("told is %q", got)
		}
	})
}

// TestReminded: reminders and timers are told of, and what changes a question.
func TestReminded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.hook()
		s := w.start(reminding)
		for range 2 {
			time.Sleep(time.Hour + time.Second)
			for _, err := range w.runner.Tick(t.Context()) {
				w.ok(err)
			}
		}
		if at := w.session(s.ID); at.Status != session.Completed {
			t.Fatalf("the session is %s in %s", at.Status, at.State.Name)
		}
		w.deliver(time.Second)
		w.want(w.told(), []string{"session.started review running", "session.needs_human review needs_human cold_start", "question.reminder review needs_human cold_start",
			"decision.executed refused running refuse", "session.timer refused running refuse", "session.completed refused completed final"})
	})
}

// TestChanged: where a human is asked again in a round the question has changed; after
// somebody has taken the session up it is a new one.
func TestChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.hook(func(in *api.NewWebhook) {
			in.Types = []string{"session.needs_human", "question.changed", "session.resumed", "session.stopped"}
		})
		s := w.start(claims)
		_, _, err := w.runner.Propose(t.Context(), runner.Submission{SessionID: s.ID, RoundID: s.Key().ID(), SpecialistID: "carol", TransitionName: "pay"})
		w.ok(err)
		_, err = w.runner.Run(t.Context(), s.ID, runner.RunOptions{})
		w.ok(err)
		w.deliver(time.Second)
		got := w.told()
		if len(got) == 0 || got[0] != "session.needs_human review needs_human cold_start" {
			t.Fatalf("told is %q", got)
		}
		if at := w.session(s.ID); at.Status == session.NeedsHuman {
			w.want(got[1:], []string{"question.changed review needs_human cold_start"})
		}
	})
}

// TestSchedule: an attempt that fails is made again at the times of the schedule, a fifth more
// or less, with the same id and body; after the last the delivery is dead, and can be made
// again.
func TestSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.hook(func(in *api.NewWebhook) { in.Types = []string{"session.started"} })
		w.answer = func(request) webhook.Reply { return webhook.Reply{Status: http.StatusFound} }
		w.start(claims)
		var told []string
		w.deliver(40*time.Hour, func(c *notify.Config) { c.Attempted = func(result string) { told = append(told, result) } })
		if len(w.got) != 8 {
			t.Fatalf("there were %d attempts, want 8", len(w.got))
		}
		if got := strings.Join(told, " "); got != strings.Repeat("failed ", 7)+"dead" {
			t.Errorf("whoever watches is told %s", got)
		}
		for i, wait := range []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 10 * time.Hour} {
			first, next := w.got[i], w.got[i+1]
			if d := next.at.Sub(first.at); d < wait-wait/5 || d > wait+wait/5+2*time.Second {
				t.Errorf("attempt %d was made after %v, want %v", i+2, d, wait)
			}
			if next.headers["Webhook-Id"] != first.headers["Webhook-Id"] || !bytes.Equal(next.body, first.body) {
				t.Errorf("attempt %d is another message", i+2)
			}
		}
		dead := w.deliveries(id)
		if len(dead) != 1 || dead[0].DeadAt == 0 || dead[0].Attempts != 8 || dead[0].Error != "it answered 302" || dead[0].Status != 302 {
			t.Fatalf("afterwards there is %+v", dead)
		}
		w.answer = nil
		w.ok(w.control.Commit(t.Context(), control.Changes{Deliveries: []control.Delivery{notify.Again(dead[0], specialist.TimeOf(time.Now()))}}))
		w.deliver(2 * time.Second)
		if len(w.got) != 9 || len(w.deliveries(id)) != 0 || len(w.ids()) != 1 {
			t.Errorf("made again there were %d attempts at %v", len(w.got), w.ids())
		}
	})
}

// TestAnswers: what an address answers says when it is asked again, or that it is not.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name  string
		reply webhook.Reply
		least time.Duration // until the next attempt
		most  time.Duration
		off   string
	}{
		{"it asks for ten minutes", webhook.Reply{Status: 503, RetryAfter: 10 * time.Minute}, 10 * time.Minute, 10*time.Minute + 2*time.Second, ""},
		{"it asks for a day", webhook.Reply{Status: 429, RetryAfter: 24 * time.Hour}, time.Hour, time.Hour + 2*time.Second, ""},
		{"it asks for less than there is", webhook.Reply{Status: 503, RetryAfter: time.Second}, 4 * time.Second, 8 * time.Second, ""},
		{"nobody is there", webhook.Reply{}, 4 * time.Second, 8 * time.Second, ""},
		{"it is gone", webhook.Reply{Status: 410}, 0, 0, control.OffGone},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				id := w.hook(func(in *api.NewWebhook) { in.Types = []string{"session.started"} })
				w.answer = func(request) webhook.Reply { return c.reply }
				w.start(claims)
				w.deliver(2 * time.Hour)
				if hook := w.webhook(id); hook.Off != c.off {
					t.Errorf("the webhook is off because of %q, want %q", hook.Off, c.off)
				}
				if c.off != "" {
					records, err := w.control.Audit(t.Context(), control.Query{})
					if err != nil || len(w.got) != 1 || len(records) != 1 || !bytes.Contains(records[0].Data, []byte(`"switchWebhookOff"`)) {
						t.Errorf("there were %d attempts, the audit log has %v (%v)", len(w.got), records, err)
					}
					return
				}
				if d := w.got[1].at.Sub(w.got[0].at); d < c.least || d > c.most {
					t.Errorf("it is asked again after %v, want %v to %v", d, c.least, c.most)
				}
			})
		})
	}
}

// TestAttemptsAreTold: whoever watches is told what came of each attempt, and how many messages are
// still to be delivered.
func TestAttemptsAreTold(t *testing.T) {
	for _, c := range []struct {
		status  int
		want    string
		backlog int64
	}{
		{204, "delivered", 0},
		{500, "failed failed", 1},
		{410, "gone", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			id := w.hook(func(in *api.NewWebhook) { in.Types = []string{"session.started"} })
			w.answer = func(request) webhook.Reply { return webhook.Reply{Status: c.status} }
			w.start(claims)
			var mu sync.Mutex
			var told []string
			n := notify.New(notify.Config{Control: w.control, Seal: w.maker.Seal, Post: w.post, Attempted: func(result string) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, result)
			}})
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- n.Run(ctx, notify.Tenant{Name: "default", Runner: w.runner}) }()
			time.Sleep(time.Minute)
			if b := n.Backlog(); b != c.backlog {
				t.Errorf("after %d there are %d to be delivered, want %d", c.status, b, c.backlog)
			}
			no := false
			off, err := w.maker.Changed(w.webhook(id), api.WebhookChange{Enabled: &no})
			w.ok(err)
			w.ok(w.control.Commit(t.Context(), control.Changes{Webhook: &off}))
			time.Sleep(2 * time.Second)
			if b := n.Backlog(); b != 0 {
				t.Errorf("switched off there are %d to be delivered", b)
			}
			w.ok(<-done)
			if got := strings.Join(told, " "); got != c.want {
				t.Errorf("after %d it is told %s, want %s", c.status, got, c.want)
			}
		})
	}
}

// TestTraced: a message about what has just happened is of the trace that has led to it, on every
// attempt; one about what happened long ago is of none.
func TestTraced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		started := func(in *api.NewWebhook) { in.Types = []string{"session.started"} }
		w.hook(started)
		w.answer = func(request) webhook.Reply { return webhook.Reply{Status: 500} }
		s := w.start(claims)
		traced := func(c *notify.Config) {
			asked := 0
			c.Traceparent = func(id specialist.SessionID) string {
				asked++
				return fmt.Sprint(id == s.ID, asked)
			}
		}
		w.deliver(time.Minute, traced)
		time.Sleep(time.Minute)
		w.hook(started)
		w.deliver(time.Second, traced)
		var got []string
		for _, r := range w.got {
			got = append(got, r.headers["Traceparent"])
		}
		w.want(got, []string{"true 1", "true 1", ""})
	})
}

// TestFailing: what has had no success for five days is switched off, and goes on where it has
// stopped once it is switched on again.
func TestFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.hook(func(in *api.NewWebhook) { in.Types = []string{"session.started"} })
		w.answer = func(request) webhook.Reply { return webhook.Reply{Status: 500} }
		w.start(claims)
		w.deliver(time.Second)
		if w.webhook(id).FailingSince == 0 {
			t.Fatal("it is not failing")
		}
		time.Sleep(4 * 24 * time.Hour)
		w.deliver(10 * time.Second)
		if hook := w.webhook(id); hook.Off != "" {
			t.Fatalf("after four days it is off: %q", hook.Off)
		}
		time.Sleep(24 * time.Hour)
		w.deliver(10 * time.Second)
		hook := w.webhook(id)
		if hook.Off != control.OffFailing {
			t.Fatalf("after five days it is %+v", hook)
		}
		before := len(w.got)
		w.start(claims)
		w.deliver(24 * time.Hour)
		if len(w.got) != before {
			t.Errorf("switched off it is told %v", w.told()[before:])
		}
		yes := true
		on, err := w.maker.Changed(hook, api.WebhookChange{Enabled: &yes})
		w.ok(err)
		w.ok(w.control.Commit(t.Context(), control.Changes{Webhook: &on}))
		w.answer = nil
		w.deliver(24 * time.Hour)
		if len(w.ids()) != 2 || len(w.deliveries(id)) != 0 {
			t.Errorf("switched on again it was told %v, and %v is left", w.ids(), w.deliveries(id))
		}
	})
}

// TestRotation: while a secret takes the place of another both sign, and then the new one alone.
func TestRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.hook(func(in *api.NewWebhook) { in.Types = []string{"session.started"} })
		next, secret := w.maker.Rotated(w.webhook(id), specialist.TimeOf(time.Now()))
		w.ok(w.control.Commit(t.Context(), control.Changes{Webhook: &next}))
		w.start(claims)
		w.deliver(time.Second)
		time.Sleep(24 * time.Hour)
		w.start(claims)
		w.deliver(2 * time.Second)
		for i, want := range []map[string]bool{{w.secrets[id]: true, secret: true}, {w.secrets[id]: false, secret: true}} {
			r := w.got[i]
			for of, good := range want {
				key, err := webhook.Key(of)
				w.ok(err)
				if err := webhook.Verify(key, r.headers["Webhook-Id"], r.headers["Webhook-Timestamp"], r.headers["Webhook-Signature"], r.body, r.at); (err == nil) != good {
					t.Errorf("message %d by %s: %v, want it good: %t", i, of, err, good)
				}
			}
		}
	})
}

// TestNoneDelaysAnother: an address that never answers has four attempts at once, each for 15
// seconds, and no other address waits for it.
func TestNoneDelaysAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		const hangs = "https://hangs.example/"
		w.hook(func(in *api.NewWebhook) { in.URL, in.Types = hangs, []string{"session.started"} })
		w.hook(func(in *api.NewWebhook) { in.Types = []string{"session.started"} })
		w.answer = func(r request) webhook.Reply {
			if r.url == hangs {
				<-r.ctx.Done()
				return webhook.Reply{}
			}
			return webhook.Reply{Status: 200}
		}
		for range 20 {
			w.start(claims)
		}
		begun := time.Now()
		w.deliver(16 * time.Second)
		var quick, slow int
		for _, r := range w.got {
			switch d := r.at.Sub(begun); {
			case r.url != hangs && d < time.Second:
				quick++
			case r.url == hangs && d < 15*time.Second:
				slow++
			case r.url == hangs && d < 16*time.Second:
			default:
				t.Errorf("%s is asked after %v", r.url, d)
			}
		}
		if quick != 20 || slow != 4 || w.most[hangs] != 4 || w.most["https://example.com/hook"] > 4 {
			t.Errorf("%d were told at once, the other was asked %d times in 15 s, at most %v at once", quick, slow, w.most)
		}
	})
}

// TestReplay: whoever is told again what has happened is told the same, under the same ids.
func TestReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.hook(func(in *api.NewWebhook) { in.Include = []string{"metaJson", "proposals"} })
		var all []*session.Session
		for range 5 {
			all = append(all, w.start(byHand))
		}
		for _, s := range all {
			w.rule(s, "pay")
		}
		w.deliver(time.Second)
		first := slices.Clone(w.got)
		hook := w.webhook(id)
		w.back(id, 0)
		w.start(byHand)
		w.deliver(3 * time.Second)
		bodies := map[string]string{}
		for _, r := range first {
			bodies[r.headers["Webhook-Id"]] = string(r.body)
		}
		again := 0
		for _, r := range w.got[len(first):] {
			if body, known := bodies[r.headers["Webhook-Id"]]; known {
				if again++; body != string(r.body) {
					t.Errorf("told again is %s, and was %s", r.body, body)
				}
			}
		}
		if len(first) != 20 || again != 20 || len(w.got) != 42 {
			t.Errorf("of %d messages %d were told again, and %d in all", len(first), again, len(w.got))
		}
		hook = w.webhook(id)
		if w.back(id, 1<<40); w.webhook(id).Cursor != hook.Cursor {
			t.Errorf("a place that there is not is %d", w.webhook(id).Cursor)
		}
	})
}

// faulty is a control store whose commits fail, before or after they were made.
type faulty struct {
	control.Store
	rng *rand.Rand
	mu  sync.Mutex
}

var errFault = errors.New("the process was killed")

func (f *faulty) Commit(ctx context.Context, c control.Changes) error {
	f.mu.Lock()
	before, after := f.rng.IntN(4) == 0, f.rng.IntN(4) == 0
	f.mu.Unlock()
	if before {
		return errFault
	}
	if err := f.Store.Commit(ctx, c); err != nil || !after {
		return err
	}
	return errFault
}

// TestEachAtLeastOnce: whatever interrupts the delivering, each webhook is told everything at
// least once, and what it is told again has the same id.
func TestEachAtLeastOnce(t *testing.T) {
	seeds := 40
	if testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.hook()
			w.hook(func(in *api.NewWebhook) { in.URL, in.Types = "https://other.example", []string{"session.completed"} })
			sound := w.control
			rng := rand.New(rand.NewPCG(uint64(seed), 1))
			w.control = &faulty{Store: sound, rng: rng}
			for range 6 {
				s := w.start(byHand)
				w.deliver(time.Duration(rng.IntN(3000)+1) * time.Millisecond)
				w.rule(s, "pay")
				w.deliver(time.Duration(rng.IntN(3000)+1) * time.Millisecond)
			}
			w.control = sound
			w.deliver(48 * time.Hour / 1000 * 2)
			bodies, told := map[string]string{}, map[string]int{}
			for _, r := range w.got {
				id := r.headers["Webhook-Id"]
				if body, known := bodies[id]; known && body != string(r.body) {
					t.Errorf("under one id it is told %s and %s", body, r.body)
				}
				if bodies[id] == "" {
					told[r.url+" "+r.message.Type]++
				}
				bodies[id] = string(r.body)
			}
			want := map[string]int{"https://other.example session.completed": 6}
			for _, kind := range []string{"session.started", "session.needs_human", "decision.executed", "session.completed"} {
				want["https://example.com/hook "+kind] = 6
			}
			if fmt.Sprint(told) != fmt.Sprint(want) {
				t.Errorf("seed %d: told is %v, want %v", seed, told, want)
			}
		})
	}
}

// TestOneDelivers: of two that share a lock one delivers, and the other when it is gone.
func TestOneDelivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.hook(func(in *api.NewWebhook) { in.Types = []string{"session.started"} })
		lock := &aLock{}
		var wg sync.WaitGroup
		wg.Go(func() { w.deliver(10*time.Second, func(c *notify.Config) { c.Lock = lock }) })
		synctest.Wait()
		other := 0
		wg.Go(func() {
			w.deliver(20*time.Second, func(c *notify.Config) {
				c.Lock = lock
				c.Post = func(ctx context.Context, url string, headers []webhook.Header, body []byte) (webhook.Reply, error) {
					other++
					return w.post(ctx, url, headers, body)
				}
			})
		})
		w.start(claims)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if len(w.got) != 1 || other != 0 {
			t.Errorf("told were %d, by the one that waits %d", len(w.got), other)
		}
		time.Sleep(7 * time.Second)
		w.start(claims)
		wg.Wait()
		if len(w.got) != 2 || other != 1 {
			t.Errorf("in the end told were %d, by the one that waited %d", len(w.got), other)
		}
	})
}

// TestLosesLock: who has lost its lock tells nothing more, until it has it again: then it goes on where others
// have come to.
func TestLosesLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.hook(func(in *api.NewWebhook) { in.Types = []string{"session.started"} })
		lock := &leaseLock{}
		var wg sync.WaitGroup
		wg.Go(func() { w.deliver(20*time.Second, func(c *notify.Config) { c.Lock = lock }) })
		w.start(claims)
		time.Sleep(3 * time.Second)
		lock.others.Store(true)
		time.Sleep(3 * time.Second)
		w.start(claims)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if len(w.got) != 1 {
			t.Errorf("told were %d, one of them by who had lost the lock", len(w.got))
		}
		lock.others.Store(false)
		wg.Wait()
		if len(w.got) != 2 {
			t.Errorf("in the end told were %d, want 2", len(w.got))
		}
	})
}

// A leaseLock is held, or lost to others.
type leaseLock struct{ held, others atomic.Bool }

func (l *leaseLock) TryLock() (bool, error) {
	l.held.Store(!l.others.Load())
	return l.held.Load(), nil
}
func (l *leaseLock) Holds() bool   { return l.held.Load() && !l.others.Load() }
func (l *leaseLock) Unlock() error { l.held.Store(false); return nil }

// aLock is held by one at a time.
type aLock struct{ mu sync.Mutex }

func (l *aLock) TryLock() (bool, error) { return l.mu.TryLock(), nil }
func (l *aLock) Unlock() error          { l.mu.Unlock(); return nil }

// growing is a store to which another process commits while the first page of its log is read.
type growing struct {
	session.Store
	grow func()
}

// Log yields what was committed meanwhile, too.
func (s *growing) Log(ctx context.Context, machineName string, after int64) iter.Seq2[session.LogEntry, error] {
	if after == 0 && s.grow != nil {
		grow := s.grow
		s.grow = nil
		grow()
	}
	return s.Store.Log(ctx, machineName, after)
}

// TestLogThatGrows: who reads more of the log than they knew to be there has not read another
// log. They are told of nothing twice, under no other ids.
func TestLogThatGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.hook(func(in *api.NewWebhook) { in.Types = []string{"session.started"} })
		w.start(claims)
		elsewhere := w.runner
		grows := &growing{Store: elsewhere.Store()}
		here, err := runner.New(runner.Config{Store: grows})
		w.ok(err)
		grows.grow = func() {
			w.runner = elsewhere
			w.start(claims)
		}
		w.runner = here
		w.deliver(5 * time.Second)
		if hook := w.webhook(id); len(w.got) != 2 || len(w.ids()) != 2 || strings.Contains(hook.Epoch, "+") {
			t.Errorf("of two sessions %d messages were sent, with %d ids: %+v", len(w.got), len(w.ids()), hook)
		}
	})
}

// TestAnotherLog: where an older copy of the store was put back, or another one in its place,
// the webhook is told what happens from then on, under other ids than the same places had.
func TestAnotherLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.hook(func(in *api.NewWebhook) { in.Types = []string{"session.started"} })
		w.start(claims)
		w.start(claims)
		w.deliver(7 * time.Second)
		before := w.ids()
		hook := w.webhook(id)
		ahead := control.Walk{WebhookID: id, From: hook.Cursor, To: hook.Cursor + 100, Epoch: hook.Epoch}
		w.ok(w.control.Commit(t.Context(), control.Changes{Walk: &ahead}))
		w.deliver(2 * time.Second)
		if len(w.got) != 2 || w.webhook(id).Cursor != hook.Cursor || w.webhook(id).Epoch == hook.Epoch {
			t.Errorf("with a cursor ahead of the log %d were told, and it is %+v", len(w.got), w.webhook(id))
		}
		w.back(id, 0)
		w.deliver(2 * time.Second)
		if all := w.ids(); len(all) != 4 || len(before) != 2 {
			t.Errorf("the same places of another log have the ids %v, before %v", all, before)
		}
		other, err := runner.New(runner.Config{Store: store.NewMemory()})
		w.ok(err)
		w.runner = other
		w.start(claims)
		w.deliver(2 * time.Second)
		w.start(claims)
		w.deliver(2 * time.Second)
		if len(w.ids()) != 5 {
			t.Errorf("of another store %d were told, want 1", len(w.ids())-4)
		}
	})
}

// TestBounded: of messages to an address that does not answer no more are stored than the
// bound and a page, and nothing is lost by that.
func TestBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.hook(func(in *api.NewWebhook) { in.Types = []string{"session.started"} })
		w.answer = func(request) webhook.Reply { return webhook.Reply{Status: 500} }
		const sessions = 1400
		m, err := machine.Parse("test", []byte(claims), runner.Checks())
		w.ok(err)
		for range sessions {
			_, err := w.runner.Start(t.Context(), m, runner.StartOptions{})
			w.ok(err)
		}
		w.deliver(3 * time.Second)
		if n := w.webhook(id).Pending; n < 1000 || n > 1256 {
			t.Errorf("%d messages are stored", n)
		}
		w.answer = nil
		w.deliver(10 * time.Minute)
		if n := len(w.ids()); n != sessions {
			t.Errorf("told were %d, want %d", n, sessions)
		}
	})
}

// TestRefusedWebhooks: what cannot be is refused, and says why.
func TestRefusedWebhooks(t *testing.T) {
	w := newWorld(t)
	for want, in := range map[string]api.NewWebhook{
		"url: it is not the address of a host":             {URL: "mailto:x", Types: []string{"*"}},
		"(http; only https":                                {URL: "http://example.com", Types: []string{"*"}},
		"webhook address 10.0.0.7 is not allowed (private": {URL: "https://10.0.0.7/x", Types: []string{"*"}},
		"(user information in the URL":                     {URL: "https://a:b@example.com/", Types: []string{"*"}},
		`types: there is no "session.startet"`:             {URL: "https://example.com", Types: []string{"session.startet"}},
		"machines: none of them":                           {URL: "https://example.com", Types: []string{"*"}, Machines: []string{""}},
		`include: "payload" cannot be included`:            {URL: "https://example.com", Types: []string{"*"}, Include: []string{"payload"}},
	} {
		_, secret, err := w.maker.New(in, control.Webhook{})
		if err == nil || !strings.Contains(err.Error(), want) || secret != "" || strings.Contains(err.Error(), "a:b") {
			t.Errorf("%+v: %v, want %q", in, err, want)
		}
		if _, refused := errors.AsType[*webhook.PolicyError](err); refused && !strings.Contains(err.Error(), "DIALAI_WEBHOOK_ALLOW") {
			t.Errorf("%v does not say how to allow it", err)
		}
	}
}
