package temporal_test

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/temporal"
)

// What histories hold: how much of it, and that they are replayed, those of former versions of the workflow, too.

// release is in the names of the histories that are recorded now. Those of former versions of the workflow stay.
const release = "v2"

var record = flag.Bool("record", false, "write histories of the real server to testdata/histories")

// history returns the history of the newest run of a session, and keeps it for the replay.
func (s *site) history(one *session.Session, name string) *historypb.History {
	s.Helper()
	id, err := s.c.WorkflowID(s.Context(), one.ID)
	s.ok(err)
	h := &historypb.History{}
	events := s.client.GetWorkflowHistory(s.Context(), id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		s.ok(err)
		h.Events = append(h.Events, e)
	}
	text, err := temporalproto.CustomJSONMarshalOptions{Indent: " "}.Marshal(h)
	s.ok(err)
	if strings.Contains(string(text), secretWord) {
		s.Error("the history holds contents")
	}
	if *record {
		s.ok(os.WriteFile(filepath.Join("testdata", "histories", name+"-"+release+".json"), append(text, '\n'), 0o644))
	}
	s.ok(replay(h))
	return h
}

// replay has the workflows of this version run by a history.
func replay(h *historypb.History) error {
	replayer := worker.NewWorkflowReplayer()
	replayer.RegisterWorkflowWithOptions(temporal.Session, workflow.RegisterOptions{Name: temporal.WorkflowName})
	replayer.RegisterWorkflowWithOptions(temporal.FormerSession, workflow.RegisterOptions{Name: temporal.FormerWorkflowName})
	return replayer.ReplayWorkflowHistory(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), h)
}

