package undertaking

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Kinds of the agent_log that are no events of an agent.
const (
	kindSaid      = "said"      // a human said something
	kindTold      = "told"      // a worker has it
	kindSubmitted = "submitted" // the move of a turn
	kindCharge    = "charge"    // what a turn has cost
	kindCrossed   = "crossed"   // a level of the context
	kindNoticed   = "noticed"   // the worker was told of it
	kindTask      = "task"
	kindNote      = "note"
	kindSpawn     = "spawn"    // a subagent may start
	kindRefused   = "refused"  // the engine does not take the move of a turn
	kindReleased  = "released" // a worker was let go, and why
	kindHost      = "host"     // a process has begun to drive the undertaking
	kindHalted    = "halted"   // the undertaking gets nowhere, and is stopped
)

// An entry is one line of one of the two logs of an undertaking.
type entry struct {
	Agent bool // of the agent_log, else of the session's log
	Seq   int64
	At    specialist.Time
	Kind  string
	Data  json.RawMessage
}

// entryOf returns the entry that an event of the agent_log is.
func entryOf(e session.AgentEvent) entry {
	return entry{Agent: true, Seq: e.Seq, At: e.At, Kind: e.Kind, Data: e.Data}
}

// fold returns what follows from one more line. It is pure, and changes nothing that s refers
// to. Lines of each log come in their order; between the two it does not matter which comes
// first. Kinds that it does not know it skips, and members that it cannot read are missing.
func fold(s State, e entry) State {
	s.At = max(s.At, e.At)
	if !e.Agent {
		s.Seq = e.Seq
		if fold := ofSession[e.Kind]; fold != nil {
			fold(&s, e)
		}
		return s
	}
	s.AgentSeq = max(s.AgentSeq, e.Seq) // 0 until it is appended
	if fold := ofAgents[e.Kind]; fold != nil {
		var about who
		_ = json.Unmarshal(e.Data, &about)
		fold(&s, about, e)
	}
	return s
}

// A who names an agent session, which an entry of the agent_log is about.
type who struct {
	As     string `json:"as,omitempty"`
	Number int    `json:"number,omitempty"`
}

// change gives f an agent session to change, if it is there.
func (s *State) change(a who, at specialist.Time, f func(*Worker)) {
	if s.agent(a) == nil {
		return
	}
	s.setSessions(a.As, slices.Clone(s.sessions(a.As)))
	w := s.agent(a)
	w.Heard, w.Retry = max(w.Heard, at), nil
	f(w)
}

func (s *State) setSessions(as string, list []Worker) {
	if as == orchestrator {
		s.Workers = list
		return
	}
	if s.Others = maps.Clone(s.Others); s.Others == nil {
		s.Others = map[string][]Worker{}
	}
	s.Others[as] = list
}

func read[T any](data json.RawMessage) (v T) {
	_ = json.Unmarshal(data, &v) // what cannot be read is missing
	return v
}

// ofSession has what follows from the events of the session's log.
var ofSession = map[string]func(*State, entry){
	session.KindCreated:     func(s *State, e entry) { s.Name = read[struct{ State string }](e.Data).State },
	session.KindRoundOpened: foldRound,
	session.KindExecuted:    foldExecuted,
	session.KindProposed:    foldHandedIn,
	session.KindAskFailed:   foldHandedIn,
	session.KindDiscarded:   foldHandedIn,
	session.KindEnded:       func(s *State, e entry) { s.Ended = read[struct{ Status string }](e.Data).Status },
	session.KindResumed:     func(s *State, _ entry) { s.Ended = "" },
}

func foldRound(s *State, e entry) {
	opened := read[struct {
		State string
		Round int32
	}](e.Data)
	if opened.State != "" {
		s.Name = opened.State
	}
	s.Round = opened.Round
}

// foldHandedIn counts what an answer, or its end, has handed in.
func foldHandedIn(s *State, e entry) {
	d := read[struct {
		SpecialistID                    string
		CostUSD                         exact.Money
		NumInputTokens, NumOutputTokens int64
	}](e.Data)
	s.HandedIn = add(s.HandedIn, d.SpecialistID, Cost{d.CostUSD, d.NumInputTokens, d.NumOutputTokens})
}

