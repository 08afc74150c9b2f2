package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dialai/dialai/store"
)

// Why a statement was refused. Postgres says which table it has not found or which one the role may not read, of one
// statement, in its own language; and without USAGE on a schema it finds no table there, as if there were none. So whoever is
// refused looks at the schema as it is: which tables are there, which ones its list of migrations (goose_db_version) says were
// made, and what the role may do. Of that follows what is said: whose tables these are, what is missing, and which right.
//
// The same look comes before anything is made or migrated, so that nothing is written among the tables of another program.

// inspectWithin is how long a look may take.
const inspectWithin = 10 * time.Second

// An inspection is what was found in a schema.
type inspection struct {
	a        address
	role     string
	database string
	creates  bool   // the role may make schemas
	exists   bool   // the schema
	owner    string // of the schema
	owns     bool   // the role is it, or acts as it
	uses     bool   // the role may use it
	makes    bool   // and make tables in it
	found    map[string]foundRelation
	listed   bool           // it has a list of migrations
	applied  map[int64]bool // that were, as it says; nil if the role may not read it
}

// A foundRelation is a table, a sequence or a view of a schema.
type foundRelation struct {
	columns []string
	lacks   []string // rights that the role does not have
}

// versionTable is the list of migrations that a schema has.
const versionTable = "goose_db_version"

// inspect looks at a schema, by a connection that waits for no lock: it reads catalogs, which everybody may.
func inspect(ctx context.Context, conn *pgx.Conn, a address) (*inspection, error) {
	i := &inspection{a: a, found: map[string]foundRelation{}}
	return i, readingBy(ctx, conn, func(tx pgx.Tx) error { return i.look(ctx, tx) }) // as of one moment: others may be migrating it
}

func (i *inspection) look(ctx context.Context, tx pgx.Tx) error {
	schema := i.a.schema
	err := tx.QueryRow(ctx, `SELECT current_user::text, current_database()::text, has_database_privilege(current_database(), 'CREATE'), n.oid IS NOT NULL, coalesce(pg_get_userbyid(n.nspowner)::text, ''), coalesce(pg_has_role(n.nspowner, 'USAGE'), false),
		coalesce(has_schema_privilege(n.oid, 'USAGE'), false), coalesce(has_schema_privilege(n.oid, 'CREATE'), false) FROM (SELECT 1) one LEFT JOIN pg_namespace n ON n.nspname=$1`, schema).
		Scan(&i.role, &i.database, &i.creates, &i.exists, &i.owner, &i.owns, &i.uses, &i.makes)
	if err != nil || !i.exists {
		return err
	}
	rows, _ := tx.Query(ctx, `SELECT c.relname::text, ARRAY(SELECT attname::text FROM pg_attribute t WHERE t.attrelid=c.oid AND t.attnum>0 AND NOT t.attisdropped),
		CASE c.relkind WHEN 'S' THEN ARRAY(SELECT p FROM unnest(ARRAY['USAGE', 'SELECT']) p WHERE NOT has_sequence_privilege(c.oid, p))
			ELSE ARRAY(SELECT p FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) p WHERE NOT has_table_privilege(c.oid, p)) END
		FROM pg_class c WHERE c.relnamespace=(SELECT oid FROM pg_namespace WHERE nspname=$1) AND c.relkind IN ('r', 'p', 'S', 'v', 'm', 'f') AND NOT c.relispartition
		AND NOT (c.relkind='S' AND EXISTS (SELECT FROM pg_depend d WHERE d.classid='pg_class'::regclass AND d.objid=c.oid AND d.deptype IN ('a', 'i')))`, schema) // the error comes with the rows
	var name string
	var r foundRelation
	if _, err = pgx.ForEachRow(rows, []any{&name, &r.columns, &r.lacks}, func() error { i.found[name] = r; r = foundRelation{}; return nil }); err != nil {
		return err
	}
	list := i.found[versionTable]
	i.listed = slices.Contains(list.columns, "version_id") && slices.Contains(list.columns, "is_applied")
	if i.listed && i.uses && !slices.Contains(list.lacks, "SELECT") {
		rows, _ := tx.Query(ctx, `SELECT version_id::bigint FROM `+schema+`.`+versionTable+` WHERE is_applied`) // the error comes with the rows
		applied, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil {
			return err
		}
		i.applied = map[int64]bool{}
		for _, n := range applied {
			i.applied[n] = true
		}
	}
	return nil
}