// TestServerEvents counts what a history takes: a wait for a human 7 events, k long asks that are answered one after the
// other 6 each beside 6, a hundred rounds without a wait 12; and what a search attribute takes that changes: one.
func TestServerEvents(t *testing.T) {
	const asks = 3
	var next [asks]chan struct{}
	for i := range next {
		next[i] = make(chan struct{})
	}
	var rounds atomic.Int32
	s := newServer(t).site(func(ctx context.Context, q specialist.Question) (string, error) {
		if q.Self == "local" {
			if rounds.Add(1) == 100 {
				return "finish", nil
			}
			return "again", nil
		}
		select {
		case <-next[q.Self[1]-'0']:
			return map[bool]string{true: "finish", false: "again"}[q.Self == "w0"], nil // so that there is no majority
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	defer s.worker().Stop()
	length := func(one *session.Session, name string) (events int, bytes int64) {
		h := s.history(one, name)
		for _, e := range h.Events {
			if size := proto.Size(e); size > 2048 { // with all payloads that it has
				t.Errorf("an event has %d bytes: %v", size, e)
			}
		}
		d, err := s.client.DescribeWorkflowExecution(t.Context(), s.workflowID(one), "")
		s.ok(err)
		return len(h.Events), d.WorkflowExecutionInfo.HistorySizeBytes
	}
	s.guide("temporal operator search-attribute create")
	local := s.begin(machineOf(t, "", web("local", "5s"), first))
	s.ended(local, "completed")
	n, size := length(local, "local")
	if n > 12 || s.now(local).Executed != 100 {
		t.Errorf("%d rounds take %d events", s.now(local).Executed, n)
	}
	t.Logf("%d rounds take %d events, %d bytes", s.now(local).Executed, n, size)

	one := s.begin(machineOf(t, `,"quorum":3`, web("w0", "10m"), web("w1", "10m"), web("w2", "10m"), human, `{"role":"arbiter","specialistId":"arb","strategyFnName":"alignmentMargin","threshold":0.9}`))
	s.stands(one, func(at temporal.Status) bool { return len(at.Asks) == asks })
	for i := range next { // nothing is to be done for one before the next is answered
		close(next[i])
		s.until(func() bool {
			d, err := s.client.DescribeWorkflowExecution(t.Context(), s.workflowID(one), "")
			return err == nil && d.PendingWorkflowTask == nil && len(d.PendingActivities) == asks-1-i
		})
	}
	s.stands(one, needsHuman)
	n, size = length(one, "asks")
	if most := 4 + 6 + 6*asks + 7 + 1; n > most { // the start and its task, the asks, the human, an attribute
		t.Errorf("%d asks and a human take %d events, want %d", asks, n, most)
	}
	t.Logf("%d asks and a human take %d events, %d bytes", asks, n, size)
	s.ok(s.client.TerminateWorkflow(t.Context(), s.workflowID(one), "", "enough"))

	two := s.begin(machineOf(t, "", human, half))
	at := s.stands(two, needsHuman)
	last := func(one *session.Session) (list []*historypb.HistoryEvent, bytes int) { // the newest wait, from its advance on
		list = s.history(one, "wait").Events
		for i := len(list) - 1; i > 0; i-- {
			if list[i].EventType == enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED {
				list = list[i:]
				break
			}
		}
		for _, e := range list {
			bytes += proto.Size(e)
		}
		return list, bytes
	}
	for i, most := range []int{7 + 1, 7} { // an attribute changes before the first wait, and not before the second
		if i > 0 {
			_, err := s.c.Runner.Decide(t.Context(), runner.Ruling{SessionID: two.ID, RoundID: at.RoundID, SpecialistID: "carol", TransitionName: "again"})
			s.ok(err)
			s.ok(s.c.Changed(t.Context(), two.ID, s.now(two).Sequence))
			s.stands(two, func(now temporal.Status) bool { return needsHuman(now) && now.RoundID != at.RoundID })
		}
		s.until(func() bool {
			d, err := s.client.DescribeWorkflowExecution(t.Context(), s.workflowID(two), "")
			return err == nil && d.PendingWorkflowTask == nil && len(d.PendingActivities) == 0
		})
		events, bytes := last(two)
		if len(events) > most || bytes > 1024+160*(most-7) {
			t.Errorf("a wait for a human takes %d events, %d bytes: %v", len(events), bytes, s.kinds(two))
		}
		t.Logf("a wait for a human takes %d events, %d bytes", len(events), bytes)
	}
}

// TestReplay: histories of former versions, and of this one, lead to the same commands; and this test would see it if
// they did not: as where an activity was another one, or what sets attributes is missing.
func TestReplay(t *testing.T) {
	files, err := filepath.Glob("testdata/histories/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no histories: %v", err)
	}
	attributes, former := 0, 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		read := func() *historypb.History {
			h := &historypb.History{}
			if err := (temporalproto.CustomJSONUnmarshalOptions{}).Unmarshal(text, h); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			return h
		}
		h := read()
		if err := replay(h); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if h.Events[0].GetWorkflowExecutionStartedEventAttributes().WorkflowType.Name == temporal.FormerWorkflowName {
			former++
		}
		h = read()
		for _, e := range h.Events {
			switch is := e.GetActivityTaskScheduledEventAttributes(); is.GetActivityType().GetName() {
			case temporal.AdvanceActivity:
				is.ActivityType.Name = temporal.AskActivity
			case temporal.AskActivity:
				is.ActivityType.Name = temporal.AdvanceActivity
			}
		}
		if replay(h) == nil {
			t.Errorf("%s is replayed with swapped activities", file)
		}
		h = read()
		for _, e := range h.Events {
			if set := e.GetUpsertWorkflowSearchAttributesEventAttributes(); set != nil && set.SearchAttributes.IndexedFields[temporal.AttributeStatus] != nil {
				attributes++
				e.EventType, e.Attributes = enums.EVENT_TYPE_TIMER_CANCELED, &historypb.HistoryEvent_TimerCanceledEventAttributes{TimerCanceledEventAttributes: &historypb.TimerCanceledEventAttributes{TimerId: "1"}}
				if replay(h) == nil {
					t.Errorf("%s is replayed where its attributes are not set", file)
				}
				break
			}
		}
	}
	if attributes == 0 || former == 0 || former == len(files) {
		t.Errorf("of %d histories %d set attributes, %d are of the former type", len(files), attributes, former)
	}
}
