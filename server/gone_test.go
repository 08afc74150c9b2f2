package server_test

import (
	"context"
	"errors"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
)

// A goneStore is one whose file was removed: a connection that is opened then finds an empty one
// in its place.
type goneStore struct {
	session.Store
	gone atomic.Bool
}

func (s *goneStore) Load(ctx context.Context, p *session.Programs, id specialist.SessionID) (*session.Session, error) {
	if s.gone.Load() {
		return nil, errors.New("no such table: sessions")
	}
	return s.Store.Load(ctx, p, id)
}

func (s *goneStore) Intact() error {
	if s.gone.Load() {
		return store.ErrReplaced
	}
	return nil
}

// TestReadsOfAStoreThatIsGone: that it is gone is said, and not what came of reading it.
func TestReadsOfAStoreThatIsGone(t *testing.T) {
	kept := &goneStore{Store: store.NewMemory()}
	d := newDesk(t, deskOptions{store: kept, drives: true})
	open := d.start(reviewed)
	kept.gone.Store(true)
	if r := d.want(503, "POST", "/v1/sessions/"+open.SessionID+"/decisions", ruling(open, "pay", "carol")); r.code() != "store_gone" {
		t.Errorf("a ruling is refused with %s", r.body)
	}
}

// A droppedError is that of a store in a database that was dropped.
type droppedError struct{}

func (droppedError) Error() string        { return "postgres://db.example/secret is gone" }
func (droppedError) Is(target error) bool { return target == store.ErrReplaced }
func (droppedError) Public() string       { return "the database of the store was dropped" }

// A droppedStore is one whose database was dropped.
type droppedStore struct{ session.Store }

func (s *droppedStore) Load(context.Context, *session.Programs, specialist.SessionID) (*session.Session, error) {
	return nil, droppedError{}
}

// TestDroppedDatabase: that a database is gone is said without where it was, and with what is true of one.
func TestDroppedDatabase(t *testing.T) {
	d := newDesk(t, deskOptions{store: &droppedStore{store.NewMemory()}, drives: true})
	r := d.want(503, "GET", "/v1/sessions/00000000-0000-4000-8000-000000000000", "")
	if text := string(r.body); r.code() != "store_gone" || !strings.Contains(text, "the database of the store was dropped") || !strings.Contains(text, "restore it: the server goes on then") || strings.Contains(text, "db.example") {
		t.Errorf("it is said as %s", text)
	}
}

// TestArchived: whoever may see a session is told that it was archived, and not where on the computer; to others
// it is one that never was.
func TestArchived(t *testing.T) {
	file, err := store.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "dialai.db"), store.SQLiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	d := newDesk(t, deskOptions{store: file, drives: true})
	list := []api.Session{d.start(reviewed), d.start(reviewed)}
	for _, one := range list {
		d.want(200, "POST", "/v1/sessions/"+one.SessionID+"/decisions?wait=10s", ruling(one, "pay", "carol"))
	}
	into := filepath.Join(t.TempDir(), "archive.db")
	done, err := file.Archive(t.Context(), store.ArchiveOptions{Before: specialist.Time(1) << 50, To: into, Programs: session.NewPrograms()})
	if err != nil || done.Sessions != 1 {
		t.Fatalf("archived: %+v, %v", done, err)
	}
	at := "/v1/sessions/" + list[0].SessionID
	for _, path := range []string{at, at + "/events", at + "/explain"} {
		r := d.want(404, "GET", path, "")
		if r.code() != "not_found" || !strings.Contains(string(r.body), "was archived") || !strings.Contains(string(r.body), "ask whoever runs the server") || strings.Contains(string(r.body), filepath.Dir(into)) {
			t.Errorf("%s of an archived session: %s", path, r.body)
		}
	}
	d.want(200, "GET", "/v1/sessions/"+list[1].SessionID, "")
	stranger := d.key(control.Grant{Role: "viewer", Machines: []string{"others"}})
	if r := d.wantAs(stranger, 404, "GET", at, ""); strings.Contains(string(r.body), "archived") {
		t.Errorf("whoever may not see it is told %s", r.body)
	}
}

// TestNewerVersion: a request about a session that a newer version has written to is refused as that, and may be sent again.
func TestNewerVersion(t *testing.T) {
	kept := &newerStore{Store: store.NewMemory()}
	d := newDesk(t, deskOptions{store: kept, drives: true})
	open := d.start(reviewed)
	kept.newer.Store(true)
	r := d.want(503, "GET", "/v1/sessions/"+open.SessionID, "")
	if r.code() != "newer_version" || !strings.Contains(string(r.body), `"retryable":true`) {
		t.Errorf("it is refused with %s", r.body)
	}
}

// TestUnreadable: to whoever may not see a session that cannot be read, because it is damaged or a newer version has written to it,
// it is one that never was; whoever may see it is told.
func TestUnreadable(t *testing.T) {
	kept := &newerStore{Store: store.NewMemory()}
	d := newDesk(t, deskOptions{store: kept, drives: true})
	at := "/v1/sessions/" + d.start(reviewed).SessionID
	never := "/v1/sessions/" + specialist.SessionID{6: 0x40, 8: 0x80, 15: 1}.String()
	stranger, viewer := d.key(control.Grant{Role: "viewer", Machines: []string{"others"}}), d.key(control.Grant{Role: "viewer", Machines: []string{"claims"}})
	kept.newer.Store(true)
	for what, code := range map[string]string{"newer": "newer_version", "damaged": "store_damaged"} {
		kept.damaged.Store(what == "damaged")
		status := map[string]int{"newer": 503, "damaged": 500}[what]
		if r := d.wantAs(viewer, status, "GET", at, ""); r.code() != code {
			t.Errorf("%s: whoever may see it is told %s", what, r.body)
		}
		unknown := strings.ReplaceAll(string(d.wantAs(stranger, 404, "GET", never, "").body), path.Base(never), path.Base(at))
		if r := d.wantAs(stranger, 404, "GET", at, ""); timeless(string(r.body)) != timeless(unknown) {
			t.Errorf("%s: whoever may not see it is told %s, and of one that never was %s", what, r.body, unknown)
		}
	}
}

// timeless returns a problem without the id of its request.
func timeless(problem string) string {
	return regexp.MustCompile(`,?"(requestId|instance)":"[^"]*"`).ReplaceAllString(problem, "")
}

type newerStore struct {
	session.Store
	newer, damaged atomic.Bool
}

func (s *newerStore) Load(ctx context.Context, p *session.Programs, id specialist.SessionID) (*session.Session, error) {
	if s.damaged.Load() {
		return nil, session.Corrupt("the log of session "+id.String(), errors.New("it ends before it begins"))
	}
	if s.newer.Load() {
		return nil, session.Corrupt("the log of session "+id.String(), &session.NewerError{Has: "event 3"})
	}
	return s.Store.Load(ctx, p, id)
}

func (s *newerStore) Recent(id specialist.SessionID) *session.Session {
	if s.newer.Load() {
		return nil
	}
	return s.Store.Recent(id)
}
