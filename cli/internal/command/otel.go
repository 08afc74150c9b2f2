package command

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/internal/files"
	"github.com/dialai/dialai/internal/otlp"
	"github.com/dialai/dialai/internal/telemetry"
	"github.com/dialai/dialai/llm"
)

// This file is the only one that knows the SDK of OpenTelemetry. It is set up only
// if the standard variables ask for it.

// flushTime is how long the end of the program waits for what was not sent yet.
const flushTime = 5 * time.Second

// WantsTelemetry says whether the standard variables ask for traces and metrics.
func (a *App) WantsTelemetry() (traces, metrics bool) {
	if off, _ := strconv.ParseBool(a.Env("OTEL_SDK_DISABLED")); off {
		return false, false
	}
	wants := func(signal string) bool {
		exporter := strings.ToLower(strings.TrimSpace(a.Env("OTEL_" + signal + "_EXPORTER")))
		switch exporter {
		case "":
		case "otlp", "none":
			return exporter == "otlp"
		default:
			fmt.Fprintf(a.Err, "warning: OTEL_%s_EXPORTER is %q, so nothing is sent: dialai knows otlp and none\n", signal, render.Clean(exporter))
			return false
		}
		return strings.TrimSpace(a.Env("OTEL_EXPORTER_OTLP_ENDPOINT")+a.Env("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT")) != ""
	}
	return wants("TRACES"), wants("METRICS")
}

// Telemetry has calls of models told to OpenTelemetry, if the variables ask for
// that. The function it returns sends what is left; it is never nil.
func (a *App) Telemetry(models *llm.Config) (stop func(), err error) {
	p := &pipes{failed: make(chan error, 1)}
	if err := a.pipes(p); err != nil {
		return func() {}, Usage("%w", err)
	}
	if len(p.ends) == 0 {
		return func() {}, nil
	}
	content, _ := strconv.ParseBool(a.Env("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"))
	models.Observe = telemetry.Models(content)
	return func() {
		p.stop()
		if err := p.failure(); err != nil {
			fmt.Fprintf(a.Err, "warning: telemetry could not be sent: %s\n", render.Clean(err.Error()))
		}
	}, nil
}

// pipes sets up what the variables ask for, or nothing if one of them is wrong.
func (a *App) pipes(p *pipes) error {
	traces, metrics := a.WantsTelemetry()
	var spans trace.SpanExporter
	var values metric.Exporter
	var err error
	variables := otlp.Env{Lookup: a.Env, ReadFile: func(path string) ([]byte, error) { return a.ReadKind(path, files.Telemetry) }}
	if traces {
		if spans, err = otlp.Traces(variables); err != nil {
			return err
		}
	}
	if metrics {
		if values, err = otlp.Metrics(variables); err != nil {
			return err
		}
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(p.fail)) // before the SDK has anything to say
	if traces {
		provider := trace.NewTracerProvider(trace.WithBatcher(spans))
		otel.SetTracerProvider(provider)
		p.ends = append(p.ends, provider.Shutdown)
	}
	if metrics {
		provider := metric.NewMeterProvider(metric.WithReader(metric.NewPeriodicReader(values)))
		otel.SetMeterProvider(provider)
		p.ends = append(p.ends, provider.Shutdown)
	}
	return nil
}

// pipes are what sends telemetry.
type pipes struct {
	ends   []func(context.Context) error
	failed chan error // the first failure, told at the end
}

func (p *pipes) fail(err error) {
	select {
	case p.failed <- err:
	default:
	}
}

func (p *pipes) failure() error {
	select {
	case err := <-p.failed:
		return err
	default:
		return nil
	}
}

// stop sends what is left.
func (p *pipes) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	for _, end := range p.ends {
		if err := end(ctx); err != nil {
			p.fail(err)
		}
	}
}
