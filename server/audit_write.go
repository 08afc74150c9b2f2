package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
)

// Every request that may change something is in the audit log before it does: who, what,
// on which round and question. What cannot be recorded is not done. Its result follows when
// it is known.
//
// A request with an Idempotency-Key is done once, however often it is sent: its receipt is
// written in the same commit, and a second one gets the answer that the first one got. One
// whose process is gone is taken up, since its effect identifies itself: a session has the
// id that follows from the receipt, and so has an adoption, a ruling is of a round and an
// author, and the compare-and-swap refuses the rest. An answer that says that the same request may succeed
// later is not kept, nor is one of a fault or a picture.

type receiptKey struct{}

// A receipt is that of a request which is under way.
type receipt struct {
	control.ReceiptKey
	resumed bool // it was begun before, and its effect may have happened
	ended   bool // in one commit with the effect
	idle    bool // the request changes nothing: sent again, it is answered anew
}

// receiptOf returns the receipt of a request; nil if it has no Idempotency-Key.
func receiptOf(ctx context.Context) *receipt {
	key, _ := ctx.Value(receiptKey{}).(*receipt)
	return key
}

// recorded writes the audit log and the receipts around what routes do.
func (s *Server) recorded(routes *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := callerOf(r.Context())
		if r.Method == http.MethodGet || r.Method == http.MethodHead || p == nil || !strings.HasPrefix(r.URL.Path, "/v1/") {
			if p != nil {
				p.reads = func() error { return s.noteRead(r.Context(), s.entry(routes, r, p, nil)) }
			}
			routes.ServeHTTP(w, r)
			return
		}
		body, problem := readBody(r)
		if problem != nil {
			writeProblem(w, r, problem)
			return
		}
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // a caller that waits is not slow
		r.Body = io.NopCloser(bytes.NewReader(body))
		entry := s.entry(routes, r, p, body)
		done := control.Changes{}
		if key := r.Header.Get("Idempotency-Key"); key != "" && r.Method == http.MethodPost {
			if !visible(key) {
				writeProblem(w, r, bad("bad_request", "Idempotency-Key is no text of 1 to 255 visible ASCII characters"))
				return
			}
			name := control.ReceiptKey{Tenant: p.Tenant, Subject: p.Subject, Method: r.Method, Path: r.URL.RequestURI(), Key: key}
			begun, err := s.config.Control.Begin(r.Context(), control.Receipt{Key: name, Body: control.HashOf(body), At: entry.At}, entry)
			if err != nil || begun.Answer != nil {
				s.repeat(w, r, begun.Answer, err)
				return
			}
			done.End = &control.End{Key: name}
			r = r.WithContext(context.WithValue(r.Context(), receiptKey{}, &receipt{ReceiptKey: name, resumed: begun.Resumed}))
		} else if err := s.config.Control.Commit(r.Context(), control.Changes{Entries: []control.Entry{entry}}); err != nil {
			writeProblem(w, r, s.problem(r.Context(), err))
			return
		}
		kept := &keptWriter{ResponseWriter: w, keeps: done.End != nil}
		defer func() { s.concluded(r, p, kept, entry, done) }()
		routes.ServeHTTP(kept, r)
	})
}

// shownOnce makes changes that come with something that is shown once. Where the request has a
// receipt, that has the answer without it, in the same commit: so a request that is sent again
// makes nothing a second time.
func (s *Server) shownOnce(ctx context.Context, changes control.Changes, status int, location string, kept any) error {
	key := receiptOf(ctx)
	if key != nil {
		var body bytes.Buffer
		if err := marshal(&body, kept); err != nil {
			return err
		}
		changes.End = &control.End{Key: key.ReceiptKey, Answer: &control.Answer{Status: status, Location: location, Body: body.Bytes()}}
	}
	err := s.config.Control.Commit(ctx, changes)
	if key != nil && err == nil {
		key.ended = true
	}
	return err
}

