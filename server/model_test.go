package server_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
)

// loop goes round between two states, and a human decides on each; what is proposed is withheld.
const loop = `{"machineName":"loop","initialState":"a","goalState":"end","states":{
	"a":{"prompt":"On?","audit":{"mode":"before","rate":1,"newcomerRate":1},"transitions":{"next":"b","stop":"end"}},
	"b":{"prompt":"On?","audit":{"mode":"before","rate":1,"newcomerRate":1},"transitions":{"next":"a","stop":"end"}},"end":{}},
	"specialists":[{"role":"proposer","specialistId":"bot","strategyFnName":"firstAvailable"},{"role":"proposer","specialistId":"carol","isHuman":true},{"role":"proposer","specialistId":"dave","isHuman":true},
		{"role":"arbiter","specialistId":"x","strategyFnName":"alignmentMargin"}]}`

// A world is a server, those who call it, and what a model of permissions and rounds says of it.
type world struct {
	*desk
	keys     map[string]string
	sessions []*played
	words    []given // every ruling that was sent, to be sent again
}

// played is a session as the model has it.
type played struct {
	id, state string
	executed  int             // transitions
	seen      map[string]bool // who has looked at what is withheld in this round
	stopped   bool
}

// given is a ruling as it was sent.
type given struct {
	by, session, body, round, transition string
	executed                             bool
}

// What the model knows of permissions.
var (
	mayStart  = map[string]bool{"operator": true, "admin": true}
	mayRuleAs = map[string]string{"carol": "carol", "dave": "dave"}
)

var callers = []string{"viewer", "operator", "carol", "dave", "bot", "auditor", "admin", "elsewhere"}

func newWorld(t *testing.T) *world {
	w := &world{desk: newDesk(t, deskOptions{store: store.NewMemory(), control: control.NewMemory()}), keys: map[string]string{}}
	for name, g := range map[string]control.Grant{
		"viewer": {Role: control.Viewer}, "operator": {Role: control.Operator}, "carol": {Role: control.Human, Humans: []string{"carol"}}, "dave": {Role: control.Human, Humans: []string{"dave"}},
		"bot": {Role: control.Specialist, Specialists: []string{"bot"}}, "auditor": {Role: control.Auditor}, "admin": {Role: control.Admin},
		"elsewhere": {Role: control.Human, Humans: []string{"carol"}, Machines: []string{"other"}},
	} {
		w.keys[name] = w.key(g)
	}
	return w
}

// now is a session as it is, with its question as who administers sees it.
func (w *world) now(p *played) (s api.Session, etag string) {
	w.Helper()
	r := w.want(200, "GET", "/v1/sessions/"+p.id, "")
	r.into(w.T, &s)
	return s, r.header.Get("ETag")
}

// question is that of a session as somebody sees it, "" nobody in particular: nil if it has ended
// or they do not see it. It is there while the session runs, too.
func (w *world) question(by string, at api.Session) (body []byte, q *api.Question) {
	w.Helper()
	key := localKey
	if by != "" {
		key = w.keys[by]
	}
	r := w.do(key, "GET", "/v1/inbox/"+at.SessionID+"."+at.CurrentRoundID, "")
	if r.status == 200 {
		r.into(w.T, &q)
	}
	return r.body, q
}

// refuses has a request refused, without a trace in the session.
func (w *world) refuses(t *rapid.T, p *played, r *reply, before string, why string, statuses ...int) {
	t.Helper()
	fits := false
	for _, status := range statuses {
		fits = fits || r.status == status
	}
	if !fits {
		t.Fatalf("%s is answered %d %s, want %v", why, r.status, r.body, statuses)
	}
	if _, after := w.now(p); after != before {
		t.Fatalf("%s has changed the session from %s to %s", why, before, after)
	}
}