func add(m map[string]Cost, id string, c Cost) map[string]Cost {
	if c == (Cost{}) {
		return m
	}
	if m = maps.Clone(m); m == nil {
		m = map[string]Cost{}
	}
	m[id] = m[id].plus(c)
	return m
}

// foldExecuted: a move was executed.
func foldExecuted(s *State, e entry) {
	d := read[struct {
		SpecialistID, FromState, ToState, TransitionName string
		IsHuman                                          bool
		MetaJSON                                         json.RawMessage
	}](e.Data)
	s.Name = d.ToState
	s.Last = Move{By: d.SpecialistID, From: d.FromState, Transition: d.TransitionName, Payload: d.MetaJSON, Human: d.IsHuman, Round: s.Round}
	if s.Moved = maps.Clone(s.Moved); s.Moved == nil {
		s.Moved = map[string]int32{}
	}
	s.Moved[d.SpecialistID] = s.Round
	if letsGo(d.TransitionName, d.ToState) {
		s.Left = Move{By: d.SpecialistID, From: d.FromState, Transition: d.TransitionName, Human: d.IsHuman, Round: s.Round}
	}
	if works(d.FromState) {
		s.Worked = s.Round
	}
	if to := addressee(d.FromState, d.TransitionName, d.ToState); to != "" {
		s.Mail = append(slices.Clone(s.Mail), Letter{s.Last, to})
	}
	switch d.TransitionName {
	case handOff, complete:
		s.keepRecord(d.MetaJSON, s.Round)
	case "lost":
		s.keepRecord(read[struct{ Record json.RawMessage }](d.MetaJSON).Record, s.Round)
	case "passed", "failed":
		s.Passed = d.TransitionName == "passed"
	}
	if d.TransitionName == "sound" || d.TransitionName == "passed" && d.ToState == "ruling" {
		s.verify()
	}
}

// keepRecord keeps the record of a round's move, if it is the newest.
func (s *State) keepRecord(record json.RawMessage, round int32) {
	if lists := read[struct{ Accomplished, Remaining []string }](record); lists.Accomplished == nil && lists.Remaining == nil {
		return // a human needs no record
	}
	if round >= s.RecordRound {
		s.Record, s.RecordRound = record, round
	}
}

// verify marks the tasks that are done as verified: a check has passed, or they were judged sound.
func (s *State) verify() {
	s.Tasks = slices.Clone(s.Tasks)
	for i := range s.Tasks {
		if s.Tasks[i].Status == "done" {
			s.Tasks[i].Status = "verified"
		}
	}
}

// ofAgents has what follows from the entries of the agent_log.
var ofAgents = map[string]func(*State, who, entry){
	string(agent.KindOpened):     foldOpened,
	string(agent.KindTurn):       foldTurn,
	string(agent.KindDone):       foldDone,
	string(agent.KindExited):     foldExited,
	string(agent.KindUsage):      foldUsage,
	string(agent.KindToolUse):    foldTool,
	string(agent.KindToolDone):   func(s *State, a who, e entry) { s.change(a, e.At, func(w *Worker) { w.Tool = "" }) },
	string(agent.KindSubagent):   foldSubagent,
	string(agent.KindText):       func(s *State, a who, e entry) { s.change(a, e.At, func(*Worker) {}) },
	string(agent.KindRetry):      foldRetry,
	string(agent.KindCompaction): foldCompaction,
	kindSubmitted:                foldSubmitted,
	kindLettered: func(s *State, a who, e entry) {
		s.change(a, e.At, func(w *Worker) { w.Began = max(w.Began, read[turnBegan](e.Data).Round) })
	},
	kindVisit:    foldVisit,
	kindNotice:   foldNotice,
	kindBatch:    foldBatch,
	kindCharge:   foldCharge,
	kindCrossed:  foldCrossed,
	kindNoticed:  func(s *State, a who, e entry) { s.change(a, e.At, func(w *Worker) { w.Notice = "" }) },
	kindReleased: foldReleased,
	kindHost:     func(s *State, _ who, e entry) { s.Host = read[struct{ Owner string }](e.Data).Owner },
	kindHalted:   foldHalted,
	kindSaid:     foldSaid,
	kindTold:     foldTold,
	kindTask:     foldTask,
	kindSpawn: func(s *State, a who, e entry) {
		s.change(a, e.At, func(w *Worker) { w.Spawned++; w.SpawnedNow++ })
	},
	kindRefused: func(s *State, a who, e entry) { s.change(a, e.At, func(w *Worker) { w.Candidate = nil }) },
}

