package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// How what a server remembers is read: each list by the number of its rows, which is the order in which they
// became visible.

// part returns a query of the part of a list that is wanted, from tables with a column for the tenant and one
// for the place.
func (l *listing) part(text string, q control.Query, tenant, place string) string {
	order, beyond := " ORDER BY "+place, place+">?"
	if q.Desc {
		order, beyond = order+" DESC", place+"<?"
	}
	if q.Tenant != "" {
		l.and(tenant+"=?", outside(q.Tenant))
	}
	if q.After != 0 {
		l.and(beyond, q.After)
	}
	if q.Limit > 0 {
		order += " LIMIT " + l.arg(q.Limit)
	}
	if len(l.where) > 0 {
		text += " WHERE " + strings.Join(l.where, " AND ")
	}
	return text + order
}

// listed returns the rows of a list that is in its part.
func listed[T any](ctx context.Context, c *Control, l *listing, row pgx.RowToFunc[T], text string) ([]T, error) {
	return query(ctx, c, row, text, l.args...)
}

// only returns the row of a query that has one at most; ErrNotFound says of what there is none.
func only[T any](ctx context.Context, c *Control, row pgx.RowToFunc[T], what, text string, args ...any) (value T, err error) {
	list, err := query(ctx, c, row, text, args...)
	switch {
	case err != nil:
		return value, err
	case len(list) == 0:
		return value, fmt.Errorf("%s: %w", what, control.ErrNotFound)
	}
	return list[0], nil
}

const keyColumns = `id, key_id, name, hash, tenant, grants, created_by, created_at, expires_at, revoked_at, last_used`

// readKey reads a row with the keyColumns.
func readKey(row pgx.CollectableRow) (k control.Key, err error) {
	var hash, grants []byte
	if err = row.Scan(&k.Place, (*outside)(&k.ID), (*outside)(&k.Name), &hash, (*outside)(&k.Tenant), &grants, (*outside)(&k.CreatedBy), &k.CreatedAt, &k.ExpiresAt, &k.RevokedAt, &k.LastUsed); err != nil {
		return k, err
	}
	copy(k.Hash[:], hash)
	if err := json.Unmarshal(grants, &k.Grants); err != nil {
		return control.Key{}, &session.CorruptError{What: "key " + k.ID, Problem: err.Error()}
	}
	return k, nil
}

// Key implements [control.Store].
func (c *Control) Key(ctx context.Context, id string) (control.Key, error) {
	return only(ctx, c, readKey, "key "+id, `SELECT `+keyColumns+` FROM keys WHERE key_id=$1`, outside(id))
}

// Keys implements [control.Store].
func (c *Control) Keys(ctx context.Context, q control.Query) ([]control.Key, error) {
	var l listing
	return listed(ctx, c, &l, readKey, l.part(`SELECT `+keyColumns+` FROM keys`, q, "tenant", "id"))
}

// versionColumns are those of a version, but its place and its definition; versionTables are where they are.
const (
	versionColumns = `m.tenant, m.name, v.version, v.digest, v.by, v.at`
	versionTables  = ` FROM machines m JOIN versions v ON v.machine=m.id`
	versionQuery   = `SELECT ` + versionColumns + `, v.version, v.definition` + versionTables + ` WHERE m.tenant=$1 AND m.name=$2 AND `
)

// readVersion reads a row with the versionColumns, the place and what more says.
func readVersion(more func(*control.Machine) []any) pgx.RowToFunc[control.Machine] {
	return func(row pgx.CollectableRow) (m control.Machine, err error) {
		err = row.Scan(append([]any{(*outside)(&m.Tenant), (*outside)(&m.Name), &m.Version, (*outside)(&m.Digest), (*outside)(&m.By), &m.At, &m.Place}, more(&m)...)...)
		return m, err
	}
}

func definition(m *control.Machine) []any { return []any{&m.Definition} }
func noDefinition(*control.Machine) []any { return nil }

// Machine implements [control.Store].
func (c *Control) Machine(ctx context.Context, tenant, name string) (control.Machine, error) {
	return only(ctx, c, readVersion(definition), "machine "+name, versionQuery+`v.version=m.newest`, outside(tenant), outside(name))
}

// MachineOf implements [control.Store].
func (c *Control) MachineOf(ctx context.Context, tenant, name, digest string) (control.Machine, error) {
	return only(ctx, c, readVersion(definition), "machine "+name, versionQuery+`v.digest=$3 ORDER BY v.version DESC LIMIT 1`, outside(tenant), outside(name), outside(digest))
}

