package cli_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/webhook"
)

// TestServeTells: a webhook that a command has made is told by the server that runs, signed with
// the secret that the command has shown; the key that seals it is in a file of its own, which
// nobody else can read.
func TestServeTells(t *testing.T) {
	dir := t.TempDir()
	env := []string{"XDG_DATA_HOME=" + dir, "HOME=" + dir, "PATH=" + os.Getenv("PATH"), "DIALAI_WEBHOOK_ALLOW=127.0.0.1"}
	type told struct {
		header http.Header
		body   []byte
	}
	got := make(chan told, 16)
	at := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got <- told{r.Header, body}
	}))
	t.Cleanup(at.Close)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dialai := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(self, args...)
		cmd.Args[0], cmd.Env, cmd.Dir, cmd.Stderr = "dialai", env, dir, os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("dialai %v: %v", args, err)
		}
		return string(out)
	}
	var made struct{ WebhookID, Secret string }
	if err := json.Unmarshal([]byte(dialai("webhooks", "create", at.URL+"/hook", "--type", "webhook.test", "--json")), &made); err != nil {
		t.Fatal(err)
	}
	if _, err := startServer("dialai", env, dir, t.Cleanup); err != nil {
		t.Fatal(err)
	}
	dialai("webhooks", "test", made.WebhookID)
	r := <-got
	key, err := webhook.Key(made.Secret)
	if err == nil {
		err = webhook.Verify(key, r.header.Get("webhook-id"), r.header.Get("webhook-timestamp"), r.header.Get("webhook-signature"), r.body, time.Now())
	}
	if err != nil || !strings.HasPrefix(string(r.body), `{"type":"webhook.test",`) {
		t.Errorf("told is %s (%v)", r.body, err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "dialai", "*.control.key"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the keys are in %v (%v)", files, err)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key has the mode %v (%v)", info.Mode(), err)
	}
}