func foldOpened(s *State, a who, e entry) {
	d := read[struct {
		agent.Opened
		HeadBefore, TreeBefore string
		Since, Told            int32
		Fresh                  bool
		Hard                   int
	}](e.Data)
	if list := s.sessions(a.As); a.As != "" && a.Number == len(list)+1 {
		s.setSessions(a.As, append(slices.Clone(list), Worker{As: a.As, Number: a.Number, Agent: d.Agent, HeadBefore: d.HeadBefore, TreeBefore: d.TreeBefore, Since: d.Since, Told: d.Told}))
		if a.As == orchestrator {
			s.Bound = a.Number
		}
	}
	s.change(a, e.At, func(w *Worker) {
		w.AgentSession, w.Model, w.Open, w.Turn, w.Tool, w.Subagents, w.Lost = d.AgentSession, d.Model, true, false, "", nil, ""
		if w.Hard = d.Hard; d.Fresh {
			w.Failures = 0
		}
		if w.Opened++; w.Opened > 1 {
			s.meets(a, "its process was started again")
		}
		if d.Window > 0 {
			w.Usage.Window, w.Usage.Ceiling = d.Window, d.Ceiling
		}
	})
}

// meets notes what befell a worker, until the manager has it.
func (s *State) meets(a who, what string) {
	if a.As == orchestrator {
		s.Met = append(slices.Clone(s.Met), a.String()+": "+what)
	}
}

// foldTurn: a turn began, with all that was said to its session until then.
func foldTurn(s *State, a who, e entry) {
	round := read[struct{ Round int32 }](e.Data).Round
	s.change(a, e.At, func(w *Worker) { w.Turn, w.SpawnedNow, w.Candidate, w.Began = true, 0, nil, max(round, w.Told) })
	if a.As == manager {
		s.MetTold = len(s.Met)
	}
}

func foldDone(s *State, a who, e entry) {
	d := read[agent.Done](e.Data)
	s.change(a, e.At, func(w *Worker) {
		w.Turn, w.Tool, w.Subagents = false, "", nil
		w.Turns++
		if d.Outcome == agent.Finished {
			w.Finished++
			w.Failures, w.Told = 0, w.Began
			s.forget(a, w.Told)
		}
	})
	if d.Turn > 0 {
		s.Taken = append(slices.Clone(s.Taken), d.Turn)
	}
}

// forget drops what an agent session has been told for good.
func (s *State) forget(a who, upTo int32) {
	s.Mail = slices.DeleteFunc(slices.Clone(s.Mail), func(m Letter) bool { return m.To == a.As && m.Round <= upTo })
	if a.As == manager {
		s.Met, s.MetTold = slices.Clone(s.Met[s.MetTold:]), 0
	}
}

func foldExited(s *State, a who, e entry) {
	d := read[struct {
		Closed, Host bool
		Lost         string
	}](e.Data)
	if !d.Closed {
		s.meets(a, "its process went")
	} else if d.Host {
		s.meets(a, "the process that drove it went")
	}
	s.change(a, e.At, func(w *Worker) {
		if w.Turn && d.Closed { // by us, or with us: the turn is made again, and so is its move
			w.Candidate = nil
		}
		w.Open, w.Turn, w.Tool, w.Subagents = false, false, "", nil
		if w.Lost = d.Lost; !d.Closed {
			w.Failures++
		}
	})
}