// A schemaError says why the schema of a database cannot be used as it is.
type schemaError struct {
	at      address
	problem string
	advice  string
	kind    error // store.ErrReadOnly where it is the role that may not, store.ErrReplaced where the store is gone; else nil
	cause   error
}

func (e *schemaError) Error() string { return e.at.String() + ": " + e.problem }

func (e *schemaError) Unwrap() error { return e.cause }

func (e *schemaError) Is(target error) bool { return e.kind != nil && target == e.kind }

// Public says it to whoever need not know where the store is, and by which role it is used.
func (e *schemaError) Public() string {
	switch e.kind {
	case store.ErrReadOnly:
		return "the role by which the database of the store is used lacks a right"
	case store.ErrReplaced:
		return "the database of the store, or its schema there, was dropped"
	}
	return "the schema of the store is not as its migrations have made it"
}

// Advice says what to do about it.
func (e *schemaError) Advice() string { return e.advice }

// refusedFor returns why the server has refused a statement, nil if the schema does not say.
func (d *database) refusedFor(p *pgconn.PgError) error {
	if d.config == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), inspectWithin)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, d.config)
	if err != nil {
		return nil
	}
	defer conn.Close(ctx)
	i, err := inspect(ctx, conn, d.address)
	if err != nil {
		return nil
	}
	var e *schemaError
	switch {
	case p.Code == "42501":
		e = cmp.Or(i.unusable(), i.rights())
	case !i.exists:
		e = gone("schema " + i.a.schema)
	default:
		e = cmp.Or(i.unusable(), i.tables())
	}
	if e == nil {
		return nil
	}
	e.at, e.cause = d.address, p
	return e
}

// gone says that what a store is in was dropped while it was used.
func gone(what string) *schemaError {
	return &schemaError{problem: "the " + what + " is gone: somebody has dropped it", advice: "restore it from a backup; whoever uses it goes on then", kind: store.ErrReplaced}
}

// unusable says that the role cannot get at the schema, nil if it can.
func (i *inspection) unusable() *schemaError {
	if i.exists && !i.uses {
		return i.lacking("use the schema "+i.a.schema, "GRANT USAGE ON SCHEMA "+i.a.schema+" TO "+ident(i.role), i.owner)
	}
	return nil
}

// lacking says what the role may not do, and what whoever owns the schema grants it.
func (i *inspection) lacking(what, grant, by string) *schemaError {
	return &schemaError{problem: fmt.Sprintf("the role %s may not %s", i.role, what), advice: fmt.Sprintf("as %s, in the database %s: %s; docs/postgres.md has all grants", by, i.database, grant), kind: store.ErrReadOnly}
}

