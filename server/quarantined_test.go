package server_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
)

// A quarantining store hands sessions out to nobody.
type quarantining struct {
	session.Store
	list []session.Quarantined
}

func (s *quarantining) Join(context.Context) (session.Worker, error)          { panic("nobody drives") }
func (s *quarantining) Workers(context.Context) ([]session.WorkerInfo, error) { return nil, nil }
func (s *quarantining) Free(context.Context, specialist.SessionID) error      { return nil }
func (s *quarantining) Quarantined(_ context.Context, after specialist.SessionID, limit int) ([]session.Quarantined, error) {
	from := 1 + slices.IndexFunc(s.list, func(q session.Quarantined) bool { return q.Session == after })
	return s.list[from:min(len(s.list), from+limit)], nil
}

// TestQuarantinedInInbox: the inbox begins with the sessions that nobody carries on any more, as far as the caller may see
// them, and says why to whoever may see payloads; once, on its first page, and not too many.
func TestQuarantinedInInbox(t *testing.T) {
	kept := &quarantining{Store: store.NewMemory()}
	d := newDesk(t, deskOptions{store: kept})
	inbox := func(key, query string) (list []api.Quarantined) {
		t.Helper()
		var page api.Inbox
		d.wantAs(key, 200, "GET", "/v1/inbox"+query, "").into(t, &page)
		return page.Quarantined
	}
	if r := d.want(200, "GET", "/v1/inbox", ""); strings.Contains(string(r.body), "quarantined") {
		t.Errorf("where none is quarantined there is %s", r.body)
	}
	for i := range 30 {
		kept.list = append(kept.list, session.Quarantined{Session: specialist.SessionID{byte(i + 1)}, MachineName: fmt.Sprint("m", i%2), Reason: "it says sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789 each time", Failures: 8})
	}
	all := inbox(localKey, "")
	if len(all) != 20 || all[0].SessionID != kept.list[0].Session.String() || all[1].MachineName != "m1" || all[0].Failures != 8 || !strings.HasPrefix(all[0].Reason, "it says") || strings.Contains(all[0].Reason, "sk-ant-api03-abc") {
		t.Errorf("first in the inbox are %d sessions, the first one %+v", len(all), all[0])
	}
	if of := inbox(localKey, "?machine=m1"); len(of) != 15 || of[0].MachineName != "m1" {
		t.Errorf("of one machine there are %d", len(of))
	}
	if few := inbox(d.key(control.Grant{Role: "viewer", Machines: []string{"m0"}}), ""); len(few) != 15 || few[0].MachineName != "m0" || few[0].Reason != "" {
		t.Errorf("who sees one machine, and no payloads, sees %+v", few)
	}
	for i := range 571 { // 30+570 are three pages
		kept.list = append(kept.list, session.Quarantined{Session: specialist.SessionID{1: 1, 2: byte(i >> 8), 3: byte(i)}, MachineName: "m2"})
	}
	kept.list[len(kept.list)-1].MachineName = "m3"
	last := kept.list[len(kept.list)-1].Session.String()
	if few := inbox(d.key(control.Grant{Role: "viewer", Machines: []string{"m3"}}), ""); len(few) != 1 || few[0].SessionID != last {
		t.Errorf("who sees the machine of the last of %d sees %+v", len(kept.list), few)
	}
	kept.list = kept.list[:600]
	if none := inbox(d.key(control.Grant{Role: "viewer", Machines: []string{"m4"}}), ""); len(none) != 0 {
		t.Errorf("who sees no machine of which any is quarantined sees %+v", none)
	}
}
