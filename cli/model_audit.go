package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
)

func (a *app) auditCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "audit <session>",
		Short: "Show how models were asked in a session",
		Long: `Print every attempt at asking a model in a session, the oldest first. With --json
each line is an attempt in full: what was sent and what came back, as far as
DIALAI_AUDIT had it kept (redacted, full or digest). Keys are never kept.`,
		Example: `  dialai audit 0b9c1d3e-…
  dialai audit 0b9c1d3e-… --json | jq .responseBody`,
		Args:              arguments,
		ValidArgsFunction: a.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), reads, func(e *engine, out *bufio.Writer) error {
				return a.auditModels(cmd.Context(), e, out, args[0])
			})
		},
	}
}

func (a *app) auditModels(ctx context.Context, e *engine, out *bufio.Writer, session string) error {
	id, err := runner.ParseID(session)
	if err != nil {
		return err
	}
	if _, err := e.Session(ctx, session); err != nil {
		return err
	}
	rows := [][]string{{"TIME", "SPECIALIST", "PURPOSE", "ATTEMPT", "STATUS", "MODEL", "MS", "TOKENS", "ERROR"}}
	for entry, err := range e.store.Audit(ctx, id) {
		if err != nil {
			return err
		}
		if a.flags.json {
			if err := printJSON(out, entry); err != nil {
				return err
			}
		}
		rows = append(rows, auditRow(&entry))
	}
	switch {
	case a.flags.json:
		return nil
	case len(rows) == 1:
		_, err := fmt.Fprintln(out, "No model was asked.")
		return err
	}
	return table(out, rows)
}

func auditRow(e *specialist.AuditEntry) []string {
	fault := ""
	if e.Error != nil {
		fault, _, _ = strings.Cut(*e.Error, "\n")
	}
	return []string{
		e.Timestamp.String(), e.SpecialistID, e.Purpose, fmt.Sprint(e.Attempt), fmt.Sprint(e.ResponseStatus), e.ResolvedModel,
		fmt.Sprint(e.DurationMs), fmt.Sprintf("%d+%d", e.NumInputTokens, e.NumOutputTokens), fault,
	}
}