// rights says which right the role lacks for what is there, nil if it has all.
func (i *inspection) rights() *schemaError {
	if !i.exists {
		return &schemaError{problem: fmt.Sprintf("the role %s may not make the schema %s", i.role, i.a.schema), kind: store.ErrReadOnly,
			advice: fmt.Sprintf("as who owns the database: GRANT CREATE ON DATABASE %s TO %s; or run dialai migrate once as who owns it, and grant the role what docs/postgres.md lists", ident(i.database), ident(i.role))}
	}
	without := map[string][]string{} // names by the right that the role lacks
	for _, name := range slices.Sorted(maps.Keys(i.a.relations())) {
		kind := "table"
		if i.a.relations()[name].sequence {
			kind = "sequence"
		}
		for _, right := range i.found[name].lacks {
			without[kind+" "+right] = append(without[kind+" "+right], name)
		}
	}
	schema, role := " IN SCHEMA "+i.a.schema, ident(i.role)
	for _, kind := range []string{"table", "sequence"} {
		if names := without[kind+" SELECT"]; len(names) > 0 {
			grant := "GRANT SELECT ON ALL TABLES" + schema + " TO " + role
			if kind == "sequence" {
				grant = "GRANT USAGE, SELECT ON ALL SEQUENCES" + schema + " TO " + role
			}
			return i.lacking("read "+some(kind, names), grant, i.owner)
		}
	}
	for _, right := range []string{"INSERT", "UPDATE", "DELETE"} {
		if names := without["table "+right]; len(names) > 0 {
			return i.lacking("write to "+some("table", names)+" ("+right+")", "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES"+schema+" TO "+role, i.owner)
		}
	}
	if names := without["sequence USAGE"]; len(names) > 0 {
		return i.lacking("draw from "+some("sequence", names)+" (USAGE)", "GRANT USAGE, SELECT ON ALL SEQUENCES"+schema+" TO "+role, i.owner)
	}
	if len(i.found) == 0 && !i.makes {
		return i.lacking("make tables in the schema "+i.a.schema, "GRANT CREATE ON SCHEMA "+i.a.schema+" TO "+role, i.owner)
	}
	if !i.owns {
		return notOwner("", i.role, i.owner)
	}
	return nil
}

// older says that the role cannot bring a store up to date, nil if it can.
func (i *inspection) older() *schemaError {
	if len(i.applied) < 2 || i.owns { // it begins with a row of no migration
		return nil
	}
	e := notOwner("the store is of an older version, and ", i.role, i.owner)
	e.advice = "run dialai migrate once as " + i.owner + ", and grant again what docs/postgres.md lists"
	return e
}

// notOwner says that a role does not own the tables of a store, for which it takes that.
func notOwner(before, role, owner string) *schemaError {
	return &schemaError{problem: fmt.Sprintf("%sthe role %s does not own its tables: %s does", before, role, owner), advice: "do it as " + owner + ", as which dialai migrate was run", kind: store.ErrReadOnly}
}

// some names a few of some tables or sequences.
func some(kind string, names []string) string {
	if len(names) == 1 {
		return "the " + kind + " " + names[0]
	}
	return "the " + kind + "s " + list(names)
}

// list names three, and says how many more there are.
func list(names []string) string {
	const shown = 3
	if len(names) > shown+1 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
	}
	if n := len(names) - 1; n > 0 {
		return strings.Join(names[:n], ", ") + " and " + names[n]
	}
	return strings.Join(names, "")
}

// ident writes a name as SQL does.
func ident(name string) string {
	if schemaName.MatchString(name) {
		return name
	}
	return pgx.Identifier{name}.Sanitize()
}

