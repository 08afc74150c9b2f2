package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/dialai/dialai/webhook"
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

	once sync.Once
	stop chan struct{}
}

func (s *sender) stopped() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

// shutdown refuses further exports. Those under way end by their own context.
func (s *sender) shutdown(ctx context.Context) error {
	s.once.Do(func() { close(s.stop) })
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

// send posts a request until it is taken, refused for good, or time is up.
func (s *sender) send(ctx context.Context, request message) error {
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
// attempt, 0 for as long as seems right; it is negative if there is nothing to mend.
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
func (s *sender) body(request message) ([]byte, error) {
	write := appendProto
	if s.json {
		write = appendJSON
	}
	plain := write(nil, request)
	if !s.gzip {
		return plain, nil
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(plain); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// maxSaid is how much of what a collector says is shown, in bytes.
const maxSaid = 300

// clean returns what may be shown of a text: without secrets, and not all of it.
func (s *sender) clean(text string) string {
	return webhook.Clip(strings.ToValidUTF8(webhook.Redact(text, s.secrets...), "\uFFFD"), maxSaid)
}

// said returns the message of a Status, which the body of an error is, or the body if
// it is a text.
func (s *sender) said(body []byte) string {
	if s.json {
		var status struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(body, &status) == nil && status.Message != "" {
			return status.Message
		}
	} else if _, text, ok := twoMembers(body); ok && text != "" {
		return text
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
	if s.json {
		var answer struct {
			PartialSuccess struct {
				Spans   json.Number `json:"rejectedSpans"`
				Points  json.Number `json:"rejectedDataPoints"`
				Message string      `json:"errorMessage"`
			} `json:"partialSuccess"`
		}
		if json.Unmarshal(body, &answer) != nil {
			return nil
		}
		p := answer.PartialSuccess
		spans, _ := p.Spans.Int64()
		points, _ := p.Points.Int64()
		e.Rejected, e.Message = spans+points, p.Message
	} else {
		inner, ok := memberOne(body)
		if !ok {
			return nil
		}
		e.Rejected, e.Message, _ = twoMembers(inner)
	}
	if e.Message = s.clean(e.Message); e.Rejected == 0 && e.Message == "" {
		return nil
	}
	return e
}

// memberOne returns the last member 1 of a message in protobuf's form that is itself
// a message.
func memberOne(b []byte) (inner []byte, ok bool) {
	ok = eachMember(b, func(n protowire.Number, t protowire.Type, value []byte) {
		if n == 1 && t == protowire.BytesType {
			inner, _ = protowire.ConsumeBytes(value)
		}
	})
	return inner, ok && inner != nil
}

// twoMembers returns members 1, a whole number, and 2, a text, of a message.
func twoMembers(b []byte) (whole int64, text string, ok bool) {
	ok = eachMember(b, func(n protowire.Number, t protowire.Type, value []byte) {
		switch {
		case n == 1 && t == protowire.VarintType:
			v, _ := protowire.ConsumeVarint(value)
			whole = int64(v)
		case n == 2 && t == protowire.BytesType:
			v, _ := protowire.ConsumeBytes(value)
			text = string(v)
		}
	})
	return whole, text, ok
}

// eachMember hands the members of a message to f and reports whether it is one.
func eachMember(b []byte, f func(n protowire.Number, t protowire.Type, value []byte)) bool {
	for len(b) > 0 {
		n, t, tag := protowire.ConsumeTag(b)
		if tag < 0 {
			return false
		}
		size := protowire.ConsumeFieldValue(n, t, b[tag:])
		if size < 0 {
			return false
		}
		f(n, t, b[tag:tag+size])
		b = b[tag+size:]
	}
	return true
}