func foldRetry(s *State, a who, e entry) {
	r := read[agent.Retry](e.Data)
	s.change(a, e.At, func(w *Worker) { w.Retry = &r })
}

func foldCompaction(s *State, a who, e entry) {
	s.change(a, e.At, func(w *Worker) { w.Compaction = true })
	s.meets(a, "its context was to be compacted")
}

func foldUsage(s *State, a who, e entry) {
	u := read[agent.Usage](e.Data)
	s.change(a, e.At, func(w *Worker) { w.Usage = u })
}

func foldTool(s *State, a who, e entry) {
	d := read[agent.ToolUse](e.Data)
	s.change(a, e.At, func(w *Worker) {
		if d.Parent != "" {
			return
		}
		w.Tool = d.Tool
		if w.Crossed.Hard || w.Compaction {
			w.Uses++
		}
	})
}

func foldSubagent(s *State, a who, e entry) {
	d := read[agent.Subagent](e.Data)
	s.change(a, e.At, func(w *Worker) {
		if d.Status == "" {
			w.Subagents = append(slices.Clone(w.Subagents), d.Description)
		} else if i := slices.Index(w.Subagents, d.Description); i >= 0 {
			w.Subagents = slices.Delete(slices.Clone(w.Subagents), i, i+1)
		}
	})
}

func foldSubmitted(s *State, a who, e entry) {
	m := read[Move](e.Data)
	m.By = a.As
	s.change(a, e.At, func(w *Worker) {
		w.Candidate = &m
		if c := read[struct{ Continuity json.RawMessage }](m.Payload).Continuity; c != nil {
			w.Continuity = c
		}
	})
}

func foldCharge(s *State, a who, e entry) {
	c := read[Cost](e.Data)
	s.Charged = add(s.Charged, a.As, c)
	s.Dearest = max(s.Dearest, c.USD)
}

func foldCrossed(s *State, a who, e entry) {
	d := read[struct {
		Level   agent.Level
		Crossed agent.Crossed
		Notice  string
	}](e.Data)
	s.change(a, e.At, func(w *Worker) {
		w.Crossed = d.Crossed
		if d.Level != "" {
			w.Level, w.Notice, w.Uses = d.Level, d.Notice, 0
		}
	})
}

// foldReleased: a worker was let go. Churn counts those in a row that left nothing behind.
func foldReleased(s *State, a who, e entry) {
	d := read[struct {
		Reason string
		Idle   bool
		Record json.RawMessage
		Round  int32
	}](e.Data)
	s.keepRecord(d.Record, d.Round)
	s.change(a, e.At, func(w *Worker) { w.Gone = d.Reason })
	if a.As != orchestrator {
		return
	}
	if s.Bound == a.Number {
		s.Bound = 0
	}
	if s.Churn++; !d.Idle {
		s.Churn = 0
	}
}

// foldHalted: it was stopped for those who left in a row. Whoever resumes it has more of them tried.
func foldHalted(s *State, _ who, _ entry) {
	s.Churn, s.Halted = 0, len(s.sessions(manager))
}

func foldSaid(s *State, _ who, e entry) {
	s.Words = append(slices.Clone(s.Words), read[Word](e.Data))
}

func foldTold(s *State, a who, e entry) {
	t := read[hearing](e.Data)
	s.Words = slices.Clone(s.Words)
	for i := range s.Words {
		if slices.Contains(t.Words, s.Words[i].ID) {
			s.Words[i].Told, s.Words[i].Turn = a.Number, t.Turn
		}
	}
}

func foldTask(s *State, a who, e entry) {
	t := read[Task](e.Data)
	t.Number = a.Number
	s.Tasks = slices.Clone(s.Tasks)
	if i := slices.IndexFunc(s.Tasks, func(o Task) bool { return o.ID == t.ID }); i >= 0 {
		s.Tasks[i] = t
	} else {
		s.Tasks = append(s.Tasks, t)
	}
}

func itoa(n int) string { return strconv.Itoa(n) }
