package temporal

import (
	"context"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// NewFormerWorker returns a worker of the version before fewerEvents.
func (c *Client) NewFormerWorker(ctx context.Context) (worker.Worker, error) {
	queue, err := c.TaskQueue(ctx)
	if err != nil {
		return nil, err
	}
	w := worker.New(c.Temporal, queue, worker.Options{StickyScheduleToStartTimeout: sticky})
	register(w, c.Runner, func(ctx workflow.Context, in Input) (Result, error) { return run(ctx, in, true) })
	return w, nil
}
