package agent

// A Base says what the share of a context is measured against.
type Base string

// Bases.
const (
	Ceiling Base = "ceiling" // what can be used of the window; "" is this
	Window  Base = "window"
)

// Of returns what u is measured against, in tokens; 0 if it is not known.
func (b Base) Of(u Usage) int64 {
	if b == Window {
		return u.Window
	}
	return u.Ceiling
}

// Percent returns how full a context is, in whole per cent, rounded half up; -1 if that is not
// known. It may be over 100.
func (u Usage) Percent(b Base) int {
	of := b.Of(u)
	if of <= 0 {
		return -1
	}
	return int((200*u.Used + of) / (2 * of))
}

// Levels are the shares of a context, in per cent, at which its user is warned: Soft, from
// which on the work should be brought to an end, and Hard, from which on nothing new may begin.
type Levels struct {
	Soft int `json:"soft"` // from 1 to Hard
	Hard int `json:"hard"` // up to 100
}

// A Level is one of [Levels].
type Level string

// Levels that can be crossed.
const (
	Soft Level = "soft"
	Hard Level = "hard"
)

// rearmed is how many points below a level a share must come for the level to be crossed again.
const rearmed = 5

// Crossed is the state of levels: which have been crossed and not been left again. The zero
// value is that of an empty context.
type Crossed struct {
	Soft bool `json:"soft,omitempty"`
	Hard bool `json:"hard,omitempty"`
}

// Cross tells what follows from a new value: the strictest level that used tokens of a base of
// `of` tokens cross now, "" for none, and the state after it. It counts in integers, so that
// 70 per cent is neither a bit more nor less. Crossing Hard crosses Soft with it, so a jump past
// both is told once. Where of is not known (0 or less) nothing is crossed.
func (l Levels) Cross(c Crossed, used, of int64) (Level, Crossed) {
	if of <= 0 {
		return "", c
	}
	reaches := func(level int) bool { return 100*used >= int64(level)*of }
	stays := func(level int) bool { return 100*used > int64(level-rearmed)*of }
	c.Soft = c.Soft && stays(l.Soft)
	c.Hard = c.Hard && stays(l.Hard)
	switch {
	case !c.Hard && reaches(l.Hard):
		return Hard, Crossed{Soft: true, Hard: true}
	case !c.Soft && reaches(l.Soft):
		c.Soft = true
		return Soft, c
	}
	return "", c
}
