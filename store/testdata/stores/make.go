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

// payment is a machine with all that a session can go through; check is what its second state
// is called, and more is what else may be chosen there.
const payment = `{"machineName":"payment","initialState":"open","goalState":"paid","input":{"type":"object","properties":{"amount":{"type":"number"},"region":{"type":"string","default":"eu"}},"required":["amount"]},
	"subject":"= 'payment of ' + string(data.amount)","groups":{"finance":["ann","bob"],"legal":["bob","cy"]},
	"states":{"open":{"prompt":"To check?","transitions":{"on":{"target":"%[1]s","set":{"asked":"= data.amount * 2.0","by":"= by"}},"never":{"target":"dropped","when":"= data.amount < 0.0"},"drop":"dropped"}},
		"%[1]s":{"prompt":"Pay?","deciders":["group:finance","group:legal"],"due":{"in":"1h","remind":["10m"],"then":"late"},
			"transitions":{"back":"open",%[2]s"pay":{"target":"paid","approvals":{"each":["group:finance","group:legal"],"exclude":["open"]}},"late":"open"}},
		"paid":{},"dropped":{"final":true}},
	"specialists":[{"role":"proposer","specialistId":"p","strategyFnName":"firstAvailable"},{"role":"proposer","specialistId":"q","strategyFnName":"lastAvailable"},
		{"role":"proposer","specialistId":"ann","isHuman":true},{"role":"proposer","specialistId":"bob","isHuman":true},{"role":"proposer","specialistId":"cy","isHuman":true},{"role":"proposer","specialistId":"dee","isHuman":true},
		{"role":"arbiter","specialistId":"x"}]}`

// pay starts sessions that are ruled on, forked, moved and taken back. elapse lets time pass.
func pay(ctx context.Context, r *runner.Runner, elapse func(time.Duration)) {
	parsed := func(check, more string) *machine.Machine {
		m, err := machine.Parse("payment.json", fmt.Appendf(nil, payment, check, more), runner.Checks())
		must(err)
		return m
	}
	actor := session.Actor{Subject: "local:op", Method: "local"}
	rule := func(id specialist.SessionID, who, transition, data string) {
		_, err := r.Decide(ctx, runner.Ruling{SessionID: id, RoundID: runner.CurrentRound, SpecialistID: machine.SpecialistID(who), TransitionName: transition, MetaJSON: json.RawMessage(data), Withdraw: transition == "", Actor: by(who)})
		must(err)
	}
	start := func(amount int) specialist.SessionID {
		s, err := r.Start(ctx, parsed("check", ""), runner.StartOptions{Meta: fmt.Appendf(nil, `{"amount":%d}`, amount), Actor: by("dee")})
		must(err)
		tick, err := r.Step(ctx, s.ID)
		must(err)
		if tick.Status == runner.TickHuman { // nobody is trusted yet
			rule(s.ID, "dee", "on", "")
		}
		return s.ID
	}
	fork := func(id specialist.SessionID) specialist.SessionID {
		s, err := r.Fork(ctx, id, runner.Forking{Actor: &actor})
		must(err)
		return s.ID
	}
	move := func(id specialist.SessionID) {
		_, err := r.Move(ctx, id, parsed("review", `"wait":"review",`), runner.Moving{Actor: actor, Note: "review, not check", States: map[machine.StateName]machine.StateName{"check": "review"}})
		must(err)
	}
	paid := start(1)
	rule(paid, "ann", "pay", `{"iban":"DE1"}`)
	fork(paid) // without what ann has ruled
	rule(paid, "ann", "", "")
	rule(paid, "ann", "pay", `{"iban":"DE2"}`)
	rule(paid, "bob", "pay", `{"iban": "DE2"}`)
	_, err := r.Retract(ctx, runner.Retracting{SessionID: paid, RoundID: roundOf(ctx, r, paid, 1), SpecialistID: "dee", Note: "too early", Actor: by("dee")})
	must(err)
	moved := start(2)
	rule(moved, "cy", "pay", "")
	move(fork(moved))
	move(moved)
	rule(moved, "ann", "wait", "")
	rule(moved, "bob", "pay", "")
	fork(fork(moved))
	late := start(3)
	for _, d := range []time.Duration{55 * time.Minute, time.Second, 2 * time.Hour} { // reminded, back and on again, too late
		elapse(d)
		_, err := r.Step(ctx, late)
		must(err)
	}
	waits := start(4)
	_, err = r.Stop(ctx, fork(waits), runner.Stopping{Note: "no more", Actor: actor})
	must(err)
}

func by(id string) *session.Actor {
	return &session.Actor{Subject: "local:" + id, Method: "local", Humans: []string{id}}
}

// roundOf returns the id of a round.
func roundOf(ctx context.Context, r *runner.Runner, id specialist.SessionID, round int32) string {
	s, err := r.Session(ctx, id)
	must(err)
	key := s.Key()
	key.Round, key.Attempt = round, 0
	return key.ID()
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
	pay(ctx, r, func(d time.Duration) { now = now.Add(d) })
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
	s, err := r.Start(ctx, m, runner.StartOptions{Meta: json.RawMessage(meta), Actor: by("op")})
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
