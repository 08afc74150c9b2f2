package server_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// The document as it was released. What programs that go by it send and read stays: there are
// additions, and nothing else.

var freezeDocument = flag.Bool("freeze-openapi", false, "write docs/openapi-v1.json: at a release, and never else")

const frozenPath = "../docs/openapi-v1.json"

// TestFrozen refuses what would break a program that goes by the document of the last release.
func TestFrozen(t *testing.T) {
	d := newDesk(t, deskOptions{})
	text, err := d.server.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	if *freezeDocument {
		if err := os.WriteFile(frozenPath, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, broken := range breaks(frozen(t), parsedJSON(t, text)) {
		t.Error(broken)
	}
}

// TestFrozenIsHeld takes something away from a copy of the document that a program may go by, or
// asks something of requests, here and there: it is noticed.
func TestFrozenIsHeld(t *testing.T) {
	const every = 32 // to try them all takes a while
	first := rand.IntN(every)
	was, now := frozen(t), frozen(t)
	if list := breaks(was, now); len(list) > 0 {
		t.Fatalf("the same document breaks %v", list)
	}
	tried := map[string]int{}
	try := func(kind, what string, change, back func()) {
		t.Helper()
		if tried[kind]++; tried[kind]%every != first {
			return
		}
		change()
		if len(breaks(was, now)) == 0 {
			t.Errorf("%s %s goes unnoticed", kind, what)
		}
		back()
	}
	without := func(kind, what string, from object) {
		for _, name := range slices.Sorted(maps.Keys(from)) {
			kept := from[name]
			try(kind, what+" "+name, func() { delete(from, name) }, func() { from[name] = kept })
		}
	}
	without("a path without", "", in(now, "paths"))
	without("a webhook without", "", in(now, "webhooks"))
	for path, item := range in(now, "paths") {
		without("a method without", path, item.(object))
		for method, op := range item.(object) {
			op, what := op.(object), method+" "+path
			id := op["operationId"]
			try("another name of", what, func() { op["operationId"] = "x" }, func() { op["operationId"] = id })
			list, _ := op["parameters"].([]any)
			for i, p := range list {
				try("a parameter without", what, func() { op["parameters"] = slices.Delete(slices.Clone(list), i, i+1) }, func() { op["parameters"] = list })
				if required := p.(object)["required"]; required != true {
					try("a parameter that is required,", what, func() { p.(object)["required"] = true }, func() { p.(object)["required"] = required })
				}
			}
			for status := range in(op, "responses") {
				if status < "4" {
					kept := in(op, "responses")[status]
					try("an answer without", what+" "+status, func() { delete(in(op, "responses"), status) }, func() { in(op, "responses")[status] = kept })
				}
			}
		}
	}
	asked := map[string]bool{} // the schemas of requests
	for _, item := range in(now, "paths") {
		for _, op := range item.(object) {
			refs(in(now, "components", "schemas"), in(op.(object), "requestBody"), asked)
		}
	}
	for name, s := range in(now, "components", "schemas") {
		s := s.(object)
		properties := in(s, "properties")
		without("a member without", name, properties)
		for member, of := range properties {
			of, what := of.(object), name+"."+member
			if kind, ok := of["type"]; ok {
				try("another type of", what, func() { of["type"] = "null" }, func() { of["type"] = kind })
			}
			if enum, ok := of["enum"].([]any); ok {
				try("a value without", what, func() { of["enum"] = enum[1:] }, func() { of["enum"] = enum })
			}
			required, _ := s["required"].([]any)
			switch needs := slices.Contains(required, any(member)); {
			case asked[name] && !needs:
				try("a member that is required,", what, func() { s["required"] = append(slices.Clone(required), member) }, func() { s["required"] = required })
			case !asked[name] && needs:
				try("a member that may be missing,", what, func() { s["required"] = []any{} }, func() { s["required"] = required })
			}
		}
		if asked[name] && len(properties) > 0 {
			properties["another"] = object{"type": "string"}
			required := s["required"]
			try("a new member that is required,", name, func() { s["required"] = []any{"another"} }, func() { s["required"] = required })
			delete(properties, "another")
		}
	}
	for _, s := range in(now, "components", "schemas") {
		if properties := in(s.(object), "properties"); properties != nil {
			properties["another"] = object{"type": "string"}
		}
	}
	in(now, "paths")["/v1/another"] = object{"get": object{"operationId": "another"}}
	if list := breaks(was, now); len(list) > 0 {
		t.Errorf("what is added breaks %v", list)
	}
	for kind, least := range map[string]int{"a path without": 50, "a member without": 500, "a value without": 2, "a new member that is required,": 10, "a parameter without": 50} {
		if tried[kind] < least {
			t.Errorf("%s: there are only %d", kind, tried[kind])
		}
	}
}

type object = map[string]any

func parsedJSON(t *testing.T, text []byte) (out object) {
	t.Helper()
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func frozen(t *testing.T) object {
	t.Helper()
	text, err := os.ReadFile(frozenPath)
	if err != nil {
		t.Fatalf("%v: at a release, go test ./server -run '^TestFrozen$' -freeze-openapi writes it", err)
	}
	return parsedJSON(t, text)
}

// in returns an object within others, nil if there is none.
func in(o object, names ...string) object {
	for _, name := range names {
		o, _ = o[name].(object)
	}
	return o
}

// refs adds the names of the schemas that a part of a document leads to.
func refs(schemas object, part any, seen map[string]bool) {
	switch part := part.(type) {
	case object:
		if ref, ok := part["$ref"].(string); ok {
			if name := ref[strings.LastIndexByte(ref, '/')+1:]; !seen[name] {
				seen[name] = true
				refs(schemas, schemas[name], seen)
			}
			return
		}
		for _, p := range part {
			refs(schemas, p, seen)
		}
	case []any:
		for _, p := range part {
			refs(schemas, p, seen)
		}
	}
}

// A comparison is of a document with the one that was released.
type comparison struct {
	was, now object
	seen     map[string]bool // pairs of schemas, as requests or as answers
	broken   []string
}

// breaks returns what breaks a program that goes by a document once there is another.
func breaks(was, now object) []string {
	c := &comparison{was: was, now: now, seen: map[string]bool{}}
	for name, item := range in(was, "paths") {
		for method, op := range item.(object) {
			c.operation(method+" "+name, op.(object), in(now, "paths", name, method))
		}
	}
	for name, item := range in(was, "webhooks") {
		sent, now := in(item.(object), "post"), in(now, "webhooks", name, "post")
		if now == nil {
			c.add("webhook %s is gone", name)
			continue
		}
		c.contents("webhook "+name, in(sent, "requestBody"), in(now, "requestBody"), false)
	}
	return c.broken
}

func (c *comparison) add(format string, args ...any) {
	c.broken = append(c.broken, fmt.Sprintf(format, args...))
}

func (c *comparison) operation(what string, was, now object) {
	if now == nil {
		c.add("%s is gone", what)
		return
	}
	if was["operationId"] != now["operationId"] {
		c.add("%s is %v, no longer %v", what, now["operationId"], was["operationId"])
	}
	before, after := parameters(was), parameters(now)
	for name, p := range before {
		if after[name] == nil {
			c.add("%s: the %s is gone", what, name)
			continue
		}
		c.schema(what+": "+name, p["schema"], after[name]["schema"], true)
	}
	for name, p := range after {
		if p["required"] == true && (before[name] == nil || before[name]["required"] != true) {
			c.add("%s: the %s is required", what, name)
		}
	}
	if body := in(now, "requestBody"); body["required"] == true && in(was, "requestBody")["required"] != true {
		c.add("%s needs a body", what)
	}
	c.contents(what, in(was, "requestBody"), in(now, "requestBody"), true)
	for status, answer := range in(was, "responses") {
		now := in(now, "responses", status)
		if now == nil {
			if status < "4" {
				c.add("%s is not answered with %s any more", what, status)
			}
			continue
		}
		c.contents(what+" "+status, answer.(object), now, false)
	}
}

// parameters returns those of an operation, by place and name.
func parameters(op object) map[string]object {
	out := map[string]object{}
	list, _ := op["parameters"].([]any)
	for _, p := range list {
		p := p.(object)
		out[fmt.Sprint(p["in"], " ", p["name"])] = p
	}
	return out
}

func (c *comparison) contents(what string, was, now object, asked bool) {
	for media, content := range in(was, "content") {
		after := in(now, "content", media)
		if after == nil {
			c.add("%s: %s is gone", what, media)
			continue
		}
		c.schema(what, content.(object)["schema"], after["schema"], asked)
	}
}

// schema compares what a value may be: asked, of a request, else of an answer.
func (c *comparison) schema(what string, was, now any, asked bool) {
	w, _ := was.(object)
	n, _ := now.(object)
	if ref, ok := w["$ref"].(string); ok {
		pair := fmt.Sprint(ref, " ", n["$ref"], " ", asked)
		if n["$ref"] != nil && c.seen[pair] {
			return
		}
		c.seen[pair] = true
		what = ref[strings.LastIndexByte(ref, '/')+1:]
		w = in(c.was, "components", "schemas", what)
	}
	if ref, ok := n["$ref"].(string); ok {
		n = in(c.now, "components", "schemas", ref[strings.LastIndexByte(ref, '/')+1:])
	}
	if !reflect.DeepEqual(w["type"], n["type"]) && (!asked || n["type"] != nil) {
		c.add("%s is %v, no longer %v", what, n["type"], w["type"])
	}
	values, _ := w["enum"].([]any)
	left, limited := n["enum"].([]any)
	for _, v := range values {
		if limited && !slices.Contains(left, v) {
			c.add("%s is never %v any more", what, v)
		}
	}
	if asked && limited && values == nil {
		c.add("%s is no longer any value", what)
	}
	needed, needs := names(w["required"]), names(n["required"])
	for _, name := range needs {
		if asked && !slices.Contains(needed, name) {
			c.add("%s.%s is required", what, name)
		}
	}
	for _, name := range needed {
		if !asked && !slices.Contains(needs, name) {
			c.add("%s.%s may be missing", what, name)
		}
	}
	if asked && n["additionalProperties"] == false && w["additionalProperties"] != false {
		c.add("%s takes no other members any more", what)
	}
	for name, member := range in(w, "properties") {
		if after := in(n, "properties")[name]; after != nil {
			c.schema(what+"."+name, member, after, asked)
		} else {
			c.add("%s.%s is gone", what, name)
		}
	}
	for _, part := range []string{"items", "additionalProperties"} {
		if in(w, part) != nil {
			c.schema(what+" "+part, w[part], n[part], asked)
		}
	}
}

func names(list any) (out []string) {
	values, _ := list.([]any)
	for _, v := range values {
		out = append(out, fmt.Sprint(v))
	}
	return out
}
