package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// How what a server remembers is read: each list by the number of its rows, which is the
// order in which they were written.

// paged returns the end of a statement that reads what a query asks for, from tables with a
// column for the tenant and one for the place, and its arguments.
func paged(q control.Query, tenant, place string, where ...string) (string, []any) {
	var args []any
	order, beyond := " ORDER BY "+place, place+">?"
	if q.Desc {
		order, beyond = order+" DESC", place+"<?"
	}
	if q.Tenant != "" {
		where, args = append(where, tenant+"=?"), append(args, q.Tenant)
	}
	if q.After != 0 {
		where, args = append(where, beyond), append(args, q.After)
	}
	clause := ""
	if len(where) > 0 {
		clause = " WHERE " + strings.Join(where, " AND ")
	}
	if q.Limit > 0 {
		order, args = order+" LIMIT ?", append(args, q.Limit)
	}
	return clause + order, args
}

// A keyRow is a key as it is read.
type keyRow struct {
	control.Key
	hash, grants []byte
}

func (r *keyRow) fields() []any {
	k := &r.Key
	return []any{&k.Place, &k.ID, &k.Name, &r.hash, &k.Tenant, &r.grants, &k.CreatedBy, &k.CreatedAt, &k.ExpiresAt, &k.RevokedAt, &k.LastUsed}
}

func (r *keyRow) read() (control.Key, error) {
	k := r.Key
	copy(k.Hash[:], r.hash)
	if err := json.Unmarshal(r.grants, &k.Grants); err != nil {
		return control.Key{}, &session.CorruptError{What: "key " + k.ID, Problem: err.Error()}
	}
	return k, nil
}

// Key implements [control.Store].
func (c *Control) Key(ctx context.Context, id string) (control.Key, error) {
	var r keyRow
	err := c.key.QueryRowContext(ctx, id).Scan(r.fields()...)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return control.Key{}, fmt.Errorf("key %s: %w", id, control.ErrNotFound)
	case err != nil:
		return control.Key{}, translate(err)
	}
	return r.read()
}

// Keys implements [control.Store].
func (c *Control) Keys(ctx context.Context, q control.Query) ([]control.Key, error) {
	part, args := paged(q, "tenant", "id")
	var list []control.Key
	var r keyRow
	err := each(scan(c.read.QueryContext(ctx, `SELECT `+keyColumns+` FROM keys`+part, args...)).into(r.fields()...), func() error {
		k, err := r.read()
		list = append(list, k)
		return err
	})
	return list, err
}

const versionTables = ` FROM machines m JOIN versions v ON v.machine=m.id`

// versionColumns are those of a version, but its place and its definition.
const versionColumns = `m.tenant, m.name, v.version, v.digest, v.by, v.at`

// versionQuery reads a version of a machine; newestVersion says which.
const (
	versionQuery  = `SELECT ` + versionColumns + `, v.version, v.definition` + versionTables + ` WHERE m.tenant=? AND m.name=? AND `
	newestVersion = `v.version=m.newest`
)

func versionFields(m *control.Machine) []any {
	return []any{&m.Tenant, &m.Name, &m.Version, &m.Digest, &m.By, &m.At, &m.Place}
}

// Machine implements [control.Store].
func (c *Control) Machine(ctx context.Context, tenant, name string) (control.Machine, error) {
	return readVersion(c.named.QueryRowContext(ctx, tenant, name), name)
}

// MachineOf implements [control.Store].
func (c *Control) MachineOf(ctx context.Context, tenant, name, digest string) (control.Machine, error) {
	return readVersion(c.read.QueryRowContext(ctx, versionQuery+`v.digest=? ORDER BY v.version DESC LIMIT 1`, tenant, name, digest), name)
}

func readVersion(row *sql.Row, name string) (m control.Machine, err error) {
	err = row.Scan(append(versionFields(&m), &m.Definition)...)
	if errors.Is(err, sql.ErrNoRows) {
		return control.Machine{}, fmt.Errorf("machine %s: %w", name, control.ErrNotFound)
	}
	return m, translate(err)
}

