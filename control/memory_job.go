package control

import (
	"context"
	"fmt"
	"slices"
)

// jobs are the jobs of a [Memory], in the order in which they were added.
type jobs struct {
	list  []storedJob
	added int64 // how many there have been
}

type storedJob struct {
	Job
	result, finding []byte
}

func (j *jobs) job(id string) *storedJob {
	i := slices.IndexFunc(j.list, func(s storedJob) bool { return s.ID == id })
	if i < 0 {
		return nil
	}
	return &j.list[i]
}

// outlived reports whether a job is forgotten when another one is added.
func (s *storedJob) outlived(by *Job) bool {
	over := s.EndedAt
	if !s.Status.Ended() {
		over = s.CreatedAt
	}
	return by != nil && over <= by.CreatedAt-JobLifetime
}

// refuse returns why changes of jobs cannot be made.
func (j *jobs) refuse(c *Changes) error {
	kept := func(id string) *storedJob {
		if is := j.job(id); is != nil && !is.outlived(c.Job) {
			return is
		}
		return nil
	}
	if c.Job != nil && kept(c.Job.ID) != nil {
		return fmt.Errorf("job %s: %w", c.Job.ID, ErrExists)
	}
	if s := c.JobStep; s != nil {
		switch is := kept(s.ID); {
		case is == nil && (c.Job == nil || c.Job.ID != s.ID):
			return fmt.Errorf("job %s: %w", s.ID, ErrNotFound)
		case is == nil && s.From != JobQueued, is != nil && is.Status != s.From:
			return fmt.Errorf("job %s: %w", s.ID, ErrStale)
		}
	}
	return nil
}

// change makes changes that were not refused.
func (j *jobs) change(c *Changes, process string) {
	if n := c.Job; n != nil {
		j.list = slices.DeleteFunc(j.list, func(old storedJob) bool { return old.outlived(n) })
		j.added++
		j.list = append(j.list, storedJob{Job: Job{
			ID: n.ID, Tenant: n.Tenant, Kind: n.Kind, Machine: n.Machine, Request: slices.Clone(n.Request), CreatedBy: n.CreatedBy, CreatedAt: n.CreatedAt,
			Process: process, Status: JobQueued, Place: j.added,
		}})
	}
	s := c.JobStep
	if s == nil {
		return
	}
	is := j.job(s.ID)
	if s.From == JobQueued && s.To == JobRunning {
		is.StartedAt = s.At
	}
	if is.Status = s.To; !s.To.Ended() {
		is.Done, is.Of = s.Done, s.Of
		return
	}
	is.EndedAt, is.Outcome, is.ResultSize = s.At, s.Outcome, int64(len(s.Result))
	is.result, is.finding = slices.Clone(s.Result), slices.Clone(s.Finding)
}

// told returns a job as it is told.
func (m *Memory) told(s *storedJob) Job {
	j := s.Shown(!m.live[s.Process])
	j.Request = slices.Clone(j.Request)
	return j
}

// Job implements [Store].
func (m *Memory) Job(_ context.Context, id string) (Job, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.jobs.job(id)
	if s == nil {
		return Job{}, fmt.Errorf("job %s: %w", id, ErrNotFound)
	}
	return m.told(s), nil
}

// Jobs implements [Store].
func (m *Memory) Jobs(_ context.Context, q Query) (list []Job, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range page(m.jobs.list, q, func(s *storedJob) (string, int64) { return s.Tenant, s.Place }) {
		j := m.told(&s)
		j.Request = nil
		list = append(list, j)
	}
	return list, nil
}

// JobResult implements [Store].
func (m *Memory) JobResult(_ context.Context, id string) (result, finding []byte, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.jobs.job(id)
	if s == nil {
		return nil, nil, fmt.Errorf("job %s: %w", id, ErrNotFound)
	}
	return slices.Clone(s.result), slices.Clone(s.finding), nil
}
