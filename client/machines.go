package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/dialai/dialai/api"
)

// machineAt returns the path of a machine, or below it.
func machineAt(name, below string) string { return "/v1/machines/" + url.PathEscape(name) + below }

// Machines yields the machines that were published, each in its newest version, page by page as
// they are read. An error is the last it yields.
func (c *Client) Machines(ctx context.Context) iter.Seq2[api.Machine, error] {
	return pages[api.Machine](ctx, c, "/v1/machines", url.Values{})
}

// Machine returns the newest definition of a machine.
func (c *Client) Machine(ctx context.Context, name string) (api.Machine, error) {
	return do[api.Machine](ctx, c, get(machineAt(name, ""), nil))
}

// Versions yields the published versions of a machine, the oldest first, without their
// definitions. An error is the last it yields.
func (c *Client) Versions(ctx context.Context, name string) iter.Seq2[api.Machine, error] {
	return pages[api.Machine](ctx, c, machineAt(name, "/versions"), url.Values{})
}

// Version returns a published version of a machine, with its definition.
func (c *Client) Version(ctx context.Context, name, digest string) (api.Machine, error) {
	return do[api.Machine](ctx, c, get(machineAt(name, "/versions/"+url.PathEscape(digest)), nil))
}

// Validate says what is wrong with a definition, or probably not meant. Without errors the
// answer names the machine.
func (c *Client) Validate(ctx context.Context, definition json.RawMessage) (api.Machine, error) {
	return do[api.Machine](ctx, c, post("/v1/machines/validate", definition, Write{}))
}

// ValidateFile is Validate for a machine file as it is written, of which problems have the lines.
func (c *Client) ValidateFile(ctx context.Context, file api.MachineFile) (api.Machine, error) {
	return do[api.Machine](ctx, c, post("/v1/machines/validate", file, Write{}))
}

// Publish publishes a definition over the version of a digest, "" for none: if another one is the
// newest by now, nothing is changed, and the error is ErrStale. Sessions keep their definition.
func (c *Client) Publish(ctx context.Context, name string, definition json.RawMessage, over string) (api.Machine, error) {
	return c.publish(ctx, name, definition, over)
}

// PublishFile is Publish for a machine file as it is written.
func (c *Client) PublishFile(ctx context.Context, name string, file api.MachineFile, over string) (api.Machine, error) {
	return c.publish(ctx, name, file, over)
}

func (c *Client) publish(ctx context.Context, name string, body any, over string) (api.Machine, error) {
	h := http.Header{"If-None-Match": {"*"}}
	if over != "" {
		h = http.Header{"If-Match": {strconv.Quote(over)}}
	}
	return do[api.Machine](ctx, c, call{method: http.MethodPut, path: machineAt(name, ""), body: body, header: h})
}

// Draw draws a version of a machine, "" for the newest. format is svg (also if it is ""), mermaid,
// dot or layout.
func (c *Client) Draw(ctx context.Context, name, digest, format string) ([]byte, error) {
	return do[[]byte](ctx, c, call{method: http.MethodGet, path: machineAt(name, "/graph"), query: values("digest", digest, "format", format), accept: "*/*"})
}

// DrawFile draws a machine file. Nothing of it is kept.
func (c *Client) DrawFile(ctx context.Context, in api.Sketch) ([]byte, error) {
	w := post("/v1/graph", in, Write{})
	w.accept = "*/*"
	return do[[]byte](ctx, c, w)
}

// Specialists yields who is registered for a machine, switched off, or champion. An error is the
// last it yields.
func (c *Client) Specialists(ctx context.Context, machineName string) iter.Seq2[api.Specialist, error] {
	return pages[api.Specialist](ctx, c, machineAt(machineName, "/specialists"), url.Values{})
}

// MachineLog yields what happened to the specialists of a machine, from a number on; 0 is the first.
// payload is what is shown of texts: redacted (also if it is ""), full or none. An error is the last
// it yields.
func (c *Client) MachineLog(ctx context.Context, machineName string, from int64, payload string) iter.Seq2[api.Event, error] {
	v := values("payload", payload)
	if from > 0 {
		v.Set("from", number(from))
	}
	return pages[api.Event](ctx, c, machineAt(machineName, "/log"), v)
}