// Machines implements [control.Store].
func (c *Control) Machines(ctx context.Context, q control.Query) ([]control.Machine, error) {
	var l listing
	return listed(ctx, c, &l, readVersion(noDefinition), l.part(`SELECT `+versionColumns+`, m.id`+versionTables+` AND v.version=m.newest`, q, "m.tenant", "m.id"))
}

// Versions implements [control.Store].
func (c *Control) Versions(ctx context.Context, name string, q control.Query) ([]control.Machine, error) {
	var l listing
	l.and("m.tenant=? AND m.name=?", outside(q.Tenant), outside(name))
	q.Tenant = ""
	return listed(ctx, c, &l, readVersion(noDefinition), l.part(`SELECT `+versionColumns+`, v.version`+versionTables, q, "", "v.version"))
}

func readClaim(row pgx.CollectableRow) (n control.Claim, err error) {
	err = row.Scan(claimFields(&n)...)
	return n, err
}

// bytesOf returns texts as a list of bytes.
func bytesOf(texts []string) [][]byte {
	list := make([][]byte, len(texts))
	for i, text := range texts {
		list[i] = []byte(text)
	}
	return list
}

// Claims implements [control.Store].
func (c *Control) Claims(ctx context.Context, tenant string, questionIDs []string, now specialist.Time) ([]control.Claim, error) {
	if len(questionIDs) == 0 {
		return nil, nil
	}
	return query(ctx, c, readClaim, `SELECT `+claimColumns+` FROM unnest($1::bytea[]) WITH ORDINALITY q (id, n) JOIN claims ON tenant=$2 AND question_id=q.id WHERE expires_at>$3 ORDER BY q.n`,
		bytesOf(questionIDs), outside(tenant), int64(now))
}

// ClaimsOf implements [control.Store].
func (c *Control) ClaimsOf(ctx context.Context, tenant, subject string, humans []string, now specialist.Time, limit int) ([]control.Claim, error) {
	return query(ctx, c, readClaim, `SELECT `+claimColumns+` FROM claims WHERE tenant=$1 AND expires_at>$2 AND (subject=$3 AND NOT assigned OR specialist_id=ANY($4::bytea[])) ORDER BY at, question_id LIMIT $5`,
		outside(tenant), int64(now), outside(subject), bytesOf(humans), limit)
}

// StepTime implements [control.Store].
func (c *Control) StepTime(ctx context.Context, tenant, sessionID string) (control.StepTime, error) {
	t, err := only(ctx, c, func(row pgx.CollectableRow) (t control.StepTime, err error) {
		err = row.Scan((*outside)(&t.Tenant), (*outside)(&t.SessionID), &t.Resumes, &t.Msec)
		return t, err
	}, "step time", `SELECT tenant, session_id, resumes, msec FROM step_times WHERE tenant=$1 AND session_id=$2`, outside(tenant), outside(sessionID))
	if errors.Is(err, control.ErrNotFound) {
		err = nil
	}
	return t, err
}

// Binding implements [control.Store].
func (c *Control) Binding(ctx context.Context, variable string) (control.Binding, error) {
	return only(ctx, c, func(row pgx.CollectableRow) (b control.Binding, err error) {
		err = row.Scan((*outside)(&b.Variable), (*outside)(&b.Host), &b.At)
		return b, err
	}, "variable "+variable, `SELECT variable, host, at FROM bindings WHERE variable=$1`, outside(variable))
}

// SignIn implements [control.Store].
func (c *Control) SignIn(ctx context.Context, id control.Hash) (control.SignIn, error) {
	return only(ctx, c, func(row pgx.CollectableRow) (control.SignIn, error) {
		at := control.SignIn{ID: id}
		err := row.Scan((*outside)(&at.Sealed), &at.SeenAt, &at.ExpiresAt)
		return at, err
	}, "sign-in", `SELECT sealed, seen_at, expires_at FROM sign_ins WHERE hash=$1`, id[:])
}

// Audit implements [control.Store].
func (c *Control) Audit(ctx context.Context, q control.Query) ([]control.Record, error) {
	var l listing
	return listed(ctx, c, &l, func(row pgx.CollectableRow) (r control.Record, err error) {
		var hash []byte
		err = row.Scan(&r.Place, &r.Process, &r.Sequence, (*outside)(&r.Tenant), &r.Data, &hash)
		copy(r.Hash[:], hash)
		return r, err
	}, l.part(`SELECT id, process, sequence, tenant, entry, hash FROM audit`, q, "tenant", "id"))
}
