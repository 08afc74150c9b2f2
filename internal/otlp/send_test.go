package otlp_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/dialai/dialai/internal/otlp"
)

// oneSpan is something to send.
func oneSpan(t *testing.T) []sdk.ReadOnlySpan {
	t.Helper()
	return tracetest.SpanStubs{{Name: "one", SpanContext: spanContext(t, 1, false)}}.Snapshots()
}

// export sends one span as the variables say, without waiting between attempts.
func export(t *testing.T, pairs ...string) error {
	t.Helper()
	x, err := otlp.Traces(env(pairs...))
	if err != nil {
		t.Fatal(err)
	}
	otlp.Hasten(x)
	return x.ExportSpans(t.Context(), oneSpan(t))
}

// TestWhere: a signal goes to its own address as that is, or below the one for all.
func TestWhere(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "", "/v1/traces"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "/", "/v1/traces"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "/a/b/", "/a/b/v1/traces"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "/a%2Fb?token=x", "/a%2Fb/v1/traces?token=x"},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "", "/"},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "/mine/", "/mine/"},
	} {
		var got string
		s := collect(t, func(_ http.ResponseWriter, req *http.Request) { got = req.RequestURI })
		if err := export(t, c.name, " "+s.URL+c.value+" "); err != nil {
			t.Error(err)
		}
		if got != c.want {
			t.Errorf("%s ending in %q leads to %s, want %s", c.name, c.value, got, c.want)
		}
	}
	s := collect(t, nil)
	if err := export(t, "OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", s.URL); err != nil {
		t.Errorf("the address for all beats the one for traces: %v", err)
	}
	if _, err := otlp.Traces(env()); err != nil {
		t.Errorf("without any variable: %v", err)
	}
}

// TestHeaders: they are decoded, the signal's own hold alone, and none of them can
// say what the body is.
func TestHeaders(t *testing.T) {
	for _, c := range []struct {
		all, own string
		want     map[string]string
	}{
		{"authorization=Bearer%20a%2Cb,x-tenant = seven ,, X-Empty=", "", map[string]string{"Authorization": "Bearer a,b", "X-Tenant": "seven", "X-Empty": ""}},
		{"authorization=all", "X-Own=a=b+c", map[string]string{"Authorization": "", "X-Own": "a=b+c"}},
		{"Content-Type=text/plain,User-Agent=me,Accept=x", "", map[string]string{"Content-Type": "application/x-protobuf", "User-Agent": "me", "Accept": "application/x-protobuf"}},
	} {
		s := collect(t, nil)
		if err := export(t, "OTEL_EXPORTER_OTLP_ENDPOINT", s.URL, "OTEL_EXPORTER_OTLP_HEADERS", c.all, "OTEL_EXPORTER_OTLP_TRACES_HEADERS", c.own); err != nil {
			t.Error(err)
		}
		for name, want := range c.want {
			if got := s.only(t).header.Get(name); got != want {
				t.Errorf("%s, %s: %s is %q, want %q", c.all, c.own, name, got, want)
			}
		}
	}
}

