package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/internal/projection"
	"github.com/dialai/dialai/store/internal/transfer"
)

// A database as what another store is copied into. Everything has the place, and sessions the number, that they
// have in the other store; sequences are set behind them. Of a session nothing is written at first but its record,
// and a row that says its id: what follows from logs is made when all of them are there (rebuild.go).

// Begin implements [transfer.Target].
func (c *copied) Begin(ctx context.Context, of transfer.Identity, from string, resume bool) error {
	err := c.write(ctx, func(tx pgx.Tx) error {
		var secret []byte
		var used, driven bool
		err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM owners WHERE until>now()), secret, frozen IS NOT NULL OR source IS NOT NULL OR EXISTS (SELECT FROM machines) OR EXISTS (SELECT FROM log) OR EXISTS (SELECT FROM roster_log) OR EXISTS (SELECT FROM llm_audit)
			FROM meta FOR UPDATE`).Scan(&driven, &secret, &used)
		same := string(secret) == string(of.Secret)
		switch {
		case err != nil:
		case driven:
			err = store.ErrDriven
		case of.ArchiveOf != nil:
			err = transfer.ErrArchive
		case used && !same:
			err = transfer.ErrOther
		case same && !resume:
			err = transfer.ErrCopied
		case same:
			err = unchanged(ctx, tx)
		}
		if err == nil {
			err = setTriggers(ctx, tx, frozenTables, true) // waits for whoever writes
		}
		if err == nil {
			_, err = tx.Exec(ctx, `UPDATE meta SET source=$1, frozen=NULL, secret=$2, places=$3`, from, of.Secret, of.Epoch)
		}
		return err
	})
	if err != nil {
		return &OpenError{c.Name(), err}
	}
	return nil
}

// unchanged returns an error if there is more in the logs than was copied.
func unchanged(ctx context.Context, tx pgx.Tx) error {
	for part, column := range map[transfer.Part]string{transfer.Log: "place", transfer.Rosters: "place", transfer.Agents: "place", transfer.Audit: "id"} {
		var more bool
		err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM `+string(part)+` WHERE `+column+`>coalesce((SELECT newest FROM copied WHERE part=$1), 0))`, string(part)).Scan(&more)
		if err != nil {
			return err
		}
		if more {
			return transfer.ErrChanged
		}
	}
	return nil
}

// Finish implements [transfer.Target].
func (c *copied) Finish(ctx context.Context) error {
	return c.write(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `UPDATE meta SET source=NULL`); err != nil {
			return err
		}
		return setTriggers(ctx, tx, frozenTables, false)
	})
}

// At implements [transfer.Target].
func (c *copied) At(ctx context.Context, part transfer.Part) (at transfer.Cursor, err error) {
	list, err := query(ctx, c.s, func(row pgx.CollectableRow) (at transfer.Cursor, err error) {
		err = row.Scan(&at.Place, &at.Count)
		return at, err
	}, `SELECT place, rows FROM copied WHERE part=$1`, string(part))
	if len(list) > 0 {
		at = list[0]
	}
	return at, err
}

// Clear implements [transfer.Target].
func (c *copied) Clear(ctx context.Context) error {
	return c.write(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `WITH cleared AS (DELETE FROM copied WHERE part=$1) DELETE FROM llm_audit`, string(transfer.Audit))
		return err
	})
}

