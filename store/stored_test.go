package store_test

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
)

// A storedDefinition is one that loading refuses today and a store may hold.
type storedDefinition struct {
	name string
	text string
	code string // of the problem that loading has with it
	rule string // a transition of its initial state that a human may execute
	to   string // where that leads
	as   string // who does; the operator if empty
}

// storedDefinitions has a row for every kind of rule that came after definitions
// were stored. Whoever adds a rule adds a row.
var storedDefinitions = []storedDefinition{
	{
		name: "a target that is no state",
		text: `{"machineName":"m","initialState":"a","goalState":"z","states":{"a":{"transitions":{"go":"z","off":"\u0000"}},"z":{}}}`,
		code: "unknown-target", rule: "off", to: "\x00",
	},
	{
		name: "a strategy that is gone",
		text: `{"machineName":"m","initialState":"a","goalState":"z","states":{"a":{"transitions":{"go":"z"}},"z":{}},
			"specialists":[{"role":"proposer","specialistId":"p","strategyFnName":"oncebuiltin"}]}`,
		code: "unknown-strategy", rule: "go", to: "z",
	},
	{
		name: "names and targets with characters that cannot be seen",
		text: `{"machineName":"m\u202e","initialState":"a\u200b","goalState":"z","states":{"a\u200b":{"transitions":{"go\u2028":"z","on":"z"}},"z":{}},
			"specialists":[{"role":"proposer","specialistId":"p\ufeff","strategyFnName":"firstAvailable"}],"guards":{"tool_calls":{"allowed":["t\u200b"]}}}`,
		code: "hidden-character", rule: "go\u2028", to: "z",
	},
	{
		name: "names that differ by what fonts leave out",
		text: `{"machineName":"m\u3164","initialState":"a","goalState":"z","states":{"a":{"transitions":{"go":"z","go\u034f":"z","go\ufe0f":"z","go\u00a0on":"z"}},"z":{}},
			"specialists":[{"role":"proposer","specialistId":"p\u2800","strategyFnName":"firstAvailable"}]}`,
		code: "hidden-character", rule: "go\ufe0f", to: "z",
	},
	{
		name: "a second human who is not there",
		text: `{"machineName":"m","initialState":"a","goalState":"z","secondHuman":{"rate":1,"when":"before"},"states":{"a":{"transitions":{"go":"z"}},"z":{}}}`,
		code: "too-few-humans", rule: "go", to: "z",
	},
	{
		name: "a second human where there is one",
		text: `{"machineName":"m","initialState":"a","goalState":"z","secondHuman":{"rate":1,"when":"before"},"states":{"a":{"transitions":{"go":"z"}},"z":{}},
			"specialists":[{"role":"proposer","specialistId":"carol","isHuman":true}]}`,
		code: "too-few-humans", rule: "go", to: "z", as: "carol",
	},
	{
		name: "a service without a price under a limit of dollars",
		text: `{"machineName":"m","initialState":"a","goalState":"z","states":{"a":{"transitions":{"go":"z"}},"z":{}},"guards":{"budget":{"hard_limit_usd":1}},
			"specialists":[{"role":"proposer","specialistId":"w","strategyWebhookUrl":"https://hooks.example/","webhookTokenName":"A_WEBHOOK_TOKEN"}]}`,
		code: "unpriced-ask", rule: "go", to: "z",
	},
	{
		name: "a mutex group of one tool",
		text: `{"machineName":"m","initialState":"a","goalState":"z","states":{"a":{"transitions":{"go":"z"}},"z":{}},"guards":{"tool_calls":{"mutex":[["only"]]}}}`,
		code: "too-few", rule: "go", to: "z",
	},
}

// TestStoredDefinitions proves that what a store holds stays usable whatever the
// rules of machine files have become: it is folded, shown, listed, asked about, ruled
// on and cancelled, and nothing of that panics.
func TestStoredDefinitions(t *testing.T) {
	for _, row := range storedDefinitions {
		t.Run(row.name, func(t *testing.T) {
			_, err := machine.Parse("m.json", []byte(row.text), runner.Checks())
			if invalid, ok := err.(*machine.Error); !ok || !slices.ContainsFunc(invalid.Problems, func(p machine.Problem) bool { return p.Code == row.code }) {
				t.Fatalf("loading says %v, not %s", err, row.code)
			}
			row.live(t)
		})
	}
}

