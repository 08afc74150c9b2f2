package tui

import (
	"cmp"
	"fmt"
	"time"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/undertaking"
)

// The voice says what is going on in a fixed line, and beside it stands the fact. The first line of
// the table whose condition holds is said.

// A voice is one line: when it is said, and the fact.
type voice struct {
	line string
	fact func(n Now) (fact string, holds bool)
}

// patience is after how long of silence it is asked for.
const patience = time.Minute

var voices = []voice{
	{"It is done.", func(n Now) (string, bool) {
		return fmt.Sprintf("%s, $%s spent", n.Session.State.Name, n.Session.Spent().Money), n.Session.Status == session.Completed && !n.Session.State.Final
	}},
	{"Speak again, or depart.", func(n Now) (string, bool) {
		return n.Session.ReasonFor("owner"), !n.Session.Status.Live() || n.Session.Status == session.NeedsHuman && !undertaking.WaitsForOwner(n.Session)
	}},
	{"Patience.", waitsLong},
	{"Context thins.", func(n Now) (string, bool) {
		w := bound(n.State)
		if w == nil || w.Level == "" || n.State.Name == "checking" {
			return "", false
		}
		return fmt.Sprintf("%s, hand-over at %d", percent(w), cmp.Or(w.Hard, 85)), true
	}},
	{"Speak, mortal.", func(n Now) (string, bool) {
		return "Enter says it, F1 helps", n.State.Name == "briefing" && len(n.Session.History()) == 0
	}},
	{"So it shall be.", func(n Now) (string, bool) {
		return "the plan is agreed: " + payload(n.Session, "plan", "understanding"), n.State.Last.Transition == "assent"
	}},
	{"Another is summoned.", func(n Now) (string, bool) {
		w := bound(n.State)
		if w == nil || w.Number < 2 || n.State.Name != "onboarding" && n.State.Name != "aligning" && w.Turns > 0 {
			return "", false
		}
		return fmt.Sprintf("number %d; the one before: %s", w.Number, n.State.Workers[w.Number-2].Gone), true
	}},
	{"The weaving begins.", func(n Now) (string, bool) {
		w := bound(n.State)
		if w == nil || w.Number != 1 || n.State.Last.Transition != "begin" {
			return "", false
		}
		return nameOf(w) + ", " + w.Agent, true
	}},
	{"The thread continues.", func(n Now) (string, bool) {
		return currentTask(n.State), screenOf(n) == weaving
	}},
}

// waitsLong says what is waited for that takes long: a provider that is tried again, an agent that
// is silent or being woken.
func waitsLong(n Now) (string, bool) {
	for _, w := range sessions(n.State) {
		switch silent := n.At.Sub(w.Heard.Time()); {
		case w.Gone != "":
		case w.Retry != nil:
			return fmt.Sprintf("the provider failed (%s), attempt %d of %d", w.Retry.Reason, w.Retry.Attempt, w.Retry.Max), true
		case w.Turn && silent > patience:
			return fmt.Sprintf("%s has said nothing for %s", nameOf(w), short(silent)), true
		case !w.Open && w.Failures > 0 && w.As == "orchestrator" && w.Number == n.State.Bound:
			return fmt.Sprintf("%s is woken, attempt %d", nameOf(w), w.Failures), true
		}
	}
	return "", false
}

// say returns the voice's line and the fact.
func say(n Now) (line, fact string) {
	if n.Session == nil {
		return "Speak, mortal.", "say what is to be done"
	}
	for _, v := range voices {
		if fact, holds := v.fact(n); holds {
			return v.line, fact
		}
	}
	return "", ""
}

// currentTask is what is being worked on.
func currentTask(u undertaking.State) string {
	for _, t := range u.Tasks {
		if t.Status == "active" {
			return t.Text
		}
	}
	if w := bound(u); w != nil && w.Tool != "" {
		return w.Tool
	}
	return ""
}

func percent(w *undertaking.Worker) string {
	if pct := w.Usage.Percent(agent.Ceiling); pct >= 0 {
		return fmt.Sprintf("%d%%", pct)
	}
	return "--"
}
