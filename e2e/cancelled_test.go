package e2e_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dialai/dialai/llm"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/strategies"
)

// TestCancelledWhileAProcessAsks cancels a session while another process runs it, at the
// moment when whoever was asked fails in a way that another request may put right. No
// other is sent: two more were, for a session that nobody wanted any more.
func TestCancelledWhileAProcessAsks(t *testing.T) {
	const (
		builtin = `{"role":"proposer","specialistId":"rule","strategyFnName":"firstAvailable"}`
		first   = `{"role":"arbiter","specialistId":"first","strategyFnName":"firstProposal"}`
		service = `"strategyWebhookUrl":"URL/service","webhookTokenName":"GIVEN_UP_WEBHOOK_TOKEN","estimatedCostUSD":0.4`
		model   = `{"role":"proposer","specialistId":"model","modelId":"openai/gpt-4o","contextFn":"sessionContext"}`
	)
	for name, c := range map[string]struct {
		specialists, guards string
		status              int
		answer              string
	}{
		"a service":                              {`{"role":"proposer","specialistId":"service",` + service + `},` + first, `{}`, 503, `{}`},
		"a model that is down":                   {model + "," + first, `{}`, 503, `{}`},
		"a model that answers what is not asked": {model + "," + first, `{}`, 200, `{"id":"1","model":"gpt-4o","choices":[{"message":{"content":"hm"}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`},
		"an arbiter":                             {builtin + `,{"role":"arbiter","specialistId":"service",` + service + `}`, `{}`, 503, `{}`},
		"a classifier":                           {builtin + "," + first, `{"classifier":{"url":"URL/service","token_name":"GIVEN_UP_WEBHOOK_TOKEN","on_error":"closed"}}`, 503, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			path, id := filepath.Join(t.TempDir(), "dialai.db"), ""
			started := make(chan string, 1) // the id, for the server
			var requests atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				io.Copy(io.Discard, req.Body)
				if requests.Add(1) == 1 {
					if out, err := exec.Command(program, "cancel", <-started, "--note", "enough", "--store", path).CombinedOutput(); err != nil {
						t.Errorf("cancel: %v\n%s", err, out)
					}
				}
				w.WriteHeader(c.status)
				io.WriteString(w, c.answer)
			}))
			defer server.Close()
			m, err := machine.Parse("m.json", []byte(strings.ReplaceAll(`{"machineName":"given-up","initialState":"a","goalState":"b","states":{"a":{"transitions":{"on":"b"}},"b":{}},
				"guards":`+c.guards+`,"specialists":[`+c.specialists+`]}`, "URL", server.URL)), runner.Checks())
			if err != nil {
				t.Fatal(err)
			}
			inProcess(t, path, runner.Config{Resolver: strategies.Resolvers{loopback(t), llm.New(llm.Config{})}}, func(r *runner.Runner, _ *store.SQLite) {
				s, err := r.Start(t.Context(), m, runner.StartOptions{})
				if err != nil {
					t.Fatal(err)
				}
				id = s.ID.String()
				started <- id
			})
			cmd := exec.Command(program, "resume", id, "--store", path)
			cmd.Env = append(os.Environ(), "GIVEN_UP_WEBHOOK_TOKEN=token", "DIALAI_WEBHOOK_ALLOW=127.0.0.1", "DIALAI_LLM_BASE_URL="+server.URL, "OPENAI_API_KEY=sk-nobody")
			out, err := cmd.CombinedOutput()
			if n := requests.Load(); n != 1 {
				t.Errorf("%d requests were sent, want 1", n)
			}
			if cmd.ProcessState.ExitCode() != 4 || !strings.Contains(string(out), "enough") {
				t.Errorf("%v, it prints\n%s", err, out)
			}
		})
	}
}