// rule sends a ruling, and says what has to come of it.
func (w *world) rule(t *rapid.T, g given, p *played) {
	t.Helper()
	at, before := w.now(p)
	shown, mine := w.question(g.by, at)
	_, anybodys := w.question("", at)
	r := w.do(w.keys[g.by], "POST", "/v1/sessions/"+p.id+"/decisions", g.body)
	what := fmt.Sprintf("a ruling by %s on round %s of %s: %s,", g.by, g.round, p.id, g.body)
	human := mayRuleAs[g.by]
	if human == "" {
		w.refuses(t, p, r, before, what, 403, 404)
		return
	}
	fresh := mine != nil && !p.stopped && p.id == g.session && mine.RoundID == g.round && (strings.Contains(g.body, mine.Digest) || strings.Contains(g.body, anybodys.Digest)) // of what they see, or nobody in particular does
	if !fresh {
		var again api.Ruled
		if r.status == 200 && json.Unmarshal(r.body, &again) == nil && again.Repeated && w.said(g) && g.session == p.id {
			r.status = http.StatusConflict // the same word of the same human on the same question says what it came to
		}
		w.refuses(t, p, r, before, what, 409)
		return
	}
	var ruled api.Ruled
	if r.status != 200 || json.Unmarshal(r.body, &ruled) != nil || !ruled.Arbitration.Executed || ruled.Repeated {
		t.Fatalf("%s is answered %d %s", what, r.status, r.body)
	}
	to := map[string]string{"anext": "b", "bnext": "a", "astop": "end", "bstop": "end"}[p.state+g.transition]
	if p.executed++; ruled.Arbitration.ToState != to || ruled.Arbitration.RoundID != g.round {
		t.Fatalf("%s leads to %s in round %s", what, ruled.Arbitration.ToState, ruled.Arbitration.RoundID)
	}
	withheld := mine.Withheld != nil
	if withheld == p.seen[g.by] && len(anybodys.Proposals) > 0 || withheld && bytes.Contains(shown, []byte("first available")) {
		t.Fatalf("%s and they have looked: %v, and are shown %s", what, p.seen[g.by], shown)
	}
	var log api.List[api.Event]
	w.want(200, "GET", "/v1/sessions/"+p.id+"/events?after=0&payload=full&kinds=learned", "").into(w.T, &log)
	if len(log.Items) < p.executed {
		t.Fatalf("%s has taught nothing: %+v", what, log.Items)
	}
	last := log.Items[len(log.Items)-1].Data
	if bytes.Contains(last, []byte(`"blind":true`)) != withheld || !bytes.Contains(last, []byte(`"humanId":"`+human+`"`)) {
		t.Fatalf("%s by one from whom it was withheld: %v, has taught %s", what, withheld, last)
	}
	p.state, p.seen, p.stopped = to, map[string]bool{}, false
	g.executed = true
	w.words = append(w.words, g)
}

// said reports whether the same ruling was executed.
func (w *world) said(g given) bool {
	return slices.ContainsFunc(w.words, func(o given) bool { return o.executed && o.by == g.by && o.session == g.session && o.body == g.body })
}

// some draws one of the sessions.
func (w *world) some(t *rapid.T) *played {
	if len(w.sessions) == 0 {
		t.Skip("no session")
	}
	return w.sessions[rapid.IntRange(0, len(w.sessions)-1).Draw(t, "session")]
}

