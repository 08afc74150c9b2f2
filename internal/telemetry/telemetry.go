// Package telemetry tells OpenTelemetry of every call of a model, by the GenAI
// conventions. It uses the API only: without providers that somebody has set up it
// does nothing and costs nearly nothing.
package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/dialai/dialai/llm"
	"github.com/dialai/dialai/specialist"
)

// scope is the name under which spans and metrics are made.
const scope = "github.com/dialai/dialai/internal/telemetry"

// The names of the GenAI conventions, which are still in development, and ours
// where they have none. They are all here.
const (
	operationName = "gen_ai.operation.name"
	providerName  = "gen_ai.provider.name"
	requestModel  = "gen_ai.request.model"
	maxTokens     = "gen_ai.request.max_tokens"
	temperature   = "gen_ai.request.temperature"
	seed          = "gen_ai.request.seed"
	conversation  = "gen_ai.conversation.id"
	responseModel = "gen_ai.response.model"
	responseID    = "gen_ai.response.id"
	finishReasons = "gen_ai.response.finish_reasons"
	inputTokens   = "gen_ai.usage.input_tokens"
	outputTokens  = "gen_ai.usage.output_tokens"
	cachedTokens  = "gen_ai.usage.cache_read.input_tokens"
	instructions  = "gen_ai.system_instructions"
	inputs        = "gen_ai.input.messages"
	outputs       = "gen_ai.output.messages"
	tokenType     = "gen_ai.token.type"
	serverAddress = "server.address"
	serverPort    = "server.port"
	errorType     = "error.type"

	purpose      = "dialai.purpose"
	specialistID = "dialai.specialist.id"
	machineName  = "dialai.machine.name"
	machineState = "dialai.machine.state"
	round        = "dialai.round"

	tokenUsage = "gen_ai.client.token.usage"
	duration   = "gen_ai.client.operation.duration"
)

// wellKnown are the conventions' names of providers, where they are others than
// ours.
var wellKnown = map[string]string{"google": "gcp.gemini", "compatible": "openai"}

// Models returns an observer for llm.Config.Observe: one client span for each call,
// retries included, and two histograms, of tokens and of seconds. With content, the
// span holds what was asked and said; without, nothing of either. It uses the
// providers that are set up globally when it is called.
func Models(content bool) func(context.Context, *llm.Call) func(*llm.Response, error) {
	m := otel.Meter(scope)
	tokens, err1 := m.Int64Histogram(tokenUsage, metric.WithUnit("{token}"), metric.WithDescription("Number of input and output tokens used."),
		metric.WithExplicitBucketBoundaries(1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864))
	seconds, err2 := m.Float64Histogram(duration, metric.WithUnit("s"), metric.WithDescription("GenAI operation duration."),
		metric.WithExplicitBucketBoundaries(0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92))
	if err := errors.Join(err1, err2); err != nil {
		otel.Handle(err)
	}
	o := &observer{otel.Tracer(scope), tokens, seconds, content}
	return o.begin
}

type observer struct {
	tracer  trace.Tracer
	tokens  metric.Int64Histogram
	seconds metric.Float64Histogram
	content bool
}

// begin implements llm.Config.Observe.
func (o *observer) begin(ctx context.Context, c *llm.Call) func(*llm.Response, error) {
	start := time.Now()
	common := commonOf(c)
	ctx, span := o.tracer.Start(ctx, "chat "+c.Model, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(common...))
	if span.IsRecording() {
		span.SetAttributes(requestOf(c)...)
		if o.content {
			span.SetAttributes(attribute.String(instructions, message("system", c.Request.System)), attribute.String(inputs, message("user", c.Request.User)))
		}
	}
	return func(r *llm.Response, err error) {
		o.end(ctx, span, common, time.Since(start), r, err)
	}
}

