package llm_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/internal/cassette"
	"github.com/dialai/dialai/llm"
	"github.com/dialai/dialai/llm/llmtest"
	"github.com/dialai/dialai/specialist"
)

// disguises are how a server may write a key that it was sent, with what of each gives
// the key away.
func disguises(key string) map[string]string {
	list := map[string]string{}
	add := func(written, tell string) { list[written] = tell }
	add(key, key)
	add(fmt.Sprintf(`\u%04x`, key[0])+key[1:], key[1:])
	add(fmt.Sprintf(`\\u%04X`, key[0])+key[1:], key[1:])
	add(fmt.Sprintf(`%%%02x`, key[0])+key[1:], key[1:])
	for i := range 3 { // wherever it begins in what is encoded
		text := base64.StdEncoding.EncodeToString([]byte("dia"[:i] + key + ":"))
		add("Basic "+text, text[4:len(text)-4])
	}
	return list
}

// TestKeysInDisguise: a key that a provider sends back under escapes, in percent or in
// base64 is in no event, audit entry, cassette or error, whatever comes of the answer.
func TestKeysInDisguise(t *testing.T) {
	for i, id := range []string{"openai/gpt-4o-mini", "anthropic/claude-sonnet-5", "google/gemini-2.5-flash"} {
		key := keys[[]string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"}[i]]
		for written, tell := range disguises(key) {
			// As JSON, since the disguise is one of the text that arrives.
			said := func(text string) string { return fmt.Sprintf(text, written) }
			choice := []string{
				`{"id":"i %[1]s","model":"m %[1]s","choices":[{"message":{"content":"because %[1]s","tool_calls":[{"function":{"name":"cut","arguments":"{\"amount\":1,\"%[1]s\":2}"}}]}}]}`,
				`{"id":"i %[1]s","model":"m %[1]s","content":[{"type":"text","text":"because %[1]s"},{"type":"tool_use","name":"cut","input":{"amount":1,"%[1]s":2}}]}`,
				`{"responseId":"i %[1]s","modelVersion":"m %[1]s","candidates":[{"content":{"parts":[{"text":"because %[1]s"},{"functionCall":{"name":"cut","args":{"amount":1,"%[1]s":2}}}]}}]}`,
			}[i]
			pay := strings.NewReplacer(`"cut"`, `"pay"`).Replace(choice)
			unknown := strings.NewReplacer(`"cut"`, `"no %[1]s"`).Replace(choice)
			for _, r := range []llmtest.Reply{
				{Body: said(pay)}, {Body: said(choice)}, {Body: said(unknown)},
				{Status: 401, Body: said(`{"error":{"message":"no such key: %s"}}`)}, {Body: said(`{"error":{"message":"no such key: %s"}}`)},
				{Body: said(`<html>%s`)}, {Status: 500, Body: said(`%s`), RetryAfter: "0"},
			} {
				if seen := everywhere(t, id, r); strings.Contains(seen, tell) || !strings.Contains(seen, "[REDACTED]") {
					at := max(strings.Index(seen, tell)-100, 0)
					t.Errorf("%s, %s: the key is seen: %.300s", id, r.Body, seen[at:])
				}
			}
		}
	}
}

// everywhere returns all that is kept and told of a round and of an ask in which a
// model gives an answer.
func everywhere(t *testing.T, id string, r llmtest.Reply) string {
	t.Helper()
	s := serve(t, llmtest.Script(r))
	d := decide(t, s, id, time.Minute)
	all := d.everything + d.failure + d.model + d.asked
	c, dir := config(s), t.TempDir()
	deck, err := cassette.Record(dir, cassette.Run{})
	if err != nil {
		t.Fatal(err)
	}
	c.Tape, c.AuditAs = deck, llm.AuditFull
	c.Audit = func(_ context.Context, e specialist.AuditEntry) error {
		kept, err := json.Marshal(e)
		all += string(kept)
		return err
	}
	got, err := ask(t, llm.New(c), id, question())
	all += fmt.Sprintf("%+v %v %#v", got, err, err)
	files, err := fs.Glob(os.DirFS(dir), "*.json")
	if err != nil || len(files) != 2 {
		t.Errorf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(dir, f))
		if err != nil {
			t.Fatal(err)
		}
		all += string(data)
	}
	return all
}

// TestKeysOnCassettes: no key is on a cassette, though it stood in the material or came
// back in pieces; and a word that a server without keys is given is no key, so recording
// changes no answer.
func TestKeysOnCassettes(t *testing.T) {
	key := keys["OPENAI_API_KEY"]
	probs := ""
	for _, r := range key {
		probs += fmt.Sprintf(`{"token":%q,"logprob":-1},`, string(r))
	}
	for given, want := range map[string]bool{key: false, "yes": true, "local": true} { // whether it stands in what is said
		s := serve(t, llmtest.Script(llmtest.Reply{Body: fmt.Sprintf(`{"choices":[{"message":{"content":%q,"tool_calls":[{"function":{"name":"use_%s","arguments":"{}"}}]},"logprobs":{"content":[%s]}}]}`,
			given, given, strings.TrimSuffix(probs, ","))}))
		c, dir := config(s), t.TempDir()
		deck, err := cassette.Record(dir, cassette.Run{})
		if err != nil {
			t.Fatal(err)
		}
		c.Tape, c.Lookup = deck, variables(map[string]string{"OPENAI_API_KEY": given})
		r := question()
		r.User = "the case: " + key
		got, err := ask(t, llm.New(c), ids[0], r)
		if err != nil || len(got.ToolCalls) != 1 || (got.ToolCalls[0].Name == "use_"+given) != want || (len(got.LogTokens) == len(key)) != want {
			t.Errorf("with the key %q: %+v, %v", given, got, err)
		}
		files, err := fs.Glob(os.DirFS(dir), "r[0-9]*.json")
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		data, err := os.ReadFile(filepath.Join(dir, files[0]))
		if err != nil || strings.Contains(string(data), given) != want {
			t.Errorf("with the key %q the cassette is %s, %v", given, data, err)
		}
	}
}
