package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/session"
)

func (a *app) auditCommand() *cobra.Command {
	v := &viewFlags{}
	cmd := &cobra.Command{
		Use:   "audit <session>",
		Short: "Show how models were asked in a session",
		Long: `Print every attempt at asking a model in a session, the oldest first. With --json
each line is an attempt in full: what was sent and what came back, as far as
DIALAI_AUDIT had it kept (redacted, full or digest). Keys are never kept. Of rounds
that a human is still to rule or to review, what is withheld from them is left out.`,
		Example: `  dialai audit 0b9c1d3e
  dialai audit 0b9c1d3e --json | jq .responseBody`,
		RunE: a.on(v, func(ctx context.Context, e *engine, out *bufio.Writer, args []string) error {
			return a.auditModels(ctx, e, out, args[0], v)
		}),
	}
	v.add(cmd)
	return cmd
}

func (a *app) auditModels(ctx context.Context, e *engine, out *bufio.Writer, sessionID string, v *viewFlags) error {
	s, err := e.session(ctx, sessionID)
	if err != nil {
		return err
	}
	s, hidden, err := v.lookAtAll(ctx, e, s)
	if err != nil {
		return err
	}
	kept := false
	rows := [][]string{{"TIME", "SPECIALIST", "PURPOSE", "ATTEMPT", "STATUS", "MODEL", "MS", "TOKENS", "ERROR"}}
	for line, err := range e.modelCalls(ctx, s, hidden, v) {
		if err != nil {
			return err
		}
		if a.Flags.JSON {
			if err := render.JSON(out, line); err != nil {
				return err
			}
		}
		kept = kept || line.Withheld
		rows = append(rows, auditRow(&line))
	}
	switch {
	case a.Flags.JSON:
		return nil
	case len(rows) == 1:
		return notAsked(ctx, e, out, s)
	}
	if err := render.Table(out, rows); err != nil || !kept {
		return err
	}
	_, err = fmt.Fprintln(out, "\nThe open round is withheld, or one that waits for a review, so that the word on it is your own. --show-proposals shows it, which is recorded.")
	return err
}

// notAsked says why there is no attempt at asking a model: none was to be asked, or
// cassettes answered, since what is replayed is asked of nobody. From here that looks
// like a record that was removed.
func notAsked(ctx context.Context, e *engine, out io.Writer, s *session.Session) error {
	models, answers := map[string]bool{}, 0
	for event, err := range e.asking(ctx, s) {
		if err != nil {
			return err
		}
		answers += modelAnswers(event.Raw, models)
	}
	if answers == 0 {
		_, err := fmt.Fprintln(out, "No model was asked.")
		return err
	}
	_, err := fmt.Fprintf(out, "No asking of a model is recorded, though models answered %s: cassettes did (--replay), or the end of the record was removed,\nwhich dialai store verify --head would tell.\n", render.Plural(answers, "time"))
	return err
}

// modelAnswers adds the models that an event asks to models, and returns how many
// proposals of such it holds.
func modelAnswers(ev session.Raw, models map[string]bool) int {
	var d struct {
		SpecialistID string
		Asks         []struct{ SpecialistID, Mode string }
	}
	if ev.Kind != "asked" && ev.Kind != "proposed" || json.Unmarshal(ev.Data, &d) != nil {
		return 0
	}
	for _, ask := range d.Asks {
		if ask.Mode == "model" {
			models[ask.SpecialistID] = true
		}
	}
	if ev.Kind == "proposed" && models[d.SpecialistID] {
		return 1
	}
	return 0
}

func auditRow(e *api.ModelCall) []string {
	if e.Withheld {
		return []string{e.Timestamp.String(), "withheld", "", "", "", "", "", "", ""}
	}
	fault := ""
	if e.Error != nil {
		fault, _, _ = strings.Cut(*e.Error, "\n")
	}
	return []string{
		e.Timestamp.String(), e.SpecialistID, e.Purpose, fmt.Sprint(e.Attempt), fmt.Sprint(e.ResponseStatus), e.ResolvedModel,
		fmt.Sprint(e.DurationMs), fmt.Sprintf("%d+%d", e.NumInputTokens, e.NumOutputTokens), fault,
	}
}