// Register registers a specialist, who takes part in all sessions of a machine.
func (c *Client) Register(ctx context.Context, machineName string, in api.Registration, w Write) (api.Specialist, error) {
	return do[api.Specialist](ctx, c, post(machineAt(machineName, "/specialists"), in, Write{Key: w.Key}))
}

// Switch switches a specialist on or off, in all sessions of a machine, and says why; "" is no reason.
func (c *Client) Switch(ctx context.Context, machineName, specialistID string, on bool, reasoning string) (api.Specialist, error) {
	return do[api.Specialist](ctx, c, call{method: http.MethodPatch, path: machineAt(machineName, "/specialists/"+url.PathEscape(specialistID)), body: map[string]any{"enabled": on, "reasoning": reasoning}})
}

// Trust yields what everybody's word counts for, by state; state is "" for all of them. An error
// is the last it yields.
func (c *Client) Trust(ctx context.Context, machineName, state string) iter.Seq2[api.Trusted, error] {
	return pages[api.Trusted](ctx, c, machineAt(machineName, "/trust"), values("state", state))
}

// TrustOf yields where the trust of one specialist comes from, by state. An error is the last it
// yields.
func (c *Client) TrustOf(ctx context.Context, machineName, specialistID string) iter.Seq2[api.Trusted, error] {
	return pages[api.Trusted](ctx, c, machineAt(machineName, "/trust/"+url.PathEscape(specialistID)), url.Values{})
}

// TrustHistory yields what everybody's word in the states of a machine has counted for, over
// human decisions. An error is the last it yields.
func (c *Client) TrustHistory(ctx context.Context, machineName string, q api.HistoryQuery) iter.Seq2[api.TrustSeries, error] {
	return pages[api.TrustSeries](ctx, c, machineAt(machineName, "/trust-history"), values("state", q.State, "specialist", q.SpecialistID, "by", q.By))
}

// Alignment yields how often specialists chose as humans did; state is "" for all of them. An
// error is the last it yields.
func (c *Client) Alignment(ctx context.Context, machineName, state string) iter.Seq2[api.Alignment, error] {
	return pages[api.Alignment](ctx, c, machineAt(machineName, "/alignment"), values("state", state))
}

// Metrics say how far a machine does without humans, in a state, "" for all of them. humanMinutes
// is how long a human decision takes; 0 is as the server assumes.
func (c *Client) Metrics(ctx context.Context, machineName, state string, humanMinutes float64) (api.Metrics, error) {
	v := values("state", state)
	if humanMinutes > 0 {
		v.Set("humanMinutes", strconv.FormatFloat(humanMinutes, 'g', -1, 64))
	}
	return do[api.Metrics](ctx, c, get(machineAt(machineName, "/metrics"), v))
}

// Risk says what a machine promises, and what came of it.
func (c *Client) Risk(ctx context.Context, machineName string) (api.Risks, error) {
	return do[api.Risks](ctx, c, get(machineAt(machineName, "/risk"), nil))
}

// Calibration says how the probabilities that bayes states in a machine compare with what humans
// choose; of one of its states if state is not "".
func (c *Client) Calibration(ctx context.Context, machineName, state string) (api.Calibration, error) {
	return do[api.Calibration](ctx, c, get(machineAt(machineName, "/calibration"), values("state", state)))
}

// Spend yields what the sessions of a machine have spent. An error is the last it yields.
func (c *Client) Spend(ctx context.Context, machineName string, q api.SpendQuery) iter.Seq2[api.Spent, error] {
	return pages[api.Spent](ctx, c, machineAt(machineName, "/spend"), values("since", q.Since, "until", q.Until, "by", q.By))
}