// tables says what is wrong with the tables of the schema, nil if nothing is, or if there are none.
func (i *inspection) tables() *schemaError {
	want := i.a.relations()
	var others, missing, early []string
	for _, name := range slices.Sorted(maps.Keys(i.found)) {
		if r, ours := want[name]; name != versionTable && !ours {
			others = append(others, name)
		} else if ours && i.applied != nil && !i.applied[r.migration] {
			early = append(early, name)
		}
	}
	known := false // migrations of ours were applied
	for _, name := range slices.Sorted(maps.Keys(want)) {
		r, there := want[name], i.found[name]
		known = known || i.applied[r.migration]
		if _, is := i.found[name]; !is && i.applied[r.migration] {
			missing = append(missing, name)
		}
		for column, n := range r.columns {
			switch has := slices.Contains(there.columns, column); {
			case len(there.columns) > 0 && i.applied[n] && !has:
				missing = append(missing, name+"."+column)
			case n != r.migration && i.applied != nil && !i.applied[n] && has:
				early = append(early, name+"."+column)
			}
		}
	}
	slices.Sort(missing)
	slices.Sort(early)
	const whole = "restore the database from a backup, or begin another store in another schema: ?schema=NAME in the address"
	switch {
	case i.newer():
		return nil // which may have changed tables for good, and then says who may still use them
	case i.listed && i.applied != nil && !i.applied[0]: // which it begins with
		return &schemaError{problem: fmt.Sprintf("the schema %s has a list of migrations (%s) that is not whole", i.a.schema, versionTable), advice: whole}
	case len(i.found) == 0 || i.listed && i.applied == nil || len(missing) == 0 && len(early) == 0 && (known || len(others) == 0 && i.listed):
		return nil
	case !i.ours(want):
		if len(others)+len(early) == 0 && i.listed {
			return &schemaError{problem: fmt.Sprintf("the schema %s has a list of migrations (%s), but none of the tables that they make", i.a.schema, versionTable), advice: whole + "; if nothing was ever kept there, DROP SCHEMA " + i.a.schema + " CASCADE and run dialai migrate"}
		}
		all := slices.DeleteFunc(slices.Sorted(maps.Keys(i.found)), func(name string) bool { return name == versionTable })
		return &schemaError{problem: fmt.Sprintf("the schema %s holds tables of another program: %s", i.a.schema, list(all)), advice: "keep the store in another schema, ?schema=NAME in the address, or in another database"}
	case !i.listed:
		return &schemaError{problem: fmt.Sprintf("the schema %s lacks its list of migrations, the table %s", i.a.schema, versionTable), advice: whole}
	case len(missing) > 0:
		return &schemaError{problem: fmt.Sprintf("the schema %s lacks %s, which %s has made", i.a.schema, list(missing), i.of(missing[0])), advice: whole}
	}
	return &schemaError{problem: fmt.Sprintf("the schema %s has %s, but its list of migrations (%s) lacks %s, which makes it", i.a.schema, list(early), versionTable, i.of(early[0])), advice: whole}
}

// newer reports whether a newer version has migrated the schema.
func (i *inspection) newer() bool {
	last := slices.Max(slices.Collect(maps.Keys(migrationsIn(i.a.migrations()))))
	for n := range i.applied {
		if n > last && i.ours(i.a.relations()) {
			return true
		}
	}
	return false
}

// ours reports whether tables of the schema are those of a store: one that is called so and has other columns is somebody else's.
func (i *inspection) ours(want map[string]relation) bool {
	for name, r := range want {
		same := len(r.columns) > 0
		for column, n := range r.columns {
			same = same && (n != r.migration || slices.Contains(i.found[name].columns, column))
		}
		if same {
			return true
		}
	}
	return false
}

// of names the migration that has made a table or a column, TABLE.COLUMN.
func (i *inspection) of(name string) string {
	table, column, _ := strings.Cut(name, ".")
	r := i.a.relations()[table]
	file := migrationsIn(i.a.migrations())[cmp.Or(r.columns[column], r.migration)]
	return "migration " + file[strings.LastIndexByte(file, '/')+1:]
}

// connectRefused says that the role may not connect to the database, nil if an error says something else.
func connectRefused(a address, config *pgx.ConnConfig, err error) error {
	var p *pgconn.PgError
	if config == nil || !errors.As(err, new(*pgconn.ConnectError)) || !errors.As(err, &p) || p.Code != "42501" {
		return nil
	}
	return &schemaError{at: a, problem: fmt.Sprintf("the role %s may not connect to the database %s", config.User, config.Database),
		advice: fmt.Sprintf("as who owns the database: GRANT CONNECT ON DATABASE %s TO %s; docs/postgres.md has all grants", ident(config.Database), ident(config.User)), kind: store.ErrReadOnly, cause: p}
}
