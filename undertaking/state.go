package undertaking

import (
	"encoding/json"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/batch"
	"github.com/dialai/dialai/specialist"
)

// What an undertaking has come to, as its two logs tell it: the session's, with the moves, and
// its agent_log, with what the agents did between them. State is a plain value, and fold the
// only way it changes, live and after a restart: whoever acts first appends to a log, and then
// folds what was appended. So a process that is killed between any two lines loses nothing
// that was said, and its successor knows the same.

// Specialists of an undertaking, by their ids, which stay the same over all agent sessions:
// what is learned of a worker is learned of all workers.
const (
	manager      = "manager"
	orchestrator = "orchestrator"
	verifierA    = "verifier-a"
	verifierB    = "verifier-b"
	engine       = "engine"
	checks       = "checks"
	owner        = "owner"
)

// A State is what an undertaking has come to. The zero State is that of one that has not
// begun.
type State struct {
	Name    string   `json:"state"` // of the session's state
	Round   int32    `json:"round"`
	Ended   string   `json:"ended,omitempty"`   // completed, stopped or failed, once it is
	Workers []Worker `json:"workers,omitempty"` // the orchestrators, by number; the first is 1
	// Others are the agent sessions of the manager and of the verifiers, by specialist, each by
	// number: a manager has a successor when it is replaced, and each verdict a verifier of its own.
	Others map[string][]Worker `json:"others,omitempty"`
	Bound  int                 `json:"bound,omitempty"` // the worker who goes on; 0 if the next one is still to be opened
	Tasks  []Task              `json:"tasks,omitempty"`
	Words  []Word              `json:"words,omitempty"`
	Last   Move                `json:"last,omitzero"`    // the newest that was executed
	Moved  map[string]int32    `json:"moved,omitempty"`  // the round of the newest move of each
	Left   Move                `json:"left,omitzero"`    // the newest that let a worker go, without its payload
	Worked int32               `json:"worked,omitempty"` // the round of the newest move of a state in which workers work
	Mail   []Letter            `json:"mail,omitempty"`   // what moves said, until whom it is for has it
	Met    []string            `json:"met,omitempty"`    // what befell workers, until the manager has it
	// Visits has how often moves were made in a row.
	Visits  map[string]visit `json:"visits,omitempty"`
	MetTold int              `json:"metTold,omitempty"` // how many of these the manager's turn began with
	Record  json.RawMessage  `json:"record,omitempty"`  // the newest, of a hand-over or a claim
	// RecordRound is the round whose move Record is of.
	RecordRound int32 `json:"recordRound,omitempty"`
	Passed      bool  `json:"passed,omitempty"` // the newest check passed
	// Charged is what each specialist's turns have cost, and HandedIn how much of that the
	// session's log has: what is left goes in with the next answer or ended ask.
	Charged  map[string]Cost `json:"charged,omitempty"`
	HandedIn map[string]Cost `json:"handedIn,omitempty"`
	Dearest  exact.Money     `json:"dearest,omitempty"` // the costliest turn so far
	Taken    []int           `json:"taken,omitempty"`   // lines of a scripted agent that were played
	Churn    int             `json:"churn,omitempty"`   // hand-overs in a row with nothing to show
	Halted   int             `json:"halted,omitempty"`  // how many managers there were when it was last stopped for those who left in a row
	Host     string          `json:"host,omitempty"`    // the owner, as the store has it, that drives it or did last
	AgentSeq int64           `json:"agentSeq,omitempty"`
	Seq      int64           `json:"seq,omitempty"`
	At       specialist.Time `json:"at,omitempty"` // of the newest entry
}

// A Cost is what turns have cost.
type Cost struct {
	USD exact.Money `json:"usd"`
	In  int64       `json:"in"` // tokens, what was read from a cache and written to it included
	Out int64       `json:"out"`
}

func (c Cost) plus(d Cost) Cost  { return Cost{c.USD + d.USD, c.In + d.In, c.Out + d.Out} }
func (c Cost) minus(d Cost) Cost { return Cost{c.USD - d.USD, c.In - d.In, c.Out - d.Out} }