func (o *observer) end(ctx context.Context, span trace.Span, common []attribute.KeyValue, took time.Duration, r *llm.Response, err error) {
	defer span.End()
	if r.Model != "" {
		common = append(common, attribute.String(responseModel, r.Model))
	}
	if u := &r.Usage; u.Has(specialist.InputGiven | specialist.OutputGiven) {
		for kind, n := range map[string]int64{"input": u.NumInputTokens, "output": u.NumOutputTokens} {
			o.tokens.Record(ctx, n, metric.WithAttributes(append(common, attribute.String(tokenType, kind))...))
		}
	}
	if err != nil {
		common = append(common, attribute.String(errorType, kindOf(err)))
		span.SetStatus(codes.Error, kindOf(err)) // not its text, which may hold what was said
	}
	o.seconds.Record(ctx, took.Seconds(), metric.WithAttributes(common...))
	if span.IsRecording() {
		span.SetAttributes(common...)
		span.SetAttributes(responseOf(r)...)
		if o.content {
			span.SetAttributes(attribute.String(outputs, message("assistant", said(r))))
		}
	}
}

func commonOf(c *llm.Call) []attribute.KeyValue {
	name := c.Provider
	if known := wellKnown[name]; known != "" {
		name = known
	}
	list := []attribute.KeyValue{attribute.String(operationName, "chat"), attribute.String(providerName, name), attribute.String(requestModel, c.Model)}
	if u, err := url.Parse(c.Address); err == nil && u.Host != "" {
		list = append(list, attribute.String(serverAddress, u.Hostname()))
		if _, port, err := net.SplitHostPort(u.Host); err == nil {
			if n, err := strconv.Atoi(port); err == nil {
				list = append(list, attribute.Int(serverPort, n))
			}
		}
	}
	return list
}

func requestOf(c *llm.Call) []attribute.KeyValue {
	r := c.Request
	n := r.MaxTokens
	if n <= 0 {
		n = llm.DefaultMaxTokens
	}
	list := []attribute.KeyValue{attribute.Int(maxTokens, n), attribute.Float64(temperature, r.Temperature), attribute.String(purpose, string(r.Purpose))}
	if r.Seed != 0 {
		list = append(list, attribute.Int64(seed, r.Seed))
	}
	for _, a := range [...]struct{ key, value string }{
		{conversation, r.Origin.SessionID}, {specialistID, r.Origin.SpecialistID}, {machineName, r.Origin.MachineName}, {machineState, r.Origin.State},
	} {
		if a.value != "" {
			list = append(list, attribute.String(a.key, a.value))
		}
	}
	if r.Origin.Round != 0 {
		list = append(list, attribute.Int(round, int(r.Origin.Round)))
	}
	return list
}

func responseOf(r *llm.Response) (list []attribute.KeyValue) {
	if r.ID != "" {
		list = append(list, attribute.String(responseID, r.ID))
	}
	if r.Finish != "" {
		list = append(list, attribute.StringSlice(finishReasons, []string{string(r.Finish)}))
	}
	if u := &r.Usage; u.Has(specialist.InputGiven | specialist.OutputGiven) {
		list = append(list, attribute.Int64(inputTokens, u.NumInputTokens), attribute.Int64(outputTokens, u.NumOutputTokens))
		if u.Detail != nil && u.Detail.CacheReadTokens > 0 {
			list = append(list, attribute.Int64(cachedTokens, u.Detail.CacheReadTokens))
		}
	}
	return list
}

// kindOf returns what kind of failure an error is: a status, or a word.
func kindOf(err error) string {
	if status, ok := errors.AsType[*llm.StatusError](err); ok {
		return strconv.Itoa(status.Status)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	return "_OTHER"
}

// message returns a message as the conventions write it.
func message(role, text string) string {
	type part struct {
		Type    string `json:"type"`
		Content string `json:"content"`
	}
	b, _ := json.Marshal([]struct { // any text can be
		Role  string `json:"role"`
		Parts []part `json:"parts"`
	}{{role, []part{{"text", text}}}})
	return string(b)
}

func said(r *llm.Response) string {
	parts := []string{r.Text + r.Refusal}
	for _, c := range r.ToolCalls {
		parts = append(parts, c.Name+"("+c.Arguments+")")
	}
	return strings.TrimSpace(strings.Join(parts, "\n"))
}