// TestModel: whoever starts sessions, drives, proposes, looks, rules, repeats what was said before
// and cancels, in whatever order, over restarts: what happens is what a model of permissions and
// rounds says, and nothing else.
func TestModel(t *testing.T) {
	checks := "20"
	if testing.Short() {
		checks = "5"
	}
	for name, value := range map[string]string{"rapid.checks": checks, "rapid.nofailfile": "true"} { // ids differ each time, so that no file shows again what has failed
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	outer := t
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(outer)
		who := func(mostly ...string) string {
			if rapid.IntRange(0, 3).Draw(t, "mostly") > 0 {
				return rapid.SampledFrom(mostly).Draw(t, "who")
			}
			return rapid.SampledFrom(callers).Draw(t, "who")
		}
		t.Repeat(map[string]func(*rapid.T){
			"start": func(t *rapid.T) {
				by := who("operator", "admin")
				if len(w.sessions) == 3 {
					t.Skip("enough")
				}
				r := w.do(w.keys[by], "POST", "/v1/sessions", `{"machine":`+loop+`,"drive":false}`)
				if !mayStart[by] {
					if r.status != 403 {
						t.Fatalf("%s starts a session: %d %s", by, r.status, r.body)
					}
					return
				}
				var s api.Settled
				r.into(w.T, &s)
				w.sessions = append(w.sessions, &played{id: s.Session.SessionID, state: "a", seen: map[string]bool{}})
			},
			"run": func(t *rapid.T) {
				p, by := w.some(t), who("operator")
				_, before := w.now(p)
				r := w.do(w.keys[by], "POST", "/v1/sessions/"+p.id+"/run", "")
				if !mayStart[by] {
					w.refuses(t, p, r, before, by+" driving a session", 403, 404)
				} else if r.status != 200 && r.status != 409 {
					t.Fatalf("%s drives a session: %d %s", by, r.status, r.body)
				}
			},
			"propose": func(t *rapid.T) {
				p, by := w.some(t), who("bot")
				at, before := w.now(p)
				r := w.do(w.keys[by], "POST", "/v1/sessions/"+p.id+"/proposals", `{"specialistId":"bot","transitionName":"stop","reasoning":"again"}`)
				switch {
				case by != "bot":
					w.refuses(t, p, r, before, by+" proposing as bot", 403, 404)
				case p.state == "end" || p.stopped:
					w.refuses(t, p, r, before, "a proposal after the end", 409)
				case r.status != 201:
					t.Fatalf("bot proposes: %d %s", r.status, r.body)
				case at.Question != nil:
					if fresh, _ := w.now(p); fresh.Question != nil && fresh.Question.Digest == at.Question.Digest {
						t.Fatalf("another proposal leaves the digest of the question %s", at.Question.Digest)
					}
				}
			},
			"rule": func(t *rapid.T) {
				p, by := w.some(t), who("carol", "dave")
				at, _ := w.now(p)
				if at.Question == nil {
					t.Skip("nothing is asked")
				}
				g := given{by: by, session: p.id, round: at.Question.RoundID, transition: rapid.SampledFrom([]string{"next", "next", "next", "stop"}).Draw(t, "transition")}
				digest := at.Question.Digest
				if _, mine := w.question(by, at); mine != nil {
					digest = mine.Digest
				}
				g.body = fmt.Sprintf(`{"transitionName":%q,"roundId":%q,"questionDigest":%q}`, g.transition, g.round, digest)
				if rapid.Bool().Draw(t, "later") {
					w.words = append(w.words, g)
					return
				}
				w.rule(t, g, p)
			},
			"repeat": func(t *rapid.T) {
				if len(w.words) == 0 {
					t.Skip("nothing was said")
				}
				g, p := w.words[rapid.IntRange(max(0, len(w.words)-3), len(w.words)-1).Draw(t, "word")], w.some(t)
				for _, its := range w.sessions {
					if its.id == g.session && rapid.IntRange(0, 3).Draw(t, "elsewhere") > 0 {
						p = its
					}
				}
				w.rule(t, g, p)
			},
			"reveal": func(t *rapid.T) {
				p, by := w.some(t), who("carol", "dave")
				at, before := w.now(p)
				if at.Question == nil {
					t.Skip("nothing is asked")
				}
				r := w.do(w.keys[by], "POST", "/v1/inbox/"+at.Question.QuestionID+"/reveal", "")
				if mayRuleAs[by] == "" {
					w.refuses(t, p, r, before, by+" looking", 403, 404)
				} else if r.status == 200 {
					p.seen[by] = true
				} else {
					w.refuses(t, p, r, before, by+" looking", 404, 409)
				}
			},
			"cancel": func(t *rapid.T) {
				p, by := w.some(t), who("viewer", "carol")
				_, before := w.now(p)
				r := w.do(w.keys[by], "POST", "/v1/sessions/"+p.id+"/cancel", `{"note":"enough"}`)
				switch {
				case !mayStart[by]:
					w.refuses(t, p, r, before, by+" cancelling", 403, 404)
				case r.status == 200 && p.state != "end":
					p.stopped = true
				default:
					w.refuses(t, p, r, before, "cancelling what has ended", 409, 200)
				}
			},
			"restart": func(*rapid.T) {
				w.desk = newDesk(outer, deskOptions{store: w.runner.Store(), control: w.control})
			},
			"": func(t *rapid.T) {
				for _, p := range w.sessions {
					at, _ := w.now(p)
					var log api.List[api.Event]
					w.want(200, "GET", "/v1/sessions/"+p.id+"/events?after=0&kinds=executed", "").into(w.T, &log)
					if at.CurrentState != p.state || len(log.Items) != p.executed || (at.Status == session.Completed) != (p.state == "end") || p.stopped && at.Status != session.Stopped {
						t.Fatalf("%s is %s at %s after %d transitions, and the model says %+v", p.id, at.Status, at.CurrentState, len(log.Items), *p)
					}
				}
			},
		})
	})
}
