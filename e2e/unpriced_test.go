package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/store"
)

// TestUnpricedServicesAreNotAsked has three services of $5 under a limit of one cent:
// of those that a file names the program refuses the file, and those that somebody
// registered are not asked, by the program either, which says why.
func TestUnpricedServicesAreNotAsked(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		fmt.Fprint(w, `{"transitionName":"on","costUSD":5}`)
	}))
	t.Cleanup(server.Close)
	d := newDesk(t)
	d.env = append(d.env, "DEAR_WEBHOOK_TOKEN=token", "DIALAI_WEBHOOK_ALLOW=127.0.0.1")
	const text = `{"machineName":"dear","initialState":"a","goalState":"b","guards":{"budget":{"hard_limit_usd":0.01}},"states":{"a":{"transitions":{"on":"b"}},"b":{}},"specialists":[%s
		{"role":"proposer","specialistId":"carol","isHuman":true},{"role":"arbiter","specialistId":"judge","strategyFnName":"firstProposal"}]}`
	named := ""
	for i := range 3 {
		named += fmt.Sprintf("\n"+`{"role":"proposer","specialistId":"w%d","strategyWebhookUrl":"%s","webhookTokenName":"DEAR_WEBHOOK_TOKEN"},`, i, server.URL)
	}
	d.must(os.WriteFile(filepath.Join(d.dir, "dear.json"), fmt.Appendf(nil, text, named), 0o644))
	if _, problems := d.run(2, "dear.json"); strings.Count(problems, "error[unpriced-ask]") != 3 || !strings.Contains(problems, "dear.json:2:1: ") || !strings.Contains(problems, "estimatedCostUSD") {
		t.Errorf("running the file says:\n%s", problems)
	}

	m, err := machine.Parse("dear.json", fmt.Appendf(nil, text, ""), runner.Checks())
	d.must(err)
	d.must(os.MkdirAll(filepath.Dir(d.store), 0o755))
	id := ""
	inProcess(t, d.store, runner.Config{Resolver: loopback(t)}, func(r *runner.Runner, _ *store.SQLite) {
		for i := range 3 {
			_, err := r.Register(t.Context(), m.Name(), machine.Specialist{SpecialistID: fmt.Sprintf("w%d", i), Role: machine.Proposer, StrategyWebhookURL: server.URL, WebhookTokenName: "DEAR_WEBHOOK_TOKEN"}, nil)
			d.must(err)
		}
		s, err := r.Start(t.Context(), m, runner.StartOptions{})
		d.must(err)
		id = s.ID.String()
		if tick, err := r.Step(t.Context(), s.ID); err != nil || tick.Status != runner.TickHuman {
			t.Errorf("the step came to %s (%v)", tick.Status, err)
		}
	})
	if out, _ := d.run(3, "resume", id); strings.Count(out, "budget.default_estimate_usd") < 3 {
		t.Errorf("resuming it says:\n%s", out)
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the services were asked %d times", n)
	}
	d.run(0, "decide", id, "on", "--reasoning", "it costs nothing")
}