// concluded records what became of a request. It is recorded also if the caller has gone.
func (s *Server) concluded(r *http.Request, p *Principal, kept *keptWriter, entry control.Entry, done control.Changes) {
	status := cmp.Or(kept.status, http.StatusInternalServerError) // of a panic nothing was written yet
	entry.At, entry.Result = s.now(), http.StatusText(status)
	if made := kept.Header().Get("Location"); (status == http.StatusCreated || status == http.StatusAccepted) && made != "" {
		entry.Target = made
	}
	done.Entries = []control.Entry{entry}
	key := receiptOf(r.Context())
	if key != nil && key.ended {
		done.End = nil
	}
	if done.End != nil && !kept.passes() && !key.idle {
		h := kept.Header()
		done.End.Answer = &control.Answer{Status: status, Location: h.Get("Location"), ETag: h.Get("ETag"), Body: kept.body.Bytes(), Omitted: kept.omitted}
	}
	if p.KeyID != "" {
		done.Used = []control.KeyTime{{ID: p.KeyID, At: entry.At}}
	}
	if err := s.config.Control.Commit(context.WithoutCancel(r.Context()), done); err != nil {
		s.config.Log.Error("the result of a request is not recorded", "id", requestID(r.Context()), "error", err)
	}
}

// entry is what the audit log says of a request.
func (s *Server) entry(routes *http.ServeMux, r *http.Request, p *Principal, body []byte) control.Entry {
	_, pattern := routes.Handler(r)
	var about struct{ RoundID, QuestionDigest string }
	_ = json.Unmarshal(body, &about) // what it does not say, it does not say
	return control.Entry{
		At: s.now(), RequestID: requestID(r.Context()), Tenant: p.Tenant, Subject: p.Subject, KeyID: p.KeyID, Method: p.Method, Address: addressOf(r),
		Operation: pattern, Target: r.URL.Path, RoundID: cut(about.RoundID), Digest: cut(about.QuestionDigest),
	}
}

// cut shortens what a caller says, which may be anything.
func cut(text string) string { return text[:min(len(text), 200)] }

// repeat answers a request that was made before.
func (s *Server) repeat(w http.ResponseWriter, r *http.Request, a *control.Answer, err error) {
	switch {
	case errors.Is(err, control.ErrInProgress):
		writeProblem(w, r, &api.Error{Status: http.StatusConflict, Code: "in_progress", Detail: "a request with this Idempotency-Key is under way", Retryable: true, ExitCode: 1})
	case errors.Is(err, control.ErrKeyReused):
		writeProblem(w, r, keyReused("this Idempotency-Key came with another body before"))
	case err != nil:
		writeProblem(w, r, s.problem(r.Context(), err))
	default:
		h := w.Header()
		h.Set("Idempotency-Replayed", "true")
		s.config.Metrics.Replayed(r.Context(), s.routeOf(r))
		for name, value := range map[string]string{"Location": a.Location, "ETag": a.ETag} {
			if value != "" {
				h.Set(name, value)
			}
		}
		h.Set("Content-Type", "application/json")
		if a.Status >= http.StatusBadRequest {
			h.Set("Content-Type", (*api.Error)(nil).ContentType(""))
		}
		w.WriteHeader(a.Status)
		_, _ = w.Write(a.Body) // whoever has gone does not read it
	}
}

// keyReused refuses a request whose key was that of another one; detail says what that did.
func keyReused(detail string) *api.Error {
	return &api.Error{Status: http.StatusUnprocessableEntity, Code: "key_reused", Detail: detail, Hint: "each new request needs a key of its own", ExitCode: 1}
}

// visible reports whether a text is 1 to 255 visible ASCII characters.
func visible(text string) bool {
	return len(text) <= 255 && strings.IndexFunc(text, func(c rune) bool { return c <= ' ' || c > '~' }) < 0
}

// A keptWriter keeps what is answered.
type keptWriter struct {
	http.ResponseWriter
	status  int
	keeps   bool
	omitted bool
	body    bytes.Buffer
}

// WriteHeader notes the status.
func (w *keptWriter) WriteHeader(status int) {
	w.status = cmp.Or(w.status, status)
	w.ResponseWriter.WriteHeader(status)
}

// Write keeps what is written, if that is not too long.
func (w *keptWriter) Write(text []byte) (int, error) {
	w.status = cmp.Or(w.status, http.StatusOK)
	switch {
	case !w.keeps || w.omitted:
	case w.body.Len()+len(text) > control.MaxAnswer:
		w.omitted = true
		w.body.Reset()
	default:
		w.body.Write(text)
	}
	return w.ResponseWriter.Write(text)
}

// passes reports whether the same request may come to another answer later: then none is kept.
func (w *keptWriter) passes() bool {
	var said struct{ Retryable bool }
	if w.status >= http.StatusBadRequest {
		_ = json.Unmarshal(w.body.Bytes(), &said) // what was too long to keep says nothing
	}
	return w.status == 0 || w.status >= http.StatusInternalServerError || w.status == http.StatusTooManyRequests || said.Retryable
}

// Unwrap lets an http.ResponseController find what is beneath.
func (w *keptWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
