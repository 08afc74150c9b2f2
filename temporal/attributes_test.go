package temporal_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/temporal"
)

// guide runs the command of docs/temporal.md that begins so, at this server.
func (s *server) guide(begins string) string {
	s.Helper()
	text, err := os.ReadFile("../docs/temporal.md")
	if err != nil {
		s.Fatal(err)
	}
	for _, block := range strings.Split(string(text), "```")[1:] {
		code, is := strings.CutPrefix(block, "sh\n"+begins)
		if !is {
			continue
		}
		code = strings.ReplaceAll(strings.TrimPrefix(begins, "temporal")+code, "127.0.0.1:7233", s.address)
		cmd := exec.CommandContext(s.Context(), "sh", "-c", program(s.TB)+code)
		cmd.Env = append(os.Environ(), "HOME="+s.TempDir())
		out, err := cmd.CombinedOutput()
		if err != nil {
			s.Fatalf("%s: %v: %s", begins, err, out)
		}
		return string(out)
	}
	s.Fatalf("docs/temporal.md has no command that begins with %q", begins)
	return ""
}

// finds waits until the server lists the workflow of a query, and no other.
func (s *server) finds(query, workflowID string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 60*time.Second)
	defer cancel()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		list, err := s.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query})
		if err == nil && len(list.Executions) == 1 && list.Executions[0].Execution.WorkflowId == workflowID {
			return
		}
		select {
		case <-ctx.Done():
			s.Fatalf("%s finds %v, %v, want %s", query, list, err, workflowID)
		case <-again.C:
		}
	}
}

// TestSearchAttributes: workflows are found by their machine, status, code and tenant where the namespace knows those, and run
// as they would where it does not.
func TestSearchAttributes(t *testing.T) {
	answered := make(chan struct{})
	s := newServer(t).site(func(ctx context.Context, _ specialist.Question) (string, error) {
		select {
		case <-answered:
			return "", errors.New("down")
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	s.tenant = "acme" // who adopts knows of no tenants: the worker says it
	defer s.worker().Stop()
	without := s.begin(machineOf(t, "", human, half)) // as all other tests, without any
	s.stands(without, needsHuman)
	s.guide("temporal operator search-attribute create")
	one := s.begin(machineOf(t, "", web("a", "10m"), human, half))
	id := s.workflowID(one)
	s.stands(one, func(at temporal.Status) bool { return len(at.Asks) == 1 })
	s.finds(`DialaiMachine = "m" AND DialaiStatus = "running" AND DialaiTenant = "acme"`, id)
	close(answered)
	at := s.stands(one, needsHuman)
	s.finds(`DialaiMachine = "m" AND DialaiStatus = "needs_human"`, id)
	s.finds(`DialaiCode = "`+at.Code+`"`, id)
	if out := s.guide("temporal workflow list"); !strings.Contains(out, id) || strings.Contains(out, s.workflowID(without)) {
		t.Errorf("the guide lists %s", out)
	}
	for _, of := range []string{id, s.workflowID(without)} {
		now := one
		if of != id {
			now = without
		}
		at := s.stands(now, needsHuman)
		_, err := s.c.Decide(t.Context(), now.ID, "", seen(t, s.c.Runner, now, temporal.Ruling{RoundID: at.RoundID, Sequence: at.Sequence, SpecialistID: "carol", TransitionName: "finish"}))
		s.ok(err)
		s.ended(now, "completed")
	}
	s.finds(`DialaiMachine = "m" AND DialaiStatus = "completed" AND DialaiCode = "goal" AND DialaiTenant = "acme"`, id)
	s.set(one, "attributes", "DialaiTenant, DialaiCode DialaiStatus, DialaiCode DialaiStatus")

	s.c.Runner = s.runner() // of whose tenant adopting knows
	known := s.begin(machineOf(t, "", web("a", "10m"), human, half))
	s.stands(known, needsHuman)
	s.finds(`DialaiTenant = "acme" AND DialaiStatus = "needs_human"`, s.workflowID(known))
	s.set(known, "tenant", "DialaiCode DialaiStatus")
}

// set fails the test unless the workflow of a session has set those attributes, since it was started.
func (s *site) set(one *session.Session, history, want string) {
	s.Helper()
	var list []string
	for _, e := range s.history(one, history).Events {
		if changes := e.GetUpsertWorkflowSearchAttributesEventAttributes(); changes != nil {
			list = append(list, strings.Join(slices.Sorted(maps.Keys(changes.SearchAttributes.IndexedFields)), " "))
		}
	}
	if got := strings.Join(list, ", "); got != want {
		s.Errorf("set are %s, want %s", got, want)
	}
}
