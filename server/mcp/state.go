package mcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
)

// What a client is to send back with a human's answer says who was asked what, and until when. It
// is sealed, so that it comes from here, and compared with the call that it comes with: the same
// caller, tool and arguments. It names the question by its digest, which a ruling is refused on
// that is not the present one; so it counts once.

// purpose is what states are sealed for.
const purpose = "mcp requestState"

// stateFor is how long a human may take to answer.
const stateFor = 10 * time.Minute

// An asked is what was put to a human.
type asked struct {
	Subject   string `json:"s"`
	Tool      string `json:"t"`
	Arguments string `json:"a"` // their digest
	RoundID   string `json:"r"`
	Digest    string `json:"d"` // of the question
	Form      bool   `json:"f,omitempty"`
	Until     int64  `json:"u"` // Unix seconds
}

// seal returns what the client is to send back.
func (c *conversation) seal(ctx context.Context, a asked) string {
	a.Subject, a.Tool, a.Arguments, a.Until = c.config.API.Caller(ctx).Subject, c.tool.name, digestOf(c.raw), c.config.Now().Add(stateFor).Unix()
	text, err := json.Marshal(a)
	if err != nil {
		panic(err) // texts and numbers can be written
	}
	return c.config.Key.Seal(purpose, text)
}

// unseal returns what was put to a human by the call that this one repeats; false if none was, by
// this caller with these arguments, or it is too long ago.
func (c *conversation) unseal(ctx context.Context) (a asked, ok bool) {
	text, err := c.config.Key.Open(purpose, c.state)
	if err != nil || json.Unmarshal(text, &a) != nil {
		return asked{}, false
	}
	same := a.Subject == c.config.API.Caller(ctx).Subject && a.Tool == c.tool.name && a.Arguments == digestOf(c.raw)
	return a, same && c.config.Now().Unix() < a.Until
}

// digestOf returns the digest of arguments, however they are written.
func digestOf(arguments json.RawMessage) string {
	d := json.NewDecoder(bytes.NewReader(arguments))
	d.UseNumber()
	var v any
	_ = d.Decode(&v) // what is no JSON is like nothing
	text, _ := json.Marshal(v)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