// Machines implements [control.Store].
func (c *Control) Machines(ctx context.Context, q control.Query) ([]control.Machine, error) {
	part, args := paged(q, "m.tenant", "m.id")
	return c.versions(ctx, `SELECT `+versionColumns+`, m.id FROM machines m JOIN versions v ON v.machine=m.id AND v.version=m.newest`+part, args...)
}

// Versions implements [control.Store].
func (c *Control) Versions(ctx context.Context, name string, q control.Query) ([]control.Machine, error) {
	part, args := paged(control.Query{After: q.After, Limit: q.Limit, Desc: q.Desc}, "", "v.version", "m.tenant=?", "m.name=?")
	return c.versions(ctx, `SELECT `+versionColumns+`, v.version`+versionTables+part, append([]any{q.Tenant, name}, args...)...)
}

func (c *Control) versions(ctx context.Context, query string, args ...any) (list []control.Machine, err error) {
	var m control.Machine
	err = each(scan(c.read.QueryContext(ctx, query, args...)).into(versionFields(&m)...), func() error {
		list = append(list, m)
		return nil
	})
	return list, err
}

// Claims implements [control.Store].
func (c *Control) Claims(ctx context.Context, tenant string, questionIDs []string, now specialist.Time) (list []control.Claim, err error) {
	if len(questionIDs) == 0 {
		return nil, nil
	}
	ids, err := json.Marshal(questionIDs)
	if err != nil {
		return nil, err
	}
	var n control.Claim
	err = each(scan(c.read.QueryContext(ctx, `SELECT `+claimColumns+` FROM json_each(?) q JOIN claims ON tenant=? AND question_id=q.value WHERE expires_at>? ORDER BY q.key`, string(ids), tenant, now)).
		into(claimFields(&n)...), func() error {
		list = append(list, n)
		return nil
	})
	return list, err
}

// ClaimsOf implements [control.Store].
func (c *Control) ClaimsOf(ctx context.Context, tenant, subject string, humans []string, now specialist.Time, limit int) (list []control.Claim, err error) {
	who, err := json.Marshal(append([]string{}, humans...))
	if err != nil {
		return nil, err
	}
	var n control.Claim
	err = each(scan(c.read.QueryContext(ctx, `SELECT `+claimColumns+` FROM claims WHERE tenant=? AND expires_at>? AND (subject=? AND NOT assigned OR specialist_id IN (SELECT value FROM json_each(?)))
		ORDER BY at, question_id LIMIT ?`, tenant, now, subject, string(who), limit)).
		into(claimFields(&n)...), func() error {
		list = append(list, n)
		return nil
	})
	return list, err
}

// StepTime implements [control.Store].
func (c *Control) StepTime(ctx context.Context, tenant, sessionID string) (t control.StepTime, err error) {
	err = c.read.QueryRowContext(ctx, `SELECT tenant, session_id, resumes, msec FROM step_times WHERE tenant=? AND session_id=?`, tenant, sessionID).
		Scan(&t.Tenant, &t.SessionID, &t.Resumes, &t.Msec)
	if errors.Is(err, sql.ErrNoRows) {
		return control.StepTime{}, nil
	}
	return t, translate(err)
}

// Binding implements [control.Store].
func (c *Control) Binding(ctx context.Context, variable string) (b control.Binding, err error) {
	err = c.read.QueryRowContext(ctx, `SELECT variable, host, at FROM bindings WHERE variable=?`, variable).Scan(&b.Variable, &b.Host, &b.At)
	if errors.Is(err, sql.ErrNoRows) {
		err = control.ErrNotFound
	}
	return b, err
}

// Audit implements [control.Store].
func (c *Control) Audit(ctx context.Context, q control.Query) (list []control.Record, err error) {
	part, args := paged(q, "tenant", "id")
	var r control.Record
	var data, hash []byte
	err = each(scan(c.read.QueryContext(ctx, `SELECT id, process, sequence, tenant, entry, hash FROM audit`+part, args...)).
		into(&r.Place, &r.Process, &r.Sequence, &r.Tenant, &data, &hash), func() error {
		r.Data, r.Hash = data, control.Hash{}
		copy(r.Hash[:], hash)
		list = append(list, r)
		return nil
	})
	return list, err
}
