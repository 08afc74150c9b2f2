package postgres

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/control"
)

// How changes are made, in the transaction of a commit that has its turn: nobody else writes meanwhile, so
// what is read here stays so. The first that is refused undoes all.

// changed runs a statement, and reports whether it has changed a row.
func changed(ctx context.Context, tx pgx.Tx, statement string, args ...any) (bool, error) {
	done, err := tx.Exec(ctx, statement, args...)
	return done.RowsAffected() > 0, err
}

// change makes changes.
func (c *Control) change(ctx context.Context, tx pgx.Tx, changes *control.Changes) error {
	for i := range changes.Entries {
		if err := c.append(ctx, tx, &changes.Entries[i]); err != nil {
			return err
		}
	}
	for _, write := range []func(context.Context, pgx.Tx, *control.Changes) error{c.writeEnd, c.writeKeys, c.writeMachine, c.writeClaim, c.writeStepTime, c.writeBinding, c.writeSignIns, c.writeWebhooks, c.writeJob} {
		if err := write(ctx, tx, changes); err != nil {
			return err
		}
	}
	return nil
}

func (c *Control) writeEnd(ctx context.Context, tx pgx.Tx, changes *control.Changes) error {
	if changes.End == nil {
		return nil
	}
	key := changes.End.Key.Hash()
	var ended bool
	var err error
	if a := changes.End.Answer; a == nil {
		ended, err = changed(ctx, tx, `DELETE FROM receipts WHERE key=$1 AND process=$2 AND status IS NULL`, key[:], c.name())
	} else {
		a := a.Kept()
		ended, err = changed(ctx, tx, `UPDATE receipts SET status=$1, location=$2, etag=$3, answer=$4, omitted=$5 WHERE key=$6 AND process=$7 AND status IS NULL`,
			a.Status, outside(a.Location), outside(a.ETag), a.Body, a.Omitted, key[:], c.name())
	}
	if !ended {
		err = refuse(err, "receipt: %w", control.ErrStale)
	}
	return err
}

func (c *Control) writeKeys(ctx context.Context, tx pgx.Tx, changes *control.Changes) error {
	for _, k := range changes.Keys {
		grants, err := json.Marshal(k.Grants)
		if err != nil {
			return err
		}
		added, err := changed(ctx, tx, `INSERT INTO keys (key_id, name, hash, tenant, grants, created_by, created_at, expires_at, revoked_at, last_used) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING`,
			outside(k.ID), outside(k.Name), k.Hash[:], outside(k.Tenant), grants, outside(k.CreatedBy), int64(k.CreatedAt), int64(k.ExpiresAt), int64(k.RevokedAt), int64(k.LastUsed))
		if !added {
			err = refuse(err, "key %s: %w", k.ID, control.ErrExists)
		}
		if err != nil {
			return err
		}
	}
	for _, r := range changes.Revoked {
		known, err := changed(ctx, tx, `UPDATE keys SET revoked_at=CASE WHEN revoked_at=0 THEN $2 ELSE least(revoked_at, $2) END WHERE key_id=$1`, outside(r.ID), int64(r.At))
		if !known {
			err = refuse(err, "key %s: %w", r.ID, control.ErrNotFound)
		}
		if err != nil {
			return err
		}
	}
	for _, u := range changes.Used {
		if _, err := tx.Exec(ctx, `UPDATE keys SET last_used=$2 WHERE key_id=$1 AND last_used<$2`, outside(u.ID), int64(u.Hour())); err != nil {
			return err
		}
	}
	return nil
}

func (c *Control) writeMachine(ctx context.Context, tx pgx.Tx, changes *control.Changes) error {
	m := changes.Publish
	if m == nil {
		return nil
	}
	var id, newest int64
	err := tx.QueryRow(ctx, `SELECT id, newest FROM machines WHERE tenant=$1 AND name=$2`, outside(m.Tenant), outside(m.Name)).Scan(&id, &newest)
	switch {
	case err != nil && !errors.Is(err, pgx.ErrNoRows):
		return err
	case m.Version != newest+1:
		return refuse(nil, "machine %s: %w: version %d does not follow %d", m.Name, control.ErrStale, m.Version, newest)
	case newest > 0:
		_, err = tx.Exec(ctx, `UPDATE machines SET newest=newest+1 WHERE id=$1`, id)
	default:
		err = tx.QueryRow(ctx, `INSERT INTO machines (tenant, name, newest) VALUES ($1, $2, 1) RETURNING id`, outside(m.Tenant), outside(m.Name)).Scan(&id)
	}
	if err == nil {
		_, err = tx.Exec(ctx, `INSERT INTO versions (machine, version, digest, definition, by, at) VALUES ($1, $2, $3, $4, $5, $6)`,
			id, m.Version, outside(m.Digest), append([]byte{}, m.Definition...), outside(m.By), int64(m.At))
	}
	return err
}

