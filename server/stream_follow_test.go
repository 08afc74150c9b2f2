package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
)

// A told is an event that a stream has told of.
type told struct {
	id, kind string
	data     string
}

// A listener reads a stream.
type listener struct {
	*desk
	in    *bufio.Reader
	close func()
}

// hear opens a stream of a server over a connection.
func (d *desk) hear(at *httptest.Server, key, path, after string) *listener {
	d.Helper()
	ctx, cancel := context.WithCancel(d.Context())
	req, err := http.NewRequestWithContext(ctx, "GET", at.URL+path, http.NoBody)
	if err != nil {
		d.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Authorization", "Bearer "+key)
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		d.Fatal(err)
	}
	l := &listener{d, bufio.NewReader(resp.Body), func() { cancel(); resp.Body.Close() }}
	d.Cleanup(l.close)
	if h := resp.Header; resp.StatusCode != 200 || h.Get("Content-Type") != "text/event-stream" || h.Get("X-Accel-Buffering") != "no" {
		d.Fatalf("the stream begins with %d %v", resp.StatusCode, h)
	}
	return l
}

// next returns the next event; of a stream that has ended one without a kind.
func (l *listener) next() (e told) {
	l.Helper()
	for {
		text, err := l.in.ReadString('\n')
		if err != nil {
			return told{}
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(text, "\n"), ": ")
		switch name {
		case "id":
			e.id = value
		case "event":
			e.kind = value
		case "data":
			e.data = value
		case "":
			if e.kind != "" {
				return e
			}
			e = told{} // an id alone
		}
	}
}

// event returns an event as the API has it.
func (e told) event(t *testing.T) (ev api.Event) {
	t.Helper()
	if err := json.Unmarshal([]byte(e.data), &ev); err != nil {
		t.Fatalf("%v in %q", err, e.data)
	}
	return ev
}

// reached answers over connections until the test ends.
func (d *desk) reached() *httptest.Server {
	at := httptest.NewServer(d.handler)
	d.Cleanup(at.Close)
	return at
}

