package otlp_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"

	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/dialai/dialai/internal/otlp"
)

// An arrival is one request that a collector got.
type arrival struct {
	path, query string
	header      http.Header
	body        []byte // uncompressed
}

// A collector keeps what arrives and answers as the test says.
type collector struct {
	*httptest.Server
	answer http.HandlerFunc // nil takes everything

	mu       sync.Mutex
	arrivals []arrival
}

func collect(t *testing.T, answer http.HandlerFunc) *collector {
	t.Helper()
	c := &collector{answer: answer}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var from io.Reader = req.Body
	if req.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(req.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		from = z
	}
	body, err := io.ReadAll(from)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	c.arrivals = append(c.arrivals, arrival{req.URL.Path, req.URL.RawQuery, req.Header, body})
	c.mu.Unlock()
	if c.answer != nil {
		c.answer(w, req)
	}
}

// all returns what has arrived.
func (c *collector) all() []arrival {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.arrivals
}

// only returns the one request that has arrived.
func (c *collector) only(t *testing.T) arrival {
	t.Helper()
	all := c.all()
	if len(all) != 1 {
		t.Fatalf("%d requests arrived, want 1", len(all))
	}
	return all[0]
}

// env returns variables, in pairs.
func env(pairs ...string) otlp.Env {
	set := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		set[pairs[i]] = pairs[i+1]
	}
	return otlp.Env{Lookup: func(name string) string { return set[name] }, ReadFile: os.ReadFile}
}

// decode reads what arrived with the official types, in the form that its header
// names.
func (a arrival) decode(t *testing.T, into proto.Message) {
	t.Helper()
	var err error
	switch form := a.header.Get("Content-Type"); form {
	case "application/x-protobuf":
		err = proto.Unmarshal(a.body, into)
	case "application/json":
		err = protojson.Unmarshal(withBase64(t, a.body), into)
	default:
		t.Fatalf("the content type is %q", form)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, a.body)
	}
}

func (a arrival) spans(t *testing.T) *tracepb.ExportTraceServiceRequest {
	t.Helper()
	r := &tracepb.ExportTraceServiceRequest{}
	a.decode(t, r)
	return r
}

func (a arrival) metrics(t *testing.T) *metricspb.ExportMetricsServiceRequest {
	t.Helper()
	r := &metricspb.ExportMetricsServiceRequest{}
	a.decode(t, r)
	return r
}

// withBase64 undoes the one thing in which OTLP's JSON is not protobuf's: ids are
// hexadecimal.
func withBase64(t *testing.T, body []byte) []byte {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, one := range v {
				walk(one)
			}
		case map[string]any:
			for name, one := range v {
				if text, ok := one.(string); ok && (name == "traceId" || name == "spanId" || name == "parentSpanId") {
					b, err := hex.DecodeString(text)
					if err != nil {
						t.Fatalf("%s is %q", name, text)
					}
					v[name] = base64.StdEncoding.EncodeToString(b)
				}
				walk(one)
			}
		}
	}
	walk(v)
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// same compares messages field by field.
func same(t *testing.T, got, want proto.Message) {
	t.Helper()
	if !proto.Equal(got, want) {
		show := prototext.MarshalOptions{Multiline: true}
		t.Errorf("arrived is\n%s\nwant\n%s", show.Format(got), show.Format(want))
	}
}

// forms are the ways in which a request can be written.
var forms = map[string][]string{
	"protobuf":      nil,
	"protobuf gzip": {"OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"},
	"json":          {"OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"},
	"json gzip":     {"OTEL_EXPORTER_OTLP_PROTOCOL", "http/json", "OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"},
}
