package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/dialai/dialai/control"
)

// Jobs, as rows, and what came of each in a row of its own: lists do not read it.

const jobColumns = "id, job_id, tenant, kind, machine, created_by, created_at, process, status, started_at, ended_at, done, total, exit_code, code, detail, hint, result_size"

type jobStatements struct {
	insert, find, start, progress, end, result *sql.Stmt
	purge, purgeResults                        *sql.Stmt
}

func (st *jobStatements) prepare(p *preparer) {
	p.prepare(&st.insert, insert("jobs", []string{"job_id", "tenant", "kind", "machine", "request", "created_by", "created_at", "process", "status"})+` ON CONFLICT DO NOTHING`)
	p.prepare(&st.find, `SELECT id, status FROM jobs WHERE job_id=?`)
	p.prepare(&st.start, `UPDATE jobs SET started_at=? WHERE id=?`)
	p.prepare(&st.progress, `UPDATE jobs SET status=?, done=?, total=? WHERE id=?`)
	p.prepare(&st.end, `UPDATE jobs SET status=?, ended_at=?, exit_code=?, code=?, detail=?, hint=?, result_size=? WHERE id=?`)
	p.prepare(&st.result, insert("results", []string{"job", "result", "finding"}))
	const old = ` WHERE ended_at<>0 AND ended_at<=?1 OR ended_at=0 AND created_at<=?1`
	p.prepare(&st.purgeResults, `DELETE FROM results WHERE job IN (SELECT id FROM jobs`+old+`)`)
	p.prepare(&st.purge, `DELETE FROM jobs`+old)
}

func (c *Control) writeJob(ctx context.Context, changes *control.Changes) error {
	if n := changes.Job; n != nil {
		if err := c.addJob(ctx, n); err != nil {
			return err
		}
	}
	s := changes.JobStep
	if s == nil {
		return nil
	}
	st := &c.stmts.jobs
	var id int64
	var status control.JobStatus
	switch err := st.find.QueryRowContext(ctx, s.ID).Scan(&id, &status); {
	case errors.Is(err, sql.ErrNoRows):
		return skip(fmt.Errorf("job %s: %w", s.ID, control.ErrNotFound))
	case err != nil:
		return err
	case status != s.From:
		return skip(fmt.Errorf("job %s: %w", s.ID, control.ErrStale))
	}
	if s.From == control.JobQueued && s.To == control.JobRunning {
		if _, err := st.start.ExecContext(ctx, s.At, id); err != nil {
			return err
		}
	}
	if !s.To.Ended() {
		_, err := st.progress.ExecContext(ctx, s.To, s.Done, s.Of, id)
		return err
	}
	o := &s.Outcome
	_, err := st.end.ExecContext(ctx, s.To, s.At, o.ExitCode, o.Code, o.Detail, o.Hint, len(s.Result), id)
	if err == nil && (s.Result != nil || s.Finding != nil) {
		_, err = st.result.ExecContext(ctx, id, s.Result, s.Finding)
	}
	return err
}

// addJob adds a job of this process, and forgets those that are old.
func (c *Control) addJob(ctx context.Context, n *control.Job) error {
	st := &c.stmts.jobs
	for _, purge := range []*sql.Stmt{st.purgeResults, st.purge} {
		if _, err := purge.ExecContext(ctx, n.CreatedAt-control.JobLifetime); err != nil {
			return err
		}
	}
	added, err := changed(st.insert.ExecContext(ctx, n.ID, n.Tenant, n.Kind, n.Machine, text(n.Request), n.CreatedBy, n.CreatedAt, c.process(), control.JobQueued))
	if err == nil && !added {
		err = skip(fmt.Errorf("job %s: %w", n.ID, control.ErrExists))
	}
	return err
}

func jobFields(j *control.Job) []any {
	o := &j.Outcome
	return []any{&j.Place, &j.ID, &j.Tenant, &j.Kind, &j.Machine, &j.CreatedBy, &j.CreatedAt, &j.Process, &j.Status, &j.StartedAt, &j.EndedAt, &j.Done, &j.Of, &o.ExitCode, &o.Code, &o.Detail, &o.Hint, &j.ResultSize}
}

// told returns a job as it is told.
func (c *Control) told(j control.Job) (control.Job, error) {
	if j.Status.Ended() || j.Process == c.process() {
		return j, nil
	}
	alive, err := c.alive(j.Process)
	return j.Shown(!alive), err
}

// Job implements [control.Store].
func (c *Control) Job(ctx context.Context, id string) (j control.Job, err error) {
	err = c.read.QueryRowContext(ctx, `SELECT `+jobColumns+`, request FROM jobs WHERE job_id=?`, id).Scan(append(jobFields(&j), &j.Request)...)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return control.Job{}, fmt.Errorf("job %s: %w", id, control.ErrNotFound)
	case err != nil:
		return control.Job{}, translate(err)
	}
	return c.told(j)
}

// Jobs implements [control.Store].
func (c *Control) Jobs(ctx context.Context, q control.Query) (list []control.Job, err error) {
	part, args := paged(q, "tenant", "id")
	var j control.Job
	err = each(scan(c.read.QueryContext(ctx, `SELECT `+jobColumns+` FROM jobs`+part, args...)).into(jobFields(&j)...), func() error {
		list = append(list, j)
		return nil
	})
	for i := range list {
		if err == nil {
			list[i], err = c.told(list[i])
		}
	}
	return list, err
}

// JobResult implements [control.Store].
func (c *Control) JobResult(ctx context.Context, id string) (result, finding []byte, err error) {
	err = c.read.QueryRowContext(ctx, `SELECT r.result, r.finding FROM jobs j LEFT JOIN results r ON r.job=j.id WHERE j.job_id=?`, id).Scan(&result, &finding)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil, fmt.Errorf("job %s: %w", id, control.ErrNotFound)
	}
	return result, finding, translate(err)
}