// sqlite opens a store in a file.
func sqlite(t *testing.T, path string) session.Store {
	t.Helper()
	s, err := store.OpenSQLite(t.Context(), path, store.SQLiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// written returns all that the logs of a store have, each log in its order.
func (d *desk) written() (sessions, rosters []string) {
	d.Helper()
	for e, err := range d.runner.Store().Log(d.Context(), "", 0) {
		if err != nil {
			d.Fatal(err)
		}
		raw, err := session.DecodeRaw(e.Events)
		if err != nil {
			d.Fatal(err)
		}
		for _, r := range raw {
			sessions = append(sessions, e.Session.String()+" "+string(rune('0'+r.Seq))+" "+r.Kind)
		}
	}
	for e, err := range d.runner.Store().RosterLog(d.Context(), "", 0) {
		if err != nil {
			d.Fatal(err)
		}
		rosters = append(rosters, e.MachineName)
	}
	return sessions, rosters
}

// register registers somebody for a machine.
func (d *desk) register(name, id string) {
	d.Helper()
	if _, err := d.runner.Register(d.Context(), name, machine.Specialist{Role: machine.Proposer, SpecialistID: id, StrategyFnName: "random"}, nil); err != nil {
		d.Fatal(err)
	}
}

// begin starts a session, and carries it on until it waits for a human.
func (d *desk) begin(text string) api.Session {
	d.Helper()
	m, err := machine.Parse("m.json", []byte(text), runner.Checks())
	if err != nil {
		d.Fatal(err)
	}
	at, err := d.runner.Start(d.Context(), m, runner.StartOptions{})
	if err == nil {
		_, err = d.runner.Run(d.Context(), at.ID, runner.RunOptions{})
	}
	if err != nil {
		d.Fatal(err)
	}
	var s api.Session
	d.want(200, "GET", "/v1/sessions/"+at.ID.String(), "").into(d.T, &s)
	return s
}

// split returns events as written does.
func split(t *testing.T, list []told) (sessions, rosters []string) {
	t.Helper()
	for _, e := range list {
		ev := e.event(t)
		if ev.Machine != "" {
			rosters = append(rosters, ev.Machine)
			continue
		}
		sessions = append(sessions, ev.SessionID+" "+string(rune('0'+ev.Seq))+" "+ev.Kind)
	}
	return sessions, rosters
}

// TestStreamsResume: however often a stream over all sessions is begun again, at whichever
// process, after whichever event, each event of both logs comes once and in the order of its log.
func TestStreamsResume(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dialai.db")
	var desks [2]*desk
	var at [2]*httptest.Server
	for i := range desks {
		desks[i] = newDesk(t, deskOptions{store: sqlite(t, path), shared: true})
		at[i] = desks[i].reached()
	}
	d := desks[0]
	d.begin(reviewed)
	d.register("claims", "one")
	var seen []told
	last := "0"
	for i := range 12 {
		if i == 4 {
			desks[1].begin(reviewed) // another process
			desks[1].register("claims", "two")
			d.begin(strings.Replace(reviewed, "claims", "other", 1))
		}
		sessions, rosters := d.written()
		l := desks[i%2].hear(at[i%2], localKey, "/v1/events", last)
		for range min(1+i%3, len(sessions)+len(rosters)-len(seen)) {
			e := l.next()
			if e.kind == "" || e.id == "" {
				t.Fatalf("after %d events the stream says %+v", len(seen), e)
			}
			seen, last = append(seen, e), e.id
		}
		l.close()
	}
	sessions, rosters := d.written()
	l := d.hear(at[0], localKey, "/v1/events", last)
	for len(seen) < len(sessions)+len(rosters) {
		seen = append(seen, l.next())
	}
	gotSessions, gotRosters := split(t, seen)
	if !slices.Equal(gotSessions, sessions) || !slices.Equal(gotRosters, rosters) {
		t.Errorf("the streams had\n%q\n%q\nthe logs have\n%q\n%q", gotSessions, gotRosters, sessions, rosters)
	}
	desks[1].begin(reviewed) // it arrives where this one listens
	if e := l.next(); e.kind != session.KindCreated {
		t.Errorf("of what another process commits comes %+v", e)
	}
}

// TestStreamsWithhold: nothing that is withheld of a round is in any stream, whoever reads it,
// from the beginning or as it comes; what somebody may not read is not there at all.
func TestStreamsWithhold(t *testing.T) {
	d := newDesk(t, deskOptions{})
	at := d.reached()
	carol := d.key(control.Grant{Role: control.Human, Humans: []string{"carol"}})
	live := map[string]*listener{}
	paths := []string{"/v1/events?payload=full", "/v1/inbox/events"}
	d.begin(strings.Replace(withheld, "claims", "before", 1)) // so that the machine is there
	paths = append(paths, "/v1/machines/claims/events?payload=full")
	d.begin(withheld)
	for _, path := range paths {
		live[path] = d.hear(at, carol, path, "")
	}
	s := d.begin(withheld)
	d.begin(reviewed)
	for _, path := range paths {
		for _, l := range []*listener{live[path], d.hear(at, carol, path, "0"), d.hear(at, localKey, path, "0")} {
			masked, shown := 0, 0
			for shown == 0 { // the last of it is of a session of which nothing is withheld
				e := l.next()
				if e.kind == "" {
					t.Fatalf("%s ends", path)
				}
				mine := strings.Contains(e.data, s.SessionID)
				if mine && (strings.Contains(e.data, "firstAvailable") || strings.Contains(e.data, `"transitionName":"pay"`) && e.kind != "question.opened" || strings.Contains(e.data, "first available")) {
					t.Errorf("%s tells %s %s", path, e.kind, e.data)
				}
				if mine && (strings.Contains(e.data, `"withheld":true`) || e.kind == "question.opened" && strings.Contains(e.data, `"withheld"`)) {
					masked++
				}
				if !mine && masked > 0 && (strings.Contains(e.data, "first available") || e.kind == "question.opened") {
					shown++
				}
			}
			if masked == 0 {
				t.Errorf("%s masks nothing", path)
			}
		}
	}
}

// TestInboxStream: what comes to wait for a human, changes and is done, with the question as
// who looks sees it while it is open, and no more than its name when it is not.
func TestInboxStream(t *testing.T) {
	d := newDesk(t, deskOptions{})
	at := d.reached()
	carol := d.key(control.Grant{Role: control.Human, Humans: []string{"carol"}})
	l := d.hear(at, carol, "/v1/inbox/events", "")
	s := d.begin(reviewed)
	opened := l.next()
	var in api.InboxEvent
	if err := json.Unmarshal([]byte(opened.data), &in); err != nil || opened.kind != "question.opened" || in.Question == nil || in.QuestionID != s.Question.QuestionID || len(in.Question.Proposals) != 2 {
		t.Fatalf("the stream says %+v (%v), and the question is %s", opened, err, s.Question.QuestionID)
	}
	d.wantAs(carol, 200, "POST", "/v1/sessions/"+s.SessionID+"/decisions", ruling(s, "pay", "carol"))
	var kinds []string
	closed := l.next()
	for ; closed.kind == "question.changed"; closed = l.next() {
		kinds = append(kinds, closed.kind)
	}
	if in = (api.InboxEvent{}); json.Unmarshal([]byte(closed.data), &in) != nil || closed.kind != "question.closed" || in.Question != nil || in.QuestionID != s.Question.QuestionID {
		t.Fatalf("after %q the stream says %+v", kinds, closed)
	}
	again := d.hear(at, carol, "/v1/inbox/events", "0") // of what is done, no more than its name
	if e := again.next(); e.kind != "question.opened" || strings.Contains(e.data, `"question":`) || e.id != opened.id {
		t.Errorf("from the beginning the stream says %+v", e)
	}
	if e := d.hear(at, carol, "/v1/inbox/events", opened.id).next(); e != closed {
		t.Errorf("behind %s comes %+v, want %+v", opened.id, e, closed)
	}
	viewer := d.key(control.Grant{Role: control.Viewer})
	d.wantAs(viewer, 403, "GET", "/v1/inbox/events", "", "Accept", "text/event-stream")
}

// TestClaimsAreTold: an inbox hears who is at a question and that nobody is any more, without an
// id, and only one that may see the question.
func TestClaimsAreTold(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	at := d.reached()
	s := d.start(reviewed)
	carol := d.key(control.Grant{Role: control.Human, Humans: []string{"carol"}})
	mine := d.hear(at, carol, "/v1/inbox/events", "")
	others := d.hear(at, localKey, "/v1/inbox/events?machine=alone", "")
	elsewhere := d.hear(at, d.key(control.Grant{Role: control.Operator, Machines: []string{"alone"}}), "/v1/inbox/events", "")
	path := "/v1/inbox/" + s.Question.QuestionID + "/claim"
	d.wantAs(carol, 200, "PUT", path, "")
	d.wantAs(carol, 204, "DELETE", path, "")
	for _, who := range []string{"carol", ""} {
		e, in := mine.next(), api.InboxEvent{}
		if err := json.Unmarshal([]byte(e.data), &in); err != nil || e.id != "" || e.kind != "claim.changed" || in.QuestionID != s.Question.QuestionID || in.MachineName != "claims" || (in.Claim == nil) != (who == "") || in.Claim != nil && in.Claim.SpecialistID != who {
			t.Errorf("told of %q: %+v, %v", who, e, err)
		}
	}
	d.start(alone2)
	for name, l := range map[string]*listener{"of another machine": others, "that may not see it": elsewhere} {
		if e := l.next(); e.kind != "question.opened" {
			t.Errorf("an inbox %s is told %+v", name, e)
		}
	}
	late := d.hear(at, carol, "/v1/inbox/events", "")
	d.wantAs(carol, 200, "PUT", path, "")
	if e := late.next(); !strings.Contains(e.data, `"claim":{`) {
		t.Errorf("who has come later is told %+v", e)
	}
}

// alone2 is a machine alone that waits for a human.
var alone2 = strings.Replace(reviewed, `"machineName":"claims"`, `"machineName":"alone"`, 1)

// TestStreamsOfOthers: nobody is told of machines that are none of theirs, and who may not read
// texts is told of none.
func TestStreamsOfOthers(t *testing.T) {
	d := newDesk(t, deskOptions{})
	at := d.reached()
	other := strings.Replace(reviewed, "claims", "other", 1)
	d.begin(reviewed)
	mine := d.begin(other)
	viewer := d.key(control.Grant{Role: control.Viewer, Machines: []string{"other"}})
	for _, path := range []string{"/v1/events", "/v1/machines/other/events"} {
		e := d.hear(at, viewer, path, "0").next()
		if ev := e.event(t); ev.SessionID != mine.SessionID || string(ev.Data) != "{}" {
			t.Errorf("%s begins with %+v", path, e)
		}
	}
	d.wantAs(viewer, 404, "GET", "/v1/machines/claims/events", "", "Accept", "text/event-stream")
	d.wantAs(viewer, 403, "GET", "/v1/events?payload=full", "", "Accept", "text/event-stream")
}

// TestStreamCursors: an id is of one store and one stream. What is none is refused, and who has
// seen what is not there any more is told so.
func TestStreamCursors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dialai.db")
	d := newDesk(t, deskOptions{store: sqlite(t, path)})
	at := d.reached()
	d.begin(reviewed)
	id := d.hear(at, localKey, "/v1/events", "0").next().id
	of := d.hear(at, localKey, "/v1/inbox/events", "0").next().id
	for _, after := range []string{"x", "17", "-1", of, id + "A", id[:len(id)-3], strings.ToLower(id) + "0"} {
		if r := d.want(400, "GET", "/v1/events", "", "Accept", "text/event-stream", "Last-Event-ID", after); r.code() != "bad_cursor" {
			t.Errorf("after %q: %s", after, r.body)
		}
	}
	if r := d.want(406, "GET", "/v1/events", "", "Accept", "application/json"); r.code() != "not_acceptable" {
		t.Errorf("as JSON: %s", r.body)
	}
	shorter := newDesk(t, deskOptions{}) // another store
	there := shorter.reached()
	shorter.begin(reviewed)
	l := shorter.hear(there, localKey, "/v1/events", id)
	if e := l.next(); e != (told{kind: "reset", data: "{}"}) {
		t.Errorf("in another store the stream says %+v", e)
	}
	shorter.begin(reviewed)
	if e := l.next(); e.kind != session.KindCreated {
		t.Errorf("then it says %+v", e)
	}
}
