package undertaking

import (
	"time"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/exact"
)

// Settings are the limits that no machine file and no flag names. The zero value of each
// means its default.
type Settings struct {
	Levels      agent.Levels  // of a worker's context, in per cent: 70 and 85
	GraceUses   int           // tool uses from the hard level to the hand-over: 8
	GraceTime   time.Duration // likewise: 5 minutes
	RecordTime  time.Duration // a turn may take that only writes the record: 3 minutes
	CheckTime   time.Duration // a check may take: 10 minutes
	Prompts     int           // a worker is prompted again that ended its turn without a move: 2 times
	Wakes       int           // an agent is opened again that has gone: 3 times
	SpawnsTurn  int           // subagents in a turn: 8
	SpawnsAll   int           // subagents of an agent session: 40
	FirstTurn   exact.Money   // what the first turn is thought to cost: $0.50
	Quiet       time.Duration // without a sign of life until an agent is asked whether it is there: 2 minutes
	Silence     time.Duration // until it is given up: 10 minutes; half as long again if it cannot be asked
	SilenceTool time.Duration // likewise, while a tool runs: 30 minutes
	Poll        time.Duration // between looks at the store: 1 second
}

func or[T comparable](v, def T) T {
	if zero := *new(T); v == zero {
		return def
	}
	return v
}

// withDefaults returns s with the defaults in place of zero values.
func (s Settings) withDefaults() Settings {
	return Settings{
		Levels: or(s.Levels, agent.Levels{Soft: 70, Hard: 85}), GraceUses: or(s.GraceUses, 8), GraceTime: or(s.GraceTime, 5*time.Minute),
		RecordTime: or(s.RecordTime, 3*time.Minute), CheckTime: or(s.CheckTime, 10*time.Minute), Prompts: or(s.Prompts, 2), Wakes: or(s.Wakes, 3),
		SpawnsTurn: or(s.SpawnsTurn, 8), SpawnsAll: or(s.SpawnsAll, 40), FirstTurn: or(s.FirstTurn, exact.Dollar/2),
		Quiet: or(s.Quiet, 2*time.Minute), Silence: or(s.Silence, 10*time.Minute), SilenceTool: or(s.SilenceTool, 30*time.Minute), Poll: or(s.Poll, time.Second),
	}
}
