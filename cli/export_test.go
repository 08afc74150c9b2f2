package cli

import (
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/api"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/guards"
	"github.com/dialai/dialai/cli/internal/remote"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/cli/internal/serving"
	"github.com/dialai/dialai/explain"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/graph"
	"github.com/dialai/dialai/internal/guardlog"
	"github.com/dialai/dialai/internal/jobs"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/report"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
)

// ExplainText writes an explanation for people.
func ExplainText(out io.Writer, e *explain.Explanation) error {
	return render.Style{}.Explanation(out, e)
}

// JSONLines are the types whose values --json prints, by the heading of the
// section of docs/json.md that describes them.
var JSONLines = map[string]any{
	"The result":        api.Result{},
	"`dialai sessions`": session.Summary{},
	"`dialai show`":     api.Session{},
	"`dialai workers`":  session.WorkerInfo{},

	"`dialai sessions --quarantined`": session.Quarantined{},

	"The question":         questionLine{},
	"`dialai inbox`":       runner.Question{},
	"`dialai tick`":        runner.TickView{},
	"`dialai cancel`":      render.CancelledLine{},
	"`dialai retract`":     render.RetractedLine{},
	"`dialai fork`":        render.ForkedLine{},
	"`dialai move`":        render.MovedLine{},
	"An actor":             session.Actor{},
	"`dialai keys list`":   api.Key{},
	"`dialai keys create`": api.MadeKey{},

	"`dialai webhooks list`":       api.Webhook{},
	"`dialai webhooks create`":     api.MadeWebhook{},
	"`dialai webhooks deliveries`": api.Delivery{},

	"`dialai metrics`": report.Metrics{},

	"`dialai graph --format layout`": graph.Drawing{},

	"`dialai serve`":         serving.ServingLine{},
	"`dialai serve --check`": serving.ServingCheck{},

	"`dialai specialists`": api.Specialist{},

	"`dialai trust list`":      report.Trusted{},
	"`dialai trust history`":   report.TrustSeries{},
	"`dialai trust audit`":     runner.ReviewItem{},
	"An answer to a review":    render.ReviewLine{},
	"`dialai collapse status`": runner.StateCollapse{},
	"A candidate":              trust.Candidate{},

	"`dialai explain`":       explain.Explanation{},
	"`dialai risk`":          report.Risks{},
	"`dialai calibration`":   report.Calibration{},
	"`dialai spend`":         report.Spent{},
	"`dialai lint`":          render.Finding{},
	"`dialai init --list`":   sampleLine{},
	"`dialai init`":          writtenLine{},
	"`dialai store verify`":  store.Report{},
	"`dialai store head`":    headLine{},
	"`dialai store archive`": store.Archived{},
	"`dialai store backup`":  backupLine{},
	"`dialai store restore`": store.Restoration{},
	"`dialai store status`":  api.Store{},
	"`dialai migrate`":       migratedLine{},
	"An explanation":         trust.Judgement{},
	"An outcome":             trust.Outcome{},
	"`dialai version`":       build{},

	"A raised limit":          guard.Raise{},
	"The event log of guards": guard.LogRecord{},
	"`dialai analyze`":        guardlog.AnalysisLine{},
	"`dialai budget`":         guardlog.BudgetLine{},
	"A shadow that differs":   guardlog.ShadowLine{},
	"What a shadow comes to":  guardlog.ShadowSummary{},
	"A verdict that differs":  guardlog.ReplayDifference{},
	"`dialai replay`":         guardlog.ReplayLine{},
	"`dialai guard demo`":     guards.DemoLine{},

	"`dialai backtest`":       jobs.BacktestLine{},
	"A flip":                  jobs.FlipLine{},
	"A step that changes":     guardlog.GateChange{},
	"`dialai simulate`":       jobs.SimulationLine{},
	"A part of the rounds":    jobs.PointLine{},
	"A made-up voter":         jobs.VoterLine{},
	"Something that happened": jobs.EventLine{},
}

// AtServer reports whether a command works at a server: one of the name, or that of a machine
// file.
func AtServer(name string) bool {
	served, distant := remote.Commands[name]
	known := slices.ContainsFunc((&app{App: &command.App{}}).root().Commands(), func(c *cobra.Command) bool { return c.Name() == name })
	return served || !distant && !known
}
