// Command make fills a store with sessions, so that there is one of each schema. It is
// run in the source tree of the commit whose store is wanted: README.md says how.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
)

// machines are run if the program of then knows what they say.
var machines = []struct{ name, meta, human, transition, text string }{
	{"desk", `{"amount":7}`, "h", "on", `{"machineName":"desk","initialState":"a","goalState":"z",
		"states":{"a":{"prompt":"On?","transitions":{"on":"a","stop":"z"}},"z":{}},
		"specialists":[{"role":"proposer","specialistId":"p","strategyFnName":"lastAvailable"},{"role":"proposer","specialistId":"h","isHuman":true},{"role":"arbiter","specialistId":"x"}]}`},
	{"panel", `{"claim":"A-1"}`, "h", "on", `{"machineName":"panel","initialState":"a","goalState":"z",
		"states":{"a":{"prompt":"On?","transitions":{"on":"a","stop":"z"}},"z":{}},
		"specialists":[{"role":"proposer","specialistId":"p","strategyFnName":"lastAvailable"},{"role":"proposer","specialistId":"q","strategyFnName":"firstAvailable"},
			{"role":"proposer","specialistId":"h","isHuman":true},{"role":"arbiter","specialistId":"x","strategyFnName":"bayes","threshold":0.8}]}`},
	{"audited", `{"claim":"A-2"}`, "h", "on", `{"machineName":"audited","initialState":"a","goalState":"z","audit":{"rate":1},"secondHuman":{"rate":1},
		"states":{"a":{"prompt":"On?","transitions":{"on":"b","stop":"b"}},"b":{"prompt":"And?","transitions":{"on":"b","stop":"z"}},"z":{}},
		"specialists":[{"role":"proposer","specialistId":"p","strategyFnName":"firstAvailable"},{"role":"proposer","specialistId":"h","isHuman":true},
			{"role":"proposer","specialistId":"h2","isHuman":true},{"role":"arbiter","specialistId":"x","strategyFnName":"firstProposal"}]}`},
}

func main() {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	n := 0
	ctx := context.Background()
	s, err := store.OpenSQLite(ctx, os.Args[1], store.SQLiteOptions{})
	must(err)
	r, err := runner.New(runner.Config{Store: s, Now: func() time.Time { now = now.Add(time.Second); return now },
		NewID: func() (id specialist.SessionID) {
			n++
			id, err := session.ParseID(fmt.Sprintf("0b9c1d3e-0000-4000-8000-%012d", n))
			must(err)
			return id
		}})
	must(err)
	for _, m := range machines {
		parsed, err := machine.Parse(m.name+".json", []byte(m.text), runner.Checks())
		if err != nil {
			log.Printf("%s: %v", m.name, err)
			continue
		}
		for rulings := range 4 {
			play(ctx, r, parsed, m.meta, m.human, m.transition, rulings)
		}
		must(r.Disable(ctx, m.name, "p"))
		must(r.Enable(ctx, m.name, "p"))
	}
	for _, path := range os.Args[2:] { // samples
		text, err := os.ReadFile(path)
		must(err)
		parsed, err := machine.Parse(path, text, runner.Checks())
		if err != nil {
			log.Printf("%s: %v", path, err)
			continue
		}
		play(ctx, r, parsed, `{"amount":800,"receipt":true}`, "", "", 0)
	}
	if keeps, ok := any(s).(interface {
		AppendAudit(context.Context, specialist.AuditEntry) error
	}); ok {
		for i := range 3 {
			must(keeps.AppendAudit(ctx, specialist.AuditEntry{AuditEntryID: fmt.Sprint("entry-", i), SessionID: "0b9c1d3e-0000-4000-8000-000000000001",
				SpecialistID: "ai", RequestURL: "https://models.example/v1", RequestBody: `{"n":1}`, ResponseStatus: 200, ResponseBody: "on", Attempt: 1, Purpose: "ask"}))
		}
	}
	must(r.Close())
	if err := s.Close(); err != nil {
		must(err)
	}
}

// play starts a session and carries it on, with so many rulings of a human.
func play(ctx context.Context, r *runner.Runner, m *machine.Machine, meta, human, transition string, rulings int) {
	s, err := r.Start(ctx, m, runner.StartOptions{Meta: json.RawMessage(meta)})
	must(err)
	for range 12 {
		tick, err := r.Step(ctx, s.ID)
		must(err)
		if tick.Session.Status == session.NeedsHuman {
			if rulings--; rulings < 0 {
				return
			}
			if _, err := r.Decide(ctx, runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: machine.SpecialistID(human), TransitionName: transition, Reasoning: "go on"}); err != nil && !errors.Is(err, runner.ErrIllegal) {
				must(err)
			}
		} else if tick.Session.Status != session.Running {
			return
		}
	}
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
