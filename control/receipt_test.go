package control_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/specialist"
)

// TestReceiptKeyID: the id is fixed for ever (a request that is sent again must find the
// session it made), is a UUID of version 8, and depends on where one text ends and the next
// begins.
func TestReceiptKeyID(t *testing.T) {
	key := control.ReceiptKey{Tenant: "default", Subject: "key:abc", Method: "POST", Path: "/v1/sessions", Key: "k1"}
	if got := key.ID().String(); got != "6050681b-a1e2-84bd-844b-df64c7225578" {
		t.Errorf("the id is %s", got)
	}
	seen := map[specialist.SessionID]control.ReceiptKey{}
	for _, k := range []control.ReceiptKey{
		key,
		{Tenant: "defaultk", Subject: "ey:abc", Method: "POST", Path: "/v1/sessions", Key: "k1"},
		{Tenant: "default", Subject: "key:abc", Method: "POST", Path: "/v1/sessionsk", Key: "1"},
		{Tenant: "default", Subject: "key:abd", Method: "POST", Path: "/v1/sessions", Key: "k1"},
		{Tenant: "default", Subject: "key:abc", Method: "PUT", Path: "/v1/sessions", Key: "k1"},
		{},
	} {
		id := k.ID()
		if text := id.String(); text[14] != '8' || !strings.Contains("89ab", text[19:20]) {
			t.Errorf("%s is no UUID of version 8", text)
		}
		if other, is := seen[id]; is {
			t.Errorf("%+v and %+v have the same id", k, other)
		}
		seen[id] = k
	}
}

// TestRepeat is the table of what becomes of a request where there is a receipt.
func TestRepeat(t *testing.T) {
	const day = control.ReceiptLifetime
	body, other := control.HashOf("a"), control.HashOf("b")
	answer := &control.Answer{Status: 201}
	for name, c := range map[string]struct {
		stored *control.StoredReceipt
		gone   bool
		body   control.Hash
		at     specialist.Time
		want   control.Begun
		err    error
	}{
		"none":                           {nil, false, body, 0, control.Begun{}, nil},
		"under way":                      {&control.StoredReceipt{Body: body}, false, body, 1, control.Begun{}, control.ErrInProgress},
		"under way, other body":          {&control.StoredReceipt{Body: body}, false, other, 1, control.Begun{}, control.ErrKeyReused},
		"under way for more than a day":  {&control.StoredReceipt{Body: body}, false, body, day, control.Begun{}, control.ErrInProgress},
		"its process is gone":            {&control.StoredReceipt{Body: body}, true, body, day - 1, control.Begun{Resumed: true}, nil},
		"gone, other body":               {&control.StoredReceipt{Body: body}, true, other, 1, control.Begun{}, control.ErrKeyReused},
		"gone for more than a day":       {&control.StoredReceipt{Body: body}, true, body, day, control.Begun{}, nil},
		"answered":                       {&control.StoredReceipt{Body: body, Answer: answer}, false, body, day - 1, control.Begun{Answer: answer}, nil},
		"answered by one that is gone":   {&control.StoredReceipt{Body: body, Answer: answer}, true, body, 1, control.Begun{Answer: answer}, nil},
		"answered, other body":           {&control.StoredReceipt{Body: body, Answer: answer}, true, other, 1, control.Begun{}, control.ErrKeyReused},
		"answered a day ago":             {&control.StoredReceipt{Body: body, Answer: answer}, false, body, day, control.Begun{}, nil},
		"answered a day ago, other body": {&control.StoredReceipt{Body: body, Answer: answer}, false, other, day, control.Begun{}, nil},
	} {
		got, err := c.stored.Repeat(control.Receipt{Body: c.body, At: c.at}, c.gone)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %+v, %v, want %+v, %v", name, got, err, c.want, c.err)
		}
	}
}

func TestKept(t *testing.T) {
	body := make([]byte, control.MaxAnswer)
	a := control.Answer{Status: 200, Body: body}.Kept()
	if body[0] = 1; len(a.Body) != len(body) || a.Body[0] != 0 || a.Omitted {
		t.Error("an answer of the largest size is not kept, or shared")
	}
	a = control.Answer{Status: 200, ETag: `"3"`, Body: append(body, 0)}.Kept()
	if a.Body != nil || !a.Omitted || a.Status != 200 || a.ETag != `"3"` {
		t.Errorf("of a larger one %+v is kept", a)
	}
}
