package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
)

// paymentFile is a payment that takes two approvals, none of whoever started it.
const paymentFile = `{"machineName":"payment","initialState":"ready","goalState":"paid","states":{
	"ready":{"transitions":{"pay":{"target":"paid","approvals":{"count":2,"exclude":["starter"]},"set":{"amount":"= payload.amount","times":"= data.times + 1.0"}},"reject":"rejected"}},
	"rejected":{"final":true},"paid":{}},
	"specialists":[{"role":"proposer","specialistId":"carol","isHuman":true},{"role":"proposer","specialistId":"dave","isHuman":true},{"role":"proposer","specialistId":"erin","isHuman":true},
	{"role":"proposer","specialistId":"rule","strategyFnName":"firstAvailable"},{"role":"arbiter","specialistId":"arbiter","strategyFnName":"firstProposal"}]}`

// A till is where payments are approved: a store, and the program at work on it.
type till struct {
	*testing.T
	path string
	rng  *rand.Rand
	file string // the payment's machine
}

func newTill(t *testing.T) *till {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return &till{t, filepath.Join(t.TempDir(), "dialai.db"), rand.New(rand.NewPCG(seed, 1)), paymentFile}
}

// start starts payments as erin, up to where humans are asked.
func (d *till) start(n int) (ids []specialist.SessionID) {
	d.Helper()
	m, err := machine.Parse("payment.json", []byte(d.file), runner.Checks())
	if err != nil {
		d.Fatal(err)
	}
	inProcess(d.T, d.path, runner.Config{}, func(r *runner.Runner, _ *store.SQLite) {
		for range n {
			s, err := r.Start(d.Context(), m, runner.StartOptions{Meta: []byte(`{"times":0}`), Actor: &session.Actor{Subject: "local:erin", Method: "local", Humans: []string{"erin"}}})
			if err != nil {
				d.Fatal(err)
			}
			if tick, err := r.Step(d.Context(), s.ID); err != nil || tick.Code != session.CodeApprovals {
				d.Fatalf("the payment waits for %q: %v", tick.Code, err)
			}
			ids = append(ids, s.ID)
		}
	})
	return ids
}

// rule is the program with one human's word on the first round.
func (d *till) rule(id specialist.SessionID, who, transition, payload string) *exec.Cmd {
	args := []string{"decide", id.String(), transition, "--as", who, "--round", specialist.RoundKey{Session: id, Round: 1}.ID(), "--store", d.path}
	if payload != "" {
		args = append(args, "--data", payload)
	}
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "HOME="+filepath.Dir(d.path))
	return cmd
}

// A payment is what the log says of one.
type payment struct {
	status   session.Status
	ruled    []string // who has a ruling in the log, in order
	executed []string // transition and authors of each execution
	data     string
}

func (d *till) look(id specialist.SessionID) (p payment) {
	d.Helper()
	inProcess(d.T, d.path, runner.Config{}, func(r *runner.Runner, s *store.SQLite) {
		f := &session.Folder{Programs: session.NewPrograms()}
		m, err := machine.Parse("payment.json", []byte(d.file), runner.Checks())
		if err == nil {
			_, err = f.Programs.Of(m)
		}
		if err != nil {
			d.Fatal(err)
		}
		for rec, err := range s.Records(d.Context(), id, 0) {
			if err != nil {
				d.Fatal(err)
			}
			events, err := f.Add(rec.Events)
			if err != nil {
				d.Fatal(err)
			}
			for _, e := range events {
				switch e := e.Data.(type) {
				case *session.Ruled:
					p.ruled = append(p.ruled, e.SpecialistID)
				case *session.Executed:
					p.executed = append(p.executed, fmt.Sprint(e.Transition.Name, e.Authors))
				}
			}
		}
		p.status, p.data = f.Session().Status, string(f.Session().Data().JSON())
	})
	return p
}

// A hunt kills a process where its commit is: earlier if the last one was killed after it,
// and later if before.
type hunt struct {
	delay         time.Duration
	before, after int // how often the killed process had committed nothing, and something
}

func (h *hunt) aim(rng *rand.Rand) time.Duration {
	return max(time.Millisecond, h.delay+time.Duration(rng.IntN(6000)-3000)*time.Microsecond)
}

func (h *hunt) learn(committed bool) {
	step := max(3*time.Millisecond, h.delay/8) // on a computer that is busy everything comes later
	if committed {
		h.delay, h.after = h.delay-step, h.after+1
	} else {
		h.delay, h.before = h.delay+step, h.before+1
	}
	h.delay = max(h.delay, time.Millisecond)
}

