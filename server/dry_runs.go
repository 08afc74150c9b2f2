package server

import (
	"context"
	"net/http"
	"time"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/internal/lab/dryrun"
)

// Dry runs: a definition is run once in memory, for who writes it. Nothing of it is kept, nobody
// is asked, and no secret of the server is looked at, so whoever may publish some machine may.

const (
	maxDryRuns  = 2           // at a time, in this process
	dryRunQueue = time.Second // for which others wait
)

func (s *Server) registerDryRuns() {
	add(s, operation{id: "dry-run", method: http.MethodPost, path: "/v1/dry-runs", summary: "Run a definition once in memory, with everybody outside the server played by a script; nothing is kept", needs: mayConfigure, errors: []int{422}}, s.dryRun)
}

type dryRunIn struct{ Body api.DryRunning }

type dryRunOut struct{ Body *api.DryRun }

func (s *Server) dryRun(ctx context.Context, _ *Principal, in *dryRunIn) (*dryRunOut, error) {
	m, err := s.parseEither(in.Body.Definition)
	if err != nil {
		return nil, err
	}
	queue, cancel := context.WithTimeout(ctx, dryRunQueue)
	defer cancel()
	select {
	case s.dryRuns <- struct{}{}:
	case <-queue.Done():
		return nil, &api.Error{Status: http.StatusServiceUnavailable, Code: "overloaded", Detail: "others have their machines run", Hint: "a dry run takes five seconds at most", Retryable: true, ExitCode: 1}
	}
	defer func() { <-s.dryRuns }()
	r, err := dryrun.Run(ctx, dryrun.Config{Machine: m, Meta: in.Body.MetaJSON, Answers: in.Body.Answers, Seed: in.Body.Seed})
	return &dryRunOut{r}, err
}
