package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/llm"
	"github.com/dialai/dialai/llm/llmtest"
	"github.com/dialai/dialai/specialist"
)

// A book keeps audit entries.
type book struct {
	mu   sync.Mutex
	list []specialist.AuditEntry
}

func (b *book) add(_ context.Context, e specialist.AuditEntry) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.list = append(b.list, e)
	return nil
}

// TestAudit: one entry for each attempt, with everything that is known, and no key
// in any of them, whatever the provider and the mode.
func TestAudit(t *testing.T) {
	card := "4111 1111 1111 1111"
	for _, mode := range []llm.AuditMode{"", llm.AuditRedacted, llm.AuditFull, llm.AuditDigest} {
		for _, id := range ids {
			provider, name, _ := strings.Cut(id, "/")
			key := keys[map[string]string{"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "google": "GEMINI_API_KEY"}[provider]]
			s := serve(t, llmtest.Script(llmtest.Reply{Status: 500, Body: "your key " + key + " is fine, we are not"}, llmtest.Reply{Text: "said " + strings.Repeat("x", 40<<10)}))
			var kept book
			c := config(s)
			c.Audit, c.AuditAs, c.Now = kept.add, mode, func() time.Time { return time.UnixMilli(1_700_000_000_000) }
			r := question()
			r.User, r.Origin = "pay with "+card, llm.Origin{SessionID: "s", SpecialistID: "m", MachineName: "desk", Round: 3}
			if _, err := ask(t, llm.New(c), id, r); err != nil {
				t.Fatal(err)
			}
			if len(kept.list) != 2 {
				t.Fatalf("%s: %d entries", id, len(kept.list))
			}
			all, err := json.Marshal(kept.list)
			if err != nil || strings.Contains(string(all), key) || strings.Contains(string(all), card) != (mode == llm.AuditFull) {
				t.Errorf("%s as %q: %.600s", id, mode, all)
			}
			first, second := kept.list[0], kept.list[1]
			if first.AuditEntryID == second.AuditEntryID || first.Attempt != 1 || second.Attempt != 2 || first.ResponseStatus != 500 || second.ResponseStatus != 200 ||
				second.ResolvedModel != name || second.NumInputTokens != 100 || second.NumOutputTokens != 10 || first.Purpose != "ask" || *first.MachineName != "desk" ||
				first.SessionID != "s" || first.SpecialistID != "m" || first.Round != 3 || first.Timestamp != 1_700_000_000_000 || !strings.HasPrefix(first.RequestURL, s.URL) {
				t.Errorf("%s as %q: %+v\n%.300v", id, mode, first, second)
			}
			hidden := 0
			for _, v := range first.RequestHeaders {
				if v == "[REDACTED]" {
					hidden++
				}
			}
			if hidden != 1 {
				t.Errorf("%s: the headers are %v", id, first.RequestHeaders)
			}
			switch long := second.ResponseBody; mode {
			case llm.AuditDigest:
				if !strings.HasPrefix(long, "sha256:") || len(long) > 120 {
					t.Errorf("a digest is %.200s", long)
				}
			case llm.AuditFull:
				if len(long) < 40<<10 {
					t.Errorf("in full %d bytes are kept", len(long))
				}
			default:
				if len(long) < 32<<10 || len(long) > 33<<10 || !strings.Contains(long, "bytes in all)") {
					t.Errorf("redacted %d bytes are kept", len(long))
				}
			}
		}
	}
	if _, err := llm.ParseAuditMode("none"); err == nil {
		t.Error("an unknown mode is taken")
	}
}

// TestAuditFails: whatever becomes of the audit, the call goes on, and failures are
// counted.
func TestAuditFails(t *testing.T) {
	s := serve(t, llmtest.Script(llmtest.Reply{Text: "x"}))
	c := config(s)
	n := 0
	c.Audit = func(context.Context, specialist.AuditEntry) error {
		if n++; n == 1 {
			return errors.New("the disk is full")
		}
		panic("a bug")
	}
	client := llm.New(c)
	for range 2 {
		if r, err := ask(t, client, ids[0], question()); err != nil || r.Text != "x" {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if client.AuditFailures() != 2 {
		t.Errorf("%d failures are counted", client.AuditFailures())
	}
}

// TestAuditOfBadAnswers: what cannot be read is kept with why.
func TestAuditOfBadAnswers(t *testing.T) {
	var kept book
	c := config(serve(t, llmtest.Script(llmtest.Reply{Body: "<html>"})))
	c.Audit = kept.add
	_, _ = ask(t, llm.New(c), ids[0], question())
	if e := kept.list[0]; e.Error == nil || e.ResponseBody != "<html>" || e.ResponseStatus != 200 || e.MachineName != nil {
		t.Errorf("%+v", e)
	}
}

// TestAuditOfNames: what a server calls its model, or says of an error that comes with
// a success, is kept without the key and at no great length.
func TestAuditOfNames(t *testing.T) {
	key := keys["OPENAI_API_KEY"]
	for _, r := range []llmtest.Reply{
		{Text: "x", Model: "model of " + key}, {Text: "x", Model: strings.Repeat("m", 100<<10)}, {Body: `{"error":{"code":400,"message":"not ` + key + `"}}`},
	} {
		var kept book
		c := config(serve(t, llmtest.Script(r)))
		c.Audit, c.AuditAs = kept.add, llm.AuditDigest
		answer, _ := ask(t, llm.New(c), ids[0], question())
		all, err := json.Marshal(kept.list)
		if err != nil || len(kept.list) != 1 || strings.Contains(string(all), key) || len(all) > 2<<10 || len(answer.Model) > 256 {
			t.Errorf("%d entries, %.600s", len(kept.list), all)
		}
	}
}

// TestRetryAfter: a provider is left alone for as long as it says. Who has no time
// for that learns it at once, and so does everybody else who asks it.
func TestRetryAfter(t *testing.T) {
	s := serve(t, llmtest.Script(llmtest.Reply{Status: 429, Body: "slow down", RetryAfter: "25"}))
	client := llm.New(config(s))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	m, err := client.Model(ids[0], "")
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	_, err = m.Ask(ctx, question())
	if status, ok := errors.AsType[*llm.StatusError](err); !ok || status.Status != 429 {
		t.Errorf("%v", err)
	}
	_, err = m.Ask(ctx, question())
	if err == nil || !strings.Contains(err.Error(), "takes no call for another") {
		t.Errorf("%v", err)
	}
	if took := time.Since(start); took > 5*time.Second || len(s.Calls()) != 1 {
		t.Errorf("%d calls in %s", len(s.Calls()), took)
	}
}

// TestObserve: an observer is told of the begin and the end of every call.
func TestObserve(t *testing.T) {
	s := serve(t, llmtest.Script(llmtest.Reply{Status: 500, Body: "x"}, llmtest.Reply{Text: "fine"}))
	c := config(s)
	var told []string
	c.Observe = func(_ context.Context, call *llm.Call) func(*llm.Response, error) {
		told = append(told, call.Provider+" "+call.Model+" "+call.Address)
		return func(r *llm.Response, err error) { told = append(told, fmt.Sprint(r.Text, err)) }
	}
	if _, err := ask(t, llm.New(c), ids[1], question()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"anthropic claude-sonnet-4-5 " + s.URL, "fine<nil>"}; strings.Join(told, "|") != strings.Join(want, "|") {
		t.Errorf("told was %q", told)
	}
}