// Add implements [transfer.Target].
func (c *copied) Add(ctx context.Context, part transfer.Part, rows []transfer.Row, now transfer.Cursor) error {
	if part == transfer.Gaps {
		return nil
	}
	if part == transfer.Log {
		if err := c.makePartitions(ctx, rows); err != nil {
			return err
		}
	}
	return c.write(ctx, func(tx pgx.Tx) error {
		err := c.add(ctx, tx, part, rows)
		if err == nil && slices.ContainsFunc(rows, func(r transfer.Row) bool { return r.Erased }) {
			_, err = tx.Exec(ctx, raiseFormat, format)
		}
		if err != nil || !part.Appended() {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO copied (part, place, rows, newest) VALUES ($1, $2, $3, $2) ON CONFLICT (part) DO UPDATE SET place=$2, rows=$3, newest=$2`, string(part), now.Place, now.Count)
		return err
	})
}

// makePartitions makes the partitions of the log that rows belong to.
func (c *copied) makePartitions(ctx context.Context, rows []transfer.Row) error {
	for i := range rows {
		for ; c.partitions <= rows[i].Session/partitionSize; c.partitions++ {
			if err := c.s.makePartition(ctx, c.partitions); err != nil {
				return c.s.failed(err)
			}
		}
	}
	return nil
}

func (c *copied) add(ctx context.Context, tx pgx.Tx, part transfer.Part, rows []transfer.Row) (err error) {
	if c.machines == nil && part != transfer.Machines {
		if c.machines, err = machineRows(ctx, tx); err != nil {
			return err
		}
	}
	switch part {
	case transfer.Machines:
		c.machines = nil
		return send(ctx, tx, rows, `INSERT INTO machines (machine_name) SELECT $1 WHERE NOT EXISTS (SELECT FROM machines WHERE machine_name=$1)`, func(r *transfer.Row) []any { return []any{r.Of} })
	case transfer.Definitions:
		return send(ctx, tx, rows, `INSERT INTO definitions (machine_digest, machine, definition) SELECT $1, $2, $3 WHERE NOT EXISTS (SELECT FROM definitions WHERE machine_digest=$1)`,
			func(r *transfer.Row) []any { return []any{r.Digest, c.machines[r.Machine], r.Body} })
	case transfer.Archived:
		return c.addArchived(ctx, tx, rows)
	case transfer.ArchivedRecords:
		return send(ctx, tx, rows, `INSERT INTO archived_records (agents, place, hash) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, func(r *transfer.Row) []any { return []any{r.Session, r.Place, r.Hash} })
	case transfer.Rosters:
		return load(ctx, tx, "roster_log", []string{"place", "machine", "first", "events", "hash"}, rows, func(r *transfer.Row) []any { return []any{r.Place, c.machines[r.Of], r.First, r.Body, r.Hash} })
	case transfer.Log:
		return c.addLog(ctx, tx, rows)
	case transfer.Agents:
		return load(ctx, tx, "agent_log", []string{"session", "seq", "event", "hash", "place"}, rows, func(r *transfer.Row) []any { return []any{r.Session, r.First, r.Body, r.Hash, r.Place} })
	case transfer.Audit:
		return load(ctx, tx, "llm_audit", []string{"id", "session_id", "entry", "hash"}, rows, func(r *transfer.Row) []any {
			if !r.Erased { // here it is no chain
				r.Hash = nil
			}
			return []any{r.Place, r.Of, r.Body, r.Hash}
		})
	}
	return fmt.Errorf("part %s is not known", part)
}

// send runs a statement for each row.
func send[T any](ctx context.Context, tx pgx.Tx, rows []T, statement string, args func(r *T) []any) error {
	var batch pgx.Batch
	for i := range rows {
		batch.Queue(statement, args(&rows[i])...)
	}
	return tx.SendBatch(ctx, &batch).Close()
}

// load writes rows by COPY.
func load[T any](ctx context.Context, tx pgx.Tx, table string, columns []string, rows []T, values func(r *T) []any) error {
	_, err := tx.CopyFrom(ctx, pgx.Identifier{table}, columns, pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) { return values(&rows[i]), nil }))
	return err
}

// machineRows returns the numbers of machine names.
func machineRows(ctx context.Context, tx pgx.Tx) (map[string]int, error) {
	rows := map[string]int{}
	var id int
	var name string
	list, _ := tx.Query(ctx, `SELECT id, machine_name FROM machines`) // the error comes with the rows
	_, err := pgx.ForEachRow(list, []any{&id, &name}, func() error { rows[name] = id; return nil })
	return rows, err
}

// definitionRows returns the numbers of definitions.
func definitionRows(ctx context.Context, tx pgx.Tx, digests []string) (map[string]int, error) {
	rows := map[string]int{}
	var id int
	var digest string
	list, _ := tx.Query(ctx, `SELECT id, machine_digest FROM definitions WHERE machine_digest=ANY($1)`, digests) // the error comes with the rows
	_, err := pgx.ForEachRow(list, []any{&id, &digest}, func() error { rows[digest] = id; return nil })
	return rows, err
}