// TestKilledApprovals kills the first and the second approver of a payment around their
// commits, over and over. Whatever is there then is there whole: a ruling, or the payment
// with both approvers in the log. When both have ruled undisturbed, it is paid exactly once.
func TestKilledApprovals(t *testing.T) {
	d := newTill(t)
	first, second := &hunt{delay: 40 * time.Millisecond}, &hunt{delay: 40 * time.Millisecond}
	for i, id := range d.start(40) {
		kill := func(h *hunt, who, payload string, committed func(payment) bool) {
			cmd := d.rule(id, who, "pay", payload)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			timer := time.AfterFunc(h.aim(d.rng), func() { cmd.Process.Kill() })
			cmd.Wait()
			timer.Stop()
			h.learn(committed(d.look(id)))
		}
		kill(first, "carol", `{"amount":5}`, func(p payment) bool { return len(p.ruled) > 0 })
		if len(d.look(id).ruled) == 0 {
			d.rule(id, "carol", "pay", `{"amount":5}`).Run()
		}
		if p := d.look(id); !slices.Equal(p.ruled, []string{"carol"}) || len(p.executed) > 0 || p.status != session.NeedsHuman {
			t.Fatalf("payment %d after the first approval: %+v", i, p)
		}
		kill(second, "dave", `{"amount":5.0}`, func(p payment) bool { return len(p.executed) > 0 })
		d.rule(id, "dave", "pay", `{"amount":5}`).Run() // again, if it was not yet: else it is about a round that is over
		if p := d.look(id); !slices.Equal(p.ruled, []string{"carol"}) || !slices.Equal(p.executed, []string{"pay[carol dave]"}) || p.status != session.Completed || !paidOnce(p.data) {
			t.Fatalf("payment %d after the second approval: %+v", i, p)
		}
	}
	t.Logf("killed before and after the commit: first approvals %d and %d, second ones %d and %d", first.before, first.after, second.before, second.after)
	for _, h := range []*hunt{first, second} {
		if h.before == 0 || h.after == 0 {
			t.Error("no process was killed on one side of its commit: the test shows nothing")
		}
	}
}

func paidOnce(data string) bool {
	return strings.Contains(data, `"times":1`) && strings.Contains(data, `"amount":5`)
}

// TestTwoApproversAtOnce has two humans rule at once, in processes of their own, fifty
// times: with the same payload, with different ones, and one to pay what a third has
// approved while the other rejects it. Who is told that the question has changed looks at
// it and rules again. There is one outcome, and only one of the two is told that it was
// theirs.
func TestTwoApproversAtOnce(t *testing.T) {
	d := newTill(t)
	outcomes := map[string]int{}
	for i, id := range d.start(50) {
		rulings, want := d.rivals(id, i)
		said := make([]string, len(rulings))
		var wg sync.WaitGroup
		for j, r := range rulings {
			wg.Go(func() {
				out, _ := d.rule(id, r[0], r[1], r[2]).CombinedOutput()
				said[j] = string(out)
			})
		}
		wg.Wait()
		again := slices.IndexFunc(said, func(s string) bool { return strings.Contains(s, "Question digest mismatch") })
		if p := d.look(id); again >= 0 && p.status == session.NeedsHuman {
			r := rulings[again]
			out, _ := d.rule(id, r[0], r[1], r[2]).CombinedOutput()
			said[again] = string(out)
		}
		p := d.look(id)
		outcome := fmt.Sprint(p.executed, " after ", len(p.ruled))
		outcomes[outcome]++
		told := 0
		for _, text := range said {
			if strings.Contains(text, "  Executed: ") {
				told++
			}
		}
		if !slices.Contains(want, outcome) || told != len(p.executed) || (p.status == session.Completed) != (told == 1) {
			t.Fatalf("payment %d comes to %s, %d were told that they executed it, %+v; it may come to %q\n%s", i, outcome, told, p, want, strings.Join(said, "\n"))
		}
	}
	t.Log(outcomes)
}

// rivals returns two rulings that are given at once, and what may come of them: what is
// executed after how many rulings that waited.
func (d *till) rivals(id specialist.SessionID, i int) (rulings [][3]string, want []string) {
	switch i % 3 {
	case 0:
		return [][3]string{{"carol", "pay", `{"amount":5}`}, {"dave", "pay", `{"amount":5.0}`}}, []string{"[pay[carol dave]] after 1", "[pay[dave carol]] after 1"}
	case 1:
		return [][3]string{{"carol", "pay", `{"amount":5}`}, {"dave", "pay", `{"amount":6}`}}, []string{"[] after 2"}
	}
	d.rule(id, "carol", "pay", `{"amount":5}`).Run()
	return [][3]string{{"dave", "pay", `{"amount":5}`}, {"erin", "reject", ""}}, []string{"[pay[carol dave]] after 1", "[reject[]] after 1"}
}
