package notify_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/dialai/dialai/webhook"
)

// aMessage returns a message as it is sent, and the secret of its webhook.
func aMessage(t *testing.T) (r request, secret string) {
	t.Helper()
	w := newWorld(t)
	id := w.hook()
	w.start(claims)
	w.deliver(2 * time.Second)
	if len(w.got) == 0 {
		t.Fatal("nothing was sent")
	}
	return w.got[0], w.secrets[id]
}

// TestStandardWebhooks: the library of others in Go takes what is sent, and what it signs is
// taken.
func TestStandardWebhooks(t *testing.T) {
	r, secret := aMessage(t)
	theirs, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{}
	for name, value := range r.headers {
		header.Set(name, value)
	}
	if err := theirs.Verify(r.body, header); err != nil {
		t.Errorf("what is sent is not taken: %v", err)
	}
	if err := theirs.Verify(append(bytes.Clone(r.body), ' '), header); err == nil {
		t.Error("what was changed is taken")
	}
	at := time.Now()
	signature, err := theirs.Sign("msg_1", at, r.body)
	if err != nil {
		t.Fatal(err)
	}
	verifies(t, secret, fmt.Sprint(at.Unix()), signature, r.body)
}

func verifies(t *testing.T, secret, timestamp, signature string, body []byte) {
	t.Helper()
	key, err := webhook.Key(secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := webhook.Verify(key, "msg_1", timestamp, signature, body, time.Now()); err != nil {
		t.Errorf("what others sign is not taken: %v", err)
	}
}

// TestStandardWebhooksOfNode: so does the library in JavaScript.
func TestStandardWebhooksOfNode(t *testing.T) {
	modules := os.Getenv("DIALAI_NODE_MODULES")
	if modules == "" {
		t.Skip("needs the npm package standardwebhooks: .ci/strangers installs it and runs this")
	}
	r, secret := aMessage(t)
	headers := map[string]string{}
	for name, value := range r.headers {
		headers[http.CanonicalHeaderKey(name)] = value
	}
	given, err := json.Marshal(map[string]any{"secret": secret, "headers": headers, "body": string(r.body)})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", "testdata/standardwebhooks.cjs")
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	cmd.Stdin = bytes.NewReader(given)
	var failed bytes.Buffer
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("what is sent is not taken: %v\n%s", err, failed.Bytes())
	}
	var signed struct{ Timestamp, Signature string }
	if err := json.Unmarshal(out, &signed); err != nil {
		t.Fatal(err)
	}
	verifies(t, secret, signed.Timestamp, signed.Signature, r.body)
}