// A Worker is one agent session: of the orchestrator, who works on the task, of the manager, or
// of a verifier.
type Worker struct {
	As           string          `json:"as"`
	Number       int             `json:"number"`
	Agent        string          `json:"agent"`
	AgentSession string          `json:"sessionId"` // the agent's own id
	Model        string          `json:"model,omitempty"`
	Gone         string          `json:"reason,omitempty"`    // why it was let go: complete, soft, hard, compaction, released, lost; "" of the bound one
	Opened       int             `json:"opened"`              // how often; each is a process
	Open         bool            `json:"open,omitempty"`      // its process has not exited, as far as the log says
	Turn         bool            `json:"turn,omitempty"`      // a turn runs
	Turns        int             `json:"turns"`               // that have ended
	Finished     int             `json:"finished"`            // of these, those that were not cut off
	Failures     int             `json:"failures,omitempty"`  // ends of its process since its last completed turn
	Lost         string          `json:"lost,omitempty"`      // why it cannot go on
	Candidate    *Move           `json:"candidate,omitempty"` // the move of the turn, which is handed in when it ends
	Usage        agent.Usage     `json:"usage"`
	Crossed      agent.Crossed   `json:"crossed,omitzero"`
	Hard         int             `json:"hard,omitempty"`   // at how many per cent it hands over; 0 if the log does not say
	Level        agent.Level     `json:"level,omitempty"`  // the strictest it was told of
	Notice       string          `json:"notice,omitempty"` // what it is still to be told
	Compaction   bool            `json:"compaction,omitempty"`
	Spawned      int             `json:"spawned,omitempty"`    // subagents, in all
	SpawnedNow   int             `json:"spawnedNow,omitempty"` // in this turn
	Batches      batch.State     `json:"batches,omitzero"`     // of tool uses
	Uses         int             `json:"uses,omitempty"`       // tool uses on the main thread since the hard level
	Tool         string          `json:"tool,omitempty"`       // that runs
	Subagents    []string        `json:"subagents,omitempty"`  // that run: what they do, the newest last
	Since        int32           `json:"since,omitempty"`      // the round in which it was opened; 0 if the log does not say
	HeadBefore   string          `json:"headBefore,omitempty"`
	TreeBefore   string          `json:"treeBefore,omitempty"`
	Heard        specialist.Time `json:"heard,omitempty"`      // when it last did anything
	Retry        *agent.Retry    `json:"retry,omitempty"`      // that its provider is tried with, while it is
	Began        int32           `json:"began,omitempty"`      // the round up to which its newest turn has what was said to it
	Told         int32           `json:"told,omitempty"`       // likewise of those that finished
	Continuity   json.RawMessage `json:"continuity,omitempty"` // of a manager: what its successor must know
}

// A Letter is what a move says to an agent.
type Letter struct {
	Move
	To string `json:"to"`
}

// A Move is a transition that was proposed, or executed.
type Move struct {
	By         string          `json:"by"`
	From       string          `json:"from,omitempty"`
	Transition string          `json:"transition"`
	Payload    json.RawMessage `json:"payload,omitempty"`
	Human      bool            `json:"human,omitempty"`
	Round      int32           `json:"round,omitempty"`
}

// A Task is one piece of the work, as the worker lists it.
type Task struct {
	ID     int    `json:"id"`
	Text   string `json:"text"`
	Status string `json:"status"` // pending, active, done, verified
	Number int    `json:"number"` // of the worker who last set it
}

// A Word is what a human said while an agent worked.
type Word struct {
	ID      string         `json:"id"`
	Text    string         `json:"text"`
	By      string         `json:"by"`
	Deliver agent.Delivery `json:"deliver"`
	Told    int            `json:"told,omitempty"` // the number of the worker that has it; 0 if none has
	Turn    int            `json:"turn,omitempty"` // how many of its turns had finished when it was told
}

// sessions returns the agent sessions of a specialist, by number.
func (s *State) sessions(as string) []Worker {
	if as == orchestrator {
		return s.Workers
	}
	return s.Others[as]
}

// agent returns an agent session, nil if there is none.
func (s *State) agent(a who) *Worker {
	if list := s.sessions(a.As); a.Number >= 1 && a.Number <= len(list) {
		return &list[a.Number-1]
	}
	return nil
}

// newest returns the newest agent session of a specialist, nil if there is none.
func (s *State) newest(as string) *Worker { return s.agent(who{as, len(s.sessions(as))}) }

// bound returns the worker that goes on, nil if the next one is still to be opened.
func (s *State) bound() *Worker { return s.agent(who{orchestrator, s.Bound}) }

// manager returns the manager that goes on, nil if the next one is still to be opened.
func (s *State) manager() *Worker {
	if w := s.newest(manager); w != nil && w.Gone == "" {
		return w
	}
	return nil
}

// left returns the move that lets the bound worker go, nil if there is none: one that was
// executed since it was opened, by whomever, and whichever process saw it.
func (s *State) left() *Move {
	if w := s.bound(); w != nil && w.Since > 0 && s.Left.Round >= w.Since {
		return &s.Left
	}
	return nil
}

// due returns what a specialist's turns have cost that the session's log does not have.
func (s *State) due(id string) Cost { return s.Charged[id].minus(s.HandedIn[id]) }

// unpaid returns what the session's log does not have of all.
func (s *State) unpaid() (sum Cost) {
	for id := range s.Charged {
		sum = sum.plus(s.due(id))
	}
	return sum
}

// who names an agent session.
func (w *Worker) who() who { return who{w.As, w.Number} }

// id is how people are told of an agent session.
func (w *Worker) id() string { return w.who().String() }

// String returns how people are told of an agent session: orch-2, manager, verifier-a.
func (a who) String() string {
	switch {
	case a.As == orchestrator:
		return "orch-" + itoa(a.Number)
	case a.Number > 1:
		return a.As + "-" + itoa(a.Number)
	}
	return a.As
}

// candidate returns the move that a session's turn ended with and that was not executed yet, nil
// if there is none. A worker's move that an executed one of the engine overtook is one still; who
// judges or manages has done so of one state.
func (s *State) candidate(w *Worker) *Move {
	c := w.Candidate
	if c == nil || c.Round <= s.Moved[w.As] || w.As != orchestrator && c.From != s.Name {
		return nil
	}
	return c
}