// addArchived writes where sessions are; what of them was copied before that goes.
func (c *copied) addArchived(ctx context.Context, tx pgx.Tx, rows []transfer.Row) error {
	id := func(r *transfer.Row) []any { return []any{r.Of} }
	err := send(ctx, tx, rows, `INSERT INTO archived (session_id, row, machine, sequence, head, taught, archive, at) VALUES ($1::text::uuid, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING`,
		func(r *transfer.Row) []any {
			return []any{r.Of, r.Session, c.machines[r.Machine], r.First, r.Hash, r.Body, r.Archive, r.At}
		})
	for _, table := range []string{"log", "agent_log", "snapshots"} {
		if err == nil {
			err = send(ctx, tx, rows, `DELETE FROM `+table+` WHERE session=(SELECT id FROM sessions WHERE session_id=$1::text::uuid)`, id)
		}
	}
	if err == nil {
		err = send(ctx, tx, rows, `DELETE FROM sessions WHERE session_id=$1::text::uuid`, id)
	}
	return err
}

// addLog writes records of sessions, and for the first of each a row that says whose it is.
func (c *copied) addLog(ctx context.Context, tx pgx.Tx, rows []transfer.Row) error {
	var begun []sessionRow
	for i := range rows {
		if r := &rows[i]; r.First == 1 {
			begun = append(begun, sessionRow{id: r.Session, Session: projection.Session{ID: r.Of, Machine: r.Machine, Digest: r.Digest, Status: session.Failed.String()}})
		}
	}
	if err := c.loadSessions(ctx, tx, begun); err != nil {
		return err
	}
	return load(ctx, tx, "log", []string{"place", "session", "first", "decides", "at", "events", "hash"}, rows, func(r *transfer.Row) []any {
		var decides *int
		if id, ok := c.machines[r.Decides]; ok {
			decides = &id
		}
		return []any{r.Place, r.Session, r.First, decides, r.At, r.Body, r.Hash}
	})
}

// sessionColumns are those of sessions.
var sessionColumns = strings.Fields(`id session_id machine definition created_at started_by status code reason reviews subject due_at driver since timer_at ended_at
	current_state round attempt sequence transitions updated_at calls input_tokens output_tokens cost_pico_usd head`)

// loadSessions writes rows of sessions.
func (c *copied) loadSessions(ctx context.Context, tx pgx.Tx, rows []sessionRow) error {
	if len(rows) == 0 {
		return nil
	}
	var digests []string
	for i := range rows {
		digests = append(digests, rows[i].Digest)
	}
	definitions, err := definitionRows(ctx, tx, digests)
	if err != nil {
		return err
	}
	ids := make([]specialist.SessionID, len(rows))
	statuses := make([]session.Status, len(rows))
	for i := range rows {
		r := &rows[i]
		if ids[i], err = session.ParseID(r.ID); err == nil {
			err = statuses[i].UnmarshalText([]byte(r.Status))
		}
		if err == nil && (c.machines[r.Machine] == 0 || definitions[r.Digest] == 0) {
			err = &session.CorruptError{What: "session " + r.ID, Problem: "its machine or its definition is not stored; run dialai store verify"}
		}
		if err != nil {
			return err
		}
	}
	i := -1
	return load(ctx, tx, "sessions", sessionColumns, rows, func(r *sessionRow) []any {
		i++
		return []any{r.id, [16]byte(ids[i]), c.machines[r.Machine], definitions[r.Digest], r.CreatedAt, []byte(r.StartedBy), int16(statuses[i]), r.Code, []byte(r.Reason), r.Reviews, []byte(r.Subject), r.DueAt, r.Driver, r.Since, r.TimerAt, r.ended,
			r.State, r.Round, r.Attempt, r.Sequence, r.Executed, r.UpdatedAt, r.Calls, r.TokensIn, r.TokensOut, r.PicoUSD, append([]byte{}, r.head...)}
	})
}

// Rebuild implements [transfer.Target].
func (c *copied) Rebuild(ctx context.Context, programs *session.Programs, told func(step string, done, of int64)) error {
	b := &rebuild{copied: c, programs: programs, told: func(done, of int64) { told("rebuilding", done, of) }}
	if err := b.run(ctx); err != nil {
		return err
	}
	c.s.mu.Lock()
	c.s.forget()
	c.s.mu.Unlock()
	report, err := c.s.Verify(ctx, programs, func(done, of int64) { told("verifying", done, of) })
	if err == nil && report.Difference != nil {
		err = &session.CorruptError{What: "the copy " + c.Name(), Problem: report.Difference.Error()}
	}
	return err
}

var _ store.Copyable = (*Store)(nil)
