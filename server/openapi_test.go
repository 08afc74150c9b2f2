package server_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
)

var writeDocument = flag.Bool("write-openapi", false, "write docs/openapi.json")

var guessSeed = flag.Uint64("guess-seed", 0, "the seed of TestGuessedRequests; 0 draws one")

const documentPath = "../docs/openapi.json"

//go:generate go test -run ^TestOpenAPI$ -write-openapi .

// TestOpenAPI holds docs/openapi.json to what the server serves.
func TestOpenAPI(t *testing.T) {
	d := newDesk(t, deskOptions{})
	got, err := d.server.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *writeDocument {
		if err := os.WriteFile(documentPath, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(documentPath)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(kept, got) {
		t.Error("docs/openapi.json is not what the server serves: go generate ./server writes it")
	}
	if served := d.do("", "GET", "/openapi.json", ""); !sameJSON(t, served.body, kept) {
		t.Error("/openapi.json is another document")
	}
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	for text, v := range map[*[]byte]*any{&a: &x, &b: &y} {
		if err := json.Unmarshal(*text, v); err != nil {
			t.Fatal(err)
		}
	}
	left, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	right, err := json.Marshal(y)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Equal(left, right)
}

// A document is what the tests read of an OpenAPI document.
type document struct {
	Paths      map[string]map[string]described
	Components struct{ Schemas map[string]*schema }
}

type described struct {
	OperationID string
	Summary     string
	Security    []map[string][]string
	Parameters  []struct {
		Name, In string
		Required bool
		Schema   *schema
	}
	RequestBody *struct {
		Content map[string]struct{ Schema *schema }
	}
	Responses map[string]json.RawMessage
}

type schema struct {
	Ref        string `json:"$ref"`
	Type       any
	Enum       []any
	Properties map[string]*schema
	Required   []string
	Items      *schema
}

func (d *desk) document() (doc document) {
	d.Helper()
	text, err := d.server.OpenAPI()
	if err == nil {
		err = json.Unmarshal(text, &doc)
	}
	if err != nil {
		d.Fatal(err)
	}
	return doc
}

// TestDescribed: each operation says what it is, who may call it, and all that it may answer.
func TestDescribed(t *testing.T) {
	d := newDesk(t, deskOptions{})
	ids := map[string]bool{}
	for path, methods := range d.document().Paths {
		for method, op := range methods {
			if op.OperationID == "" || ids[op.OperationID] || op.Summary == "" || strings.HasSuffix(op.Summary, ".") || len(op.Security) != 1 {
				t.Errorf("%s %s is described as %+v", method, path, op)
			}
			ids[op.OperationID] = true
			for _, status := range []string{"400", "401", "403", "404", "421", "429", "500", "503"} {
				if op.Responses[status] == nil {
					t.Errorf("%s %s does not say that it may answer %s", method, path, status)
				}
			}
		}
	}
}

// A guesser makes requests that fit the document, nearly fit it, or are meant to do harm.
type guesser struct {
	*rand.Rand
	schemas map[string]*schema
	known   map[string][]string // texts that mean something, by the name of a member
}

// hostile are texts that programs have stumbled over.
var hostile = []string{"", " ", ".", "..", "../../etc/passwd", "%00", "\u0000", "\u202egnp", "a\nb", strings.Repeat("x", 5000), "'; DROP TABLE sessions;--", "<script>alert(1)</script>", "${HOME}", "{{.}}", "-1", "9223372036854775808", "NaN", "1e999", "null", "true", "__operator", "__timer", "*", "0b9c1d3e-0000-4000-8000-000000000000", "\xff\xfe"}

func (g *guesser) pick(list []string) string { return list[g.IntN(len(list))] }

// text returns a text for a member of a name.
func (g *guesser) text(name string) string {
	if known := g.known[name]; len(known) > 0 && g.IntN(4) > 0 {
		return g.pick(known)
	}
	return g.pick(hostile)
}

// value returns a value that fits a schema, or, wild, perhaps not.
func (g *guesser) value(name string, s *schema, depth int, wild bool) any {
	if s != nil && s.Ref != "" {
		s = g.schemas[s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]]
	}
	if wild && g.IntN(6) == 0 || s == nil || depth > 6 {
		return [...]any{nil, true, -1, 1e308, "", []any{}, map[string]any{}, []any{nil}, g.pick(hostile)}[g.IntN(9)]
	}
	if len(s.Enum) > 0 && g.IntN(5) > 0 {
		return s.Enum[g.IntN(len(s.Enum))]
	}
	kind, _ := s.Type.(string)
	switch kind {
	case "object":
		out := map[string]any{}
		for member, of := range s.Properties {
			if slices.Contains(s.Required, member) && !(wild && g.IntN(5) == 0) || g.IntN(2) == 0 {
				out[member] = g.value(member, of, depth+1, wild)
			}
		}
		if wild && g.IntN(4) == 0 {
			out[g.pick(hostile)] = g.pick(hostile)
		}
		return out
	case "array":
		out := []any{}
		for range g.IntN(3) {
			out = append(out, g.value(name, s.Items, depth+1, wild))
		}
		return out
	case "integer":
		return []int64{0, 1, 7, -1, 1 << 40}[g.IntN(5)]
	case "number":
		return []float64{0, 0.5, -1, 1e12}[g.IntN(4)]
	case "boolean":
		return g.IntN(2) == 0
	case "string":
		return g.text(name)
	}
	if known := g.known["definition"]; len(known) > 0 && (name == "machine" || name == "definition" || name == "") && g.IntN(3) > 0 {
		return json.RawMessage(g.pick(known))
	}
	return map[string]any{"amount": g.IntN(100)}
}

// request returns the path, with its query, and the body of a request for an operation.
func (g *guesser) request(path string, op described, wild bool) (target, body string) {
	query := []string{}
	for _, p := range op.Parameters {
		text := g.text(p.Name)
		if !wild && p.Schema != nil && p.In != "path" {
			text = fmt.Sprint(g.value(p.Name, p.Schema, 0, false))
		}
		switch p.In {
		case "path":
			path = strings.ReplaceAll(path, "{"+p.Name+"}", escape(text))
		case "query":
			if p.Required || g.IntN(3) == 0 {
				query = append(query, escape(p.Name)+"="+escape(text))
			}
		}
	}
	if wild && g.IntN(8) == 0 {
		query = append(query, escape(g.pick(hostile))+"=1")
	}
	if len(query) > 0 {
		path += "?" + strings.Join(query, "&")
	}
	if op.RequestBody == nil {
		return path, ""
	}
	text, err := json.Marshal(g.value("", op.RequestBody.Content["application/json"].Schema, 0, wild))
	if err != nil {
		panic(err)
	}
	if wild {
		switch g.IntN(12) {
		case 0:
			text = text[:g.IntN(len(text)+1)]
		case 1:
			text = append(text, text...)
		case 2:
			text = []byte(g.pick(hostile))
		case 3:
			text = []byte(strings.Repeat("[", 200) + strings.Repeat("]", 200))
		}
	}
	return path, string(text)
}

// escape writes a text as a segment of a path, or a part of a query; one that would be no
// segment at all is another.
func escape(text string) string {
	var b strings.Builder
	for _, c := range []byte(cmp.Or(text, "-")) {
		if '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '-' || c == '_' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// TestGuessedRequests sends every operation requests that fit it, nearly fit it, or are meant
// to do harm, as callers of every role: no answer is one that the document does not know, or
// says that the server is at fault; and nothing is changed that the audit log does not have.
func TestGuessedRequests(t *testing.T) {
	seed := cmp.Or(*guessSeed, rand.Uint64())
	t.Logf("-guess-seed %d makes these requests again", seed)
	d := newDesk(t, deskOptions{})
	doc := d.document()
	g := &guesser{rand.New(rand.NewPCG(seed, 1)), doc.Components.Schemas, map[string][]string{
		"machine": {"claims", "alone"}, "machineName": {"claims", "alone", "none"}, "definition": {reviewed, alone, signed}, "specialistId": {"carol", "dave", "bot", "x"},
		"human": {"carol", "me"}, "humans": {"carol"}, "transitionName": {"pay", "refuse", "go"}, "toState": {"paid", "c"}, "state": {"review", "a"}, "states": {"review"}, "note": {"why"}, "limit": {"1", "50"}, "wait": {"0s", "1ms"},
		"status": {"running", "needs_human,failed"}, "seed": {"7"}, "mode": {"all", "eager"}, "role": {"viewer", "human", "admin"}, "machines": {"*"},
		"url": {"https://example.com/x", "http://example.com", "https://127.0.0.1/x"}, "types": {"*", "session.failed"}, "include": {"metaJson"},
	}}
	callers := []string{localKey, "", "wrong"}
	for _, role := range []control.Role{control.Viewer, control.Operator, control.Human, control.Specialist, control.Auditor, control.Admin} {
		callers = append(callers, d.key(control.Grant{Role: role, Humans: []string{"carol"}, Specialists: []string{"bot"}}))
	}
	learn := func() { // ids that mean something now
		var s api.Settled
		d.want(201, "POST", "/v1/sessions", `{"machine":`+[]string{reviewed, alone, signed}[g.IntN(3)]+`}`).into(t, &s)
		var shown api.Session
		d.want(200, "POST", "/v1/sessions/"+s.Session.SessionID+"/step", "")
		d.want(200, "GET", "/v1/sessions/"+s.Session.SessionID, "").into(t, &shown)
		var hook api.MadeWebhook
		if d.want(201, "POST", "/v1/webhooks", `{"url":"https://example.com","types":["*"]}`).into(t, &hook); g.IntN(2) == 0 {
			d.want(200, "PATCH", "/v1/webhooks/"+hook.WebhookID, `{"enabled":false}`)
		}
		g.known["webhook"] = []string{hook.WebhookID}
		g.known["id"] = append(g.known["id"], shown.SessionID)
		g.known["roundId"], g.known["round"] = []string{shown.CurrentRoundID}, []string{shown.CurrentRoundID, "1"}
		if q := shown.Question; q != nil {
			g.known["question"], g.known["questionDigest"] = []string{q.QuestionID}, []string{q.Digest}
		}
		g.known["digest"], g.known["machineDigest"] = []string{shown.MachineDigest}, []string{shown.MachineDigest}
	}
	learn()
	var routes [][2]string
	for path, methods := range doc.Paths {
		for method := range methods {
			routes = append(routes, [2]string{method, path})
		}
	}
	slices.SortFunc(routes, func(a, b [2]string) int { return strings.Compare(a[1]+a[0], b[1]+b[0]) })
	rounds, statuses := 40, map[int]int{}
	if testing.Short() {
		rounds = 5
	}
	for n := range rounds {
		learn()
		for i, route := range routes {
			d.from = fmt.Sprintf("2001:db8::%x:%x", n, i) // strangers are bounded by their address
			op := doc.Paths[route[1]][route[0]]
			path, body := g.request(route[1], op, g.IntN(3) > 0)
			method, key := strings.ToUpper(route[0]), callers[g.IntN(len(callers))]
			header := []string{}
			if g.IntN(4) == 0 {
				header = append(header, "Idempotency-Key", g.pick([]string{"k1", "k2", "a b", strings.Repeat("k", 300)}))
			}
			if g.IntN(6) == 0 {
				header = append(header, []string{"If-Match", "If-None-Match", "Last-Event-ID", "Accept"}[g.IntN(4)], g.pick([]string{`"1"`, "*", "x", "application/json"}))
			}
			before := d.audited()
			r := d.do(key, method, path, body, header...)
			if statuses[r.status]++; op.Responses[strconv.Itoa(r.status)] == nil || r.status >= 500 && r.status != 501 {
				t.Errorf("%s %.300s %v %.600s: %d, which the document does not know: %.600s", method, path, header, body, r.status, r.body)
			}
			if r.status >= 400 && r.status != 304 && r.code() == "" {
				t.Errorf("%s %.300s: %d is no problem that says its code: %.300s", method, path, r.status, r.body)
			}
			if known := key != "" && key != "wrong"; method != "GET" && known && r.status < 400 && r.header.Get("Idempotency-Replayed") == "" && d.audited() < before+2 {
				t.Errorf("%s %.300s: %d, and the audit log has nothing of it", method, path, r.status)
			}
		}
	}
	for _, status := range []int{200, 400, 401, 403, 404, 409, 422} {
		if statuses[status] == 0 && !testing.Short() { // a few rounds may happen to meet no conflict
			t.Errorf("nothing was answered with %d: %v", status, statuses)
		}
	}
}

// audited returns how many entries the audit log has.
func (d *desk) audited() int {
	d.Helper()
	records, err := d.control.Audit(d.Context(), control.Query{Limit: 1, Desc: true})
	if err != nil {
		d.Fatal(err)
	}
	if len(records) == 0 {
		return 0
	}
	return int(records[0].Place)
}
