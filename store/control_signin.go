package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/dialai/dialai/control"
)

// signInStatements are those of sign-ins.
type signInStatements struct{ add, remove, see, purge *sql.Stmt }

func (st *signInStatements) prepare(p *preparer) {
	p.prepare(&st.add, insert("sign_ins", []string{"hash", "sealed", "seen_at", "expires_at"})+` ON CONFLICT DO NOTHING`)
	p.prepare(&st.remove, `DELETE FROM sign_ins WHERE hash=?`)
	p.prepare(&st.see, `UPDATE sign_ins SET seen_at=?2 WHERE hash=?1 AND seen_at<?2`)
	p.prepare(&st.purge, `DELETE FROM sign_ins WHERE expires_at<=?`)
}

// SignIn implements [control.Store].
func (c *Control) SignIn(ctx context.Context, id control.Hash) (control.SignIn, error) {
	at := control.SignIn{ID: id}
	err := c.signedIn.QueryRowContext(ctx, id[:]).Scan(&at.Sealed, &at.SeenAt, &at.ExpiresAt)
	if errors.Is(err, sql.ErrNoRows) {
		return control.SignIn{}, control.ErrNotFound
	}
	return at, translate(err)
}

func (c *Control) writeSignIns(ctx context.Context, changes *control.Changes) error {
	st := &c.stmts.signIns
	if id := changes.SignOut; id != nil {
		known, err := changed(st.remove.ExecContext(ctx, id[:]))
		if err == nil && !known {
			err = skip(fmt.Errorf("sign-in: %w", control.ErrNotFound))
		}
		if err != nil {
			return err
		}
	}
	if n := changes.SignIn; n != nil {
		if _, err := st.purge.ExecContext(ctx, n.SeenAt); err != nil {
			return err
		}
		added, err := changed(st.add.ExecContext(ctx, n.ID[:], n.Sealed, n.SeenAt, n.ExpiresAt))
		if err == nil && !added {
			err = skip(fmt.Errorf("sign-in: %w", control.ErrExists))
		}
		if err != nil {
			return err
		}
	}
	if s := changes.Seen; s != nil {
		if _, err := st.see.ExecContext(ctx, s.ID[:], s.At); err != nil {
			return err
		}
	}
	return nil
}
