package temporal

import (
	"context"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// NewFormerWorker returns a worker that knows no workflow but the former one, by its rules before fewerEvents or since.
func (c *Client) NewFormerWorker(ctx context.Context, before bool) (worker.Worker, error) {
	queue, err := c.TaskQueue(ctx)
	if err != nil {
		return nil, err
	}
	w := worker.New(c.Temporal, queue, worker.Options{StickyScheduleToStartTimeout: sticky})
	of := v1
	if before {
		of = beforeFewerEvents
	}
	register(w, c.Runner, map[string]any{FormerWorkflowName: func(ctx workflow.Context, in Input) (Result, error) { return run(ctx, in, of) }})
	return w, nil
}
