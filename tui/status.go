package tui

import (
	"fmt"
	"math"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/undertaking"
)

// statusLine is always there: the state, whose move it is, money and the manager's context, and
// what else fits: how it stands, since when, and retries.
func statusLine(n Now, look style, width int) string {
	if n.Session == nil {
		return "briefing" + look.dot() + "YOUR MOVE"
	}
	st := undertaking.StatusOf(n.Session, n.State, undertaking.Beside{Permissions: permissions(n.Prompts), Gone: n.Gone}, n.At)
	parts := []string{n.Session.State.Name}
	if move := whoseMove(n, st); move != "" {
		parts = append(parts, move)
	}
	parts = append(parts, money(st))
	if w := newest(n.State.Others["manager"]); w != nil && w.Gone == "" {
		parts = append(parts, "mgr "+percent(w))
	}
	if st.Standing != "over" && !strings.HasPrefix(st.Standing, "waiting") {
		parts = append(parts, st.Standing)
	}
	parts = append(parts, short(n.At.Sub(n.Session.EnteredAt().Time())))
	if w := bound(n.State); w != nil {
		parts = append(parts, w.As[:4]+" "+percent(w))
	}
	for _, w := range sessions(n.State) {
		if w.Retry != nil {
			parts = append(parts, fmt.Sprintf("retry %d/%d", w.Retry.Attempt, w.Retry.Max))
		}
	}
	line := parts[0]
	for _, part := range parts[1:] {
		if longer := line + look.dot() + part; ansi.StringWidth(longer) <= width {
			line = longer
		}
	}
	return line
}

// permissions returns those that wait.
func permissions(prompts []Prompt) (list []undertaking.Permission) {
	for _, p := range prompts {
		list = append(list, p.Permission())
	}
	return list
}

// whoseMove says whose move it is.
func whoseMove(n Now, st undertaking.Status) string {
	s := n.Session
	switch {
	case !s.Status.Live():
		return ""
	case s.Status == session.NeedsHuman || len(n.Prompts) > 0:
		return "YOUR MOVE"
	}
	switch st.Mover {
	case "orchestrator":
		if n.State.Bound > 0 {
			return fmt.Sprintf("orch-%d moves", n.State.Bound)
		}
		return "the next worker moves"
	case "verifier-a":
		return "verifiers move"
	case "checks":
		return "the check runs"
	}
	return st.Mover + " moves"
}

// money is what is spent of what may be: whole dollars, or cents below one.
func money(st undertaking.Status) string {
	usd := dollars(st.Spent.USD)
	if st.Cap == nil {
		return "$" + usd
	}
	return "$" + usd + "/" + dollars(*st.Cap)
}

func dollars(m exact.Money) string {
	v := float64(m) / float64(exact.Dollar)
	if v > 0 && v < 1 {
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%d", int(math.Floor(v+0.5)))
}