// EvaluateSpecialist compares what a specialist proposed with what humans decided: over the first so many
// human decisions, or the last, or, with 0 and 0, all of them.
func (c *Client) EvaluateSpecialist(ctx context.Context, machineName, specialistID string, first, last int) (api.Evaluation, error) {
	v := url.Values{}
	for name, n := range map[string]int{"first": first, "last": last} {
		if n > 0 {
			v.Set(name, strconv.Itoa(n))
		}
	}
	return do[api.Evaluation](ctx, c, get(machineAt(machineName, "/evaluations/"+url.PathEscape(specialistID)), v))
}

// Collapses yields how far the states of a machine do without humans that declare it; state is ""
// for all of them. An error is the last it yields.
func (c *Client) Collapses(ctx context.Context, machineName, state string) iter.Seq2[api.StateCollapse, error] {
	return pages[api.StateCollapse](ctx, c, machineAt(machineName, "/collapse"), values("state", state))
}

// Collapse says how far a state does without humans, and what is missing for more.
func (c *Client) Collapse(ctx context.Context, machineName, state string) (api.StateCollapse, error) {
	return do[api.StateCollapse](ctx, c, get(collapseAt(machineName, state, ""), nil))
}

// HumansIn says who may give orders in a state, and review what was decided there.
func (c *Client) HumansIn(ctx context.Context, machineName, state string) (api.Deciders, error) {
	return do[api.Deciders](ctx, c, get(machineAt(machineName, "/humans"), values("state", state)))
}

func collapseAt(machineName, state, below string) string {
	return machineAt(machineName, "/collapse/"+url.PathEscape(state)+below)
}

// Promote makes in.Champion champion of a state, by a human's word.
func (c *Client) Promote(ctx context.Context, machineName, state string, in api.Order, w Write) (api.StateCollapse, error) {
	return do[api.StateCollapse](ctx, c, post(collapseAt(machineName, state, "/promote"), in, Write{Key: w.Key}))
}

// Demote sends a state back, by a human's word.
func (c *Client) Demote(ctx context.Context, machineName, state string, in api.Order, w Write) (api.StateCollapse, error) {
	return do[api.StateCollapse](ctx, c, post(collapseAt(machineName, state, "/demote"), in, Write{Key: w.Key}))
}

// Freeze keeps anybody from becoming champion of a state, by a human's word.
func (c *Client) Freeze(ctx context.Context, machineName, state string, in api.Order, w Write) (api.StateCollapse, error) {
	return do[api.StateCollapse](ctx, c, post(collapseAt(machineName, state, "/freeze"), in, Write{Key: w.Key}))
}

// Release lets a state that is frozen go on, by a human's word.
func (c *Client) Release(ctx context.Context, machineName, state string, in api.Order, w Write) (api.StateCollapse, error) {
	return do[api.StateCollapse](ctx, c, post(collapseAt(machineName, state, "/release"), in, Write{Key: w.Key}))
}

// Decisions yields what was executed in all sessions of a machine, on what, the newest first;
// state is "" for all of them. An error is the last it yields.
func (c *Client) Decisions(ctx context.Context, machineName, state string) iter.Seq2[api.Decision, error] {
	return pages[api.Decision](ctx, c, machineAt(machineName, "/decisions"), values("state", state))
}

// Exemplars yields decisions of humans that are kept as examples; state is "" for all of them.
// An error is the last it yields.
func (c *Client) Exemplars(ctx context.Context, machineName, state string) iter.Seq2[api.Exemplar, error] {
	return pages[api.Exemplar](ctx, c, machineAt(machineName, "/exemplars"), values("state", state))
}

// Check judges steps of an agent by guards. Nothing is kept.
func (c *Client) Check(ctx context.Context, in api.Checking) (api.Checked, error) {
	return do[api.Checked](ctx, c, post("/v1/check", in, Write{}))
}

// DryRun runs a definition once in the memory of the server, with everybody outside it played by a
// script. Nothing is kept, and nobody is asked.
func (c *Client) DryRun(ctx context.Context, in api.DryRunning) (api.DryRun, error) {
	return do[api.DryRun](ctx, c, post("/v1/dry-runs", in, Write{}))
}

// yes is a switch of a query; "" leaves it off.
func yes(on bool) string {
	if on {
		return "true"
	}
	return ""
}
