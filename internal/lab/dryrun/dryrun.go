// Package dryrun runs a definition once, with the real engine in memory, to show its author what
// it does. Whoever is outside this program is played by a script: services, models, agents and
// humans. Nobody is called, and nothing waits: the clock jumps to when a timer fires. The same
// script and seed come out the same, since those who are played are asked one after the other.
//
// What a run takes is bounded: [MaxSteps], [MaxTime] and [MaxSize].
package dryrun

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
)

// The bounds of a run.
const (
	MaxSteps = 1000
	MaxTime  = 5 * time.Second
	MaxSize  = 8 << 20 // of the log, in bytes
)

// Codes with which a run ends that meets a bound, beside [session.CodeStepLimit] and
// [session.CodeTimeLimit].
const CodeSizeLimit = "size_limit"

// A Config says what is run.
type Config struct {
	Machine *machine.Machine
	Meta    json.RawMessage // metaJson of the session; nil for none
	Answers []api.DryAnswer
	Seed    uint64
}

// epoch is when a run begins: the first moment of 2026, in ms.
const epoch = 1_767_225_600_000

// ErrScript is wrapped by the error about an answer that nobody could give.
var ErrScript = errors.New("the script does not fit the machine")

// errSize ends a run whose log is too large.
var errSize = errors.New("the log is too large")

// Run runs. A run that meets a bound, or comes to nothing, is no error: [api.DryRun.Status] says
// so. Errors: ErrScript, those of [runner.Runner.Start], and that of ctx.
func Run(ctx context.Context, c Config) (*api.DryRun, error) {
	script, err := newScript(&c)
	if err != nil {
		return nil, err
	}
	m, err := cast(c.Machine)
	if err != nil {
		return nil, err
	}
	p := &play{script: script, arrived: map[int32]string{}, report: &api.DryRun{MachineName: c.Machine.Name(), MachineDigest: c.Machine.Digest(), Rounds: []api.DryRound{}}}
	var secret [32]byte
	binary.BigEndian.PutUint64(secret[:], c.Seed)
	kept := &bounded{Memory: store.NewSeededMemory(secret), left: MaxSize}
	ids := rand.New(rand.NewPCG(c.Seed, 1)) //nolint:gosec // they name nothing outside
	p.r, err = runner.New(runner.Config{
		Store: kept, Resolver: script, Observer: p.observe, AllowOperator: true,
		Now: func() time.Time { return time.UnixMilli(epoch + p.now.Load()).UTC() },
		NewID: func() (id specialist.SessionID) {
			binary.BigEndian.PutUint64(id[:8], ids.Uint64())
			binary.BigEndian.PutUint64(id[8:], ids.Uint64())
			return id
		},
	})
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, MaxTime)
	defer cancel()
	err = p.all(limited, m, &c)
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case limited.Err() != nil:
		err = p.limit(session.CodeTimeLimit, fmt.Sprintf("a dry run takes at most %s", MaxTime))
	case errors.Is(err, errSize):
		err = p.limit(CodeSizeLimit, fmt.Sprintf("the log of a dry run has at most %d MiB", MaxSize>>20))
	}
	err = errors.Join(err, p.r.Close())
	if p.report.Unused = script.unused(); err != nil {
		return nil, err
	}
	return p.report, nil
}

// A play is one run under way.
type play struct {
	*script
	r      *runner.Runner
	now    atomic.Int64 // of the clock, in ms
	report *api.DryRun
	ruled  []string // who has ruled in the open round

	arrived map[int32]string // transitions that were proposed in it, by arrival
}

// starter is who starts the session: nobody who decides in it, for no name of a machine begins
// with a blank.
var starter = &session.Actor{Subject: "dry-run", Method: "dry-run", Humans: []string{" starter"}}

func (p *play) all(ctx context.Context, m *machine.Machine, c *Config) error {
	s, err := p.r.Start(ctx, m, runner.StartOptions{Meta: c.Meta, Seed: max(c.Seed, 1), Actor: starter, Arbitrated: true})
	for err == nil && s != nil {
		if p.report.Steps == MaxSteps {
			return p.limit(session.CodeStepLimit, fmt.Sprintf("a dry run takes at most %d steps", MaxSteps))
		}
		p.report.Steps++
		p.now.Add(1)
		s, err = p.step(ctx, s)
	}
	return err
}

// step takes the session a step further; nil is its end.
func (p *play) step(ctx context.Context, s *session.Session) (*session.Session, error) {
	tick, err := p.r.Step(ctx, s.ID)
	if err != nil {
		return nil, err
	}
	s = tick.Session
	switch tick.Status {
	case runner.TickHuman:
		return p.human(ctx, s)
	case runner.TickWaiting:
		return p.timer(s, runner.WaitingStatus)
	case runner.TickStopped, runner.TickFailed, runner.TickCompleted:
		return nil, p.end(s, s.Status.String())
	}
	return s, nil
}

// human has a human rule whose words are in the script. Where there is none a timer may fire.
func (p *play) human(ctx context.Context, s *session.Session) (*session.Session, error) {
	humans, declared, err := p.r.Humans(ctx, s)
	if err != nil {
		return nil, err
	}
	if !declared {
		humans = []string{runner.Operator}
	}
	if now := p.round(); now != nil && now.Human != nil {
		now.Human.Humans = humans
	}
	for _, id := range humans {
		if slices.Contains(p.ruled, id) {
			continue
		}
		said := p.answer(id, s.State.Name)
		if said == nil {
			continue
		}
		p.ruled = append(p.ruled, id)
		a, err := p.r.Decide(ctx, runner.Ruling{SessionID: s.ID, RoundID: s.Key().ID(), SpecialistID: machine.SpecialistID(id), TransitionName: said.TransitionName, Reasoning: said.Reasoning, MetaJSON: said.MetaJSON})
		if refused, ok := errors.AsType[*runner.Error](err); ok {
			p.failed(id, refused.Code, refused.Message)
			continue
		}
		if err == nil && !a.Executed && !a.Recorded {
			p.failed(id, "guard_refused", a.GuardReason)
			continue
		}
		return a.Session, err
	}
	return p.timer(s, s.Status.String())
}

// timer lets the time pass until a timer fires, and ends the run where none will.
func (p *play) timer(s *session.Session, status string) (*session.Session, error) {
	if due := int64(s.DueAt()) - epoch; s.Timer() != nil && due > p.now.Load() {
		p.now.Store(due)
		return s, nil
	}
	return nil, p.end(s, status)
}

// end says how the session ended.
func (p *play) end(s *session.Session, status string) error {
	why := s.Standing()
	p.report.CurrentState, p.report.Status, p.report.Code, p.report.Reason = s.State.Name, status, why.Code, why.Reason
	if d := s.Data(); len(d.Members()) > 0 {
		p.report.Data = d.JSON()
	}
	return nil
}

// limit says that a bound ended it.
func (p *play) limit(code, reason string) error {
	p.report.Status, p.report.Code, p.report.Reason = "limit", code, reason
	return nil
}

// A bounded store takes so many bytes of logs, and no more.
type bounded struct {
	*store.Memory
	left int
}

// Commit implements [session.Store].
func (b *bounded) Commit(ctx context.Context, c *session.Change) error {
	if b.left -= len(session.AppendEvents(nil, c.Key(), c.First, c.Events)); b.left < 0 {
		return errSize
	}
	return b.Memory.Commit(ctx, c)
}
