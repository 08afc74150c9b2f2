package undertaking

import (
	"context"
	"fmt"
	"slices"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/internal/batch"
	"github.com/dialai/dialai/specialist"
)

// An agent that goes round uses the same tools with the same inputs again and again. The uses of
// one message are a batch, as the machine's batch_loop counts them, for each agent session by
// itself: at the soft limit it is told, at the hard one its turn and its ask end.

const kindBatch = "batch" // tools were used

// A batchOf is the tool uses of one message.
type batchOf struct {
	message string
	calls   []specialist.ToolCall
}

// A counted is a batch as the agent_log has it: no inputs.
type counted struct {
	Hash    string `json:"hash"`
	Warned  bool   `json:"warned,omitempty"`
	Blocked bool   `json:"blocked,omitempty"`
}

// batched puts a use on the main thread into the batch of its message.
func (l *Loop) batched(ctx context.Context, v *live, u agent.ToolUse) {
	if u.Parent != "" {
		return
	}
	if u.MessageID == "" || u.MessageID != v.batch.message {
		l.endBatch(ctx, v)
		v.batch.message = u.MessageID
	}
	v.batch.calls = append(v.batch.calls, specialist.ToolCall{Name: u.Tool, Args: u.Input})
}

// batchedOurs puts a use of one of the loop's tools into a batch of its own. To look at the moves at
// the begin of each turn is no loop: such a use equals those of its round only.
func (l *Loop) batchedOurs(ctx context.Context, v *live, c agent.ToolCall) {
	if c.Parent != "" {
		return
	}
	l.countBatch(ctx, v, []specialist.ToolCall{{Name: fmt.Sprintf("%s in round %d", c.Tool, l.s.Key().Round), Args: c.Input}})
}

// endBatch counts the batch of the newest message, which is whole.
func (l *Loop) endBatch(ctx context.Context, v *live) {
	calls := v.batch.calls
	v.batch = batchOf{}
	l.countBatch(ctx, v, calls)
}

func (l *Loop) countBatch(ctx context.Context, v *live, calls []specialist.ToolCall) {
	guards := l.s.Program.Guards(l.s.State)
	if len(calls) == 0 || guards == nil || guards.Batch == nil {
		return
	}
	_, r, err := guards.Batch.AfterModel(l.state.agent(v.who).Batches, calls)
	if err != nil { // its inputs cannot be compared
		return
	}
	l.note(v.who, kindBatch, counted{r.Hash, r.Outcome == batch.Warn, r.Outcome == batch.Block})
	switch r.Outcome {
	case batch.Warn, batch.Block:
		l.note(v.who, kindNotice, notices{r.Message})
		l.tell(v.who, "%s", firstLine(r.Message))
	case batch.End, batch.Escalate, batch.Failed:
		v.loops = r.Message
		l.tell(v.who, "%s", firstLine(r.Message))
		if v.turn && !v.interrupted {
			l.drop(ctx, v)
		}
	}
}

// maxBatches is how many hashes are kept: more than any window has.
const maxBatches = 200

func foldBatch(s *State, a who, e entry) {
	c := read[counted](e.Data)
	s.change(a, e.At, func(w *Worker) {
		b := w.Batches
		b.Window = append(slices.Clone(b.Window), c.Hash)
		b.Window = b.Window[max(0, len(b.Window)-maxBatches):]
		if c.Warned {
			b.Warned = append(slices.Clone(b.Warned), c.Hash)
		}
		if c.Blocked {
			b.Blocked = append(slices.Clone(b.Blocked), c.Hash)
		}
		w.Batches = b
	})
}