// TestDamagedDefinition: a session whose definition cannot even be read stops nobody
// else, and whatever is asked of it says in one line which definition that is.
func TestDamagedDefinition(t *testing.T) {
	a := newStore(t)
	id, other := storedDefinitions[1].start(a.ctx, t, a.path, 1), storedDefinitions[2].start(a.ctx, t, a.path, 2)
	a.exec(`UPDATE definitions SET definition=substr(definition,1,40) WHERE definition LIKE '%oncebuiltin%'`)
	a.with(func(r *runner.Runner, _ *store.SQLite) {
		why := runner.Stopping{Actor: session.LocalActor("carol"), Note: "nobody needs it"}
		_, err := r.Stop(a.ctx, id, why)
		if broken, ok := errors.AsType[*session.CorruptError](err); !ok || !strings.Contains(broken.Problem, "definition ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("cancelling it says %v", err)
		}
		ticks, unread := 0, 0
		for tick, err := range r.Tick(a.ctx) {
			a.ok(err)
			ticks++
			if _, ok := errors.AsType[*session.CorruptError](tick.Err); ok {
				unread++
			}
		}
		if unread != 1 || ticks < 2 {
			t.Errorf("of %d sessions %d could not be read", ticks, unread)
		}
		_, err = r.Stop(a.ctx, other, why)
		a.ok(err)
	})
}

// live has a session of the definition go through its life, each part in a process
// of its own.
func (row *storedDefinition) live(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "dialai.db")
	id, other := row.start(ctx, t, path, 1), row.start(ctx, t, path, 2)
	r := row.open(t, path)
	s, err := r.Session(ctx, id)
	row.ok(t, err)
	s.View()
	list, err := r.Sessions(ctx, session.ListQuery{})
	row.ok(t, err)
	if len(list) != 2 {
		t.Errorf("%d sessions are listed", len(list))
	}
	stopped, err := r.Stop(ctx, other, runner.Stopping{Actor: session.LocalActor("carol"), Note: "nobody needs it"})
	row.ok(t, err)
	if stopped.Status != session.Stopped || stopped.Outcome().Code != session.CodeCancelled {
		t.Errorf("the other one was cancelled to %s, %+v", stopped.Status, stopped.Outcome())
	}
	for _, err := range r.Tick(ctx) {
		row.ok(t, err)
	}
	_, _, err = r.Inbox(ctx, session.ListQuery{}, "")
	row.ok(t, err)
	_, err = r.Question(ctx, s, "")
	row.ok(t, err)
	ruled, err := r.Decide(ctx, runner.Ruling{SessionID: id, SpecialistID: machine.SpecialistID(cmp.Or(row.as, runner.Operator)), RoundID: s.Key().ID(), TransitionName: row.rule, Reasoning: "it has to go on"})
	row.ok(t, err)
	if !ruled.Executed || ruled.Session.State.Name != row.to {
		t.Errorf("the ruling came to %+v", ruled)
	}
	_, err = r.Step(ctx, id)
	row.ok(t, err)
	row.folds(ctx, t, path, id)
	row.folds(ctx, t, path, other)
}

// start stores the definition as an older program would have.
func (row *storedDefinition) start(ctx context.Context, t *testing.T, path string, n byte) specialist.SessionID {
	t.Helper()
	m, err := machine.Parse("m.json", []byte(row.text), session.StoredChecks())
	row.ok(t, err)
	store := openSQLite(t, path)
	program, err := session.NewProgram(m)
	row.ok(t, err)
	now := specialist.Time(1_700_000_000_000)
	id := specialist.SessionID{n}
	s := &session.Session{ID: id, Program: program, State: m.Initial(), CreatedAt: now, UpdatedAt: now, Round: 1, Sequence: 2}
	row.ok(t, store.Commit(ctx, &session.Change{After: s, First: 1, Events: session.OpeningEvents(s)}))
	return id
}

// folds proves that the whole log can be read back.
func (row *storedDefinition) folds(ctx context.Context, t *testing.T, path string, id specialist.SessionID) {
	t.Helper()
	report, err := openSQLite(t, path).Verify(ctx, session.NewPrograms())
	row.ok(t, err)
	if report.Difference != nil {
		t.Errorf("verify found %v", report.Difference)
	}
	_, err = row.open(t, path).Session(ctx, id)
	row.ok(t, err)
}

func (row *storedDefinition) open(t *testing.T, path string) *runner.Runner {
	t.Helper()
	r, err := runner.New(runner.Config{Store: openSQLite(t, path), AllowOperator: true})
	row.ok(t, err)
	return r
}

func (row *storedDefinition) ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