func (c *Control) writeClaim(ctx context.Context, tx pgx.Tx, changes *control.Changes) error {
	if n := changes.Claim; n != nil {
		var held control.Claim
		err := tx.QueryRow(ctx, `SELECT `+claimColumns+` FROM claims WHERE tenant=$1 AND question_id=$2`, outside(n.Tenant), outside(n.QuestionID)).Scan(claimFields(&held)...)
		switch {
		case err != nil && !errors.Is(err, pgx.ErrNoRows):
			return err
		case err == nil && !held.GivesWay(n):
			return &refusal{&control.ClaimedError{Claim: held}}
		}
		if _, err = tx.Exec(ctx, `DELETE FROM claims WHERE expires_at<=$1`, int64(n.At)); err != nil {
			return err
		}
		if _, err = tx.Exec(ctx, `INSERT INTO claims (`+claimColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (tenant, question_id) DO UPDATE
			SET subject=excluded.subject, specialist_id=excluded.specialist_id, at=excluded.at, expires_at=excluded.expires_at, note=excluded.note, assigned=excluded.assigned`,
			outside(n.Tenant), outside(n.QuestionID), outside(n.Subject), outside(n.SpecialistID), int64(n.At), int64(n.ExpiresAt), outside(n.Note), n.Assigned); err != nil {
			return err
		}
	}
	if u := changes.Unclaim; u != nil {
		_, err := tx.Exec(ctx, `DELETE FROM claims WHERE tenant=$1 AND question_id=$2 AND ($3::bytea='' OR subject=$3)`, outside(u.Tenant), outside(u.QuestionID), outside(u.Subject))
		return err
	}
	return nil
}

const claimColumns = `tenant, question_id, subject, specialist_id, at, expires_at, note, assigned`

func claimFields(n *control.Claim) []any {
	return []any{(*outside)(&n.Tenant), (*outside)(&n.QuestionID), (*outside)(&n.Subject), (*outside)(&n.SpecialistID), &n.At, &n.ExpiresAt, (*outside)(&n.Note), &n.Assigned}
}

func (c *Control) writeStepTime(ctx context.Context, tx pgx.Tx, changes *control.Changes) error {
	t := changes.Stepped
	if t == nil {
		return nil
	}
	_, err := tx.Exec(ctx, `INSERT INTO step_times (tenant, session_id, resumes, msec) VALUES ($1, $2, $3, $4) ON CONFLICT (tenant, session_id) DO UPDATE SET resumes=excluded.resumes, msec=excluded.msec`,
		outside(t.Tenant), outside(t.SessionID), t.Resumes, t.Msec)
	return err
}

func (c *Control) writeBinding(ctx context.Context, tx pgx.Tx, changes *control.Changes) error {
	b := changes.Bind
	if b == nil {
		return nil
	}
	added, err := changed(ctx, tx, `INSERT INTO bindings (variable, host, at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, outside(b.Variable), outside(b.Host), int64(b.At))
	if !added {
		err = refuse(err, "variable %s: %w", b.Variable, control.ErrExists)
	}
	return err
}

func (c *Control) writeSignIns(ctx context.Context, tx pgx.Tx, changes *control.Changes) error {
	if id := changes.SignOut; id != nil {
		known, err := changed(ctx, tx, `DELETE FROM sign_ins WHERE hash=$1`, id[:])
		if !known {
			err = refuse(err, "sign-in: %w", control.ErrNotFound)
		}
		if err != nil {
			return err
		}
	}
	if n := changes.SignIn; n != nil {
		if _, err := tx.Exec(ctx, `DELETE FROM sign_ins WHERE expires_at<=$1`, int64(n.SeenAt)); err != nil {
			return err
		}
		added, err := changed(ctx, tx, `INSERT INTO sign_ins (hash, sealed, seen_at, expires_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`, n.ID[:], outside(n.Sealed), int64(n.SeenAt), int64(n.ExpiresAt))
		if !added {
			err = refuse(err, "sign-in: %w", control.ErrExists)
		}
		if err != nil {
			return err
		}
	}
	if s := changes.Seen; s != nil {
		_, err := tx.Exec(ctx, `UPDATE sign_ins SET seen_at=$2 WHERE hash=$1 AND seen_at<$2`, s.ID[:], int64(s.At))
		return err
	}
	return nil
}
