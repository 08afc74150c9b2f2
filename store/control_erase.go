package store

import (
	"context"
	"database/sql"
	"strings"

	"github.com/dialai/dialai/store/internal/erase"
)

// What a server has kept of sessions that are erased (store/internal/erase says what that is).

// naming returns the rows that name the session ?1.
func naming() (list []string) {
	for _, n := range erase.Naming {
		var where []string
		for _, column := range n.Columns {
			condition := `instr(coalesce(` + column + `, ''), ?1)>0`
			if n.Begins {
				condition = `instr(` + column + `, ?1)=1`
			}
			where = append(where, condition)
		}
		list = append(list, n.Table+` WHERE `+strings.Join(where, ` OR `))
	}
	return list
}

// naming counts what names sessions.
func (c *Control) naming(ctx context.Context, ids []string) (n int64, err error) {
	for _, id := range ids {
		for _, rows := range naming() {
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
				for _, rows := range naming() {
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
