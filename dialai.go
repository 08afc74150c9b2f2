// Package dialai is a multi-agent consensus state-machine engine, and this is its front
// door for Go programs: all that a program needs in its first hour.
//
// A program opens an [Engine], loads a [Machine], starts a session of it and runs it. In
// each state the proposers that the machine declares (Go functions, webhooks, models)
// each propose one transition; an arbiter picks the winner or says that a human must
// decide. Then Run returns with the status [NeedsHuman], the question stands in
// [Engine.Inbox], and a [Ruling] by a human that the machine declares answers it:
//
//	engine, err := dialai.Open(ctx, dialai.Options{Store: "decisions.db"})
//	machine, err := dialai.Load("review.yaml")
//	session, err := engine.Start(ctx, machine, nil)
//	session, err = engine.Run(ctx, session.ID)
//
// The example embed is a whole program. What is not here is in the packages behind it:
// [Engine.Runner] has everything that an engine can do, packages explain and report say
// why it decided so and how a machine is doing, package cli is the program
// dialai, which may be built with Go functions of one's own, and ARCHITECTURE.md says
// how the packages fit together.
package dialai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/internal/files"
	"github.com/dialai/dialai/internal/packs"
	"github.com/dialai/dialai/llm"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/strategies"
	"github.com/dialai/dialai/webhook"
)

// What an engine works on, under the names that a program needs.
type (
	// A Machine is a checked machine file. It never changes.
	Machine = machine.Machine
	// A Session is one run of a machine, as of one moment. It never changes: what is
	// done with it returns another.
	Session = session.Session
	// A SessionID names a session for as long as its store lasts.
	SessionID = specialist.SessionID
	// A SpecialistID names somebody who takes part, a human among them.
	SpecialistID = machine.SpecialistID
	// A Status says what a session is doing.
	Status = session.Status
	// A Question is an open round as the human who may decide it sees it.
	Question = runner.Question
	// A Ruling is a human's word on a question: what it is about, who rules, and the
	// transition that is to be executed.
	Ruling = runner.Ruling

	// A ProposerFunc proposes one of the transitions of a Request.
	ProposerFunc = specialist.ProposerFunc
	// A Request is what a proposer is asked; [specialist.Question.Choose] answers it.
	Request = specialist.Question
	// An Answer is what a proposer says.
	Answer = specialist.Answer

	// An ArbiterFunc picks the winner of a round, or nobody.
	ArbiterFunc = arbiter.Func
	// A Round is what an arbiter decides.
	Round = arbiter.Round
	// A Decision is what an arbiter says: [Elect] or [NoWinner].
	Decision = arbiter.Decision
)

// What a session may be doing.
const (
	Running    = session.Running    // Run goes on with it
	NeedsHuman = session.NeedsHuman // it waits for a Ruling
	Completed  = session.Completed  // it has reached the goal
	Stopped    = session.Stopped    // a guard, a limit or a human has stopped it
	Failed     = session.Failed     // it cannot go on
)

// Elect returns the decision that the vote at an index of [Round].Votes wins.
func Elect(vote int, reasoning string) Decision { return arbiter.Elect(vote, reasoning) }

// NoWinner returns the decision that nobody wins, so that a human decides.
func NoWinner(reasoning string) Decision { return arbiter.None(reasoning) }

// Options say how an engine is opened. The zero value keeps sessions in memory, knows no
// Go function, and reaches webhooks and models by the environment of the process.
type Options struct {
	// Store is the path of a SQLite file that keeps everything; it is made if it is not
	// there. "" keeps it in memory, until Close.
	Store string
	// Proposers and Arbiters are Go functions, under the names by which machine files
	// name them (strategyFn).
	Proposers map[string]ProposerFunc
	Arbiters  map[string]ArbiterFunc
	// Lookup returns a variable of the environment: tokens, keys and the addresses that
	// may be called, as `dialai help environment` lists them. nil means os.LookupEnv.
	Lookup func(name string) (value string, set bool)
}

// An Engine runs sessions. It may be used concurrently, and many engines, in many
// processes, may share a store.
type Engine struct {
	runner *runner.Runner
	store  interface {
		session.Store
		io.Closer
	}
}

