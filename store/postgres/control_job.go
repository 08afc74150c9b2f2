package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/control"
)

// Jobs, as rows, and what came of each in a row of its own: lists do not read it.

const jobColumns = `id, job_id, tenant, kind, machine, created_by, created_at, process, status, started_at, ended_at, done, total, exit_code, code, detail, hint, result_size,
	EXISTS (SELECT FROM owners WHERE name=process AND until>now())`

func (c *Control) writeJob(ctx context.Context, tx pgx.Tx, changes *control.Changes) error {
	if n := changes.Job; n != nil {
		if err := c.addJob(ctx, tx, n); err != nil {
			return err
		}
	}
	s := changes.JobStep
	if s == nil {
		return nil
	}
	var id int64
	var status string
	switch err := tx.QueryRow(ctx, `SELECT id, status FROM jobs WHERE job_id=$1`, outside(s.ID)).Scan(&id, &status); {
	case errors.Is(err, pgx.ErrNoRows):
		return refuse(nil, "job %s: %w", s.ID, control.ErrNotFound)
	case err != nil:
		return err
	case control.JobStatus(status) != s.From:
		return refuse(nil, "job %s: %w", s.ID, control.ErrStale)
	}
	if s.From == control.JobQueued && s.To == control.JobRunning {
		if _, err := tx.Exec(ctx, `UPDATE jobs SET started_at=$1 WHERE id=$2`, int64(s.At), id); err != nil {
			return err
		}
	}
	if !s.To.Ended() {
		_, err := tx.Exec(ctx, `UPDATE jobs SET status=$1, done=$2, total=$3 WHERE id=$4`, string(s.To), s.Done, s.Of, id)
		return err
	}
	o := &s.Outcome
	_, err := tx.Exec(ctx, `UPDATE jobs SET status=$1, ended_at=$2, exit_code=$3, code=$4, detail=$5, hint=$6, result_size=$7 WHERE id=$8`,
		string(s.To), int64(s.At), o.ExitCode, outside(o.Code), outside(o.Detail), outside(o.Hint), len(s.Result), id)
	if err == nil && (s.Result != nil || s.Finding != nil) {
		_, err = tx.Exec(ctx, `INSERT INTO results (job, result, finding) VALUES ($1, $2, $3)`, id, s.Result, s.Finding)
	}
	return err
}

// addJob adds a job of this process, and forgets those that are old.
func (c *Control) addJob(ctx context.Context, tx pgx.Tx, n *control.Job) error {
	const old = ` WHERE ended_at<>0 AND ended_at<=$1 OR ended_at=0 AND created_at<=$1`
	for _, purge := range []string{`DELETE FROM results WHERE job IN (SELECT id FROM jobs` + old + `)`, `DELETE FROM jobs` + old} {
		if _, err := tx.Exec(ctx, purge, int64(n.CreatedAt-control.JobLifetime)); err != nil {
			return err
		}
	}
	added, err := changed(ctx, tx, `INSERT INTO jobs (job_id, tenant, kind, machine, request, created_by, created_at, process, status) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING`,
		outside(n.ID), outside(n.Tenant), outside(n.Kind), outside(n.Machine), append([]byte{}, n.Request...), outside(n.CreatedBy), int64(n.CreatedAt), c.name(), string(control.JobQueued))
	if !added {
		err = refuse(err, "job %s: %w", n.ID, control.ErrExists)
	}
	return err
}

// jobFields are those of the jobColumns.
func jobFields(j *control.Job, alive *bool) []any {
	o := &j.Outcome
	return []any{&j.Place, (*outside)(&j.ID), (*outside)(&j.Tenant), (*outside)(&j.Kind), (*outside)(&j.Machine), (*outside)(&j.CreatedBy), &j.CreatedAt, &j.Process, &j.Status, &j.StartedAt, &j.EndedAt, &j.Done, &j.Of,
		&o.ExitCode, (*outside)(&o.Code), (*outside)(&o.Detail), (*outside)(&o.Hint), &j.ResultSize, alive}
}

// readJob reads a row with the jobColumns and what more says, as it is told.
func (c *Control) readJob(more func(*control.Job) []any) pgx.RowToFunc[control.Job] {
	return func(row pgx.CollectableRow) (j control.Job, err error) {
		var alive bool
		err = row.Scan(append(jobFields(&j, &alive), more(&j)...)...)
		return j.Shown(!alive && j.Process != c.name()), err
	}
}

// Job implements [control.Store].
func (c *Control) Job(ctx context.Context, id string) (control.Job, error) {
	return only(ctx, c, c.readJob(func(j *control.Job) []any { return []any{&j.Request} }), "job "+id, `SELECT `+jobColumns+`, request FROM jobs WHERE job_id=$1`, outside(id))
}

// Jobs implements [control.Store].
func (c *Control) Jobs(ctx context.Context, q control.Query) ([]control.Job, error) {
	var l listing
	return listed(ctx, c, &l, c.readJob(func(*control.Job) []any { return nil }), l.part(`SELECT `+jobColumns+` FROM jobs`, q, "tenant", "id"))
}

// JobResult implements [control.Store].
func (c *Control) JobResult(ctx context.Context, id string) (result, finding []byte, err error) {
	type results struct{ result, finding []byte }
	list, err := query(ctx, c, func(row pgx.CollectableRow) (r results, err error) {
		err = row.Scan(&r.result, &r.finding)
		return r, err
	}, `SELECT r.result, r.finding FROM jobs j LEFT JOIN results r ON r.job=j.id WHERE j.job_id=$1`, outside(id))
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("job %s: %w", id, control.ErrNotFound)
	}
	if err != nil {
		return nil, nil, err
	}
	return list[0].result, list[0].finding, nil
}
