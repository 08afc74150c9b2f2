package otlp

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The SDK and its exporters read these variables themselves and go on with a default where one is wrong.
// Whoever sets one wants it, so they are looked at before.

// Variables of the SDK that are whole numbers.
var (
	spanNumbers = []string{
		"OTEL_BSP_SCHEDULE_DELAY", "OTEL_BSP_EXPORT_TIMEOUT", "OTEL_BSP_MAX_QUEUE_SIZE", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE",
		"OTEL_ATTRIBUTE_COUNT_LIMIT", "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT",
		"OTEL_SPAN_EVENT_COUNT_LIMIT", "OTEL_SPAN_LINK_COUNT_LIMIT", "OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT", "OTEL_LINK_ATTRIBUTE_COUNT_LIMIT",
	}
	metricNumbers = []string{"OTEL_METRIC_EXPORT_INTERVAL", "OTEL_METRIC_EXPORT_TIMEOUT"}
)

// sampler checks which spans are wanted.
func (e Env) sampler() error {
	const name, argument = "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG"
	if err := e.choice(name, "always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio"); err != nil {
		return err
	}
	chosen := e.lower(name)
	ratio := strings.TrimSpace(e.Lookup(argument))
	if ratio == "" || !strings.HasSuffix(chosen, "traceidratio") {
		return nil
	}
	if f, err := strconv.ParseFloat(ratio, 64); err != nil || !(f >= 0 && f <= 1) {
		return fmt.Errorf("%s is %q, it must be a share from 0 to 1, since %s is %s", argument, ratio, name, chosen)
	}
	return nil
}

// aggregations checks how values are counted and what histograms become.
func (e Env) aggregations() error {
	return errors.Join(
		e.choice("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "cumulative", "delta", "lowmemory"),
		e.choice("OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION", "explicit_bucket_histogram", "base2_exponential_bucket_histogram"),
	)
}

// choice checks a variable that is one of some words, of which case means nothing.
func (e Env) choice(name string, allowed ...string) error {
	if v := e.lower(name); v != "" && !slices.Contains(allowed, v) {
		return wrong(name, v, allowed...)
	}
	return nil
}

// wrong says that a variable is none of the values that it may have.
func wrong(name, value string, allowed ...string) error {
	for i, v := range allowed {
		allowed[i] = strconv.Quote(v)
	}
	last := len(allowed) - 1
	return fmt.Errorf("%s is %q, it must be %s or %s", name, value, strings.Join(allowed[:last], ", "), allowed[last])
}

// resource checks what is said of the program.
func (e Env) resource() error {
	const name = "OTEL_RESOURCE_ATTRIBUTES"
	value := strings.TrimSpace(e.Lookup(name))
	if value == "" {
		return nil
	}
	for i, pair := range strings.Split(value, ",") {
		key, escaped, ok := strings.Cut(pair, "=")
		if !ok || strings.TrimSpace(key) == "" {
			return fmt.Errorf("%s: entry %d is not of the form name=value", name, i+1)
		}
		if text, err := url.PathUnescape(strings.TrimSpace(escaped)); err != nil || !utf8.ValidString(key+text) {
			return fmt.Errorf("%s: the value of entry %d is not percent-encoded", name, i+1) // or no text, with which nothing can be sent
		}
	}
	return nil
}

// numbers checks variables that are whole numbers.
func (e Env) numbers(names []string) (err error) {
	for _, name := range names {
		value := strings.TrimSpace(e.Lookup(name))
		if value == "" {
			continue
		}
		if _, bad := strconv.Atoi(value); bad != nil {
			err = errors.Join(err, fmt.Errorf("%s is %q, it must be a whole number", name, value))
		}
	}
	return err
}
