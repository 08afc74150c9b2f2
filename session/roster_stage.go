package session

import (
	"cmp"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/specialist"
)

// A Collapse is how far one state of a machine has come. The zero Collapse is at
// the beginning: calibrating.
type Collapse struct {
	Stage       trust.Stage        `json:"stage"` // "" stands for calibrating
	Since       specialist.Time    `json:"since"`
	Place       int64              `json:"place"`                 // Lesson.Seq when the stage began
	Certificate *trust.Certificate `json:"certificate,omitempty"` // of the champion
	Archived    int64              `json:"archived,omitempty"`    // Lesson.Seq up to which evidence for champions is archived
	Trials      int64              `json:"trials,omitempty"`      // candidates tested on what is archived
	Failures    int64              `json:"failures,omitempty"`    // of the champion, in a row
	Frozen      bool               `json:"frozen,omitempty"`      // nobody is promoted
	Held        bool               `json:"held,omitempty"`        // a human sent it back: humans decide until the cool-down is over
	Reason      string             `json:"reason,omitempty"`      // of the last change
	By          string             `json:"by,omitempty"`          // the engine, or the human who made the last change
}

// StageOf returns the stage.
func (c Collapse) StageOf() trust.Stage { return cmp.Or(c.Stage, trust.Calibrating) }

// With returns c after an event of the machine's log.
func (c Collapse) With(e RosterEvent) Collapse {
	switch e.Kind {
	case KindStage:
		next := *e.Stage
		next.Since, next.Frozen = e.At, c.Frozen
		return next
	case KindFrozen:
		c.Frozen, c.By, c.Reason = true, e.By, e.Reason
	case KindReleased:
		c.Frozen, c.By, c.Reason = false, e.By, e.Reason
	case KindChampionFailed:
		c.Failures++
	case KindChampionAnswered:
		c.Failures = 0
	}
	return c
}
