package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracespb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/dialai/dialai/webhook"
)

// One request to a collector, by the protocol OTLP/HTTP: protobuf, or JSON as the
// protocol defines it (protobuf's own form with ids in hexadecimal and enums as
// numbers), gzipped if wanted. Statuses 429, 502, 503 and 504 are tried again until
// time is up, after as long as the collector asks; everything else is final. A success
// may say that some of it was rejected (PartialError), and is not sent again.
//
// What a collector says is shown without the operator's headers and cut.

// A signal is one of the kinds of telemetry.
type signal struct {
	name    string // in variables
	path    string // below the base address
	unit    string // what a collector counts when it rejects some
	request proto.Message
	partial func(s *sender, answer []byte) (rejected int64, message string)
}

var (
	traces = signal{"TRACES", "v1/traces", "spans", &tracespb.ExportTraceServiceRequest{}, func(s *sender, answer []byte) (int64, string) {
		var a tracespb.ExportTraceServiceResponse
		s.read(answer, &a)
		return a.GetPartialSuccess().GetRejectedSpans(), a.GetPartialSuccess().GetErrorMessage()
	}}
	metrics = signal{"METRICS", "v1/metrics", "data points", &metricspb.ExportMetricsServiceRequest{}, func(s *sender, answer []byte) (int64, string) {
		var a metricspb.ExportMetricsServiceResponse
		s.read(answer, &a)
		return a.GetPartialSuccess().GetRejectedDataPoints(), a.GetPartialSuccess().GetErrorMessage()
	}}
)

// A sender posts requests of one signal to the collector.
type sender struct {
	signal  signal
	target  *webhook.Target
	json    bool
	gzip    bool
	headers []webhook.Header
	secrets []string // kept out of errors
	timeout time.Duration
	retry   webhook.Retry
	stopped atomic.Bool
}

// shutdown refuses further exports. Those under way end by their own context.
func (s *sender) shutdown(ctx context.Context) error {
	s.stopped.Store(true)
	return ctx.Err()
}

// A PartialError says that a collector took a request, but not all of it, or that it
// has something to remark.
type PartialError struct {
	Rejected int64 // how many; 0 for a remark
	Unit     string
	Message  string // the collector's words; may be empty
}

func (e *PartialError) Error() string {
	if e.Rejected == 0 {
		return fmt.Sprintf("the collector remarks on %s: %s", e.Unit, e.Message)
	}
	return strings.TrimSuffix(fmt.Sprintf("the collector rejected %d %s: %s", e.Rejected, e.Unit, e.Message), ": ")
}

// send posts a request, given in protobuf's form, until it is taken, refused for good, or
// time is up.
func (s *sender) send(ctx context.Context, request []byte) error {
	if s.stopped.Load() {
		return ErrShutdown
	}
	within := s.timeout
	if within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, within)
		defer cancel()
	} else {
		within = time.Minute // after which no further attempt begins
	}
	body, err := s.body(request)
	if err != nil {
		return err
	}
	rule := s.retry
	rule.Within, rule.MaxAfter = within, within
	return rule.Do(ctx, nil, func() error {
		after, err := s.attempt(ctx, body)
		if after < 0 {
			return err
		}
		return webhook.Again(err, after)
	})
}

// attempt posts a request once. after says for how long to wait before another
// attempt, 0 for as long as seems right; it is negative if no other attempt can help.
func (s *sender) attempt(ctx context.Context, body []byte) (after time.Duration, err error) {
	const forGood = -1
	reply, err := s.target.Post(ctx, s.allHeaders(), body)
	switch {
	case err != nil:
		return forGood, fmt.Errorf("sending %s: %s", s.signal.unit, s.clean(err.Error()))
	case reply.Status >= 200 && reply.Status < 300:
		return forGood, s.partial(reply.Body)
	}
	err = fmt.Errorf("sending %s: the collector answered %d", s.signal.unit, reply.Status)
	if said := s.clean(s.said(reply.Body)); said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	switch reply.Status {
	case 429, 502, 503, 504:
		return reply.RetryAfter, err
	}
	return forGood, err
}

// allHeaders returns the operator's headers and, after them, those that say what the
// body is, which nobody else can know.
func (s *sender) allHeaders() []webhook.Header {
	form := "application/x-protobuf"
	if s.json {
		form = "application/json"
	}
	list := append(s.headers[:len(s.headers):len(s.headers)], webhook.Header{Name: "Content-Type", Value: form}, webhook.Header{Name: "Accept", Value: form})
	if s.gzip {
		list = append(list, webhook.Header{Name: "Content-Encoding", Value: "gzip"})
	}
	return list
}

// body returns a request in the form that is sent.
func (s *sender) body(request []byte) (_ []byte, err error) {
	if s.json {
		if request, err = s.inJSON(request); err != nil {
			return nil, err
		}
	}
	if !s.gzip {
		return request, nil
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(request); err != nil {
		return nil, err
	}
	err = z.Close()
	return b.Bytes(), err
}

// inJSON returns a request as JSON: as protobuf's own form has it, but with ids in
// hexadecimal.
func (s *sender) inJSON(request []byte) ([]byte, error) {
	m := proto.CloneOf(s.signal.request)
	if err := proto.Unmarshal(request, m); err != nil {
		return nil, err
	}
	plain, err := protojson.MarshalOptions{UseEnumNumbers: true}.Marshal(m)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(plain))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		return nil, err
	}
	hexIDs(tree)
	return json.Marshal(tree)
}

// hexIDs writes the ids of a tree, which are in base64, in hexadecimal.
func hexIDs(tree any) {
	switch tree := tree.(type) {
	case []any:
		for _, one := range tree {
			hexIDs(one)
		}
	case map[string]any:
		for name, one := range tree {
			hexIDs(one)
			switch name {
			case "traceId", "spanId", "parentSpanId":
				text, _ := one.(string)
				id, _ := base64.StdEncoding.DecodeString(text)
				tree[name] = hex.EncodeToString(id)
			}
		}
	}
}

// maxSaid is how much of what a collector says is shown, in bytes.
const maxSaid = 300

// clean returns what may be shown of a text: without secrets, and not all of it.
func (s *sender) clean(text string) string {
	return webhook.Clip(strings.ToValidUTF8(webhook.Redact(text, s.secrets...), "\uFFFD"), maxSaid)
}

// read reads what a collector answers into a message, which stays empty if the answer is
// none of its type.
func (s *sender) read(body []byte, into proto.Message) {
	read := proto.Unmarshal
	if s.json {
		read = protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal
	}
	if read(body, into) != nil {
		proto.Reset(into)
	}
}

// said returns the message of a Status, which the body of an error is, or the body if
// it is a text.
func (s *sender) said(body []byte) string {
	var told status.Status
	if s.read(body, &told); told.GetMessage() != "" {
		return told.GetMessage()
	}
	return strings.TrimSpace(strings.Map(printable, string(body)))
}

func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return ' '
	}
	return r
}

// partial returns a *PartialError if the answer to a request that was taken has
// something to say. What is no answer of the protocol says nothing.
func (s *sender) partial(body []byte) error {
	e := &PartialError{Unit: s.signal.unit}
	e.Rejected, e.Message = s.signal.partial(s, body)
	if e.Message = s.clean(e.Message); e.Rejected == 0 && e.Message == "" {
		return nil
	}
	return e
}
