package verdict

import (
	"encoding/json"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/specialist"
)

// A Step is one candidate transition, or one step of any task. The zero value of
// a member means that it is absent.
type Step struct {
	Task        string // the session's id
	Number      int64  // of this step from 1, if the caller counts
	FromState   string
	State       string // the state it leads to
	Transition  string
	Output      string // the winner's reasoning
	HasOutput   bool   // Output counts though it may be empty
	Canned      bool   // Output is a fixed text of a program, so repeating it says nothing
	MetaJSON    json.RawMessage
	ToolCalls   []ToolCall
	Model       string
	TokensIn    int64
	TokensOut   int64
	Cost        exact.Money
	CostGiven   bool // Cost is known, so no price is needed
	Attempt     int64
	Human       bool            // a human's ruling: only budget, tool and pack checks run
	SessionMeta json.RawMessage // the session's metaJson
	Context     json.RawMessage // what else the task knows, where the caller says

	// When the step is judged, when the task began, and when it last moved. 0
	// means that nobody knows; then limits of time do not count.
	At, Began, Moved specialist.Time
}

// A ToolCall is one call of a tool.
type ToolCall = specialist.ToolCall