// TestWrongVariables: each is refused at once, by its name and with what to do, and
// without what could be a secret.
func TestWrongVariables(t *testing.T) {
	const address, secret = "OTEL_EXPORTER_OTLP_ENDPOINT", "s3cret"
	for _, c := range []struct{ name, value, want string }{
		{address, "localhost:4318", "OTEL_EXPORTER_OTLP_ENDPOINT is not an http or https address such as http://localhost:4318"},
		{address, "http://", "OTEL_EXPORTER_OTLP_ENDPOINT is not an http or https address"},
		{address, "http://h/%zz" + secret, "OTEL_EXPORTER_OTLP_ENDPOINT is not an http or https address"},
		{address, "grpc://h:4317", "OTEL_EXPORTER_OTLP_ENDPOINT is not an http or https address"},
		{address, "https://me:" + secret + "@h", "OTEL_EXPORTER_OTLP_ENDPOINT holds a user name; put it into OTEL_EXPORTER_OTLP_HEADERS, for example Authorization=Basic%20CREDENTIALS"},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "h", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is not an http or https address"},
		{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", `OTEL_EXPORTER_OTLP_PROTOCOL is "grpc", which dialai does not speak; set it to http/protobuf, and the endpoint to where the collector listens for that, usually port 4318`},
		{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc", `OTEL_EXPORTER_OTLP_TRACES_PROTOCOL is "grpc", which`},
		{"OTEL_EXPORTER_OTLP_PROTOCOL", "udp", `OTEL_EXPORTER_OTLP_PROTOCOL is "udp", it must be "http/protobuf" or "http/json"`},
		{"OTEL_EXPORTER_OTLP_COMPRESSION", "zstd", `OTEL_EXPORTER_OTLP_COMPRESSION is "zstd", it must be "gzip" or "none"`},
		{"OTEL_EXPORTER_OTLP_TIMEOUT", "10s", `OTEL_EXPORTER_OTLP_TIMEOUT is "10s", it must be a whole number of milliseconds; 0 is no limit`},
		{"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "-1", `OTEL_EXPORTER_OTLP_TRACES_TIMEOUT is "-1", it must be a whole number`},
		{"OTEL_EXPORTER_OTLP_HEADERS", "a=1," + secret, "OTEL_EXPORTER_OTLP_HEADERS: entry 2 is not of the form name=value"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "a b=" + secret, "OTEL_EXPORTER_OTLP_HEADERS: entry 1 is not of the form name=value"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "a=%zz" + secret, "OTEL_EXPORTER_OTLP_HEADERS: the value of entry 1 is not a header's, or not percent-encoded"},
		{"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "a=" + secret + "%0d%0ab: c", "OTEL_EXPORTER_OTLP_TRACES_HEADERS: the value of entry 1 is not a header's"},
		{"OTEL_EXPORTER_OTLP_CERTIFICATE", "/no/such/file", "OTEL_EXPORTER_OTLP_CERTIFICATE: open /no/such/file"},
		{"OTEL_EXPORTER_OTLP_CERTIFICATE", "send_test.go", `OTEL_EXPORTER_OTLP_CERTIFICATE: "send_test.go" holds no certificate in PEM form`},
		{"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "send_test.go", "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY belong together, and only one of them is set"},
		{"OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY", "send_test.go", "belong together, and only one of them is set"},
		{"OTEL_TRACES_SAMPLER", "Sometimes", `OTEL_TRACES_SAMPLER is "sometimes", it must be "always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off" or "parentbased_traceidratio"`},
		{"OTEL_BSP_SCHEDULE_DELAY", "5s", `OTEL_BSP_SCHEDULE_DELAY is "5s", it must be a whole number`},
		{"OTEL_SPAN_LINK_COUNT_LIMIT", "many", `OTEL_SPAN_LINK_COUNT_LIMIT is "many", it must be a whole number`},
		{"OTEL_RESOURCE_ATTRIBUTES", "a=b," + secret, "OTEL_RESOURCE_ATTRIBUTES: entry 2 is not of the form name=value"},
		{"OTEL_RESOURCE_ATTRIBUTES", "a=%ff" + secret, "OTEL_RESOURCE_ATTRIBUTES: the value of entry 1 is not percent-encoded"},
		{"OTEL_RESOURCE_ATTRIBUTES", "a=%zz" + secret, "OTEL_RESOURCE_ATTRIBUTES: the value of entry 1 is not percent-encoded"},
	} {
		pairs := []string{c.name, c.value}
		if !strings.Contains(c.name, "ENDPOINT") {
			pairs = append(pairs, address, "https://collector.example")
		}
		if _, err := otlp.Traces(env(pairs...)); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s=%s: %v\nwant %s", c.name, c.value, err, c.want)
		}
	}
	for _, c := range []struct{ name, value, want string }{
		{"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "sometimes", `OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE is "sometimes", it must be "cumulative", "delta" or "lowmemory"`},
		{"OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION", "x", `OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION is "x", it must be "explicit_bucket_histogram" or "base2_exponential_bucket_histogram"`},
		{"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "grpc", `OTEL_EXPORTER_OTLP_METRICS_PROTOCOL is "grpc", which`},
		{"OTEL_METRIC_EXPORT_INTERVAL", "often", `OTEL_METRIC_EXPORT_INTERVAL is "often", it must be a whole number`},
		{"OTEL_RESOURCE_ATTRIBUTES", "=b", "OTEL_RESOURCE_ATTRIBUTES: entry 1 is not of the form name=value"},
	} {
		if _, err := otlp.Metrics(env(c.name, c.value)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%s: %v\nwant %s", c.name, c.value, err, c.want)
		}
	}
	if _, err := otlp.Traces(env(address, "http://h", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "grpc", "OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "x")); err != nil {
		t.Errorf("variables of metrics are read for traces: %v", err)
	}
}

// TestSamplers: all that the SDK knows are taken, and an argument counts where it is one.
func TestSamplers(t *testing.T) {
	const address, sampler, argument = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG"
	for _, name := range []string{"", "always_on", " Always_Off ", "parentbased_always_on", "parentbased_always_off"} {
		if _, err := otlp.Traces(env(address, "http://h", sampler, name, argument, "no share")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"traceidratio", "parentbased_traceidratio"} {
		for arg, ok := range map[string]bool{"": true, "0": true, " 0.25 ": true, "1": true, "1.01": false, "-0.1": false, "NaN": false, "half": false} {
			_, err := otlp.Traces(env(address, "http://h", sampler, name, argument, arg))
			if want := "OTEL_TRACES_SAMPLER_ARG is \"" + arg + "\", it must be a share from 0 to 1, since OTEL_TRACES_SAMPLER is " + name; (err == nil) != ok || err != nil && err.Error() != want {
				t.Errorf("%s of %q: %v", name, arg, err)
			}
		}
	}
	if _, err := otlp.Metrics(env(address, "http://h", sampler, "x", "OTEL_BSP_SCHEDULE_DELAY", "x")); err != nil {
		t.Errorf("variables of traces are read for metrics: %v", err)
	}
}

// TestLongRetryAfter: a collector is left alone for as long as it says, up to the time of
// the whole export: who has less time than that learns it at once.
func TestLongRetryAfter(t *testing.T) {
	s := collect(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "35")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	for _, c := range []struct {
		timeout string
		caller  time.Duration
	}{{"60000", 32 * time.Second}, {"34000", time.Hour}, {"0", 32 * time.Second}} {
		x, err := otlp.Traces(env("OTEL_EXPORTER_OTLP_ENDPOINT", s.URL, "OTEL_EXPORTER_OTLP_TIMEOUT", c.timeout))
		if err != nil {
			t.Fatal(err)
		}
		before, start := len(s.all()), time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), c.caller)
		err = x.ExportSpans(ctx, oneSpan(t))
		cancel()
		if n, took := len(s.all())-before, time.Since(start); message(err) != "sending spans: the collector answered 503" || n != 1 || took > 10*time.Second {
			t.Errorf("%+v: %d attempts in %s, %v", c, n, took, err)
		}
	}
}

// TestAttempts: what may pass is tried again, in time, and nothing else is.
func TestAttempts(t *testing.T) {
	for _, c := range []struct {
		status   int
		after    string
		attempts int
		err      string
	}{
		{200, "", 1, ""}, {204, "", 1, ""},
		{429, "", 3, ""}, {502, "", 3, ""}, {503, "", 3, ""}, {504, "", 3, ""}, {503, "0", 3, ""},
		{503, "3600", 1, "sending spans: the collector answered 503"}, // longer than the export may take
		{500, "", 1, "sending spans: the collector answered 500"},
		{400, "", 1, "sending spans: the collector answered 400"},
		{413, "", 1, "sending spans: the collector answered 413"},
		{307, "", 1, "sending spans: the collector answered 307"},
	} {
		var n atomic.Int64
		s := collect(t, func(w http.ResponseWriter, _ *http.Request) {
			if n.Add(1) == 3 {
				return // it has passed
			}
			w.Header().Set("Retry-After", c.after)
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(c.status)
		})
		err := export(t, "OTEL_EXPORTER_OTLP_ENDPOINT", s.URL)
		if text := message(err); text != c.err || int(n.Load()) != c.attempts {
			t.Errorf("%d after %q: %d attempts, %v; want %d, %s", c.status, c.after, n.Load(), err, c.attempts, c.err)
		}
		first := s.all()[0]
		for _, a := range s.all() {
			if string(a.body) != string(first.body) {
				t.Errorf("%d: a further attempt sends something else", c.status)
			}
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestTimeout: an export ends when its time is up, or its caller's.
func TestTimeout(t *testing.T) {
	hang := func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() }
	s := collect(t, hang)
	if err := export(t, "OTEL_EXPORTER_OTLP_ENDPOINT", s.URL, "OTEL_EXPORTER_OTLP_TIMEOUT", "60000", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "20"); err == nil || !strings.Contains(err.Error(), "deadline exceeded") {
		t.Errorf("it says %v", err)
	}
	x, err := otlp.Traces(env("OTEL_EXPORTER_OTLP_ENDPOINT", s.URL, "OTEL_EXPORTER_OTLP_TIMEOUT", "0"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := x.ExportSpans(ctx, oneSpan(t)); err == nil || !strings.Contains(err.Error(), "deadline exceeded") {
		t.Errorf("it says %v", err)
	}
	busy := collect(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	if err := export(t, "OTEL_EXPORTER_OTLP_ENDPOINT", busy.URL); err == nil || len(busy.all()) != 8 {
		t.Errorf("%d attempts: %v", len(busy.all()), err)
	}
	closed := collect(t, nil)
	closed.Close()
	if err := export(t, "OTEL_EXPORTER_OTLP_ENDPOINT", closed.URL); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("it says %v", err)
	}
}

// TestPartialSuccess: what a collector did not take of a request is an error, told
// to whoever handles those of OpenTelemetry.
func TestPartialSuccess(t *testing.T) {
	marshal := func(m proto.Message) string {
		b, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	spans := func(n int64, text string) string {
		return marshal(&tracepb.ExportTraceServiceResponse{PartialSuccess: &tracepb.ExportTracePartialSuccess{RejectedSpans: n, ErrorMessage: text}})
	}
	for _, c := range []struct{ protocol, answer, want string }{
		{"http/protobuf", "", ""}, {"http/protobuf", spans(0, ""), ""}, {"http/protobuf", "not protobuf", ""},
		{"http/protobuf", spans(3, "too old"), "the collector rejected 3 spans: too old"},
		{"http/protobuf", spans(3, ""), "the collector rejected 3 spans"},
		{"http/protobuf", spans(0, "mind the clock"), "the collector remarks on spans: mind the clock"},
		{"http/json", "{}", ""}, {"http/json", "not JSON", ""}, {"http/json", `{"partialSuccess":{}}`, ""},
		{"http/json", `{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}}`, "the collector rejected 3 spans: too old"},
		{"http/json", `{"partialSuccess":{"rejectedSpans":3}}`, "the collector rejected 3 spans"},
	} {
		s := collect(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(c.answer)) })
		x, err := otlp.Traces(env("OTEL_EXPORTER_OTLP_ENDPOINT", s.URL, "OTEL_EXPORTER_OTLP_PROTOCOL", c.protocol))
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { told = append(told, err.Error()) }))
		provider := sdk.NewTracerProvider(sdk.WithBatcher(x))
		_, span := provider.Tracer("t").Start(t.Context(), "s")
		span.End()
		if err := provider.Shutdown(t.Context()); err != nil {
			told = append(told, err.Error())
		}
		if got := strings.Join(slices.Compact(told), "; "); got != c.want {
			t.Errorf("%s %q is told as %q, want %q", c.protocol, c.answer, got, c.want)
		}
	}
	s := collect(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(marshal(&metricspb.ExportMetricsServiceResponse{PartialSuccess: &metricspb.ExportMetricsPartialSuccess{RejectedDataPoints: 2}})))
	})
	x, err := otlp.Metrics(env("OTEL_EXPORTER_OTLP_ENDPOINT", s.URL))
	if err != nil {
		t.Fatal(err)
	}
	err = x.Export(t.Context(), &metricdata.ResourceMetrics{ScopeMetrics: []metricdata.ScopeMetrics{{Metrics: []metricdata.Metrics{{Name: "n", Data: metricdata.Gauge[int64]{}}}}}})
	if partial, ok := errors.AsType[*otlp.PartialError](err); !ok || *partial != (otlp.PartialError{Rejected: 2, Unit: "data points"}) {
		t.Errorf("it is told as %v", err)
	}
}

// TestSaid: an error says what the collector says, and no secret even if the
// collector repeats it.
func TestSaid(t *testing.T) {
	status := string([]byte{0x08, 3}) + string([]byte{0x12, 6}) + "not so" // google.rpc.Status
	for _, c := range []struct{ protocol, answer, want string }{
		{"http/protobuf", status, ": not so"}, {"http/protobuf", "plain\n\x1b[2Jtext", ": plain  [2Jtext"}, {"http/json", `{"code":3,"message":"not so"}`, ": not so"},
		{"http/json", `<h1>no</h1>`, ": <h1>no</h1>"}, {"http/json", "", ""},
		{"http/json", `{"message":"who is Bearer s3cret-token, or s3cret-token, at ?key=s3cret-query"}`, ": who is [REDACTED], or [REDACTED], at ?[REDACTED]"},
		{"http/protobuf", strings.Repeat("x", 5000), ": " + strings.Repeat("x", 300)},
	} {
		s := collect(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(c.answer))
		})
		err := export(t, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", s.URL+"/?key=s3cret-query", "OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20s3cret-token", "OTEL_EXPORTER_OTLP_PROTOCOL", c.protocol)
		if got, want := message(err), "sending spans: the collector answered 401"+c.want; got != want {
			t.Errorf("%q is told as\n%q, want\n%q", c.answer, got, want)
		}
	}
	s := collect(t, func(w http.ResponseWriter, req *http.Request) {
		_, _ = w.Write(slices.Concat([]byte{0x0a, 21, 0x12, 19}, []byte(req.Header.Get("Authorization"))))
	})
	if err := export(t, "OTEL_EXPORTER_OTLP_ENDPOINT", s.URL, "OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20s3cret-token"); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("it says %v", err)
	}
	large := collect(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 2<<20)) })
	if err := export(t, "OTEL_EXPORTER_OTLP_ENDPOINT", large.URL); err == nil || !strings.Contains(err.Error(), "the answer is larger than 1048576 bytes") {
		t.Errorf("it says %v", err)
	}
}

