package store

import (
	"context"
	"database/sql"
)

// What a server has kept of sessions that are erased: what it has answered, what webhooks are still to be
// told, what came of jobs, and notes of who has taken a question. Its audit log stays: it has no payloads.

// naming are the rows that name the session ?1.
var naming = []string{
	`receipts WHERE instr(location, ?1)>0 OR instr(coalesce(answer, ''), ?1)>0`,
	`deliveries WHERE instr(body, ?1)>0`,
	`results WHERE instr(coalesce(result, ''), ?1)>0 OR instr(coalesce(finding, ''), ?1)>0`,
	`claims WHERE instr(question_id, ?1)=1`,
}

// naming counts what names sessions.
func (c *Control) naming(ctx context.Context, ids []string) (n int64, err error) {
	for _, id := range ids {
		for _, rows := range naming {
			var some int64
			if err := c.read.QueryRowContext(ctx, `SELECT count(*) FROM `+rows, id).Scan(&some); err != nil {
				return n, translate(err)
			}
			n += some
		}
	}
	return n, nil
}

// forgetSessions deletes what names sessions, and writes the file anew if there was something.
func (c *Control) forgetSessions(ctx context.Context, ids []string) (n int64, err error) {
	err = c.out.do(&job{ctx: ctx, alone: func(ctx context.Context, conn *sql.Conn) error {
		if _, err := conn.ExecContext(ctx, `PRAGMA secure_delete=ON`); err != nil {
			return err
		}
		err := inTransaction(ctx, conn, func() error {
			for _, id := range ids {
				for _, rows := range naming {
					result, err := conn.ExecContext(ctx, `DELETE FROM `+rows, id)
					if err != nil {
						return err
					}
					some, err := result.RowsAffected()
					if n += some; err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		return overwrite(ctx, conn) // also for a run that was interrupted before
	}})
	return n, err
}
