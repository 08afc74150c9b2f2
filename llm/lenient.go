package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/dialai/dialai/exact"
)

// byteOrderMark is what some servers put before their JSON.
var byteOrderMark = []byte("\uFEFF")

// readBody reads the JSON object of a body, which was paid for. A member of another
// type than the API promises is as if it were not there, so that nobody's way of
// writing a count or a name costs the answer beside it.
func readBody(body []byte, into any) error {
	body = bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(body), byteOrderMark))
	if !bytes.HasPrefix(body, []byte("{")) {
		return errNotJSON
	}
	err := json.Unmarshal(body, into)
	if _, other := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !other {
		return errNotJSON
	}
	return nil
}

// written returns the text of a JSON string or number; "" for another value.
func written(data []byte) string {
	var s string
	if json.Unmarshal(data, &s) == nil {
		return strings.TrimSpace(s)
	}
	if exact.IsNumber(string(data)) {
		return string(data)
	}
	return ""
}

// A name is a string, or, from some servers, a number. Another value is no name.
type name string

// UnmarshalJSON reads any value.
func (n *name) UnmarshalJSON(data []byte) error {
	*n = name(written(data))
	return nil
}

// A tally is a count of tokens: a whole number from 0 on, which some servers write
// as a decimal or in quotes.
type tally struct {
	n     int64
	there bool // something is written, though it may be no count
	given bool
}

// UnmarshalJSON reads any value.
func (t *tally) UnmarshalJSON(data []byte) error {
	if t.there = string(data) != "null"; !t.there {
		return nil
	}
	text := written(data)
	n, err := strconv.ParseInt(text, 10, 64)
	if f, bad := strconv.ParseFloat(text, 64); err != nil && bad == nil && exact.IsNumber(text) && f == math.Trunc(f) && math.Abs(f) <= 1<<53 {
		n, err = int64(f), nil
	}
	if t.given = err == nil && n >= 0; t.given {
		t.n = n
	}
	return nil
}

// count returns the count, nil if there is none.
func (t tally) count() *int64 {
	if !t.given {
		return nil
	}
	return &t.n
}

// A price is an amount of dollars, a number or one in quotes; nil is none that can be
// read.
type price struct{ amount *exact.Money }

// UnmarshalJSON reads any value.
func (p *price) UnmarshalJSON(data []byte) error {
	if m, err := exact.ParseMoney(written(data)); err == nil && m >= 0 {
		p.amount = &m
	}
	return nil
}

// logProb adds the log probability of a token. Where one of them cannot be read, none
// counts: a missing one would pass for certainty.
func (r *Response) logProb(token string, written json.RawMessage) {
	var p *float64
	if json.Unmarshal(written, &p) != nil || p == nil || len(r.LogProbs) != len(r.LogTokens) {
		r.LogProbs, r.LogTokens = nil, append(r.LogTokens, token)
		return
	}
	r.LogProbs, r.LogTokens = append(r.LogProbs, *p), append(r.LogTokens, token)
}