// Open opens an engine. It must be closed.
func Open(ctx context.Context, o Options) (*Engine, error) {
	if o.Lookup == nil {
		o.Lookup = os.LookupEnv
	}
	hooks, err := webhook.FromEnvironment(o.Lookup)
	if err != nil {
		return nil, err
	}
	models, err := llm.FromEnvironment(o.Lookup)
	if err != nil {
		return nil, err
	}
	e := &Engine{store: store.NewMemory()}
	if o.Store != "" {
		if e.store, err = store.OpenSQLite(ctx, o.Store, store.SQLiteOptions{}); err != nil {
			return nil, err
		}
	}
	models.Audit = e.store.AppendAudit
	client := llm.New(models)
	var registry strategies.Registry
	for name, f := range o.Proposers {
		registry = registry.WithProposer(name, f)
	}
	for name, f := range o.Arbiters {
		registry = registry.WithArbiter(name, f)
	}
	e.runner, err = runner.New(runner.Config{
		Store: e.store, Resolver: strategies.Resolvers{registry, webhook.New(hooks), client}, Prices: llm.Prices(),
	})
	if err != nil {
		return nil, errors.Join(err, e.store.Close())
	}
	return e, nil
}

// Close gives up what the engine holds, and closes its store.
func (e *Engine) Close() error { return errors.Join(e.runner.Close(), e.store.Close()) }

// Runner returns what the engine drives its sessions with, which can do more.
func (e *Engine) Runner() *runner.Runner { return e.runner }

// Load reads a machine file, JSON or YAML. A file of guards that it names is read from
// its folder. The error of a file that is not valid is a [*machine.Error] with the place
// of every problem.
func Load(path string) (*Machine, error) {
	data, err := files.Read(path, files.Machine)
	if err != nil {
		return nil, err
	}
	return parse(path, data, func(name string) ([]byte, error) {
		return files.ReadInside(filepath.Dir(path), name, files.Guards)
	})
}

// Parse reads the text of a machine file. Its name is used for messages, and its
// extension tells JSON from YAML. It must not name other files.
func Parse(name string, text []byte) (*Machine, error) {
	return parse(name, text, func(file string) ([]byte, error) {
		return nil, fmt.Errorf("%s is another file, and only Load reads files", file)
	})
}

func parse(name string, text []byte, include func(string) ([]byte, error)) (*Machine, error) {
	checks := runner.Checks()
	checks.Model, checks.Secret, checks.Include = llm.CheckModel, packs.HoldsSecret, include
	return machine.Parse(name, text, checks)
}

// Start begins a session. input, if it is not nil, is what the session is about: a value
// that encoding/json can encode.
func (e *Engine) Start(ctx context.Context, m *Machine, input any) (*Session, error) {
	var o runner.StartOptions
	if input != nil {
		var err error
		if o.Meta, err = json.Marshal(input); err != nil {
			return nil, fmt.Errorf("the input of the session: %w", err)
		}
	}
	return e.runner.Start(ctx, m, o)
}

// Run goes on with a session until it waits for a human or for an answer that comes
// later, or has ended. The error says why it could not go on; a session that stopped,
// failed or needs a human is none.
func (e *Engine) Run(ctx context.Context, id SessionID) (*Session, error) {
	result, err := e.runner.Run(ctx, id, runner.RunOptions{})
	return result.Session, err
}

// Decide executes what a human rules, and teaches the engine who was right; Run then
// goes on. A ruling that must wait for another human's is recorded. What may not be done
// is an error, and then nothing is recorded.
func (e *Engine) Decide(ctx context.Context, r Ruling) (*Session, error) {
	result, err := e.runner.Decide(ctx, r)
	if err == nil && !result.Executed && !result.Recorded {
		err = fmt.Errorf("not executed: %s", result.GuardReason)
	}
	return result.Session, err
}

// Inbox returns the questions that wait for a human, those that are overdue in front, then
// what has waited longest, as a viewer sees them: a human's id, or "" for nobody in
// particular.
func (e *Engine) Inbox(ctx context.Context, viewer SpecialistID) ([]Question, error) {
	questions, _, err := e.runner.Inbox(ctx, session.ListQuery{}, viewer)
	return questions, err
}

// Session returns a session as it stands now.
func (e *Engine) Session(ctx context.Context, id SessionID) (*Session, error) {
	return e.runner.Session(ctx, id)
}

// History returns what was executed in a session, in order.
func (e *Engine) History(ctx context.Context, id SessionID) ([]session.TransitionRecord, error) {
	s, err := e.Session(ctx, id)
	if err != nil {
		return nil, err
	}
	return s.View().History, nil
}