// TestCertificates: a collector is known by the authority that a variable names, and
// knows us by our own certificate; neither is left out silently.
func TestCertificates(t *testing.T) {
	cert, key := ownCertificate(t)
	known := x509.NewCertPool()
	known.AppendCertsFromPEM(cert)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if len(req.TLS.PeerCertificates) != 1 {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	s.TLS = &tls.Config{ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: known, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(s.Close)
	files := map[string][]byte{"ca": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), "cert": cert, "key": key}
	read := func(name string) ([]byte, error) {
		if b, ok := files[name]; ok {
			return b, nil
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	both := map[string]string{"OTEL_EXPORTER_OTLP_CERTIFICATE": "ca", "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": "cert", "OTEL_EXPORTER_OTLP_CLIENT_KEY": "key"}
	own := map[string]string{"OTEL_EXPORTER_OTLP_CERTIFICATE": "none", "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE": "ca", "OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE": "cert", "OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY": "key"}
	for name, c := range map[string]struct {
		set   map[string]string
		start string // the error at the start
		send  string // and of an export
	}{
		"nothing":        {nil, "", "certificate"},
		"authority":      {map[string]string{"OTEL_EXPORTER_OTLP_CERTIFICATE": "ca"}, "", "the collector answered 403"},
		"both":           {both, "", ""},
		"of traces":      {own, "", ""},
		"key of another": {map[string]string{"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": "ca", "OTEL_EXPORTER_OTLP_CLIENT_KEY": "key"}, `"ca" and "key" are not a certificate and its key in PEM form`, ""},
		"no key":         {map[string]string{"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": "cert", "OTEL_EXPORTER_OTLP_CLIENT_KEY": "none"}, "OTEL_EXPORTER_OTLP_CLIENT_KEY: open none", ""},
		"over http":      {map[string]string{"OTEL_EXPORTER_OTLP_CERTIFICATE": "ca", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://h"}, "OTEL_EXPORTER_OTLP_ENDPOINT is not an https address, so the certificates", ""},
	} {
		set := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": s.URL}
		maps.Copy(set, c.set)
		x, err := otlp.Traces(otlp.Env{Lookup: func(name string) string { return set[name] }, ReadFile: read})
		if c.start != "" || err != nil {
			if err == nil || c.start == "" || !strings.Contains(err.Error(), c.start) {
				t.Errorf("%s: it starts with %v, want %s", name, err, c.start)
			}
			continue
		}
		if err := x.ExportSpans(t.Context(), oneSpan(t)); (c.send == "") != (err == nil) || !strings.Contains(message(err), c.send) {
			t.Errorf("%s: %v, want %q", name, err, c.send)
		}
	}
}

// ownCertificate returns a certificate that signs itself, and its key.
func ownCertificate(t *testing.T) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

// FuzzAnswer: whatever a collector answers is read or left, and reading agrees with
// the official types.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"partialSuccess":{"rejectedSpans":"3"}}`))
	f.Add([]byte{0x0a, 4, 0x08, 3, 0x12, 0})
	f.Add([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, answer []byte) {
		otlp.AnswerOf(answer, true)
		_, err := otlp.AnswerOf(answer, false)
		partial, _ := errors.AsType[*otlp.PartialError](err)
		var official tracepb.ExportTraceServiceResponse
		if proto.Unmarshal(answer, &official) != nil || partial == nil {
			return
		}
		if partial.Rejected != 0 && official.GetPartialSuccess() == nil {
			t.Errorf("%x rejects %d, but has no such member", answer, partial.Rejected)
		}
	})
}
